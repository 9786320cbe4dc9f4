"""The page of an evaluation: what each of its sections shows, in reading order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import PurePath
from typing import Any
from urllib.parse import urlencode

import numpy as np

from jaccard_eval.data import document
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import ClassRow, EvaluationResult, InputSummary
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.report import interval_text, slices_section
from jaccard_eval.features.errors import BACKGROUND
from jaccard_eval.features.errors.compute import report_errors
from jaccard_eval.features.errors.report import confidence_chart, detail_sections, types_section
from jaccard_eval.features.evaluate.report import (
    class_metrics,
    frequency_cells,
    frequency_heads,
    headline,
    operating_points_section,
    rules_title,
    summary_section,
)
from jaccard_eval.features.images.columns import columns_of, placed
from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, build_gallery, gallery_section
from jaccard_eval.features.images.reasons import (
    Explained,
    Sentence,
    explained,
    fix_next,
    images_by_class,
    images_of,
)
from jaccard_eval.features.labels import Suspect
from jaccard_eval.features.labels.report import places_of, review_data, suspects_section
from jaccard_eval.features.operating import OperatingSteps
from jaccard_eval.features.operating.page import (
    MOST_LIVE,
    POINT_COLUMNS,
    live_curves,
    most_confused,
    point_cells,
    score_section,
    score_text,
    steps_of,
    with_steps,
)
from jaccard_eval.features.operating.page import (
    PART as STEPS,
)
from jaccard_eval.fixes import Fix
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.checks import WORST
from jaccard_eval.report.model import (
    Axis,
    Block,
    Cell,
    Chart,
    Column,
    Drawn,
    Explorer,
    Marked,
    Note,
    Report,
    Rows,
    Section,
    Series,
    Table,
    columns,
)
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.recall_charts import recall_charts
from jaccard_eval.report.sections import PROVENANCE, correspondence_facts, gates_section, ignored_text, remarks_sections
from jaccard_eval.text import pluralise, printable

PART = "explained"
WORST_CLASSES, EACH = 20, 2  # classes that lose most have so many images each, and sentences as well
TILES = 5  # metrics next to the first
LEAST = 0.01  # gain that a bar ends at, so that next to nothing looks like that
MOST_BOXES = 1_500_000  # that a browser opens within two seconds


def build_page(result: EvaluationResult, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it."""
    result = with_explanation(result)
    sections = [section for build in _SECTIONS for section in build(result, options)]
    return Report(
        rules_title(result), tuple(sections), result.signature, headline=headline(result), name=name_of(result)
    )


def with_explanation(result: EvaluationResult, scores: OperatingSteps | None = None) -> EvaluationResult:
    """Return the result with what became of all boxes, counted once for all that shows it, at its own or given scores.

    As it is where that is known, or where there are no boxes.
    """
    if result.part(PART) is not None:
        return result
    result = with_steps(result)
    counted = result.part(STEPS)
    if counted is None:
        return result
    steps, any_class = counted.rows
    steps = steps if scores is None else replace(steps, scores=scores.scores, start=scores.start)
    found = explained(result, steps, any_class)
    return result if found is None else result.with_part(document.Rows(PART, (found, fix_next(found))))


def name_of(result: EvaluationResult) -> str:
    """Return which model was evaluated on which data, by the names of their files; empty where there are none."""
    names = [PurePath(side.path).name for side in (result.pred, result.gt)]
    return " on ".join(names) if all(names) else ""


