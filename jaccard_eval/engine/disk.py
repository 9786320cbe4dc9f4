"""The disk engine: boxes are matched part by part, and only what detections count as is kept, in run files.

Curves of rankings that do not fit into memory are read from these bucket by bucket, and what is kept of them is small.
Everything that is added up across buckets is a whole number, everything else a maximum, so that neither the number of
parts nor the size of buckets changes a bit. The hits of a class are brought together where areas are float sums (VOC).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, Boxes, FloatArray
from jaccard_eval.data.protocol import BOXES, Protocol
from jaccard_eval.engine.memory import release_memory, usable_memory
from jaccard_eval.engine.scratch import ScratchPlace, explained, make_scratch, remove_scratch
from jaccard_eval.engine.stored import Engine, Found, Item, Tables, on_disk
from jaccard_eval.engine.tasks import (
    SAMPLES,
    BestOfScores,
    BestScore,
    Cell,
    Chain,
    CountAtScore,
    CountConfusion,
    CurveRules,
    Facts,
    FindBestScores,
    FindRecallScores,
    MatchPart,
    ReduceCurves,
    Run,
    SplitByScore,
    TableChange,
    TiesFirst,
    joined_curve,
    plan_buckets,
)
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray
from jaccard_eval.matching.matchtable import ALL_SIZES, EVERY
from jaccard_eval.meanwhile import usable_processors
from jaccard_eval.metrics.curves import BETWEEN, Steps
from jaccard_eval.metrics.detection import NO_TABLE
from jaccard_eval.options import BEST_F1, EngineOptions
from jaccard_eval.progress import Stage

PART_ROWS = 200_000  # of predictions that are matched at once, at most about
PART_ROW_BYTES = 1_000  # of memory for each of them, when most is in use
LEAST_PART_ROWS = 20_000
SHAPE_ROWS = 5  # of boxes alone, in the memory that a box with its mask or other shape takes
BUCKET_ROWS = 500_000
LIMIT = 2**29  # bytes that are used unless a limit is given: more would be no faster
Best = dict[tuple[int, int | None], tuple[float, int, int]]  # score, hits and counts by threshold and class


def portions(options: EngineOptions, workers: int, iou_type: str) -> dict[str, int]:
    """Return how many rows are worked on at once, by each of some workers, within the memory limit."""
    # Each worker has a part or a bucket of its own; tables of names come on top.
    room = (options.bytes or LIMIT) // workers
    rows = min(PART_ROWS, max(LEAST_PART_ROWS, room // PART_ROW_BYTES))
    part_rows = rows if iou_type == BOXES else max(1, rows // SHAPE_ROWS)
    return {"part_rows": part_rows, "bucket_rows": min(BUCKET_ROWS, max(2 * rows, LEAST_PART_ROWS))}


@dataclass(frozen=True, kw_only=True, eq=False)
class DiskEngine:
    """Where and in which portions work is done; no result depends on it."""

    scratch: Path
    part_rows: int = PART_ROWS
    bucket_rows: int = BUCKET_ROWS
    workers: int = 1
    room: int = 2**63  # bytes of memory that an input may take which cannot be read in parts
    kept: bool = False  # whether the files stay
    _numbers: Iterator[int] = field(init=False, default_factory=count)

    @classmethod
    def open(cls, options: EngineOptions, iou_type: str = BOXES) -> DiskEngine:
        """Make a scratch folder, which is removed with the last object that needs it; portions fit the limit."""
        workers = options.workers or usable_processors()
        engine = cls(
            scratch=make_scratch(options.scratch, kept=options.keep_scratch),
            **portions(options, workers, iou_type),
            workers=workers,
            room=options.bytes or usable_memory(),
            kept=options.keep_scratch,
        )
        engine.remove_at_end()
        return engine

    def remove_at_end(self) -> None:
        """Remove the files with the last object that needs them."""
        if not self.kept:
            weakref.finalize(self, remove_scratch, self.scratch)

    def close(self) -> None:
        """Remove the files at once: there will be no result."""
        if not self.kept:
            remove_scratch(self.scratch)

    def folder(self) -> Path:
        """Make a new folder for files."""
        folder = self.scratch / f"{next(self._numbers):03}"
        folder.mkdir()
        return folder

    def shared_folder(self) -> ScratchPlace:
        """Make a new folder for what tasks write."""
        return self.folder()

    def shared(self, boxes: Tables) -> Tables:
        """Return boxes as tasks read them."""
        return boxes

    def shows(self, path: Path) -> bool:
        """Whether tasks can read a file where it lies."""
        return True

    def map(self, task: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        """Yield what a task makes of each item, in their order."""
        # A metric may be asked for long after the evaluation.
        with explained(self.scratch):
            yield from map_in_order(task, items, workers=self.workers)

    def measure(
        self,
        gt: Boxes,
        pred: Boxes,
        protocol: Protocol,
        *,
        n_labels: int,
        change: TableChange | None = None,
    ) -> ReducedCurves:
        """Match predictions, which lie by image as the ground truth does, and return their curves.

        A `change` is made to each match table before it is counted.
        """
        rules = {"protocol": protocol, "n_labels": n_labels, "folder": self.shared_folder(), "change": change}
        runs = self._each_part(MatchPart, "matching", gt, pred, **rules)
        return ReducedCurves(
            Runs(
                protocol=protocol,
                n_images=int(on_disk(pred).arranged_bounds[-1]),
                n_labels=1 if protocol.class_agnostic else n_labels,
                runs=tuple(runs),
                engine=self,
            )
        )

    def confusion(
        self, gt: Boxes, pred: Boxes, protocol: Protocol, threshold: int, score: float, *, n_labels: int
    ) -> npt.NDArray[np.int64]:
        """Count which classes are predicted as which by detections with at least a score; see `match_any_class`."""
        size = 2 if protocol.class_agnostic else n_labels + 1
        counts = np.zeros((size, size), dtype=np.int64)
        rules = {"protocol": protocol, "n_labels": n_labels, "threshold": threshold, "score": score}
        for of_part in self._each_part(CountConfusion, "counting confusions", gt, pred, **rules):
            counts += of_part
        return counts

    def _each_part(
        self,
        kind: Callable[..., Callable[[int], tuple[Found, int]]],
        name: str,
        gt: Boxes,
        pred: Boxes,
        **rules: Any,
    ) -> Iterator[Found]:
        """Yield what a kind of `PartTask` makes of each part, in their order."""
        sides = on_disk(gt), on_disk(pred)
        bounds = sides[1].arranged_bounds
        task = kind(
            bounds=bounds,
            rows=_rows_of_parts(pred, bounds),
            gt=self.shared(sides[0].parts),
            pred=self.shared(sides[1].parts),
            **rules,
        )
        with Stage(name, len(pred)) as stage:
            for found, n in self.map(task, range(len(bounds) - 1)):
                yield found
                stage.advance(n)
                release_memory(n)


def _rows_of_parts(boxes: Boxes, bounds: IntArray) -> IntArray:
    """Return how many boxes each part of images holds."""
    ends = np.concatenate(([0], np.cumsum(boxes.counts("image", int(bounds[-1])))))
    return np.asarray(np.diff(ends[bounds]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """What was matched, on the disk."""

    protocol: Protocol
    n_images: int
    n_labels: int
    runs: tuple[Run, ...]
    engine: Engine  # whose files these are: they are removed with it

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """All rows, divided into buckets."""
        by_image = self.protocol.score_ties == "image"
        return tuple(plan_buckets(self.runs, self.n_labels, self.engine.bucket_rows, by_image=by_image))


class Kept:
    """What was read from run files, whatever the order of ties."""

    def __init__(self) -> None:
        self.cells: dict[Cell, Any] = {}
        self.facts: list[Facts] = []  # of each chain


class ReducedCurves:
    """Curves of run files; see `Curves` for what is computed. What was not asked for at first costs another pass.

    `images` are the rows of the images that count, ascending; all unless given.
    """

    def __init__(self, runs: Runs, images: IntArray | None = None, *, ties_first: TiesFirst = None) -> None:
        self._runs = runs
        self._rows = images
        self._ties_first = ties_first
        self._mask: BoolArray | None = None
        if images is not None:
            self._mask = np.zeros(runs.n_images, dtype=np.bool_)
            self._mask[images] = True
        self.protocol = runs.protocol
        self.caps: tuple[int | None, ...] = runs.protocol.max_dets or (None,)
        self._kept = Kept()
        self._counted: dict[float, tuple[IntArray, IntArray]] = {}
        # By threshold and class, None for all pooled, of each aim.
        self._best: dict[tuple[str, bool], Best] = {}

    @property
    def n_images(self) -> int:
        """How many images there are."""
        return self._runs.n_images if self._rows is None else len(self._rows)

    @property
    def positives(self) -> IntArray:
        """Objects that count, shape (A, K)."""
        return self._objects[0]

    @property
    def objects(self) -> IntArray:
        """All objects, whether they count or not, shape (K,)."""
        return self._objects[1]

    @cached_property
    def _objects(self) -> tuple[IntArray, IntArray]:
        runs, mask = self._runs.runs, self._mask
        counted = [(run.positives, run.objects) if mask is None else run.count_objects(mask) for run in runs]
        return np.stack([part[0] for part in counted]).sum(axis=0), np.stack([part[1] for part in counted]).sum(axis=0)

    @cached_property
    def detections(self) -> IntArray:
        """All detections within the largest cap, shape (K,)."""
        if self._mask is None and self.protocol.assignment != EVERY:  # whose rows are copies, too
            return np.asarray(np.sum([np.diff(run.first) for run in self._runs.runs], axis=0, dtype=np.int64))
        return np.concatenate([facts.detections for facts in self._facts])

    @property
    def recall_grid(self) -> FloatArray:
        """Recall values of the curves; 101 of them where the protocol itself uses none."""
        return self.protocol.recall_grid if self.protocol.recall_points else np.linspace(0.0, 1.0, 101)

    def restrict(self, images: IntArray) -> ReducedCurves:
        """Return the curves of some images, ascending rows that are then counted from 0."""
        rows = images if self._rows is None else self._rows[images]
        return ReducedCurves(self._runs, rows, ties_first=self._ties_first)

    def ties(self, *, best: bool) -> ReducedCurves:
        """Return the curves with the hits of each tie in front, or behind: the highest precision, or the lowest."""
        view = ReducedCurves(self._runs, self._rows, ties_first=best)
        view._kept = self._kept  # what was made for one view serves the others
        return view

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Compute several curves in one pass."""
        missing = [cell for cell in dict.fromkeys(cells) if cell not in self._kept.cells]
        if missing:
            found = self._each_chain(ReduceCurves(**self._of_all, cells=tuple(missing)), "measuring")
            for cell in missing:
                self._kept.cells[cell] = joined_curve([reducers[cell] for reducers, _ in found], self._is_area)
            self._kept.facts = [facts for _, facts in found]

    # What averages ask for.

    def hit_counts(self, area: int, cap: int) -> IntArray:
        """Count the true positives, shape (T, K)."""
        count: IntArray = self._cell(area, cap).count
        return count

    def detection_counts(self) -> IntArray:
        """Count the detections that are true or false positives over all sizes, by threshold and class (T, K)."""
        return self._counts_of(-np.inf)[1]

    def final_recall(self, area: int, cap: int) -> FloatArray:
        """Recall over all detections within a cap, shape (T, K)."""
        positives = self.positives[area].astype(np.float64)
        positives[positives == 0] = np.nan
        return np.asarray(self.hit_counts(area, cap) / positives)

    def interpolated_precision(self, area: int, cap: int) -> FloatArray:
        """Highest precision at or beyond each recall value, shape (T, R, K)."""
        if self._is_area:
            return self.steps(area, cap).interpolated_precision(self.recall_grid)
        until_next = self._cell(area, cap).until_next  # (T, K, R)
        highest = np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]
        return self._undefined(area, np.ascontiguousarray(highest.transpose(0, 2, 1)))

    def area_under_curve(self, area: int, cap: int) -> FloatArray:
        """Area below the interpolated precision of each class, shape (T, K)."""
        return self.steps(area, cap).area_under_envelope()

    def steps(self, area: int, cap: int) -> Steps:
        """Return where recall rises, which is kept where areas below the envelope are measured, or found anew."""
        if not self._is_area:
            return self._with_hits.steps(area, cap)
        found = self._cell(area, cap)
        stop = np.cumsum(found.count).reshape(found.count.shape)
        start = stop - found.count
        total = np.arange(int(found.count.sum()) + 1)
        return Steps(self.protocol, total, found.before, start, stop, self.positives[area])

    @cached_property
    def _with_hits(self) -> ReducedCurves:
        """The same curves with their hits, which take memory, and to read the files again."""
        rules = self.protocol.with_options(interpolation="area")
        return ReducedCurves(replace(self._runs, protocol=rules), self._rows, ties_first=self._ties_first)

    def recall_at(
        self, threshold: int, rates: FloatArray, *, area: int = ALL_SIZES, reaching: bool = False
    ) -> FloatArray:
        """Return the recall of each class at rates of false positives per image, (K, r); see `Curves.recall_at`."""
        if self.protocol.miss_rate_reading == BETWEEN and self._ties_first is None:
            best, worst = (self.ties(best=best).steps(area, len(self.caps) - 1) for best in (True, False))
            return best.recall_between(threshold, rates, self.n_images, worst)
        steps = self.steps(area, len(self.caps) - 1)
        return steps.recall_at(threshold, rates, self.n_images, reaching=reaching)

    @property
    def _is_area(self) -> bool:
        return self.protocol.interpolation == "area"

    def _cell(self, area: int, cap: int) -> Any:
        cell = (area, cap, self._ties_first)
        if cell not in self._kept.cells:
            # What a summary and the checks ask for, once for all: to read the files costs more than to reduce them.
            last = len(self.caps) - 1
            usual = [(a, last, None) for a in self._areas] + [(ALL_SIZES, m, None) for m in range(last)]
            self.prepare([cell, *usual, (ALL_SIZES, last, True), (ALL_SIZES, last, False)])
        return self._kept.cells[cell]

    def _undefined(self, area: int, values: FloatArray) -> FloatArray:
        values[..., self.positives[area] == 0] = np.nan
        return values

    # Whole curves.

    @cached_property
    def precision(self) -> FloatArray:
        """Interpolated precision at each recall value, shape (T, R, K, A, M)."""
        return self._stack(self.interpolated_precision)

    @cached_property
    def recall(self) -> FloatArray:
        """Recall over all detections, shape (T, K, A, M)."""
        return self._stack(self.final_recall)

    @cached_property
    def scores(self) -> FloatArray:
        """Score at which each recall value is reached, 0 beyond the last; shape (T, R, K, A, M)."""
        return self._stack(self.recall_scores)

    def _stack(self, slice_of: Callable[[int, int], FloatArray]) -> FloatArray:
        self.prepare((area, cap, None) for area in self._areas for cap in range(len(self.caps)))
        return np.stack(
            [np.stack([slice_of(a, m) for m in range(len(self.caps))], axis=-1) for a in self._areas], axis=-2
        )

    @property
    def _areas(self) -> range:
        return range(len(self.protocol.range_names))

    def recall_scores(self, area: int, cap: int, grid: FloatArray | None = None) -> FloatArray:
        """Score of the detection that reaches each recall value, those of the curves or a grid from 0; (T, R, K)."""
        grid = self.recall_grid if grid is None else grid
        reduce = FindRecallScores(**self._of_all, area=area, cap=cap, grid=grid)
        found = self._each_chain(reduce, "measuring")
        scores = np.concatenate([scores for scores, _ in found], axis=1)  # (T, K, R)
        scores[:, :, grid == 0] = np.concatenate([first for _, first in found])[:, None]
        return self._undefined(area, np.ascontiguousarray(scores.transpose(0, 2, 1)))

    # Counts at scores.

    def counts_at(self, threshold: int, label: int | None, score: float) -> tuple[int, int, int]:
        """Count true positives, false positives and misses at a score, of a class or of all pooled."""
        bests = (best.get((threshold, label)) for best in self._best.values())
        known = next((found for found in bests if found is not None and found[0] == score), None)
        positives = int((self.positives[ALL_SIZES] if label is None else self.positives[ALL_SIZES, label]).sum())
        if known is not None:
            _, tp, counted = known
        else:
            hits, counts = (values[threshold] for values in self._counts_of(score))
            tp, counted = (int(values.sum() if label is None else values[label]) for values in (hits, counts))
        return tp, counted - tp, positives - tp

    def best_score(self, threshold: int, label: int | None, aim: str = BEST_F1) -> float:
        """Return the best score of one class, or (None) of all classes pooled; see `Curves.best_score`."""
        key = aim, label is None
        if key not in self._best:
            self._best[key] = self._best_pooled(aim) if label is None else self._best_of_classes(aim)
        found = self._best[key].get((threshold, label))
        return float("nan") if found is None else found[0]

    def _counts_of(self, score: float) -> tuple[IntArray, IntArray]:
        """Count hits, and detections that count, with at least a score, by threshold and class (T, K)."""
        if score not in self._counted:
            found = self._each_chain(CountAtScore(**self._of_all, score=score), "counting")
            self._counted[score] = tuple(np.concatenate(columns, axis=1) for columns in zip(*found, strict=True))  # type: ignore[assignment]
        return self._counted[score]

    def _best_of_classes(self, aim: str) -> Best:
        """Best score of each threshold and class, with its hits and counts; none where no score does."""
        task = FindBestScores(**self._of_all, aim=aim, n_images=self.n_images)
        found = self._each_chain(task, "finding the best scores")
        return {key: best for chain in found for key, best in chain.items()}

    def _best_pooled(self, aim: str) -> Best:
        """Best score of each threshold over all classes, with its hits and counts."""
        runs = self._runs
        n, step = len(self.protocol.iou_thresholds), max(1, runs.engine.bucket_rows // SAMPLES)
        # Copies, as a view would keep all scores of its run.
        samples = [run.read("score", 0, int(run.first[-1]))[::step].copy() for run in runs.runs]
        cuts = np.unique(np.concatenate(samples))[::-SAMPLES]  # descending
        folder = runs.engine.shared_folder()
        split = SplitByScore(**self._of_all, cuts=cuts, folder=folder)
        found = self._each_chain(split, "ranking all classes", enumerate(runs.chains))
        totals = np.sum([totals for _, totals in found], axis=0)
        best_of = BestOfScores(
            aim=aim,
            n_images=self.n_images,
            blocks=tuple(blocks for blocks, _ in found),
            positives=int(self.positives[ALL_SIZES].sum()),
            before=np.cumsum(totals, axis=0) - totals,
        )
        best = BestScore(aim, best_of.positives, self.n_images, n)
        for lower in runs.engine.map(best_of, range(len(totals))):
            best.follow(lower)
        remove_scratch(folder)
        return {(t, None): of_threshold for t, of_threshold in enumerate(best.found) if of_threshold is not None}

    # Facts of the ranking.

    @property
    def n_tied(self) -> int:
        """How many detections share their score with another one of their class."""
        return sum(facts.tied for facts in self._facts)

    @property
    def tie_orders(self) -> Mapping[int, str]:
        """Digest of the ties that span a hit and a miss, in their order, of each class that has any."""
        firsts = [chain[0].labels[0] for chain in self._runs.chains]
        of_chains = zip(firsts, self._facts, strict=True)
        return {first + label: order for first, facts in of_chains for label, order in facts.tie_orders.items()}

    @property
    def _facts(self) -> list[Facts]:
        if not self._kept.facts:
            self._cell(ALL_SIZES, 0)
        return self._kept.facts

    @property
    def ranking(self) -> NoReturn:
        """Not kept."""
        raise UsageError(NO_TABLE)

    def weighted(self, weights: IntArray) -> NoReturn:
        """Not available: every resample would read all files again."""
        raise UsageError(NO_TABLE)

    # The run files, read once for each of these.

    def _each_chain(self, reduce: Callable[[Any], Found], name: str, items: Iterable[Any] | None = None) -> list[Found]:
        """Return what each chain, or its item of `items`, is reduced to."""
        chains = self._runs.chains
        with Stage(name, sum(len(bucket) for chain in chains for bucket in chain)) as stage:
            found = []
            given = chains if items is None else items
            for chain, reduced in zip(chains, self._runs.engine.map(reduce, given), strict=True):
                found.append(reduced)
                stage.advance(sum(map(len, chain)))
                release_memory(sum(map(len, chain)))
        return found

    @property
    def _of_all(self) -> dict[str, Any]:
        """What the tasks of all chains have in common."""
        rules = CurveRules(self.protocol, self.caps, self.positives, self.recall_grid)
        return {"runs": self._runs.runs, "rules": rules, "images": self._mask}
