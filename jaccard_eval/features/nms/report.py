"""What reports say about a suppression: how it was done, and the boxes of each class before and after."""

from __future__ import annotations

from jaccard_eval.features.nms.result import ClassCounts, SuppressionResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Report, Section, Sheet, Table
from jaccard_eval.report.sections import findings_section

OVERLAPS = {"iou": "IoU", "ioa": "intersection over the smaller area"}
METHODS = {
    "hard": "worse boxes are removed",
    "weighted": "worse boxes are merged into the better one, weighted by scores",
    "linear": "scores of worse boxes are multiplied by 1 - overlap",
    "gaussian": "scores of worse boxes are multiplied by exp(-overlap² / sigma)",
}


def build_report(result: SuppressionResult, options: ReportOptions) -> Report:
    """Return what was done and how many boxes are left; `options` change nothing."""
    paths = KeyValues((("read", result.path), ("written", result.output), ("format", result.format)))
    columns = (Column("class", free_text=True), *map(Column, ("before", "below score", "suppressed", "after")))
    rows = tuple(_row(one) for one in (*result.classes, result.total))
    sections = [
        Section("Files", (paths,)),
        Section(
            "Rule",
            (
                KeyValues(
                    tuple(_rule(result)),
                ),
            ),
        ),
        Section("Boxes", (Table(columns, rows),)),
        *findings_section(result.findings),
    ]
    return Report(f"jaccard-eval {result.version}, suppression", tuple(sections))


def build_sheet(result: SuppressionResult, options: ReportOptions) -> Sheet:
    """Return one row for all classes, then one per class; `options` change nothing."""
    header = ("class", "before", "below_score", "suppressed", "after")
    return Sheet(header, tuple(_row(one) for one in (result.total, *result.classes)))


def _row(one: ClassCounts) -> tuple[Cell, ...]:
    return one.name, one.before, one.below, one.before - one.below - one.after, one.after


def _rule(result: SuppressionResult) -> list[tuple[str, str]]:
    rule = result.rule
    limit = f"more than {rule['iou']:g}" if "iou" in rule else "any"
    overlap = f"{OVERLAPS[str(rule['by'])]}, {limit}"
    pairs = [("method", METHODS[str(rule["method"])]), ("overlap", overlap)]
    pairs += [
        (name, f"{rule[key]:g}") for name, key in (("sigma", "sigma"), ("score at least", "score_min")) if key in rule
    ]
    return [*pairs, ("rivals", "boxes of one image" if rule["class_agnostic"] else "boxes of one image and class")]
