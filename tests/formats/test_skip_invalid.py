"""Records that cannot be used end a run, or are left out where the user says so: counted, and in the signature."""

import contextlib
import copy
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jaccard_eval import DataError, Dataset, JaccardEvalWarning, ReadOptions, evaluate, load
from jaccard_eval.cli.run import run
from jaccard_eval.reading.draft import FAULTS, is_of_record

CASES = Path(__file__).parents[3] / "shared" / "cases"
SAMPLE = Path(__file__).parents[2] / "sample_data"
SKIP = ReadOptions(skip_invalid=True)
JSON_FILES = sorted(path for path in SAMPLE.glob("*/*.json*") if path.stat().st_size < 400_000)
TEXT_FOLDERS = ("cartucho", "dota", "kitti", "yolo", "padilla", "voc")
DAMAGES: tuple[Any, ...] = ("x", None, [], 1e999, {}, [1, 2])


def rows(dataset: Dataset) -> Counter[tuple[object, ...]]:
    """Boxes by image, class, place and score, however images and classes are numbered."""
    boxes = dataset.boxes
    scores = np.zeros(len(boxes)) if boxes.score is None else boxes.score
    keys = [str(dataset.images.keys[row]) for row in boxes.image.tolist()]
    names = [str(dataset.labels.keys[row]) for row in boxes.label.tolist()]
    return Counter(zip(keys, names, map(tuple, boxes.xywh.tolist()), scores.tolist(), strict=True))


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document below the records of a list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(path, tuple) and any(isinstance(part, int) for part in (*path, key)):
            yield (*path, key)
        yield from places_in(item, (*path, key))


def damaged(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def check_skipped(path: Path, good: Dataset, role: str, iou_type: str = "bbox") -> bool:
    """Whether records of a damaged input can be left out: then all others are there, and nothing else."""
    with contextlib.suppress(DataError):
        load(path, role=role, options=ReadOptions(role=role, iou_type=iou_type))
        return False
    with pytest.raises(DataError) as raised:
        load(path, role=role, options=ReadOptions(role=role, iou_type=iou_type))
    errors = [finding for finding in raised.value.findings if finding.severity == "error"]
    try:
        found = load(path, role=role, options=ReadOptions(role=role, iou_type=iou_type, skip_invalid=True))
    except DataError:
        return False
    assert all(finding.code in FAULTS and is_of_record(finding.examples[0].where) for finding in errors)
    assert "skip_invalid" in str(errors[-1].fix and errors[-1].fix.options)
    n_skipped = found.ignored["invalid"]
    assert n_skipped >= 1
    lost = rows(good) - rows(found)
    assert not rows(found) - rows(good)
    assert sum(lost.values()) <= max(n_skipped, 1) or role == "gt"
    (warning,) = (finding for finding in found.findings if finding.code == "record-skipped")
    assert f"skipped {n_skipped:,} of" in warning.message
    return True


@pytest.mark.parametrize("source", JSON_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_one_damaged_record_of_json_is_left_out_and_all_others_stay(source: Path, tmp_path: Path) -> None:
    if source.suffix != ".json":
        pytest.skip("lines")
    role = "gt" if "gt" in source.stem else "pred"
    try:
        good = load(source, role=role, options=ReadOptions(role=role))
    except DataError:
        pytest.skip("needs other options")
    document = json.loads(source.read_text())
    rng = random.Random(1)
    places = [*places_in(document)]
    for _ in range(40):
        path = tmp_path / source.name
        change = rng.choice(places), rng.choice(DAMAGES)
        path.write_text(json.dumps(damaged(document, *change)))
        print(change)
        check_skipped(path, good, role)


TEXTS = {
    "csv/gt.csv": "gt",
    "csv/better.csv": "pred",
    "cvat/gt.xml": "gt",
    "dota/better": "pred",
    "dota/gt": "gt",
    "kitti/better": "pred",
    "kitti/gt": "gt",
    "mot/gt": "gt",
    "mot/better": "pred",
    "openimages/better.csv": "pred",
    "retinaface/gt": "gt",
    "text/better.txt": "pred",
    "visdrone/gt": "gt",
    "visdrone/better": "pred",
    "voc/better": "pred",
    "voc/gt": "gt",
    "yolo/better": "pred",
}


@pytest.mark.parametrize("name", TEXTS)
def test_one_damaged_line_is_left_out_and_all_others_stay(name: str, tmp_path: Path) -> None:
    source, role = SAMPLE / name, TEXTS[name]
    if not source.exists():
        pytest.skip("not in the sample")
    good = load(source, role=role, options=ReadOptions(role=role))
    rng, n_skipped = random.Random(2), 0
    for number in range(30):
        target = tmp_path / str(number) / source.name
        target.parent.mkdir()
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        files = [path for path in ([target] if target.is_file() else sorted(target.rglob("*.*"))) if path.is_file()]
        file = rng.choice([path for path in files if path.suffix in (".txt", ".xml", ".csv")])
        lines = file.read_text().split("\n")
        numbered = [at for at, line in enumerate(lines) if re.search(r"\d", line) and at]
        if not numbered:
            continue
        at = rng.choice(numbered)
        fields = [*re.finditer(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])", lines[at])]
        if not fields:
            continue
        field = rng.choice(fields)
        lines[at] = lines[at][: field.start()] + rng.choice(["x", "", "nan"]) + lines[at][field.end() :]
        file.write_text("\n".join(lines))
        print(file, lines[at])
        n_skipped += check_skipped(target, good, role)
    assert n_skipped


def truth(**changes: object) -> dict[str, Any]:
    first = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}
    second = {**first, "id": 2, "bbox": [50, 50, 10, 10]}
    return {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "annotations": [{**first, **changes}, second],
        "categories": [{"id": 1, "name": "dog"}],
    }


def results(*changes: dict[str, Any]) -> list[Any]:
    first = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.9}
    return [*({**first, **change} for change in changes), {**first, "bbox": [50, 50, 10, 10]}]


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_what_is_left_out_is_in_the_warning_the_counts_and_the_signature(tmp_path: Path) -> None:
    gt, pred = written(tmp_path / "gt.json", truth()), written(tmp_path / "pred.json", results({"bbox": []}))
    result = evaluate(gt, pred, pred_options=SKIP)
    assert result.metrics["AP50"].value == pytest.approx(51 / 101)  # one of two objects is found
    assert result.pred.ignored == {"invalid": 1}
    assert "|pred_skipped=1|" in result.signature
    assert [finding.code for finding in result.findings if finding.severity == "warning"] == ["record-skipped"]
    assert "skipped" not in evaluate(gt, gt_as_results(tmp_path), pred_options=SKIP).signature


