"""Images with their boxes as SVG for a page: attributes and classes alone, so that the style sheet decides all looks.

A box that does not show at the score of the page is there as well, for the script that follows the score.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from html import escape

from jaccard_eval.report.model import CHANGE_TITLES, STATE_TITLES, Gallery, GalleryBox, GalleryImage
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.text import printable

# Of one image, the surest of these are enough: others would be megabytes that nobody sees.
MOST_BOXES = 400


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
    boxes = "".join(_box(box, gallery, classes, 1 if max(width, height) < 1000 else 0) for box in drawn_boxes(image))
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
    iou = f", IoU {metric_text(box.iou, 2)}" if box.state == "found" and box.iou == box.iou else ""
    return f"{side}{printable(box.label)}{score}, {CHANGE_TITLES.get(box.change, STATE_TITLES[box.state])}{iou}"


def _box(box: GalleryBox, gallery: Gallery, classes: Mapping[str, int], digits: int) -> str:
    shows = box.shows_at(gallery.score)
    side = ("second" if box.second else "first") if box.side else ""
    words = (box.state, box.change and f"was-{box.change}", "object" * box.is_object, "off" * (not shows), side)
    kind = " ".join(filter(None, words))
    sides = zip(("x", "y", "width", "height"), box.xywh, strict=True)
    place = " ".join(f'{name}="{_number(side, digits)}"' for name, side in sides)
    score = "" if box.score != box.score else f' data-s="{box.score!r}"'
    title = f"<title>{escape(box_text(box))}</title>" if shows else ""
    end = f">{title}</rect>" if title else "/>"
    return f'<rect class="{kind}" data-c="{classes[box.label]}"{score} {place}{end}'


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
