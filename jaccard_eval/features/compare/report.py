"""Reports of a comparison: differences of metrics, the movers, and what changed box by box.

The summary has a bounded length however many classes and boxes there are, so that it fits into a pull request's
comment; the table for machines has every change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.result import Resamples
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.bootstrap import HALVES
from jaccard_eval.features.bootstrap.intervals import FEW_UNITS
from jaccard_eval.features.compare import (
    BoxState,
    Change,
    ChangeKind,
    ComparisonResult,
    Contender,
    Delta,
    Verdict,
    Versus,
)
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Chart,
    Column,
    DataCell,
    Headline,
    KeyValues,
    Look,
    Note,
    Report,
    Rows,
    Section,
    Span,
    Table,
    bars_by_name,
    columns,
)
from jaccard_eval.report.numbers import DECIMALS, delta_text, metric_text, p_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section
from jaccard_eval.text import SHOWN_PATH_LENGTH, pluralise

# GitHub refuses comments of more than 65,536 characters; these bounds keep a summary of any data set well below.
LONG_TITLE = 20  # characters of the names of a difference, beyond which the heading is a word
SHOWN_CLASSES = 10  # of the movers of one contender
SHOWN_SLICES = 20
SHOWN_IMAGES = 5  # with the most changes
SHOWN_CHANGES = 10  # of one contender
MAX_CELL = 60  # characters of a path or name in the tables of a summary on a screen
MAIN_METRIC = "AP"
MARKER = "jaccard-eval"
SHOWN_OTHERS = 3  # verdicts of the headline besides the best one; more are counted
HEADLINE_DECIMALS = 3
LEAST = 0.001  # difference that three decimals show
LOOKS: Mapping[Verdict, Look] = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.NO_DIFFERENT: "plain"}
_VERDICTS = {
    Verdict.BETTER: "better than",
    Verdict.WORSE: "worse than",
    Verdict.NO_DIFFERENT: "not significantly different from",
}
_PLACE = ("pred", "change", "image", "class", "row", "x", "y", "width", "height")
_STATE = {"class": "predicted", "score": "score", "iou": "iou", "duplicates": "duplicates"}  # column: field


Shorten = Callable[[str], str]  # how a path or a name is shown in a cell


def build_report(result: ComparisonResult, options: ReportOptions) -> Report:
    """Return the report for people; `options.per_class` lists every class that moved."""
    baseline = result.baseline
    # Files have whole names, up to the length at which messages cut them as well.
    short = partial(_short, limit=SHOWN_PATH_LENGTH if options.is_file else MAX_CELL)
    paths = [("ground truth", result.gt), (f"{baseline.name} (baseline)", baseline.path)]
    paths += [(versus.contender.name, versus.contender.path) for versus in result.others]
    sections = [Section("Inputs", (KeyValues(tuple(paths)),)), _summary(result)]
    if any(versus.slices for versus in result.others):
        sections.append(slices_section("Slices", result.baseline, result.others, result.bootstrap, short))
    for versus in result.others:
        sections += _movers(versus, baseline.name, result.bootstrap, options, short)
    sections.append(_counts(result))
    for versus in result.others:
        if versus.changes:
            sections += [_images(versus, short), _changes(versus, baseline.name, overlap_name(result.signature), short)]
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, comparison, protocol {result.protocol}"
    return Report(
        title,
        tuple(sections),
        result.signature,
        MARKER,
        verdict_headline(result.baseline.name, result.others, result.bootstrap),
    )


def build_charts(result: ComparisonResult) -> list[Chart]:
    """Return precision by recall of all sides, then what differs of each contender: metrics, and the classes."""
    from jaccard_eval.report.recall_charts import compared_recall_charts

    names = [result.baseline.name, *(versus.contender.name for versus in result.others)]
    measured = (evaluated.measured for evaluated in result.results)  # none of a document
    charts = compared_recall_charts([*zip(names, measured, strict=False)])
    for versus in result.others:
        difference = f"{versus.contender.name} - {result.baseline.name}"
        metrics = [(delta.metric, delta.delta) for delta in versus.summary if not math.isnan(delta.delta)]
        classes = [(delta.class_name or "", delta.delta) for delta in versus.movers(MAIN_METRIC)]
        charts.append(bars_by_name(f"Metrics, {difference}", difference, metrics))
        charts += [bars_by_name(f"Classes, {MAIN_METRIC} of {difference}", difference, classes)] if classes else []
    return charts


def build_data(result: ComparisonResult, options: ReportOptions) -> DataTable:
    """Return one row per change; `options` change nothing."""
    rows: list[tuple[DataCell, ...]] = []
    for versus in result.others:
        for change in versus.changes:
            place = (versus.contender.path, str(change.kind), change.image, change.class_name, change.row, *change.xywh)
            states = [getattr(state, name) for state in (change.before, change.after) for name in _STATE.values()]
            rows.append((*place, *states))
    header = (*_PLACE, *(f"{side}_{name}" for side in ("before", "after") for name in _STATE))
    return DataTable(header, tuple(rows))


def verdict_headline(baseline: str, others: Sequence[Versus], bootstrap: Resamples | None) -> Headline:
    """Return the verdict on the first metric in one line: of one contender, or of the best and then the others."""
    # Of several, what is significantly better leads, and then the highest; what is undefined stands last.
    best, *rest = sorted(
        others, key=lambda versus: (versus.verdict is not Verdict.BETTER, -_known(versus.summary[0].delta))
    )
    delta = best.summary[0]
    if math.isnan(delta.delta):
        return Headline((Span(f"No verdict: {delta.metric} is undefined", "warn"),))
    if best.verdict is None or bootstrap is None:
        how = "higher than" if delta.delta > 0 else "lower than" if delta.delta < 0 else "the same as"
        claim = Span(f"{best.contender.name} scores {how} {baseline}")
        too_few = f": {bootstrap.settings.n_resamples} resamples are too few" if bootstrap is not None else ""
        evidence = f"significance not tested{too_few}"
    else:
        claim = Span(f"{best.contender.name} is {_VERDICTS[best.verdict]} {baseline}", LOOKS[best.verdict])
        evidence = _evidence(delta, bootstrap)
    spans = [claim, Span(f": {delta.metric} {_headline_delta(delta.delta)} ({evidence})")]
    if len(rest) > SHOWN_OTHERS:
        counted = Counter(versus.verdict or "not tested" for versus in rest)
        spans.append(Span(f"; {len(rest)} others: {', '.join(f'{n} {how}' for how, n in counted.items())}"))
    else:
        for versus in rest:
            other = versus.summary[0].delta
            how = f" {versus.verdict}" if versus.verdict else ""
            spans.append(Span("; "))
            text = f"{versus.contender.name}{how} {_headline_delta(other)}"
            spans.append(Span(text, LOOKS[versus.verdict] if versus.verdict else "plain"))
    return Headline(tuple(spans))


def _known(delta: float) -> float:
    return -math.inf if math.isnan(delta) else delta


def _headline_delta(delta: float) -> str:
    """Return a difference with three decimals, or the four of tables where three would all be 0."""
    return delta_text(delta, DECIMALS if 0 < abs(delta) < LEAST else HEADLINE_DECIMALS)


def _evidence(delta: Delta, bootstrap: Resamples) -> str:
    low, high = map(_headline_delta, _interval(delta))
    return f"{interval_title(bootstrap)} {low} to {high}, p {p_text(delta.p_value)}"


def _summary(result: ComparisonResult) -> Section:
    baseline, bootstrap, several = result.baseline.name, result.bootstrap, len(result.others) > 1
    names = [versus.contender.name for versus in result.others]
    by_metric = list(zip(*(versus.summary for versus in result.others), strict=True))
    drawn = None if several else bootstrap  # with several, intervals would not fit
    heads = (Column("metric"), *delta_columns(baseline, names, drawn), Column("gt", "count"))
    blocks: list[Table | Note] = [Table(heads, tuple(delta_row(deltas, drawn) for deltas in by_metric))]
    if bootstrap is None:
        skipped = (finding for finding in result.findings if finding.code == "bootstrap-skipped")
        notes = [
            f"{finding.examples[0].detail[0].upper()}{finding.examples[0].detail[1:]}. {finding.advice()}".strip()
            for finding in skipped
        ]
        return Section("Metrics", (*blocks, *map(Note, notes)))
    if several:
        # A table of their own, a column each.
        titles = (f"{name} - {baseline}, {interval_title(bootstrap)}" for name in names)
        rows = tuple((deltas[0].metric, *(_interval(delta) for delta in deltas)) for deltas in by_metric)
        blocks.append(Table((Column("metric"), *columns("interval", *titles)), rows))
    # Of the main metric: how sure the difference is, and what the set could show at all.
    for versus in result.others:
        delta = versus.summary[0]
        differs = "does not differ significantly" if versus.verdict is Verdict.NO_DIFFERENT else "differs"
        if versus.verdict is not None:
            tested = f"{versus.contender.name} {differs} from {baseline} in {delta.metric} (p {p_text(delta.p_value)})."
            least = metric_text(delta.detectable, HEADLINE_DECIMALS)
            # Equal predictions measure no noise: what they would have shown is unknown.
            shown = f" Smallest detectable difference with these images: {least}." if delta.detectable > 0 else ""
            blocks.append(Note(tested + shown))
    settings, units = bootstrap.settings, pluralise(bootstrap.n_units, bootstrap.unit)
    few = f" With fewer than {FEW_UNITS} they are too narrow." if bootstrap.n_units < FEW_UNITS else ""
    paired = "paired halves" if bootstrap.method == HALVES else "paired resamples"
    how = f"Intervals of the differences: {settings.n_resamples:,} {paired} of {units}, seed {settings.rng}.{few}"
    return Section("Metrics", (*blocks, Note(how)))


def interval_title(bootstrap: Resamples) -> str:
    """Return what intervals are called."""
    return f"{100 * bootstrap.settings.confidence_level:.6g} % CI"


def _interval(delta: Delta) -> tuple[float, float]:
    return delta.interval or (math.nan, math.nan)


def delta_columns(baseline: str, names: Sequence[str], bootstrap: Resamples | None) -> list[Column]:
    """Return the columns of the values and differences; with a bootstrap, also of their intervals."""
    heads = [Column(baseline, "metric")]
    for name in names:
        title = f"{name} - {baseline}"
        if len(names) == 1 and len(title) > LONG_TITLE:  # the table would not fit in 80 columns
            title = "difference"
        heads += [Column(name, "metric"), Column(title, "delta")]
        heads += [] if bootstrap is None else [Column(interval_title(bootstrap), "interval")]
    return heads


def delta_row(deltas: Sequence[Delta], bootstrap: Resamples | None) -> tuple[Cell, ...]:
    """Return a metric, its value in the baseline, the cells of `delta_columns` of each contender, and the support."""
    cells: list[Cell] = [deltas[0].metric, deltas[0].baseline]
    for delta in deltas:
        cells += [delta.value, delta.delta] if bootstrap is None else [delta.value, delta.delta, _interval(delta)]
    return (*cells, deltas[0].n)


def slices_section(
    title: str, baseline: Contender, others: Sequence[Versus], drawn: Resamples | None, short: Shorten = str
) -> Section:
    """Return the differences on each slice."""
    slices = list(zip(*(versus.slices for versus in others), strict=True))
    drawn = drawn if len(others) == 1 else None  # with several, intervals would not fit
    values = delta_columns(baseline.name, [versus.contender.name for versus in others], drawn)
    heads = (Column("slice", "name"), Column("metric", "word"), *values, *columns("count", "gt", "images"))
    rows = tuple(
        (short(parts[0].name), *delta_row(deltas, drawn), parts[0].images)
        for parts in slices[:SHOWN_SLICES]
        for deltas in zip(*(part.deltas for part in parts), strict=True)
    )
    return Section(title, (Table(heads, rows), *_more(slices, SHOWN_SLICES)))


def _movers(
    versus: Versus, baseline: str, bootstrap: Resamples | None, options: ReportOptions, short: Shorten
) -> list[Section]:
    moved, name = versus.movers(MAIN_METRIC), versus.contender.name
    lists = [("moved", moved, None if options.per_class else SHOWN_CLASSES)]
    if options.chooses_classes:
        gained, lost = (tuple(delta for delta in moved if sign * delta.delta > 0) for sign in (1, -1))
        lists = [
            (verb, rows, n) for verb, rows, n in (("gained", gained, options.top), ("lost", lost, options.worst)) if n
        ]
    heads = (Column("class", "name"), *delta_columns(baseline, [name], bootstrap), Column("gt", "count"))
    sections = []
    for verb, deltas, limit in lists:
        rows = tuple((short(delta.class_name or ""), *delta_row([delta], bootstrap)[1:]) for delta in deltas[:limit])
        notes = (*_more(deltas, limit, "--per-class lists all"), Note("Ordered by difference x sqrt(gt)."))
        title = f"Classes that {verb} most, {MAIN_METRIC} of {name}"
        sections += [Section(title, (Table(heads, rows), *notes))] if rows else []
    return sections


def _counts(result: ComparisonResult) -> Section:
    contenders = [result.baseline, *(versus.contender for versus in result.others)]
    titles = (f"{versus.contender.name} against {result.baseline.name}" for versus in result.others)
    counts = [versus.counts() for versus in result.others]
    rows: Rows = tuple((str(kind), *(count[kind] for count in counts)) for kind in ChangeKind)
    scores = ", ".join(f"{threshold_text(contender.score)} ({contender.name})" for contender in contenders)
    measure = overlap_name(result.signature)
    how = (
        f"Found: matched at {measure} {threshold_text(result.box_iou)} by a detection with a score of at least"
        f" {scores}. Moved: {measure} changed by {threshold_text(result.moved_iou)} or more."
    )
    return Section("Box by box", (Table((Column("ground-truth boxes"), *columns("count", *titles)), rows), Note(how)))


def _images(versus: Versus, short: Shorten) -> Section:
    counted = Counter(change.image for change in versus.changes)
    order = sorted(counted, key=lambda image: (-counted[image], image))
    kinds = [kind for kind, count in versus.counts().items() if count]
    of_kind = Counter((change.image, change.kind) for change in versus.changes)
    heads = (Column("image", "path"), *columns("count", *map(str, kinds)))
    rows: Rows = tuple((short(image), *(of_kind[image, kind] for kind in kinds)) for image in order[:SHOWN_IMAGES])
    title = f"Images with the most changes, {versus.contender.name}"
    return Section(title, (Table(heads, rows), *_more(order, SHOWN_IMAGES)))


def _changes(versus: Versus, baseline: str, measure: str, short: Shorten) -> Section:
    rows = []
    for change in _notable(versus.changes, SHOWN_CHANGES):
        box = " ".join(map(side_text, change.xywh))
        states = (_state_text(state, change.class_name, short) for state in (change.before, change.after))
        rows.append((str(change.kind), short(change.image), short(change.class_name), box, *states))
    name = versus.contender.name
    heads = (Column("change", "word"), Column("image", "path"), Column("class", "name"), Column("box", "word"))
    table = Table((*heads, *columns("word", f"{measure} in {baseline}", f"{measure} in {name}")), tuple(rows))
    return Section(f"Changes, {name}", (table, *_more(versus.changes, SHOWN_CHANGES, "-o changes.csv writes all")))


def _notable(changes: Sequence[Change], n: int) -> list[Change]:
    """Return `n` changes by kind, as many of each kind as there is room for, the surest or largest of it."""
    kinds = list(ChangeKind)
    ranked: list[list[Change]] = [[] for _ in kinds]
    for change in sorted(changes, key=_weight, reverse=True):
        ranked[kinds.index(change.kind)].append(change)
    # In rounds: the best of every kind, then the second of every kind, until there is no room.
    rounds = sorted((i, k) for k, of_kind in enumerate(ranked) for i in range(len(of_kind)))
    return [ranked[k][i] for k, i in sorted((k, i) for i, k in rounds[:n])]


def _weight(change: Change) -> float:
    """Return how far a box moved, how often it is found, or else the highest score that it was found with."""
    before, after = change.before, change.after
    if change.kind is ChangeKind.MOVED:
        return abs(after.iou - before.iou)
    if change.kind in (ChangeKind.DUPLICATED, ChangeKind.DEDUPLICATED):
        return abs(after.duplicates - before.duplicates)
    return max((state.score for state in (before, after) if state.predicted), default=0.0)


def _state_text(state: BoxState, own: str, short: Shorten) -> str:
    """Return what lies at a box, below the head "IoU": "missed", "0.81", "cat 0.70", "0.81, 2 duplicates"."""
    if not state.predicted:
        return "missed"
    other = "" if state.predicted == own else f"{short(state.predicted)} "
    twice = f", {pluralise(state.duplicates, 'duplicate')}" if state.duplicates else ""
    return f"{other}{metric_text(state.iou, 2)}{twice}"


def _more(rows: Sequence[object], limit: int | None, where: str = "-o compare.json has all") -> tuple[Note, ...]:
    hidden = 0 if limit is None else len(rows) - limit
    return (Note(f"and {hidden:,} more; {where}"),) if hidden > 0 else ()


def _short(text: str, *, limit: int) -> str:
    # The end of a path distinguishes it from its neighbours.
    return text if len(text) <= limit else f"…{text[1 - limit :]}"
