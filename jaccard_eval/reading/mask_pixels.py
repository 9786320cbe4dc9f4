"""Masks that files hold as pixels: images of one object, and crops of the image in base64 or as lengths of runs."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading.labelmaps import MAX_PIXELS, EncodedImage
from jaccard_eval.similarity.runs import IntArray, runs_of_pixels

FIX = "Export the mask again."


def one_channel(image: EncodedImage, what: str, fix: str) -> npt.NDArray[np.generic]:
    """Return the values of an image (h, w); a DataError refuses colours, which are not `what` is wanted."""
    try:
        found = image.decode(by_color=False)
    except DataError as error:
        (finding,) = error.findings
        if finding.code != "map-mode":
            raise
        detail = finding.examples[0].detail.replace("class numbers", what)
        raise DataError.single("map-mode", image.where, detail, fix=fix) from None
    return found.rows(0, found.shape[0])


def object_pixels(image: EncodedImage) -> BoolArray:
    """Return where an image of one object (h, w) is not 0; colours are a DataError."""
    fix = "Save it as one channel, 0 where the object is not."
    pixels: BoolArray = one_channel(image, "the pixels of an object", fix) != 0
    return pixels


def pixels_of_base64(text: str, where: Where) -> BoolArray:
    """Return the pixels of an object (h, w) from a PNG image in base64; a DataError names what is wrong with it."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        detail = f"is not valid base64: {error}"
        raise DataError.single("segmentation-invalid", where, detail, fix=FIX) from None
    return object_pixels(EncodedImage((data, where)))


def edges_of_rows(counts: Sequence[int], crop: Sequence[int], size: tuple[int, int]) -> IntArray | str:
    """Return the edges of a mask from lengths of runs along the rows of a crop, background first; the problem if any.

    The crop is left, top, width and height in an image of a height and a width.
    """
    left, top, width, height = crop
    problem = _leaving(left, top, width, height, size)
    if problem:
        return problem
    if width * height > MAX_PIXELS:
        return f"is {width} x {height} pixels, more than {MAX_PIXELS:,}"
    # As Python's numbers, for those of hostile files leave 64 bits.
    if min(counts, default=0) < 0 or sum(counts) != width * height:
        return f"runs sum to {sum(counts):,}, but {width} x {height} are {width * height:,} pixels"
    lengths = np.array(counts, dtype=np.int64)
    pixels = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(height, width)
    return runs_of_pixels([(pixels, left, top, size[0])]).edges


def edges_of_crop(pixels: BoolArray, left: int, top: int, size: tuple[int, int]) -> IntArray | str:
    """Return the edges of a mask whose pixels (h, w) begin at a column and a row of an image of (height, width).

    The problem if they do not lie in it.
    """
    height, width = pixels.shape
    return _leaving(left, top, width, height, size) or runs_of_pixels([(pixels, left, top, size[0])]).edges


def _leaving(left: int, top: int, width: int, height: int, size: tuple[int, int]) -> str:
    if left >= 0 and top >= 0 and width >= 0 and height >= 0 and left + width <= size[1] and top + height <= size[0]:
        return ""
    return f"{width} x {height} pixels from ({left}, {top}) leave the image of {size[1]} x {size[0]} (width x height)"


def count_pieces(ids: npt.NDArray[np.generic]) -> int:
    """Count connected pieces of one value, by their runs in each row."""
    above: list[tuple[int, int, Any, int]] = []  # first and last column, value, and the first run of the piece
    parent: list[int] = []
    pieces = 0

    def root(run: int) -> int:
        while parent[run] != run:
            run = parent[run]
        return run

    for row in ids:
        starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        runs = []
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(row)], strict=True):
            value = row[start]
            if not value:
                continue
            run = len(parent)
            parent.append(run)
            pieces += 1
            for other_start, other_stop, other, number in above:
                if other == value and other_start < stop and start < other_stop and root(number) != root(run):
                    parent[root(number)] = root(run)
                    pieces -= 1
            runs.append((start, stop, value, run))
        above = runs
    return pieces
