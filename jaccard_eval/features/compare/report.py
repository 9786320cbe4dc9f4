"""What reports say about a comparison: differences of metrics, the movers, and what changed box by box.

The summary has a bounded length however many classes and boxes there are, so that it fits into a pull request's
comment; the table for machines has every change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.result import Resamples
from jaccard_eval.features.compare.result import (
    BoxState,
    Change,
    ChangeKind,
    ComparisonResult,
    Contender,
    Delta,
    Versus,
)
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, DataCell, KeyValues, Note, Report, Rows, Section, Table, columns
from jaccard_eval.report.numbers import metric_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section

# GitHub refuses comments of more than 65,536 characters; these bounds keep a summary of any data set well below.
SHOWN_CLASSES = 10  # of the movers of one contender
SHOWN_SLICES = 20
SHOWN_IMAGES = 5  # with the most changes
SHOWN_CHANGES = 10  # of one contender
MAX_CELL = 60  # characters of a path or name in the tables of a summary
MAIN_METRIC = "AP"
MARKER = "jaccard-eval"
_PLACE = ("pred", "change", "image", "class", "row", "x", "y", "width", "height")
_STATE = {"class": "predicted", "score": "score", "iou": "iou", "duplicates": "duplicates"}  # column: field


def build_report(result: ComparisonResult, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options.per_class` lists every class that moved."""
    # A, B, C, ... and numbers where letters end.
    names = [*ascii_uppercase, *map(str, range(len(ascii_uppercase) + 1, len(result.others) + 2))]
    names = names[: len(result.others) + 1]
    contenders = [result.baseline, *(versus.contender for versus in result.others)]
    paths = [("ground truth", result.gt), (f"{names[0]}, the baseline", result.baseline.path)]
    paths += [(name, contender.path) for name, contender in zip(names[1:], contenders[1:], strict=True)]
    sections = [Section("Inputs", (KeyValues(tuple(paths)),)), _summary(result, names)]
    if any(versus.slices for versus in result.others):
        sections.append(_slices(result, names))
    for name, versus in zip(names[1:], result.others, strict=True):
        sections += _movers(versus, name, result.bootstrap, options)
    sections.append(_counts(result, dict(zip(names, contenders, strict=True))))
    for name, versus in zip(names[1:], result.others, strict=True):
        if versus.changes:
            sections += [_images(versus, name), _changes(versus, name)]
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, comparison, protocol {result.protocol}"
    return Report(title, tuple(sections), result.signature, MARKER)


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


def _summary(result: ComparisonResult, names: Sequence[str]) -> Section:
    bootstrap, several = result.bootstrap, len(result.others) > 1
    by_metric = list(zip(*(versus.summary for versus in result.others), strict=True))
    drawn = None if several else bootstrap  # beside several, intervals would not fit
    heads = (Column("metric"), *_heads(names, drawn), Column("gt", "count"))
    blocks: list[Table | Note] = [Table(heads, tuple(_metric_row(deltas, drawn) for deltas in by_metric))]
    if bootstrap is not None and several:
        # A table of their own, a column each.
        titles = (f"{name} - {names[0]}, {_level(bootstrap)}" for name in names[1:])
        rows = tuple((deltas[0].metric, *(_interval(delta) for delta in deltas)) for deltas in by_metric)
        blocks.append(Table((Column("metric"), *columns("interval", *titles)), rows))
    if bootstrap is not None:
        # Of the main metric: how sure the difference is, and what the set could show at all.
        for name, versus in zip(names[1:], result.others, strict=True):
            delta = versus.summary[0]
            sure, detectable = metric_text(delta.probability, 3), metric_text(delta.detectable)
            blocks.append(
                Note(
                    f"{delta.metric} of {name}: not chance with probability {sure}; the smallest difference that these"
                    f" images would show: {detectable}"
                )
            )
        settings = bootstrap.settings
        blocks.append(
            Note(
                f"intervals: {bootstrap.n_units:,} {bootstrap.unit}s drawn {settings.n_resamples:,} times, the same for"
                f" all predictions; seed {settings.rng}"
            )
        )
    return Section("Metrics", tuple(blocks))


def _level(bootstrap: Resamples) -> str:
    return f"{100 * bootstrap.settings.confidence_level:.6g} %"


def _interval(delta: Delta) -> tuple[float, float]:
    return delta.interval or (math.nan, math.nan)


def _heads(names: Sequence[str], bootstrap: Resamples | None) -> list[Column]:
    """Return the columns of the values and differences; with a bootstrap, also of their intervals."""
    heads = [Column(names[0], "metric")]
    for name in names[1:]:
        heads += [Column(name, "metric"), Column(f"{name} - {names[0]}", "delta")]
        heads += [] if bootstrap is None else [Column(_level(bootstrap), "interval")]
    return heads


