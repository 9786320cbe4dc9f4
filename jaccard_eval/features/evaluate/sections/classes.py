"""The classes, the worst first; all of them."""

from __future__ import annotations

import math

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.report import class_metrics
from jaccard_eval.features.operating.page import POINT_COLUMNS, point_cells, steps_of
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
        enumerate(result.per_class),
        key=lambda item: math.inf if math.isnan(item[1].values[first].value) else item[1].values[first].value,
    )
    heads = (Column("class", "name"), *columns("metric", *names), *columns("count", "gt", "pred"))
    steps = steps_of(result)
    points = [()] * len(worst) if steps is None else [point_cells(counts) for counts in steps.counts(steps.start)[1:]]
    rows: Rows = tuple(
        (row.name, *(row.values[name].value for name in names), row.gt, row.pred, *points[k]) for k, row in worst
    )
    keys = tuple(str(k) for k, _ in worst)
    table = Table((*heads, *(POINT_COLUMNS if steps else ())), rows, keys=keys)
    return [Section("Classes", (table,), key="classes")]
