"""A folder of PNGs: images at full size with their boxes, labels that do not cover each other, and a legend.

An image without a file is a plain canvas of its size. The bytes are the same for the same images by one version of
Pillow.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import (
    Album,
    BoxState,
    DrawnShape,
    GalleryBox,
    GalleryImage,
    Points,
    build_album,
    build_folder,
)
from jaccard_eval.report.numbers import metric_text, threshold_text
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

    Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


Rectangle = tuple[float, float, float, float]  # left, top, right, bottom


def place_labels(
    boxes: Sequence[Rectangle], sizes: Sequence[tuple[float, float]], bounds: tuple[float, float]
) -> list[Rectangle | None]:
    """Return a place for the label of each box, by width and height, within the bounds; None where there is no room.

    Earlier labels choose first. A label goes to a corner of its box, outside before inside, or else slides along its
    sides; it never covers another label.
    """
    taken: list[Rectangle] = []
    places: list[Rectangle | None] = []
    for box, (width, height) in zip(boxes, sizes, strict=True):
        free = (place for place in _candidates(box, width, height, bounds) if not _overlaps(place, taken))
        place = next(free, None) if width <= bounds[0] and height <= bounds[1] else None
        places.append(place)
        if place is not None:
            taken.append(place)
    return places


def _candidates(box: Rectangle, width: float, height: float, bounds: tuple[float, float]) -> Iterator[Rectangle]:
    left, top, right, bottom = box
    corners = [(left, top - height), (right - width, top - height), (left, bottom), (right - width, bottom)]
    corners += [(left, top), (right - width, top), (left, bottom - height), (right - width, bottom - height)]
    corners += [(right, top), (left - width, top), (right, bottom - height), (left - width, bottom - height)]
    # Below each other, one height apart: along the left side of the box, its right side, and outside of both.
    steps = range(1, max(2, int(min(bottom - top, bounds[1]) / height) + 1))
    corners += [(x, top + step * height) for step in steps for x in (left, right - width, right, left - width)]
    for x, y in corners:
        start = min(max(x, 0.0), bounds[0] - width), min(max(y, 0.0), bounds[1] - height)
        yield *start, start[0] + width, start[1] + height


def _overlaps(place: Rectangle, taken: Sequence[Rectangle]) -> bool:
    left, top, right, bottom = place
    return any(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in taken)


Colour = tuple[int, int, int]
# Apart for all sight, and by their dashes: line and gap in line widths, none of what is solid.
STYLES: Mapping[BoxState, tuple[Colour, tuple[int, int] | None]] = {
    "found": ((18, 140, 96), None),
    "false": ((214, 90, 10), (1, 2)),
    "missed": ((25, 113, 194), (6, 4)),
    "ignored": ((134, 142, 150), (3, 3)),
}
ORDER: tuple[BoxState, ...] = ("ignored", "found", "false", "missed")  # the last are drawn last
CANVAS, INK, PAPER, HALO = (233, 236, 239), (33, 37, 41), (255, 255, 255), (255, 255, 255)
LEAST_SIDE = 900  # pixels; a smaller image is enlarged by a whole factor, so that there is room for labels
MOST_SIDE = 4096  # of a plain canvas
MAX_NAME, MAX_LABEL = 80, 24  # characters
TINT = 64  # of 255: how much of a mask's colour lies over the image
SOFTWARE = "jaccard-eval"


class _Pages(Mapping[str, bytes]):
    """The files of a folder, each drawn when it is asked for: all at once could be more than memory holds."""

    def __init__(self, album: Album) -> None:
        self._album = album
        digits = max(2, len(str(len(album.images))))
        names = (f"{rank:0{digits}}-{_file_name(image.name)}.png" for rank, image in enumerate(album.images, start=1))
        self._images = dict(zip(names, album.images, strict=True))

    def __getitem__(self, name: str) -> bytes:
        image = self._images[name]
        return annotated(image, self._album.open(image), self._album)

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)


def render(result: Reportable, options: ReportOptions) -> Mapping[str, bytes]:
    """Return the pages of a feature that makes some, else PNGs of the worst images: names begin with the rank."""
    files = build_folder(result, options)
    return _Pages(build_album(result, options)) if files is None else files


def annotated(image: GalleryImage, shown: Image.Image | None, album: Album) -> bytes:
    """Return one image with its boxes as a PNG."""
    from PIL import Image, ImageDraw
    from PIL.PngImagePlugin import PngInfo

    size = _canvas_size(image.size if shown is None else shown.size)
    base = Image.new("RGB", size, CANVAS)
    if shown is not None:
        base.paste(shown if shown.size == size else shown.resize(size, Image.Resampling.BICUBIC))
    scale = size[0] / image.size[0], size[1] / image.size[1]
    line = max(2, round(max(size) / 500))
    font = _font(min(max(max(size) / 64, 13), 36))
    draw = ImageDraw.Draw(base)
    boxes = sorted((box for box in image.boxes if box.shows_at(album.score)), key=lambda box: ORDER.index(box.state))
    places = {id(box): _scaled(box, scale, size) for box in boxes}
    _fill_masks(base, boxes, scale)
    for box in boxes:
        colour, dashes = STYLES[box.state]
        if box.drawing is not None:
            _draw_shape(draw, box.drawing, scale, line=line, colour=colour, dashes=dashes)
            continue
        _outline(draw, places[id(box)], line + 2, HALO, None)
        _outline(draw, places[id(box)], line, colour, dashes)
    # What went wrong is labelled first, where room is short the surest of it.
    named = [box for box in reversed(boxes) if box.state != "ignored"]
    named.sort(key=lambda box: (-ORDER.index(box.state), -(box.score if box.score == box.score else 1.0)))
    hidden = _label(draw, named, [places[id(box)] for box in named], font, size)
    strip = _legend(_legend_items(image, boxes, album, hidden), font, size[0])
    whole = Image.new("RGB", (size[0], size[1] + strip.size[1]), PAPER)
    whole.paste(base, (0, 0))
    whole.paste(strip, (0, size[1]))
    file, info = io.BytesIO(), PngInfo()
    info.add_text("Software", SOFTWARE)
    whole.save(file, format="PNG", pnginfo=info)
    return file.getvalue()


def label_text(box: GalleryBox) -> str:
    """Return what stands at a box: its class, and its score or that it is missed."""
    name = printable(box.label)
    name = name if len(name) <= MAX_LABEL else f"{name[: MAX_LABEL - 1]}…"
    return f"{name} {box.state}" if box.is_object else f"{name} {metric_text(box.score, 2)}"


def _canvas_size(size: tuple[int, int]) -> tuple[int, int]:
    longest = max(size)
    if longest > MOST_SIDE:
        return max(1, round(size[0] * MOST_SIDE / longest)), max(1, round(size[1] * MOST_SIDE / longest))
    factor = math.ceil(LEAST_SIDE / longest)
    return size[0] * factor, size[1] * factor


def _scaled(box: GalleryBox, scale: tuple[float, float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return the corners of a box on the canvas; what lies far outside of it is cut, for a drawing has no end of it."""
    left, top, width, height = box.xywh
    corners = (left * scale[0], top * scale[1], (left + width) * scale[0], (top + height) * scale[1])
    x0, y0, x1, y1 = (min(max(side, -most), 2.0 * most) for side, most in zip(corners, (*size, *size), strict=True))
    return x0, y0, max(x0, x1), max(y0, y1)


