"""Arrays of the maps of many images: a .npy file, or an array of an archive.

What their last axis means is known by its length and by what is in it: nothing; PanNuke's five types of nuclei and the
background; the number of an object and its class, as CoNIC has them; whole cells and their nuclei, as TissueNet has
them. Booleans are the objects of one image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.labelmaps import MAX_PIXELS
from jaccard_eval.reading.mask_pixels import count_pieces
from jaccard_eval.reading.npz import opened_entries, read_header
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.reading.tabular.boxes import note_no_class
from jaccard_eval.similarity.runs import IntArray, runs_of_labels, runs_of_pixels
from jaccard_eval.text import quoted_value

# Source: PanNuke's README. The sixth is 1 where there is no nucleus.
_PANNUKE = ("Neoplastic", "Inflammatory", "Connective", "Dead", "Epithelial")
_COMPARTMENTS = ("whole-cell", "nuclear")  # Source: DeepCell's documentation of TissueNet
_NUMBER_AND_CLASS, _TYPES = 2, len(_PANNUKE) + 1  # channels
_CHANNELS = (1, _NUMBER_AND_CLASS, _TYPES)
_LOOKED_INTO = 8  # maps, by which two channels are distinguished
_ONE_CLASS = 0
_SHIFT = 1 << 32  # a class, above the number of an object
_PIECES = 1.5  # of a plane, from which it is a map and not an object
_FIX_BOOLEANS = "Save a file for each image, or an array of the numbers of objects, 0 where there is none."
_FIX = "Save maps as (n, height, width), with the numbers of objects; what channels mean is in 'formats instances'."

AnyArray = npt.NDArray[Any]


def is_stack(path: Path) -> bool:
    """Whether a .npy file claims more than one map, or one of several channels."""
    try:
        with files.open_regular(path) as file:
            shape, dtype = read_header(file)
    except (DataError, OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, RecursionError):
        return False  # as is explained where it is read
    return len(shape) in (3, 4) and dtype.kind in "biuf"


def add_stacks(stacks: Sequence[tuple[Path, str, str]], draft: Draft) -> None:
    """Add the objects of files, or of arrays of archives by name; images are called by their place behind a prefix."""
    side, are_classed = RecordCollector(draft), []
    for path, name, prefix in stacks:
        are_classed.append(_add_stack(path, name, prefix, side, draft, is_alone=len(stacks) == 1))
    draft.findings.raise_errors()
    if not all(are_classed):
        note_no_class(draft)
    side.to_draft(encoding="xywh", listed=True)


def _add_stack(path: Path, name: str, prefix: str, side: RecordCollector, draft: Draft, *, is_alone: bool) -> bool:
    """Add the objects of an array; return whether these have classes."""
    with opened_entries(path, name) as (shape, dtype, entries):
        where = Where(str(path), record=name or None)
        if dtype.kind == "b" and len(shape) == 3:
            masks = np.stack(list(entries))  # or (height, width, n), as Matterport's Mask R-CNN has them
            if masks.shape[2] < min(masks.shape[:2]):
                masks = np.moveaxis(masks, 2, 0)
            looked = [plane for plane in masks[:_LOOKED_INTO] if plane.any()]
            if is_alone and sum(map(count_pieces, looked)) >= _PIECES * max(len(looked), 1):
                detail = f"has {len(masks):,} planes of booleans in several pieces each: images, or objects of one"
                raise DataError.single("map-shape", where, detail, fix=_FIX_BOOLEANS)
            _add_objects(masks, prefix.rstrip("/") or path.stem, side, where)
            return False
        is_one = len(shape) == 3 and shape[-1] in _CHANNELS
        if not 3 <= len(shape) <= 4 or dtype.kind not in "biuf" or 0 in shape:
            detail = f"holds {quoted_value(str(dtype))} of shape {shape}"
            raise DataError.single("map-shape", where, detail, fix=_FIX)
        maps = iter([np.stack(list(entries))]) if is_one else entries
        channels = map(_channels_last, maps)
        first = list(islice(channels, _LOOKED_INTO))
        n = first[0].shape[2]
        if n not in _CHANNELS or first[0].shape[0] * first[0].shape[1] > MAX_PIXELS:
            height, width, n = first[0].shape
            detail = f"has maps of {width} x {height} pixels (width x height) with {n} channels"
            raise DataError.single("map-shape", where, detail, fix=_FIX)
        names: Sequence[str | int] = _PANNUKE if n == _TYPES else _COMPARTMENTS if n > 1 else (_ONE_CLASS,)
        is_classed = n == _NUMBER_AND_CLASS and _holds_classes(first, is_usual=not name)
        channels_are = "the number and the class of objects" if is_classed else ", ".join(map(str, names))
        if n > 1:
            draft.details.append(f"channels are {channels_are}")
        for at, values in enumerate(chain(first, channels)):
            place = Where(str(path), record=f"{name}[{at}]")
            if dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
                detail = "holds fractions, which are not numbers of objects"
                raise DataError.single("map-type", place, detail, fix="Save the numbers of objects, not probabilities.")
            numbers = values.astype(np.int64)
            _add_map(f"{prefix}{at}", numbers, names, side, is_classed=is_classed, draft=draft, where=place)
        return bool(n > 1)


def _channels_last(entry: AnyArray) -> AnyArray:
    """Return a map as (height, width, channels)."""
    if entry.ndim == 2:
        return entry[..., None]
    is_first = entry.shape[0] in _CHANNELS and entry.shape[2] not in _CHANNELS
    return np.moveaxis(entry, 0, 2) if is_first else entry


def _holds_classes(maps: Iterable[AnyArray], *, is_usual: bool) -> bool:
    """Whether the second of two channels is the class of the objects in the first: a nucleus is less than its cell.

    Equal channels may be either, of numbers that happen to be classes: these where they are usual, as in .npy files.
    """
    used = [(values[..., 0], values[..., 1]) for values in maps if values.any()]
    if not used or not all(np.array_equal(first > 0, second > 0) for first, second in used):
        return False
    return is_usual or not all(np.array_equal(first, second) for first, second in used)


def _add_map(
    key: str,
    values: IntArray,
    names: Sequence[str | int],
    side: RecordCollector,
    *,
    is_classed: bool,
    draft: Draft,
    where: Where,
) -> None:
    size = (values.shape[0], values.shape[1])
    side.add_image(key, size=(size[1], size[0]))
    objects: list[tuple[str | int, IntArray]]
    if is_classed:
        objects = [(_ONE_CLASS, values[..., 1] * _SHIFT + values[..., 0])]
    else:
        objects = [(name, values[..., at]) for at, name in enumerate(names)]
    for name, numbers in objects:
        ids, masks = runs_of_labels(numbers)
        own = (ids % _SHIFT).tolist() if is_classed else ids.tolist()
        if len({*own}) < len(own):
            detail = f"object {next(value for value in own if own.count(value) > 1)} has several classes"
            draft.findings.error("map-value", where, detail, fix="Give each object one class.")
            return
        labels = (ids // _SHIFT).tolist() if is_classed else [name] * len(own)
        for row, (label, number) in enumerate(zip(labels, own, strict=True)):
            edges = masks.edges[masks.offsets[row] : masks.offsets[row + 1]]
            side.add_pixels(key, label, edges, size, Where(where.path, record=f"{where.record} instance {number}"))


def _add_objects(masks: AnyArray, key: str, side: RecordCollector, where: Where) -> None:
    """Add the objects of one image: (n, height, width)."""
    size = (masks.shape[1], masks.shape[2])
    side.add_image(key, size=(size[1], size[0]))
    for at, pixels in enumerate(masks):
        edges = runs_of_pixels([(pixels, 0, 0, size[0])]).edges
        side.add_pixels(key, _ONE_CLASS, edges, size, Where(where.path, record=f"{where.record or ''}[{at}]"))
