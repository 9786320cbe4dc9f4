"""Reports of an evaluation of label maps: inputs, rules, scores, classes, warnings, the maps that differ most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.document import DataTable
from jaccard_eval.data.metricref import MAP_CLASS_METRICS
from jaccard_eval.data.result import TARGET_COLUMN
from jaccard_eval.features.bootstrap.report import (
    bound_cells,
    bound_columns,
    interval_notes,
    intervals_section,
    slices_section,
    target_cells,
    with_slices,
)
from jaccard_eval.features.pixels import PixelClassRow, PixelProtocol, PixelsResult
from jaccard_eval.features.pixels.counting import MapDifference, MapReader
from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import record_failures
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Column,
    DataCell,
    Gallery,
    GalleryImage,
    KeyValues,
    Live,
    Note,
    Report,
    Section,
    Table,
    columns,
)
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import RIGHT, SIDE, WRONG, ClassColours, Panel, side_by_side
from jaccard_eval.report.sections import (
    findings_section,
    gates_headline,
    gates_section,
    ignored_text,
    listed_rows,
    metrics_headline,
    sorted_rows,
    undefined_notes,
)

IntArray = npt.NDArray[np.int64]

DEFAULT_IMAGES = 24
MOST_NAMED = 40  # classes of a legend


@dataclass(frozen=True, slots=True, eq=False)
class WorstMaps:
    """The pairs that differ most, and what reads them again."""

    pairs: tuple[MapDifference, ...]
    reader: MapReader
    findings: FindingLog = field(default_factory=FindingLog)  # on what could not be drawn

    def gallery(self, n: int, names: Sequence[str], classes: Sequence[int]) -> Gallery | None:
        """Return the first `n` pairs that differ; `classes` are numbers as in the maps, `names` their names."""
        import PIL

        images, seen = [], set[int]()
        colours = ClassColours(self.reader.colours)
        for pair in tracked([pair for pair in self.pairs if pair.wrong][:n], "label maps"):
            caption = differing(pair.wrong, pair.pixels)
            try:
                _, shown, panels = self.panels(pair, colours, SIDE)
                seen.update(np.unique(shown).tolist())
                size, drawn = side_by_side(panels)
            except DataError as error:
                record_failures([error], self.findings, severity=Severity.NOTE)
                size, drawn = (SIDE, SIDE), b""
            images.append(GalleryImage(pair.pair.name, size, (), drawn, caption=caption))
        named = [(name, colours.text(number)) for number, name in zip(classes, names, strict=True) if number in seen]
        legend = tuple(named[:MOST_NAMED])
        return Gallery(tuple(images), legend=legend, made_with=f"Pillow {PIL.__version__}") if images else None

    def panels(
        self, pair: MapDifference, colours: ClassColours, longer: int
    ) -> tuple[tuple[int, int], list[IntArray], list[Panel]]:
        """Return width and height of a pair, the classes of both sides as they are shown, and its panels."""
        gt, pred = self.reader.read(pair.pair)
        height, width = gt.shape
        scale = max(1.0, max(height, width) / longer)
        rows, columns = max(1, math.floor(height / scale)), max(1, math.floor(width / scale))
        # Maps show the pixel in the middle of each cell; differences how much of a cell differs, so none gets lost.
        middle_y, middle_x = (
            ((np.arange(n) + 0.5) * size / n).astype(np.int64) for n, size in ((rows, height), (columns, width))
        )
        first_x = (np.arange(columns) * width) // columns
        shown: list[IntArray] = [np.full((rows, columns), NO_CLASS, dtype=np.int64) for _ in range(2)]
        wrong, cells, top = np.zeros((rows, columns)), np.zeros((rows, columns)), 0
        for strips in zip(gt.strips(), pred.strips(), strict=True):
            here = self.reader.classes_of(pair.pair, (gt, pred), strips)
            inside = np.flatnonzero((middle_y >= top) & (middle_y < top + len(here[0])))
            for side, values in zip(shown, here, strict=True):
                side[inside] = values[middle_y[inside] - top][:, middle_x]
            counts = self.reader.counted(*here)
            cell = ((top + np.arange(len(here[0]))) * rows) // height
            np.add.at(wrong, cell, np.add.reduceat(counts & (here[0] != here[1]), first_x, axis=1))
            np.add.at(cells, cell, np.add.reduceat(counts, first_x, axis=1))
            top += len(here[0])
        share = np.sqrt(np.divide(wrong, cells, out=np.zeros_like(wrong), where=cells > 0))[..., None]
        differences = np.asarray(RIGHT) * (1 - share) + np.asarray(WRONG) * share
        panels = [colours.paint(shown[0]), colours.paint(shown[1]), np.round(differences).astype(np.uint8)]
        return (width, height), shown, panels


def differing(wrong: int, pixels: int) -> str:
    """Return how much of a map is wrong, in words."""
    return f"{metric_text(100 * wrong / pixels, 1) if pixels else 0} % of {pixels:,} pixels differ"


def gallery_sections(worst: WorstMaps | None, options: ReportOptions, names: Sequence[str]) -> list[Section]:
    """Return the section of the worst maps; none where none differs, or none is asked for."""
    n = DEFAULT_IMAGES if options.gallery is None else options.gallery
    if worst is None or n == 0:
        return []
    classes = [*range(len(names))] if worst.reader.protocol.classes is not None else [int(name) for name in names]
    gallery = worst.gallery(n, names, classes)
    if gallery is None:
        return []
    about = Note("Ground truth, prediction, and where they differ (red); the maps with the largest share first.")
    live = Live("gallery", {"names": (), "score": gallery.score})
    return [Section("Label maps", (about, gallery, Note(f"Drawn by {gallery.made_with}."), live), key="images")]


ALL_CLASSES = "all"
UNBOUNDED = (math.nan, math.nan)
FEW_CLASSES = 30  # up to this many, the classes are listed without being asked for
COUNTS = ("gt_pixels", "pred_pixels")
SORT_COUNTS = {"gt": "gt_pixels", "pred": "pred_pixels"}


def build_report(result: PixelsResult, options: ReportOptions) -> Report:
    """Return the report of `result` for people."""
    heads: tuple[Column, ...] = (Column("metric"), Column("value", "metric"), Column("pixels", "count"))
    drawn, notes = result.bootstrap, undefined_notes(result.metrics.items())
    if drawn is not None:
        heads = (*heads[:2], *columns("metric", "low", "high"), *heads[2:])
        notes += interval_notes(result.metrics, drawn)
    rows = tuple(
        (name, metric.value, *((metric.interval or UNBOUNDED) if drawn else ()), metric.n)
        for name, metric in result.metrics.items()
    )
    summary = Section("Summary", (Table(heads, rows), *notes))
    sections = [_inputs(result), _rules(result, verbose=options.verbose), summary, *gates_section(result.gates)]
    if options.lists_classes or len(result.per_class) <= FEW_CLASSES:
        sections += _classes(result, options)
    if drawn is not None and options.per_class:
        sections.append(intervals_section(result.per_class, drawn))
    if result.slices:
        sections.append(slices_section(result.slices))
    sections += findings_section(result.findings)
    values = {name: metric.value for name, metric in result.metrics.items()}
    headline = gates_headline(result.gates) if result.gates else metrics_headline(values, result.findings)
    title, usual = f"jaccard-eval {result.version}, label maps", tuple(PixelProtocol().signature_parts())
    return Report(title, tuple(sections), result.signature, headline=headline, usual=usual)


def page_sections(result: PixelsResult, options: ReportOptions) -> list[Section]:
    """Return what only a page has: the maps that differ most."""
    return gallery_sections(result.images, options, [row.name for row in result.per_class])


def build_data(result: PixelsResult, options: ReportOptions) -> DataTable:
    """Return one row for all classes, then one per class, in the order of `options.sort`; then one for each slice."""
    target = target_cells(result.bootstrap)
    bounded = (*MAP_CLASS_METRICS, *result.metrics) if target else ()
    header = ("class", *COUNTS, *MAP_CLASS_METRICS, *result.metrics, *bound_columns(bounded))
    header = (*header, *((TARGET_COLUMN,) if target else ()))
    totals = [sum(getattr(row, count) for row in result.per_class) for count in COUNTS]
    pooled = (
        ALL_CLASSES,
        *totals,
        *("" for _ in MAP_CLASS_METRICS),
        *(metric.value for metric in result.metrics.values()),
        *bound_cells(result.metrics, bounded),
        *target,
    )
    rows = (
        (*_class_cells(row), *("" for _ in result.metrics), *bound_cells(row.values, bounded), *target)
        for row in sorted_rows(result.per_class, options.sort, SORT_COUNTS, MAP_CLASS_METRICS)
    )
    return with_slices(header, [pooled, *rows], result.slices, all_classes=ALL_CLASSES)


def _inputs(result: PixelsResult) -> Section:
    counts = columns("count", "images", "pixels", "classes")
    heads = (*columns("word", "side", "format"), *counts, Column("path", "path"))
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    rows = tuple((name, side.format, side.images, side.pixels, side.classes, side.path) for name, side in sides)
    notes = [Note(f"images paired by {result.image_strategy}")]
    notes += [Note(f"{name}: ignored: {ignored_text(side.ignored)}") for name, side in sides if side.ignored]
    return Section("Inputs", (Table(heads, rows), *notes))


def _rules(result: PixelsResult, *, verbose: bool) -> Section:
    # Stated in every report: tools differ in these rules, and scores that go by different ones cannot be compared.
    rules = result.protocol
    named = "all values found" if rules.classes is None else f"{len(rules.classes):,} (named)"
    ignored = ", ".join(map(str, rules.ignore)) or "none"
    reduced = {None: "no", "gt": "ground truth only", "both": "both sides"}[rules.reduce_zero]
    pairs = [("classes", named)]
    pairs += [("ignored values", ignored)] if rules.ignore or verbose else []
    pairs += [("values count from 1", reduced)] if rules.reduce_zero or verbose else []
    pairs += [
        ("background", rules.background_rule),
        ("means", "over the classes present: on either side for IoU, in the ground truth for accuracy"),
    ]
    return Section("Rules", (KeyValues(tuple(pairs)),))


def _classes(result: PixelsResult, options: ReportOptions) -> list[Section]:
    heads = (Column("class", "name"), *columns("count", *COUNTS), *columns("metric", *MAP_CLASS_METRICS))
    sections = []
    for listed in listed_rows(result.per_class, options, SORT_COUNTS, MAP_CLASS_METRICS):
        table = Table(heads, tuple(map(_class_cells, listed.rows)), bars="IoU")
        undefined = ((row.name, row.values["IoU"]) for row in listed.rows)
        sections.append(Section(listed.title, (table, *undefined_notes(undefined), *listed.more)))
    return sections


def _class_cells(row: PixelClassRow) -> tuple[DataCell, ...]:
    return row.name, row.gt_pixels, row.pred_pixels, *(row.values[name].value for name in MAP_CLASS_METRICS)