def _outline(
    draw: ImageDraw.ImageDraw,
    corners: tuple[float, float, float, float],
    line: int,
    colour: Colour,
    dashes: tuple[int, int] | None,
) -> None:
    x0, y0, x1, y1 = corners
    if dashes is None:
        out = line // 2
        draw.rectangle((x0 - out, y0 - out, x1 + out, y1 + out), outline=colour, width=line)
        return
    long, gap = (part * line for part in dashes)
    half = line / 2
    for start, end, is_level in ((x0, x1, True), (y0, y1, False)):
        at = float(start)
        while at <= end:
            stop = min(at + long, end)
            for side in (y0, y1) if is_level else (x0, x1):
                across = (side - half, side + half)
                place = (at, across[0], stop, across[1]) if is_level else (across[0], at, across[1], stop)
                draw.rectangle(place, fill=colour)
            at += long + gap


def _fill_masks(base: Image.Image, boxes: Sequence[GalleryBox], scale: tuple[float, float]) -> None:
    """Lay a tint over each mask; what is around pixels goes clockwise, and its holes the other way."""
    from PIL import Image, ImageDraw

    for box in boxes:
        rings = [_on_canvas(ring, scale) for ring in (box.drawing.rings if box.drawing is not None else ())]
        if not rings or (box.drawing is not None and box.drawing.is_box):
            continue
        left, top = (math.floor(min(point[axis] for ring in rings for point in ring)) for axis in range(2))
        right, bottom = (math.ceil(max(point[axis] for ring in rings for point in ring)) for axis in range(2))
        tint = Image.new("L", (max(right - left, 1), max(bottom - top, 1)), 0)
        draw = ImageDraw.Draw(tint)
        # The largest first, so that holes are cut into what is around them.
        for ring in sorted(rings, key=lambda ring: -abs(_twice_area(ring))):
            draw.polygon([(x - left, y - top) for x, y in ring], fill=TINT if _twice_area(ring) > 0 else 0)
        base.paste(STYLES[box.state][0], (left, top), tint)


