"""JSON documents in files and folders, and records that name the field of whatever is wrong in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaccard_eval.data.dataset import MAX_IMAGE_SIDE
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.reading import files as _files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import SPLIT_NAMES, list_tree, scan_folder, split_of
from jaccard_eval.reading.json import RepeatedKeys, described_json, is_finite, is_number, parse_json, record_keys
from jaccard_eval.text import shown, shown_json

_EXPORT = "Export the file again, or mend it at that place."


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the file: its values, its place, and where to record what is wrong."""

    values: dict[str, Any]
    where: Where
    findings: FindingLog

    @classmethod
    def of(cls, value: Any, where: Where, findings: FindingLog) -> Record:
        """Take a value as an object; of one that is none, the faults are told once and no more."""
        if not isinstance(value, dict):
            findings.error("record-type", where, f"is {described_json(value)}; expected an object", fix=_EXPORT)
            return cls({}, where, FindingLog())
        for key in value.repeated if isinstance(value, RepeatedKeys) else ():
            place = replace(where, field=key)
            findings.error("key-duplicate", place, f"duplicate key {shown(key)} in one object", fix="Keep one of them.")
        return cls(value, where, findings)

    @classmethod
    def list_of(cls, value: Any, where: Where, findings: FindingLog) -> Iterator[Record]:
        """Take a value as a list of objects; what is none is told and left out."""
        return cls({"": value}, where, findings).records("")

    def has(self, field: str) -> bool:
        """Whether a field is given and not null."""
        return self.values.get(field) is not None

    def number(self, field: str) -> float:
        """Read a finite number; NaN where there is none."""
        return self._finite(field, self.values[field]) if self._require(field) else math.nan

    def side(self, field: str) -> float:
        """Read the width or height of an image in pixels; NaN where it is unknown, for which some tools write 0."""
        value = self.number(field)
        if not math.isnan(value) and (not 0 <= value <= MAX_IMAGE_SIDE or value % 1):
            expected = f"a whole number of pixels, at most {MAX_IMAGE_SIDE:g}"
            detail = f"is {shown_json(self.values[field])}; expected {expected}"
            self.error("image-size", field, detail, "Write the true size, or leave it out and pass --images DIR.")
        return value or math.nan

    def numbers(self, field: str, count: int) -> list[float]:
        """Read so many finite numbers in an array."""
        values = self.array(field)
        if len(values) == count:
            return [self._finite(f"{field}[{at}]", value) for at, value in enumerate(values)]
        if isinstance(self.values.get(field), list):
            self.error("bbox-length", field, f"has {len(values)} values; expected {count} numbers")
        return [math.nan] * count

    def corners(self, field: str) -> list[float]:
        """Read two opposite corners, or all four, drawn in any direction, as left, top, right and bottom."""
        points = self.array(field)
        if len(points) not in (2, 4):
            if isinstance(self.values.get(field), list):
                self.error("bbox-length", field, f"has {len(points)} points; a rectangle has 2 opposite corners, or 4")
            return [math.nan] * 4
        named = Record({f"{field}[{at}]": point for at, point in enumerate(points)}, self.where, self.findings)
        xs, ys = zip(*(named.numbers(name, 2) for name in named.values), strict=True)
        return [min(xs), min(ys), max(xs), max(ys)]

    def text(self, field: str) -> str:
        """Read a text that must not be empty; empty where there is none."""
        if not self._require(field):
            return ""
        value = self.values[field]
        if isinstance(value, str) and value.strip():
            return value
        self.error("field-missing", field, f"is {described_json(value)}; expected a text that is not empty")
        return ""

    def array(self, field: str) -> list[Any]:
        """Read an array; empty where there is none."""
        if not self._require(field):
            return []
        value = self.values[field]
        if not isinstance(value, list):
            self.error("section-type", field, f"is {described_json(value)}; expected an array (list)")
            return []
        return value

    def records(self, field: str) -> Iterator[Record]:
        """Read an array of objects; what is none is told and left out."""
        for at, value in enumerate(self.array(field)):
            record = Record.of(value, self._inner(f"{field}[{at}]"), self.findings)
            if isinstance(value, dict):
                yield record

    def record(self, field: str) -> Record:
        """Read an object in this one."""
        if not self._require(field):
            return Record({}, self.where, FindingLog())
        return Record.of(self.values[field], self._inner(field), self.findings)

    def at(self, field: str) -> Where:
        """Return the place of a field as that of a record."""
        return self._inner(field)

    def error(self, code: str, field: str, detail: str, fix: str = _EXPORT) -> None:
        """Record a fault of a field."""
        self.findings.error(code, replace(self.where, field=field), detail, fix=fix)

    def _require(self, field: str) -> bool:
        if self.has(field):
            return True
        self.error("field-missing", field, "is null" if field in self.values else "is missing")
        return False

    def _inner(self, name: str) -> Where:
        outer = self.where.record or ""
        joint = "." if outer and not name.startswith("[") else ""
        return replace(self.where, record=f"{outer}{joint}{name}")

    def _finite(self, field: str, value: Any) -> float:
        if not is_number(value):
            self.error("number-type", field, f"is {described_json(value)}, not a number", "Write numbers unquoted.")
        elif not is_finite(value):
            detail = f"is {shown_json(value)}; numbers must be finite and not too large (at most 1.8e308)"
            self.error("number-not-finite", field, detail, "Fix the exporter or drop the record.")
        else:
            return float(value)
        return math.nan


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


METADATA = "metadata.jsonl"


def find_metadata(folder: Path) -> dict[str, Path]:
    """Return the files of rows in an image folder by split, "" where it has one for all."""
    if (folder / METADATA).is_file():
        return {"": folder / METADATA}
    files = {name: folder / name / METADATA for name in SPLIT_NAMES}
    return {split_of(name): file for name, file in files.items() if file.is_file()}
