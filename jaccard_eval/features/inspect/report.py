"""What reports say about an inspection: inputs, images, boxes, classes, how two sides correspond, findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from jaccard_eval.features.inspect.result import ClassCount, Description, Inspection, Pairing, Spread
from jaccard_eval.findings import Severity
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, KeyValues, Note, Report, Section, Sheet, Table
from jaccard_eval.report.numbers import UNDEFINED
from jaccard_eval.report.sections import correspondence_section, findings_section, inputs_section, joined_names

SIDES = {"gt": "ground truth", "pred": "predictions"}
QUANTILES = ("min", "5 %", "median", "mean", "95 %", "max")
SHOWN_CLASSES = 20  # rows of the table of classes, unless all are asked for
DECIMALS = {"px": 1, "norm": 4}  # that coordinates are shown with

Fact = tuple[str, Callable[[Description], str]]  # a title, and what a side answers
ClassRow = tuple[ClassCount | None, ...]  # one per side; None where a side lacks the class


def build_report(result: Inspection, options: ReportOptions) -> Report:
    """Return what was found, for people."""
    sides = result.sides
    sections = [inputs_section([(SIDES[side.role], side.summary) for side in sides])]
    sections += [_images(sides), _boxes(sides), _spreads(sides), _classes(result, every=options.per_class)]
    if result.pairing is not None:
        sections += [correspondence_section(result.pairing.correspondence), _agreement(result.pairing)]
    for severity in Severity:
        sections += findings_section(result.findings, severity)
    return Report(f"jaccard-eval {result.version}, inspection", tuple(sections))


def build_sheet(result: Inspection, options: ReportOptions) -> Sheet:
    """Return one row per class, with its boxes and images on each side; `options` change nothing."""
    header = ("class", *(f"{side.role}_{what}" for side in result.sides for what in ("boxes", "images")))
    return Sheet(header, tuple((_name(row), *_counts(row)) for row in _class_rows(result)))


def _images(sides: Sequence[Description]) -> Section:
    facts: list[Fact] = [
        ("images", lambda side: f"{side.images.total:,}"),
        ("all are listed", lambda side: "yes" if side.images.listed else "no"),
        ("with boxes", lambda side: f"{side.images.with_boxes:,}"),
        ("without boxes", lambda side: f"{side.images.total - side.images.with_boxes:,}"),
        ("of known size", lambda side: f"{side.images.with_size:,}"),
    ]
    notes = [Note(f"{SIDES[side.role]}: {text}") for side in sides for text in _image_notes(side)]
    return Section("Images", (_facts(sides, facts), *notes))


def _image_notes(side: Description) -> list[str]:
    images = side.images
    sizes = [f"{size} ({count:,})" for size, count in images.sizes]
    sizes += ["..."] if sum(count for _, count in images.sizes) < images.with_size else []
    crowded = f"most boxes in {images.most_crowded}" if images.most_crowded else ""
    return [text for text in (crowded, f"sizes {', '.join(sizes)}" if sizes else "") if text]


def _boxes(sides: Sequence[Description]) -> Section:
    facts: list[Fact] = [
        ("boxes", lambda side: f"{side.boxes.total:,}"),
        ("read as", lambda side: f"{side.boxes.encoding}, {side.boxes.file_units}"),
        ("decimals", lambda side: _decimals(side.boxes.decimals)),
        ("x", lambda side: _range(side.boxes.x, DECIMALS[side.boxes.units])),
        ("y", lambda side: _range(side.boxes.y, DECIMALS[side.boxes.units])),
        ("leave their image", lambda side: _share(side.boxes.outside if side.boxes.sized else None, side.boxes.sized)),
    ]
    buckets = dict.fromkeys(name for side in sides for name in side.boxes.buckets)
    flags = [name for name in sides[0].boxes.flags if any(side.boxes.flags[name] for side in sides)]
    facts += [(f"{name} (COCO)", _bucket(name)) for name in buckets]
    facts += [(f"flagged {name}", _flag(name)) for name in flags]
    if any(side.scores for side in sides):
        facts += [
            ("distinct scores", lambda side: f"{side.scores.distinct:,}" if side.scores else ""),
            ("decimals of scores", lambda side: _decimals(side.scores.decimals) if side.scores else ""),
        ]
    return Section("Boxes", (_facts(sides, facts),))


def _bucket(name: str) -> Callable[[Description], str]:
    return lambda side: _share(side.boxes.buckets.get(name), side.boxes.total)


def _flag(name: str) -> Callable[[Description], str]:
    return lambda side: _share(side.boxes.flags[name], side.boxes.total)


def _spreads(sides: Sequence[Description]) -> Section:
    per_side = [_spreads_of(side) for side in sides]
    rows = [row for same in zip(*per_side, strict=True) for row in same if row]
    columns = (Column("of", free_text=True), Column("side", free_text=True), *map(Column, QUANTILES))
    return Section("Spread", (Table(columns, tuple(rows)),))


def _spreads_of(side: Description) -> list[tuple[str, ...]]:
    """Rows of one side; an empty one where a side has no such numbers."""
    boxes, digits = side.boxes, DECIMALS[side.boxes.units]
    spreads = [
        ("boxes per image", side.images.per_image, 1),
        ("width", boxes.width, digits),
        ("height", boxes.height, digits),
        ("area", boxes.area, 0 if boxes.units == "px" else digits),
        ("width / height", boxes.aspect, 2),
    ]
    rows = [(title, SIDES[side.role], *_quantiles(spread, places)) for title, spread, places in spreads]
    return [*rows, ("score", SIDES[side.role], *_quantiles(side.scores.spread, 4)) if side.scores else ()]


def _classes(result: Inspection, *, every: bool) -> Section:
    rows = _class_rows(result)
    shown = rows if every or len(rows) <= SHOWN_CLASSES else sorted(rows, key=_weight)[:SHOWN_CLASSES]
    titles = [title for side in result.sides for title in (side.role, f"{side.role} %", f"{side.role} images")]
    columns = (Column("class", free_text=True), *map(Column, titles))
    totals = [side.boxes.total for side in result.sides]
    table = Table(columns, tuple((_name(row), *_class_cells(row, totals)) for row in shown))
    hidden = len(rows) - len(shown)
    notes = [Note(f"{hidden:,} smaller classes; --per-class lists all")] if hidden else []
    return Section("Classes", (table, *notes, *map(Note, _without_boxes(result.sides))))


def _class_cells(row: ClassRow, totals: Sequence[int]) -> Iterable[str]:
    for one, total in zip(row, totals, strict=True):
        yield from ("", "", "") if one is None else (f"{one.boxes:,}", _percent(one.boxes, total), f"{one.images:,}")


def _without_boxes(sides: Sequence[Description]) -> Iterable[str]:
    for side in sides:
        names = [one.name for one in side.classes if not one.boxes]
        if names:
            yield f"{SIDES[side.role]}: {len(names):,} without boxes: {joined_names(names, len(names))}"


def _class_rows(result: Inspection) -> list[ClassRow]:
    """Classes of the first side, those of the second beside them, and what only the second has."""
    first, *others = (side.classes for side in result.sides)
    if not others:
        return [(one,) for one in first]
    pairs = [(one.name, one.name) for one in first]
    if result.pairing is not None:
        pairs = list(result.pairing.correspondence.classes)
    partner = dict(pairs)
    theirs = {one.name: one for one in others[0]}
    rows: list[ClassRow] = [(one, theirs.get(partner.get(one.name, ""))) for one in first]
    used = {other.name for _, other in rows if other is not None}
    return [*rows, *((None, one) for one in others[0] if one.name not in used)]


def _name(row: ClassRow) -> str:
    return next(one.name for one in row if one is not None)


def _counts(row: ClassRow) -> Iterable[int]:
    for one in row:
        yield from (0, 0) if one is None else (one.boxes, one.images)


def _weight(row: ClassRow) -> int:
    return -sum(one.boxes for one in row if one is not None)


def _agreement(pairing: Pairing) -> Section:
    looked_at = "" if pairing.sampled == 1 else f" (in {100 * pairing.sampled:.1f} % of the images)"
    objects = f"{_share(pairing.located, pairing.objects)} of {pairing.objects:,} objects{looked_at}"
    agreeing = f"{_share(pairing.same_class, pairing.compared)} of {pairing.compared:,} such pairs agree in it"
    pairs = [
        ("place", f"{objects} share it with a prediction: IoU >= 0.5, whatever the class"),
        ("class", agreeing if pairing.compared else "no such pair"),
    ]
    if pairing.cap is not None:
        beyond = f"{pairing.beyond_cap:,} detections in {pairing.images_beyond_cap:,} images are beyond {pairing.cap}"
        within = f"no detection is beyond {pairing.cap}"
        pairs.append(("cap", f"{beyond if pairing.beyond_cap else within} per image and class"))
    return Section("Agreement", (KeyValues(tuple(pairs)),))


def _facts(sides: Sequence[Description], facts: Sequence[Fact]) -> Table:
    columns = (Column("", free_text=True), *(Column(SIDES[side.role]) for side in sides))
    return Table(columns, tuple((title, *(answer(side) for side in sides)) for title, answer in facts))


def _quantiles(spread: Spread, places: int) -> tuple[str, ...]:
    values = (spread.min, spread.q05, spread.median, spread.mean, spread.q95, spread.max)
    return tuple(_number(value, places) for value in values)


def _number(value: float, places: int) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:,.{places}f}"


def _range(ends: tuple[float, float], places: int) -> str:
    return f"{_number(ends[0], places)} to {_number(ends[1], places)}"


def _share(count: int | None, total: int) -> str:
    return UNDEFINED if count is None else f"{count:,} ({_percent(count, total)})" if count else "0"


def _percent(count: int, total: int) -> str:
    """Return a share in percent; 0 and 100 only when they are exact."""
    if not total:
        return UNDEFINED
    share = 100 * count / total
    return f"{min(max(share, 0.1), 99.9):.1f} %" if 0 < count < total else f"{share:.0f} %"


def _decimals(decimals: int | None) -> str:
    return "more than 6" if decimals is None else str(decimals)
