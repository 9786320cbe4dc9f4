"""How the classes of two inputs correspond: by a given or named map, by name, else by id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.data.dataset import Key, LabelMap, key_order
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, quoted_value

NOWHERE = -1
AUTO = "auto"  # the map that the boxes support; not a map itself

COCO_GAPS = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})  # of COCO's 91 ids, those that detection does not use
COCO_IDS = tuple(number for number in range(1, 91) if number not in COCO_GAPS)  # the 80 categories, in their order

Rule = Callable[[LabelMap, LabelMap], Iterable[int]]


def class_map_names() -> list[str]:
    """Names of all maps, "auto" among them."""
    return [AUTO, *NAMED_MAPS]


def rows_of_named(name: str, gt: LabelMap, pred: LabelMap) -> RowArray:
    """Return the ground-truth row of each prediction class under a named map, -1 for none; shape (n_pred_classes,)."""
    if name not in NAMED_MAPS:
        known = class_map_names()
        raise UsageError(
            f"unknown class map {quoted_value(name)}; choose from {', '.join(known)}.{did_you_mean(name, known)}"
        )
    before, merged = former(gt)
    return merged[np.fromiter(NAMED_MAPS[name](before, pred), dtype=np.int32, count=len(pred))]


def former(labels: LabelMap) -> tuple[LabelMap, RowArray]:
    """Return classes as they were before they were merged, and the row of each of those now; the last is -1, for none.

    What predictions are is read by these: a place in their order, an id or a name.
    """
    before, rows = labels.former or (labels, np.arange(len(labels), dtype=np.int32))
    return before, np.append(rows, np.int32(NOWHERE))


def merged_labels(labels: LabelMap, class_map: Mapping[str, str], side: str) -> tuple[LabelMap, RowArray]:
    """Return classes that are renamed by a map of names or ids, and the row of each class among them.

    Those of one name are one class, with the id of the class that had this name, else of the first.
    """
    known = {text for key, name in zip(labels.keys, labels.names, strict=True) for text in (str(key), name)}
    for source in class_map:
        _require(source, known, side)
    by_id = {str(key): name for key, name in zip(labels.keys, labels.names, strict=True)}
    class_map = {source: goal if goal in labels.names else by_id.get(goal, goal) for source, goal in class_map.items()}
    goals = [
        class_map.get(name, class_map.get(str(key), name)) for key, name in zip(labels.keys, labels.names, strict=True)
    ]
    keys: dict[str, Key] = {}
    for key, name, goal in zip(labels.keys, labels.names, goals, strict=True):
        if goal not in keys or name == goal:
            keys[goal] = goal if key == name else key
    names = sorted(keys, key=lambda name: key_order(keys[name]))
    rows = np.array([names.index(goal) for goal in goals], dtype=np.int32)
    return LabelMap(tuple(map(keys.__getitem__, names)), tuple(names), labels.named, former=(labels, rows)), rows


def fold_name(name: str) -> str:
    """Return a class name without what exporters change: case, spaces, dashes and underscores."""
    return "".join(character for character in name.casefold() if character not in " -_")


def _by_id(gt: LabelMap, pred: LabelMap) -> Iterable[int]:
    """Ids that are written alike: 3 and "3" are one."""
    at = {str(key): row for row, key in enumerate(gt.keys)}
    return (at.get(str(key), NOWHERE) for key in pred.keys)


def _by_name(gt: LabelMap, pred: LabelMap) -> Iterable[int]:
    exact = _first_rows(gt.names)
    folded = _first_rows([fold_name(name) for name in gt.names])
    return (exact.get(name, folded.get(fold_name(name), NOWHERE)) for name in pred.names)


def _first_rows(names: Sequence[str]) -> dict[str, int]:
    return {name: row for row, name in reversed(list(enumerate(names)))}


def _shifted(by: int) -> Rule:
    def rule(gt: LabelMap, pred: LabelMap) -> Iterable[int]:
        at = {key: row for row, key in enumerate(gt.keys) if isinstance(key, int)}
        return (at.get(key + by, NOWHERE) if isinstance(key, int) else NOWHERE for key in pred.keys)

    return rule


def _counted(listed: Callable[[LabelMap], Sequence[int]], start: int) -> Rule:
    """Read the prediction id as a position, counted from `start`, in a list of ground-truth rows."""

    def rule(gt: LabelMap, pred: LabelMap) -> Iterable[int]:
        rows = listed(gt)
        places = [key - start if isinstance(key, int) else NOWHERE for key in pred.keys]
        return (rows[place] if 0 <= place < len(rows) else NOWHERE for place in places)

    return rule


def _by_key(gt: LabelMap) -> Sequence[int]:
    return gt.order or range(len(gt))


def _by_alphabet(gt: LabelMap) -> Sequence[int]:
    return sorted(range(len(gt)), key=lambda row: gt.names[row])


def _coco_categories(gt: LabelMap) -> Sequence[int]:
    at = {key: row for row, key in enumerate(gt.keys)}
    return [at.get(number, NOWHERE) for number in COCO_IDS]


def _from_coco_ids(start: int) -> Rule:
    """Read COCO's sparse ids as places among its 80 categories, counted from `start`."""
    places = {number: place + start for place, number in enumerate(COCO_IDS)}

    def rule(gt: LabelMap, pred: LabelMap) -> Iterable[int]:
        at = {key: row for row, key in enumerate(gt.keys)}
        return (at.get(places[key], NOWHERE) if key in places else NOWHERE for key in pred.keys)

    return rule


