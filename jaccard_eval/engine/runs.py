"""Run files: what the detections of one part count as, sorted by class and score; slices of them become rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.matching.order import IntArray, descending_order, stable_order
from jaccard_eval.matching.ranking import Ranking

# Columns stand one behind the other: those of detections, then those of candidates.
_DETECTIONS: dict[str, Any] = {
    "score": np.float64,
    "image": np.int32,
    "rank": np.int32,
    "tie": np.int64,  # only where equal scores are not ordered by image
    "in_range": np.uint32,  # a bit per area range
}
MOST_AREAS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows of consecutive images in class order, on the disk."""

    path: Path
    first: IntArray  # row where each class begins, and the end (K + 1,)
    starts: dict[str, int]  # where each column begins, in bytes
    n_candidates: int
    outcome_bytes: int  # of a candidate

    def read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Return some rows of a column."""
        dtype = np.dtype(_DETECTIONS[name])
        return np.fromfile(self.path, dtype, stop - start, offset=self.starts[name] + start * dtype.itemsize)

    def candidates(self, start: int, stop: int) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return which of some rows are candidates, and the packed outcomes of these (c, bytes)."""
        if not self.n_candidates:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.outcome_bytes), dtype=np.uint8)
        # Mapped, as a search touches a few pages; all of it is read where all of it is wanted.
        rows = np.memmap(self.path, np.int32, "r", self.starts["candidate"], (self.n_candidates,))
        low, high = (int(place) for place in np.searchsorted(rows, [start, stop]))
        offset = self.starts["outcomes"] + low * self.outcome_bytes
        packed = np.fromfile(self.path, np.uint8, (high - low) * self.outcome_bytes, offset=offset)
        return rows[low:high].astype(np.int64) - start, packed.reshape(high - low, self.outcome_bytes)


def write_run(path: Path, ranking: Ranking, first_image: int) -> Run:
    """Write the ranking of a part, whose images count from `first_image`: whole or not at all."""
    bits = (1 << np.arange(len(ranking.in_range), dtype=np.uint32))[:, None]
    n = len(ranking.candidate)
    flags = np.stack((ranking.hits, ranking.counts))
    flags = flags.reshape(flags.size // n if n else 0, n)  # (2 A T, c)
    columns: dict[str, npt.NDArray[Any]] = {
        "score": ranking.score,
        "image": ranking.image + first_image,
        "rank": ranking.rank,
        "tie": ranking.tie,
        "in_range": (ranking.in_range * bits).sum(axis=0, dtype=np.uint32),
    }
    if ranking.protocol.score_ties == "image":
        del columns["tie"]
    written = [(name, columns[name].astype(dtype)) for name, dtype in _DETECTIONS.items() if name in columns]
    packed = np.ascontiguousarray(np.packbits(flags, axis=0).T)
    written += [("candidate", ranking.candidate.astype(np.int32)), ("outcomes", packed)]
    starts = {}
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        for name, column in written:
            starts[name] = file.tell()
            file.write(column.tobytes())
    temporary.rename(path)
    first = np.searchsorted(ranking.label, np.arange(ranking.n_labels + 1))
    return Run(path, first, starts, n, packed_size(ranking.protocol))


def packed_size(protocol: Protocol) -> int:
    """Return how many bytes hold whether a candidate hits and counts, a bit for each area range and threshold."""
    return -(-2 * len(protocol.areas) * len(protocol.iou_thresholds) // 8)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Consecutive rows of one run."""

    run: Run
    start: int
    stop: int


def load_ranking(
    parts: Sequence[Rows], labels: tuple[int, int], protocol: Protocol, images: BoolArray | None = None
) -> Ranking:
    """Return rows of several runs, which ascend by image, as one ranking; classes count from the first of `labels`.

    Objects are not in it. Where a mask of `images` is given, only rows of these are kept.
    """
    names = [name for name in _DETECTIONS if name != "tie" or protocol.score_ties != "image"]
    loaded = {name: np.concatenate([part.run.read(name, part.start, part.stop) for part in parts]) for name in names}
    bounds = [np.clip(part.run.first[labels[0] : labels[1] + 1], part.start, part.stop) for part in parts]
    label = np.concatenate([np.repeat(np.arange(labels[1] - labels[0]), np.diff(ends)) for ends in bounds])
    found = [part.run.candidates(part.start, part.stop) for part in parts]
    starts = np.cumsum([0, *(part.stop - part.start for part in parts)])
    number = np.full(len(label), -1)  # of the candidate that a row is
    given = np.concatenate([rows + start for (rows, _), start in zip(found, starts[:-1], strict=True)])
    number[given] = np.arange(len(given))
    order = class_order(label, loaded["score"], loaded.get("tie"))
    if images is not None:
        order = order[images[loaded["image"][order]]]
    number = number[order]
    candidate = np.flatnonzero(number >= 0)
    outcomes = np.concatenate([packed for _, packed in found])[number[candidate]]
    shape = 2, len(protocol.areas), len(protocol.iou_thresholds), len(candidate)
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
        in_range=np.stack([(in_range >> area & 1).astype(np.bool_) for area in range(shape[1])]),
        candidate=candidate,
        hits=hits,
        counts=counts,
        gt_image=none,
        gt_label=none,
        gt_counts=np.zeros((shape[1], 0), dtype=np.bool_),
    )


def class_order(label: IntArray, score: FloatArray, tie: IntArray | None) -> IntArray:
    """Return the order by class, descending score and `tie`; rows without one come by image, and stay so."""
    by_tie = np.arange(len(label)) if tie is None else np.argsort(tie, kind="stable")
    by_score = by_tie[descending_order(score[by_tie])]
    return by_score[stable_order(label[by_score])]
