"""Ground truth of COCO by the compiled core."""

from __future__ import annotations

import ctypes
from io import BufferedIOBase, BytesIO

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core
from jaccard_eval.native.results import PIECE, Piece, scan_in_pieces

# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1]}, and the comma behind it.
SHORTEST_ANNOTATION = 48
LARGEST_PIECE = 1 << 24  # bytes; what is larger is not plain
LAST_OF_ASCII = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedTruth:
    """Annotations in the order of the file, columns of (n,) and (n, 4); areas NaN and flags -1 were not given."""

    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64] | None  # None where no annotation has one
    coords: npt.NDArray[np.float64]
    area: npt.NDArray[np.float64]
    iscrowd: npt.NDArray[np.int8]
    ignore: npt.NDArray[np.int8]
    # The texts of the other two lists; each of their keys that matter comes once an entry.
    images: bytes
    categories: bytes


def scan_truth(data: bytes) -> ScannedTruth | None:
    """Read ground truth, of text that is UTF-8; None without a core, or where anything is out of the ordinary."""
    return _scan(BytesIO(data), len(data), is_text=True) if data else None


def scan_truth_file(file: BufferedIOBase, size: int) -> ScannedTruth | None:
    """Read a file that is ASCII as `scan_truth` does, which is never in memory as a whole."""
    return _scan(file, size, is_text=False) if size else None


def _scan(file: BufferedIOBase, size: int, *, is_text: bool) -> ScannedTruth | None:
    core = load_core()
    if core is None:
        return None
    # Memory that no annotation comes to is never touched.
    capacity = size // SHORTEST_ANNOTATION + 1
    image, category, ids = (np.empty(capacity, np.int64) for _ in range(3))
    coords, area = np.empty((capacity, 4)), np.empty(capacity)
    crowd, ignore = (np.empty(capacity, np.int8) for _ in range(2))
    listed = np.empty(size, np.uint8)  # in the file, too, something stands behind each entry
    state = np.zeros(6, np.int64)
    arrays = (state, listed, image, category, ids, coords, area, crowd, ignore)
    columns = [array.ctypes.data for array in arrays]

    def scan(piece: Piece, position: ctypes.c_size_t, _: bool, is_last: bool) -> bool:
        if not is_text and piece.max(initial=0) > LAST_OF_ASCII:
            return False
        given = piece.ctypes.data, len(piece), ctypes.byref(position), is_last, capacity
        return bool(core.jaccard_scan_truth(*given, *columns) >= 0)

    if not scan_in_pieces(file, size, scan, first=PIECE, largest=LARGEST_PIECE):
        return None
    *ends, n, n_ids, _, _ = state.tolist()
    # The list that comes second begins where the first one ends; a comma is left away.
    texts = [listed[min(ends) if end > min(ends) else 0 : max(end - 1, 0)].tobytes() for end in ends]
    return ScannedTruth(
        image=image[:n],
        category=category[:n],
        ids=ids[:n] if n_ids == n else None,
        coords=coords[:n],
        area=area[:n],
        iscrowd=crowd[:n],
        ignore=ignore[:n],
        images=b"[%b]" % texts[0],
        categories=b"[%b]" % texts[1],
    )
