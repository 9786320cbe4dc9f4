"""A folder of partitions is evaluated to the same bytes as the inputs that it was written from."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_scenes import write_lvis, write_open_images
from shaped import KINDS, give_shapes, shape_options

from jaccard_eval import ReadOptions, Slice, compare, evaluate, inspect, load
from jaccard_eval.cli.run import run
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.engine import disk
from jaccard_eval.errors import UsageError
from jaccard_eval.features import partition as writer
from jaccard_eval.findings import DataError
from jaccard_eval.reading import partitions as parts

parquet = pytest.importorskip("pyarrow.parquet")

N_IMAGES = 12
OPTIONS: list[dict[str, Any]] = [
    {},
    {"protocol": "voc2007"},
    {"protocol": "voc2012", "score": "best-f1"},
    {"max_dets": (), "score": 0.5},
    {"class_agnostic": True, "slices": [Slice(name="few", patterns=("00[1-4].jpg",))]},
    {"drop_duplicates": True, "nms": 0.6, "classes": ["cat"]},
]


def document(result: Any) -> str:
    return json.dumps(result.to_dict(), sort_keys=True)


def write_scene(folder: Path, seed: int, n: int, decimals: int = 2) -> tuple[Path, Path]:
    """COCO files whose predictions lie near objects or anywhere, some of them twice, with tied scores."""
    rng = np.random.default_rng(seed)
    m = n // 3 + 2
    images = [{"id": i + 1, "file_name": f"{i:03}.jpg", "width": 320, "height": 240} for i in range(N_IMAGES)]
    boxes = np.concatenate((rng.integers(0, 120, (m, 2)), rng.choice([8, 30, 110], (m, 2))), axis=1).tolist()
    annotations = [
        {
            "id": i + seed % 2,
            "image_id": int(rng.integers(1, N_IMAGES)),
            "category_id": int(rng.integers(1, 3)),
            "bbox": box,
            "area": box[2] * box[3] - 0.5,
            "iscrowd": int(rng.random() < 0.1),
        }
        for i, box in enumerate(boxes)
    ]
    results = []
    for _ in range(n):
        near = annotations[int(rng.integers(0, m))]
        box = [float(value) for value in np.maximum(np.array(near["bbox"]) + rng.integers(-5, 6, 4), 1)]
        names = {name: near[name] for name in ("image_id", "category_id")}
        results.append({**names, "bbox": box, "score": float(np.round(rng.random(), decimals))})
    results += results[: seed % 3]
    gt, pred = folder / "gt.json", folder / "pred.json"
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    gt.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    pred.write_text(json.dumps(results))
    return gt, pred


def partition(gt: Path, pred: Path, out: Path, n: int | str = "auto", *options: str) -> Path:
    assert run(["partition", str(gt), str(pred), "-o", str(out), "--partitions", str(n), "-q", *options]) == 0
    return out


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Ground truth, predictions and their three partitions; tests that change something copy it."""
    folder = tmp_path_factory.mktemp("scene")
    gt, pred = write_scene(folder, 5, 90)
    return gt, pred, partition(gt, pred, folder / "parts", 3)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    options=st.sampled_from(OPTIONS),
    seed=st.integers(0, 10**6),
    n=st.sampled_from([0, 3, 60, 200]),
    decimals=st.sampled_from([3, 1, 0]),
    partitions=st.sampled_from([1, 3, 17]),
    group_rows=st.sampled_from([5, 50_000]),
)
def test_the_document_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    options: dict[str, Any],
    seed: int,
    n: int,
    decimals: int,
    partitions: int,
    group_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("scene")
    gt, pred = write_scene(folder, seed, n, decimals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "GROUP_ROWS", group_rows)
        out = partition(gt, pred, folder / "parts", partitions)
    expected = document(evaluate(gt, pred, engine="memory", **options))
    assert document(evaluate(out, engine="memory", **options)) == expected
    assert document(evaluate(out, engine="disk", workers=1 + seed % 2, **options)) == expected


