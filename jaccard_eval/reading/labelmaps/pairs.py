"""Which label maps belong together: folders, lists and single files of both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from jaccard_eval.data.dataset import ImageTable, unknown_sizes
from jaccard_eval.data.imagekeys import (
    LABEL_SUFFIXES,
    NOWHERE,
    ImageMatch,
    is_image_name,
    match_by,
    path_ends,
    posix,
    without_suffix,
)
from jaccard_eval.engine import bring
from jaccard_eval.findings import FindingLog, Severity, Where, as_settings
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.reading.files import list_tree, require_readable
from jaccard_eval.reading.labelmaps.arrays import ArrayMap, ArrayMaps
from jaccard_eval.text import pluralise, quoted_value


@dataclass(frozen=True, slots=True)
class MapPair:
    """One label map of the ground truth and the one predicted for it."""

    name: str
    gt: Path | ArrayMap
    pred: Path | ArrayMap


@dataclass(frozen=True, eq=False)
class MapSide:
    """The label maps of one side."""

    role: str
    root: Path
    names: tuple[str, ...]  # paths below the root, with slashes, sorted
    others: int = 0  # files below the root whose suffix is not that of a label map, and other layers of the maps
    is_file: bool = False  # whether the side is a single file
    arrays: ArrayMaps | None = None  # in place of files

    def path(self, row: int) -> Path | ArrayMap:
        """Return the path of a map, or the map."""
        return self.root / self.names[row] if self.arrays is None else self.arrays.map(self.names[row])

    @property
    def table(self) -> ImageTable:
        """The maps as images; ``a.npy`` may belong to ``a.png``, so names exclude that suffix."""
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


def list_side(role: str, path: Path | ArrayMaps, findings: FindingLog) -> MapSide:
    """Return the label maps of a folder and below it, the one in a file, or those in memory."""
    if isinstance(path, ArrayMaps):
        if not path.maps:
            findings.error("map-none", Where(str(path)), "there is no label map", fix="Pass one array per image.")
        return MapSide(role, Path(str(path)), tuple(sorted(path.maps)), arrays=path)
    require_readable(path)
    if not path.is_dir():
        return MapSide(role, path.parent, (path.name,), is_file=True)
    files = list_tree(path, findings)
    names = _one_layer(_labels_in([name for name in files if name.lower().endswith(LABEL_SUFFIXES)]))
    names = names or tuple(filter(is_image_name, files))  # whose content is reported
    if not names:
        suffixes = " or ".join((", ".join(LABEL_SUFFIXES[:-1]), LABEL_SUFFIXES[-1]))
        detail = f"there is no label map ({suffixes}) among the {pluralise(len(files), 'file')} of the folder"
        findings.error("map-none", Where(str(path)), detail, fix="Pass the folder of the label maps.")
    bring(path / name for name in names)
    return MapSide(role, path, names, others=len(files) - len(names))


# What Cityscapes has of each image, the classes that its benchmark compares first.
_LAYERS = ("_labelIds", "_labelTrainIds", "_instanceIds", "_instanceTrainIds", "_color")


_LABELS = ("SegmentationClass", "semantic")  # folders of PASCAL VOC and KITTI, next to those of images and objects


def _labels_in(names: list[str]) -> list[str]:
    """Return the names in a folder of labels, where the root of a data set has one among others."""
    inside = (tuple(name for name in names if label in name.split("/")[:-1]) for label in _LABELS)
    return [*next(filter(None, inside), names)]


def _one_layer(names: list[str]) -> tuple[str, ...]:
    """Return the names without the other layers of images that have several."""
    layer = re.compile(f"(?:{'|'.join(_LAYERS)})(?=\\.\\w+$)")
    first: dict[str, int] = {}
    rank = {name: _LAYERS.index(found[0]) for name in names if (found := layer.search(name))}
    for name, at in rank.items():
        first[layer.sub("", name)] = min(at, first.get(layer.sub("", name), at))
    return tuple(name for name in names if name not in rank or first[layer.sub("", name)] == rank[name])


def make_pair(gt: MapSide, pred: MapSide, gt_row: int, pred_row: int) -> MapPair:
    """Return the pair of two maps, named as the ground truth's."""
    return MapPair(gt.names[gt_row], gt.path(gt_row), pred.path(pred_row))


def _bare(name: str) -> str:
    return without_suffix(name.removesuffix(".npy"))


_SEPARATOR = re.compile(r"\s*[\t,;]\s*")
_FIX = "Write a name that both sides have, or the two paths below GT and PRED, separated by a tab."


