import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from label_map_builder import label_map

import jaccard_eval.metrics.pixel_counts as module
from jaccard_eval import Bootstrap, Slice, UsageError, pixels
from jaccard_eval.features.pixels import PixelProtocol, PixelScores, pixel_metrics
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts

NAMES = ("zero", "one", "two")
# Five by five pixels whose IoU is known for all three classes.
EXAMPLE_PRED = label_map("11222 / 11212 / 10000 / 22200 / 21112")
EXAMPLE_GT = label_map("11122 / 11122 / 11122 / 00022 / 00022")


def counted(gt: str, pred: str) -> ConfusionCounts:
    """Count two pictures; x is no class."""
    sides = (label_map(picture).astype(np.int64) for picture in (gt, pred))
    return ConfusionCounts.from_maps(*(np.where(side == 255, NO_CLASS, side) for side in sides))


def scores(gt: str, pred: str, **rule: Any) -> PixelScores:
    return pixel_metrics(counted(gt, pred), NAMES, **rule)


def ious(metrics: PixelScores) -> list[float]:
    return [row.values["IoU"].value for row in metrics.per_class]


def test_the_known_example_counts_every_class_and_drops_nothing() -> None:
    metrics = pixel_metrics(ConfusionCounts.from_maps(EXAMPLE_GT, EXAMPLE_PRED), NAMES)
    # Class 0: no pixel in common. Class 1: 5 of 9 + 9 - 5 = 13. Class 2: 4 of 10 + 10 - 4 = 16.
    assert ious(metrics) == [0.0, 0.38461538461538464, 0.25]
    assert metrics.overall["mIoU"].value == pytest.approx((0 + 5 / 13 + 4 / 16) / 3, abs=1e-15)
    assert metrics.overall["pixel_accuracy"].value == 9 / 25


def test_scores_of_a_class_follow_from_its_hits_false_alarms_and_misses() -> None:
    row = scores("1111 / 0000", "1100 / 0001").per_class[1]
    # 2 hits, 1 false alarm, 2 misses.
    values = {name: one.value for name, one in row.values.items()}
    assert (row.gt_pixels, row.pred_pixels) == (4, 3)
    assert values == {"IoU": 2 / 5, "precision": 2 / 3, "recall": 2 / 4, "Dice": 4 / 7}


def test_frequency_weights_and_mean_accuracy_are_those_of_the_ground_truth() -> None:
    overall = scores("0000 / 0011", "0000 / 0101").overall
    # Class 0: 5 hits of 6, 1 false alarm: IoU 5/7, recall 5/6. Class 1: 1 hit of 2, 1 false alarm: IoU 1/3, recall 1/2.
    assert overall["fwIoU"].value == pytest.approx(6 / 8 * 5 / 7 + 2 / 8 * 1 / 3, abs=1e-15)
    assert overall["mean_accuracy"].value == pytest.approx((5 / 6 + 1 / 2) / 2, abs=1e-15)


def test_a_class_on_neither_side_is_undefined_and_not_in_the_mean() -> None:
    metrics = scores("00 / 11", "00 / 11")
    assert math.isnan(ious(metrics)[2])
    assert metrics.per_class[2].values["IoU"].reason == "on neither side"
    assert metrics.overall["mIoU"].value == 1


def test_a_class_that_only_predictions_have_counts_as_zero_in_mean_iou_alone() -> None:
    metrics = scores("00 / 00", "00 / 02")
    assert ious(metrics)[2] == 0
    assert metrics.overall["mIoU"].value == (3 / 4 + 0) / 2
    assert metrics.overall["mean_accuracy"].value == 3 / 4
    assert metrics.overall["fwIoU"].value == 3 / 4


def test_ignored_pixels_of_the_ground_truth_count_nowhere() -> None:
    metrics = scores("x1 / 11", "21 / 11")
    assert metrics.per_class[2].pred_pixels == 0
    assert metrics.overall["pixel_accuracy"].value == 1


def test_predicting_no_class_is_a_miss_and_no_false_alarm() -> None:
    metrics = scores("11 / 00", "1x / 00")
    assert [row.values["precision"].value for row in metrics.per_class[:2]] == [1, 1]
    assert metrics.per_class[1].values["recall"].value == 1 / 2
    assert metrics.overall["pixel_accuracy"].value == 3 / 4