@pytest.mark.parametrize("protocol", ["lvis", "lvis-fixed", "openimages", "openimages-challenge"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_known_of_classes_is_in_the_parts(tmp_path: Path, protocol: str, seed: int) -> None:
    write = write_lvis if protocol.startswith("lvis") else write_open_images
    gt, pred = write(tmp_path, seed, 200, 2)
    options: dict[str, Any] = {"protocol": protocol} | ({"max_dets": (4,)} if protocol.startswith("lvis") else {})
    out = partition(gt, pred, tmp_path / "parts", 3)
    expected = document(evaluate(gt, pred, engine="memory", **options))
    assert [document(evaluate(out, engine=engine, **options)) for engine in ("memory", "disk")] == [expected] * 2


def test_what_is_known_of_classes_is_checked(tmp_path: Path) -> None:
    import pyarrow

    out = partition(*write_lvis(tmp_path, 1, 60, 2), tmp_path / "parts", 2)
    path = out / "images.parquet"
    table = parquet.read_table(path)
    lists = table["gt_absent"].to_pylist()
    for change, message in (
        ([*lists[:3], [5], *lists[4:]], "input-changed.*its facts about classes do not match"),
        ([*lists[:3], [6], *lists[4:]], "gt_absent has a class that there is not"),
        (None, "has no column gt_absent"),
    ):
        assert change != lists
        changed = table.drop_columns(["gt_absent"])
        if change is not None:
            changed = changed.append_column("gt_absent", pyarrow.array(change, type=pyarrow.list_(pyarrow.int32())))
        parquet.write_table(changed, path)
        with pytest.raises(DataError, match=message):
            evaluate(out, protocol="lvis")
    parquet.write_table(table, path)
    edit_manifest(lambda it: it["gt"]["facts"].update(frequency=["r"]))(out)
    with pytest.raises(DataError, match=r"gt\.facts\.frequency: expected one for each of 6 classes, got 1"):
        evaluate(out, protocol="lvis")


def converted(source: Path, target: Path, kind: str, *options: str) -> Path:
    assert run(["convert", str(source), str(target), "--to", kind, "--lossy", "-q", *options]) == 0
    return target


def packed(source: Path) -> Path:
    target = source.with_name(f"{source.name}.gz")
    target.write_bytes(gzip.compress(source.read_bytes()))
    return target


def as_lines(source: Path) -> Path:
    target = source.with_suffix(".jsonl")
    target.write_text("".join(json.dumps(row) + "\n" for row in json.loads(source.read_text())))
    return target


# Of ground truth and predictions: what is read in parts, and what is read whole.
@pytest.mark.parametrize(
    "pair",
    [("csv", "csv.gz"), ("parquet", "parquet"), ("yolo", "yolo"), ("voc", "csv"), ("coco.gz", "lines")],
    ids="-".join,
)
def test_all_inputs_give_the_bytes_of_what_was_partitioned(
    tmp_path: Path, small_parts: Callable[..., None], pair: tuple[str, str]
) -> None:
    gt, pred = write_scene(tmp_path, 5, 90)
    kinds = {
        "coco.gz": packed,
        "lines": as_lines,
        "csv.gz": lambda path: packed(converted(path, tmp_path / "pred.csv", "csv", "--gt", str(gt))),
    }
    sides = []
    for role, kind in zip(("gt", "pred"), pair, strict=True):
        source, options = (gt, ()) if role == "gt" else (pred, ("--gt", str(gt)))
        target = tmp_path / f"{role}-{kind}" if kind in ("yolo", "voc") else tmp_path / f"{role}.{kind}"
        sides.append(kinds[kind](source) if kind in kinds else converted(source, target, kind, *options))
    small_parts(12)
    # Images of labels have no sizes here: areas are then unknown, on either way.
    expected = document(evaluate(*sides, engine="memory"))
    out = partition(*sides, tmp_path / "parts", 3)
    assert [document(evaluate(out, engine=engine)) for engine in ("memory", "disk")] == [expected] * 2


def columns(side: Dataset) -> dict[str, Any]:
    return {name: None if values is None else values.tolist() for name, values in side.boxes.columns().items()}


def test_a_side_is_what_was_read(scene: tuple[Path, Path, Path]) -> None:
    gt, pred, out = scene
    for role, path in (("gt", gt), ("pred", pred)):
        given, found = load(path, role=role), load(out, role=role)
        assert columns(found) == columns(given)
        for name in ("path", "format", "labels", "units", "reading", "details", "zero_id", "ignored", "findings"):
            assert getattr(found, name) == getattr(given, name), name
        assert found.images.keys == given.images.keys
        assert found.images.file_names == given.images.file_names
        assert np.array_equal(found.images.sizes, given.images.sizes, equal_nan=True)


def test_rows_in_another_order_have_the_bytes_of_that_order(tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 2, 120, 1)
    rows = json.loads(pred.read_text())
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows))
        pred.write_text(json.dumps([rows[row] for row in order]))
        for options in ({}, {"protocol": "voc2012"}):
            expected = document(evaluate(gt, pred, **options))
            out = partition(gt, pred, tmp_path / "parts", 3, "--force")
            assert document(evaluate(out, engine="disk", **options)) == expected


