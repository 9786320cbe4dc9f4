"""The sample: its script writes what is committed, and every format tells of the same scene."""

import contextlib
import io
import json
from pathlib import Path

import make_sample
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import evaluate
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.formats import ReadOptions, read_dataset
from jaccard_eval.formats._images import ImageFolder

Rows = list[tuple[str, str, tuple[float, ...], float]]

GROUND_TRUTH = ("coco/gt.json", "csv/gt.csv", "yolo/data.yaml", "voc/gt", "cvat/gt.xml", "kitti/gt")
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


@pytest.mark.parametrize("other", GROUND_TRUTH[1:])
def test_every_format_holds_the_same_objects(sample_data: Path, other: str) -> None:
    expected = read_dataset(sample_data / "coco/gt.json", ReadOptions(role="gt"))
    got = read_dataset(sample_data / other, ReadOptions(role="gt"))
    crowd = other == "csv/gt.csv"  # the others leave it out
    assert len(got.images.keys) == 12
    assert got.boxes.crowd.sum() == crowd
    assert _rows(got) == _rows(expected, crowd=crowd)


def test_csv_holds_the_same_detections(sample_data: Path) -> None:
    expected = read_dataset(sample_data / "coco/better.json", ReadOptions(role="pred"))
    got = read_dataset(sample_data / "csv/better.csv", ReadOptions(role="pred"))
    assert got.boxes.score is not None and expected.boxes.score is not None
    assert sorted(got.boxes.score) == sorted(expected.boxes.score)
    assert sorted(map(tuple, got.boxes.xywh.tolist())) == sorted(map(tuple, expected.boxes.xywh.tolist()))


def test_yolo_holds_the_same_detections(sample_data: Path) -> None:
    expected = read_dataset(sample_data / "coco/better.json", ReadOptions(role="pred"))
    got = read_dataset(sample_data / "yolo/better", ReadOptions(role="pred", names=NAMES))
    assert got.boxes.score is not None and expected.boxes.score is not None
    assert sorted(got.boxes.score) == sorted(expected.boxes.score)


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize("pred", ["coco/{}.json", "csv/{}.csv", "yolo/{}"])
def test_predictions_in_any_format_give_the_numbers_of_pycocotools(sample_data: Path, pred: str, model: str) -> None:
    result = evaluate(sample_data / "coco/gt.json", sample_data / pred.format(model))
    assert _values(result) == _pycocotools(sample_data, model, crowd=True)


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize("pred", ["csv/{}.csv", "yolo/{}"])
@pytest.mark.parametrize("gt", ["csv/gt.csv", "yolo/data.yaml", "voc/gt", "cvat/gt.xml"])
def test_ground_truth_in_any_format_gives_the_numbers_of_pycocotools(
    sample_data: Path, gt: str, pred: str, model: str
) -> None:
    result = evaluate(sample_data / gt, sample_data / pred.format(model))
    crowd = gt == "csv/gt.csv"
    # The order of the classes is the file's: a mean over them may round another way.
    assert _values(result) == pytest.approx(_pycocotools(sample_data, model, crowd=crowd), rel=0, abs=1e-15)


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize("pred", ["csv/{}.csv", "yolo/{}"])
@pytest.mark.parametrize(("gt", "n_images"), [("kitti/gt", 12), ("openimages/gt.csv", 11)])  # a row needs a box
def test_ground_truth_without_sizes_gives_the_same_numbers_with_the_pictures(
    sample_data: Path, gt: str, n_images: int, pred: str, model: str
) -> None:
    options = ReadOptions(images=ImageFolder(sample_data / "yolo/images/val"))
    assert len(read_dataset(sample_data / gt, options).images) == n_images
    result = evaluate(sample_data / gt, sample_data / pred.format(model), gt_options=options, pred_options=options)
    assert _values(result) == pytest.approx(_pycocotools(sample_data, model, crowd=False), rel=0, abs=1e-15)


def _values(result: EvaluationResult) -> list[float]:
    return [one.value for one in result.metrics.values()]


def _pycocotools(folder: Path, model: str, *, crowd: bool) -> list[float]:
    """The twelve numbers of the reference; without crowd regions, as YOLO's labels cannot have them."""
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO()
        gt.dataset = json.loads((folder / "coco/gt.json").read_text())
        gt.dataset["annotations"] = [one for one in gt.dataset["annotations"] if crowd or not one["iscrowd"]]
        gt.createIndex()
        evaluation = COCOeval(gt, gt.loadRes(str(folder / f"coco/{model}.json")), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats]


def _contents(folder: Path) -> dict[str, bytes]:
    kinds = ("coco", "csv", "yolo", "openimages", "cvat", "voc", "kitti")
    files = (path for kind in kinds for path in (folder / kind).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _rows(dataset: Dataset, *, crowd: bool = True) -> Rows:
    """Stem, class, corner and size rounded to a thousandth of a pixel, and area, in a fixed order."""
    boxes = dataset.boxes
    names = [Path(dataset.images.name(row)).stem for row in range(len(dataset.images.keys))]
    columns = zip(boxes.image, boxes.label, boxes.xywh.round(3).tolist(), boxes.area.round(1), boxes.crowd, strict=True)
    return sorted(
        (names[image], dataset.labels.names[label], tuple(xywh), float(area))
        for image, label, xywh, area, is_crowd in columns
        if crowd or not is_crowd
    )
