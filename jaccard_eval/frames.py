"""Results and boxes as pandas tables: for people and notebooks. No metric is computed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FLAGS, BoxTable, RowArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import Part
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def to_frame(data: EvaluationResult | Part | Dataset | BoxTable | Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a result, a side or columns as a table with the index 0, 1, ..., n - 1.

    Parameters
    ----------
    data : EvaluationResult, part of one, Dataset, BoxTable or mapping of str to array_like
        An evaluation gives one row per class: ``class``, ``gt``, ``ignored``, ``pred`` and its metrics, NaN where
        undefined; with a bootstrap, also the bounds of each, ``AP_low`` and ``AP_high``; ``result.worst_images`` gives
        one row per image, as images.csv has them. Boxes give one row each:
        ``image``, ``class``, ``x``, ``y``, ``width``, ``height``, ``score`` (predictions only), ``area`` and the flags;
        image and class are names where the input knows them, else rows. Columns such as ``result.matches`` stay as they
        are, and one of shape (n, m) becomes ``name_0`` to ``name_{m - 1}``.

    Returns
    -------
    pandas.DataFrame
        A copy: changing it changes nothing else.

    Raises
    ------
    UsageError
        When `data` is none of these, or a column has more than two dimensions.

    Examples
    --------
    >>> to_frame(BoxTable.from_arrays([0], [1], [[10, 20, 30, 60]]))[["image", "class", "width", "height"]]
       image  class  width  height
    0      0      1   20.0    40.0
    """
    # Imported when asked for: it takes as long to load as a small evaluation takes to run.
    import pandas as pd

    return pd.DataFrame(_columns(data), copy=True)


def _columns(data: object) -> dict[str, Any]:
    match data:
        case EvaluationResult():
            return _class_columns(data)
        case Dataset():
            # Over the rows that a bare table has: a side knows the names of its images and classes.
            images = [data.images.name(row) for row in range(len(data.images))]
            image, label = _take_names(images, data.boxes.image), _take_names(data.labels.names, data.boxes.label)
            return _box_columns(data.boxes) | {"image": image, "class": label}
        case BoxTable():
            rows = {"image": (data.image_names, data.image), "class": (data.class_names, data.label)}
            named = {key: _take_names(names, column) for key, (names, column) in rows.items() if names is not None}
            return _box_columns(data) | named
        case Mapping():
            return {name: column for key, values in data.items() for name, column in _split(str(key), values).items()}
        case _ if hasattr(data, "tables") and len(tables := data.tables()) == 1:
            (table,) = tables.values()
            return {name: [row[i] for row in table.rows] for i, name in enumerate(table.header)}
        case _:
            raise UsageError(f"cannot make a table from {type(data).__name__}; pass a result, boxes or columns")


def _class_columns(result: EvaluationResult) -> dict[str, Any]:
    rows = result.per_class
    counts = {"class": np.array([row.name for row in rows], dtype=np.object_)}
    counts |= {
        name: np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in ("gt", "ignored", "pred")
    }
    metrics = dict.fromkeys(name for row in rows for name in row.values)
    values = {name: np.array([row.values[name].value for row in rows], dtype=np.float64) for name in metrics}
    if result.bootstrap is None:
        return counts | values
    # A class that no resample defines has no interval, but the column has a row of it.
    undefined = (np.nan, np.nan)
    bounds = {name: np.array([row.values[name].interval or undefined for row in rows]) for name in metrics}
    ends = {f"{name}_{end}": both[:, i] for name, both in bounds.items() for i, end in enumerate(("low", "high"))}
    return counts | values | ends


def _box_columns(boxes: BoxTable) -> dict[str, Any]:
    x, y, width, height = boxes.xywh.T
    place = {"image": boxes.image, "class": boxes.label, "x": x, "y": y, "width": width, "height": height}
    score = {} if boxes.score is None else {"score": boxes.score}
    return place | score | {"area": boxes.area} | {flag: getattr(boxes, flag) for flag in FLAGS}


def _take_names(names: Sequence[str], rows: RowArray) -> Any:
    # Objects, not fixed-width text: one long file name would widen all rows.
    return np.array(names, dtype=np.object_)[rows]


def _split(name: str, values: Any) -> dict[str, Any]:
    """Return a column as it is, or the columns of one with two dimensions."""
    column = np.asarray(values)
    if column.ndim == 1:
        return {name: column}
    if column.ndim != 2:
        raise UsageError(f"column {name!r} has shape {column.shape}; expected (n,) or (n, m)")
    return {f"{name}_{entry}": column[:, entry] for entry in range(column.shape[1])}
