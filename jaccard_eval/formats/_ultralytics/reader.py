"""From results of Ultralytics models to the draft: a list of objects per image."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.data.dataset import Key
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.perimage import read_object_lists
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import Scene

_CORNERS, _FURTHER = ("1", "2"), ("1", "2", "3", "4")  # behind x and y: of a box, of an oriented one


def read_results(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of results to the draft."""
    read_object_lists(path, draft, options, _add_object)


def _add_object(scene: Scene, image: str, one: Record) -> None:
    box = one.record("box")
    is_oriented = box.has("x3")
    if is_oriented:
        scene.count_rotated()
    ends = _FURTHER if is_oriented else _CORNERS
    xs, ys = ([box.number(f"{axis}{end}") for end in ends] for axis in "xy")
    corners = [min(xs), min(ys), max(xs), max(ys)] if is_oriented else [xs[0], ys[0], xs[1], ys[1]]
    scene.add_box(image, _label(one), corners, one.where, score=one.number("confidence"))


def _label(one: Record) -> Key:
    """Return the class by its name, else by its number."""
    number = one.values.get("class")
    if isinstance(number, int) and not isinstance(number, bool) and not one.has("name"):
        return number
    return one.text("name")
