"""The numbers of a result, and how people read them: fixed decimals, undefined as n/a, 0 and 1 only when exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from jaccard_eval.frozen import dataclass
from jaccard_eval.report import Reportable

UNDEFINED = "n/a"
DECIMALS = 4
MOST_DECIMALS = 12  # of a value that must differ from a limit
NEGLIGIBLE = 1e-9  # a margin that is a rounding error
EXACT = 1e-12  # pycocotools adds 2.2e-16 to the number of detections, so that a perfect class may miss 1 by an ulp
LEAST_P = 0.001  # p-values are approximations: smaller ones claim too much


def metric_text(value: float, decimals: int = DECIMALS) -> str:
    """Return a metric with fixed decimals; ``1.0000`` and ``0.0000`` are shown only when exact, as coverage.py does.

    >>> metric_text(0.99996), metric_text(1.0), metric_text(0.00001), metric_text(float("nan"))
    ('0.9999', '1.0000', '0.0001', 'n/a')
    """
    if math.isnan(value):
        return UNDEFINED
    # "1.0000" means that nothing was missed: what is rounded there is held one step below.
    step = 10.0**-decimals
    if EXACT < value < 1 - EXACT:
        value = min(max(value, step), 1 - step)
    return f"{value:.{decimals}f}"


def value_text(value: float, limit: float = math.nan) -> str:
    """Return a value with four decimals, and with more where it takes them to differ from a limit.

    >>> value_text(0.5, 0.45), value_text(0.44999, 0.45), value_text(12.3), value_text(3.0, 2.0)
    ('0.5000', '0.44999', '12.3', '3')
    """
    if math.isnan(value) or not 0 <= value <= 1 or (value.is_integer() and limit > 1):
        return UNDEFINED if math.isnan(value) else f"{value:.12g}"
    decimals = range(DECIMALS, MOST_DECIMALS)
    if math.isnan(limit) or abs(value - limit) <= NEGLIGIBLE:
        return metric_text(value)
    return next((text for n in decimals if float(text := metric_text(value, n)) != limit), repr(value))


def signed_text(change: float) -> str:
    """Return a difference with its sign, and never as zero unless it is a rounding error.

    >>> signed_text(0.05), signed_text(-0.00001), signed_text(-4e-16), signed_text(-2.7)
    ('+0.0500', '-1.0e-05', '0.0000', '-2.7')
    """
    if math.isnan(change):
        return UNDEFINED
    if abs(change) <= NEGLIGIBLE:
        return f"{0:.{DECIMALS}f}"
    if abs(change) > 1:
        return f"{change:+.12g}"
    return f"{change:+.{DECIMALS}f}" if abs(change) >= 0.5 * 10.0**-DECIMALS else f"{change:+.1e}"


def threshold_text(value: float) -> str:
    """Return an IoU or score with two decimals, or with as many as it takes to be distinct.

    >>> threshold_text(0.5), threshold_text(0.375)
    ('0.50', '0.375')
    """
    if math.isnan(value):
        return UNDEFINED
    return f"{value:.2f}" if abs(value - round(value, 2)) < 1e-9 else f"{value:.6g}"


def thresholds_text(values: Sequence[float]) -> str:
    """Return a list of thresholds: itself when short, ``first:last`` when evenly spaced, else ends and count.

    >>> thresholds_text((0.5, 0.75)), thresholds_text((0.3, 0.5, 0.7, 0.9))
    ('0.50, 0.75', '0.30:0.90')
    """
    if len(values) <= 3:
        return ", ".join(map(threshold_text, values))
    ends = f"{threshold_text(values[0])}:{threshold_text(values[-1])}"
    step = (values[-1] - values[0]) / (len(values) - 1)
    even = all(abs(value - values[0] - i * step) < 1e-9 for i, value in enumerate(values))
    return ends if even else f"{ends} ({len(values)} uneven)"


def delta_text(delta: float, decimals: int = DECIMALS) -> str:
    """Return a difference of metrics with its sign; ``0.0000`` only when there is none beyond rounding errors.

    >>> delta_text(0.0125), delta_text(-0.00001), delta_text(0.0), delta_text(float("nan"))
    ('+0.0125', '-0.0001', '0.0000', 'n/a')
    """
    if math.isnan(delta):
        return UNDEFINED
    if abs(delta) <= EXACT:
        return f"{0:.{decimals}f}"
    return f"{math.copysign(max(abs(delta), 10.0**-decimals), delta):+.{decimals}f}"


def p_text(p_value: float) -> str:
    """Return a p-value behind its sign: "= 0.004", "< 0.001"."""
    if p_value < LEAST_P:
        return f"< {LEAST_P}"
    return f"= {p_value:.2f}" if p_value >= 0.1 else f"= {metric_text(p_value, 3)}"


def size_text(size: float) -> str:
    """Return a length in px with one decimal; zero has no sign."""
    return UNDEFINED if math.isnan(size) else f"{size + 0.0:.1f}"


def side_text(side: float) -> str:
    """Return a coordinate or side of a box as it is read at a glance; files for machines have all digits.

    >>> side_text(427.12), side_text(96.74), side_text(0.12345)
    ('427', '96.7', '0.123')
    """
    return f"{side:.0f}" if abs(side) >= 100 else f"{side:.3g}"


Number = int | float  # an int is a count, a float a metric, NaN when undefined


@dataclass(frozen=True, slots=True)
class Measures:
    """The numbers of a result by name, the headline metric first, and those of its classes."""

    version: str
    signature: str  # empty where there is none
    overall: Mapping[str, Number]
    per_class: tuple[tuple[str, Mapping[str, Number]], ...]


def measures_of(result: Reportable) -> Measures:
    """Return the numbers that a result has: a result of any kind may have `metrics`, and rows `per_class`."""
    per_class, further = [], getattr(result, "further", {})
    for place, row in enumerate(getattr(result, "per_class", ())):
        # Whatever was counted: the whole numbers among the fields of a row are its counts.
        named = ((item.name, getattr(row, item.name)) for item in fields(row))
        counts: dict[str, Number] = {name: count for name, count in named if isinstance(count, int)}
        numbers = {**getattr(row, "values", {}), **further.get(place, {})}
        per_class.append((row.name, counts | _numbers(numbers)))
    return Measures(
        version=result.version,
        signature=getattr(result, "signature", ""),
        overall=_numbers({**getattr(result, "metrics", {}), **further.get(None, {})}),
        per_class=tuple(per_class),
    )


def fixed(number: Number) -> str:
    """Return a count as it is, a metric with four decimals, so that equal numbers are equal texts."""
    return str(number) if isinstance(number, int) else metric_text(number)


def _numbers(metrics: Mapping[str, Any]) -> dict[str, Number]:
    """Return measured values, or bare ones; what is not finite is undefined, as in documents."""
    numbers = {name: getattr(metric, "value", metric) for name, metric in metrics.items()}
    return {name: number if math.isfinite(number) else math.nan for name, number in numbers.items()}
