"""Lines of text labels: numbers by file, and what their columns are, found over the whole set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, to_xywh
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog
from jaccard_eval.reading.files import decode, read_bytes, record_failures
from jaccard_eval.text import did_you_mean, quoted_value

IntArray = npt.NDArray[np.int64]

BATCH_BYTES = 16 * 1024 * 1024  # text that is split at once; bounds the memory that its tokens take

_BLANKS = b" \t\n\r\x0b\x0c"
_IS_BLANK = np.zeros(256, dtype=np.bool_)
_IS_BLANK[list(_BLANKS)] = True
_PLAIN_TEXT = b"0123456789.-eE" + _BLANKS  # text of these characters alone is tried as a whole
_NUMBER_LIST = msgspec.json.Decoder(list[float])
# What float() takes beyond this is refused: 1_000, +1, nan, infinity. Bytes exclude digits of other scripts.
_NUMBER = re.compile(rb"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLines:
    """All lines of a set of label files that are not blank.

    Parameters
    ----------
    values : ndarray of float64, shape (n_tokens,)
        Every field of every line; NaN where it is not a number.
    first, count : ndarray of int64, shape (n_lines,)
        Where a line's fields start in `values`, and how many it has.
    file, number : ndarray of int64, shape (n_lines,)
        Row of the line's file, and the line's number in it, from 1.
    text : mapping of int to str
        The fields of each line that has a word, separated by single blanks.
    """

    values: FloatArray
    first: IntArray
    count: IntArray
    file: IntArray
    number: IntArray
    text: dict[int, str]

    def __len__(self) -> int:
        return len(self.first)

    def trailing_numbers(self) -> IntArray:
        """Return how many numbers each line ends with."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        position = np.arange(len(self.values))
        last_word = np.maximum.reduceat(np.where(np.isnan(self.values), position, -1), self.first)
        return np.where(last_word < 0, self.count, self.first + self.count - 1 - last_word)


def read_label_files(paths: Sequence[Path], findings: FindingLog) -> LabelLines:
    """Read and split label files; a file that cannot be read is an error in `findings` and has no lines."""
    failures: list[DataError] = []
    parts = [_split(files) for files in _batches(paths, failures)]
    record_failures(failures, findings)
    return _concatenate(parts)


