"""Regions of label maps as the columns that a folder of images has of boxes: where classes or segments lie, and why.

An object is a region of the ground truth, a detection one of the predictions; each has one score, so that a page of
them has no slider. Regions of pixels that are predicted as another class are an object and a detection at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.result import SliceRow
from jaccard_eval.features.images.columns import (
    AS_LABELLED,
    FOUND,
    IGNORED,
    MOST,
    ON_NOTHING,
    OTHERS,
    Grid,
    coded_boxes,
    coded_text,
    packed,
)
from jaccard_eval.features.images.reasons import ERRORS
from jaccard_eval.features.images.shapes import CELLS
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray
from jaccard_eval.report.numbers import metric_text
from jaccard_eval.report.panels import Panel, encoded
from jaccard_eval.text import printable

LAYERS = ("ground truth", "prediction", "difference")
NOBODY = -1  # no partner
PLAIN_SIDE = 100  # of an image whose size nobody read
SHOWN = 3  # sentences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regions:
    """Regions of one side by ascending image, shape (n,) each; partners are rows of the other side, or `NOBODY`."""

    image: IntArray
    label: IntArray
    found: BoolArray
    ignored: BoolArray
    partner: IntArray  # of what is found, and of what is wrong the nearest one
    overlap: FloatArray  # with it
    is_seen: BoolArray  # whether that overlap is one that matches, of any class
    pixels: IntArray | None = None  # where these count in place of regions

    @classmethod
    def joined(cls, parts: Sequence[Regions], others: Sequence[Regions]) -> Regions:
        """Put the regions of images together, whose partners are those of `others`."""
        before = np.cumsum([0, *(len(other.label) for other in others)])
        partners = [
            np.where(part.partner == NOBODY, NOBODY, part.partner + start)
            for part, start in zip(parts, before.tolist(), strict=False)
        ]
        return cls(
            image=np.repeat(np.arange(len(parts)), [len(part.label) for part in parts]),
            label=np.concatenate([part.label for part in parts]),
            found=np.concatenate([part.found for part in parts]),
            ignored=np.concatenate([part.ignored for part in parts]),
            partner=np.concatenate(partners),
            overlap=np.concatenate([part.overlap for part in parts]),
            is_seen=np.concatenate([part.is_seen for part in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlines:
    """Where n regions lie: left, top, width and height in px (n, 4), 0 of those that are not drawn; cells of some."""

    bounds: IntArray
    cells: Sequence[bytes]  # as `shapes` packs those of masks; empty of those without

    @classmethod
    def joined(cls, parts: Sequence[Outlines]) -> Outlines:
        """Put those of images together."""
        bounds = np.concatenate([part.bounds for part in parts])
        return cls(bounds=bounds, cells=[cells for part in parts for cells in part.cells])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapImages:
    """Images of label maps: names and captions, width and height (n, 2), and the panels of those that are drawn."""

    names: Sequence[str]
    captions: Sequence[str]
    sizes: IntArray
    panels: Mapping[int, Sequence[Panel]]  # by row

    @property
    def pictures(self) -> list[str]:
        """What the names of the files of each image begin with; empty of those without."""
        return [f"maps/{row:06}-" if row in self.panels else "" for row in range(len(self.names))]

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the panels."""
        starts = self.pictures
        return {
            f"{starts[row]}{layer}.png": encoded(panel)
            for row, panels in self.panels.items()
            for layer, panel in enumerate(panels)
        }


