"""Similarity of boxes: hand arithmetic, published values, pycocotools to the last bit, shapely, and the laws."""

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask

import jaccard_eval
from jaccard_eval import (
    UsageError,
    box_ciou,
    box_diou,
    box_giou,
    box_ioa,
    box_iou,
    clip,
    jaccard_distance,
    jaccard_from_counts,
)
from jaccard_eval.similarity import iou

MEASURES = (box_iou, box_ioa, box_giou, box_diou, box_ciou, jaccard_distance)
ENCODINGS = ("xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm")
Box = tuple[float, float, float, float]

# Quarters up to 64 are exact, so that the laws hold without a tolerance for rounding of the inputs.
COORDINATES = st.integers(0, 256).map(lambda n: n / 4)
SIDES = st.integers(1, 256).map(lambda n: n / 4)
BOXES = st.tuples(COORDINATES, COORDINATES, SIDES, SIDES).map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3]))


def one(measure, first: Box, second: Box, **options: object) -> float:
    return float(measure([first], [second], **options)[0, 0])


def random_boxes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 60, (n, 2))
    return np.hstack((low, low + rng.uniform(1, 40, (n, 2))))


def test_iou_of_clipped_boxes_has_its_known_values() -> None:
    first = [(2.76772099, 3.82412258, 9.20284061, 10.90716819), (11.14633535, 10.19626615, 12.60589032, 4.39965071)]
    second = [(6.27252577, 6.24175572, 11.23818034, 8.57538178), (12.15843153, 3.54273941, 9.59581098, 0.71452057)]
    clipped = [clip(boxes, (12, 12), encoding="cxcywh") for boxes in (first, second)]
    assert box_iou(*clipped, encoding="cxcywh", pairwise=False) == pytest.approx([0.42562048, 0], abs=5e-9)


def test_ioa_over_the_second_box_has_its_known_values() -> None:
    # Areas are 2400 throughout; intersections 30·50 = 1500, 20·40 = 800, 2400, 1500.
    first = [[10, 20, 50, 80], [20, 30, 60, 90]]
    second = [[20, 30, 60, 90], [30, 40, 70, 100]]
    assert box_ioa(first, second).tolist() == [[0.625, 800 / 2400], [1.0, 0.625]]


def test_ioa_divides_by_the_area_that_is_asked_for() -> None:
    # 5 x 5 within 10 x 10.
    small, large = (0, 0, 5, 5), (0, 0, 10, 10)
    assert [one(box_ioa, small, large, over=over) for over in ("first", "second", "smaller")] == [1, 0.25, 1]
    assert [one(box_ioa, large, small, over=over) for over in ("first", "second", "smaller")] == [0.25, 1, 1]


def test_giou_subtracts_the_empty_share_of_the_hull() -> None:
    # Hull 4 x 1, union 2: 0 - 2/4. Overlap 1 of 7 in a hull of 9: 1/7 - 2/9.
    assert one(box_giou, (0, 0, 1, 1), (3, 0, 4, 1)) == -0.5
    assert one(box_giou, (0, 0, 2, 2), (1, 1, 3, 3)) == pytest.approx(1 / 7 - 2 / 9)


def test_diou_subtracts_the_distance_of_the_centres() -> None:
    # Centres differ by (1, 1), the hull's diagonal is (3, 3): 1/7 - 2/18.
    assert one(box_diou, (0, 0, 2, 2), (1, 1, 3, 3)) == pytest.approx(1 / 7 - 2 / 18)


def test_ciou_subtracts_a_penalty_for_another_aspect() -> None:
    # 4 x 2 and 2 x 4 about one centre: IoU 4/12, no distance; v = 4/pi² (atan 2 - atan .5)², alpha = v / (2/3 + v).
    v = 4 / math.pi**2 * (math.atan(2) - math.atan(0.5)) ** 2
    assert one(box_ciou, (0, 1, 4, 3), (1, 0, 3, 4)) == pytest.approx(1 / 3 - v * v / (2 / 3 + v))
    assert one(box_ciou, (0, 0, 4, 2), (1, 1, 5, 3)) == one(box_diou, (0, 0, 4, 2), (1, 1, 5, 3))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_boxes_on_a_side_give_an_empty_array_of_that_shape(measure, shape: tuple[int, int]) -> None:
    first, second = (random_boxes(n, 1) for n in shape)
    assert measure(first, second).shape == shape


