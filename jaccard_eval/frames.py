"""Results and boxes as pandas tables: for people and notebooks. No metric is computed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FLAGS, BoxTable, RowArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import DataTable, MetricValue, Part, fields_document
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import ByThreshold, NamedCurves, Result, WithParts
from jaccard_eval.errors import UsageError
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import build_data
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    import pandas as pd


EVERY_IOU = "all"
MISSED = "missed"  # column of whether an object is missed
NEAR = 1e-9  # thresholds are written with few decimals


def to_frame(
    data: Result | Part | NamedCurves | Dataset | BoxTable | Mapping[str, Any] | Sequence[Any],
    *,
    iou: float | str | None = None,
) -> pd.DataFrame:
    """Return the rows of a result, a part of one, a side or columns as a table with the index 0, 1, ..., n - 1.

    Parameters
    ----------
    data : result, part of one, Dataset, BoxTable, mapping of str to array_like, or list of records
        An evaluation gives one row per class with the columns of its CSV file: ``class``, ``gt``, ``ignored``, ``pred``
        and its metrics, NaN where undefined; with a bootstrap, also the bounds of each, ``AP_low`` and ``AP_high``, and
        ``intervals_for``, what they are for; with errors, how many of each kind. What is measured over all classes are
        ``result.metrics``, one row per metric. ``result.errors`` gives one row per type of error,
        ``result.worst_images`` one per image, as images.csv has them, and ``result.curves`` one per value: ``class``,
        ``area``, ``max_dets``, ``iou``, ``recall``, ``precision``, ``score``. ``result.matches`` gives one row per
        detection, ``result.missed`` one per object that is missed. Other results give
        the rows of their CSV report: a comparison one per box that changed (and ``comparison.others[0]`` one
        per metric and class), gates one per verdict. Boxes give one each:
        ``image``, ``class``, ``x``, ``y``, ``width``, ``height``, ``score`` (predictions only), ``area`` and the flags;
        image and class are names where the input knows them, else rows. Records, such as ``result.slices`` or
        ``explain(result).fixes``, give one row each, with the keys of the JSON document. Other columns stay as they
        are, and one of shape (n, m) becomes ``name_0`` to ``name_{m - 1}``.
    iou : float or "all", optional
        Which IoU threshold matches and missed objects are of: .5, or else the lowest, if None. "all" gives every
        threshold its columns: ``tp_0.5``, ``tp_0.55``, ...

    Returns
    -------
    pandas.DataFrame
        A copy: changing it changes nothing else.

    Raises
    ------
    UsageError
        When `data` is none of these, a column has more than two dimensions, or there is no such threshold.

    Examples
    --------
    >>> to_frame(BoxTable.from_arrays([0], [1], [[10, 20, 30, 60]]))[["image", "class", "width", "height"]]
       image  class  width  height
    0      0      1   20.0    40.0
    """
    # Imported when asked for: it takes as long to load as a small evaluation takes to run.
    import pandas as pd

    if isinstance(data, ByThreshold):
        return pd.DataFrame(_threshold_columns(data, iou), copy=True)
    if iou is not None:
        raise UsageError(f"iou: only matches and missed objects have IoU thresholds, not {type(data).__name__}")
    if isinstance(data, list | tuple) and all(map(is_dataclass, data)):
        return pd.json_normalize([fields_document(record) for record in data])
    return pd.DataFrame(_columns(data), copy=True)


def _columns(data: object) -> dict[str, Any]:  # noqa: PLR0911 - one kind each
    match data:
        case WithParts():
            return _class_columns(data)
        case Result():
            return _table_columns(build_data(data, ReportOptions()))
        case NamedCurves():
            return _curve_columns(data)
        case Dataset():
            # Over the rows that a bare table has: a side knows the names of its images and classes.
            images = [data.images.name(row) for row in range(len(data.images))]
            image, label = _take_names(images, data.table.image), _take_names(data.labels.names, data.table.label)
            return _box_columns(data.table) | {"image": image, "class": label}
        case BoxTable():
            rows = {"image": (data.image_names, data.image), "class": (data.class_names, data.label)}
            named = {key: _take_names(names, column) for key, (names, column) in rows.items() if names is not None}
            return _box_columns(data) | named
        case Mapping() if data and all(isinstance(value, MetricValue) for value in data.values()):
            return _metric_columns(data)
        case Mapping():
            return {name: column for key, values in data.items() for name, column in _split(str(key), values).items()}
        case _ if hasattr(data, "tables") and (tables := data.tables()):
            # The first is what a part with several is about.
            return _table_columns(next(iter(tables.values())))
        case _:
            raise UsageError(f"cannot make a table from {type(data).__name__}; pass a result, boxes or columns")


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
        "area": np.array(protocol.range_names, dtype=np.object_),
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


def _class_columns(result: WithParts) -> dict[str, Any]:
    """Return the columns of the CSV file for the classes, without those that are of all classes alone."""
    table = build_data(result.without_part("slices"), ReportOptions())
    rows = table.rows[1:]  # the first is that of all classes
    alone = {name for i, name in enumerate(table.header) if rows and all(row[i] == "" for row in rows)}
    return {name: cells[1:] for name, cells in _table_columns(table).items() if name not in alone}


def _metric_columns(metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    """Return one row per metric: its value, what it rests on, its bounds where one has them, why it is undefined."""
    values = metrics.values()
    columns: dict[str, Any] = {"metric": list(metrics), "value": [metric.value for metric in values]}
    if any(metric.interval is not None for metric in values):
        bounds = [metric.interval or (np.nan, np.nan) for metric in values]
        columns |= {"low": [low for low, _ in bounds], "high": [high for _, high in bounds]}
    return columns | {"n": [metric.n for metric in values], "reason": [metric.reason or "" for metric in values]}


def _threshold_columns(data: ByThreshold, iou: float | str | None) -> dict[str, Any]:
    """Return the columns at one IoU threshold, of missed objects those that are missed there, or at every threshold."""
    columns, protocol = {name: np.asarray(column) for name, column in data.items()}, data.protocol
    if iou == EVERY_IOU:
        every: dict[str, Any] = {}
        for name, column in columns.items():
            names = [name] if column.ndim == 1 else [f"{name}_{level:g}" for level in protocol.iou_thresholds]
            every |= dict(zip(names, np.atleast_2d(column.T), strict=True))
        return every
    place = protocol.judged_threshold if iou is None else _place_of(protocol, iou)
    at = {name: column if column.ndim == 1 else column[:, place] for name, column in columns.items()}
    missed = at.pop(MISSED, None)
    return at if missed is None else {name: column[missed] for name, column in at.items()}


def _place_of(protocol: Protocol, iou: float | str) -> int:
    """Return the place of an IoU threshold of a protocol."""
    for place, level in enumerate(protocol.iou_thresholds):
        if isinstance(iou, int | float) and abs(level - iou) < NEAR:
            return place
    known = ", ".join(f"{level:g}" for level in protocol.iou_thresholds)
    raise UsageError(f"iou must be one of {known} or {EVERY_IOU!r}, got {quoted_value(str(iou))}")


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
