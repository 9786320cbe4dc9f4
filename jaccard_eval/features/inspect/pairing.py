"""What two sides have in common, in counts: objects in one place, classes that agree, detections beyond the cap."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.features.audit.sample import Sample, take_sample
from jaccard_eval.features.inspect.result import Pairing


def describe_pair(aligned: Alignment, protocol: Protocol) -> Pairing:
    """Count what two aligned sides have in common.

    Parameters
    ----------
    aligned : Alignment
    protocol : Protocol
        For its cap on detections per image and class.
    """
    placed = aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    cap = protocol.max_dets[-1] if protocol.max_dets else None
    beyond, in_images = _beyond(aligned, cap)
    located, objects = sample.located()
    same, compared = _same_class(sample, aligned)
    return Pairing(
        correspondence=aligned.correspondence,
        cap=cap,
        beyond_cap=beyond,
        images_beyond_cap=in_images,
        objects=objects,
        located=located,
        compared=compared,
        same_class=same,
        sampled=sample.share,
    )


def _beyond(aligned: Alignment, cap: int | None) -> tuple[int, int]:
    """Count detections beyond the cap per image and class, and the images that they are in."""
    if cap is None or not len(aligned.pred):
        return 0, 0
    n_labels = max(len(aligned.class_names), 1)
    cells = aligned.pred.image.astype(np.int64) * n_labels + aligned.pred.label
    cell, count = np.unique(cells, return_counts=True)
    over = count > cap
    return int((count[over] - cap).sum()), len(np.unique(cell[over] // n_labels))


def _same_class(sample: Sample, aligned: Alignment) -> tuple[int, int]:
    """Count the objects whose prediction has their class, and all that have a prediction in their place."""
    pred_row, gt_row = sample.objects()
    same = aligned.classes.rows[sample.pred.label[pred_row]] == sample.gt.label[gt_row]
    return int(np.count_nonzero(same)), len(same)
