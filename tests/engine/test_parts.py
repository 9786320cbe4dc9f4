"""Predictions that are read in parts give what reading the whole gives: boxes, findings, errors, to the last byte."""

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

from jaccard_eval import ReadOptions, evaluate
from jaccard_eval.engine import choice, disk, stored, takes_disk
from jaccard_eval.engine.choice import rows_of
from jaccard_eval.engine.stored import write_boxes
from jaccard_eval.findings import DataError
from jaccard_eval.options import EngineOptions

NAMES = ["cat", "dog", "fox"]
Record = dict[str, Any]


def document(result: Any) -> str:
    return json.dumps(result.to_dict(), sort_keys=True)


def write_truth(folder: Path) -> Path:
    """Nine images with an object each."""
    images = [{"id": i, "file_name": f"img_{i}.jpg", "width": 640, "height": 480} for i in range(1, 10)]
    boxes = [
        {"id": i, "image_id": i, "category_id": i % 3 + 1, "bbox": [10 * i, 20, 60, 50], "area": 3000, "iscrowd": 0}
        for i in range(1, 10)
    ]
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)]
    path = folder / "gt.json"
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


def records(n: int = 120, seed: int = 0) -> list[Record]:
    """Results near the objects, some of them of no height."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        image = int(rng.integers(1, 10))
        left, top, width, height = (np.array([10 * image, 20, 60, 50]) + rng.normal(0, 6, 4)).round(2).tolist()
        found.append(
            {
                "image_id": image,
                "category_id": int(image % 3 + 1 if rng.random() < 0.8 else rng.integers(1, 4)),
                "bbox": [left, top, width, 0.0 if rng.random() < 0.05 else height],
                "score": round(float(rng.random()), 3),
            }
        )
    return found


def with_names(record: Record) -> Record:
    """A record with the texts that Ultralytics and SAHI add, in which anything may stand."""
    name = NAMES[record["category_id"] - 1]
    return {**record, "file_name": f"img_{record['image_id']}.jpg", "category_name": name, "note": '}, {"]\\'}


def as_row(record: Record) -> str:
    """A row of a table with a cell of two lines."""
    left, top, width, height = record["bbox"]
    image, name = f"img_{record['image_id']}.jpg", NAMES[record["category_id"] - 1]
    cells = (f'"{image}"', name, left, top, left + width, top + height, record["score"], '"seen\n#2, twice"')
    return ",".join(map(str, cells)) + "\n"


HEADER = "image,class,xmin,ymin,xmax,ymax,score,note\n"
WRITTEN: dict[str, Callable[[list[Record]], bytes]] = {
    "list.json": lambda rows: json.dumps(rows).encode(),
    "compact.json": lambda rows: b" \n" + json.dumps(rows, separators=(",", ":")).encode() + b"\n\n",
    "indented.json": lambda rows: json.dumps(rows, indent=1).encode(),
    "named.json": lambda rows: json.dumps([*map(with_names, rows)]).encode(),
    "packed.json.gz": lambda rows: gzip.compress(json.dumps(rows).encode()),
    "lines.jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode(),
    "named.jsonl": lambda rows: "\r\n\r\n".join(json.dumps(with_names(row)) for row in rows).encode(),
    "table.csv": lambda rows: (HEADER + "".join(map(as_row, rows))).encode(),
    "remarked.csv": lambda rows: ("# of a model\n\n" + HEADER + "".join(map(as_row, rows))).encode(),
    "table.tsv": lambda rows: (HEADER + "".join(map(as_row, rows))).replace(", ", " ").replace(",", "\t").encode(),
    "packed.csv": lambda rows: gzip.compress((HEADER + "".join(map(as_row, rows))).encode()),
}


@pytest.fixture
def in_parts(small_parts: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a dozen rows, and no room to read anything whole instead."""
    small_parts(12)
    monkeypatch.setattr(disk, "usable_memory", lambda: 0)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", WRITTEN)
def test_parts_give_the_bytes_of_the_whole(tmp_path: Path, name: str) -> None:
    gt, pred = write_truth(tmp_path), tmp_path / name
    pred.write_bytes(WRITTEN[name](records()))
    memory = evaluate(gt, pred, engine="memory")
    assert document(evaluate(gt, pred, engine="disk")) == document(memory)
    assert "box-empty" in {finding.code for finding in memory.findings}


def swapped(old: bytes, new: bytes, count: int = 1) -> Callable[[bytes], bytes]:
    """Replace the last occurrences of a text."""
    return lambda data: new.join(data.rsplit(old, count))