NAMED_MAPS: dict[str, Rule] = {  # of maps that fit alike, the first is suggested
    "name": _by_name,
    "id": _by_id,
    "id+1": _shifted(1),
    "id-1": _shifted(-1),
    "contiguous": _counted(_by_key, 0),
    "contiguous-from-1": _counted(_by_key, 1),
    "order": lambda gt, pred: (row if row < len(gt) else NOWHERE for row in range(len(pred))),
    "coco80-91": _counted(_coco_categories, 0),
    "coco80-91-from-1": _counted(_coco_categories, 1),
    "coco91-80": _from_coco_ids(0),
    "coco91-80-from-1": _from_coco_ids(1),
    "alphabetical": _counted(_by_alphabet, 0),
    "alphabetical-from-1": _counted(_by_alphabet, 1),
    "without-first": _counted(lambda gt: range(1, len(gt)), 0),
}


@dataclass(frozen=True, slots=True, eq=False)
class ClassMatch:
    """Ground-truth row of each prediction class, -1 for none; found by "name", "id", "map", or a map of that name."""

    strategy: str
    rows: RowArray


def match_classes(
    gt: LabelMap, pred: LabelMap, class_map: Mapping[str, str] | str | None, where: Where, findings: FindingLog
) -> ClassMatch:
    """Match classes; names that differ only in case, spaces, dashes or underscores correspond, with a warning."""
    if isinstance(class_map, str):
        return ClassMatch(class_map, rows_of_named(class_map, gt, pred))
    if class_map:
        return ClassMatch("map", rows_of_pairs(gt, pred, class_map))
    before, merged = former(gt)
    if gt.named and pred.named:
        rows = merged[_by_spelling(before, pred, where, findings)]
        if gt.former:
            now = _first_rows(gt.names)
            rows = np.array([now.get(name, row) for name, row in zip(pred.names, rows, strict=True)], dtype=np.int32)
        return ClassMatch("name", rows)
    at = {key: row for row, key in enumerate(before.keys)}
    names = {**dict(zip(before.names, merged.tolist(), strict=False)), **_first_rows(gt.names)}
    ids = [
        merged[at[key]] if key in at else names.get(str(key), NOWHERE) if isinstance(key, str) else NOWHERE
        for key in pred.keys
    ]
    if max(ids, default=0) < 0 and (listed := _by_listed_order(before, pred)):
        numbered, naming = ("predictions", "ground truth") if before.order else ("ground truth", "predictions")
        detail = f"classes of the {numbered} are numbers; read in the order in which the {naming} lists its classes"
        fix = Fix.missing("For other names, pass {gt_names} or {pred_names}.", gt_names=None, pred_names=None)
        findings.note("names-found", where, detail.replace("predictions lists its", "predictions list their"), fix=fix)
        ids = merged[listed].tolist()
    return ClassMatch("id", np.array(ids, dtype=np.int32))


