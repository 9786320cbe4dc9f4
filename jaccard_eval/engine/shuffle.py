"""Detections of all classes brought together by score: a file for each chain of buckets, read again by ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.engine.scratch import ScratchPlace, read_bytes, write_whole
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray, starts_of_runs

TOGETHER = 100_000  # rows that are sorted at once, at least: a block may be of a few


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of a file: each has the scores of one range, then what counts at each, packed."""

    path: ScratchPlace
    index: IntArray  # (b, 3): the range of a block, where it begins in bytes, and how many rows it has


def write_scores(path: ScratchPlace, parts: Iterable[tuple[int, FloatArray, BoolArray]]) -> Blocks:
    """Write rows of ranges, with whether each hits and counts (2, T, n): whole or not at all."""
    index = []

    def blocks() -> Iterator[bytes]:
        start = 0
        for place, scores, outcomes in parts:
            index.append((place, start, len(scores)))
            block = scores.tobytes() + np.ascontiguousarray(_packed(outcomes)).tobytes()
            start += len(block)
            yield block

    write_whole(path, blocks())
    return Blocks(path, np.array(index, dtype=np.int64).reshape(-1, 3))


def _packed(outcomes: BoolArray) -> npt.NDArray[np.uint8]:
    return np.packbits(outcomes.reshape(-1, outcomes.shape[2]), axis=0).T  # (n, bytes)


def read_scores(files: Sequence[Blocks], place: int, n_thresholds: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the different scores of a range, descending, with how many detections hit and count (T, s)."""
    scores = np.zeros(0)
    counted = np.zeros((2 * n_thresholds, 0), dtype=np.int64)
    given: list[FloatArray] = []
    values: list[npt.NDArray[np.uint8]] = []
    waiting = 0

    def merged() -> tuple[FloatArray, IntArray]:
        every = np.concatenate((scores, *given))
        order = np.argsort(-every, kind="stable")
        first = np.flatnonzero(starts_of_runs(every[order]))
        columns = np.concatenate((counted, *values), axis=1)[:, order]
        return every[order][first], np.add.reduceat(columns, first, axis=1, dtype=np.int64)

    for block_scores, flags in _blocks(files, place, n_thresholds):
        given.append(block_scores)
        values.append(flags)
        waiting += len(block_scores)
        # Together before all are read: where few scores differ, they stay few.
        if waiting >= TOGETHER:
            scores, counted = merged()
            given, values, waiting = [], [], 0
    if waiting:
        scores, counted = merged()
    return scores, counted[:n_thresholds], counted[n_thresholds:]


def _blocks(
    files: Sequence[Blocks], place: int, n_thresholds: int
) -> Iterator[tuple[FloatArray, npt.NDArray[np.uint8]]]:
    width = -(-2 * n_thresholds // 8)
    for blocks in files:
        rows = blocks.index[blocks.index[:, 0] == place]
        for _, start, n in rows.tolist():
            block = read_bytes(blocks.path, start, n * (8 + width))
            packed = np.frombuffer(block, np.uint8, offset=8 * n).reshape(n, width)
            yield np.frombuffer(block, np.float64, n), np.unpackbits(packed.T, axis=0, count=2 * n_thresholds)
