import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaccard_eval
from jaccard_eval import (
    AreaRange,
    BoxTable,
    DataError,
    EvaluationResult,
    JaccardEvalWarning,
    ReadOptions,
    UsageError,
    evaluate,
    load,
)
from jaccard_eval.findings import Severity

HEADER = "image,class,xmin,ymin,xmax,ymax"
Writer = Callable[..., Path]


@pytest.fixture
def write_csv(tmp_path: Path) -> Writer:
    def write(name: str, *rows: str) -> Path:
        header = f"{HEADER},score" if name.startswith("pred") else HEADER
        path = tmp_path / name
        path.write_text("\n".join([header, *rows, ""]))
        return path

    return write


@pytest.fixture
def write_json(tmp_path: Path) -> Writer:
    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(content))
        return path

    return write


def _coco(*boxes: tuple[int, int, list[float]], n_images: int = 3) -> dict[str, Any]:
    """Images 1 to n with the categories 1 = cat and 2 = dog; boxes as (image, category, xywh)."""
    return {
        "images": [{"id": i, "file_name": f"{i:03d}.png", "width": 100, "height": 100} for i in range(1, n_images + 1)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": image, "category_id": label, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for i, (image, label, box) in enumerate(boxes, start=1)
        ],
    }


def _results(*boxes: tuple[Any, int, list[float]]) -> list[dict[str, Any]]:
    return [{"image_id": image, "category_id": label, "bbox": box, "score": 0.9} for image, label, box in boxes]


def _table(*boxes: list[float], score: list[float] | None = None, label: list[int] | None = None) -> BoxTable:
    n = len(boxes)
    return BoxTable.from_arrays([0] * n, label or [0] * n, list(boxes), score=score, encoding="xywh")


def _messages(result: EvaluationResult, severity: Severity) -> list[str]:
    return [finding.message for finding in result.findings if finding.severity is severity]


BOX = [0.0, 0.0, 10.0, 10.0]
OTHER = [50.0, 50.0, 10.0, 10.0]


@pytest.mark.parametrize("path", ["images/{}.png", "{}", r"val\{}.png"], ids=["folder", "no extension", "backslashes"])
def test_csv_predictions_that_name_images_otherwise_and_one_too_many_are_an_error(path: str, write_csv: Writer) -> None:
    gt = write_csv("gt.csv", "a.png,cat,0,0,10,10", "b.png,cat,0,0,10,10")
    pred = write_csv("pred.csv", *(f"{path.format(stem)},cat,0,0,10,10,0.9" for stem in "abc"))
    with pytest.raises(DataError) as caught:
        evaluate(gt, pred)
    message = str(caught.value)
    assert "pred.csv: image: 2 of 3 prediction images match a ground-truth image" in message
    assert path.format("c").replace("\\", "\\\\") in message
    assert "'a.png'" in message


@pytest.mark.parametrize("path", ["images/{}.png", "{}", r"val\{}.png"], ids=["folder", "no extension", "backslashes"])
def test_csv_predictions_that_name_all_images_otherwise_are_matched(path: str, write_csv: Writer) -> None:
    gt = write_csv("gt.csv", "a.png,cat,0,0,10,10", "b.png,cat,0,0,10,10")
    pred = write_csv("pred.csv", *(f"{path.format(stem)},cat,0,0,10,10,0.9" for stem in "ab"))
    result = evaluate(gt, pred)
    assert result["AP50"] == pytest.approx(1.0)
    assert _messages(result, Severity.WARNING) == []


def test_an_extra_image_of_csv_predictions_is_an_image_without_objects(write_csv: Writer) -> None:
    gt = write_csv("gt.csv", "a.png,cat,0,0,10,10", "b.png,cat,0,0,10,10")
    pred = write_csv(
        "pred.csv", *(f"{name}.png,cat,0,0,10,10,{score}" for name, score in zip("cab", (0.9, 0.8, 0.7), strict=True))
    )
    result = evaluate(gt, pred)
    # The false positive on c.png ranks first: precision 1/2, then 2/3 at full recall, so 2/3 everywhere.
    assert result["AP50"] == pytest.approx(2 / 3)
    (warning,) = _messages(result, Severity.WARNING)
    assert "1 predictions on 1 image" in warning
    assert "('c.png'): counted as images without objects, as the ground truth does not list its images" in warning


