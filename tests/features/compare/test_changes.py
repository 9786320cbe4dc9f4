"""What becomes of ground-truth boxes between two predictions, each case a picture of its own."""

import math

import pytest
from pictures import Picture, det, evaluate, gt

from jaccard_eval.features.compare import BoxState, Change
from jaccard_eval.features.compare.comparison import Judged, box_changes

AT_50 = 0  # the first threshold of COCO
CLASSES = ("cat", "dog")
CAT = gt("cat 500 500 9 9")  # present everywhere, so that both tables know both classes
ON_CAT = det("cat 500 500 9 9", 0.9)
DOG = gt("dog 0 0 10 10")
ON_DOG = det("dog 0 0 10 10", 0.9)


def changes(
    before: list[Picture], after: list[Picture], *, truth: Picture = DOG, score: float = 0.0, moved_iou: float = 0.05
) -> tuple[Change, ...]:
    results = [evaluate([truth, CAT], [*detections, ON_CAT]) for detections in (before, after)]
    return box_changes(
        *(Judged.of(result, score) for result in results),
        threshold=AT_50,
        image_names=("a",),
        class_names=CLASSES,
        moved_iou=moved_iou,
    )


def kinds(before: list[Picture], after: list[Picture], **options: float) -> list[str]:
    return [str(one.kind) for one in changes(before, after, **options)]  # type: ignore[arg-type]


def test_what_both_treat_alike_is_no_change() -> None:
    assert kinds([ON_DOG], [ON_DOG]) == []
    assert kinds([], []) == []


def test_a_box_is_lost_and_found_again() -> None:
    assert kinds([ON_DOG], []) == ["lost"]
    assert kinds([], [ON_DOG]) == ["found"]


def test_a_detection_below_the_score_finds_nothing() -> None:
    assert kinds([ON_DOG], [det("dog 0 0 10 10", 0.4)], score=0.5) == ["lost"]
    assert kinds([ON_DOG], [det("dog 0 0 10 10", 0.5)], score=0.5) == []


def test_a_detection_of_another_class_in_its_place_is_a_reclassification() -> None:
    as_cat = det("cat 0 0 10 10", 0.7)
    (change,) = changes([ON_DOG], [as_cat])
    assert (str(change.kind), change.image, change.class_name, change.row) == ("reclassified", "a", "dog", 0)
    assert change.xywh == (0.0, 0.0, 10.0, 10.0)
    assert change.before == BoxState(predicted="dog", score=0.9, iou=1.0, duplicates=0)
    assert change.after == BoxState(predicted="cat", score=0.7, iou=1.0, duplicates=0)
    assert kinds([as_cat], [ON_DOG]) == ["reclassified"]


def test_a_box_that_was_taken_for_another_class_and_is_now_missed_is_no_loss() -> None:
    assert kinds([det("cat 0 0 10 10", 0.7)], []) == []


def test_a_detection_that_is_right_elsewhere_reclassifies_nothing() -> None:
    # The cat's own box lies at IoU 8/12 with the dog: its detection belongs to the cat.
    results = [
        evaluate([DOG, gt("cat 2 0 10 10")], [*more, det("cat 2 0 10 10", 0.9)]) for more in ([ON_DOG], list[Picture]())
    ]
    (change,) = box_changes(
        *(Judged.of(result, 0.0) for result in results), threshold=AT_50, image_names=("a",), class_names=CLASSES
    )
    assert (str(change.kind), change.after.predicted) == ("lost", "")
    assert math.isnan(change.after.iou)


def test_a_second_detection_of_a_found_box_is_a_duplicate() -> None:
    twice = [ON_DOG, det("dog 0 0 10 9", 0.8), det("dog 0 0 10 8", 0.7)]
    (change,) = changes([ON_DOG], twice)
    assert (str(change.kind), change.before.duplicates, change.after.duplicates) == ("duplicated", 0, 2)
    assert kinds(twice, [ON_DOG]) == ["deduplicated"]


def test_a_detection_that_overlaps_too_little_is_no_duplicate() -> None:
    assert kinds([ON_DOG], [ON_DOG, det("dog 0 0 10 4", 0.8)]) == []  # IoU 0.4


def test_a_move_is_a_change_of_iou_that_is_large_enough() -> None:
    # 8 of 10 rows: IoU 0.8 instead of 1.
    moved = [det("dog 0 0 10 8", 0.9)]
    (change,) = changes([ON_DOG], moved)
    assert (str(change.kind), change.before.iou, change.after.iou) == ("moved", 1.0, pytest.approx(0.8))
    assert kinds([ON_DOG], moved, moved_iou=0.25) == []


def test_a_box_can_move_and_be_duplicated() -> None:
    assert kinds([ON_DOG], [det("dog 0 0 10 8", 0.9), det("dog 0 0 10 7", 0.8)]) == ["duplicated", "moved"]


def test_ground_truth_that_does_not_count_does_not_change() -> None:
    assert changes([ON_DOG], [], truth=gt("dog 0 0 10 10", crowd=True)) == ()


def test_pooled_classes_are_not_reclassified() -> None:
    results = [evaluate([DOG], [one], class_agnostic=True) for one in (ON_DOG, det("cat 0 0 10 10", 0.9))]
    found = box_changes(
        *(Judged.of(result, 0.0) for result in results),
        threshold=AT_50,
        image_names=("a",),
        class_names=("all classes",),
    )
    assert found == ()
