"""Inputs of one JSON document per image: which files a folder means, what they look like, and their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jaccard_eval.errors import DataError, Where
from jaccard_eval.reading import files as _files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.folders import list_tree, scan_folder
from jaccard_eval.reading.json.keys import record_keys
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.values import parse_json

SUFFIX = ".json"
SNIFFED = 20  # files, and folders of a level, that are looked at

Recognise = Callable[[set[str], set[str], bytes], bool]  # of the keys outside, those in an array, and the bytes


def looks_like(path: Path, recognise: Recognise) -> bool:
    """Whether a file, or at least half of the first files in a folder, are of a format. Never raises."""
    if not _files.is_folder(path):
        return _is_one(path, recognise)
    files = [file for file in _first_files(path) if _files.head(file).strip() != b"[]"]
    return bool(files) and sum(_is_one(file, recognise) for file in files) * 2 >= len(files)


def documents(path: Path, draft: Draft, *, besides: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path, Any]]:
    """Yield key, path and value of each document, sorted; those that are no JSON are errors, all in one pass.

    Parameters
    ----------
    path : Path
        A file, or a folder of them; keys are relative paths without the suffix.
    draft : Draft
    besides : frozenset of str
        Names of files, and of folders of files (with a slash), that describe no image.

    Raises
    ------
    DataError
        When a folder holds no such file.
    """
    files = _list_files(path, draft, besides) if _files.is_folder(path) else {path.stem: path}
    yield from _files.read_each(files, lambda file: parse_json(file, _files.read_text(file)), draft.findings)


def listed_records(path: Path, draft: Draft) -> Iterator[Record]:
    """Return the objects of a file that is a list of them; what is none is told and left out.

    Raises
    ------
    DataError
        When it cannot be read or is no JSON.
    """
    return Record.list_of(parse_json(path, _files.read_text(path)), Where(str(path)), draft.findings)


def _is_one(file: Path, recognise: Recognise) -> bool:
    head = _files.head(file).lstrip()
    if head[:1] not in (b"{", b"["):
        return False
    outer, inner = record_keys(head)
    return recognise(set(outer), set(inner), head)


def _list_files(folder: Path, draft: Draft, besides: frozenset[str]) -> dict[str, Path]:
    names = [name for name in list_tree(folder, draft.findings) if _is_document(name)]
    files = {name[: -len(SUFFIX)]: folder / name for name in names if besides.isdisjoint(_own_names(name))}
    if not files:
        detail = "no .json files"
        raise DataError.single("labels-missing", Where(str(folder)), detail, fix="Pass the folder of them.")
    return files


def _own_names(path: str) -> tuple[str, str]:
    """Return the name of a file, and that of the folder it lies in with a slash."""
    parent, _, name = path.rpartition("/")
    return name, f"{parent.rpartition('/')[2]}/"


def _first_files(folder: Path) -> list[Path]:
    """Return a few documents of a folder, else of the folders in it or in these."""
    level = [folder]
    for _ in range(3):
        scans = [scan_folder(one, _is_own_document, SNIFFED) for one in level[:SNIFFED]]
        files = [file for files, _ in scans for file in files]
        if files:
            return files[:SNIFFED]
        level = [inner for _, folders in scans for inner in _with_documents(folders)]
    return []


def _with_documents(folders: list[Path]) -> list[Path]:
    """Leave out the folders in which Supervisely keeps what it knows of the pictures, beside their annotations."""
    about_pictures = {"img_info", "meta"} if any(folder.name == "ann" for folder in folders) else set()
    return [folder for folder in folders if folder.name not in about_pictures]


def _is_own_document(name: str) -> bool:
    return name[-len(SUFFIX) :].lower() == SUFFIX and _is_document(name) and name != "meta.json"


def _is_document(name: str) -> bool:
    return name.lower().endswith(SUFFIX) and not name.rpartition("/")[2].startswith(".")