@pytest.mark.parametrize("measure", [box_iou, box_ioa, box_giou, box_diou, box_ciou])
def test_a_point_has_no_similarity_even_with_itself(measure) -> None:
    assert one(measure, (3, 4, 3, 4), (3, 4, 3, 4)) == 0
    assert one(jaccard_distance, (3, 4, 3, 4), (3, 4, 3, 4)) == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_boxes_without_area_give_finite_numbers(measure) -> None:
    flat = [(0, 0, 0, 5), (0, 0, 5, 0), (2, 2, 2, 2)]
    assert np.isfinite(measure(flat, [*flat, (0, 0, 10, 10)])).all()
    assert box_iou(flat, [(0, 0, 10, 10)]).tolist() == [[0], [0], [0]]


@pytest.mark.parametrize("measure", MEASURES)
def test_element_wise_is_the_diagonal_of_pairwise(measure) -> None:
    first, second = random_boxes(7, 1), random_boxes(7, 2)
    assert measure(first, second, pairwise=False).tolist() == np.diag(measure(first, second)).tolist()


@pytest.mark.parametrize("measure", MEASURES)
def test_float32_stays_float32_and_agrees_to_its_digits(measure) -> None:
    first, second = random_boxes(20, 1).astype(np.float32), random_boxes(30, 2).astype(np.float32)
    single = measure(first, second)
    assert single.dtype == np.float32
    assert measure(first, second.astype(np.float64)).dtype == np.float64
    double = measure(first.astype(np.float64), second.astype(np.float64))
    assert single == pytest.approx(double, abs=2e-5)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_gives_the_same_similarity(measure, encoding: str) -> None:
    first, second = random_boxes(5, 1), random_boxes(6, 2)
    encoded = [encode(boxes, encoding) for boxes in (first, second)]
    size = SIZE if encoding.endswith("_norm") else None
    assert measure(*encoded, encoding=encoding, image_size=size) == pytest.approx(measure(first, second))


@pytest.mark.parametrize("measure", [box_iou, box_ioa, box_giou])
def test_ratios_of_areas_need_no_image_size(measure) -> None:
    first, second = random_boxes(5, 1), random_boxes(6, 2)
    fractions = [encode(boxes, "xyxy_norm") for boxes in (first, second)]
    assert measure(*fractions, encoding="xyxy_norm") == pytest.approx(measure(first, second))


def test_chunks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = random_boxes(50, 1), random_boxes(7, 2)
    whole = [measure(first, second) for measure in MEASURES]
    monkeypatch.setattr(iou, "CHUNK_CELLS", 10)
    assert [measure(first, second).tobytes() for measure in MEASURES] == [values.tobytes() for values in whole]


@pytest.mark.parametrize("crowd", [False, True])
def test_xywh_is_pycocotools_to_the_last_bit(crowd: bool) -> None:
    rng = np.random.default_rng(4)
    first, second = (np.hstack((rng.uniform(0, 60, (n, 2)), rng.uniform(0.5, 40, (n, 2)))) for n in (80, 60))
    ours = box_ioa(first, second, over="first", encoding="xywh") if crowd else box_iou(first, second, encoding="xywh")
    assert ours.tobytes() == np.ascontiguousarray(mask.iou(first, second, [int(crowd)] * 60)).tobytes()


@given(BOXES, BOXES)
def test_areas_are_those_of_shapely(first: Box, second: Box) -> None:
    a, b = shapely.box(*first), shapely.box(*second)
    intersection, union = a.intersection(b).area, a.union(b).area
    hull = shapely.MultiPolygon([a, b]).envelope.area
    assert one(box_iou, first, second) == pytest.approx(intersection / union, abs=1e-12)
    assert one(box_ioa, first, second) == pytest.approx(intersection / b.area, abs=1e-12)
    assert one(box_giou, first, second) == pytest.approx(intersection / union - (hull - union) / hull, abs=1e-12)


@given(BOXES, BOXES)
def test_similarities_are_symmetric_and_in_their_ranges(first: Box, second: Box) -> None:
    for measure in (box_iou, box_giou, box_diou, box_ciou, jaccard_distance):
        assert one(measure, first, second) == one(measure, second, first)
    assert 0 <= one(box_iou, first, second) <= 1
    assert -1 < one(box_giou, first, second) <= one(box_iou, first, second)
    assert one(box_ciou, first, second) <= one(box_diou, first, second) <= one(box_iou, first, second)
    assert one(box_diou, first, second) > -1


@given(BOXES)
def test_a_box_is_like_its_copy(box: Box) -> None:
    assert [one(measure, box, box) for measure in MEASURES] == [1, 1, 1, 1, 1, 0]


@given(BOXES, BOXES, COORDINATES, st.sampled_from([0.25, 2, 8]))
def test_similarities_do_not_change_when_both_boxes_move_or_grow_alike(
    first: Box, second: Box, shift: float, factor: float
) -> None:
    moved = [tuple(factor * (side + shift) for side in box) for box in (first, second)]
    for measure in MEASURES:
        assert one(measure, *moved) == pytest.approx(one(measure, first, second), abs=1e-12)


