"""Parquet and Arrow: columns and rows of objects of every type, folders, damage; what is written comes back."""

import json
import struct
import sys
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaccard_eval import BoxTable, evaluate
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.errors import MachineError
from jaccard_eval.findings import DataError
from jaccard_eval.formats import detect_format, read_dataset, write_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import PLACEHOLDER_SIDE

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

BOX = [10.0, 20.0, 30.0, 40.0]  # left, top, width, height
CORNERS = {"xmin": [10.0], "ymin": [20.0], "xmax": [40.0], "ymax": [60.0]}
DOG = {"image": ["a.jpg"], "class": ["dog"], **CORNERS}
Save = Callable[[pa.Table, Path], None]


def save_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


def save_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


def save_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


def save_groups(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=1, compression="zstd")


CONTAINERS = {
    "parquet": ("gt.parquet", save_parquet),
    "row groups": ("gt.pq", save_groups),
    "arrow": ("gt.arrow", save_file),
    "stream": ("gt.arrows", save_stream),
    "feather": ("gt.feather", lambda table, path: feather.write_feather(table, str(path), compression="lz4")),
}


def read(columns: dict[str, Any] | pa.Table, tmp_path: Path, role: str = "gt", **options: Any) -> Dataset:
    path = tmp_path / "gt.parquet"
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return read_dataset(path, ReadOptions(role=role, **options))


