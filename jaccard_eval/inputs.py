"""Inputs: one side of an evaluation, or both, from whatever they are given as."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from jaccard_eval.data.alignment import fold_name, in_own_pixels, merged_classes
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.imagekeys import MAP_SUFFIXES
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import path_of, session
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import in_parts, iou_types, is_own, opened, read_dataset, read_object, read_stored
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import scanning_ahead
from jaccard_eval.options import ReadOptions, SideOptions, given_reading, require_effect

if TYPE_CHECKING:
    from typing import Any, Protocol

    import pandas as pd

    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.formats import Format

    class Detections(Protocol):
        """The boxes of one image as supervision holds them, which are known by their attributes."""

        xyxy: Any
        mask: Any
        confidence: Any
        class_id: Any

    class DetectionDataset(Protocol):
        """Detections by the name of their image, and the names of the classes, as supervision holds them."""

        annotations: Any
        classes: Any

    Source = (
        str
        | os.PathLike[str]
        | Dataset
        | BoxTable
        | pd.DataFrame
        | Mapping[str, Any]
        | Sequence[Mapping[str, Any]]
        | Detections
        | Sequence[Detections]
        | DetectionDataset
    )


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input as it was named, and how to read it; see `load`."""

    source: Source
    format_name: str | None = None
    options: ReadOptions | None = None
    store: DiskEngine | None = None  # where boxes go that do not fit into memory

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", opened(self.source, self.format_name))

    def attempt(self, role: str) -> tuple[Dataset | None, tuple[Finding, ...]]:
        """Read it as ground truth ("gt") or predictions ("pred"); None with the errors where that cannot be done."""
        try:
            if self.store is not None:
                return _load_stored(self, role, self.store), ()
            return load(self.source, role=role, format_name=self.format_name, options=self.options), ()
        except DataError as error:
            return None, error.findings


