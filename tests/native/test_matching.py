"""The compiled core ranks and pairs boxes and finds hits as NumPy does, to the last bit."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012, Protocol
from jaccard_eval.data.signature import fingerprint
from jaccard_eval.matching import rank_detections
from jaccard_eval.matching.matchtable import MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves, Steps
from jaccard_eval.native.calls import CHUNK_PAIRS, first_come, rank

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

PROTOCOLS = (COCO, replace(COCO, max_dets=(1, 2)), replace(COCO, class_agnostic=True), VOC2007, VOC2012)
SCORES = (0.5, 0.25, 0.0, -0.0, -1.5, 1.0, 0.1 + 0.2, 5e-324, np.nan)


def boxes(rng: np.random.Generator, n: int, *, scored: bool) -> BoxTable:
    """Draw boxes that often meet, touch or equal each other, on three images and in three classes."""
    xywh = rng.integers(0, 4, (n, 4)) * rng.choice([1.0, 0.1, 1 / 3])
    image, label, crowd = rng.integers(0, 3, n), rng.integers(0, 3, n), rng.random(n) < 0.2
    table = BoxTable.from_arrays(image, label, xywh, encoding="xywh", crowd=crowd)
    return replace(table, score=rng.choice(SCORES, n)) if scored else table


def both_ways(gt: BoxTable, pred: BoxTable, protocol: Protocol) -> list[MatchTable]:
    """Match with the core and without."""
    tables = []
    for core in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(native.VARIABLE, core)
            tables.append(match_boxes(gt, pred, protocol, n_images=3, n_labels=3))
    return tables


@given(st.integers(0, 2**32 - 1), st.sampled_from(PROTOCOLS), st.integers(0, 40), st.integers(0, 40))
def test_matches_are_those_of_numpy(seed: int, protocol: Protocol, n_gt: int, n_pred: int) -> None:
    rng = np.random.default_rng(seed)
    compiled, plain = both_ways(boxes(rng, n_gt, scored=False), boxes(rng, n_pred, scored=True), protocol)
    for field in fields(MatchTable):
        one, other = getattr(compiled, field.name), getattr(plain, field.name)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes()), field.name


@given(st.integers(0, 2**32 - 1), st.sampled_from(PROTOCOLS), st.integers(0, 40), st.integers(0, 40))
def test_curves_are_those_of_numpy(seed: int, protocol: Protocol, n_gt: int, n_pred: int) -> None:
    rng = np.random.default_rng(seed)
    pred = replace(boxes(rng, n_pred, scored=True), score=rng.choice([0.5, 0.25, 0.125], n_pred))
    table, _ = both_ways(boxes(rng, n_gt, scored=False), pred, protocol)
    ways, weights = [], rng.integers(0, 9, 3)
    for core in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(native.VARIABLE, core)
            curves = Curves(Ranking.of(table, n_images=3))
            cells = [(a, m) for a in range(len(protocol.areas)) for m in range(len(curves.caps))]
            views = (curves, curves.ties(best=True), curves.ties(best=False))
            steps = [view.steps(*cell) for view in views for cell in cells]
            weighted = curves.weighted(weights)
            envelopes = [view.interpolated_precision(*cell) for view in (*views, weighted) for cell in cells]
            fresh = [curves.weighted(weights).hit_counts(*cell) for cell in cells]
            resampled = [each for cell in cells for each in weighted.defined_precision(*cell)]
            resampled += [*fresh, *(weighted.hit_counts(*cell) for cell in cells)]
            ways.append([*([getattr(one, field.name) for field in fields(Steps)[1:]] for one in steps), envelopes])
            ways[-1].append([one.tobytes() for one in resampled])
    for compiled, plain in zip(*ways, strict=True):
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_array_equal(one, other, strict=False)


def test_whoever_comes_first_and_reaches_a_threshold_takes_an_object_once() -> None:
    # Object 0 is wanted three times, object 1 (a crowd) twice.
    objects, overlap = np.array([0, 1, 0, 0, 1]), np.array([0.5, 0.6, 0.8, 0.9, 0.5])
    found = first_come(np.arange(5), objects, overlap, np.array([0.5, 0.75]), np.array([False, True]))
    assert found is not None
    assert found.tolist() == [[True, True, False, False, True], [False, False, True, False, False]]


def test_a_resample_is_measured_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gt = BoxTable.from_arrays([0, 1, 1], [0, 0, 1], np.tile([0.0, 0.0, 5.0, 5.0], (3, 1)), encoding="xywh")
    pred = replace(gt, score=np.array([0.5, 0.75, 0.25]))
    curves = Curves(Ranking.of(match_boxes(gt, pred, COCO, n_images=3, n_labels=3), n_images=3))
    weighted = curves.weighted(np.array([2, 3, 0]))
    monkeypatch.setattr(Curves, "steps", None)  # the way without the core
    precision, kept = weighted.defined_precision(0, 2)
    assert kept.tolist() == [0, 1]
    assert (precision == 1.0).all()  # 5 and 3 hits, none of them wrong
    assert weighted.hit_counts(0, 2)[0].tolist() == [5, 3, 0]


@given(st.integers(0, 2**32 - 1), st.integers(0, 3000), st.sampled_from([1, 2, 700]))
def test_many_scores_are_ranked_in_order(seed: int, n: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(-(2**63), 2**63, n, np.int64) >> rng.integers(0, 64, n)  # floats of any size and sign
    near = np.float64(0.5).view(np.int64) + rng.integers(0, 2**34, n)  # which differ in their last bits
    score = np.choose(rng.integers(0, 3, n), [bits.view(np.float64), near.view(np.float64), rng.choice(SCORES, n)])
    label, turn = rng.integers(0, n_labels, n), rng.permutation(n)
    found = rank(score, label, np.zeros(n, np.int32), turn, n_images=1, cap=n)
    assert found is not None
    assert found[0].tolist() == turn[np.lexsort((-score[turn], label[turn]))].tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.booleans())
def test_fingerprints_are_those_of_numpy(seed: int, n: int, scored: bool) -> None:
    table = boxes(np.random.default_rng(seed), n, scored=scored)
    hashes = []
    for core in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(native.VARIABLE, core)
            rows, found = fingerprint(table, (("a", "b", "c"), ("cat", "dog", "emu")), "pred", "px")
            assert rows is not None
            hashes.append((rows.tolist(), found))
    assert hashes[0] == hashes[1]


def test_more_pairs_than_one_chunk_are_all_found() -> None:
    n = 300
    same = np.zeros(n, np.int32)
    table = BoxTable.from_arrays(same, same, np.tile([0.0, 0.0, 5.0, 5.0], (n, 1)))
    compiled, plain = both_ways(table, replace(table, score=np.ones(n)), replace(COCO, max_dets=(n,)))
    assert len(compiled.pair_gt) == n * n > CHUNK_PAIRS
    assert compiled.choice.tobytes() == plain.choice.tobytes()


def test_scores_without_order_are_last_in_their_class() -> None:
    pred = BoxTable.from_arrays([0] * 4, [1, 0, 1, 1], np.ones((4, 4)), encoding="xywh")
    pred = replace(pred, score=np.array([np.nan, -9.0, -0.0, 0.0]))
    order, _, rank = rank_detections(pred, COCO, 1)
    assert order.tolist() == [1, 2, 3, 0]
    assert rank.tolist() == [0, 0, 1, 2]