def _twice_area(ring: Points) -> float:
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(ring, (*ring[1:], ring[0]), strict=True))


def _on_canvas(points: Points, scale: tuple[float, float]) -> Points:
    return tuple((x * scale[0], y * scale[1]) for x, y in points)


def _draw_shape(
    draw: ImageDraw.ImageDraw,
    shape: DrawnShape,
    scale: tuple[float, float],
    *,
    line: int,
    colour: Colour,
    dashes: tuple[int, int] | None,
) -> None:
    """Draw outlines, or the lines and points of a pose."""
    closed = [(*ring, ring[0]) for ring in shape.rings]
    paths = [_on_canvas(path, scale) for path in (*closed, *shape.lines)]
    for width, ink, is_dashed in ((line + 2, HALO, False), (line, colour, dashes is not None)):
        for path in paths:
            for piece in _dashed(path, [part * line for part in dashes or (1, 0)]) if is_dashed else [path]:
                draw.line(piece, fill=ink, width=width, joint="curve")
    for x, y in _on_canvas(shape.points, scale):
        for radius, ink in ((line + 2, HALO), (line + 1, colour)):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)


def _dashed(path: Points, pattern: Sequence[int]) -> Iterator[Points]:
    """Yield the pieces of a path that are drawn, by the lengths of a dash and a gap that go on around corners."""
    left, is_dash = float(pattern[0]), True
    piece = [path[0]]
    for (x, y), (x1, y1) in pairwise(path):
        length = math.hypot(x1 - x, y1 - y)
        done = 0.0
        while length - done > left:
            done += left
            at = (x + (x1 - x) * done / length, y + (y1 - y) * done / length)
            if is_dash:
                yield (*piece, at)
            is_dash = not is_dash
            piece, left = [at], float(pattern[0 if is_dash else 1])
        left -= length - done
        piece.append((x1, y1))
    if is_dash and len(piece) > 1:
        yield tuple(piece)


def _label(
    draw: ImageDraw.ImageDraw,
    boxes: Sequence[GalleryBox],
    corners: Sequence[tuple[float, float, float, float]],
    font: Font,
    size: tuple[int, int],
) -> int:
    """Write the labels that there is room for; return how many there is none for."""
    texts = [_writable(label_text(box), font) for box in boxes]
    pad = 3
    sizes = [(width + 2 * pad, height + 2 * pad) for width, height in (_text_size(text, font) for text in texts)]
    places = place_labels(corners, sizes, size)
    for box, text, place in zip(boxes, texts, places, strict=True):
        if place is None:
            continue
        draw.rectangle((place[0], place[1], place[2] - 1, place[3] - 1), fill=STYLES[box.state][0])
        draw.text((place[0] + pad, place[1] + pad), text, fill=PAPER, font=font)
    return places.count(None)


