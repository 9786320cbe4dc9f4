"""Which images a gallery shows, with all their boxes and what became of each, and thumbnails where there are files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.data.result import EvaluationResult, ImageSource, Measured
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.errors import UsageError
from jaccard_eval.features.images import BoxOutcomes, box_outcomes, count_images, judging_score
from jaccard_eval.matching import IntArray, descending_order
from jaccard_eval.metrics.detection import DetectionMetrics, detection_metrics
from jaccard_eval.progress import tracked
from jaccard_eval.report.model import (
    Album,
    DrawnShape,
    Gallery,
    GalleryBox,
    GalleryImage,
    GalleryTab,
    Live,
    Note,
    Points,
    Section,
)
from jaccard_eval.report.numbers import threshold_text
from jaccard_eval.similarity.boundary import traced
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

COST = "Ordered by cost: misses plus the scores of false positives"
ALL_BOXES = "Images of the classes that lose most, and the boxes of all images (--gallery N embeds more of them)"
DEFAULT_IMAGES = 24
MOST_IMAGES = 200
# Of up to so many images, the longer side in pixels and the quality of thumbnails: the page stays small.
THUMBNAILS = ((24, 360, 60), (48, 340, 50), (100, 300, 45), (MOST_IMAGES, 260, 40))
MOST_SHAPES = 100  # detections of an image
PLAIN_SIDE = 640  # pixels of a canvas for boxes in fractions of an image whose size nobody knows


# Boxes, and what else a gallery shows of each of them: whose they are, and what changed.
Part = tuple[BoxOutcomes, Mapping[str, Any]]
MOST_CELLS = 128  # along the longer side of a mask, which is sampled where it has more pixels
STEPS = 320  # corners less than so small a part of the image's longer side from an outline are dropped
CORNER = 0.03  # of the longer side of an image, around its origin: predictions of zeros are not all zeros
COCO_POINTS = 17
# Lines between COCO's points, counted from 0: those of ``categories[].skeleton`` in person_keypoints_val2017.json.
COCO_EDGES = (
    (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7), (6, 8), (7, 9), (8, 10),
    (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6),
)  # fmt: skip


def gallery_section(gallery: Gallery, about: str = COST, columns: Mapping[str, Any] | None = None) -> Section:
    """Return the section of a gallery: what it shows, the images, and what a script reads: classes, and all boxes."""
    at = f"score >= {threshold_text(gallery.score)} and {gallery.measure} >= {threshold_text(gallery.iou)}"
    notes = [Note(f"{ALL_BOXES if columns else about}, at {at}.")]
    notes += [Note(text) for text in gallery.notes]
    boxed = columns["shapes"].get("boxed", 0) if columns else 0
    if boxed:
        what = pluralise(boxed, "shape is drawn by its box", "shapes are drawn by their boxes")
        notes.append(Note(f"{what}, as a page has no room for more."))
    live = [Live("gallery", {"names": gallery.names, "score": gallery.score})]
    live += [Live("boxes", columns)] if columns else []
    made = [Note(f"Thumbnails by {gallery.made_with}.")] if any(image.thumbnail for image in gallery.images) else []
    return Section("Images", (*notes, gallery, *made, *live), key="images")


def drawing_of(
    shapes: Shapes | None, row: int, size: tuple[int, int], scale: tuple[float, float] = (1, 1)
) -> DrawnShape | None:
    """Return how one shape is drawn in an image of a width and a height; None where there is nothing but its box.

    Corners are multiplied by a `scale`, that of the image where they are fractions of it.
    """
    if isinstance(shapes, Quads):
        return DrawnShape(rings=(tuple(map(tuple, (shapes.corners[row] * scale).tolist())),), is_box=True)
    if isinstance(shapes, Masks):
        rings = outlines(shapes, row, max(size) / STEPS)
        return DrawnShape(rings=rings) if rings else None
    if isinstance(shapes, Keypoints):
        return _pose(shapes.points[row], max(size))
    return None


def outlines(masks: Masks, row: int, tolerance: float) -> tuple[Points, ...]:
    """Return the closed outlines of a mask in px, without corners nearer than a tolerance to the line without them.

    Around pixels they go clockwise as one sees them, around holes the other way.
    """
    mask = masks.take(np.array([row]))
    left, top, width, height = mask.bounds()[0].astype(np.int64).tolist()
    step = max(1, -(-max(width, height) // MOST_CELLS))
    # The middle of each cell of step x step pixels, down the columns as the mask is stored.
    x, y = (np.minimum(np.arange(step // 2, side + step // 2, step), side - 1) for side in (width, height))
    pixel = (left + x) * int(masks.sizes[row, 0]) + (top + y)[:, None]  # (rows, columns)
    inside = np.searchsorted(mask.runs.edges, pixel, "right") % 2 == 1
    rings = []
    for ring in traced(inside):
        corners = np.minimum(np.array(ring) * step, (width, height)) + np.array((left, top))
        # Where cells are larger than pixels, their stairs go as well.
        kept = _simplified(corners.astype(np.float64), max(tolerance, step) if step > 1 else tolerance)
        if len(kept) > 2:
            rings.append(tuple(map(tuple, kept.tolist())))
    return tuple(rings)


def _simplified(corners: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.float64]:
    """Drop corners (n, 2) of a closed line within a tolerance of what is left, as Douglas and Peucker (1973) do."""
    n = len(corners)
    # Cut into two at the corner farthest from the first one.
    far = int(np.argmax(np.hypot(*(corners - corners[0]).T)))
    closed = np.concatenate((corners, corners[:1]))
    kept = np.zeros(n + 1, dtype=np.bool_)
    kept[[0, far]] = True
    parts = [(0, far), (far, n)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        away, line = closed[first + 1 : last] - closed[first], closed[last] - closed[first]
        length = float(np.hypot(*line))
        distance = np.abs(away[:, 0] * line[1] - away[:, 1] * line[0]) / length if length else np.hypot(*away.T)
        most = int(np.argmax(distance))
        if distance[most] > tolerance:
            kept[first + 1 + most] = True
            parts += [(first, first + 1 + most), (first + 1 + most, last)]
    return corners[kept[:-1]]


def _pose(pose: npt.NDArray[np.float64], side: float) -> DrawnShape | None:
    """Return the points of a pose (k, 3) that are seen, and lines between these."""
    shown, points = seen_points(pose[None], np.array([side]))[0], pose[:, :2]
    if not shown.any():
        return None
    edges = COCO_EDGES if len(points) == COCO_POINTS else ()
    lines = [(tuple(points[a].tolist()), tuple(points[b].tolist())) for a, b in edges if shown[a] and shown[b]]
    return DrawnShape(points=tuple(map(tuple, points[shown].tolist())), lines=tuple(lines))


def seen_points(poses: npt.NDArray[np.float64], sides: FloatArray) -> BoolArray:
    """Return which points of poses (n, k, 3) are labelled; where none is, all of them, as of a prediction; (n, k).

    What lies near the origin, by the longer `sides` of images, far from all else of the pose, was not found: files
    have zeros there.
    """
    xy = poses[..., :2]
    seen = poses[..., 2] > 0
    seen |= ~seen.any(axis=1, keepdims=True) & (xy != 0).any(axis=2)
    away = np.hypot(xy[..., 0], xy[..., 1])
    found = seen & (away > CORNER * sides[:, None])
    low, high = (np.where(found[..., None], xy, end).transpose(1, 0, 2) for end in (np.inf, -np.inf))
    # As long as a line of a pose may be; of none that is found, nothing.
    extent = np.hypot(*(high.max(axis=0, initial=-np.inf) - low.min(axis=0, initial=np.inf)).T)
    far = np.where(found, away, -np.inf).max(axis=1, initial=-np.inf) > 0
    far &= np.where(found, away, np.inf).min(axis=1, initial=np.inf) > extent / 2
    return np.asarray(np.where(far[:, None], found, seen))


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


def build_gallery(
    result: EvaluationResult,
    n: int,
    *,
    wanted: Sequence[int] = (),
    outcomes: BoxOutcomes | None = None,
    placed: Callable[[tuple[int, ...]], BoxOutcomes] | None = None,
    score: float | None = None,
) -> Gallery | None:
    """Return `n` images: those `wanted`, the surest false positives, the largest misses and the highest cost.

    Boxes are judged at IoU .5, or else the lowest threshold, and show at first at the score that was asked for, else
    at the best F1, unless that `score` is known. `outcomes` are those of all boxes, where they are known; `placed`
    returns them with their place among the boxes of a page, given the images that it shows. None where the result has
    no boxes, as that of a document alone.
    """
    if result.boxes is None or not isinstance(result.measured, DetectionMetrics) or n == 0:
        return None
    metrics = detection_metrics(result)
    if outcomes is None:
        outcomes = box_outcomes(metrics, *result.boxes, metrics.protocol.judged_threshold)
    threshold, counted = metrics.protocol.judged_threshold, result.part("worst_images")
    if counted is not None:
        score = counted.score
    elif score is None:
        score = judging_score(metrics, result.options.get("score"))
    shown = outcomes.take(np.flatnonzero(outcomes.counts_at(score) & ~outcomes.is_ignored))
    false = shown.take(np.flatnonzero(~shown.is_object & ~shown.is_hit))
    missed = shown.take(np.flatnonzero(shown.is_object))
    # What an image costs, as `WorstImages` has it.
    n_images = len(metrics.image_names)
    n_missed = np.bincount(missed.image, minlength=n_images).astype(np.float64)
    order = descending_order(n_missed + np.bincount(false.image, false.score, minlength=n_images))[:n].tolist()
    by_score = _first_images(false.image, false.score)
    by_area = _first_images(missed.image, missed.xywh[:, 2] * missed.xywh[:, 3])
    # An eighth of the places that are left is for each of these, where the worst images do not have them anyway.
    first = list(dict.fromkeys(wanted))[:n]
    eighth = (n - len(first)) // 8
    others = {*first, *by_score[:eighth], *by_area[:eighth]}
    worst: list[int] = []
    for row in order:
        if len({*worst, row} | others) <= n:
            worst.append(row)
    rows = list(dict.fromkeys([*first, *worst, *by_score[:eighth], *by_area[:eighth]]))
    place = {row: i for i, row in enumerate(rows)}
    listed = {"Pictures": rows, "By class": first, "Worst": worst, "False positives": by_score, "Misses": by_area}
    tabs = tuple(
        GalleryTab(title, tuple(place[row] for row in chosen if row in place))
        for title, chosen in listed.items()
        if not place.keys().isdisjoint(chosen)
    )
    if placed is not None:
        outcomes = placed(tuple(rows))
    images = gallery_images(result, metrics, rows, [(outcomes, {})], thumbnails=True)
    return Gallery(
        images=images,
        tabs=tabs,
        score=score,
        iou=metrics.protocol.iou_thresholds[threshold],
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


def worst_gallery(result: EvaluationResult, class_name: str | None, n: int) -> Gallery:
    """Return the images with the highest cost, of one class or of all: misses plus the scores of false positives."""
    metrics, names = detection_metrics(result), [row.name for row in result.per_class]
    if result.boxes is None:
        raise UsageError("images need the boxes, which a saved document does not have: evaluate again")
    if class_name is not None and class_name not in names:
        raise UsageError(f"no class is called {quoted_value(class_name)}.{did_you_mean(class_name, names)}")
    counted = result.part("worst_images") or count_images(metrics, result.options.get("score"), n, measured=False)
    cost, threshold = counted.cost, metrics.protocol.judged_threshold
    if class_name is not None:
        outcomes = box_outcomes(metrics, *result.boxes, threshold)
        shown = outcomes.counts_at(counted.score) & ~outcomes.is_ignored & (outcomes.label == names.index(class_name))
        weight = np.where(outcomes.is_object, 1.0, outcomes.score) * (shown & (outcomes.is_object | ~outcomes.is_hit))
        cost = np.bincount(outcomes.image, np.nan_to_num(weight), minlength=len(metrics.image_names))
    rows = [row for row in descending_order(cost)[:n].tolist() if cost[row] > 0]
    return gallery_of(result, rows, threshold=threshold, score=counted.score) or Gallery(
        (), score=counted.score, iou=metrics.protocol.iou_thresholds[threshold]
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
    if not plain:
        return ()
    if result.images is None or not result.images.given:
        return ("Boxes are drawn on a plain canvas: name the folder of the images to see them.",)
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
                place=int(boxes.place[row]) if len(boxes.place) else -1,
                **others,
            )
        )
    return made


def _first_images(image: IntArray, weight: FloatArray) -> list[int]:
    """Return images in the order of their weightiest box."""
    return list(dict.fromkeys(image[descending_order(weight)].tolist()))
