"""What the example of a training loop trains: a detector that gets better, then overfits. No framework is needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from example_scenes import Detector, Scene, detect, draw_scenes

CLASSES = ["cat", "dog", "bird"]
VALIDATION = draw_scenes(71, 80, CLASSES, prefix="val")
SPREADS = (0.30, 0.20, 0.13, 0.09, 0.08, 0.10, 0.12, 0.15)  # by epoch

Dicts = dict[str, np.ndarray]


def batches(epoch: int, size: int = 16) -> Iterator[tuple[list[str], list[Dicts], list[Dicts]]]:
    """Return the validation set in batches: keys of images, predictions, targets."""
    found = detect(VALIDATION, CLASSES, Detector(seed=72 + epoch, spread=SPREADS[epoch]))
    for first in range(0, len(VALIDATION), size):
        targets, preds = VALIDATION[first : first + size], found[first : first + size]
        names = [scene.name for scene in targets]
        yield names, [_arrays(scene, True) for scene in preds], [_arrays(scene, False) for scene in targets]


def _arrays(scene: Scene, scored: bool) -> Dicts:
    boxes = np.array([(box.x, box.y, box.x + box.w, box.y + box.h) for box in scene.boxes], np.float32).reshape(-1, 4)
    arrays = {"boxes": boxes, "labels": np.array([CLASSES.index(box.label) for box in scene.boxes], np.int64)}
    return arrays | ({"scores": np.array([box.score for box in scene.boxes], np.float32)} if scored else {})