def test_an_unknown_image_in_coco_predictions_is_an_error_that_names_it(write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX)))
    pred = write_json("pred.json", _results((1, 1, BOX), (99, 1, BOX)))
    with pytest.raises(DataError, match=r"pred\.json: image: 1 predictions on 1 image .*: '99'") as caught:
        evaluate(gt, pred)
    assert 'pass extra_images="ignore"' in str(caught.value)


@pytest.mark.parametrize(("extra_images", "ap"), [("ignore", 1.0), ("empty", 0.5)])
def test_extra_images_are_left_out_or_counted_on_request(extra_images: str, ap: float, write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX)))
    pred = write_json("pred.json", [*_results((99, 1, BOX)), *_results((1, 1, BOX))])
    scores = json.loads(pred.read_text())
    scores[0]["score"] = 0.95  # the false positive ranks first
    pred.write_text(json.dumps(scores))
    result = evaluate(gt, pred, extra_images=extra_images)
    assert result["AP50"] == pytest.approx(ap)
    assert len(_messages(result, Severity.WARNING)) == 1
    assert f"extra_images={extra_images}" in result.signature


def test_image_ids_as_texts_are_an_error_that_says_so(write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX)))
    pred = write_json("pred.json", _results(("1", 1, BOX), ("2", 1, BOX)))
    with pytest.raises(DataError, match=r"pred\.json: image: .*image ids are '1', '2' \(string ids\).*\(integer ids\)"):
        evaluate(gt, pred)
    assert evaluate(gt, pred, match_images="id").correspondence.matched_images == 2


def test_an_unknown_category_is_a_warning_with_its_id_and_count(write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX)))
    pred = write_json("pred.json", _results((1, 1, BOX), (1, 99, BOX), (2, 99, OTHER)))
    (warning,) = _messages(evaluate(gt, pred), Severity.WARNING)
    assert "2 predictions of 1 class not in the ground truth ignored: '99'" in warning


def test_categories_counted_from_0_are_a_warning_that_names_0(write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX), (1, 2, OTHER)))
    pred = write_json("pred.json", _results((1, 0, BOX), (1, 1, OTHER)))
    unknown, mapping = _messages(evaluate(gt, pred), Severity.WARNING)
    assert "not in the ground truth ignored" in unknown
    assert "'0'" in unknown
    # Two objects of two classes are few, but there is no other word on an AP of 0.
    assert "none of 2 overlapping pairs have the same class on both sides, all have by id+1" in mapping
    assert evaluate(gt, pred, class_map="id+1")["AP"] == pytest.approx(1.0)


def test_no_category_in_common_is_an_error(write_json: Writer) -> None:
    gt = write_json("gt.json", _coco((1, 1, BOX)))
    pred = write_json("pred.json", _results((1, 7, BOX)))
    with pytest.raises(DataError, match=r"no prediction class is in the ground truth"):
        evaluate(gt, pred)


def test_predictions_without_a_box_give_zero(write_json: Writer) -> None:
    result = evaluate(write_json("gt.json", _coco((1, 1, BOX))), write_json("pred.json", []))
    assert (result["AP"], result["AR100"], result["AP[class=cat]"]) == (0.0, 0.0, 0.0)
    assert math.isnan(result["AP[class=dog]"])


def test_ground_truth_without_a_box_leaves_every_number_undefined_with_a_reason(write_json: Writer) -> None:
    result = evaluate(write_json("gt.json", _coco()), write_json("pred.json", _results((1, 1, BOX))))
    assert math.isnan(result["AP"])
    assert result.metrics["AP"].reason == "no ground truth"


