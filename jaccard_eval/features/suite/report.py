"""Reports of a suite: how models stand, and what each scores on each set; for machines one row per pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.suite import MISSING, Standing, SuiteCell, SuiteResult, is_plain
from jaccard_eval.features.suite.compute import FEWEST_SETS
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Block,
    Cell,
    Chart,
    Column,
    DataCell,
    Headline,
    KeyValues,
    Live,
    Marked,
    Note,
    Report,
    Rows,
    Section,
    Span,
    Table,
    bars_by_name,
    columns,
    delta_look,
)
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.sections import findings_section, gates_headline, gates_section, warned_spans
from jaccard_eval.text import pluralise

SHOWN = 30  # sets, for people who do not ask for all
SETS = "sets"  # key of the section that pages draw as a heat map


def build_report(result: SuiteResult, options: ReportOptions) -> Report:
    """Return how models stand, their values on the sets that part them most, and what could not be evaluated."""
    title = f"jaccard-eval {result.version}, suite of {result.metric}"
    sections = [models_section(result), sets_section(result, None if options.verbose else SHOWN)]
    sections += groups_section(result)
    if result.failed:
        facts = KeyValues(tuple((cell.spelled, cell.problem) for cell in result.failed), "bad")
        sections.append(Section("Not evaluated", (facts,)))
    sections += [*gates_section(result.gates), *findings_section(result.findings)]
    headline = gates_headline(result.gates) if result.gates else _headline(result)
    return Report(title, tuple(sections), result.signature, headline=headline)


def _headline(result: SuiteResult) -> Headline:
    best, *others = result.standings
    spans = [Span(f"best mean {result.metric} {metric_text(best.mean)} {best.model}")]
    if others:
        spans.append(Span(f", then {metric_text(others[0].mean)} {others[0].model}"))
    spans.append(Span(f" ({pluralise(len(result.models), 'model')}, {pluralise(len(result.sets), 'set')})"))
    if result.failed:
        spans.append(Span(f", {pluralise(len(result.failed), 'pair')} not evaluated", "bad"))
    return Headline((*spans, *warned_spans(result.findings)))


def models_section(result: SuiteResult) -> Section:
    """Return the table of models; columns in which nothing is defined are omitted."""
    rows = result.standings
    level = f"{100 * result.confidence_level:g} %"
    optional: list[tuple[Column, Sequence[Cell], bool]] = [
        (Column(f"{level} low", "metric"), [_end(row, 0) for row in rows], any(row.interval for row in rows)),
        (Column("high", "metric"), [_end(row, 1) for row in rows], any(row.interval for row in rows)),
        (Column("sd of seeds", "metric"), *_defined([row.sd for row in rows])),
        (Column("weighted", "metric"), [row.weighted for row in rows], len(result.sets) > 1),
        (Column("mPC", "metric"), *_defined([row.mpc for row in rows])),
        (Column("rPC", "ratio"), *_defined([row.rpc for row in rows])),
        (Column("rank", "ratio"), [row.rank for row in rows], len(rows) > 1),
        (Column("wins", "count"), [row.wins for row in rows], len(rows) > 1),
        (Column("sets", "count"), [row.sets for row in rows], True),
        (Column(f"to {result.models[0]}", "delta"), *_deltas(result)),
        (Column("p", "ratio"), *_defined([row.p_value for row in rows])),
        (Column("", "word"), [row.verdict for row in rows], any(row.verdict for row in rows)),
    ]
    shown = [(column, cells) for column, cells, is_shown in optional if is_shown]
    heads = (Column("model"), Column(f"mean {result.metric}", "metric"), *(column for column, _ in shown))
    means = _marked(result, [row.mean for row in rows])
    cells = zip([row.model for row in rows], means, *(cells for _, cells in shown), strict=True)
    return Section("Models", (Table(heads, tuple(cells)), *_notes(result)), key="models")


def _defined(values: Sequence[float]) -> tuple[Sequence[float], bool]:
    return values, not all(map(math.isnan, values))


def _deltas(result: SuiteResult) -> tuple[Sequence[Cell], bool]:
    deltas = [row.delta for row in result.standings]
    is_higher = MetricRef.parse(result.metric).higher_is_better
    looks = (delta_look(delta, higher_is_better=is_higher) for delta in deltas)
    cells = [delta if math.isnan(delta) else Marked(delta, look) for delta, look in zip(deltas, looks, strict=True)]
    return cells, _defined(deltas)[1]


def _end(row: Standing, end: int) -> float:
    return math.nan if row.interval is None else row.interval[end]


def _notes(result: SuiteResult) -> list[Note]:
    common = common_sets(result)
    words = [f"Means, ranks and wins are over the {pluralise(len(common), 'set')} on which all models have a value."]
    if any(row.interval for row in result.standings):
        words.append(f"Intervals: {result.resampled} drawn with repeats.")
    if any(row.verdict for row in result.standings):
        how = "with either sign on each set" if len(common) >= FEWEST_SETS else "of the means by seed (Welch)"
        words.append(f"p: differences to {result.models[0]} {how}, by Holm over the models.")
    return [Note(" ".join(words))]


def common_sets(result: SuiteResult) -> list[str]:
    """Return the sets on which all models have a value."""
    values = [result.values(model) for model in result.models]
    return [name for name in result.sets if not any(math.isnan(of_model[name]) for of_model in values)]


def sets_section(result: SuiteResult, most: int | None) -> Section:
    """Return the values of models (columns) on sets; of many sets those on which models differ most, in their order."""
    values = [result.values(model) for model in result.models]
    apart = {name: _spread([of_model[name] for of_model in values]) for name in result.sets}
    chosen = {*sorted(result.sets, key=lambda name: -apart[name])[:most]}
    rows: Rows = tuple(
        (name, *_marked(result, [of_model[name] for of_model in values])) for name in result.sets if name in chosen
    )
    left = len(result.sets) - len(rows)
    text = f"The {len(rows)} sets on which models differ most; {left:,} more in files, and with --verbose."
    return Section(
        "Sets", (Table((Column("set"), *columns("metric", *result.models)), rows), *[Note(text)] * bool(left)), key=SETS
    )


def _spread(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return max(known) - min(known) if known else math.inf  # what is not known stands first


def _marked(result: SuiteResult, values: Sequence[float]) -> list[Cell]:
    """Return values of which the best is marked; of some metrics that is the lowest."""
    choose = max if MetricRef.parse(result.metric).higher_is_better else min
    best = choose((value for value in values if not math.isnan(value)), default=math.nan)
    return [Marked(value, "good") if value == best and len(values) > 1 else value for value in values]


def groups_section(result: SuiteResult) -> list[Section]:
    """Return the means over groups of sets; nothing without groups."""
    by_group: dict[str, list[float]] = {}
    sizes = {}
    for row in result.groups:
        by_group.setdefault(row.group, []).append(row.mean)
        sizes[row.group] = row.sets
    if not by_group:
        return []
    rows: Rows = tuple((group, sizes[group], *_marked(result, means)) for group, means in by_group.items())
    heads = (Column("group"), Column("sets", "count"), *columns("metric", *result.models))
    return [Section("Groups of sets", (Table(heads, rows),), key="groups")]


def build_charts(result: SuiteResult) -> list[Chart]:
    """Return the means as bars."""
    bars = [(row.model, row.mean) for row in result.standings]
    return [bars_by_name(f"Mean {result.metric} over the sets", result.metric, bars)]


def build_data(result: SuiteResult, options: ReportOptions) -> DataTable:
    """Return one row per pair, with all metrics of its summary; `options` change nothing."""
    # Sorted, as documents have them: a saved suite has the same columns.
    keys = sorted({key for cell in result.cells for key in cell.at})
    names = sorted({name for cell in result.cells for name in cell.metrics})
    header = ("model", "set", *keys, "state", "images", "objects", "detections", *names, "gt", "pred", "problem")
    return DataTable(header, tuple(_row(cell, keys, names) for cell in result.cells))


def _row(cell: SuiteCell, keys: Sequence[str], names: Sequence[str]) -> tuple[DataCell, ...]:
    counts = ("", "", "") if cell.state == MISSING else (cell.images, cell.objects, cell.detections)
    values = (cell.metrics.get(name, math.nan) for name in names)
    at = (cell.at.get(key, "") for key in keys)
    return (cell.model, cell.set_name, *at, cell.state, *counts, *values, cell.gt, cell.pred, cell.problem)


def build_page(result: SuiteResult, options: ReportOptions) -> Report:
    """Return the report with all sets as a heat map, and means as bars."""
    report = build_report(result, replace(options, verbose=True))
    places = {(cell.model, cell.set_name): cell.place for cell in reversed(result.cells) if is_plain(cell)}
    links = [[places.get((model, name), "") for model in result.models] for name in result.sets]
    known = [value for model in result.models for value in result.values(model).values() if not math.isnan(value)]
    added: dict[str, Sequence[Block]] = {
        "models": build_charts(result),
        SETS: [Live("sets", (links, min(known, default=0.0), max(known, default=0.0)))],
    }
    sections = (replace(section, blocks=(*section.blocks, *added.get(section.key, ()))) for section in report.sections)
    return replace(report, sections=tuple(sections))


def build_folder(result: SuiteResult, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the page of the suite, and one for each pair, which the heat map leads to."""
    from jaccard_eval.report.outputs.html import linked_pages  # draws, which few reports need

    return linked_pages(result, "cells", options)
