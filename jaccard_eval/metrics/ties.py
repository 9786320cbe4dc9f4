"""Equal scores whose order decides: the ties that span a hit and a miss, as they stand in a ranking, as a digest."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, Words
from jaccard_eval.matching.order import IntArray, WholeArray, lengths_of_runs, starts_of_runs
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.hits import Hits

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK_ROWS = 1 << 16  # about as many detections are looked at together


class TieOrder:
    """Digests, for each class, the ties that span a hit and a miss at any area range and threshold, in their order.

    Rankings may be added in pieces, the rows of a class one after the other. A tie that is cut is added piece by piece.
    """

    def __init__(self) -> None:
        self._of_class: dict[int, _Hash] = {}
        # The tie that is cut and may go on: class and score, digest with it, where it hits and misses (w,).
        self._open: tuple[int, float, _Hash, Words, Words] | None = None

    def add(self, ranking: Ranking, ties: tuple[IntArray, IntArray]) -> None:
        """Add a ranking, with where each run of one class and score begins and how long it is."""
        first, size = ties
        # Only what hits somewhere can span: of most ties nothing does.
        candidates = np.flatnonzero(np.repeat(size > 1, size)[ranking.candidate])
        run = np.searchsorted(first, ranking.candidate[candidates], "right") - 1
        hits = ranking.hits[..., candidates].any(axis=(0, 1))
        chosen = np.unique(run[hits])
        for block in np.split(chosen, np.flatnonzero(np.diff(np.cumsum(size[chosen]) // BLOCK_ROWS)) + 1):
            if len(block):
                self._add_runs(ranking, first[block], size[block])

    def _add_runs(self, ranking: Ranking, first: IntArray, size: IntArray) -> None:
        start = np.cumsum(size) - size
        rows = np.arange(size.sum()) + np.repeat(first - start, size)
        hits, misses = outcomes(ranking, rows)
        both = np.bitwise_or.reduceat(hits, start) & np.bitwise_or.reduceat(misses, start)
        cut = at_smaller_cap(ranking, rows, hits, np.repeat(first, size))
        spans = both.any(axis=1) | np.logical_or.reduceat(cut, start)
        kept = np.flatnonzero(np.repeat(spans, size))
        if not len(kept):
            return
        words, label = words_of(ranking, rows[kept], hits[kept], misses[kept]), ranking.label[rows[kept]]
        cuts, lengths = lengths_of_runs(starts_of_runs(label))
        for at, n in zip(cuts.tolist(), lengths.tolist(), strict=True):
            self._of_class.setdefault(int(label[at]), sha256()).update(words[at : at + n].tobytes())

    def add_piece(self, ranking: Ranking) -> None:
        """Add a piece of a tie of one class, which other pieces may follow."""
        if not len(ranking):
            return
        rows = np.arange(len(ranking))
        hits, misses = outcomes(ranking, rows)
        label, score = int(ranking.label[0]), float(ranking.score[0])
        if self._open is None or self._open[:2] != (label, score):
            self.close()
            content = self._of_class.get(label, sha256()).copy()
            self._open = label, score, content, np.zeros_like(hits[0]), np.zeros_like(hits[0])
        *_, content, has_hits, has_misses = self._open
        # What a smaller cap cuts counts as a tie that spans both.
        if at_smaller_cap(ranking, rows, hits, np.zeros_like(rows)).any():
            has_hits[0] = has_misses[0] = 1
        content.update(words_of(ranking, rows, hits, misses).tobytes())
        has_hits |= np.bitwise_or.reduce(hits, axis=0)
        has_misses |= np.bitwise_or.reduce(misses, axis=0)

    def close(self) -> None:
        """Take over the tie that was cut, if it spans a hit and a miss."""
        if self._open is not None:
            label, _, content, has_hits, has_misses = self._open
            if (has_hits & has_misses).any():
                self._of_class[label] = content
        self._open = None

    def digests(self) -> dict[int, str]:
        """Return the digest of each class that has such ties."""
        self.close()
        return {label: content.hexdigest() for label, content in self._of_class.items()}


def at_smaller_cap(ranking: Ranking, rows: IntArray, hits: Words, tie: IntArray) -> BoolArray:
    """Mark the first of those detections of one tie and image, (r,), that a smaller cap parts, where not all hit alike.

    The recall within that cap depends on their order: AR1 and AR10.
    """
    marked = np.zeros(len(rows), dtype=np.bool_)
    if len(caps := ranking.protocol.max_dets[:-1]):
        image, rank = ranking.image[rows], ranking.rank[rows]
        # Rows ascend by tie, then as the protocol orders them, mostly by image, then by rank.
        order = np.arange(len(rows)) if ranking.protocol.score_ties == "image" else np.lexsort((rank, image, tie))
        first, size = lengths_of_runs(starts_of_runs(tie[order]) | starts_of_runs(image[order]))
        low, high = rank[order[first]], rank[order[first + size - 1]]
        parted = np.logical_or.reduce([(low < cap) & (cap <= high) for cap in caps])
        ordered = hits[order]
        alike = np.bitwise_or.reduceat(ordered, first) == np.bitwise_and.reduceat(ordered, first)
        marked[order[first]] = parted & ~alike.all(axis=1)
    return marked


def late_misses(
    ranking: Ranking, area: int, cap: int | None, first: WholeArray, weights: IntArray | None = None
) -> tuple[WholeArray, IntArray]:
    """Count the misses of each tie, by where it begins (u,), that no order puts before its hits: (T, u).

    `first` is where the tie of each candidate begins, (c,). Of candidates of one image in one tie, only those behind
    another one are meant: if it stood in front, it might take the object that the other one finds.
    """
    rows = ranking.candidate
    # Candidates of one tie are neighbours; most stand alone.
    same = first[1:] == first[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    late = tied[is_behind(first[tied], ranking.image[rows[tied]])]
    ties, place = np.unique(first[late], return_inverse=True)
    misses = misses_of(ranking, area, cap, late)
    weight = misses if weights is None else misses * weights[ranking.image[rows[late]]]
    counts = [np.bincount(place, of_threshold, len(ties)) for of_threshold in weight]
    return ties, np.stack(counts).astype(np.int64)


def misses_of(ranking: Ranking, area: int, cap: int | None, candidates: IntArray) -> BoolArray:
    """Return which of some candidates are false positives within a cap, (T, r)."""
    within = True if cap is None else ranking.rank[ranking.candidate[candidates]] < cap
    return np.asarray(ranking.counts[area][:, candidates] & ~ranking.hits[area][:, candidates] & within)


def late_of_hits(late: tuple[WholeArray, IntArray], hits: Hits, first: WholeArray) -> IntArray:
    """Return the `late_misses` in the tie of each hit, which begins at `first`; shape (h,)."""
    ties, counts = late
    if not len(ties):
        return np.zeros(len(first), dtype=np.int64)
    at = np.minimum(np.searchsorted(ties, first), len(ties) - 1)
    return np.where(ties[at] == first, counts[hits.threshold, at], 0)


def is_behind(*keys: WholeArray) -> BoolArray:
    """Return which rows have the same keys as an earlier one, (r,)."""
    order = np.lexsort(keys)
    same = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in keys])
    behind = np.zeros(len(order), dtype=np.bool_)
    behind[order[1:][same]] = True
    return behind


def outcomes(ranking: Ranking, rows: IntArray) -> tuple[Words, Words]:
    """Return which detections are true positives, and which false ones, a bit by area range and threshold (r, w)."""
    n_areas, n_thresholds, _ = ranking.hits.shape
    at = np.searchsorted(rows, ranking.candidate)
    chosen = np.flatnonzero((at < len(rows)) & (rows[np.minimum(at, len(rows) - 1)] == ranking.candidate))
    hits, counts = (
        _packed(flags[..., chosen].reshape(n_areas * n_thresholds, len(chosen)))
        for flags in (ranking.hits, ranking.counts)
    )
    misses = _packed(np.repeat(ranking.in_range[:, rows], n_thresholds, axis=0))
    found = np.zeros_like(misses)
    found[at[chosen]], misses[at[chosen]] = hits, counts & ~hits
    return found, misses


def _packed(flags: BoolArray) -> Words:
    """Return flags (f, r) as bits of whole words (r, w), which are combined at once."""
    bits = np.packbits(flags, axis=0)
    words = np.zeros((flags.shape[1], 8 * -(-len(bits) // 8)), dtype=np.uint8)
    words[:, : len(bits)] = bits.T
    return words.view(np.uint64)


def words_of(ranking: Ranking, rows: IntArray, hits: Words, misses: Words) -> npt.NDArray[np.uint8]:
    """Return the score and the outcomes of some detections as bytes, (r, b)."""
    n_areas, n_thresholds, _ = ranking.hits.shape
    n_bytes = -(-n_areas * n_thresholds // 8)
    scores = (ranking.score[rows].astype("<f8") + 0.0).view(np.uint8).reshape(len(rows), 8)
    return np.hstack((scores, *(bits.view(np.uint8)[:, :n_bytes] for bits in (hits, misses))))
