"""Label maps: images whose pixel values are classes, from files or arrays, with colours, in pairs of both sides.

So are masks that files hold as pixels, images of one object, and stacks of maps: a .npy file, or an array of an archive
with the maps of many images. What the last axis of these means is known by its length and by what is in it: nothing;
PanNuke's five types of nuclei and the background; the number of an object and its class, as CoNIC has them; whole cells
and their nuclei, as TissueNet has them. Booleans are the objects of one image.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import ImageTable, unknown_sizes
from jaccard_eval.data.imagekeys import (
    LABEL_SUFFIXES,
    NOWHERE,
    ImageMatch,
    is_image_name,
    match_by,
    path_ends,
    posix,
    without_suffix,
)
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS
from jaccard_eval.engine import bring, path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where, as_settings
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import COLOR_TABLES
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import list_tree, require_readable
from jaccard_eval.reading.image_boxes import to_array
from jaccard_eval.reading.json import parse_json
from jaccard_eval.reading.npz import PARSING, opened_entries, read_header, unpack_archive
from jaccard_eval.reading.records import Record, RecordCollector
from jaccard_eval.similarity.runs import runs_of_labels, runs_of_pixels
from jaccard_eval.text import pluralise, quoted_value

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngImageFile

SUFFIX, ARCHIVE = ".npy", ".npz"
POINT_SUFFIXES = (".label", ARCHIVE)  # of maps that are read as arrays; the first has no other mark
PLACE = "<arrays>"
ARRAYS_FIX = "Pass two-dimensional arrays of integers, (height, width)."


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMap:
    """One label map in memory."""

    name: str
    values: Any
    suffix: str = SUFFIX  # of the format that reports name, that of arrays in files
    place: str = PLACE

    def __str__(self) -> str:
        return f"{self.place}[{quoted_value(self.name)}]"

    def array(self) -> npt.NDArray[Any]:
        """Return the map as an array of numbers."""
        with contextlib.suppress(UsageError, ValueError):  # rows of several lengths
            values = to_array(self.values)
            if values.dtype != object:
                return values
        detail = f"is {quoted_value(type(self.values).__name__)}, not an array of integers"
        raise DataError.single("map-type", Where(str(self)), detail, fix=ARRAYS_FIX)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMaps:
    """The label maps of one side."""

    maps: Mapping[str, Any]
    suffix: str = SUFFIX
    place: str = PLACE

    def __str__(self) -> str:
        return self.place

    def map(self, name: str) -> ArrayMap:
        """Return a map by its name."""
        return ArrayMap(name, self.maps[name], self.suffix, self.place)


def maps_from(source: object) -> Path | ArrayMaps:
    """Return the path of label maps, or those of a dict, of a list (by place), or one array.

    Raises
    ------
    UsageError
        When it is none of these.
    """
    if isinstance(source, str | os.PathLike):
        return path_of(source)
    if isinstance(source, Mapping):
        return ArrayMaps({str(key): values for key, values in source.items()})
    if isinstance(source, list | tuple):
        return ArrayMaps({str(at): values for at, values in enumerate(source)})
    if any(hasattr(source, name) for name in ("__array__", "__dlpack__", "__array_interface__")):
        return ArrayMaps({"0": source})
    kind = type(source).__name__
    raise UsageError(
        f"pixels() cannot read {'an' if kind[0] in 'aeiou' else 'a'} {kind}. "
        "Pass a path, or a list or dict of two-dimensional arrays of integers."
    )


IntArray = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)  # class of a colour that is in no table
_NUMBERS = r"(?P<red>\d{1,3})[\s,]+(?P<green>\d{1,3})[\s,]+(?P<blue>\d{1,3})"
_LAYOUTS = (
    pattern(rf"{_NUMBERS}(?:[\s,]+(?P<name>\S.*))?", re.ASCII),  # 128 64 128 road (CamVid)
    pattern(rf"(?P<name>\S.*?)[\s,:]+{_NUMBERS}(?:::?.*)?", re.ASCII),  # road,128,64,128; road:128,64,128:: (CVAT)
)
_TWO_DIGITS = "[0-9a-f]{2}"
_HEX = pattern(
    rf"#(?P<red>{_TWO_DIGITS})(?P<green>{_TWO_DIGITS})(?P<blue>{_TWO_DIGITS})(?:[\s,]+(?P<name>\S.*))?", re.IGNORECASE
)
_NAMED_COLUMNS = pattern(r"[a-z_ \t]+(?:,[a-z_ \t]+)+", re.IGNORECASE)  # name,r,g,b
_COLORS_FIX = "Write one class per line, such as '128 64 128 road', 'road,128,64,128' or '#804080 road'."


@dataclass(frozen=True, slots=True, eq=False)
class ColorTable:
    """Classes by colour."""

    codes: IntArray  # (n,) red + 2**8 green + 2**16 blue; those behind the names are of no class
    names: tuple[str, ...]  # the colour where the table names none

    @property
    def void(self) -> range:
        """What pixels of no class have."""
        return range(len(self.names), len(self.codes))

    @property
    def digest(self) -> str:
        """Digest of the colours in their order."""
        state = hashlib.sha256(self.codes.astype("<i8").tobytes())
        return f"{FINGERPRINT}{state.hexdigest()[:FINGERPRINT_DIGITS]}"

    def classes_of(self, codes: IntArray) -> IntArray:
        """Return the class of each colour, `UNKNOWN` for those that the table lacks."""
        order = np.argsort(self.codes)
        place = np.searchsorted(self.codes, codes, sorter=order)
        candidate = order[np.minimum(place, len(order) - 1)]
        return np.where(self.codes[candidate] == codes, candidate, UNKNOWN)


VOC = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Category:
    """A class: its id as a text, its name, and whether it has instances."""

    key: str
    name: str
    is_thing: bool
    colour: tuple[int, int, int] | None = None


# Classes of Cityscapes that are evaluated: id, name, whether they have instances, colour.
_CITYSCAPES = (
    (7, "road", False, (128, 64, 128)),
    (8, "sidewalk", False, (244, 35, 232)),
    (11, "building", False, (70, 70, 70)),
    (12, "wall", False, (102, 102, 156)),
    (13, "fence", False, (190, 153, 153)),
    (17, "pole", False, (153, 153, 153)),
    (19, "traffic light", False, (250, 170, 30)),
    (20, "traffic sign", False, (220, 220, 0)),
    (21, "vegetation", False, (107, 142, 35)),
    (22, "terrain", False, (152, 251, 152)),
    (23, "sky", False, (70, 130, 180)),
    (24, "person", True, (220, 20, 60)),
    (25, "rider", True, (255, 0, 0)),
    (26, "car", True, (0, 0, 142)),
    (27, "truck", True, (0, 0, 70)),
    (28, "bus", True, (0, 60, 100)),
    (31, "train", True, (0, 80, 100)),
    (32, "motorcycle", True, (0, 0, 230)),
    (33, "bicycle", True, (119, 11, 32)),
)
CATEGORIES = tuple(Category(str(key), name, is_thing, colour) for key, name, is_thing, colour in _CITYSCAPES)
# Unlabeled, dynamic, ground, parking, rail track, guard rail, bridge, tunnel, caravan and trailer. Poles
# in groups and licence plates have the colours of poles and cars. Source: cityscapesScripts, labels.py.
_NOT_EVALUATED = (
    (0, 0, 0), (111, 74, 0), (81, 0, 81), (250, 170, 160), (230, 150, 140), (180, 165, 180), (150, 100, 100),
    (150, 120, 90), (0, 0, 90), (0, 0, 110),
)  # fmt: skip


def _voc_color(label: int) -> int:
    """Return the colour of a class of PASCAL VOC: its bits are spread over the channels, as in VOClabelcolormap."""
    channels = [0, 0, 0]
    for bit in range(8):
        for channel in range(3):
            channels[channel] |= (label >> (3 * bit + channel) & 1) << (7 - bit)
    return channels[0] | channels[1] << 8 | channels[2] << 16


def named_color_table(name: object) -> ColorTable | None:
    """Return the colours of a known data set, one of `options.COLOR_TABLES`; None where the name is another."""
    if name == "voc":
        codes = [*map(_voc_color, range(len(VOC))), 224 | 224 << 8 | 192 << 16]
        return ColorTable(np.array(codes, dtype=np.int64), VOC)
    if name == "cityscapes":
        known = [*(category.colour or (0, 0, 0) for category in CATEGORIES), *_NOT_EVALUATED]
        codes = [red | green << 8 | blue << 16 for red, green, blue in known]
        names = tuple(category.name for category in CATEGORIES)
        return ColorTable(np.array(codes, dtype=np.int64), names)
    return None


@as_settings()
def read_color_table(path: Path) -> ColorTable:
    """Read a table of colours: text with one class a line, in the order of the classes.

    A line has a name and a colour, as three numbers from 0 to 255 or as ``#rrggbb``; other lines that start with ``#``
    are comments. CamVid's ``label_colors.txt``, CVAT's ``labelmap.txt`` and a CSV file ``name,r,g,b`` are such tables,
    and Datumaro's ``dataset_meta.json`` has one.
    """
    findings = FindingLog()
    codes: dict[int, int] = {}
    names = []
    listed = _meta_lines(path) if path.suffix.lower() == ".json" else files.read_lines(path)
    lines = [(number, line.strip()) for number, line in enumerate(listed, start=1)]
    lines = [(number, line) for number, line in lines if line and (not line.startswith("#") or _HEX.fullmatch(line))]
    if lines and _NAMED_COLUMNS.fullmatch(lines[0][1]):
        del lines[0]
    for number, line in lines:
        where = Where(str(path), line=number)
        parsed = _parse(line)
        if parsed is None:
            findings.error("color-table", where, f"no colour in {quoted_value(line)}", fix=_COLORS_FIX)
            continue
        code, name = parsed
        if codes.setdefault(code, number) != number:
            detail = f"the colour {color_text(code)} is already on line {codes[code]}"
            findings.error("color-table", where, detail, fix=_COLORS_FIX)
        names.append(name)
    if not names:
        findings.error("color-table", Where(str(path)), "the table has no colours", fix=_COLORS_FIX)
    findings.raise_errors()
    return ColorTable(np.array(list(codes), dtype=np.int64), tuple(names))


def _meta_lines(path: Path) -> list[str]:
    """Return the classes of Datumaro's dataset_meta.json as lines of a table."""
    document = Record.of(parse_json(path, files.read_text(path)), Where(str(path)), findings := FindingLog())
    named = document.record("label_map").values
    colors = document.array("segmentation_colors")
    findings.raise_errors()
    texts = (" ".join(map(str, color if isinstance(color, list) else [color])) for color in colors)
    return [f"{text} {named.get(str(at), '')}" for at, text in enumerate(texts)]


