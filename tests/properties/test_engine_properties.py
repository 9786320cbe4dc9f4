"""What must hold for any input: hypothesis draws scenes full of ties, crowds and boxes at the edge of a threshold."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned import MergedParts

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012, Protocol
from jaccard_eval.matching import matchtable
from jaccard_eval.matching.matchtable import ALL_SIZES, MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.metrics.detection import DetectionMetrics, summary_refs

pytestmark = pytest.mark.slow

N_IMAGES, N_LABELS = 4, 3
MEGABYTE = 1 << 20
PROTOCOLS = (
    COCO,
    VOC2007,
    VOC2012,
    COCO.with_options(class_agnostic=True),
    COCO.with_options(max_dets=(1, 2), iou_thresholds=(0.1, 0.5)),
    VOC2012.with_options(iou_thresholds=(0.3, 0.7), max_dets=(2,)),
)

protocols = st.sampled_from(PROTOCOLS)
corners = st.integers(0, 8).map(lambda cells: 4.0 * cells)
sides = st.sampled_from([0.0, 8.0, 16.0, 32.0])
rows = st.tuples(st.integers(0, N_IMAGES - 1), st.integers(0, N_LABELS - 1), corners, corners, sides, sides)
tied_scores = st.sampled_from([0.0, 0.25, 0.5, 0.75])
ground_truths = st.lists(st.tuples(rows, st.booleans()), max_size=10)
detections = st.lists(st.tuples(rows, tied_scores), max_size=16)

Scene = tuple[BoxTable, BoxTable]


def _table(
    drawn: Sequence[tuple], score: Sequence[float] | None = None, crowd: Sequence[bool] | None = None
) -> BoxTable:
    values = np.array(drawn, dtype=np.float64).reshape(-1, 6)
    image, label = values[:, 0].astype(np.int32), values[:, 1].astype(np.int32)
    return BoxTable.from_arrays(image, label, values[:, 2:], encoding="xywh", score=score, crowd=crowd)


@st.composite
def scenes(draw: st.DrawFn, *, distinct_scores: bool = False) -> Scene:
    truth = draw(ground_truths)
    found = draw(detections)
    score = [one for _, one in found]
    if distinct_scores:
        score = draw(st.permutations([(1 + i) / 64 for i in range(len(found))]))
    return (
        _table([row for row, _ in truth], crowd=[crowd for _, crowd in truth]),
        _table([row for row, _ in found], score=score),
    )


def _match(gt: BoxTable, pred: BoxTable, protocol: Protocol) -> MatchTable:
    return match_boxes(gt, pred, protocol, n_images=N_IMAGES, n_labels=N_LABELS)


def _summary(table: MatchTable) -> list[float]:
    names = [str(k) for k in range(table.n_labels)]
    metrics = DetectionMetrics(table, names, [str(i) for i in range(N_IMAGES)])
    return [metrics.value(ref).value for ref in summary_refs(table.protocol)]


def _bytes(table: MatchTable) -> dict[str, object]:
    """Every column to the last bit, with its type and shape."""
    columns = {field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
    return {
        name: (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in columns.items()
    }


def _curves(table: MatchTable) -> Curves:
    return Curves(Ranking.of(table, N_IMAGES))


def _curve_bytes(table: MatchTable) -> list[bytes]:
    curves = _curves(table)
    return [values.tobytes() for values in (curves.precision, curves.recall, curves.scores)]


def _rescored(pred: BoxTable, score: np.ndarray) -> BoxTable:
    return dataclasses.replace(pred, score=score)


def _of_images(boxes: BoxTable, images: np.ndarray) -> BoxTable:
    """The boxes of some images, counted from 0."""
    kept = boxes.take(np.isin(boxes.image, images))
    return dataclasses.replace(kept, image=np.searchsorted(images, kept.image).astype(np.int32))


@given(scenes(distinct_scores=True), protocols, st.data())
def test_the_order_of_detections_does_not_matter_while_scores_differ(
    scene: Scene, protocol: Protocol, data: st.DataObject
) -> None:
    gt, pred = scene
    order = np.array(data.draw(st.permutations(range(len(pred)))), dtype=np.int64)
    assert _curve_bytes(_match(gt, pred, protocol)) == _curve_bytes(_match(gt, pred.take(order), protocol))


@given(scenes(distinct_scores=True), protocols, st.data())
def test_the_order_of_images_in_the_ground_truth_does_not_matter(
    scene: Scene, protocol: Protocol, data: st.DataObject
) -> None:
    gt, pred = scene
    rank = np.array(data.draw(st.permutations(range(N_IMAGES))))
    order = np.argsort(rank[gt.image], kind="stable")  # within an image the file's order breaks ties of IoU
    assert _curve_bytes(_match(gt, pred, protocol)) == _curve_bytes(_match(gt.take(order), pred, protocol))


@given(scenes(), protocols)
def test_only_the_order_of_scores_matters(scene: Scene, protocol: Protocol) -> None:
    gt, pred = scene
    assert pred.score is not None
    stretched = _rescored(pred, np.exp(3.0 * pred.score) - 40.0)
    expected = _match(gt, pred, protocol)
    mapped = _match(gt, stretched, protocol)
    assert _curves(mapped).precision.tobytes() == _curves(expected).precision.tobytes()
    assert np.array_equal(_summary(mapped), _summary(expected), equal_nan=True)


@given(scenes(), rows, protocols)
def test_a_detection_below_all_others_that_hits_nothing_never_raises_ap(
    scene: Scene, row: tuple, protocol: Protocol
) -> None:
    gt, pred = scene
    far = _table([(*row[:2], 5000.0, 5000.0, 16.0, 16.0)], score=[-1.0])
    before, after = (_curves(_match(gt, boxes, protocol)) for boxes in (pred, BoxTable.concat([pred, far])))
    known = ~np.isnan(before.precision)
    assert (np.isnan(after.precision) == ~known).all()
    assert (after.precision[known] <= before.precision[known]).all()


@given(scenes(), protocols, st.lists(st.integers(0, 2), min_size=N_IMAGES, max_size=N_IMAGES))
def test_any_partition_of_the_images_merges_to_the_same_curves(
    scene: Scene, protocol: Protocol, part_of_image: list[int]
) -> None:
    gt, pred = scene
    part = np.array(part_of_image)
    parts = [_match(gt.take(part[gt.image] == i), pred.take(part[pred.image] == i), protocol) for i in range(3)]
    merged = MergedParts([Ranking.of(table, N_IMAGES) for table in parts])
    whole = _curves(_match(gt, pred, protocol))
    assert merged.positives.tolist() == whole.positives.tolist()
    for area, cap in itertools.product(range(len(protocol.areas)), range(len(whole.caps))):
        # Straight lines are drawn in memory alone, by detections that parts do not keep.
        by_area = ("area_under_curve",) if protocol.interpolation == "area" else ()
        for name in ("interpolated_precision", "final_recall", *by_area):
            values = [getattr(source, name)(area, cap) for source in (whole, merged)]
            assert values[0].tobytes() == values[1].tobytes(), (name, area, cap)


@given(scenes(), protocols, st.sets(st.integers(0, N_IMAGES - 1)))
def test_a_restricted_table_is_that_of_the_images_alone(scene: Scene, protocol: Protocol, chosen: set[int]) -> None:
    images = np.array(sorted(chosen), dtype=np.int64)
    alone = match_boxes(
        *(_of_images(side, images) for side in scene), protocol, n_images=len(images), n_labels=N_LABELS
    )
    # What is beyond the caps is in neither table, and of other images nobody knows how much of it there was.
    alone = dataclasses.replace(alone, row=np.argsort(np.argsort(alone.row)).astype(np.int32))
    assert _bytes(_match(*scene, protocol).restrict(images)) == _bytes(alone)


@given(scenes(), protocols, st.sampled_from([1, 2, 5, 13]))
def test_the_number_of_pairs_looked_at_together_does_not_matter(scene: Scene, protocol: Protocol, chunk: int) -> None:
    whole = _match(*scene, protocol)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matchtable, "CHUNK_PAIRS", chunk)
        assert _bytes(_match(*scene, protocol)) == _bytes(whole)


@given(scenes(), protocols)
def test_empty_predictions_score_zero_wherever_there_is_ground_truth(scene: Scene, protocol: Protocol) -> None:
    gt, pred = scene
    none = pred.take(np.zeros(len(pred), dtype=np.bool_))
    values = _summary(_match(gt, none, protocol))
    assert all(value == 0.0 or math.isnan(value) for value in values)
    assert math.isnan(values[0]) == _match(gt, pred, protocol).gt_ignored[0].all()


@given(ground_truths.filter(bool))
def test_perfect_predictions_score_one(drawn: list[tuple]) -> None:
    # Ground truth of positive size, at most one box per image and class (else equal boxes would be told apart).
    unique = {row[:2]: (*row[:4], 16.0, 16.0) for row, _ in drawn}
    boxes = list(unique.values())
    gt, pred = _table(boxes), _table(boxes, score=[0.9] * len(boxes))
    ap = _summary(_match(gt, pred, COCO))[0]
    assert ap == pytest.approx(1.0, abs=1e-14)  # one hit is 1 / (1 + 2^-52)
    assert _summary(_match(gt, pred, VOC2012))[0] == 1.0


@given(scenes(), protocols)
def test_outcomes_of_detections_add_up(scene: Scene, protocol: Protocol) -> None:
    table = _match(*scene, protocol)
    ranking = Ranking.of(table, N_IMAGES)
    hits = ranking.hits[ALL_SIZES]
    assert not (ranking.hits & ~ranking.counts).any()
    assert (hits.sum(axis=1) <= ranking.gt_counts[ALL_SIZES].sum()).all()
    for t in range(len(protocol.iou_thresholds)):
        chosen = table.chosen_pairs(ALL_SIZES, t)[hits[t]]
        assert len(np.unique(table.pair_gt[chosen])) == len(chosen)  # nothing is found twice


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_a_crowded_image_is_matched_in_bounded_memory(seed: int) -> None:
    # 1,500 x 1,500 pairs: a single float64 matrix of them would take 18 MB, ten thresholds of flags 22 MB more.
    rng = np.random.default_rng(seed)
    boxes = np.concatenate((rng.uniform(0, 4000, (1500, 2)), rng.uniform(20, 60, (1500, 2))), axis=1)
    shifted = boxes + rng.normal(0, 4, boxes.shape)
    same = np.zeros(1500, dtype=np.int32)
    gt = BoxTable.from_arrays(same, same, boxes, encoding="xywh")
    pred = BoxTable.from_arrays(same, same, shifted, encoding="xywh", score=rng.random(1500))
    tracemalloc.start()
    try:
        table = match_boxes(gt, pred, COCO.with_options(max_dets=()), n_images=1, n_labels=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 18 * MEGABYTE
    assert len(table) == 1500
