"""How the classes of two inputs correspond: by a given or named map, by name, else by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.data.class_rules import NOWHERE, fold_name, rows_of_named
from jaccard_eval.data.dataset import LabelMap
from jaccard_eval.errors import FindingLog, UsageError, Where, did_you_mean, shown


@dataclass(frozen=True, slots=True, eq=False)
class ClassMatch:
    """Ground-truth row of each prediction class, -1 for none; found by "name", "id", "map", or a map of that name."""

    strategy: str
    rows: RowArray


def match_classes(
    gt: LabelMap, pred: LabelMap, class_map: Mapping[str, str] | str | None, where: Where, findings: FindingLog
) -> ClassMatch:
    """Match classes; names that differ only in case, spaces, dashes or underscores correspond, with a warning.

    Raises
    ------
    UsageError
        When the class map names a class that neither side has, or no map is called so.
    """
    if isinstance(class_map, str):
        return ClassMatch(class_map, rows_of_named(class_map, gt, pred))
    if class_map:
        return ClassMatch("map", rows_of_pairs(gt, pred, class_map))
    if gt.named and pred.named:
        return ClassMatch("name", _by_name(gt, pred, where, findings))
    at = {key: row for row, key in enumerate(gt.keys)}
    names = {name: row for row, name in reversed(list(enumerate(gt.names)))}
    rows = [at.get(key, names.get(key, NOWHERE) if isinstance(key, str) else NOWHERE) for key in pred.keys]
    return ClassMatch("id", np.array(rows, dtype=np.int32))


def rows_of_pairs(gt: LabelMap, pred: LabelMap, class_map: Mapping[str, str]) -> RowArray:
    """Return the ground-truth row of each prediction class under a map of names (or ids as text), -1 for none.

    Classes that the map does not name keep their name.

    Raises
    ------
    UsageError
        When the map names a class that neither side has.
    """
    ours = {name: row for row, name in reversed(list(enumerate(gt.names)))}
    ours |= {str(key): row for row, key in enumerate(gt.keys) if str(key) not in ours}
    theirs = {text for key, name in zip(pred.keys, pred.names, strict=True) for text in (str(key), name)}
    for source, target in class_map.items():
        _require(source, theirs, "predictions")
        _require(target, ours, "ground truth")
    mapped = [
        class_map.get(name, class_map.get(str(key), name)) for key, name in zip(pred.keys, pred.names, strict=True)
    ]
    return np.array([ours.get(name, NOWHERE) for name in mapped], dtype=np.int32)


def _require(name: str, known: set[str] | dict[str, int], side: str) -> None:
    if name not in known:
        listed = ", ".join(sorted(known)[:10])
        raise UsageError(
            f"class map: no class {shown(name)} in the {side}; it has {listed}.{did_you_mean(name, known)}"
        )


def _by_name(gt: LabelMap, pred: LabelMap, where: Where, findings: FindingLog) -> RowArray:
    exact = {name: row for row, name in reversed(list(enumerate(gt.names)))}
    same = {pair: row for row, pair in enumerate(zip(gt.keys, gt.names, strict=True))}  # tells shared names apart
    pairs = zip(pred.keys, pred.names, strict=True)
    rows = np.array([same.get(pair, exact.get(pair[1], NOWHERE)) for pair in pairs], dtype=np.int32)
    free = [row for row in range(len(gt)) if row not in set(rows.tolist())]
    folded = {fold_name(gt.names[row]): row for row in reversed(free)}
    for i in np.flatnonzero(rows < 0):
        row = folded.pop(fold_name(pred.names[i]), NOWHERE)
        if row >= 0:
            rows[i] = row
            findings.warning(
                "class-spelling",
                where,
                f"class {shown(pred.names[i])} is taken for {shown(gt.names[row])}: only case or spacing differs",
                fix="Spell it alike on both sides, or map it with --class-map.",
            )
    return rows
