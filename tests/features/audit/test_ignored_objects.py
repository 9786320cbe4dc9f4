"""Objects that a file marks to be ignored, as CityPersons does: COCO's protocol counts them, and a note measures it."""

from pathlib import Path

from command_line import write_json

from jaccard_eval import evaluate


def test_objects_marked_ignore_are_measured_and_can_be_ignored(tmp_path: Path) -> None:
    boxes = [[50 + 150 * at, 100, 60, 150] for at in range(3)]
    objects = [
        {"id": at + 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 9000, "iscrowd": 0, "ignore": int(at == 2)}
        for at, box in enumerate(boxes)
    ]
    found = [{"image_id": 1, "category_id": 1, "bbox": [x + 3, *rest], "score": x / 1000} for x, *rest in boxes[:2]]
    images, categories = [{"id": 1, "width": 640, "height": 480}], [{"id": 1, "name": "pedestrian"}]
    gt = write_json(tmp_path / "gt.json", {"images": images, "annotations": objects, "categories": categories})
    pred = write_json(tmp_path / "pred.json", found)
    result = evaluate(gt, pred)
    note = next(finding for finding in result.findings if finding.code == "difficult-counted")
    # IoU 57 / 63: found at 9 of 10 thresholds, 2 of 3 objects (67 of 101 levels of recall) or 2 of 2.
    assert "1 of 3 objects are marked ignore" in note.message
    assert "AP 0.5970 with them, 0.9000 without" in note.message
    assert round(evaluate(gt, pred, difficult="ignore")["AP"], 4) == 0.9
