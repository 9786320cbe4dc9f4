"""Curves of rankings that were made of parts of the images: a second source of curves, that shares no arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jaccard_eval.matching.matchtable import ALL_SIZES, Ranking


class MergedParts:
    """Answers what averages and operating points ask, one curve at a time, from merged rows; see `CurveSource`."""

    def __init__(self, parts: Sequence[Ranking]) -> None:
        self.parts = parts
        self.protocol = parts[0].protocol
        self.n_images = parts[0].n_images
        self.n_labels = parts[0].n_labels
        label, score, tie, rank = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "score", "tie", "rank")
        )
        order = np.lexsort((rank, tie, -score, label))
        self.label, self.score, self.rank = label[order], score[order], rank[order]
        hits, counts = zip(*map(_outcomes, parts), strict=True)
        self.hits = np.concatenate(hits, axis=-1)[..., order]  # (A, T, n)
        self.counts = np.concatenate(counts, axis=-1)[..., order]
        self.positives = sum(
            np.stack([np.bincount(part.gt_label[counts], minlength=self.n_labels) for counts in part.gt_counts])
            for part in parts
        )

    @property
    def objects(self) -> np.ndarray:
        return sum(np.bincount(part.gt_label, minlength=self.n_labels) for part in self.parts)

    @property
    def detections(self) -> np.ndarray:
        return np.bincount(self.label, minlength=self.n_labels)

    def restrict(self, images: np.ndarray) -> MergedParts:
        return MergedParts([part.restrict(images) for part in self.parts])

    def interpolated_precision(self, area: int, cap: int) -> np.ndarray:
        grid = self.protocol.recall_grid if self.protocol.recall_points else np.linspace(0.0, 1.0, 101)
        shape = len(self.protocol.iou_thresholds), len(grid), self.n_labels
        result = np.full(shape, np.nan)
        for t, k, hit in self._curves(area, cap):
            recall, envelope = self._curve(hit, self.positives[area, k])
            result[t, :, k] = np.append(envelope, 0.0)[np.searchsorted(recall, grid, "left")]
        return result

    def area_under_curve(self, area: int, cap: int) -> np.ndarray:
        result = np.full((len(self.protocol.iou_thresholds), self.n_labels), np.nan)
        for t, k, hit in self._curves(area, cap):
            recall, envelope = self._curve(hit, self.positives[area, k])
            result[t, k] = np.sum(np.diff(np.append(0.0, recall[hit])) * envelope[hit])
        return result

    def final_recall(self, area: int, cap: int) -> np.ndarray:
        result = np.full((len(self.protocol.iou_thresholds), self.n_labels), np.nan)
        for t, k, hit in self._curves(area, cap):
            result[t, k] = hit.sum() / self.positives[area, k]
        return result

    def counts_at(self, threshold: int, label: int | None, score: float) -> tuple[int, int, int]:
        rows = (self.score >= score) & (True if label is None else self.label == label)
        tp = int(self.hits[ALL_SIZES, threshold][rows].sum())
        positives = self.positives[ALL_SIZES] if label is None else self.positives[ALL_SIZES, label]
        return tp, int(self.counts[ALL_SIZES, threshold][rows].sum()) - tp, int(positives.sum()) - tp

    def best_score(self, threshold: int, label: int | None, aim: str = "best-f1") -> float:
        assert aim == "best-f1"
        best, chosen = 0.0, float("nan")
        for score in sorted(set(self.score[slice(None) if label is None else self.label == label]), reverse=True):
            tp, fp, fn = self.counts_at(threshold, label, score)
            f1 = 2 * tp / max(2 * tp + fp + fn, 1)
            best, chosen = (f1, float(score)) if f1 > best else (best, chosen)
        return chosen

    def _curves(self, area: int, cap: int) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield threshold and class of each curve that is defined, and which of its detections that count are hits."""
        caps = self.protocol.max_dets
        for t in range(len(self.protocol.iou_thresholds)):
            for k in np.flatnonzero(self.positives[area]):
                rows = self.counts[area, t] & (self.label == k)
                if caps:
                    rows &= self.rank < caps[cap]
                yield t, int(k), self.hits[area, t][rows]

    def _curve(self, hit: np.ndarray, positives: int) -> tuple[np.ndarray, np.ndarray]:
        """Recall and the highest precision from there on, at every detection that counts: pycocotools, line by line."""
        tp = np.cumsum(hit)
        precision = tp / (np.arange(1, len(hit) + 1) + self.protocol.precision_epsilon)
        return tp / positives, np.maximum.accumulate(precision[::-1])[::-1]


def _outcomes(part: Ranking) -> tuple[np.ndarray, np.ndarray]:
    """What is a hit and what counts, of every detection; shape (A, T, n) each."""
    n_areas, n_thresholds, _ = part.hits.shape
    hits = np.zeros((n_areas, n_thresholds, len(part)), dtype=np.bool_)
    counts = np.repeat(part.in_range[:, None], n_thresholds, axis=1)
    hits[..., part.candidate], counts[..., part.candidate] = part.hits, part.counts
    return hits, counts
