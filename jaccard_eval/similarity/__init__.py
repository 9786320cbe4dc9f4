"""What can be compared, and how: one module for each kind of similarity, found by its `SIMILARITY`, and pure kernels.

A kind measures boxes, or the shapes that a table carries with them (`data.boxtable.Shapes`). Third parties add kinds
through the entry-point group ``jaccard_eval.similarities``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data import protocol
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import SIMILARITIES, broken_extension, extension_names, load_extension
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, quoted_value

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
    # Makes of a table, under a protocol, what `pairs` reads; called once for the ground truth, and once for each block
    # of detections.
    prepare: Callable[[BoxTable, protocol.Protocol], Any]
    pairs: Pairing
    # What it measures, which both tables must carry; their boxes by default.
    shapes: type[Shapes] | None = None
    # Why shapes cannot be compared under a protocol; "" where they can.
    refuses: Callable[[Any, protocol.Protocol], str] | None = None
    remedy: Callable[[Any], Fix] | None = None  # of shapes that are refused


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
        added = load_extension(SIMILARITIES, name)
        if added is None:
            known = sorted({*self, *extension_names(SIMILARITIES)})
            listed = ", ".join(known)
            raise UsageError(f"unknown iou_type {quoted_value(name)}; choose from {listed}.{did_you_mean(name, known)}")
        if not isinstance(added, Similarity) or added.name != name:
            raise broken_extension(SIMILARITIES, name, "is not a Similarity of that name")
        return self.setdefault(name, added)


KINDS: dict[str, Similarity] = _Kinds()
