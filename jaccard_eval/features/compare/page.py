"""The page of a comparison: the verdict, differences of metrics and classes, curves, images that changed.

A folder of all images has both models, side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.errors import UsageError
from jaccard_eval.features.compare import ChangeKind, ComparisonResult, Contender, Delta, Versus
from jaccard_eval.features.compare.comparison import box_threshold, side_names
from jaccard_eval.features.compare.report import build_report, interval_title
from jaccard_eval.features.evaluate.page import explained_of, explorer_model
from jaccard_eval.features.images import box_outcomes
from jaccard_eval.features.images.gallery import DEFAULT_IMAGES, Part, file_notes, gallery_images, thumbnail_maker
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Column,
    Drawn,
    Explorer,
    Gallery,
    GalleryImage,
    GalleryTab,
    Live,
    Note,
    Report,
    Section,
    Table,
    columns,
)
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.report.recall_charts import compared_recall_charts
from jaccard_eval.report.sections import FINDINGS, PROVENANCE, remarks_sections

# What a gallery shows of an object by what became of it; other changes are those of detections, which are all there.
TAGS = {ChangeKind.LOST: "lost", ChangeKind.FOUND: "found"}


def gallery_sections(result: ComparisonResult, options: ReportOptions) -> list[Section]:
    """Return the section of images of the baseline and the first contender; none where there is nothing to show."""
    n = DEFAULT_IMAGES if options.gallery is None else options.gallery
    have_boxes = [
        evaluated.boxes is not None and isinstance(evaluated.measured, DetectionMetrics) for evaluated in result.results
    ]
    if n == 0 or len(have_boxes) < 2 or not all(have_boxes) or not result.others[0].changes:
        return []
    versus = result.others[0]
    names = result.baseline.name, versus.contender.name
    gallery = build_gallery(result, versus, n)
    at = f"{names[0]} at score >= {threshold_text(result.baseline.score)} and {names[1]} at"
    judged = f"{gallery.measure} >= {threshold_text(result.box_iou)}"
    notes = [Note(f"Boxes of {at} score >= {threshold_text(versus.contender.score)}, {judged}.")]
    if len(result.others) > 1:
        notes.append(Note(f"For the images of another, compare {names[0]} with it alone."))
    notes += [Note(text) for text in gallery.notes]
    made = [Note(f"Thumbnails by {gallery.made_with}.")] if any(image.thumbnail for image in gallery.images) else []
    live = Live("gallery", {"names": gallery.names, "score": gallery.score})
    return [Section(f"Images: {names[0]} and {names[1]}", (*notes, gallery, *made, live), key="images")]


def build_gallery(result: ComparisonResult, versus: Versus, n: int) -> Gallery:
    """Return the `n` images with the most changes, and in which of them most objects are lost and found."""
    first, second = result.results[:2]
    metrics = detection_metrics(first)
    row_of = {name: row for row, name in enumerate(metrics.image_names)}
    names = _most_changed(versus, tuple(ChangeKind))[:n]
    place = {name: row for row, name in enumerate(names)}
    tabs = {
        "Changed": names,
        "Lost": [name for name in _most_changed(versus, (ChangeKind.LOST,)) if name in place],
        "Found": [name for name in _most_changed(versus, (ChangeKind.FOUND,)) if name in place],
    }
    parts = _parts(result, versus, (first, second))
    images = gallery_images(first, metrics, [row_of[name] for name in names], parts, thumbnails=True)
    sides = result.baseline.name, versus.contender.name
    return Gallery(
        images=tuple(replace(image, caption=_caption(image, sides)) for image in images),
        tabs=tuple(
            GalleryTab(title, tuple(place[name] for name in listed)) for title, listed in tabs.items() if listed
        ),
        iou=result.box_iou,
        measure=overlap_name(metrics.protocol),
        made_with=thumbnail_maker(),
        notes=file_notes(first, images),
    )


def _parts(result: ComparisonResult, versus: Versus, results: tuple[EvaluationResult, EvaluationResult]) -> list[Part]:
    """Return the boxes to show: objects that either side misses, and the detections of both."""
    scores = result.baseline.score, versus.contender.score
    tables = [evaluated.boxes for evaluated in results if evaluated.boxes is not None]
    both = [
        box_outcomes(metrics, *boxes, box_threshold(metrics, result.box_iou))
        for metrics, boxes in zip(map(detection_metrics, results), tables, strict=True)
    ]
    shown = [outcomes.counts_at(score) for outcomes, score in zip(both, scores, strict=True)]
    truth = tables[0][0]
    missed = shown[0][: len(truth)] | shown[1][: len(truth)]  # objects come first on both sides
    tags = {change.row: TAGS[change.kind] for change in versus.changes if change.kind in TAGS}
    tag = np.array([tags.get(source, "") for source in truth.source.tolist()], dtype=object)
    parts: list[Part] = [
        (both[0].take(np.flatnonzero(missed & (tag == change))), {"change": change}) for change in ("", *TAGS.values())
    ]
    first: dict[str, Any] = {"side": result.baseline.name}
    sides = (first, {"side": versus.contender.name, "second": True})
    for outcomes, is_shown, side in zip(both, shown, sides, strict=True):
        parts.append((outcomes.take(np.flatnonzero(is_shown & ~outcomes.is_object)), side))
    return parts


def _most_changed(versus: Versus, kinds: Sequence[ChangeKind]) -> list[str]:
    changes = [change for change in versus.changes if change.kind in kinds]
    weighty = Counter(change.image for change in changes if change.kind is not ChangeKind.MOVED)
    counted = Counter(change.image for change in changes)
    return sorted(counted, key=lambda name: (-weighty[name], -counted[name], name))


def _caption(image: GalleryImage, sides: tuple[str, str]) -> str:
    changes = Counter(box.change for box in image.boxes if box.change)
    texts = [f"{changes['lost']:,} lost, {changes['found']:,} found"]
    for side in sides:
        states = Counter(box.state for box in image.boxes if box.side == side)
        texts.append(f"{side}: {states['found']:,} right, {states['false']:,} false")
    return "; ".join(texts)


MAIN_METRIC = "AP"
TILES = ("AP", "AP50", "AP75", "AR100")
LEAST = 0.01  # difference that drawings end at, so that next to nothing looks like that


def build_page(result: ComparisonResult, options: ReportOptions) -> Report:
    """Return the report of `result` as a page has it."""
    result = with_names_of_files(result)
    report = build_report(result, options)
    named = {section.title: section for section in report.sections}
    inputs, metrics = named.pop("Inputs"), named.pop("Metrics")
    # Lists of the text report that a page has in full.
    rest = [section for title, section in named.items() if section.key != FINDINGS and "Classes that" not in title]
    sections = [
        _headline(result),
        *remarks_sections(result.findings),
        _metrics(result, metrics),
        *(_classes(result, versus) for versus in result.others),
        *_curves(result),
        *gallery_sections(result, options),
        *rest,
        _provenance(result, inputs),
    ]
    name = " against ".join(side.name for side in reversed(sides_of(result)))
    return replace(report, sections=tuple(sections), name=name)


def with_names_of_files(result: ComparisonResult) -> ComparisonResult:
    """Return a result whose sides, where they have no names but A, B, C, are named as their files are."""
    sides = sides_of(result)
    if [side.name for side in sides] != [*side_names(len(sides), {})] or not all(side.path for side in sides):
        return result
    parts = [PurePath(side.path).parts for side in sides]
    # As many folders as it takes to keep them apart: runs/a/pred.json and runs/b/pred.json.
    depth = next((n for n in range(1, max(map(len, parts)) + 1) if len({part[-n:] for part in parts}) == len(parts)), 0)
    if not depth:
        return result
    first, *others = (replace(side, name="/".join(part[-depth:])) for side, part in zip(sides, parts, strict=True))
    named = zip(result.others, others, strict=True)
    return replace(
        result, baseline=first, others=tuple(replace(versus, contender=contender) for versus, contender in named)
    )


def _headline(result: ComparisonResult) -> Section:
    rows = []
    for versus in result.others:
        of = f" of {versus.contender.name}" if len(result.others) > 1 else ""
        shown = [delta for delta in versus.summary if delta.metric in TILES] or versus.summary[:1]
        rows += [(f"{delta.metric}{of}", delta.value, "", delta.delta) for delta in shown]
    names = ", ".join(dict.fromkeys(text for side in sides_of(result) for text in (side.name, side.path)))
    heads = (Column("metric", "name"), Column("value", "metric"), Column("within"), Column("difference", "delta"))
    about = Note(f"Comparison · protocol {result.protocol} · {names}")
    return Section("Verdict", (about, Table(heads, tuple(rows)), Note("verdict")), key="headline")


def _metrics(result: ComparisonResult, section: Section) -> Section:
    notes = [block for block in section.blocks if not isinstance(block, Table)]
    tables = [
        _table(result, versus, [(delta.metric, delta) for delta in versus.summary], "metric")
        for versus in result.others
    ]
    return Section("Metrics", (*tables, *notes), key="metrics")


def _classes(result: ComparisonResult, versus: Versus) -> Section:
    """Return all classes, the weightiest differences first, as `Versus.movers` has them; undefined ones last."""
    deltas = [delta for delta in versus.deltas if delta.class_name is not None and delta.metric == MAIN_METRIC]
    deltas.sort(key=lambda delta: math.inf if math.isnan(delta.delta) else -abs(delta.delta) * math.sqrt(delta.n))
    table = _table(result, versus, [(str(delta.class_name), delta) for delta in deltas], "class")
    note = Note("The weightiest differences first: difference times the root of the objects.")
    many, name = len(result.others) > 1, versus.contender.name
    title = f"Classes, {MAIN_METRIC} of {name}" if many else f"Classes, {MAIN_METRIC}"
    return Section(title, (note, table), key=f"classes-{result.others.index(versus)}" if many else "classes")


def _table(result: ComparisonResult, versus: Versus, deltas: Sequence[tuple[str, Delta]], what: str) -> Table:
    """Return differences with what is drawn of them, all on one scale."""
    base, name, drawn = result.baseline.name, versus.contender.name, result.bootstrap
    bounds = [abs(end) for _, delta in deltas for end in (delta.delta, *(delta.interval or ())) if not math.isnan(end)]
    most = max([LEAST, *bounds])
    heads = [Column(what, "name"), *columns("metric", base, name), Column(f"{name} - {base}", "delta")]
    heads += [Column("", "drawn"), *([] if drawn is None else [Column(interval_title(drawn), "interval")])]
    rows: list[tuple[Cell, ...]] = []
    for title, delta in deltas:
        cells: list[Cell] = [title, delta.baseline, delta.value, delta.delta]
        cells.append(Drawn(delta.delta, delta.interval, ends=(-most, most), look="dot"))
        cells += [] if drawn is None else [delta.interval or (math.nan, math.nan)]
        rows.append((*cells, delta.n))
    return Table((*heads, Column("gt", "count")), tuple(rows))


def _curves(result: ComparisonResult) -> list[Section]:
    measured = (evaluated.measured for evaluated in result.results)
    charts = compared_recall_charts(
        [(side.name, found) for side, found in zip(sides_of(result), measured, strict=False)]
    )
    return [Section("Precision and recall", tuple(charts), key="curves")] if charts else []


def sides_of(result: ComparisonResult) -> tuple[Contender, ...]:
    """Return the baseline and what is compared with it."""
    return (result.baseline, *(versus.contender for versus in result.others))


def _provenance(result: ComparisonResult, inputs: Section) -> Section:
    heads = (Column("side", "name"), Column("path", "path"), *columns("word", "fingerprint", "score"))
    rows = tuple((side.name, side.path, side.fingerprint, threshold_text(side.score)) for side in sides_of(result))
    at = f"{overlap_name(result.signature)} {threshold_text(result.box_iou)}"
    note = Note(f"Boxes are compared at {at}, of detections with at least the score of their side.")
    return Section("How it was made", (*inputs.blocks, Table(heads, rows), note), key=PROVENANCE)


def build_explorer(result: ComparisonResult, options: ReportOptions) -> Explorer:
    """Return the images of the baseline and the contender, and the page of the comparison without any."""
    if len(result.results) != 2:
        raise UsageError(
            f"a folder of all images shows two sets of predictions with their boxes, got {len(result.results)};"
            " compare two, or write a page (.html)"
        )
    named = with_names_of_files(result)
    first, second = (side.name for side in sides_of(named))
    base, model = explorer_model(result.results[0], first)
    found, _ = explained_of(base)
    _, second_model = explorer_model(result.results[1], second, found)
    report = build_page(result, options)
    return Explorer(
        title=options.title or report.name,
        models={"a": model, "b": second_model},
        images=base.images,
        numbers=report,
    )
