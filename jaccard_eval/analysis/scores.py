"""What is odd about scores: how many detections the cap leaves out."""

from __future__ import annotations

from jaccard_eval.analysis.evidence import Evidence
from jaccard_eval.errors import FindingLog, Where


def check_scores(evidence: Evidence, findings: FindingLog) -> None:
    """Say how many detections the cap per image and class leaves out."""
    cut = len(evidence.aligned.pred) - len(evidence.metrics.table)
    if cut:
        findings.note(
            "max-dets", Where(evidence.pred.path), f"{cut:,} detections beyond the cap per image and class left out"
        )