def color_text(color: int) -> str:
    """Return a colour as people write it."""
    return f"{color & 255} {color >> 8 & 255} {color >> 16 & 255}"


def _parse(line: str) -> tuple[int, str] | None:
    """Return the colour and the name of a line; None when it is none."""
    match = _HEX.fullmatch(line)
    base = 16 if match else 10
    for layout in _LAYOUTS:
        match = match or layout.fullmatch(line)
    if match is None:
        return None
    red, green, blue = (int(match[part], base) for part in ("red", "green", "blue"))
    if max(red, green, blue) > 255:
        return None
    code = red | green << 8 | blue << 16
    return code, (match["name"] or color_text(code)).strip()


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
            if path.suffix.lower() in POINT_SUFFIXES:
                self._values = _points(path, self._data, self.where)
                self.shape = _map_shape(self._values.shape, self._values.dtype, self.where, ARRAYS_FIX)
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

    @property
    def kind(self) -> str:
        """What the pixels of a PNG file are: grey, RGB or RGBA, a palette; arrays are grey."""
        if not self._data.startswith(_PNG):
            return _KINDS[_GREY]
        return _KINDS.get(_read_png_header(self._data, self.where).color_type, "")

    def decode_ids(self, *, colored: bool | None) -> LabelImage:
        """Return a map of ids: colours of 8 bits, whose alpha channel means nothing, or else grey of 8 or 16 bits.

        None takes either. Any other file is a DataError.
        """
        if not self._data.startswith(_PNG):
            return self.decode(by_color=False)
        header = _read_png_header(self._data, self.where)
        if colored is None:
            colored = header.color_type != _GREY
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


