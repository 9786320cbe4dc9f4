"""Boxes as a file has them, and the checks that all formats share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jaccard_eval.data.boxtable import MAX_AREA, MAX_COORDINATE, MAX_SCORE, BoolArray, FloatArray, find_too_large
from jaccard_eval.errors import FindingLog, Severity, Where, counted, shown
from jaccard_eval.reading.keys import Keys

LARGEST_FLOAT = float(np.finfo(np.float64).max)


@dataclass(slots=True, kw_only=True)
class RawBoxes:
    """Boxes as the file has them.

    Parameters
    ----------
    image, label : int64 array (n,) or sequence of keys
        File keys of the image and class of each box.
    coords : float64 array (n, 4)
        In `encoding` ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx") and `units` ("px", "norm").
    score, area : float64 array (n,), optional
        NaN in `area` means: not given.
    crowd, difficult, group_of, ignore : bool array (n,), optional
    place : callable
        From a box's row to its place in the input.
    units_guessed : bool
        Whether `units` rests on the values alone; a format that prescribes its units does not guess.
    negative_size : Severity
        Whether a negative width or height is an error or, as in COCO JSON, a warning.
    """

    image: Keys
    label: Keys
    coords: FloatArray
    encoding: str
    units: str
    place: Callable[[int], Where]
    score: FloatArray | None = None
    area: FloatArray | None = None
    crowd: BoolArray | None = None
    difficult: BoolArray | None = None
    group_of: BoolArray | None = None
    ignore: BoolArray | None = None
    units_guessed: bool = False
    negative_size: Severity = Severity.ERROR


def check_numbers(raw: RawBoxes, findings: FindingLog) -> None:
    """Report coordinates, scores and areas that are not finite, and scores and areas that overflow in a sum."""
    _check_finite(raw, raw.coords, "bbox", findings, most=LARGEST_FLOAT)  # what overflows depends on the encoding
    if raw.score is not None:
        _check_finite(raw, raw.score, "score", findings, most=MAX_SCORE)
    if raw.area is not None:
        given = np.nan_to_num(raw.area, nan=0.0, posinf=np.inf, neginf=-np.inf)
        _check_finite(raw, given, "area", findings, most=MAX_AREA)


def _check_finite(raw: RawBoxes, column: FloatArray, name: str, findings: FindingLog, *, most: float) -> None:
    good = np.abs(column) <= most  # NaN is not
    if good.all():
        return
    rows = np.flatnonzero(~(good.all(axis=1) if good.ndim == 2 else good))

    def describe(row: int) -> tuple[Where, str]:
        where = replace(raw.place(row), field=name)
        why = f"numbers above {most:g} overflow" if np.isfinite(column[row]).all() else "numbers must be finite"
        return where, f"is {shown(np.asarray(column[row]).tolist())}; {why}"

    findings.add_rows(Severity.ERROR, "number-not-finite", rows, describe, fix="Fix the exporter or drop the record.")


def check_scores(raw: RawBoxes, findings: FindingLog) -> None:
    """Report predictions without scores."""
    if raw.score is None and len(raw.coords):
        findings.error(
            "score-missing",
            raw.place(0),
            "predictions have no score; average precision ranks boxes by their score",
            fix="Export the scores, or pass --assume-score 1.0 to rank all alike.",
        )


def check_sizes(raw: RawBoxes, xywh: FloatArray, findings: FindingLog) -> None:
    """Report boxes of negative or zero size, and those with numbers that overflow."""
    _check_overflow(raw, xywh, findings)
    width, height = xywh[:, 2], xywh[:, 3]
    with np.errstate(over="ignore"):
        product = width * height
    if len(xywh) == 0 or (width.min() > 0 and height.min() > 0 and product.min() > 0):
        return

    def describe(row: int) -> tuple[Where, str]:
        return raw.place(row), f"bbox has width {width[row]:g} and height {height[row]:g}"

    negative = np.flatnonzero((width < 0) | (height < 0))
    empty = np.flatnonzero((product == 0) & (width >= 0) & (height >= 0))
    order = "Check the order of the coordinates (--gt-box, --pred-box: xywh, xyxy, cxcywh, xxyy or yxyx)."
    scored = "" if raw.negative_size is Severity.ERROR else _degenerate(len(negative), "a negative")
    findings.add_rows(raw.negative_size, "box-negative", negative, describe, fix=order, summary=scored)
    findings.add_rows(Severity.WARNING, "box-empty", empty, describe, summary=_degenerate(len(empty), "zero"))


def check_areas(raw: RawBoxes, findings: FindingLog) -> None:
    """Warn about negative areas: they lie in no size range, so that their boxes are ignored as in pycocotools."""
    area = raw.area
    if area is None:
        return
    negative = np.flatnonzero(area < 0)
    findings.add_rows(
        Severity.WARNING,
        "area-negative",
        negative,
        lambda row: (replace(raw.place(row), field="area"), f"is {area[row]:g}"),
        summary=f"area is negative, in no size range, in {counted(len(negative), 'record')}: such boxes are ignored",
        fix="Write the area in square pixels, or leave it out.",
    )


def _check_overflow(raw: RawBoxes, xywh: FloatArray, findings: FindingLog) -> None:
    def describe(row: int) -> tuple[Where, str]:
        numbers = ", ".join(f"{number:g}" for number in xywh[row])
        return replace(raw.place(row), field="bbox"), f"is too large: left, top, width and height are {numbers}"

    fix = f"Numbers above {MAX_COORDINATE:g} overflow when areas are computed; fix the exporter or drop the record."
    findings.add_rows(Severity.ERROR, "box-too-large", find_too_large(xywh), describe, fix=fix)


def _degenerate(count: int, what: str) -> str:
    boxes = counted(count, "degenerate box has", "degenerate boxes have")
    return f"{boxes} {what} width or height and can match nothing; kept, as pycocotools does"
