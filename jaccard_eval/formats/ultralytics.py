"""Results of Ultralytics models as JSON, and data sets of the platform as JSON Lines (NDJSON).

Coordinates of results, as ``Results.to_json()`` returns them, are pixels, or fractions where ``normalize=True`` was
asked for, which ``--pred-units norm`` tells; oriented boxes are read as the boxes around them. Of a data set the images
of a split are read.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.documents import Record, looks_like
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import choose_split, split_of
from jaccard_eval.reading.json import parse_json_lines
from jaccard_eval.reading.records import UNKNOWN_SIZE, Scene, read_object_lists

FORMAT = Format(
    name="ultralytics",
    summary="Ultralytics Results.to_json(), of an image, a folder of them, or of many images; data sets as NDJSON",
    source="https://docs.ultralytics.com/reference/engine/results/#ultralytics.engine.results.Results.to_json",
    example="""[
  {"name": "dog", "class": 16, "confidence": 0.9, "box": {"x1": 10.0, "y1": 20.0, "x2": 110.0, "y2": 220.0}}
]
""",
    carries=("images", "sizes", "names", "scores"),
    member=".json",
)

_SET = re.compile(rb'"type"\s*:\s*"dataset"')
_KEYS = frozenset({"name", "class", "confidence", "box"})
_NOT_HERE = frozenset({"images", "annotations", "shapes", "predictions"})


def sniff(path: Path) -> bool:
    """Whether `path` holds results, or a data set."""
    return looks_like(path, _are_results) or _is_set(path)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of results, or of a data set, to the draft.

    Raises
    ------
    DataError
        When there are no files of results; problems of their contents are among the draft's findings.
    """
    if _is_set(path):
        # not needed to look for a format

        read_lines(path, draft, options)
    else:
        read_results(path, draft, options)


def _is_set(path: Path) -> bool:
    return not files.is_folder(path) and looks_like(path, _are_lines)


def _are_lines(outer: set[str], _inner: set[str], head: bytes) -> bool:
    first = head.partition(b"\n")[0]
    return "class_names" in outer and _SET.search(first) is not None


def _are_results(outer: set[str], inner: set[str], head: bytes) -> bool:
    if inner:
        return inner >= _KEYS
    return not outer & _NOT_HERE and all(b'"%s"' % key in head for key in (b"confidence", b"box", b"x1", b"y1"))


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


BOXES = "boxes"  # of annotations: class, centre and size in fractions

_DIGITS = 10  # of an index


def read_lines(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images of the split that is asked for, with their classes and boxes, to the draft.

    Raises
    ------
    DataError
        When there is no such split.
    """
    lines = [
        Record.of(value, Where(str(path), line=number), draft.findings)
        for number, value in parse_json_lines(path, files.read_text(path), draft.findings)
    ]
    about = [line for line in lines if line.values.get("type") == "dataset"]
    names = _class_names(about[0]) if about and about[0].has("class_names") else {}
    images = [line for line in lines if line.values.get("type") == "image"]
    scene = Scene(draft)
    for line in _of_split(images, path, draft):
        _add_image(scene, line)
    scene.hand_over(encoding="cxcywh", units="norm", listed=True)
    if names:
        draft.set_classes(list(names), list(names.values()))


def _class_names(about: Record) -> dict[int, str]:
    """Return the names of classes by index, sorted."""
    names = about.record("class_names")
    odd = [key for key in names.values if not (key.isascii() and key.isdigit() and len(key) < _DIGITS)]
    for key in odd:
        names.error("names-invalid", key, "is no index of a class", "Number the classes from 0.")
    return {int(key): names.text(key) for key in sorted(names.values.keys() - {*odd}, key=int)}


def _of_split(images: list[Record], path: Path, draft: Draft) -> list[Record]:
    """Return the images of a split; all of them where none says what it belongs to."""
    splits = [split_of(image.text("split")) if image.has("split") else "" for image in images]
    if not any(splits):
        return images
    known = sorted({split for split in splits if split})
    chosen = choose_split(draft.options.split, known, Where(str(path), field="split"), draft.findings)
    kept = [image for image, split in zip(images, splits, strict=True) if split == chosen]
    draft.details.append(f"split {chosen}: {len(kept):,} of {len(images):,} images")
    return kept


def _add_image(scene: Scene, line: Record) -> None:
    image = line.text("file")
    sized = line.has("width") and line.has("height")
    scene.add_image(image, size=(line.side("width"), line.side("height")) if sized else UNKNOWN_SIZE)
    annotations = line.record("annotations") if line.has("annotations") else line
    boxes = annotations.array(BOXES) if annotations.has(BOXES) else []
    numbered = Record({f"{BOXES}[{at}]": box for at, box in enumerate(boxes)}, annotations.where, line.findings)
    for name in numbered.values:
        number, *box = numbered.numbers(name, 5)
        scene.add_box(image, _index(numbered, name, number), box, numbered.at(name))
    others = annotations.values if annotations is not line else {}
    for kind in (kind for kind in others if kind != BOXES and isinstance(others[kind], list)):
        for _ in others[kind]:
            scene.count_shape(kind)


def _index(boxes: Record, name: str, number: float) -> int:
    if math.isnan(number):
        return 0  # told already
    if number != number // 1:
        boxes.error("class-index", name, f"has class {number:g}; expected a whole number")
    return int(number)