# Background 0, class 1: two hits, one found on background (false alarm), one lost to background (miss), two of both
# sides' background. Left out of the ground truth's background: IoU 2/3; out of the prediction's: 2/3; of both: 2/2.


@pytest.mark.parametrize(
    ("drop", "iou", "accuracy"),
    [(None, 2 / 4, 4 / 6), ("gt", 2 / 3, 2 / 3), ("pred", 2 / 3, 2 / 3), ("both", 1.0, 1.0)],
)
def test_the_rule_on_background_decides_the_mean(drop: str | None, iou: float, accuracy: float) -> None:
    gt, pred = np.array([1, 1, 1, 0, 0, 0]), np.array([1, 1, 0, 1, 0, 0])
    metrics = pixel_metrics(
        ConfusionCounts.from_maps(gt, pred), ["ground", "thing"], background=0, drop_background=drop
    )
    assert metrics.overall["mIoU"].value == iou
    assert metrics.overall["pixel_accuracy"].value == accuracy


def test_background_that_is_dropped_has_no_scores_and_says_why() -> None:
    background = scores("10 / 01", "10 / 11", background=0, drop_background="gt").per_class[0]
    assert {one.reason for one in background.values.values()} == {"dropped as background"}
    kept = scores("10 / 01", "10 / 11", background=0).per_class[0]
    assert kept.values["IoU"].value == 1 / 2


def test_nothing_to_count_gives_no_number() -> None:
    nothing = pixel_metrics(ConfusionCounts.merge([]), NAMES)
    assert all(math.isnan(one.value) and one.reason for one in nothing.overall.values())
    assert all(math.isnan(value) for value in ious(nothing))
    assert pixel_metrics(ConfusionCounts.merge([]), ()).per_class == ()


def test_names_of_classes_stand_in_the_canonical_text_of_the_metric() -> None:
    row = pixel_metrics(counted("0", "0"), ["traffic light"]).per_class[0]
    assert str(row.values["IoU"].ref) == "IoU[class=traffic light]"


def test_the_matrix_has_ground_truth_in_rows_and_a_last_column_for_no_class() -> None:
    counts = counted("01x / 112", "000 / 1x1")
    assert counts.matrix(3).tolist() == [[1, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]]


def test_maps_of_different_shape_or_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="different shapes"):
        ConfusionCounts.from_maps(np.zeros((2, 3), dtype=int), np.zeros((3, 2), dtype=int))
    with pytest.raises(UsageError, match="must be integer arrays, got float64"):
        ConfusionCounts.from_maps(np.zeros((2, 3)), np.zeros((2, 3)))


def test_maps_are_not_changed() -> None:
    gt = EXAMPLE_GT.copy()
    ConfusionCounts.from_maps(gt, gt)
    assert (gt == EXAMPLE_GT).all()


def test_counts_add_up_to_the_same_in_any_order() -> None:
    maps = [counted("01 / 22", "01 / 02"), counted("2x / 10", "22 / 11"), counted("00", "12")]
    one, two, three = maps
    assert rows_of((one + two) + three) == rows_of(three + (two + one)) == rows_of(ConfusionCounts.merge(maps))


def rows_of(counts: ConfusionCounts) -> list[tuple[int, int, int]]:
    return list(zip(counts.gt.tolist(), counts.pred.tolist(), counts.pixels.tolist(), strict=True))


def counted_plainly(gt: npt.NDArray[Any], pred: npt.NDArray[Any]) -> list[tuple[int, int, int]]:
    """Count pixel by pixel."""
    pairs = list(zip(gt.ravel().tolist(), pred.ravel().tolist(), strict=True))
    return [(a, b, pairs.count((a, b))) for a, b in sorted(set(pairs))]


DTYPES = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.uint32, np.int64)


