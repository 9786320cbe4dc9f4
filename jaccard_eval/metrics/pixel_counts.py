"""How many pixels of two maps have which pair of values: counts that add up, of classes and of segments alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import count_pairs

IntArray = npt.NDArray[np.int64]
Pixels = npt.NDArray[Any]  # integers, any size

NO_CLASS = -1  # of a pixel that is to be ignored
TABLE_SIZE = 2**16  # values up to those of 16 bits are looked up, others sorted
BLOCK = 2**18  # pixels counted at once, so that what is made on the way stays in the cache
FEW_RUNS = 0.2  # share of the pixels; with more runs of equal pixels than that, counting every pixel is faster


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionCounts:
    """Pixels of each pair of ground-truth and predicted class that occurs; counts of several maps add up.

    Only pairs that occur take memory, so the number of classes is not bounded. Sums of counts do not depend on order
    or grouping: any partition of the maps gives the same result.

    Parameters
    ----------
    gt, pred : ndarray of int64, shape (n,)
        Class, or value of the map, of each side; pairs are distinct and ascend. `NO_CLASS` for pixels of no class.
    pixels : ndarray of int64, shape (n,)
        How many pixels have this pair.

    Examples
    --------
    >>> import numpy as np
    >>> from jaccard_eval import ConfusionCounts
    >>> counts = ConfusionCounts.from_maps(np.array([[0, 1]]), np.array([[1, 1]]))
    >>> list(zip(counts.gt.tolist(), counts.pred.tolist(), counts.pixels.tolist()))
    [(0, 1, 1), (1, 1, 1)]
    """

    gt: IntArray
    pred: IntArray
    pixels: IntArray

    @classmethod
    def from_maps(cls, gt: Pixels, pred: Pixels) -> ConfusionCounts:
        """Count the pairs of two label maps.

        Parameters
        ----------
        gt, pred : ndarray of integers, same shape
            Value of each pixel.

        Returns
        -------
        ConfusionCounts

        Raises
        ------
        UsageError
            When shapes differ or a map does not hold integers.

        Examples
        --------
        >>> counts = ConfusionCounts.from_maps(np.array([[0, 1, 1]]), np.array([[0, 1, 0]]))
        >>> counts.gt.tolist(), counts.pred.tolist(), counts.pixels.tolist()
        ([0, 1, 1], [0, 0, 1], [1, 1, 1])
        """
        if gt.shape != pred.shape:
            raise UsageError(f"label maps have different shapes: {gt.shape} and {pred.shape}")
        for labels in (gt, pred):
            if labels.dtype.kind not in "biu":
                raise UsageError(f"label maps must be integer arrays, got {labels.dtype}")
        counted = count_pairs(gt, pred)
        if counted is not None:
            return cls.from_pairs(*counted)
        gt, pred = _narrowed(gt), _narrowed(pred)
        starts = range(0, len(gt), BLOCK)
        blocks = ((gt[start : start + BLOCK], pred[start : start + BLOCK]) for start in starts)
        if not gt.dtype == pred.dtype == np.uint8:
            return cls.merge(_count_large(*block) for block in blocks)
        if not gt.size:
            return _NOTHING
        # Two maps of 8 bits have 65,536 pairs at most: one histogram over n * gt + pred holds them all. Most maps have
        # few classes: with n as small as it can be, the histogram is too.
        n, height = int(pred.max()) + 1, int(gt.max()) + 1
        histogram, *others = (_histogram(*block, n, n * height) for block in blocks)
        for counts in others:
            histogram += counts
        index = np.flatnonzero(histogram)
        return cls(*np.divmod(index, n), histogram[index])

    @classmethod
    def merge(cls, parts: Iterable[ConfusionCounts]) -> ConfusionCounts:
        """Return the sum of counts; nothing counts nothing."""
        many = [_NOTHING, *(part for part in parts if len(part.pixels))]
        if len(many) == 2:  # its pairs ascend as they are
            return many[1]
        return cls.from_pairs(*(np.concatenate([getattr(part, name) for part in many]) for name in cls.__slots__))

    @classmethod
    def from_pairs(cls, gt: IntArray, pred: IntArray, pixels: IntArray) -> ConfusionCounts:
        """Make counts of pairs in any order, which may repeat."""
        order = np.lexsort((pred, gt))
        gt, pred, pixels = gt[order], pred[order], pixels[order]
        is_first = np.ones(len(gt), dtype=np.bool_)
        is_first[1:] = (gt[1:] != gt[:-1]) | (pred[1:] != pred[:-1])
        first = np.flatnonzero(is_first)
        total = np.add.reduceat(pixels, first) if len(first) else pixels
        return cls(gt[first], pred[first], total)

    def __add__(self, other: ConfusionCounts) -> ConfusionCounts:
        return ConfusionCounts.merge((self, other))

    def take(self, rows: BoolArray) -> ConfusionCounts:
        """Return the pairs that `rows` is true for."""
        return ConfusionCounts(self.gt[rows], self.pred[rows], self.pixels[rows])

    @property
    def classes(self) -> IntArray:
        """The classes that either side has, ascending."""
        found: IntArray = np.setdiff1d(np.concatenate((self.gt, self.pred)), [NO_CLASS])
        return found

    def indexed(self, classes: IntArray) -> ConfusionCounts:
        """Return the counts with each class replaced by its index in `classes`, which ascend and have them all."""
        gt, pred = (
            np.where(side == NO_CLASS, NO_CLASS, np.searchsorted(classes, side)) for side in (self.gt, self.pred)
        )
        return ConfusionCounts(gt, pred, self.pixels)

    def matrix(self, n_classes: int) -> IntArray:
        """Return the confusion matrix, shape (n_classes, n_classes + 1): rows are ground truth, columns predictions.

        The last column counts pixels that are predicted as no class. Ignored pixels are in no cell.
        """
        kept = self.take(self.gt != NO_CLASS)
        matrix = np.zeros((n_classes, n_classes + 1), dtype=np.int64)
        matrix[kept.gt, kept.pred] = kept.pixels  # NO_CLASS is the last column
        return matrix


_EMPTY = np.zeros(0, dtype=np.int64)
_NOTHING = ConfusionCounts(_EMPTY, _EMPTY, _EMPTY)


def _narrowed(values: Pixels) -> Pixels:
    """Return flat values, in 8 bits where they fit, which are counted fastest."""
    if values.dtype == np.uint8 or not values.size or values.min() < 0 or values.max() > 255:
        return values.ravel()
    return values.astype(np.uint8).ravel()


def _histogram(gt: Pixels, pred: Pixels, n: int, size: int) -> IntArray:
    """Count a block by runs of equal pairs, for neighbours in label maps are mostly alike; else pixel by pixel.

    The pair of a pixel is counted in place ``n * gt + pred`` of `size`.
    """
    starts_run = _run_starts(gt, pred)
    if np.count_nonzero(starts_run) > FEW_RUNS * len(gt):
        # The type is named: NumPy 1 would multiply by a small number in 8 bits.
        return np.bincount(np.multiply(gt, n, dtype=np.uint16) + pred, minlength=size)
    starts, lengths = _runs(starts_run)
    index = gt[starts].astype(np.intp) * n + pred[starts]
    return np.bincount(index, weights=lengths, minlength=size).astype(np.int64)  # float64 is exact below 2**53


def _count_large(gt: Pixels, pred: Pixels) -> ConfusionCounts:
    """Count a block of values of any size by its runs."""
    starts, lengths = _runs(_run_starts(gt, pred))
    gt_values, gt_rows = _distinct(gt[starts])
    pred_values, pred_rows = _distinct(pred[starts])
    pairs, rows = _distinct(gt_rows * len(pred_values) + pred_rows)
    pixels = np.bincount(rows, weights=lengths).astype(np.int64)
    gt_of_pair, pred_of_pair = np.divmod(pairs, len(pred_values))
    return ConfusionCounts(gt_values[gt_of_pair], pred_values[pred_of_pair], pixels)


def _distinct(values: Pixels) -> tuple[IntArray, IntArray]:
    """Return the distinct values, ascending, and the row of each value in them; by a table where it can be small."""
    if values.min() < 0 or values.max() >= TABLE_SIZE:
        distinct, rows = np.unique(values, return_inverse=True)
        return distinct.astype(np.int64), rows
    occurs = np.zeros(int(values.max()) + 1, dtype=np.bool_)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def _run_starts(gt: Pixels, pred: Pixels) -> BoolArray:
    """Return which pixels, shape (n,), differ on either side from the one before; the first does."""
    starts_run = np.empty(len(gt), dtype=np.bool_)
    starts_run[0] = True
    np.not_equal(gt[1:], gt[:-1], out=starts_run[1:])
    starts_run[1:] |= pred[1:] != pred[:-1]
    return starts_run


def _runs(starts_run: BoolArray) -> tuple[IntArray, IntArray]:
    """Return first pixel and length of each run."""
    starts = np.flatnonzero(starts_run)
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = len(starts_run) - starts[-1]
    return starts, lengths
