"""Pascal VOC from a data set: ground truth as an XML file per image, predictions as a text file per class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import is_image_name, without_case, without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.formats._voc.annotations import CORNERS, SUFFIX
from jaccard_eval.reading.writing import (
    below_shared_place,
    exact_coords,
    first_rows,
    is_safe,
    number_rows,
    report_losses,
    report_rounded,
    require_file_names,
    require_names,
    require_pixels,
)
from jaccard_eval.text import quoted_value

RESULT_NAME = "comp4_det_test_{}.txt"  # competition 4: detection, trained on any data


def write_annotations(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an XML file per image, those without boxes included."""
    require_pixels(dataset, "Pascal VOC")
    report_losses(dataset, path, findings, ("sizes", "images", "difficult"))
    stems = below_shared_place(_stems(dataset), path, findings)
    require_file_names(dataset, stems, findings)
    _refuse_class_names(dataset, findings)
    findings.raise_errors()
    objects = _objects(dataset, _corners(dataset, path, findings))
    files = {f"{stem}{SUFFIX}": _document(dataset, row, objects[row]) for row, stem in enumerate(stems)}
    replace_folder(path, {name: text.encode() for name, text in files.items()})


def write_results(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a text file per class, those without boxes included."""
    require_pixels(dataset, "Pascal VOC")
    report_losses(dataset, path, findings, ("names",))
    require_names(dataset, "Pascal VOC", findings)
    _refuse_class_names(dataset, findings, as_file=True)
    stems = _stems(dataset)
    first = first_rows(stems)  # names must come back from a line
    bad = [row for row, stem in enumerate(stems) if not stem or stem != " ".join(stem.split()) or first[row] != row]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (
            Where(dataset.path, field="image"),
            f"{quoted_value(stems[row])} cannot be an image name in a results line",
        ),
        fix="Rename the image: not empty, unique, no double spaces.",
    )
    findings.raise_errors()
    boxes = dataset.table
    lines: list[list[str]] = [[] for _ in range(len(dataset.labels))]
    corners = _corners(dataset, path, findings)
    scored = corners if boxes.score is None else np.column_stack((boxes.score, corners))
    rows = number_rows(scored, " ", with_point=False)
    for image, label, row in zip(boxes.image.tolist(), boxes.label.tolist(), rows, strict=True):
        lines[label].append(f"{stems[image]} {row}\n")
    files = {RESULT_NAME.format(name): "".join(lines[row]) for row, name in enumerate(dataset.labels.names)}
    replace_folder(path, {name: text.encode() for name, text in files.items()})


def _stems(dataset: Dataset) -> list[str]:
    """Return what the format calls each image: its key here, elsewhere its path without suffix."""
    images = dataset.images
    if dataset.key_format == "voc":
        return list(map(str, images.keys))
    paths = [key if isinstance(key, str) else images.name(row) for row, key in enumerate(images.keys)]
    return [without_suffix(path.replace("\\", "/")) for path in paths]


def _corners(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    coords, exact = exact_coords(dataset.table.xywh, "xyxy")
    report_rounded(exact, path, findings)
    return coords


def _objects(dataset: Dataset, corners: FloatArray) -> list[list[str]]:
    """Return the elements of the objects of each image."""
    boxes, names = dataset.table, [escape(name, quote=False) for name in dataset.labels.names]
    objects: list[list[str]] = [[] for _ in range(len(dataset.images))]
    rows = number_rows(corners, " ", with_point=False)
    for image, label, difficult, row in zip(
        boxes.image.tolist(), boxes.label.tolist(), boxes.difficult.tolist(), rows, strict=True
    ):
        sides = "".join(f"<{corner}>{value}</{corner}>" for corner, value in zip(CORNERS, row.split(" "), strict=True))
        objects[image].append(
            f"  <object>\n    <name>{names[label]}</name>\n    <difficult>{difficult:d}</difficult>\n"
            f"    <bndbox>{sides}</bndbox>\n  </object>\n"
        )
    return objects


def _document(dataset: Dataset, row: int, objects: Sequence[str]) -> str:
    """Return the text of a file; unknown properties of an image are omitted."""
    key, name = dataset.images.keys[row], dataset.images.file_names[row]
    named = name or (key if isinstance(key, str) and is_image_name(key) else "")
    file_name = f"  <filename>{escape(named, quote=False)}</filename>\n" if named else ""
    width, height = dataset.images.sizes[row].tolist()
    known = math.isfinite(width) and math.isfinite(height)
    size = f"<width>{_number(width)}</width><height>{_number(height)}</height><depth>3</depth>" if known else ""
    size_line = f"  <size>{size}</size>\n" if size else ""
    return f"<annotation>\n{file_name}{size_line}{''.join(objects)}</annotation>\n"


def _number(value: float) -> str:
    """Write a number at full precision, whole ones without a point."""
    return repr(value).removesuffix(".0")


def _refuse_class_names(dataset: Dataset, findings: FindingLog, *, as_file: bool = False) -> None:
    """Refuse names that do not come back from an XML file or, `as_file`, cannot be part of the name of a file."""
    names = dataset.labels.names
    first = first_rows([without_case(name) if as_file else name for name in names])
    bad = [
        row
        for row, name in enumerate(names)
        if not (name and name.isprintable() and name == name.strip())
        or first[row] != row
        or (as_file and ("/" in name or not is_safe(RESULT_NAME.format(name))))
    ]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (
            Where(dataset.path, field="class"),
            f"{quoted_value(names[row])} cannot be a class name in this format",
        ),
        fix="Rename the class: not empty, unique, no spaces at the ends, no control characters or slashes.",
    )
