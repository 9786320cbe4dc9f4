"""Every row of docs/exactness.md's table of deviations from pycocotools."""

import json
import math
from pathlib import Path
from typing import Any

import peer
import pytest

from jaccard_eval import DataError, evaluate

BOX = [10, 10, 50, 50]


def scene(tmp_path: Path, *, annotations: list[dict[str, Any]], detections: list[dict[str, Any]]) -> tuple[Path, Path]:
    images = [{"id": 1, "file_name": "a.jpg"}]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    gt, pred = tmp_path / "gt.json", tmp_path / "pred.json"
    gt.write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    pred.write_text(json.dumps(detections))
    return gt, pred


def annotation(**fields: Any) -> dict[str, Any]:
    return {"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX, "area": 2500, "iscrowd": 0} | fields


def detection(**fields: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": 1, "bbox": BOX, "score": 0.9} | fields


def codes(result: Any) -> set[str]:
    return {finding.code for finding in result.findings}


def test_a_box_with_annotation_id_0_is_an_ordinary_box(tmp_path: Path) -> None:
    assert evaluate(*scene(tmp_path, annotations=[annotation(id=0)], detections=[detection()]))["AP"] > 0.999


def test_a_note_says_what_pycocotools_prints_of_an_annotation_with_id_0(tmp_path: Path) -> None:
    # Annotation 0 is found first, a false positive to pycocotools; 1 is found, 2 is not; the crowd 3 is none of it. The
    # detections that match 0 and 1 are small ones of medium objects, which tells what is ignored from what is wrong.
    annotations = [
        annotation(id=0, bbox=[10, 10, 33, 33], area=1089),
        annotation(id=1, bbox=[100, 10, 33, 33], area=1089),
        annotation(id=2, bbox=[200, 10, 50, 50]),
        annotation(id=3, bbox=[300, 10, 50, 50], iscrowd=1),
    ]
    detections = [
        detection(bbox=[10, 10, 30, 30]),
        detection(bbox=[100, 10, 30, 30], score=0.8),
        detection(bbox=[300, 10, 40, 40], score=0.7),
    ]
    gt, pred = scene(tmp_path, annotations=annotations, detections=detections)
    document = json.loads(gt.read_text())
    printed, plain = (peer.evaluate(one, detections)["stats"] for one in (document, peer.with_plain_ids(document)))
    result = evaluate(gt, pred)
    assert result["AP"] == pytest.approx(plain[0], abs=1e-12)
    (note,) = (finding for finding in result.findings if finding.code == "annotation-id-zero")
    assert printed[0] < plain[0] - 0.1
    assert f"it prints AP {printed[0]:.4f} instead of {plain[0]:.4f}" in note.message
    assert "annotations[0]" in note.message


@pytest.mark.parametrize("unmatched", [{"id": 7}, {"iscrowd": 1}, {"bbox": [200, 200, 50, 50]}])
def test_nothing_is_said_of_id_0_where_pycocotools_prints_the_same(tmp_path: Path, unmatched: dict[str, Any]) -> None:
    annotations = [annotation(id=0) | unmatched, annotation(id=1, bbox=[100, 10, 50, 50])]
    detections = [detection(), detection(bbox=[100, 10, 50, 50], score=0.95)]
    gt, pred = scene(tmp_path, annotations=annotations, detections=detections)
    result = evaluate(gt, pred)
    assert peer.evaluate(json.loads(gt.read_text()), detections)["stats"][0] == pytest.approx(result["AP"], abs=1e-12)
    assert "annotation-id-zero" not in codes(result)


def test_boxes_that_share_an_id_are_ordinary_boxes_with_a_note(tmp_path: Path) -> None:
    far = [200, 200, 50, 50]
    result = evaluate(
        *scene(
            tmp_path, annotations=[annotation(), annotation(bbox=far)], detections=[detection(), detection(bbox=far)]
        )
    )
    assert result["AP"] > 0.999
    assert "annotation-id-duplicate" in codes(result)


def test_boxes_without_an_id_are_ordinary_boxes(tmp_path: Path) -> None:
    bare = {key: value for key, value in annotation().items() if key != "id"}
    assert evaluate(*scene(tmp_path, annotations=[bare], detections=[detection()]))["AP"] > 0.999


@pytest.mark.parametrize(("section", "code"), [("images", "image-duplicate"), ("categories", "class-duplicate")])
def test_images_and_categories_that_share_an_id_are_an_error(tmp_path: Path, section: str, code: str) -> None:
    gt, pred = scene(tmp_path, annotations=[annotation()], detections=[detection()])
    content = json.loads(gt.read_text())
    gt.write_text(json.dumps(content | {section: [*content[section], content[section][0]]}))
    with pytest.raises(DataError, match=code):
        evaluate(gt, pred)


def test_an_id_that_is_true_is_an_error_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\[0\]\.category_id: is true"):
        evaluate(*scene(tmp_path, annotations=[annotation()], detections=[detection(category_id=True)]))


def test_the_area_of_detections_in_a_whole_coco_object_is_width_times_height(tmp_path: Path) -> None:
    gt, pred = scene(tmp_path, annotations=[annotation()], detections=[])
    far = annotation(bbox=[200, 200, 50, 50], score=0.95, area=5)  # 2500 of width and height: a medium false positive
    found = [annotation(score=0.9, area=5), far]
    pred.write_text(json.dumps(json.loads(gt.read_text()) | {"annotations": found}))
    assert evaluate(gt, pred)["AP_medium"] == pytest.approx(0.5)


def test_no_detection_of_a_known_category_is_an_error_with_the_ids_of_both_sides(tmp_path: Path) -> None:
    paths = scene(tmp_path, annotations=[annotation()], detections=[detection(category_id=9)])
    with pytest.raises(
        DataError, match=r"class-none.*predictions have '9', ground truth has 'cat', 'dog' \(ids 1, 2\)"
    ):
        evaluate(*paths)


def test_no_detections_are_zero_with_a_warning(tmp_path: Path) -> None:
    result = evaluate(*scene(tmp_path, annotations=[annotation()], detections=[]))
    assert result["AP"] == 0
    assert "pred-empty" in codes(result)


def test_a_missing_crowd_flag_is_0_and_a_missing_area_is_width_times_height(tmp_path: Path) -> None:
    bare = {"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX}
    result = evaluate(*scene(tmp_path, annotations=[bare], detections=[detection()]))
    assert result["AP_medium"] > 0.999  # 50 * 50 = 2500, between 1024 and 9216
    assert "area-missing" in codes(result)


@pytest.mark.parametrize(
    ("fields", "place"),
    [({"bbox": [10, 10, math.nan, 50]}, "annotations[0].bbox"), ({"iscrowd": 2}, "annotations[0].iscrowd")],
)
def test_numbers_that_mean_nothing_are_errors_with_their_place(tmp_path: Path, fields: Any, place: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate(*scene(tmp_path, annotations=[annotation(**fields)], detections=[detection()]))
    assert place in str(caught.value)


def test_detections_on_unknown_images_are_an_error_unless_told(tmp_path: Path) -> None:
    paths = scene(tmp_path, annotations=[annotation()], detections=[detection(), detection(image_id=7)])
    with pytest.raises(DataError, match="image-unknown"):
        evaluate(*paths)
    assert evaluate(*paths, extra_images="ignore")["AP"] > 0.999


def test_detections_of_unknown_categories_are_left_out_with_a_warning(tmp_path: Path) -> None:
    paths = scene(tmp_path, annotations=[annotation()], detections=[detection(category_id=9, score=1), detection()])
    result = evaluate(*paths)
    assert result["AP"] > 0.999
    assert "class-unknown" in codes(result)


def test_headline_metrics_use_the_largest_cap_whatever_it_is(tmp_path: Path) -> None:
    paths = scene(tmp_path, annotations=[annotation()], detections=[detection()])
    assert evaluate(*paths, max_dets=[2, 5])["AP"] > 0.999


def test_what_has_no_ground_truth_is_undefined_with_its_reason(tmp_path: Path) -> None:
    result = evaluate(*scene(tmp_path, annotations=[annotation()], detections=[detection(category_id=2)]))
    document = result.to_dict()
    assert document["metrics"]["AP_small"] is None
    assert document["undefined"]["AP_small"] == "no small ground truth"
    assert math.isnan(result["AP[class=dog]"])
