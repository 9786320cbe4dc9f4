"""Inspections of public data: what the files hold, by a plain count of their JSON, and no error on any of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import inspect
from jaccard_eval.findings import Severity

PAIRS = (
    "cocoapi-bbox",
    "padilla-coco-sampled",
    "d2-medwaste-id0-corrected",
    "faster-coco-eval-small",
    "sahi-eval",
    "yfpeng-sample",
    "hotcoco-basic",
    "hotcoco-edge",
)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def boxes_per_class(records: list[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(str(one["category_id"]) for one in records))


@pytest.mark.parametrize("pair", PAIRS)
def test_boxes_images_and_classes_are_those_of_the_files(pair: str, shared_data: Path) -> None:
    entry = read(shared_data / "EXPECTED.json")[pair]
    gt, pred = shared_data / entry["gt"], shared_data / entry["dets"]
    found = inspect(gt, pred)
    assert found.gt is not None and found.pred is not None and found.pairing is not None
    truth, results = read(gt), read(pred)
    results = results if isinstance(results, list) else results["annotations"]
    assert (found.gt.images.total, found.gt.boxes.total) == (len(truth["images"]), len(truth["annotations"]))
    assert found.pred.boxes.total == len(results)
    for side, records in ((found.gt, truth["annotations"]), (found.pred, results)):
        assert {one.key: one.boxes for one in side.classes if one.boxes} == boxes_per_class(records)
    assert not [one for one in found.findings if one.severity is Severity.ERROR]


def test_the_hundred_images_of_coco_are_described_by_hand_counts(shared_data: Path) -> None:
    entry = read(shared_data / "EXPECTED.json")["cocoapi-bbox"]
    found = inspect(shared_data / entry["gt"], shared_data / entry["dets"])
    assert found.gt is not None and found.pred is not None
    assert (found.gt.boxes.total, found.pred.boxes.total) == (839, 734)
    assert (found.gt.boxes.flags["crowd"], len(found.gt.classes)) == (9, 80)


def test_predictions_of_another_split_agree_with_nothing(shared_data: Path) -> None:
    medwaste = shared_data / "d2-medwaste"
    found = inspect(medwaste / "data/valid/_annotations.coco.json", medwaste / "output/coco_instances_results.json")
    assert found.pairing is not None
    assert found.pairing.located / found.pairing.objects < 0.1
    assert [one.code for one in found.findings if one.severity is Severity.WARNING]
