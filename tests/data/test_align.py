import pytest
from two_sides import classes, gt, images, pred

from jaccard_eval.data.alignment import Alignment, align
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.options import SideOptions


def _align(ours: Dataset, theirs: Dataset, **options: object) -> Alignment:
    return align(ours, theirs, SideOptions(**options))  # type: ignore[arg-type]


def _rows(aligned: Alignment, side: str) -> list[tuple[str, str, list[float]]]:
    boxes = getattr(aligned, side)
    names = aligned.image_names, aligned.class_names
    columns = zip(boxes.image, boxes.label, boxes.xywh.tolist(), strict=True)
    return [(names[0][image], names[1][label], xywh) for image, label, xywh in columns]


def test_predictions_come_out_in_the_rows_of_the_ground_truth() -> None:
    ours = gt(["1 3 0 0 9 9"], images=images("1=a.png 2=b.png"), classes=classes("2=cat 3=dog"))
    theirs = pred(["b.png cat 5 5 1 1", "a.png dog 0 0 8 8"])
    aligned = _align(ours, theirs)
    assert _rows(aligned, "gt") == [("a.png", "dog", [0, 0, 9, 9])]
    assert _rows(aligned, "pred") == [("b.png", "cat", [5, 5, 1, 1]), ("a.png", "dog", [0, 0, 8, 8])]
    assert aligned.findings == ()


def test_what_corresponds_is_told() -> None:
    ours = gt(["a.png dog 0 0 9 9", "b.png cat 0 0 9 9"], images=images("a.png b.png c.png"))
    theirs = pred(["a.png dog 0 0 9 9", "z.png bird 0 0 9 9"])
    told = _align(ours, theirs, extra_images="ignore").correspondence
    assert (told.image_strategy, told.class_strategy, told.matched_images) == ("id", "name", 1)
    assert (told.n_gt_only_images, told.gt_only_images) == (2, ("b.png", "c.png"))
    assert (told.n_pred_only_images, told.pred_only_images) == (1, ("z.png",))
    assert told.classes == (("dog", "dog"),)
    assert (told.gt_only_classes, told.pred_only_classes) == (("cat",), ("bird",))


def test_extra_images_that_are_counted_are_among_the_images() -> None:
    ours = gt(["b.png dog 0 0 9 9"], images=images("b.png", listed=False))
    aligned = _align(ours, pred(["a.png dog 1 1 9 9", "b.png dog 0 0 9 9"]))
    assert aligned.image_names == ("a.png", "b.png")
    assert _rows(aligned, "gt") == [("b.png", "dog", [0, 0, 9, 9])]
    assert _rows(aligned, "pred") == [("a.png", "dog", [1, 1, 9, 9]), ("b.png", "dog", [0, 0, 9, 9])]


def test_predictions_on_extra_images_that_are_ignored_are_left_out() -> None:
    aligned = _align(gt(["1 dog 0 0 9 9"]), pred(["1 dog 0 0 9 9", "2 dog 0 0 9 9"]), extra_images="ignore")
    assert _rows(aligned, "pred") == [("1", "dog", [0, 0, 9, 9])]


def test_predictions_of_unknown_classes_are_set_aside_and_counted() -> None:
    theirs = pred(["1 zebra 0 0 9 9", "1 dog 0 0 9 9", "1 zebra 5 5 9 9", "1 gnu 0 0 9 9"])
    aligned = _align(gt(["1 dog 0 0 9 9"]), theirs)
    (warning,) = aligned.findings
    assert len(aligned.pred) == 1
    assert (warning.severity, warning.code) == (Severity.WARNING, "class-unknown")
    assert "pred.file: class: 3 predictions of 2 classes not in the ground truth" in warning.message
    assert "'zebra', 'gnu'" in warning.message


def test_unknown_classes_without_predictions_are_not_worth_a_warning() -> None:
    theirs = pred(["1 dog 0 0 9 9"], classes=classes("dog zebra"))
    assert _align(gt(["1 dog 0 0 9 9"]), theirs).findings == ()


def test_no_class_in_common_is_an_error_with_both_sides_and_the_fix() -> None:
    ours = gt(["1 17 0 0 9 9"], classes=classes("17=cat 18=dog"))
    theirs = pred(["1 0 0 0 9 9", "1 1 0 0 9 9"], classes=classes("0 1", named=False))
    with pytest.raises(DataError) as caught:
        _align(ours, theirs)
    assert str(caught.value) == (
        "error[class-none]: pred.file: class: no prediction class is in the ground truth: predictions "
        "have '0', '1', ground truth has 'cat', 'dog' (ids 17, 18). "
        "Name the classes by index with --pred-names or --gt-names, or map them with --class-map."
    )


def test_category_ids_counted_from_0_lose_the_first_class_with_a_warning() -> None:
    ours = gt(["1 1 0 0 9 9", "1 2 0 0 9 9"], classes=classes("1=cat 2=dog"))
    theirs = pred(["1 0 0 0 9 9", "1 1 0 0 9 9"], classes=classes("0 1", named=False))
    (warning,) = _align(ours, theirs).findings
    assert "not in the ground truth ignored" in warning.message
    assert "'0'" in warning.message


