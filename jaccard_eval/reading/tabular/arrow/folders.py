"""Folders of tables: which files they are, of which split, and what their folders say (``camera=front``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from jaccard_eval.errors import DataError, Where
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.folders import list_tree
from jaccard_eval.reading.splits import SPLIT_NAMES, choose_split, split_of
from jaccard_eval.reading.tabular.arrow.magic import is_besides

SPLIT = "split"

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_SHARD = re.compile(r"([a-z]+)(?:-\d{5}-of-\d{5})?", re.IGNORECASE)  # of the Hub: validation-00000-of-00002.parquet


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a folder, and the columns that the names of its folders give it.

    Parameters
    ----------
    path : Path
    columns : mapping of str to str or None
    split : str, optional
        By a folder ``split=val``, a folder or a file that is called like one.
    """

    path: Path
    columns: Mapping[str, str | None]
    split: str | None


def find_parts(path: Path, suffixes: Collection[str], draft: Draft) -> list[Part]:
    """Return the files of an input, sorted: a file itself, or those of a folder that are of the split asked for.

    Raises
    ------
    DataError
        When a folder holds no such file, or none of the split.
    """
    if not files.is_folder(path):
        return [Part(path, {}, None)]
    names = [name for name in list_tree(path, draft.findings) if not any(map(is_besides, name.split("/")))]
    parts = [_part(path, name) for name in names if Path(name).suffix.lower() in suffixes]
    if not parts:
        detail = f"no {next(iter(suffixes))} files"
        raise DataError.single("labels-missing", Where(str(path)), detail, fix="Pass the folder of the tables.")
    others = len(names) - len(parts)
    if others:
        draft.ignored["other-files"] += others
        draft.findings.warning("other-files", Where(str(path)), f"{others:,} files that are no tables were left out")
    return _of_split(path, parts, draft)


def _part(folder: Path, name: str) -> Part:
    """Return a file with what its path says."""
    *folders, file = name.split("/")
    columns = dict(_hive_pair(one) for one in folders if "=" in one.strip("="))
    named = columns.get(SPLIT) if SPLIT in columns else _split_of_names(folders, Path(file).stem)
    split = split_of(named.lower()) if named and named.lower() in SPLIT_NAMES else named
    return Part(folder / name, {key: value for key, value in columns.items() if key != SPLIT}, split)


def _hive_pair(folder: str) -> tuple[str, str | None]:
    key, _, value = folder.partition("=")
    return unquote(key), None if value == _NO_VALUE else unquote(value)


def _split_of_names(folders: list[str], stem: str) -> str | None:
    """Return the split that a folder or the file is called after."""
    shard = _SHARD.fullmatch(stem)
    named = [*folders, *([shard[1]] if shard else [])]
    return next((name for name in reversed(named) if name.lower() in SPLIT_NAMES), None)


def _of_split(path: Path, parts: list[Part], draft: Draft) -> list[Part]:
    """Return the files of the split asked for; all of them where not every file is of a split."""
    there = list(dict.fromkeys(part.split for part in parts if part.split is not None))
    if not there or any(part.split is None for part in parts):
        return parts
    split = choose_split(draft.options.split, there, Where(str(path)), draft.findings)
    draft.details.append(f"split {split}")
    return [part for part in parts if part.split == split]
