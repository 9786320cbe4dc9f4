"""What boxes go through, by the compiled core: hashing, ranking, pairing, curves. Each returns None without one."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.native import load_core

IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]

CHUNK_PAIRS = 1 << 16  # kept at first, unless a block is larger


def hash_rows(
    hashes: tuple[WordArray, WordArray, WordArray],
    rows: tuple[RowArray, RowArray, npt.NDArray[np.uint8]],
    xywh: FloatArray,
    score: FloatArray | None,
    area: FloatArray,
) -> WordArray | None:
    """Hash rows of boxes; see `signature`.

    `hashes` are those of image names and class names, and what image, class and flags are multiplied by; `rows` the
    image, class and flags of each box.
    """
    core = load_core()
    if core is None:
        return None
    image, label, primes = (np.ascontiguousarray(one, np.uint64) for one in hashes)
    types = (np.int32, np.int32, np.uint8, np.float64, np.float64)
    given = [np.ascontiguousarray(*one) for one in zip((*rows, xywh, area), types, strict=True)]
    scores = None if score is None else np.ascontiguousarray(score, np.float64)
    state = np.empty(len(xywh), np.uint64)
    tables = (table.ctypes.data for table in (image, label, primes))
    *columns, areas = (column.ctypes.data for column in given)
    at = None if scores is None else scores.ctypes.data
    core.jaccard_hash_rows(len(state), *tables, *columns, at, areas, state.ctypes.data)
    return state


def pack_rows(rows: IntArray, xywh: FloatArray, score: FloatArray | None, area: FloatArray, words: WordArray) -> bool:
    """Fill the first six words of rows of boxes (r, k), see `signature`; return whether it was done."""
    core = load_core()
    if core is None:
        return False
    boxes, areas = np.ascontiguousarray(xywh, np.float64), np.ascontiguousarray(area, np.float64)
    scores = None if score is None else np.ascontiguousarray(score, np.float64)
    at = None if scores is None else scores.ctypes.data
    places = np.ascontiguousarray(rows, np.int64)
    pointers = places.ctypes.data, boxes.ctypes.data, at, areas.ctypes.data, words.ctypes.data
    core.jaccard_pack_rows(len(rows), words.shape[1], *pointers)
    return True


def rank(
    score: FloatArray, label: IntArray, image: RowArray, turn: IntArray, *, n_images: int, cap: int
) -> tuple[IntArray, IntArray, RowArray] | None:
    """Return row, key and rank of detections in class order, equal scores in the order of `turn`; see `matching`."""
    core = load_core()
    if core is None:
        return None
    types = (np.float64, np.int64, np.int32, np.int64)
    given = [np.ascontiguousarray(*column) for column in zip((score, label, image, turn), types, strict=True)]
    order, key, place = np.empty(len(score), np.int64), np.empty(len(score), np.int64), np.empty(len(score), np.int32)
    n_labels = int(label.max(initial=-1)) + 1
    columns = [column.ctypes.data for column in (*given, order, key, place)]
    n = core.jaccard_rank(len(score), n_images, n_labels, cap, *columns)
    return None if n < 0 else (order[:n], key[:n], place[:n])


def pair_boxes(
    boxes: FloatArray,
    rows: IntArray,
    others: FloatArray,
    blocks: tuple[IntArray, IntArray],
    crowd: BoolArray | None,
    *,
    threshold: float,
    offset: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Pair some rows of boxes with their blocks of others, (n, 4) each, where they overlap by at least `threshold`."""
    core = load_core()
    if core is None:
        return None
    n, row = len(rows), ctypes.c_int64(0)
    chunks: list[tuple[IntArray, IntArray, FloatArray]] = []
    crowd = np.zeros(len(others), np.bool_) if crowd is None else crowd
    types = (np.float64, np.int64, np.float64, np.int64, np.int64, np.bool_)
    given = [np.ascontiguousarray(*one) for one in zip((boxes, rows, others, *blocks, crowd), types, strict=True)]
    capacity = max(CHUNK_PAIRS, int((blocks[1] - blocks[0]).max(initial=0)))
    while not chunks or row.value < n:
        chunk = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
        arrays = (array.ctypes.data for array in (*given, *chunk))
        found = core.jaccard_pair_boxes(n, ctypes.byref(row), capacity, threshold, offset, *arrays)
        chunks.append((chunk[0][:found], chunk[1][:found], chunk[2][:found]))
        # As many as there are by now: few large arrays, which the system gets back at once where small ones stay.
        capacity = max(capacity, sum(len(part) for part, _, _ in chunks))
    return joined_columns(chunks)


def joined_columns(chunks: list[tuple[IntArray, IntArray, FloatArray]]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the columns of chunks as one of each; the list is emptied, as all rows twice may not fit into memory."""
    if len(chunks) == 1:
        return chunks.pop()
    columns: list[list[Any]] = [list(column) for column in zip(*chunks, strict=True)]
    chunks.clear()
    # No more than one column is there twice.
    det, gt, overlap = (np.concatenate(columns.pop(0)) for _ in range(3))
    return det, gt, overlap


def find_hits(
    detections: tuple[RowArray, RowArray, BoolArray],
    candidates: tuple[IntArray, BoolArray, BoolArray],
    *,
    n_labels: int,
    cap: int | None,
    ties: tuple[RowArray, bool] | None = None,
) -> tuple[IntArray, RowArray, IntArray] | None:
    """Return row, detections that count up to each hit (h,), and hits by threshold and class (T, K).

    Of detections label, rank and whether they count unmatched, (n,); of candidates their row (c,), and whether they hit
    and count, (T, c); of ties where each begins, and whether its hits come first.
    """
    core = load_core()
    if core is None:
        return None
    _, hit, _ = candidates
    n = int(np.count_nonzero(hit))
    row, before = np.empty(n + 1, np.int64), np.empty(n + 1, np.int32)
    count = np.zeros((len(hit), n_labels), np.int64)
    bounds, hits_first = (None, True) if ties is None else ties
    types = (np.int32, np.int32, np.bool_, np.int64, np.bool_, np.bool_)
    given = zip((*detections, *candidates), types, strict=True)
    columns: list[npt.NDArray[Any]] = [np.ascontiguousarray(column, kind) for column, kind in given]
    shape = len(hit), len(columns[0]), hit.shape[1], n_labels
    tie = None if bounds is None else bounds.ctypes.data
    limit = np.iinfo(np.int32).max if cap is None else cap
    arrays = (*(column.ctypes.data for column in columns), tie, row.ctypes.data, before.ctypes.data, count.ctypes.data)
    found = core.jaccard_find_hits(*shape, limit, hits_first, *arrays)
    return None if found < 0 else (row[:found], before[:found], count)


def interpolate(
    total: IntArray,
    before: npt.NDArray[Any],
    cells: tuple[IntArray, IntArray],
    needed: IntArray,
    *,
    epsilon: float,
) -> FloatArray | None:
    """Return the highest precision at or beyond each recall value, (T, R, K); see `Steps`.

    `cells` are the first hit and the one after the last of each threshold and class, (T, K), `needed` the weight of
    hits that reaches each recall value, (K, R).
    """
    core = load_core()
    if core is None:
        return None
    columns = [np.ascontiguousarray(column, np.int64) for column in (total, before, *cells, needed)]
    (n_thresholds, n_labels), n_recalls = cells[0].shape, needed.shape[1]
    precision = np.empty((n_thresholds, n_recalls, n_labels))
    arrays = (column.ctypes.data for column in (*columns, precision))
    core.jaccard_interpolate(n_thresholds, n_recalls, n_labels, epsilon, *arrays)
    return precision
