import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.features.scale.compute import box_errors

corner, side = st.integers(0, 10), st.integers(1, 10)
boxes = st.tuples(corner, corner, side, side)


def errors(gt: tuple[float, ...], pred: tuple[float, ...]) -> dict[str, float]:
    found = box_errors(np.array([gt], dtype=np.float64), np.array([pred], dtype=np.float64))
    return {name: float(values[0]) for name, values in found.items()}


def test_a_box_at_its_place_has_no_errors() -> None:
    found = errors((3, 4, 10, 20), (3, 4, 10, 20))
    perfect = {"iou", "width_ratio", "height_ratio"}
    assert {name: value for name, value in found.items() if value} == dict.fromkeys(perfect, 1.0)


def test_a_shifted_box_loses_by_its_shift_only() -> None:
    # 10 x 20, two to the right and four down: 8 x 16 = 128 in common of 200 + 200 - 128 = 272.
    found = errors((0, 0, 10, 20), (2, 4, 10, 20))
    assert found["iou"] == pytest.approx(128 / 272, abs=1e-15)
    assert found["missing"] == found["extra"] == pytest.approx(72 / 272, abs=1e-15)
    assert found["shift_loss"] == pytest.approx(144 / 272, abs=1e-15)
    assert found["size_loss"] == pytest.approx(0, abs=1e-15)
    assert (found["dx"], found["dy"], found["edge_error"]) == (2, 4, 4)
    assert (found["dx_relative"], found["dy_relative"]) == (0.2, 0.2)


def test_a_box_of_the_wrong_size_loses_by_its_size_only() -> None:
    # 10 x 10 inside 12 x 15 about the same centre: 100 of 180.
    found = errors((10, 10, 10, 10), (9, 7.5, 12, 15))
    assert (found["missing"], found["extra"]) == (0, pytest.approx(80 / 180, abs=1e-15))
    assert (found["shift_loss"], found["size_loss"]) == (
        pytest.approx(0, abs=1e-15),
        pytest.approx(80 / 180, abs=1e-15),
    )
    assert (found["width_error"], found["height_error"], found["edge_error"]) == (2, 5, 2.5)
    assert (found["width_ratio"], found["height_ratio"]) == (1.2, 1.5)


def test_shift_and_size_share_what_they_cost_together() -> None:
    # One dimension, height 10: [0, 10] and [4, 12]. Both: 6 of 12, loss 1/2. Shift of 3 alone: 7 of 13, loss 6/13.
    # Width 8 alone: 8 of 10, loss 1/5.
    found = errors((0, 0, 10, 10), (4, 0, 8, 10))
    assert found["shift_loss"] == pytest.approx((6 / 13 + 1 / 2 - 1 / 5) / 2, abs=1e-15)
    assert found["size_loss"] == pytest.approx((1 / 5 + 1 / 2 - 6 / 13) / 2, abs=1e-15)


@given(gt=boxes, pred=boxes)
def test_missing_and_extra_area_are_counted_pixels_over_the_union(gt: tuple[int, ...], pred: tuple[int, ...]) -> None:
    masks = np.zeros((2, 24, 24), dtype=np.bool_)
    for mask, (x, y, w, h) in zip(masks, (gt, pred), strict=True):
        mask[y : y + h, x : x + w] = True
    union = (masks[0] | masks[1]).sum()
    found = errors(gt, pred)
    assert found["missing"] == pytest.approx((masks[0] & ~masks[1]).sum() / union, abs=1e-12)
    assert found["extra"] == pytest.approx((masks[1] & ~masks[0]).sum() / union, abs=1e-12)
    assert found["iou"] == pytest.approx((masks[0] & masks[1]).sum() / union, abs=1e-12)


@given(gt=boxes, pred=boxes)
def test_both_splits_add_up_to_the_loss(gt: tuple[int, ...], pred: tuple[int, ...]) -> None:
    found = errors(gt, pred)
    assert found["missing"] + found["extra"] == pytest.approx(1 - found["iou"], abs=1e-12)
    assert found["shift_loss"] + found["size_loss"] == pytest.approx(1 - found["iou"], abs=1e-12)
    assert min(found["shift_loss"], found["size_loss"]) >= -1e-12


def test_no_pairs_have_no_errors() -> None:
    none = box_errors(np.zeros((0, 4)), np.zeros((0, 4)))
    assert {len(values) for values in none.values()} == {0}
