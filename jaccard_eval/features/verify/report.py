"""What reports say about an evaluation that was run again: whether it is the same, and what is not."""

from __future__ import annotations

from jaccard_eval.features.verify.result import Difference, Verification
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Sheet, Table

SHOWN_DIFFERENCES = 20  # the JSON and CSV documents have all


def build_report(result: Verification, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options` change nothing."""
    inputs = (("result", result.path), ("ground truth", result.gt), ("predictions", result.pred))
    sections = [Section("Verification", (KeyValues((*inputs, ("verdict", _verdict(result)))),))]
    if result.differences:
        sections.append(_differences(result.differences))
    return Report(f"jaccard-eval {result.version}, verification", tuple(sections), result.signature)


def build_sheet(result: Verification, options: ReportOptions) -> Sheet:
    """Return one row per difference; `options` change nothing."""
    return Sheet(("name", "saved", "again"), tuple(_row(one) for one in result.differences))


def _verdict(result: Verification) -> str:
    if not result.differences:
        return f"the same: all {result.compared:,} values are equal"
    if result.equal:
        return f"the same, but for the version: all other {result.compared - 1:,} values are equal"
    return f"not the same: {len(result.differences):,} of {result.compared:,} values differ"


def _differences(differences: tuple[Difference, ...]) -> Section:
    columns = tuple(Column(title, free_text=True) for title in ("value", "saved", "again"))
    table = Table(columns, tuple(_row(one) for one in differences[:SHOWN_DIFFERENCES]))
    hidden = len(differences) - SHOWN_DIFFERENCES
    notes = (Note(f"and {hidden:,} more"),) if hidden > 0 else ()
    return Section("Differences", (table, *notes))


def _row(one: Difference) -> tuple[Cell, ...]:
    return one.name, _text(one.saved), _text(one.again)


def _text(value: str | float | None) -> str:
    """Every digit of a number: what is not the same may be the last one."""
    return "n/a" if value is None else str(value)
