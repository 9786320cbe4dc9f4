"""COCO JSON: the dialects that load, what is said about them, and what is refused with its place."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaccard_eval
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.formats import coco, detect_format, read_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.peek import Peek

Load = Callable[..., Dataset]
Refuse = Callable[..., str]
Record = dict[str, Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_read(content: object, role: str = "gt", **options: Any) -> Dataset:
        path = tmp_path / f"{role}.json"
        path.write_bytes(content if isinstance(content, bytes) else as_text(content).encode())
        return read_dataset(path, ReadOptions(role=role, **options), "coco")

    return write_and_read


@pytest.fixture
def refuse(load: Load, tmp_path: Path) -> Refuse:
    def read_and_fail(content: object, role: str = "gt", **options: Any) -> str:
        with pytest.raises(DataError) as caught:
            load(content, role, **options)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return read_and_fail


def as_text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def image(key: object, file_name: object = "a.jpg", width: object = 640, height: object = 480) -> Record:
    return {"id": key, "file_name": file_name, "width": width, "height": height}


def category(key: object, name: object, **more: object) -> Record:
    return {"id": key, "name": name, **more}


def truth(*annotations: Record, images: Any = None, categories: Any = None, **more: object) -> Record:
    """A picture 1 with cats (1) and dogs (2), unless told otherwise."""
    return {
        "images": [image(1)] if images is None else images,
        "annotations": list(annotations),
        "categories": [category(1, "cat"), category(2, "dog")] if categories is None else categories,
        **more,
    }


def box(xywh: str = "10 20 30 40", image_id: object = 1, category_id: object = 1, **more: object) -> Record:
    return {"image_id": image_id, "category_id": category_id, "bbox": [float(x) for x in xywh.split()], **more}


def result(xywh: str = "10 20 30 40", score: object = 0.5, **more: Any) -> Record:
    return box(xywh, **more) | {"score": score}


def said(data: Dataset, severity: Severity) -> list[str]:
    return [f"{finding.code}: {finding.message}" for finding in data.findings if finding.severity is severity]


def codes(data: Dataset) -> list[str]:
    return [finding.code for finding in data.findings]


def classes(data: Dataset) -> list[str]:
    return [data.labels.names[row] for row in data.boxes.label]


# Ground truth


def test_a_plain_file_loads_without_a_word(load: Load) -> None:
    data = load(truth(box("10 20 30 40", category_id=2, area=700, iscrowd=0, id=5, segmentation=[[1, 2, 3, 4, 5, 6]])))
    assert data.boxes.xywh.tolist() == [[10, 20, 30, 40]]
    assert data.boxes.area.tolist() == [700]
    assert (classes(data), data.images.file_names, data.images.sizes.tolist()) == (["dog"], ("a.jpg",), [[640, 480]])
    assert (data.images.listed, data.labels.named, data.boxes.score) == (True, True, None)
    assert data.findings == ()


def test_missing_area_is_width_times_height_and_counted(load: Load) -> None:
    data = load(truth(box("0 0 30 40"), box("0 0 5 6", area=7.5)))
    assert data.boxes.area.tolist() == [1200, 7.5]  # 30 * 40; as given
    assert "area is missing in 1 of 2 records" in said(data, Severity.NOTE)[0]


def test_crowds_and_ignore_flags_may_be_numbers_or_booleans(load: Load) -> None:
    annotations = [box(iscrowd=1), box(iscrowd=True), box(iscrowd=0), box(ignore=True), box(ignore=1), box(iscrowd=1.0)]
    data = load(truth(*annotations))
    assert data.boxes.crowd.tolist() == [True, True, False, False, False, True]
    assert data.boxes.ignore.tolist() == [False, False, False, True, True, False]
    assert "ignore is 1 in 2 of 6 records" in "".join(said(data, Severity.NOTE))


def test_a_crowd_with_run_lengths_is_a_box_like_any_other(load: Load) -> None:
    rle = {"counts": [0, 5, 3], "size": [480, 640]}
    assert load(truth(box(iscrowd=1, area=5, segmentation=rle))).boxes.crowd.tolist() == [True]


def test_annotation_ids_are_never_keys(load: Load) -> None:
    data = load(truth(box(id=0, area=1), box("1 2 3 4", id=7, area=1), box("5 6 7 8", id=7, area=1)))
    assert len(data.boxes) == 3
    assert said(data, Severity.WARNING)[0].startswith("annotation-id-duplicate")
    assert "1 of 3 records repeat the id" in said(data, Severity.WARNING)[0]


def test_ids_above_two_to_the_53_stay_apart(load: Load) -> None:
    big = 2**53
    data = load(
        truth(box(image_id=big, area=1), box(image_id=big + 1, area=1), images=[image(big), image(big + 1, "b")])
    )
    assert data.images.keys == (big, big + 1)
    assert data.boxes.image.tolist() == [0, 1]


@pytest.mark.parametrize(
    "written", ["9007199254740993.0", "-9007199254740993.0", "1e30", "1e400", "-Infinity", "7" * 5000]
)
def test_numbers_that_no_id_can_be_told_from_are_out_of_range(refuse: Refuse, written: str) -> None:
    # 2**53 + 1 is no float: read as one it would be 2**53, another id.
    text = as_text(truth(box(image_id="@"))).replace('"@"', written)
    assert "error[id-range]: gt.json: annotations[0].image_id: is " in refuse(text)


def test_integral_floats_are_ids(load: Load) -> None:
    data = load(truth(box(image_id=1.0, category_id=2.0), images=[image(1.0)]))
    assert (data.images.keys, classes(data)) == ((1,), ["dog"])


def test_text_ids_load_as_texts(load: Load) -> None:
    data = load(truth(box(image_id="x1", area=1), images=[image("x1")]))
    assert data.images.keys == ("x1",)
    assert data.findings == ()


@pytest.mark.parametrize(("listed", "used"), [(0, "0"), ("0", 0)])
def test_via_writes_an_image_id_as_text_beside_a_number(load: Load, listed: object, used: object) -> None:
    data = load(truth(box(image_id=used, area=1), images=[image(listed)]))
    assert len(data.boxes) == 1
    assert codes(data) == ["id-spelling"]


def test_boxes_on_unlisted_images_are_set_aside_and_counted(load: Load) -> None:
    data = load(truth(box(area=1), box(image_id=9, area=1)))
    assert (len(data.boxes), data.ignored) == (1, {"image-unlisted": 1})


def test_negative_sizes_are_kept_with_a_warning(load: Load) -> None:
    data = load(truth(box("10 10 -5 6", area=30)))
    assert len(data.boxes) == 1
    assert codes(data) == ["box-negative"]


def test_ground_truth_without_boxes_goes_on_with_a_warning(load: Load) -> None:
    data = load(truth())
    assert (len(data.boxes), len(data.images), len(data.labels)) == (0, 1, 2)
    assert "no ground truth boxes" in said(data, Severity.WARNING)[0]


def test_scores_in_ground_truth_suggest_that_the_files_were_swapped(load: Load) -> None:
    data = load(truth(box(area=1, score=0.9)))
    assert codes(data) == ["gt-scores"]
    assert data.ignored == {"score": 1}


@pytest.mark.parametrize(("width", "height"), [(None, None), (0, 0)])
def test_images_without_size_have_an_unknown_size(load: Load, width: object, height: object) -> None:
    data = load(truth(box(area=1), images=[image(1, "a", width, height)]))
    assert np.isnan(data.images.sizes).all()
    assert data.findings == ()


def test_images_need_nothing_but_an_id(load: Load) -> None:
    data = load(truth(box(area=1), images=[{"id": 1}]))
    assert data.images.file_names == (None,)
    assert data.findings == ()


@pytest.mark.parametrize("height", [-480, 1e9, "480", float("inf"), float("nan"), True])
def test_absurd_image_sizes_are_unknown_with_a_warning(load: Load, height: object) -> None:
    data = load(truth(box(area=1), images=[image(1, "a", 640, height)]))
    assert data.images.sizes[0, 0] == 640
    assert np.isnan(data.images.sizes[0, 1])
    assert "images[0].height: height is" in said(data, Severity.WARNING)[0]


def test_a_file_name_that_two_images_share_is_a_warning(load: Load) -> None:
    data = load(truth(box(area=1), images=[image(1, "a.jpg"), image(2, "a.jpg"), image(3, "")]))
    assert "duplicate file_name 'a.jpg': 2 images" in said(data, Severity.WARNING)[0]
    assert data.images.file_names == ("a.jpg", "a.jpg", None)


@pytest.mark.parametrize("unnamed", [{"id": 1}, category(1, None), category(1, "  ")])
def test_a_category_without_a_name_is_called_by_its_id(load: Load, unnamed: Record) -> None:
    data = load(truth(box(area=1), categories=[unnamed, category(2, "dog")]))
    assert data.labels.names == ("1", "dog")
    assert "categories[0].name" in said(data, Severity.WARNING)[0]


def test_a_category_named_by_a_number_is_called_by_it(load: Load) -> None:
    assert load(truth(box(area=1), categories=[category(1, 7)])).labels.names == ("7",)


def test_two_categories_of_one_name_are_a_warning(load: Load) -> None:
    data = load(truth(box(area=1), categories=[category(1, "cat"), category(4, "cat")]))
    assert "duplicate name 'cat': ids 1, 4" in said(data, Severity.WARNING)[0]


def test_the_dummy_category_of_roboflow_is_pointed_out_and_kept(load: Load) -> None:
    categories = [
        category(0, "waste", supercategory="none"),
        category(1, "cap", supercategory="waste"),
        category(2, "lid", supercategory="waste"),
    ]
    data = load(truth(box(category_id=1, area=1), categories=categories))
    assert data.labels.names == ("waste", "cap", "lid")
    assert "'waste' is the supercategory of all others" in said(data, Severity.NOTE)[0]
    assert load(truth(box(category_id=0, area=1), categories=categories)).findings == ()


def test_names_with_lone_surrogates_do_not_crash(load: Load) -> None:
    text = as_text(truth(box(area=1), categories=[category(1, "CAT")])).replace("CAT", "\\ud800")
    assert load(text).labels.names == ("\ud800",)


def test_a_null_flag_as_pylabel_writes_it_is_zero_with_a_warning(load: Load) -> None:
    data = load(truth(box(iscrowd=None, area=1)))
    assert data.boxes.crowd.tolist() == [False]
    assert codes(data) == ["flag-null"]


def test_gzip_and_byte_order_marks_are_unpacked(load: Load) -> None:
    text = as_text(truth(box(area=1))).encode()
    assert len(load(gzip.compress(text)).boxes) == 1
    assert len(load(b"\xef\xbb\xbf" + text).boxes) == 1


# Predictions


def test_a_results_list_loads_with_scores_and_box_areas(load: Load) -> None:
    data = load([result("0 0 3 4", 0.25, area=99), result("1 1 2 2", 1, image_id=7)], "pred")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.25, 1]
    assert data.boxes.area.tolist() == [12, 4]  # 3 * 4, 2 * 2: pycocotools computes the area of detections
    assert (data.images.keys, data.images.listed, data.labels.named) == ((1, 7), False, False)
    assert data.details == ("results list",)


def test_a_whole_coco_object_with_scores_loads(load: Load) -> None:
    data = load(truth(result(category_id=2, id=1), result("1 2 3 4", id=2)), "pred")
    assert (classes(data), data.images.file_names, data.images.listed) == (["dog", "cat"], ("a.jpg",), True)
    assert data.findings == ()


def test_json_lines_load_and_keep_their_line_numbers(load: Load, refuse: Refuse) -> None:
    lines = "\n".join(map(json.dumps, [result("1 2 3 4", 0.1), result("1 2 0 4", 0.2)]))
    data = load(lines + "\n", "pred")
    assert data.details == ("JSON Lines of results",)
    assert str(data.findings[0].examples[0].where).endswith("pred.json:2")
    spaced = load("\n\n" + lines.replace("\n", "\r\n\r\n"), "pred")
    assert str(spaced.findings[0].examples[0].where).endswith("pred.json:5")
    assert refuse(f'{lines}\n{{"image_id": 1}}', "pred").startswith("error[score-missing]: pred.json:3: score")


def test_a_single_line_is_json_lines_too(load: Load) -> None:
    assert len(load(result(), "pred").boxes) == 1


def test_every_bad_line_of_json_lines_is_named(refuse: Refuse) -> None:
    message = refuse(f"{json.dumps(result())}\n{{oops\n[1]\n", "pred")
    assert "pred.json:2: not valid JSON, column 2" in message
    assert "pred.json:3: is [1] (an array); expected an object" in message


def test_no_predictions_are_legal(load: Load) -> None:
    data = load([], "pred")
    assert (len(data.boxes), codes(data)) == (0, ["pred-empty"])


def test_a_file_of_white_space_holds_no_data_rather_than_no_predictions(refuse: Refuse) -> None:
    assert "only whitespace" in refuse(" \n\n", "pred")


def test_ultralytics_file_names_become_those_of_the_images(load: Load) -> None:
    records = [result(image_id=7, file_name="0007.jpg"), result(image_id="img", file_name="img.png")]
    data = load([*records, *records], "pred")
    assert dict(zip(data.images.keys, data.images.file_names, strict=True)) == {7: "0007.jpg", "img": "img.png"}
    assert (data.images.listed, data.findings) == (False, ())


def test_one_image_with_two_file_names_is_an_error(refuse: Refuse) -> None:
    message = refuse([result(file_name="a.jpg"), result(file_name="b.jpg")], "pred")
    assert "pred.json: [1]: image_id 1 has file_name 'b.jpg' here, 'a.jpg' before" in message


def test_sahi_category_names_become_class_names(load: Load) -> None:
    data = load([result(category_id=3, category_name="car"), result(category_id=5, category_name="bus")], "pred")
    assert (data.labels.keys, data.labels.names, data.labels.named) == ((3, 5), ("car", "bus"), True)


def test_inconsistent_category_names_are_not_used(load: Load) -> None:
    data = load([result(category_name="car"), result(category_name="bus")], "pred")
    assert (data.labels.names, data.labels.named) == (("1",), False)
    assert codes(data) == ["category-name-contradiction"]


def test_names_from_the_options_count_from_zero(load: Load) -> None:
    assert classes(load([result(category_id=1)], "pred", names=("cat", "dog"))) == ["dog"]


def test_an_assumed_score_stands_in_when_no_record_has_one(load: Load, refuse: Refuse) -> None:
    data = load([box(), box("1 2 3 4")], "pred", assume_score=0.75)
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.75, 0.75]
    assert "[1].score: is missing" in refuse([result(), box()], "pred", assume_score=0.75)


def test_a_number_written_as_text_among_numbers_is_refused(refuse: Refuse) -> None:
    message = refuse([result(), result(image_id="1"), result(category_id="1")], "pred")
    assert "[1].image_id: is '1', a string, but other records have numbers" in message
    assert "[2].category_id: is '1', a string" in message


# Refusals


def test_all_problems_of_a_file_are_named_in_one_pass(refuse: Refuse) -> None:
    bad = [
        box() | {"bbox": [1, 2, 3]},
        {"image_id": 1, "category_id": 1},
        box(area="12", iscrowd=2),
        box(image_id=1.5, category_id=[1]),
        box() | {"bbox": [1, True, None, float("nan")]},
    ]
    message = refuse(truth(*bad, images=[image(1), None, {"file_name": "b"}]))
    for problem in (
        "annotations[0].bbox: has 3 values [1, 2, 3]; expected 4 numbers",
        "annotations[1].bbox: is missing",
        "annotations[2].area: is '12' (a string), not a number",
        "annotations[2].iscrowd: is 2 (a number); expected 0 or 1",
        "annotations[3].image_id: is 1.5 (a number); expected an integer",
        "annotations[3].category_id: is [1] (an array); expected an integer",
        "annotations[4].bbox[1]: is true (a boolean), not a number",
        "annotations[4].bbox[2]: is null, not a number",
        "annotations[4].bbox[3]: is NaN; numbers must be finite",
        "images[1]: is null; expected an object",
        "images[2].id: is missing",
    ):
        assert f"gt.json: {problem}" in message


def test_a_message_has_code_place_and_remedy(refuse: Refuse) -> None:
    message = refuse([result(score="0.5")], "pred")
    assert message == (
        "error[number-type]: pred.json: [0].score: is '0.5' (a string), not a number. Write numbers without quotes."
    )


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400, "9" * 5000, "NaN", "-Infinity"])
def test_numbers_that_are_no_finite_floats_are_refused(refuse: Refuse, number: str) -> None:
    text = as_text([result(score=0.125)]).replace("0.125", number)
    assert "pred.json: [0].score: is" in refuse(text, "pred")
    assert "must be finite" in refuse(text, "pred")


def test_numbers_out_of_range_in_fields_that_are_not_read_do_no_harm(load: Load) -> None:
    assert len(load(as_text(truth(box(area=1, extra=0.125))).replace("0.125", "NaN")).boxes) == 1


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, 2.0**60])
def test_ids_beyond_64_bits_and_rounded_ids_are_refused(refuse: Refuse, key: float) -> None:
    assert "annotations[0].image_id: is" in refuse(truth(box(image_id=key)))


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"image_id": 1, "category_id": 1, "BBox": [1, 2, 3, 4]}, "bbox: is missing; found 'BBox'"),
        ({"image_id": 1, "label": 1, "bbox": [1, 2, 3, 4]}, "category_id: is missing; found 'label'"),
        ({"imageId": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}, "image_id: is missing; found 'imageId'"),
        ({"image_id": 1, "category_id": 1, "segmentation": []}, "bbox: is missing; found 'segmentation'"),
    ],
)
def test_a_missing_field_is_named_beside_what_was_meant_for_it(refuse: Refuse, record: Record, place: str) -> None:
    assert f"annotations[0].{place} instead" in refuse(truth(record))


def test_alias_keys_of_detections_are_all_named(refuse: Refuse) -> None:
    message = refuse([{"image_id": 1, "label": 1, "box": [1, 2, 3, 4], "confidence": 0.5}], "pred")
    assert "swapped" not in message
    for field, alias in (("score", "confidence"), ("category_id", "label"), ("bbox", "box")):
        assert f"[0].{field}: is missing; found '{alias}' instead" in message


def test_ground_truth_given_as_predictions_lacks_scores(refuse: Refuse) -> None:
    message = refuse(truth(box(area=1)), "pred")
    assert "annotations[0].score: is missing. Ground truth has none: were the files swapped?" in message


def test_predictions_given_as_ground_truth_are_recognised(refuse: Refuse) -> None:
    assert "the top level is an array of 1 values (a list of results?)" in refuse([result()])
    lines = f"{json.dumps(result())}\n{json.dumps(result())}\n"
    assert "JSON Lines" in refuse(lines)
    assert "JSON Lines" in refuse(result())


LISTS = ["annotations", "results", "predictions", "detections"]
MASK = {"segmentation": [[10, 20, 40, 20, 40, 60]]}


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("more", [{}, {"info": {"model": "m"}}, {"images": [image(1)]}, {"time": 1.5}])
@pytest.mark.parametrize("record", [{}, {"id": 4}, {"file_name": "a.jpg"}, MASK])
def test_results_in_an_object_are_read_as_by_themselves(load: Load, key: str, more: Record, record: Record) -> None:
    results = [result("10 20 30 40", 0.5) | record, result("1 2 3 4", 0.25, category_id=2) | record]
    for iou_type in ("bbox", "segm") if "segmentation" in record else ("bbox",):
        alone, held = load(results, "pred", iou_type=iou_type), load({**more, key: results}, "pred", iou_type=iou_type)
        assert held.boxes.xywh.tolist() == alone.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 3, 4]]
        assert held.boxes.score is not None and held.boxes.score.tolist() == [0.5, 0.25]
        assert held.labels.keys == alone.labels.keys == (1, 2)
        assert held.boxes.area.tolist() == alone.boxes.area.tolist()
        assert held.details[0] == f"one object with {key}"


@pytest.mark.parametrize("key", LISTS)
def test_faults_of_results_in_an_object_are_named_by_its_key_and_record(refuse: Refuse, key: str) -> None:
    message = refuse({key: [result(), box(), result() | {"bbox": [1, 2, 3]}, 7]}, "pred")
    assert f"pred.json: {key}[1].score: is missing" in message
    assert f"pred.json: {key}[2].bbox: has 3 values" in message
    assert f"pred.json: {key}[3]: is 7 (a number)" in message
    assert f"pred.json: {key}[0].bbox[0]: is NaN" in refuse({key: [result("nan 1 2 3")]}, "pred")  # otherwise plain
    assert f"{key}: is an object; expected an array" in refuse({key: {"AP": 0.5}}, "pred")


def test_of_two_lists_in_an_object_the_one_with_scores_is_read(load: Load, refuse: Refuse) -> None:
    both = {"annotations": [box("1 2 3 4")], "predictions": [result(), result()]}
    assert load(both, "pred").boxes.xywh.tolist() == [[10, 20, 30, 40]] * 2
    message = refuse({"results": [result()], "predictions": [result(), result()]}, "pred")
    assert "the object has 1 results and 2 predictions, all with scores: which are the predictions?" in message
    assert message.endswith("Keep only one of the keys 'results', 'predictions'.")
    assert "1 annotations and 1 results, none with scores" in refuse(
        {"annotations": [box()], "results": [box()]}, "pred"
    )


def test_results_under_any_other_key_are_refused_with_the_key_to_rename(load: Load, refuse: Refuse) -> None:
    message = refuse({"bbox": [result()], "time": 3}, "pred")
    assert "an object with 'bbox', 'time'; expected an array (list)" in message
    assert message.endswith("Rename 'bbox' to 'predictions'.")
    assert len(load({"predictions": [result()], "time": 3}, "pred").boxes) == 1
    assert refuse({"a": [result()], "b": [result()]}, "pred").endswith("Pass only the array of results.")


@pytest.mark.parametrize("key", LISTS)
def test_an_object_with_results_is_recognised_and_one_with_boxes_by_image_is_not(key: str, tmp_path: Path) -> None:
    path = tmp_path / "pred.json"
    for record in (
        result(),
        result() | MASK,
        {"score": 1, "segmentation": {"size": [1]}, "image_id": 1, "category_id": 2},
    ):
        path.write_text(json.dumps({"info": {}, key: [record]}))
        assert detect_format(path) == "coco"
    path.write_text(json.dumps({key: [{"image_id": 1, "boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [1]}]}))
    assert key == "annotations" or detect_format(path) == "records"


@pytest.mark.parametrize("section", ["images", "annotations", "categories"])
@pytest.mark.parametrize(("value", "found"), [(None, "is null"), ({}, "is an object"), (7, "is a number")])
def test_a_section_that_is_no_array_is_refused(refuse: Refuse, section: str, value: object, found: str) -> None:
    assert f"gt.json: {section}: {found}; expected an array" in refuse(truth() | {section: value})


@pytest.mark.parametrize("section", ["images", "annotations", "categories"])
def test_a_missing_section_is_named(refuse: Refuse, section: str) -> None:
    document = truth(box())
    del document[section]
    assert f"gt.json: {section}: is missing. " in refuse(document)


def test_a_list_of_test_images_is_told_from_ground_truth_without_boxes(refuse: Refuse, load: Load) -> None:
    images_only = {"info": {}, "licenses": [], "images": [image(1)], "categories": [{"id": 1, "name": "dog"}]}
    message = refuse(images_only)
    assert "gt.json: annotations: is missing. Files that only list images, as COCO's image_info_*.json" in message
    assert len(load(images_only | {"annotations": []}).boxes) == 0


@pytest.mark.parametrize("section", ["images", "categories"])
def test_ground_truth_without_images_or_categories_is_refused(refuse: Refuse, section: str) -> None:
    assert f"{section}: is empty" in refuse(truth(box()) | {section: []})


@pytest.mark.parametrize(("text", "found"), [("42", "42 (a number)"), ("null", "null"), ('"x"', "'x' (a string)")])
def test_a_document_that_is_no_object_is_refused(refuse: Refuse, text: str, found: str) -> None:
    for role in ("gt", "pred"):
        assert f"the top level is {found}; expected" in refuse(text, role)


def test_syntax_errors_give_line_column_and_what_was_found(refuse: Refuse) -> None:
    assert refuse('{"images": [],\n "annotations": [1 2]}').startswith(
        "error[json-syntax]: gt.json:2: not valid JSON, column 20: "
    )
    assert "the data ends here (truncated?)" in refuse('{"images": [')
    assert "column 1: expecting value, found 'hello'" in refuse("hello")
    assert "only whitespace" in refuse(" \n ")


def test_nesting_without_end_is_refused(refuse: Refuse) -> None:
    assert "nested too deep" in refuse("[" * 100_000)


def test_bytes_that_are_no_utf8_are_refused_even_in_fields_that_are_not_read(refuse: Refuse) -> None:
    text = as_text(truth(box(note="X"))).encode().replace(b'"X"', b'"\xff"')
    assert "byte 0xFF" in refuse(text)


# Repeated keys


def repeated(document: object, once: str, twice: str) -> str:
    text = as_text(document)
    assert once in text
    return text.replace(once, twice, 1)


@pytest.mark.parametrize(
    ("once", "twice", "place"),
    [
        ('"area": 8', '"area": 8, "area": 9', "annotations[0].area: duplicate key 'area'"),
        ('"area": 8', '"area": 8, "ar\\u0065a": 9', "annotations[0].area: duplicate key 'area'"),
        ('"annotations": ', '"annotations": [], "annotations": ', "annotations: duplicate key 'annotations'"),
        ('"width": 640', '"width": 1, "width": 640', "images[0].width: duplicate key 'width'"),
        ('"name": "cat"', '"name": "cat", "name": "dog"', "categories[0].name: duplicate key 'name'"),
        ('"iscrowd": 0', '"iscrowd": 1, "iscrowd": 0', "annotations[0].iscrowd: duplicate key 'iscrowd'"),
    ],
)
def test_a_repeated_key_is_an_error_with_its_place(refuse: Refuse, once: str, twice: str, place: str) -> None:
    document = truth(box(area=8, iscrowd=0, id=1, segmentation={"size": [1, 2], "counts": "ab"}))
    assert place in refuse(repeated(document, once, twice))


def test_a_repeated_key_in_a_results_list_is_an_error(refuse: Refuse) -> None:
    document = [result(), result(score=0.25)]
    assert "[1].score: duplicate key 'score'" in refuse(
        repeated(document, '"score": 0.25', '"score": 1, "score": 2'), "pred"
    )


def test_one_key_twice_here_and_missing_there_is_noticed(refuse: Refuse) -> None:
    document = truth(box(area=8), box())
    assert "annotations[0].area: duplicate" in refuse(repeated(document, '"area": 8', '"area": 8, "area": 9'))


def test_the_same_key_in_an_inner_object_or_as_a_text_is_no_repetition(load: Load) -> None:
    inner = box(area=8, attributes={"area": 3, "bbox": [], "id": 4}, note="area")
    data = load(truth(inner, categories=[category(1, "bbox")], licenses=[{"id": 1, "name": "by"}], info={"id": 2}))
    assert (len(data.boxes), classes(data), data.findings) == (1, ["bbox"], ())


# Recognition


@pytest.mark.parametrize(
    "content",
    [truth(box()), [result()], [], result(), {"results": [result()]}, {"info": {}, "images": [image(1)]}, [[1, 2, 3]]],
)
def test_coco_layouts_are_recognised(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(as_text(content))
    assert coco.looks_like(Peek(path))


@pytest.mark.parametrize(
    "content",
    [
        {"version": "5", "shapes": [{"label": "cat", "points": []}], "imagePath": "a.jpg"},
        {"_via_settings": {}, "_via_img_metadata": {}},
        [{"image": "a.jpg", "annotations": [{"label": "cat", "coordinates": {}}]}],
        {"info": {}, "categories": {"label": {}}, "items": [{"id": "a", "annotations": []}]},
        [{"id": 1, "data": {"image": "a"}, "annotations": [{"result": []}]}],
        {"AP": 0.5},
    ],
)
def test_other_json_layouts_are_left_to_others(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(as_text(content))
    assert not coco.looks_like(Peek(path))


@pytest.mark.parametrize("content", [b"", b"   ", b"<html>", b"\xff\xfe[\x00", b"{'images': []}", b"[1, 2"])
@pytest.mark.parametrize("name", ["x.json", "x.JSON", "x.jsonl", "x.json.gz"])
def test_broken_files_called_json_are_claimed_for_the_sake_of_the_message(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert coco.looks_like(Peek(tmp_path / name))


def test_other_files_folders_and_missing_ones_are_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "folder.json").mkdir()
    assert not any(coco.looks_like(Peek(tmp_path / name)) for name in ("a.txt", "folder.json", "missing.txt"))


def test_the_example_of_the_format_loads(load: Load, tmp_path: Path) -> None:
    data = load(coco.FORMAT.example)
    assert (classes(data), data.findings) == (["dog"], ())
    assert detect_format(tmp_path / "gt.json") == "coco"


GROUPS = ["is_group_of", "isgroupof", "IsGroupOf"]


@pytest.mark.parametrize("key", GROUPS)
@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
def test_groups_of_open_images_are_read_under_each_spelling(load: Load, key: str, iou_type: str) -> None:
    for yes, no in ((1, 0), (True, False)):
        flags = [{key: yes}, {key: no}, {}]
        dataset = load(truth(*[box(area=9) | flag | MASK for flag in flags]), iou_type=iou_type)
        assert dataset.boxes.group_of.tolist() == [True, False, False]


@pytest.mark.parametrize("key", GROUPS)
def test_a_group_that_nobody_checked_is_none_and_any_other_value_is_refused(
    load: Load, refuse: Refuse, key: str
) -> None:
    dataset = load(truth(box(area=9) | {key: -1}))
    assert dataset.boxes.group_of.tolist() == [False]
    assert any(f"annotations[0].{key}: is -1 (unknown): read as 0" in line for line in said(dataset, Severity.NOTE))
    message = refuse(truth(box(area=9) | {key: 1}, box(area=9) | {key: 2}, box(area=9) | {key: "yes"}))
    assert f"annotations[1].{key}: is 2 (a number); expected 0 or 1" in message
    assert f"annotations[2].{key}: is 'yes' (a string); expected 0 or 1" in message


def test_a_group_in_coco_json_counts_as_the_same_one_in_a_table_of_open_images(tmp_path: Path) -> None:
    # A group over three detections of which none reaches IoU .5 with it, and an object that is found.
    rows = ["ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf", "a,dog,0,0.5,0,0.5,1", "a,dog,0.75,1,0.75,1,0"]
    (tmp_path / "gt.csv").write_text("\n".join(rows) + "\n")
    group, found = box("0 0 320 240", area=1) | {"is_group_of": 1}, box("480 360 160 120", area=1)
    results = [result(f"{left} 0 100 100", 0.9) for left in (0, 100, 200)] + [result("480 360 160 120", 0.5)]
    pred = {"predictions": results, "images": [image(1)], "categories": [category(1, "dog")]}
    (tmp_path / "pred.json").write_text(json.dumps(pred))
    # The group absorbs the three detections, which leaves 1 of 1. As an object it is missed, behind three false ones:
    # of two objects one is found, at a precision of 1/4.
    for first, expected in ((group, 1.0), (box("0 0 320 240", area=1), 0.125)):
        gt = truth(first, found, categories=[category(1, "dog")])
        assert jaccard_eval.evaluate(gt, pred, protocol="openimages")["AP50"] == pytest.approx(expected)
    table = jaccard_eval.evaluate(tmp_path / "gt.csv", tmp_path / "pred.json", protocol="openimages")
    assert table["AP50"] == pytest.approx(1.0)


def test_a_dict_of_results_is_read_as_their_list() -> None:
    gt, results = truth(box()), [result()]
    for key in LISTS:
        for pred in (results, {key: results}):
            assert jaccard_eval.evaluate(gt, pred)["AP"] == pytest.approx(1.0)  # one box, found exactly


def test_annotations_may_be_keyed_by_their_ids(tmp_path: Path) -> None:
    images, categories = [{"id": 1, "width": 64, "height": 48}], [{"id": 3, "name": "cell"}]
    record = {"id": 7, "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
    (tmp_path / "gt.json").write_text(
        json.dumps({"images": images, "categories": categories, "annotations": {"7": record}})
    )
    assert jaccard_eval.load(tmp_path / "gt.json").boxes.xywh.tolist() == [[1, 2, 3, 4]]
    record["segmentation"] = [[1, 2, 4, 2, 4, 6, 1, 6]]
    (tmp_path / "gt.json").write_text(
        json.dumps({"images": images, "categories": categories, "annotations": {"7": record}})
    )
    found = {name: record[name] for name in ("image_id", "category_id", "segmentation")} | {"score": 0.5}
    (tmp_path / "pred.json").write_text(json.dumps([found]))
    result = jaccard_eval.evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="segm")
    assert result["AP"] == pytest.approx(1.0)


def test_results_without_a_class_are_of_the_only_category_of_their_file(tmp_path: Path) -> None:
    record = {"image_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}
    document = {"categories": [{"id": 3, "name": "cell"}], "annotations": [record]}
    (tmp_path / "pred.json").write_text(json.dumps(document))
    dataset = jaccard_eval.load(tmp_path / "pred.json", role="pred")
    assert (dataset.labels.keys, [one.code for one in dataset.findings]) == ((3,), ["csv-one-class"])
