"""From data sets of Ultralytics' platform to the draft: JSON Lines, the first about the set, then one per image."""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.errors import Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.scene import UNKNOWN_SIZE, Scene
from jaccard_eval.reading.json.values import parse_json_lines
from jaccard_eval.reading.splits import choose_split, split_of

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
    scene.hand_over(options, encoding="cxcywh", units="norm", listed=True)
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
