"""How far average precision depends on the order of equal scores, which reruns and other tools choose otherwise."""

from __future__ import annotations

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.errors import FindingLog, Where
from jaccard_eval.features.audit.context import Evidence
from jaccard_eval.metrics.ties import has_ties, tie_interval

FEWEST = 100  # detections; the examples and tests of a few boxes tie by nature
WIDEST = 1e-6  # of an interval that is not worth telling


def check_ties(evidence: Evidence, findings: FindingLog) -> None:
    """Note between which values AP lies over all orders of equal scores."""
    metrics = evidence.metrics
    if len(metrics.table) < FEWEST or findings.has("pred-duplicate") or not has_ties(metrics.table):
        return
    low, high = tie_interval(metrics.curves, metrics.axes, MetricRef(name="AP"))
    if high - low > WIDEST:
        findings.note(
            "score-ties-interval",
            Where(evidence.pred.path, field="score"),
            f"AP lies between {low:.6f} and {high:.6f}, as equal scores are ordered",
            fix="Export scores with all their digits; take differences within these bounds for none.",
        )
