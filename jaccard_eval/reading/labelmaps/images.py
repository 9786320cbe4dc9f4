"""The label map in a file: PNG, TIFF, BMP, GIF or NumPy array, by its first bytes.

What a value means is decided elsewhere.

Of PNG the header is read here, for Pillow hides what matters: it spreads 2 and 4 bit grey over 0 to 255, and keeps only
8 of 16 bits of colours. Of NumPy arrays nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import COLOR_TABLES
from jaccard_eval.reading import files
from jaccard_eval.reading.labelmaps.arrays import ARRAYS_FIX, ArrayMap
from jaccard_eval.reading.labelmaps.colors import UNKNOWN, color_text, named_color_table, read_color_table
from jaccard_eval.reading.npz import PARSING, read_header
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngImageFile

MAX_PIXELS = 2**28  # 16,384 x 16,384; a header that claims more is not believed, for decoding takes the memory
MAX_SIDE = 2**20  # pixels
MAX_BYTES = 2**31  # of a file: the largest map with 8 bytes a pixel
BLOCK = 2**18  # pixels counted at once, so that what is made on the way stays in the cache

Rows = Callable[[int, int], npt.NDArray[Any]]  # (top, bottom) -> integers, shape (bottom - top, width)

_PNG, _NPY, _JPEG = b"\x89PNG\r\n\x1a\n", b"\x93NUMPY", b"\xff\xd8\xff"  # first bytes
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_READERS = {**dict.fromkeys(_TIFF, "Tiff"), b"BM": "Bmp", b"GIF8": "Gif", _JPEG: "Jpeg"}  # of Pillow
_HEADER = struct.Struct(
    ">8sI4sIIBB"
)  # signature; length and name of the first chunk; width, height, depth, colour type
_GREY, _RGB, _PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6  # colour types of the PNG specification, table 11.1
_KINDS = {_GREY: "grey", _RGB: "RGB", _PALETTE: "a palette", _GREY_ALPHA: "grey with alpha", _RGBA: "RGBA"}
_SPREAD = {2: 85, 4: 17}  # what Pillow multiplies grey of 2 and 4 bits by
_OPAQUE = 255
_REPLACE = "Export or copy the file again."
_SAVE = "Save it with numpy.save as a two-dimensional array of integers, (height, width)."


@dataclass(frozen=True, slots=True, eq=False)
class LabelImage:
    """A decoded label map, whose values are given out strip by strip: large copies cost more than counting them."""

    shape: tuple[int, int]  # height and width
    # Values of the file, or colours as red + 2**8 green + 2**16 blue.
    rows: Rows
    is_colored: bool = False
    # The colours that the file gives its values, (n, 3).
    palette: npt.NDArray[np.uint8] | None = None

    def strips(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the values from top to bottom; maps of one shape have strips of one shape."""
        height, width = self.shape
        step = max(1, BLOCK // width)
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


class EncodedImage:
    """The bytes of a label map, with its size; `decode` makes the map.

    A file that is neither PNG nor a NumPy array, or claims an absurd size, is a DataError.
    """

    def __init__(self, path: Path | ArrayMap | tuple[bytes, Where], *, greys: bool | None = None) -> None:
        """Read a map, or take its bytes with the place that they were found in, or an array as it is.

        JPEG images are read where all that counts is which `greys` are bright; None where that cannot be asked for.
        """
        self._values: npt.NDArray[Any] | None = None
        self._data = b""
        if isinstance(path, tuple):
            self._data, self.where = path
        else:
            self.where = Where(str(path))
        if isinstance(path, ArrayMap):
            self._values = path.array()
            self.shape = _map_shape(self._values.shape, self._values.dtype, self.where, ARRAYS_FIX)
        elif isinstance(path, Path):
            self._data = _read(path, self.where)
        if self._values is not None:
            pass
        elif self._data.startswith(_PNG):
            header = _read_png_header(self._data, self.where)
            self.shape = header.height, header.width
        elif self._data.startswith(tuple(_READERS)) and (greys or not self._data.startswith(_JPEG)):
            width, height = _open(self._data, self.where).size
            self.shape = height, width
        elif self._data.startswith(_NPY):
            self.shape = _npy_shape(self._data, self.where)
        else:
            raise _foreign(self.where, self._data, is_label_map=greys is not None)
        height, width = self.shape
        if height * width > MAX_PIXELS or max(self.shape) > MAX_SIDE:
            raise _too_large(self.where, f"its header claims a size of {width} x {height} pixels")
        if height * width == 0:
            fix = "Export the label map again."
            raise DataError.single("map-shape", self.where, f"has no pixels: {width} x {height}", fix=fix)

    @property
    def digest(self) -> bytes:
        """Digest of the file's bytes, or of an array's type, shape and numbers."""
        if self._values is None:
            return hashlib.sha256(self._data).digest()
        state = hashlib.sha256(f"{self._values.dtype.str} {self._values.shape}".encode())
        state.update(np.ascontiguousarray(self._values).data)
        return state.digest()

    def decode(self, *, by_color: bool) -> LabelImage:
        """Return the map; `by_color` when a table gives the classes of colours, of a palette too.

        A damaged file, or one whose values cannot be classes, is a DataError.
        """
        if self._values is not None:
            return _array_map(self._values)
        if self._data.startswith(_PNG):
            return _decode_png(self._data, self.where, by_color=by_color)
        if self._data.startswith(tuple(_READERS)):
            return _decode_other(self._data, self.where, by_color=by_color)
        try:
            with PARSING:
                values: npt.NDArray[Any] = np.load(io.BytesIO(self._data), allow_pickle=False)
        except (ValueError, EOFError) as error:
            detail = f"cannot be read: {' '.join(str(error).split())}"
            raise DataError.single("image-unreadable", self.where, detail, fix="Export or copy it again.") from None
        return _array_map(values)

    def decode_channels(self) -> npt.NDArray[np.uint8]:
        """Return red, green, blue and alpha of a PNG image, (h, w, 4), whatever they mean."""
        return np.asarray(_load(self._data, self.where).convert("RGBA"))

    def decode_ids(self, *, colored: bool) -> LabelImage:
        """Return a map of ids: colours of 8 bits, whose alpha channel means nothing, or else grey of 8 or 16 bits.

        Any other file is a DataError.
        """
        if not self._data.startswith(_PNG):
            return self.decode(by_color=False)
        header = _read_png_header(self._data, self.where)
        if colored:
            if header.color_type not in (_RGB, _RGBA) or header.depth != 8:
                fix = "Save ids as RGB with 8 bits per channel: red + 256 green + 65536 blue."
                raise _mode(
                    self.where,
                    f"is {_KINDS.get(header.color_type, 'of an unknown kind,')} of {header.depth} bits, not RGB of 8",
                    fix,
                )
            image = _load(self._data, self.where)
            image.info.pop("transparency", None)  # of one colour; Pillow warns when it is dropped
            return LabelImage(self.shape, partial(_color_rows, image), is_colored=True)
        if header.color_type != _GREY or header.depth not in (8, 16):
            fix = "Save ids as grey of 16 bits, as Cityscapes has them."
            raise _mode(
                self.where,
                f"is {_KINDS.get(header.color_type, 'of an unknown kind,')} of {header.depth} bits, not grey of 16",
                fix,
            )
        return LabelImage(self.shape, partial(_value_rows, _load(self._data, self.where), 1))


def _read(path: Path, where: Where) -> bytes:
    with files.open_regular(path) as file, files.unchanging(path, file):
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise _too_large(where, f"has {size:,} bytes")
        return file.read()


def _foreign(where: Where, data: bytes, *, is_label_map: bool) -> DataError:
    if data.startswith(_JPEG):
        fix: Fix | str = "Export it as PNG or .npy from the source: JPEG compression cannot be undone."
        if is_label_map:
            words = (
                "Export it as PNG or .npy from the source. For a mask of two values, compare what is bright:"
                " {gt_class_map} or {class_map}."
            )
            fix = Fix.missing(words, gt_class_map="grey-255", class_map="grey-255")
        return DataError.single("map-lossy", where, "is a JPEG image, which does not keep label values", fix=fix)
    files.refuse_result(Path(where.path), files.head(Path(where.path)))
    files.check_content(Path(where.path), data)  # knows what else it could be, and reports it
    if data.lstrip()[:1] in (b"{", b"["):
        words = "Draw them as maps, PNG or .npy; objects with masks are compared with {command}."
        drawn = Fix.missing(words, command="evaluate GT PRED")
        return DataError.single("image-unreadable", where, "is JSON, which is not a label map", fix=drawn)
    detail = "is neither a PNG, TIFF, BMP or GIF image nor a NumPy array (.npy)"
    return DataError.single("image-unreadable", where, detail, fix="Export it as PNG or .npy.")


def _too_large(where: Where, claim: str) -> DataError:
    fix = f"Label maps have at most {MAX_PIXELS:,} pixels, {MAX_SIDE:,} a side; cut it into tiles."
    return DataError.single("image-too-large", where, claim, fix=fix)


def _npy_shape(data: bytes, where: Where) -> tuple[int, int]:
    """Return height and width."""
    try:
        shape, dtype = read_header(io.BytesIO(data))
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, RecursionError) as error:
        detail = f"its header cannot be read: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix=_SAVE) from None
    return _map_shape(shape, dtype, where, _SAVE)


