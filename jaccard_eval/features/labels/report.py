"""Reports of suspected labels: for people the surest of each kind, for machines one row each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.result import ImageSource
from jaccard_eval.features.labels import CLASS, MISSING, PROBABLE, SUSPICIONS, Gain, LabelsResult, Suspect
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Column,
    Gallery,
    GalleryBox,
    GalleryImage,
    GalleryTab,
    Headline,
    Live,
    Note,
    Report,
    Rows,
    Section,
    Span,
    Table,
)
from jaccard_eval.report.numbers import side_text
from jaccard_eval.report.sections import (
    default_page,
    findings_section,
    gates_headline,
    gates_section,
    inputs_section,
    warned_spans,
)
from jaccard_eval.text import pluralise

if TYPE_CHECKING:
    from jaccard_eval.features.images import BoxOutcomes
    from jaccard_eval.features.images.reasons import Explained


SHOWN = 10  # of each kind, for people
NO_PICTURES = "Boxes are drawn on a plain canvas: no images were found next to the labels."
COLUMNS = ("kind", "image", "class", "suggested", "score", "xmin", "ymin", "xmax", "ymax", "reason", "object")
TITLES = {
    "missing": "Missing objects",
    "class": "Wrong classes",
    "box": "Bad boxes",
    "spurious": "Spurious objects",
    "duplicate": "Duplicates",
    "sides": "Swapped sides",
}


def build_report(result: LabelsResult, options: ReportOptions) -> Report:
    """Return the first suspects of each kind, with the reason for each; all that are listed with `options.verbose`."""
    sides = [("ground truth", result.gt), *(("predictions", pred) for pred in result.preds)]
    sections = [inputs_section(sides), *(_section(result, kind, verbose=options.verbose) for kind in result.kinds)]
    if result.gain is not None:
        sections.append(_gain(result.gain))
    title = f"jaccard-eval {result.version}, suspected labels, protocol {result.protocol}"
    sections += gates_section(result.gates)
    first, mark, rest = result.headline.partition(":")
    headline = Headline((Span(first), Span(f"{mark}{rest}"), *warned_spans(result.findings)))
    if any(verdict.failed for verdict in result.gates):
        headline = gates_headline(result.gates)
    return Report(title, (*sections, *findings_section(result.findings)), result.signature, headline=headline)


def _section(result: LabelsResult, kind: str, *, verbose: bool) -> Section:
    numbered = [(f"suspect-{i}", suspect) for i, suspect in enumerate(result.suspects) if suspect.kind == kind]
    found = [suspect for _, suspect in numbered]
    if kind in result.refused:
        return Section(TITLES[kind], (Note(f"Not looked for: {result.refused[kind]}."),))
    if not found:
        return Section(TITLES[kind], (Note("None."),))
    heads = (
        Column("score", "ratio"),
        Column("image", "path"),
        Column("object", "word"),
        Column("box", "word"),
        Column("reason"),
    )
    shown = found if verbose else found[:SHOWN]
    rows: Rows = tuple(
        (suspect.score, suspect.image, suspect.object or "-", _box(suspect), suspect.reason) for suspect in shown
    )
    probable = sum(suspect.score >= PROBABLE for suspect in found)
    left = len(found) - len(shown) + result.unlisted.get(kind, 0)
    notes = [f"{probable:,} of them probable (score {PROBABLE:g} or more)" if probable else "None of them is probable"]
    notes += [f"{left:,} more with lower scores"] if left else []
    keys = tuple(key for key, _ in numbered[: len(shown)])
    return Section(TITLES[kind], (Table(heads, rows, keys=keys), Note("; ".join(notes) + ".")))


def _gain(gain: Gain) -> Section:
    heads = (Column("labels"), Column("changes", "count"), Column("AP", "metric"), Column("change", "delta"))
    rows: Rows = (
        ("as they are", 0, gain.before, 0.0),
        ("with what was accepted", gain.accepted, gain.after, gain.after - gain.before),
        ("control: other changes", gain.controls, gain.control, gain.control - gain.before),
    )
    note = Note("AP rises as well where right labels follow the model: only what exceeds the control is a gain.")
    return Section("After corrections", (Table(heads, rows), note))


def _box(suspect: Suspect) -> str:
    corners = (suspect.xmin, suspect.ymin, suspect.xmax, suspect.ymax)
    return " ".join(f"{edge:.0f}" if max(map(abs, corners)) >= 10 else side_text(edge) for edge in corners)


def build_data(result: LabelsResult, options: ReportOptions) -> DataTable:
    """Return one row per suspect, the surest first; `options` change nothing."""
    return DataTable(COLUMNS, cells_of(result.suspects))


def cells_of(suspects: Iterable[Suspect]) -> tuple[tuple[str | float, ...], ...]:
    """Return the cells of `COLUMNS`."""
    return tuple(
        (
            suspect.kind,
            suspect.image,
            suspect.class_name,
            suspect.suggested,
            suspect.score,
            suspect.xmin,
            suspect.ymin,
            suspect.xmax,
            suspect.ymax,
            suspect.reason,
            suspect.object,
        )
        for suspect in suspects
    )


def page_sections(result: LabelsResult, options: ReportOptions) -> list[Section]:
    """Return what only a page has: the images of the surest suspects of each kind, which a tab chooses."""
    from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, THUMBNAILS, thumbnail_maker

    n = DEFAULT_IMAGES if options.gallery is None else options.gallery
    images, by_kind = result.images, {kind: [one for one in result.suspects if one.kind == kind] for kind in SUSPICIONS}
    ranked = {kind: list(dict.fromkeys(one.image_row for one in found)) for kind, found in by_kind.items()}
    # The surest image of each kind, then the second of each, and so on.
    turns = (row for rows in zip_longest(*ranked.values()) for row in rows if row is not None)
    rows = list(dict.fromkeys(turns))[:n]
    if images is None or not rows:
        return []
    side, quality = next((side, quality) for most, side, quality in THUMBNAILS if len(rows) <= most)
    of_image: dict[int, list[tuple[int, Suspect]]] = {row: [] for row in rows}
    for i, suspect in enumerate(result.suspects):
        if suspect.image_row in of_image:
            of_image[suspect.image_row].append((i, suspect))
    drawn, place = [], {row: i for i, row in enumerate(rows)}
    for row, numbered in of_image.items():
        found = [suspect for _, suspect in numbered]
        thumbnail = images.thumbnail(row, side=side, quality=quality)
        size = _size(images, row, found, None if thumbnail is None else thumbnail.size)
        scale = size if result.gt.units != "px" else (1, 1)
        boxes = tuple(replace(_drawn(suspect, scale), place=i) for i, suspect in reversed(numbered))
        caption = ", ".join(f"{count} {kind}" for kind, count in Counter(suspect.kind for suspect in found).items())
        data = b"" if thumbnail is None else thumbnail.data
        drawn.append(GalleryImage(found[0].image, size, boxes, data, row, caption=caption))
    tabs = {"Suspects": rows, **{TITLES[kind]: ranked[kind] for kind in SUSPICIONS}}
    gallery = Gallery(
        images=tuple(drawn),
        tabs=tuple(
            GalleryTab(title, tuple(place[row] for row in listed if row in place))
            for title, listed in tabs.items()
            if not place.keys().isdisjoint(listed)
        ),
        made_with=thumbnail_maker(),
    )
    note = Note("The surest suspects of each kind, with all others of the same images.")
    plain = [] if any(image.thumbnail for image in drawn) else [Note(NO_PICTURES)]
    return [
        Section("Images", (note, *plain, gallery, Live("gallery", {"names": gallery.names, "score": 0})), key="images")
    ]


def _drawn(suspect: Suspect, scale: tuple[int, int]) -> GalleryBox:
    """Return the box of a suspect, named by its kind."""
    left, top = suspect.xmin * scale[0], suspect.ymin * scale[1]
    sides = left, top, suspect.xmax * scale[0] - left, suspect.ymax * scale[1] - top
    suggested = f" -> {suspect.suggested}" if suspect.kind == CLASS else ""
    name = f"{suspect.kind}: {suspect.class_name}{suggested}"
    return GalleryBox("false", name, sides, suspect.score, change="suspect")


def _size(images: ImageSource, row: int, found: list[Suspect], of_file: tuple[int, int] | None) -> tuple[int, int]:
    """Return the size in px of an image: as read, else of its file, else what holds its suspects."""
    width, height = images.sizes[row].tolist()
    if width >= 1 and height >= 1:
        return round(width), round(height)
    ends = (max(suspect.xmax for suspect in found), max(suspect.ymax for suspect in found))
    return of_file or (math.ceil(max(ends[0], 1)), math.ceil(max(ends[1], 1)))


HOW = (
    "Accept or reject suspects, here or in a column of labels.csv, and pass the list as reviewed: what was judged"
    " is hidden, and AP is measured with what was accepted."
)


def build_page(result: LabelsResult, options: ReportOptions) -> Report:
    """Return the report with every suspect that is listed, and before these what their review needs."""
    report = default_page(result, replace(options, verbose=True))
    if not result.suspects:
        return report
    first = next(i for i, section in enumerate(report.sections) if section.title in TITLES.values())
    review = Section("Review", (Note(HOW), Live("review", review_data(result.suspects))), key="review")
    return replace(report, sections=(*report.sections[:first], review, *report.sections[first:]))


def review_data(suspects: Sequence[Suspect]) -> dict[str, Any]:
    """Return what a script reads, and saves with verdicts and notes."""
    return {"columns": (*COLUMNS, "verdict", "note"), "rows": cells_of(suspects)}


NEAR = 0.1  # px; files have rounded boxes
NEAR_SHARE = 1e-3  # of boxes in fractions of an image


def suspects_section(suspects: Sequence[Suspect], places: Sequence[int]) -> Section:
    """Return suspects for the page of an evaluation, each to be chosen there and to be judged."""
    heads = (Column("suspect", "word"), Column("score", "ratio"), Column("image", "path"), Column("class", "name"))
    rows: Rows = tuple((one.kind, one.score, one.image, one.class_name, one.reason) for one in suspects)
    table = Table((*heads, Column("reason")), rows, keys=tuple(f"suspect-{i}" for i in range(len(rows))))
    elsewhere = sum(place < 0 for place in places)
    there = "is" if elsewhere == 1 else "are"
    notes = [Note(HOW)]
    if elsewhere:
        notes.append(Note(f"{pluralise(elsewhere, 'box', 'boxes')} of these {there} not among the boxes of this page."))
    return Section("Suspected labels", (*notes, Live("review", review_data(suspects)), table), key="review")


def places_of(suspects: Sequence[Suspect], found: Explained, outcomes: BoxOutcomes) -> list[int]:
    """Return the place of the box of each suspect among those of a page; -1 of a box that it does not have."""
    metrics, near = found.metrics, NEAR if found.metrics.area_known else NEAR_SHARE
    images, classes = (
        {name: row for row, name in enumerate(names)} for names in (metrics.image_names, metrics.class_names)
    )
    order = np.argsort(outcomes.image, kind="stable")
    starts = np.searchsorted(outcomes.image[order], np.arange(len(metrics.image_names) + 1))
    places = []
    for suspect in suspects:
        row = images.get(suspect.image, -1)
        boxes = order[starts[row] : starts[row + 1]] if row >= 0 else order[:0]
        is_side = outcomes.is_object[boxes] != (suspect.kind == MISSING)
        boxes = boxes[is_side & (outcomes.label[boxes] == classes.get(suspect.class_name, -1))]
        sides = (suspect.xmin, suspect.ymin, suspect.xmax - suspect.xmin, suspect.ymax - suspect.ymin)
        off = np.abs(outcomes.xywh[boxes] - sides).max(axis=1)
        places.append(int(outcomes.place[boxes[off.argmin()]]) if len(boxes) and off.min() <= near else -1)
    return places
