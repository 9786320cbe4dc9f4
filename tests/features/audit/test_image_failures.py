import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate

BOX = [10, 10, 50, 50]


def _error(folder: Path, gt_names: dict[Any, str | None], pred: list[dict[str, Any]], **options: str) -> str:
    """What is said of one box on each image, all in one place."""
    images = [{"id": key, "width": 100, "height": 100} | ({"file_name": name} if name else {})
              for key, name in gt_names.items()]  # fmt: skip
    annotations = [
        {"id": row, "image_id": key, "category_id": 1, "bbox": BOX, "area": 2500, "iscrowd": 0}
        for row, key in enumerate(gt_names)
    ]
    gt = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "dog"}]}
    records = [{"category_id": 1, "bbox": BOX, "score": 0.5} | record for record in pred]
    paths = folder / "gt.json", folder / "pred.json"
    for path, content in zip(paths, (gt, records), strict=True):
        path.write_text(json.dumps(content))
    with pytest.raises(DataError) as caught:
        evaluate(*paths, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_equal_ids_that_file_names_contradict_are_named_only_if_the_boxes_speak_for_them(tmp_path: Path) -> None:
    pred = [{"image_id": key, "file_name": f"{name}.jpg"} for key, name in ((1, "x"), (2, "y"), (3, "z"))]
    ours = {1: "a.jpg", 2: "b.jpg", 3: "c.jpg"}
    assert 'Rerun with match_images="id": 3 of 3 prediction images' in _error(tmp_path, ours, pred)
    elsewhere = [record | {"bbox": [70, 70, 9, 9]} for record in pred]
    assert "Rerun" not in _error(tmp_path, ours, elsewhere)


def test_ids_off_by_one_are_named_only_if_the_boxes_speak_for_it(tmp_path: Path) -> None:
    pred = [{"image_id": key, "bbox": [70, 70, 9, 9]} for key in (0, 1, 2)]
    assert "id+1" not in _error(tmp_path, {1: None, 2: None, 3: None}, pred)


def test_images_that_only_the_predictions_have_are_left_out_by_the_option(tmp_path: Path) -> None:
    pred = [{"image_id": name} for name in (r"val\a.png", r"val\b.png", r"val\c.png")]
    message = _error(tmp_path, {1: "a.png", 2: "b.png"}, pred)
    assert r"names differ in their folders (and folders are written with backslashes, as on Windows)" in message
    assert r"""'val\\a.png' is 'a.png'. Rerun with match_images="path", extra_images="ignore": 2 of 3""" in message


def test_a_way_that_was_asked_for_in_vain_is_answered_with_one_that_matches(tmp_path: Path) -> None:
    pred = [{"image_id": name} for name in ("left/1.png", "right/1.png")]
    ours = {1: "data/left/1.png", 2: "data/right/1.png"}
    message = _error(tmp_path, ours, pred, match_images="basename")
    assert "images do not correspond one to one by basename" in message
    assert 'Rerun with match_images="path": 2 of 2 prediction images' in message


def test_nothing_in_common_is_left_as_it_is(tmp_path: Path) -> None:
    message = _error(tmp_path, {1: "a.png", 2: "b.png"}, [{"image_id": "x.png"}])
    assert "Check that both are of the same split" in message
    assert "Rerun" not in message


@pytest.mark.parametrize("role", ["gt", "pred"])
def test_images_and_boxes_that_are_both_read_wrongly_are_named_in_one_stop(tmp_path: Path, role: str) -> None:
    sizes = [[7 * row, 40 + 5 * row, 30 + 2 * row, 20 + row] for row in range(12)]
    boxes = {"gt": sizes, "pred": sizes} | {role: [[x, y, x + w, y + h] for x, y, w, h in sizes]}
    gt = {
        "images": [{"id": row + 1, "width": 300, "height": 300} for row in range(12)],
        "annotations": [
            {"id": row + 1, "image_id": row + 1, "category_id": 1, "bbox": box, "area": 600, "iscrowd": 0}
            for row, box in enumerate(boxes["gt"])
        ],
        "categories": [{"id": 1, "name": "dog"}],
    }
    pred = [{"image_id": row, "category_id": 1, "bbox": box, "score": 0.5} for row, box in enumerate(boxes["pred"])]
    for name, content in (("gt.json", gt), ("pred.json", pred)):
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(DataError) as caught:
        evaluate(tmp_path / "gt.json", tmp_path / "pred.json")
    (finding,) = caught.value.findings
    assert finding.fix is not None and finding.fix.after == 1.0
    assert dict(finding.fix.options) == {"match_images": "id+1", f"{role}_box": "xyxy"}
    options = {f"{role}_options": ReadOptions(box="xyxy")}
    assert evaluate(tmp_path / "gt.json", tmp_path / "pred.json", match_images="id+1", **options)["AP"] == 1.0


def test_several_classes_on_objects_of_the_only_one_are_merged_and_not_counted(tmp_path: Path) -> None:
    # By their order one of the two would be the class of the ground truth, and the other would be lost.
    gt, pred = tmp_path / "gt.csv", tmp_path / "pred.csv"
    rows = [f"{at}.jpg,word,10,20,60,90" for at in range(8)]
    gt.write_text("\n".join(["image,class,xmin,ymin,xmax,ymax", *rows]))
    found = [f"{at}.jpg,{('car', 'plane')[at % 2]},0.5,10,20,60,90" for at in range(8)]
    pred.write_text("\n".join(["image,class,score,xmin,ymin,xmax,ymax", *found]))
    with pytest.raises(DataError) as caught:
        evaluate(gt, pred)
    assert "2 of its classes lie on objects of the only one of the ground truth" in str(caught.value)
    assert "If they are, pass class_map" in str(caught.value)
    assert evaluate(gt, pred, class_map={"car": "word", "plane": "word"}).metrics["AP"].value == 1
