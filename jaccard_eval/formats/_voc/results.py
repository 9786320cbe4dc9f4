"""Result files of Pascal VOC: a text file per class, a line per detection: image, score, left, top, right, bottom."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import Severity
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._voc.sources import result_files
from jaccard_eval.reading.class_files import Layout, read_class_files
from jaccard_eval.reading.draft import Draft, RawBoxes

LAYOUT = Layout(
    columns=("score", "left", "top", "right", "bottom"),
    all_columns="image score left top right bottom",
    fix="Write image, score, left, top, right and bottom, separated by blanks.",
)


def read_results(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of the result files in a folder to the draft.

    Problems of files and lines are among the draft's findings.
    """
    lines, numbers = read_class_files(path, result_files(path), LAYOUT, draft, options)
    draft.set_boxes(
        RawBoxes(
            image=lines.images,
            label=lines.labels,
            coords=numbers[:, 1:],
            score=numbers[:, 0],
            encoding="xyxy",
            units="px",
            place=lines.where,
            negative_size=Severity.WARNING,  # the development kit lets them match nothing
        )
    )
