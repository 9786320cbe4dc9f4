"""`images_in_common`: only images that both sides list, counted, and refused where a side does not list its images."""

from dataclasses import replace

import pytest
from two_sides import classes, gt, images, pred

from jaccard_eval.data.alignment import Alignment, align
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError
from jaccard_eval.options import SideOptions

OURS = gt(["a dog 0 0 9 9", "b dog 0 0 9 9", "b dog 20 0 9 9", "c dog 0 0 9 9"], images=images("a b c d"))
THEIRS = pred(["b dog 1 0 9 9", "c dog 2 0 9 9", "e dog 3 0 9 9"], images=images("b c d e f"))


def _align(ours: Dataset, theirs: Dataset, **options: object) -> Alignment:
    return align(ours, theirs, SideOptions(images_in_common=True, **options))  # type: ignore[arg-type]


def test_images_of_one_side_are_left_out_with_their_boxes() -> None:
    aligned = _align(OURS, THEIRS)
    assert aligned.image_names == ("b", "c", "d")
    assert (aligned.gt.image.tolist(), aligned.gt.xywh[:, 0].tolist()) == ([0, 0, 1], [0, 20, 0])
    assert (aligned.pred.image.tolist(), aligned.pred.xywh[:, 0].tolist()) == ([0, 1], [1, 2])
    told = aligned.correspondence
    assert (told.matched_images, told.gt_only_images, told.pred_only_images) == (3, ("a",), ("e", "f"))


def test_what_either_side_loses_is_counted_in_a_warning() -> None:
    (warning,) = _align(OURS, THEIRS).findings
    assert str(warning) == (
        "warning[images-in-common]: pred.file: image: 3 images are on both sides. Ignored: 1 image of gt.file with 1"
        " object ('a'); 2 images of pred.file with 1 prediction ('e', 'f')"
    )


def test_nothing_is_said_where_nothing_is_left_out() -> None:
    same = pred(["b dog 1 0 9 9"], images=images("a b c d"))
    aligned = _align(OURS, same)
    assert (aligned.findings, len(aligned.gt), len(aligned.image_names)) == ((), 4, 4)


@pytest.mark.parametrize("match_images", [None, "stem"])
def test_images_correspond_as_they_always_do(match_images: str | None) -> None:
    ours = gt([], images=images("1=a.png 2=b.png 3=c.png"), classes=classes("dog"))
    theirs = pred(["c.jpg dog 0 0 9 9", "a.jpg dog 0 0 9 9"], images=images("a.jpg c.jpg"))
    aligned = _align(ours, theirs, match_images=match_images)
    assert aligned.image_names == ("a.png", "c.png")
    assert aligned.placement.pred.image.tolist() == [1, 0]


def test_names_that_explain_all_of_the_smaller_side_will_do() -> None:
    theirs = pred(["x.jpg dog 0 0 9 9", "y.jpg dog 0 0 9 9", "a.jpg dog 0 0 9 9"])
    aligned = _align(gt([], images=images("1=a.png"), classes=classes("dog")), theirs)
    assert (aligned.correspondence.image_strategy, aligned.image_names) == ("stem", ("a.png",))


@pytest.mark.parametrize("side", ["gt", "pred"])
def test_a_side_that_does_not_list_its_images_is_refused(side: str) -> None:
    ours = gt(["a dog 0 0 9 9"], images=images("a b", listed=side != "gt"))
    theirs = pred(["a dog 0 0 9 9"], images=images("a b", listed=side != "pred"))
    with pytest.raises(UsageError, match=rf"^{side}.file: images in common need all images.* --{side}-images DIR"):
        _align(ours, theirs)


def test_arrays_beside_a_file_end_with_the_last_image_that_has_a_box() -> None:
    arrays = replace(THEIRS, format="arrays")
    with pytest.raises(UsageError, match="lists only images with boxes"):
        _align(OURS, arrays)
    assert _align(replace(OURS, format="arrays"), arrays).image_names == ("b", "c", "d")


def test_no_image_in_common_is_an_error() -> None:
    theirs = pred([], images=images("y z"))
    with pytest.raises(DataError, match="0 of 0 prediction images match"):
        _align(OURS, theirs)
    with pytest.raises(DataError, match="0 of 1 prediction images match"):
        _align(OURS, pred(["z dog 0 0 9 9"]), match_images="name")


def test_to_count_extra_images_and_to_leave_them_out_is_refused() -> None:
    with pytest.raises(UsageError, match="pass one of them"):
        SideOptions(images_in_common=True, extra_images="empty")
