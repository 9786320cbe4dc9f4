"""What the JSON documents of all kinds of results are made of: measured values, findings, plain types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaccard_eval.findings import Finding

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """One measured value.

    Parameters
    ----------
    ref : str
        Canonical text of the metric.
    value : float
        NaN when undefined.
    n : int
        Ground-truth boxes that it rests on.
    reason : str, optional
        Why it is undefined.
    interval : (float, float), optional
        Where it may lie, by a bootstrap over images.
    """

    ref: str
    value: float
    n: int
    reason: str | None = None
    interval: tuple[float, float] | None = None


def document_head(kind: str, version: str) -> dict[str, Any]:
    """Return how the document of a result begins: its schema and kind, and what made it."""
    return {"schema": SCHEMA, "kind": kind, "tool": {"name": "jaccard-eval", "version": version}}


def finding_dict(finding: Finding) -> dict[str, Any]:
    """Return a finding as the JSON documents of all kinds of results have it."""
    return {
        "severity": str(finding.severity),
        "code": finding.code,
        "message": finding.message,
        "count": finding.count,
        "examples": [str(example) for example in finding.examples],
        "table": [list(row) for row in finding.table],
    }


def plain(value: Any) -> Any:
    """Turn tuples into lists and non-finite floats into None, all the way down."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