def _map_shape(shape: tuple[int, ...], dtype: np.dtype[Any], where: Where, advice: str) -> tuple[int, int]:
    """Return height and width of an array that can be a map."""
    if dtype.kind not in "biu":
        detail = f"holds {quoted_value(dtype)} values; a label map holds integers"
        how = "Take the argmax over classes of scores; round labels. " if dtype.kind == "f" else ""
        if dtype.kind == "O":  # Cellpose's _seg.npy, of which nothing is unpickled
            how = "Take them out: numpy.save('a.npy', numpy.load('a_seg.npy', allow_pickle=True).item()['masks']). "
        raise DataError.single("map-type", where, detail, fix=f"{how}{advice}")
    if len(shape) != 2:
        detail = f"has the shape {quoted_value(shape)}; a label map has (height, width)"
        raise DataError.single("map-shape", where, detail, fix=advice)
    return shape[0], shape[1]


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    height: int
    depth: int
    color_type: int


def _decode_png(data: bytes, where: Where, *, by_color: bool) -> LabelImage:
    """Decode the whole map: grey holds values, and so do the indices of a palette, unless colours decide.

    An alpha channel is refused unless it is opaque all over.
    """
    header = _read_png_header(data, where)
    is_rgb = header.color_type in (_RGB, _RGBA)
    if is_rgb and not by_color:
        return _array_map(_grey_of(_load(data, where), where))
    if is_rgb and header.depth > 8:
        raise _mode(where, "has 16 bits per colour channel", "Save it with 8 bits per channel.")
    if header.color_type == _GREY_ALPHA and header.depth > 8:
        raise _mode(where, "has 16 bit grey with an alpha channel", "Save it without alpha.")
    image = _load(data, where)
    if header.color_type in (_GREY_ALPHA, _RGBA):
        alpha = np.asarray(image.getchannel("A"))
        if alpha.min() != _OPAQUE:
            y, x = np.unravel_index(int((alpha != _OPAQUE).argmax()), alpha.shape)
            detail = f"has an alpha channel that is not opaque: {int(alpha[y, x])} of 255 at ({x}, {y})"
            raise _mode(where, detail, "Choose a class for transparent pixels, and save the map without alpha.")
    if is_rgb or (header.color_type == _PALETTE and by_color):
        image.info.pop("transparency", None)  # of a palette; affects drawing only, and Pillow warns when it is dropped
        return LabelImage((header.height, header.width), partial(_color_rows, image), is_colored=True)
    spread = _SPREAD.get(header.depth, 1) if header.color_type == _GREY else 1
    flat = image.getpalette("RGB") if image.mode == "P" else None
    palette = None if flat is None else np.array(flat, dtype=np.uint8).reshape(-1, 3)
    return LabelImage((header.height, header.width), partial(_value_rows, image, spread), palette=palette)


