"""Descriptions of one side, by hand arithmetic: three boxes on two of three pictures of 100 x 100."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading
from jaccard_eval.features.inspect import BoxCounts, ClassCount
from jaccard_eval.features.inspect.compute import (
    BoxView,
    count_boxes,
    count_classes,
    count_images,
    count_scores,
    decimals,
    spread,
)

SIZES = np.array([[100.0, 100.0], [100.0, 100.0], [50.0, 40.0]])


def scene() -> Dataset:
    """A dog of 10 x 20 and one of 40 x 40 on a.jpg, a crowd of cats of 30 x 10 that leaves b.jpg, nothing on c.jpg."""
    boxes = BoxTable.from_arrays(
        [0, 0, 1], [1, 1, 0], [[0, 0, 10, 20], [10.5, 10, 40, 40], [90, 0, 30, 10]], encoding="xywh", crowd=[0, 0, 1]
    )
    return Dataset(
        path="gt",
        format="pictures",
        role="gt",
        images=ImageTable((1, 2, 3), ("a.jpg", "b.jpg", "c.jpg"), SIZES, listed=True),
        labels=LabelMap((7, 8, 9), ("cat", "dog", "bird"), named=True),
        boxes=boxes,
    )


def boxes_of(side: Dataset) -> BoxCounts:
    return count_boxes(BoxView.of(side), side.reading)


def test_images_are_counted_with_their_boxes_and_sizes() -> None:
    images = count_images(scene().images, scene().boxes)
    assert (images.total, images.with_boxes, images.with_size, images.listed) == (3, 2, 3, True)
    assert images.sizes == (("100 x 100", 2), ("50 x 40", 1))
    assert (images.per_image.min, images.per_image.median, images.per_image.mean, images.per_image.max) == (0, 1, 1, 2)
    assert images.most_crowded == "a.jpg"


def test_ranges_reach_from_the_lowest_to_the_highest_side_of_any_box() -> None:
    boxes = boxes_of(scene())
    assert (boxes.x, boxes.y) == ((0, 120), (0, 50))  # 90 + 30 and 10 + 40


def test_sizes_spread_by_hand() -> None:
    boxes = boxes_of(scene())
    assert (boxes.width.min, boxes.width.median, boxes.width.max) == (10, 30, 40)
    assert (boxes.area.min, boxes.area.median, boxes.area.max) == (200, 300, 1600)
    assert boxes.area.mean == 700  # (200 + 1600 + 300) / 3
    assert (boxes.aspect.min, boxes.aspect.median, boxes.aspect.max) == (0.5, 1, 3)


def test_boxes_fall_into_the_size_ranges_of_coco_and_a_shared_end_counts_in_both() -> None:
    assert boxes_of(scene()).buckets == {"small": 2, "medium": 1, "large": 0}  # below and above 32 x 32
    edge = replace(scene(), boxes=BoxTable.from_arrays([0], [0], [[0, 0, 32, 32]]))
    assert boxes_of(edge).buckets == {"small": 1, "medium": 1, "large": 0}


def test_fractions_have_no_size_ranges() -> None:
    fractions = BoxTable.from_arrays([0], [0], [[0.25, 0.25, 0.5, 0.75]])
    side = replace(scene(), boxes=fractions, units="norm", reading=Reading("xyxy", "norm"))
    assert boxes_of(side).buckets == {}
    assert boxes_of(side).decimals == 2


def test_a_box_that_leaves_its_image_is_counted() -> None:
    assert boxes_of(scene()).outside == 1  # the right side at 120 of 100


def test_flags_are_counted() -> None:
    assert boxes_of(scene()).flags == {"crowd": 1, "difficult": 0, "ignore": 0, "group_of": 0}


def test_classes_keep_their_order_those_without_boxes_included() -> None:
    assert count_classes(scene()) == (
        ClassCount(name="cat", key="7", boxes=1, images=1),
        ClassCount(name="dog", key="8", boxes=2, images=1),
        ClassCount(name="bird", key="9", boxes=0, images=0),
    )


def test_decimals_are_those_of_the_numbers_in_the_file() -> None:
    assert boxes_of(scene()).decimals == 1  # 10.5
    # Centre (0.35, 0.3) and size 0.1 x 0.2 on an image of 100 x 100, read as pixels.
    pixels = replace(
        scene(),
        boxes=BoxTable.from_arrays([0], [0], [[30, 20, 10, 20]], encoding="xywh"),
        reading=Reading("cxcywh", "norm"),
    )
    assert boxes_of(pixels).decimals == 2


@pytest.mark.parametrize(("values", "expected"), [([], 0), ([1.0, 2.0], 0), ([0.1 + 0.2], 1), ([1 / 3], None)])
def test_decimals_overlook_the_last_bits_of_arithmetic(values: list[float], expected: int | None) -> None:
    assert decimals(np.array(values)) == expected


def test_scores_spread_and_equal_ones_count_once() -> None:
    scores = count_scores(np.array([0.5, 0.5, 0.25]))
    assert scores is not None
    assert (scores.distinct, scores.decimals, scores.spread.min, scores.spread.max) == (2, 2, 0.25, 0.5)
    assert count_scores(None) is None


@pytest.mark.parametrize("n", [1, 2, 3, 20, 21, 1001])
def test_quantiles_are_those_of_numpy_to_the_last_bit(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.gamma(2, 50, n), rng.integers(0, 5, n).astype(np.float64), np.append(rng.random(n), -1e9)):
        found = spread(values)
        expected = np.quantile(values, (0, 0.05, 0.5, 0.95, 1)).tolist()
        assert [found.min, found.q05, found.median, found.q95, found.max] == expected


def test_nothing_has_no_spread() -> None:
    assert all(map(math.isnan, (spread(np.array([])).min, spread(np.array([])).mean)))
    empty = replace(scene(), boxes=scene().boxes.take(np.array([], dtype=np.int64)))
    assert math.isnan(boxes_of(empty).x[0])
    assert count_images(empty.images, empty.boxes).most_crowded == ""
    assert [one.boxes for one in count_classes(empty)] == [0, 0, 0]
