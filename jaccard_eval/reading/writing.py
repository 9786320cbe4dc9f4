"""What writers share: boxes that read back alike, what a format cannot carry, names that are files on any system."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise, product, repeat, takewhile
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import CORNER_ORDER, FLAGS, BoolArray, FloatArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import without_case
from jaccard_eval.findings import DataError, Example, FindingLog, Group, Severity, Where
from jaccard_eval.fixes import IMAGE_FOLDER, ON, Fix
from jaccard_eval.native import calls
from jaccard_eval.patterns import pattern
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.text import example_keys, pluralise, quoted_value

REACH = (0, 1, -1, 2, -2)  # units in the last place around the nearest number that are tried


def exact_coords(xywh: FloatArray, encoding: str, sizes: FloatArray | None = None) -> tuple[FloatArray, BoolArray]:
    """Return boxes (n, 4) in another encoding, and which of them are read back to the last bit.

    Reading subtracts (``cx - w / 2``, ``x2 - x1``) and, for fractions, multiplies by the image's size, with a rounding
    each; the nearest number may lie one or two units from the one that leads back. Boxes that were read from such
    numbers have one that does; others need not. Fractions are written where `sizes` (n, 2) has each box's image's.
    """
    units = np.ones((len(xywh), 2)) if sizes is None else sizes
    kind = "xyxy" if encoding in CORNER_ORDER else encoding
    x = _Axis.solve(xywh[:, 0], xywh[:, 2], units[:, 0], kind)
    y = _Axis.solve(xywh[:, 1], xywh[:, 3], units[:, 1], kind)
    coords = np.empty((len(xywh), 4))
    coords[:, CORNER_ORDER.get(encoding, slice(None))] = np.stack((x.first, y.first, x.second, y.second), axis=1)
    return coords, x.found & y.found


def exact_fractions(values: FloatArray, sizes: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the shares (n,) that values are of sizes, and which of them are multiplied back to the last bit."""
    near = _Neighbours(values, sizes)
    shares, found = near.at(0).copy(), near.lead_back(0).copy()
    for steps in REACH[1:]:
        better = ~found & near.lead_back(steps)
        shares[better], found[better] = near.at(steps)[better], True
    return shares, found


class _Axis:
    """The two numbers of boxes along one axis, (n,) each, and for which of them a solution was found."""

    def __init__(self, n: int) -> None:
        self.first, self.second = np.zeros(n), np.zeros(n)
        self.found = np.zeros(n, dtype=np.bool_)

    @classmethod
    def solve(cls, start: FloatArray, length: FloatArray, unit: FloatArray, encoding: str) -> _Axis:
        """Try the nearest numbers, then their neighbours for the boxes that are left; else keep the nearest."""
        axis = cls(len(start))
        lows, sides = _Neighbours(start, unit), _Neighbours(length, unit)
        # Steps away from the nearest start, length and sum; the nearest of all come first.
        trials = product(REACH, REACH, (0,) if encoding == "xywh" else REACH)
        _, *others = sorted(trials, key=lambda steps: sum(map(abs, steps)))
        axis.first, axis.second, good = _combine(lows.at(0).copy(), sides.at(0).copy(), encoding, 0)
        axis.found = good & lows.lead_back(0) & sides.lead_back(0)
        # Few neighbours of a start or a length lead back to it: only where both do is there anything to try.
        left: dict[tuple[int, int], npt.NDArray[np.intp]] = {}
        for low_step, side_step, sum_step in () if axis.found.all() else others:
            pair = low_step, side_step
            rows = left.get(pair)
            if rows is None:
                rows = np.flatnonzero(lows.lead_back(low_step) & sides.lead_back(side_step))
            left[pair] = rows = rows[~axis.found[rows]]
            if not len(rows):
                continue
            first, second, good = _combine(lows.at(low_step)[rows], sides.at(side_step)[rows], encoding, sum_step)
            found = rows[good]
            axis.first[found], axis.second[found], axis.found[found] = first[good], second[good], True
        return axis


