"""Builders that make a test read as a picture: ``gt("dog 10 10 50 50", crowd=True)``, ``det("dog 9 9 50 50", 0.9)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import jaccard_eval
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, unknown_sizes
from jaccard_eval.data.protocol import COCO, Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.inspect import Inspection
from jaccard_eval.features.scale import ScaleOptions, SensitivityResult
from jaccard_eval.matching.matchtable import MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.metrics.detection import DetectionMetrics

FLAGS = ("crowd", "difficult", "group_of", "ignore")


@dataclass(frozen=True, slots=True)
class Picture:
    """One box: class, left, top, width and height, the image it is on, its score and flags."""

    name: str
    xywh: tuple[float, ...]
    image: str
    score: float = 0.0
    area: float | None = None
    flags: tuple[str, ...] = ()


def gt(text: str, image: str = "a", *, area: float | None = None, **flags: bool) -> Picture:
    """Draw ground truth: "class left top width height"."""
    assert set(flags) <= set(FLAGS)
    name, *sides = text.split()
    return Picture(name, tuple(map(float, sides)), image, area=area, flags=tuple(flag for flag in flags if flags[flag]))


def det(text: str, score: float, image: str = "a") -> Picture:
    """Draw a detection: "class left top width height", and its score."""
    name, *sides = text.split()
    return Picture(name, tuple(map(float, sides)), image, score=score)


def evaluate(
    truth: Sequence[Picture],
    detections: Sequence[Picture],
    *,
    images: Sequence[str] = (),
    names: Sequence[str] = (),
    **options: Any,
) -> EvaluationResult:
    """Evaluate through the public interface; `images` and `names` add images and classes without boxes."""
    scene = _Scene.of(truth, detections, images, names)
    return jaccard_eval.evaluate(scene.side("gt", truth), scene.side("pred", detections), **options)


def sensitivity(truth: Sequence[Picture], detections: Sequence[Picture], **options: Any) -> SensitivityResult:
    """Analyse scale through the public interface; options of `ScaleOptions` and of the verb alike."""
    scene = _Scene.of(truth, detections)
    scale = {name: options.pop(name) for name in tuple(options) if name in ScaleOptions.__slots__}
    sides = scene.side("gt", truth), scene.side("pred", detections)
    return jaccard_eval.sensitivity(*sides, scale=ScaleOptions(**scale), **options)


def inspect(truth: Sequence[Picture], detections: Sequence[Picture], *, names: Sequence[str] = ()) -> Inspection:
    """Inspect both sides through the public interface; `names` adds classes without boxes."""
    scene = _Scene.of(truth, detections, names=names)
    return jaccard_eval.inspect(scene.side("gt", truth), scene.side("pred", detections))


def match(truth: Sequence[Picture], detections: Sequence[Picture], protocol: Protocol = COCO) -> MatchTable:
    """Match without reading or aligning anything."""
    scene = _Scene.of(truth, detections)
    sides = [scene.side(role, boxes).boxes for role, boxes in (("gt", truth), ("pred", detections))]
    return match_boxes(*sides, protocol, n_images=len(scene.images), n_labels=len(scene.names))


def curves(truth: Sequence[Picture], detections: Sequence[Picture], protocol: Protocol = COCO) -> Curves:
    """Match, and ask for curves."""
    return Curves(Ranking.of(match(truth, detections, protocol), len(_Scene.of(truth, detections).images)))


def metrics(truth: Sequence[Picture], detections: Sequence[Picture], protocol: Protocol = COCO) -> DetectionMetrics:
    """Match, and ask for metrics."""
    scene = _Scene.of(truth, detections)
    return DetectionMetrics(match(truth, detections, protocol), scene.names, scene.images)


@dataclass(frozen=True, slots=True)
class _Scene:
    images: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        truth: Sequence[Picture],
        detections: Sequence[Picture],
        images: Sequence[str] = (),
        names: Sequence[str] = (),
    ) -> _Scene:
        boxes = [*truth, *detections]
        return cls(
            tuple(sorted({box.image for box in boxes} | set(images))),
            tuple(sorted({box.name for box in boxes} | set(names))),
        )

    def side(self, role: str, boxes: Sequence[Picture]) -> Dataset:
        images = ImageTable(self.images, (None,) * len(self.images), unknown_sizes(len(self.images)), listed=True)
        return Dataset(
            path=role,
            format="pictures",
            role=role,
            images=images,
            labels=LabelMap(self.names, self.names, named=True),
            boxes=self._table(role, boxes),
        )

    def _table(self, role: str, boxes: Sequence[Picture]) -> BoxTable:
        areas = [box.xywh[2] * box.xywh[3] if box.area is None else box.area for box in boxes]
        return BoxTable.from_arrays(
            [self.images.index(box.image) for box in boxes],
            [self.names.index(box.name) for box in boxes],
            np.array([box.xywh for box in boxes], dtype=np.float64).reshape(-1, 4),
            score=[box.score for box in boxes] if role == "pred" else None,
            encoding="xywh",
            area=areas,
            **{flag: [flag in box.flags for box in boxes] for flag in FLAGS},
        )
