"""The disk engine: predictions are matched part by part, and only what detections count as is kept, in run files."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.engine.memory import release_memory
from jaccard_eval.engine.reduced import BUCKET_ROWS, ReducedCurves, Runs, Truth
from jaccard_eval.engine.runs import Run, write_run
from jaccard_eval.engine.scratch import make_scratch, remove_scratch
from jaccard_eval.engine.stored import StoredBoxes
from jaccard_eval.engine.threads import map_in_order, usable_processors
from jaccard_eval.matching.matchtable import MatchTable, ignored_objects, match_boxes
from jaccard_eval.matching.order import labels_of, stable_order
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.options import EngineOptions
from jaccard_eval.progress import Stage

PART_ROWS = 200_000  # of predictions that are matched at once, at most about
PART_ROW_BYTES = 1_000  # of memory for each of them, when most is in use
LEAST_PART_ROWS = 20_000
LIMIT = 2**29  # bytes that are used unless a limit is given: more would be no faster

Change = Callable[[MatchTable], MatchTable]


@dataclass(frozen=True, kw_only=True, eq=False)
class DiskEngine:
    """Where and in which portions work is done; no result depends on it."""

    scratch: Path
    part_rows: int = PART_ROWS
    bucket_rows: int = BUCKET_ROWS
    workers: int = 1

    @classmethod
    def open(cls, options: EngineOptions) -> DiskEngine:
        """Make a scratch folder, which is removed with the last object that needs it; portions fit the limit."""
        workers = options.workers or usable_processors()
        # Each worker has a part or a bucket of its own; tables of names and of ground truth come on top.
        room = (options.bytes or LIMIT) // workers
        part_rows = min(PART_ROWS, max(LEAST_PART_ROWS, room // PART_ROW_BYTES))
        engine = cls(
            scratch=make_scratch(options.scratch),
            part_rows=part_rows,
            bucket_rows=min(BUCKET_ROWS, max(2 * part_rows, LEAST_PART_ROWS)),
            workers=workers,
        )
        weakref.finalize(engine, remove_scratch, engine.scratch)
        return engine

    def folder(self) -> Path:
        """Make a new folder for files."""
        folder = self.scratch / f"{len(list(self.scratch.iterdir())):03}"
        folder.mkdir()
        return folder

    def measure(
        self,
        gt: BoxTable,
        pred: StoredBoxes,
        protocol: Protocol,
        *,
        n_labels: int,
        change: Change | None = None,
    ) -> ReducedCurves:
        """Match predictions, which lie by image, and return their curves.

        A `change` is made to each match table before it is counted.
        """
        bounds = pred.arranged_bounds
        folder = self.folder()
        order = stable_order(gt.image)
        truth = gt.take(order)
        cuts = np.searchsorted(truth.image, bounds)

        def match_part(place: int) -> tuple[Run, int]:
            first, last = int(bounds[place]), int(bounds[place + 1])
            objects = _from_image(truth.take(np.arange(cuts[place], cuts[place + 1])), first)
            boxes = _from_image(pred.table(place), first)
            table = match_boxes(objects, boxes, protocol, n_images=last - first, n_labels=n_labels)
            table = table if change is None else change(table)
            run = write_run(folder / f"run-{place:05}", Ranking.of(table, last - first), first)
            return run, len(boxes)

        runs = []
        with Stage("matching", len(pred)) as stage:
            for run, n in map_in_order(match_part, range(len(pred.files)), workers=self.workers):
                runs.append(run)
                stage.advance(n)
                release_memory(n)
        return ReducedCurves(
            Runs(
                protocol=protocol,
                n_images=int(bounds[-1]),
                n_labels=1 if protocol.class_agnostic else n_labels,
                runs=tuple(runs),
                truth=Truth(gt.image.astype(np.int64), labels_of(gt, protocol), ~ignored_objects(gt, protocol)),
                scratch=folder,
                engine=self,
                bucket_rows=self.bucket_rows,
                workers=self.workers,
            )
        )


def _from_image(boxes: BoxTable, first: int) -> BoxTable:
    """Count images from one of them: small keys are found in a table, large ones by search."""
    return replace(boxes, image=boxes.image - np.int32(first))
