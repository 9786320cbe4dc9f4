"""Label maps in memory: arrays by name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from jaccard_eval.engine import path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.image_boxes import to_array
from jaccard_eval.text import quoted_value

SUFFIX = ".npy"
PLACE = "<arrays>"
ARRAYS_FIX = "Pass two-dimensional arrays of integers, (height, width)."


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMap:
    """One label map in memory."""

    name: str
    values: Any
    suffix: str = SUFFIX  # of the format that reports name, that of arrays in files

    def __str__(self) -> str:
        return f"{PLACE}[{quoted_value(self.name)}]"

    def array(self) -> npt.NDArray[Any]:
        """Return the map as an array of numbers."""
        with contextlib.suppress(UsageError, ValueError):  # rows of several lengths
            values = to_array(self.values)
            if values.dtype != object:
                return values
        detail = f"is {quoted_value(type(self.values).__name__)}, not an array of integers"
        raise DataError.single("map-type", Where(str(self)), detail, fix=ARRAYS_FIX)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMaps:
    """The label maps of one side."""

    maps: Mapping[str, Any]

    def __str__(self) -> str:
        return PLACE

    def map(self, name: str) -> ArrayMap:
        """Return a map by its name."""
        return ArrayMap(name, self.maps[name])


def maps_from(source: object) -> Path | ArrayMaps:
    """Return the path of label maps, or those of a dict, of a list (by place), or one array.

    Raises
    ------
    UsageError
        When it is none of these.
    """
    if isinstance(source, str | os.PathLike):
        return path_of(source)
    if isinstance(source, Mapping):
        return ArrayMaps({str(key): values for key, values in source.items()})
    if isinstance(source, list | tuple):
        return ArrayMaps({str(at): values for at, values in enumerate(source)})
    if any(hasattr(source, name) for name in ("__array__", "__dlpack__", "__array_interface__")):
        return ArrayMaps({"0": source})
    kind = type(source).__name__
    raise UsageError(
        f"pixels() cannot read {'an' if kind[0] in 'aeiou' else 'a'} {kind}. "
        "Pass a path, or a list or dict of two-dimensional arrays of integers."
    )
