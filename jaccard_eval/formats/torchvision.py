"""Dictionaries of boxes, labels and scores, as torchvision's detectors return them, written as JSON.

MMDetection writes its predictions alike, with bboxes in place of boxes. Never pickles: those run code when loaded.
"""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="torchvision",
    summary="torchvision's dictionaries as JSON: boxes, labels, scores; of an image, a list, or an object by image",
    source="https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.detection.fasterrcnn_resnet50_fpn.html",
    example='{\n  "street": {"boxes": [[10, 20, 110, 220]], "labels": [18], "scores": [0.9]}\n}\n',
    carries=("images", "scores"),
    member=".json",
)

_BOXES = {"boxes", "bboxes"}  # of torchvision, of MMDetection
_ARRAYS = (re.compile(rb'"b?boxes"\s*:\s*\['), re.compile(rb'"labels"\s*:\s*\['))


def sniff(path: Path) -> bool:
    """Whether `path` holds such dictionaries."""
    return looks_like(path, _is_output)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of dictionaries to the draft.

    Raises
    ------
    DataError
        When there are no files of outputs; problems of their contents are among the draft's findings.
    """
    from jaccard_eval.formats._torchvision.reader import read_outputs  # not needed to look for a format

    read_outputs(path, draft, options)


def _is_output(outer: set[str], inner: set[str], head: bytes) -> bool:
    if outer & _BOXES:
        return "labels" in outer
    if inner & _BOXES:
        return "labels" in inner and "image_id" not in inner
    return not inner and not outer & {"images", "annotations"} and all(array.search(head) for array in _ARRAYS)
