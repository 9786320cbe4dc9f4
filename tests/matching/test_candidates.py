"""Candidate pairs: the same whatever the chunk, and in bounded memory."""

import tracemalloc
from dataclasses import astuple

import numpy as np
import pytest

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO
from jaccard_eval.matching import Blocks, matchtable

MEGABYTE = 1 << 20


def _boxes(n: int, seed: int, spread: float) -> BoxTable:
    rng = np.random.default_rng(seed)
    xywh = np.concatenate((rng.uniform(0, spread, (n, 2)), rng.uniform(5, 30, (n, 2))), axis=1)
    return BoxTable.from_arrays([0] * n, [0] * n, xywh, encoding="xywh")


def _pairs(det: BoxTable, truth: BoxTable, threshold: float = 0.1) -> matchtable.Pairs:
    """All detections and all ground truth in one image and class."""
    n = len(det)
    blocks = Blocks(np.zeros(n, dtype=np.int64), np.full(n, len(truth), dtype=np.int64))
    return matchtable.candidate_pairs(det, truth, blocks, COCO, threshold=threshold)


@pytest.mark.parametrize("chunk", [1, 7, 40, 41, 10_000])
def test_the_chunk_size_changes_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    det, truth = _boxes(30, 1, 60.0), _boxes(40, 2, 60.0)
    whole = _pairs(det, truth)
    monkeypatch.setattr(matchtable, "CHUNK_PAIRS", chunk)
    assert [column.tolist() for column in astuple(_pairs(det, truth))] == [c.tolist() for c in astuple(whole)]
    assert len(whole) > 40


def test_pairs_are_sorted_by_detection_then_ground_truth() -> None:
    pairs = _pairs(_boxes(30, 1, 60.0), _boxes(40, 2, 60.0))
    listed = list(zip(pairs.det.tolist(), pairs.gt.tolist(), strict=True))
    assert listed == sorted(listed)


def test_pairs_stay_within_their_blocks() -> None:
    det = truth = _boxes(4, 1, 1.0)
    blocks = Blocks(np.array([0, 2, 4, 0]), np.array([2, 4, 4, 0]))
    pairs = matchtable.candidate_pairs(det, truth, blocks, COCO, threshold=0.0)
    assert (pairs.det.tolist(), pairs.gt.tolist()) == ([0, 0, 1, 1], [0, 1, 2, 3])


def test_without_boxes_there_are_no_pairs() -> None:
    none, some = _boxes(0, 1, 60.0), _boxes(3, 1, 60.0)
    assert [len(_pairs(a, b)) for a, b in ((none, none), (none, some), (some, none))] == [0, 0, 0]


def test_a_crowded_image_is_paired_in_bounded_memory() -> None:
    # 2,000 x 2,000 pairs: one float64 column of all of them would take 32 MB, and the kernel needs several.
    det, truth = _boxes(2_000, 1, 5_000.0), _boxes(2_000, 2, 5_000.0)
    tracemalloc.start()
    try:
        pairs = _pairs(det, truth, threshold=0.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * MEGABYTE
    assert len(pairs) < 2_000
