"""Results lists of COCO by the compiled core."""

from __future__ import annotations

import ctypes
from io import BufferedIOBase

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core
from jaccard_eval.progress import BYTES, Stage

# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1],"score":1}, so that there are no more records than bytes / 57.
SHORTEST_RECORD = 57
PIECE = 1 << 20  # bytes read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedResults:
    """Detections in the order of the file: keys (n,), boxes (n, 4) and scores (n,)."""

    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    coords: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]


def scan_results(file: BufferedIOBase, size: int) -> ScannedResults | None:
    """Read a results list of so many bytes; None without a core, or where anything is out of the ordinary."""
    core = load_core()
    if core is None or not size:
        return None
    # Memory that no record comes to is never touched.
    capacity = size // SHORTEST_RECORD + 1
    image, category = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    coords, score = np.empty((capacity, 4)), np.empty(capacity)
    # A piece at a time, in memory that stays in the cache of the processor.
    piece = np.empty(min(PIECE, size), np.uint8)
    position, n, held, n_read, is_first, is_last = ctypes.c_size_t(0), 0, 0, 0, True, False
    with Stage("decoding", size, unit=BYTES) as stage:
        while not is_last:
            n_new = file.readinto(piece[held:].data)
            held, n_read = held + n_new, n_read + n_new
            is_last = n_read == size or not n_new
            columns = (column[n:].ctypes.data for column in (image, category, coords, score))
            position.value = 0
            given = piece.ctypes.data, held, ctypes.byref(position), is_first, is_last, capacity - n
            found = core.jaccard_scan_results(*given, *columns)
            if found < 0 or (is_last and position.value < held):  # not plain, or more records than there can be
                return None
            n, held, is_first = n + found, held - position.value, is_first and not position.value
            if held == len(piece) and not is_last:  # a record that is larger than a piece is not plain
                return None
            piece[:held] = piece[position.value : position.value + held]
            stage.advance(position.value)
    return ScannedResults(image=image[:n], category=category[:n], coords=coords[:n], score=score[:n])