DAMAGED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "no score": ("list.json", swapped(b'"score"', b'"scope"', 2)),
    "three numbers": ("indented.json", swapped(b"  0.0\n", b'  "0"\n')),
    "cut off": ("list.json", lambda data: data[:-30]),
    "never closed": ("list.json", lambda data: data[:-1]),
    "more behind": ("list.json", lambda data: data + b"[]"),
    "comma at the end": ("list.json", swapped(b"]", b",]")),
    "no comma": ("list.json", swapped(b"}, {", b"} {")),
    "not UTF-8": ("named.json", swapped(b".jpg", b"\xff.jpg")),
    "two names": ("named.json", swapped(b"img_", b"other_")),
    "two names of a class": ("named.json", swapped(b'_name": "', b'_name": "the ')),
    "key twice": ("list.json", swapped(b'"score"', b'"image_id": 1, "score"')),
    "texts and numbers": ("list.json", swapped(b'"image_id": ', b'"image_id": "7", "x": ')),
    "infinite": ("list.json", swapped(b"0.0]", b"1e999]")),
    "packed badly": ("packed.json.gz", lambda data: data[:-30]),
    "line of another kind": ("lines.jsonl", lambda data: data + b"[1, 2]\n{\n"),
    "line without box": ("named.jsonl", swapped(b'"bbox"', b'"box"')),
    "word in a number": ("table.csv", lambda data: data + b"img_1.jpg,cat,1,2,x,4,1,\n"),
    "short row": ("table.csv", lambda data: data + b"img_1.jpg,cat,1,2\n"),
    "open quote": ("table.csv", lambda data: data + b'"img_1.jpg,cat,1,2\n'),
    "negative": ("table.csv", lambda data: data + b"img_1.jpg,cat,9,9,2,2,0.5,\n" * 20),
    "few negative": ("table.csv", lambda data: data + b"img_1.jpg,cat,9,9,2,2,0.5,\n" * 8),
    "ids of pandas": ("table.csv", lambda data: data + b"1.0,cat,9,9,12,12,0.5,\n" * 40),
    "names alike": (
        "table.csv",
        lambda data: data + b"img_1.jpg,cat,9,9,12,12,0.5,\n1,cat,1,1,4,4,0.5,\n" * 20 + b"001,cat,1,1,4,4,0.5,\n",
    ),
    "quoted class": ("table.csv", lambda data: data + b"img_1.jpg,'cat',9,9,12,12,0.5,\n"),
    "empty rows": ("table.csv", lambda data: data + b"img_1.jpg,cat,9,9,12,12,0.5,\n,,,,,,,\n" * 30),
    "numbers of classes": ("table.csv", lambda data: data + b"img_1.jpg,1,9,9,12,12,0.5,\n" * 40),
    "images without boxes": ("table.csv", lambda data: data + b"img_1.jpg,,,,,,,\n" * 40),
    "one score for all": ("table.csv", lambda data: data + b"img_1.jpg,cat,9,9,12,12,1,\n" * 40),
    "fractions at the end": ("table.csv", lambda data: data + b"img_1.jpg,cat,0.1,0.1,0.3,0.3,1,\n" * 40),
}


def outcome(gt: Path, pred: Path, engine: str) -> str:
    """The document of an evaluation, or what its error says."""
    try:
        return document(evaluate(gt, pred, engine=engine, extra_images="ignore"))
    except DataError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_odd_in_one_part_is_told_as_of_the_whole(
    tmp_path: Path, small_parts: Callable[..., None], name: str
) -> None:
    small_parts(12)
    written, damage = DAMAGED[name]
    gt, pred = write_truth(tmp_path), tmp_path / written
    pred.write_bytes(damage(WRITTEN[written](records())))
    assert outcome(gt, pred, "disk") == outcome(gt, pred, "memory")


READ_IN_PARTS = ["list.json", "lines.jsonl", "table.csv", "table.parquet", "table.arrow"]


