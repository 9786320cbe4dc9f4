"""Conventions that the files show beyond doubt are applied, printed and signed; what is less clear is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planting import Outcome, Pair, run_evaluate

from jaccard_eval import BoxTable, DataError, evaluate

Loader = Callable[[str], Pair]


def _notes(outcome: Outcome, code: str, key: str = "message") -> list[Any]:
    return [one[key] for one in outcome.result["warnings"] if (one["code"], one["severity"]) == (code, "note")]


def _index(pair: Pair, start: int) -> Callable[[int], int]:
    ids = sorted(one["id"] for one in pair.gt["categories"])
    return lambda number: ids.index(number) + start


PLANTED = {  # what ids become, the set, the rule that is applied
    "one too low": (lambda _: lambda number: number - 1, "cocoapi", "id+1"),
    "one too high": (lambda _: lambda number: number + 1, "cocoapi", "id-1"),
    "one too low in the sample": (lambda _: lambda number: number - 1, "sample", "id+1"),
    "one too low in the waste": (lambda _: lambda number: number - 1, "medwaste", "id+1"),
    "indices": (lambda pair: _index(pair, 0), "cocoapi", "contiguous"),
    "indices plus one": (lambda pair: _index(pair, 1), "cocoapi", "contiguous-from-1"),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_classes_counted_from_another_number_are_read_so_and_it_is_said_and_signed(
    mistake: str, good_pair: Loader
) -> None:
    plant, name, rule = PLANTED[mistake]
    pair = good_pair(name)
    true = pair.as_it_came()
    assert _notes(true, "class-counting") == []
    pair.change_classes(plant(pair))
    outcome = pair.evaluate()
    assert (outcome.code, outcome.ap) == (0, true.ap)
    (note,) = _notes(outcome, "class-counting")
    assert f"; read by {rule}. To keep them unchanged, pass --class-map id." in note
    assert f"|class_map={rule}|" in outcome.result["signature"]
    assert pair.evaluate("--class-map", rule).result["signature"] == outcome.result["signature"]
    # The fix is what was done, measured; its sentence says how to undo it.
    (fix,) = _notes(outcome, "class-counting", "fix")
    assert (fix["kind"], fix["options"]) == ("reading", {"class_map": rule})
    assert fix["before"] < 0.5 < 0.8 < fix["after"]
    assert pair.evaluate("--class-map", "id").ap < 0.2 * true.ap


def _ultralytics(sample: Path, start: int, *, file_names: bool) -> list[dict[str, Any]]:
    """Return the sample's predictions as `model.val(save_json=True)` writes them for a data set of one's own.

    `pred_to_json` in ultralytics/models/yolo/detect/val.py writes image_id, a number if the stem is one, category_id,
    bbox and score; category_id is `class_map[index]`, 1 + index, and the index in older versions, without `file_name`.
    """
    gt, pred = (json.loads((sample / "coco" / name).read_text()) for name in ("gt.json", "better.json"))
    names = {image["id"]: image["file_name"] for image in gt["images"]}
    indices = {one["id"]: row for row, one in enumerate(sorted(gt["categories"], key=lambda one: int(one["id"])))}
    return [
        {
            "image_id": int(stem) if (stem := Path(names[one["image_id"]]).stem).isnumeric() else stem,
            **({"file_name": names[one["image_id"]]} if file_names else {}),
            "category_id": indices[one["category_id"]] + start,
            "bbox": one["bbox"],
            "score": one["score"],
        }
        for one in pred
    ]


@pytest.mark.parametrize("file_names", [True, False])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize(("gt", "same"), [("coco/gt.json", "coco/better.json"), ("yolo/data.yaml", "yolo/better")])
def test_predictions_json_of_ultralytics_is_read_without_a_flag(
    gt: str,
    same: str,
    start: int,
    file_names: bool,
    sample_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(_ultralytics(sample_data, start, file_names=file_names)))
    true = run_evaluate(capsys, str(sample_data / gt), str(sample_data / same))
    outcome = run_evaluate(capsys, str(sample_data / gt), str(path))
    # Label files hold fractions: their pixels differ from COCO's in the last bits.
    assert outcome.ap == pytest.approx(true.ap, rel=0, abs=1e-3)
    assert [one["code"] for one in outcome.warnings()] == [one["code"] for one in true.warnings()]


def test_numbers_of_files_that_are_ids_of_others_are_matched_by_number(good_pair: Loader) -> None:
    pair = good_pair("cocoapi")
    n = len(pair.gt["images"])
    ids = {image["id"]: row for row, image in enumerate(pair.gt["images"], 1)}
    for image in pair.gt["images"]:
        image |= {"id": ids[image["id"]], "file_name": f"{n + 1 - ids[image['id']]:05d}.jpg"}
    for record in (*pair.gt["annotations"], *pair.pred):
        record["image_id"] = ids[record["image_id"]]
    true = pair.evaluate()
    for record in pair.pred:
        record["image_id"] = n + 1 - record["image_id"]  # the number of the image's file
    outcome = pair.evaluate()
    assert outcome.ap == pytest.approx(true.ap, rel=0, abs=5e-3)  # the ids order equal scores
    assert "|match_images=number|" in outcome.result["signature"]
    (note,) = _notes(outcome, "image-number")
    assert note.endswith("images are matched by number. To read them as ids, pass --match-images id.")
    (fix,) = _notes(outcome, "image-number", "fix")
    assert (fix["options"], fix["metric"]) == ({"match_images": "number"}, "objects that predictions overlap")
    assert fix["before"] < 0.1 < 0.5 < fix["after"]
    assert pair.evaluate("--match-images", "id").ap < 0.1 * true.ap


def _one_class(folder: Path, names: list[str], key: int, *, n: int = 12, found: int = 12) -> list[str]:
    """Write one object in each image, of the classes in turn, and predictions of class `key`."""
    boxes = [[20.0 * row, 10.0 * row, 30.0, 30.0] for row in range(n)]
    gt = {
        "images": [{"id": row, "width": 400, "height": 300} for row in range(n)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
        "annotations": [
            {"id": row + 1, "image_id": row, "category_id": 1 + row % len(names), "bbox": box, "area": 900}
            for row, box in enumerate(boxes)
        ],
    }
    pred = [
        {"image_id": row, "category_id": key, "score": 0.5, "bbox": box if row < found else [350, 250, 9, 9]}
        for row, box in enumerate(boxes)
    ]
    paths = [folder / "gt.json", folder / "pred.json"]
    for path, content in zip(paths, (gt, pred), strict=True):
        path.write_text(json.dumps(content))
    return list(map(str, paths))


def test_the_only_class_counted_from_0_is_that_of_ground_truth_counted_from_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_evaluate(capsys, *_one_class(tmp_path, ["dog"], 0))
    assert (outcome.code, outcome.ap) == (0, 1.0)
    assert outcome.result["correspondence"]["class_strategy"] == "id+1"


def test_boxes_without_a_class_are_not_taken_for_the_first_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Half of the objects are dogs: a detector of anything, whose only class is 0, agrees by id+1 for a half.
    outcome = run_evaluate(capsys, *_one_class(tmp_path, ["dog", "cat"], 0))
    assert (outcome.code, list(outcome.errors)) == (3, ["class-none"])


@pytest.mark.parametrize(("n", "found", "is_applied"), [(10, 10, True), (9, 9, False), (40, 12, True), (40, 11, False)])
def test_a_rule_needs_ten_objects_and_a_third_of_those_in_reach(
    n: int, found: int, is_applied: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 12 of 40 objects are found: 30 %, the least; 11 are too few.
    outcome = run_evaluate(capsys, *_one_class(tmp_path, ["dog"], 0, n=n, found=found))
    assert (outcome.code == 0) == is_applied


def test_classes_of_arrays_are_what_the_caller_says() -> None:
    rows = list(range(40))
    boxes = [[10.0 * row, 0, 10.0 * row + 8, 8] for row in rows]
    gt = BoxTable.from_arrays([0] * 40, [1 + row % 2 for row in rows], boxes)
    pred = BoxTable.from_arrays([0] * 40, [row % 2 for row in rows], boxes, score=[0.5] * 40)
    result = evaluate(gt, pred)
    assert result.correspondence.class_strategy == "id"
    assert "class-mapping" in {finding.code for finding in result.findings}


def test_the_wrong_split_is_not_renumbered(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    medwaste = shared_data / "d2-medwaste"
    gt, pred = medwaste / "data/valid/_annotations.coco.json", medwaste / "output/coco_instances_results.json"
    outcome = run_evaluate(capsys, str(gt), str(pred))
    assert outcome.result["correspondence"]["class_strategy"] == "id"


def test_ids_in_another_order_than_names_without_ids_stop_with_the_map(tmp_path: Path) -> None:
    """LabelMe has no order of classes: by the alphabet, 1 is person, as in the ids, and 2 is beyond the end."""
    found, names = [], ("person", "car")
    (tmp_path / "gt").mkdir()
    for image in range(4):
        shapes = []
        for at, label in enumerate((0, 0, 0, 1)):
            left, top = 20 + 90 * at, 30 + 10 * image
            corners = [[left, top], [left + 60, top + 50]]
            shapes.append({"label": names[label], "points": corners, "shape_type": "rectangle", "group_id": None})
            box = [left + 2, top, 60, 50]
            score = 0.9 - (4 * image + at) / 20
            found.append({"image_id": f"{image}.jpg", "category_id": label + 1, "bbox": box, "score": score})
        document = {"version": "5.4", "flags": {}, "shapes": shapes, "imagePath": f"{image}.jpg", "imageData": None}
        (tmp_path / f"gt/{image}.json").write_text(json.dumps({**document, "imageHeight": 480, "imageWidth": 640}))
    (tmp_path / "pred.json").write_text(json.dumps(found))
    with pytest.raises(DataError, match="class-none") as caught:
        evaluate(tmp_path / "gt", tmp_path / "pred.json")
    (error,) = (finding for finding in caught.value.findings if finding.code == "class-none")
    assert error.fix is not None
    assert error.fix.options["class_map"] == "1=person,2=car"
    assert evaluate(tmp_path / "gt", tmp_path / "pred.json", class_map={"1": "person", "2": "car"})["AP50"] == 1.0