def gt_as_results(folder: Path) -> Path:
    return written(folder / "all.json", results({}))


def test_the_error_names_all_faults_whatever_stage_finds_them_and_the_option(tmp_path: Path) -> None:
    # A box of three numbers is seen when the records are read, a number that overflows when boxes are checked.
    path = written(tmp_path / "pred.json", results({"bbox": [1, 2, 3]}, {"score": 1e300}, {"bbox": []}))
    with pytest.raises(DataError) as raised:
        load(path, role="pred", options=ReadOptions(role="pred"))
    found = {(finding.code, finding.count) for finding in raised.value.findings}
    assert found == {("bbox-length", 2), ("number-not-finite", 1)}
    assert str(raised.value).count("skip_invalid=True") == 1


def test_a_verb_skips_records_of_both_sides(tmp_path: Path) -> None:
    gt = written(tmp_path / "gt.json", truth(bbox=[]))
    pred = written(tmp_path / "pred.json", results({"bbox": [1, 2, 3]}))
    with pytest.raises(DataError, match="pass skip_invalid=True"):
        evaluate(gt, pred)
    with pytest.warns(JaccardEvalWarning, match="record-skipped"):
        result = evaluate(gt, pred, skip_invalid=True)
    options = ReadOptions(skip_invalid=True)
    with pytest.warns(JaccardEvalWarning, match="record-skipped"):
        same = evaluate(gt, pred, gt_options=options, pred_options=options)
    assert result.signature == same.signature
    assert ("gt_skipped=1" in result.signature, "pred_skipped=1" in result.signature) == (True, True)


def test_a_side_without_a_usable_record_still_stops(tmp_path: Path) -> None:
    path = written(tmp_path / "pred.json", results({"bbox": []})[:1])
    with pytest.raises(DataError, match="bbox-length") as raised:
        load(path, role="pred", options=ReadOptions(role="pred", skip_invalid=True))
    assert "skip" not in str(raised.value)


@pytest.mark.parametrize("field", ["images", "categories"])
def test_an_image_or_a_class_is_never_left_out(tmp_path: Path, field: str) -> None:
    document = truth()
    document[field].append({"id": [1]})
    with pytest.raises(DataError):
        load(written(tmp_path / "gt.json", document), options=SKIP)


