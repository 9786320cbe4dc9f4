"""Which label map of the predictions belongs to which of the ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaccard_eval.data.imagekeys import NOWHERE, ImageMatch, match_by
from jaccard_eval.errors import FindingLog, Severity, Where
from jaccard_eval.reading.labelmaps.lists import read_pairs
from jaccard_eval.reading.labelmaps.sides import MapPair, MapSide, list_side, make_pair

STRATEGIES = ("name", "path", "basename", "stem")  # in the order of trial
SINGLE_FILES = "single files"
LISTED = "list"
OTHER_FILES = "other-files"  # set aside: no label maps by their suffix
UNLISTED = "unlisted"  # set aside: not on the list
_FIX = "Add or remove label maps, or choose which to compare with --list FILE."


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs in the order of the ground truth (or of the list), how they were found, and what was set aside."""

    pairs: tuple[MapPair, ...]
    strategy: str
    ignored: tuple[Mapping[str, int], Mapping[str, int]]  # of ground truth and predictions, by reason


def pair_maps(gt_path: Path, pred_path: Path, list_file: Path | None, findings: FindingLog) -> Pairing:
    """Find the pairs of label maps.

    Two files are a pair whatever their names. Of folders, every map needs its counterpart; with a list, every entry.
    Maps without one are errors in `findings`.

    Raises
    ------
    DataError
        When a path cannot be read.
    """
    gt, pred = list_side("gt", gt_path, findings), list_side("pred", pred_path, findings)
    if list_file is not None:
        pairs = read_pairs(list_file, gt, pred, findings)
        return Pairing(tuple(pairs), LISTED, (_set_aside(gt, pairs), _set_aside(pred, pairs)))
    ignored = _set_aside(gt), _set_aside(pred)
    if gt.is_file and pred.is_file:
        return Pairing((make_pair(gt, pred, 0, 0),), SINGLE_FILES, ignored)
    match = _best_match(gt, pred)
    _require_all_paired(gt, pred, match, findings)
    rows = sorted((int(row), i) for i, row in enumerate(match.rows) if row != NOWHERE)
    return Pairing(tuple(make_pair(gt, pred, *pair) for pair in rows), match.strategy, ignored)


def _set_aside(side: MapSide, chosen: list[MapPair] | None = None) -> dict[str, int]:
    """Count what is not compared, by reason."""
    counts = {OTHER_FILES: side.others}
    if chosen is not None:
        counts[UNLISTED] = len(side.names) - len({getattr(pair, side.role) for pair in chosen})
    return {reason: count for reason, count in counts.items() if count}


def _best_match(gt: MapSide, pred: MapSide) -> ImageMatch:
    """Take the first strategy that pairs most maps of the predictions, among those that are one to one."""
    nothing = ImageMatch(STRATEGIES[0], np.full(len(pred.names), NOWHERE, dtype=np.int32), one_to_one=True)
    matches = (match_by(strategy, gt.table, pred.table) for strategy in STRATEGIES)
    clear = [match for match in matches if match.one_to_one]
    return max(clear or [nothing], key=lambda match: int((match.rows != NOWHERE).sum()))


def _require_all_paired(gt: MapSide, pred: MapSide, match: ImageMatch, findings: FindingLog) -> None:
    without_pred = np.setdiff1d(np.arange(len(gt.names)), match.rows)
    without_gt = np.flatnonzero(match.rows == NOWHERE)
    for side, rows, missing in ((gt, without_pred, "prediction"), (pred, without_gt, "ground truth")):

        def describe(row: int, side: MapSide = side, missing: str = missing) -> tuple[Where, str]:
            return Where(str(side.path(row))), f"there is no {missing} of this name"

        findings.add_rows(Severity.ERROR, "map-unpaired", rows.tolist(), describe, fix=_FIX)
