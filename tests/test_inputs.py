"""Reading inputs: every problem of both sides at once, swapped sides recognised, one input read as what it is."""

import json
from pathlib import Path

import pytest

from jaccard_eval import BoxTable
from jaccard_eval.evaluation import Input, load_both, read_alone, read_both
from jaccard_eval.findings import DataError

BOX = [10, 10, 20, 20]
TRUTH = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "categories": [{"id": 1, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX, "area": 400, "iscrowd": 0}],
}
RESULTS = [{"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.9}]


def coco(folder: Path, name: str, content: object) -> Input:
    path = folder / name
    path.write_text(json.dumps(content))
    return Input(path)


def yolo(folder: Path, name: str, line: str) -> Input:
    (folder / name).mkdir()
    (folder / name / "a.txt").write_text(f"{line}\n")
    return Input(folder / name)


def codes(error: DataError) -> list[str]:
    return [finding.code for finding in error.findings]


def test_both_sides_are_read_in_their_roles(tmp_path: Path) -> None:
    ours, theirs = load_both(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", RESULTS))
    assert (ours.role, theirs.role) == ("gt", "pred")


def test_problems_of_both_sides_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        load_both(Input(tmp_path / "no.json"), coco(tmp_path, "pred.json", [{**RESULTS[0], "bbox": [1, 2, 3]}]))
    assert codes(raised.value) == ["file-missing", "bbox-length"]


@pytest.mark.parametrize("layout", ["coco", "yolo"])
def test_swapped_sides_are_recognised_with_the_repair(tmp_path: Path, layout: str) -> None:
    if layout == "coco":
        truth, results = coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", RESULTS)
    else:
        truth, results = yolo(tmp_path, "labels", "0 .5 .5 .2 .2"), yolo(tmp_path, "found", "0 .5 .5 .2 .2 .9")
    readings = read_both(results, truth)  # the wrong way round
    assert readings.gt is not None and readings.pred is not None
    assert (readings.gt.path, readings.pred.path) == (str(truth.source), str(results.source))
    assert [(error.code, error.fix) for error in readings.errors] == [
        ("sides-swapped", f"Pass --gt {truth.source} --pred {results.source}.")
    ]
    with pytest.raises(DataError):
        load_both(results, truth)


def test_predictions_without_scores_are_not_taken_for_swapped(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        load_both(coco(tmp_path, "gt.json", TRUTH), coco(tmp_path, "pred.json", TRUTH))
    assert codes(raised.value) == ["score-missing"]


def test_one_input_is_predictions_where_it_has_scores(tmp_path: Path) -> None:
    assert read_alone(coco(tmp_path, "gt.json", TRUTH)).role == "gt"
    assert read_alone(coco(tmp_path, "pred.json", RESULTS)).role == "pred"
    assert read_alone(yolo(tmp_path, "labels", "0 .5 .5 .2 .2")).role == "gt"
    assert read_alone(yolo(tmp_path, "found", "0 .5 .5 .2 .2 .9")).role == "pred"
    assert read_alone(Input(BoxTable.from_arrays([0], [0], [[0, 0, 1, 1]], score=[0.5]))).role == "pred"


def test_the_role_of_one_input_can_be_forced(tmp_path: Path) -> None:
    assert read_alone(yolo(tmp_path, "found", "0 .5 .5 .2 .2 .9"), "gt").boxes.score is None


def test_a_broken_list_of_results_is_told_as_such_and_not_as_broken_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_alone(coco(tmp_path, "pred.json", [{**RESULTS[0], "bbox": [1, 2, 3]}]))
    assert codes(raised.value) == ["bbox-length"]


def test_broken_ground_truth_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_alone(coco(tmp_path, "gt.json", {**TRUTH, "images": []}))
    assert "section-empty" in codes(raised.value)
