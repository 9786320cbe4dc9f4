"""Tables for machines of the errors of an evaluation, each a file of its own: confusion, curves, calibration."""

from __future__ import annotations

from collections.abc import Iterator

from jaccard_eval.features.errors.result import BACKGROUND, ClassErrors, ErrorReport
from jaccard_eval.report import Reportable
from jaccard_eval.report.model import Cell, Sheet

ALL_CLASSES = "all"


def errors_of(result: Reportable) -> ErrorReport | None:
    """Return the errors of an evaluation; None of other kinds of results, and where they were not found."""
    return getattr(result, "errors", None) if result.kind == "evaluation" else None


def confusion_sheet(errors: ErrorReport) -> Sheet:
    """Return the whole matrix: rows are ground truth, columns predictions."""
    names = (*errors.confusion.names, BACKGROUND)
    counts: list[list[int]] = errors.confusion.counts.tolist()
    return Sheet(("ground truth", *names), tuple((name, *row) for name, row in zip(names, counts, strict=True)))


def curves_sheet(errors: ErrorReport) -> Sheet:
    """Return precision, recall and F1 at each score, of all classes pooled and of each."""
    return Sheet(("class", "score", "precision", "recall", "F1"), tuple(_curve_rows(errors)))


def calibration_sheet(errors: ErrorReport) -> Sheet:
    """Return the bins of scores, of all classes pooled and of each; empty bins have no means."""
    return Sheet(("class", "from", "to", "detections", "mean score", "precision"), tuple(_bin_rows(errors)))


def _curve_rows(errors: ErrorReport) -> Iterator[tuple[Cell, ...]]:
    for one in _all(errors):
        curve = one.curve
        for row in zip(curve.score, curve.precision, curve.recall, curve.f1, strict=True):
            yield ALL_CLASSES if one.name is None else one.name, *map(float, row)


def _bin_rows(errors: ErrorReport) -> Iterator[tuple[Cell, ...]]:
    for one in _all(errors):
        bins, n = one.calibration, len(one.calibration.count)
        for i, row in enumerate(zip(bins.count, bins.score, bins.precision, strict=True)):
            yield ALL_CLASSES if one.name is None else one.name, i / n, (i + 1) / n, int(row[0]), *map(float, row[1:])


def _all(errors: ErrorReport) -> tuple[ClassErrors, ...]:
    return errors.pooled, *errors.classes
