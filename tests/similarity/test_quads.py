"""Overlap of oriented boxes: hand arithmetic, exact fractions, and ProbIoU by published formulas."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaccard_eval import BoxTable, UsageError, evaluate
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.similarity.obb import Quads, QuadSide, quad_pairs
from jaccard_eval.similarity.probiou import SpreadSide, spread_pairs

Corners = list[tuple[float, float]]
Point = tuple[Fraction, Fraction]
RULES = get_protocol("coco").comparing("obb")
SQUARE: Corners = [(0, 0), (10, 0), (10, 10), (0, 10)]
ARROW: Corners = [(0, 0), (6, 3), (12, 0), (6, 12)]  # a triangle of 12 x 12 / 2 without one of 12 x 3 / 2: 54
BOW_TIE: Corners = [(0, 0), (8, 8), (8, 0), (0, 8)]  # two triangles of 8 x 4 / 2: 32


def overlap(first: list[Corners], second: list[Corners], crowd: bool = False) -> np.ndarray:
    sides = [QuadSide.of(Quads(np.array(corners, dtype=float).reshape(-1, 4, 2))) for corners in (first, second)]
    i, j = (rows.ravel() for rows in np.mgrid[: len(first), : len(second)])
    found = np.zeros((len(first), len(second)))
    i, j, value = quad_pairs(sides[0], sides[1], i, j, crowd=np.full(len(second), crowd))
    found[i, j] = value
    return found


def rectangle(x: float, y: float, width: float, height: float, degrees: float) -> Quads:
    return Quads.rotated(np.array([[x, y, width, height]], dtype=float), np.deg2rad([degrees]))


def inside(corners: list[Point], y: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return where the line at y is inside of an outline, by the rule of even and odd."""
    crossed = []
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if min(y0, y1) < y < max(y0, y1):
            crossed.append(x0 + (x1 - x0) * (y - y0) / (y1 - y0))
    crossed.sort()
    return list(zip(crossed[::2], crossed[1::2], strict=True))


def exact_intersection(first: Corners, second: Corners) -> Fraction:
    """Add up the strips between all heights where anything begins or ends: within one, widths change evenly."""
    outlines = [[(Fraction(x), Fraction(y)) for x, y in corners] for corners in (first, second)]
    sides = [(a, b) for corners in outlines for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]
    heights = {y for corners in outlines for _, y in corners}
    for ((ax, ay), (bx, by)), ((cx, cy), (dx, dy)) in combinations(sides, 2):
        across = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
        if across:
            heights.add(ay + (by - ay) * ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / across)
    total = Fraction(0)
    for low, high in pairwise(sorted(heights)):
        one, other = (inside(corners, (low + high) / 2) for corners in outlines)
        shared = (max(min(b, d) - max(a, c), Fraction(0)) for a, b in one for c, d in other)
        total += sum(shared, Fraction(0)) * (high - low)
    return total


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_overlap_is_that_of_exact_arithmetic(rng: np.random.Generator) -> None:
    # Any four points: convex, dented and crossing outlines, with whole numbers also flat ones and shared sides.
    first, second = (rng.integers(0, 9, (3, 4, 2)) + rng.choice([0.0, 0.3]) * rng.random((3, 4, 2)) for _ in "ab")
    far = 2.0**14 * rng.integers(0, 2)  # px, where images of satellites end
    found = overlap((first + far).tolist(), (second + far).tolist())
    crowded = overlap((first + far).tolist(), (second + far).tolist(), crowd=True)
    for i, one in enumerate((first + far).tolist()):
        for j, other in enumerate((second + far).tolist()):
            areas = [exact_intersection(corners, corners) for corners in (one, other)]
            shared = exact_intersection(one, other) if all(areas) else Fraction(0)
            union = sum(areas) - shared
            assert found[i, j] == pytest.approx(float(shared / union) if union else 0.0, abs=1e-11)
            assert crowded[i, j] == pytest.approx(float(shared / areas[0]) if areas[0] else 0.0, abs=1e-11)


@pytest.mark.parametrize(
    ("first", "second", "iou"),
    [
        (SQUARE, SQUARE, 1),
        (SQUARE, SQUARE[::-1], 1),  # neither the way around nor the first corner matters
        (SQUARE, SQUARE[2:] + SQUARE[:2], 1),
        (SQUARE, [(5, 0), (15, 0), (15, 10), (5, 10)], 50 / 150),
        (SQUARE, [(10, 0), (20, 0), (20, 10), (10, 10)], 0),  # they touch
        (
            SQUARE,
            [(5, -2), (12, 5), (5, 12), (-2, 5)],
            82 / 116,
        ),  # 98 without four corners of 2 x 2 each; 100 + 98 - 82
        (ARROW, [(0, 0), (12, 0), (12, 12), (0, 12)], 54 / 144),  # its hull has 72
        (BOW_TIE, [(0, 0), (8, 0), (8, 8), (0, 8)], 32 / 64),
        (BOW_TIE, BOW_TIE, 1),
        (SQUARE, [(1, 1), (2, 2), (3, 3), (4, 4)], 0),  # no area
        ([(1, 1)] * 4, [(1, 1)] * 4, 0),
    ],
)
def test_overlap_by_hand(first: Corners, second: Corners, iou: float) -> None:
    assert overlap([first], [second])[0, 0] == pytest.approx(iou, abs=1e-15)