def refuse(columns: dict[str, Any] | pa.Table, tmp_path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(columns, tmp_path, **options)
    return str(caught.value).replace(f"{tmp_path}/", "")


def boxes(data: Dataset) -> list[tuple[object, object, list[float]]]:
    """Image key, class name and box of each row."""
    table = data.boxes
    rows = zip(table.image.tolist(), table.label.tolist(), table.xywh.tolist(), strict=True)
    return [(data.images.keys[image], data.labels.names[label], box) for image, label, box in rows]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_is_recognised_and_read_alike(kind: str, tmp_path: Path) -> None:
    name, save = CONTAINERS[kind]
    save(
        pa.table({"image": ["a.jpg", "b.jpg"], "class": ["dog", "cat"], "bbox": [BOX, [1, 2, 3, 4.5]]}), tmp_path / name
    )
    data = read_dataset(tmp_path / name, ReadOptions())
    assert data.format == ("parquet" if name.endswith(("parquet", "pq")) else "arrow")
    assert boxes(data) == [("a.jpg", "dog", BOX), ("b.jpg", "cat", [1, 2, 3, 4.5])]


@pytest.mark.parametrize(
    "columns",
    [
        CORNERS,
        {"x": [10], "y": [20], "w": [30], "h": [40]},
        {"cx": [25], "cy": [40], "w": [30], "h": [40]},  # 10 + 30 / 2, 20 + 40 / 2
        {"bbox": [BOX]},
        {"bbox": pa.array([BOX], pa.list_(pa.float32(), 4))},
        {"bbox": pa.array([BOX], pa.large_list(pa.int16()))},
        {"bbox": [{"xmin": 10, "ymin": 20, "xmax": 40, "ymax": 60}]},
        {name: pa.array([int(value[0])], pa.uint8()) for name, value in CORNERS.items()},
        {name: pa.array(np.array(value, np.float16)) for name, value in CORNERS.items()},
        {name: pa.array([Decimal(int(value[0]))], pa.decimal128(5, 2)) for name, value in CORNERS.items()},
        {name: pa.array([int(value[0])]).dictionary_encode() for name, value in CORNERS.items()},
    ],
)
def test_boxes_are_read_from_columns_of_every_spelling_and_type(columns: dict[str, Any], tmp_path: Path) -> None:
    assert boxes(read({"image": ["a.jpg"], "class": ["dog"], **columns}, tmp_path)) == [("a.jpg", "dog", BOX)]


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_names_are_read_from_texts_of_every_type(kind: pa.DataType, tmp_path: Path) -> None:
    try:
        names = {name: pa.array(DOG[name]).cast(kind) for name in ("image", "class")}
    except pa.ArrowNotImplementedError:
        pytest.skip(f"this version of pyarrow makes no texts of type {kind}")
    save_file(pa.table({**names, **CORNERS}), tmp_path / "gt.arrow")
    assert boxes(read_dataset(tmp_path / "gt.arrow", ReadOptions())) == [("a.jpg", "dog", BOX)]


def test_texts_stay_texts_and_numbers_numbers(tmp_path: Path) -> None:
    texts = read({**DOG, "image": ["007"], "class": ["1"]}, tmp_path)
    assert (texts.images.keys, texts.labels.keys, texts.labels.named) == (("007",), ("1",), True)
    numbers = read({**DOG, "image": [7.0], "class": [1]}, tmp_path)  # a table with gaps has no integers but floats
    assert (numbers.images.keys, numbers.labels.keys, numbers.labels.named) == ((7,), (1,), False)


def test_ids_beside_names_are_the_keys(tmp_path: Path) -> None:
    data = read({**DOG, "image_id": [7], "category_id": [18]}, tmp_path)
    assert (data.images.keys, data.images.file_names) == ((7,), ("a.jpg",))
    assert (data.labels.keys, data.labels.names) == ((18,), ("dog",))
    assert data.findings == ()


def test_ids_that_do_not_go_with_the_names_are_passed_over(tmp_path: Path) -> None:
    two = {name: values * 2 for name, values in DOG.items()}
    data = read({**two, "image_id": [7, 8]}, tmp_path)
    assert data.images.keys == ("a.jpg",)
    assert [one.code for one in data.findings] == ["csv-columns-unused"]


def test_rows_without_a_box_are_images_without_boxes(tmp_path: Path) -> None:
    table = {name: [*values, None] for name, values in DOG.items()}
    data = read({**table, "image": ["a.jpg", "b.jpg"]}, tmp_path)
    assert (data.images.keys, len(data.boxes)) == (("a.jpg", "b.jpg"), 1)


def test_scores_sizes_flags_and_areas_have_columns(tmp_path: Path) -> None:
    more = {"confidence": [0.5], "width": [640], "height": [480], "iscrowd": [True], "area": [7.5]}
    data = read({**DOG, **more}, tmp_path, "pred")
    table = data.boxes
    assert table.score is not None
    assert (table.score.tolist(), table.area.tolist(), table.crowd.tolist()) == ([0.5], [7.5], [True])
    assert data.images.sizes.tolist() == [[640, 480]]


def test_scores_of_ground_truth_are_counted(tmp_path: Path) -> None:
    data = read({**DOG, "score": [0.5]}, tmp_path)
    assert (dict(data.ignored), [one.code for one in data.findings]) == (
        {"score": 1},
        ["gt-scores", "csv-columns-unused"],
    )


def test_all_that_cannot_be_used_is_told_with_row_column_and_value(tmp_path: Path) -> None:
    table = {
        "image": ["a.jpg", None, "c.jpg", "d.jpg"],
        "class": ["dog", "dog", None, "dog"],
        "xmin": [1.0, 1.0, 1.0, None],
        "ymin": ["one", "2", "3", "4"],
        "width": [5.0, 5.0, 5.0, 5.0],
        "xmax": [5.0, 5.0, 5.0, 5.0],
        "ymax": [6.0, 6.0, 6.0, 6.0],
        "iscrowd": [0, 2, 0, 0],
    }
    told = refuse(table, tmp_path)
    assert "gt.parquet: row 1.image: the row has no image" in told
    assert "gt.parquet: row 2.class: the box has no class" in told
    assert "gt.parquet: row 3.xmin: the box is incomplete: xmin empty" in told
    assert "gt.parquet: row 0.ymin: 'one' (string) is not a number" in told


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"class": [1.5]}, "row 0.class: 1.5 (double) is neither text nor a whole number"),
        ({"class": [True]}, "row 0.class: True (bool) is neither text nor a whole number"),
        ({"class": [" "]}, "row 0.class: ' ' (string) is neither text nor a whole number"),
        ({"image": pa.array([2**63], pa.uint64())}, "row 0.image: 9223372036854775808 (uint64) is neither"),
        ({"image": [[1]]}, "row 0.image: [1] (list"),
        ({"xmin": [float("nan")]}, "number-not-finite"),
        ({"xmin": [True]}, "row 0.xmin: True (bool) is not a number"),
        ({"iscrowd": [2]}, "row 0.iscrowd: 2 (int64) is neither 0 nor 1"),
        ({"iscrowd": ["yes"]}, "row 0.iscrowd: 'yes' (string) is neither 0 nor 1"),
        ({"image_width": [0], "image_height": [5]}, "image-size"),
        ({"xmin": [[[1]]]}, "is not a number"),
        ({"xmin": [{"left": 1}]}, "row 0.xmin: {'left': 1} (struct<left: int64>) is not a number"),
    ],
)
def test_values_of_the_wrong_kind_are_told(columns: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in refuse({**DOG, **columns}, tmp_path)


@pytest.mark.parametrize(
    "bbox", [["10 20 30 40"], [[1, 2, 3]], [[[1, 2, 3, 4]]], [5.0], [[1, 2, 3, 4, 5]], [["1", "2", "3", "4"]]]
)
def test_packed_boxes_that_are_not_four_numbers_are_told(bbox: list[Any], tmp_path: Path) -> None:
    assert "row 0.bbox: " in (told := refuse({"image": ["a.jpg"], "class": ["dog"], "bbox": bbox}, tmp_path))
    assert "is not four numbers" in told


def test_a_packed_box_may_be_null_among_others(tmp_path: Path) -> None:
    table = {"image": ["a.jpg", "b.jpg", "c.jpg"], "class": ["dog", None, "dog"], "bbox": [BOX, None, [1.0, 2, 3, 4]]}
    data = read(table, tmp_path)
    assert boxes(data) == [("a.jpg", "dog", BOX), ("c.jpg", "dog", [1, 2, 3, 4])]
    assert data.images.keys == ("a.jpg", "b.jpg", "c.jpg")


def test_no_rows_are_no_boxes_and_no_columns_an_error(tmp_path: Path) -> None:
    empty = pa.table(DOG).slice(0, 0)
    assert len(read(empty, tmp_path).boxes) == 0
    assert "no column for the image among 'a'" in refuse({"a": [1]}, tmp_path)


def test_hostile_names_do_not_act_on_a_terminal(tmp_path: Path) -> None:
    told = refuse({**DOG, "class": ["\x1b[2J\u202e"], "xmin": ["\x1b]0;x\x07"]}, tmp_path)
    assert "\x1b" not in told
    assert "\\x1b]0;x\\x07" in told


FEATURES = {
    "image": {"_type": "Image"},
    "objects": {"feature": {"category": {"names": ["cat", "dog"], "_type": "ClassLabel"}}, "_type": "Sequence"},
}
NEWER = {"objects": {"category": {"feature": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "_type": "List"}}}


@pytest.mark.parametrize("features", [FEATURES, NEWER])
@pytest.mark.parametrize("as_lists", [True, False])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_hugging_face_rows_are_images_with_named_classes(
    kind: str, as_lists: bool, features: dict[str, Any], tmp_path: Path
) -> None:
    lists = [{"bbox": [BOX], "category": [1]}, {"bbox": [], "category": []}]
    objects = lists if as_lists else [[{"bbox": BOX, "category": 1}], []]
    pictures = [{"bytes": b"\x89PNG" * 50, "path": "a.jpg"}, {"bytes": b"", "path": "b.jpg"}]
    columns = {"image_id": [5, 6], "image": pictures, "width": [640, 64], "height": [480, 48], "objects": objects}
    described = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    name, save = CONTAINERS[kind]
    save(pa.table(columns).replace_schema_metadata(described), tmp_path / name)
    data = read_dataset(tmp_path / name, ReadOptions())
    assert boxes(data) == [(5, "dog", BOX)]
    assert (data.images.keys, data.images.file_names, data.images.listed) == ((5, 6), ("a.jpg", "b.jpg"), True)
    assert data.images.sizes.tolist() == [[640, 480], [64, 48]]
    assert data.labels.names == ("cat", "dog")


NESTED = [
    pa.list_(pa.struct([("bbox", pa.list_(pa.float32(), 4)), ("category", pa.int8())])),
    pa.struct([("bbox", pa.list_(pa.list_(pa.float32(), 4))), ("category", pa.list_(pa.int8()))]),
    pa.large_list(pa.struct([("bbox", pa.large_list(pa.int16())), ("category", pa.large_string())])),
    pa.list_(
        pa.struct([("bbox", pa.struct([(side, pa.int32()) for side in ("x", "y", "w", "h")])), ("label", pa.string())])
    ),
]


@pytest.mark.parametrize("kind", NESTED, ids=range(len(NESTED)))
@pytest.mark.parametrize("container", CONTAINERS)
def test_objects_are_read_from_every_nesting(container: str, kind: pa.DataType, tmp_path: Path) -> None:
    lists = pa.types.is_struct(kind)
    inner = kind if lists else kind.value_type
    label = inner.field(1).name
    named = "dog" if pa.types.is_string(inner.field(1).type) or pa.types.is_large_string(inner.field(1).type) else 1
    box: Any = dict(zip("xywh", (10, 20, 30, 40), strict=True)) if pa.types.is_struct(inner.field(0).type) else BOX
    two = {"bbox": [box, box], label: [named] * 2} if lists else [{"bbox": box, label: named}] * 2
    none: Any = {"bbox": [], label: []} if lists else []
    objects = pa.array([none, two, None, none, two], kind)
    name, save = CONTAINERS[container]
    save(pa.table({"image_id": [4, 3, 2, 1, 0], "objects": objects}), tmp_path / name)
    data = read_dataset(tmp_path / name, ReadOptions())
    assert boxes(data) == [(3, str(named), BOX)] * 2 + [(0, str(named), BOX)] * 2
    assert data.images.keys == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("container", CONTAINERS)
def test_pictures_as_bare_bytes_are_no_names(container: str, tmp_path: Path) -> None:
    name, save = CONTAINERS[container]
    save(pa.table({**DOG, "image": [b"\x89PNG"], "image_id": [7]}), tmp_path / name)
    data = read_dataset(tmp_path / name, ReadOptions())
    assert boxes(data) == [(7, "dog", BOX)]
    assert "columns ignored: 'image (bytes)'" in str(data.findings[0])


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_named_columns_that_are_not_read_are_an_error_with_a_way_that_works(tmp_path: Path, engine: str) -> None:
    gt, pred = tmp_path / "gt.parquet", tmp_path / "pred.parquet"
    found = [{"bbox": [BOX], "category": ["dog"], "score": [0.5]}]
    pq.write_table(pa.table({**DOG, "image": ["a"]}), gt)
    for columns, naming in (
        ({"image": ["a"], "found": found}, "class=found.category,bbox=found.bbox,score=found.score"),
        ({**DOG, "image": ["a"], "score": [0.5], "blob": [b"dog"]}, "class=blob"),
    ):
        pq.write_table(pa.table(columns), pred)
        with pytest.raises(DataError) as caught:
            evaluate(gt, pred, engine=engine, pred_options=ReadOptions(columns=naming))
        for column in naming.split(","):
            assert f"column '{column.partition('=')[2]}' cannot be read: it holds bytes, or" in str(caught.value)
        assert "or call the structure 'objects'" in str(caught.value)
    pq.write_table(pa.table({"image": ["a"], "objects": found}), pred)
    assert evaluate(gt, pred, engine=engine)["AP"] == pytest.approx(1.0)


def test_faults_of_objects_are_told_by_row_and_object(tmp_path: Path) -> None:
    objects = [{"bbox": [BOX], "label": [None]}, {"bbox": [BOX, None], "label": ["dog", "cat"]}, None]
    told = refuse({"image_id": [1, 2, 3], "objects": objects}, tmp_path)
    assert "gt.parquet: row 0.objects[0].label: the box has no class" in told
    assert "gt.parquet: row 1.objects[1].bbox: the object has no box" in told


@pytest.mark.parametrize("objects", [[None], [[]], [{"bbox": [], "label": []}]])
def test_images_of_which_none_has_objects_are_there(objects: list[Any], tmp_path: Path) -> None:
    data = read({"image_id": [1], "objects": objects}, tmp_path)
    assert (data.images.keys, len(data.boxes)) == ((1,), 0)


def test_lists_of_objects_that_differ_in_length_are_told(tmp_path: Path) -> None:
    told = refuse({"image_id": [1], "objects": [{"bbox": [BOX], "label": ["dog", "cat"]}]}, tmp_path)
    assert "gt.parquet: row 0.objects: the lists differ in length: 1 of bbox, 2 of label" in told


@pytest.mark.parametrize("objects", [[1], ["a"], [{"bbox": 1.0}], [[[1.0]]]])
def test_objects_of_another_type_are_told(objects: list[Any], tmp_path: Path) -> None:
    assert "gt.parquet: objects: holds" in refuse({"image_id": [1], "objects": objects}, tmp_path)


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("cut", [4, 12, 60, -1, -9])
def test_files_that_were_cut_off_are_refused_by_name(kind: str, cut: int, tmp_path: Path) -> None:
    name, save = CONTAINERS[kind]
    save(pa.table(DOG), tmp_path / name)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:cut])
    if kind == "stream" and cut == -1:
        return  # the end mark of a stream is optional
    with pytest.raises(DataError, match=f"{name}: (cannot be read|is neither)"):
        read_dataset(tmp_path / name, ReadOptions(), "arrow")


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_without_doing_so(tmp_path: Path) -> None:
    n = 4_000_000
    table = pa.table({"image": pa.array(["a"]).dictionary_encode().take(pa.array(np.zeros(n, np.int8)))})
    path = tmp_path / "bomb.parquet"
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="unpacks to far more than its size"):
        read_dataset(path, ReadOptions())