def outlined(numbers: IntArray, n: int, size: tuple[int, int]) -> Outlines:
    """Return where `n` regions lie whose numbers the pixels (h, w) of a smaller map have, -1 where there is none."""
    y, x = np.nonzero(numbers >= 0)
    at, ends = numbers[y, x], []
    for place, length, whole in ((x, numbers.shape[1], size[0]), (y, numbers.shape[0], size[1])):
        first, last = place * whole // length, np.maximum(-(-(place + 1) * whole // length), 1)
        low, high = np.full(n, whole), np.zeros(n, dtype=np.int64)
        np.minimum.at(low, at, first)
        np.maximum.at(high, at, last)
        ends.append((first, last, low, np.maximum(high - low, 0)))
    (left, right, low_x, width), (top, bottom, low_y, height) = ends
    bounds = np.stack([low_x, low_y, width, height], axis=1) * (width > 0)[:, None]
    side = np.maximum(-(-np.maximum(width, height) // CELLS), 1)
    across, down = -(-width // side), -(-height // side)
    n_bytes = -(-across * down // 8)
    start = np.cumsum(n_bytes) - n_bytes
    bits = np.zeros(8 * int(n_bytes.sum()), dtype=np.bool_)
    # A pixel of the smaller map is several of the map, in more than one cell.
    for dy in range(int((bottom - top).max(initial=0))):
        for dx in range(int((right - left).max(initial=0))):
            column = (np.minimum(left + dx, right - 1) - low_x[at]) // side[at]
            row = (np.minimum(top + dy, bottom - 1) - low_y[at]) // side[at]
            bits[8 * start[at] + row * across[at] + column] = True
    packed_bits = np.packbits(bits, bitorder="little")
    cells = [packed_bits[first : first + length].tobytes() for first, length in zip(start, n_bytes, strict=True)]
    return Outlines(bounds=bounds, cells=cells)


def map_model(
    images: MapImages,
    sides: tuple[Regions, Regions],
    outlines: Sequence[Outlines],
    names: Sequence[str],
    slices: Sequence[SliceRow],
    **words: Any,
) -> dict[str, Any]:
    """Return what the folder has of label maps: columns of their regions, and `words` about them."""
    objects, detections = sides
    n_images = len(images.names)
    counts = [np.bincount(side.image, minlength=n_images) for side in sides]
    first = [np.cumsum(count) - count for count in counts]

    def places(own: Regions, other: int, chosen: BoolArray) -> IntArray:
        """Return the partners of some regions by their places within the image, counted from 1; 0 of others."""
        there = chosen & (own.partner != NOBODY)
        return np.where(there, own.partner - first[other][own.image] + 1, 0)

    lost, false = (_kinds(*pair) for pair in ((objects, detections), (detections, objects)))
    kinds = np.full(len(detections.label), FOUND)
    kinds[detections.ignored] = IGNORED
    for kind, chosen in false.items():
        kinds[chosen] = ERRORS.index(kind)
    matched = np.where(detections.is_seen, np.append(objects.label, NOBODY)[detections.partner] + OTHERS, ON_NOTHING)
    matched[detections.found], matched[detections.ignored] = AS_LABELLED, AS_LABELLED + 2
    bounds = np.concatenate([part.bounds for part in outlines])
    label = np.concatenate([side.label for side in sides])
    shaped = np.array([bool(cells) for part in outlines for cells in part.cells], dtype=np.bool_)
    zeros = np.zeros(len(label), dtype=np.int64)
    shares = bounds / np.tile(images.sizes[np.concatenate([side.image for side in sides])], 2)
    columns: dict[str, npt.NDArray[Any]] = {
        "names": coded_text(list(map(printable, images.names))),
        "captions": coded_text(list(images.captions)),
        "width": images.sizes[:, 0],
        "height": images.sizes[:, 1],
        "objects": counts[0],
        "detections": counts[1],
        **dict(zip(("x", "y", "w", "h"), coded_boxes(shares, Grid(0.0, 1.0, float(MOST))), strict=True)),
        "label": label,
        "size": zeros,
        "score": zeros,
        "step": np.append(objects.found, np.ones(len(detections.label), dtype=np.bool_)),
        "ignored": objects.ignored,
        "seen": objects.found | objects.is_seen,
        "taken": places(objects, 1, lost["class"]),
        "beside": places(objects, 1, lost["box"]),
        "kind": kinds,
        "near": places(detections, 0, ~detections.ignored),
        "iou": np.floor(detections.overlap * 200 + 1e-9),
        "as": matched,
        "shaped": shaped,
        "px": bounds[shaped][:, ::2].ravel(),
        "py": bounds[shaped][:, 1::2].ravel(),
        "cells": np.frombuffer(b"".join(cells for part in outlines for cells in part.cells), dtype=np.uint8),
        **{f"slice {i}": np.isin(np.arange(n_images), part.rows) for i, part in enumerate(slices)},
    }
    if objects.pixels is not None and detections.pixels is not None:
        columns["pixels"] = np.append(objects.pixels, detections.pixels)
    layout, text = packed(columns)
    return {
        "layout": layout,
        "text": text,
        "classes": list(map(printable, names)),
        "slices": [printable(part.name) for part in slices],
        "pictures": "",
        "suspects": [],
        "review": None,
        "rows": None,
        "boxes": [0, MOST, True],
        "shapes": {"form": "mask", "points": 2, "cells": CELLS, "boxed": 0},
        "scores": [0, 1],
        "measure": "IoU",
        "exact": False,
        "iou": 0.5,
        "name": "",
        "steps": ["1"],
        "start": 0,
        "maps": LAYERS,
        "verb": "predicted",
        **words,
    }


def _kinds(own: Regions, other: Regions) -> dict[str, BoolArray]:
    """Return which regions of a side are wrong, by why, in the words of what is false."""
    is_wrong = ~own.found & ~own.ignored
    near, same = own.partner != NOBODY, np.append(other.label, NOBODY)[own.partner] == own.label
    return {
        "background": is_wrong & ~near,
        "box": is_wrong & near & same,
        "class": is_wrong & own.is_seen,
        "both": is_wrong & near & ~same & ~own.is_seen,
    }


def wrong_of(objects: Regions, detections: Regions) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
    """Return the classes of the regions that are missed, and of those that are false, by why."""
    lost, false = (_kinds(*pair) for pair in ((objects, detections), (detections, objects)))
    lost = {"nothing": lost["background"] | lost["both"], "off": lost["box"], "taken": lost["class"]}
    return (
        {kind: objects.label[chosen] for kind, chosen in lost.items()},
        {kind: detections.label[chosen] for kind, chosen in false.items()},
    )


def class_values(values: Sequence[MetricValue], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the metric of each class, and what it could still give: its size, as far as that is not reached."""
    known = [None if math.isnan(value.value) else value.value for value in values]
    lost = [0 if value is None else size * (1 - value) for value, size in zip(known, sizes, strict=True)]
    return {"values": known, "lost": lost}


def next_of(rows: Sequence[tuple[float, str, str, Mapping[str, str]]], metric: str) -> list[Any]:
    """Return the sentences of the largest gains, of gain, text, advice and what it is about."""
    best = sorted(rows, key=lambda row: -row[0])[:SHOWN]
    return [
        [text, advice, {key: printable(value) for key, value in pick.items()}, f"+{metric_text(gain)} {metric}"]
        for gain, text, advice, pick in best
        if gain > 0
    ]
