"""A folder of text labels from a data set: a file per image, a line per box, and the names of the classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.reading.files import is_label_name
from jaccard_eval.reading.writing import (
    below_shared_place,
    exact_coords,
    report_losses,
    report_rounded,
    require_file_names,
)
from jaccard_eval.text import quoted_value

CLASSES_FILE = "classes.txt"
CARRIED = ("sizes", "images", "names")  # sizes: fractions need none


def write_folder(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as text labels.

    Boxes are centre-size fractions where the data set was read from fractions or the sizes of all images are known;
    else pixels as they were read (corners when they were read from another format). Predictions end with their score.
    """
    report_losses(dataset, path, findings, CARRIED)
    files = _file_names(dataset, path, findings)
    numbers, names = _classes(dataset, path, findings)
    findings.raise_errors()
    coords = _coords(dataset, path, findings)
    boxes = dataset.boxes
    lines: list[list[str]] = [[] for _ in files]
    fields = coords if boxes.score is None else np.column_stack((coords, boxes.score))
    for image, label, row in zip(boxes.image.tolist(), boxes.label.tolist(), fields.tolist(), strict=True):
        lines[image].append(f"{numbers[label]} {' '.join(map(repr, row))}\n")  # repr has all digits, and no more
    contents = {f"{name}.txt": "".join(lines[row]) for row, name in enumerate(files)}
    if names:
        contents[CLASSES_FILE] = "".join(f"{name}\n" for name in names)
    replace_folder(path, {name: text.encode() for name, text in contents.items()})


def _file_names(dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return the label file of each image, without its suffix: that of its file name, else its key."""
    images = dataset.images
    written = [without_suffix(images.name(row)).replace("\\", "/") for row in range(len(images))]
    names = below_shared_place(written, path, findings)
    require_file_names(dataset, names, findings, is_usable=lambda name: is_label_name(f"{name}.txt"))
    return names


def _classes(dataset: Dataset, path: Path, findings: FindingLog) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of each class in label lines, and the lines of classes.txt: none where keys are indices.

    Where keys are no indices from 0, classes are numbered in their order, and named.
    """
    labels = dataset.labels
    indices = [key for key in labels.keys if isinstance(key, int) and key >= 0]
    where = Where(str(path), field="class")
    if not labels.named and len(indices) == len(labels):
        return indices, ()
    if indices != list(range(len(labels))):
        detail = f"classes are numbered 0 to {len(labels) - 1} in the order of their keys; {CLASSES_FILE} names them"
        findings.note("write-loss", where, detail)
    broken = [name for name in labels.names if not name.strip() or name != " ".join(name.splitlines()).strip()]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (
            Where(dataset.path, field="class"),
            f"{quoted_value(broken[row])} cannot be a line of {CLASSES_FILE}",
        ),
        fix="Rename the class: one line, no blanks at its ends.",
    )
    return list(range(len(labels))), labels.names


def _coords(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    """Return the numbers of the boxes (n, 4), and say how they are to be read and which lose their last bits."""
    sizes = dataset.images.sizes[dataset.boxes.image]
    kept_pixels = dataset.format == "yolo" and dataset.reading.units == "px"
    if dataset.units == "norm":
        coords, exact = exact_coords(dataset.boxes.xywh, "cxcywh")
    elif np.isfinite(sizes).all() and not kept_pixels:
        coords, exact = exact_coords(dataset.boxes.xywh, "cxcywh", sizes)
    else:
        encoding = dataset.reading.encoding if kept_pixels else "xyxy"
        coords, exact = exact_coords(dataset.boxes.xywh, encoding)
        fix = f"Read it with --{dataset.role}-units px --{dataset.role}-box {encoding}."
        findings.note("write-pixels", Where(str(path)), f"boxes are written in pixels, as {encoding}", fix=fix)
    report_rounded(exact, path, findings)
    return coords
