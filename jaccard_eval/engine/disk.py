"""The disk engine: boxes are matched part by part, and only what detections count as is kept, in run files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import Boxes
from jaccard_eval.data.protocol import BOXES, Protocol
from jaccard_eval.engine.memory import release_memory, usable_memory
from jaccard_eval.engine.reduced import BUCKET_ROWS, ReducedCurves, Runs
from jaccard_eval.engine.scratch import ScratchPlace, explained, make_scratch, remove_scratch
from jaccard_eval.engine.stored import Found, Item, Tables, on_disk
from jaccard_eval.engine.tasks import CountConfusion, MatchPart, TableChange
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray
from jaccard_eval.meanwhile import usable_processors
from jaccard_eval.options import EngineOptions
from jaccard_eval.progress import Stage

PART_ROWS = 200_000  # of predictions that are matched at once, at most about
PART_ROW_BYTES = 1_000  # of memory for each of them, when most is in use
LEAST_PART_ROWS = 20_000
SHAPE_ROWS = 5  # of boxes alone, in the memory that a box with its mask or other shape takes
LIMIT = 2**29  # bytes that are used unless a limit is given: more would be no faster


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
