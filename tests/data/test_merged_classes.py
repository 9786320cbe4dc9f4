"""Classes that are merged or renamed on either side give the numbers of files in which they were so from the start."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from jaccard_eval import DataError, ReadOptions, convert, evaluate, inspect, load
from jaccard_eval.errors import UsageError

NAMES = {1: "person", 3: "car", 8: "truck"}


def placed(x: float, label: int, **more: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": label, "bbox": [x, 10, 40, 40], **more}


def truth(names: dict[int, str], number: dict[int, int] | None = None) -> dict[str, Any]:
    given = [(10, 3), (110, 8), (210, 1), (310, 3)]
    return {
        "images": [{"id": 1, "width": 640, "height": 480, "file_name": "a.jpg"}],
        "annotations": [
            placed(x, (number or {}).get(label, label), id=at, area=1600, iscrowd=0)
            for at, (x, label) in enumerate(given, start=1)
        ],
        "categories": [{"id": key, "name": name} for key, name in names.items()],
    }


# A truck is taken for a car, and a car is found with an IoU of .6.
FOUND = [(10, 3, 0.9), (110, 3, 0.8), (210, 1, 0.7), (320, 3, 0.6)]
RESULTS = [placed(x, label, score=score) for x, label, score in FOUND]
NAMED = pd.DataFrame(
    [
        {"image": "a.jpg", "class": NAMES[label], "score": score, "x": x, "y": 10, "w": 40, "h": 40}
        for x, label, score in FOUND
    ]
)
MERGED = truth({1: "person", 3: "vehicle"}, {8: 3})


@pytest.mark.parametrize("pred", [RESULTS, NAMED], ids=["ids", "names"])
@pytest.mark.parametrize("mapped", [{"car": "vehicle", "truck": "vehicle"}, {"3": "vehicle", "8": "vehicle"}])
def test_merged_ground_truth_has_the_numbers_of_what_was_merged_before(pred: Any, mapped: dict[str, str]) -> None:
    expected = evaluate(MERGED, RESULTS)
    found = evaluate(truth(NAMES), pred, gt_class_map=mapped)
    assert found.metrics == expected.metrics
    assert [row.name for row in found.per_class] == ["person", "vehicle"]
    assert evaluate(truth(NAMES), pred).metrics["AP"].value < found.metrics["AP"].value


@pytest.mark.parametrize("goal", ["car", "3"])
def test_a_class_is_merged_into_another_by_name_or_id(goal: str) -> None:
    expected = evaluate(truth({1: "person", 3: "car"}, {8: 3}), RESULTS)
    assert evaluate(truth(NAMES), RESULTS, gt_class_map={"truck": goal}).metrics == expected.metrics


def test_a_results_list_is_mapped_through_the_names_of_its_ground_truth() -> None:
    several = [placed(x, 8 if x == 110 else label, score=score) for x, label, score in FOUND]
    both = {"truck": "vehicle", "car": "vehicle"}
    expected = evaluate(MERGED, RESULTS)
    for mapped in (both, {"truck": "vehicle"}, {"truck": "car"}, {"8": "3"}):
        assert evaluate(truth(NAMES), several, class_map=mapped, gt_class_map=both).metrics == expected.metrics
    alone = evaluate(truth(NAMES), several, class_map={"truck": "car"})
    assert alone.metrics == evaluate(truth(NAMES), RESULTS).metrics
    # A class that the ground truth has may never be predicted.
    assert evaluate(truth(NAMES), RESULTS, class_map={"car": "truck", "truck": "car"}).metrics[
        "AP"
    ].value == pytest.approx((1 + 0 + 1 / 2) / 3)


def test_numbers_that_count_otherwise_are_mapped_as_the_classes_that_they_are() -> None:
    # 12 objects of each class leave no doubt that the results count from 0.
    gt, pred = truth(NAMES), []
    gt["annotations"] = [
        placed(50 * at, label, id=at + 1, area=1600, iscrowd=0) for at, label in enumerate([1, 3, 8] * 12)
    ]
    for at, label in enumerate([0, 1, 2] * 12):
        pred.append(placed(50 * at, label, score=0.9))
    gt["images"][0]["width"] = 2000
    found = evaluate(gt, pred, class_map={"truck": "car"}, gt_class_map={"truck": "car"})
    assert found.metrics["AP"].value == 1


def test_classes_that_change_names_are_taken_by_their_new_ones() -> None:
    swapped = {"car": "truck", "truck": "car"}
    expected = evaluate(truth({1: "person", 3: "truck", 8: "car"}), NAMED)
    assert evaluate(truth(NAMES), NAMED, gt_class_map=swapped).metrics == expected.metrics


def test_a_name_that_only_the_map_has_leads_to_the_map_of_the_ground_truth() -> None:
    both = {"car": "vehicle", "truck": "vehicle"}
    with pytest.raises(UsageError, match=r"pass gt_class_map=\{.car.: .vehicle., .truck.: .vehicle.\}"):
        evaluate(truth(NAMES), NAMED, class_map=both)
    assert evaluate(truth(NAMES), NAMED, class_map=both, gt_class_map=both).metrics == evaluate(MERGED, RESULTS).metrics


def test_unknown_classes_and_facts_of_classes_stop() -> None:
    with pytest.raises(UsageError, match=r"no class 'cars' in the ground truth.*Did you mean 'car'"):
        evaluate(truth(NAMES), RESULTS, gt_class_map={"cars": "vehicle"})
    gt = truth(NAMES)
    for category in gt["categories"]:
        category["frequency"] = "f"
    for image in gt["images"]:
        image |= {"neg_category_ids": [8], "not_exhaustive_category_ids": []}
    with pytest.raises(UsageError, match="cannot be merged where the ground truth states which are verified"):
        evaluate(gt, RESULTS, gt_class_map={"truck": "car"})


def test_inspect_and_convert_merge_as_evaluate_does(tmp_path: Path) -> None:
    import json

    paths = {"gt": tmp_path / "gt.json", "pred": tmp_path / "pred.json"}
    paths["gt"].write_text(json.dumps(truth(NAMES)))
    paths["pred"].write_text(json.dumps(RESULTS))
    mapped = {"car": "vehicle", "truck": "vehicle"}
    assert inspect(paths["gt"], paths["pred"], gt_class_map=mapped).gt.classes[-1].boxes == 3
    convert(paths["pred"], tmp_path / "out.csv", gt=paths["gt"], gt_class_map=mapped)
    assert set(load(tmp_path / "out.csv", role="pred").labels.names) == {"person", "vehicle"}


def test_one_class_is_named_once_and_several_names_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text("image,xmin,ymin,xmax,ymax\na.jpg,10,10,50,50\n")
    side = load(tmp_path / "gt.csv", options=ReadOptions(names=("car",)))
    assert side.labels.names == ("car",)
    (note,) = (finding for finding in side.findings if finding.code == "csv-one-class")
    assert (note.examples[0].detail, note.fix) == ("no column for the class: all boxes are of class 'car'", None)
    with pytest.raises(DataError, match="no column for the class"):
        load(tmp_path / "gt.csv", options=ReadOptions(names=("car", "truck")))
