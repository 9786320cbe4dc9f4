"""What a worker does: match one part into a run file, bring runs together by score, or reduce a chain of buckets.

Rows of run files are read in buckets that fit into memory, which are reduced to envelopes, hits and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.engine.scratch import ScratchPlace, gathered, read_array, read_bytes, write_whole
from jaccard_eval.engine.stored import Tables
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import (
    IntArray,
    WholeArray,
    class_and_score_order,
    lengths_of_runs,
    rank_detections,
    starts_of_runs,
)
from jaccard_eval.matching.matchtable import ALL_SIZES, MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import (
    Hits,
    TieOrder,
    is_behind,
    late_misses,
    late_of_hits,
    merits,
    misses_of,
    required_hits,
)
from jaccard_eval.metrics.detection import match_part
from jaccard_eval.text import pluralise

# Columns stand one behind the other: those of detections, of candidates, and of objects.
_DETECTIONS: dict[str, Any] = {
    "score": np.float64,
    "image": np.int32,
    "rank": np.int32,
    "tie": np.int64,  # only where equal scores are not ordered by image
    "in_range": np.uint32,  # a bit per area range
}
SEARCHED = 2**14  # rows that are read at once, where a place among sorted ones is looked for
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
            packed = np.packbits(outcomes.reshape(-1, outcomes.shape[2]), axis=0).T  # (n, bytes)
            block = scores.tobytes() + np.ascontiguousarray(packed).tobytes()
            start += len(block)
            yield block

    write_whole(path, blocks())
    return Blocks(path, np.array(index, dtype=np.int64).reshape(-1, 3))


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


TableChange = Callable[[MatchTable], MatchTable]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartTask:
    """Works on the boxes of one part."""

    protocol: Protocol
    n_labels: int
    bounds: IntArray  # the first image of each part, and the end
    rows: IntArray  # predictions of each part
    gt: Tables
    pred: Tables

    def boxes(self, place: int) -> tuple[BoxTable, BoxTable, int, int]:
        """Return ground truth and predictions of a part, its first image, which is 0 in them, and how many it has."""
        first, last = int(self.bounds[place]), int(self.bounds[place + 1])
        gt, pred = (_from_image(side[place], first) for side in (self.gt, self.pred))
        return gt, pred, first, last - first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPart(PartTask):
    """Matches one part, and writes what its detections count as; a `change` is made to the match table before."""

    folder: ScratchPlace
    change: TableChange | None = None

    def describe(self, place: int) -> str:
        """Name a part for a message."""
        return f"part {place + 1} of {len(self.rows)}, with {int(self.rows[place]):,} predictions"

    def __call__(self, place: int) -> tuple[Run, int]:
        """Return the run of a part, and how many predictions it has."""
        objects, boxes, first, n_images = self.boxes(place)
        table = match_boxes(objects, boxes, self.protocol, n_images=n_images, n_labels=self.n_labels)
        table = table if self.change is None else self.change(table)
        run = write_run(self.folder / f"run-{place:05}", Ranking.of(table, n_images), first)
        return run, len(boxes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountConfusion(PartTask):
    """Matches one part whatever the classes, and counts which are predicted as which by detections from a score on."""

    threshold: int  # place of the IoU threshold
    score: float

    def __call__(self, place: int) -> tuple[npt.NDArray[np.int64], int]:
        """Return the matrix of a part, and how many predictions it has."""
        objects, boxes, _, n_images = self.boxes(place)
        # In the order of classes and scores, without those beyond the caps.
        kept = boxes.take(rank_detections(boxes, self.protocol, n_images)[0])
        shape = {"n_images": n_images, "n_labels": self.n_labels}
        return match_part(objects, kept, self.protocol, self.threshold, **shape).confusion(self.score), len(boxes)


def _from_image(boxes: BoxTable, first: int) -> BoxTable:
    """Count images from one of them: small keys are found in a table, large ones by search."""
    return replace(boxes, image=boxes.image - np.int32(first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainTask:
    """Reads the buckets of a chain; where there is a mask of `images`, only rows of these."""

    runs: tuple[Run, ...]
    rules: CurveRules
    images: BoolArray | None = None

    def describe(self, item: Any) -> str:
        """Name a chain for a message."""
        chain = item if isinstance(item[0], Bucket) else item[1]
        first, last = chain[0].labels
        classes = pluralise(last - first, "class", "classes")
        return f"a chain of {pluralise(len(chain), 'bucket')}, with {sum(map(len, chain)):,} detections of {classes}"

    @property
    def n_thresholds(self) -> int:
        """How many IoU thresholds there are."""
        return len(self.rules.protocol.iou_thresholds)

    def load(self, bucket: Bucket) -> Ranking:
        """Return a bucket in the order of its ranking."""
        return load_ranking(self.runs, bucket.rows, bucket.labels, self.rules.protocol, self.images)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReduceCurves(ChainTask):
    """Reduces curves to what is kept of them, and counts what the ranking holds."""

    cells: tuple[Cell, ...]

    def __call__(self, chain: Chain) -> tuple[dict[Cell, CurveReducer], Facts]:
        """Return the reducer of each curve, with all rows of the chain."""
        kind = HitsOfArea if self.rules.protocol.interpolation == "area" else Envelope
        found: dict[Cell, CurveReducer] = {cell: kind(self.rules, cell, chain[0].labels) for cell in self.cells}
        facts = Facts(chain[0].labels)
        for place, bucket in enumerate(chain):
            ranking = self.load(bucket)
            shared = Shared(ranking)
            facts.add(ranking, shared, bucket.tied)
            for cell, reducer in found.items():
                beyond = self._of_tie(chain, place, cell) if cell[2] is not None and bucket.tied is not None else None
                reducer.add(ranking, shared, beyond)
        facts.close()
        return found, facts

    def _of_tie(self, chain: Chain, place: int, cell: Cell) -> tuple[IntArray, IntArray]:
        """Return what moves in front of the hits of a piece of a tie: whole pieces before it, or after it, (T,).

        With hits in front, what counts in earlier pieces is replaced by their hits; behind, what counts in later
        pieces and does not hit comes in front as well, except the `late_misses` of all pieces.
        """
        tied = chain[place].tied
        area, cap = cell[0], self.rules.caps[cell[1]]
        moved = np.zeros(self.n_thresholds, dtype=np.int64)
        earlier = np.zeros(0, dtype=np.int32)  # images of candidates
        for other, bucket in enumerate(chain):
            if bucket.tied != tied or (cell[2] and other >= place):
                continue
            ranking = self.load(bucket)
            if cell[2] or other > place:
                hits = Hits(ranking, area, cap)
                moved += hits.totals() - (hits.stop - hits.start)[:, 0]
            if not cell[2]:
                image = ranking.image[ranking.candidate]
                late = is_behind(np.append(earlier, image))[len(earlier) :]
                moved -= misses_of(ranking, area, cap, np.flatnonzero(late)).sum(axis=1)
                earlier = np.union1d(earlier, image)
        return (-moved if cell[2] else moved), moved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindRecallScores(ChainTask):
    """Finds the scores at which recall values are reached."""

    area: int
    cap: int
    grid: FloatArray

    def __call__(self, chain: Chain) -> tuple[FloatArray, FloatArray]:
        """Return the score of each recall value (T, K, R), and the highest score of each class (K,)."""
        first, last = chain[0].labels
        needed = np.maximum(required_hits(self.rules.positives[self.area, first:last], self.grid), 1)  # (K, R)
        n = self.n_thresholds
        scores = np.zeros((n, *needed.shape))
        of_first = np.zeros(last - first)
        tp = np.zeros((n, last - first), dtype=np.int64)
        seen = np.zeros(last - first, dtype=np.bool_)
        for bucket in chain:
            ranking = self.load(bucket)
            hits = Hits(ranking, self.area, self.rules.caps[self.cap])
            place = needed - 1 - tp[:, :, None]  # (T, K, R) among the hits of the bucket
            there = (place >= 0) & (place < (hits.stop - hits.start)[:, :, None])
            at = np.where(there, place + hits.start[:, :, None], 0)
            of_hit = ranking.score[hits.detection]
            if len(of_hit):
                scores = np.where(there, of_hit[at], scores)
            tp += hits.stop - hits.start
            labels, rows = np.unique(ranking.label, return_index=True)
            new = ~seen[labels]
            of_first[labels[new]] = ranking.score[rows[new]]
            seen[labels] = True
        return scores, of_first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountAtScore(ChainTask):
    """Counts hits, and detections that count, with at least a score."""

    score: float

    def __call__(self, chain: Chain) -> tuple[IntArray, IntArray]:
        """Return both counts, (T, K)."""
        first, last = chain[0].labels
        tp, counted = (np.zeros((self.n_thresholds, last - first), dtype=np.int64) for _ in range(2))
        for bucket in chain:
            ranking = self.load(bucket)
            above = ranking.score >= self.score
            for t in range(self.n_thresholds):
                hit, counts = ranking.outcomes(t)
                tp[t] += np.bincount(ranking.label[hit & above], minlength=last - first)
                counted[t] += np.bincount(ranking.label[counts & above], minlength=last - first)
        return tp, counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FindBestScores(ChainTask):
    """Finds the best score of each class by an aim."""

    aim: str
    n_images: int

    def __call__(self, chain: Chain) -> dict[tuple[int, int | None], tuple[float, int, int]]:
        """Return the best score of each threshold and class, with its hits and counts."""
        first, last = chain[0].labels
        positives = self.rules.positives[ALL_SIZES]
        best = [
            BestScore(self.aim, int(positives[label]), self.n_images, self.n_thresholds) for label in range(first, last)
        ]
        for bucket in chain:
            ranking = self.load(bucket)
            hits, counts = outcomes_of(ranking)
            bounds = np.searchsorted(ranking.label, np.arange(last - first + 1, dtype=ranking.label.dtype)).tolist()
            for label, (start, stop) in enumerate(pairwise(bounds)):
                if stop > start:
                    rows = slice(start, stop)
                    best[label].count_rows(ranking.score[rows], hits[:, rows], counts[:, rows])
        for of_label in best:
            of_label.flush()
        return {
            (t, first + label): found
            for label, of_label in enumerate(best)
            for t, found in enumerate(of_label.found)
            if found is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitByScore(ChainTask):
    """Writes what detections count as in ranges of scores: the first half of ranking all classes as one."""

    cuts: FloatArray  # descending
    folder: ScratchPlace

    def __call__(self, numbered: tuple[int, Chain]) -> tuple[Blocks, IntArray]:
        """Return where each range lies in the file of a chain, and what hits and counts in it, (ranges, 2, T)."""
        place, chain = numbered
        totals = np.zeros((len(self.cuts) + 1, 2, self.n_thresholds), dtype=np.int64)

        def parts() -> Any:
            for bucket in chain:
                ranking = self.load(bucket)
                outcomes = np.stack(outcomes_of(ranking))  # (2, T, n)
                ranges = np.searchsorted(-self.cuts, -ranking.score, "right")
                for at in np.unique(ranges).tolist():
                    rows = ranges == at
                    totals[at] += np.count_nonzero(outcomes[:, :, rows], axis=2)
                    yield at, ranking.score[rows], outcomes[:, :, rows]

        return write_scores(self.folder / f"chain-{place:05}", parts()), totals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestOfScores:
    """Finds the best of a range of scores over all classes by an aim: the second half."""

    aim: str
    n_images: int
    blocks: tuple[Blocks, ...]  # of all chains
    positives: int
    before: IntArray  # what hits and counts in the ranges above each one, (ranges, 2, T)

    def __call__(self, place: int) -> BestScore:
        """Return the best scores of one range."""
        n = self.before.shape[2]
        best = BestScore(self.aim, self.positives, self.n_images, n, self.before[place])
        best.add(*read_scores(self.blocks, place, n))
        return best


def outcomes_of(ranking: Ranking) -> tuple[BoolArray, BoolArray]:
    """Return which detections hit and which count, over all sizes, at each threshold (T, n)."""
    both: Sequence[tuple[BoolArray, BoolArray]] = [
        ranking.outcomes(t) for t in range(len(ranking.protocol.iou_thresholds))
    ]
    return np.stack([hit for hit, _ in both]), np.stack([counts for _, counts in both])


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows of consecutive images in class order, on the disk."""

    path: ScratchPlace
    first: IntArray  # row where each class begins, and the end (K + 1,)
    starts: dict[str, int]  # where each column begins, in bytes
    first_candidate: IntArray  # the same of candidates (K + 1,)
    outcome_bytes: int  # of a candidate
    positives: IntArray  # objects that count (A, K)
    objects: IntArray  # and all of them (K,)

    def read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Return some rows of a column."""
        return self._column(name, _DETECTIONS[name], start, stop)

    def _column(self, name: str, dtype: Any, start: int, stop: int) -> npt.NDArray[Any]:
        return read_array(self.path, dtype, self.starts[name] + start * np.dtype(dtype).itemsize, stop - start)

    def _search(self, column: tuple[str, Any, int], value: float, low: int, high: int, *, behind: bool) -> int:
        """Return where rows from `low` to `high` that stand in front of a value end, or behind it.

        A column has a name, a type, and 1 where it ascends, -1 where it descends. Few rows of it are read.
        """
        name, dtype, sign = column
        while high - low > SEARCHED:
            middle = (low + high) // 2
            found = sign * self._column(name, dtype, middle, middle + 1)[0].item()
            if found < sign * value or (behind and found == sign * value):
                low = middle + 1
            else:
                high = middle
        rows = sign * self._column(name, dtype, low, high)
        return low + int(np.searchsorted(rows, sign * value, "right" if behind else "left"))

    def place(self, low: int, high: int, score: float, *, behind: bool) -> int:
        """Return where the rows of a class, from `low` to `high`, that stand in front of a score end, or behind it."""
        if high <= low:
            return low
        return self._search(("score", np.float64, -1), score, int(low), int(high), behind=behind)

    def candidates(self, start: int, stop: int) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return which of some rows are candidates, and the packed outcomes of these (c, bytes)."""
        low, high = self._candidate(start), self._candidate(stop)
        if high <= low:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.outcome_bytes), dtype=np.uint8)
        rows = self._column("candidate", np.int32, low, high)
        offset = self.starts["outcomes"] + low * self.outcome_bytes
        packed = read_array(self.path, np.uint8, offset, (high - low) * self.outcome_bytes)
        return rows.astype(np.int64) - start, packed.reshape(high - low, self.outcome_bytes)

    def _candidate(self, row: int) -> int:
        """Return how many candidates stand in front of a row."""
        label = int(np.searchsorted(self.first, row, "right")) - 1
        low = int(self.first_candidate[label])
        if row == self.first[label]:
            return low
        high = int(self.first_candidate[label + 1])
        return self._search(("candidate", np.int32, 1), row, low, high, behind=False)

    def count_objects(self, images: BoolArray) -> tuple[IntArray, IntArray]:
        """Return `positives` and `objects` of the images in a mask alone."""
        n, n_areas = int(self.objects.sum()), len(self.positives)
        # Three columns of four bytes, one behind the other.
        packed = read_bytes(self.path, self.starts["gt_image"], 12 * n)
        image, label, counts = np.frombuffer(packed, np.uint32).reshape(3, n)
        kept = images[image]
        return _count_objects(label[kept].astype(np.int64), _unpacked(counts[kept], n_areas), len(self.objects))


