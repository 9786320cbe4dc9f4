"""Two sides of one class in images of one size, evaluated: what is said of their boxes."""

from collections.abc import Sequence

import numpy as np

from jaccard_eval import BoxTable, evaluate
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.findings import Finding

Box = Sequence[float]
Size = tuple[float, float]


def said_of_boxes(gt: Sequence[Box], pred: Sequence[Box], *codes: str, size: Size | None = (640, 480)) -> list[Finding]:
    """Evaluate boxes x y w h, one image for each pair, and return the findings of these codes."""
    n = max(len(gt), len(pred))
    sizes = np.full((n, 2), np.nan) if size is None else np.tile(size, (n, 1)).astype(np.float64)
    sides = (_side("gt", gt, sizes), _side("pred", pred, sizes))
    return [one for one in evaluate(*sides).findings if one.code in codes]


def _side(role: str, boxes: Sequence[Box], sizes: np.ndarray) -> Dataset:
    images = tuple(range(len(sizes)))
    table = BoxTable.from_arrays(
        range(len(boxes)),
        [0] * len(boxes),
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        encoding="xywh",
        score=np.linspace(0.9, 0.5, len(boxes)) if role == "pred" else None,
    )
    names = tuple(f"{image}.png" for image in images)
    labels = LabelMap(("dog",), ("dog",), named=True)
    return Dataset(f"{role}.file", "test", role, ImageTable(images, names, sizes, True), labels, table)
