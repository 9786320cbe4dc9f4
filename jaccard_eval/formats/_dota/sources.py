"""Which files an input of DOTA means, and what their lines look like."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.numerals import is_numeral
from jaccard_eval.reading import files as _files
from jaccard_eval.reading.folders import files_by_class, scan_folder

HEADERS = ("imagesource:", "gsd:")  # of a picture: where it is from, metres per pixel
SIDES = 8  # numbers of four points

_SNIFFED_FILES = 20
_LABELS = "labelTxt"
_RESULT = re.compile(r"Task1_(?P<label>.+)\.txt", re.IGNORECASE)
_MARKS = re.compile(r"[,\s]+")


def label_folder(path: Path) -> Path:
    """Return the folder of label files: labelTxt, where it lies beside the pictures, else the path itself."""
    inner = path / _LABELS
    return inner if _files.is_folder(inner) else path


def result_files(folder: Path) -> dict[str, list[Path]]:
    """Return the result files of a folder by class; none where it has none. Never raises."""
    return files_by_class(folder, _RESULT)


def first_lines(folder: Path) -> list[str]:
    """Return the first line about an object of a few files. Never raises."""
    files, _ = scan_folder(folder, lambda name: name.lower().endswith(".txt"), _SNIFFED_FILES)
    heads = (_files.head(file).decode("utf-8", "replace").splitlines() for file in files)
    firsts = (next((line for line in head if split_line(line)), "") for head in heads)
    return [line for line in firsts if line]


def split_line(line: str) -> list[str]:
    """Return the fields of a line, which blanks or commas separate; none of a header."""
    return [] if line.strip().lower().startswith(HEADERS) else [field for field in _MARKS.split(line) if field]


def is_object(line: str) -> bool:
    """Whether a line is eight numbers and a category."""
    fields = split_line(line)
    return len(fields) > SIDES and all(map(is_numeral, fields[:SIDES])) and not is_numeral(fields[SIDES])