def test_lists_that_claim_billions_of_objects_are_refused_without_counting_them_out(tmp_path: Path) -> None:
    n = 2_000_000_000
    lists = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), pa.nulls(n))
    objects = pa.StructArray.from_arrays([lists, lists], ["bbox", "category"])
    save_file(pa.table({"image_id": [1], "objects": objects}), path := tmp_path / "bomb.arrow")
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match="the lists of objects claim 2,000,000,000 entries"):
        read_dataset(path, ReadOptions())
    save_file(pa.table({"image": ["a.jpg"], "class": ["dog"], "bbox": lists}), path)
    with pytest.raises(DataError, match=r"row 0\.bbox: a list of 2,000,000,000 entries .* is not four numbers"):
        read_dataset(path, ReadOptions())


def test_bytes_of_pictures_are_never_read(tmp_path: Path) -> None:
    pictures = [{"bytes": bytes(1000), "path": "a.jpg"}]
    pq.write_table(
        pa.table({"image": pictures, "objects": [{"bbox": [BOX], "label": ["dog"]}]}), path := tmp_path / "a.parquet"
    )
    data = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert at.path_in_schema == "image.bytes"
    start = at.dictionary_page_offset or at.data_page_offset
    data[start : start + 20] = bytes(20)  # no page of Parquet starts so
    path.write_bytes(data)
    assert boxes(read_dataset(path, ReadOptions())) == [("a.jpg", "dog", BOX)]


