"""Overlap of boxes: drawn by hand, and bit for bit against the C code of pycocotools."""

import numpy as np
import pytest
from pycocotools import mask

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs

Box = tuple[float, float, float, float]  # left, top, width, height

NONE: list[float] = []


def overlap(
    first: Box, second: Box, *, crowd: bool = False, threshold: float = 0.0, offset: float = 0.0
) -> list[float]:
    """Overlap of one pair as a list, empty where there is none."""
    one, other = (Corners.of(np.array([box], dtype=np.float64), offset) for box in (first, second))
    row = np.array([0])
    return overlapping_pairs(one, other, row, row, crowd=np.array([crowd]), threshold=threshold)[2].tolist()


def test_iou_is_intersection_over_union() -> None:
    # 10 x 10 shifted by 5: intersection 5 * 10 = 50, union 100 + 100 - 50 = 150.
    assert overlap((0, 0, 10, 10), (5, 0, 10, 10)) == [50 / 150]


def test_iou_of_a_box_with_itself_is_one() -> None:
    assert overlap((3, 4, 10, 20), (3, 4, 10, 20)) == [1.0]


@pytest.mark.parametrize("other", [(10, 0, 10, 10), (0, 10, 10, 10), (10, 10, 10, 10), (-10, 0, 10, 10)])
def test_boxes_that_touch_do_not_overlap(other: Box) -> None:
    assert overlap((0, 0, 10, 10), other) == NONE


@pytest.mark.parametrize("other", [(50, 0, 10, 10), (0, 50, 10, 10)])
def test_boxes_apart_do_not_overlap(other: Box) -> None:
    assert overlap((0, 0, 10, 10), other) == NONE


@pytest.mark.parametrize(
    "flat", [(2, 2, 0, 5), (2, 2, 5, 0), (2, 2, 0, 0), (2, 2, -1, 5), (2, 2, 5, -1), (2, 2, -1, -1)]
)
def test_boxes_without_a_positive_side_overlap_nothing(flat: Box) -> None:
    assert overlap(flat, (0, 0, 10, 10)) == NONE
    assert overlap((0, 0, 10, 10), flat) == NONE


def test_overlap_with_a_crowd_is_over_the_area_of_the_first_box() -> None:
    # 5 x 5 inside 600 x 600: IoU would be 25 / 360000.
    assert overlap((10, 10, 5, 5), (0, 0, 600, 600), crowd=True) == [1.0]
    assert overlap((10, 10, 5, 5), (0, 0, 600, 600)) == [25 / 360000]


def test_overlap_with_a_crowd_may_not_be_turned_around() -> None:
    # The detection is the larger box here: 25 / 360000 of it lies in the crowd.
    assert overlap((0, 0, 600, 600), (10, 10, 5, 5), crowd=True) == [25 / 360000]


def test_a_threshold_is_inclusive() -> None:
    # 10 x 5 in 10 x 10: 50 / 100.
    assert overlap((0, 0, 10, 5), (0, 0, 10, 10), threshold=0.5) == [0.5]
    assert overlap((0, 0, 10, 5), (0, 0, 10, 10), threshold=float(np.nextafter(0.5, 1.0))) == NONE


def test_a_pixel_offset_widens_both_sides_of_both_boxes() -> None:
    # 9 x 4 and 9 x 9 become 10 x 5 and 10 x 10: 50 / 100 instead of 36 / 81.
    assert overlap((0, 0, 9, 4), (0, 0, 9, 9), offset=1.0) == [0.5]
    assert overlap((0, 0, 9, 4), (0, 0, 9, 9)) == [36 / 81]


def test_a_pixel_offset_makes_boxes_that_share_a_column_overlap() -> None:
    # Columns 0..10 and 10..20 share column 10: 1 * 11 of 11 * 11 + 11 * 11 - 11 pixels.
    assert overlap((0, 0, 10, 10), (10, 0, 10, 10), offset=1.0) == [11 / 231]


def test_sides_start_from_left_and_width_so_that_no_bit_is_lost() -> None:
    # 0.1 + 0.2 is 0.30000000000000004: the right side reaches one ulp beyond 0.3 and the boxes overlap by that much.
    assert overlap((0.1, 0, 0.2, 1), (0.3, 0, 1, 1)) != NONE


def test_areas_that_round_to_zero_give_no_overlap_and_no_warning() -> None:
    assert overlap((0, 0, 1e-170, 1e-170), (0, 0, 1e-170, 1e-170)) == NONE


def test_pairs_keep_their_order_and_only_their_own_overlap() -> None:
    boxes = Corners.of(np.array([(0, 0, 10, 10), (100, 0, 10, 10), (5, 0, 10, 10)], dtype=np.float64))
    i, j, values = overlapping_pairs(boxes, boxes, np.array([2, 0, 0, 1]), np.array([0, 1, 0, 1]))
    assert (i.tolist(), j.tolist(), values.tolist()) == ([2, 0, 1], [0, 0, 1], [50 / 150, 1.0, 1.0])


@pytest.mark.parametrize("grid", [1.0, 0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("crowded", [False, True])
def test_every_bit_is_that_of_pycocotools(grid: float, crowded: bool) -> None:
    rng = np.random.default_rng(20)
    first, second = (np.round(rng.uniform(-5, 20, (120, 4)) / grid) * grid for _ in range(2))
    crowd = (rng.random(len(second)) < 0.5) & crowded
    assert _all_pairs(first, second, crowd).tobytes() == _peer(first, second, crowd).tobytes()


def _all_pairs(first: FloatArray, second: FloatArray, crowd: np.ndarray) -> FloatArray:
    i, j = (side.ravel() for side in np.indices((len(first), len(second))))
    i, j, values = overlapping_pairs(Corners.of(first), Corners.of(second), i, j, crowd=crowd)
    full = np.zeros((len(first), len(second)))
    full[i, j] = values
    return full


def _peer(first: FloatArray, second: FloatArray, crowd: np.ndarray) -> FloatArray:
    return np.ascontiguousarray(mask.iou(first, second, crowd.astype(np.uint8).tolist()))