def _load_stored(given: Input, role: str, store: DiskEngine) -> Dataset:
    """Read one side, whose boxes are kept on the disk."""
    # Most evaluations go without.
    from jaccard_eval.reading.stored import keep_on_disk

    if isinstance(given.source, str | os.PathLike):
        options = replace(given.options or ReadOptions(), role=role)
        return read_stored(given.source, options, given.format_name, store)
    return keep_on_disk(load(given.source, role=role, format_name=given.format_name, options=given.options), store)


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What could be read of two inputs; `errors` explains why a side is None, or that the two are swapped."""

    gt: Dataset | None
    pred: Dataset | None
    errors: tuple[Finding, ...] = ()


def load(
    source: Source,
    *,
    role: str = "gt",
    format_name: str | None = None,
    options: ReadOptions | None = None,
    skip_invalid: bool = False,
    class_map: Mapping[str, str] | None = None,
) -> Dataset:
    """Read one side of an evaluation.

    Parameters
    ----------
    source : path, Dataset, BoxTable or data
        A file or folder in any known format, or a table, COCO dict or list of dicts as `evaluate` takes them; data that
        is loaded already is passed through.
    role : {"gt", "pred"}
    format_name : str, optional
        Name of the format; detected if None.
    options : ReadOptions, optional
        Encoding, units, class names, images.
    skip_invalid : bool
        Skip records and lines that cannot be used, and count them, as ``ReadOptions(skip_invalid=True)`` does.
    class_map : mapping of str to str, optional
        New names of classes, by name or id; classes that get one name are one class.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        With every problem of the input, each with its place.
    UsageError
        When loaded data is to be predictions and has no scores, or the source is none of these.

    Examples
    --------
    >>> from jaccard_eval import load
    >>> results = [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 10], "score": 0.9}]
    >>> load(results, role="pred").boxes.score.tolist()
    [0.9]
    """
    (options,) = skipping(skip_invalid, options)
    dataset = _loaded(source, role, format_name, options)
    return merged_classes(dataset, class_map) if class_map else dataset


def _loaded(source: Source, role: str, format_name: str | None, options: ReadOptions | None) -> Dataset:
    if isinstance(source, Dataset | BoxTable):
        dataset = _wrap(source, role) if isinstance(source, BoxTable) else source
        if role == "pred" and dataset.table.score is None:
            raise UsageError("predictions need scores: BoxTable.from_arrays(..., score=...) or load(..., role='pred')")
        return dataset
    if not isinstance(source, str | os.PathLike):
        found = read_object(source, replace(options or ReadOptions(), role=role))
        if found is not None:
            return found
        kind = type(source).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise UsageError(
            f"evaluate() cannot read {article} {kind}. Pass a path, a DataFrame, a COCO dict or a list of dicts."
        )
    return read_dataset(source, replace(options or ReadOptions(), role=role), format_name)


def with_shapes(
    options: ReadOptions | None, iou_type: str, *, regions: bool = False, whole_bodies: bool = False
) -> ReadOptions | None:
    """Return options that also read what an `iou_type` compares, where that is not the boxes, and what is more."""
    if regions or whole_bodies:
        options = replace(options or ReadOptions(), regions=regions, whole_bodies=whole_bodies)
    if iou_type == BOXES:
        return options
    from jaccard_eval.similarity import KINDS

    return options if KINDS[iou_type].shapes is None else replace(options or ReadOptions(), iou_type=iou_type)


def skipping(
    skip_invalid: bool, *options: ReadOptions | None, images: str | os.PathLike[str] | None = None
) -> tuple[ReadOptions | None, ...]:
    """Return the options of sides with what is asked of all: to skip unusable records, a folder of images."""
    of_all: dict[str, Any] = {"skip_invalid": True} if skip_invalid else {}
    of_all |= {} if images is None else {"images": images}
    return tuple(replace(each or ReadOptions(), **of_all) if of_all else each for each in options)


def both_sides(source: Source) -> Source:
    """Return an input that has the predictions of its ground truth; raise a UsageError for any other."""
    if in_parts(source):
        return source
    raise UsageError("predictions are missing: only a folder that 'jaccard-eval partition' wrote has both sides")


# What can be compared besides boxes, and how; in the order of preference.
_SHAPES = {
    "segm": ("masks", MASKS),
    "keypoints": ("keypoints", ("keypoints",)),
    "obb": ("oriented boxes", ("obb",)),
    "spheres": ("spheres", ("spheres",)),
}


def usual_iou_type(given: Input) -> str:
    """Return what one input is looked at for where nothing names it: its boxes, else the first kind that it has."""
    kinds, has_boxes = _shapes_of(given)
    return kinds[0] if kinds and not has_boxes else BOXES


@session()
def settle_iou_type(gt: Input, preds: Sequence[Input]) -> tuple[str, tuple[Finding, ...]]:
    """Return what is compared where nothing names it: boxes if all inputs have them, else what alone all have.

    With it a note, where there was a choice; a UsageError where boxes are missing and there still is one.
    """
    if len(preds) == 1 and in_parts(gt.source) and str(gt.source) == str(preds[0].source):
        from jaccard_eval.reading.partitions import read_manifest

        manifest = read_manifest(path_of(str(gt.source)))
        return manifest.iou_type, manifest.chosen
    found = iou_types(preds[0].source)
    every = {*found}
    # Most predictions are boxes and nothing else: the other inputs need not be looked at.
    for given in (gt, *preds[1:]) if found - {BOXES} else ():
        # What cannot be recognised is reported when it is read, and decides nothing.
        held = iou_types(given.source)
        found, every = found & held if held else found, every | held
    if not found and every >= {"segm", "obb"} and "keypoints" not in every:
        # Four corners are an outline as well.
        found = frozenset({"segm", BOXES} & ({"segm"} | every))
    kinds = [kind for kind in _SHAPES if kind in found]
    if not kinds:
        return BOXES, ()
    what, names = _described(kinds)
    if BOXES not in found and len(kinds) > 1:
        fix = Fix.missing("Pass {iou_type}.", iou_type=names)
        raise UsageError(f"not all inputs have boxes, and all have {what}.", fix=fix)
    where, log = Where(_named(preds[0])), FindingLog()
    if BOXES in found:
        log.note(
            "iou-type",
            where,
            f"boxes are compared; both sides also have {what}",
            fix=Fix.missing("Pass {iou_type} to compare those.", iou_type=names),
        )
        return BOXES, log.findings()
    log.note(
        "iou-type",
        where,
        f"{what} are compared, as not all inputs have boxes",
        fix=Fix.missing("Pass {iou_type} to settle it.", iou_type=names),
    )
    return kinds[0], log.findings()


def _described(kinds: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return what kinds of shapes are called, and the options that compare them."""
    options = tuple(name for kind in kinds for name in _SHAPES[kind][1])
    *names, last = (_SHAPES[kind][0] for kind in kinds)
    return f"{', '.join(names)} and {last}" if names else last, options


