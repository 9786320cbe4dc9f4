"""Reports of an evaluation of segments: inputs, rules, scores, classes, differences, slices, the worst images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.document import DataTable, MetricValue
from jaccard_eval.data.result import TARGET_COLUMN
from jaccard_eval.features.panoptic import (
    COUNTS,
    QUALITIES,
    VOID,
    Against,
    IntArray,
    PanopticClassRow,
    PanopticProtocol,
    PanopticResult,
    Segments,
)
from jaccard_eval.features.panoptic.counting import (
    CountedImages,
    ImageCount,
    Map,
    MatchedImage,
    PanopticReader,
)
from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import record_failures
from jaccard_eval.reading.thumbnails import ImageFiles
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Column,
    DataCell,
    Gallery,
    GalleryImage,
    Headline,
    KeyValues,
    Live,
    Note,
    Report,
    Section,
    Table,
    columns,
)
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import SIDE, ClassColours, Colour, Panel, side_by_side
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

DEFAULT_IMAGES = 24
MOST_NAMED = 40  # classes of a legend
# What became of a pixel's segments; where one is missed and another false, the false one shows.
FOUND, MISSED, FALSE, IGNORED = (235, 237, 240), (46, 128, 220), (242, 140, 26), (200, 200, 206)
STATES: tuple[tuple[str, Colour], ...] = (
    ("found", FOUND),
    ("missed (FN)", MISSED),
    ("false (FP)", FALSE),
    ("ignored: void, crowd", IGNORED),
)
MOST_SHOWN = 200  # images that a page can show
TINT = 0.55  # of a class over its image
EDGE = 0.55  # what is left of a colour where segments meet


@dataclass(frozen=True, slots=True, eq=False)
class WorstSegments:
    """All images, the lowest PQ first, and what reads them again."""

    counts: tuple[ImageCount, ...]
    reader: PanopticReader
    photos: ImageFiles | None = None  # of `counts`, in their order, to draw segments over
    findings: FindingLog = field(default_factory=FindingLog)  # on what could not be drawn

    @classmethod
    def of(cls, counted: CountedImages, photos: Path | None) -> WorstSegments:
        """Take the worst images of an evaluation, with the folder that holds them, if any."""
        if photos is None:
            return cls(counted.worst, counted.reader)
        names = tuple(count.pair.name for count in counted.worst)
        sizes = unknown_sizes(len(names))
        for row, count in enumerate(counted.worst):
            if count.pair.gt.size is not None:
                sizes[row] = count.pair.gt.size
        files = ImageFiles((photos,), names, sizes)
        return cls(counted.worst, counted.reader, files, files.findings)

    def gallery(self, n: int) -> Gallery | None:
        """Return the first `n` images."""
        import PIL

        names = [category.name for category in self.reader.sides[0].categories]
        colours, images, seen = self.colours, [], set[int]()
        shown = self.shown(n)
        for row, count in enumerate(tracked(shown, "segments")):
            caption = self.caption(count)
            try:
                read = self.reader.match(count.pair)
                panels = self.panels(row, read, self.rows(read, SIDE))
                for side in read.segments:
                    seen.update(side.label.tolist())
                size, drawn = side_by_side(panels)
            except DataError as error:
                record_failures([error], self.findings, severity=Severity.NOTE)
                size, drawn = (SIDE, SIDE), b""
            images.append(GalleryImage(count.pair.name, size, (), drawn, caption=caption))
        classes = [(names[label], colours.text(label)) for label in sorted(seen)]
        states = tuple((title, "#{:02x}{:02x}{:02x}".format(*colour)) for title, colour in STATES)
        legend = (*states, *classes[:MOST_NAMED])
        return Gallery(tuple(images), legend=legend, made_with=f"Pillow {PIL.__version__}") if images else None

    @property
    def colours(self) -> ClassColours:
        """The colours of the classes by their rows."""
        categories = enumerate(self.reader.sides[0].categories)
        return ClassColours({row: category.colour for row, category in categories if category.colour is not None})

    def shown(self, n: int) -> tuple[ImageCount, ...]:
        """Return the first `n` images that differ, as many as a page can show, and mention those without a file."""
        shown = tuple(count for count in self.counts[: min(n, MOST_SHOWN)] if count.wrong)
        if self.photos is not None:
            self.photos.mention_missing(range(len(shown)))
        return shown

    @staticmethod
    def caption(count: ImageCount) -> str:
        """Return the PQ of an image, and what became of its segments."""
        return f"PQ {metric_text(count.quality, 3)}: {count.text}"

    @staticmethod
    def rows(read: MatchedImage, longer: int) -> list[IntArray]:
        """Return the row of the segment of each pixel on both sides, of a smaller map with a `longer` side."""
        height, width = read.maps[0].shape
        scale = max(1.0, max(height, width) / longer)
        shape = max(1, int(height / scale)), max(1, int(width / scale))
        # Segments are shown by the pixel in the middle of each cell.
        middles = [
            ((np.arange(n) + 0.5) * size / n).astype(np.int64) for n, size in zip(shape, (height, width), strict=True)
        ]
        return [
            _rows(values[np.ix_(*middles)], segments) for values, segments in zip(read.maps, read.segments, strict=True)
        ]

    def panels(self, row: int, read: MatchedImage, rows: Sequence[IntArray]) -> list[Panel]:
        """Return the panels of an image by its row, of which the rows of segments are known."""
        photo, colours, panels = self._photo(row, rows[0].shape), self.colours, []
        for side, segments in zip(rows, read.segments, strict=True):
            labels = np.append(segments.label, NO_CLASS)[side]
            panels.append(_outlined(_tinted(colours.paint(labels), photo, labels != NO_CLASS), side))
        return [*panels, _outlined(_states(read, rows), rows[0], rows[1])]

    def _photo(self, row: int, shape: tuple[int, ...]) -> Panel | None:
        opened = None if self.photos is None else self.photos.upright(row)
        if opened is None:
            return None
        height, width = shape
        return np.asarray(opened[0].convert("RGB").resize((width, height)), dtype=np.uint8)


def _rows(values: Map, segments: Segments) -> IntArray:
    distinct, places = np.unique(values, return_inverse=True)
    return segments.rows_of(distinct.astype(np.int64))[places.reshape(values.shape)]


def _tinted(panel: Panel, photo: Panel | None, is_segment: npt.NDArray[np.bool_]) -> Panel:
    """Lay the colours of segments over the image that they are of; void shows the image as it is."""
    if photo is None:
        return panel
    mixed = np.round(TINT * panel + (1 - TINT) * photo).astype(np.uint8)
    return np.where(is_segment[..., None], mixed, photo)


def _outlined(panel: Panel, *maps: IntArray) -> Panel:
    """Darken where segments meet, which two of one class would not show."""
    edge = np.zeros(panel.shape[:2], dtype=np.bool_)
    for rows in maps:
        edge[:, 1:] |= rows[:, 1:] != rows[:, :-1]
        edge[1:] |= rows[1:] != rows[:-1]
    return np.where(edge[..., None], np.round(EDGE * panel).astype(np.uint8), panel)


def _states(read: MatchedImage, rows: Sequence[IntArray]) -> Panel:
    matches, (gt, pred) = read.matches, read.segments
    of_gt = np.zeros((len(gt.ids) + 1, 3), dtype=np.uint8)
    of_gt[:] = FOUND
    of_gt[VOID] = IGNORED
    of_gt[:-1][gt.crowd] = IGNORED
    of_gt[matches.fn] = MISSED
    is_false = np.zeros(len(pred.ids) + 1, dtype=np.bool_)
    is_false[matches.fp] = True
    return np.where(is_false[rows[1]][..., None], np.array(FALSE, dtype=np.uint8), of_gt[rows[0]])


def gallery_sections(worst: WorstSegments | None, options: ReportOptions) -> list[Section]:
    """Return the section of the worst images; none where all match, or none is asked for."""
    n = DEFAULT_IMAGES if options.gallery is None else options.gallery
    gallery = None if worst is None or n == 0 else worst.gallery(n)
    if gallery is None:
        return []
    about = Note("Ground truth, prediction, and what became of the segments; the images with the lowest PQ first.")
    live = Live("gallery", {"names": (), "score": gallery.score})
    return [Section("Images", (about, gallery, Note(f"Drawn by {gallery.made_with}."), live), key="images")]


ALL_CLASSES = "all"
FEW_CLASSES = 30  # up to this many, the classes are listed without being asked for
SORT_COUNTS = {"gt": "gt", "pred": "pred", **{name: name.lower() for name in COUNTS}}
SUBSETS = {"all": "", "things": "_things", "stuff": "_stuff"}


def build_report(result: PanopticResult, options: ReportOptions) -> Report:
    """Return the report of `result` for people."""
    sections = [_inputs(result), _rules(result), _summary(result), *gates_section(result.gates)]
    if result.against is not None:
        sections += _differences(result.against, options)
    if options.lists_classes or len(_present(result)) <= FEW_CLASSES:
        sections += _classes(result, options)
    if result.bootstrap is not None and options.per_class:
        from jaccard_eval.features.bootstrap.report import intervals_section

        sections.append(intervals_section(result.per_class, result.bootstrap))
    if result.slices:
        from jaccard_eval.features.bootstrap.report import slices_section

        sections.append(slices_section(result.slices))
    sections += findings_section(result.findings)
    title, usual = f"jaccard-eval {result.version}, panoptic", tuple(PanopticProtocol().signature_parts())
    return Report(title, tuple(sections), result.signature, headline=_headline(result), usual=usual)


def page_sections(result: PanopticResult, options: ReportOptions) -> list[Section]:
    """Return what only a page has: the images whose segments match worst."""
    return gallery_sections(result.images, options)


def build_data(result: PanopticResult, options: ReportOptions) -> DataTable:
    """Return one row for all classes, then one per class, in the order of `options.sort`; then one for each slice."""
    from jaccard_eval.features.bootstrap.report import (
        bound_cells,
        bound_columns,
        target_cells,
        with_slices,
    )

    metrics = tuple(result.metrics)
    bounded, target = metrics if result.bootstrap is not None else (), target_cells(result.bootstrap)

    def cells(values: Mapping[str, MetricValue]) -> list[DataCell]:
        numbers: list[DataCell] = [values[name].value if name in values else "" for name in metrics]
        return [*numbers, *bound_cells(values, bounded), *target]

    rows = sorted_rows(result.per_class, options.sort, SORT_COUNTS, QUALITIES)
    totals = [sum(getattr(row, name) for row in rows) for name in ("gt", "pred", "tp", "fp", "fn")]
    target_head = (TARGET_COLUMN,) if target else ()
    header = ("class", "kind", "gt", "pred", *COUNTS, *metrics, *bound_columns(bounded), *target_head)
    table: list[tuple[DataCell, ...]] = [(ALL_CLASSES, ALL_CLASSES, *totals, *cells(result.metrics))]
    table += [(row.name, row.kind, row.gt, row.pred, row.tp, row.fp, row.fn, *cells(row.values)) for row in rows]
    return with_slices(header, table, result.slices, all_classes=ALL_CLASSES)


def _headline(result: PanopticResult) -> Headline:
    if result.gates:
        return gates_headline(result.gates)
    against = result.against
    if against is not None:
        from jaccard_eval.features.compare.report import verdict_headline

        return verdict_headline(against.baseline.name, [against.versus], against.resamples)
    values = {name: metric.value for name, metric in result.metrics.items()}
    return metrics_headline(values, result.findings)


def _inputs(result: PanopticResult) -> Section:
    counts = columns("count", "images", "segments", "crowds", "classes")
    heads = (*columns("word", "side", "format"), *counts, Column("path", "path"))
    sides = (("ground truth", result.gt), ("predictions", result.pred))
    rows = tuple(
        (name, side.format, side.images, side.segments, side.crowds, side.classes, side.path) for name, side in sides
    )
    notes = [Note(f"{name}: maps from {side.masks}") for name, side in sides if side.masks != side.path]
    notes += [Note(f"{name}: ignored: {ignored_text(side.ignored)}") for name, side in sides if side.ignored]
    return Section("Inputs", (Table(heads, rows), *notes))


def _rules(result: PanopticResult) -> Section:
    # Stated in every report: scores that go by other rules cannot be compared.
    rules = result.protocol
    overlap = "IoU of segments above 0.5, in one class"
    if rules.dilation_ratio is not None:
        width = f"{rules.dilation_ratio:g} of the diagonal"
        overlap = (
            f"IoU of segments and IoU of their boundaries ({width}) above 0.5, in one class; the smaller one counts"
        )
    pairs = (
        ("match", overlap),
        ("void", "in no union; predictions with more than half on void or on the crowd of their class are ignored"),
        ("means", "over the classes with segments on either side"),
    )
    return Section("Rules", (KeyValues(pairs),))


def _summary(result: PanopticResult) -> Section:
    drawn = result.bootstrap
    heads = [Column("classes"), *columns("metric", *QUALITIES), Column("n", "count"), Column("gt", "count")]
    rows: list[tuple[Cell, ...]] = []
    for title, end in SUBSETS.items():
        metrics = [result.metrics[f"{name}{end}"] for name in QUALITIES]
        of_kind = [row for row in result.per_class if end == "" or row.is_thing is (end == "_things")]
        present = sum(1 for row in of_kind if row.gt + row.pred)
        rows.append((title, *(metric.value for metric in metrics), present, metrics[0].n))
    blocks: list[Table | Note] = [Table(tuple(heads), tuple(rows))]
    blocks += [*undefined_notes(result.metrics.items()), Note("n: classes with segments; gt: segments to find")]
    if drawn is not None:
        from jaccard_eval.features.bootstrap.report import interval_notes

        bounds = tuple(
            (name, metric.value, *metric.interval)
            for name, metric in result.metrics.items()
            if metric.interval is not None
        )
        blocks += [
            Table((Column("metric"), *columns("metric", "value", "low", "high")), bounds),
            *interval_notes(result.metrics, drawn),
        ]
    return Section("Summary", tuple(blocks))


def _differences(against: Against, options: ReportOptions) -> list[Section]:
    from jaccard_eval.features.compare.report import delta_columns, delta_row

    drawn, versus = against.resamples, against.versus
    values = delta_columns(against.baseline.name, [versus.contender.name], drawn)
    table = Table(
        (Column("metric"), *values, Column("gt", "count")),
        tuple(delta_row([delta], drawn) for delta in versus.summary),
    )
    about = Note(f"baseline: {against.baseline.path}")
    sections = [Section("Difference", (table, about))]
    movers = versus.movers("PQ")
    if movers:
        shown = movers if options.lists_classes else movers[:10]
        rows: list[tuple[Cell, ...]] = [(delta.class_name or "", *delta_row([delta], drawn)[1:]) for delta in shown]
        hidden = len(movers) - len(shown)
        more = (Note(f"and {hidden:,} more; --per-class lists all"),) if hidden else ()
        heads = (Column("class", "name"), *values, Column("gt", "count"))
        sections.append(Section("Classes that changed most in PQ", (Table(heads, tuple(rows)), *more)))
    if versus.slices:
        from jaccard_eval.features.compare.report import slices_section

        sections.append(slices_section("Difference by slice", against.baseline, [versus], drawn))
    return sections


def _classes(result: PanopticResult, options: ReportOptions) -> list[Section]:
    heads = (
        *(Column("class", "name"), Column("kind", "word")),
        *(*columns("count", "gt", "pred", *COUNTS), *columns("metric", *QUALITIES)),
    )
    sections = []
    absent = [(row.name, row.values["PQ"]) for row in result.per_class if not row.gt + row.pred]
    for listed in listed_rows(_present(result), options, SORT_COUNTS, QUALITIES):
        table = Table(heads, tuple(map(_class_cells, listed.rows)), bars="PQ")
        sections.append(Section(listed.title, (table, *undefined_notes(absent), *listed.more)))
    return sections


def _present(result: PanopticResult) -> list[PanopticClassRow]:
    """Return the classes with segments on either side: of COCO's 133, small sets have few."""
    return [row for row in result.per_class if row.gt + row.pred]


def _class_cells(row: PanopticClassRow) -> tuple[DataCell, ...]:
    counts = (row.gt, row.pred, row.tp, row.fp, row.fn)
    return row.name, row.kind, *counts, *(row.values[name].value for name in QUALITIES)