def test_a_folder_written_twice_is_the_same_and_its_rows_have_one_fingerprint(tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 4, 60)
    first, second = (partition(gt, pred, tmp_path / name, 3) for name in ("a", "b"))
    for file in sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file()):
        assert (first / file).read_bytes() == (second / file).read_bytes()
    alone = json.loads((partition(gt, pred, tmp_path / "c", 1) / "manifest.json").read_text())
    manifest = json.loads((first / "manifest.json").read_text())
    assert {role: manifest[role]["fingerprint"] for role in ("gt", "pred")} == {
        role: alone[role]["fingerprint"] for role in ("gt", "pred")
    }


def test_options_on_reading_and_pairing_are_recorded(tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 6, 60)
    rows = json.loads(pred.read_text())
    for row in rows:
        left, top, width, height = row["bbox"]
        row["bbox"] = [left, top, left + width, top + height]
    rows.append({"image_id": 99, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5})
    pred.write_text(json.dumps(rows))
    given = ["--pred-box", "xyxy", "--extra-images", "ignore", "--pred-format", "coco", "--names", "cat,dog"]
    out = partition(gt, pred, tmp_path / "parts", 2, *given)
    for name, words in {"files": [str(gt), str(pred), *given], "parts": [str(out)]}.items():
        assert run([*words, "-q", "-o", str(tmp_path / f"{name}.json"), "--no-errors"]) == 0
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "files.json").read_bytes()
    assert run([str(out), "-q", "--pred-box", "xywh"]) == 2
    assert run([str(out), "-q", "--pred-format", "csv"]) == 2


