"""The label maps of one side: the files of a folder that can be one, or a single file. Nothing is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jaccard_eval.data.dataset import ImageTable, unknown_sizes
from jaccard_eval.data.imagenames import path_ends, posix, without_suffix
from jaccard_eval.errors import FindingLog, Where, counted
from jaccard_eval.reading.files import require_readable
from jaccard_eval.reading.folders import list_tree
from jaccard_eval.reading.labelmaps.images import SUFFIXES


@dataclass(frozen=True, slots=True)
class MapPair:
    """One label map of the ground truth and the one predicted for it."""

    name: str
    gt: Path
    pred: Path


@dataclass(frozen=True, eq=False)
class MapSide:
    """The label maps of one side.

    Parameters
    ----------
    role : {"gt", "pred"}
    root : Path
    names : tuple of str
        Paths below `root`, with slashes, sorted.
    others : int
        Files below `root` that are no label maps by their suffix.
    is_file : bool
        Whether the side is a single file.
    """

    role: str
    root: Path
    names: tuple[str, ...]
    others: int = 0
    is_file: bool = False

    def path(self, row: int) -> Path:
        """Return the path of a map."""
        return self.root / self.names[row]

    @property
    def table(self) -> ImageTable:
        """The maps as images; ``a.npy`` may belong to ``a.png``, so that suffix is no part of a name."""
        keys = tuple(name.removesuffix(".npy") for name in self.names)
        return ImageTable(keys, keys, unknown_sizes(len(keys)), listed=True)

    def find(self, name: str) -> list[int]:
        """Return the maps that a path can mean, with or without suffix: one ends with the other, by whole folders."""
        forms = (posix(name), _bare(posix(name)))
        ends = [self._by_end.get(form, []) for form in forms]
        whole = [self._by_path.get(end, []) for form in forms for end in path_ends(form)]
        return next((rows for rows in (*whole[:1], *ends, *whole) if rows), [])

    @cached_property
    def _by_path(self) -> dict[str, list[int]]:
        """Rows by path, with and without suffix."""
        return _index((form, row) for row, name in enumerate(self.names) for form in {name, _bare(name)})

    @cached_property
    def _by_end(self) -> dict[str, list[int]]:
        """Rows by each end of a path, with and without suffix."""
        return _index((end, row) for form, rows in self._by_path.items() for row in rows for end in path_ends(form))


def _index(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for form, row in places:
        rows.setdefault(form, []).append(row)
    return rows


def list_side(role: str, path: Path, findings: FindingLog) -> MapSide:
    """Return the label maps of a folder and below it, or the one in a file.

    Raises
    ------
    DataError
        When the path cannot be read.
    """
    require_readable(path)
    if not path.is_dir():
        return MapSide(role, path.parent, (path.name,), is_file=True)
    files = list_tree(path, findings)
    names = tuple(name for name in files if name.lower().endswith(SUFFIXES))
    if not names:
        suffixes = " or ".join(SUFFIXES)
        detail = f"there is no label map ({suffixes}) among the {counted(len(files), 'file')} of the folder"
        findings.error("map-none", Where(str(path)), detail, fix="Pass the folder of the label maps.")
    return MapSide(role, path, names, others=len(files) - len(names))


def make_pair(gt: MapSide, pred: MapSide, gt_row: int, pred_row: int) -> MapPair:
    """Return the pair of two maps, named as the ground truth's."""
    return MapPair(gt.names[gt_row], gt.path(gt_row), pred.path(pred_row))


def _bare(name: str) -> str:
    return without_suffix(name.removesuffix(".npy"))
