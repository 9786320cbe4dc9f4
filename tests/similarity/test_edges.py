import numpy as np
import pytest

from jaccard_eval.similarity.boxes import Corners, close_pairs, closeness


def close(first: list[float], second: list[float], pixels: float, *, crowd: bool = False) -> float | None:
    """Closeness of two boxes (left, top, width, height), None when they are further apart than `pixels`."""
    sides = [Corners.of(np.array([box], dtype=np.float64)) for box in (first, second)]
    zero = np.zeros(1, dtype=np.int64)
    *_, value = close_pairs(*sides, zero, zero, crowd=np.array([crowd]), threshold=closeness(pixels))
    return float(value[0]) if len(value) else None


def test_equal_boxes_are_as_close_as_can_be() -> None:
    assert close([3, 4, 5, 6], [3, 4, 5, 6], pixels=0) == 1.0


def test_the_edge_that_is_furthest_away_decides() -> None:
    # Left edges 1 apart, right edges 10 + 4 - 10 - 1 = 3, bottom edges 2: closeness 1 / (1 + 3).
    first, second = [1, 0, 13, 8], [0, 0, 11, 10]
    assert close(first, second, pixels=3) == pytest.approx(0.25, abs=1e-12)
    assert close(first, second, pixels=2.99) is None


@pytest.mark.parametrize(
    "moved", [[2, 0, 8, 10], [0, 2, 10, 8], [0, 0, 12, 10], [0, 0, 10, 12]], ids=["left", "top", "right", "bottom"]
)
def test_every_edge_counts(moved: list[float]) -> None:
    assert close(moved, [0, 0, 10, 10], pixels=2) is not None
    assert close(moved, [0, 0, 10, 10], pixels=1.9) is None


def test_boxes_that_do_not_overlap_can_be_close() -> None:
    assert close([0, 0, 2, 2], [2, 2, 2, 2], pixels=2) == pytest.approx(1 / 3, abs=1e-12)


def test_decimals_that_are_exactly_at_the_limit_are_within_it() -> None:
    # 10.1 + 2.2 is 12.299999999999999 and 12.3 - 0.1 is 12.200000000000001 in binary.
    assert close([10.1, 0, 2.2, 5], [10.3, 0, 2.1, 5], pixels=0.2) is not None


def test_what_lies_inside_a_crowd_is_close_to_it() -> None:
    crowd = [0.0, 0.0, 100.0, 100.0]
    assert close([40, 40, 5, 5], crowd, pixels=1) is None
    assert close([40, 40, 5, 5], crowd, pixels=1, crowd=True) == 1.0
    # It sticks out by 3 px at the right: 98 + 5 - 100.
    assert close([98, 40, 5, 5], crowd, pixels=3, crowd=True) == pytest.approx(0.25, abs=1e-12)
    assert close([98, 40, 5, 5], crowd, pixels=2, crowd=True) is None


def test_pairs_keep_their_order_and_none_stay_none() -> None:
    boxes = Corners.of(np.array([[0, 0, 4, 4], [1, 0, 4, 4], [9, 9, 4, 4]], dtype=np.float64))
    i, j = np.array([2, 1, 0]), np.array([0, 0, 1])
    first, second, value = close_pairs(boxes, boxes, i, j, threshold=closeness(1))
    assert (first.tolist(), second.tolist(), value.tolist()) == ([1, 0], [0, 1], [0.5, 0.5])
    none = np.zeros(0, dtype=np.int64)
    assert [len(column) for column in close_pairs(boxes, boxes, none, none)] == [0, 0, 0]