def test_chosen_classes_are_renumbered_in_the_order_of_the_ground_truth() -> None:
    ours = gt(["1 ant 0 0 1 1", "1 bee 0 0 2 2", "1 cat 0 0 3 3"])
    theirs = pred(["1 cat 0 0 3 3", "1 ant 0 0 1 1", "1 bee 0 0 2 2"])
    aligned = _align(ours, theirs, classes=("cat", "ant"))
    assert aligned.class_names == ("ant", "cat")
    assert _rows(aligned, "gt") == [("1", "ant", [0, 0, 1, 1]), ("1", "cat", [0, 0, 3, 3])]
    assert _rows(aligned, "pred") == [("1", "cat", [0, 0, 3, 3]), ("1", "ant", [0, 0, 1, 1])]


def test_excluded_classes_are_left_out() -> None:
    boxes = ["1 ant 0 0 1 1", "1 bee 0 0 2 2"]
    aligned = _align(gt(boxes), pred(boxes), exclude_classes=("ant",))
    assert aligned.class_names == ("bee",)
    assert _rows(aligned, "pred") == [("1", "bee", [0, 0, 2, 2])]


def test_classes_that_do_not_exist_are_refused_with_a_suggestion() -> None:
    sides = gt(["1 dog 0 0 9 9"]), pred(["1 dog 0 0 9 9"])
    with pytest.raises(UsageError, match=r"unknown class 'dgo' in the ground truth\. Did you mean 'dog'"):
        _align(*sides, classes=("dgo",))
    with pytest.raises(UsageError, match="unknown class 'cat'"):
        _align(*sides, exclude_classes=("cat",))
    with pytest.raises(UsageError, match="leave no class to evaluate"):
        _align(*sides, exclude_classes=("dog",))


SIZED = images("1", sizes={1: (200.0, 100.0)})


def test_fractions_become_pixels_by_the_sizes_of_the_other_side() -> None:
    aligned = _align(
        gt(["1 dog 20 10 100 50"], images=SIZED),
        pred(["1 dog 0.1 0.1 0.5 0.5"], units="norm"),
    )
    assert aligned.units == "px"
    assert _rows(aligned, "pred") == [("1", "dog", [20, 10, 100, 50])]  # 0.1 · 200, 0.1 · 100, 0.5 · 200, 0.5 · 100
    assert aligned.pred.area.tolist() == [5000]


def test_fractions_of_the_ground_truth_become_pixels_by_the_sizes_of_the_predictions() -> None:
    aligned = _align(
        gt(["1 dog 0.1 0.1 0.5 0.5"], units="norm"),
        pred(["1 dog 20 10 100 50"], images=SIZED),
    )
    assert aligned.units == "px"
    assert _rows(aligned, "gt") == [("1", "dog", [20, 10, 100, 50])]
    assert aligned.gt.area.tolist() == [5000]


def test_fractions_stay_where_both_sides_have_them() -> None:
    aligned = _align(gt(["1 dog 0.1 0.1 0.5 0.5"], units="norm"), pred(["1 dog 0.1 0.1 0.5 0.5"], units="norm"))
    assert aligned.units == "norm"
    assert aligned.gt.xywh.tolist() == aligned.pred.xywh.tolist() == [[0.1, 0.1, 0.5, 0.5]]


def test_fractions_beside_pixels_need_the_sizes_of_the_images() -> None:
    theirs = pred(["1 dog 0.1 0.1 0.5 0.5", "2 dog 0 0 0.5 0.5"], units="norm")
    ours = gt(["1 dog 20 10 100 50"], images=images("1=a.png 2=b.png", sizes={1: (200, 100)}))
    with pytest.raises(DataError) as caught:
        _align(ours, theirs)
    message = str(caught.value)
    assert "the width and height of 1 image are not known: 'b.png'" in message
    assert "-images DIR" in message


def test_sizes_are_needed_only_where_there_are_boxes() -> None:
    ours = gt(["1 dog 20 10 100 50"], images=images("1 2", sizes={1: (200, 100)}))
    assert _align(ours, pred(["1 dog 0.1 0.1 0.5 0.5"], units="norm")).units == "px"


def test_nothing_is_changed_in_the_inputs() -> None:
    ours, theirs = gt(["1 dog 20 10 100 50"], images=SIZED), pred(["1 dog 0.1 0.1 0.5 0.5"], units="norm")
    aligned = _align(ours, theirs)
    assert theirs.boxes.xywh.tolist() == [[0.1, 0.1, 0.5, 0.5]]
    assert not aligned.pred.xywh.flags.writeable
    assert not aligned.gt.image.flags.writeable


def test_fractions_that_are_only_guessed_are_compared_as_pixels_with_a_warning_where_sizes_are_unknown() -> None:
    theirs = pred(["1 dog 0.1 0.1 0.5 0.5"], units="norm", units_guessed=True)
    aligned = _align(gt(["1 dog 20 10 100 50"]), theirs)
    (warning,) = aligned.findings
    assert (aligned.units, warning.code) == ("px", "units-mixed")
    assert "compared as if they were pixels" in warning.message
    assert aligned.pred.xywh.tolist() == [[0.1, 0.1, 0.5, 0.5]]
