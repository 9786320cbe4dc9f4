"""The classes, the worst first; all of them."""

from __future__ import annotations

import math

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.report import class_metrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Rows, Section, Table, columns

PLACE = 60


def build_sections(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Return the section; none without classes."""
    names = class_metrics(result.per_class)
    if not names:
        return []
    # Undefined ones last: NaN compares with nothing.
    first = names[0]
    worst = sorted(
        result.per_class, key=lambda row: math.inf if math.isnan(row.values[first].value) else row.values[first].value
    )
    heads = (Column("class", "name"), *columns("metric", *names), *columns("count", "gt", "pred"))
    rows: Rows = tuple((row.name, *(row.values[name].value for name in names), row.gt, row.pred) for row in worst)
    return [Section("Classes", (Table(heads, rows),), key="classes")]
