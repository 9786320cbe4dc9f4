"""The label maps that differ most, drawn for a page: ground truth, prediction, and where they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from jaccard_eval.features.pixels.counting import MapDifference, MapReader
from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import record_failures
from jaccard_eval.report.model import Gallery, GalleryImage, Live, Note, Section
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import RIGHT, SIDE, WRONG, ClassColours, Panel, side_by_side

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
            share = metric_text(100 * pair.wrong / pair.pixels, 1)
            caption = f"{share} % of {pair.pixels:,} pixels differ"
            try:
                size, drawn = self._drawn(pair, colours, seen)
            except DataError as error:
                record_failures([error], self.findings, severity=Severity.NOTE)
                size, drawn = (SIDE, SIDE), b""
            images.append(GalleryImage(pair.pair.name, size, (), drawn, caption=caption))
        named = [(name, colours.text(number)) for number, name in zip(classes, names, strict=True) if number in seen]
        legend = tuple(named[:MOST_NAMED])
        return Gallery(tuple(images), legend=legend, made_with=f"Pillow {PIL.__version__}") if images else None

    def _drawn(self, pair: MapDifference, colours: ClassColours, seen: set[int]) -> tuple[tuple[int, int], bytes]:
        """Return three panels next to each other as a PNG, and its size."""
        return side_by_side(self._panels(pair, colours, seen))

    def _panels(self, pair: MapDifference, colours: ClassColours, seen: set[int]) -> list[Panel]:
        gt, pred = self.reader.read(pair.pair)
        height, width = gt.shape
        scale = max(1.0, max(height, width) / SIDE)
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
        for side in shown:
            seen.update(np.unique(side).tolist())
        share = np.sqrt(np.divide(wrong, cells, out=np.zeros_like(wrong), where=cells > 0))[..., None]
        differences = np.asarray(RIGHT) * (1 - share) + np.asarray(WRONG) * share
        return [colours.paint(shown[0]), colours.paint(shown[1]), np.round(differences).astype(np.uint8)]


def gallery_sections(worst: WorstMaps | None, n: int | None, names: Sequence[str]) -> list[Section]:
    """Return the section of the worst maps; none where none differs, or none is asked for."""
    if worst is None or n == 0:
        return []
    classes = [*range(len(names))] if worst.reader.protocol.classes is not None else [int(name) for name in names]
    gallery = worst.gallery(DEFAULT_IMAGES if n is None else n, names, classes)
    if gallery is None:
        return []
    about = Note("Ground truth, prediction, and where they differ (red); the maps with the largest share first.")
    live = Live("gallery", {"names": (), "score": gallery.score})
    return [Section("Label maps", (about, gallery, Note(f"Drawn by {gallery.made_with}."), live), key="images")]
