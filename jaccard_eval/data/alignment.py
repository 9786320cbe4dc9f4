"""Bring two inputs together: which images and classes are the same, in which units, and what is left over.

`Sides` has both: as they were read, aligned, and as a protocol judges them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, FloatArray, RowArray, Words, find_too_large, freeze
from jaccard_eval.data.dataset import ClassFacts, Dataset, ImageTable, IntegerKeys, Key, LabelMap, key_order
from jaccard_eval.data.imagekeys import AUTOMATIC, MAP_SUFFIXES, OVERLOOKED, ImageMatch, match_by, stem_of
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.data.result import Correspondence, InputSummary
from jaccard_eval.data.signature import signature
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import IMAGES_OF, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import IMAGE_WAYS, SideOptions
from jaccard_eval.text import did_you_mean, example_keys, is_numeral, pluralise, quoted_value

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
    map of which the predictions have no class. Numbers may be missing on either side.
    """
    before, merged = former(gt)
    # What classes were goes behind what they are, and ids behind names.
    texts = [*map(str, before.keys), *before.names[::-1]]
    known = dict(zip(texts, [*merged[:-1].tolist(), *merged[-2::-1].tolist()], strict=True)) | _first_rows(gt.names)
    named = {text for key, name in zip(pred.keys, pred.names, strict=True) for text in (str(key), name)}
    # A class of the ground truth that is never predicted may stand in the map, as long as others are.
    sources = {*named, *texts} if named & class_map.keys() else named
    # Of classes that are numbers, a map may be the whole list of a detector: results have the numbers that were found,
    # and ground truth the classes that occur. What is nearly the name of one that no number has is a mistake.
    are_numbers = all(name == str(key) and is_numeral(name) for key, name in zip(pred.keys, pred.names, strict=True))
    is_list = are_numbers and bool(named & class_map.keys()) and not known.keys().isdisjoint(class_map.values())
    unused = known.keys() - {*class_map.values()}
    for source, target in class_map.items():
        if not (is_list and is_numeral(source)):
            _require(source, sources, "predictions")
        if target not in known and not (is_list and is_numeral(source) and not did_you_mean(target, unused)):
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


IntArray = npt.NDArray[np.int64]

EXTRA_IMAGES = ("error", "ignore", "empty")
EXPLAINED = 0.95  # share of the prediction images that a strategy other than equal keys must match to be believed


@dataclass(frozen=True, slots=True, eq=False)
class CommonImages:
    """The common images: the ground truth's, in their order, with extra images of the predictions where accepted.

    Rows of either side are -1 for ignored images.
    """

    table: ImageTable
    gt_rows: RowArray
    pred_rows: RowArray
    strategy: str