def test_the_disk_engine_reads_parts_where_they_are(
    scene: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from jaccard_eval.engine import stored

    def refuse(*_: object) -> None:
        raise AssertionError("written again")

    monkeypatch.setattr(stored, "write_boxes", refuse)
    assert evaluate(scene[2], engine="disk").metrics


def test_it_is_accepted_where_a_side_is(scene: tuple[Path, Path, Path]) -> None:
    gt, pred, out = scene
    assert document(evaluate(out, pred)) == document(evaluate(gt, pred))
    assert document(evaluate(gt, out)) == document(evaluate(gt, pred))
    assert document(compare(out, out, pred)) == document(compare(gt, pred, pred))
    with pytest.raises(UsageError, match="jaccard-eval partition"):
        evaluate(gt)


def test_an_output_that_is_not_ours_is_refused(
    tmp_path: Path, scene: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred, _ = scene
    out = tmp_path / "out"
    words = ["partition", str(gt), str(pred), "-o", str(out), "-q"]
    out.mkdir()
    assert run(words) == 0  # an empty one is free
    assert run(words) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0
    (out / "notes.txt").write_text("mine")
    assert run([*words, "--force"]) == 2
    assert "choose another folder" in capsys.readouterr().err
    assert (out / "notes.txt").read_text() == "mine"
    assert run(["partition", str(gt), str(pred), "-o", str(out / "none" / "here")]) == 4
    for number, code in (("0", 2), ("some", 2), ("10001", 2), ("-3", 2)):
        assert run(["partition", str(gt), str(pred), "-o", str(tmp_path / "x"), "--partitions", number]) == code
    assert not (tmp_path / "x").exists()


def test_an_error_leaves_nothing(tmp_path: Path, scene: tuple[Path, Path, Path]) -> None:
    gt, _, _ = scene
    pred = tmp_path / "pred.json"
    pred.write_text(json.dumps([{"image_id": 77, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5}]))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert run(["partition", str(gt), str(pred), "-o", str(tmp_path / "out"), "--scratch", str(scratch)]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pred.json", "scratch"]
    assert not list(scratch.iterdir())


INTERRUPTED = """
import os, signal, sys, threading
from jaccard_eval.reading import partitions as parts
from jaccard_eval.cli.run import run_process
write = parts.PartWriter.write
def interrupted(self, boxes):
    write(self, boxes)
    os.kill(os.getpid(), signal.SIGINT)
parts.PartWriter.write = interrupted
sys.exit(run_process(sys.argv[1:], lambda number, frame: os._exit(128 + number)))
"""


def test_an_interrupt_leaves_nothing(tmp_path: Path, scene: tuple[Path, Path, Path]) -> None:
    gt, pred, _ = scene
    words = ["partition", str(gt), str(pred), "-o", str(tmp_path / "out"), "--scratch", str(tmp_path)]
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.strip()) == (130, "interrupted")
    assert not list(tmp_path.iterdir())


def edit_manifest(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def apply(out: Path) -> None:
        path = out / "manifest.json"
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return apply


def edit_part(name: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    """Rewrite the columns of a part, and make the manifest fit it, as somebody would who forges both."""

    def apply(out: Path) -> None:
        path = out / name
        table = parquet.read_table(path)
        columns = {column: table[column].to_numpy().copy() for column in table.column_names}
        change(columns)
        import pyarrow

        parquet.write_table(pyarrow.table(columns), path)

    return apply


def set_cell(column: str, value: float) -> Callable[[Any], None]:
    return lambda columns: columns[column].__setitem__(0, value)


def cut(out: Path) -> None:
    path = out / "pred" / "part-00001.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def flip(out: Path) -> None:
    path = out / "pred" / "part-00001.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(bytes(data))


def swap(out: Path) -> None:
    """Exchange two parts: each row is that of another part."""
    first, second = (out / "pred" / f"part-0000{part}.parquet" for part in (0, 1))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not JSON": (lambda out: (out / "manifest.json").write_text("{"), r"manifest\.json"),
    "not a manifest": (lambda out: (out / "manifest.json").write_text("[]"), "not a manifest of partitions"),
    "later schema": (edit_manifest(lambda it: it.update(schema=2)), r"schema: has schema 2"),
    "no side": (edit_manifest(lambda it: it.pop("pred")), r"pred: is missing"),
    "many partitions": (edit_manifest(lambda it: it.update(partitions=10**9)), "1 to 10,000"),
    "bounds": (edit_manifest(lambda it: it.update(bounds=[[0, 4], [5, 9], [9, 12]])), "bounds: expected 3 lists"),
    "rule": (edit_manifest(lambda it: it.update(rule="hash")), "rule: expected"),
    "boxes": (edit_manifest(lambda it: it["pred"].update(boxes=7)), r"pred\.boxes: is 7, but its parts"),
    "units": (edit_manifest(lambda it: it["gt"].update(units="mm")), r"gt\.units: expected one of px, norm"),
    "images": (edit_manifest(lambda it: it["gt"].update(images=3)), r"images\.parquet"),
    "fingerprint": (
        edit_manifest(lambda it: it["gt"]["parts"][2].update(fingerprint="sha256:0")),
        r"input-changed.*gt/part-00002\.parquet",
    ),
    "whole fingerprint": (edit_manifest(lambda it: it["pred"].update(fingerprint="sha256:0")), "input-changed"),
    "missing": (lambda out: (out / "pred/part-00001.parquet").unlink(), r"pred: 1 of its parts is missing"),
    "no folder": (lambda out: (out / "gt").rename(out.parent / "elsewhere"), "3 of its parts are missing"),
    "no images": (lambda out: (out / "images.parquet").unlink(), r"images\.parquet"),
    "extra": (lambda out: (out / "gt/part-00003.parquet").write_bytes(b""), "1 of its parts is not in the manifest"),
    "cut": (cut, r"part-00001\.parquet: cannot be read"),
    "flipped": (flip, r"part-00001\.parquet"),
    "swapped": (swap, r"part-0000[01]\.parquet"),
    "empty": (lambda out: (out / "pred/part-00001.parquet").write_bytes(b""), r"part-00001\.parquet"),
    "columns": (edit_part("pred/part-00000.parquet", lambda it: it.pop("score")), "score is missing, not double"),
    "type": (
        edit_part("gt/part-00000.parquet", lambda it: it.update(x=it["x"].astype(np.float32))),
        "x is float, not double",
    ),
    "image of another part": (
        edit_part("pred/part-00000.parquet", lambda it: it["image"].__setitem__(-1, N_IMAGES - 1)),
        r"part-00000\.parquet: .*image is not one of 0 to",
    ),
    "image out of range": (
        edit_part("pred/part-00002.parquet", lambda it: it["image"].__setitem__(-1, 10**6)),
        r"part-00002\.parquet: .*image is not one of 12",
    ),
    "label out of range": (edit_part("gt/part-00001.parquet", set_cell("label", 9)), "label is not one of 2 classes"),
    "not finite": (edit_part("pred/part-00001.parquet", set_cell("score", np.nan)), "not finite"),
    "another score": (edit_part("pred/part-00001.parquet", set_cell("score", 0.123)), "input-changed"),
    "another source": (
        edit_part("pred/part-00001.parquet", lambda it: it["source"].__setitem__(-1, 10**6)),
        "input-changed",
    ),
    "rows": (
        edit_part("pred/part-00001.parquet", lambda it: it.update({name: it[name][:-1] for name in it})),
        r"input-changed.*part-00001\.parquet: has \d+ rows; its manifest has",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_folder_that_does_not_fit_is_an_error_with_the_name_of_the_part(
    tmp_path: Path, scene: tuple[Path, Path, Path], name: str
) -> None:
    import shutil

    out = Path(shutil.copytree(scene[2], tmp_path / "parts"))
    damage, message = BAD[name]
    damage(out)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for engine in ("memory", "disk"):
        with pytest.raises(DataError, match=f"(?s){message}") as raised:
            evaluate(out, engine=engine, scratch=scratch if engine == "disk" else None)
        assert raised.value.exit_code == 3
    assert not list(scratch.iterdir())


def test_a_part_that_is_missing_is_reported_once(tmp_path: Path, scene: tuple[Path, Path, Path]) -> None:
    import shutil

    out = Path(shutil.copytree(scene[2], tmp_path / "parts"))
    for part in ("gt/part-00000.parquet", "pred/part-00001.parquet"):
        (out / part).unlink()
    with pytest.raises(DataError) as raised:
        evaluate(out)
    assert str(raised.value).count("1 of its parts is missing") == 2


def test_a_part_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, scene: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    out = Path(shutil.copytree(scene[2], tmp_path / "parts"))
    read = parts.Stretch.read

    def late(self: parts.Stretch) -> Any:
        edit_part("pred/part-00001.parquet", set_cell("score", 0.123))(out)
        return read(self)

    monkeypatch.setattr(parts.Stretch, "read", late)
    with pytest.raises(DataError, match=r"input-changed.*part-00001\.parquet"):
        evaluate(out, engine="disk", scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_parts_have_about_as_many_boxes() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 50, 1000)
    bounds = writer.part_bounds(counts, 7)
    sums = np.add.reduceat(counts, bounds[:-1])
    assert len(sums) == 7
    assert sums.max() - sums.min() < 3 * counts.max()
    # One image with most of the boxes is a part, and each of the others still has one.
    assert writer.part_bounds(np.array([0, 1000, 0, 0]), 4).tolist() == [0, 1, 2, 3, 4]
    assert writer.part_bounds(np.array([0, 1000, 0, 0]), 9).tolist() == [0, 1, 2, 3, 4]
    assert writer.part_bounds(np.zeros(0, dtype=np.int64), 3).tolist() == [0, 0]


def partition_shapes(folder: Path, kind: str, seed: int, n: int, parts: int) -> tuple[Path, Path, Path]:
    gt, pred = give_shapes(write_scene(folder, seed, n, 1), kind, seed)
    given = ["--gt-angle", "rad-cw", "--pred-angle", "rad-cw"] if kind in ("obb", "probiou") else []
    return gt, pred, partition(gt, pred, folder / "parts", parts, "--iou-type", kind, *given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("seed", "n", "n_parts", "group_rows"), [(1, 0, 2, 50), (2, 3, 17, 50_000), (5, 120, 3, 40)])
def test_shapes_have_the_bytes_of_the_inputs(
    tmp_path: Path,
    small_parts: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    seed: int,
    n: int,
    n_parts: int,
    group_rows: int,
) -> None:
    monkeypatch.setattr(writer, "GROUP_ROWS", group_rows)
    gt, pred, out = partition_shapes(tmp_path, kind, seed, n, n_parts)
    options: dict[str, Any] = {"iou_type": kind, "drop_duplicates": n == 3, "nms": 0.6 if n == 3 else None}
    memory = evaluate(gt, pred, engine="memory", **options | shape_options(kind))
    assert n < 100 or memory["AP50"] > 0  # some are found
    small_parts(30 * disk.SHAPE_ROWS)
    assert [document(evaluate(out, engine=engine, **options)) for engine in ("memory", "disk")] == [
        document(memory)
    ] * 2


@pytest.mark.parametrize(
    ("kind", "gt", "pred", "published"),
    [
        ("segm", "instances_val2014_100.json", "instances_val2014_fakesegm100_results.json", 0.3195452758576433),
        ("keypoints", "gt_dataset.json", "dt_dataset.json", 0.5048844884488449),
    ],
)
def test_real_shapes_in_parts_have_the_published_values(
    kind: str, gt: str, pred: str, published: float, shared_data: Path, tmp_path: Path
) -> None:
    where = "dataset/cocoapi" if kind == "segm" else "keypoints_dataset"
    folder = shared_data / "faster-coco-eval/tests" / where
    out = partition(folder / gt, folder / pred, tmp_path / "parts", 4, "--iou-type", kind)
    for engine in ("memory", "disk"):
        assert evaluate(out, iou_type=kind, engine=engine)["AP"] == pytest.approx(published, abs=1e-12)


def test_shapes_that_are_chosen_unasked_are_with_their_note(tmp_path: Path) -> None:
    sides = [Path("sample_data/dota") / name for name in ("gt", "better")]
    out = partition(*sides, tmp_path / "parts", 3)
    for rules in ({}, {"iou_type": "obb"}, {"protocol": "dota"}):
        expected = document(evaluate(*sides, **rules))
        assert [document(evaluate(out, engine=engine, **rules)) for engine in ("memory", "disk")] == [expected] * 2
        assert ("iou-type" in expected) is (not rules)


def test_parts_with_shapes_are_read_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gt, pred, out = partition_shapes(tmp_path, "keypoints", 5, 60, 3)
    assert document(evaluate(out, pred, iou_type="keypoints")) == document(evaluate(gt, pred, iou_type="keypoints"))
    test_the_disk_engine_reads_parts_where_they_are((gt, pred, out), monkeypatch)


def test_a_side_without_the_shapes_is_not_written(
    tmp_path: Path, scene: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [converted(scene[0], tmp_path / "gt.csv", "csv"), scene[1]]
    sides[1] = converted(scene[1], tmp_path / "pred.csv", "csv", "--gt", str(scene[0]))
    assert run(["partition", *map(str, sides), "-o", str(tmp_path / "parts"), "-q", "--iou-type", "obb"]) == 3
    said = capsys.readouterr().err
    assert said.count("error[shapes-missing]") == 2
    assert "write boxes: --iou-type bbox" in said
    assert not (tmp_path / "parts").exists()


def edit_lists(column: str, change: Callable[[list[Any]], Any], name: str = "pred/part-00001.parquet") -> Any:
    """Change the rows of a column; with nothing in their place it is dropped."""

    def apply(out: Path) -> None:
        import pyarrow

        table = parquet.read_table(out / name)
        rows = table[column].to_pylist()
        rows = change(rows) or rows
        at, field = table.schema.get_field_index(column), table.schema.field(column).with_nullable(True)
        changed = table.set_column(at, field, pyarrow.array(rows, type=field.type)) if rows != "drop" else None
        parquet.write_table(table.drop_columns([column]) if changed is None else changed, out / name)

    return apply


BAD_SHAPES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "no column": ("segm", edit_lists("runs", lambda rows: "drop"), "runs is missing, not int64 lists"),
    "no value": ("segm", edit_lists("corners", lambda rows: [None, *rows[1:]]), "corners has no value in 1 rows"),
    "no number": (
        "keypoints",
        edit_lists("points", lambda rows: rows[0].__setitem__(0, None)),
        "points has a list without a value",
    ),
    "other kind": ("obb", edit_manifest(lambda it: it.update(iou_type="keypoints")), "written for keypoints, not obb"),
    "no kind": ("obb", edit_manifest(lambda it: it.update(iou_type="circles")), "iou_type: expected .*got 'circles'"),
    "boxes alone": (
        "obb",
        edit_manifest(lambda it: it.pop("iou_type")),
        r"for bbox, not obb\. Evaluate, compare or explain it with iou_type=\"bbox\", or write it again "
        r"with partition\(gt, pred, iou_type=\"obb\"\)\.save\(\"DIR\"\)\.",
    ),
    "three corners": ("obb", edit_lists("corners", lambda rows: [row[:6] for row in rows]), "8 numbers in every row"),
    "not finite": ("obb", edit_lists("corners", lambda rows: rows[0].__setitem__(3, np.inf)), "four finite corners"),
    "fewer points": (
        "keypoints",
        edit_lists("points", lambda rows: [row[:3] for row in rows]),
        "part-00001.*another number",
    ),
    "one pose shorter": (
        "keypoints",
        edit_lists("points", lambda rows: [*rows[:-1], rows[-1][:3]]),
        "51 numbers in every row",
    ),
    "another point": ("keypoints", edit_lists("points", lambda rows: rows[0].__setitem__(0, 1.25)), "input-changed"),
    "size": ("segm", edit_lists("height", lambda rows: [2**40] * len(rows)), "out of range"),
    "corners": (
        "segm",
        edit_lists("polygons", lambda rows: [[n - 1 for n in row] for row in rows]),
        "corners and polygons do not fit",
    ),
    "cut elsewhere": (
        "segm",
        edit_lists("polygons", lambda rows: [[4, sum(row) - 4] if row else row for row in rows]),
        "input-changed",
    ),
    "another meaning": (
        "segm",
        edit_lists("counts_pixels", lambda rows: [not cell for cell in rows]),
        "input-changed",
    ),
    "runs": ("segm", edit_lists("runs", lambda rows: [row[::-1] for row in rows]), "runs must ascend"),
    "missing": ("segm", lambda out: (out / "gt/part-00001.parquet").unlink(), "gt: 1 of its parts is missing"),
}


@pytest.mark.parametrize("name", BAD_SHAPES)
def test_shapes_that_do_not_fit_are_an_error_with_the_name_of_the_part(tmp_path: Path, name: str) -> None:
    kind, damage, message = BAD_SHAPES[name]
    _, _, out = partition_shapes(tmp_path, kind, 5, 60, 3)
    assert evaluate(out, iou_type=kind).metrics
    damage(out)
    for engine in ("memory", "disk"):
        with pytest.raises((DataError, UsageError), match=f"(?s){message}"):
            evaluate(out, iou_type=kind, engine=engine, scratch=tmp_path if engine == "disk" else None)


@pytest.mark.parametrize("kind", ["segm", "keypoints", "obb"])
def test_parts_with_shapes_are_looked_at_as_the_boxes_around_them(tmp_path: Path, kind: str) -> None:
    _, _, out = partition_shapes(tmp_path, kind, 5, 120, 3)
    for role in ("gt", "pred"):
        shaped = load(out, role=role, options=ReadOptions(iou_type=kind)).boxes
        boxes = load(out, role=role).boxes
        assert boxes.shapes is None
        np.testing.assert_array_equal(boxes.xywh, shaped.xywh)
        np.testing.assert_array_equal(boxes.source, shaped.source)
    assert inspect(out).gt.boxes.total == len(load(out).boxes)  # type: ignore[union-attr]
    # What is compared must be what was written.
    for engine in ("memory", "disk"):
        with pytest.raises(UsageError, match=f"was written for {kind}, not bbox"):
            evaluate(out, iou_type="bbox", engine=engine)
