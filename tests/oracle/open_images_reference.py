"""Open Images' evaluation as TensorFlow's Object Detection API does it, slowly: one detection after the other.

Written from ``per_image_evaluation.py``, ``object_detection_evaluation.py``, ``metrics.py`` and
``oid_hierarchical_labels_expansion.py``; of boxes and of masks, which differ in nothing but their overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Overlap = Callable[[Any, Any], float]
LEAST = 0.5


@dataclass(frozen=True)
class Marked:
    """An object or a detection; its shape is a box (x1, x2, y1, y2) or a mask."""

    image: str
    label: str
    shape: Any
    group: bool = False
    score: float = 0.0


def mask_iou(first: Any, second: Any) -> float:
    return float((first & second).sum() / max((first | second).sum(), 1e-9))


def mask_ioa(detection: Any, group: Any) -> float:
    """How much of the detection the group covers."""
    return float((detection & group).sum() / max(detection.sum(), 1e-9))


def box_shared(first: Sequence[float], second: Sequence[float]) -> float:
    sides = [min(first[at + 1], second[at + 1]) - max(first[at], second[at]) for at in (0, 2)]
    return max(sides[0], 0) * max(sides[1], 0)


def box_area(box: Sequence[float]) -> float:
    return (box[1] - box[0]) * (box[3] - box[2])


def box_iou(first: Sequence[float], second: Sequence[float]) -> float:
    shared = box_shared(first, second)
    return shared / (box_area(first) + box_area(second) - shared)


def box_ioa(detection: Sequence[float], group: Sequence[float]) -> float:
    return box_shared(detection, group) / box_area(detection)


def average_precisions(
    objects: Sequence[Marked],
    detections: Sequence[Marked],
    *,
    above: Mapping[str, Collection[str]],
    labels: Mapping[tuple[str, str], int] | None,
    overlaps: tuple[Overlap, Overlap],
) -> dict[str, float]:
    """Return AP of each class with objects; of the Challenge where there are image-level `labels`, else of V2.

    `above` has the classes above each class, without the root.
    """
    is_challenge = labels is not None
    copies = [(one, label) for one in objects for label in (one.label, *above.get(one.label, ()))]
    verified = {(one.image, label) for one, label in copies}
    for (image, label), is_present in (labels or {}).items():
        below = [name for name, parents in above.items() if label in parents]
        verified |= {(image, name) for name in (label, *(above.get(label, ()) if is_present else below))}
    found = {}
    for label in sorted({label for _, label in copies}):
        n_objects, records = 0, []
        for image in sorted({one.image for one in (*objects, *detections)}):
            own = [one for one, name in copies if (one.image, name) == (image, label)]
            singles, groups = ([one.shape for one in own if one.group is kind] for kind in (False, True))
            n_objects += len(singles) + len(groups) * is_challenge
            if is_challenge and (image, label) not in verified:
                continue
            there = [one for one in detections if (one.image, one.label) == (image, label)]
            there.sort(key=lambda one: -one.score)
            taken: set[int] = set()
            best_of_group = [0.0] * len(groups)
            for one in there:
                by_iou = [overlaps[0](one.shape, shape) for shape in singles]
                best = int(np.argmax(by_iou)) if singles else -1
                if singles and by_iou[best] >= LEAST and best not in taken:
                    taken.add(best)
                    records.append((one.score, True))
                    continue
                by_ioa = [overlaps[1](one.shape, shape) for shape in groups]
                best = int(np.argmax(by_ioa)) if groups else -1
                if groups and by_ioa[best] >= LEAST:
                    best_of_group[best] = max(best_of_group[best], one.score)
                else:
                    records.append((one.score, False))
            records += [(score, True) for score in best_of_group if is_challenge and score > 0]
        if n_objects:
            found[label] = area_under_envelope(records, n_objects)
    return found


def area_under_envelope(records: list[tuple[float, bool]], n_objects: int) -> float:
    hits = np.array([hit for _, hit in sorted(records, key=lambda record: -record[0])], dtype=bool)
    recall = np.concatenate(([0.0], np.cumsum(hits) / n_objects, [1.0]))
    precision = np.concatenate(([0.0], np.cumsum(hits) / np.arange(1, len(hits) + 1), [0.0]))
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.flatnonzero(np.diff(recall)) + 1
    return float(((recall[steps] - recall[steps - 1]) * envelope[steps]).sum())