def _count_objects(label: IntArray, counts: BoolArray, n_labels: int) -> tuple[IntArray, IntArray]:
    """Count the objects that count by area range and class (A, K), and all by class (K,)."""
    positives = np.stack([np.bincount(label[of_area], minlength=n_labels) for of_area in counts])
    return positives, np.bincount(label, minlength=n_labels)


def _packed(flags: BoolArray) -> npt.NDArray[np.uint32]:
    """Return a bit per area range (n,) of flags (A, n)."""
    bits = (1 << np.arange(len(flags), dtype=np.uint32))[:, None]
    return np.asarray((flags * bits).sum(axis=0, dtype=np.uint32))


def _unpacked(bits: npt.NDArray[np.uint32], n_areas: int) -> BoolArray:
    """Return flags (A, n) of a bit per area range (n,)."""
    return np.stack([(bits >> area & 1).astype(np.bool_) for area in range(n_areas)])


def write_run(path: ScratchPlace, ranking: Ranking, first_image: int) -> Run:
    """Write the ranking of a part, whose images count from `first_image`: whole or not at all."""
    n = len(ranking.candidate)
    flags = np.stack((ranking.hits, ranking.counts))
    flags = flags.reshape(flags.size // n if n else 0, n)  # (2 A T, c)
    columns: dict[str, npt.NDArray[Any]] = {
        "score": ranking.score,
        "image": ranking.image + first_image,
        "rank": ranking.rank,
        "tie": ranking.tie,
        "in_range": _packed(ranking.in_range),
    }
    if ranking.protocol.score_ties == "image":
        del columns["tie"]
    written = [(name, columns[name].astype(dtype)) for name, dtype in _DETECTIONS.items() if name in columns]
    packed = np.ascontiguousarray(np.packbits(flags, axis=0).T)
    written += [("candidate", ranking.candidate.astype(np.int32)), ("outcomes", packed)]
    written += [
        ("gt_image", (ranking.gt_image + first_image).astype(np.int32)),
        ("gt_label", ranking.gt_label.astype(np.int32)),
        ("gt_counts", _packed(ranking.gt_counts)),
    ]
    ends = np.cumsum([0, *(column.nbytes for _, column in written)]).tolist()
    starts = {name: start for (name, _), start in zip(written, ends, strict=False)}
    write_whole(path, (column.tobytes() for _, column in written))
    first = np.searchsorted(ranking.label, np.arange(ranking.n_labels + 1, dtype=ranking.label.dtype))
    objects = _count_objects(ranking.gt_label, ranking.gt_counts, ranking.n_labels)
    candidates = np.searchsorted(ranking.candidate, first)
    return Run(path, first, starts, candidates, packed_size(ranking.protocol), *objects)


def packed_size(protocol: Protocol) -> int:
    """Return how many bytes hold whether a candidate hits and counts, a bit for each area range and threshold."""
    return -(-2 * len(protocol.range_names) * len(protocol.iou_thresholds) // 8)


def load_ranking(
    runs: Sequence[Run],
    rows: IntArray,
    labels: tuple[int, int],
    protocol: Protocol,
    images: BoolArray | None = None,
) -> Ranking:
    """Return rows of several runs, which ascend by image, as one ranking; classes count from the first of `labels`.

    Each of `rows` (r, 3) is a run, the first row and the end. Objects are not in it. Where a mask of `images` is given,
    only rows of these are kept.
    """
    parts = [(runs[run], start, stop) for run, start, stop in rows.tolist()]
    names = [name for name in _DETECTIONS if name != "tie" or protocol.score_ties != "image"]

    def read(part: tuple[Run, int, int]) -> tuple[dict[str, Any], tuple[IntArray, npt.NDArray[np.uint8]]]:
        run, start, stop = part
        return {name: run.read(name, start, stop) for name in names}, run.candidates(start, stop)

    each = gathered(read, parts, parts[0][0].path)
    loaded = {name: np.concatenate([columns[name] for columns, _ in each]) for name in names}
    bounds = [np.clip(run.first[labels[0] : labels[1] + 1], start, stop) for run, start, stop in parts]
    label = np.concatenate([np.repeat(np.arange(labels[1] - labels[0]), np.diff(ends)) for ends in bounds])
    found = [candidates for _, candidates in each]
    starts = np.cumsum([0, *(stop - start for _, start, stop in parts)])
    number = np.full(len(label), -1)  # of the candidate that a row is
    given = np.concatenate([rows + start for (rows, _), start in zip(found, starts[:-1], strict=True)])
    number[given] = np.arange(len(given))
    # Rows without a tie come by image, and stay so.
    by_tie = np.argsort(loaded["tie"], kind="stable") if "tie" in loaded else np.arange(len(label))
    order = by_tie[class_and_score_order(label[by_tie], loaded["score"][by_tie])]
    if images is not None:
        order = order[images[loaded["image"][order]]]
    number = number[order]
    candidate = np.flatnonzero(number >= 0)
    outcomes = np.concatenate([packed for _, packed in found])[number[candidate]]
    shape = 2, len(protocol.range_names), len(protocol.iou_thresholds), len(candidate)
    flags = np.unpackbits(np.ascontiguousarray(outcomes.T), axis=0, count=shape[0] * shape[1] * shape[2])
    hits, counts = flags.view(np.bool_).reshape(shape)
    in_range = loaded.pop("in_range")[order]
    columns = {name: column[order] for name, column in loaded.items()}
    none = np.zeros(0, dtype=np.int64)
    return Ranking(
        protocol=protocol,
        n_images=0,
        n_labels=labels[1] - labels[0],
        image=columns["image"],
        label=label[order],
        rank=columns["rank"],
        tie=columns.get("tie", columns["image"]),
        score=columns["score"],
        in_range=_unpacked(in_range, shape[1]),
        candidate=candidate,
        hits=hits,
        counts=counts,
        gt_image=none,
        gt_label=none,
        gt_counts=np.zeros((shape[1], 0), dtype=np.bool_),
    )


SAMPLES = 16  # scores looked at for each bucket that a class is cut into


@dataclass(frozen=True, slots=True, eq=False)
class Bucket:
    """Consecutive rows of the ranking of all detections, of the classes in the range `labels`."""

    rows: IntArray  # (r, 3): of a run, the first row and the end
    labels: tuple[int, int]
    # The score that all its rows have, where it is a piece of a tie that is too large for one bucket.
    tied: float | None = None

    def __len__(self) -> int:
        return int((self.rows[:, 2] - self.rows[:, 1]).sum())


# Buckets that follow each other within one class; or one bucket, of whole classes.
Chain = tuple[Bucket, ...]


def plan_buckets(runs: Sequence[Run], n_labels: int, most: int, *, by_image: bool) -> Iterator[Chain]:
    """Yield all rows in buckets of about `most` at most; `by_image` is whether that orders equal scores.

    No bucket begins or ends within a tie, unless the tie alone is too large.
    """
    counts = np.asarray(np.sum([np.diff(run.first) for run in runs], axis=0, dtype=np.int64))
    first = 0
    if not n_labels:
        yield (_bucket(np.zeros((len(runs), 2), dtype=np.int64), (0, 0)),)
    while first < n_labels:
        if counts[first] > most:
            yield tuple(_cut_class(runs, first, most, by_image=by_image))
            first += 1
            continue
        filled = np.cumsum(counts[first:])
        stop = first + max(1, int(np.searchsorted(filled, most, "right")))
        bounds = [(run.first[first], run.first[stop]) for run in runs]
        yield (_bucket(np.array(bounds), (first, stop)),)
        first = stop


def _bucket(bounds: IntArray, labels: tuple[int, int], tied: float | None = None) -> Bucket:
    """Return the rows between `bounds` (runs, 2); a run without any is not among them, if others have some."""
    rows = np.column_stack((np.arange(len(bounds)), bounds))
    filled = rows[bounds[:, 1] > bounds[:, 0]]
    return Bucket(filled if len(filled) else rows[:1], labels, tied)


def _cut_class(runs: Sequence[Run], label: int, most: int, *, by_image: bool) -> Iterator[Bucket]:
    """Cut a class by score, and by what orders equal scores where too many are equal."""
    start = np.array([run.first[label] for run in runs])
    ends = np.array([run.first[label + 1] for run in runs])
    labels = (label, label + 1)
    for cut in _cuts(runs, label, most):
        stop = np.array(gathered(partial(_stop, cut), list(zip(runs, start, ends, strict=True)), runs[0].path))
        bounds = np.stack((start, stop), axis=1)
        start = stop
        if cut.is_tie and int((bounds[:, 1] - bounds[:, 0]).sum()) > most:
            yield from _cut_tie(runs, bounds, labels, cut.score, most, by_image=by_image)
        elif (bounds[:, 1] > bounds[:, 0]).any():
            yield _bucket(bounds, labels)
    if (ends > start).any():
        yield _bucket(np.stack((start, ends), axis=1), labels)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a bucket ends: in front of all rows of a score, or behind them; then it may hold that score alone."""

    score: float
    is_behind: bool
    is_tie: bool = False


def _stop(cut: _Cut, rows: tuple[Run, int, int]) -> int:
    run, low, high = rows
    return run.place(low, high, cut.score, behind=cut.is_behind)


def _cuts(runs: Sequence[Run], label: int, most: int) -> Iterator[_Cut]:
    """Yield the ends of buckets by descending score."""
    step = max(1, most // SAMPLES)
    every = gathered(lambda run: run.read("score", run.first[label], run.first[label + 1]), runs, runs[0].path)
    sampled = [scores[::step] for scores in every]
    scores = np.sort(np.concatenate(sampled))[::-1]
    # There is a sample for `step` rows; a score that would fill half a bucket gets one of its own.
    for score in np.unique(scores[SAMPLES - 1 :: SAMPLES])[::-1].tolist():
        is_tie = 2 * int(np.count_nonzero(scores == score)) >= SAMPLES
        if is_tie:
            yield _Cut(score, is_behind=False)
        yield _Cut(score, is_behind=True, is_tie=is_tie)


def _cut_tie(
    runs: Sequence[Run], bounds: IntArray, labels: tuple[int, int], score: float, most: int, *, by_image: bool
) -> Iterator[Bucket]:
    """Cut rows of one score, which are sorted within each run: by run, as images ascend, or by their place."""
    if by_image:
        for run, (first, last) in enumerate(bounds.tolist()):
            for place in range(first, last, most):
                yield Bucket(np.array([[run, place, min(place + most, last)]]), labels, score)
        return
    ties = [run.read("tie", start, stop) for run, (start, stop) in zip(runs, bounds, strict=True)]
    every = np.sort(np.concatenate(ties))
    start = bounds[:, 0]
    for last in [*every[most - 1 :: most].tolist(), int(every[-1])]:
        stop = bounds[:, 0] + [np.searchsorted(tie, last, "right") for tie in ties]
        if (stop > start).any():
            yield _bucket(np.stack((start, stop), axis=1), labels, score)
        start = stop


# Hits of each tie in front of everything else in it, behind, or where they stand.
TiesFirst = bool | None
Cell = tuple[int, int, TiesFirst]  # area, cap, and how ties are ordered


@dataclass(frozen=True, slots=True, eq=False)
class CurveRules:
    """What all curves of a source have in common."""

    protocol: Protocol
    caps: tuple[int | None, ...]
    positives: IntArray  # (A, K)
    recall_grid: FloatArray


class Shared:
    """What all curves of a bucket need."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    @cached_property
    def runs(self) -> tuple[IntArray, IntArray]:
        """Where each run of detections of one class and score begins, and how long it is."""
        return lengths_of_runs(starts_of_runs(self._ranking.score) | starts_of_runs(self._ranking.label))

    @cached_property
    def ties(self) -> tuple[IntArray, IntArray]:
        """Where the tie of each detection begins and where it ends."""
        first, size = self.runs
        return np.repeat(first, size), np.repeat(first + size, size)


class Facts:
    """How many detections of a chain are tied with another one of their class, and how many each class has (K,)."""

    def __init__(self, labels: tuple[int, int]) -> None:
        self.detections = np.zeros(labels[1] - labels[0], dtype=np.int64)
        self._tied = 0
        self._order = TieOrder()
        self.tie_orders: dict[int, str] = {}  # of each class that has ties which span a hit and a miss
        self._pieces: dict[float, int] = {}  # rows of each tie that is cut

    @property
    def tied(self) -> int:
        """How many detections are tied."""
        return self._tied + sum(n for n in self._pieces.values() if n > 1)

    def add(self, ranking: Ranking, shared: Shared, tied: float | None) -> None:
        """Add a bucket; one that is a piece of a tie has its score."""
        self.detections += np.bincount(ranking.own_labels, minlength=len(self.detections))
        if tied is not None:
            self._order.add_piece(ranking)
            self._pieces[tied] = self._pieces.get(tied, 0) + len(ranking)
            return
        self._order.close()
        self._order.add(ranking, shared.runs)
        _, size = shared.runs
        self._tied += int(size[size > 1].sum())

    def close(self) -> None:
        """End the chain, and with it what no other process could take over."""
        self.tie_orders = self._order.digests()
        del self._order


class CurveReducer:
    """Adds up the buckets of a chain for one curve."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        self.area, cap, self.ties_first = cell
        self.cap = rules.caps[cap]
        self.protocol = rules.protocol
        self.positives = rules.positives[self.area, labels[0] : labels[1]]
        shape = len(rules.protocol.iou_thresholds), labels[1] - labels[0]
        self.count = np.zeros(shape, dtype=np.int64)  # hits of earlier buckets, (T, K)
        self._counted = np.zeros(shape, dtype=np.int64)  # and detections that count

    def add(self, ranking: Ranking, shared: Shared, beyond: tuple[IntArray, IntArray] | None) -> None:
        """Add a bucket."""
        hits = Hits(ranking, self.area, self.cap)
        count = hits.stop - hits.start
        before = self._before(hits, shared) + np.repeat(self._counted.ravel(), count.ravel())
        if beyond is not None:
            before += np.repeat(beyond[0], count.sum(axis=1))
        elif self.ties_first is False:
            start, _ = shared.ties
            late = late_misses(ranking, self.area, self.cap, start[ranking.candidate])
            some, counts = late_of_hits(late, hits, start)
            before[some] -= counts
        self.take(hits, before)
        self.count += count
        # Only a class that is cut goes on, and is then alone in its buckets.
        if len(self.positives) == 1:
            self._counted[:, 0] += hits.totals()

    def _before(self, hits: Hits, shared: Shared) -> WholeArray:
        """Count what counts in front of each hit in its bucket and class, itself included; see `Curves.steps`."""
        if self.ties_first is None:
            own = hits.own_counts()
            return hits.weigh(None, hits.places(hits.detection + 1)) if own is None else own
        start, stop = shared.ties
        first, size = lengths_of_runs(starts_of_runs(hits.threshold) | starts_of_runs(start[hits.detection]))
        before = hits.weigh(None, hits.places((start if self.ties_first else stop)[hits.detection]))
        total = np.arange(len(hits.detection) + 1)
        return before + total[1:] - total[np.repeat(first if self.ties_first else first + size, size)]

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Use the hits of a bucket, with what counts before each one in its class."""
        raise NotImplementedError


class Envelope(CurveReducer):
    """Keeps the highest precision between neighbouring recall values."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        super().__init__(rules, cell, labels)
        self._needed = np.maximum(required_hits(self.positives, rules.recall_grid), 1)  # (K, R)
        self.until_next = np.zeros((*self.count.shape, self._needed.shape[1]))

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Raise the envelope where the precision at a hit is higher."""
        if not len(before):
            return
        number = np.arange(len(before)) - np.repeat((hits.start - self.count).ravel(), (hits.stop - hits.start).ravel())
        precision = np.zeros(len(before) + 1)
        np.divide(number + 1, np.maximum(before, 1) + self.protocol.precision_epsilon, out=precision[:-1])
        # The hit that reaches each recall value, or the first one of the bucket behind it.
        place = np.clip(self._needed - 1 - self.count[:, :, None], 0, (hits.stop - hits.start)[:, :, None])
        at = place + hits.start[:, :, None]
        highest = np.maximum.reduceat(precision, at.ravel()).reshape(at.shape)
        highest[at == hits.stop[:, :, None]] = 0
        np.maximum(self.until_next, highest, out=self.until_next)


class HitsOfArea(CurveReducer):
    """Keeps the hits themselves, as the area below their envelope is one sum."""

    def __init__(self, rules: CurveRules, cell: Cell, labels: tuple[int, int]) -> None:
        super().__init__(rules, cell, labels)
        self.blocks: list[list[WholeArray]] = [[] for _ in self.count]  # of each threshold

    def take(self, hits: Hits, before: WholeArray) -> None:
        """Keep what counts before each hit."""
        bounds = np.append(hits.start[:, 0], len(before))
        for t, blocks in enumerate(self.blocks):
            blocks.append(before[bounds[t] : bounds[t + 1]])


@dataclass(frozen=True, slots=True, eq=False)
class JoinedCurve:
    """A curve of all classes."""

    count: IntArray  # (T, K)
    until_next: FloatArray | None = None  # (T, K, R)
    before: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def joined_curve(reducers: Sequence[Any], is_area: bool) -> JoinedCurve:
    """Put the classes of all chains together."""
    count = np.concatenate([reducer.count for reducer in reducers], axis=1)
    if not is_area:
        return JoinedCurve(count, np.concatenate([reducer.until_next for reducer in reducers], axis=1))
    blocks = [block for t in range(len(count)) for reducer in reducers for block in reducer.blocks[t]]
    return JoinedCurve(count, None, np.concatenate([np.zeros(0, dtype=np.int64), *blocks]))


class BestScore:
    """The score that does best by an aim at each threshold, of scores that come descending; see `merits`."""

    def __init__(
        self, aim: str, positives: int, n_images: int, n_thresholds: int, before: IntArray | None = None
    ) -> None:
        self._aim, self._positives, self._n_images = aim, positives, n_images
        # What hits and what counts so far, (2, T): that of higher scores, which others look at, to begin with.
        self._tp, self._counted = np.zeros((2, n_thresholds), dtype=np.int64) if before is None else before
        self.highest = np.zeros(n_thresholds)
        self._waiting: tuple[FloatArray, IntArray, IntArray] | None = None
        self.found: list[tuple[float, int, int] | None] = [None] * n_thresholds

    def count_rows(self, score: FloatArray, hits: BoolArray, counts: BoolArray) -> None:
        """Add detections (n,), with whether each hits and counts (T, n)."""
        first = np.flatnonzero(starts_of_runs(score))
        summed = [np.add.reduceat(flags, first, axis=1, dtype=np.int64) for flags in (hits, counts)]
        scores = score[first]
        # The last score may go on in the next bucket.
        if self._waiting is not None:
            last, waiting_hits, waiting_counts = self._waiting
            if last[0] == scores[0]:
                summed[0][:, :1] += waiting_hits
                summed[1][:, :1] += waiting_counts
            else:
                self.add(*self._waiting)
        self.add(scores[:-1], summed[0][:, :-1], summed[1][:, :-1])
        self._waiting = scores[-1:], summed[0][:, -1:], summed[1][:, -1:]

    def flush(self) -> None:
        """Add the last score."""
        if self._waiting is not None:
            self.add(*self._waiting)
            self._waiting = None

    def add(self, score: FloatArray, hits: IntArray, counts: IntArray) -> None:
        """Add different scores (s,), with how many detections hit and count at each (T, s)."""
        if not len(score):
            return
        tp = self._tp[:, None] + np.cumsum(hits, axis=1)
        counted = self._counted[:, None] + np.cumsum(counts, axis=1)
        merit = merits(self._aim, tp, counted, self._positives, self._n_images)
        for t, best in enumerate(merit.argmax(axis=1).tolist()):
            # Of equal ones the highest score, which came first.
            if merit[t, best] > self.highest[t]:
                self.highest[t] = merit[t, best]
                self.found[t] = float(score[best]), int(tp[t, best]), int(counted[t, best])
        self._tp, self._counted = tp[:, -1], counted[:, -1]

    def follow(self, lower: BestScore) -> None:
        """Take over what is better among lower scores."""
        for t in np.flatnonzero(lower.highest > self.highest).tolist():
            self.highest[t], self.found[t] = lower.highest[t], lower.found[t]
