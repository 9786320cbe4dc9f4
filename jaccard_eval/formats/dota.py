"""DOTA: text files of oriented boxes, one per image (x1 y1 ... x4 y4 category difficult); results one per class.

Oriented boxes are read as the upright boxes around them.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft

FORMAT = Format(
    name="dota",
    summary="DOTA text, a file per image: x1 y1 ... x4 y4 category difficult; results a file per class (Task1_dog.txt)",
    source="https://captain-whu.github.io/DOTA/tasks.html",
    example="imagesource:GoogleEarth\ngsd:0.15\n10 20 110 20 110 220 10 220 plane 0\n",
    carries=("images", "scores", "difficult"),
)


def sniff(path: Path) -> bool:
    """Whether `path` is a folder of label files with oriented boxes, or of results."""
    if not files.is_folder(path):
        return False
    from jaccard_eval.formats._dota.sources import first_lines, is_object, label_folder, result_files

    if result_files(path):
        return True
    lines = first_lines(label_folder(path))
    return bool(lines) and sum(map(is_object, lines)) * 2 > len(lines)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of label files, or of results, to the draft.

    Raises
    ------
    DataError
        When there are no such files; problems of their lines are among the draft's findings.
    """
    from jaccard_eval.formats._dota.reader import read_labels, read_results  # not needed to look for a format
    from jaccard_eval.formats._dota.sources import label_folder, result_files

    if result_files(path):
        read_results(path, draft, options)
    else:
        read_labels(label_folder(path), draft, options)
