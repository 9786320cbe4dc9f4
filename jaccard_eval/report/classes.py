"""Which classes a summary lists: all of them, or the best and the worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.frozen import dataclass
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Note
from jaccard_eval.report.sections import SortableRow, sorted_rows

Row = TypeVar("Row")
Measured = TypeVar("Measured", bound=SortableRow)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Row]):
    """Rows of classes below a title, and a note on those that are in no list, behind the last one."""

    title: str
    rows: tuple[Row, ...]
    more: tuple[Note, ...] = ()


def list_classes(
    ordered: Sequence[Row],
    options: ReportOptions,
    *,
    by: str,
    is_defined: Callable[[Row], bool] = lambda _: True,
    ends: tuple[str, str] = ("best", "worst"),
) -> list[Listed[Row]]:
    """Return the `top` first and the `worst` last of classes, which are given from the best to the worst.

    The second list begins with the very worst. Where what they are ordered `by` is undefined, classes come last in
    either list; `ends` are the words for its two ends.
    """
    undefined = [row for row in ordered if not is_defined(row)]
    best = [row for row in ordered if is_defined(row)]
    asked = ((ends[0], options.top, [*best, *undefined]), (ends[1], options.worst, [*best[::-1], *undefined]))
    lists = [
        Listed(f"Classes, {end} {min(n, len(rows)):,} of {len(rows):,} by {by}", tuple(rows[:n]))
        for end, n, rows in asked
        if n is not None
    ]
    shown = {id(row) for listed in lists for row in listed.rows}
    if hidden := len(ordered) - len(shown):
        note = Note(f"and {hidden:,} more; -o classes.csv writes all")
        lists[-1] = Listed(lists[-1].title, lists[-1].rows, (note,))
    return lists


def listed_rows(
    rows: Sequence[Measured], options: ReportOptions, counts: Mapping[str, str], metrics: Sequence[str]
) -> list[Listed[Measured]]:
    """Return the lists of classes that have metrics, by `options.sort`; the best and worst by the first metric else."""
    if not options.chooses_classes:
        return [Listed("Classes", sorted_rows(rows, options.sort, counts, metrics))]
    by = options.sort or next(iter(metrics), "name")  # without classes there are no metrics either
    ordered = sorted_rows(rows, by, counts, metrics)
    if by not in metrics:
        ends = ("largest", "smallest") if by in counts else ("first", "last")
        return list_classes(ordered, options, by=by, ends=ends)

    def is_defined(row: Measured) -> bool:
        return by in row.values and not math.isnan(row.values[by].value)

    # Rows descend, so that those of false positives and the like begin with the worst.
    name = by if by in METRICS else MetricRef.parse(by).name
    best_first = ordered if METRICS[name].higher_is_better else ordered[::-1]
    return list_classes(best_first, options, by=by, is_defined=is_defined)
