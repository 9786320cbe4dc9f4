"""Inputs as they are named on either side, and reading them: one by itself, or both with every problem of both."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.errors import DataError, Finding, UsageError, Where
from jaccard_eval.formats import ReadOptions, read_dataset

if TYPE_CHECKING:
    Source = str | os.PathLike[str] | Dataset | BoxTable


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input as it was named, and how to read it; see `load`."""

    source: Source
    format_name: str | None = None
    options: ReadOptions | None = None

    def read(self, role: str) -> Dataset:
        """Read it as ground truth ("gt") or predictions ("pred"); see `load` for the errors."""
        return load(self.source, role=role, format_name=self.format_name, options=self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What could be read of two inputs; `errors` says why a side is None, or that the two are swapped."""

    gt: Dataset | None
    pred: Dataset | None
    errors: tuple[Finding, ...] = ()


def load(
    source: Source, *, role: str = "gt", format_name: str | None = None, options: ReadOptions | None = None
) -> Dataset:
    """Read one side of an evaluation.

    Parameters
    ----------
    source : path, Dataset or BoxTable
        A file or folder in any known format; data that is loaded already is passed through.
    role : {"gt", "pred"}
    format_name : str, optional
        Name of the format; found by looking when left out.
    options : ReadOptions, optional
        Encoding, units, class names, images.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        With every problem of the input, each with its place.
    UsageError
        When loaded data is to be predictions and has no scores, or the source is none of these.
    """
    if isinstance(source, Dataset | BoxTable):
        dataset = _wrap(source, role) if isinstance(source, BoxTable) else source
        if role == "pred" and dataset.boxes.score is None:
            raise UsageError("predictions need scores: BoxTable.from_arrays(..., score=...) or load(..., role='pred')")
        return dataset
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise UsageError(f"{kind} is no input: pass a path, a Dataset or a BoxTable; BoxTable.from_arrays takes arrays")
    return read_dataset(Path(source), replace(options or ReadOptions(), role=role), format_name)


def load_both(gt: Input, pred: Input) -> tuple[Dataset, Dataset]:
    """Read both sides of an evaluation.

    Raises
    ------
    DataError
        With every problem of both inputs.
    UsageError
        When loaded data is to be predictions and has no scores.
    """
    sides = read_both(gt, pred)
    if sides.gt is None or sides.pred is None or sides.errors:
        raise DataError(sides.errors)
    arrays = isinstance(gt.source, BoxTable) and isinstance(pred.source, BoxTable)
    return _with_common_images(sides.gt, sides.pred) if arrays else (sides.gt, sides.pred)


def read_both(gt: Input, pred: Input) -> Readings:
    """Read what can be read of both sides; sides that were given in the wrong order are read as what they are."""
    ours, theirs = _attempt(gt, "gt"), _attempt(pred, "pred")
    errors = (*ours.errors, *theirs.errors)
    if any(error.code == "score-missing" for error in theirs.errors):
        return _swapped(gt, pred) or Readings(ours.gt, None, errors)
    return Readings(ours.gt, theirs.pred, errors)


def read_alone(given: Input, role: str | None = None) -> Dataset:
    """Read one input by itself, as what it is: predictions where it has scores, else ground truth.

    Parameters
    ----------
    given : Input
    role : {"gt", "pred"}, optional
        What to read it as.

    Raises
    ------
    DataError
        With every problem of the input.
    """
    if isinstance(given.source, BoxTable) and role is None:
        role = "gt" if given.source.score is None else "pred"
    if role is not None or isinstance(given.source, Dataset):
        return given.read(role or "gt")
    truth = _attempt(given, "gt")
    if truth.gt is not None and not truth.gt.ignored.get("score"):
        return truth.gt
    predictions = _attempt(given, "pred")
    if predictions.pred is not None or truth.gt is not None:
        return predictions.pred or truth.gt  # type: ignore[return-value]
    is_list = any(error.code in ("layout", "json-lines") for error in truth.errors)
    raise DataError(predictions.errors if is_list else truth.errors)


def _attempt(given: Input, role: str) -> Readings:
    """Read one side, its errors kept."""
    try:
        side = given.read(role)
    except DataError as error:
        return Readings(None, None, error.findings)
    return Readings(side, None) if role == "gt" else Readings(None, side)


def _swapped(gt: Input, pred: Input) -> Readings | None:
    """Read both sides the other way round; None when that does not work either."""
    if isinstance(gt.source, Dataset | BoxTable) or isinstance(pred.source, Dataset | BoxTable):
        return None
    ours, theirs = _attempt(pred, "gt"), _attempt(gt, "pred")
    if ours.gt is None or theirs.pred is None:
        return None
    detail = f"has no score, and {theirs.pred.path}, given as ground truth, has: the two sides are swapped"
    fix = f"Pass --gt {ours.gt.path} --pred {theirs.pred.path}."
    return Readings(
        ours.gt, theirs.pred, DataError.single("sides-swapped", Where(ours.gt.path), detail, fix=fix).findings
    )


def _with_common_images(gt: Dataset, pred: Dataset) -> tuple[Dataset, Dataset]:
    """Give bare arrays the same images: what only one side uses is an image without boxes on the other."""
    images = _counted_images(max(len(gt.images), len(pred.images)))
    return replace(gt, images=images), replace(pred, images=images)


def _wrap(boxes: BoxTable, role: str) -> Dataset:
    """Make a dataset of bare arrays: image and class rows are their own keys."""
    labels = range(int(boxes.label.max(initial=-1)) + 1)
    return Dataset(
        path="<arrays>",
        format="arrays",
        role=role,
        images=_counted_images(int(boxes.image.max(initial=-1)) + 1),
        labels=LabelMap(tuple(labels), tuple(map(str, labels)), named=False),
        boxes=boxes,
        reading=Reading("xyxy", "px"),  # what from_arrays takes boxes for unless it is told
    )


def _counted_images(n: int) -> ImageTable:
    return ImageTable(tuple(range(n)), (None,) * n, unknown_sizes(n), listed=True)
