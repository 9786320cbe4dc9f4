"""PNG files as programs usually write label maps, decoded by zlib and the compiled core; Pillow decodes all others.

What is decoded here is whole and has one meaning, and Pillow gives the same values. Anything unusual is left to it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core
from jaccard_eval.native.maps import unfilter

_SIGNATURE = 8  # bytes before the first chunk
_HEADER = struct.Struct(">IIBBBBB")  # width, height, bits, colour type; and compression, filters, interlace: all 0
_CHUNK, _CHECKSUM = struct.Struct(">I4s"), struct.Struct(">I")  # length and name before the contents, CRC behind them
_PALETTE = 3
_STEPS = {(0, 8): 1, (0, 16): 2, (2, 8): 3, (_PALETTE, 8): 1}  # bytes of a pixel by colour type and bits
_COLORS = 256
# Chunks that do not concern values, and their lengths.
_NOTES = {b"gAMA": (4,), b"cHRM": (32,), b"pHYs": (9,), b"sRGB": (1,), b"tIME": (7,), b"tEXt": range(2**10)}
_MOST_NOTES = 2**6


@dataclass(frozen=True, slots=True, eq=False)
class PlainPng:
    """The values of a map, colours as red + 2**8 green + 2**16 blue, and the colours of its palette, (n, 3)."""

    values: npt.NDArray[Any]
    palette: npt.NDArray[np.uint8] | None


def decode_plain(data: bytes) -> PlainPng | None:
    """Decode a file; None where anything about it is unusual, or there is no compiled core."""
    chunks = _chunks_of(data) if load_core() is not None else None
    if chunks is None or len(chunks.get(b"IHDR", b"")) != _HEADER.size:
        return None
    width, height, bits, color_type, *others = _HEADER.unpack(chunks[b"IHDR"])
    step, colors = _STEPS.get((color_type, bits)), chunks.get(b"PLTE", b"")
    if step is None or any(others) or bool(colors) != (color_type == _PALETTE) or len(colors) > 3 * _COLORS:
        return None
    size = height * (1 + width * step)
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(chunks[b"IDAT"], size + 1)  # no more than that, whatever there is
    except zlib.error:
        return None
    if len(raw) != size or not inflater.eof or inflater.unused_data or len(colors) % 3:
        return None
    values = unfilter(raw, height, width, step)
    palette = np.frombuffer(colors, np.uint8).reshape(-1, 3) if colors else None
    return None if values is None else PlainPng(values, palette)


def _chunks_of(data: bytes) -> dict[bytes, bytes] | None:
    """Return the chunks that concern values; None where there are others, or any is damaged."""
    found: dict[bytes, bytes] = {}
    pixels: list[bytes] = []
    at, n_notes, name = _SIGNATURE, 0, b""
    while name != b"IEND":
        before, start = name, at + _CHUNK.size
        if len(data) < start + _CHECKSUM.size:
            return None
        length, name = _CHUNK.unpack_from(data, at)
        at = start + length + _CHECKSUM.size
        if name == b"IDAT":
            if pixels and before != name:
                return None
            pixels.append(data[start : start + length])
            continue
        is_note = length in _NOTES.get(name, ())
        n_notes += is_note
        is_known = is_note or (name in (b"IHDR", b"PLTE") and name not in found and not pixels) or name == b"IEND"
        if not is_known or n_notes > _MOST_NOTES or at > len(data) or (at == len(data)) != (name == b"IEND"):
            return None
        # Of pixels zlib has a checksum of its own.
        if zlib.crc32(data[start - 4 : start + length]) != _CHECKSUM.unpack_from(data, start + length)[0]:
            return None
        if not is_note:
            found[name] = data[start : start + length]
    found[b"IDAT"] = b"".join(pixels)
    return found