@given(BOXES, BOXES, BOXES)
def test_no_detour_is_shorter_in_the_jaccard_distance(first: Box, second: Box, third: Box) -> None:
    direct = one(jaccard_distance, first, third)
    assert direct <= one(jaccard_distance, first, second) + one(jaccard_distance, second, third) + 1e-15


def test_the_index_of_counts_is_undefined_without_counts() -> None:
    assert jaccard_from_counts([6, 0, 0], [2, 1, 0], [4, 0, 0]) == pytest.approx([0.5, 0, math.nan], nan_ok=True)
    assert float(jaccard_from_counts(1, 1, 0)) == 0.5


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((-1, 0, 0), "tp must hold counts"),
        ((0, math.nan, 0), "fp must hold counts"),
        ((1, 1, math.inf), "fn must hold counts"),
        ((1, "many", 0), "fp must hold counts, finite and not negative, got 'many'"),
        (([1, 2], [1, 2, 3], 0), r"one shape, or be single numbers, got tp \(2,\), fp \(3,\), fn \(\)"),
        (([1, [2]], 0, 0), "tp has a value alone in row 0 and 1 value in row 1"),
    ],
)
def test_what_are_no_counts_is_refused_by_name(counts: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        jaccard_from_counts(*counts)


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([1, 2, 3, 4], r"first has shape \(4,\); expected \(n, 4\)"),
        ([[1, 2, 3]], r"first has shape \(1, 3\)"),
        ([[1, 2, 3, 4], [1, 2, 3]], "^first has 4 values in row 0 and 3 values in row 1; pass as many in each$"),
        ([["a", "b", "c", "d"]], "first must hold numbers"),
        ([[0, 0, 1, 1], [0, 0, math.nan, 1]], r"first\[1\] is .*not finite"),
        ([[0, 0, math.inf, 1]], r"first\[0\] is .*not finite"),
        ([[0, 0, 1e200, 1]], r"first\[0\] is .*too large"),
        ([[0, 0, 1, 1], [10, 0, 5, 1], [3, 3, 2, 2]], r"first\[1\] is .*x2 < x1 .*xywh.*1 more"),
    ],
)
def test_unusable_boxes_are_refused_with_their_row(boxes: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        box_iou(boxes, [[0, 0, 1, 1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "xyhw"}, "unknown box encoding 'xyhw'.*Did you mean 'xywh'"),
        ({"encoding": "xyxy_norm", "image_size": (0, 5)}, "image_size must be"),
        ({"encoding": "xyxy_norm", "image_size": "640x480"}, "image_size must be .* got '640x480'"),
        ({"encoding": "xyxy_norm", "image_size": (640, None)}, "image_size must be"),
        ({"encoding": "xyxy_norm"}, "needs image_size"),
        ({"pairwise": False}, "first has 1 boxes, second 2"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        box_diou([[0, 0, 1, 1]], [[0, 0, 1, 1]] * 2, **options)


def test_an_unknown_area_to_divide_by_is_refused() -> None:
    with pytest.raises(UsageError, match="choose from first, second, smaller"):
        box_ioa([[0, 0, 1, 1]], [[0, 0, 1, 1]], over="both")


def test_inputs_stay_as_they_are() -> None:
    boxes = random_boxes(4, 1)
    before = boxes.copy()
    for measure in MEASURES:
        measure(boxes, boxes)
    assert (boxes == before).all()


def test_losses_are_one_minus_the_similarity_of_equal_rows() -> None:
    first, second = random_boxes(6, 1), random_boxes(6, 2)
    for name in ("iou", "giou", "diou", "ciou"):
        loss, measure = getattr(jaccard_eval, f"{name}_loss"), getattr(jaccard_eval, f"box_{name}")
        assert loss(first, second).tolist() == (1 - measure(first, second, pairwise=False)).tolist()
        assert loss(first, second, pairwise=True).shape == (6, 6)


SIZE = (128.0, 64.0)


def encode(xyxy: np.ndarray, encoding: str) -> np.ndarray:
    """Write corners in another encoding."""
    low, high = xyxy[:, :2], xyxy[:, 2:]
    forms = {"xyxy": (low, high), "xywh": (low, high - low), "cxcywh": ((low + high) / 2, high - low)}
    boxes = np.hstack(forms[encoding.removesuffix("_norm")])
    return boxes / np.array([*SIZE, *SIZE]) if encoding.endswith("_norm") else boxes
