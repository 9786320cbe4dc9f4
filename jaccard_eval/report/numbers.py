"""Numbers as people read them: fixed decimals, undefined as n/a, and 0 and 1 only when they are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

UNDEFINED = "n/a"
DECIMALS = 4
EXACT = 1e-12  # pycocotools adds 2.2e-16 to the number of detections, so that a perfect class may miss 1 by an ulp


def metric_text(value: float, decimals: int = DECIMALS) -> str:
    """Return a metric with fixed decimals; ``1.0000`` and ``0.0000`` are shown only when exact, as coverage.py does.

    Examples
    --------
    >>> metric_text(0.99996), metric_text(1.0), metric_text(0.00001), metric_text(float("nan"))
    ('0.9999', '1.0000', '0.0001', 'n/a')
    """
    if math.isnan(value):
        return UNDEFINED
    step = 10.0**-decimals
    if EXACT < value < 1 - EXACT:
        value = min(max(value, step), 1 - step)
    return f"{value:.{decimals}f}"


def threshold_text(value: float) -> str:
    """Return an IoU or score with two decimals, or with as many as it takes to be told apart.

    Examples
    --------
    >>> threshold_text(0.5), threshold_text(0.375)
    ('0.50', '0.375')
    """
    return f"{value:.2f}" if abs(value - round(value, 2)) < 1e-9 else f"{value:.6g}"


def thresholds_text(values: Sequence[float]) -> str:
    """Return a list of thresholds: itself when short, ``first:last`` when evenly spaced, else ends and count.

    Examples
    --------
    >>> thresholds_text((0.5, 0.75)), thresholds_text((0.3, 0.5, 0.7, 0.9))
    ('0.50, 0.75', '0.30:0.90')
    """
    if len(values) <= 3:
        return ", ".join(map(threshold_text, values))
    ends = f"{threshold_text(values[0])}:{threshold_text(values[-1])}"
    step = (values[-1] - values[0]) / (len(values) - 1)
    even = all(abs(value - values[0] - i * step) < 1e-9 for i, value in enumerate(values))
    return ends if even else f"{ends} ({len(values)} uneven)"


def delta_text(delta: float) -> str:
    """Return a difference of metrics with its sign; ``0.0000`` only when there is none beyond rounding errors.

    Examples
    --------
    >>> delta_text(0.0125), delta_text(-0.00001), delta_text(0.0), delta_text(float("nan"))
    ('+0.0125', '-0.0001', '0.0000', 'n/a')
    """
    if math.isnan(delta):
        return UNDEFINED
    if abs(delta) <= EXACT:
        return f"{0:.{DECIMALS}f}"
    return f"{math.copysign(max(abs(delta), 10.0**-DECIMALS), delta):+.{DECIMALS}f}"


def side_text(side: float) -> str:
    """Return a coordinate or side of a box as it is read at a glance; files for machines have all digits.

    Examples
    --------
    >>> side_text(427.12), side_text(96.74), side_text(0.12345)
    ('427', '96.7', '0.123')
    """
    return f"{side:.0f}" if abs(side) >= 100 else f"{side:.3g}"