def _by_listed_order(gt: LabelMap, pred: LabelMap) -> list[int]:
    """Return the rows of classes that one side numbers from 0, in the order in which the other one lists them.

    Nothing where a number has no place in it.
    """
    numbers, listed = (
        (pred.keys, gt.order) if gt.order and not pred.named else (gt.keys, () if gt.named else pred.order)
    )
    if not all(isinstance(number, int) and 0 <= number < len(listed) for number in numbers):
        return []
    if listed is gt.order:
        return [listed[int(number)] for number in numbers]
    at = {key: row for row, key in enumerate(gt.keys)}
    return [at.get(listed.index(row), NOWHERE) for row in range(len(pred))]


def rows_of_pairs(gt: LabelMap, pred: LabelMap, class_map: Mapping[str, str]) -> RowArray:
    """Return the ground-truth row of each prediction class under a map of names (or ids as text), -1 for none.

    Classes that the map does not name keep their name; one that it names and neither side has is a UsageError, as is a
    map of which the predictions have no class.
    """
    before, merged = former(gt)
    # What classes were goes behind what they are, and ids behind names.
    texts = [*map(str, before.keys), *before.names[::-1]]
    known = dict(zip(texts, [*merged[:-1].tolist(), *merged[-2::-1].tolist()], strict=True)) | _first_rows(gt.names)
    named = {text for key, name in zip(pred.keys, pred.names, strict=True) for text in (str(key), name)}
    # A class of the ground truth that is never predicted may stand in the map, as long as others are.
    sources = {*named, *texts} if named & class_map.keys() else named
    for source, target in class_map.items():
        _require(source, sources, "predictions")
        if target not in known:
            merged_there = ",".join(f"{name}={goal}" for name, goal in class_map.items() if name in known)
            words = "To give classes of the ground truth this name, pass {gt_class_map}."
            fix = Fix.missing(words, gt_class_map=merged_there or f"CLASS={target}")
            _require(target, known, "ground truth", fix=fix)
    mapped = [
        class_map.get(name, class_map.get(str(key), name)) for key, name in zip(pred.keys, pred.names, strict=True)
    ]
    return np.array([known.get(name, NOWHERE) for name in mapped], dtype=np.int32)


def named_through(gt: LabelMap, pred: LabelMap, rule: str) -> LabelMap:
    """Return numbered classes with the names that the ground truth has for them, whose numbers count by a rule."""
    before = former(gt)[0]
    rows = rows_of_named(rule, before, pred)
    names = (before.names[row] if row >= 0 else name for row, name in zip(rows.tolist(), pred.names, strict=True))
    return replace(pred, names=tuple(names), named=True)


def _require(name: str, known: Collection[str], side: str, fix: Fix | None = None) -> None:
    if name not in known:
        listed = ", ".join(sorted(known)[:10])
        raise UsageError(
            f"class map: no class {quoted_value(name)} in the {side}; it has {listed}.{did_you_mean(name, known)}",
            fix=fix,
        )


def _by_spelling(gt: LabelMap, pred: LabelMap, where: Where, findings: FindingLog) -> RowArray:
    """Match equal names, then the rest ignoring case and spacing, with a warning."""
    exact = _first_rows(gt.names)
    same = {pair: row for row, pair in enumerate(zip(gt.keys, gt.names, strict=True))}  # separates shared names
    pairs = zip(pred.keys, pred.names, strict=True)
    rows = np.array([same.get(pair, exact.get(pair[1], NOWHERE)) for pair in pairs], dtype=np.int32)
    taken = set(rows.tolist())
    folded = {fold_name(gt.names[row]): row for row in reversed(range(len(gt))) if row not in taken}
    for i in np.flatnonzero(rows < 0):
        row = folded.pop(fold_name(pred.names[i]), NOWHERE)
        if row >= 0:
            rows[i] = row
            findings.warning(
                "class-spelling",
                where,
                f"class {quoted_value(pred.names[i])} is matched with {quoted_value(gt.names[row])}: only "
                "case or spacing differs",
                fix=Fix.missing("Spell it the same way on both sides, or map it with {class_map}.", class_map=None),
            )
    return rows
