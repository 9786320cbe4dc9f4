"""Result files of Pascal VOC: a text file per class, a line per detection: image, score, left, top, right, bottom."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.errors import Severity, Where, shown
from jaccard_eval.formats import ReadOptions, _files
from jaccard_eval.formats._csv.numbers import parse_numbers
from jaccard_eval.formats._draft import Draft, RawBoxes
from jaccard_eval.formats._voc.sources import result_files

COLUMNS = ("score", "left", "top", "right", "bottom")  # behind the image


@dataclass(slots=True)
class _Lines:
    """The lines of all files: fields as text, and where each stands."""

    files: list[Path] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # five of each line

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a line."""
        return Where(str(self.files[row]), line=self.lines[row], field=name)


def read_results(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the classes and boxes of the result files in a folder to the draft; an empty file is a class without boxes.

    Raises
    ------
    DataError
        When a file cannot be read; problems of lines are among the draft's findings.
    """
    files = result_files(path)
    lines = _read_lines(files, draft)
    numbers, bad = parse_numbers(np.array(lines.numbers, dtype=np.object_))
    draft.findings.add_rows(
        Severity.ERROR,
        "number-invalid",
        bad,
        lambda index: (
            lines.where(index // 5, COLUMNS[index % 5]),
            f"{shown(lines.numbers[index])} is not a plain finite number",
        ),
        fix="Write plain decimal numbers with a point.",
    )
    table = numbers.reshape(-1, 5)  # (n, score and corners)
    images = sorted(set(lines.images))
    sizes = unknown_sizes(len(images))
    if options.images is not None:
        options.images.fill_sizes(sizes, images, draft.findings)
    draft.set_images(images, sizes=sizes, listed=False)
    draft.set_classes(list(files), list(files))
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
            coords=table[:, 1:],
            score=table[:, 0],
            encoding="xyxy",
            units="px",
            place=lines.where,
            negative_size=Severity.WARNING,  # the development kit lets them match nothing
        )
    )


def _read_lines(files: dict[str, Path], draft: Draft) -> _Lines:
    lines = _Lines()
    uneven: list[tuple[Where, str]] = []
    for label, path, texts in _files.read_each(files, partial(_files.read_lines, empty_ok=True), draft.findings):
        for number, line in enumerate(texts, start=1):
            _add_line(lines, uneven, line.split(), label, Where(str(path), line=number))
    fix = "Write image, score, left, top, right and bottom, separated by blanks."
    draft.findings.add_rows(Severity.ERROR, "columns", range(len(uneven)), uneven.__getitem__, fix=fix)
    return lines


def _add_line(lines: _Lines, uneven: list[tuple[Where, str]], fields: list[str], label: str, where: Where) -> None:
    """Add a line; the name of an image may have blanks."""
    if not fields:
        return
    if len(fields) <= len(COLUMNS):
        uneven.append((where, f"expected 6 columns (image score left top right bottom), got {len(fields)}"))
        return
    lines.files.append(Path(where.path))
    lines.lines.append(where.line or 0)
    lines.labels.append(label)
    lines.images.append(" ".join(fields[: -len(COLUMNS)]))
    lines.numbers += fields[-len(COLUMNS) :]
