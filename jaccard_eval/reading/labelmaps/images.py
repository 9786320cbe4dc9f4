"""The label map in a file: PNG or NumPy array, by its first bytes. What a value means is decided elsewhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading import files
from jaccard_eval.reading.labelmaps import npy, png
from jaccard_eval.reading.labelmaps.codec import Decoded, Rows

MAX_PIXELS = 2**28  # 16,384 x 16,384; a header that claims more is not believed, for decoding takes the memory
MAX_SIDE = 2**20  # pixels
PIXELS_AT_ONCE = 2**18  # in a strip, so that what is made of it on the way stays in the cache
MAX_BYTES = 2**31  # of a file: the largest map with 8 bytes a pixel
SUFFIXES = (".png", ".npy")
JPEG_MAGIC = b"\xff\xd8\xff"


@dataclass(frozen=True, slots=True, eq=False)
class LabelImage:
    """A decoded label map, whose values are given out strip by strip: large copies cost more than counting them.

    Parameters
    ----------
    shape : tuple of int
        Height and width.
    rows : callable
        ``rows(top, bottom)`` returns the values of these rows, an array of integers, shape (bottom - top, width):
        values of the file; colours as ``red + 2**8 green + 2**16 blue`` when `is_colored`.
    is_colored : bool
    palette : ndarray of uint8, shape (n, 3), or None
        Colours that the file gives its values.
    """

    shape: tuple[int, int]
    rows: Rows
    is_colored: bool = False
    palette: npt.NDArray[np.uint8] | None = None

    def strips(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the values from top to bottom; maps of one shape have strips of one shape."""
        height, width = self.shape
        step = max(1, PIXELS_AT_ONCE // width)
        for top in range(0, height, step):
            yield self.rows(top, min(top + step, height))

    def first_place(self, value: int) -> tuple[int, int]:
        """Return column and row of the first pixel with a value that occurs."""
        before = 0
        for strip in self.strips():
            places = np.flatnonzero(strip == value)
            if len(places):
                break
            before += strip.size
        y, x = divmod(before + int(places[0]), self.shape[1])
        return x, y


class _Codec(Protocol):
    MAGIC: bytes

    def read_shape(self, data: bytes, where: Where) -> tuple[int, int]:
        """Return height and width, from the header."""

    def decode(self, data: bytes, where: Where, *, by_color: bool) -> Decoded:
        """Return the rows, whether they hold colours, and the palette."""


CODECS: tuple[_Codec, ...] = (png, npy)


class EncodedImage:
    """The bytes of a label map, with its size; `decode` makes the map.

    Parameters
    ----------
    path : Path

    Raises
    ------
    DataError
        When the file cannot be read, is written to while it is read, is neither PNG nor a NumPy array, or claims an
        absurd size.
    """

    def __init__(self, path: Path) -> None:
        self.where = Where(str(path))
        with files.open_regular(path) as file, files.unchanging(path, file):
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                raise _too_large(self.where, f"has {size:,} bytes")
            self._data = file.read()
        self._codec = _codec_of(path, self._data)
        self.shape = self._codec.read_shape(self._data, self.where)
        height, width = self.shape
        if height * width > MAX_PIXELS or max(self.shape) > MAX_SIDE:
            raise _too_large(self.where, f"its header claims a size of {width} x {height} pixels")
        if height * width == 0:
            fix = "Export the label map again."
            raise DataError.single("map-shape", self.where, f"has no pixels: {width} x {height}", fix=fix)

    @property
    def digest(self) -> bytes:
        """Digest of the file's bytes."""
        return hashlib.sha256(self._data).digest()

    def decode(self, *, by_color: bool) -> LabelImage:
        """Return the map; `by_color` when a table gives the classes of colours, of a palette too.

        Raises
        ------
        DataError
            When the file is damaged, or its values cannot be classes.
        """
        return LabelImage(self.shape, *self._codec.decode(self._data, self.where, by_color=by_color))


def _codec_of(path: Path, data: bytes) -> _Codec:
    for codec in CODECS:
        if data.startswith(codec.MAGIC):
            return codec
    where = Where(str(path))
    if data.startswith(JPEG_MAGIC):
        fix = "Export it as PNG or .npy from the source: what JPEG changed cannot be restored."
        raise DataError.single("map-lossy", where, "is a JPEG image, which does not keep label values", fix=fix)
    files.read_bytes(path)  # knows what else it could be, and says so
    raise DataError.single(
        "image-unreadable", where, "is neither a PNG image nor a NumPy array (.npy)", fix="Export it as PNG or .npy."
    )


def _too_large(where: Where, claim: str) -> DataError:
    fix = f"Label maps have at most {MAX_PIXELS:,} pixels, {MAX_SIDE:,} a side; cut it into tiles."
    return DataError.single("image-too-large", where, claim, fix=fix)
