"""Which files a Pascal VOC input means: annotation files by image, result files by class. Nothing is read here."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.errors import DataError, FindingLog, Where, shown
from jaccard_eval.reading.files import is_folder
from jaccard_eval.reading.folders import files_by_class, list_tree, scan_folder

SUFFIX = ".xml"
SNIFFED = 20  # files, and folders in a folder, that are looked at

_ANNOTATIONS = "Annotations"  # where the development kit has them, beside JPEGImages and ImageSets
_RESULT = re.compile(r"comp\d_det_[^_]+_(?P<label>.+)\.txt", re.IGNORECASE)


def first_xml_files(folder: Path) -> list[Path]:
    """Return a few XML files of a folder, else of the folders in it. Never raises."""
    files, folders = scan_folder(folder, _is_annotation_name, SNIFFED)
    for inner in folders:
        if files:
            break
        files, _ = scan_folder(inner, _is_annotation_name, SNIFFED)
    return files


def annotation_files(path: Path, findings: FindingLog) -> dict[str, Path]:
    """Return the XML files of an input by their relative path without suffix, sorted.

    Raises
    ------
    DataError
        When a folder holds none.
    """
    if not is_folder(path):
        return {path.stem: path}
    nested = path / _ANNOTATIONS
    root = nested if nested.is_dir() else path
    files: dict[str, Path] = {}
    for name in list_tree(root, findings):
        if not _is_annotation_name(name):
            continue
        key = name[: -len(SUFFIX)]
        if key in files:
            findings.error("label-twice", Where(str(root / name)), f"{shown(key)} has two label files", fix="Keep one.")
        files[key] = root / name
    if not files:
        raise DataError.single("labels-missing", Where(str(root)), "no .xml files", fix="Pass the folder of them.")
    return files


def result_files(folder: Path) -> dict[str, list[Path]]:
    """Return the result files of a folder by class; none where it has none. Never raises."""
    return files_by_class(folder, _RESULT)


def _is_annotation_name(name: str) -> bool:
    return name.lower().endswith(SUFFIX) and not name.rpartition("/")[2].startswith(".")
