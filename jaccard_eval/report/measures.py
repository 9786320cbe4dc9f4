"""The numbers of a result by name, read from its JSON document, whose schema every kind of result keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaccard_eval.report import Reportable
from jaccard_eval.report.numbers import metric_text

Number = int | float  # an int is a count, a float a metric, NaN when undefined


@dataclass(frozen=True, slots=True)
class Measures:
    """The numbers of a result.

    Parameters
    ----------
    version : str
        Of the program.
    signature : str
        Empty where there is none.
    overall : mapping of str to number
        The headline metric first.
    per_class : tuple of (str, mapping of str to number)
    """

    version: str
    signature: str
    overall: Mapping[str, Number]
    per_class: tuple[tuple[str, Mapping[str, Number]], ...]


def measures_of(result: Reportable) -> Measures:
    """Return the numbers that a result has."""
    document = result.to_dict()
    rows = [(str(row["class"]), _numbers(row)) for row in document.get("per_class", ())]
    return Measures(
        version=document["tool"]["version"],
        signature=document.get("signature", ""),
        overall=_numbers(document.get("metrics", {})),
        per_class=tuple(rows),
    )


def worst_classes(measures: Measures, count: int) -> list[tuple[str, Number]]:
    """Return the classes with the lowest headline metric, the lowest first; those without a value are left out."""
    headline = next(iter(measures.overall), "")
    values = [(name, row[headline]) for name, row in measures.per_class if headline in row]
    return sorted((one for one in values if not math.isnan(one[1])), key=lambda one: one[1])[:count]


def fixed(number: Number) -> str:
    """Return a count as it is, a metric with four decimals, so that equal numbers are equal texts."""
    return str(number) if isinstance(number, int) else metric_text(number)


def _numbers(fields: Mapping[str, Any]) -> dict[str, Number]:
    """Keep the numbers; None is what documents have where a number is undefined."""
    numeric = {key: math.nan if value is None else value for key, value in fields.items()}
    return {key: value for key, value in numeric.items() if isinstance(value, int | float)}
