"""Ground truth of COCO by the compiled core."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core

# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1]}, and the comma behind it.
SHORTEST_ANNOTATION = 48


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
    # Where the other two lists are in the text; each of their keys that matter comes once an entry.
    images: slice
    categories: slice


def scan_truth(data: bytes) -> ScannedTruth | None:
    """Read ground truth, of text that is UTF-8; None without a core, or where anything is out of the ordinary."""
    core = load_core()
    if core is None:
        return None
    # Memory that no annotation comes to is never touched.
    capacity = len(data) // SHORTEST_ANNOTATION + 1
    image, category, ids = (np.empty(capacity, np.int64) for _ in range(3))
    coords, area = np.empty((capacity, 4)), np.empty(capacity)
    crowd, ignore = (np.empty(capacity, np.int8) for _ in range(2))
    found = np.zeros(5, np.int64)
    columns = (found, image, category, ids, coords, area, crowd, ignore)
    n = core.jaccard_scan_truth(data, len(data), capacity, *(column.ctypes.data for column in columns))
    if n < 0:
        return None
    images, end_of_images, categories, end_of_categories, n_ids = found.tolist()
    return ScannedTruth(
        image=image[:n],
        category=category[:n],
        ids=ids[:n] if n_ids == n else None,
        coords=coords[:n],
        area=area[:n],
        iscrowd=crowd[:n],
        ignore=ignore[:n],
        images=slice(images, end_of_images),
        categories=slice(categories, end_of_categories),
    )
