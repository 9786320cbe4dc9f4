"""Ways in which the images of two inputs can correspond: by id, file name, path suffix, base name or stem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.data.dataset import ImageTable, Key
from jaccard_eval.errors import shown

NOWHERE = -1
PICTURE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".jp2", ".png", ".ppm", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True, slots=True, eq=False)
class ImageMatch:
    """How the prediction images map to ground-truth images under one strategy.

    Parameters
    ----------
    strategy : str
    rows : ndarray of int32, shape (n_pred_images,)
        Ground-truth row of each prediction image, -1 for none.
    one_to_one : bool
        Whether no ground-truth image is claimed twice and no claim was ambiguous.
    """

    strategy: str
    rows: RowArray
    one_to_one: bool


Matcher = Callable[[ImageTable, ImageTable], "tuple[RowArray, bool]"]


def match_by(strategy: str, gt: ImageTable, pred: ImageTable) -> ImageMatch:
    """Match images by one of `STRATEGIES`."""
    rows, clear = STRATEGIES[strategy](gt, pred)
    claimed = rows[rows >= 0]
    return ImageMatch(strategy, rows, clear and bool(np.bincount(claimed).max(initial=0) <= 1))


def _by_id(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    """Match equal keys of equal type; where both sides also have file names, their stems must agree."""
    at = {key: row for row, key in enumerate(gt.keys)}
    rows = _rows(at.get(key, NOWHERE) for key in pred.keys)
    agree = all(
        _stem_of(gt.file_names[row]) == _stem_of(name)
        for row, name in zip(rows, pred.file_names, strict=True)
        if row >= 0 and name and gt.file_names[row]
    )
    return rows, agree


def _by_id_text(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    return _match_texts([str(key) for key in gt.keys], [str(key) for key in pred.keys])


def _by_name(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    return _match_texts(_names(gt), _names(pred))


def _by_basename(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    return _match_texts(*([_last(name) for name in _names(side)] for side in (gt, pred)))


def _by_stem(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    """Match paths without their suffix where one ends the other, else stems alone."""
    ours, theirs = ([_without_suffix(name) for name in _names(side)] for side in (gt, pred))
    rows, clear = _match_suffixes(ours, theirs)
    if clear and (rows >= 0).all():
        return rows, clear
    return _match_texts([_last(name) for name in ours], [_last(name) for name in theirs])


def _by_path(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    return _match_suffixes(_names(gt), _names(pred))


STRATEGIES: dict[str, Matcher] = {
    "id": _by_id,
    "name": _by_name,
    "path": _by_path,
    "basename": _by_basename,
    "stem": _by_stem,
    "id-text": _by_id_text,
}
AUTOMATIC = ("id", "name", "path", "basename", "stem")  # in the order of trial; id-text only when asked for


def _match_texts(ours: list[str], theirs: list[str]) -> tuple[RowArray, bool]:
    at: dict[str, int] = {}
    ambiguous: set[str] = set()
    for row, text in enumerate(ours):
        if at.setdefault(text, row) != row:
            ambiguous.add(text)
    return _rows(at.get(text, NOWHERE) for text in theirs), ambiguous.isdisjoint(theirs)


def _match_suffixes(ours: list[str], theirs: list[str]) -> tuple[RowArray, bool]:
    """Match names of which one ends with the other, by whole path components."""
    full = {name: row for row, name in enumerate(ours)}
    ends: dict[str, int] = {}
    ambiguous: set[str] = set()
    for row, name in enumerate(ours):
        for end in _suffixes(name):
            if ends.setdefault(end, row) != row:
                ambiguous.add(end)
    rows = _rows(
        full[name] if name in full else ends[name] if name in ends else _first(full, _suffixes(name)) for name in theirs
    )
    return rows, ambiguous.isdisjoint(name for name in theirs if name not in full)


def _first(at: dict[str, int], names: Iterable[str]) -> int:
    return next((at[name] for name in names if name in at), NOWHERE)


def _suffixes(path: str) -> list[str]:
    """Return the path and its ends, longest first: a/b/c, b/c, c."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def _names(images: ImageTable) -> list[str]:
    return [_posix(images.name(row)) for row in range(len(images))]


def _posix(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./")


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _stem_of(name: str | None) -> str:
    return _last(_without_suffix(_posix(name or "")))


def _without_suffix(path: str) -> str:
    """Drop the suffix of a picture; a dot elsewhere belongs to the name."""
    stem, dot, suffix = path.rpartition(".")
    return stem if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES else path


def _rows(rows: Iterable[int]) -> RowArray:
    return np.array(list(rows), dtype=np.int32)


def bare_names(names: Sequence[str]) -> list[str]:
    """Return names without folder and picture suffix; with their folders where only these tell images apart."""
    paths = [_without_suffix(_posix(name)) for name in names]
    stems = [_last(path) for path in paths]
    return stems if len(set(stems)) == len(stems) else paths


def example_keys(keys: Iterable[Key], limit: int = 3) -> str:
    """Return the first few keys for a message."""
    return ", ".join(shown(key) for key in islice(keys, limit))


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
