"""Results of Ultralytics models as JSON, and data sets of the platform as JSON Lines (NDJSON).

Coordinates of results, as ``Results.to_json()`` returns them, are pixels, or fractions where ``normalize=True`` was
asked for, which ``--pred-units norm`` tells; oriented boxes are read as the boxes around them. Of a data set the images
of a split are read.
"""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="ultralytics",
    summary="Ultralytics Results.to_json(), of an image, a folder of them, or of many images; data sets as NDJSON",
    source="https://docs.ultralytics.com/reference/engine/results/#ultralytics.engine.results.Results.to_json",
    example="""[
  {"name": "dog", "class": 16, "confidence": 0.9, "box": {"x1": 10.0, "y1": 20.0, "x2": 110.0, "y2": 220.0}}
]
""",
    carries=("images", "sizes", "names", "scores"),
    member=".json",
)

_SET = re.compile(rb'"type"\s*:\s*"dataset"')
_KEYS = frozenset({"name", "class", "confidence", "box"})
_NOT_HERE = frozenset({"images", "annotations", "shapes", "predictions"})


def sniff(path: Path) -> bool:
    """Whether `path` holds results, or a data set."""
    return looks_like(path, _are_results) or _is_set(path)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of results, or of a data set, to the draft.

    Raises
    ------
    DataError
        When there are no files of results; problems of their contents are among the draft's findings.
    """
    if _is_set(path):
        from jaccard_eval.reading.json.ndjson import read_lines  # not needed to look for a format

        read_lines(path, draft, options)
    else:
        from jaccard_eval.formats._ultralytics.reader import read_results

        read_results(path, draft, options)


def _is_set(path: Path) -> bool:
    return not files.is_folder(path) and looks_like(path, _are_lines)


def _are_lines(outer: set[str], _inner: set[str], head: bytes) -> bool:
    first = head.partition(b"\n")[0]
    return "class_names" in outer and _SET.search(first) is not None


def _are_results(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return inner >= _KEYS
    return not outer & _NOT_HERE and all(b'"%s"' % key in head for key in (b"confidence", b"box", b"x1", b"y1"))
