"""Where labels of boxes go on an image, so that none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