def test_without_pyarrow_the_install_command_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pq.write_table(pa.table(DOG), tmp_path / "gt.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert detect_format(tmp_path / "gt.parquet") == "parquet"
    with pytest.raises(MachineError, match=r"pip install '.*\[parquet\]'"):
        read_dataset(tmp_path / "gt.parquet", ReadOptions())


def place(folder: Path, **tables: dict[str, Any]) -> Path:
    """Write a table for each path."""
    for name, columns in tables.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), f"{path}.parquet")
    return folder


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    folder = place(tmp_path / "gt", a=DOG, b={**DOG, "image": ["b.jpg"], "xmin": [9]})
    data = read_dataset(folder, ReadOptions())
    assert boxes(data) == [("a.jpg", "dog", BOX), ("b.jpg", "dog", [9, 20, 31, 40])]


def test_files_of_a_folder_that_lack_a_column_are_named(tmp_path: Path) -> None:
    folder = place(tmp_path / "gt", a=DOG, b={name: values for name, values in DOG.items() if name != "xmax"})
    with pytest.raises(DataError, match=r"b\.parquet: no column 'xmax', but other files of the folder have it"):
        read_dataset(folder, ReadOptions())


def test_names_of_folders_are_columns(tmp_path: Path) -> None:
    bare = {name: values for name, values in DOG.items() if name != "class"}
    folder = tmp_path / "gt"
    for name in ("class=dog", "class=big%20cat"):
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table(bare), folder / name / "0.parquet")
    data = read_dataset(folder, ReadOptions())
    assert boxes(data) == [("a.jpg", "big cat", BOX), ("a.jpg", "dog", BOX)]


