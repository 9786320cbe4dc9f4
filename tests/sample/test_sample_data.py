"""The sample: its script writes what is committed, and the scene has what a scene can have."""

import contextlib
import io
import json
from pathlib import Path

import make_sample
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import evaluate
from jaccard_eval.data.result import EvaluationResult

NAMES = ("person", "bicycle", "car", "cat", "dog")


def test_the_script_writes_the_committed_files_byte_for_byte(sample_data: Path, tmp_path: Path) -> None:
    make_sample.write_sample(tmp_path)
    assert _contents(tmp_path) == _contents(sample_data)


def test_the_sample_has_a_crowd_an_empty_image_and_a_class_that_is_only_predicted(sample_data: Path) -> None:
    gt = json.loads((sample_data / "coco/gt.json").read_text())
    boxes = gt["annotations"]
    assert len(gt["images"]) == 12
    assert sum(box["iscrowd"] for box in boxes) == 1
    assert len({image["id"] for image in gt["images"]} - {box["image_id"] for box in boxes}) == 1
    names = {category["id"]: category["name"] for category in gt["categories"]}
    assert {names[box["category_id"]] for box in boxes} == set(NAMES) - {"cat"}


@pytest.mark.parametrize("model", ["better", "worse"])
def test_scores_are_distinct_so_that_no_order_of_files_decides(sample_data: Path, model: str) -> None:
    detections = json.loads((sample_data / f"coco/{model}.json").read_text())
    scores = [one["score"] for one in detections]
    assert len(set(scores)) == len(scores)
    assert any(one["category_id"] == 17 for one in detections)  # cat


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize("pred", ["coco/{}.json", "csv/{}.csv", "yolo/{}"])
def test_predictions_in_any_format_give_the_numbers_of_pycocotools(sample_data: Path, pred: str, model: str) -> None:
    result = evaluate(sample_data / "coco/gt.json", sample_data / pred.format(model))
    assert _values(result) == _pycocotools(sample_data, model)


def _values(result: EvaluationResult) -> list[float]:
    return [one.value for one in result.metrics.values()]


def _pycocotools(folder: Path, model: str) -> list[float]:
    """The twelve numbers of the reference."""
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO(str(folder / "coco/gt.json"))
        evaluation = COCOeval(gt, gt.loadRes(str(folder / f"coco/{model}.json")), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats]


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.glob("*/**/*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