def test_a_threshold_leaves_out_only_what_is_below_it() -> None:
    rng = np.random.default_rng(0)
    boxes = rng.uniform((0, 0, 5, 5), (60, 60, 40, 40), (120, 4))
    quads = Quads.rotated(boxes, rng.uniform(0, 4, 120))
    side = QuadSide.of(quads)
    i, j = (rows.ravel() for rows in np.mgrid[:120, :120])
    all_i, all_j, value = quad_pairs(side, side, i, j)
    some_i, some_j, some = quad_pairs(side, side, i, j, threshold=0.5)
    reached = value >= 0.5
    assert 120 < reached.sum() < len(value)
    for found, expected in ((some_i, all_i), (some_j, all_j), (some, value)):
        assert found.tolist() == expected[reached].tolist()


def test_corners_of_rectangles() -> None:
    # 4 x 2 turned by a right angle, from x towards y: what was to the right is below.
    assert rectangle(10, 20, 4, 2, 90).corners[0] == pytest.approx(np.array([(11, 18), (11, 22), (9, 22), (9, 18)]))
    # OpenCV's two ranges, [-90, 0) and (0, 90], name one box by two ways.
    assert np.sort(rectangle(0, 0, 4, 2, -30).corners[0], axis=0) == pytest.approx(
        np.sort(rectangle(0, 0, 2, 4, 60).corners[0], axis=0)
    )


def test_shapes_are_saved_scaled_and_moved() -> None:
    quads = rectangle(10, 20, 4, 2, 0).joined([rectangle(0, 0, 3, 4, 30)])
    assert quads.bounds()[0].tolist() == [8, 19, 4, 2]
    assert quads.areas() == pytest.approx([8, 12])
    two = np.full((2, 2), 2.0)
    assert quads.scaled(two).shifted(-two).bounds()[0].tolist() == [14, 36, 8, 4]
    again = Quads.from_arrays(quads.to_arrays())
    assert again.hashes().tolist() == quads.hashes().tolist()
    assert len(set(map(tuple, quads.joined([rectangle(10, 20, 4, 2, 180)]).hashes().tolist()))) == 3
    for wrong in ({"corners": np.zeros((1, 4, 3))}, {"corners": np.full((1, 4, 2), np.nan)}, {}):
        with pytest.raises(UsageError, match="quadrilaterals are"):
            Quads.from_arrays(wrong)


def probiou(first: Quads, second: Quads) -> float:
    sides = []
    for quads in (first, second):
        boxes = BoxTable.from_arrays([0], [0], quads.bounds(), encoding="xywh", shapes=quads)
        sides.append(SpreadSide.prepare(boxes, RULES))
    return float(spread_pairs(sides[0], sides[1], np.zeros(1, dtype=int), np.zeros(1, dtype=int))[2][0])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 0, 10, 10, 0), (0, 0, 10, 10, 0), 1 - math.sqrt(2e-7)),  # the least distance that is counted
        ((0, 0, 10, 10, 0), (0, 0, 10, 10, 30), 1 - math.sqrt(2e-7)),  # squares spread alike at any angle
        # Both have the variance 10^2 / 12: a quarter of 5^2 / (2 * 10^2 / 12).
        ((0, 0, 10, 10, 0), (5, 0, 10, 10, 0), 1 - math.sqrt(1 - math.exp(-0.375))),
        # Variances 400 / 12 and 4 / 12 each way: log((404 / 12)^2 / (4 * 1600 / 144)) / 2.
        ((0, 0, 20, 2, 0), (0, 0, 20, 2, 90), 1 - math.sqrt(1 - math.exp(-math.log(404**2 / 6400) / 2))),
    ],
)
def test_probiou_by_hand(first: tuple[float, ...], second: tuple[float, ...], expected: float) -> None:
    assert probiou(rectangle(*first), rectangle(*second)) == pytest.approx(expected, abs=1e-6)


def test_kinds_are_named_in_signatures() -> None:
    quads = rectangle(10, 20, 4, 2, 30)
    gt = BoxTable.from_arrays([0], [0], quads.bounds(), encoding="xywh", shapes=quads)
    pred = BoxTable.from_arrays([0], [0], quads.bounds(), encoding="xywh", shapes=quads, score=[0.5])
    oriented, spread, dota = (
        evaluate(gt, pred, iou_type=kind, protocol=name)
        for kind, name in (("obb", "coco"), ("probiou", "coco"), (None, "dota"))
    )
    assert (oriented["AP"], spread["AP"], dota["AP"]) == pytest.approx((1, 1, 1))
    assert "|iou_type=obb|" in oriented.signature
    assert "|iou_type=probiou|" in spread.signature
    assert "|above_threshold|iou_type=obb|" in dota.signature
