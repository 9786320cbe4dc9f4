"""A bounded sample of both sides, paired by place alone: what an audit looks at to stay cheap on large sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.geometry.box import Corners
from jaccard_eval.matching.candidates import candidate_pairs
from jaccard_eval.matching.order import Blocks, stable_order

IntArray = npt.NDArray[np.int64]

SAMPLE_BOXES = 20_000  # predictions looked at, at most about
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


def take_sample(gt: BoxTable, pred: BoxTable, n_images: int) -> Sample:
    """Pair the boxes of evenly spread images by place alone.

    Parameters
    ----------
    gt, pred : BoxTable
        With common image rows and in common units; class rows may be of different maps.
    n_images : int
    """
    step = max(1, -(-len(pred) // SAMPLE_BOXES), -(-len(gt) // SAMPLE_BOXES))
    if step > 1:
        gt, pred = gt.take(gt.image % step == 0), pred.take(pred.image % step == 0)
    return _pair(gt, pred, 1 / step if n_images else 1.0)


def _pair(gt: BoxTable, pred: BoxTable, share: float) -> Sample:
    order = stable_order(gt.image)
    blocks = Blocks.of(gt.image[order].astype(np.int64), pred.image.astype(np.int64))
    pairs = candidate_pairs(Corners.of(pred.xywh), Corners.of(gt.xywh[order]), blocks, None, SAME_PLACE)
    return Sample(gt, pred, pairs.det, order[pairs.gt], pairs.overlap, share)
