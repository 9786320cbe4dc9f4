"""The CSV report: one row for all classes, then one per class, at full precision; empty cells where undefined."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jaccard_eval.data.result import ClassRow, EvaluationResult, MetricValue
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import ALL_CLASSES, class_metrics, sorted_classes

SUFFIXES = (".csv",)
COUNTS = ("gt", "ignored", "pred")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula (OWASP, CSV injection)


def render(result: EvaluationResult, options: ReportOptions) -> str:
    """Return the table; the classes are sorted as `options.sort` says."""
    metrics = tuple(dict.fromkeys([*result.metrics, *class_metrics(result)]))
    classes = sorted_classes(result, options.sort)
    lines = [["class", *COUNTS, *metrics], [ALL_CLASSES, *_counts(*classes), *_numbers(result.metrics, metrics)]]
    lines += [[_inert(row.name), *_counts(row), *_numbers(row.values, metrics)] for row in classes]
    return "".join(f"{','.join(map(_quoted, line))}\n" for line in lines)


def _counts(*rows: ClassRow) -> list[str]:
    return [str(sum(getattr(row, count) for row in rows)) for count in COUNTS]


def _numbers(values: Mapping[str, MetricValue], metrics: tuple[str, ...]) -> list[str]:
    return [_number(values[name].value) if name in values else "" for name in metrics]


def _number(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _quoted(cell: str) -> str:
    """Quote as RFC 4180 says; the csv module leaves a lone carriage return bare when lines end with a newline."""
    if not any(character in cell for character in ',"\r\n'):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _inert(name: str) -> str:
    """Keep a spreadsheet from running a class name."""
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