class _Neighbours:
    """Numbers (n,) that are some steps from those which, times a unit, are nearest to targets."""

    def __init__(self, targets: FloatArray, unit: FloatArray) -> None:
        self._targets, self._unit, self._known = targets, unit, {0: targets / unit}
        self._leading: dict[int, BoolArray] = {}

    def at(self, steps: int) -> FloatArray:
        """Return the numbers that are so many steps away."""
        if steps not in self._known:
            nearer = steps - 1 if steps > 0 else steps + 1
            self._known[steps] = _beside(self.at(nearer), steps - nearer)
        return self._known[steps]

    def lead_back(self, steps: int) -> BoolArray:
        """Return for which of them the target is read: equal in every bit."""
        if steps not in self._leading:
            self._leading[steps] = self.at(steps) * self._unit == self._targets
        return self._leading[steps]


def _combine(low: FloatArray, side: FloatArray, encoding: str, steps: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the two numbers of an encoding, the sum so many steps from the nearest, and whether they lead back."""
    # Read back as the reader does it, operation by operation: only equal bits count.
    if encoding == "xywh":
        return low, side, np.ones(len(low), dtype=np.bool_)
    if encoding == "xyxy":
        high = _beside(low + side, steps)
        return low, high, high - low == side
    centre = _beside(low + side / 2, steps)
    return centre, side, centre - side / 2 == low


def _beside(values: FloatArray, steps: int) -> FloatArray:
    for _ in range(abs(steps)):
        values = np.nextafter(values, np.copysign(np.inf, steps))
    return values


IntArray = npt.NDArray[np.int64]
# What a column of rows has: one text, texts and which of them each row has, or rows of finite numbers (n, k).
Column = str | tuple[Sequence[str], npt.NDArray[Any]] | FloatArray


def rows_of(
    columns: Sequence[Column], n: int, *, mark: str = ",", json: bool = False, with_point: bool = True
) -> tuple[bytes, IntArray]:
    """Return n rows one behind the other as UTF-8, and where each ends: of every column what the row has of it.

    Numbers of a row have the mark between, and all digits of a float and no more: as `repr` or `json` spells them,
    whole ones without point if asked. What is half a character is written as an escape.
    """
    given = [*map(_in_bytes, columns)]
    written = calls.write_rows(given, n, mark=mark, json=json, with_point=with_point)
    if written is not None:
        return written
    cells = (_cells(column, n, mark, json=json, with_point=with_point) for column in given)
    rows = list(map(b"".join, zip(*cells, strict=True)))
    return b"".join(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)


def rows_by_owner(
    columns: Sequence[Column], owner: npt.NDArray[Any], n_owners: int, *, mark: str = " ", with_point: bool = True
) -> list[bytes]:
    """Return the rows of each owner, in their order; see `rows_of`."""
    order = np.argsort(owner, kind="stable")
    taken: list[Column] = []
    for column in columns:
        if isinstance(column, np.ndarray):
            taken.append(column[order])
        else:
            taken.append(column if isinstance(column, str) else (column[0], column[1][order]))
    rows, stops = rows_of(taken, len(order), mark=mark, with_point=with_point)
    last = np.append(0, np.cumsum(np.bincount(owner, minlength=n_owners)))
    return [rows[start:stop] for start, stop in pairwise(np.append(0, stops)[last].tolist())]


def _in_bytes(column: Column) -> calls.Pieces | FloatArray:
    if isinstance(column, np.ndarray):
        return column
    texts, codes = ((column,), None) if isinstance(column, str) else column
    return [*map(_encoded, texts)], codes


def _cells(column: calls.Pieces | FloatArray, n: int, mark: str, *, json: bool, with_point: bool) -> Iterable[bytes]:
    if isinstance(column, np.ndarray):
        return map(str.encode, json_rows(column) if json else number_rows(column, mark, with_point=with_point))
    texts, codes = column
    return repeat(texts[0], n) if codes is None else map(texts.__getitem__, codes.tolist())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def json_rows(values: FloatArray) -> list[str]:
    """Return rows of finite numbers (n, k) as JSON has them between brackets: all digits of a float, and no more."""
    return _json_text(values)[1:-1].split("],[") if len(values) else []


def number_rows(values: FloatArray, mark: str, *, with_point: bool = True) -> list[str]:
    """Return rows of finite numbers (n, k) as `repr` writes them, a mark between; whole ones without point if asked."""
    text = _json_text(values)
    if not with_point:
        text = text.replace(".0,", ",").replace(".0]", "]")
    rows = text[1:-1].replace("],[", "\n").replace(",", mark).split("\n") if len(values) else []
    # JSON has the same digits, but small and large numbers in another spelling: 0.00001 is 1e-05.
    size, (low, high) = np.abs(values), _FIXED
    odd = (((size < low) & (size > 0)) | (size >= high)).any(axis=1)
    for row in np.flatnonzero(odd).tolist():
        texts = map(repr, values[row].tolist())
        rows[row] = mark.join(texts if with_point else (text.removesuffix(".0") for text in texts))
    return rows


_FIXED = 1e-4, 1e16  # between them, `repr` writes no exponent


def _json_text(values: FloatArray) -> str:
    """Return rows of numbers as JSON: one bracket a row, a comma between rows."""
    # The whole array at once: `repr` of one number after the other takes three times as long.
    return msgspec.json.encode(values.tolist())[1:-1].decode("ascii")


UNIVERSE = ("sizes", "images", "names")
LOSSLESS_FIX = Fix.missing("Choose a format that can hold it, or drop it with {lossy}.", lossy=ON)


class LossErrors(FindingLog):
    """Findings of a writer that must not lose anything: its warnings are errors."""

    def _add(
        self, severity: Severity, code: str, examples: list[Example], fix: Fix | str | None, *rest: Any, **more: Any
    ) -> Group:
        if severity is Severity.WARNING:
            severity, fix = Severity.ERROR, fix or LOSSLESS_FIX
        return super()._add(severity, code, examples, fix, *rest, **more)


def report_losses(dataset: Dataset, path: Path, findings: FindingLog, carried: Collection[str]) -> None:
    """Report what the dataset holds but `carried` lacks: a warning for columns of boxes, a note for the rest."""
    boxes = dataset.table
    held = {flag: int(getattr(boxes, flag).sum()) for flag in FLAGS}
    shapes: object = boxes.shapes
    usual = shapes.areas() if isinstance(shapes, Quads) else boxes.xywh[:, 2] * boxes.xywh[:, 3]
    held["area"] = int((boxes.area != usual).sum())
    held["shapes"] = 0 if boxes.shapes is None else len(boxes)
    held["sizes"] = int(np.isfinite(dataset.images.sizes).all(axis=1).sum())
    held["images"] = len(dataset.images) - len(np.unique(boxes.image))
    held["names"] = len(dataset.labels) - len(np.unique(boxes.label))
    held["verified"] = 0 if dataset.facts.images is None else len(dataset.facts.images)
    held["hierarchy"] = sum(map(bool, dataset.facts.ancestors))
    for what, count in held.items():
        if count and what not in carried:
            detail = f"{_TEXTS[what]}: {count:,}; the output format cannot hold that"
            say = findings.note if what in UNIVERSE else findings.warning
            say("write-loss", Where(str(path), field=what), detail)


def encodable(text: str) -> str:
    """Return a text as UTF-8 can have it; file names of any bytes are none."""
    return _encoded(text).decode()


def report_escaped(texts: Iterable[str], path: Path, findings: FindingLog) -> None:
    """Warn of names that hold half a character, which do not come back as they are."""
    odd = [text for text in texts if encodable(text) != text]
    findings.add_rows(
        Severity.WARNING,
        "write-name",
        range(len(odd)),
        lambda row: (
            Where(str(path)),
            f"{quoted_value(odd[row])} cannot be written as UTF-8; written with escapes",
        ),
    )


def require_pixels(dataset: Dataset, what: str) -> None:
    """Raise a DataError unless the boxes are in pixels, for a format that holds nothing else."""
    if dataset.units != "px":
        detail = f"{what} holds pixels, but boxes are normalised and image sizes unknown"
        raise DataError.single("size-unknown", Where(dataset.path), detail, fix=IMAGE_FOLDER)


def require_sizes(dataset: Dataset, what: str, findings: FindingLog) -> None:
    """Record an error where boxes in pixels cannot become fractions of their image, for a format of fractions."""
    used = np.unique(dataset.table.image)
    unknown = used[np.isnan(dataset.images.sizes[used]).any(axis=1)]
    if dataset.units == "px" and len(unknown):
        names = example_keys(dataset.images.name(row) for row in unknown.tolist())
        count = pluralise(len(unknown), "image")
        detail = f"{what} holds fractions of the image, but the size of {count} is unknown: {names}"
        findings.error("size-unknown", Where(dataset.path), detail, fix=IMAGE_FOLDER)


def require_names(dataset: Dataset, what: str, findings: FindingLog) -> None:
    """Record an error where predictions have ids in place of names that a format needs: their ground truth knows these.

    Ground truth without names has nothing but its ids.
    """
    if dataset.role != "pred" or dataset.truth is not None:
        return
    images, labels = dataset.images, dataset.labels
    keys = zip(images.keys, images.file_names, strict=True)
    unnamed = {"images": [key for key, name in keys if name is None and isinstance(key, int)]}
    unnamed["classes"] = [] if labels.named else [key for key in labels.keys if isinstance(key, int)]
    held = [f"{kind} {example_keys(keys)}" for kind, keys in unnamed.items() if keys]
    if held:
        fix = Fix.missing("Pass the ground truth with {gt}.", gt=None)
        if not unnamed["images"]:
            words = "Pass the ground truth with {gt}, or name the classes by index with {names}."
            fix = Fix.missing(words, gt=None, names=None)
        detail = f"{what} needs names, but these predictions only have ids: {', '.join(held)}"
        findings.error("write-unnamed", Where(dataset.path), detail, fix=fix)


def masks_in_images(dataset: Dataset, path: Path, what: str, findings: FindingLog) -> Masks | None:
    """Return the pixels of the mask of each box in its image, polygons filled as COCO fills them.

    None, with an error, where there are no masks, or no sizes for polygons.
    """
    boxes, shapes = dataset.table, dataset.table.shapes
    if not isinstance(shapes, Outlines):
        detail = f"{what} holds masks, but {pluralise(len(boxes), 'box has', 'boxes have')} none"
        if len(boxes):
            findings.error(
                "write-loss", Where(dataset.path), detail, fix="Choose a format of boxes, such as coco or yolo."
            )
        return None
    known = dataset.images.sizes[boxes.image][:, ::-1]  # height and width
    unsized = np.flatnonzero(shapes.has_polygons & np.isnan(known).any(axis=1))
    if len(unsized):
        detail = f"{what} holds pixels, but the size of {pluralise(len(unsized), 'image')} with polygons is unknown"
        findings.error("size-unknown", Where(dataset.path), detail, fix=IMAGE_FOLDER)
        return None
    return shapes.in_images(np.where(shapes.has_polygons[:, None], known, shapes.masks.sizes).astype(np.int64))


def grey_png(values: npt.NDArray[Any]) -> bytes:
    """Return an image (height, width) of one channel as PNG, of 8 or 16 bits as its dtype has them."""
    height, width = values.shape
    big = values.astype(values.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in big)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8 * values.dtype.itemsize, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def polygon_of(shapes: Outlines, row: int) -> FloatArray | None:
    """Return the corners (k, 2) of a mask that is one polygon; None of any other."""
    first, behind = shapes.parts[row], shapes.parts[row + 1]
    return shapes.corners[shapes.rings[first] : shapes.rings[behind]] if behind - first == 1 else None


def pixels_of(masks: Masks, row: int) -> BoolArray:
    """Return a mask as an array (height, width)."""
    height, width = masks.sizes[row].tolist()
    changes = np.zeros(height * width + 1, dtype=np.int8)
    edges = masks.runs.edges[masks.runs.offsets[row] : masks.runs.offsets[row + 1]]
    changes[edges[::2]], changes[edges[1::2]] = 1, -1
    # A run that begins where another ends is none of its own.
    return np.cumsum(changes[:-1]).astype(np.bool_).reshape(width, height).T


def row_runs(pixels: BoolArray) -> list[int]:
    """Return the lengths of runs along the rows, of background first."""
    flat = pixels.ravel()
    edges = np.flatnonzero(np.diff(flat, prepend=False))
    lengths: list[int] = np.diff([0, *edges.tolist(), len(flat)]).tolist()
    return lengths


def report_rounded(exact: BoolArray, path: Path, findings: FindingLog) -> None:
    """Report how many boxes are not read back to the last bit."""
    rounded = np.flatnonzero(~exact)
    findings.add_rows(
        Severity.NOTE,
        "write-rounded",
        rounded,
        lambda _: (Where(str(path)), ""),
        summary=f"{pluralise(len(rounded), 'box changes', 'boxes change')} in the last digit when read back (rounding)",
    )


_TEXTS = {
    **{flag: f"boxes with {flag} set" for flag in FLAGS},
    "area": "boxes whose area is not width times height",
    "shapes": "boxes that are the bounds of a shape",
    "sizes": "images of known size",
    "images": "images without boxes",
    "names": "classes without boxes",
    "verified": "classes that are verified on an image",
    "hierarchy": "classes below others",
}
RESERVED = frozenset('<>:"|?*\\\0')  # in no file name of Windows

# Windows opens the device whatever follows a dot, and drops dots and blanks at the end of a name.
_DEVICE = pattern(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_ELSEWHERE = pattern(r"/|\.\./|[A-Za-z][A-Za-z0-9+.-]*:/")  # absolute, above, on a drive, or an address (s3://)


def below_shared_place(names: Sequence[str], path: Path, findings: FindingLog) -> list[str]:
    """Return POSIX paths of images without the folder that all share, where none of them can lie in the output.

    A note reports the folder.
    """
    if not names or not all(map(_ELSEWHERE.match, names)):
        return list(names)
    folders = [name.split("/")[:-1] for name in names]
    # What the first and the last in order share, all between them do.
    pairs = zip(min(folders), max(folders), strict=False)
    shared = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    if shared:
        detail = f"images are named by their paths below {quoted_value('/'.join(shared) + '/')}, their common folder"
        findings.note("write-loss", Where(str(path), field="image"), detail)
    return ["/".join(name.split("/")[len(shared) :]) for name in names]


def require_file_names(
    dataset: Dataset, names: Sequence[str], findings: FindingLog, *, is_usable: Callable[[str], bool] = bool
) -> None:
    """Record errors for images whose label file, `names` without suffix, leads elsewhere, cannot be, or is another's.

    Names are relative POSIX paths; `is_usable` decides whether the format reads a file of a name.
    """
    bad = [row for row, name in enumerate(names) if not (is_safe(name) and is_usable(name))]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (
            Where(dataset.path, field="image"),
            f"{quoted_value(names[row])} cannot be the name of a label file",
        ),
        fix="Rename the image: relative, no control characters, no dot or space at the end, not classes, readme, nul.",
    )
    images = dataset.images
    # Without case: on Windows and macOS "A" and "a" are one file, and the second would replace the first.
    first = first_rows([without_case(name) for name in names])
    shared = [row for row, earlier in enumerate(first) if earlier != row]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        shared,
        lambda row: (
            Where(dataset.path, field="image"),
            f"images {quoted_value(images.name(first[row]))} and {quoted_value(images.name(row))} share a label file",
        ),
        fix="Give the images different names.",
    )


def first_rows(names: Sequence[str]) -> list[int]:
    """Return for each name the row of the first one that equals it."""
    first: dict[str, int] = {}
    return [first.setdefault(name, row) for row, name in enumerate(names)]


def is_safe(name: str) -> bool:
    """Whether a relative POSIX path can be that of a file, on any system, and does not lead out of its folder."""
    path = PurePosixPath(name)
    whole = name.isprintable() and not RESERVED & set(name) and not path.is_absolute() and str(path) == name
    return whole and not any(part.endswith((".", " ")) or _DEVICE.match(part) for part in path.parts)