SPLITS = [
    {"split=train__0": "t.jpg", "split=val__0": "v.jpg"},
    {"train__0": "t.jpg", "validation__0": "v.jpg"},
    {"data__train-00000-of-00001": "t.jpg", "data__validation-00000-of-00001": "v.jpg"},
    {"train": "t.jpg", "val": "v.jpg"},
]


@pytest.mark.parametrize("names", SPLITS)
def test_one_split_of_a_folder_is_read(names: dict[str, str], tmp_path: Path) -> None:
    folder = place(tmp_path / "gt", **{name: {**DOG, "image": [image]} for name, image in names.items()})
    assert read_dataset(folder, ReadOptions()).images.keys == ("v.jpg",)
    assert read_dataset(folder, ReadOptions(split="train")).images.keys == ("t.jpg",)
    with pytest.raises(DataError, match="there is no split 'test'; there are: train, val"):
        read_dataset(folder, ReadOptions(split="test"))


def test_the_only_split_is_read_in_place_of_the_usual_one_and_of_no_other(tmp_path: Path) -> None:
    folder = place(tmp_path / "gt", train=DOG)
    dataset = read_dataset(folder, ReadOptions())
    assert [finding.code for finding in dataset.findings] == ["split-train"]
    with pytest.raises(DataError, match="there is no split 'test'; there are: train"):
        read_dataset(folder, ReadOptions(split="test"))


