"""The images that two inputs have in common, and what becomes of those that only the predictions have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, RowArray
from jaccard_eval.data.dataset import Dataset, ImageTable, key_order
from jaccard_eval.data.imagekeys import AUTOMATIC, OVERLOOKED, WAYS, ImageMatch, match_by
from jaccard_eval.errors import DataError, FindingLog, UsageError, Where, counted, did_you_mean, example_keys, shown

IntArray = npt.NDArray[np.int64]

EXTRA_IMAGES = ("error", "ignore", "empty")
EXPLAINED = 0.95  # share of the prediction images that a strategy other than equal keys must match to be believed


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignOptions:
    """What the user decided; None and empty mean: find out.

    Parameters
    ----------
    match_images : str, optional
        One of `imagekeys.WAYS`: "id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1" (the
        ground truth's id is the prediction's plus one) or "id-1".
    extra_images : {"error", "ignore", "empty"}
        What to do with prediction images that the ground truth does not have: stop, leave them out, or count them as
        images without objects.
    class_map : mapping of str to str, or str, optional
        Prediction class to ground-truth class, or the name of a map (`data.classrules`).
    classes, exclude_classes : sequence of str
        Ground-truth classes to evaluate, or to leave out.
    """

    match_images: str | None = None
    extra_images: str = "error"
    class_map: Mapping[str, str] | str | None = None
    classes: Sequence[str] = ()
    exclude_classes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CommonImages:
    """The common images: the ground truth's, in their order, with extra images of the predictions where accepted."""

    table: ImageTable
    gt_rows: RowArray
    pred_rows: RowArray
    strategy: str


def align_images(gt: Dataset, pred: Dataset, options: AlignOptions, findings: FindingLog) -> CommonImages:
    """Find the common images.

    Raises
    ------
    DataError
        When too few images correspond, or not one to one, or predictions are on images the ground truth lacks.
    UsageError
        When an option is not one of the known ways.
    """
    _require_known("deal with extra images", options.extra_images, EXTRA_IMAGES)
    used = np.zeros(len(pred.images), dtype=np.bool_)
    used[pred.boxes.image] = True
    match = _choose_strategy(gt, pred, used, options)
    if match.strategy in OVERLOOKED and options.match_images is None:
        _note_adapted(gt, pred, match, findings)
    extra = np.flatnonzero((match.rows < 0) & used).astype(np.int64)
    gt_rows = np.arange(len(gt.images), dtype=np.int32)
    if not len(extra) or not _keep_extra(_Extra.of(gt, pred, match, extra), options, findings):
        return CommonImages(gt.images, gt_rows, match.rows, match.strategy)
    return _with_extra(gt.images, pred.images, match, extra)


def _choose_strategy(gt: Dataset, pred: Dataset, used: BoolArray, options: AlignOptions) -> ImageMatch:
    """Take the first strategy that is one-to-one and explains the prediction images that carry boxes.

    Where none does, equal keys need not explain them all: what is left over is then an extra image, which
    `extra_images` decides on.
    """
    if options.match_images:
        return _forced(gt, pred, options.match_images)
    tried: list[tuple[float, ImageMatch]] = []
    for match in _trials(gt.images, pred.images, used):
        share = _explained(match, used)
        if match.one_to_one and share >= EXPLAINED:
            return match
        tried.append((share, match))
    id_share, by_id = tried[0]
    if not used.any() or (by_id.one_to_one and id_share > 0):
        return by_id
    share, best = max(tried, key=lambda one: one[0])
    raise _no_correspondence(gt, pred, used, best, share)


def _trials(gt: ImageTable, pred: ImageTable, used: BoolArray) -> Iterator[ImageMatch]:
    """Try the automatic strategies in turn.

    Ids that are the same but for their type, 7 and "7", are not matched by their number: that is for the user to say.
    """
    for strategy in AUTOMATIC:
        if strategy != "number" or _explained(match_by("id-text", gt, pred), used) < EXPLAINED:
            yield match_by(strategy, gt, pred)


def _explained(match: ImageMatch, used: BoolArray) -> float:
    """Return the share of the prediction images with boxes that are matched; where no image has any, 1 if all are."""
    return float((match.rows[used] >= 0).mean()) if used.any() else float((match.rows >= 0).all())