def _points(path: Path, data: bytes, where: Where) -> npt.NDArray[Any]:
    """Return the labels of a cloud of points as a map of one row: 32 bits each, or the only array of an archive."""
    if path.suffix.lower() == ".label":
        if len(data) % 4:
            detail = f"has {len(data):,} bytes; labels of points have 4 each"
            raise DataError.single("image-unreadable", where, detail, fix=_REPLACE)
        return np.frombuffer(data, dtype="<u4").reshape(1, -1)
    arrays = _unpacked(path, data)
    if len(arrays) != 1:
        detail = f"has {pluralise(len(arrays), 'array')}: {', '.join(map(quoted_value, arrays))}"
        raise DataError.single("map-type", where, detail, fix="Save the map alone: numpy.savez_compressed(path, map).")
    (array,) = arrays.values()
    return array.reshape(1, -1) if array.ndim == 1 else array


def _unpacked(path: Path, data: bytes) -> dict[str, npt.NDArray[Any]]:
    return unpack_archive(io.BytesIO(data), str(path), len(data), FindingLog(), of_maps=True).arrays


def _foreign(where: Where, data: bytes, *, is_label_map: bool) -> DataError:
    if data.startswith(_JPEG):
        fix: Fix | str = "Export it as PNG or .npy from the source: JPEG compression cannot be undone."
        if is_label_map:
            words = (
                "Export it as PNG or .npy from the source. For a mask of two values, compare what is bright:"
                " {gt_class_map} for ground truth, {class_map} for predictions."
            )
            fix = Fix.missing(words, gt_class_map="grey-255", class_map="grey-255")
        return DataError.single("map-lossy", where, "is a JPEG image, which does not keep label values", fix=fix)
    files.refuse_result(Path(where.path), files.head(Path(where.path)))
    files.check_content(Path(where.path), data)  # knows what else it could be, and reports it
    if data.lstrip()[:1] in (b"{", b"["):
        words = (
            "Draw them as maps, PNG or .npy; of RLE by pycocotools, for each entry: "
            "values[mask.decode(entry['segmentation']) == 1] = entry['category_id']. "
            "Objects with masks are compared with {command}."
        )
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
    # A table next to the maps is meant for them; a few colours may be in another's by accident.
    tables = [*filter(os.path.isfile, near), *(COLOR_TABLES if len(codes) >= _TELLING else ())]
    known = [name for name in tables if _knows(name, codes)]
    words = f"Map colours to classes with {{colors}} ({', '.join(COLOR_TABLES)}), or save the classes as one channel."
    fix = Fix.missing(words, colors=None)
    if known:
        fix = Fix.missing("Its colours are in a known table. Pass {colors}.", colors=known[0])
    elif Path(where.path).stem.endswith("_seg") and not (codes % (1 << 8) % 10).any():
        words = "As ADE20K's, blue is the object: save the class as one channel, red // 10 * 256 + green of 16 bits."
        fix = Fix.missing(words)
    shown = ", ".join(map(color_text, codes[:_SHOWN_COLORS].tolist())) + (", ..." if len(codes) > _SHOWN_COLORS else "")
    raise _mode(where, f"holds colours (RGB), not class numbers: {shown}", fix)


