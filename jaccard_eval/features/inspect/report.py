"""Reports of an inspection: inputs, images, boxes, classes, how two sides correspond, findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from jaccard_eval.data.document import DataTable
from jaccard_eval.features.inspect import ClassCount, Description, Inspection, Pairing
from jaccard_eval.findings import Severity
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Chart,
    Column,
    DataCell,
    Headline,
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
from jaccard_eval.report.numbers import UNDEFINED
from jaccard_eval.report.sections import Listed, findings_section, inputs_section, joined_names, list_classes
from jaccard_eval.text import pluralise

SIDES = {"gt": "ground truth", "pred": "predictions"}
SPREADS = ("boxes per image", "width", "height", "area", "width / height", "score")
QUANTILES = ("min", "5 %", "median", "mean", "95 %", "max")
SHOWN_CLASSES = 20  # rows of the table of classes, unless all are asked for
DECIMALS = {"px": 1, "norm": 4}  # that coordinates are shown with

ClassRow = tuple[ClassCount | None, ...]  # one per side; None where a side lacks the class


def build_report(result: Inspection, options: ReportOptions) -> Report:
    """Return the summary for people."""
    sides = result.sides
    found = None if result.pairing is None else result.pairing.correspondence
    sections = [inputs_section([(SIDES[side.role], side.summary) for side in sides], found, verbose=True)]
    sections += [_images(sides), _boxes(sides), _spreads(sides), *_classes(result, options)]
    if result.pairing is not None:
        sections.append(_agreement(result.pairing))
    for severity in Severity:
        sections += findings_section(result.findings, severity)
    return Report(f"jaccard-eval {result.version}, inspection", tuple(sections), headline=_headline(result))


def _headline(result: Inspection) -> Headline:
    """Return how much there is, or how far the two sides agree; and how much is odd."""
    side = result.sides[0].summary
    nouns = (("image", side.images), ("box", side.boxes), ("class", side.classes))
    spans = [Span(", ".join(pluralise(n, noun, f"{noun}es" if noun != "image" else "") for noun, n in nouns))]
    if result.pairing is not None:
        located = _share(result.pairing.located, result.pairing.objects)
        spans = [Span(f"a prediction overlaps {located} of {pluralise(result.pairing.objects, 'object')}")]
    counts: Counter[Severity] = Counter(
        finding.severity for finding in result.findings if finding.severity is not Severity.NOTE
    )
    found = ", ".join(pluralise(counts[severity], str(severity)) for severity in Severity if counts[severity])
    look: Look = "bad" if counts[Severity.ERROR] else "warn" if found else "good"
    return Headline((*spans, Span("  "), Span(f"({found or 'no warnings'})", look)))


def build_charts(result: Inspection) -> list[Chart]:
    """Return how many boxes each side has of its classes, most first."""
    charts = []
    for side in result.sides:
        counts = sorted(((row.name, row.boxes) for row in side.classes), key=lambda row: -row[1])
        charts += [bars_by_name(f"Boxes by class, {SIDES[side.role]}", "boxes", counts)] if counts else []
    return charts


def build_data(result: Inspection, options: ReportOptions) -> DataTable:
    """Return one row per class, with its boxes and images on each side; `options` change nothing."""
    header = ("class", *(f"{side.role}_{what}" for side in result.sides for what in ("boxes", "images")))
    rows: list[tuple[DataCell, ...]] = []
    for row in _class_rows(result):
        counts = [(0, 0) if count is None else (count.boxes, count.images) for count in row]
        rows.append((_name(row), *(number for pair in counts for number in pair)))
    return DataTable(header, tuple(rows))


def _images(sides: Sequence[Description]) -> Section:
    counts = [side.images for side in sides]
    facts = [
        ("images", *(f"{images.total:,}" for images in counts)),
        ("complete list", *("yes" if images.listed else "no" for images in counts)),
        ("with boxes", *(f"{images.with_boxes:,}" for images in counts)),
        ("without boxes", *(f"{images.total - images.with_boxes:,}" for images in counts)),
        ("with known size", *(f"{images.with_size:,}" for images in counts)),
    ]
    notes = []
    for side in sides:
        images = side.images
        if images.most_crowded:
            notes.append(Note(f"{SIDES[side.role]}: most boxes in {images.most_crowded}"))
        sizes = [f"{size} ({count:,})" for size, count in images.sizes]
        sizes += ["..."] if sum(count for _, count in images.sizes) < images.with_size else []
        if sizes:
            notes.append(Note(f"{SIDES[side.role]}: sizes {', '.join(sizes)}"))
    return Section("Images", (_facts(sides, tuple(facts)), *notes))


def _boxes(sides: Sequence[Description]) -> Section:
    counts = [side.boxes for side in sides]
    facts = [
        ("boxes", *(f"{boxes.total:,}" for boxes in counts)),
        ("read as", *(f"{boxes.encoding}, {boxes.file_units}" for boxes in counts)),
        ("decimals", *(_decimals(boxes.decimals) for boxes in counts)),
        ("x", *(_range(boxes.x, DECIMALS[boxes.units]) for boxes in counts)),
        ("y", *(_range(boxes.y, DECIMALS[boxes.units]) for boxes in counts)),
        # Without image sizes, nobody knows which boxes reach outside.
        ("outside their image", *(_share(boxes.outside if boxes.sized else None, boxes.sized) for boxes in counts)),
    ]
    # One side may be in pixels and have size ranges, and the other in fractions without.
    facts += [
        (f"{name} (COCO)", *(_share(boxes.buckets.get(name), boxes.total) for boxes in counts))
        for name in dict.fromkeys(name for boxes in counts for name in boxes.buckets)
    ]
    facts += [
        (f"flagged {name}", *(_share(boxes.flags[name], boxes.total) for boxes in counts))
        for name in counts[0].flags
        if any(boxes.flags[name] for boxes in counts)
    ]
    scores = [side.scores for side in sides]
    if any(scores):
        facts += [
            ("distinct scores", *(f"{of_side.distinct:,}" if of_side else "" for of_side in scores)),
            ("score decimals", *(_decimals(of_side.decimals) if of_side else "" for of_side in scores)),
        ]
    return Section("Boxes", (_facts(sides, tuple(facts)),))


def _spreads(sides: Sequence[Description]) -> Section:
    """Return the quantiles of each measure, those of both sides one below the other."""
    rows: list[list[tuple[str, ...]]] = [[] for _ in SPREADS]
    for side in sides:
        boxes, digits = side.boxes, DECIMALS[side.boxes.units]
        spreads = (
            (side.images.per_image, 1),
            (boxes.width, digits),
            (boxes.height, digits),
            (boxes.area, 0 if boxes.units == "px" else digits),
            (boxes.aspect, 2),
            (side.scores.spread if side.scores else None, 4),
        )
        for of_measure, title, (spread, places) in zip(rows, SPREADS, spreads, strict=True):
            if spread is not None:
                values = (spread.min, spread.q05, spread.median, spread.mean, spread.q95, spread.max)
                of_measure.append((title, SIDES[side.role], *(_number(value, places) for value in values)))
    heads = (*columns("text", "of", "side"), *columns("size", *QUANTILES))
    return Section("Spread", (Table(heads, tuple(row for of_measure in rows for row in of_measure)),))


def _classes(result: Inspection, options: ReportOptions) -> list[Section]:
    rows = _class_rows(result)
    largest = sorted(rows, key=lambda row: -sum(count.boxes for count in row if count is not None))
    if options.chooses_classes:
        lists = list_classes(largest, options, by="boxes", ends=("largest", "smallest"))
    else:
        hidden = 0 if options.per_class else max(len(rows) - SHOWN_CLASSES, 0)
        more = (Note(f"{hidden:,} smaller classes hidden; list all with --per-class"),) if hidden else ()
        lists = [Listed("Classes", tuple(largest[:SHOWN_CLASSES] if hidden else rows), more)]
    notes = []
    for side in result.sides:
        names = [count.name for count in side.classes if not count.boxes]
        if names:
            text = f"{len(names):,} without boxes: {joined_names(names, len(names))}"
            notes.append(Note(f"{SIDES[side.role]}: {text}"))
    tables = [_class_table(result, listed.rows) for listed in lists]
    sections = [Section(listed.title, (table,)) for listed, table in zip(lists[:-1], tables, strict=False)]
    return [*sections, Section(lists[-1].title, (tables[-1], *notes, *lists[-1].more))]


def _class_table(result: Inspection, rows: Sequence[ClassRow]) -> Table:
    heads = [Column("class")]
    for side in result.sides:
        heads += columns("count", side.role, f"{side.role} %", f"{side.role} images")
    cells = []
    for row in rows:
        line = [_name(row)]
        for count, side in zip(row, result.sides, strict=True):
            share = "" if count is None else _percent(count.boxes, side.boxes.total)
            line += ["", "", ""] if count is None else [f"{count.boxes:,}", share, f"{count.images:,}"]
        cells.append(tuple(line))
    return Table(tuple(heads), tuple(cells))


def _class_rows(result: Inspection) -> list[ClassRow]:
    """Classes of the first side, those of the second next to them, and what only the second has."""
    first, *others = (side.classes for side in result.sides)
    if not others:
        return [(count,) for count in first]
    # Classes may be called differently on both sides: partners are those that correspond.
    pairs = [(count.name, count.name) for count in first]
    if result.pairing is not None:
        pairs = list(result.pairing.correspondence.classes)
    partner = dict(pairs)
    second = {count.name: count for count in others[0]}
    rows: list[ClassRow] = [(count, second.get(partner.get(count.name, ""))) for count in first]
    used = {other.name for _, other in rows if other is not None}
    return [*rows, *((None, count) for count in others[0] if count.name not in used)]


def _name(row: ClassRow) -> str:
    return next(count.name for count in row if count is not None)


def _agreement(pairing: Pairing) -> Section:
    sampled = "" if pairing.sampled == 1 else f", {100 * pairing.sampled:.1f} % of the images sampled"
    overlapping = _share_of(pairing.located, pairing.objects, "object")
    same_class = _share_of(pairing.same_class, pairing.compared, "overlapping pair")
    lines = [
        f"Localisation: {overlapping} overlap a prediction (IoU ≥ 0.5, any class{sampled})",
        f"Class: {same_class} have the same class" if pairing.compared else "Class: no overlapping pairs",
    ]
    if pairing.cap is not None:
        beyond = f"{pairing.beyond_cap:,} detections in {pairing.images_beyond_cap:,} images exceed"
        limit = f"the limit of {pairing.cap} per image and class"
        lines.append(f"Detections: {beyond if pairing.beyond_cap else 'none exceeds'} {limit}")
    return Section("Agreement", tuple(map(Note, lines)))


def _share_of(count: int, total: int, noun: str) -> str:
    """Return a count of things, such as "28 of 38 objects (73.7 %)"."""
    return f"{count:,} of {pluralise(total, noun)} ({_percent(count, total)})"


def _facts(sides: Sequence[Description], facts: Rows) -> Table:
    return Table((Column(""), *columns("count", *(SIDES[side.role] for side in sides))), facts)


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