def test_fractions_on_both_sides_give_ap_but_no_size_ranges(tmp_path: Path) -> None:
    for side, line in (("gt", "0 0.5 0.5 0.2 0.2"), ("pred", "0 0.5 0.5 0.2 0.2 0.9")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text(line)
    result = evaluate(tmp_path / "gt", tmp_path / "pred")
    assert result["AP"] == pytest.approx(1.0)
    assert math.isnan(result["AP_small"])
    assert result.metrics["AP_small"].reason == "image sizes are unknown"
    with pytest.raises(DataError, match="protocol voc2012 adds a pixel to every side"):
        evaluate(tmp_path / "gt", tmp_path / "pred", protocol="voc2012")


def test_labels_in_fractions_beside_no_box_need_no_image_sizes(tmp_path: Path) -> None:
    for folder, line in (("boxes", "0 .5 .5 .2 .2"), ("none", "")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(line)
    missed = evaluate(tmp_path / "boxes", tmp_path / "none")
    assert (missed["AP"], [one.code for one in missed.findings]) == (0, ["pred-empty"])
    (tmp_path / "found").mkdir()
    (tmp_path / "found/a.txt").write_text("0 .5 .5 .2 .2 .9")
    undefined = evaluate(tmp_path / "none", tmp_path / "found")
    assert math.isnan(undefined["AP"])
    assert "gt-empty" in {one.code for one in undefined.findings}


def test_fractions_beside_pixels_take_the_sizes_of_coco_images(write_json: Writer, tmp_path: Path) -> None:
    gt = write_json("gt.json", _coco((1, 1, [40.0, 40.0, 20.0, 20.0])))
    (tmp_path / "pred").mkdir()
    (tmp_path / "pred" / "001.txt").write_text("0 0.5 0.5 0.2 0.2 0.9")  # centre 50, 50 and 20 x 20 pixels
    result = evaluate(gt, tmp_path / "pred", pred_options=ReadOptions(names=("cat", "dog")))
    assert result["AP"] == result["AP_small"] == pytest.approx(1.0)
    assert result.correspondence.image_strategy == "stem"


def test_a_result_shows_its_summary_in_a_line() -> None:
    result = evaluate(_table(BOX), _table(BOX, score=[0.9]), iou=[0.5])
    # one object found: AP 1 (101 precisions of 1); the areas depend on BOX
    assert repr(result).startswith("<EvaluationResult coco: AP=1.0000, AP50=1.0000, ")
    assert len(repr(result)) < 300


def test_arrays_are_evaluated_as_they_are() -> None:
    # One of two objects is found: precision 1 up to recall 0.5, which 51 of 101 points do not exceed.
    result = evaluate(_table(BOX, OTHER), _table(BOX, score=[0.9]))
    assert result["AP50"] == pytest.approx(51 / 101)
    assert (result.gt.format, result.gt.path, result.gt.images) == ("arrays", "<arrays>", 1)


def test_images_that_only_one_array_has_are_images_of_both() -> None:
    gt = BoxTable.from_arrays([0], [0], [BOX], encoding="xywh")
    pred = BoxTable.from_arrays([0, 4], [0, 0], [BOX, BOX], score=[0.5, 0.9], encoding="xywh")
    assert evaluate(gt, pred)["AP50"] == pytest.approx(0.5)  # the false positive on image 4 ranks first


def test_a_class_that_only_predictions_have_is_set_aside_with_a_warning() -> None:
    result = evaluate(_table(BOX), _table(BOX, OTHER, score=[0.9, 0.9], label=[0, 3]))
    assert result["AP50"] == pytest.approx(1.0)
    assert [finding.code for finding in result.findings] == ["class-unknown"]


def test_arrays_of_predictions_need_scores() -> None:
    with pytest.raises(UsageError, match=r"predictions need scores: BoxTable\.from_arrays\(\.\.\., score=\.\.\.\)"):
        evaluate(_table(BOX), _table(BOX))


def test_data_loaded_as_ground_truth_cannot_be_predictions(write_json: Writer) -> None:
    dataset = load(write_json("gt.json", _coco((1, 1, BOX))))
    with pytest.raises(UsageError, match=r"predictions need scores: .* or load\(\.\.\., role='pred'\)"):
        evaluate(dataset, dataset)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "best"}, "score must be a finite number, 'best-f1' or an aim such as 'precision=0.9', got 'best'"),
        ({"score": math.nan}, "score must be a finite number, 'best-f1' or an aim such as 'precision=0.9', got nan"),
        ({"score_min": math.inf}, "score_min must be a finite number, got inf"),
        ({"score_min": "best-f1"}, "score_min must be a finite number, got 'best-f1'"),
        ({"protocol": "cocoo"}, "unknown protocol 'cocoo'"),
        ({"iou": [50]}, "IoU thresholds must be above 0 and at most 1"),
        ({"iou": "0.5"}, r"iou must be a list, such as \['0\.5'\], got '0\.5'"),
        ({"max_dets": 100}, r"max_dets must be a list, such as \[100\], got 100"),
        ({"classes": "dog"}, r"classes must be a list, such as \['dog'\], got 'dog'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(_table(BOX), _table(BOX, score=[0.9]), **options)


@pytest.mark.parametrize("source", [np.zeros((1, 6)), [[0, 0, 10, 10]], {"boxes": []}, None])
def test_what_is_neither_a_path_nor_loaded_is_refused_with_what_will_do(source: Any) -> None:
    with pytest.raises(
        UsageError, match=rf"cannot read an? {type(source).__name__}\. Pass a path, a DataFrame, a COCO"
    ):
        evaluate(source, _table(BOX, score=[0.9]))


def test_data_that_is_loaded_is_passed_through(write_json: Writer) -> None:
    dataset = load(write_json("gt.json", _coco((1, 1, BOX))))
    assert load(dataset) is dataset


def test_loading_finds_the_format_or_takes_the_one_that_is_named(write_json: Writer) -> None:
    path = write_json("gt.json", _coco((1, 1, BOX)))
    assert load(path).format == load(str(path), format_name="coco").format == "coco"
    with pytest.raises(UsageError, match=r"unknown format 'coca'; choose from .*coco.*Did you mean 'coco'"):
        load(path, format_name="coca")


def test_detections_below_a_score_are_left_out_and_counted() -> None:
    result = evaluate(_table(BOX, OTHER), _table(BOX, OTHER, score=[0.9, 0.25]), score_min=0.5)
    assert result["AP50"] == pytest.approx(51 / 101)
    assert result.pred.ignored["score-min"] == 1
    assert "|score_min=0.5|" in result.signature
    kept = evaluate(_table(BOX, OTHER), _table(BOX, OTHER, score=[0.9, 0.25]), score_min=0.25)
    assert kept["AP50"] == pytest.approx(1.0)  # a score equal to the bound is kept


def test_a_score_that_no_prediction_reaches_is_a_warning() -> None:
    with pytest.warns(JaccardEvalWarning, match=r"all 2 scores are below 50; the highest is 0\.9\. Lower score_min\."):
        result = evaluate(_table(BOX, OTHER), _table(BOX, OTHER, score=[0.9, 0.25]), score_min=50)
    assert result["AP50"] == 0


def test_detections_beyond_the_cap_are_left_out_with_a_note() -> None:
    result = evaluate(_table(BOX), _table(OTHER, BOX, score=[0.9, 0.8]), max_dets=[1])
    assert result["AP"] == 0.0
    (note,) = _messages(result, Severity.NOTE)
    assert note.startswith(
        "<arrays>: ignored 1 detection beyond the cap of 1 per image and class, in 1 image; AP 0.0000"
    )


def test_options_replace_the_rules_of_a_protocol() -> None:
    areas = [AreaRange("all", 0, 1e10), AreaRange("tiny", 0, 50)]
    result = evaluate(_table(BOX), _table(BOX, score=[0.9]), iou=[0.3, 0.6], max_dets=[5, 2], areas=areas)
    assert result.protocol.iou_thresholds == (0.3, 0.6)
    assert result.protocol.max_dets == (2, 5)
    assert list(result.metrics) == ["AP", "AP30", "AP60", "AP_tiny", "AR2", "AR5", "AR_tiny"]
    assert math.isnan(result["AP_tiny"])


def test_an_empty_list_of_caps_means_no_cap() -> None:
    boxes = [[20.0 * i, 0.0, 10.0, 10.0] for i in range(150)]
    scores = np.linspace(0.9, 0.1, 150).tolist()
    assert evaluate(_table(*boxes), _table(*boxes, score=scores), max_dets=[])["AP"] == pytest.approx(1.0)


def test_classes_can_be_pooled() -> None:
    gt, pred = _table(BOX, OTHER, label=[0, 1]), _table(BOX, OTHER, score=[0.9, 0.8], label=[1, 0])
    assert evaluate(gt, pred)["AP"] == 0.0
    pooled = evaluate(gt, pred, class_agnostic=True)
    assert pooled["AP"] == pytest.approx(1.0)
    assert [row.name for row in pooled.per_class] == ["all classes"]


def test_classes_are_chosen_and_mapped_by_name(write_csv: Writer) -> None:
    gt = write_csv("gt.csv", "a.png,cat,0,0,10,10", "a.png,dog,50,50,60,60")
    pred = write_csv("pred.csv", "a.png,kitty,0,0,10,10,0.9", "a.png,dog,0,0,9,9,0.9")
    assert evaluate(gt, pred, class_map={"kitty": "cat"}, classes=["cat"])["AP"] == pytest.approx(1.0)
    # What a caller leaves open is not given.
    everything = evaluate(gt, pred, class_map={"kitty": "cat"}, classes=None, exclude_classes=None, allow=None)
    assert everything.to_dict() == evaluate(gt, pred, class_map={"kitty": "cat"}).to_dict()
    result = evaluate(gt, pred, class_map={"kitty": "cat"}, exclude_classes=["cat"])
    assert [row.name for row in result.per_class] == ["dog"]
    assert "|exclude_classes=cat|" in result.signature


def test_another_map_of_classes_gives_another_signature(write_csv: Writer) -> None:
    gt = write_csv("gt.csv", "a.png,cat,0,0,10,10", "a.png,dog,50,50,60,60")
    pred = write_csv("pred.csv", "a.png,cat,0,0,10,10,0.9", "a.png,dog,50,50,60,60,0.9")
    swapped = evaluate(gt, pred, class_map={"cat": "dog", "dog": "cat"})
    assert swapped["AP"] == 0.0
    assert swapped.signature != evaluate(gt, pred).signature


def test_operating_points_are_measured_where_a_score_is_given() -> None:
    pred = _table(BOX, [80.0, 80.0, 5.0, 5.0], score=[0.9, 0.3])
    assert evaluate(_table(BOX, OTHER), pred, iou=[0.5]).operating_points == ()
    (point,) = evaluate(_table(BOX, OTHER), pred, iou=[0.5], score=0.2).operating_points
    assert (point.tp, point.fp, point.fn) == (1, 1, 1)
    assert (point.precision, point.recall, point.f1) == (0.5, 0.5, 0.5)
    (best,) = evaluate(_table(BOX, OTHER), pred, iou=[0.5], score="best-f1").operating_points
    assert (best.score, best.tp, best.fp, best.fn) == (0.9, 1, 0, 1)


def test_findings_of_both_inputs_and_of_their_comparison_are_kept(write_csv: Writer) -> None:
    row = "a.png,cat,0,0,10,10"
    result = evaluate(
        write_csv("gt.csv", row, row), write_csv("pred.csv", f"{row},0.9", f"{row},0.9", "a.png,zebra,0,0,5,5,0.1")
    )
    assert [finding.code for finding in result.findings] == ["class-unknown", "gt-duplicate", "pred-duplicate"]


def test_the_public_names_can_all_be_reached() -> None:
    assert [name for name in jaccard_eval.__all__ if not hasattr(jaccard_eval, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        jaccard_eval.evalute  # noqa: B018


@pytest.mark.parametrize("n_pred", [0, 1])
def test_arrays_without_ground_truth_have_undefined_metrics(n_pred: int) -> None:
    gt = BoxTable.from_arrays([], [], np.zeros((0, 4)))
    pred = BoxTable.from_arrays([0] * n_pred, [0] * n_pred, np.tile([0, 0, 1, 1], (n_pred, 1)), score=[0.5] * n_pred)
    result = evaluate(gt, pred, score="best-f1")
    assert math.isnan(result["AP"])
    assert result.metrics["AP"].reason == "no ground truth"
    assert result.curves.precision.shape == (10, 101, 0, 4, 3)
