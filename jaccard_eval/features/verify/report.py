"""Reports of an evaluation that was run again: whether it is the same, and what is not."""

from __future__ import annotations

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.verify import Difference, Verification
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Headline, KeyValues, Note, Report, Section, Span, Table, columns
from jaccard_eval.report.numbers import UNDEFINED

SHOWN_DIFFERENCES = 20  # the JSON and CSV documents have all


def build_report(result: Verification, options: ReportOptions) -> Report:
    """Return the report for people; `options` change nothing."""
    # One verdict for three cases: equal except for the version is equal, and still worth a word.
    differing = result.differences
    verdict = Span(f"not the same: {len(differing):,} of {result.compared:,} values differ", "bad")
    if not differing:
        verdict = Span(f"the same: all {result.compared:,} values are equal", "good")
    elif result.equal:
        text = f"the same except for the version: all other {result.compared - 1:,} values are equal"
        verdict = Span(text, "good")
    names = ("judged", "baseline") if result.saved_kind == "gate" else ("ground truth", "predictions")
    given = ((name, path) for name, path in zip(names, (result.gt, result.pred), strict=True) if path)
    inputs = (("result", result.path), *given)
    sections = [Section("Verification", (KeyValues(inputs),))]
    if differing:
        table = Table(columns("text", "value", "saved", "again"), tuple(map(_row, differing[:SHOWN_DIFFERENCES])))
        hidden = len(differing) - SHOWN_DIFFERENCES
        notes = (Note(f"and {hidden:,} more"),) if hidden > 0 else ()
        sections.append(Section("Differences", (table, *notes)))
    title = f"jaccard-eval {result.version}, verification"
    return Report(title, tuple(sections), result.signature, headline=Headline((verdict,)))


def build_data(result: Verification, options: ReportOptions) -> DataTable:
    """Return one row per difference; `options` change nothing."""
    return DataTable(("name", "saved", "again"), tuple(map(_row, result.differences)))


def _row(difference: Difference) -> tuple[str, str, str]:
    # Every digit of a number: what is not the same may be the last one.
    saved, again = (UNDEFINED if value is None else str(value) for value in (difference.saved, difference.again))
    return difference.name, saved, again
