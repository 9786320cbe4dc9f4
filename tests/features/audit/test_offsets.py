"""Constant offsets between the boxes of both sides."""

import numpy as np
import pytest
from sides import said_of_boxes

RNG_SEED = 7


def _boxes(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(RNG_SEED)
    return np.concatenate((rng.uniform(10, 300, (n, 2)), rng.uniform(20, 100, (n, 2))), axis=1)


def _said(offset: list[float], *, noise: float = 0.0, n: int = 60) -> list[str]:
    """What is said of predictions at an offset in x, y, w and h, with normal noise on it."""
    boxes = _boxes(n)
    pred = boxes + offset + np.random.default_rng(RNG_SEED).normal(0, noise, boxes.shape) * (noise > 0)
    return [str(one) for one in said_of_boxes(boxes.tolist(), pred.tolist(), "box-offset")]


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        ([1, 1, 0, 0], "+1 px in x and y"),
        ([-0.5, -0.5, 0, 0], "-0.5 px in x and y"),
        ([0, 0, 1, 1], "+1 px at the right and bottom"),
        ([1, 1, -1, -1], "+1 px at the left and top"),
    ],
)
def test_an_offset_is_named_by_its_edges(offset: list[float], text: str) -> None:
    (message,) = _said(offset)
    assert f"boxes are shifted by {text} against the ground truth" in message


def test_an_offset_is_found_below_the_noise_of_a_good_detector() -> None:
    assert len(_said([1, 1, 0, 0], noise=0.5)) == 1


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        ([0, 0, 0, 0], "no offset"),
        ([1, 0, 0, 0], "one axis only"),
        ([2, 2, 0, 0], "no convention moves boxes by two pixels"),
        ([0.2, 0.2, 0, 0], "less than half a pixel"),
        ([-1, -1, 2, 2], "boxes drawn larger"),
    ],
)
def test_other_differences_are_not_taken_for_an_offset(offset: list[float], why: str) -> None:
    assert _said(offset) == [], why


def test_nothing_is_said_where_boxes_scatter_or_are_few() -> None:
    assert _said([1, 1, 0, 0], noise=4.0) == []
    assert _said([1, 1, 0, 0], n=19) == []


def test_the_ap_that_an_offset_costs_makes_it_a_warning() -> None:
    # 8 x 8 boxes moved by half a pixel: IoU 7.5² / (2 · 8² - 7.5²) = .78 stays above .75; by one: 7² / 79 = .62.
    small = [[20.0 * row, 10.0, 8.0, 8.0] for row in range(25)]
    half, whole = ([[x + by, y + by, w, h] for x, y, w, h in small] for by in (0.5, 1.0))
    (note,) = said_of_boxes(small, half, "box-offset")
    assert (note.severity, "AP75 1.000 as given, 1.000 without" in note.message) == ("note", True)
    (warning,) = said_of_boxes(small, whole, "box-offset")
    assert (warning.severity, "AP75 0.000 as given, 1.000 without" in warning.message) == ("warning", True)
