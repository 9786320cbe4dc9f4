import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.errors import UsageError
from jaccard_eval.features.scale.identities import MOVES, SURVIVABLE, displaced_box_iou, displaced_iou, smallest_side

CANVAS = 40  # pixels; room for a box and all that its edges may do
sides = st.integers(1, 12)
distances = st.integers(0, 7)


@pytest.mark.parametrize(
    ("displacement", "expected"),
    [
        ("shift", 81 / 119),  # 9 x 9 in common, 100 + 100 - 81 in all
        ("dilation", 100 / 144),
        ("erosion", 64 / 100),
        # Sides are moved, grown or shrunk with 1/2, 1/4, 1/4; the nine pairs of them, twice the unlike ones:
        (
            "jitter",
            1 / 4 * 81 / 119
            + 1 / 16 * (100 / 144 + 64 / 100)
            + 1 / 4 * (90 / (120 + 100 - 90) + 72 / (80 + 100 - 72))
            + 1 / 8 * 80 / (96 + 100 - 80),
        ),
    ],
)
def test_ten_by_ten_pixels_after_one(displacement: str, expected: float) -> None:
    assert float(displaced_iou(10, 10, 1, displacement)) == pytest.approx(expected, abs=1e-15)
    moved = displaced_box_iou(np.array([[3.0, 4.0, 10.0, 10.0]]), 1, displacement)
    assert moved[0] == pytest.approx(expected, abs=1e-15)


@given(width=sides, height=sides, pixels=distances, displacement=st.sampled_from(list(MOVES)))
def test_closed_form_and_moved_boxes_agree_with_masks_of_pixels(
    width: int, height: int, pixels: int, displacement: str
) -> None:
    box = (14, 14, 14 + width, 14 + height)
    ious = [_mask_iou(box, [c + pixels * m for c, m in zip(box, move, strict=True)]) for move in MOVES[displacement]]
    expected = sum(ious) / len(ious)
    assert float(displaced_iou(width, height, pixels, displacement)) == pytest.approx(expected, abs=1e-12)
    xywh = np.array([[14.0, 14.0, width, height]])
    assert displaced_box_iou(xywh, pixels, displacement)[0] == pytest.approx(expected, abs=1e-12)


@given(width=st.integers(1, 9), height=st.integers(1, 9), pixels=st.integers(0, 2))
def test_no_error_of_at_most_k_pixels_at_the_edges_is_worse_than_erosion(width: int, height: int, pixels: int) -> None:
    box = (14, 14, 14 + width, 14 + height)
    errors = itertools.product(range(-pixels, pixels + 1), repeat=4)
    worst = min(_mask_iou(box, [c + e for c, e in zip(box, error, strict=True)]) for error in errors)
    assert float(displaced_iou(width, height, pixels, "erosion")) == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize("displacement", SURVIVABLE)
@given(pixels=st.floats(0.1, 50), iou=st.floats(0.05, 0.99))
def test_the_smallest_side_just_survives(displacement: str, pixels: float, iou: float) -> None:
    side = smallest_side(pixels, iou, displacement)
    assert float(displaced_iou(side, side, pixels, displacement)) == pytest.approx(iou, abs=1e-9)
    assert float(displaced_iou(side * 1.01, side * 1.01, pixels, displacement)) > iou
    assert float(displaced_iou(side * 0.99, side * 0.99, pixels, displacement)) < iou


@pytest.mark.parametrize(
    ("displacement", "expected"),
    [  # IoU 1/2 after one pixel: s - 2 = s √½; s = √½ (s + 2); (s - 1)² = 2/3 s²
        ("erosion", 2 / (1 - math.sqrt(0.5))),
        ("dilation", 2 * math.sqrt(0.5) / (1 - math.sqrt(0.5))),
        ("shift", 1 / (1 - math.sqrt(2 / 3))),
    ],
)
def test_the_square_that_survives_one_pixel_at_half_an_iou(displacement: str, expected: float) -> None:
    assert smallest_side(1, 0.5, displacement) == pytest.approx(expected, abs=1e-12)


def test_an_unknown_side_has_an_unknown_overlap() -> None:
    assert math.isnan(displaced_iou(math.nan, math.nan, 1, "jitter"))


def test_nothing_moved_changes_nothing() -> None:
    for displacement in MOVES:
        assert float(displaced_iou(3, 4, 0, displacement)) == 1.0


def test_more_than_there_is_leaves_nothing() -> None:
    assert float(displaced_iou(4, 4, 2, "erosion")) == 0.0
    assert float(displaced_iou(4, 4, 9, "shift")) == 0.0


@pytest.mark.parametrize("displacement", list(MOVES))
def test_boxes_without_area_have_no_overlap_to_keep(displacement: str) -> None:
    assert displaced_box_iou(np.array([[3.0, 4.0, 0.0, 5.0]]), 1, displacement).tolist() == [0.0]
    assert float(displaced_iou(0, 5, 1, displacement)) == 0.0
    assert displaced_box_iou(np.zeros((0, 4)), 1, displacement).shape == (0,)


def test_what_is_no_displacement_distance_or_overlap_is_refused() -> None:
    with pytest.raises(UsageError, match="Did you mean 'shift'"):
        displaced_iou(3, 4, 1, "shfit")
    with pytest.raises(UsageError, match="choose from shift, dilation, erosion"):
        smallest_side(1, 0.5, "jitter")
    with pytest.raises(UsageError, match="not negative"):
        displaced_box_iou(np.ones((1, 4)), -1, "shift")
    with pytest.raises(UsageError, match="between 0 and 1"):
        smallest_side(1, 1.0, "shift")


def _mask_iou(first: tuple[int, ...], second: list[int]) -> float:
    """IoU of two boxes by counting pixels; corners that cross cover nothing."""
    masks = np.zeros((2, CANVAS, CANVAS), dtype=np.bool_)
    for mask, (left, top, right, bottom) in zip(masks, (first, second), strict=True):
        mask[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = True
    return float((masks[0] & masks[1]).sum() / (masks[0] | masks[1]).sum())