def test_folders_of_other_files_are_not_taken_for_tables(tmp_path: Path) -> None:
    place(tmp_path, a=DOG)
    (tmp_path / "a.csv").write_text("notes\n")
    with pytest.raises(DataError, match="not recognised"):
        read_dataset(tmp_path, ReadOptions())


def test_pictures_and_descriptions_may_lie_beside_the_tables(tmp_path: Path) -> None:
    place(tmp_path, metadata=DOG)
    for name in ("a.jpg", "README.md", "dataset_info.json", "_SUCCESS", ".gitattributes"):
        (tmp_path / name).write_bytes(b"\xff\xd8\xff")
    data = read_dataset(tmp_path, ReadOptions())
    assert (boxes(data), data.findings) == ([("a.jpg", "dog", BOX)], ())


keys = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4, unique=True),
    st.lists(st.text(min_size=1, max_size=5).filter(str.strip), max_size=4, unique=True),
)
texts = st.text(st.characters(codec="utf-8"), max_size=5)
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Any data set that a file can hold: every kind of key, empty images, unused classes, flags, areas, sizes."""
    images, classes = sorted(draw(keys)), sorted(draw(keys.filter(bool)))
    n = draw(st.integers(0, 5)) if images and classes else 0
    column = lambda values: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    xywh = np.array(draw(st.lists(st.tuples(numbers, numbers, *[st.floats(0.5, 1e6)] * 2), min_size=n, max_size=n)))
    table = BoxTable.from_arrays(
        column(st.integers(0, len(images) - 1)).astype(int) if n else [],
        column(st.integers(0, len(classes) - 1)).astype(int) if n else [],
        xywh.reshape(-1, 4),
        encoding="xywh",
        score=column(st.floats(0, 1)).astype(float),
        area=column(st.floats(0.5, 1e9)).astype(float) if draw(st.booleans()) else None,
        **{flag: column(st.booleans()).astype(bool) for flag in ("crowd", "difficult", "group_of", "ignore")},
    )
    names = tuple(draw(st.one_of(st.none(), texts.filter(str.strip))) for _ in images)
    # Beyond the sides that are taken for placeholders where boxes are larger.
    sides = st.floats(2 * PLACEHOLDER_SIDE, 1e5)
    sizes = np.array([draw(st.one_of(st.just((np.nan, np.nan)), st.tuples(sides, sides))) for _ in images])
    named = any(isinstance(key, str) for key in classes) or draw(st.booleans())
    titles = tuple(draw(texts) if named else str(key) for key in classes)
    shown = ImageTable(tuple(images), names, sizes.reshape(-1, 2), draw(st.booleans()))
    return Dataset("x", "x", "pred", shown, LabelMap(tuple(classes), titles, named), table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.arrows"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(dataset=datasets())
def test_whatever_is_written_comes_back(name: str, dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / name
    assert write_dataset(dataset, path, format_name=name[2:].rstrip("s"), replace=True, lossy=False) == ()
    again = read_dataset(path, ReadOptions(role="pred"))
    assert (again.images.keys, again.images.file_names) == (dataset.images.keys, dataset.images.file_names)
    assert again.images.sizes.tobytes() == dataset.images.sizes.tobytes()
    assert (again.images.listed, again.labels, again.units) == (dataset.images.listed, dataset.labels, "px")
    assert again.boxes.shapes is None and again.boxes.outside is None
    beside = ("source", "shapes", "outside", "image_names", "class_names")
    for column in (field.name for field in fields(BoxTable) if field.name not in beside):
        assert getattr(again.boxes, column).tobytes() == getattr(dataset.boxes, column).tobytes(), column
    assert {one.code for one in again.findings} <= {"image-names-alike", "csv-row-no-box", "pred-empty", "class-quoted"}


def test_the_same_data_set_is_the_same_bytes(tmp_path: Path) -> None:
    data = read(DOG, tmp_path)
    for name in ("1.parquet", "2.parquet"):
        write_dataset(data, tmp_path / name)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_other_tools_read_what_is_written_here(tmp_path: Path) -> None:
    write_dataset(read({**DOG, "image_id": [7], "category_id": [18]}, tmp_path), tmp_path / "out.parquet")
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    named = {"image_id": 7, "file_name": "a.jpg", "category_id": 18, "category_name": "dog"}
    assert rows == [{**named, "left": 10.0, "top": 20.0, "width": 30.0, "height": 40.0}]


def test_a_page_that_was_damaged_is_found_by_its_checksum(tmp_path: Path) -> None:
    left = 61.728395061728394  # of full precision, so that no compression hides it
    columns = {"image": ["a", "a"], "class": ["dog", "dog"], "x": [10.0, left], "y": [10.0, 10.0]}
    dataset = read({**columns, "width": [50.0, 50.0], "height": [50.0, 50.0]}, tmp_path)
    write_dataset(dataset, tmp_path / "new.parquet", format_name="parquet")
    data = bytearray((tmp_path / "new.parquet").read_bytes())
    at = data.find(struct.pack("<d", left))
    assert at > 0
    data[at + 3] ^= 0x10  # another number, and still a finite one
    (tmp_path / "new.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"new.parquet: cannot be read: .*(CRC|checksum)"):
        read_dataset(tmp_path / "new.parquet", ReadOptions())


def test_lists_of_boxes_and_labels_of_an_image_are_corners_as_in_json(tmp_path: Path) -> None:
    rows = {
        "image": ["a.jpg", "b.jpg", "c.jpg"],
        "boxes": [[[10.0, 20, 40, 60], [1.0, 2, 3, 4]], [], [[0.0, 0, 5, 5]]],
        "labels": [[1, 2], [], [1]],
        "tags": [["day"], [], ["night", "rain"]],  # of the image
    }
    data = read(rows, tmp_path)
    assert boxes(data) == [
        ("a.jpg", "1", [10.0, 20.0, 30.0, 40.0]),
        ("a.jpg", "2", [1.0, 2.0, 2.0, 2.0]),
        ("c.jpg", "1", [0.0, 0.0, 5.0, 5.0]),
    ]
    assert len(data.images) == 3


@pytest.mark.parametrize(
    ("names", "is_refused"),
    [(("small", "large"), True), (("part-0", "part-1"), False), (("first", "second"), False)],
)
def test_two_runs_in_a_folder_stop_and_parts_of_one_do_not(
    names: tuple[str, str], is_refused: bool, tmp_path: Path
) -> None:
    row = {"class": ["dog"], "score": [0.5], "xmin": [1], "ymin": [2], "xmax": [30], "ymax": [40]}
    for number, name in enumerate(names):
        image = "a.jpg" if name != "second" else "b.jpg"
        save_parquet(pa.table({"image": [image], **row, "score": [0.5 + number / 4]}), tmp_path / f"{name}.parquet")
    if not is_refused:
        assert len(read_dataset(tmp_path, ReadOptions(role="pred")).boxes) == 2
        return
    with pytest.raises(DataError, match=r"input-ambiguous.*2 files with boxes of the same images.*large\.parquet"):
        read_dataset(tmp_path, ReadOptions(role="pred"))