def _shapes_of(given: Input) -> tuple[list[str], bool]:
    """Return the kinds of shapes of an input, and whether it has boxes."""
    found = iou_types(given.source)
    return [kind for kind in _SHAPES if kind in found], BOXES in found


def unwritten_shapes(
    given: Input, target: str | os.PathLike[str], written: str = BOXES, able: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return a warning where an input has other masks, keypoints or oriented boxes than the kind that is written.

    The kinds that the target is `able` to hold are written if they are asked for.
    """
    kinds = [kind for kind in _shapes_of(given)[0] if kind != written]
    findings = FindingLog()
    if kinds:
        what, options = _described(kinds)
        only = "boxes" if written == BOXES else _SHAPES[written][0]
        detail = f"{what} of {_named(given)} are not written, only {only}"
        words = f"To compare {what}, evaluate the input: {{iou_type}}."
        to_write = [kind for kind in kinds if kind in able]
        words += f" To write them, pass {' or '.join(f'{{iou_type:{kind}}}' for kind in to_write)}." if to_write else ""
        fix = Fix.missing(words, iou_type=options)
        findings.warning("write-shapes", Where(str(target)), detail, fix=fix)
    return findings.findings()


def read_to_write(
    given: Input,
    target: str | os.PathLike[str],
    read: Callable[[str], Dataset],
    *,
    target_format: Format,
    asked: str | None = None,
) -> tuple[Dataset, tuple[Finding, ...]]:
    """Read an input with the shapes that are written: those that are `asked` for, else the first that the format holds.

    With it a warning about the others. `read` is given a kind, "bbox" for boxes alone.
    """
    held = (BOXES, *target_format.shapes, *target_format.shapes_if_asked)
    if asked is not None and asked not in held:
        what = _SHAPES[asked][0] if asked in _SHAPES else asked
        raise UsageError(f"format {target_format.name} cannot hold {what}. Choose from {', '.join(held)}.")
    kinds, has_boxes = _shapes_of(given)
    written = asked or next((kind for kind in kinds if kind in target_format.shapes), BOXES)
    try:
        side = read(written)
    except DataError:
        # Some records have no shape: boxes are what all have.
        if asked is not None or written == BOXES or not has_boxes:
            raise
        written, side = BOXES, read(BOXES)
    return side, () if asked == BOXES else unwritten_shapes(given, target, written, held)


@contextlib.contextmanager
def needing_boxes(verb: str, *inputs: Input) -> Iterator[None]:
    """Raise a UsageError where boxes cannot be read for a verb, as an input has nothing but shapes."""
    try:
        yield
    except DataError as error:
        refuse_shapes(verb, error.findings, *inputs)
        raise


def refuse_shapes(verb: str, errors: Sequence[Finding], *inputs: Input) -> None:
    """Raise a UsageError if boxes are what errors are about, and an input has nothing but shapes."""
    # Other formats than COCO have boxes around their shapes.
    for given in inputs if any(error.examples[0].where.field == "bbox" for error in errors) else ():
        kinds, has_boxes = _shapes_of(given)
        if kinds and not has_boxes:
            what, options = _described(kinds)
            raise UsageError(
                f"{verb} needs boxes, but {_named(given)} only has {what}.",
                fix=Fix.missing("Use evaluate, compare or explain with {iou_type}.", iou_type=options),
            ) from None


def _named(given: Input) -> str:
    return str(given.source) if isinstance(given.source, str | os.PathLike) else f"<{type(given.source).__name__}>"


# What is scanned ahead of a list where an `iou_type` is compared.
_SCANNED: dict[str, Literal["boxes", "masks", "poses"]] = {
    BOXES: "boxes",
    "segm": "masks",
    "boundary": "masks",
    "keypoints": "poses",
}


def read_both(gt: Input, pred: Input) -> Readings:
    """Read what can be read of both sides; sides that were given in the wrong order are read as what they are."""
    # Of boxes kept elsewhere, and of turned ones, a plain list is of no use.
    truth_scored, scored = (_has_scores(given.source) for given in (gt, pred))
    if truth_scored and scored is False:
        detail = "has no scores, but what is given as ground truth has: the two sides are swapped"
        where, fix = Where(_named(pred)), Fix.missing("Pass the ground truth first, then the predictions.")
        raise DataError.single("sides-swapped", where, detail, fix=fix)
    scanned = _SCANNED.get(BOXES if pred.options is None else pred.options.iou_type)
    is_of_use = pred.store is None and scanned is not None and not (pred.options and pred.options.whole_bodies)
    path = Path(pred.source) if isinstance(pred.source, str | os.PathLike) and is_of_use else None
    with scanning_ahead(path, scanned or "boxes"):
        gt_side, gt_errors = gt.attempt("gt")
        pred_side, pred_errors = pred.attempt("pred")
    paths = [given.source for given in (gt, pred) if isinstance(given.source, str | os.PathLike)]
    # What was partitioned was read as one side, and with names.
    are_files = len(paths) == 2 and not any(map(in_parts, paths))
    may_swap = not any(map(in_parts, paths))
    if may_swap and any(error.code == "score-missing" for error in pred_errors):
        truth, results = pred.attempt("gt")[0], gt.attempt("pred")[0]
        if truth is not None and results is not None:
            detail = f"has no scores, but {results.path}, given as ground truth, has: the two sides are swapped"
            fix = Fix.missing("Pass the ground truth first, then the predictions.")
            if are_files:
                fix = Fix.missing("Pass {options}.", gt=truth.path, pred=results.path)
            swapped = DataError.single("sides-swapped", Where(truth.path), detail, fix=fix)
            return Readings(truth, results, swapped.findings)
        # A table may have the scores in a column of another name, which the error then proposes.
        has_column = any(error.fix and "pred_columns" in error.fix.options for error in pred_errors)
        if truth is not None and gt_side is not None and not has_column and _are_alike(gt_side, truth):
            detail = "holds the boxes of the ground truth and no scores: the labels are given twice"
            twice = DataError.single(
                "pred-copies-gt", Where(truth.path), detail, fix="Pass the predictions of a model."
            )
            return Readings(gt_side, None, twice.findings)
        if are_files and gt_side is not None and gt_side.format == "instances":
            pred_errors = _with_pixels(pred_errors, *map(path_of, paths))
    if are_files and gt_side is not None and pred_side is not None:
        if gt_side.format == pred_side.format == "instances":
            pred_side = replace(pred_side, findings=_with_pixels(pred_side.findings, *map(path_of, paths)))
        gt_side, pred_side = (
            _with_names_above(gt_side, pred_side, gt),
            _with_names_above(pred_side, gt_side, pred),
        )
        if _look_like_corners(gt_side) and _look_like_corners(pred_side):
            detail = (
                "all boxes of both sides fit as x1 y1 x2 y2 and as x y w h, and no image sizes settle which they are"
            )
            words = "Pass {gt_box:xyxy} and {pred_box:xyxy}, or {gt_box:xywh} and {pred_box:xywh}."
            fix = Fix.missing(words, gt_box=("xyxy", "xywh"), pred_box=("xyxy", "xywh"))
            doubt = DataError.single("columns-ambiguous", Where(pred_side.path, field="bbox"), detail, fix=fix)
            return Readings(gt_side, pred_side, (*gt_errors, *pred_errors, *doubt.findings))
    return Readings(gt_side, pred_side, (*gt_errors, *pred_errors))


_FEWEST_DOUBTED = 8  # boxes, all larger than their distance from the corner of the image: hardly ever by chance


def _look_like_corners(side: Dataset) -> bool:
    """Whether boxes of four numbers, read as left, top, width and height unasked, have the form of two corners.

    Those that begin near the corner of the image have it in either case. Four columns have names that settle it.
    """
    is_packed = any(detail.endswith("(xywh)") for detail in side.details)
    if not is_packed or "box" in side.reading.named or side.units != "px" or len(side.boxes) < _FEWEST_DOUBTED:
        return False
    if np.isfinite(side.images.sizes).all():
        return False
    n_off = 0
    for table in side.boxes.tables():
        offset, size = table.xywh[:, :2], table.xywh[:, 2:]
        if table.shapes is not None or (size <= offset).any():
            return False
        n_off += int((2 * offset > size).all(axis=1).sum())
    return 2 * n_off > len(side.boxes)


def _are_alike(gt: Dataset, other: Dataset) -> bool:
    """Whether two sides have the same boxes of the same classes."""
    if gt.labels.names != other.labels.names or not 0 < len(gt.boxes) == len(other.boxes):
        return False
    # Stored boxes are in parts, which are of the same images where the boxes are the same.
    return all(
        all(map(np.array_equal, _columns(table), _columns(same)))
        for table, same in zip(gt.boxes.tables(), other.boxes.tables(), strict=False)
    )


def _columns(table: BoxTable) -> list[Any]:
    return [table.xywh, table.label, *([] if table.shapes is None else [table.shapes.hashes()])]


def _with_pixels(findings: Sequence[Finding], gt: Path, pred: Path) -> tuple[Finding, ...]:
    """Advise to compare the pixels of maps without scores that hold classes: as objects their values mean nothing."""
    from jaccard_eval.formats.instances import hold_classes

    unscored = ("score-missing", "score-assumed")
    if not any(finding.code in unscored for finding in findings):
        return tuple(findings)
    if not hold_classes(gt, pred):
        words = "If these maps hold objects, {protocol} needs no scores; the pixels of classes are for {command}."
        either = Fix.missing(words, command="pixels GT PRED", protocol="cells")
        return tuple(
            replace(found, fix=either) if found.code == "score-missing" and _is_of_maps(found) else found
            for found in findings
        )
    words = "The maps hold classes, not objects: compare their pixels with {command}."
    told = Fix.missing(words, command="pixels GT PRED")
    more = f"{words} If they do hold objects, {{assume_score}} ranks all equally."
    asked = Fix.missing(more, command="pixels GT PRED", assume_score="1.0")
    changed: dict[str, dict[str, Any]] = {
        "score-assumed": {"fix": told, "severity": Severity.WARNING},
        "score-missing": {"fix": asked},
    }
    return tuple(replace(finding, **changed.get(finding.code, {})) for finding in findings)


def _is_of_maps(finding: Finding) -> bool:
    return finding.examples[0].where.path.lower().endswith(MAP_SUFFIXES)


def _has_scores(source: Source) -> bool | None:
    """Whether boxes that are loaded have scores; None of anything else."""
    if isinstance(source, Dataset):
        source = source.table
    return source.score is not None if isinstance(source, BoxTable) else None


def _with_names_above(side: Dataset, other: Dataset, given_as: Input) -> Dataset:
    """Name the classes of a side that only numbers them from the one names file that lies above it, with a note.

    Where all numbers are ids of the other side they correspond to these, whatever a file elsewhere calls them.
    """
    keys, names, options = side.labels.keys, other.labels.names, given_as.options
    is_bare = bool(keys) and not side.labels.named and all(isinstance(key, int) for key in keys)
    if not is_bare or not other.labels.named or set(keys) <= set(other.labels.keys) or (options and options.names):
        return side
    from jaccard_eval.reading.names import names_above, read_names

    found: dict[tuple[str, ...], Path] = {}
    for path in names_above(path_of(side.path), path_of(other.path)):
        with contextlib.suppress(DataError):
            found.setdefault(read_names(path, FindingLog()), path)
    indices = [key for key in keys if isinstance(key, int)]
    fitting = [given for given in found if min(indices) >= 0 and max(indices) < len(given)]
    # Two that differ leave the choice to the user; one whose names the other side does not know is of other data.
    known = {fold_name(name) for name in names}
    if len(fitting) != 1 or len(found) > 1 or not known & {fold_name(fitting[0][index]) for index in indices}:
        return side
    (given, path), log = (fitting[0], found[fitting[0]]), FindingLog()
    detail = f"its classes are numbers; named by the {len(given)} names in {path}"
    log.note(
        "names-found",
        Where(side.path),
        detail,
        fix=Fix.of_side(side.role, "For other names, pass {names}.", names=None),
    )
    options = replace(options or ReadOptions(), role=side.role, names=given)
    named, errors = replace(given_as, source=side.path, format_name=side.format, options=options).attempt(side.role)
    if named is None:
        raise DataError(errors)
    return replace(named, findings=(*log.findings(), *named.findings))


def read_alone(
    given: Input,
    role: str | None = None,
    class_map: Mapping[str, str] | str | None = None,
    asked: Sequence[str] | None = None,
) -> Dataset:
    """Read one input by itself, as what it is: predictions where it has scores, else ground truth.

    A `role` decides what to read it as, and a map gives its classes other names. What is `asked` has the names by
    which it was given; if None, those of the side.
    """
    if class_map:
        return merged_classes(read_alone(given, role, asked=asked), class_map)
    side = in_own_pixels(_alone(given, role))
    own = "pred" if role == "pred" else "gt"  # as its options are called
    named: dict[str, Any] = {f"{own}_options": given.options}
    asked = given_reading(SideOptions(**named)) if asked is None else asked
    require_readings_used(asked, [replace(side, role=own)], (given.options or ReadOptions()).iou_type)
    return side


def _alone(given: Input, role: str | None) -> Dataset:
    if isinstance(given.source, BoxTable) and role is None:
        role = "gt" if given.source.score is None else "pred"
    if role is not None or isinstance(given.source, Dataset):
        return load(given.source, role=role or "gt", format_name=given.format_name, options=given.options)
    truth, errors = given.attempt("gt")
    if truth is not None and not truth.ignored.get("score"):
        return truth
    predictions, pred_errors = given.attempt("pred")
    if predictions is not None or truth is not None:
        return predictions or truth  # type: ignore[return-value]
    # A list has no layout of ground truth: what is wrong with it as predictions explains more.
    is_list = any(error.code in ("layout", "json-lines") for error in errors)
    raise DataError(pred_errors if is_list else errors)


def require_readings_used(asked: Sequence[str], sides: Sequence[Dataset], iou_type: str) -> None:
    """Raise a UsageError where a reading was asked for that means nothing to what is compared, or to a format."""
    require_effect(asked, "kinds", {"": iou_type})
    # A format that a package adds may use any option.
    if all(is_own(side.format) for side in sides):
        require_effect(asked, "formats", {side.role: side.format for side in sides})
    facts = {
        side.role: {
            "splits": side.has_splits,
            "numbers in pixels": side.reading.units == "px",
            "classes without names": "names" in side.reading.named,
            "angles to read": bool(side.reading.angle) or not len(side.boxes),  # other boxes may have some
        }
        for side in sides
    }
    found = {role: frozenset(fact for fact, holds in own.items() if holds) for role, own in facts.items()}
    require_effect(asked, "inputs", found)


def _wrap(boxes: BoxTable, role: str) -> Dataset:
    """Make a dataset of bare arrays: image and class rows are their own keys where these have no names."""
    labels = range(int(boxes.label.max(initial=-1)) + 1)
    names = boxes.class_names
    images = counted_images(int(boxes.image.max(initial=-1)) + 1)
    if boxes.image_names is not None:
        n = len(boxes.image_names)
        # Only images with boxes are known, as in a table of boxes.
        images = ImageTable(boxes.image_names, (None,) * n, unknown_sizes(n), listed=False)
    return Dataset(
        path="<arrays>",
        format="arrays",
        role=role,
        images=images,
        labels=LabelMap(tuple(labels), tuple(map(str, labels)), named=False)
        if names is None
        else LabelMap(tuple(range(len(names))), names, named=True),
        boxes=replace(boxes, image_names=None, class_names=None),
        reading=Reading("xyxy", "px", named=("box", "units")),  # how from_arrays reads boxes by default
    )


def is_counted(source: Source) -> bool:
    """Whether images are nothing but numbers from 0 on, those of both sides alike."""
    return isinstance(source, BoxTable) and source.image_names is None


def counted_images(n: int) -> ImageTable:
    """Return images that are known by their numbers, all of them listed."""
    return ImageTable(tuple(range(n)), (None,) * n, unknown_sizes(n), listed=True)