def align_images(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> CommonImages:
    """Find the common images.

    A DataError is raised when too few images correspond, or not one to one, or predictions are on images that the
    ground truth lacks; a UsageError when only common images are asked for and a side does not list its images.
    """
    _require_known("deal with extra images", options.extra_images, EXTRA_IMAGES)
    if options.images_in_common:
        _require_listed(gt, pred)
    used = pred.boxes.counts("image", len(pred.images)) > 0
    match = _choose_strategy(gt, pred, used, options)
    if match.strategy in OVERLOOKED and options.match_images is None:
        _note_adapted(gt, pred, match, findings)
    if options.images_in_common:
        return _only_common(gt, pred, match, used, findings)
    extra = np.flatnonzero((match.rows < 0) & used).astype(np.int64)
    gt_rows = np.arange(len(gt.images), dtype=np.int32)
    if not len(extra) or not _keep_extra(_Extra.of(gt, pred, match, extra), options, findings):
        return CommonImages(gt.images, gt_rows, match.rows, match.strategy)
    return _with_extra(gt.images, pred.images, match, extra)


def _choose_strategy(gt: Dataset, pred: Dataset, used: BoolArray, options: SideOptions) -> ImageMatch:
    """Take the first strategy that is one-to-one and explains the prediction images that carry boxes.

    Where none does, equal keys need not explain them all: what is left over is then an extra image, which
    `extra_images` decides on.
    """
    if options.match_images:
        return _forced(gt, pred, options.match_images)
    tried: list[tuple[float, ImageMatch]] = []
    for strategy in AUTOMATIC:
        # Ids that differ only in their type, 7 and "7", are not matched by number: the user has to choose that.
        if strategy == "number" and _explained(match_by("id-text", gt.images, pred.images), used) >= EXPLAINED:
            continue
        match = match_by(strategy, gt.images, pred.images)
        share = _explained(match, used)
        if options.images_in_common:
            # Images that only one side has are ignored, so it is enough to match all images of the smaller side.
            share = max(share, np.count_nonzero(match.rows >= 0) / max(1, len(gt.images)))
        if match.one_to_one and share >= EXPLAINED:
            return match
        tried.append((share, match))
    id_share, by_id = tried[0]
    if not used.any() or (by_id.one_to_one and id_share > 0):
        return by_id
    # Two files that are an image each are a pair whatever their names; a map may be called as the image, and "_mask".
    if all(len(side.images) == 1 and _is_of_file(side) for side in (gt, pred)):
        return ImageMatch("single files", np.zeros(1, dtype=np.int32), one_to_one=True)
    share, best = max(tried, key=lambda trial: trial[0])
    raise _no_correspondence(gt, pred, used, best, share)


def _is_of_file(side: Dataset) -> bool:
    """Whether the only image of a side is named by its file alone."""
    name, key = stem_of(side.path), str(side.images.keys[0])
    is_named = name.startswith(key) if side.path.lower().endswith(MAP_SUFFIXES) else name.rpartition(".")[0] == key
    return is_named and not any(side.images.file_names)


def _explained(match: ImageMatch, used: BoolArray) -> float:
    """Return the share of the prediction images with boxes that are matched; where no image has any, 1 if all are."""
    return float((match.rows[used] >= 0).mean()) if used.any() else float((match.rows >= 0).all())


def _forced(gt: Dataset, pred: Dataset, strategy: str) -> ImageMatch:
    _require_known("match images", strategy, IMAGE_WAYS)
    match = match_by("id-text" if strategy == "id" else strategy, gt.images, pred.images)
    if not match.one_to_one:
        raise DataError.single(
            "image-ambiguous",
            Where(pred.path),
            f"images do not correspond one to one by {strategy}: several images of one side share one {strategy}",
            fix=Fix.missing("Choose another {match_images}.", match_images=IMAGE_WAYS),
        )
    return replace(match, strategy=strategy)


def _note_adapted(gt: Dataset, pred: Dataset, match: ImageMatch, findings: FindingLog) -> None:
    row = int(np.flatnonzero(match.rows >= 0)[0])
    gt_name, pred_name = gt.images.name(int(match.rows[row])), pred.images.name(row)
    detail = f"images are matched by {match.strategy}, ignoring {OVERLOOKED[match.strategy]}: "
    findings.note(
        "image-names-adapted",
        Where(pred.path, field="image"),
        f"{detail}{quoted_value(pred_name)} matches {quoted_value(gt_name)}",
    )


def _require_known(purpose: str, way: str, known: Sequence[str]) -> None:
    if way not in known:
        raise UsageError(
            f"unknown way to {purpose}: {quoted_value(way)}; choose from {', '.join(known)}.{did_you_mean(way, known)}"
        )


def _no_correspondence(gt: Dataset, pred: Dataset, used: BoolArray, best: ImageMatch, share: float) -> DataError:
    unknown = [pred.images.name(int(row)) for row in np.flatnonzero(used & (best.rows < 0))]
    matched = round(share * int(used.sum()))
    detail = (
        f"{matched:,} of {int(used.sum()):,} prediction images match a ground-truth image of {gt.path}"
        f"{f' by {best.strategy}' if matched else ''}"
    )
    if not best.one_to_one:
        reason = f"not one to one: several images share one {best.strategy}"
        detail += f", but {'the file names of equal ids differ' if best.strategy == 'id' else reason}"
    detail += f"; prediction image ids are {example_keys(unknown or pred.images.keys)}{_kind(pred.images)}"
    named = (f"{key} ({name})" if name else key for key, name in zip(gt.images.keys, gt.images.file_names, strict=True))
    gt_keys = f"those of the ground truth {example_keys(named)}{_kind(gt.images)}"
    detail += f", {gt_keys if len(gt.images) else 'the ground truth has none'}"
    return DataError.single(
        "image-unknown",
        Where(pred.path, field="image"),
        detail,
        fix=Fix.missing(
            "Check that both are of the same split. To choose how images match, pass {match_images}; to drop the rest,"
            " {extra_images}.",
            match_images=IMAGE_WAYS,
            extra_images="ignore",
        ),
    )


def _kind(images: ImageTable) -> str:
    """Add a hint about text keys if they may be why nothing matches."""
    texts = sum(isinstance(key, str) for key in images.keys)
    return " (string ids)" if texts == len(images) else " (integer ids)" if texts == 0 else ""


@dataclass(frozen=True, slots=True, eq=False)
class _Extra:
    """Prediction images that the ground truth does not have."""

    path: str
    detail: str
    names: str
    may_be_empty: bool

    @classmethod
    def of(cls, gt: Dataset, pred: Dataset, match: ImageMatch, extra: IntArray) -> _Extra:
        boxes = int(pred.boxes.counts("image", len(pred.images))[extra].sum())
        detail = f"{boxes:,} predictions on {pluralise(len(extra), 'image')} not in the ground truth {gt.path}"
        names = example_keys(pred.images.name(int(row)) for row in extra)
        alike = _lookalike(gt, pred, extra) if match.strategy == "id" else ""
        may_be_empty = not gt.images.listed and match.strategy == "id" and not alike
        return cls(pred.path, detail, f"{names}{alike}", may_be_empty)


def _lookalike(gt: Dataset, pred: Dataset, extra: IntArray) -> str:
    """Name an extra image that some other way of matching would find in the ground truth."""
    for strategy in AUTOMATIC[1:]:
        rows = match_by(strategy, gt.images, pred.images).rows
        found = extra[rows[extra] >= 0]
        if len(found):
            gt_name, pred_name = gt.images.name(int(rows[found[0]])), pred.images.name(int(found[0]))
            return f"; {quoted_value(pred_name)} would match {quoted_value(gt_name)} by {strategy}"
    return ""


def _keep_extra(extra: _Extra, options: SideOptions, findings: FindingLog) -> bool:
    """Decide whether extra images count as images without objects (True) or are ignored; or stop."""
    where = Where(extra.path, field="image")
    if options.extra_images == "error" and not extra.may_be_empty:
        findings.error(
            "image-unknown",
            where,
            f"{extra.detail}: {extra.names}",
            fix=Fix.missing(
                "Check that both are of the same split, or pass {extra_images:ignore} (drop them) or"
                " {extra_images:empty} (keep them).",
                extra_images=("ignore", "empty"),
            ),
        )
        findings.raise_errors()
    ignore = options.extra_images == "ignore"
    done = "ignored" if ignore else "counted as images without objects"
    if extra.may_be_empty and not ignore:
        done += ", as the ground truth does not list its images"
    findings.warning("image-extra", where, f"{extra.detail} ({extra.names}): {done}")
    return not ignore


def _with_extra(gt: ImageTable, pred: ImageTable, match: ImageMatch, extra: IntArray) -> CommonImages:
    """Add images to the ground truth's and sort all by key again."""
    n = len(gt)
    keys: Sequence[Key]
    if isinstance(gt.keys, IntegerKeys) and isinstance(pred.keys, IntegerKeys):
        values = np.append(gt.keys.values, pred.keys.values[extra])
        order = np.argsort(values, kind="stable")
        keys = IntegerKeys(values[order])
    else:
        given = [*gt.keys, *(pred.keys[row] for row in extra)]
        order = np.array(sorted(range(len(given)), key=lambda row: key_order(given[row])), dtype=np.int64)
        keys = tuple(given[row] for row in order.tolist())
    place = np.empty(len(keys), dtype=np.int32)
    place[order] = np.arange(len(keys))
    names = [*gt.file_names, *(pred.file_names[row] for row in extra)]
    sizes = np.concatenate((gt.sizes, pred.sizes[extra]))
    table = ImageTable(keys, tuple(names[row] for row in order), sizes[order], gt.listed)
    rows = match.rows.copy()
    rows[extra] = np.arange(n, len(keys))
    return CommonImages(table, place[:n], np.where(rows >= 0, place[rows], -1).astype(np.int32), match.strategy)


def _require_listed(gt: Dataset, pred: Dataset) -> None:
    """Refuse a side that names only images with boxes: what was missed on the others would not count."""
    sides = {"ground truth": gt, "predictions": pred}
    are_arrays = all(side.format == "arrays" for side in sides.values())
    for what, side in sides.items():
        # Arrays on both sides have the same images; with a file, they end with the last image that has a box.
        if not side.images.listed or (side.format == "arrays" and not are_arrays):
            raise UsageError(
                f"{side.path}: images in common need all images, but this file lists only images with boxes."
                " Ignoring the others would raise AP.",
                fix=Fix.of_side(
                    side.role,
                    f"Pass {what} with all images: COCO with 'images', or YOLO labels with {{images}}.",
                    images=None,
                ),
            )


def _only_common(gt: Dataset, pred: Dataset, match: ImageMatch, used: BoolArray, findings: FindingLog) -> CommonImages:
    """Keep the images that both sides have; warn of what either side loses."""
    is_common = match.rows >= 0
    if not is_common.any():
        raise _no_correspondence(gt, pred, used, match, 0.0)
    kept = np.unique(match.rows[is_common])
    lost = (
        left_out(gt, np.setdiff1d(np.arange(len(gt.images)), kept), "object"),
        left_out(pred, np.flatnonzero(~is_common), "prediction"),
    )
    if any(lost):
        what = pluralise(len(kept), "image is", "images are")
        detail = f"{what} on both sides. Ignored: {'; '.join(filter(None, lost))}"
        findings.warning("images-in-common", Where(pred.path, field="image"), detail)
    gt_rows = np.full(len(gt.images) + 1, -1, dtype=np.int32)  # the last: no image
    gt_rows[kept] = np.arange(len(kept))
    return CommonImages(gt.images.take(kept.tolist()), gt_rows[:-1], gt_rows[match.rows], match.strategy)


def left_out(side: Dataset, rows: IntArray, what: str) -> str:
    """List the images of a side that are ignored, with their number of boxes; empty if there are none."""
    if not len(rows):
        return ""
    boxes = int(side.boxes.counts("image", len(side.images))[rows].sum())
    names = example_keys(side.images.name(int(row)) for row in rows)
    return f"{pluralise(len(rows), 'image')} of {side.path} with {pluralise(boxes, what)} ({names})"


def only_images(side: Dataset, kept: BoolArray) -> Dataset:
    """Return a side with some of its images and the boxes on these."""
    rows = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    return replace(
        side,
        images=side.images.take(np.flatnonzero(kept).tolist()),
        boxes=_renumber(side.boxes, "image", rows),
        facts=side.facts.renumbered(rows, np.arange(len(side.labels), dtype=np.int32)),
    )


LISTED_NAMES = 10  # names of leftover images and classes that a correspondence keeps


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Both sides in common image rows and units; each `label` still counts in the classes of its own side."""

    gt: Boxes
    pred: Boxes
    units: str  # "px" or "norm"
    images: CommonImages


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """Both sides in common rows of images and classes, and in common units."""

    gt: Boxes
    pred: Boxes
    placement: Placement  # what it was before classes were matched and chosen
    classes: ClassMatch
    image_names: Sequence[str]
    class_names: tuple[str, ...]
    correspondence: Correspondence
    findings: tuple[Finding, ...]
    # Options that nobody gave and the boxes left no doubt of, as a signature names them.
    applied: Mapping[str, str] = field(default_factory=dict)
    # What is known of the classes besides boxes, in the common rows.
    facts: ClassFacts = ClassFacts()

    @property
    def units(self) -> str:
        """Units of the boxes: "px" or "norm"."""
        return self.placement.units

    @property
    def gt_table(self) -> BoxTable:
        """The ground truth as one table in memory."""
        return self.gt.whole()

    @property
    def pred_table(self) -> BoxTable:
        """The predictions as one table in memory."""
        return self.pred.whole()

    def class_rows(self, labels: LabelMap) -> RowArray:
        """Return the row of each class of the ground truth among those to evaluate, -1 for other classes."""
        at = {name: row for row, name in enumerate(self.class_names)}
        return np.array([at.get(name, -1) for name in labels.names], dtype=np.int32)

    def with_every_class(self) -> Alignment:
        """Return the alignment with ground truth of all classes, as it was placed."""
        return replace(self, gt=self.placement.gt)

    def with_chosen_classes(self, labels: LabelMap) -> Alignment:
        """Undo `with_every_class`; what became of the boxes meanwhile is what was placed."""
        placed = replace(self.placement, gt=self.gt)
        return replace(self, gt=_renumber(self.gt, "label", self.class_rows(labels)), placement=placed)


def align(gt: Dataset, pred: Dataset, options: SideOptions) -> Alignment:
    """Align predictions with ground truth; raise a DataError about what cannot be aligned."""
    findings = FindingLog()
    placed = None
    try:
        placed = place(gt, pred, options, findings)
    except DataError as error:  # what is wrong with classes is reported with it
        findings.extend(error.findings)
    if pred.has_no_class and not gt.has_no_class and not options.class_map and len(pred.boxes):
        classes = _only_class(gt, pred, findings)
    elif (
        gt.has_no_class and not pred.has_no_class and not options.class_map and len(pred.labels) == len(gt.labels) == 1
    ):
        detail = f"the ground truth has no class: all of it is read as {quoted_value(pred.labels.names[0])}"
        findings.note("class-only", Where(gt.path, field="class"), f"{detail}, the only class of the predictions")
        classes = ClassMatch("only-class", np.zeros(1, dtype=np.int32))
    else:
        classes = match_classes(gt.labels, pred.labels, options.class_map, Where(pred.path), findings)
        _check_classes(gt, pred, classes, findings, settled=placed is not None)
    findings.raise_errors()
    if placed is None:
        raise DataError(findings.findings())
    n_images = len(placed.images.table)
    placed = replace(
        placed, gt=placed.gt.arranged(n_images, placed.pred), pred=placed.pred.arranged(n_images, placed.gt)
    )
    chosen = _chosen_classes(gt.labels, options)
    table = placed.images.table
    return Alignment(
        gt=_renumber(placed.gt, "label", chosen),
        pred=_renumber(placed.pred, "label", np.append(chosen, np.int32(-1))[classes.rows]),
        placement=placed,
        classes=classes,
        image_names=table.names(),
        class_names=tuple(name for row, name in enumerate(gt.labels.names) if chosen[row] >= 0),
        correspondence=_describe(gt, pred, placed.images, classes),
        findings=findings.findings(),
        facts=gt.facts.renumbered(placed.images.gt_rows, chosen),
    )


def place(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> Placement:
    """Bring boxes to common images and units; the first half of `align`."""
    images = align_images(gt, pred, options, findings)
    sizes = common_sizes(pred, images)
    boxes = (
        _unresized(gt, _renumber(gt.boxes, "image", images.gt_rows), sizes, images.table.name),
        _unresized(pred, _renumber(pred.boxes, "image", images.pred_rows), sizes, images.table.name),
    )
    return Placement(*_common_units(gt, pred, boxes, images, findings), images)


def _only_class(gt: Dataset, pred: Dataset, findings: FindingLog) -> ClassMatch:
    """Give predictions without a class the only class of the ground truth; fail if it has several."""
    where, n = Where(pred.path, field="class"), len(pred.boxes)
    if len(gt.labels) == 1:
        detail = f"predictions have no class: all {n:,} are read as {quoted_value(gt.labels.names[0])}"
        findings.note("class-only", where, f"{detail}, the only class of the ground truth")
    elif len(gt.labels):
        have = f"the ground truth has {len(gt.labels):,}: {example_keys(gt.labels.names)}"
        words = "Pass {pred_columns:class=COLUMN}, or {pred_names} if all are of one class."
        fix = Fix.missing(words, pred_columns=None, pred_names=None)
        findings.error("class-none", where, f"predictions have no class, and {have}", fix=fix)
    row = 0 if len(gt.labels) == 1 else NOWHERE
    return ClassMatch("only-class", np.full(len(pred.labels), row, dtype=np.int32))


def merged_classes(side: Dataset, class_map: Mapping[str, str] | str, option: str = "class_map") -> Dataset:
    """Return a side whose classes are renamed or merged, by a map of names or ids that an option gives.

    What is known of classes besides boxes has no meaning for several together: a UsageError.
    """
    if isinstance(class_map, str):
        fix = Fix.missing("Pass the ground truth with {gt}, or a map of names, {class_map}.", gt=None, class_map="a=b")
        raise UsageError(f"the class map {quoted_value(class_map)} is of predictions and their ground truth.", fix=fix)
    labels, rows = merged_labels(side.labels, class_map, "ground truth" if side.role == "gt" else "predictions")
    has_facts = side.facts.images is not None or side.facts.frequency or side.facts.ancestors
    if has_facts and not np.array_equal(rows, np.arange(len(rows))):
        detail = "classes cannot be merged where the ground truth states which are verified, frequent or above others."
        raise UsageError(detail, fix=Fix.missing(f"Remove {{{option}}}.", **{option: None}))
    return replace(side, labels=labels, boxes=_renumber(side.boxes, "label", rows))


def in_own_pixels(side: Dataset) -> Dataset:
    """Map boxes of resized images back by the sizes that their side knows itself, where it is used without another."""
    if side.reading.resized is None:
        return side
    boxes = _unresized(side, side.boxes, side.images.sizes, side.images.name)
    return replace(side, boxes=boxes, reading=replace(side.reading, resized=None))


def _unresized(side: Dataset, boxes: Boxes, sizes: FloatArray, name: Callable[[int], str]) -> Boxes:
    """Map boxes back where they are of resized images; `sizes` (images, 2) are those of the images themselves."""
    resizing = side.reading.resized
    if resizing is None:
        return boxes
    if side.units == "norm":  # turned, in images that are one wide and high
        sizes = np.ones_like(sizes)
    # Exporters write 0 for a size that they do not know; a factor is the same for any size.
    used = np.flatnonzero(boxes.counts("image", len(sizes)))
    unknown = used[~(sizes[used] > 0).all(axis=1)]
    if len(unknown) and resizing.needs_sizes:
        names = example_keys(name(int(row)) for row in unknown)
        raise DataError.single(
            "size-unknown",
            Where(side.path),
            f"boxes of resized images need the image sizes to be mapped back, but the width and height of"
            f" {pluralise(len(unknown), 'image')} are not known: {names}",
            fix=IMAGES_OF[side.role],
        )

    mapped = boxes.mapped(partial(_mapped_back, resizing=resizing, sizes=sizes))
    large = [row for table in mapped.tables() for row in table.image[find_too_large(table.xywh)].tolist()]
    if large:
        image = quoted_value(name(large[0]))
        detail = f"mapped back from {resizing}, {pluralise(len(large), 'box is', 'boxes are')} too large"
        fix = Fix.of_side(side.role, "Check {resized}.", resized=None)
        raise DataError.single("box-too-large", Where(side.path, record=f"image {image}"), detail, fix=fix)
    return mapped


def _mapped_back(table: BoxTable, *, resizing: Resizing, sizes: FloatArray) -> BoxTable:
    with np.errstate(over="ignore"):
        return resizing.mapped_back(table, sizes)


def _check_classes(gt: Dataset, pred: Dataset, classes: ClassMatch, findings: FindingLog, *, settled: bool) -> None:
    """Warn of prediction classes that the ground truth lacks; stop when it lacks them all.

    Before boxes are in common units it is not settled how numbered classes count: some that lack may have others' ids.
    """
    unknown = np.flatnonzero(classes.rows < 0)
    if not len(unknown):
        return
    names = [pred.labels.names[row] for row in unknown]
    boxes = int(pred.boxes.counts("label", len(pred.labels))[unknown].sum())
    where = Where(pred.path, field="class")
    if len(unknown) == len(classes.rows) and len(gt.labels):
        findings.error(
            "class-none",
            where,
            f"no prediction class is in the ground truth: predictions have {example_keys(names)}, "
            f"ground truth has {example_keys(gt.labels.names)} (ids {example_keys(gt.labels.keys)})",
            fix=Fix.missing(
                "Name the classes by index with {pred_names} or {gt_names}, or map them with {class_map}.",
                pred_names=None,
                gt_names=None,
                class_map=None,
            ),
        )
    elif boxes and settled:
        what = f"{pluralise(boxes, 'prediction')} of {pluralise(len(unknown), 'class', 'classes')}"
        detail = f"{what} not in the ground truth ignored: {example_keys(names, 10)}"
        findings.warning("class-unknown", where, detail)


def _renumber(boxes: Boxes, column: Literal["image", "label"], rows: RowArray) -> Boxes:
    """Give boxes common images or classes; drop those whose own has none (-1)."""
    # Mostly both sides have the same images and classes: the columns are then shared, and not written again.
    if np.array_equal(rows, np.arange(len(rows))):
        return boxes
    return boxes.mapped(partial(_renumbered, column=column, rows=rows))


def _renumbered(table: BoxTable, *, column: Literal["image", "label"], rows: RowArray) -> BoxTable:
    numbers = rows[getattr(table, column)]
    known = numbers >= 0
    changed = replace(table, **{column: numbers})
    return freeze(changed) if known.all() else changed.take(known)


def _common_units(
    gt: Dataset, pred: Dataset, boxes: tuple[Boxes, Boxes], images: CommonImages, findings: FindingLog
) -> tuple[Boxes, Boxes, str]:
    """Turn the side that is in fractions of the image into pixels, when the other side is in pixels."""
    gt_boxes, pred_boxes = boxes
    if gt.units == pred.units:
        return gt_boxes, pred_boxes, gt.units
    sizes = common_sizes(pred, images)
    fractions, pixels = boxes if gt.units == "norm" else boxes[::-1]
    if not len(pixels) and len(_unsized(fractions, sizes)):
        return gt_boxes, pred_boxes, "norm"  # what is empty is in any units
    if gt.units == "norm":
        return _to_pixels(gt, gt_boxes, sizes, images, findings), pred_boxes, "px"
    return gt_boxes, _to_pixels(pred, pred_boxes, sizes, images, findings), "px"


def common_sizes(pred: Dataset, images: CommonImages) -> FloatArray:
    """Return width and height of the common images (n, 2), from whichever side knows them; NaN where neither does."""
    matched = images.pred_rows >= 0
    pred_sizes = np.full_like(images.table.sizes, np.nan)
    pred_sizes[images.pred_rows[matched]] = pred.images.sizes[matched]
    return np.where(np.isnan(images.table.sizes), pred_sizes, images.table.sizes)


def _unsized(boxes: Boxes, sizes: FloatArray) -> IntArray:
    """Return the images whose boxes cannot be turned into pixels."""
    return np.flatnonzero((boxes.counts("image", len(sizes)) > 0) & np.isnan(sizes).any(axis=1))


def _to_pixels(side: Dataset, boxes: Boxes, sizes: FloatArray, images: CommonImages, findings: FindingLog) -> Boxes:
    unknown = _unsized(boxes, sizes)
    if len(unknown):
        names = example_keys(images.table.name(int(row)) for row in unknown)
        detail = (
            f"boxes are normalised, those of the other side are in pixels, but the width and height of "
            f"{pluralise(len(unknown), 'image')} are not known: {names}"
        )
        where, fix = Where(side.path), IMAGES_OF[side.role]
        if side.image_folder is not None:  # else its advice would be the one that was followed
            detail += f", and {os.fspath(side.image_folder)} has no images of these names"
            fix = Fix.of_side(side.role, "Pass the folder that has them with {images}.", images=None)
        if not side.units_guessed:
            raise DataError.single("size-unknown", where, detail, fix=fix)
        findings.warning("units-mixed", where, f"{detail}; compared as if they were pixels", fix=fix)
        return boxes

    return boxes.mapped(partial(_scaled, sizes=sizes))


def _scaled(table: BoxTable, *, sizes: FloatArray) -> BoxTable:
    size = sizes[table.image]
    xywh = table.xywh * np.concatenate((size, size), axis=1)
    shapes = None if table.shapes is None else table.shapes.scaled(size)
    # Of shapes, the area is that of what lies within them.
    area = xywh[:, 2] * xywh[:, 3] if shapes is None else table.area * size.prod(axis=1)
    return freeze(replace(table, xywh=xywh, area=area, shapes=shapes))


def _chosen_classes(labels: LabelMap, options: SideOptions) -> RowArray:
    """Return the row of each class among those to evaluate, -1 for other classes."""
    for name in (*options.classes, *options.exclude_classes):
        if name not in labels.names:
            raise UsageError(
                f"unknown class {quoted_value(name)} in the ground truth.{did_you_mean(name, labels.names)}"
            )
    wanted = [
        (not options.classes or name in options.classes) and name not in options.exclude_classes
        for name in labels.names
    ]
    if wanted and not any(wanted):
        raise UsageError("the chosen and excluded classes leave no class to evaluate")
    return np.where(wanted, np.cumsum(wanted) - 1, -1).astype(np.int32)


def _describe(gt: Dataset, pred: Dataset, images: CommonImages, classes: ClassMatch) -> Correspondence:
    matched = np.isin(images.gt_rows, images.pred_rows) & (images.gt_rows >= 0)
    known = np.isin(images.pred_rows, images.gt_rows) & (images.pred_rows >= 0)
    gt_only = [gt.images.name(int(row)) for row in np.flatnonzero(~matched)]
    pred_only = [pred.images.name(int(row)) for row in np.flatnonzero(~known)]
    pairs = [(gt.labels.names[row], pred.labels.names[i]) for i, row in enumerate(classes.rows) if row >= 0]
    claimed = set(classes.rows.tolist())
    return Correspondence(
        image_strategy=images.strategy,
        class_strategy=classes.strategy,
        matched_images=int(matched.sum()),
        n_gt_only_images=len(gt_only),
        n_pred_only_images=len(pred_only),
        gt_only_images=tuple(gt_only[:LISTED_NAMES]),
        pred_only_images=tuple(pred_only[:LISTED_NAMES]),
        classes=tuple(pairs),
        gt_only_classes=tuple(name for row, name in enumerate(gt.labels.names) if row not in claimed),
        pred_only_classes=tuple(pred.labels.names[i] for i, row in enumerate(classes.rows) if row < 0),
    )


class Prints(NamedTuple):
    """What `signature.fingerprint` returns of the ground truth and of the predictions."""

    hashes: tuple[Words | None, Words | None]
    fingerprints: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides as read, and what they have in common.

    `selection` is what was chosen, as a signature names it; `prints` returns what is known of the aligned rows of
    either side as given, which may take a while. `judged_by` are the rules that boxes were chosen by, as
    `matching.judging` does; None where all are still there.
    """

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    selection: tuple[str, ...]
    prints: Callable[[], Prints]
    judged_by: Protocol | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What reading and aligning found."""
        return (*self.gt.findings, *self.pred.findings, *self.aligned.findings)

    def summaries(self) -> tuple[InputSummary, InputSummary]:
        """Return both sides in short, with their fingerprints."""
        gt, pred = self.prints().fingerprints
        return summarise(self.gt, gt), summarise(self.pred, pred)

    def sign(self, protocol: Protocol, *choices: str, version: str) -> str:
        """Return the signature of a result: the protocol, what was chosen, further choices, and the inputs.

        Fingerprints leave no trace of images without boxes; rates per image depend on how many there are.
        """
        gt, pred = self.prints().fingerprints
        selection = (*self.selection, *choices, f"images={len(self.aligned.image_names)}")
        return signature(protocol, selection=selection, gt=gt, pred=pred, version=version)


def summarise(side: Dataset, fingerprint: str) -> InputSummary:
    """Return one side in short."""
    return InputSummary(
        path=side.path,
        format=side.format,
        units=side.units,
        images=len(side.images),
        boxes=len(side.boxes),
        classes=len(side.labels),
        fingerprint=fingerprint,
        details=side.details,
        ignored=side.ignored,
    )
