"""Suppression: drawn by hand, against serving boxes one by one as the papers say, and by its laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import Picture, det

from jaccard_eval import BoxTable, UsageError, box_ioa, box_iou, nms, soft_nms, weighted_nms
from jaccard_eval.features import nms as suppression
from jaccard_eval.features.nms import Suppression, suppress

SQUARE = [0, 0, 10, 10]
SHIFTED = [2, 0, 12, 10]  # IoU with the square 80 / 120 = 2/3
APART = [50, 50, 60, 60]
PART = [0, 0, 5, 5]  # a quarter of the square: IoU 1/4, coverage 1

COORDINATES = st.integers(0, 20)
SIDES = st.integers(1, 12)
SCORES = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9])  # few, so that there are ties
ROWS = st.lists(st.tuples(COORDINATES, COORDINATES, SIDES, SIDES, SCORES, st.integers(0, 1)), max_size=14)
MEASURES = {"iou": box_iou, "ioa": lambda a, b: box_ioa(a, b, over="smaller")}


def table(*pictures: Picture, images: str = "ab", names: str = "cat dog") -> BoxTable:
    return BoxTable.from_arrays(
        [images.index(one.image) for one in pictures],
        [names.split().index(one.name) for one in pictures],
        [one.xywh for one in pictures],
        score=[one.score for one in pictures],
        encoding="xywh",
    )


def test_the_best_of_overlapping_boxes_stays() -> None:
    assert nms([SHIFTED, SQUARE, APART], [0.8, 0.9, 0.7], iou=0.6).tolist() == [1, 2]


def test_boxes_at_the_threshold_both_stay() -> None:
    assert nms([SQUARE, SHIFTED], [0.9, 0.8], iou=80 / 120).tolist() == [0, 1]
    assert nms([SQUARE, SHIFTED], [0.9, 0.8], iou=math.nextafter(80 / 120, 0)).tolist() == [0]


def test_of_equal_scores_the_earlier_row_stays_and_comes_first() -> None:
    assert nms([APART, SHIFTED, SQUARE], [0.5, 0.5, 0.5], iou=0.6).tolist() == [0, 1]


def test_a_removed_box_removes_nothing() -> None:
    # Each overlaps the next by 2/3; the first and the third by 60 / 140 only.
    assert nms([[0, 0, 10, 10], [2, 0, 12, 10], [4, 0, 14, 10]], [0.9, 0.8, 0.7], iou=0.6).tolist() == [0, 2]


def test_coverage_removes_a_part_that_iou_leaves() -> None:
    assert nms([SQUARE, PART], [0.9, 0.8]).tolist() == [0, 1]
    assert nms([SQUARE, PART], [0.9, 0.8], by="ioa").tolist() == [0]
    assert nms([PART, SQUARE], [0.9, 0.8], by="ioa").tolist() == [0]


def test_classes_and_images_do_not_touch_each_other() -> None:
    boxes, scores = [SQUARE] * 3, [0.9, 0.8, 0.7]
    assert nms(boxes, scores, labels=["cat", "dog", "cat"]).tolist() == [0, 1]
    assert nms(boxes, scores, images=[1, 1, 7]).tolist() == [0, 2]
    assert nms(boxes, scores, labels=[0, 1, 1], images=[0, 0, 1]).tolist() == [0, 1, 2]


def test_no_boxes_stay_no_boxes() -> None:
    assert nms([], []).tolist() == []
    assert [part.tolist() for part in soft_nms([], [])] == [[], []]
    assert [part.tolist() for part in weighted_nms([], [])] == [[], []]


def test_linear_decay_multiplies_by_what_does_not_overlap() -> None:
    rows, scores = soft_nms([SQUARE, SHIFTED, APART], [0.9, 0.6, 0.3], method="linear")
    assert rows.tolist() == [0, 2, 1]
    assert scores == pytest.approx([0.9, 0.3, 0.6 * (1 - 2 / 3)])


def test_linear_decay_leaves_what_overlaps_no_more_than_the_threshold() -> None:
    assert soft_nms([SQUARE, PART], [0.9, 0.8], method="linear")[1].tolist() == [0.9, 0.8]


def test_gaussian_decay_has_no_threshold() -> None:
    rows, scores = soft_nms([SQUARE, PART], [0.9, 0.8], sigma=0.5)
    assert rows.tolist() == [0, 1]
    assert scores == pytest.approx([0.9, 0.8 * math.exp(-((1 / 4) ** 2) / 0.5)])


def test_a_decayed_box_is_served_by_its_new_score() -> None:
    # The second falls to .8/3 below the third (.5), which then lowers it again; the third meets only the second.
    boxes = [[0, 0, 10, 10], [2, 0, 12, 10], [4, 0, 14, 10]]
    rows, scores = soft_nms(boxes, [0.9, 0.8, 0.5], method="linear")
    assert rows.tolist() == [0, 2, 1]
    assert scores == pytest.approx([0.9, 0.5, 0.8 / 3 / 3])


def test_boxes_that_decay_below_the_least_score_are_left_out() -> None:
    assert soft_nms([SQUARE, SQUARE], [0.9, 0.8], method="linear")[0].tolist() == [0]
    assert soft_nms([SQUARE, SHIFTED], [0.9, 0.6], method="linear", score_min=0.3)[0].tolist() == [0]


def test_a_merged_box_is_the_mean_of_its_cluster_weighted_by_scores() -> None:
    # Weights 3 : 1 of x 0 and 2, 10 and 12.
    rows, boxes = weighted_nms([SHIFTED, SQUARE, APART], [0.2, 0.6, 0.1])
    assert rows.tolist() == [1, 2]
    assert boxes == pytest.approx(np.array([[0.5, 0, 10.5, 10], APART]))


def test_a_removed_box_belongs_to_the_best_that_removed_it() -> None:
    # The middle one overlaps both others by 60 / 140; they overlap each other by 20 / 180.
    boxes = [[0, 0, 10, 10], [8, 0, 18, 10], [4, 0, 14, 10]]
    _, merged = weighted_nms(boxes, [0.9, 0.8, 0.3], iou=0.4)
    assert merged == pytest.approx(np.array([[1, 0, 11, 10], [8, 0, 18, 10]]))


def test_clusters_without_any_weight_stay() -> None:
    assert weighted_nms([SQUARE, SHIFTED], [0, 0])[1].tolist() == [SQUARE]


def test_a_table_keeps_its_order_and_its_columns() -> None:
    boxes = table(
        det("cat 0 0 10 10", 0.8, "b"),
        det("dog 0 0 10 10", 0.7),
        det("cat 2 0 10 10", 0.9, "b"),
        det("cat 0 0 10 10", 0.1),
    )
    kept = suppress(boxes, Suppression(iou=0.6))
    assert kept.source.tolist() == [1, 2, 3]
    assert suppress(boxes, Suppression(iou=0.6), class_agnostic=True).source.tolist() == [1, 2]
    assert kept.xywh.tolist() == boxes.xywh[1:].tolist()


def test_a_box_of_negative_size_has_no_rivals() -> None:
    boxes = table(det("cat 5 5 -5 5", 0.9), det("cat 0 0 10 10", 0.8), det("cat 0 0 10 10", 0.7))
    for limit in (200, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(suppression, "SWEEP_PAIRS_PER_BOX", limit)
            assert suppress(boxes, Suppression()).source.tolist() == [0, 1]


@given(ROWS, st.sampled_from([0.0, 0.3, 0.5]), st.sampled_from(["iou", "ioa"]))
def test_hard_suppression_is_that_of_serving_one_by_one(rows: list, iou: float, by: str) -> None:
    boxes, scores, labels = unpacked(rows)
    expected = serve_hard(boxes, scores, labels, iou, by)
    assert nms(boxes, scores, labels=labels, iou=iou, by=by).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suppression, "SWEEP_PAIRS_PER_BOX", 0)
        assert nms(boxes, scores, labels=labels, iou=iou, by=by).tolist() == expected


@given(ROWS, st.sampled_from(["linear", "gaussian"]), st.sampled_from(["iou", "ioa"]))
def test_soft_suppression_is_that_of_serving_one_by_one(rows: list, method: str, by: str) -> None:
    boxes, scores, labels = unpacked(rows)
    expected = serve_soft(boxes, scores, labels, method, by)
    kept, decayed = soft_nms(boxes, scores, labels=labels, method=method, by=by, iou=0.3, score_min=0)
    assert decayed == pytest.approx(np.sort(expected)[::-1], abs=1e-12)
    assert expected[kept] == pytest.approx(decayed, abs=1e-12)


@given(ROWS)
def test_suppression_twice_is_suppression_once(rows: list) -> None:
    boxes, scores, _ = unpacked(rows)
    kept = nms(boxes, scores)
    assert nms(boxes[kept], scores[kept]).tolist() == list(range(len(kept)))


@given(ROWS)
def test_merged_boxes_lie_within_the_hull_of_all(rows: list) -> None:
    boxes, scores, _ = unpacked(rows)
    kept, merged = weighted_nms(boxes, scores, iou=0.2)
    assert kept.tolist() == nms(boxes, scores, iou=0.2).tolist()
    if len(rows):
        assert (merged[:, :2] >= boxes[:, :2].min(axis=0) - 1e-12).all()
        assert (merged[:, 2:] <= boxes[:, 2:].max(axis=0) + 1e-12).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": [0.5]}, r"scores must be 2 finite numbers"),
        ({"scores": [0.5, math.nan]}, "finite"),
        ({"scores": ["a", "b"]}, "scores must be"),
        ({"labels": [1]}, r"labels has shape \(1,\); expected \(2,\)"),
        ({"images": [1, 2, 3]}, r"images has shape \(3,\)"),
        ({"iou": 1.5}, "must be between 0 and 1"),
        ({"iou": math.nan}, "must be between 0 and 1"),
        ({"by": "giou"}, "by is 'giou'; choose from iou, ioa. Did you mean 'iou'"),
        ({"boxes": [[1, 1, 0, 0], SQUARE]}, r"boxes\[0\]"),
    ],
)
def test_what_cannot_be_suppressed_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nms(**{"boxes": [SQUARE, APART], "scores": [0.9, 0.8], **options})


def test_scores_that_cannot_decay_or_weigh_are_refused() -> None:
    for call in (soft_nms, weighted_nms):
        with pytest.raises(UsageError, match="scores of at least 0"):
            call([SQUARE], [-0.5])
    with pytest.raises(UsageError, match="choose from gaussian, linear"):
        soft_nms([SQUARE], [0.5], method="hard")
    with pytest.raises(UsageError, match="sigma must be a positive number"):
        soft_nms([SQUARE], [0.5], sigma=0)
    with pytest.raises(UsageError, match="have none"):
        suppress(BoxTable.from_arrays([0], [0], [SQUARE]), Suppression())


def unpacked(rows: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.array(rows, dtype=np.float64).reshape(-1, 6)
    boxes = np.hstack((values[:, :2], values[:, :2] + values[:, 2:4]))
    return boxes, values[:, 4], values[:, 5]


def serve_hard(boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, iou: float, by: str) -> list[int]:
    """Take the best box that is left, remove its rivals, go on."""
    overlap = MEASURES[by](boxes, boxes)
    left = sorted(range(len(boxes)), key=lambda row: (-scores[row], row))
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [row for row in left if labels[row] != labels[best] or overlap[best, row] <= iou]
    return kept


def serve_soft(boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, method: str, by: str) -> np.ndarray:
    """Take the best box that is left by its present score, decay its rivals, go on (Bodla et al., figure 2)."""
    overlap = MEASURES[by](boxes, boxes)
    scores = scores.copy()
    left = list(range(len(boxes)))
    while left:
        best = max(left, key=lambda row: (scores[row], -row))
        left.remove(best)
        for row in left:
            if labels[row] == labels[best]:
                value = overlap[best, row]
                linear = 1 - value if value > 0.3 else 1
                scores[row] *= linear if method == "linear" else math.exp(-(value**2) / 0.5)
    return scores
