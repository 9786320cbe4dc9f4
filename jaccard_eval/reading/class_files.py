"""Results as a text file per class, a line per detection: the image, its score and the numbers of its box."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.errors import FindingLog, Where, shown
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._yolo.images import mention_other_files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import read_each, read_lines
from jaccard_eval.reading.folders import MAX_ENTRIES, scan_folder
from jaccard_eval.reading.text_boxes import Place, TextBoxes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a line holds.

    Parameters
    ----------
    columns : tuple of str
        Behind the image: the score, then the numbers of the box.
    all_columns : str
        As a message names them.
    fix : str
    split : callable
        From a line to its fields.
    """

    columns: tuple[str, ...]
    all_columns: str
    fix: str
    split: Callable[[str], list[str]] = str.split


def read_class_files(
    folder: Path, files: Mapping[str, Sequence[Path]], layout: Layout, draft: Draft, options: ReadOptions
) -> tuple[TextBoxes, FloatArray]:
    """Add the images and classes of result files, by class, to the draft; an empty one is a class without boxes.

    Returns
    -------
    lines : TextBoxes
    numbers : ndarray of float64, shape (n, columns)
    """
    lines = TextBoxes(layout.columns)
    chosen = _one_each(files, draft.findings)
    for label, path, texts in read_each(chosen, partial(read_lines, empty_ok=True), draft.findings):
        for number, text in enumerate(texts, start=1):
            if fields := layout.split(text):
                _add_line(lines, (str(path), number), label, fields, layout)
    images = sorted(set(lines.images))
    sizes = unknown_sizes(len(images))
    if options.images is not None:
        options.images.fill_sizes(sizes, images, draft.findings)
    draft.set_images(images, sizes=sizes, listed=False)
    draft.set_classes(list(files), list(files))
    mention_other_files(folder, _others(folder, files), draft)
    return lines, lines.read(draft.findings, fix=layout.fix)


def _one_each(files: Mapping[str, Sequence[Path]], findings: FindingLog) -> dict[str, Path]:
    """Return the first file of each class; results of several runs are none."""
    for label, (_, *more) in files.items():
        for path in more:
            detail = f"{shown(label)} has {1 + len(more)} result files"
            findings.error("label-twice", Where(str(path)), detail, fix="Pass the folder of one run.")
    return {label: paths[0] for label, paths in files.items()}


def _add_line(lines: TextBoxes, place: Place, label: str, fields: list[str], layout: Layout) -> None:
    """Add a line; the name of an image may have blanks."""
    n_behind = len(layout.columns)
    if len(fields) > n_behind:
        lines.add(place, " ".join(fields[:-n_behind]), label, fields[-n_behind:])
    else:
        lines.refuse(place, f"expected {1 + n_behind} columns ({layout.all_columns}), got {len(fields)}")


def _others(folder: Path, files: Mapping[str, Sequence[Path]]) -> list[str]:
    """Return the names of files that are no results."""
    known = {path.name for paths in files.values() for path in paths}
    others, _ = scan_folder(folder, lambda name: name not in known and not name.startswith("."), MAX_ENTRIES)
    return [path.name for path in others]
