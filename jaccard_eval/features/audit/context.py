"""What the checks of an audit look at."""

from __future__ import annotations

from dataclasses import dataclass

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.signature import Words
from jaccard_eval.features.audit.sample import Sample
from jaccard_eval.metrics.detection import DetectionMetrics

MISREAD = ("box-encoding", "box-units", "box-axes")  # codes of boxes read wrongly, which tell nothing of anything else


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evidence:
    """What the checks look at.

    Parameters
    ----------
    gt, pred : Dataset
        Both sides as read.
    aligned : Alignment
        Both sides in common rows and units.
    metrics : DetectionMetrics
        Of this evaluation.
    sample : Sample
        Boxes of some images, paired by place alone, each side with its own classes.
    gt_hashes, pred_hashes : ndarray of uint64, shape (n,)
        Hash of each row of the aligned tables; equal rows have equal hashes.
    """

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    metrics: DetectionMetrics
    sample: Sample
    gt_hashes: Words
    pred_hashes: Words
