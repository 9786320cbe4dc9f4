"""The page of suspected labels: all that are listed, each to be accepted or rejected, and saved for `--reviewed`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.features.images.compute import BoxOutcomes
from jaccard_eval.features.images.reasons import Explained
from jaccard_eval.features.labels import MISSING, LabelsResult, Suspect
from jaccard_eval.features.labels.report import COLUMNS, TITLES, cells_of
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.default_page import default_page
from jaccard_eval.report.model import Column, Live, Note, Report, Rows, Section, Table
from jaccard_eval.text import pluralise

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
