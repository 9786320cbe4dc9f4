"""Writing and reading again gives the same data set, to the last bit; what a format cannot carry is said."""

import gzip
import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import BoxTable, DataError, UsageError, load
from jaccard_eval.data.boxtable import to_xywh
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, unknown_sizes
from jaccard_eval.findings import Severity
from jaccard_eval.formats import format_module, format_writer, write_dataset, written_formats
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.writing import exact_coords
from jaccard_eval.similarity.obb import Quads

SAMPLE = Path(__file__).parents[2] / "sample_data"
SHARED = Path(__file__).parents[2] / "../shared/data"

SAMPLES = [
    ("gt", "coco/gt.json", "gt.json"),
    ("pred", "coco/better.json", "pred.json"),
    ("pred", "coco/better.json", "pred.json.gz"),
    ("pred", "coco/better.json", "pred.jsonl"),
    ("gt", "csv/gt.csv", "gt.csv"),
    ("pred", "csv/better.csv", "pred.csv"),
    ("pred", "csv/better.csv", "pred.tsv"),
    ("gt", "yolo/labels/val", "labels"),
    ("pred", "yolo/better", "predictions"),
]
REAL = [
    ("gt", "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json"),
    ("pred", "cocoapi/results/instances_val2014_fakebbox100_results.json"),
    ("gt", "d2-medwaste/data/test/_annotations.coco.json"),
    ("pred", "d2-medwaste/output/coco_instances_results.json"),
    ("pred", "sahi/tests/data/coco_evaluate/result.json"),
    ("pred", "yfpeng-odm/tests/sample/detections_coco.json"),
]


def same(one: Dataset, other: Dataset) -> None:
    """Require equal tables, images and classes, but for the rows of the file."""
    assert (one.images.keys, one.images.file_names) == (other.images.keys, other.images.file_names)
    assert one.images.sizes.tobytes() == other.images.sizes.tobytes()
    assert (one.images.listed, one.labels, one.units) == (other.images.listed, other.labels, other.units)
    for column in (field.name for field in fields(BoxTable) if field.name != "source"):
        values, again = getattr(one.boxes, column), getattr(other.boxes, column)
        assert (values is None) == (again is None)
        if values is not None:
            assert values.tobytes() == again.tobytes(), column


def written_again(dataset: Dataset, path: Path, options: ReadOptions | None = None, name: str | None = None) -> Dataset:
    write_dataset(dataset, path, format_name=name)
    return load(path, role=dataset.role, format_name=name or dataset.format, options=options)


def scene(*boxes: tuple[int, int, list[float]], role: str = "gt", **columns: object) -> Dataset:
    """Two images of 100 x 50 and the classes cat and dog; boxes as (image, class, xyxy)."""
    n = len(boxes)
    score = [0.5] * n if role == "pred" else None
    table = BoxTable.from_arrays(
        [box[0] for box in boxes], [box[1] for box in boxes], [box[2] for box in boxes], score=score, **columns
    )
    sizes = np.array([[100.0, 50.0]] * 2)
    images = ImageTable(("a.png", "b.png"), (None, None), sizes, listed=False)
    return Dataset("memory", "arrays", role, images, LabelMap(("cat", "dog"), ("cat", "dog"), named=True), table)


@pytest.mark.parametrize(("role", "source", "target"), SAMPLES, ids=lambda one: one.replace("/", "-"))
def test_the_sample_survives_writing_and_reading(role: str, source: str, target: str, tmp_path: Path) -> None:
    dataset = load(SAMPLE / source, role=role)
    shutil.copytree(SAMPLE / "yolo/images/val", tmp_path / "images")  # label files have their sizes from beside them
    same(written_again(dataset, tmp_path / target), dataset)


@pytest.mark.parametrize("side", ["labels/val", "better"])
def test_label_files_survive_with_the_sizes_of_their_pictures(side: str, tmp_path: Path) -> None:
    # Fractions times sizes, with a rounding each: the numbers that lead back to the same pixels are found again.
    options = ReadOptions(images=ImageFolder(SAMPLE / "yolo/images/val"))
    dataset = load(SAMPLE / "yolo" / side, role="gt" if "labels" in side else "pred", options=options)
    assert dataset.units == "px"
    same(written_again(dataset, tmp_path / "out", options), dataset)