def _grey_of(image: Image, where: Where) -> npt.NDArray[np.uint8]:
    """Return the values of an opaque image whose channels are equal; colours are refused, with what may know them."""
    channels = np.asarray(image.convert("RGBA"))
    red = channels[..., 0]
    if all((channels[..., at] == other).all() for at, other in ((1, red), (2, red), (3, _OPAQUE))):
        return np.ascontiguousarray(red)
    codes = np.unique(channels[..., :3].reshape(-1, 3) @ np.array([1, 1 << 8, 1 << 16]))
    near = (str(folder / name) for folder in [*Path(where.path).parents][:2] for name in _TABLES)
    known = [name for name in (*COLOR_TABLES, *filter(os.path.isfile, near)) if _knows(name, codes)]
    words = f"Map colours to classes with {{colors}} ({', '.join(COLOR_TABLES)}), or save the classes as one channel."
    fix = Fix.missing(words, colors=None)
    if known:  # black alone is in all of them
        fix = Fix.missing("Its colours are in a known table. Pass {colors}.", colors=known[0])
    shown = ", ".join(map(color_text, codes[:_SHOWN_COLORS].tolist())) + (", ..." if len(codes) > _SHOWN_COLORS else "")
    raise _mode(where, f"holds colours (RGB), not class numbers: {shown}", fix)