# Of CVAT, CamVid and Datumaro, next to or above their maps.
_TABLES = ("labelmap.txt", "label_colors.txt", "class_dict.csv", "class_dict_seg.csv", "dataset_meta.json")
_SHOWN_COLORS = 4
_TELLING = 3  # colours of a map that a known data set has, from which its table is meant


def colors_found(side: Path | ArrayMaps, findings: FindingLog) -> str | None:
    """Return the table that knows the colours of a side's first map, and note it; else None."""
    if not isinstance(side, Path):
        return None
    names = list_side("", side, FindingLog()).names if files.is_folder(side) else ("",)
    try:
        for name in names[:1]:
            EncodedImage(side / name).decode(by_color=False)
    except DataError as error:
        fixes = [finding.fix.options for finding in error.findings if finding.code == "map-mode" and finding.fix]
        table = next((options["colors"] for options in fixes if isinstance(options.get("colors"), str)), None)
        if isinstance(table, str):
            detail = f"maps hold colours: classes are those of {quoted_value(table)}, which has all of the first map"
            fix = Fix.missing("If they are others, pass {colors}.", colors=None)
            findings.note("names-found", Where(str(side)), detail, fix=fix)
            return table
    return None


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


@dataclass(frozen=True, slots=True)
class MapPair:
    """One label map of the ground truth and the one predicted for it."""

    name: str
    gt: Path | ArrayMap
    pred: Path | ArrayMap