def _headline(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Head the page with the first metric, its interval, and the numbers next to it."""
    chosen = first_metrics(result)
    bounds = {"AP": f"AP ({' to '.join(map(metric_text, result.ties))}, by order)"} if result.ties else {}
    rows: Rows = tuple((bounds.get(name, name), metric.value, interval_of(result, metric)) for name, metric in chosen)
    rows += _best_f1(result) if result.ties is None else ()  # every detection counts already
    heads = (Column("metric", "name"), Column("value", "metric"), Column("within"))
    counts = ", ".join(
        (
            pluralise(result.gt.images, "image"),
            pluralise(result.gt.boxes, "object"),
            pluralise(result.pred.boxes, "detection"),
        )
    )
    about = Note(f"Detection report · protocol {result.protocol.name} · {counts}")
    return [Section("Result", (about, Table(heads, rows)), key="headline")]


def first_metrics(result: EvaluationResult) -> list[tuple[str, MetricValue]]:
    """Return the averages by threshold, and of the recalls over all of them the one with the largest cap."""
    # Where nothing is defined, the first metric is, as n/a.
    metrics = [*result.metrics.items()][:1]
    metrics = [(name, metric) for name, metric in result.metrics.items() if not math.isnan(metric.value)] or metrics
    # Those of all sizes first: AP, AP50, AP75, AR100.
    metrics = [(name, metric) for name, metric in metrics if metric.ref.area is None] or metrics
    precision = [(name, metric) for name, metric in metrics if metric.ref.name != "AR"]
    recall = [(name, metric) for name, metric in metrics if metric.ref.name == "AR"]
    recall = [(name, metric) for name, metric in recall if metric.ref.iou is None] or recall
    return [*precision[:TILES], *recall[-1:]]


def interval_of(result: EvaluationResult, metric: MetricValue) -> str:
    """Return the interval of a metric in words; empty without any."""
    return "" if result.bootstrap is None else interval_text(metric, result.bootstrap)


def _best_f1(result: EvaluationResult) -> Rows:
    if result.part("errors") is None or math.isnan(result.part("errors").pooled.best_score):
        return ()
    pooled = result.part("errors").pooled
    return ((f"best F1, at score {pooled.best_score:.4g}", pooled.best_f1, ""),)


def _score(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Let a slider choose the score threshold, for all that depends on it."""
    steps = steps_of(result)
    return [] if steps is None else [score_section(steps, overlap_name(result.protocol))]


def explained_of(result: EvaluationResult) -> tuple[Explained | None, list[Sentence]]:
    """Return what became of all boxes, and the sentences on it."""
    part = result.part(PART)
    return (None, []) if part is None else part.rows


def _next(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Name what to fix next, each sentence with the selection of its boxes."""
    found, sentences = explained_of(result)
    # With the score, so that a link shows as many boxes as its sentence counts wherever the slider stands.
    at = {} if found is None else {"score": score_text(found.steps.score)}
    rows = tuple((sentence.text, sentence.advice, _address({**sentence.pick, **at})) for sentence in sentences)
    heads = (Column("what"), Column("what it means"), Column("its boxes"))
    return [Section("Fix next", (Table(heads, rows),), key="next")] if rows else []


def _address(pick: Mapping[str, str]) -> str:
    """Return what the address of a page holds: names as the page shows them."""
    return urlencode({key: printable(value) for key, value in pick.items()})


def _gates(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """List the verdicts of the quality gates, broken ones first."""
    rank = {status: place for place, status in enumerate(WORST)}
    gates = sorted(result.gates, key=lambda verdict: rank.get(verdict.status, len(rank)))
    return gates_section(gates)


def _findings(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """List what was found about the data: warnings with their fixes, then the notes, folded."""
    return remarks_sections(result.findings)


def _metrics(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """List the metrics of the summary, each with its interval."""
    section = summary_section(result, verbose=True)
    blocks = [_with_dots(block, result) if isinstance(block, Table) else block for block in section.blocks]
    return [Section("Metrics", tuple(blocks), key="metrics")]


def _with_dots(table: Table, result: EvaluationResult) -> Table:
    """Draw each value next to its number, with its interval."""
    head, value, *others = table.columns
    rows = [
        (name, number, Drawn(metric.value, metric.interval, look="dot"), *cells)
        for (name, number, *cells), metric in zip(table.rows, result.metrics.values(), strict=True)
    ]
    return replace(table, columns=(head, value, Column("", "drawn"), *others), rows=tuple(rows))


def _classes(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """List all classes, that which loses most first."""
    names = class_metrics(result.per_class)
    if not names:
        return []
    first = names[0]
    # Those that lose alike by the metric, so that undefined ones are last: NaN compares with nothing.
    worst = sorted(
        enumerate(result.per_class),
        key=lambda item: (-lost_of(item[1]), math.isnan(item[1].values[first].value), item[1].values[first].value),
    )
    heads = (
        Column("class", "name"),
        Column("lost", "size"),
        Column(first, "metric"),
        Column("", "drawn"),
        *columns("metric", *names[1:]),
    )
    heads += (*map(Column, frequency_heads(result.per_class)), *columns("count", "gt", "pred"))
    steps = steps_of(result)
    points = [()] * len(worst) if steps is None else [point_cells(counts) for counts in steps.counts(steps.start)[1:]]
    rows: list[tuple[Cell, ...]] = []
    for k, row in worst:
        value, *others = (row.values[name] for name in names)
        drawn = Drawn(value.value, value.interval)
        values: tuple[Cell, ...] = (value.value, drawn, *(other.value for other in others))
        rows.append((row.name, lost_of(row), *values, *frequency_cells(row), row.gt, row.pred, *points[k]))
    keys = tuple(str(k) for k, _ in worst)
    table = Table((*heads, *(POINT_COLUMNS if steps else ())), tuple(rows), keys=keys)
    notes = [Note(f"lost: objects times (1 - {first}), what a class could still give")]
    if steps is not None and len(steps.names) > MOST_LIVE:
        text = (
            f"Precision to FN of {MOST_LIVE} classes, the most confused and those with the most objects, follow the"
            f" score; those of the others stay at {score_text(steps.score)}."
        )
        notes.append(Note(text))
    return [Section("Classes", (*notes, table), key="classes")]


def lost_of(row: ClassRow) -> float:
    """Return what a class could still give, objects x (1 - AP); 0 where its first metric is undefined."""
    value = next(iter(row.values.values())).value if row.values else math.nan
    return 0.0 if math.isnan(value) else row.gt * (1 - value)


def _curves(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Draw precision by recall at each threshold that matters, and precision, recall and F1 by score."""
    charts, steps = recall_charts(result.measured), steps_of(result)
    live = [] if steps is None else live_curves(result.measured, charts, steps)
    if result.part("errors") is not None:
        charts.append(confidence_chart(result.part("errors").pooled))
    blocks: list[Block] = [*charts, *live]
    if not isinstance(result.measured, DetectionMetrics):
        blocks.append(Note("Precision-recall curves need the saved run: write it with -o run.npz, and pass it here."))
    return [Section("Precision and recall", tuple(blocks), key="curves")] if blocks else []


def _errors(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """List what each type of error costs."""
    if result.part("errors") is None:
        return []
    section = types_section(result.part("errors"), overlap_name(result.protocol))
    # Bars in the table show what the chart of a figure does.
    cost = f"Δ{MetricRef(name='AP', iou=result.part('errors').iou)} if fixed"
    blocks = [_with_bars(block, cost) if isinstance(block, Table) else block for block in section.blocks]
    return [Section("What errors cost", tuple(block for block in blocks if not isinstance(block, Chart)), key="errors")]


def _with_bars(table: Table, cost: str) -> Table:
    gains = [float(str(row[-1])) for row in table.rows]
    top = max([LEAST, *(gain for gain in gains if not math.isnan(gain))])
    low = min([0.0, *(gain for gain in gains if not math.isnan(gain))])
    # A loss is not green.
    rows = tuple(
        (*row[:-1], Marked(gain, "plain"), Drawn(gain, ends=(low, top)))
        for row, gain in zip(table.rows, gains, strict=True)
    )
    return replace(table, columns=(*table.columns[:-1], Column(cost, "delta"), Column("", "drawn")), rows=rows)


def _confusion(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Draw which classes are predicted as which."""
    errors = result.part("errors")
    matrix = result.part("confusion") or (errors and errors.confusion)
    if matrix is None:
        return []
    shown = most_confused(matrix.counts)
    places = [*shown.tolist(), len(matrix.names)]
    names = [*(matrix.names[k] for k in shown.tolist()), BACKGROUND]
    counts = matrix.counts[np.ix_(places, places)]
    rows = tuple(Series(name, row.tolist(), key=str(k)) for name, row, k in zip(names, counts, places, strict=True))
    chart = Chart("matrix", "Confusion", rows, x=Axis("predictions", names=tuple(names)), y=Axis("ground truth"))
    text = "Rows are ground truth, columns are predictions, matched whatever their classes"
    if len(shown) < len(matrix.names):
        text += f"; the {len(shown)} classes of {len(matrix.names):,} that are confused most"
    return [Section("Confusion", (chart, Note(f"{text}.")), key="confusion")]


def _gallery(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Show images with the most costly errors, the surest false positives and the largest misses."""
    found, sentences = explained_of(result)
    # Without boxes on the page, suspects can be read and judged, and select nothing.
    listed = [suspects_section(options.suspects, [-1] * len(options.suspects))] if options.suspects else []
    if result.boxes is None and options.gallery != 0:
        text = "A JSON document has no boxes to show. Write the run with -o run.npz, and report that file."
        return [*listed, Section("Images", (Note(text),), key="images")]
    if found is None:
        gallery = build_gallery(result, DEFAULT_IMAGES if options.gallery is None else options.gallery)
        return listed if gallery is None or not gallery.images else [*listed, gallery_section(gallery)]
    wanted = [row for sentence in sentences for row in images_of(found, sentence.pick, EACH)]
    wanted += images_by_class(found, [lost_of(row) for row in result.per_class], WORST_CLASSES, EACH)
    # Without files there are no thumbnails to choose: the page draws what is asked for.
    pictured = result.images is not None and result.images.given
    n = max(DEFAULT_IMAGES, len({*wanted})) if pictured else DEFAULT_IMAGES // 2
    n = n if options.gallery is None else options.gallery
    # Of the boxes that are drawn, and of the columns: the same.
    place, at = cache(partial(placed, found)), result.part("errors").confusion.score
    gallery = build_gallery(result, n, wanted=wanted, outcomes=found.outcomes, placed=place, score=at)
    if gallery is None or not gallery.images:
        return listed
    slices, boxes = [part for part in result.slices if part.rows], place(tuple(image.row for image in gallery.images))
    columns = columns_of(found, boxes, gallery.images, result.images, slices, folder=options.folder)
    if not options.suspects:
        return [gallery_section(gallery, columns=columns)]
    places = places_of(options.suspects, found, boxes)
    columns["suspects"] = [(one.kind, at) for one, at in zip(options.suspects, places, strict=True)]
    return [suspects_section(options.suspects, places), gallery_section(gallery, columns=columns)]


def _details(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Fold what few readers open: operating points, errors by class, oLRP, calibration; slices stay open."""
    found = [replace(slices_section(result.slices), key="slices")] if result.slices else []
    folded, measure = [], overlap_name(result.protocol)
    if result.operating_points:
        folded.append(replace(operating_points_section(result.operating_points, measure, per_class=True), key="points"))
    if result.part("errors") is not None:
        folded += [
            replace(section, key=key) for key, section in detail_sections(result.part("errors"), measure).items()
        ]
    return [*found, *(replace(section, folded=True) for section in folded)]


def _provenance(result: EvaluationResult, options: ReportOptions) -> list[Section]:
    """Report how the page was made: inputs, how they were read, the protocol by field, what is undefined."""
    blocks: list[Block] = [_inputs(result), correspondence_facts(result.correspondence)]
    blocks.append(_protocol(result))
    undefined = [(name, metric.reason or "") for name, metric in result.metrics.items() if metric.value != metric.value]
    undefined += [
        (f"{name}[class={row.name}]", metric.reason or "")
        for row in result.per_class
        for name, metric in row.values.items()
        if metric.value != metric.value
    ]
    if undefined:
        blocks.append(Table((Column("undefined", "name"), Column("reason", "text")), tuple(undefined)))
    return [Section("How it was made", tuple(blocks), key=PROVENANCE, folded=True)]


def _inputs(result: EvaluationResult) -> Table:
    sides = {"ground truth": result.gt, "predictions": result.pred}
    facts = [_facts(side) for side in sides.values()]
    rows = tuple((name, *(of_side[name] for of_side in facts)) for name in facts[0])
    return Table((Column("input", "word"), *columns("text", *sides)), rows)


def _facts(side: InputSummary) -> dict[str, str]:
    return {
        "path": side.path,
        "format": side.format,
        "images": f"{side.images:,}",
        "boxes": f"{side.boxes:,}",
        "classes": f"{side.classes:,}",
        "how it was read": "; ".join(side.details) or f"in {side.units}",
        "ignored": ignored_text(side.ignored) or "nothing",
        "fingerprint": side.fingerprint,
    }


def _protocol(result: EvaluationResult) -> Table:
    """Return every rule of the protocol, as the JSON document has it, and where it comes from."""
    sources = dict(result.protocol.sources)
    rows = []
    for name, value in result.protocol.to_document().items():
        shown = value
        if name == "areas":
            shown = [f"{area.name} {area.low:g} to {area.high:g}" for area in result.protocol.areas]
        if name in ("subsets", "class_rules"):
            shown = list(map(str, getattr(result.protocol, name)))
        text = ", ".join(_plain(item) for item in shown) if isinstance(shown, list) else _plain(shown)
        rows.append((name, text, sources.get(name, "")))
    heads = (Column("rule", "name"), Column("value", "text"), Column("source", "text"))
    if not any(row[-1] for row in rows):
        return Table(heads[:-1], tuple(row[:-1] for row in rows))
    return Table(heads, tuple(rows))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# In reading order. Each returns its sections, none where there is nothing to show; the template that bears the key of
# a section draws it.
_SECTIONS: tuple[Callable[[EvaluationResult, ReportOptions], list[Section]], ...] = (
    _headline,
    _score,
    _next,
    _gates,
    _findings,
    _metrics,
    _errors,
    _classes,
    _confusion,
    _gallery,
    _curves,
    _details,
    _provenance,
)


def build_explorer(result: EvaluationResult, options: ReportOptions) -> Explorer:
    """Return all images of `result`, and its page without any."""
    result, model = explorer_model(result, "", suspects=options.suspects)
    return Explorer(
        title=options.title or name_of(result),
        models={"a": model},
        images=result.images,
        numbers=build_page(result, options),
    )


def explorer_model(
    result: EvaluationResult, name: str, first: Explained | None = None, *, suspects: Sequence[Suspect] = ()
) -> tuple[EvaluationResult, dict[str, Any]]:
    """Return a result with what became of its boxes, and what the folder has of it.

    Of a second model, boxes are counted at the scores of the `first`.
    """
    metrics = result.measured
    if result.part("errors") is None and result.boxes is not None and isinstance(metrics, DetectionMetrics):
        result = result.with_part(report_errors(metrics, *result.boxes, result.options.get("score")))
    result = with_explanation(result, None if first is None else first.steps)
    found, sentences = explained_of(result)
    if found is None:
        raise UsageError("a folder of all images needs the boxes: give ground truth and predictions, or a run (.npz)")
    if len(found.outcomes.image) > MOST_BOXES:
        raise UsageError(
            f"the folder would have {len(found.outcomes.image):,} boxes, more than the {MOST_BOXES:,} that a browser"
            " opens in a while.",
            fix=Fix.missing("Ignore low scores with {score_min}.", score_min=None),
        )
    cost = str(MetricRef(name="AP", iou=found.steps.iou))
    boxes = placed(found, (), MOST_BOXES)
    # The first metric of each class, by which classes are ordered.
    values = [next(iter(row.values.values())).value if row.values else math.nan for row in result.per_class]
    return result, {
        **columns_of(found, boxes, (), result.images, [part for part in result.slices if part.rows], most=MOST_BOXES),
        "suspects": [
            (one.kind, at) for one, at in zip(suspects, places_of(suspects, found, boxes), strict=True)
        ],
        "review": review_data(suspects) if suspects else None,
        "name": printable(name),
        "value": "AP",
        "about": ", ".join(
            pluralise(n, what)
            for n, what in (
                *((len(found.metrics.image_names), "image"), (len(found.errors.gt_label), "object")),
                (len(found.errors.label), "detection"),
            )
        ),
        "steps": [score_text(score) for score in found.steps.scores.tolist()],
        "start": found.steps.start,
        "metrics": [[title, metric_text(metric.value), interval_of(result, metric)]
                    for title, metric in first_metrics(result)],
        "next": [
            [sentence.text, sentence.advice, {key: printable(value) for key, value in sentence.pick.items()},
             f"+{metric_text(sentence.gain)} {cost}" if sentence.gain > 0 else ""]
            for sentence in sentences
        ],
        "values": [None if math.isnan(value) else value for value in values],
        "lost": [lost_of(row) for row in result.per_class],
        "positives": found.steps.positives.tolist(),
    }  # fmt: skip
