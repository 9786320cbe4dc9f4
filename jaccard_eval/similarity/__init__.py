"""What can be compared, and how: one module for each kind of similarity, found by its `SIMILARITY`, and pure kernels.

A kind measures boxes, or the shapes that a table carries with them (`data.boxtable.Shapes`). Third parties add kinds
through the entry-point group ``jaccard_eval.similarities``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data import protocol
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.errors import UsageError
from jaccard_eval.text import did_you_mean, quoted_value

ENTRY_POINT_GROUP = "jaccard_eval.similarities"

Rows = npt.NDArray[np.int64]


class Pairing(Protocol):
    """How much the pairs (i, j) of two prepared sides agree, in (0, 1]."""

    def __call__(
        self, first: Any, second: Any, i: Rows, j: Rows, *, crowd: BoolArray | None = None, threshold: float = 0.0
    ) -> tuple[Rows, Rows, FloatArray]:
        """Return the pairs that agree by at least `threshold`, in their order, and by how much.

        Where `crowd` marks a row of `second`, agreement is what the protocol calls overlap with a crowd.
        """


@dataclass(frozen=True, slots=True)
class Similarity:
    """One kind of similarity."""

    # The `iou_type` of protocols.
    name: str
    # Makes of a table, under a protocol, what `pairs` reads; called once for each side.
    prepare: Callable[[BoxTable, protocol.Protocol], Any]
    pairs: Pairing
    # What it measures, which both tables must carry; their boxes by default.
    shapes: type[Shapes] | None = None


class _Kinds(dict[str, Similarity]):
    """Similarities by name; a module is imported when a name is looked for that none before it has."""

    def __missing__(self, name: str) -> Similarity:
        modules = sorted(info.name for info in pkgutil.iter_modules(__path__))
        # Boxes first, so that a plain run imports no other.
        for module in sorted(modules, key=lambda module: module != "boxes"):
            found = getattr(importlib.import_module(f"{__name__}.{module}"), "SIMILARITY", None)
            if found is not None:
                self[found.name] = found
            if name in self:
                return self[name]
        # Only now, as it reads the metadata of all that is installed.
        from importlib.metadata import entry_points

        points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
        if name not in points:
            known = sorted({*self, *points})
            listed = ", ".join(known)
            raise UsageError(f"unknown iou_type {quoted_value(name)}; choose from {listed}.{did_you_mean(name, known)}")
        return self.setdefault(name, points[name].load())


KINDS: dict[str, Similarity] = _Kinds()