@dataclass(frozen=True, eq=False)
class MapSide:
    """The label maps of one side."""

    role: str
    root: Path
    names: tuple[str, ...]  # paths below the root, with slashes, sorted
    others: int = 0  # files below the root whose suffix is not that of a label map, and other layers of the maps
    is_file: bool = False  # whether the side is a single file
    arrays: ArrayMaps | None = None  # in place of files

    def path(self, row: int) -> Path | ArrayMap:
        """Return the path of a map, or the map."""
        return self.root / self.names[row] if self.arrays is None else self.arrays.map(self.names[row])

    @property
    def table(self) -> ImageTable:
        """The maps as images; ``a.npy`` may belong to ``a.png``, so names exclude that suffix."""
        keys = tuple(_LABELME.sub("", name).removesuffix(SUFFIX).removesuffix(ARCHIVE) for name in self.names)
        return ImageTable(keys, keys, unknown_sizes(len(keys)), listed=True)

    def find(self, name: str) -> list[int]:
        """Return the maps that a path can mean, with or without suffix: one ends with the other, by whole folders."""
        forms = (posix(name), _bare(posix(name)))
        ends = [self._by_end.get(form, []) for form in forms]
        whole = [self._by_path.get(end, []) for form in forms for end in path_ends(form)]
        return next((rows for rows in (*whole[:1], *ends, *whole) if rows), [])

    @cached_property
    def _by_path(self) -> dict[str, list[int]]:
        """Rows by path, with and without suffix."""
        return _index((form, row) for row, name in enumerate(self.names) for form in {name, _bare(name)})

    @cached_property
    def _by_end(self) -> dict[str, list[int]]:
        """Rows by each end of a path, with and without suffix."""
        return _index((end, row) for form, rows in self._by_path.items() for row in rows for end in path_ends(form))


