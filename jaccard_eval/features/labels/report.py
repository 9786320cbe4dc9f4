"""Reports of suspected labels: for people the surest of each kind, for machines one row each."""

from __future__ import annotations

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.labels.result import PROBABLE, SUSPICIONS, Gain, LabelsResult, Suspect
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.headlines import warned_spans
from jaccard_eval.report.model import Column, Headline, Note, Report, Rows, Section, Span, Table
from jaccard_eval.report.numbers import side_text
from jaccard_eval.report.sections import findings_section, inputs_section
from jaccard_eval.text import pluralise

SHOWN = 10  # of each kind, for people
COLUMNS = ("kind", "image", "class", "suggested", "score", "xmin", "ymin", "xmax", "ymax", "reason", "object")
TITLES = {
    "missing": "Missing objects",
    "class": "Wrong classes",
    "box": "Bad boxes",
    "spurious": "Spurious objects",
    "duplicate": "Duplicates",
}


def build_report(result: LabelsResult, options: ReportOptions) -> Report:
    """Return the first suspects of each kind, with the reason for each; all that are listed with `options.verbose`."""
    sides = [("ground truth", result.gt), *(("predictions", pred) for pred in result.preds)]
    sections = [inputs_section(sides), *(_section(result, kind, verbose=options.verbose) for kind in SUSPICIONS)]
    if result.gain is not None:
        sections.append(_gain(result.gain))
    title = f"jaccard-eval {result.version}, suspected labels, protocol {result.protocol}"
    n = sum(result.counts.values())
    listed = ", ".join(f"{kind} {count:,}" for kind, count in result.counts.items())
    texts = (Span(pluralise(n, "probable label error")), Span(f": {listed}"))
    headline = Headline((*texts, *warned_spans(result.findings)))
    return Report(title, (*sections, *findings_section(result.findings)), result.signature, headline=headline)


def _section(result: LabelsResult, kind: str, *, verbose: bool) -> Section:
    found = [suspect for suspect in result.suspects if suspect.kind == kind]
    if kind in result.refused:
        return Section(TITLES[kind], (Note(f"Not looked for: {result.refused[kind]}."),))
    if not found:
        return Section(TITLES[kind], (Note("None."),))
    heads = (
        Column("score", "ratio"),
        Column("image", "path"),
        Column("object", "word"),
        Column("box", "word"),
        Column("reason"),
    )
    shown = found if verbose else found[:SHOWN]
    rows: Rows = tuple(
        (suspect.score, suspect.image, suspect.object or "-", _box(suspect), suspect.reason) for suspect in shown
    )
    probable = sum(suspect.score >= PROBABLE for suspect in found)
    left = len(found) - len(shown) + result.unlisted.get(kind, 0)
    notes = [f"{probable:,} of them probable (score {PROBABLE:g} or more)" if probable else "None of them is probable"]
    notes += [f"{left:,} more with lower scores"] if left else []
    return Section(TITLES[kind], (Table(heads, rows), Note("; ".join(notes) + ".")))


def _gain(gain: Gain) -> Section:
    heads = (Column("labels"), Column("changes", "count"), Column("AP", "metric"), Column("change", "delta"))
    rows: Rows = (
        ("as they are", 0, gain.before, 0.0),
        ("with what was accepted", gain.accepted, gain.after, gain.after - gain.before),
        ("control: other changes", gain.controls, gain.control, gain.control - gain.before),
    )
    note = Note("AP rises as well where right labels follow the model: only what exceeds the control is a gain.")
    return Section("After corrections", (Table(heads, rows), note))


def _box(suspect: Suspect) -> str:
    corners = (suspect.xmin, suspect.ymin, suspect.xmax, suspect.ymax)
    return " ".join(f"{edge:.0f}" if max(map(abs, corners)) >= 10 else side_text(edge) for edge in corners)


def build_data(result: LabelsResult, options: ReportOptions) -> DataTable:
    """Return one row per suspect, the surest first; `options` change nothing."""
    rows = tuple(
        (
            suspect.kind,
            suspect.image,
            suspect.class_name,
            suspect.suggested,
            suspect.score,
            suspect.xmin,
            suspect.ymin,
            suspect.xmax,
            suspect.ymax,
            suspect.reason,
            suspect.object,
        )
        for suspect in result.suspects
    )
    return DataTable(COLUMNS, rows)