def _legend_items(
    image: GalleryImage, boxes: Sequence[GalleryBox], album: Album, hidden: int
) -> list[tuple[str, BoxState | None]]:
    """Return the texts below an image: its name, each state with its count, and at which score and overlap."""
    counts = {state: sum(box.state == state for box in boxes) for state in reversed(ORDER)}
    items: list[tuple[str, BoxState | None]] = [(printable(image.name), None)]
    items += [(f"{state} {count:,}", state) for state, count in counts.items() if count or state != "ignored"]
    at = f"score >= {threshold_text(album.score)}, " if album.score == album.score else ""
    items.append((f"{at}{album.measure} >= {threshold_text(album.iou)}", None))
    items += [(f"no room for {hidden:,} labels", None)] if hidden else []
    return items


def _legend(items: Sequence[tuple[str, BoxState | None]], font: Font, width: int) -> Image.Image:
    """Return the strip below an image, each state next to its line."""
    from PIL import Image, ImageDraw

    texts = [(_writable(text, font), state) for text, state in items]
    height = _text_size("Ag|", font)[1]
    row, sample, gap = round(height * 1.6), 3 * height, round(height * 1.2)
    placed: list[tuple[int, int, str, BoxState | None]] = []
    x, y = gap // 2, 0
    for text, state in texts:
        needed = _text_size(text, font)[0] + (sample + gap // 2 if state else 0)
        if x > gap // 2 and x + needed > width:
            x, y = gap // 2, y + row
        placed.append((x, y, text, state))
        x += needed + gap
    strip = Image.new("RGB", (width, y + row + round(height * 0.6)), PAPER)
    draw = ImageDraw.Draw(strip)
    for x, y, text, state in placed:
        top, start = y + round(height * 0.5), x
        if state is not None:
            colour, dashes = STYLES[state]
            middle, line = top + height / 2, max(2, height // 5)
            long, space = (part * line for part in dashes or (sample, 0))
            at_x = float(x)
            while at_x < x + sample:
                end = min(at_x + long, x + sample)
                draw.rectangle((at_x, middle - line / 2, end, middle + line / 2), fill=colour)
                at_x += long + space + (1 if dashes is None else 0)
            start = x + sample + gap // 2
        draw.text((start, top), text, fill=INK, font=font)
    return strip


def _font(size: float) -> Font:
    from PIL import ImageFont

    try:
        return ImageFont.load_default(size)
    except (ImportError, TypeError):  # Pillow before 10.1, or one that was built without FreeType
        return ImageFont.load_default()


def _writable(text: str, font: Font) -> str:
    # The one font that Pillow always has knows Latin letters alone.
    return text if hasattr(font, "getmetrics") else text.encode("latin-1", "replace").decode("latin-1")


def _text_size(text: str, font: Font) -> tuple[int, int]:
    _, _, right, bottom = font.getbbox(text)
    return math.ceil(right), math.ceil(bottom)


def _file_name(name: str) -> str:
    """Return a name that is harmless on any system: of letters, digits, dashes, dots and underscores, not too long."""
    stem = printable(name).replace("\\", "/").rpartition("/")[2]
    known = stem.rpartition(".")[0] if 0 < len(stem) - stem.rfind(".") <= len(".jpeg") and "." in stem[1:] else stem
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in known)
    return kept[:MAX_NAME].strip("._") or "image"


REPORTERS = (
    Reporter(
        names=("folder.png/",),
        about="the worst images with their boxes, as PNG (evaluate, explain)",
        render=render,
        images=True,
    ),
)
