"""The masks, keypoints and oriented boxes of a data set as the records of COCO JSON have them."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.writing import json_rows
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.similarity.runs import strings_of_runs


@dataclass(frozen=True, slots=True)
class ShapeTexts:
    """What the record of each box (n) has of its shape, as it stands between braces, a comma before each field."""

    boxes: list[str]  # the field of the box; empty where the shape alone is written
    fields: list[str]
    areas: list[str]  # the field of the area; empty where it is unknown


def shape_texts(dataset: Dataset) -> ShapeTexts:
    """Return the fields of boxes, shapes and areas: numbers with all their digits, runs as compressed strings."""
    boxes = dataset.boxes
    shapes: object = boxes.shapes
    upright = [f',"bbox":[{box}]' for box in json_rows(boxes.xywh)]
    areas = [f',"area":{area}' for area in json_rows(boxes.area[:, None])]
    if isinstance(shapes, Quads):
        corners = json_rows(shapes.corners.reshape(-1, 8))
        return ShapeTexts([f',"bbox":[{box}]' for box in corners], [""] * len(boxes), areas)
    if isinstance(shapes, Keypoints):
        return ShapeTexts(upright, _poses(shapes, boxes), areas)
    if not isinstance(shapes, Outlines):
        return ShapeTexts(upright, [""] * len(boxes), areas)
    sizes = dataset.images.sizes[boxes.image][:, ::-1]  # height, width
    counted = shapes.counts_pixels
    # The area of these is that of their pixels, which are known where the size of the image is.
    (known,) = np.nonzero(counted & (~np.isnan(sizes).any(axis=1) | ~shapes.has_polygons))
    own = np.where(shapes.has_polygons[known, None], sizes[known], shapes.masks.sizes[known])
    filled = shapes.take(known).in_images(own.astype(np.int64))
    for row in np.flatnonzero(counted).tolist():
        areas[row] = ""
    for row, area in zip(known.tolist(), json_rows(filled.areas()[:, None]), strict=True):
        areas[row] = f',"area":{area}'
    masks = _outlines(shapes)
    if dataset.role == "pred":
        # With a box, its area would count as that of the prediction; without one pycocotools needs runs.
        upright = ["" if is_counted else box for is_counted, box in zip(counted.tolist(), upright, strict=True)]
        for row, text in zip(known.tolist(), _runs(filled), strict=True):
            masks[row] = text
    return ShapeTexts(upright, [f',"segmentation":{mask}' for mask in masks], areas)


def _poses(poses: Keypoints, boxes: BoxTable) -> list[str]:
    texts = json_rows(poses.points.reshape(len(poses), -1))
    if boxes.score is not None:
        return [f',"keypoints":[{text}]' for text in texts]
    # What does not count has none, whatever its points are, and what counts has one at least.
    labelled = np.count_nonzero(poses.points[:, :, 2] > 0, axis=1)
    counted = np.where(boxes.ignore, 0, np.maximum(labelled, 1)).tolist()
    return [f',"keypoints":[{text}],"num_keypoints":{n}' for text, n in zip(texts, counted, strict=True)]


def _outlines(shapes: Outlines) -> list[str]:
    """Return polygons as they are, and the others as runs."""
    corners = json_rows(shapes.corners)
    rings = [f"[{','.join(corners[start:stop])}]" for start, stop in pairwise(shapes.rings.tolist())]
    texts = [f"[{','.join(rings[start:stop])}]" for start, stop in pairwise(shapes.parts.tolist())]
    (coded,) = np.nonzero(~shapes.has_polygons)
    for row, text in zip(coded.tolist(), _runs(shapes.masks.take(coded)), strict=True):
        texts[row] = text
    return texts


def _runs(masks: Masks) -> list[str]:
    if not len(masks):
        return []
    strings = strings_of_runs(masks.runs, masks.sizes.prod(axis=1))
    encode = msgspec.json.encode
    return [
        encode({"size": size, "counts": text.decode("ascii")}).decode()
        for size, text in zip(masks.sizes.tolist(), strings, strict=True)
    ]
