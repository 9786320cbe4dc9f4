"""Reports of a history: the metric from run to run, and the classes that moved; for machines all runs and classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaccard_eval.data.document import DataTable, Interval
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.history import HistoryResult, HistoryRun
from jaccard_eval.features.history.following import NATURAL
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Axis,
    Cell,
    Chart,
    Column,
    DataCell,
    Headline,
    Linked,
    Look,
    Marked,
    Note,
    Report,
    Section,
    Series,
    Span,
    Table,
    columns,
    delta_look,
)
from jaccard_eval.report.numbers import delta_text, metric_text
from jaccard_eval.report.sections import findings_section, warned_spans
from jaccard_eval.text import pluralise

SHOWN_CLASSES = 10  # of those that moved, for people who do not ask for all
RUNS, CLASSES = "runs", "moved"  # keys of sections
NO_INTERVAL: Interval = (math.nan, math.nan)
LOOKS: dict[str, Look] = {"better": "good", "worse": "bad"}


def build_report(result: HistoryResult, options: ReportOptions) -> Report:
    """Return the runs in their order, then the classes that moved most from the first to the last of them."""
    title = f"jaccard-eval {result.version}, history of {result.metric}"
    sections = [runs_section(result), *classes_section(result, verbose=options.per_class or options.verbose)]
    sections += findings_section(result.findings)
    return Report(title, tuple(sections), result.signature, headline=_headline(result))


def _headline(result: HistoryResult) -> Headline:
    last, *earlier = reversed(result.latest)
    spans = [Span(f"{result.metric} {metric_text(result.value(last))} {last.name}")]
    if earlier:
        first = earlier[-1]
        delta = result.value(last) - result.value(first)
        spans.append(Span(f", {delta_text(delta)} since {first.name}", _delta_look(result, delta)))
        best = best_run(result)
        spans.append(
            Span(f", best {metric_text(result.value(best))} {best.name}") if best is not last else Span(", the best")
        )
    spans.append(Span(f" ({pluralise(len(result.latest), 'run')}"))
    others = len(result.runs) - len(result.latest)
    spans.append(Span(f", {others:,} of other ground truth or rules)" if others else ")"))
    return Headline((*spans, *warned_spans(result.findings)))


def best_run(result: HistoryResult) -> HistoryRun:
    """Return the best of the runs that can be compared with the last one; of equal ones the first."""
    sign = 1 if _is_higher_better(result) else -1
    return max(
        result.latest,
        key=lambda run: -math.inf if math.isnan(result.value(run)) else sign * result.value(run),
    )


def _is_higher_better(result: HistoryResult) -> bool:
    return MetricRef.parse(result.metric).higher_is_better


def _delta_look(result: HistoryResult, delta: float) -> Look:
    return delta_look(delta, higher_is_better=_is_higher_better(result))


def runs_section(result: HistoryResult) -> Section:
    """Return the table of runs; columns in which nothing is defined are omitted."""
    runs, level = result.runs, f"{100 * result.confidence_level:g} %"
    parts = len({run.part for run in runs})
    values = [result.value(run) for run in runs]
    best = best_run(result)
    metrics = [Marked(value, "good") if run is best else value for run, value in zip(runs, values, strict=True)]
    has_interval, is_tested = any(run.interval for run in runs), any(run.delta_interval for run in runs)
    verdicts = [Marked(run.verdict, LOOKS.get(run.verdict, "plain")) for run in runs]
    optional: list[tuple[Column, Sequence[Cell], bool]] = [
        (Column("part", "count"), [run.part for run in runs], parts > 1),
        (Column(result.metric, "metric"), metrics, True),
        (Column(f"{level} low", "metric"), [(run.interval or NO_INTERVAL)[0] for run in runs], has_interval),
        (Column("high", "metric"), [(run.interval or NO_INTERVAL)[1] for run in runs], has_interval),
        (Column("to the one before", "delta"), [_marked(result, run.delta) for run in runs], parts < len(runs)),
        (Column(f"{level} CI", "interval"), [run.delta_interval or NO_INTERVAL for run in runs], is_tested),
        (Column("p", "ratio"), [run.p_value for run in runs], is_tested),
        (Column("", "word"), verdicts, any(run.verdict for run in runs)),
        (Column("objects", "count"), [run.objects for run in runs], True),
        (Column("detections", "count"), [run.detections for run in runs], True),
    ]
    shown = [(column, cells) for column, cells, is_shown in optional if is_shown]
    heads = (Column("run", "path"), *(column for column, _ in shown))
    rows = zip([run.name for run in runs], *(cells for _, cells in shown), strict=True)
    return Section("Runs", (Table(heads, tuple(rows)), *map(Note, _notes(result, parts))), key=RUNS)


def _marked(result: HistoryResult, delta: float) -> Cell:
    return delta if math.isnan(delta) else Marked(delta, _delta_look(result, delta))


def _notes(result: HistoryResult, parts: int) -> list[str]:
    order = "by name, numbers in it by value" if result.order == NATURAL else "in the order given"
    notes = [f"Runs are listed {order}: results record no time."]
    if parts > 1:
        notes.append(
            f"There are {parts} parts: runs of different ground truth or rules, which are not compared with each other."
        )
    if result.n_resamples:
        notes.append(
            f"Intervals: {result.n_resamples:,} draws of the images, the same for all runs; each p stands alone."
        )
    if refused := dict.fromkeys(run.refused for run in result.runs if run.refused and not run.interval):
        notes.append(f"No interval of {result.metric}: {', '.join(refused)}.")
    return notes


def classes_section(result: HistoryResult, *, verbose: bool) -> list[Section]:
    """Return the classes that moved from the first to the last run that can be compared; nothing of a single run."""
    if len(result.latest) < 2:
        return []
    first, last = result.latest[0], result.latest[-1]
    at = [result.runs.index(run) for run in (first, last)]
    moved = [row for row in result.classes if abs(row.delta) > 0]
    shown = moved if verbose else moved[:SHOWN_CLASSES]
    is_tested = any(row.interval for row in shown)
    heads = [Column("class", "name"), *columns("metric", first.name, last.name), Column("difference", "delta")]
    heads += [Column(f"{100 * result.confidence_level:g} % CI", "interval")] if is_tested else []
    heads += [Column("gt", "count")]
    rows = []
    for row in shown:
        noise = [row.interval or NO_INTERVAL] if is_tested else []
        rows.append((row.name, row.values[at[0]], row.values[at[1]], _marked(result, row.delta), *noise, row.gt))
    left = len(moved) - len(shown)
    known = pluralise(len(result.classes), "class", "classes")
    text = f"{len(moved):,} of {known} moved from {first.name} to {last.name}."
    if left:
        text += f" {left:,} more in files, and with --per-class."
    blocks = (Table(tuple(heads), tuple(rows)), Note(text)) if rows else (Note(text),)
    return [Section("Classes that moved", blocks, key=CLASSES)]


def build_charts(result: HistoryResult) -> list[Chart]:
    """Return the metric by run: a line for each part, and its interval dashed."""
    series: list[Series] = []
    for part in dict.fromkeys(run.part for run in result.runs):
        chosen = [(row, run) for row, run in enumerate(result.runs) if run.part == part]
        places = [float(row) for row, _ in chosen]
        name = result.metric if chosen[-1][1] in result.latest else f"{result.metric} of other ground truth or rules"
        for end, title in ((0, "low"), (1, "high")):
            bounds = [(run.interval or NO_INTERVAL)[end] for _, run in chosen]
            if not all(map(math.isnan, bounds)):
                series.append(Series("", bounds, places, look="dashes", group=f"{part} {title}"))
        values = [result.value(run) for _, run in chosen]
        series.append(Series(name, values, places, look="" if len(chosen) > 1 else "points", group=f"{part}"))
    axis = Axis("run", names=tuple(run.name for run in result.runs))
    return [Chart("line", f"{result.metric} from run to run", tuple(series), x=axis, y=Axis(result.metric))]


def build_data(result: HistoryResult, options: ReportOptions) -> DataTable:
    """Return one row per run over all classes, then one per run and class; `options` change nothing."""
    # Sorted, as documents have them: a saved history has the same columns.
    names = sorted({name for run in result.runs for name in run.metrics} - {result.metric})
    bounds = ("low", "high", "delta", "delta_low", "delta_high", "p", "verdict")
    header = ("run", "class", "part", "images", "gt", "detections", result.metric, *bounds, *names, "path", "signature")
    rows: list[tuple[DataCell, ...]] = []
    for run in result.runs:
        low, high = run.interval or NO_INTERVAL
        tested = (run.delta, *(run.delta_interval or NO_INTERVAL), run.p_value, run.verdict)
        counts = (run.part, run.images, run.objects, run.detections)
        others = (run.metrics.get(name, math.nan) for name in names)
        rows.append((run.name, "all", *counts, result.value(run), low, high, *tested, *others, run.path, run.signature))
    before: dict[int, int] = {}
    for at, run in enumerate(result.runs):
        for row in result.classes:
            value = row.values[at]
            delta = value - row.values[before[run.part]] if run.part in before else math.nan
            noise = (math.nan, math.nan, delta, math.nan, math.nan, math.nan, "")
            place = (run.name, row.name, run.part, run.images, row.gt, math.nan)
            rows.append((*place, value, *noise, *(math.nan for _ in names), run.path, run.signature))
        before[run.part] = at
    return DataTable(header, tuple(rows))


def build_page(result: HistoryResult, options: ReportOptions) -> Report:
    """Return the report with a chart, and runs that are links where their pages lie next to it."""
    report = build_report(result, options)
    sections = list(report.sections)
    [at] = [row for row, section in enumerate(sections) if section.key == RUNS]
    table, *notes = sections[at].blocks
    if isinstance(table, Table):
        cells = zip(result.runs, table.rows, strict=True)
        table = replace(table, rows=tuple((Linked(run.name, run.place), *row[1:]) for run, row in cells))
    sections[at] = replace(sections[at], blocks=(*build_charts(result), table, *notes))
    return replace(report, sections=tuple(sections))


def build_folder(result: HistoryResult, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the page of the history, and one for each run."""
    from jaccard_eval.report.outputs.html import linked_pages  # draws, which few reports need

    return linked_pages(result, "runs", options)