@pytest.mark.parametrize(("role", "source"), REAL)
def test_real_files_survive_writing_and_reading(role: str, source: str, tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip("needs the folder shared/data beside the checkout")
    dataset = load(SHARED / source, role=role)
    same(written_again(dataset, tmp_path / "out.json"), dataset)


@pytest.mark.parametrize("encoding", ["xywh", "xyxy", "cxcywh", "yxyx", "xxyy"])
@pytest.mark.parametrize("scaled", [False, True])
@given(data=st.data())
def test_boxes_of_any_encoding_are_written_to_the_bit(encoding: str, scaled: bool, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    coords = rng.uniform(0, 1, (50, 4))
    sizes = np.floor(rng.uniform(1, 5000, (50, 2))) if scaled else None
    factor = np.tile(np.ones((50, 2)) if sizes is None else sizes, 2)
    xywh = to_xywh(coords, encoding) * factor
    found, exact = exact_coords(xywh, encoding, sizes)
    assert exact.all()
    assert (to_xywh(found, encoding) * factor).tobytes() == xywh.tobytes()
    assert found == pytest.approx(coords, abs=1e-14)


def test_boxes_that_no_fraction_reaches_are_named(tmp_path: Path) -> None:
    dataset = scene((0, 0, [1e-30, 0, 20, 20]))
    findings = write_dataset(dataset, tmp_path / "out", format_name="yolo")
    assert any("1 box changes in the last digit when read back" in finding.message for finding in findings)


@pytest.mark.parametrize("name", [one for one in written_formats() if "scores" in format_module(one).FORMAT.carries])
def test_every_writer_keeps_boxes_classes_and_scores(name: str, tmp_path: Path) -> None:
    boxes = (0, 1, [10, 20, 30, 40]), (1, 0, [12.5, 20, 30, 40.25]), (0, 1, [50, 0, 75, 50])
    dataset = scene(*boxes, role="pred")
    if name == "instances":
        pytest.skip("holds masks alone")
    about = format_module(name).FORMAT
    path = tmp_path / f"out{about.suffixes[0] if about.suffixes else ''}"
    pictures = tmp_path / "pictures"
    again = written_again(dataset, path, ReadOptions(images=_pictures(pictures)), name)
    assert again.boxes.score.tolist() == [0.5] * 3
    assert sorted(map(tuple, again.boxes.xywh.tolist())) == sorted(map(tuple, dataset.boxes.xywh.tolist()))
    assert [again.labels.names[row] for row in np.sort(again.boxes.label)] == ["cat", "dog", "dog"]


def _pictures(folder: Path) -> ImageFolder:
    from PIL import Image

    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.new("1", (100, 50)).save(folder / name)
    return ImageFolder(folder)


def test_flags_and_areas_survive_where_a_format_has_them(tmp_path: Path) -> None:
    flags = {flag: [True, False] for flag in ("crowd", "difficult", "group_of", "ignore")}
    dataset = scene((0, 0, [0, 0, 10, 10]), (0, 1, [0, 0, 5, 5]), area=[60.5, 25], **flags)
    again = written_again(dataset, tmp_path / "a.csv", name="csv")
    same(replace(again, labels=dataset.labels, images=dataset.images), dataset)
    assert again.images.sizes.tolist() == [[100, 50]] * 2
    findings = write_dataset(dataset, tmp_path / "a.json", format_name="coco")
    assert [one.message for one in findings if one.severity is Severity.WARNING] == [
        f"{tmp_path}/a.json: difficult: boxes with difficult set: 1; the output format cannot hold that",
    ]


def test_an_image_without_boxes_survives(tmp_path: Path) -> None:
    dataset = scene((0, 0, [0, 0, 10, 10]), (0, 1, [0, 0, 10, 20]))
    assert written_again(dataset, tmp_path / "a.csv", name="csv").images.keys == ("a.png", "b.png")
    assert written_again(dataset, tmp_path / "a", name="yolo").images.keys == ("a", "b")


def test_names_that_a_spreadsheet_would_run_are_made_inert(tmp_path: Path) -> None:
    labels = LabelMap(("=1+1", "x,y"), ("=1+1", "x,y"), named=True)
    dataset = replace(scene((0, 0, [0, 0, 10, 10]), (1, 1, [0, 0, 10, 20])), labels=labels)
    (warning,) = (one for one in write_dataset(dataset, tmp_path / "a.csv", format_name="csv") if one.count == 1)
    assert warning.code == "write-formula"
    assert "'=1+1" in (tmp_path / "a.csv").read_text()
    assert load(tmp_path / "a.csv").labels.names == ("'=1+1", "x,y")


def test_ids_that_csv_does_not_carry_are_said(tmp_path: Path) -> None:
    dataset = load(SAMPLE / "coco/gt.json")
    findings = write_dataset(dataset, tmp_path / "a.csv", format_name="csv")
    assert {one.message.split(": ", 2)[2] for one in findings} == {
        "classes without boxes: 1; the output format cannot hold that",
        "classes are written by name, without their ids",
        "images are written by file name, or by id if they have none",
    }


def test_class_ids_with_gaps_are_numbered_anew_and_named(tmp_path: Path) -> None:
    dataset = load(SAMPLE / "coco/gt.json")
    findings = write_dataset(dataset, tmp_path / "labels", format_name="yolo")
    assert any("numbered 0 to 4 in the order of their keys" in one.message for one in findings)
    described = yaml.safe_load((tmp_path / "labels/data.yaml").read_text())
    assert described["names"] == dict(enumerate(dataset.labels.names))


BEYOND = [
    ("gt", [-20, 10, 10, 40], [0, 10, 10, 40]),  # centre at -5 px
    ("gt", [-10, 10, 120, 40], [0, 10, 100, 40]),  # wider than the image
    ("gt", [150, 10, 170, 40], [100, 10, 100, 40]),  # nothing of it lies in the image
    ("pred", [-10, 10, 250, 40], [0, 10, 100, 40]),  # 2.6 images wide
]
SEEN = [
    ("gt", [-9, 10, 40, 40]),
    ("pred", [-20, 10, 10, 40]),
    ("pred", [-10, 10, 120, 40]),
]


@pytest.mark.parametrize(("role", "box", "cut"), BEYOND)
def test_boxes_that_label_files_may_not_hold_are_cut_only_if_asked(
    role: str, box: list[float], cut: list[float], tmp_path: Path
) -> None:
    dataset = scene((0, 0, [10, 10, 40, 40]), (1, 1, box), role=role)
    message = "1 box leaves its image, which labels cannot hold; cut at the border"
    with pytest.raises(DataError, match=message) as caught:
        write_dataset(dataset, tmp_path / "out", format_name="yolo", lossy=False)
    assert "--lossy" in str(caught.value)
    assert not (tmp_path / "out").exists()
    write_dataset(dataset, tmp_path / "out", format_name="yolo", lossy=True)
    options = ReadOptions(images=_pictures(tmp_path / "images"), box="cxcywh")
    again = load(tmp_path / "out", role=role, options=options)
    left, top, width, height = again.boxes.xywh[1].tolist()
    assert [left, top, left + width, top + height] == pytest.approx(cut, abs=1e-9)
    assert again.boxes.xywh[0].tolist() == [10, 10, 30, 30]


@pytest.mark.parametrize(("role", "box"), SEEN)
def test_boxes_that_are_read_back_are_not_cut(role: str, box: list[float], tmp_path: Path) -> None:
    dataset = scene((0, 0, [10, 10, 40, 40]), (1, 1, box), role=role)
    write_dataset(dataset, tmp_path / "out", format_name="yolo")
    options = ReadOptions(images=_pictures(tmp_path / "images"), box="cxcywh")
    again = load(tmp_path / "out", role=role, options=options)
    assert again.boxes.xywh == pytest.approx(dataset.boxes.xywh, abs=1e-12)


@pytest.mark.parametrize("role", ["gt", "pred"])
@given(data=st.data())
def test_whatever_is_written_as_labels_is_read_again(role: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    boxes = [(0, 0, [10.0, 10.0, 40.0, 40.0])] * 20  # most are boxes in pixels
    boxes += [(int(rng.integers(2)), 0, rng.uniform(-250, 350, 4).tolist()) for _ in range(5)]
    boxes = [(image, label, np.sort(np.reshape(xyxy, (2, 2)), axis=0).ravel().tolist()) for image, label, xyxy in boxes]
    dataset = scene(*boxes, role=role)
    if role == "pred":  # a box inside out: nothing of it is left
        xywh = dataset.boxes.xywh * np.where(np.arange(25) == 20, -1.0, 1.0)[:, None] ** [0, 0, 1, 0]
        dataset = replace(dataset, boxes=replace(dataset.boxes, xywh=xywh))
    with TemporaryDirectory() as folder:
        write_dataset(dataset, Path(folder) / "out", format_name="yolo", lossy=True)
        assert len(load(Path(folder) / "out", role=role, options=ReadOptions(box="cxcywh")).boxes) == 25


def test_polygons_that_leave_their_image_are_cut_along_its_pixels_only_if_asked(tmp_path: Path) -> None:
    polygon = [-10, 10, 30, 10, 30, 40, -10, 40]  # the part in the image is 30 x 30 px
    record = {"id": 1, "image_id": 1, "category_id": 0, "bbox": [-10, 10, 40, 30], "area": 1200, "iscrowd": 0}
    document = {
        "images": [{"id": 1, "file_name": "a.png", "width": 100, "height": 50}],
        "categories": [{"id": 0, "name": "cat"}],
        "annotations": [record | {"segmentation": [polygon]}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(document))
    dataset = load(tmp_path / "gt.json", role="gt", options=ReadOptions(iou_type="segm"))
    with pytest.raises(DataError, match="1 polygon leaves its image, which labels cannot hold; cut at the border"):
        write_dataset(dataset, tmp_path / "out", format_name="yolo", lossy=False)
    write_dataset(dataset, tmp_path / "out", format_name="yolo", lossy=True)
    options = ReadOptions(iou_type="segm", images=_pictures(tmp_path / "images"))
    again = load(tmp_path / "out", role="gt", options=options)
    assert again.boxes.xywh[0].tolist() == pytest.approx([0, 10, 30, 30])
    sizes = np.array([[50, 100]])
    wanted, got = (one.boxes.shapes.in_images(sizes).runs.edges for one in (dataset, again))
    assert got.tolist() == wanted.tolist()


def test_oriented_boxes_that_leave_their_image_are_not_written_as_labels(tmp_path: Path) -> None:
    corners = np.array([[[-20.0, 25], [10, 10], [25, 25], [0, 45]]])
    dataset = scene((0, 0, [-20, 10, 25, 45]))
    dataset = replace(dataset, boxes=replace(dataset.boxes, shapes=Quads(corners)))
    with pytest.raises(DataError, match="1 oriented box leaves its image, which labels cannot hold"):
        write_dataset(dataset, tmp_path / "out", format_name="yolo", lossy=True)
    assert not (tmp_path / "out").exists()


def test_pixels_without_sizes_are_no_yolo_labels(tmp_path: Path) -> None:
    images = ImageTable(("a", "b"), (None, None), unknown_sizes(2), listed=False)
    dataset = replace(scene((0, 0, [1, 2, 30, 40]), (1, 0, [2, 3, 40, 50])), images=images)
    with pytest.raises(DataError, match=r"of 2 images is unknown: 'a', 'b'\. Pass the image folder with --images DIR"):
        write_dataset(dataset, tmp_path / "labels", format_name="yolo")
    assert list(tmp_path.iterdir()) == []


def test_text_labels_in_pixels_stay_so_in_their_own_format_alone(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.txt").write_text("0 10 20 300 400\n0 30 40 350 460\n")
    dataset = load(source, options=ReadOptions(box="xyxy"))
    findings = write_dataset(dataset, tmp_path / "again")
    assert any("Read it with --gt-units px --gt-box xyxy" in one.message for one in findings)
    assert (tmp_path / "again/a.txt").read_text() == "0 10.0 20.0 300.0 400.0\n0 30.0 40.0 350.0 460.0\n"
    with pytest.raises(DataError, match="YOLO holds fractions"):
        write_dataset(dataset, tmp_path / "labels", format_name="yolo")


def test_fractions_without_sizes_cannot_be_coco(tmp_path: Path) -> None:
    dataset = load(SAMPLE / "yolo/better", role="pred")
    with pytest.raises(DataError, match="COCO JSON holds pixels"):
        write_dataset(dataset, tmp_path / "a.json", format_name="coco")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../a.png", "/a.png", "a/../b.png", "classes.png", "a\n.png", "./a.png", "con|.png"])
def test_images_cannot_lead_label_files_elsewhere(name: str, tmp_path: Path) -> None:
    images = ImageTable((name, "b.png"), (None, None), np.array([[100.0, 50.0]] * 2), listed=False)
    dataset = replace(scene((0, 0, [0, 0, 10, 10])), images=images)
    with pytest.raises(DataError, match="cannot be the name of a label file"):
        write_dataset(dataset, tmp_path / "out", format_name="yolo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["s3://bucket/street/", "/data/street/", "C:\\street\\", "../street/"])
@pytest.mark.parametrize("name", ["yolo", "voc"])
def test_images_that_all_lie_elsewhere_are_named_by_what_tells_them_apart(
    name: str, place: str, tmp_path: Path
) -> None:
    images = ImageTable((f"{place}a.png", f"{place}b/c.png"), (None, None), np.array([[100.0, 50.0]] * 2), listed=False)
    dataset = replace(scene((0, 0, [0, 0, 10, 10])), images=images)
    findings = write_dataset(dataset, tmp_path / "out", format_name=name)
    said = f"images are named by their paths below '{place.replace(chr(92), '/')}', their common folder"
    assert [one.message for one in findings if "below" in one.message] == [f"{tmp_path}/out: image: {said}"]
    assert load(tmp_path / "out").images.keys == ("a", "b/c")


def test_images_that_share_a_label_file_and_broken_class_names_are_named_in_one_pass(tmp_path: Path) -> None:
    images = ImageTable(("a.jpg", "A.png"), (None, None), np.array([[100.0, 50.0]] * 2), listed=False)
    labels = LabelMap(("cat\ndog", "x"), ("cat\ndog", "x"), named=True)
    dataset = replace(scene((0, 0, [0, 0, 10, 10])), images=images, labels=labels)
    with pytest.raises(DataError, match="share a label file") as caught:
        write_dataset(dataset, tmp_path / "out", format_name="yolo")
    assert "cannot be the name of a class in data.yaml" in str(caught.value)


def named_images(*names: str) -> Dataset:
    images = ImageTable(names, (None,) * len(names), np.array([[100.0, 50.0]] * len(names)), listed=False)
    return replace(scene((0, 0, [0, 0, 10, 10])), images=images)


@pytest.mark.parametrize("to", ["yolo", "voc"])
@pytest.mark.parametrize(
    "name",
    [
        *("CON.jpg", "nul.png", "b/Aux.x.jpg", "com1.jpg", "LPT\u00b9.jpg", "prn /a.jpg", "conin$.jpg"),
        *("a .jpg", "a..jpg", "b /a.jpg", "b./a.jpg", "a\0.jpg", "a\ud800.jpg", "a\udcff.jpg", "a?.jpg"),
    ],
)
def test_a_label_file_that_some_system_cannot_have_is_refused(name: str, to: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be the name of a label file"):
        write_dataset(named_images(name), tmp_path / "out", format_name=to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["yolo", "voc"])
def test_names_that_only_look_reserved_are_written(to: str, tmp_path: Path) -> None:
    names = ("console.jpg", "com10.jpg", "con-1.jpg", "com.jpg", "a.con.jpg", ".hidden/a.jpg", "a b.jpg")
    write_dataset(named_images(*names), tmp_path / "out", format_name=to)
    assert len(load(tmp_path / "out").images) == len(names)


@pytest.mark.parametrize("to", ["yolo", "voc"])
@pytest.mark.parametrize(("one", "other"), [("\u00e9", "e\u0301"), ("\u00c9", "e\u0301"), ("STRASSE", "stra\u00dfe")])
def test_names_that_some_system_takes_for_one_share_a_label_file(one: str, other: str, to: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="share a label file"):
        write_dataset(named_images(f"{one}.jpg", f"{other}.jpg"), tmp_path / "out", format_name=to)


def test_a_class_that_is_called_like_a_device_has_a_result_file_of_its_own(tmp_path: Path) -> None:
    labels = LabelMap(("CON", "dog."), ("CON", "dog."), named=True)
    boxes = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.5])
    write_dataset(replace(scene(), boxes=boxes, labels=labels, role="pred"), tmp_path / "out", format_name="voc")
    found = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert found == ["comp4_det_test_CON.txt", "comp4_det_test_dog..txt"]


@pytest.mark.parametrize("to", ["csv", "openimages"])
def test_half_a_character_is_written_with_escapes_and_that_is_said(to: str, tmp_path: Path) -> None:
    said = write_dataset(named_images("a\ud800.jpg"), tmp_path / "out.csv", format_name=to)
    assert [one.code for one in said].count("write-name") == 1
    with pytest.raises(DataError, match="cannot be written as UTF-8"):
        write_dataset(named_images("a\ud800.jpg"), tmp_path / "new.csv", format_name=to, lossy=False)


@pytest.mark.parametrize("to", ["csv", "openimages"])
def test_a_name_with_a_nul_is_not_written_to_a_table_that_could_not_be_read(to: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds a NUL"):
        write_dataset(named_images("a\0.jpg"), tmp_path / "out.csv", format_name=to)
    assert list(tmp_path.iterdir()) == []


def test_arrays_need_the_name_of_a_format_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown format 'arrays'"):
        write_dataset(scene(), tmp_path / "a")


def test_a_format_that_cannot_be_written_names_those_that_can() -> None:
    with pytest.raises(UsageError, match=r"'kitti' cannot be written; choose from .*coco"):
        format_writer("kitti")


def test_a_compressed_file_is_the_same_every_time(tmp_path: Path) -> None:
    dataset = load(SAMPLE / "coco/better.json", role="pred")
    for name in ("a.json.gz", "b.json.gz"):
        write_dataset(dataset, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert len(json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))) == len(dataset.boxes)
