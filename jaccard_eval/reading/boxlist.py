"""Files that hold boxes alone, four numbers a line: no images, classes or scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.fixes import Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.files import read_lines
from jaccard_eval.reading.lines import TextBoxes

FIX = Fix.missing(
    "Write one box per line, such as 10,20,50,80. To read images and classes, use {options}.",
    gt="GT",
    pred="PRED",
    image="NAME",
)
_BETWEEN = pattern(r"[,;\s]+")
_NUMBER = pattern(r"[-+.]?\d")


def read_box_list(path: Path, encoding: str) -> FloatArray:
    """Return boxes, shape (n, 4), below a header if there is one; a DataError names every line that is not a box."""
    findings = FindingLog()
    is_corners = encoding == "xyxy"
    lines = TextBoxes(("x1", "y1", "x2", "y2") if is_corners else ("x", "y", "width", "height"))
    for number, text in enumerate(read_lines(path, empty_ok=True), start=1):
        fields = [part for part in _BETWEEN.split(text.partition("#")[0]) if part]
        if len(fields) == 4 and (number > 1 or any(map(_NUMBER.match, fields))):
            lines.add((str(path), number), "", "", fields)
        elif fields and (number > 1 or len(fields) != 4):
            lines.refuse((str(path), number), f"expected 4 numbers, got {len(fields)}")
    boxes = lines.read(findings, fix=FIX)
    negative = {"xyxy": boxes[:, 2:] < boxes[:, :2], "xywh": boxes[:, 2:] < 0.0}  # either reading, shape (n, 2)
    wrong = np.flatnonzero(negative[encoding].any(axis=1))
    other = "xywh" if is_corners else "xyxy"
    share = {name: 1 - float(sides.any(axis=1).mean()) if len(boxes) else 1.0 for name, sides in negative.items()}
    findings.add_rows(
        Severity.ERROR,
        "box-negative",
        wrong,
        lambda row: (lines.where(row), f"{boxes[row].tolist()} read as {encoding} has a negative width or height"),
        fix=Fix.choice(
            {"box": other},
            metric="lines that are boxes",
            before=share[encoding],
            after=share[other],
            words="Name what the numbers are: {box}.",
        ),
    )
    if findings.findings():
        raise DataError(findings.findings())
    return boxes
