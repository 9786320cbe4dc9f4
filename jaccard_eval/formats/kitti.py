"""KITTI: a folder of text files, one per image, one object a line: type, state, box, 3D properties, perhaps a score.

The box is columns 5 to 8, corners in pixels. ``DontCare`` marks regions that nobody labelled.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.numerals import is_numeral
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft

FORMAT = Format(
    name="kitti",
    summary="KITTI text, a file per image: type truncated occluded alpha left top right bottom h w l x y z ry [score]",
    source="https://www.cvlibs.net/datasets/kitti/eval_object.php (devkit, readme.txt)",
    example="Car 0.00 0 1.57 10.00 20.00 110.00 220.00 1.5 1.6 3.9 2.0 1.5 20.0 1.6\n",
    carries=("images", "scores", "ignore"),
)

SNIFFED_FILES = 20
COLUMNS = (15, 16)  # without and with a score

_LABELS = "label_2"


def sniff(path: Path) -> bool:
    """Whether the first lines of label files in a folder are a word and 14 or 15 numbers."""
    names: list[str] = []
    folder = label_folder(path)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.lower().endswith(".txt"))
    heads = (files.head(folder / name) for name in names[:SNIFFED_FILES])
    lines = [line for head in heads if (line := head.decode("utf-8", "replace").strip().partition("\n")[0])]
    return bool(lines) and sum(map(_is_object, lines)) * 2 > len(lines)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files to the draft.

    Raises
    ------
    DataError
        When there are no label files; problems of their lines are among the draft's findings.
    """
    from jaccard_eval.formats._kitti.reader import read_folder  # not needed to look for a format

    read_folder(label_folder(path), draft, options)


def label_folder(path: Path) -> Path:
    """Return the folder of label files: label_2, where the benchmark has them beside image_2, else the path itself."""
    inner = path / _LABELS
    return inner if files.is_folder(inner) else path


def _is_object(line: str) -> bool:
    kind, *numbers = line.split()
    return 1 + len(numbers) in COLUMNS and not is_numeral(kind) and all(map(is_numeral, numbers))
