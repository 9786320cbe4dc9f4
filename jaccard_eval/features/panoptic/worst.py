"""The images whose segments match worst, drawn for a page: ground truth, prediction, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.features.panoptic.compute import VOID, IntArray, Segments
from jaccard_eval.features.panoptic.counting import (
    CountedImages,
    ImageCount,
    ImagePair,
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
from jaccard_eval.report.model import Gallery, GalleryImage, Live, Note, Section
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import SIDE, ClassColours, Colour, Panel, side_by_side

DEFAULT_IMAGES = 24
MOST_NAMED = 40  # classes of a legend
# What became of a pixel's segments; where one is missed and another false, the false one shows.
FOUND, MISSED, FALSE, IGNORED = (235, 237, 240), (214, 30, 30), (242, 140, 26), (188, 198, 224)
STATES: tuple[tuple[str, Colour], ...] = (
    ("found", FOUND),
    ("missed (FN)", MISSED),
    ("false (FP)", FALSE),
    ("ignored: void, crowd", IGNORED),
)
TINT = 0.55  # of a class over its image
EDGE = 0.55  # what is left of a colour where segments meet


@dataclass(frozen=True, slots=True, eq=False)
class WorstSegments:
    """The images with the lowest PQ, and what reads them again."""

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
        colours = ClassColours(
            {
                row: category.colour
                for row, category in enumerate(self.reader.sides[0].categories)
                if category.colour is not None
            }
        )
        images, seen = [], set[int]()
        if self.photos is not None:
            self.photos.mention_missing(range(min(n, len(self.counts))))
        for row, count in enumerate(tracked(self.counts[:n], "segments")):
            caption = f"PQ {metric_text(count.quality, 3)}: {count.text}"
            try:
                size, drawn = side_by_side(self._panels(row, count.pair, colours, seen))
            except DataError as error:
                record_failures([error], self.findings, severity=Severity.NOTE)
                size, drawn = (SIDE, SIDE), b""
            images.append(GalleryImage(count.pair.name, size, (), drawn, caption=caption))
        classes = [(names[label], colours.text(label)) for label in sorted(seen - {NO_CLASS})]
        states = tuple((title, "#{:02x}{:02x}{:02x}".format(*colour)) for title, colour in STATES)
        legend = (*states, *classes[:MOST_NAMED])
        return Gallery(tuple(images), legend=legend, made_with=f"Pillow {PIL.__version__}") if images else None

    def _panels(self, row: int, pair: ImagePair, colours: ClassColours, seen: set[int]) -> list[Panel]:
        read = self.reader.match(pair)
        height, width = read.maps[0].shape
        scale = max(1.0, max(height, width) / SIDE)
        shape = max(1, int(height / scale)), max(1, int(width / scale))
        # Segments are shown by the pixel in the middle of each cell.
        middles = [
            ((np.arange(n) + 0.5) * size / n).astype(np.int64) for n, size in zip(shape, (height, width), strict=True)
        ]
        rows = [
            _rows(values[np.ix_(*middles)], segments) for values, segments in zip(read.maps, read.segments, strict=True)
        ]
        photo = self._photo(row, shape)
        panels = []
        for side, segments in zip(rows, read.segments, strict=True):
            labels = np.append(segments.label, NO_CLASS)[side]
            seen.update(np.unique(labels).tolist())
            panels.append(_outlined(_tinted(colours.paint(labels), photo, labels != NO_CLASS), side))
        return [*panels, _outlined(_states(read, rows), rows[0], rows[1])]

    def _photo(self, row: int, shape: tuple[int, int]) -> Panel | None:
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


def gallery_sections(worst: WorstSegments | None, n: int | None) -> list[Section]:
    """Return the section of the worst images; none where all match, or none is asked for."""
    gallery = None if worst is None or n == 0 else worst.gallery(DEFAULT_IMAGES if n is None else n)
    if gallery is None:
        return []
    about = Note("Ground truth, prediction, and what became of the segments; the images with the lowest PQ first.")
    live = Live("gallery", {"names": (), "score": gallery.score})
    return [Section("Images", (about, gallery, Note(f"Drawn by {gallery.made_with}."), live), key="images")]
