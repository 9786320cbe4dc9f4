"""Good data of every kind raises no warning about boxes or classes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jaccard_eval import Dataset, ReadOptions, evaluate, load
from jaccard_eval.reading.images import ImageFolder

CODES = ("box-encoding", "box-units", "box-axes", "box-offset", "box-outside", "box-gigantic", "class-mapping")
FASTER, TOY, SCENE = "faster-coco-eval/tests/dataset", "padilla-review/toyexample", "padilla-review/data/database"

PAIRS = (  # found by looking, with nothing else to know
    (f"{FASTER}/cocoapi/instances_val2014_100.json", "cocoapi/results/instances_val2014_fakebbox100_results.json"),
    ("d2-medwaste/data/test/_annotations.coco.json", "d2-medwaste/output/coco_instances_results.json"),
    ("padilla-odm/groundtruths", "padilla-odm/detections"),
    ("padilla-odm/groundtruths_rel", "padilla-odm/detections_rel"),
    ("cartucho-map/input/ground-truth", "cartucho-map/input/detection-results"),
    ("yfpeng-odm/tests/sample/groundtruths_coco.json", "yfpeng-odm/tests/sample/detections_coco.json"),
    (
        "deepforest-csv/src/deepforest/data/2018_SJER_3_252000_4107000_image_477_truth.csv",
        "deepforest-csv/src/deepforest/data/2018_SJER_3_252000_4107000_image_477.csv",
    ),
)


def _warned(gt: Dataset | Path, pred: Dataset | Path) -> list[str]:
    findings = evaluate(gt, pred).findings
    return [str(one) for one in findings if one.code in CODES and one.severity == "warning"]


@pytest.mark.parametrize(("gt", "pred"), PAIRS)
def test_published_sets_are_left_alone(gt: str, pred: str, shared_data: Path) -> None:
    assert _warned(shared_data / gt, shared_data / pred) == []


def test_every_pair_of_coco_files_is_left_alone(shared_data: Path) -> None:
    for gt, pred in _coco_pairs(shared_data):
        assert _warned(gt, pred) == [], gt


def _coco_pairs(shared_data: Path) -> Iterator[tuple[Path, Path]]:
    import json

    for name, entry in json.loads((shared_data / "EXPECTED.json").read_text()).items():
        if name != "_about" and entry["iou_type"] == "bbox":
            yield shared_data / entry["gt"], shared_data / entry["dets"]


@pytest.mark.parametrize(
    "dets", ["dets/coco_format/coco_dets.json", "dets/abs_xywh", "dets/abs_xyx2y2", "dets/rel_xywh"]
)
@pytest.mark.parametrize(
    "gts",
    ["gts/coco_format_v1/instances_default.json", "gts/yolo_format", "gts/openimages_format/all_bounding_boxes.csv"],
)
def test_one_scene_in_every_format_is_left_alone(gts: str, dets: str, shared_data: Path) -> None:
    scene = shared_data / SCENE
    pictures = ImageFolder(scene / "images")
    names = None if "coco" in dets else tuple((scene / "voc.names").read_text().split())
    gt = load(scene / gts, options=ReadOptions(images=pictures))
    assert _warned(gt, load(scene / dets, role="pred", options=ReadOptions(images=pictures, names=names))) == []


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize(("gt", "pred"), [("coco/gt.json", "coco/{}.json"), ("csv/gt.csv", "csv/{}.csv"),
                                          ("yolo/data.yaml", "yolo/{}"), ("coco/gt.json", "yolo/{}")])  # fmt: skip
def test_the_sample_is_left_alone(gt: str, pred: str, model: str, sample_data: Path) -> None:
    assert _warned(sample_data / gt, sample_data / pred.format(model)) == []


def test_the_wrong_split_is_not_blamed_on_boxes_or_classes(shared_data: Path) -> None:
    medwaste = shared_data / "d2-medwaste"
    gt, pred = medwaste / "data/valid/_annotations.coco.json", medwaste / "output/coco_instances_results.json"
    assert _warned(gt, pred) == []
