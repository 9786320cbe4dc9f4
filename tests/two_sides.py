"""Builders that make a test of correspondence read as a picture of its two sides."""

from collections.abc import Mapping, Sequence

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, key_order, unknown_sizes

Sizes = Mapping[Key, tuple[float, float]]


def key(text: str) -> Key:
    """Return 7 for "7", and a text for anything else: "a.png", or "'7'" for the text 7."""
    return int(text) if text.isdecimal() else text.strip("'")


def images(listing: str, *, sizes: Sizes | None = None, listed: bool = True) -> ImageTable:
    """Return images of "1=left.png 2=right.png" (id and file name) or of "a.png b.png" (keys alone)."""
    pairs = [(key(word.partition("=")[0]), word.partition("=")[2] or None) for word in listing.split()]
    pairs.sort(key=lambda pair: key_order(pair[0]))
    known = unknown_sizes(len(pairs))
    for row, (image, _) in enumerate(pairs):
        if sizes and image in sizes:
            known[row] = sizes[image]
    return ImageTable(tuple(k for k, _ in pairs), tuple(name for _, name in pairs), known, listed)


def classes(listing: str, *, named: bool = True) -> LabelMap:
    """Return classes of "1=dog 2=cat" (id and name), of "dog cat" or, without names, of "0 1"."""
    pairs = [(key(word.partition("=")[0]), word.partition("=")[2]) for word in listing.split()]
    return LabelMap(tuple(k for k, _ in pairs), tuple(name or str(k) for k, name in pairs), named)


def gt(boxes: Sequence[str], **options: object) -> Dataset:
    """Return ground truth of boxes such as "a.png dog 10 10 50 50" (image, class, left, top, width, height)."""
    return _side("gt", boxes, **options)


def pred(boxes: Sequence[str], **options: object) -> Dataset:
    """Return predictions of boxes such as "a.png dog 10 10 50 50 0.9"; the score may be left out (0.5)."""
    return _side("pred", boxes, **options)


def _side(role: str, boxes: Sequence[str], **options: object) -> Dataset:
    rows = [line.split() for line in boxes]
    image_table = options.get("images") or images(" ".join(dict.fromkeys(row[0] for row in rows)))
    label_map = options.get("classes") or classes(" ".join(dict.fromkeys(row[1] for row in rows)))
    assert isinstance(image_table, ImageTable)
    assert isinstance(label_map, LabelMap)
    scores = [float(row[6]) if len(row) > 6 else 0.5 for row in rows]
    table = BoxTable.from_arrays(
        [image_table.keys.index(key(row[0])) for row in rows],
        [label_map.keys.index(key(row[1])) for row in rows],
        np.array([list(map(float, row[2:6])) for row in rows]).reshape(-1, 4),
        encoding="xywh",
        score=scores if role == "pred" else None,
    )
    return Dataset(
        path=f"{role}.file",
        format="test",
        role=role,
        images=image_table,
        labels=label_map,
        boxes=table,
        units=str(options.get("units", "px")),
        units_guessed=bool(options.get("units_guessed", False)),
    )
