"""A folder of text labels from a data set: a file per image, a line per box, and ``data.yaml`` with the class names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.sources import twin_folder
from jaccard_eval.formats._yolo.written_shapes import box_fractions, shape_rows
from jaccard_eval.reading.files import is_label_name
from jaccard_eval.reading.writing import (
    UNIVERSE,
    below_shared_place,
    exact_coords,
    number_rows,
    report_losses,
    report_rounded,
    require_file_names,
    require_names,
    require_sizes,
)
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.text import quoted_value

DESCRIPTION = "data.yaml"
_REMARK = (
    "# Paths start from the folder of this file. Labels are looked for next to the images, in labels/ for images/.\n"
)
# Formats whose class keys are indices; those of others may count from 1 or leave gaps, as COCO's ids do.
_INDEXED = ("yolo", "arrays")


def write_folder(dataset: Dataset, path: Path, findings: FindingLog, *, as_read: bool = False) -> None:
    """Write a data set as text labels: centre-size fractions, or `as_read` pixels where it was read from pixels.

    Predictions end with their score.
    """
    in_pixels = as_read and dataset.reading.units == "px"
    report_losses(dataset, path, findings, ("shapes", *UNIVERSE))  # of sizes, fractions need none
    if not in_pixels:
        require_sizes(dataset, "YOLO", findings)
    if dataset.key_format not in _INDEXED:
        require_names(dataset, "YOLO", findings)
    files = _file_names(dataset, path, findings)
    numbers, names = _classes(dataset, path, findings)
    boxes = dataset.boxes
    coords = np.zeros((0, 4))
    rows = None if in_pixels else shape_rows(dataset, path, findings)
    if rows is None and not in_pixels:
        coords, exact = box_fractions(dataset, path, findings)
        report_rounded(exact, path, findings)
    findings.raise_errors()
    if rows is None:
        rows = number_rows(_pixels(dataset, path, findings) if in_pixels else coords, " ")
    if boxes.score is not None:
        rows = [f"{row} {score}" for row, score in zip(rows, number_rows(boxes.score[:, None], " "), strict=True)]
    lines: list[list[str]] = [[] for _ in files]
    for image, label, row in zip(boxes.image.tolist(), boxes.label.tolist(), rows, strict=True):
        lines[image].append(f"{numbers[label]} {row}\n")
    contents = {f"{name}.txt": "".join(lines[row]) for row, name in enumerate(files)}
    shapes: object = boxes.shapes
    if isinstance(shapes, Keypoints) and len(shapes):
        names = names or tuple(str(number) for number in range(max(numbers) + 1))
        contents[DESCRIPTION] = _description(path, names, kpt_shape=[shapes.points.shape[1], 3])
    elif names:
        contents[DESCRIPTION] = _description(path, names)
    replace_folder(path, {name: text.encode() for name, text in contents.items()})


def _file_names(dataset: Dataset, path: Path, findings: FindingLog) -> list[str]:
    """Return the label file of each image, without its suffix: that of its file name, else its key."""
    images = dataset.images
    written = [without_suffix(images.name(row)).replace("\\", "/") for row in range(len(images))]
    names = below_shared_place(written, path, findings)
    require_file_names(dataset, names, findings, is_usable=lambda name: is_label_name(f"{name}.txt"))
    return names


def _classes(dataset: Dataset, path: Path, findings: FindingLog) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of each class in label lines, and all names by number: none where keys are indices.

    Where keys are not indices from 0, classes are numbered in their order, and named.
    """
    labels = dataset.labels
    indices = [key for key in labels.keys if isinstance(key, int) and key >= 0]
    where = Where(str(path), field="class")
    if not labels.named and len(indices) == len(labels):
        return indices, ()
    if indices != list(range(len(labels))):
        detail = f"classes are numbered 0 to {len(labels) - 1} in the order of their keys; {DESCRIPTION} names them"
        findings.note("write-loss", where, detail)
    broken = [name for name in labels.names if not name.strip() or name != " ".join(name.splitlines()).strip()]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        range(len(broken)),
        lambda row: (
            Where(dataset.path, field="class"),
            f"{quoted_value(broken[row])} cannot be the name of a class in {DESCRIPTION}",
        ),
        fix="Rename the class: one line, no spaces at the ends.",
    )
    return list(range(len(labels))), labels.names


def _pixels(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    """Return the numbers of the boxes (n, 4) as they were read, and report how to read them again."""
    encoding = dataset.reading.encoding
    coords, exact = exact_coords(dataset.boxes.xywh, encoding)
    fix = Fix.of_side(dataset.role, "Read it with {units} {box}.", units="px", box=encoding)
    findings.note("write-pixels", Where(str(path)), f"boxes are written in pixels, as {encoding}", fix=fix)
    report_rounded(exact, path, findings)
    return coords


def _description(path: Path, names: tuple[str, ...], **more: list[int]) -> str:
    """Return the text of ``data.yaml``, as Ultralytics has it."""
    import yaml  # most outputs are none

    folder = Path(os.path.abspath(path))  # noqa: PTH100 - links stay, as in the paths that are compared with it
    images = Path(os.path.relpath(twin_folder(folder, "labels", "images"), folder)).as_posix()
    # No "path": where it is missing, paths start from the file; a relative one starts from a folder of settings.
    # Ultralytics insists on both splits.
    content = {"train": images, "val": images, "nc": len(names), "names": dict(enumerate(names)), **more}
    return _REMARK + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
