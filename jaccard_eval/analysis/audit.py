"""What is wrong with this input? Cheap checks of an evaluation that name a mistake, its evidence and its repair.

Every check reads what the evaluation has computed already, or a bounded sample, and records findings. The codes are
explained in ``docs/findings.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from jaccard_eval.analysis.evidence import Evidence
from jaccard_eval.analysis.sample import take_sample
from jaccard_eval.analysis.scores import check_scores
from jaccard_eval.data.align import Alignment
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import Finding, FindingLog
from jaccard_eval.metrics.detection import DetectionMetrics

Check = Callable[[Evidence, FindingLog], None]

CHECKS: tuple[Check, ...] = (check_scores,)


def audit(gt: Dataset, pred: Dataset, aligned: Alignment, metrics: DetectionMetrics) -> tuple[Finding, ...]:
    """Run all checks on an evaluation; findings in the order of their weight."""
    placed = aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    evidence = Evidence(gt=gt, pred=pred, aligned=aligned, metrics=metrics, sample=sample)
    findings = FindingLog()
    for check in CHECKS:
        check(evidence, findings)
    return findings.findings()
