"""Detections and ground truth of one image that overlap, whatever their classes: one pass beside the match table."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.matching.candidates import Pairs, candidate_pairs
from jaccard_eval.matching.matchtable import Detections
from jaccard_eval.matching.order import Blocks, IntArray, stable_order
from jaccard_eval.similarity.boxes import Corners


def detection_rows(pred: BoxTable, protocol: Protocol, n_images: int) -> IntArray:
    """Return the row in `pred` of each detection of a match table, shape (n,).

    Parameters
    ----------
    pred : BoxTable
        The predictions that were matched.
    protocol : Protocol
    n_images : int
    """
    return Detections.of(pred, protocol, n_images).order


def pairs_of_any_class(
    pred: BoxTable, gt: BoxTable, chosen: BoolArray, *, threshold: float, pixel_offset: float = 0.0
) -> Pairs:
    """Return the pairs of an image whose IoU is at least `threshold`, sorted by detection, then ground truth.

    Parameters
    ----------
    pred, gt : BoxTable
        With common image rows.
    chosen : ndarray of bool, shape (len(gt),)
        Ground truth that takes part.
    threshold : float
    pixel_offset : float
        Added to both sides of every box.
    """
    rows = np.flatnonzero(chosen)
    rows = rows[stable_order(gt.image[rows])]
    pairs = candidate_pairs(
        Corners.of(pred.xywh, pixel_offset),
        Corners.of(gt.xywh[rows], pixel_offset),
        Blocks.of(gt.image[rows].astype(np.int64), pred.image.astype(np.int64)),
        None,
        threshold,
    )
    return Pairs(pairs.det, rows[pairs.gt], pairs.overlap)
