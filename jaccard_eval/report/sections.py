"""What reports of several kinds have in common: headlines, inputs, gates, findings, listed classes, order of pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import METRICS, MetricRef
from jaccard_eval.data.result import Correspondence, GateVerdict, InputSummary, Status, counted_statuses
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, Severity, in_text_report
from jaccard_eval.frozen import dataclass
from jaccard_eval.registry import provided
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Column,
    Headline,
    KeyValues,
    Kind,
    Look,
    Marked,
    Note,
    Remark,
    Report,
    Section,
    Span,
    Table,
    build_report,
    columns,
    delta_look,
    feature_of,
)
from jaccard_eval.report.numbers import metric_text, signed_text, threshold_text, value_text
from jaccard_eval.text import did_you_mean, is_numeric, pluralise, quoted_value


class SortableRow(Protocol):
    """A row of a table of classes."""

    @property
    def name(self) -> str:
        """Of the class."""

    @property
    def values(self) -> Mapping[str, MetricValue]:
        """Its metrics by name."""


Row = TypeVar("Row", bound=SortableRow)

SEVERITIES: Mapping[Severity, Look] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "plain"}
SHOWN_PASSES = 5  # of one limit of one rule; with more classes than these, the ones nearest to the limit
SHOWN_NAMES = 5  # names of a list that a text report repeats
BY_ID = "id"
# Keys of sections that reports of several kinds have.
GATES, FINDINGS, NOTES, PROVENANCE = "gates", "findings", "notes", "provenance"


def inputs_section(
    sides: Sequence[tuple[str, InputSummary]], found: Correspondence | None = None, *, verbose: bool = False
) -> Section:
    """Return what was read on each side, as (name of the side, summary), and how the two sides correspond."""
    counts = columns("count", "images", "boxes", "classes")
    heads = (*columns("word", "side", "format"), *counts, Column("path", "path"))
    rows, notes = [], []
    for side, summary in sides:
        rows.append((side, summary.format, summary.images, summary.boxes, summary.classes, summary.path))
        texts = [*summary.details] if verbose else []
        texts += [f"ignored: {ignored_text(summary.ignored)}"] if summary.ignored else []
        notes += [Note(f"{side}: {text}") for text in texts]
    matched = () if found is None else (correspondence_facts(found),)
    return Section("Inputs", (Table(heads, tuple(rows)), *matched, *notes), key=PROVENANCE)


# The nouns of what documents count by reason, for one and for several; reasons of other packages stay as they are.
IGNORED = {
    "annotations": ("annotation", "annotations"),
    "class-unlisted": ("box of a class that is not listed", "boxes of classes that are not listed"),
    "csv-nothing-found": ("row that reports nothing found", "rows that report nothing found"),
    "csv-row-blank": ("empty row", "empty rows"),
    "csv-row-zero": ("row of zeros", "rows of zeros"),
    "duplicates": ("duplicate row", "duplicate rows"),
    "image-unlisted": ("box on an image that is not listed", "boxes on images that are not listed"),
    "images-without-ground-truth": ("image without ground truth", "images without ground truth"),
    "invalid": ("record that cannot be used", "records that cannot be used"),
    "inverted": ("box with negative width or height", "boxes with negative width or height"),
    "lost": ("box of an object that was lost", "boxes of objects that were lost"),
    "nms": ("box removed by NMS", "boxes removed by NMS"),
    "npz-score-low": ("box with a score close to 0", "boxes with scores close to 0"),
    "other-files": ("other file", "other files"),
    "other_file": ("other file", "other files"),
    "outside": ("box of an object out of sight", "boxes of objects out of sight"),
    "pixels-background": ("background pixel", "background pixels"),
    "pixels-ignored": ("pixel with an ignored value", "pixels with an ignored value"),
    "predictions": ("prediction", "predictions"),
    "score": ("score", "scores"),
    "score-min": ("prediction with a low score", "predictions with low scores"),
    "segments-on-void-or-crowd": ("segment on void or crowd", "segments on void or crowd"),
    "shape": ("shape of another kind", "shapes of other kinds"),
    "track_id": ("track id", "track ids"),
    "unjudged_class": ("box that the benchmark does not judge", "boxes that the benchmark does not judge"),
    "unlisted": ("file that is not listed", "files that are not listed"),
}


def ignored_text(ignored: Mapping[str, int]) -> str:
    """Return what was ignored, and how much of it, in the order of documents."""
    nouns = ((count, *IGNORED.get(reason, (reason, reason))) for reason, count in sorted(ignored.items()))
    return ", ".join(pluralise(*noun) for noun in nouns)


def correspondence_facts(found: Correspondence) -> KeyValues:
    """Return how the two sides correspond."""
    images = [f"by {_way(found.image_strategy)}", f"{found.matched_images:,} on both sides"]
    images += _leftover(found.gt_only_images, found.n_gt_only_images, "ground truth")
    images += _leftover(found.pred_only_images, found.n_pred_only_images, "predictions")
    classes = [f"by {_way(found.class_strategy)}", f"{len(found.classes):,} on both sides"]
    renamed = [f"{pred} is {gt}" for gt, pred in found.classes if gt != pred]
    if renamed and found.class_strategy != BY_ID:  # ids are numbers, which name nothing
        classes.append(f"in the predictions {joined_names(renamed, len(renamed))}")
    classes += _leftover(found.gt_only_classes, len(found.gt_only_classes), "ground truth")
    classes += _leftover(found.pred_only_classes, len(found.pred_only_classes), "predictions")
    return KeyValues((("images", "; ".join(images)), ("classes", "; ".join(classes))))


def _way(strategy: str) -> str:
    """Return how names were paired, as it reads behind "by"."""
    return f"prediction id {strategy[2]} 1" if strategy in ("id+1", "id-1") else strategy


def _leftover(names: Sequence[str], count: int, side: str) -> list[str]:
    return [f"{count:,} only in the {side} ({joined_names(names, count)})"] if count else []


def joined_names(names: Sequence[str], count: int) -> str:
    """Join the first few of `count` names."""
    first = list(names[:SHOWN_NAMES])
    return ", ".join(first if len(first) == count else [*first, f"and {count - len(first):,} more"])


def sorted_rows(
    rows: Sequence[Row], sort: str | None, counts: Mapping[str, str], metrics: Iterable[str]
) -> tuple[Row, ...]:
    """Return the rows of classes by "name" ascending, by a count or a metric descending; as they are without `sort`."""
    if sort is None:
        return tuple(rows)
    known = ("name", *counts, *metrics)
    if sort not in known:
        raise UsageError(
            f"cannot sort by {quoted_value(sort)}; choose from {', '.join(known)}.{did_you_mean(sort, known)}"
        )
    if sort == "name":
        return tuple(sorted(rows, key=lambda row: row.name))
    if sort in counts:
        return tuple(sorted(rows, key=lambda row: -getattr(row, counts[sort])))
    values = [row.values[sort].value if sort in row.values else math.nan for row in rows]
    # NaN compares with nothing: what is undefined goes last by a key of its own.
    order = sorted(
        range(len(rows)), key=lambda i: (math.isnan(values[i]), 0.0 if math.isnan(values[i]) else -values[i])
    )
    return tuple(rows[i] for i in order)


def undefined_notes(metrics: Iterable[tuple[str, MetricValue]]) -> list[Note]:
    """Return one note per reason, with the names of the metrics that it leaves undefined."""
    by_reason: dict[str, list[str]] = {}
    for name, metric in metrics:
        if math.isnan(metric.value):
            by_reason.setdefault(metric.reason or "reason unknown", []).append(name)
    return [Note(f"n/a: {joined_names(names, len(names))}: {reason}") for reason, names in by_reason.items()]


def findings_section(findings: Iterable[Finding], severity: Severity = Severity.WARNING) -> list[Section]:
    """Return the findings of a severity: lines by code, each followed by its table of evidence; none without any."""
    look = SEVERITIES[severity]
    blocks: list[Table | KeyValues] = []
    pairs: list[tuple[str, str]] = []
    for finding in findings:
        section = Severity.WARNING if in_text_report(finding) else finding.severity
        if section is not severity:
            continue
        pairs += [(finding.code, line) for line in (finding.message, *finding.further)]
        if finding.table:
            # The table stands below its own finding, and those that follow start anew.
            blocks += [KeyValues(tuple(pairs), look), _evidence(finding)]
            pairs = []
    blocks += [KeyValues(tuple(pairs), look)] if pairs else []
    return [Section(f"{severity.capitalize()}s", tuple(blocks), key=FINDINGS)] if blocks else []


def remarks_sections(findings: Sequence[Finding]) -> list[Section]:
    """Return all findings, for media with room: what matters, and the notes in a section that is folded."""
    remarks: dict[bool, list[Remark]] = {}
    for finding in findings:
        remark = Remark(
            finding.code,
            (finding.statement, *finding.further),
            finding.advice(),
            _evidence(finding) if finding.table else None,
            SEVERITIES[finding.severity],
        )
        remarks.setdefault(finding.severity is Severity.NOTE, []).append(remark)
    sections = {False: Section("Findings", (), key=FINDINGS), True: Section("Notes", (), key=NOTES, folded=True)}
    return [replace(sections[is_note], blocks=tuple(remarks[is_note])) for is_note in sorted(remarks)]


def _evidence(finding: Finding) -> Table:
    header, *rows = finding.table
    numeric = [is_numeric(row[i] for row in rows) for i in range(len(header))]
    kinds: list[Kind] = ["count" if is_number else "text" for is_number in numeric]
    return Table(tuple(map(Column, header, kinds)), tuple(rows))


def gates_section(gates: Sequence[GateVerdict]) -> list[Section]:
    """Return the section of the verdicts, none without gates."""
    if not gates:
        return []
    # Loaded where there are gates: most runs have none.
    from jaccard_eval.report.checks import WORST, bare_limit, count_text, spread_texts, support_text

    chosen, hidden = _nearest_passes(gates)
    compared = any(not math.isnan(verdict.baseline) for verdict in gates)
    titles = ("value", "limit", "margin", *(["delta"] if compared else []), "n")
    heads = (Column("status", "word"), Column("rule", "name"), *columns("metric", *titles))
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for verdict in chosen:
        # The rule, and what it judged as far as that is not in its name.
        subject = verdict.rule if verdict.class_name is None else f"{verdict.rule}: {verdict.class_name}"
        if verdict.metric.partition("[")[0] not in verdict.rule:
            subject = f"{verdict.rule}: {verdict.metric}"
        numbers = [value_text(verdict.value, verdict.limit), bare_limit(verdict), signed_text(verdict.margin)]
        # A rule defines which way is better.
        look = delta_look(verdict.delta, higher_is_better=verdict.check.startswith(("min", "max-drop")))
        delta = [Marked(signed_text(verdict.delta), look)] if compared else []
        status = Marked(str(verdict.status), LOOKS[verdict.status])
        rows.append((status, subject, *numbers, *delta, support_text(verdict)))
        # The limit in the table has no room for a significance; the name of the rule may have it.
        is_named = not verdict.significance or verdict.significance in verdict.rule
        unnamed = "" if is_named else f"tested: {verdict.significance}"
        text = "; ".join(filter(None, [unnamed, *spread_texts(verdict), verdict.reason]))
        notes += [Note(f"{subject}: {text}")] if text else []
    found = {verdict.status for verdict in gates}
    worst: Look = next((LOOKS[status] for status in WORST if status in found), "good")
    return [Section("Gates", (Note(count_text(gates), worst), Table(heads, tuple(rows)), *notes, *hidden), key=GATES)]


def _nearest_passes(gates: Sequence[GateVerdict]) -> tuple[list[GateVerdict], list[Note]]:
    """Hide passes far from the limit where a rule has many classes, and report how many of which rule."""
    # A rule with [class=*] has a verdict for each class, of which all that complain are shown.
    hidden: set[int] = set()
    notes = []
    groups: dict[tuple[str, str], list[int]] = {}
    for i, verdict in enumerate(gates):
        groups.setdefault((verdict.rule, verdict.check), []).append(i)
    for (rule, _), group in groups.items():
        passes = sorted((i for i in group if gates[i].status is Status.PASS), key=lambda i: gates[i].margin)
        far = passes[SHOWN_PASSES:]
        hidden.update(far)
        if far:
            notes.append(Note(f"{rule}: {len(far):,} more passed, further from the limit; the JSON report lists all"))
    return [verdict for i, verdict in enumerate(gates) if i not in hidden], notes


SHOWN_METRICS = 3
NON_INFERIOR = "non-inferior"
LOOKS: Mapping[Status, Look] = {
    Status.PASS: "good",
    Status.WARN: "warn",
    Status.FAIL: "bad",
    Status.INFO: "dim",
    Status.SKIP: "dim",
}
OTHERS = {Status.WARN: "warned", Status.INFO: "missed, for information", Status.SKIP: "skipped"}


def metrics_headline(
    values: Mapping[str, float], findings: Iterable[Finding], at: Mapping[str, float] | None = None
) -> Headline:
    """Return the first metrics, as in ``AP 0.3463  AP50 0.6915  AP75 0.2658  (2 warnings)``, and those `at` a score."""
    shown = dict([*values.items()][:SHOWN_METRICS]) | dict(at or {})
    texts = [f"{name} {metric_text(value)}" for name, value in shown.items()]
    spans = [Span(f"  {text}" if row else text) for row, text in enumerate(texts)]
    return Headline((*spans, *warned_spans(findings)))


def warned_spans(findings: Iterable[Finding]) -> tuple[Span, ...]:
    """Return how many warnings there are, as the end of a line; nothing without any."""
    n = sum(finding.severity is Severity.WARNING for finding in findings)
    return (Span("  "), Span(f"({pluralise(n, 'warning')})", "warn")) if n else ()


def gates_headline(gates: Sequence[GateVerdict]) -> Headline:
    """Return the first requirement that failed, as in ``FAILED  AP50 0.6915 < 0.80``, or how many passed."""
    failed = [verdict for verdict in gates if verdict.failed]
    if failed:
        more = f"  (and {len(failed) - 1:,} more)" if len(failed) > 1 else ""
        return Headline((Span("FAILED", "bad"), Span(f"  {broken_text(failed[0])}{more}")))
    counts = counted_statuses(gates)
    passed = counts.pop(Status.PASS, 0)
    others = ", ".join(f"{count:,} {OTHERS[status]}" for status, count in counts.items())
    if not passed:
        return Headline((Span(f"gates: {others or 'none'}", LOOKS[next(iter(counts), Status.SKIP)]),))
    spans = [Span(f"passed {pluralise(passed, 'gate')}", "good")]
    if counts:
        spans += [Span("  "), Span(f"({others})", LOOKS[next(iter(counts))])]
    return Headline(tuple(spans))


def broken_text(verdict: GateVerdict) -> str:
    """Return what a verdict found in place of what its rule asks, as in ``AP50 0.6915 < 0.80``."""
    from jaccard_eval.report.checks import bare_limit  # most runs have no gates

    subject = f"{verdict.metric} on {verdict.slice}" if verdict.slice else verdict.metric
    if math.isnan(verdict.margin):  # nothing was compared: a value or its interval is undefined
        return f"{subject} {value_text(verdict.value)}, required {bare_limit(verdict)}"
    if verdict.check in ("min", "max"):
        limit = threshold_text(verdict.limit) if 0 <= verdict.limit <= 1 else f"{verdict.limit:.12g}"
        sign = "<" if verdict.check == "min" else ">"
        return f"{subject} {value_text(verdict.value, verdict.limit)} {sign} {limit}"
    verb = "dropped" if verdict.check.startswith("max-drop") else "rose"
    change, allowed = value_text(abs(verdict.delta), verdict.limit), f"{verdict.limit:.12g}"
    if verdict.check.endswith("-relative"):
        change, allowed = f"{100 * abs(verdict.delta / verdict.baseline):.3g} %", f"{100 * verdict.limit:.12g} %"
    if verdict.significance == NON_INFERIOR and verdict.spread is not None:
        low, high = map(signed_text, verdict.spread.interval)
        return f"{subject} may have {verb} by more than {allowed}: {signed_text(verdict.delta)}, {low} to {high}"
    return f"{subject} {verb} by {change}, more than {allowed}"


ClassRow = TypeVar("ClassRow")
Measured = TypeVar("Measured", bound=SortableRow)


@dataclass(frozen=True, slots=True)
class Listed(Generic[ClassRow]):
    """Rows of classes below a title, and a note on those that are in no list, behind the last one."""

    title: str
    rows: tuple[ClassRow, ...]
    more: tuple[Note, ...] = ()


def list_classes(
    ordered: Sequence[ClassRow],
    options: ReportOptions,
    *,
    by: str,
    is_defined: Callable[[ClassRow], bool] = lambda _: True,
    ends: tuple[str, str] = ("best", "worst"),
) -> list[Listed[ClassRow]]:
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


MADE = ("Inputs", "Rules")  # titles of what a page has at its end
PLACES = {GATES: 0, FINDINGS: 1, NOTES: 2, PROVENANCE: 4}  # of sections; all others stand between, as they came


def build_page(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it: by the `build_page` of its feature, else that for people."""
    build = getattr(provided("features").page_of(result.reported_by), "build_page", default_page)
    report: Report = build(result, options)
    return report


def default_page(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` with what is broken first and its inputs last."""
    report = build_report(result, options)
    feature = feature_of(result)
    made = [section for section in report.sections if section.title in MADE]
    sections = [section for section in report.sections if section.key != FINDINGS and section not in made]
    sections += remarks_sections(getattr(result, "findings", ()))
    # What only a page has, such as images.
    sections += feature.page_sections(result, options) if hasattr(feature, "page_sections") else []
    blocks = tuple(block for section in made for block in section.blocks)
    sections.append(Section("How it was made", blocks, key=PROVENANCE))
    return replace(report, sections=tuple(sorted(sections, key=lambda section: PLACES.get(section.key, 3))))
