"""From text files of DOTA to the draft: the upright box around each oriented one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.errors import Severity, Where, counted, shown
from jaccard_eval.formats import ReadOptions, _files
from jaccard_eval.formats._csv.numbers import parse_numbers
from jaccard_eval.formats._dota.sources import SIDES, split_line
from jaccard_eval.formats._draft import Draft, RawBoxes
from jaccard_eval.formats._yolo.images import list_images
from jaccard_eval.formats._yolo.sources import folder_source, require_labels

NAMES = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
DIFFICULT = frozenset({"0", "1", "2"})  # 2: newer releases mark the hardest so
UPRIGHT = 1e-9  # share of the box around it by which an upright box may be smaller: rounding


@dataclass(slots=True)
class _Lines:
    """The lines of all files: fields as text, and where each stands."""

    places: list[tuple[str, int]] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # eight of each line
    scores: list[str] = field(default_factory=list)
    difficult: list[bool] = field(default_factory=list)
    uneven: list[tuple[Where, str]] = field(default_factory=list)

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a line."""
        path, line = self.places[row]
        return Where(path, line=line, field=name)

    def add_object(self, image: str, place: tuple[str, int], fields: list[str]) -> None:
        """Add a line of a label file; the category may have blanks."""
        flag = fields[-1] if len(fields) > SIDES + 1 and fields[-1] in DIFFICULT else ""
        category = " ".join(fields[SIDES : len(fields) - bool(flag)])
        if not category:
            self.uneven.append((Where(place[0], line=place[1]), f"expected 9 or 10 columns, got {len(fields)}"))
            return
        self._add_row(image, place, category, fields[:SIDES])
        self.difficult.append(flag not in ("", "0"))

    def add_result(self, label: str, place: tuple[str, int], fields: list[str]) -> None:
        """Add a line of a result file; the name of an image may have blanks."""
        if len(fields) < SIDES + 2:
            detail = f"expected 10 columns (image score x1 y1 ... x4 y4), got {len(fields)}"
            self.uneven.append((Where(place[0], line=place[1]), detail))
            return
        self._add_row(" ".join(fields[: -SIDES - 1]), place, label, fields[-SIDES:])
        self.scores.append(fields[-SIDES - 1])

    def _add_row(self, image: str, place: tuple[str, int], label: str, numbers: list[str]) -> None:
        self.places.append(place)
        self.images.append(image)
        self.labels.append(label)
        self.numbers += numbers


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files on the side of the ground truth.
    """
    source = folder_source(path, draft.findings)
    require_labels(source, options.role, draft.findings)
    images = list_images(source, options, draft.findings)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    lines = _Lines()
    for key, place, fields in _fields(source.files, draft):
        lines.add_object(key, place, fields)
    names = sorted(set(lines.labels))
    draft.set_classes(names, names)
    _set_boxes(lines, draft)


def read_results(files: dict[str, Path], draft: Draft, options: ReadOptions) -> None:
    """Add the classes and boxes of result files, by class, to the draft; an empty one is a class without boxes."""
    lines = _Lines()
    for label, place, fields in _fields(files, draft):
        lines.add_result(label, place, fields)
    images = sorted(set(lines.images))
    sizes = unknown_sizes(len(images))
    if options.images is not None:
        options.images.fill_sizes(sizes, images, draft.findings)
    draft.set_images(images, sizes=sizes, listed=False)
    draft.set_classes(list(files), list(files))
    _set_boxes(lines, draft)


def _fields(files: dict[str, Path], draft: Draft) -> list[tuple[str, tuple[str, int], list[str]]]:
    """Return key, place and fields of every line that is neither blank nor a header."""
    return [
        (key, (str(path), number), fields)
        for key, path, lines in _files.read_each(files, partial(_files.read_lines, empty_ok=True), draft.findings)
        for number, line in enumerate(lines, start=1)
        if (fields := split_line(line))
    ]


def _set_boxes(lines: _Lines, draft: Draft) -> None:
    fix = "Write x1 y1 x2 y2 x3 y3 x4 y4 category difficult; in results image, score and eight numbers."
    draft.findings.add_rows(Severity.ERROR, "columns", range(len(lines.uneven)), lines.uneven.__getitem__, fix=fix)
    points = _numbers(lines, lines.numbers, NAMES, draft).reshape(-1, 4, 2)  # (n, points, x and y)
    corners = np.concatenate((points.min(axis=1), points.max(axis=1)), axis=1) if len(points) else np.zeros((0, 4))
    _note_oriented(points, corners, draft)
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
            coords=corners,
            score=_numbers(lines, lines.scores, ("score",), draft) if lines.scores else None,
            difficult=np.array(lines.difficult, dtype=np.bool_) if lines.difficult else None,
            encoding="xyxy",
            units="px",
            place=lines.where,
        )
    )


def _numbers(lines: _Lines, texts: list[str], names: tuple[str, ...], draft: Draft) -> FloatArray:
    """Return the numbers of columns, which stand in `texts` line by line."""
    numbers, bad = parse_numbers(np.array(texts, dtype=np.object_))
    draft.findings.add_rows(
        Severity.ERROR,
        "number-invalid",
        bad,
        lambda index: (
            lines.where(index // len(names), names[index % len(names)]),
            f"{shown(texts[index])} is not a plain finite number",
        ),
        fix="Write plain decimal numbers with a point.",
    )
    return numbers


def _note_oriented(points: FloatArray, corners: FloatArray, draft: Draft) -> None:
    """Say how many boxes are smaller than the upright box around them."""
    following = np.roll(points, -1, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        cross = points[..., 0] * following[..., 1] - following[..., 0] * points[..., 1]
        area = np.abs(cross.sum(axis=1)) / 2  # of a polygon, by its corners
        hull = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        n_oriented = int(np.count_nonzero(area < hull * (1 - UPRIGHT)))
    if n_oriented:
        detail = f"read as the boxes around them: {counted(n_oriented, 'oriented box', 'oriented boxes')}"
        draft.findings.note("outline", Where(draft.path), detail)
