"""Which images a gallery shows, with all their boxes and what became of each, and thumbnails where there are files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.result import EvaluationResult, ImageSource, Measured
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.errors import UsageError
from jaccard_eval.features.images.compute import BoxOutcomes, box_outcomes, count_images
from jaccard_eval.features.images.drawings import drawing_of
from jaccard_eval.matching.order import IntArray, descending_order
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.progress import tracked
from jaccard_eval.report.model import Album, Gallery, GalleryBox, GalleryImage, GalleryTab
from jaccard_eval.similarity.quads import Quads
from jaccard_eval.text import pluralise

DEFAULT_IMAGES = 24
MOST_IMAGES = 200
# Of up to so many images, the longer side in pixels and the quality of thumbnails: the page stays small.
THUMBNAILS = ((24, 360, 60), (48, 340, 50), (100, 300, 45), (MOST_IMAGES, 260, 40))
MOST_SHAPES = 100  # detections of an image
PLAIN_SIDE = 640  # pixels of a canvas for boxes in fractions of an image whose size nobody knows


# Boxes, and what else a gallery shows of each of them: whose they are, and what changed.
Part = tuple[BoxOutcomes, Mapping[str, Any]]


class Shown(Protocol):
    """What images can be shown of: a result with its match table, its boxes and where its images lie."""

    @property
    def measured(self) -> Measured | None:
        """The match table and what is measured on it."""

    @property
    def boxes(self) -> tuple[BoxTable, BoxTable] | None:
        """The ground truth and the predictions that were matched."""

    @property
    def images(self) -> ImageSource | None:
        """The sizes of the images, and where they lie."""


def build_gallery(result: EvaluationResult, n: int) -> Gallery | None:
    """Return `n` images: those with the highest cost, the surest false positives and the largest misses.

    Boxes are judged at IoU .5, or else the lowest threshold, and show at first at the score that was asked for, else
    at the best F1. None where the result has no boxes, as that of a document alone.
    """
    if result.boxes is None or not isinstance(result.measured, DetectionMetrics) or n == 0:
        return None
    metrics = detection_metrics(result)
    counted = result.worst_images or count_images(metrics, result.options.get("score"), n)
    outcomes = box_outcomes(metrics, *result.boxes, metrics.protocol.judged_threshold)
    shown = outcomes.take(np.flatnonzero(outcomes.counts_at(counted.score) & ~outcomes.is_ignored))
    false = shown.take(np.flatnonzero(~shown.is_object & ~shown.is_hit))
    missed = shown.take(np.flatnonzero(shown.is_object))
    by_score = _first_images(false.image, false.score)
    by_area = _first_images(missed.image, missed.xywh[:, 2] * missed.xywh[:, 3])
    # An eighth of the places is for each of these, where the worst images do not have them anyway.
    others = {*by_score[: n // 8], *by_area[: n // 8]}
    worst: list[int] = []
    for row in counted.order[:n].tolist():
        if len({*worst, row} | others) > n:
            break
        worst.append(row)
    rows = list(dict.fromkeys([*worst, *by_score[: n // 8], *by_area[: n // 8]]))
    place = {row: i for i, row in enumerate(rows)}
    listed = {"Worst": worst, "False positives": by_score, "Misses": by_area}
    tabs = tuple(
        GalleryTab(title, tuple(place[row] for row in chosen if row in place))
        for title, chosen in listed.items()
        if not place.keys().isdisjoint(chosen)
    )
    images = gallery_images(result, metrics, rows, [(outcomes, {})], thumbnails=True)
    return Gallery(
        images=images,
        tabs=tabs,
        score=counted.score,
        iou=counted.iou,
        measure=overlap_name(metrics.protocol),
        made_with=thumbnail_maker(),
        notes=file_notes(result, images),
    )


def gallery_of(result: Shown, rows: Sequence[int], *, threshold: int, score: float) -> Gallery | None:
    """Return some images with all their boxes; None where the result has no boxes."""
    metrics = result.measured
    if result.boxes is None or not isinstance(metrics, DetectionMetrics) or not rows:
        return None
    outcomes = box_outcomes(metrics, *result.boxes, threshold)
    images = gallery_images(result, metrics, rows, [(outcomes, {})], thumbnails=True)
    return Gallery(
        images=images,
        score=score,
        iou=metrics.protocol.iou_thresholds[threshold],
        measure=overlap_name(metrics.protocol),
        made_with=thumbnail_maker(),
        notes=file_notes(result, images),
    )


def build_album(result: Shown, rows: Sequence[int], *, threshold: int, score: float) -> Album:
    """Return some images with all their boxes, to be drawn at full size."""
    metrics = result.measured
    if result.boxes is None or not isinstance(metrics, DetectionMetrics):
        raise UsageError("a folder of images needs the boxes: give ground truth and predictions, or a saved run (.npz)")
    outcomes = box_outcomes(metrics, *result.boxes, threshold)
    files = result.images

    def open_image(image: GalleryImage) -> Any:
        found = None if files is None else files.upright(image.row)
        return None if found is None else found[0]

    return Album(
        images=gallery_images(result, metrics, rows, [(outcomes, {})], thumbnails=False),
        open=open_image,
        score=score,
        iou=metrics.protocol.iou_thresholds[threshold],
        measure=overlap_name(metrics.protocol),
    )


def thumbnail_maker() -> str:
    """Name what makes thumbnails, as their bytes depend on it."""
    import PIL

    return f"Pillow {PIL.__version__}"


def file_notes(result: Shown, images: Sequence[GalleryImage]) -> tuple[str, ...]:
    """Return how many images have no thumbnail, where there are folders to find them in."""
    plain = sum(not image.thumbnail for image in images)
    if not plain or result.images is None or not result.images.given:
        return ()
    what = pluralise(plain, "image has", "images have")
    return (f"{what} no file that can be shown: the boxes are drawn on a plain canvas.",)


def gallery_images(
    result: Shown, metrics: DetectionMetrics, rows: Sequence[int], parts: Sequence[Part], *, thumbnails: bool
) -> tuple[GalleryImage, ...]:
    """Return some images, with the boxes that any of the parts has there."""
    names = metrics.class_names
    side, quality = next((side, quality) for most, side, quality in THUMBNAILS if len(rows) <= most)
    if result.images is not None:
        result.images.mention_missing(rows)
    images = []
    for row in tracked(rows, "images"):
        found = result.images.thumbnail(row, side=side, quality=quality) if thumbnails and result.images else None
        boxes = [(outcomes.take(np.flatnonzero(outcomes.image == row)), others) for outcomes, others in parts]
        size = image_size(
            result, metrics, row, [outcomes for outcomes, _ in boxes], None if found is None else found.size
        )
        scale = (1, 1) if metrics.area_known else size
        images.append(
            GalleryImage(
                name=metrics.image_names[row],
                size=size,
                boxes=tuple(box for part, others in boxes for box in gallery_boxes(part, names, scale, size, **others)),
                thumbnail=b"" if found is None else found.data,
                row=row,
            )
        )
    return tuple(images)


def image_size(
    result: Shown,
    metrics: DetectionMetrics,
    row: int,
    boxes: Sequence[BoxOutcomes],
    file_size: tuple[int, int] | None,
) -> tuple[int, int]:
    """Return the size in pixels that the boxes of an image are of: as read, else of its file, else what holds them."""
    known = np.array([math.nan, math.nan]) if result.images is None else result.images.sizes[row]
    if np.isfinite(known).all() and (known >= 1).all():
        return round(float(known[0])), round(float(known[1]))
    if file_size is not None:
        return file_size
    if not metrics.area_known:
        return PLAIN_SIDE, PLAIN_SIDE
    corners = [part.xywh[:, :2] + part.xywh[:, 2:] for part in boxes]
    width, height = np.max(np.concatenate([*corners, [[1.0, 1.0]]]), axis=0)
    return math.ceil(width), math.ceil(height)


def gallery_boxes(
    boxes: BoxOutcomes, names: Sequence[str], scale: tuple[float, float], image: tuple[int, int], **others: Any
) -> list[GalleryBox]:
    """Return boxes as galleries have them, objects first, then detections from the lowest score up: on top."""
    order = np.argsort(np.where(boxes.is_object, -np.inf, boxes.score), kind="stable")
    size = np.tile(np.asarray(scale, dtype=np.float64), 2)
    made = []
    # Of very many detections the surest have their shapes drawn, others would cover the image.
    outlined = set(order[boxes.is_object[order]].tolist() + order[-MOST_SHAPES:].tolist())
    for row in order.tolist():
        is_object = bool(boxes.is_object[row])
        shapes = boxes.shapes[not is_object]
        # An oriented box takes no more room than an upright one, which would cover what it does not.
        is_drawn = row in outlined or isinstance(shapes, Quads)
        state = "missed" if is_object else "found" if boxes.is_hit[row] else "false"
        left, top, width, height = (boxes.xywh[row] * size).tolist()
        made.append(
            GalleryBox(
                state="ignored" if boxes.is_ignored[row] else state,  # type: ignore[arg-type]
                # Where all classes are one, no row has another name.
                label=names[int(boxes.label[row]) if len(names) > 1 else 0],
                xywh=(left, top, width, height),
                score=float(boxes.score[row]),
                iou=float(boxes.iou[row]),
                is_object=is_object,
                drawing=drawing_of(shapes, int(boxes.row[row]), image, scale) if is_drawn else None,
                **others,
            )
        )
    return made


def _first_images(image: IntArray, weight: FloatArray) -> list[int]:
    """Return images in the order of their weightiest box."""
    return list(dict.fromkeys(image[descending_order(weight)].tolist()))