@pytest.mark.parametrize("value", [[[10, 10, 40, 40]], [], [[1, 2, "x", 4, 5, 6]], {"size": [2, 2]}, None])
def test_masks_that_are_none_are_left_out(tmp_path: Path, value: object) -> None:
    square = [[50, 50, 60, 50, 60, 60, 50, 60]]
    document = truth(segmentation=value)
    document["annotations"][1]["segmentation"] = square
    found = load(written(tmp_path / "gt.json", document), options=ReadOptions(iou_type="segm", skip_invalid=True))
    assert (len(found.boxes), found.ignored["invalid"]) == (1, 1)
    assert found.boxes.xywh.tolist() == [[50, 50, 10, 10]]


@pytest.mark.parametrize(("kind", "field"), [("keypoints", "keypoints"), ("obb", "bbox")])
def test_poses_and_oriented_boxes_keep_their_rows(tmp_path: Path, kind: str, field: str) -> None:
    good = {"keypoints": [1, 2, 2, 30, 40, 2], "bbox": [50, 50, 20, 10, 0]}[field]
    document = truth(**{field: [1, 2], "num_keypoints": 2})
    document["annotations"][1] |= {field: good, "num_keypoints": 2}
    document["annotations"].insert(0, None)
    found = load(written(tmp_path / "gt.json", document), options=ReadOptions(iou_type=kind, skip_invalid=True))
    assert (len(found.boxes), found.ignored["invalid"]) == (1, 2)
    shapes: Any = found.boxes.shapes
    assert len(shapes) == 1
    if kind == "keypoints":
        assert shapes.points.tolist() == [[[1, 2, 2], [30, 40, 2]]]
    else:
        assert found.boxes.xywh.tolist() == [[40, 45, 20, 10]]


def test_rows_of_a_frame_and_of_lists_of_dicts_are_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"image": ["a", "a"], "class": ["d", "d"], "xmin": [1.0, np.nan], "ymin": 1.0, "xmax": 5.0, "ymax": 5.0}
    )
    assert (len(load(frame, options=SKIP).boxes), load(frame, options=SKIP).ignored["invalid"]) == (1, 1)
    assert load(results({"bbox": []}), role="pred", options=SKIP).ignored == {"invalid": 1}


def test_the_command_line_and_a_configuration_skip_on_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "gt.json", truth(bbox=[]))
    written(tmp_path / "pred.json", results({"bbox": "none"}))
    assert run(["evaluate", "gt.json", "pred.json"]) == 3
    assert capsys.readouterr().err.count("pass --skip-invalid") == 2  # both sides in one pass
    assert run(["evaluate", "gt.json", "pred.json", "--skip-invalid", "-q"]) == 0
    first = capsys.readouterr()
    assert first.out.startswith("AP 1.0000")
    assert first.err.count("record-skipped") == 2
    Path("jaccard-eval.toml").write_text("[evaluate]\nskip-invalid = true\n")
    assert run(["evaluate", "gt.json", "pred.json", "-q"]) == 0


@pytest.mark.skipif(not CASES.is_dir(), reason="shared cases are not here")
def test_short_polygons_go_on_counted() -> None:
    gt, pred = CASES / "short_polygon/gt.json", CASES / "short_polygon/dt.json"
    result = evaluate(gt, pred, iou_type="segm", gt_options=SKIP)
    assert result.gt.ignored == {"invalid": 2}
    assert result.metrics["AP"].value == pytest.approx(1)


SCORELESS = {"image_id": 2, "category_id": 1, "bbox": [0, 0, 5, 5]}


def test_a_record_without_a_score_is_left_out_unless_none_has_one(tmp_path: Path) -> None:
    good = [SCORELESS | {"score": score} for score in (0.5, 0.6)]
    path = written(tmp_path / "pred.json", [*good, SCORELESS])
    found = load(path, role="pred", options=SKIP)
    assert (len(found.boxes), found.ignored["invalid"]) == (2, 1)
    (tmp_path / "pred.csv").write_text("image,class,xmin,ymin,xmax,ymax\na,cat,0,0,5,5\nb,cat,0,0,5,5\n")
    for source in (written(tmp_path / "none.json", [SCORELESS] * 2), tmp_path / "pred.csv"):
        with pytest.raises(DataError, match="score-missing") as raised:
            load(source, role="pred", options=SKIP)
        assert "skip" not in str(raised.value)


def test_a_class_index_beyond_the_names_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n5 0.4 0.4 0.1 0.1\n1 0.3 0.3 0.2 0.2\n")
    with pytest.raises(DataError, match=r"class 5 is outside 0 to 1.* pass skip_invalid=True"):
        load(folder, options=ReadOptions(names=("a", "b")))
    found = load(folder, options=ReadOptions(names=("a", "b"), skip_invalid=True))
    assert (found.boxes.label.tolist(), found.ignored["invalid"]) == ([0, 1], 1)
