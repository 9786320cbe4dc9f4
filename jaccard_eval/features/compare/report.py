"""What reports say about a comparison: differences of metrics, the movers, and what changed box by box.

The summary has a bounded length however many classes and boxes there are, so that it fits into a pull request's
comment; the table for machines has every change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase

from jaccard_eval.data.intervals import Resamples
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
from jaccard_eval.report.model import Cell, Column, KeyValues, Note, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import UNDEFINED, delta_text, metric_text, side_text, threshold_text
from jaccard_eval.report.sections import findings_section

SHOWN_CLASSES = 10  # of the movers of one contender
SHOWN_SLICES = 20
SHOWN_IMAGES = 5  # with the most changes
SHOWN_CHANGES = 10  # of one contender
MAX_CELL = 60  # characters of a path or name in the tables of a summary
MAIN_METRIC = "AP"
MARKER = "jaccard-eval"
_PLACE = ("pred", "change", "image", "class", "row", "x", "y", "width", "height")
_STATE = ("class", "score", "iou", "duplicates")


def build_report(result: ComparisonResult, options: ReportOptions) -> Report:
    """Return what a summary for people says; `options.per_class` lists every class that moved."""
    names = _letters(len(result.others) + 1)
    sections = [_inputs(result, names), _summary(result, names), *_slices(result, names)]
    for name, one in zip(names[1:], result.others, strict=True):
        sections += _movers(one, name, result.bootstrap, None if options.per_class else SHOWN_CLASSES)
    sections.append(_counts(result, names))
    for name, one in zip(names[1:], result.others, strict=True):
        sections += _images(one, name) + _changes(one, name)
    sections += findings_section(result.findings)
    title = f"jaccard-eval {result.version}, comparison, protocol {result.protocol}"
    return Report(title, tuple(sections), result.signature, MARKER)


def build_sheet(result: ComparisonResult, options: ReportOptions) -> Sheet:
    """Return one row per change; `options` change nothing."""
    header = (*_PLACE, *(f"{side}_{name}" for side in ("before", "after") for name in _STATE))
    rows = (_sheet_row(one.contender, change) for one in result.others for change in one.changes)
    return Sheet(header, tuple(rows))


def _letters(count: int) -> list[str]:
    """Name contenders A, B, C, ... and by number where letters end."""
    return [ascii_uppercase[i] if i < len(ascii_uppercase) else str(i + 1) for i in range(count)]


def _inputs(result: ComparisonResult, names: Sequence[str]) -> Section:
    contenders = [result.baseline, *(one.contender for one in result.others)]
    pairs = [("ground truth", result.gt), (f"{names[0]}, the baseline", contenders[0].path)]
    pairs += [(name, one.path) for name, one in zip(names[1:], contenders[1:], strict=True)]
    return Section("Inputs", (KeyValues(tuple(pairs)),))


def _summary(result: ComparisonResult, names: Sequence[str]) -> Section:
    drawn = result.bootstrap if len(result.others) == 1 else None  # beside several, intervals would not fit
    columns = (Column("metric", free_text=True), *map(Column, _titles(names, drawn)), Column("gt"))
    by_metric = list(zip(*(one.summary for one in result.others), strict=True))
    table = Table(columns, tuple(_metric_row(deltas, drawn) for deltas in by_metric))
    apart = () if drawn is result.bootstrap else (_interval_table(result.bootstrap, names, by_metric),)
    return Section("Metrics", (table, *apart, *_noise_notes(result, names)))


def _interval_table(bootstrap: Resamples | None, names: Sequence[str], by_metric: Sequence[Sequence[Delta]]) -> Table:
    """Return the intervals of several contenders, a column each."""
    *_, level = _titles(names, bootstrap)
    columns = (Column("metric", free_text=True), *(Column(f"{name} - {names[0]}, {level}") for name in names[1:]))
    rows = ((deltas[0].metric, *(_delta_cells(one, bootstrap)[-1] for one in deltas)) for deltas in by_metric)
    return Table(columns, tuple(rows))


def _titles(names: Sequence[str], bootstrap: Resamples | None = None) -> list[str]:
    """Name the columns of the values and differences; with a bootstrap, also of their intervals."""
    drawn = [] if bootstrap is None else [f"{100 * bootstrap.settings.confidence_level:.6g} %"]
    return [names[0], *(title for name in names[1:] for title in (name, f"{name} - {names[0]}", *drawn))]


def _noise_notes(result: ComparisonResult, names: Sequence[str]) -> list[Note]:
    """Say of the main metric how sure the difference is, and what the set could show at all."""
    if result.bootstrap is None:
        return []
    main = ((name, one.summary[0]) for name, one in zip(names[1:], result.others, strict=True))
    facts = (
        f"{delta.metric} of {name}: not chance with probability {metric_text(delta.probability, 3)}; the smallest"
        f" difference that these images would show: {metric_text(delta.detectable)}"
        for name, delta in main
    )
    settings = result.bootstrap.settings
    drawn = (
        f"intervals: {result.bootstrap.n_units:,} {result.bootstrap.unit}s drawn {settings.n_resamples:,} times, the"
        f" same for all predictions; seed {settings.rng}"
    )
    return [*map(Note, facts), Note(drawn)]


def _metric_row(deltas: Sequence[Delta], bootstrap: Resamples | None = None) -> tuple[Cell, ...]:
    values = [cell for one in deltas for cell in _delta_cells(one, bootstrap)]
    return deltas[0].metric, deltas[0].baseline, *values, deltas[0].n


def _delta_cells(one: Delta, bootstrap: Resamples | None) -> tuple[Cell, ...]:
    if bootstrap is None:
        return one.value, delta_text(one.delta)
    interval = UNDEFINED if one.interval is None else " to ".join(map(delta_text, one.interval))
    return one.value, delta_text(one.delta), interval


def _slices(result: ComparisonResult, names: Sequence[str]) -> list[Section]:
    slices = list(zip(*(one.slices for one in result.others), strict=True))
    if not slices:
        return []
    drawn = result.bootstrap if len(result.others) == 1 else None  # beside several, intervals would not fit
    titles = (*_titles(names, drawn), "gt", "images")
    columns = (Column("slice", free_text=True), Column("metric", free_text=True), *map(Column, titles))
    rows = tuple(
        (_short(parts[0].name), *_metric_row(deltas, drawn), parts[0].images)
        for parts in slices[:SHOWN_SLICES]
        for deltas in zip(*(part.deltas for part in parts), strict=True)
    )
    return [Section("Slices", (Table(columns, rows), *_more(slices, SHOWN_SLICES)))]


def _movers(one: Versus, name: str, bootstrap: Resamples | None, limit: int | None) -> list[Section]:
    moved = one.movers(MAIN_METRIC)
    if not moved:
        return []
    columns = (Column("class", free_text=True), *map(Column, _titles(("A", name), bootstrap)), Column("gt"))
    rows = tuple((_short(delta.class_name or ""), *_metric_row([delta], bootstrap)[1:]) for delta in moved[:limit])
    more = _more(moved, limit, "--per-class lists all")
    return [Section(f"Classes that moved most, {MAIN_METRIC} of {name}", (Table(columns, rows), *more))]


def _counts(result: ComparisonResult, names: Sequence[str]) -> Section:
    columns = (Column("ground-truth boxes", free_text=True), *(Column(f"{name} against A") for name in names[1:]))
    counts = [one.counts() for one in result.others]
    rows = tuple(_count_row(str(kind), [one[kind] for one in counts]) for kind in ChangeKind)
    contenders = [result.baseline, *(one.contender for one in result.others)]
    scores = (f"{name} {_score_text(one.score)}" for name, one in zip(names, contenders, strict=True))
    how = (
        f"found: matched at IoU {threshold_text(result.box_iou)} by a detection with a score of at least:"
        f" {', '.join(scores)}; moved: the IoU changed by {threshold_text(result.moved_iou)} or more"
    )
    return Section("Box by box", (Table(columns, rows), Note(how)))


def _count_row(name: str, counts: Sequence[int]) -> tuple[Cell, ...]:
    return name, *counts


def _images(one: Versus, name: str) -> list[Section]:
    counted = Counter(change.image for change in one.changes)
    if not counted:
        return []
    order = sorted(counted, key=lambda image: (-counted[image], image))
    kinds = [kind for kind, count in one.counts().items() if count]
    of_kind = Counter((change.image, change.kind) for change in one.changes)
    columns = (Column("image", free_text=True), *(Column(str(kind)) for kind in kinds))
    rows = tuple(_count_row(_short(image), [of_kind[image, kind] for kind in kinds]) for image in order[:SHOWN_IMAGES])
    return [Section(f"Images with the most changes, {name}", (Table(columns, rows), *_more(order, SHOWN_IMAGES)))]


def _changes(one: Versus, name: str) -> list[Section]:
    if not one.changes:
        return []
    texts = (Column(title, free_text=True) for title in ("image", "class", "box", "A", name))
    columns = (Column("change", left=True), *texts)
    table = Table(columns, tuple(map(_change_row, _notable(one.changes, SHOWN_CHANGES))))
    return [Section(f"Changes, {name}", (table, *_more(one.changes, SHOWN_CHANGES, "-o changes.csv writes all")))]


def _notable(changes: Sequence[Change], n: int) -> list[Change]:
    """Return `n` changes by kind, as many of each kind as there is room for, the surest or largest of it."""
    ranked: dict[ChangeKind, list[Change]] = {kind: [] for kind in ChangeKind}
    for change in sorted(changes, key=_weight, reverse=True):
        ranked[change.kind].append(change)
    rounds = sorted(((i, k) for k, kind in enumerate(ChangeKind) for i in range(len(ranked[kind]))))
    chosen = sorted((k, i) for i, k in rounds[:n])
    kinds = list(ChangeKind)
    return [ranked[kinds[k]][i] for k, i in chosen]


def _weight(change: Change) -> float:
    """Return how far a box moved, how often it is found, or else the highest score that it was found with."""
    before, after = change.before, change.after
    if change.kind is ChangeKind.MOVED:
        return abs(after.iou - before.iou)
    if change.kind in (ChangeKind.DUPLICATED, ChangeKind.DEDUPLICATED):
        return abs(after.duplicates - before.duplicates)
    return max((state.score for state in (before, after) if state.predicted), default=0.0)


def _change_row(change: Change) -> tuple[Cell, ...]:
    box = " ".join(map(side_text, change.xywh))
    names = (str(change.kind), _short(change.image), _short(change.class_name), box)
    return *names, *(_state_text(state, change.class_name) for state in (change.before, change.after))


def _state_text(state: BoxState, own: str) -> str:
    """Say what lies at a box: "missed", "IoU 0.81", "cat, IoU 0.70", "IoU 0.81, 2 duplicates"."""
    if not state.predicted:
        return "missed"
    other = [] if state.predicted == own else [_short(state.predicted)]
    twice = [f"{state.duplicates} duplicates"] if state.duplicates > 1 else ["1 duplicate"] * state.duplicates
    return ", ".join([*other, f"IoU {metric_text(state.iou, 2)}", *twice])


def _score_text(score: float) -> str:
    return UNDEFINED if math.isnan(score) else threshold_text(score)


def _more(rows: Sequence[object], limit: int | None, where: str = "the JSON document has all") -> tuple[Note, ...]:
    hidden = 0 if limit is None else len(rows) - limit
    return (Note(f"and {hidden:,} more; {where}"),) if hidden > 0 else ()


def _short(text: str) -> str:
    return text if len(text) <= MAX_CELL else f"…{text[1 - MAX_CELL :]}"


def _sheet_row(pred: Contender, change: Change) -> tuple[Cell, ...]:
    states = [cell for state in (change.before, change.after) for cell in _state_cells(state)]
    return pred.path, str(change.kind), change.image, change.class_name, change.row, *change.xywh, *states


def _state_cells(state: BoxState) -> tuple[Cell, ...]:
    return state.predicted, state.score, state.iou, state.duplicates
