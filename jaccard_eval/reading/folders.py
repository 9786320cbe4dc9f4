"""Listing all files below a folder: links are followed once, circles are not, and nothing is opened."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from jaccard_eval.errors import DataError, FindingLog, Where, reason_of
from jaccard_eval.reading.files import is_folder, require_readable

MAX_ENTRIES = 10_000_000  # files and folders; the largest public sets have some two million pictures


def require_folder(path: Path, expected: str) -> None:
    """Raise unless `path` is a folder.

    Raises
    ------
    DataError
        When the path is missing or a file; the message names what was `expected`.
    """
    require_readable(path)
    if not is_folder(path):
        fix = f"Pass {expected}, not one of its files."
        raise DataError.single("not-a-folder", Where(str(path)), "is a file, not a folder", fix=fix)


def list_tree(root: Path, findings: FindingLog) -> list[str]:
    """Return the relative POSIX paths of all files below `root`, sorted.

    A folder that was seen before (a link in a circle) is passed over; one that cannot be listed is an error.

    Raises
    ------
    DataError
        When there are too many, as when the root of a disk is given.
    """
    resolved = Path(os.path.realpath(root))
    if resolved == resolved.parent:
        raise _too_large(root, "is the root of the file system")
    files: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            folders, names = _list_folder(root / prefix, seen)
        except OSError as error:
            findings.error("folder-unreadable", Where(str(root / prefix)), f"cannot be listed: {reason_of(error)}")
            continue
        pending += [f"{prefix}{name}/" for name in folders]
        files += [f"{prefix}{name}" for name in names]
        if len(files) + len(pending) > MAX_ENTRIES:
            raise _too_large(root, f"holds more than {MAX_ENTRIES:,} files and folders")
    return sorted(files)


def _too_large(root: Path, detail: str) -> DataError:
    return DataError.single(
        "folder-too-large", Where(str(root)), detail, fix="Pass the folder of the pictures or labels themselves."
    )


def scan_folder(folder: Path, is_wanted: Callable[[str], bool], most: int) -> tuple[list[Path], list[Path]]:
    """Return the first files that are wanted by their names and the first folders in a folder, sorted. Never raises."""
    files: list[str] = []
    folders: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            (folders if is_folder_entry(entry) else files).append(entry.name)
    wanted = islice(filter(is_wanted, sorted(files)), most)
    return [folder / name for name in wanted], [folder / name for name in sorted(folders)[:most]]


def files_by_class(folder: Path, name: re.Pattern[str]) -> dict[str, list[Path]]:
    """Return the files of a folder whose names match, by the group ``label`` of the match, sorted. Never raises."""
    files: dict[str, list[Path]] = {}
    for path in scan_folder(folder, lambda text: name.fullmatch(text) is not None, MAX_ENTRIES)[0]:
        if found := name.fullmatch(path.name):
            files.setdefault(found["label"], []).append(path)
    return files


def _list_folder(folder: Path, seen: set[tuple[int, int]]) -> tuple[list[str], list[str]]:
    """Names of the folders and files in a folder, none for a folder seen before."""
    status = folder.stat()
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return [], []
    seen.add(identity)
    folders: list[str] = []
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            (folders if is_folder_entry(entry) else names).append(entry.name)
    return folders, names


def is_folder_entry(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link that leads nowhere or to itself is a file that cannot be opened."""
    try:
        return entry.is_dir()
    except OSError:
        return False
