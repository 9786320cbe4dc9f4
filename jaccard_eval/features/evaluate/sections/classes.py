"""The classes, the worst first; all of them."""

from __future__ import annotations

import math

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.report import class_metrics, frequency_cells, frequency_heads
from jaccard_eval.features.operating.page import MOST_LIVE, POINT_COLUMNS, point_cells, score_text, steps_of
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, Drawn, Note, Section, Table, columns

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
    heads = (Column("class", "name"), Column(first, "metric"), Column("", "drawn"), *columns("metric", *names[1:]))
    heads += (*map(Column, frequency_heads(result.per_class)), *columns("count", "gt", "pred"))
    steps = steps_of(result)
    points = [()] * len(worst) if steps is None else [point_cells(counts) for counts in steps.counts(steps.start)[1:]]
    rows: list[tuple[Cell, ...]] = []
    for k, row in worst:
        value, *others = (row.values[name] for name in names)
        drawn = Drawn(value.value, value.interval)
        values: tuple[Cell, ...] = (value.value, drawn, *(other.value for other in others))
        rows.append((row.name, *values, *frequency_cells(row), row.gt, row.pred, *points[k]))
    keys = tuple(str(k) for k, _ in worst)
    table = Table((*heads, *(POINT_COLUMNS if steps else ())), tuple(rows), keys=keys)
    notes = []
    if steps is not None and len(steps.names) > MOST_LIVE:
        text = (
            f"Precision to FN of {MOST_LIVE} classes, the most confused and those with the most objects, follow the"
            f" score; those of the others stay at {score_text(steps.score)}."
        )
        notes.append(Note(text))
    return [Section("Classes", (*notes, table), key="classes")]
