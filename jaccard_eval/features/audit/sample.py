"""A bounded sample of both sides, paired by place alone: what an audit looks at to stay cheap on large sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.matching.candidates import candidate_pairs
from jaccard_eval.matching.order import Blocks, stable_order, starts_of_runs
from jaccard_eval.similarity.boxes import Corners

IntArray = npt.NDArray[np.int64]

SAMPLE_BOXES = 20_000  # predictions looked at, at most about
SAMPLE_PAIRS = 1_000_000  # pairs of boxes compared, at most about: one crowded image can have a billion
SAME_PLACE = 0.5  # IoU from which two boxes are taken to mean the same object, whatever their classes


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Boxes of a sample of the common images, and which of them lie in the same place.

    Parameters
    ----------
    gt, pred : BoxTable
        The boxes of the sampled images, with the rows of images and classes of the tables they come from.
    pred_row, gt_row : ndarray of int64, shape (p,)
        Pairs of rows in `pred` and `gt` of one image that overlap by at least `SAME_PLACE`, whatever their classes.
    overlap : ndarray of float64, shape (p,)
        Their IoU.
    share : float
        Share of the images that was sampled.
    """

    gt: BoxTable
    pred: BoxTable
    pred_row: IntArray
    gt_row: IntArray
    overlap: FloatArray
    share: float

    def located(self) -> tuple[int, int]:
        """Count the ground-truth boxes that share their place with some prediction, and all that could.

        Crowds, and images on which only one side has boxes, are left out.
        """
        could = ~self.gt.crowd & _occurs(self.pred.image, self.gt.image)
        found = np.zeros(len(self.gt), dtype=np.bool_)
        found[self.gt_row] = True
        return int(np.count_nonzero(found & could)), int(np.count_nonzero(could))

    def objects(self) -> tuple[IntArray, IntArray]:
        """Return one pair of rows (prediction, ground truth) for each object that predictions agree with by place.

        Each prediction stands for the object that it overlaps most, and of those that stand for one object the
        prediction with the highest score counts: surplus and doubtful predictions say little. Crowds are left out.
        """
        single = np.flatnonzero(~self.gt.crowd[self.gt_row])
        by_overlap = single[np.lexsort((-self.overlap[single], self.pred_row[single]))]
        best = by_overlap[starts_of_runs(self.pred_row[by_overlap])]
        score = np.zeros(len(self.pred)) if self.pred.score is None else self.pred.score
        by_score = best[np.lexsort((-score[self.pred_row[best]], self.gt_row[best]))]
        top = by_score[starts_of_runs(self.gt_row[by_score])]
        return self.pred_row[top], self.gt_row[top]


def take_sample(gt: BoxTable, pred: BoxTable, n_images: int, limit: int = SAMPLE_BOXES) -> Sample:
    """Pair the boxes of evenly spread images by place alone.

    Where images are so crowded that too many pairs remain, evenly spread objects stand for all: each is still compared
    with every prediction of its image.

    Parameters
    ----------
    gt, pred : BoxTable
        With common image rows and in common units; class rows may be of different maps.
    n_images : int
    limit : int
        Boxes of either side, at most about.
    """
    step = max(1, -(-len(pred) // limit), -(-len(gt) // limit))
    if step > 1:
        gt, pred = gt.take(gt.image % step == 0), pred.take(pred.image % step == 0)
    crowding = -(-_count_pairs(gt, pred) // SAMPLE_PAIRS)
    if crowding > 1:
        gt = gt.take(np.arange(0, len(gt), crowding))
    return pair_by_place(gt, pred, 1 / step if n_images else 1.0)


def _count_pairs(gt: BoxTable, pred: BoxTable) -> int:
    n_images = 1 + int(max(gt.image.max(initial=-1), pred.image.max(initial=-1)))
    return int(np.bincount(gt.image, minlength=n_images) @ np.bincount(pred.image, minlength=n_images))


def pair_by_place(gt: BoxTable, pred: BoxTable, share: float = 1.0) -> Sample:
    """Pair all boxes by place alone; `share` is of the images that they were taken from."""
    order = stable_order(gt.image)
    blocks = Blocks.of(gt.image[order].astype(np.int64), pred.image.astype(np.int64))
    pairs = candidate_pairs(Corners.of(pred.xywh), Corners.of(gt.xywh[order]), blocks, None, SAME_PLACE)
    return Sample(gt, pred, pairs.det, order[pairs.gt], pairs.overlap, share)


def _occurs(images: npt.NDArray[np.int32], among: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Whether each image of `among` is one of `images`."""
    used = np.zeros(int(max(images.max(initial=-1), among.max(initial=-1))) + 1, dtype=np.bool_)
    used[images] = True
    return used[among]