_TABLES = ("labelmap.txt", "label_colors.txt", "class_dict.csv")  # of CVAT and CamVid, next to or above their maps
_SHOWN_COLORS = 4


def _knows(name: str, codes: npt.NDArray[np.int64]) -> bool:
    try:
        table = named_color_table(name) or read_color_table(Path(name))
    except (UsageError, DataError):
        return False
    return bool((table.classes_of(codes) != UNKNOWN).all())


def _array_map(values: npt.NDArray[Any], palette: npt.NDArray[np.uint8] | None = None) -> LabelImage:
    return LabelImage(values.shape, lambda top, bottom: values[top:bottom], palette=palette)


def _read_png_header(data: bytes, where: Where) -> _Header:
    if len(data) >= _HEADER.size:
        _, _, name, width, height, depth, color_type = _HEADER.unpack_from(data)
        if name == b"IHDR":
            return _Header(width, height, depth, color_type)
    raise DataError.single("image-unreadable", where, "its PNG header is damaged or cut off", fix=_REPLACE)


def _mode(where: Where, detail: str, fix: Fix | str) -> DataError:
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
        raise _mode(where, f"is an animation of {image.n_frames} frames", "Save the frame that is the label map.")
    return image


def _open(data: bytes, where: Where) -> Image:
    kind = next(name for start, name in _READERS.items() if data.startswith(start))
    plugin = import_module(f"PIL.{kind}ImagePlugin")
    try:
        return cast("Image", getattr(plugin, f"{kind}ImageFile")(io.BytesIO(data)))
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error) as error:
        detail = f"its {kind.upper()} header is damaged, or of a kind that is not read: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix="Export it as PNG or .npy.") from None


def _decode_other(data: bytes, where: Where, *, by_color: bool) -> LabelImage:
    """Decode a file of one page, and of one channel of whole numbers unless colours decide."""
    image = _open(data, where)
    try:
        n_pages = getattr(image, "n_frames", 1)
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error):
        n_pages = 1  # damaged further on, which decoding reports
    if n_pages > 1:
        raise _mode(where, f"has {n_pages:,} pages", "Save each map as a file of its own.")
    try:
        image.load()
        flat = image.getpalette("RGB") if image.mode == "P" else None
        if by_color and image.mode in ("RGB", "P"):
            return LabelImage((image.height, image.width), partial(_color_rows, image), is_colored=True)
        values = np.asarray(image.convert("L") if data.startswith(_JPEG) else image)
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error) as error:
        detail = f"cannot be decoded: {' '.join(str(error).split())}"
        raise DataError.single("image-unreadable", where, detail, fix="Export it as PNG or .npy.") from None
    if values.ndim != 2 and values.dtype == np.uint8 and image.mode in ("RGB", "RGBA"):
        return _array_map(_grey_of(image, where))
    if values.ndim != 2:
        raise _mode(where, "holds colours, not class numbers", "Save it as one channel of whole numbers.")
    _map_shape(values.shape, values.dtype, where, _SAVE)
    palette = None if flat is None else np.array(flat, dtype=np.uint8).reshape(-1, 3)
    if palette is not None and data.startswith(b"GIF8") and (palette == palette[:, :1]).all():
        return _array_map(palette[values, 0])  # GIF has no other grey
    return _array_map(values, palette=palette)


def _value_rows(image: Image, spread: int, top: int, bottom: int) -> npt.NDArray[Any]:
    # A crop is a copy, which a map of a single strip does without.
    strip = image if bottom - top == image.height else image.crop((0, top, image.width, bottom))
    values = np.asarray(strip.getchannel(0) if strip.mode == "LA" else strip)
    return values if spread == 1 else values // np.uint8(spread)


def _color_rows(image: Image, top: int, bottom: int) -> npt.NDArray[Any]:
    """Return ``red + 2**8 green + 2**16 blue`` of each pixel, as uint32."""
    strip = image if bottom - top == image.height else image.crop((0, top, image.width, bottom))
    colors = strip if strip.mode == "RGB" else strip.convert("RGB")
    # Four bytes from each third one on, the last of which is of the next pixel: to copy pixels into four bytes each
    # takes longer.
    data, n = np.ascontiguousarray(colors).reshape(-1), colors.width * colors.height
    codes = np.empty(n, dtype=np.uint32)
    np.bitwise_and(np.ndarray((n - 1,), "<u4", data, strides=(3,)), np.uint32(0xFFFFFF), out=codes[:-1])
    codes[-1] = int.from_bytes(data[-3:].tobytes(), "little")
    return codes.reshape(colors.height, colors.width)