def _forced(gt: Dataset, pred: Dataset, strategy: str) -> ImageMatch:
    _require_known("match images", strategy, WAYS)
    match = match_by("id-text" if strategy == "id" else strategy, gt.images, pred.images)
    if not match.one_to_one:
        raise DataError.single(
            "image-ambiguous",
            Where(pred.path),
            f"images do not correspond one to one by {strategy}: several images of one side share one {strategy}",
            fix="Choose another --match-images.",
        )
    return replace(match, strategy=strategy)


def _note_adapted(gt: Dataset, pred: Dataset, match: ImageMatch, findings: FindingLog) -> None:
    row = int(np.flatnonzero(match.rows >= 0)[0])
    ours, theirs = gt.images.name(int(match.rows[row])), pred.images.name(row)
    detail = f"images correspond by {match.strategy}, overlooking {OVERLOOKED[match.strategy]}: "
    findings.note(
        "image-names-adapted", Where(pred.path, field="image"), f"{detail}{shown(theirs)} is taken for {shown(ours)}"
    )


def _require_known(purpose: str, way: str, known: Sequence[str]) -> None:
    if way not in known:
        raise UsageError(
            f"unknown way to {purpose}: {shown(way)}; known are {', '.join(known)}.{did_you_mean(way, known)}"
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
    ours = f"those of the ground truth {example_keys(_gt_examples(gt))}{_kind(gt.images)}"
    detail += f", {ours if len(gt.images) else 'the ground truth holds none'}"
    return DataError.single(
        "image-unknown",
        Where(pred.path, field="image"),
        detail,
        fix=f"Check that both belong to one split; --match-images {'|'.join(WAYS)} forces a way to match, "
        "--extra-images ignore goes on without the rest.",
    )


def _kind(images: ImageTable) -> str:
    """Say whether keys are text, where that may be why nothing matches."""
    texts = sum(isinstance(key, str) for key in images.keys)
    return " (string ids)" if texts == len(images) else " (integer ids)" if texts == 0 else ""


def _gt_examples(gt: Dataset) -> list[str | int]:
    return [f"{key} ({name})" if name else key for key, name in zip(gt.images.keys, gt.images.file_names, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Extra:
    """Prediction images that the ground truth does not have."""

    path: str
    detail: str
    names: str
    may_be_empty: bool

    @classmethod
    def of(cls, gt: Dataset, pred: Dataset, match: ImageMatch, extra: IntArray) -> _Extra:
        boxes = int(np.isin(pred.boxes.image, extra).sum())
        detail = (
            f"{boxes:,} predictions on {counted(len(extra), 'image')} that the ground truth {gt.path} does not have"
        )
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
            ours, theirs = gt.images.name(int(rows[found[0]])), pred.images.name(int(found[0]))
            return f"; {shown(theirs)} would match {shown(ours)} by {strategy}"
    return ""


def _keep_extra(extra: _Extra, options: AlignOptions, findings: FindingLog) -> bool:
    """Decide whether extra images count as images without objects (True) or are left out; or stop."""
    where = Where(extra.path, field="image")
    if options.extra_images == "error" and not extra.may_be_empty:
        findings.error(
            "image-unknown",
            where,
            f"{extra.detail}: {extra.names}",
            fix="Check that both belong to one split, or pass --extra-images ignore (leave them out) or empty.",
        )
        findings.raise_errors()
    ignore = options.extra_images == "ignore"
    done = "left out" if ignore else "counted as images without objects"
    if extra.may_be_empty and not ignore:
        done += ", as the ground truth does not list those"
    findings.warning("image-extra", where, f"{extra.detail} ({extra.names}): {done}")
    return not ignore


def _with_extra(gt: ImageTable, pred: ImageTable, match: ImageMatch, extra: IntArray) -> CommonImages:
    """Add images to the ground truth's and sort all by key again."""
    n = len(gt)
    keys = [*gt.keys, *(pred.keys[row] for row in extra)]
    order = sorted(range(len(keys)), key=lambda row: key_order(keys[row]))
    place = np.empty(len(keys), dtype=np.int32)
    place[order] = np.arange(len(keys))
    names = [*gt.file_names, *(pred.file_names[row] for row in extra)]
    sizes = np.concatenate((gt.sizes, pred.sizes[extra]))
    table = ImageTable(tuple(keys[r] for r in order), tuple(names[r] for r in order), sizes[order], gt.listed)
    rows = match.rows.copy()
    rows[extra] = np.arange(n, len(keys))
    return CommonImages(table, place[:n], np.where(rows >= 0, place[rows], -1).astype(np.int32), match.strategy)
