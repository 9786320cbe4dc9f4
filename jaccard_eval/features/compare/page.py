"""The page of a comparison: the verdict, differences of metrics and classes, curves, changes, and how it was made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.compare.gallery import gallery_sections
from jaccard_eval.features.compare.report import build_report, interval_title
from jaccard_eval.features.compare.result import ComparisonResult, Contender, Delta, Versus
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Column,
    Drawn,
    Note,
    Report,
    Section,
    Table,
    columns,
)
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.report.recall_charts import compared_recall_charts
from jaccard_eval.report.sections import FINDINGS, PROVENANCE, remarks_sections

MAIN_METRIC = "AP"
TILES = ("AP", "AP50", "AP75", "AR100")
LEAST = 0.01  # difference that drawings end at, so that next to nothing looks like that


def build_page(result: ComparisonResult, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it."""
    report = build_report(result, options)
    named = {section.title: section for section in report.sections}
    inputs, metrics = named.pop("Inputs"), named.pop("Metrics")
    # Lists of the text report that a page has in full.
    rest = [section for title, section in named.items() if section.key != FINDINGS and "Classes that" not in title]
    sections = [
        _headline(result),
        *remarks_sections(result.findings),
        _metrics(result, metrics),
        *(_classes(result, versus) for versus in result.others),
        *_curves(result),
        *gallery_sections(result, options),
        *rest,
        _provenance(result, inputs),
    ]
    return replace(report, sections=tuple(sections))


def _headline(result: ComparisonResult) -> Section:
    rows = []
    for versus in result.others:
        of = f" of {versus.contender.name}" if len(result.others) > 1 else ""
        shown = [delta for delta in versus.summary if delta.metric in TILES] or versus.summary[:1]
        rows += [(f"{delta.metric}{of}", delta.value, "", delta.delta) for delta in shown]
    names = ", ".join(f"{side.name} {side.path}" for side in _sides(result))
    heads = (Column("metric", "name"), Column("value", "metric"), Column("within"), Column("difference", "delta"))
    about = Note(f"Comparison · protocol {result.protocol} · {names}")
    return Section("Verdict", (about, Table(heads, tuple(rows)), Note("verdict")), key="headline")


def _metrics(result: ComparisonResult, section: Section) -> Section:
    notes = [block for block in section.blocks if not isinstance(block, Table)]
    tables = [
        _table(result, versus, [(delta.metric, delta) for delta in versus.summary], "metric")
        for versus in result.others
    ]
    return Section("Metrics", (*tables, *notes), key="metrics")


def _classes(result: ComparisonResult, versus: Versus) -> Section:
    """Return all classes, the largest losses first; undefined differences last."""
    deltas = [delta for delta in versus.deltas if delta.class_name is not None and delta.metric == MAIN_METRIC]
    deltas.sort(key=lambda delta: math.inf if math.isnan(delta.delta) else delta.delta)
    table = _table(result, versus, [(str(delta.class_name), delta) for delta in deltas], "class")
    many, name = len(result.others) > 1, versus.contender.name
    title = f"Classes, {MAIN_METRIC} of {name}" if many else f"Classes, {MAIN_METRIC}"
    return Section(title, (table,), key=f"classes-{result.others.index(versus)}" if many else "classes")


def _table(result: ComparisonResult, versus: Versus, deltas: Sequence[tuple[str, Delta]], what: str) -> Table:
    """Return differences with what is drawn of them, all on one scale."""
    base, name, drawn = result.baseline.name, versus.contender.name, result.bootstrap
    bounds = [abs(end) for _, delta in deltas for end in (delta.delta, *(delta.interval or ())) if not math.isnan(end)]
    most = max([LEAST, *bounds])
    heads = [Column(what, "name"), *columns("metric", base, name), Column(f"{name} - {base}", "delta")]
    heads += [Column("", "drawn"), *([] if drawn is None else [Column(interval_title(drawn), "interval")])]
    rows: list[tuple[Cell, ...]] = []
    for title, delta in deltas:
        cells: list[Cell] = [title, delta.baseline, delta.value, delta.delta]
        cells.append(Drawn(delta.delta, delta.interval, ends=(-most, most), look="dot"))
        cells += [] if drawn is None else [delta.interval or (math.nan, math.nan)]
        rows.append((*cells, delta.n))
    return Table((*heads, Column("gt", "count")), tuple(rows))


def _curves(result: ComparisonResult) -> list[Section]:
    measured = (evaluated.measured for evaluated in result.results)
    charts = compared_recall_charts([(side.name, found) for side, found in zip(_sides(result), measured, strict=False)])
    return [Section("Precision and recall", tuple(charts), key="curves")] if charts else []


def _sides(result: ComparisonResult) -> tuple[Contender, ...]:
    return (result.baseline, *(versus.contender for versus in result.others))


def _provenance(result: ComparisonResult, inputs: Section) -> Section:
    heads = (Column("side", "name"), Column("path", "path"), *columns("word", "fingerprint", "score"))
    rows = tuple((side.name, side.path, side.fingerprint, threshold_text(side.score)) for side in _sides(result))
    at = f"{overlap_name(result.signature)} {threshold_text(result.box_iou)}"
    note = Note(f"Boxes are compared at {at}, of detections with at least the score of their side.")
    return Section("How it was made", (*inputs.blocks, Table(heads, rows), note), key=PROVENANCE)