def write_kind(folder: Path, name: str) -> Path:
    """Results in one of the kinds of files that are read in parts."""
    path = folder / name
    if name in WRITTEN:
        path.write_bytes(WRITTEN[name](records()))
        return path
    arrow = pytest.importorskip("pyarrow")
    rows = records()
    columns = {column: [row[column] for row in rows] for column in ("image_id", "category_id", "score")}
    columns |= dict(zip(("x", "y", "width", "height"), np.array([row["bbox"] for row in rows]).T, strict=True))
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(arrow.table(columns), path)
    return path


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("name", READ_IN_PARTS)
def test_a_file_that_changes_while_it_is_read_is_named_and_gives_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    gt, pred = write_truth(tmp_path), write_kind(tmp_path, name)
    written: list[Path] = []

    def write_and_append(file: Any, boxes: Any) -> None:
        # Ground truth is stored first. Another program goes on writing once the first predictions are there.
        if Path(file.name).parent not in written:
            written.append(Path(file.name).parent)
            if len(written) != 2:
                return write_boxes(file, boxes)
            with pred.open("ab") as other:
                other.write(b" ")
        return write_boxes(file, boxes)

    monkeypatch.setattr(stored, "write_boxes", write_and_append)
    with pytest.raises(DataError, match="changed while it was read") as caught:
        evaluate(gt, pred, engine="disk", scratch=tmp_path)
    assert {finding.code for finding in caught.value.findings} == {"input-changed"}
    assert pred.name in str(caught.value)
    assert not list(tmp_path.glob("jaccard-eval-scratch-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("name", READ_IN_PARTS)
def test_a_disk_that_is_full_while_storing_ends_with_the_way_out(tmp_path: Path, name: str) -> None:
    gt, pred = write_truth(tmp_path), write_kind(tmp_path, name)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # No file may grow beyond so many bytes: of the boxes of all rows, that is too few. Bytecode would be cut off there
    # without an error, and break every later run.
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
        "from jaccard_eval.__main__ import main; main()"
    )
    options = [str(gt), str(pred), "--engine", "disk", "--scratch", str(scratch)]
    run = subprocess.run([sys.executable, "-B", "-c", code, *options], capture_output=True, text=True, check=False)
    assert run.returncode == 4, run.stderr
    assert f"{scratch}: cannot hold scratch files: " in run.stderr
    assert "Pass --scratch DIR with more room." in run.stderr
    assert not run.stdout
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("name", [name for name in WRITTEN if "packed" not in name])
def test_rows_are_estimated_by_the_first_ones(tmp_path: Path, name: str) -> None:
    pred = tmp_path / name
    pred.write_bytes(WRITTEN[name](records(2000)))
    # Rows of these tables are two lines each.
    lines = 2 if name.endswith("sv") else 1
    assert rows_of(pred, pred.stat().st_size) == pytest.approx(2000 * lines, rel=0.05)


def test_the_boxes_of_ground_truth_that_begins_with_its_images_are_found_in_its_middle(tmp_path: Path) -> None:
    images = [{"id": i, "file_name": f"img_{i}.jpg", "width": 640, "height": 480} for i in range(4000)]
    gt = tmp_path / "gt.json"
    gt.write_text(json.dumps({"images": images, "annotations": records(8000), "categories": []}))
    assert 8000 / 2 < rows_of(gt, gt.stat().st_size) < 8000 * 2


def test_boxes_of_both_sides_decide_where_the_work_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many, more = (tmp_path / f"{name}.json" for name in ("few", "many", "more"))
    few.write_text(json.dumps(records(10)))
    many.write_text(json.dumps(records(2000)))
    more.write_text(json.dumps(records(2000)))
    monkeypatch.setattr("jaccard_eval.engine.places.SMALL", 0)
    monkeypatch.setattr(choice, "usable_memory", lambda: 3000 * choice.ROW_BYTES)
    auto = EngineOptions(engine="auto")
    sides = [(few, many), (many, few), (many, more), (more, many), (many, many)]
    # What is both sides at once, a folder of parts, is there once.
    assert [takes_disk(*pair, auto, "bbox") for pair in sides] == [False, False, True, True, False]
    assert takes_disk(few, few, EngineOptions(engine="disk"), "bbox")
    assert not takes_disk(object(), object(), auto, "bbox")


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("units", ["px", "norm"])
def test_folders_of_labels_give_the_bytes_of_the_whole(tmp_path: Path, units: str) -> None:
    gt, pred = write_truth(tmp_path), tmp_path / "labels"
    pred.mkdir()
    (tmp_path / "classes.txt").write_text("\n".join(NAMES))
    rng = np.random.default_rng(1)
    for image in range(1, 10):
        sides = rng.uniform(0.05, 0.6, (80, 2))
        corner = rng.uniform(0, 1, (80, 2)) * (1 - sides)
        norm = np.concatenate((corner + sides / 2, sides), axis=1)
        boxes = norm if units == "norm" else np.concatenate((corner, corner + sides), axis=1) * [640, 480, 640, 480]
        boxes[7, 2] = 0 if units == "norm" else boxes[7, 0]
        numbers = np.concatenate((boxes, rng.random((80, 1))), axis=1).round(4).tolist()
        lines = [" ".join(map(str, [int(rng.integers(0, 3)), *row])) for row in numbers]
        (pred / f"img_{image}.txt").write_text("\n".join(lines) + "\n")
    options = {"pred_options": ReadOptions(role="pred", names=tuple(NAMES))}
    memory = evaluate(gt, pred, engine="memory", **options)
    assert document(evaluate(gt, pred, engine="disk", **options)) == document(memory)
    assert "box-empty" in {finding.code for finding in memory.findings}