def _batches(paths: Sequence[Path], failures: list[DataError]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield rows and contents of the files in batches of limited size."""
    batch: list[tuple[int, bytes]] = []
    n_bytes = 0
    for row, path in enumerate(paths):
        try:
            data = read_bytes(path, empty_ok=True)
            if not data.isascii() or b"\0" in data:
                decode(path, data)  # for what it says of text that is not UTF-8
        except DataError as error:
            failures.append(error)
            continue
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        batch.append((row, data))
        n_bytes += len(data)
        if n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    yield batch


def _split(files: list[tuple[int, bytes]]) -> LabelLines:
    """Split a batch of files into lines and fields, in whole-array steps."""
    joined = b"\n" + b"".join(data + b"\n" for _, data in files)
    buffer = np.frombuffer(joined, dtype=np.uint8)
    is_plain = not joined.translate(None, _PLAIN_TEXT)
    blank = buffer <= ord(" ") if is_plain else _IS_BLANK[buffer]
    token_at = np.flatnonzero(blank[:-1] > blank[1:]) + 1
    feed_at = np.flatnonzero(buffer == ord("\n"))
    count = np.diff(np.searchsorted(token_at, feed_at), prepend=0)  # of the tokens before each feed
    used = np.flatnonzero(count)
    count = count[used]
    first = np.cumsum(count) - count
    starts = np.cumsum([1, *(len(data) + 1 for _, data in files[:-1])])  # of the files in the text
    file = np.searchsorted(starts, token_at[first], side="right") - 1
    tokens: list[bytes] = []
    values = _parse_plain(joined, token_at) if is_plain else None
    if values is None:
        tokens = joined.split()
        numbers = (float(token) if _NUMBER.fullmatch(token) else np.nan for token in tokens)
        values = np.fromiter(numbers, dtype=np.float64, count=len(tokens))
    # Lines with a word are kept as text: a class name, or what is to be shown of a fault.
    with_word = np.unique(np.searchsorted(first, np.flatnonzero(np.isnan(values)), side="right") - 1)
    spans = zip(with_word.tolist(), first[with_word].tolist(), count[with_word].tolist(), strict=True)
    return LabelLines(
        values=values,
        first=first,
        count=count,
        file=np.array([row for row, _ in files], dtype=np.int64)[file],
        number=used - np.searchsorted(feed_at, starts)[file] + 1,
        text={line: b" ".join(tokens[start : start + length]).decode() for line, start, length in spans},
    )


def _parse_plain(text: bytes, token_at: IntArray) -> FloatArray | None:
    """Return the numbers of plain text, read as one array of JSON; None where a token is no number of JSON.

    Such are .5, 1., 007, what overflows, and words. Negative zero is one, but loses its sign when written whole.
    """
    if not len(token_at):
        return np.empty(0)
    document = bytearray(text)
    at = np.frombuffer(document, dtype=np.uint8)
    at[token_at - 1] = ord(",")  # the blank before each token
    at[token_at[0] - 1], at[-1] = ord("["), ord("]")  # the text ends with a line feed
    try:
        numbers = _NUMBER_LIST.decode(document)
    except msgspec.MsgspecError:
        return None
    values = np.fromiter(numbers, dtype=np.float64, count=len(numbers))
    return None if (values == 0).any() and b"-0" in text else values


def _concatenate(parts: list[LabelLines]) -> LabelLines:
    token_offsets = np.cumsum([0, *(len(part.values) for part in parts)])
    line_offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    text = {
        line + offset: text
        for part, offset in zip(parts, line_offsets, strict=False)
        for line, text in part.text.items()
    }
    return LabelLines(
        values=np.concatenate([part.values for part in parts]),
        first=np.concatenate([part.first + offset for part, offset in zip(parts, token_offsets, strict=False)]),
        count=np.concatenate([part.count for part in parts]),
        file=np.concatenate([part.file for part in parts]),
        number=np.concatenate([part.number for part in parts]),
        text=text,
    )


LOW, HIGH = -0.01, 1.01  # normalised coordinates may leave 0..1 by this much, as Ultralytics' loader allows
PIXEL_LOOK = 2.0  # a coordinate above this is rather a pixel than a fraction gone astray
PIXEL = 1.0  # by which a box in pixels may leave its image: rounding, or coordinates counted from 1
MIN_EVIDENCE = 20  # boxes; fewer may have x2 > x1 and y2 > y1 by chance
STRAY_SHARE = 0.02  # boxes that may contradict an encoding and still be mistakes of their own
CLEAR_SHARE = 0.05  # boxes that must leave the image before centre-size is ruled out without a doubt
FOREIGN_SHARE = 0.1  # normalised boxes that must leave the image before another encoding than centre-size is tried

USUAL = ("cxcywh", "xywh", "xyxy")  # encodings that are found by looking; the others are read when asked for
FIELDS = {
    "cxcywh": ("cx", "cy", "w", "h"),
    "xywh": ("x", "y", "w", "h"),
    "xyxy": ("x1", "y1", "x2", "y2"),
    "xxyy": ("x1", "x2", "y1", "y2"),
    "yxyx": ("y1", "x1", "y2", "x2"),
}


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """An encoding; what was assumed, where the data does not prove it; and whether it can well be wrong."""

    encoding: str
    assumption: str = ""
    is_doubtful: bool = False


def is_mostly_normalised(coords: FloatArray) -> bool:
    """Return whether at least half of the boxes have no number that looks like a pixel."""
    return int((np.abs(coords) <= PIXEL_LOOK).all(axis=1).sum()) * 2 >= len(coords)


def is_normalised(coords: FloatArray) -> BoolArray:
    """Return for each box (n, 4) whether it lies in 0..1 with every number, within the tolerance."""
    return np.asarray(((coords >= LOW) & (coords <= HIGH)).all(axis=1))


def count_leaving(coords: FloatArray, encoding: str, sizes: FloatArray | None = None) -> int:
    """Count boxes that leave the image or turn inside out when read in an encoding.

    Parameters
    ----------
    coords : ndarray of float64, shape (n, 4)
    encoding : {"xywh", "xyxy", "cxcywh", "xxyy", "yxyx"}
    sizes : ndarray of float64, shape (n, 2), optional
        Width and height of each box's image, NaN where unknown; left out for normalised coordinates.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        xywh = to_xywh(coords, encoding)
        low, high = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    lowest, highest = (LOW, np.array(HIGH)) if sizes is None else (-PIXEL, sizes + PIXEL)
    return int(((low < lowest) | (high > highest) | (high < low)).any(axis=1).sum())


def choose_normalised(coords: FloatArray) -> EncodingChoice:
    """Return centre-size, the YOLO convention, unless many boxes contradict it and another encoding fits them."""
    leaving = {encoding: count_leaving(coords, encoding) for encoding in USUAL}
    best = min(USUAL, key=lambda encoding: leaving[encoding])
    n = len(coords)
    if n >= MIN_EVIDENCE and leaving["cxcywh"] > FOREIGN_SHARE * n and leaving[best] <= STRAY_SHARE * n:
        assumption = f"{leaving['cxcywh']:,} of {n:,} boxes would leave the image as cx cy w h; read as {best}"
        return EncodingChoice(best, assumption, is_doubtful=True)
    return EncodingChoice("cxcywh")


def choose_pixels(coords: FloatArray, sizes: FloatArray) -> EncodingChoice:
    """Return the encoding of boxes in pixels that the whole set supports.

    Corners, when x2 >= x1 and y2 >= y1 throughout (but for 2 % strays) and no other reading fits the images better:
    boxes of another encoding do that by chance only in small sets. Else left-top-size, unless the images are known and
    fewer boxes leave them as centre-size. What remains possible is said.

    Parameters
    ----------
    coords : ndarray of float64, shape (n, 4)
    sizes : ndarray of float64, shape (n, 2)
        Width and height of each box's image; NaN where unknown.
    """
    n = len(coords)
    leaving = {encoding: count_leaving(coords, encoding, sizes) for encoding in USUAL}
    if leaving["xyxy"] - min(leaving.values()) <= STRAY_SHARE * n:
        proven = n >= MIN_EVIDENCE or leaving["xywh"] > leaving["xyxy"]
        few = f"only {n:,} boxes, all with x2 >= x1 and y2 >= y1: read as x1 y1 x2 y2, but x y w h is possible"
        return EncodingChoice("xyxy", "" if proven else few, is_doubtful=not proven)
    if leaving["cxcywh"] < leaving["xywh"]:
        assumption = (
            f"{leaving['xywh']:,} boxes would leave their images as x y w h, {leaving['cxcywh']:,} as cx cy w h"
        )
        return EncodingChoice("cxcywh", f"{assumption}; read as cx cy w h")
    if leaving["cxcywh"] - leaving["xywh"] >= max(1.0, CLEAR_SHARE * n):
        return EncodingChoice("xywh")
    return EncodingChoice("xywh", "read as x y w h, but the boxes also fit as cx cy w h", is_doubtful=True)


MIN_POINTS = 6  # numbers of the smallest polygon, a triangle


@dataclass(frozen=True, slots=True)
class Columns:
    """The order of what follows the class: one of "box", "polygon", "obb", with "conf" and "track" around it."""

    order: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name that ``columns=`` takes."""
        return "-".join(self.order)

    @property
    def shape(self) -> str:
        """One of "box", "polygon" and "obb"."""
        return next(part for part in self.order if part in _SHAPES)

    @property
    def head(self) -> int:
        """How many numbers stand before the shape."""
        return self.order.index(self.shape)

    @property
    def tail(self) -> int:
        """How many numbers stand behind the shape."""
        return len(self.order) - 1 - self.head

    @property
    def box_width(self) -> int:
        """How many numbers a line has behind the class when its shape is a box."""
        return len(self.order) + 3

    def accepts(self, numbers: IntArray) -> BoolArray:
        """Return whether so many numbers fit; a track id behind a box may be missing, as trackers leave it out."""
        inner = numbers - self.head - self.tail
        fits: BoolArray
        if self.shape == "box":
            fits = (inner == 4) | ((inner == 3) & (self.order[-1] == "track"))
        else:
            fits = (inner == 8) if self.shape == "obb" else (inner >= MIN_POINTS) & (inner % 2 == 0)
        return fits

    def score_offset(self, numbers: IntArray) -> IntArray | None:
        """Where the score stands among the numbers of each line; None without scores."""
        if "conf" not in self.order:
            return None
        if self.order[0] == "conf":
            return np.zeros_like(numbers)
        return np.full_like(numbers, 4) if self.shape == "box" else numbers - self.tail

    def describe(self) -> str:
        """Return what a line looks like, for messages."""
        return f"{self.box_width + 1} columns ({self.fields()})" if self.shape == "box" else self.fields()

    def fields(self, box: str = "x y w h") -> str:
        """Return the names of all fields, with those of a box as given."""
        names = _SHAPES | {"box": box}
        return " ".join(("class", *(names.get(part, part) for part in self.order)))


_SHAPES = {"box": "x y w h", "polygon": "x1 y1 x2 y2 x3 y3 ...", "obb": "x1 y1 x2 y2 x3 y3 x4 y4"}

COLUMNS = {
    columns.name: columns
    for columns in (
        Columns(("box",)),
        Columns(("box", "conf")),
        Columns(("conf", "box")),
        Columns(("box", "track")),
        Columns(("box", "conf", "track")),
        Columns(("polygon",)),
        Columns(("polygon", "conf")),
        Columns(("polygon", "conf", "track")),
        Columns(("obb",)),
        Columns(("obb", "conf")),
    )
}


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A layout; what was assumed, where the data does not prove it; and whether that can be wrong."""

    columns: Columns
    assumption: str = ""
    is_undecided: bool = False


def named_columns(name: str) -> Columns:
    """Return the layout of a name."""
    if name not in COLUMNS:
        known = ", ".join(COLUMNS)
        raise UsageError(f"unknown column layout {quoted_value(name)}; known are {known}.{did_you_mean(name, COLUMNS)}")
    return COLUMNS[name]


def uses_names(lines: LabelLines) -> bool:
    """Whether most lines start with a word: classes are given by name, not by index."""
    return int(np.isnan(lines.values[lines.first]).sum()) * 2 > len(lines)


def choose_columns(lines: LabelLines, numbers: IntArray, *, by_name: bool, role: str) -> ColumnChoice:
    """Return the layout that the whole set supports.

    Parameters
    ----------
    lines : LabelLines
    numbers : ndarray of int64, shape (n_lines,)
        How many numbers follow the class in each line.
    by_name : bool
        Whether classes are given by name.
    role : {"gt", "pred"}

    Notes
    -----
    Five columns are a box. Six have the confidence last or second: where only one of the two columns lies in 0..1,
    it is that one; where both do, the reading under which fewer boxes leave the image; whole numbers above 1 behind a
    normalised box are track ids. Seven are box, confidence and track id when the sixth lies in 0..1 and the seventh is
    a whole number throughout, else a triangle. Longer lines are polygons, of predictions with a confidence if the
    number of columns is even. (Columns count the class.)
    """
    if by_name:
        return _choose_behind_names(lines, numbers)
    if int((numbers >= MIN_POINTS).sum()) * 2 > len(numbers):
        return _choose_points(lines, numbers, role)
    six = _block(lines, numbers, 5)
    seven = _block(lines, numbers, 6)
    if len(six) >= int((numbers == 4).sum()) and len(six):
        choice = _choose_six(six)
        continued = choice.columns.name == "box-conf" and _has_score_and_track(seven)
        return ColumnChoice(COLUMNS["box-conf-track"]) if continued else choice
    return ColumnChoice(COLUMNS["box-track"] if _are_track_ids(six[:, 4]) else COLUMNS["box"])


def _choose_behind_names(lines: LabelLines, numbers: IntArray) -> ColumnChoice:
    """Choose box or box and confidence: a number that is no confidence belongs to the name, as in "Boeing 737"."""
    counts = np.bincount(np.minimum(numbers, 5), minlength=6)
    if counts[5] <= counts[4]:
        return ColumnChoice(COLUMNS["box"])
    choice = _choose_six(_block(lines, numbers, 5, or_more=True))
    return ColumnChoice(COLUMNS["box"]) if choice.is_undecided or "track" in choice.columns.order else choice


def _choose_six(six: FloatArray) -> ColumnChoice:
    """Choose between the confidence last, the confidence second, and a track id last."""
    second, last = six[:, 0], six[:, 4]
    outside_second, outside_last = _count_outside(second), _count_outside(last)
    if is_mostly_normalised(six[:, :4]):
        if _are_track_ids(last):
            return ColumnChoice(
                COLUMNS["box-track"], "column 6 holds whole numbers above 1: taken for track ids, not for confidences"
            )
        if outside_last * 2 > len(six):
            return ColumnChoice(COLUMNS["box-conf"])
        outside_last += count_leaving(six[:, :4], "cxcywh")
        outside_second += count_leaving(six[:, 1:], "cxcywh")
    elif min(outside_second, outside_last) * 2 > len(six):
        if _are_track_ids(last):
            assumption = (
                "columns 2 and 6 are no confidences in 0..1; the whole numbers in column 6 are taken for track ids"
            )
            return ColumnChoice(COLUMNS["box-track"], assumption)
        assumption = "neither column 2 nor column 6 is a confidence in 0..1"
        return ColumnChoice(COLUMNS["box-conf"], assumption, is_undecided=True)
    if outside_second < outside_last:
        return ColumnChoice(COLUMNS["conf-box"])
    tie = "columns 2 and 6 can both be the confidence; taken from column 6"
    return ColumnChoice(COLUMNS["box-conf"], tie if outside_second == outside_last else "")


def _choose_points(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice:
    seven = _block(lines, numbers, 6)
    if len(seven) * 2 > len(numbers) and _has_score_and_track(seven):
        return ColumnChoice(
            COLUMNS["box-conf-track"], "7 columns: the sixth is taken for the confidence, the seventh for a track id"
        )
    long = numbers[numbers >= MIN_POINTS]
    ends = (lines.first + lines.count - 1)[numbers >= MIN_POINTS + 2]
    is_tracked = len(ends) > 0 and _are_track_ids(lines.values[ends]) and not _count_outside(lines.values[ends - 1])
    if role == "pred" and is_tracked:
        return ColumnChoice(COLUMNS["polygon-conf-track"])
    with_score = role == "pred" and int((long % 2 == 1).sum()) * 2 > len(long)
    shape = "obb" if bool((long - with_score == 8).all()) else "polygon"
    return ColumnChoice(COLUMNS[f"{shape}-conf" if with_score else shape])


def _block(lines: LabelLines, numbers: IntArray, width: int, *, or_more: bool = False) -> FloatArray:
    """Return the last `width` numbers (n, width) of the lines with so many, unless one of them is not finite."""
    rows = np.flatnonzero(numbers >= width if or_more else numbers == width)
    start = lines.first[rows] + lines.count[rows] - width
    block: FloatArray = lines.values[start[:, np.newaxis] + np.arange(width)]
    finite: FloatArray = block[np.isfinite(block).all(axis=1)]
    return finite


def _count_outside(column: FloatArray) -> int:
    """How many values are no confidence: below 0, above 1, or no number."""
    return int((~((column >= 0) & (column <= 1))).sum())


def _are_track_ids(column: FloatArray) -> bool:
    return len(column) > 0 and bool((column == np.floor(column)).all() and (column >= 0).all() and column.max() > 1)


def _has_score_and_track(seven: FloatArray) -> bool:
    track = seven[:, 5]
    return len(seven) > 0 and _count_outside(seven[:, 4]) == 0 and bool((track == np.floor(track)).all())
