"""The label maps of one side: the files of a folder that can be one, or a single file. Nothing is opened."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jaccard_eval.data.dataset import ImageTable, unknown_sizes
from jaccard_eval.data.imagekeys import counted
from jaccard_eval.data.imagenames import path_ends, posix, without_suffix
from jaccard_eval.errors import FindingLog, Where
from jaccard_eval.formats import _files
from jaccard_eval.formats._labelmaps.images import SUFFIXES
from jaccard_eval.formats._tree import list_tree


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
        """Return the maps that a name can mean: by path, by the end of a path, or without the suffix of a picture."""
        for form in (posix(name), _bare(posix(name))):
            if form in self._rows_by_form:
                return self._rows_by_form[form]
        return []

    @cached_property
    def _rows_by_form(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            for form in {*path_ends(name), *path_ends(_bare(name))}:
                rows.setdefault(form, []).append(row)
        whole = {name: [row] for row, name in enumerate(self.names)}
        return rows | whole


def list_side(role: str, path: Path, findings: FindingLog) -> MapSide:
    """Return the label maps of a folder and below it, or the one in a file.

    Raises
    ------
    DataError
        When the path cannot be read.
    """
    _files.require_readable(path)
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