def _index(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for form, row in places:
        rows.setdefault(form, []).append(row)
    return rows


def list_side(role: str, path: Path | ArrayMaps, findings: FindingLog) -> MapSide:
    """Return the label maps of a folder and below it, the one in a file, or those in memory."""
    if isinstance(path, ArrayMaps):
        if not path.maps:
            findings.error("map-none", Where(str(path)), "there is no label map", fix="Pass one array per image.")
        return MapSide(role, Path(str(path)), tuple(sorted(path.maps)), arrays=path)
    require_readable(path)
    if not path.is_dir():
        arrays = _unpacked(path, _read(path, Where(str(path)))) if path.suffix.lower() == ARCHIVE else {}
        if len(arrays) > 1:  # the maps of all images
            return MapSide(role, path, tuple(sorted(arrays)), arrays=ArrayMaps(arrays, ARCHIVE, str(path)))
        return MapSide(role, path.parent, (path.name,), is_file=True)
    files = list_tree(path, findings)
    names = _one_layer(_labels_in([name for name in files if name.lower().endswith(LABEL_SUFFIXES)]))
    # Next to maps, archives hold what networks predict of them.
    names = names or tuple(name for name in files if name.lower().endswith(ARCHIVE))
    names = names or tuple(filter(is_image_name, files))  # whose content is reported
    if not names:
        suffixes = f"{', '.join(LABEL_SUFFIXES)} or {ARCHIVE}"
        detail = f"there is no label map ({suffixes}) among the {pluralise(len(files), 'file')} of the folder"
        findings.error("map-none", Where(str(path)), detail, fix="Pass the folder of the label maps.")
    bring(path / name for name in names)
    return MapSide(role, path, names, others=len(files) - len(names))


# What Cityscapes has of each image, the classes that its benchmark compares first.
_LAYERS = ("_labelIds", "_labelTrainIds", "_instanceIds", "_instanceTrainIds", "_color")


_LABELME = pattern(r"_json/label(?=\.png$)")  # a folder for each image, with drawings of it: labelme_json_to_dataset
_LABELS = ("SegmentationClass", "semantic")  # folders of PASCAL VOC and KITTI, next to those of images and objects


def _labels_in(names: list[str]) -> list[str]:
    """Return the names in a folder of labels, where the root of a data set has one among others."""
    inside = (tuple(name for name in names if label in name.split("/")[:-1]) for label in _LABELS)
    drawn = tuple(name for name in names if _LABELME.search(name))
    return [*next(filter(None, (*inside, drawn)), names)]


def _one_layer(names: list[str]) -> tuple[str, ...]:
    """Return the names without the other layers of images that have several."""
    layer = re.compile(f"(?:{'|'.join(_LAYERS)})(?=\\.\\w+$)")
    first: dict[str, int] = {}
    rank = {name: _LAYERS.index(found[0]) for name in names if (found := layer.search(name))}
    for name, at in rank.items():
        first[layer.sub("", name)] = min(at, first.get(layer.sub("", name), at))
    return tuple(name for name in names if name not in rank or first[layer.sub("", name)] == rank[name])


def make_pair(gt: MapSide, pred: MapSide, gt_row: int, pred_row: int) -> MapPair:
    """Return the pair of two maps, named as the ground truth's."""
    return MapPair(gt.names[gt_row], gt.path(gt_row), pred.path(pred_row))


def _bare(name: str) -> str:
    return without_suffix(name.removesuffix(SUFFIX).removesuffix(ARCHIVE))


_SEPARATOR = pattern(r"\s*[\t,;]\s*")
_LIST_FIX = "Write a name that both sides have, or the two paths below GT and PRED, separated by a tab."


def read_pairs(path: Path, gt: MapSide, pred: MapSide, findings: FindingLog) -> list[MapPair]:
    """Return the pairs that a list names, in its order; what it names in vain, or twice, is an error in `findings`.

    Names are looked up among the files of the two sides, so that a list reaches no other file.
    """
    with as_settings():
        lines = [line.strip() for line in files.read_lines(path)]
    pairs: dict[MapPair, int] = {}
    for number, line in enumerate(lines, start=1):
        names = _names_of(line, gt, pred)
        pair = _find_pair(names, gt, pred, Where(str(path), line=number), findings) if line else None
        if pair is not None and pairs.setdefault(pair, number) != number:
            detail = f"{quoted_value(names[0])} is already listed on line {pairs[pair]}"
            findings.error("map-list", Where(str(path), line=number), detail, fix="List each label map once.")
    if not any(lines):
        findings.error("map-list", Where(str(path)), "the list is empty", fix="Write one label map per line.")
    return list(pairs)


def _names_of(line: str, gt: MapSide, pred: MapSide) -> tuple[str, str]:
    """Split a line into the names for either side: at a tab, comma or semicolon, else at blanks between known names."""
    parts = _SEPARATOR.split(line)
    if len(parts) == 2:
        return parts[0], parts[1]
    parts = line.split()
    if len(parts) == 2 and gt.find(parts[0]) and pred.find(parts[1]):
        return parts[0], parts[1]
    return line, line


def _find_pair(
    names: tuple[str, str], gt: MapSide, pred: MapSide, where: Where, findings: FindingLog
) -> MapPair | None:
    rows = []
    for side, name in zip((gt, pred), names, strict=True):
        found = side.find(name)
        if len(found) == 1:
            rows.append(found[0])
            continue
        several = " and ".join(quoted_value(side.names[row]) for row in found[:2])
        what = f"can mean {several} in {side.root}" if found else f"is not a label map in {side.root}"
        findings.error("map-list", where, f"{quoted_value(name)} {what}", fix=_LIST_FIX)
    return make_pair(gt, pred, rows[0], rows[1]) if len(rows) == 2 else None


STRATEGIES = ("name", "path", "basename", "stem", "affix")  # in the order of trial
SINGLE_FILES = "single files"
LISTED = "list"
OTHER_FILES = "other-files"  # ignored: not label maps by their suffix
UNLISTED = "unlisted"  # ignored: not on the list
_UNPAIRED_FIX = Fix.missing("Add or remove label maps, or choose which to compare with {list}.", list=None)


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs in the order of the ground truth (or of the list), how they were found, and what was ignored."""

    pairs: tuple[MapPair, ...]
    strategy: str
    ignored: tuple[Mapping[str, int], Mapping[str, int]]  # of ground truth and predictions, by reason


def pair_maps(
    gt_path: Path | ArrayMaps, pred_path: Path | ArrayMaps, list_file: Path | None, findings: FindingLog
) -> Pairing:
    """Find the pairs of label maps.

    Two files are a pair whatever their names. Of folders, every map needs its counterpart; with a list, every entry.
    Maps without one are errors in `findings`.
    """
    gt, pred = list_side("gt", gt_path, findings), list_side("pred", pred_path, findings)
    if list_file is not None:
        pairs = read_pairs(list_file, gt, pred, findings)
        return Pairing(tuple(pairs), LISTED, (_set_aside(gt, pairs), _set_aside(pred, pairs)))
    ignored = _set_aside(gt), _set_aside(pred)
    if gt.is_file and pred.is_file:
        return Pairing((make_pair(gt, pred, 0, 0),), SINGLE_FILES, ignored)
    match = best_match(gt.table, pred.table)
    for side in (gt, pred):
        if side.is_file and (match.rows == NOWHERE).all():
            EncodedImage(side.path(0))  # other content is reported before names are
    _require_all_paired(gt, pred, match, findings)
    rows = sorted((int(row), i) for i, row in enumerate(match.rows) if row != NOWHERE)
    return Pairing(tuple(make_pair(gt, pred, *pair) for pair in rows), match.strategy, ignored)


def best_match(gt: ImageTable, pred: ImageTable) -> ImageMatch:
    """Return what the first strategy finds that pairs most maps of the predictions, one to one."""
    nothing = ImageMatch(STRATEGIES[0], np.full(len(pred), NOWHERE, dtype=np.int32), one_to_one=True)
    matches = (match_by(strategy, gt, pred) for strategy in STRATEGIES)
    clear = [match for match in matches if match.one_to_one]
    return max(clear or [nothing], key=lambda match: int((match.rows != NOWHERE).sum()))


def _set_aside(side: MapSide, chosen: list[MapPair] | None = None) -> dict[str, int]:
    """Count what is not compared, by reason."""
    counts = {OTHER_FILES: side.others}
    if chosen is not None:
        counts[UNLISTED] = len(side.names) - len({getattr(pair, side.role) for pair in chosen})
    return {reason: count for reason, count in counts.items() if count}


def _require_all_paired(gt: MapSide, pred: MapSide, match: ImageMatch, findings: FindingLog) -> None:
    without_pred = np.setdiff1d(np.arange(len(gt.names)), match.rows)
    without_gt = np.flatnonzero(match.rows == NOWHERE)
    for side, rows, missing in ((gt, without_pred, "prediction"), (pred, without_gt, "ground truth")):

        def describe(row: int, side: MapSide = side, missing: str = missing) -> tuple[Where, str]:
            return Where(str(side.path(row))), f"there is no {missing} of this name"

        findings.add_rows(Severity.ERROR, "map-unpaired", rows.tolist(), describe, fix=_UNPAIRED_FIX)


_MASK_FIX = "Export the mask again."


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
        raise DataError.single("segmentation-invalid", where, detail, fix=_MASK_FIX) from None
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


# Source: PanNuke's README. The sixth is 1 where there is no nucleus.
_PANNUKE = ("Neoplastic", "Inflammatory", "Connective", "Dead", "Epithelial")
_COMPARTMENTS = ("whole-cell", "nuclear")  # Source: DeepCell's documentation of TissueNet
_NUMBER_AND_CLASS, _TYPES = 2, len(_PANNUKE) + 1  # channels
_CHANNELS = (1, _NUMBER_AND_CLASS, _TYPES)
_LOOKED_INTO = 8  # maps, by which two channels are distinguished
_ONE_CLASS = 0
_SHIFT = 1 << 32  # a class, above the number of an object
_PIECES = 1.5  # of a plane, from which it is a map and not an object
_BOOLEANS_FIX = "Save a file for each image, or an array of the numbers of objects, 0 where there is none."
_MAP_FIX = "Save maps as (n, height, width), with the numbers of objects; what channels mean is in 'formats instances'."

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
        from jaccard_eval.reading.tabular.table import note_no_class  # no other map needs tables

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
                raise DataError.single("map-shape", where, detail, fix=_BOOLEANS_FIX)
            _add_objects(masks, prefix.rstrip("/") or path.stem, side, where)
            return False
        is_one = len(shape) == 3 and shape[-1] in _CHANNELS
        if not 3 <= len(shape) <= 4 or dtype.kind not in "biuf" or 0 in shape:
            detail = f"holds {quoted_value(str(dtype))} of shape {shape}"
            raise DataError.single("map-shape", where, detail, fix=_MAP_FIX)
        maps = iter([np.stack(list(entries))]) if is_one else entries
        channels = map(_channels_last, maps)
        first = list(islice(channels, _LOOKED_INTO))
        n = first[0].shape[2]
        if n not in _CHANNELS or first[0].shape[0] * first[0].shape[1] > MAX_PIXELS:
            height, width, n = first[0].shape
            detail = f"has maps of {width} x {height} pixels (width x height) with {n} channels"
            raise DataError.single("map-shape", where, detail, fix=_MAP_FIX)
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
