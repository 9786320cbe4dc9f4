"""Images with their boxes as SVG for a page: attributes and classes alone, so that the style sheet decides all looks.

A box that does not show at the score of the page is there as well, for the script that follows the score.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from html import escape
from itertools import pairwise

from jaccard_eval.report.model import CHANGE_TITLES, STATE_TITLES, DrawnShape, Gallery, GalleryBox, GalleryImage
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.text import printable

# Of one image, the surest of these are enough: others would be megabytes that nobody sees.
MOST_BOXES = 400
MOST_PATH_BYTES = 16_000  # of the shapes of one image; what is left is drawn as boxes


def draw_image(image: GalleryImage, gallery: Gallery, classes: Mapping[str, int]) -> str:
    """Return an image as an SVG element in the pixels that its boxes are of; `classes` numbers them."""
    width, height = image.size
    sides = f'width="{width}" height="{height}"'
    title = escape(printable(image.name))
    picture = ""
    if image.thumbnail:
        kind = "png" if image.thumbnail.startswith(b"\x89PNG") else "jpeg"
        data = base64.b64encode(image.thumbnail).decode()
        # Stretched where the file has another shape than the boxes are of: they fit all the same.
        picture = f'<image {sides} preserveAspectRatio="none" href="data:image/{kind};base64,{data}"/>'
    elif image.file:
        picture = f'<image {sides} preserveAspectRatio="none" href="{image.file}"/>'
    digits, paths = 1 if max(width, height) < 1000 else 0, _paths(image, gallery.score)
    boxes = "".join(_box(box, gallery, classes, digits, paths.get(id(box), "")) for box in drawn_boxes(image))
    paper = "" if picture else f'<rect class="paper" {sides}/>'
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{paper}{picture}{boxes}</svg>'


def drawn_boxes(image: GalleryImage) -> tuple[GalleryBox, ...]:
    """Return the boxes that are drawn: all objects, and the surest detections."""
    objects = [box for box in image.boxes if box.is_object]
    detections = [box for box in image.boxes if not box.is_object]  # the surest are last
    return (*objects, *detections[-MOST_BOXES:])


def hidden_boxes(image: GalleryImage) -> tuple[int, float]:
    """Return how many detections are not drawn, and the highest score of these."""
    detections = [box.score for box in image.boxes if not box.is_object][:-MOST_BOXES]
    return len(detections), max(detections, default=math.nan)


def box_text(box: GalleryBox) -> str:
    """Return a box in words, as a pointer that rests on it shows it."""
    score = "" if box.is_object else f" {metric_text(box.score, 2)}"
    side = f"{box.side}: " if box.side else ""
    measure = "OKS" if box.drawing is not None and box.drawing.points else "IoU"
    iou = f", {measure} {metric_text(box.iou, 2)}" if box.state == "found" and box.iou == box.iou else ""
    return f"{side}{printable(box.label)}{score}, {CHANGE_TITLES.get(box.change, STATE_TITLES[box.state])}{iou}"


def _paths(image: GalleryImage, score: float) -> dict[int, str]:
    """Return the path of each box that is drawn by its shape, by identity; those that show and the surest first."""
    boxes = [box for box in drawn_boxes(image) if box.drawing is not None]
    boxes.sort(
        key=lambda box: (not box.shows_at(score), not box.is_object, -box.score if box.score == box.score else 0)
    )
    side, left, paths = max(image.size), MOST_PATH_BYTES, {}
    for box in boxes:
        path = _path(box.drawing, side) if box.drawing is not None else ""
        left -= len(path)
        if left < 0:
            break
        paths[id(box)] = path
    return paths


def _path(drawing: DrawnShape, side: int) -> str:
    """Return the data of a path: outlines, or a disc for each point and lines; whole pixels, in tiny images tenths."""
    digits = 0 if side >= 200 else 1
    parts = []
    for ring in drawing.rings:
        # From corner to corner, which takes fewer digits than places in the image.
        places = [(round(x, digits), round(y, digits)) for x, y in ring]
        steps = [f"{_number(x - a, digits)} {_number(y - b, digits)}" for (a, b), (x, y) in pairwise(places)]
        parts.append(f"M{_number(places[0][0], digits)} {_number(places[0][1], digits)}l{' '.join(steps)}z")
    for (a, b), (x, y) in (line for line in drawing.lines):
        parts.append(f"M{_number(a, digits)} {_number(b, digits)}L{_number(x, digits)} {_number(y, digits)}")
    radius = _number(max(side / 220, 0.5), 1)
    across = _number(2 * float(radius), 1)
    for x, y in drawing.points:
        start = f"M{_number(x - float(radius), 1)} {_number(y, 1)}"
        parts.append(f"{start}a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0-{across} 0z")
    return "".join(parts)


def _box(box: GalleryBox, gallery: Gallery, classes: Mapping[str, int], digits: int, path: str) -> str:
    shows = box.shows_at(gallery.score)
    side = ("second" if box.second else "first") if box.side else ""
    shape = "" if not path or box.drawing is None else _shape_class(box.drawing)
    words = (shape, box.state, box.change and f"was-{box.change}", "object" * box.is_object, "off" * (not shows), side)
    kind = " ".join(filter(None, words))
    tag = "path" if path else "rect"
    sides = zip(("x", "y", "width", "height"), box.xywh, strict=True)
    place = f'd="{path}"' if path else " ".join(f'{name}="{_number(side, digits)}"' for name, side in sides)
    score = "" if box.score != box.score else f' data-s="{box.score!r}"'
    score += f' data-i="{box.place}"' if box.place >= 0 else ""
    title = f"<title>{escape(box_text(box))}</title>" if shows else ""
    end = f">{title}</{tag}>" if title else "/>"
    return f'<{tag} class="{kind}" data-c="{classes[box.label]}"{score} {place}{end}'


def _shape_class(drawing: DrawnShape) -> str:
    return "oriented" if drawing.is_box else "mask" if drawing.rings else "pose"


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