@given(st.data(), st.sampled_from(list(product(DTYPES, DTYPES))), st.integers(1, 7))
def test_pairs_are_counted_as_a_plain_loop_does(
    data: st.DataObject, dtypes: tuple[type[np.integer[Any]], type[np.integer[Any]]], block: int
) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=2, max_dims=2, max_side=9))
    gt, pred = (
        data.draw(arrays.arrays(dtype, shape, elements=st.sampled_from([0, 1, 2, 100, np.iinfo(dtype).max])))
        for dtype in dtypes
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)  # so that small maps have several blocks
        assert rows_of(ConfusionCounts.from_maps(gt, pred)) == counted_plainly(gt, pred)


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_smooth_and_noisy_maps_are_counted_alike(share: float) -> None:
    rng = np.random.default_rng(4)
    gt = np.repeat(rng.integers(0, 19, (40, 4), dtype=np.uint8), 32, axis=1)
    pred = np.where(rng.random(gt.shape) < share, rng.integers(0, 19, gt.shape), gt).astype(np.uint8)
    expected = np.zeros((19, 19), dtype=np.int64)
    np.add.at(expected, (gt, pred), 1)
    assert (ConfusionCounts.from_maps(gt, pred).matrix(19)[:, :19] == expected).all()


def test_columns_in_memory_order_are_counted_by_place() -> None:
    assert rows_of(ConfusionCounts.from_maps(np.asfortranarray(EXAMPLE_GT), EXAMPLE_PRED)) == rows_of(
        ConfusionCounts.from_maps(EXAMPLE_GT, EXAMPLE_PRED)
    )


def test_truth_values_are_classes_0_and_1() -> None:
    mask = np.array([[True, False]])
    assert rows_of(ConfusionCounts.from_maps(mask, ~mask)) == [(0, 1, 1), (1, 0, 1)]


@given(st.permutations(range(3)))
def test_renaming_classes_permutes_their_scores(order: list[int]) -> None:
    moved = np.array(order, dtype=np.uint8)
    before = ious(pixel_metrics(ConfusionCounts.from_maps(EXAMPLE_GT, EXAMPLE_PRED), NAMES))
    after = ious(pixel_metrics(ConfusionCounts.from_maps(moved[EXAMPLE_GT], moved[EXAMPLE_PRED]), NAMES))
    assert [after[order[k]] for k in range(3)] == before


@pytest.mark.parametrize(
    ("drop", "rule"),
    [
        (None, "its pixels count, so a false alarm on background lowers IoU"),
        ("gt", "pixels whose ground truth is background are not counted"),
        ("both", "pixels whose ground truth or prediction is background are not counted"),
    ],
)
def test_the_rule_of_background_has_the_words_of_release_0_1(drop: str | None, rule: str) -> None:
    protocol = PixelProtocol(classes=("void", "car"), background=0, drop_background=drop)
    assert protocol.background_rule == f"background is 'void' and excluded from the means; {rule}"


def test_label_maps_have_intervals_and_slices_from_their_images() -> None:
    # Maps of 100 pixels, all road; at night 40 of them are found, by day 80, one more or less in every second map.
    names = [f"night/{i:02d}" for i in range(20)] + [f"day/{i:02d}" for i in range(40)]
    hits = [(40 if name[0] == "n" else 80) + (1 if i % 2 else -1) for i, name in enumerate(names)]
    gt = {name: np.zeros((10, 10), dtype=np.uint8) for name in names}
    pred = {name: (np.arange(100).reshape(10, 10) >= n).astype(np.uint8) for name, n in zip(names, hits, strict=True)}
    night = Slice(name="night", patterns=("night/*",))
    result = pixels(gt, pred, bootstrap=Bootstrap(n_resamples=400), slices=[night])
    metric = result.metrics["pixel_accuracy"]
    # (20 * 40 + 40 * 80) / 6000; the shares of the maps deviate by 0.19.
    deviation = float(np.std(np.array(hits) / 100, ddof=1)) / 60**0.5
    assert metric.value == pytest.approx(2 / 3, abs=1e-12)
    low, high = metric.interval or (0.0, 0.0)
    assert (high - low) / 2 == pytest.approx(2.0 * deviation, rel=0.15)
    assert result.per_class[0].values["recall"].interval == pytest.approx((low, high), abs=1e-9)
    rest = result.slices[0].rest["pixel_accuracy"]
    assert (rest.n_units, rest.verdict) == (20, "worse")
    assert rest.delta == pytest.approx(-0.4, abs=0.01)
    assert pixels(gt, pred).metrics["mIoU"].value == result["mIoU"]
    few = pixels({"a": gt["day/01"]}, {"a": pred["day/01"]}, bootstrap=20)
    assert few.metrics["pixel_accuracy"].refused == "1 image; an interval needs 20"
