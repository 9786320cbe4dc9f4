"""Reports of an explanation: the curve, the boxes that cost most, the way to another protocol."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.errors import UsageError
from jaccard_eval.features.explain import MISSED, ExplanationResult, Fix
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Album,
    Axis,
    Cell,
    Chart,
    Column,
    Headline,
    KeyValues,
    Note,
    Report,
    Section,
    Series,
    Span,
    Table,
    bars_by_name,
)
from jaccard_eval.report.numbers import UNDEFINED, delta_text, metric_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section, inputs_section
from jaccard_eval.text import pluralise

if TYPE_CHECKING:
    from jaccard_eval.metrics.detection import DetectionMetrics

FIX_COLUMNS = ("error", "image", "class", "score", "fix", "row", "gain")


def build_report(result: ExplanationResult, options: ReportOptions) -> Report:
    """Return the explanation; `options.verbose` adds what few readers look up."""
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    metric = result.metric
    reason = f" ({metric.reason})" if metric.reason else ""
    text = f"{_value_text(metric)}{reason}, of {pluralise(metric.n, 'object')}"
    parts = ((str(part.ref), _value_text(part)) for part in result.parts)
    sections = [inputs_section(sides), Section("Number", (KeyValues(((str(metric.ref), text), *parts)),))]
    sections += _groups(result)
    if result.curve:
        sections.append(_curve(result, verbose=options.verbose))
    sections += [_boxes(result, verbose=options.verbose), *_steps(result), *findings_section(result.findings)]
    title = f"jaccard-eval {result.version}, explanation of {result.metric.ref}, protocol {result.protocol}"
    headline = Headline((Span(f"{metric.ref} {_value_text(metric)}"), Span(f"  {_promise(result)}")))
    return Report(title, tuple(sections), result.signature, headline=headline)


def build_album(result: ExplanationResult, options: ReportOptions) -> Album:
    """Return the images of the boxes that cost most, in their order; `options` change nothing."""
    from jaccard_eval.features.images.gallery import build_album
    from jaccard_eval.metrics.detection import DetectionMetrics

    if not isinstance(result.measured, DetectionMetrics):
        raise UsageError("a folder of images needs the boxes: give ground truth and predictions")
    return build_album(result, **_costly_images(result, result.measured))


def page_sections(result: ExplanationResult, options: ReportOptions) -> list[Section]:
    """Return what only a page has: the images of the boxes that cost most."""
    from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, gallery_of, gallery_section
    from jaccard_eval.metrics.detection import DetectionMetrics

    sections = [Section("Precision and recall", tuple(build_charts(result)[:1]), key="curves")] if result.curve else []
    if not isinstance(result.measured, DetectionMetrics):
        return sections
    chosen = _costly_images(result, result.measured)
    n = DEFAULT_IMAGES if options.gallery is None else options.gallery
    gallery = gallery_of(result, chosen.pop("rows")[:n], **chosen)
    return sections if gallery is None else [*sections, gallery_section(gallery, "Images of the boxes that cost most")]


def _costly_images(result: ExplanationResult, metrics: DetectionMetrics) -> dict[str, Any]:
    """Return the rows of the images that fixes are in, where boxes are judged, and from which score they show."""
    ref = result.metric.ref
    threshold = metrics.protocol.iou_thresholds.index(result.judged_iou)
    score = ref.score if isinstance(ref.score, float) else metrics.curves.best_score(threshold, metrics.axes.label(ref))
    row_of = {name: row for row, name in reversed([*enumerate(metrics.image_names)])}
    rows = [*dict.fromkeys(row_of[fix.image] for fix in result.fixes)]
    return {"rows": rows, "threshold": threshold, "score": score}


def build_charts(result: ExplanationResult) -> list[Chart]:
    """Return the curve, where there is one, and what fixing single boxes or whole kinds and classes gives."""
    charts = []
    if result.curve:
        points = [(point.recall, point.precision) for point in result.curve]
        recall, precision = zip(*points, strict=True)
        curve = Series("", precision, recall, "curve")
        title = f"{result.metric.ref} {_value_text(result.metric)}: precision-recall"
        ends = 0.0, 1.02
        charts.append(Chart("line", title, (curve,), x=Axis("recall", ends=ends), y=Axis("precision", ends=ends)))
    gain, fixes = f"gain of {result.metric.ref}", [(f"{_verb(fix)}, {fix.image}", fix.gain) for fix in result.fixes]
    charts += [bars_by_name("Boxes that cost most", gain, fixes)] if fixes else []
    for by, title in (("kind", "Kinds of errors that cost most"), ("class", "Classes that cost most")):
        groups = [(group.name, group.gain) for group in result.groups if group.by == by]
        charts += [bars_by_name(title, gain, groups)] if groups else []
    return charts


def build_data(result: ExplanationResult, options: ReportOptions) -> DataTable:
    """Return one row per box; `options` change nothing."""
    rows = tuple(
        (fix.kind, fix.image, fix.class_name, fix.score, _change(fix), fix.source, fix.gain) for fix in result.fixes
    )
    return DataTable(FIX_COLUMNS, rows)


def _promise(result: ExplanationResult) -> str:
    """Return what fixing the boxes gives, in one line."""
    ref = result.metric.ref
    if result.groups:
        first = result.groups[0]
        noun = "missed object" if first.name == MISSED else f"{first.name} error"
        what = pluralise(first.count, noun) if first.by == "kind" else f"errors of {first.name}"
        return f"Fixing all {what}: {ref} {delta_text(first.gain)}"
    return _promise_of_boxes(result)


def _promise_of_boxes(result: ExplanationResult) -> str:
    ref = result.metric.ref
    if not result.fixes:
        return f"No single fix raises {ref}"
    what = f"Fixing all {len(result.fixes)}" if len(result.fixes) > 1 else "Fixing this box"
    return f"{what}: {ref} {delta_text(result.fixed - result.metric.value)}"


def _value_text(metric: MetricValue) -> str:
    """Return a metric with its decimals, a count as it is."""
    is_count = METRICS[metric.ref.name].kind == "count"
    return f"{metric.value:,.0f}" if is_count else metric_text(metric.value)


def _curve(result: ExplanationResult, *, verbose: bool) -> Section:
    heads, note = [Column("recall", "threshold"), Column("precision", "metric")], "Interpolated precision."
    is_mean = all(math.isnan(point.score) for point in result.curve)
    rows: list[tuple[Cell, ...]] = [(point.recall, point.precision) for point in result.curve]
    if verbose or not is_mean:
        heads.append(Column("score", "threshold"))
        rows = [(*row, _score(point.score)) for row, point in zip(rows, result.curve, strict=True)]
        note += " A mean of several curves has no score." if is_mean else ""
    return Section("Curve", (Table(tuple(heads), tuple(rows)), Note(note)))


def _groups(result: ExplanationResult) -> list[Section]:
    """Return what whole kinds of errors and classes cost, where single boxes cost next to nothing."""
    sections = []
    for by, title in (("kind", "Kinds of errors that cost most"), ("class", "Classes that cost most")):
        rows = tuple((group.name, group.count, group.gain) for group in result.groups if group.by == by)
        heads = (Column(by, "name"), Column("errors", "count"), Column("gain", "delta"))
        note = Note(f"Each gain is for fixing all errors of that {by}, and no others.")
        sections += [Section(title, (Table(heads, rows), note))] if rows else []
    return sections


def _boxes(result: ExplanationResult, *, verbose: bool) -> Section:
    if not result.fixes:
        return Section("Boxes that cost most", (Note(f"{_promise_of_boxes(result)}."),))
    heads = [Column("error", "word"), Column("image", "path"), Column("fix", "name"), Column("box", "word")]
    heads += [Column("score", "threshold"), Column("gain", "delta")]
    rows: list[tuple[Cell, ...]] = [
        (fix.kind, fix.image, _verb(fix), _box_text(fix.xywh), _score(fix.score), fix.gain) for fix in result.fixes
    ]
    if verbose:
        heads.append(Column("row", "count"))
        rows = [(*row, fix.source) for row, fix in zip(rows, result.fixes, strict=True)]
    # Gains of single fixes do not add up, as two of them may change the same class.
    alone = " Each gain is for fixing that box only." if len(result.fixes) > 1 else ""
    at = f"{overlap_name(result.signature)} {threshold_text(result.judged_iou)}"
    note = f"{_promise_of_boxes(result)}.{alone} Errors are those at {at}."
    return Section("Boxes that cost most", (Table(tuple(heads), tuple(rows)), Note(note)))


def _box_text(xywh: tuple[float, ...]) -> str:
    """Return a box in whole pixels, so that the table stays narrow; one of fractions with its digits."""
    return " ".join(f"{side:.0f}" if max(xywh) >= 10 else side_text(side) for side in xywh)


def _verb(fix: Fix) -> str:
    """Return what a fix does, and to which class; the box that it ends in is next to it."""
    if not fix.becomes:
        return f"remove {fix.class_name}"
    if fix.kind == MISSED:
        return f"add {fix.becomes}"
    return f"move {fix.class_name}" if fix.becomes == fix.class_name else f"{fix.class_name} -> {fix.becomes}"


def _steps(result: ExplanationResult) -> list[Section]:
    if result.against is None:
        return []
    heads = (Column("rule"), Column("value", "metric"), Column("change", "delta"), Column("from -> to"))
    rows: list[tuple[Cell, ...]] = [(result.protocol, result.metric.value, "", "")]
    rows += [(step.rule, step.value, step.delta, step.change) for step in result.steps]
    total = result.steps[-1].value - result.metric.value if result.steps else 0.0
    note = Note(f"From {result.protocol} to {result.against}: {delta_text(total)}. Rules change one after another.")
    return [Section(f"Against {result.against}", (Table(heads, tuple(rows)), note)), *_fits(result)]


def _fits(result: ExplanationResult) -> list[Section]:
    if (printed := result.printed) is None:
        return []
    heads = (Column("changed"), Column("value", "metric"))
    rows: list[tuple[Cell, ...]] = [
        (", ".join(fit.rules) or f"none: {result.protocol}", fit.value) for fit in printed.fits
    ]
    tried = f"Tried {pluralise(printed.tried, 'combination')} of what changes {result.metric.ref} here"
    if printed.untried:
        tried += f"; {printed.untried:,} of two causes besides rules were too many"
    decided = f"not decided: {printed.undecided}" if printed.undecided else "one fits"
    table = [Table(heads, tuple(rows))] if rows else []
    return [Section(f"What gives {printed.text}", (*table, Note(f"{tried}; {decided}.")))]


def _change(fix: Fix) -> str:
    place = " ".join(map("{:.6g}".format, fix.xywh))
    return f"{_verb(fix)} at {place}"


def _score(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4f}"  # four decimals, of a score that may be 1 as well
