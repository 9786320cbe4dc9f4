"""Segmentations that read as pictures: a digit per pixel is the id of a segment, 0 is void."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from label_map_builder import label_map

from jaccard_eval import PanopticResult, panoptic

# Ids 1 to 4 are of class 1, 5 to 8 of class 2; things and stuff.
CATEGORIES = [{"id": 1, "name": "cat", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}]


def side(pictures: Mapping[str, Any], *, crowds: tuple[int, ...] = (), gt: bool = False) -> dict[str, Any]:
    """Return a document that lists all segments of some maps."""
    annotations = []
    for at, (name, values) in enumerate(pictures.items()):
        ids = [int(value) for value in np.unique(values) if value]
        segments = [{"id": one, "category_id": 1 if one < 5 else 2, "iscrowd": int(one in crowds)} for one in ids]
        annotations.append({"image_id": at, "file_name": name, "segments_info": segments})
    return {"annotations": annotations, **({"categories": CATEGORIES} if gt else {})}


def judged(gt: str, pred: str, *, crowds: tuple[int, ...] = (), **rules: Any) -> PanopticResult:
    """Evaluate one image, given as two pictures."""
    maps = {"a.png": label_map(gt)}, {"a.png": label_map(pred)}
    documents = side(maps[0], crowds=crowds, gt=True), side(maps[1])
    return panoptic(*documents, gt_masks=maps[0], pred_masks=maps[1], **rules)


def counts(result: PanopticResult, name: str = "cat") -> tuple[int, int, int]:
    """TP, FP and FN of a class."""
    (row,) = (row for row in result.per_class if row.name == name)
    return row.tp, row.fp, row.fn
