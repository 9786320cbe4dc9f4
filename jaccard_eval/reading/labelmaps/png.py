"""Label maps in PNG: grey of any depth, palettes, and colours. Values come out as the file has them.

The header is read here, for Pillow hides what matters: it spreads 2 and 4 bit grey over 0 to 255, and keeps only 8 of
16 bits of colours.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading.labelmaps.codec import Decoded

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngImageFile

MAGIC = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(
    ">8sI4sIIBB"
)  # signature; length and name of the first chunk; width, height, depth, colour type
_GREY, _RGB, _PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6  # colour types of the PNG specification, table 11.1
_SPREAD = {2: 85, 4: 17}  # what Pillow multiplies grey of 2 and 4 bits by
_OPAQUE = 255
_REPLACE = "Export or copy the file again."


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    height: int
    depth: int
    color_type: int


def read_shape(data: bytes, where: Where) -> tuple[int, int]:
    """Return height and width.

    Raises
    ------
    DataError
        When the header is damaged.
    """
    header = _read_header(data, where)
    return header.height, header.width


def decode(data: bytes, where: Where, *, by_color: bool) -> Decoded:
    """Decode the whole map.

    Grey maps hold values. The indices of a palette are values, unless colours decide. An alpha channel is refused
    unless it is opaque all over.

    Raises
    ------
    DataError
        When the file is damaged, or holds colours and no table says what they mean.
    """
    header = _read_header(data, where)
    if header.color_type in (_RGB, _RGBA):
        _require_plain_colors(header, where, by_color=by_color)
    elif header.color_type == _GREY_ALPHA and header.depth > 8:
        raise _mode(where, "has 16 bit grey with an alpha channel", "Save it without alpha.")
    image = _load(data, where)
    if header.color_type in (_GREY_ALPHA, _RGBA):
        _require_opaque(image, where)
    if header.color_type in (_RGB, _RGBA) or (header.color_type == _PALETTE and by_color):
        image.info.pop("transparency", None)  # of a palette; it says how to draw, and Pillow warns when it is dropped
        return Decoded(partial(_color_rows, image), is_colored=True)
    spread = _SPREAD.get(header.depth, 1) if header.color_type == _GREY else 1
    return Decoded(partial(_value_rows, image, spread), palette=_palette(image))


def _read_header(data: bytes, where: Where) -> _Header:
    if len(data) >= _HEADER.size:
        _, _, name, width, height, depth, color_type = _HEADER.unpack_from(data)
        if name == b"IHDR":
            return _Header(width, height, depth, color_type)
    raise DataError.single("image-unreadable", where, "its PNG header is damaged or cut off", fix=_REPLACE)


def _require_plain_colors(header: _Header, where: Where, *, by_color: bool) -> None:
    if not by_color:
        fix = "Say which colour is which class with --colors FILE, or save the classes as one channel."
        raise _mode(where, "holds colours (RGB), not the numbers of classes", fix)
    if header.depth > 8:
        raise _mode(where, "has 16 bits per colour channel", "Save it with 8 bits per channel.")


def _mode(where: Where, detail: str, fix: str) -> DataError:
    return DataError.single("map-mode", where, detail, fix=fix)


def _load(data: bytes, where: Where) -> PngImageFile:
    """Decode with Pillow's reader of PNG; its own limit on pixels is not in the way, for the header was checked."""
    from PIL.PngImagePlugin import PngImageFile

    try:
        image = PngImageFile(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, struct.error, zlib.error) as error:
        detail = f"cannot be decoded: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix=_REPLACE) from None
    if image.is_animated:
        raise _mode(where, f"is an animation of {image.n_frames} pictures", "Save the one that is the label map.")
    return image


def _require_opaque(image: PngImageFile, where: Where) -> None:
    alpha = np.asarray(image.getchannel("A"))
    if alpha.min() == _OPAQUE:
        return
    y, x = np.unravel_index(int((alpha != _OPAQUE).argmax()), alpha.shape)
    detail = f"has an alpha channel that is not opaque: {int(alpha[y, x])} of 255 at ({x}, {y})"
    raise _mode(where, detail, "Say which class transparent pixels are, and save the map without alpha.")


def _strip(image: Image, top: int, bottom: int) -> Image:
    return image.crop((0, top, image.width, bottom))


def _value_rows(image: Image, spread: int, top: int, bottom: int) -> npt.NDArray[Any]:
    strip = _strip(image, top, bottom)
    values = np.asarray(strip.getchannel(0) if strip.mode == "LA" else strip)
    return values if spread == 1 else values // np.uint8(spread)


def _color_rows(image: Image, top: int, bottom: int) -> npt.NDArray[Any]:
    """Return ``red + 2**8 green + 2**16 blue`` of each pixel, as uint32."""
    pixels = np.asarray(_strip(image, top, bottom).convert("RGB").convert("RGBX"))  # (rows, width, 4)
    codes: npt.NDArray[Any] = pixels.view("<u4")[..., 0] & np.uint32(0xFFFFFF)
    return codes


def _palette(image: PngImageFile) -> npt.NDArray[np.uint8] | None:
    flat = image.getpalette("RGB") if image.mode == "P" else None
    return None if flat is None else np.array(flat, dtype=np.uint8).reshape(-1, 3)
