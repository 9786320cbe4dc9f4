"""Results lists of COCO by the compiled core."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jaccard_eval.native import load_core
from jaccard_eval.progress import BYTES, Stage

# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1],"score":1}, so that there are no more records than bytes / 57.
SHORTEST_RECORD = 57
BATCH = 1 << 18  # records read between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedResults:
    """Detections in the order of the file: keys (n,), boxes (n, 4) and scores (n,)."""

    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    coords: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]


def scan_results(data: bytes) -> ScannedResults | None:
    """Read a results list; None without a core, or where anything is out of the ordinary."""
    core = load_core()
    if core is None or not data:
        return None
    # Memory that no record comes to is never touched.
    capacity = len(data) // SHORTEST_RECORD + 1
    image, category = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    coords, score = np.empty((capacity, 4)), np.empty(capacity)
    position, n = ctypes.c_size_t(0), 0
    with Stage("decoding", len(data), unit=BYTES) as stage:
        while position.value < len(data):
            before = position.value
            rows = slice(n, min(n + BATCH, capacity))
            columns = (column[rows].ctypes.data for column in (image, category, coords, score))
            found = core.jaccard_scan_results(data, len(data), ctypes.byref(position), rows.stop - n, *columns)
            if found <= 0:  # not plain, or more records than there can be
                return None
            n += found
            stage.advance(position.value - before)
    return ScannedResults(image=image[:n], category=category[:n], coords=coords[:n], score=score[:n])
