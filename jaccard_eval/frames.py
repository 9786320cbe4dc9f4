"""Results and boxes as pandas tables: for people and notebooks. No metric is computed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FLAGS, BoxTable, RowArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import DataTable, Part
from jaccard_eval.data.result import TARGET_COLUMN, EvaluationResult, NamedCurves, Result
from jaccard_eval.errors import UsageError
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import build_data

if TYPE_CHECKING:
    import pandas as pd


def to_frame(data: Result | Part | NamedCurves | Dataset | BoxTable | Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a result, a side or columns as a table with the index 0, 1, ..., n - 1.

    Parameters
    ----------
    data : result, part of one, Dataset, BoxTable or mapping of str to array_like
        An evaluation gives one row per class: ``class``, ``gt``, ``ignored``, ``pred`` and its metrics, NaN where
        undefined; with a bootstrap, also the bounds of each, ``AP_low`` and ``AP_high``, and ``intervals_for``, what
        they are for; ``result.worst_images`` gives one row per image, as
        images.csv has them, ``result.errors`` one per type of error, and ``result.curves`` one
        per value: ``class``, ``area``, ``max_dets``, ``iou``, ``recall``, ``precision``, ``score``. Other results give
        the rows of their CSV report: a comparison one per box that changed (and ``comparison.others[0]`` one
        per metric and class), gates one per verdict. Boxes give one each:
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
        case Result():
            return _result_columns(data)
        case NamedCurves():
            return _curve_columns(data)
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
        case _ if hasattr(data, "tables") and (tables := data.tables()):
            # The first is what a part with several is about.
            return _table_columns(next(iter(tables.values())))
        case _:
            raise UsageError(f"cannot make a table from {type(data).__name__}; pass a result, boxes or columns")


def _result_columns(result: Result) -> dict[str, Any]:
    if isinstance(result, EvaluationResult):
        return _class_columns(result)
    return _table_columns(build_data(result, ReportOptions()))


def _table_columns(table: DataTable) -> dict[str, Any]:
    return {name: _filled([row[i] for row in table.rows]) for i, name in enumerate(table.header)}


def _filled(cells: list[Any]) -> list[Any]:
    """Return the cells of a column, NaN for what is empty between numbers: a CSV file leaves both empty."""
    is_number = any(not isinstance(cell, str) for cell in cells)
    return [np.nan if is_number and cell == "" else cell for cell in cells]


def _curve_columns(curves: NamedCurves) -> dict[str, Any]:
    """Return a row per class, area range, cap, threshold and recall value, in this order."""
    protocol = curves.protocol
    axes: dict[str, Any] = {
        "class": np.array(curves.class_names, dtype=np.object_),
        "area": np.array([area.name for area in protocol.areas], dtype=np.object_),
        # Without a cap, there is one entry.
        "max_dets": np.array(protocol.max_dets or (np.nan,)),
        "iou": np.array(protocol.iou_thresholds),
        "recall": curves.recall_grid,
    }
    shape = tuple(map(len, axes.values()))  # (K, A, M, T, R)
    places = np.indices(shape, sparse=True)
    columns = {name: np.broadcast_to(axis[at], shape) for at, (name, axis) in zip(places, axes.items(), strict=True)}
    columns |= {"precision": curves.precision.transpose(2, 3, 4, 0, 1)}
    columns |= {"score": curves.scores.transpose(2, 3, 4, 0, 1)}
    return {name: column.reshape(-1) for name, column in columns.items()}


def _class_columns(result: EvaluationResult) -> dict[str, Any]:
    rows = result.per_class
    counts: dict[str, Any] = {"class": np.array([row.name for row in rows], dtype=np.object_)}
    if any(row.frequency is not None for row in rows):
        counts["frequency"] = np.array([row.frequency for row in rows], dtype=np.object_)
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
    target = np.array([result.bootstrap.sets] * len(rows), dtype=np.object_)
    return counts | values | ends | {TARGET_COLUMN: target}


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