def _metric_row(deltas: Sequence[Delta], bootstrap: Resamples | None) -> tuple[Cell, ...]:
    """Return a metric with its value in the baseline, the cells of `_heads` of each contender, and how many boxes."""
    cells: list[Cell] = [deltas[0].metric, deltas[0].baseline]
    for delta in deltas:
        cells += [delta.value, delta.delta] if bootstrap is None else [delta.value, delta.delta, _interval(delta)]
    return (*cells, deltas[0].n)


def _slices(result: ComparisonResult, names: Sequence[str]) -> Section:
    slices = list(zip(*(versus.slices for versus in result.others), strict=True))
    drawn = result.bootstrap if len(result.others) == 1 else None  # beside several, intervals would not fit
    heads = (*columns("text", "slice", "metric"), *_heads(names, drawn), *columns("count", "gt", "images"))
    rows = tuple(
        (_short(parts[0].name), *_metric_row(deltas, drawn), parts[0].images)
        for parts in slices[:SHOWN_SLICES]
        for deltas in zip(*(part.deltas for part in parts), strict=True)
    )
    return Section("Slices", (Table(heads, rows), *_more(slices, SHOWN_SLICES)))


def _movers(versus: Versus, name: str, bootstrap: Resamples | None, options: ReportOptions) -> list[Section]:
    moved = versus.movers(MAIN_METRIC)
    lists = [("moved", moved, None if options.per_class else SHOWN_CLASSES)]
    if options.chooses_classes:
        gained, lost = (tuple(delta for delta in moved if sign * delta.delta > 0) for sign in (1, -1))
        lists = [
            (verb, rows, n) for verb, rows, n in (("gained", gained, options.top), ("lost", lost, options.worst)) if n
        ]
    heads = (Column("class"), *_heads(("A", name), bootstrap), Column("gt", "count"))
    sections = []
    for verb, deltas, limit in lists:
        rows = tuple((_short(delta.class_name or ""), *_metric_row([delta], bootstrap)[1:]) for delta in deltas[:limit])
        more = _more(deltas, limit, "--per-class lists all")
        title = f"Classes that {verb} most, {MAIN_METRIC} of {name}"
        sections += [Section(title, (Table(heads, rows), *more))] if rows else []
    return sections


def _counts(result: ComparisonResult, contenders: Mapping[str, Contender]) -> Section:
    heads = (Column("ground-truth boxes"), *columns("count", *(f"{name} against A" for name in [*contenders][1:])))
    counts = [versus.counts() for versus in result.others]
    rows: Rows = tuple((str(kind), *(count[kind] for count in counts)) for kind in ChangeKind)
    scores = ", ".join(f"{name} {threshold_text(contender.score)}" for name, contender in contenders.items())
    how = (
        f"found: matched at IoU {threshold_text(result.box_iou)} by a detection with a score of at least: {scores};"
        f" moved: the IoU changed by {threshold_text(result.moved_iou)} or more"
    )
    return Section("Box by box", (Table(heads, rows), Note(how)))


def _images(versus: Versus, name: str) -> Section:
    counted = Counter(change.image for change in versus.changes)
    order = sorted(counted, key=lambda image: (-counted[image], image))
    kinds = [kind for kind, count in versus.counts().items() if count]
    of_kind = Counter((change.image, change.kind) for change in versus.changes)
    heads = (Column("image"), *columns("count", *map(str, kinds)))
    rows: Rows = tuple((_short(image), *(of_kind[image, kind] for kind in kinds)) for image in order[:SHOWN_IMAGES])
    return Section(f"Images with the most changes, {name}", (Table(heads, rows), *_more(order, SHOWN_IMAGES)))


def _changes(versus: Versus, name: str) -> Section:
    rows = []
    for change in _notable(versus.changes, SHOWN_CHANGES):
        box = " ".join(map(side_text, change.xywh))
        states = (_state_text(state, change.class_name) for state in (change.before, change.after))
        rows.append((str(change.kind), _short(change.image), _short(change.class_name), box, *states))
    table = Table((Column("change", "word"), *columns("text", "image", "class", "box", "A", name)), tuple(rows))
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


def _state_text(state: BoxState, own: str) -> str:
    """Say what lies at a box: "missed", "IoU 0.81", "cat, IoU 0.70", "IoU 0.81, 2 duplicates"."""
    if not state.predicted:
        return "missed"
    other = [] if state.predicted == own else [_short(state.predicted)]
    twice = [f"{state.duplicates} duplicates"] if state.duplicates > 1 else ["1 duplicate"] * state.duplicates
    return ", ".join([*other, f"IoU {metric_text(state.iou, 2)}", *twice])


def _more(rows: Sequence[object], limit: int | None, where: str = "the JSON document has all") -> tuple[Note, ...]:
    hidden = 0 if limit is None else len(rows) - limit
    return (Note(f"and {hidden:,} more; {where}"),) if hidden > 0 else ()


def _short(text: str) -> str:
    # The end of a path tells it from its neighbours.
    return text if len(text) <= MAX_CELL else f"…{text[1 - MAX_CELL :]}"
