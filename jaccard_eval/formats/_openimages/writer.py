"""A table of Open Images from a data set: fractions at full precision, a row per box."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.delimited import inert, quoted
from jaccard_eval.errors import DataError, FindingLog, Where
from jaccard_eval.reading.roundtrip import exact_coords
from jaccard_eval.reading.tabular.writer import image_texts, report_texts
from jaccard_eval.reading.unwritable import report_losses, report_rounded

HEADER = ("ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax", "IsGroupOf")


def write_file(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a data set as a table of Open Images; the confidence of ground truth is 1, as there.

    Raises
    ------
    DataError
        When boxes are in pixels and the size of an image is unknown.
    MachineError
        When the file cannot be written.
    """
    coords = _fractions(dataset, path, findings)
    report_losses(dataset, path, findings, ("group_of",))
    images, classes = image_texts(dataset.images), _class_texts(dataset)
    report_texts(images, classes, path, findings)
    findings.raise_errors()
    boxes = dataset.boxes
    scores = [1] * len(boxes) if boxes.score is None else boxes.score.tolist()
    columns = boxes.image.tolist(), boxes.label.tolist(), scores, coords.tolist(), boxes.group_of.tolist()
    rows = (
        (inert(images[image]), inert(classes[label]), repr(score), *map(repr, box), str(int(group)))
        for image, label, score, box, group in zip(*columns, strict=True)
    )
    text = "".join(",".join(map(quoted, row)) + "\n" for row in (HEADER, *rows))
    replace_file(path, text.encode("utf-8", "backslashreplace"))


def _fractions(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    """Return xmin, xmax, ymin and ymax (n, 4)."""
    sizes = None if dataset.units == "norm" else dataset.images.sizes[dataset.boxes.image]
    if sizes is not None and not np.isfinite(sizes).all():
        detail = "Open Images holds fractions, but boxes are in pixels and image sizes unknown"
        raise DataError.single("size-unknown", Where(dataset.path), detail, fix="Give the pictures with --images DIR.")
    coords, exact = exact_coords(dataset.boxes.xywh, "xxyy", sizes)
    report_rounded(exact, path, findings)
    return coords


def _class_texts(dataset: Dataset) -> list[str]:
    """Return MIDs where the data set has them, else names."""
    labels = dataset.labels
    return list(map(str, labels.keys)) if dataset.format == "openimages" else list(labels.names)