def read_pairs(path: Path, gt: MapSide, pred: MapSide, findings: FindingLog) -> list[MapPair]:
    """Return the pairs that a list names, in its order; what it names in vain, or twice, is an error in `findings`.

    Names are looked up among the files of the two sides, so that a list reaches no other file.
    """
    with as_settings():
        lines = [line.strip() for line in files.read_lines(path)]
    pairs: dict[MapPair, int] = {}
    for number, line in enumerate(lines, start=1):
        names = _names_of(line, gt, pred)
        pair = _find_pair(names, gt, pred, Where(str(path), line=number), findings) if line else None
        if pair is not None and pairs.setdefault(pair, number) != number:
            detail = f"{quoted_value(names[0])} is already listed on line {pairs[pair]}"
            findings.error("map-list", Where(str(path), line=number), detail, fix="List each label map once.")
    if not any(lines):
        findings.error("map-list", Where(str(path)), "the list is empty", fix="Write one label map per line.")
    return list(pairs)


def _names_of(line: str, gt: MapSide, pred: MapSide) -> tuple[str, str]:
    """Split a line into the names for either side: at a tab, comma or semicolon, else at blanks between known names."""
    parts = _SEPARATOR.split(line)
    if len(parts) == 2:
        return parts[0], parts[1]
    parts = line.split()
    if len(parts) == 2 and gt.find(parts[0]) and pred.find(parts[1]):
        return parts[0], parts[1]
    return line, line


def _find_pair(
    names: tuple[str, str], gt: MapSide, pred: MapSide, where: Where, findings: FindingLog
) -> MapPair | None:
    rows = []
    for side, name in zip((gt, pred), names, strict=True):
        found = side.find(name)
        if len(found) == 1:
            rows.append(found[0])
            continue
        several = " and ".join(quoted_value(side.names[row]) for row in found[:2])
        what = f"can mean {several} in {side.root}" if found else f"is not a label map in {side.root}"
        findings.error("map-list", where, f"{quoted_value(name)} {what}", fix=_FIX)
    return make_pair(gt, pred, rows[0], rows[1]) if len(rows) == 2 else None


STRATEGIES = ("name", "path", "basename", "stem", "affix")  # in the order of trial
SINGLE_FILES = "single files"
LISTED = "list"
OTHER_FILES = "other-files"  # ignored: not label maps by their suffix
UNLISTED = "unlisted"  # ignored: not on the list
_FIX_UNPAIRED = Fix.missing("Add or remove label maps, or choose which to compare with {list}.", list=None)


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs in the order of the ground truth (or of the list), how they were found, and what was ignored."""

    pairs: tuple[MapPair, ...]
    strategy: str
    ignored: tuple[Mapping[str, int], Mapping[str, int]]  # of ground truth and predictions, by reason


def pair_maps(
    gt_path: Path | ArrayMaps, pred_path: Path | ArrayMaps, list_file: Path | None, findings: FindingLog
) -> Pairing:
    """Find the pairs of label maps.

    Two files are a pair whatever their names. Of folders, every map needs its counterpart; with a list, every entry.
    Maps without one are errors in `findings`.
    """
    gt, pred = list_side("gt", gt_path, findings), list_side("pred", pred_path, findings)
    if list_file is not None:
        pairs = read_pairs(list_file, gt, pred, findings)
        return Pairing(tuple(pairs), LISTED, (_set_aside(gt, pairs), _set_aside(pred, pairs)))
    ignored = _set_aside(gt), _set_aside(pred)
    if gt.is_file and pred.is_file:
        return Pairing((make_pair(gt, pred, 0, 0),), SINGLE_FILES, ignored)
    # The first strategy that pairs most maps of the predictions, among those that are one to one.
    nothing = ImageMatch(STRATEGIES[0], np.full(len(pred.names), NOWHERE, dtype=np.int32), one_to_one=True)
    matches = (match_by(strategy, gt.table, pred.table) for strategy in STRATEGIES)
    clear = [match for match in matches if match.one_to_one]
    match = max(clear or [nothing], key=lambda match: int((match.rows != NOWHERE).sum()))
    _require_all_paired(gt, pred, match, findings)
    rows = sorted((int(row), i) for i, row in enumerate(match.rows) if row != NOWHERE)
    return Pairing(tuple(make_pair(gt, pred, *pair) for pair in rows), match.strategy, ignored)


def _set_aside(side: MapSide, chosen: list[MapPair] | None = None) -> dict[str, int]:
    """Count what is not compared, by reason."""
    counts = {OTHER_FILES: side.others}
    if chosen is not None:
        counts[UNLISTED] = len(side.names) - len({getattr(pair, side.role) for pair in chosen})
    return {reason: count for reason, count in counts.items() if count}


def _require_all_paired(gt: MapSide, pred: MapSide, match: ImageMatch, findings: FindingLog) -> None:
    without_pred = np.setdiff1d(np.arange(len(gt.names)), match.rows)
    without_gt = np.flatnonzero(match.rows == NOWHERE)
    for side, rows, missing in ((gt, without_pred, "prediction"), (pred, without_gt, "ground truth")):

        def describe(row: int, side: MapSide = side, missing: str = missing) -> tuple[Where, str]:
            return Where(str(side.path(row))), f"there is no {missing} of this name"

        findings.add_rows(Severity.ERROR, "map-unpaired", rows.tolist(), describe, fix=_FIX_UNPAIRED)
