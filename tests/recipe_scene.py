"""The scene that recipes of frameworks are run on, with numbers that are known by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaccard_eval import Evaluator

Record = dict[str, Any]
CLASSES = ["cat", "dog"]


@dataclass(frozen=True)
class Image:
    """One image of the scene: boxes as corners in pixels."""

    key: int
    width: int
    height: int
    objects: list[tuple[int, list[float], bool]]  # label, corners, crowd
    found: list[tuple[int, list[float], float]]  # label, corners, score

    @property
    def file_name(self) -> str:
        return f"{self.key:012}.jpg"

    def column(self, side: str, place: int, dtype: Any) -> Any:
        rows = [row[place] for row in getattr(self, side)]
        return np.array(rows, dtype=dtype).reshape((-1, 4) if place == 1 else -1)


# Cat: first a detection in a crowd, which counts for nothing, then one that is exact: AP 1, and .5 without the crowd.
# Dog: first a false alarm, then one at IoU 26 / 50 = .52, so that precision is 1 / 2 at the first of ten thresholds:
# AP50 .5, AP .05.
SCENE = [
    Image(139, 640, 480, [(0, [10, 20, 110, 220], False)], [(0, [10, 20, 110, 220], 0.9)]),
    Image(
        285,
        200,
        100,
        [(1, [0, 0, 50, 50], False), (0, [100, 0, 200, 100], True)],
        [(1, [0, 0, 50, 26], 0.8), (0, [120, 10, 160, 60], 0.97)],
    ),
    Image(632, 320, 240, [], [(1, [1, 1, 20, 20], 0.95)]),
]
AP, AP50 = (1 + 0.05) / 2, (1 + 0.5) / 2
AP_WITHOUT_CROWD, AP50_WITHOUT_CROWD = (0.5 + 0.05) / 2, (0.5 + 0.5) / 2
# Of an epoch before: the same images, of which a model that is not trained finds nothing.
UNTRAINED = [replace(image, found=[]) for image in SCENE]


def coco_document(category_ids: Sequence[int]) -> Record:
    """Return the objects of the scene as COCO JSON."""
    rows = [(image, *row) for image in SCENE for row in image.objects]
    annotations = [
        {
            "id": number,
            "image_id": image.key,
            "category_id": category_ids[label],
            "bbox": [left, top, right - left, bottom - top],
            "area": (right - left) * (bottom - top),
            "iscrowd": int(crowd),
        }
        for number, (image, label, (left, top, right, bottom), crowd) in enumerate(rows, start=1)
    ]
    images = [
        {"id": image.key, "file_name": image.file_name, "width": image.width, "height": image.height} for image in SCENE
    ]
    categories = [{"id": key, "name": name} for key, name in zip(category_ids, CLASSES, strict=True)]
    return {"images": images, "annotations": annotations, "categories": categories}


def whole_result() -> Any:
    """Return the result of the scene, added at once."""
    evaluator = Evaluator(CLASSES)
    sides = {"preds": ("found", "scores", np.float32), "targets": ("objects", "iscrowd", np.int64)}
    evaluator.update(
        [image.key for image in SCENE],
        **{
            side: [
                {
                    "boxes": image.column(rows, 1, np.float32),
                    "labels": image.column(rows, 0, np.int64),
                    last: image.column(rows, 2, dtype),
                }
                for image in SCENE
            ]
            for side, (rows, last, dtype) in sides.items()
        },
    )
    return evaluator.compute()


def to_centres(boxes: Any, width: float, height: float) -> Any:
    """Return corners as normalised centres and sizes."""
    corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    both = np.hstack([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]])
    return both / np.array([width, height, width, height])
