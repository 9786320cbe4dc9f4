"""Results of Ultralytics models as JSON, as ``Results.to_json()`` returns them: name, class, confidence and box.

Coordinates are pixels, or fractions where ``normalize=True`` was asked for, which ``--pred-units norm`` tells. Oriented
boxes are read as the boxes around them.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.formats._draft import Draft
from jaccard_eval.formats._json.documents import looks_like

FORMAT = Format(
    name="ultralytics",
    summary="Ultralytics Results.to_json(): the list of an image, a folder of them, or an object from images to lists",
    source="https://docs.ultralytics.com/reference/engine/results/#ultralytics.engine.results.Results.to_json",
    example="""[
  {"name": "dog", "class": 16, "confidence": 0.9, "box": {"x1": 10.0, "y1": 20.0, "x2": 110.0, "y2": 220.0}}
]
""",
    carries=("images", "scores"),
    member=".json",
)

_KEYS = frozenset({"name", "class", "confidence", "box"})
_NOT_HERE = frozenset({"images", "annotations", "shapes", "predictions"})


def sniff(path: Path) -> bool:
    """Whether `path` holds such results."""
    return looks_like(path, _are_results)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of results to the draft.

    Raises
    ------
    DataError
        When there are no files of results; problems of their contents are among the draft's findings.
    """
    from jaccard_eval.formats._json.ultralytics import read_results  # not needed to look for a format

    read_results(path, draft, options)


def _are_results(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return inner >= _KEYS
    return not outer & _NOT_HERE and all(b'"%s"' % key in head for key in (b"confidence", b"box", b"x1", b"y1"))
