"""Reports of a suppression: how it was done, and the boxes of each class before and after."""

from __future__ import annotations

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.nms import ClassCounts, SuppressionResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, Headline, KeyValues, Report, Section, Span, Table, columns
from jaccard_eval.report.sections import findings_section, warned_spans

OVERLAPS = {"iou": "IoU", "ioa": "intersection over the smaller area"}


def build_report(result: SuppressionResult, options: ReportOptions) -> Report:
    """Return what was done and how many boxes are left; `options` change nothing."""
    rule = result.rule
    by = str(rule["by"])
    # A later release may have more of them.
    facts = [("overlap", f"{OVERLAPS.get(by, by)}, more than {rule['iou']:g}")]
    if "score_min" in rule:
        facts.append(("minimum score", f"{rule['score_min']:g}"))
    facts.append(
        ("applies to", "boxes of the same image" if rule["class_agnostic"] else "boxes of the same image and class")
    )
    heads = (Column("class"), *columns("count", "before", "below score", "suppressed", "after"))
    sections = (
        Section("Files", (KeyValues((("read", result.path), ("written", result.output), ("format", result.format))),)),
        Section("Rule", (KeyValues(tuple(facts)),)),
        Section("Boxes", (Table(heads, tuple(map(_row, (*result.classes, result.total)))),)),
        *findings_section(result.findings),
    )
    _, before, below, suppressed, after = _row(result.total)
    parts = [f"{suppressed:,} suppressed", *([f"{below:,} below the score"] if below else [])]
    headline = Headline(
        (Span(f"kept {after:,} of {before:,} boxes: {', '.join(parts)}"), *warned_spans(result.findings))
    )
    return Report(f"jaccard-eval {result.version}, NMS", sections, headline=headline)


def build_data(result: SuppressionResult, options: ReportOptions) -> DataTable:
    """Return one row for all classes, then one per class; `options` change nothing."""
    header = ("class", "before", "below_score", "suppressed", "after")
    return DataTable(header, tuple(map(_row, (result.total, *result.classes))))


def _row(counts: ClassCounts) -> tuple[str, int, int, int, int]:
    suppressed = counts.before - counts.below - counts.after
    return counts.name, counts.before, counts.below, suppressed, counts.after
