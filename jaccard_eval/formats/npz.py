"""NumPy archives: arrays of boxes, or the raw output of a network's grid, as Python programs have them in memory.

Boxes: ``boxes`` (n, 4), ``labels`` (n,) and ``image`` (n,), with ``scores`` (n,) for predictions. Labels and images
are texts or whole numbers. ``names`` (k,) names numbered classes; ``images`` (m,) lists all images, texts that
``image`` repeats or counts from 0; ``sizes`` (m, 2) has their width and height; ``encoding`` is "xyxy" unless it says
otherwise.

Raw output: ``raw`` (m, anchors, rows, columns, 4 + 1 + classes), ``anchors``, ``stride`` and perhaps ``formula``, as
`jaccard_eval.decode_grid` takes them, with ``images`` (m,). Several heads are ``raw_0``, ``anchors_0``, ``stride_0``
and so on. Boxes are pixels of the network's input; each has its best class.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft

FORMAT = Format(
    name="npz",
    summary="NumPy archive: arrays of boxes, or raw grid outputs of a YOLO head",
    source="https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
    example="""numpy.savez("pred.npz", boxes=[[10, 20, 40, 60]], scores=[0.9], labels=["dog"], image=["a.jpg"])
""",
    carries=("images", "sizes", "names", "scores"),
    suffixes=(".npz",),
)

_ZIP_MAGIC = b"PK\x03\x04"
_NAME_LENGTH, _NAME = slice(26, 28), 30  # of the first entry, by the header of a zip archive


def sniff(path: Path) -> bool:
    """Whether the file is a zip archive whose first entry is an array."""
    head = b"" if path.is_dir() else files.head(path)
    length = int.from_bytes(head[_NAME_LENGTH], "little")
    return head.startswith(_ZIP_MAGIC) and head[_NAME : _NAME + length].endswith(b".npy")


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the boxes of a NumPy archive to the draft; arrays of Python objects, which are pickles, are never loaded.

    Raises
    ------
    DataError
        When the archive or an array of it cannot be read; what does not fit is among the draft's findings.
    """
    from jaccard_eval.formats._npz.reader import read_file  # not needed to look for a format

    read_file(path, draft, options)


def write_example(path: Path) -> None:
    """Write the example, which is code here and not a text to be read."""
    import numpy as np

    np.savez(path, boxes=[[10, 20, 40, 60]], scores=[0.9], labels=["dog"], image=["a.jpg"])
