"""Run files: what the detections of one part count as, sorted by class and score; slices of them become rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.engine.scratch import ScratchPlace, gathered, read_array, read_bytes, write_whole
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.order import IntArray, class_and_score_order
from jaccard_eval.matching.ranking import Ranking

# Columns stand one behind the other: those of detections, of candidates, and of objects.
_DETECTIONS: dict[str, Any] = {
    "score": np.float64,
    "image": np.int32,
    "rank": np.int32,
    "tie": np.int64,  # only where equal scores are not ordered by image
    "in_range": np.uint32,  # a bit per area range
}
SEARCHED = 2**14  # rows that are read at once, where a place among sorted ones is looked for


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
    return -(-2 * len(protocol.areas) * len(protocol.iou_thresholds) // 8)


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
        in_range=_unpacked(in_range, shape[1]),
        candidate=candidate,
        hits=hits,
        counts=counts,
        gt_image=none,
        gt_label=none,
        gt_counts=np.zeros((shape[1], 0), dtype=np.bool_),
    )
