"""Text labels: what the lines of a set hold behind the class, what is wrong with one, and their boxes and shapes."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import CORNER_ORDER, BoolArray, FloatArray, Shapes, from_xywh, to_xywh
from jaccard_eval.data.dataset import Key, unknown_sizes
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import bring
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.sources import (
    SEPARATED_LINE,
    LabelSource,
    add_images,
    find_description,
    find_kpt_shape,
    labels_of_folder,
    read_description,
    require_labels,
)
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import read_numbers
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import tracked
from jaccard_eval.reading.blocks import needs_whole, part_of
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import decode, read_bytes, record_failures
from jaccard_eval.reading.lines import mention_other_files
from jaccard_eval.reading.names import find_names, read_names, warn_repeated
from jaccard_eval.reading.oriented import check_outlines, rectangles
from jaccard_eval.reading.peek import IMAGE_FACTS
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import Runs, offsets_of
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

IntArray = npt.NDArray[np.int64]

_COUNT_DIGITS = 8  # at most, of a line that counts the others
BATCH_BYTES = 16 * 1024 * 1024  # text that is split at once; bounds the memory that its tokens take

_LINES_LOOKED_AT = 1_000  # for what separates fields
_BLANKS = b" \t\n\r\x0b\x0c"
_IS_BLANK = np.zeros(256, dtype=np.bool_)
_IS_BLANK[list(_BLANKS)] = True
_PLAIN_TEXT = b"0123456789.-eE" + _BLANKS  # text of these characters alone is tried as a whole
_NUMBER_LIST = msgspec.json.Decoder(list[float])
# What float() takes beyond this is refused: 1_000, +1, nan, infinity. Bytes exclude digits of other scripts.
_NUMBER = pattern(rb"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLines:
    """All lines of a set of label files that are not blank, in flat arrays: a set may have millions."""

    values: FloatArray  # every field of every line; NaN where it is not a number
    first: IntArray  # (n_lines,), where the fields of a line start in `values`
    count: IntArray  # (n_lines,), how many it has
    file: IntArray  # (n_lines,), row of its file
    number: IntArray  # (n_lines,), its number in the file, from 1
    text: dict[int, str]  # the fields of each line that has a word, separated by single blanks

    def __len__(self) -> int:
        return len(self.first)

    def trailing_numbers(self) -> IntArray:
        """Return how many numbers each line ends with."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        position = np.arange(len(self.values))
        last_word = np.maximum.reduceat(np.where(np.isnan(self.values), position, -1), self.first)
        return np.where(last_word < 0, self.count, self.first + self.count - 1 - last_word)


_DIFFICULT = " difficult"  # what ends a line of an object that Cartucho's evaluator ignores


def take_difficult(lines: LabelLines) -> tuple[LabelLines, BoolArray]:
    """Return the lines without the word that may end them, and which of them had it."""
    flagged = np.zeros(len(lines), dtype=np.bool_)
    flagged[[line for line, text in lines.text.items() if text.endswith(_DIFFICULT)]] = True
    if not flagged.any():
        return lines, flagged
    kept = np.ones(len(lines.values), dtype=np.bool_)
    kept[(lines.first + lines.count - 1)[flagged]] = False
    count = lines.count - flagged
    text = {line: text.removesuffix(_DIFFICULT) for line, text in lines.text.items()}
    return replace(lines, values=lines.values[kept], first=np.cumsum(count) - count, count=count, text=text), flagged


_FACTS = tuple(name.encode() for name in IMAGE_FACTS)
_FACT_LINES = pattern(rb"\A(?:(?:%s)[^\n]*(?:\n|\Z))+" % b"|".join(_FACTS), re.IGNORECASE)


def separator_of(paths: Sequence[Path]) -> bytes:
    """Return what stands between the fields of a set, where that is not a blank."""
    return _separator(next(_batches(paths, [])))


def read_label_files(paths: Sequence[Path], findings: FindingLog, mark: bytes = b"") -> LabelLines:
    """Read and split label files; a file that cannot be read is an error in `findings` and has no lines."""
    failures: list[DataError] = []
    parts: list[LabelLines] = []
    for batch in map(_uncounted, _batches(paths, failures)):
        mark = mark or (b"" if parts else _separator(batch))  # of a set, like everything that is detected
        parts.append(_split([(row, data.replace(mark, b" ") if mark else data) for row, data in batch]))
    record_failures(failures, findings)
    return _concatenate(parts)


def split_lines(texts: Sequence[str], files: IntArray) -> LabelLines:
    """Split the lines of one text; those that are not blank belong to `files`."""
    return replace(_split([(0, "\n".join(texts).encode())]), file=files)


def _batches(paths: Sequence[Path], failures: list[DataError]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield rows and contents of the files in batches of limited size."""
    batch: list[tuple[int, bytes]] = []
    n_bytes = 0
    bring(paths)
    for row, path in enumerate(tracked(paths, "files")):
        try:
            data = read_bytes(path, empty_ok=True)
            # Nearly all labels are ASCII, which needs no decoding to be known for UTF-8.
            if not data.isascii() or b"\0" in data:
                decode(path, data)  # for its error about text that is not UTF-8
        except DataError as error:
            failures.append(error)
            continue
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data[: len(IMAGE_FACTS[0])].lower().startswith(_FACTS):  # converters of DOTA leave its first lines
            data = _FACT_LINES.sub(lambda facts: b"\n" * facts[0].count(b"\n"), data)
        batch.append((row, data))
        n_bytes += len(data)
        if n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    yield batch


def _uncounted(batch: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return label files without their first lines where these count the others, in every file that has any lines."""
    rests: list[tuple[int, bytes]] = []
    counts: list[int] = []
    for row, data in batch:
        head = data[:_COUNT_DIGITS].partition(b"\n")[0]
        rests.append((row, data[len(head) :]))
        if head.strip().isdigit():
            counts.append(int(head))
        elif data.strip():
            return batch
    filled = [rest for _, rest in rests if rest]
    n_lines = [sum(map(bool, map(bytes.strip, rest.split(b"\n")))) for rest in filled]
    return rests if any(counts) and [count for count in counts if count] == [n for n in n_lines if n] else batch


def _separator(batch: list[tuple[int, bytes]]) -> bytes:
    """Return the comma or semicolon that stands between the fields of most lines; empty where blanks do."""
    texts = (data.decode("utf-8", "replace").split("\n") for _, data in batch)
    lines = list(islice((line for lines in texts for line in lines if line.strip()), _LINES_LOOKED_AT))
    found = Counter(match["mark"] for line in lines if (match := SEPARATED_LINE.fullmatch(line)))
    mark, count = found.most_common(1)[0] if found else ("", 0)
    return mark.encode() if count * 2 > len(lines) else b""


def _split(files: list[tuple[int, bytes]]) -> LabelLines:
    """Split a batch of files into lines and fields, in whole-array steps."""
    joined = b"\n" + b"".join(data + b"\n" for _, data in files)
    buffer = np.frombuffer(joined, dtype=np.uint8)
    is_plain = not joined.translate(None, _PLAIN_TEXT)
    blank = buffer <= ord(" ") if is_plain else _IS_BLANK[buffer]
    # A field starts behind a blank; the text begins with a line feed, so no start is missed.
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
    found = read_numbers(at, len(token_at))
    if found is not None:
        return found
    try:
        numbers = _NUMBER_LIST.decode(document)
    except msgspec.MsgspecError:
        return None
    values = np.fromiter(numbers, dtype=np.float64, count=len(numbers))
    return None if (values == 0).any() and b"-0" in text else values


def _concatenate(parts: list[LabelLines]) -> LabelLines:
    n_tokens = np.cumsum([0, *(len(part.values) for part in parts)])
    n_lines = np.cumsum([0, *map(len, parts)]).tolist()
    pairs = list(zip(parts, n_tokens.tolist(), n_lines, strict=False))  # with what stands before each part
    return LabelLines(
        values=np.concatenate([part.values for part in parts]),
        first=np.concatenate([part.first + tokens for part, tokens, _ in pairs]),
        count=np.concatenate([part.count for part in parts]),
        file=np.concatenate([part.file for part in parts]),
        number=np.concatenate([part.number for part in parts]),
        text={line + before: text for part, _, before in pairs for line, text in part.text.items()},
    )


LOW, HIGH = -0.01, 1.01  # normalised coordinates may leave 0..1 by this much, as Ultralytics' loader allows
PIXEL_LOOK = 2.0  # a coordinate above this is rather a pixel than a fraction gone astray
PIXEL = 1.0  # by which a box in pixels may leave its image: rounding, or coordinates counted from 1

USUAL = ("cxcywh", "xywh", "xyxy")  # encodings that are detected; the others are read when asked for
FIELDS = {
    "cxcywh": ("cx", "cy", "w", "h"),
    "xywh": ("x", "y", "w", "h"),
    "xyxy": ("x1", "y1", "x2", "y2"),
    "xxyy": ("x1", "x2", "y1", "y2"),
    "yxyx": ("y1", "x1", "y2", "x2"),
}

# Natural logarithms of odds. What leads by less than CLEAR is not settled: a factor of 1,000, because the boxes of one
# image resemble each other, and count as if each had been drawn anew.
CLEAR = 7.0
# Before any box is seen: fractions are centre-size, as YOLO has them; pixels are not, as no known tool writes that.
HABIT = {"norm": {"cxcywh": 0.0, "xyxy": -2.0, "xywh": -2.0}, "px": {"cxcywh": -2.0}}
IMPOSSIBLE = -1e12  # of an encoding under which most boxes are none

_LEAST_DENSITY = sys.float_info.min  # of a stray box; of numbers such as 1e100 it is 0, and has no logarithm
_STRAY = 0.005  # share of boxes that may have any numbers whatever
_LEAST_GOOD = 0.8  # share of boxes that must not be strays
_SHAPE = 0.8  # standard deviation of ln(width / height)
_FLAT = 0.1  # share of the image's side below which lengths are about equally likely
_LENGTHS = 2.4  # ln((1 + _FLAT) / _FLAT), which the density of lengths integrates to
_AT_BORDER = 0.04  # share of boxes that an exporter has cut at the border of the image
_BORDER = 0.0002  # share of the image's side within which a box touches it: the rounding of four decimals
_BEYOND = 0.2  # of its own side by which a detector may draw a box beyond the image
_OUTSIDE = 0.3  # how likely that is, compared with staying inside
_FOREIGN_SHARE = 0.1  # of normalised boxes that must contradict centre-size before the YOLO convention is given up
_MOST_ROWS = 20_000  # that are looked at; more make nothing clearer


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What boxes are seen in: units, sizes (n, 2) of their images, NaN where unknown, and how far the numbers reach."""

    units: str
    sizes: FloatArray
    reach: float

    @classmethod
    def of(cls, numbers: FloatArray, units: str, sizes: FloatArray) -> Frame:
        """Return the frame of the boxes with these `numbers` (n, columns)."""
        if units == "norm":
            return cls(units=units, sizes=np.ones((len(numbers), 2)), reach=1.0)
        # One box at 1e9 must not make all others look like points.
        reach = float(np.quantile(np.abs(numbers), 0.99)) if numbers.size else 1.0
        return cls(units=units, sizes=sizes, reach=max(reach, 1.0))

    def take(self, rows: npt.NDArray[np.int64]) -> Frame:
        """Return the frame of some of the boxes."""
        return Frame(units=self.units, sizes=self.sizes[rows], reach=self.reach)


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """An encoding; what to report about it if the boxes do not all prove it, and how loudly."""

    encoding: str
    assumption: str = ""
    severity: Severity = Severity.NOTE
    rivals: tuple[str, ...] = ()  # other encodings that the boxes do not rule out


def is_mostly_normalised(coords: FloatArray) -> bool:
    """Return whether at least half of the boxes have no number that looks like a pixel."""
    return int((np.abs(coords) <= PIXEL_LOOK).all(axis=1).sum()) * 2 >= len(coords)


def is_normalised(coords: FloatArray) -> BoolArray:
    """Return for each box (n, 4) whether it lies in 0..1 with every number, within the tolerance."""
    return np.asarray(((coords >= LOW) & (coords <= HIGH)).all(axis=1))


def distinct_rows(numbers: FloatArray, frame: Frame) -> npt.NDArray[np.int64]:
    """Return rows of numbers that differ visibly: a parked car in a thousand frames of a video is one witness."""
    with np.errstate(over="ignore"):
        cells = np.clip(np.round(numbers / frame.reach * 100), -1000, 1000).astype(np.int64)
    # Rows as one integer each: to find distinct rows of an array takes NumPy twenty times as long.
    _, rows = np.unique(cells @ 2001 ** np.arange(numbers.shape[1]), return_index=True)
    return np.sort(rows)[:: max(1, len(rows) // _MOST_ROWS)]


def outside_image(coords: FloatArray, encoding: str, role: str) -> tuple[BoolArray, BoolArray]:
    """Return which fractions (n, 4) leave 0..1, and which of these labels of the `role` must not hold."""
    outside = np.asarray(((coords < LOW) | (coords > HIGH)).any(axis=1))
    negative = (coords[:, 2:] < LOW).any(axis=1) & (encoding not in CORNER_ORDER)
    # A detector may draw a box beyond the image: up to the size of the image that is a warning. Ground truth is not
    # drawn so, and Ultralytics refuses it.
    refused = np.asarray(outside & ((role == "gt") | negative | (np.abs(coords) > PIXEL_LOOK).any(axis=1)))
    return outside, refused


def contradictions(coords: FloatArray, encoding: str, frame: Frame) -> BoolArray:
    """Return for each box (n, 4) whether it is inside out, or leaves its image, when read in an encoding."""
    with np.errstate(over="ignore", invalid="ignore"):
        xywh = to_xywh(coords, encoding)
        low, high = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
        allowed = -LOW if frame.units == "norm" else PIXEL
        # Comparisons with the NaN of an unknown size are false: such a box cannot leave its image at the far end.
        outside = (low < -allowed) | (high > frame.sizes + allowed) | (high < low)
    return np.asarray(outside.any(axis=1))


def fit(coords: FloatArray, encoding: str, frame: Frame, is_possible: BoolArray | None = None) -> float:
    """Return the log-likelihood of boxes (n, 4) read in an encoding.

    `is_possible` (n,) is false if something else contradicts the row, such as a score beyond 1.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        density = _densities(coords, encoding, frame)
    if is_possible is not None:
        density = np.where(is_possible, density, 0.0)
    if np.count_nonzero(density) < _LEAST_GOOD * len(density):
        return IMPOSSIBLE  # strays are exceptions: of two boxes, none can be one
    stray = max(frame.reach**-4.0, _LEAST_DENSITY)  # as likely anywhere
    return float(np.log((1 - _STRAY) * density + _STRAY * stray).sum())


def choose_encoding(coords: FloatArray, frame: Frame, *, is_scored: bool) -> EncodingChoice:
    """Return the encoding that the boxes (n, 4) support, and what has to be reported about it.

    Fractions are YOLO's where the boxes leave that possible. `is_scored` where the lines have a score: then pixels have
    no convention, so that corners and sizes that fit alike are an error; else they are corners if nothing contradicts.
    """
    rows = distinct_rows(coords, frame)
    seen = frame.take(rows)
    habit = HABIT[frame.units]
    fits = {encoding: fit(coords[rows], encoding, seen) + habit.get(encoding, 0.0) for encoding in USUAL}
    best = max(USUAL, key=lambda encoding: fits[encoding])
    rivals = tuple(encoding for encoding in USUAL if encoding != best and fits[best] - fits[encoding] < CLEAR)
    is_normalised_set = frame.units == "norm"
    if is_normalised_set and not is_scored:
        # A set of labels as large as YOLO's has strays of many kinds.
        n_foreign = contradictions(coords, "cxcywh", frame).sum() if best != "cxcywh" and not rivals else 0
        if n_foreign <= _FOREIGN_SHARE * len(coords):
            return EncodingChoice("cxcywh")
    against = {encoding: int(contradictions(coords, encoding, frame).sum()) for encoding in USUAL}
    if not rivals:
        return EncodingChoice(best, _minority(best, against, len(coords), frame.units))
    near = (best, *rivals)
    if is_normalised_set and "cxcywh" in near:
        others = ", ".join(spelled(encoding) for encoding in near if encoding != "cxcywh")
        return EncodingChoice("cxcywh", f"read as cx cy w h, as YOLO writes it, but the boxes also fit as {others}")
    # Centre-size and left-top-size differ at the borders alone, where small sets have no box; nobody writes the former.
    if is_scored and near != ("xywh", "cxcywh"):
        return EncodingChoice(best, "", Severity.ERROR, rivals)
    if "xyxy" in near and against["xyxy"] == 0:
        text = (
            f"only {len(coords):,} boxes, all with x2 >= x1 and y2 >= y1: read as x1 y1 x2 y2, but x y w h is possible"
        )
        return EncodingChoice("xyxy", text, Severity.WARNING)
    text = f"read as {spelled(best)}, but the boxes also fit as {spelled(rivals[0])}"
    return EncodingChoice(best, text, Severity.WARNING, rivals)


def spelled(encoding: str) -> str:
    """Return an encoding as messages name it: "cx cy w h"."""
    return " ".join(FIELDS[encoding])


def _minority(best: str, against: dict[str, int], n: int, units: str) -> str:
    """Report how many boxes contradict what the others prove, or the convention; nothing if none does."""
    usual = "cxcywh" if units == "norm" else "xywh"
    fewest = min(USUAL, key=lambda encoding: against[encoding])
    if against[fewest] < against[best] <= (1 - _LEAST_GOOD) * n:
        return (
            f"{against[best]:,} of {n:,} boxes are inverted or leave their image as {spelled(best)}, "
            f"{against[fewest]:,} as {spelled(fewest)}; the others are clearly {spelled(best)}, so all are"
            " read that way"
        )
    if best != usual and (units == "norm" or best == "cxcywh"):
        return (
            f"{against[usual]:,} of {n:,} boxes would leave their image as {spelled(usual)}, "
            f"{against[best]:,} as {spelled(best)}; read as {spelled(best)}"
        )
    return ""


def _densities(coords: FloatArray, encoding: str, frame: Frame) -> FloatArray:
    """Return how likely each box is, (n,), in 1/units**4; 0 where it is none. All encodings here have determinant 1."""
    xywh = to_xywh(coords, encoding)
    low, side = xywh[:, :2], xywh[:, 2:]  # (n, 2) each
    known = np.isfinite(frame.sizes)
    # Images of unknown size are as large as the boxes require. Centre-size borrows the extent of left-top-size: which
    # of the two reaches farther depends on where objects like to be, and proves nothing.
    far = coords[:, 2:] if encoding == "xyxy" else coords[:, :2] + coords[:, 2:]
    extent = np.quantile(far, 0.98, axis=0) if len(far) else np.ones(2)
    sizes = np.where(known, frame.sizes, np.maximum(extent, 1e-9))
    length = np.maximum(side, 0.002 * sizes)  # a box of no width is as likely as a thin one, not infinitely more
    shape = np.log(length / sizes)
    density = np.exp(-((shape[:, 0] - shape[:, 1]) ** 2) / (2 * _SHAPE**2)) / (_SHAPE * np.sqrt(2 * np.pi))
    density = density / (length + _FLAT * sizes).prod(axis=1) / _LENGTHS**2
    room = np.maximum(sizes - length, 0) + 0.02 * sizes
    width = _BORDER * sizes if frame.units == "norm" else np.full_like(sizes, 0.5)
    touching = (np.abs(low) <= width) + 1.0 * (known & (np.abs(low + side - sizes) <= width))
    place = (1 - _AT_BORDER) / room + _AT_BORDER / 2 * touching / (2 * width)
    beyond = np.maximum(-low, np.where(known, low + side - sizes, 0))
    tolerated = -LOW if frame.units == "norm" else PIXEL
    place = np.where(beyond > tolerated, np.where(known, _OUTSIDE, 1.0) / room, place)
    place = np.where((beyond > tolerated) & (beyond > _BEYOND * side), 0, place)
    good = (side >= 0).all(axis=1) & np.isfinite(coords).all(axis=1)
    return np.asarray(np.where(good, density * place.prod(axis=1), 0.0))


POSE = "pose"
MIN_POINTS = 6  # numbers of the smallest polygon, a triangle


@dataclass(frozen=True, slots=True)
class Columns:
    """The order of what follows the class: a shape, with "conf", "track" and "difficult" around it.

    The shape is one of "box", "polygon", "obb", "xywhr" and "pose". A pose is a box and then its points: how many, and
    two or three numbers for each, the third its visibility.
    """

    order: tuple[str, ...]
    points: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The name that ``columns=`` takes."""
        return "-".join(f"pose-{self.points[0]}x{self.points[1]}" if part == POSE else part for part in self.order)

    @property
    def has_box(self) -> bool:
        """Whether lines have a box of their own, and not only the one around their points."""
        return self.shape in ("box", POSE)

    @property
    def shape(self) -> str:
        """One of "box", "polygon", "obb", "xywhr" and "pose"."""
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
        """Return whether so many numbers fit; a track id after a box may be missing, as trackers omit it."""
        inner = numbers - self.head - self.tail
        fits: BoolArray
        if self.shape == POSE:
            fits = inner == 4 + self.points[0] * self.points[1]
        elif self.shape == "box":
            fits = (inner == 4) | ((inner == 3) & (self.order[-1] == "track"))
        elif self.shape in _ORIENTED_NUMBERS:
            fits = inner == _ORIENTED_NUMBERS[self.shape]
        else:
            fits = (inner >= MIN_POINTS) & (inner % 2 == 0)
        return fits

    def score_offset(self, numbers: IntArray) -> IntArray | None:
        """Where the score stands among the numbers of each line; None without scores."""
        if "conf" not in self.order:
            return None
        if self.order[0] == "conf":
            return np.zeros_like(numbers)
        behind_points = numbers - self.tail
        # Lines that are longer than those of boxes are polygons among them; a track id may be missing, the score not.
        return np.where(numbers > self.box_width, behind_points, 4) if self.shape == "box" else behind_points

    @property
    def sibling(self) -> Columns | None:
        """The layout that differs in the shape only and may occur in the same set: polygons among boxes."""
        if self.shape not in _SIBLINGS or self.order[0] == "conf" or "track" in self.order:
            return None
        return COLUMNS["-".join(_SIBLINGS.get(part, part) for part in self.order)]

    def describe(self) -> str:
        """Return what a line looks like, for messages."""
        # What the four numbers are is found out later, and a guess in a message reads like an answer.
        return f"{self.box_width + 1} columns ({self.fields('box')})" if self.shape == "box" else self.fields()

    def fields(self, box: str = "x y w h") -> str:
        """Return the names of all fields, with those of a box as given."""
        names = _SHAPES | {"box": box}
        return " ".join(("class", *(names.get(part, part) for part in self.order)))


# Ultralytics and darknet write the confidence of fractions last; in log-odds, as in `encodings`.
_SECOND_HABIT = -2.0
_SIBLINGS = {"box": "polygon", "polygon": "box"}
_SHAPES = {
    "box": "x y w h",
    "polygon": "x1 y1 x2 y2 x3 y3 ...",
    "obb": "x1 y1 x2 y2 x3 y3 x4 y4",
    "xywhr": "cx cy w h angle",
    "pose": "cx cy w h and points",
}
_ORIENTED_NUMBERS = {"obb": 8, "xywhr": 5}  # corners; centre, sizes and angle
_POSE_NAME = pattern(r"pose-([1-9][0-9]{0,3})x([23])(-conf)?(-track)?")
_NEAR = 0.75  # of width and height, from the centre of the box: how far nearly all points of a pose lie at most
_INSIDE, _ALL_INSIDE = 0.52, 0.98  # the same where nothing names poses, and the share of points that must lie so
_LEAST_POSE = 8  # numbers of the smallest pose that is looked for: a box and two points
_MOST_OUTLINES = 200  # that are looked at for crossings
_LEAST_LINES = 5  # that show whether a column has few values or many
_MANY_CLASSES = 100  # of which no set of a few lines has one for most of them

COLUMNS = {
    columns.name: columns
    for columns in (
        Columns(("box",)),
        Columns(("box", "conf")),
        Columns(("conf", "box")),
        Columns(("box", "track")),
        Columns(("track", "box")),
        Columns(("box", "conf", "track")),
        Columns(("polygon",)),
        Columns(("polygon", "conf")),
        Columns(("polygon", "conf", "track")),
        Columns(("obb",)),
        Columns(("obb", "conf")),
        Columns(("conf", "obb")),
        Columns(("obb", "conf", "track")),
        Columns(("xywhr",)),
        Columns(("xywhr", "conf")),
        Columns(("conf", "xywhr")),
        Columns(("difficult", "xywhr")),
        Columns(("difficult", "xywhr", "conf")),
    )
}


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A layout; what was assumed, where the data does not prove it; whether that can be wrong, and what settles it."""

    columns: Columns
    assumption: str = ""
    is_undecided: bool = False
    fix: Fix | str = ""
    encoding: str = ""  # where it was settled with the columns


def named_columns(name: str) -> Columns:
    """Return the layout of a name."""
    pose = _POSE_NAME.fullmatch(name)
    if pose is not None:
        ends = tuple(end.removeprefix("-") for end in pose.groups()[2:] if end)
        return Columns((POSE, *ends), (int(pose[1]), int(pose[2])))
    if name not in COLUMNS:
        if "=" in name:
            raise UsageError(f"column names ({quoted_value(name)}) work only for tables; text files have no header")
        known = ", ".join((*COLUMNS, "pose-17x3", "pose-17x3-conf"))
        raise UsageError(
            f"unknown column layout {quoted_value(name)}; choose from {known}.{did_you_mean(name, COLUMNS)}"
        )
    return COLUMNS[name]


def pose_columns(numbers: IntArray, kpt_shape: tuple[int, int], role: str) -> Columns:
    """Return the layout of poses whose points are known; predictions end with a score, and perhaps a track id."""
    spare = int(np.bincount(numbers).argmax()) - 4 - kpt_shape[0] * kpt_shape[1] if len(numbers) else 0
    return Columns((POSE, *("conf", "track")[: max(spare, 0)]) if role == "pred" else (POSE,), kpt_shape)


def choose_oriented(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return the layout of lines that are known to be oriented boxes, by how many numbers most have."""
    n = int(np.bincount(numbers).argmax()) if len(numbers) else 0
    scored = role == "pred"
    named = {8 + scored: "obb", 5 + scored: "xywhr"}.get(n)
    if scored and n == _ORIENTED_NUMBERS["obb"] + 2:
        return ColumnChoice(COLUMNS["obb-conf-track"])
    if named is None:
        return None
    return ColumnChoice(_scored(lines, numbers, named) if scored else COLUMNS[named])


def _scored(lines: LabelLines, numbers: IntArray, shape: str) -> Columns:
    """Return the layout of oriented boxes with scores, which are last unless those numbers cannot be scores."""
    block, _ = _block(lines, numbers, _ORIENTED_NUMBERS[shape] + 1)
    is_second = _count_outside(block[:, -1]) * 2 > len(block) and not _count_outside(block[:, 0])
    return COLUMNS[f"conf-{shape}" if is_second else f"{shape}-conf"]


def choose_pose(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return the layout of lines that are known to be poses, by how many numbers most have and where points lie."""
    fitting = _fitting_poses(lines, numbers, role)
    if not fitting:
        return None
    best = max(fitting.values())
    near = [name for name, inside in fitting.items() if inside > best - 0.2]
    # Of predictions a score is expected; without it there is nothing to rank.
    near = [name for name in near if name.endswith("-conf")] or near if role == "pred" else near
    if len(near) == 1:
        fix = Fix.of_side(role, "Settle it with {columns}.", columns=None)
        return ColumnChoice(named_columns(near[0]), f"read as {near[0]}", fix=fix)
    return _undecided(near, role, f"{int(np.bincount(numbers).argmax()) + 1} columns can be {' or '.join(near)}")


def _undecided(names: Sequence[str], role: str, text: str) -> ColumnChoice:
    """Return what stops the run and lists the layouts that the numbers leave, the first of them for now."""
    fix = Fix.of_side(role, "Pass {columns}.", columns=tuple(names))
    return ColumnChoice(named_columns(names[0]), text, is_undecided=True, fix=fix)


def _fitting_poses(
    lines: LabelLines, numbers: IntArray, role: str, *, near: float = _NEAR, least: float = 0.5
) -> dict[str, float]:
    """Return the layouts of poses that most lines fit, with the share of points that lie by their box.

    By it: as far from its centre as `near` of its sides; at `least` that share of points.
    """
    n = int(np.bincount(numbers).argmax()) if len(numbers) else 0
    block, _ = _block(lines, numbers, n)
    fitting: dict[str, float] = {}
    for width in (3, 2):
        for ends in ((), ("conf",), ("conf", "track")) if role == "pred" else ((),):
            n_points, rest = divmod(n - 4 - len(ends), width)
            if rest or n_points < 1 or not len(block):
                continue
            points = block[:, 4 : n - len(ends)].reshape(len(block), n_points, width)
            # A track id is a whole number, the visibility of an annotator too; a network is sure or less so.
            thirds = points[:, :, 2:]
            sound = bool((np.isin(thirds, (0, 1, 2)) if role == "gt" else (thirds >= 0) & (thirds <= 1)).all())
            if "track" in ends:
                sound = sound and _are_track_ids(block[:, -1])
            if ends and _count_outside(block[:, n - len(ends)]):
                continue
            near_box = np.abs(points[:, :, :2] - block[:, None, :2]) <= near * block[:, None, 2:4] + 1e-9
            placed = np.any(points[:, :, :2] != 0, axis=2)
            inside = int(np.count_nonzero(np.all(near_box, axis=2) & placed)) / max(int(np.count_nonzero(placed)), 1)
            if sound and inside >= least:
                fitting[Columns((POSE, *ends), (n_points, width)).name] = inside
    return fitting


def uses_names(lines: LabelLines) -> bool:
    """Whether most lines start with a word: classes are given by name, not by index."""
    return int(np.isnan(lines.values[lines.first]).sum()) * 2 > len(lines)


def choose_columns(
    lines: LabelLines, numbers: IntArray, sizes: FloatArray, *, by_name: bool, options: ReadOptions
) -> ColumnChoice:
    """Return the layout that the whole set supports; `numbers` (n_lines,) are those behind the class of each line.

    Five columns are a box. Six have the confidence last or second: whichever makes better boxes of the other four, in
    the encoding that suits them best; whole numbers above 1 behind a normalised box are track ids. Seven are box,
    confidence and track id when the sixth lies in 0..1 and the seventh is a whole number throughout, else a triangle.
    Longer lines are polygons, of predictions with a confidence if the number of columns is even. (Columns count the
    class.) `sizes` (n_lines, 2) are those of the image of each line, NaN where unknown.
    """
    if by_name:
        return _choose_behind_names(lines, numbers, sizes, options)
    if int((numbers >= MIN_POINTS - 1).sum()) * 2 > len(numbers) and (doubt := _doubted_class(lines, numbers, options)):
        return doubt
    if int((numbers >= MIN_POINTS).sum()) * 2 > len(numbers):
        doubt, chosen = _doubted_points(lines, numbers, options.role), _choose_points(lines, numbers, options.role)
        return doubt or _doubted_outlines(lines, numbers, chosen, options.role)
    if _ends_with_class(lines, numbers):
        text = "column 1 looks like a coordinate, and column 5 like the class"
        words = "Write the class first, or pass {columns} if column 1 is the class."
        fix = Fix.of_side(options.role, words, columns="box")
        return ColumnChoice(COLUMNS["box"], text, is_undecided=True, fix=fix)
    six, rows = _block(lines, numbers, 5)
    seven, _ = _block(lines, numbers, 6)
    if len(six) >= int((numbers == 4).sum()) and len(six):
        choice = _choose_six(six, sizes[rows], options)
        continued = choice.columns.name == "box-conf" and _has_score_and_track(seven)
        return ColumnChoice(COLUMNS["box-conf-track"]) if continued else choice
    return ColumnChoice(COLUMNS["box-track"] if _are_track_ids(six[:, 4]) else COLUMNS["box"])


def _choose_behind_names(lines: LabelLines, numbers: IntArray, sizes: FloatArray, options: ReadOptions) -> ColumnChoice:
    """Choose box or box and confidence: a number that is not a confidence belongs to the name, as in "Boeing 737".

    What is below 0 behind a box is an angle.
    """
    long, scored = _block(lines, numbers, 5 + (options.role == "pred"))[0], options.role == "pred"
    for name, at, of_score in (("xywhr-conf", 4, 5), ("conf-xywhr", 5, 0)) if scored else (("xywhr", 4, None),):
        is_scored = of_score is None or not _count_outside(long[:, of_score])
        if len(long) * 2 > len(lines) and is_scored and (long[:, at] < 0).any() and _are_angles(long[:, at]):
            return ColumnChoice(COLUMNS[name])
    counts = np.bincount(np.minimum(numbers, 5), minlength=6)
    if counts[5] <= counts[4]:
        return ColumnChoice(COLUMNS["box"])
    six, rows = _block(lines, numbers, 5, or_more=True)
    if min(_count_outside(six[:, 0]), _count_outside(six[:, 4])) * 2 > len(six):
        # No part of a name has decimals: percent, or raw outputs of a network.
        if options.role == "gt" or int((six[:, 0] % 1 != 0).sum()) * 2 <= len(six):
            return ColumnChoice(COLUMNS["box"])
        return _place_score(six, Frame.of(six, options.units or "px", sizes[rows]), options, is_bounded=False)
    choice = _choose_six(six, sizes[rows], options)
    return ColumnChoice(COLUMNS["box"]) if "track" in choice.columns.order else choice


def _choose_six(six: FloatArray, sizes: FloatArray, options: ReadOptions) -> ColumnChoice:
    """Choose between the confidence last, the confidence second, and a track id last."""
    second, last = six[:, 0], six[:, 4]
    outside_second, outside_last = _count_outside(second), _count_outside(last)
    units = options.units or ("norm" if is_mostly_normalised(six[:, :4]) else "px")
    if units == "norm":
        if _are_track_ids(last):
            assumption = "column 6 holds whole numbers above 1: read as track ids, not confidences"
            return ColumnChoice(COLUMNS["box-track"], assumption)
        if outside_last * 2 > len(six):
            return _doubted_angle(last, options.role) or ColumnChoice(COLUMNS["box-conf"])
    elif min(outside_second, outside_last) * 2 > len(six):
        if _are_track_ids(last):
            assumption = "column 2 is not a confidence in 0..1; the whole numbers in column 6 are read as track ids"
            return ColumnChoice(COLUMNS["box-track"], assumption)
        assumption = "neither column 2 nor column 6 is a confidence in 0..1"
        return _doubted_angle(last, options.role) or ColumnChoice(COLUMNS["box-conf"], assumption, is_undecided=True)
    return _place_score(six, Frame.of(six, units, sizes), options)


def _place_score(six: FloatArray, frame: Frame, options: ReadOptions, *, is_bounded: bool = True) -> ColumnChoice:
    """Choose the place of the confidence, which `is_bounded` to 0..1, together with the encoding of the box left.

    One without the other goes wrong: read as centre-size, corners leave their image wherever the confidence stands.
    """
    rows = distinct_rows(six, frame)
    seen, frame = six[rows], frame.take(rows)
    fits: dict[tuple[str, str], float] = {}
    # A column that alone is the same in all rows is a score that was filled in: boxes of one height have one width.
    constant = np.flatnonzero((seen == seen[0]).all(axis=0)).tolist() if len(seen) > 1 else []
    for name, prior in (("box-conf", 0.0), ("conf-box", _SECOND_HABIT if frame.units == "norm" else 0.0)):
        head = COLUMNS[name].head
        score = seen[:, 0 if head else 4]
        possible = (score >= 0) & (score <= 1) if is_bounded else None
        habit = prior + (2 * CLEAR if constant == [0 if head else 4] else 0.0)
        for encoding in USUAL if options.box is None else (options.box,):
            likelihood = fit(seen[:, head : head + 4], encoding, frame, possible)
            fits[name, encoding] = likelihood + habit + HABIT[frame.units].get(encoding, 0.0)
    ranked = sorted(fits, key=lambda reading: -fits[reading])
    best = ranked[0]
    near = [reading for reading in ranked if fits[best] - fits[reading] < CLEAR]
    columns = COLUMNS[best[0]]
    if all(name == best[0] for name, _ in near):
        return ColumnChoice(columns)
    # The boxes are broken under any reading: the checks of each line show how.
    if fits[best] <= IMPOSSIBLE:
        is_second = _count_outside(six[:, 0]) < _count_outside(six[:, 4])
        return ColumnChoice(COLUMNS["conf-box" if is_second else "box-conf"])
    usual = ("box-conf", options.box or "cxcywh")
    if frame.units == "norm" and usual in near:
        # Nearly all files of fractions are written so: to ask in every small set would help nobody.
        fields = {reading: COLUMNS[reading[0]].fields(spelled(reading[1])) for reading in near}
        fit_too = pluralise(len(six), "box also fits", "boxes also fit")
        text = f"read as {fields.pop(usual)}, as YOLO writes it, but {fit_too} as {', '.join(fields.values())}"
        fix = Fix.of_side(options.role, "Settle it with {columns}.", columns=None)
        if options.box is None:
            fix = Fix.of_side(options.role, "Settle it with {columns} and {box}.", columns=None, box=None)
        return ColumnChoice(COLUMNS[usual[0]], text, fix=fix, encoding=usual[1])
    best_of = list({reading[0]: reading for reading in reversed(near)}.values())[::-1]
    looks = " and as ".join(COLUMNS[name].fields(spelled(encoding)) for name, encoding in best_of)
    ways = " or ".join(f"{{columns:{name}}} {{box:{encoding}}}" for name, encoding in best_of)
    choices = [tuple(dict.fromkeys(part)) for part in zip(*best_of, strict=True)]
    fix = Fix.of_side(options.role, f"Pass {ways}.", columns=choices[0], box=choices[1])
    text = f"{pluralise(len(six), 'box fits', 'boxes fit')} as {looks}: column 2 or column 6 can be the confidence"
    return ColumnChoice(columns, text, is_undecided=True, fix=fix)


def _doubted_class(lines: LabelLines, numbers: IntArray, options: ReadOptions) -> ColumnChoice | None:
    """Return that lines in pixels begin with a coordinate; None where they may begin with a class.

    Only fractions are YOLO's: in pixels, texts of many tools have as many columns.
    """
    n, first = int(np.bincount(numbers).argmax()), lines.values[lines.first]
    block, _ = _block(lines, numbers, n)
    is_named = options.names is not None and bool((first < len(options.names)).all())
    if is_named or len(block) < _LEAST_LINES or is_mostly_normalised(block):
        return None
    if len(np.unique(first)) * 2 <= len(first) or not first.max() > _MANY_CLASSES:
        return None
    text = f"{n + 1} columns in pixels: the first looks like a coordinate, not like a class"
    layout = _choose_points(lines, numbers, options.role).columns if n >= MIN_POINTS else COLUMNS["box-conf"]
    return _refused(text, layout, options.role)


def _refused(text: str, columns: Columns, role: str) -> ColumnChoice:
    words = f"Write {columns.fields()}, or pass {{columns}} if that is what they are."
    return ColumnChoice(columns, text, is_undecided=True, fix=Fix.of_side(role, words, columns=columns.name))


def _doubted_outlines(lines: LabelLines, numbers: IntArray, choice: ColumnChoice, role: str) -> ColumnChoice:
    """Return a choice, refused where outlines in pixels cross themselves: their numbers are something else."""
    n, columns = int(np.bincount(numbers).argmax()), choice.columns
    block, _ = _block(lines, numbers, n)
    if columns.shape != "polygon" or not columns.accepts(np.array([n])).all() or is_mostly_normalised(block):
        return choice
    outlines = block[:_MOST_OUTLINES, : n - columns.tail].reshape(min(len(block), _MOST_OUTLINES), -1, 2)
    if np.count_nonzero(_cross_themselves(outlines)) * 2 <= len(outlines):
        return choice
    text = f"{n + 1} columns in pixels: as polygons, their outlines would cross themselves"
    return _refused(text, columns, role)


def _doubted_points(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return what else lines of one length can be than polygons; None where nothing supports that."""
    n, ends = int(np.bincount(numbers).argmax()), "-conf" if role == "pred" else ""
    block, _ = _block(lines, numbers, n)
    if len(block) < max(0.9 * len(numbers), 1):
        return None  # outlines differ in their points
    turned = block[:, int(n == 6 + bool(ends)) :][:, :5]  # with a flag before it
    is_turned = len(turned[0]) == 5 and bool((turned[:, 2:4] > 0).all()) and _are_angles(turned[:, 4])
    is_scored = not ends or not _count_outside(block[:, -1])
    if n == 5 + bool(ends) and ends and is_turned and is_scored and not _has_score_and_track(block):
        # A triangle of predictions would have no score.
        text = "7 columns: read as oriented boxes and their scores, not as triangles without any"
        fix = Fix.of_side(role, "For triangles, pass {columns}.", columns="polygon")
        return ColumnChoice(COLUMNS["xywhr-conf"], text, fix=fix)
    if n == 6 + bool(ends) and bool(np.isin(block[:, 0], (0, 1)).all()) and is_turned and is_scored:
        names = (f"difficult-xywhr{ends}", f"polygon{ends}")
        return _undecided(names, role, "column 2 is 0 or 1 in all lines: a flag and an oriented box, or a triangle")
    poses = _fitting_poses(lines, numbers, role, near=_INSIDE, least=_ALL_INSIDE) if n >= _LEAST_POSE else {}
    if not poses:
        return None
    polygon = _choose_points(lines, numbers, role).columns
    outlines = block[:, : n - polygon.tail].reshape(len(block), -1, 2) if polygon.accepts(numbers).any() else None
    if outlines is not None and np.count_nonzero(_cross_themselves(outlines[:_MOST_OUTLINES])) <= 0.1 * min(
        len(outlines), _MOST_OUTLINES
    ):
        return None
    names = (*poses, *([polygon.name] if outlines is not None else ()))
    text = f"{n + 1} columns: the points lie within the box that columns 2 to 5 would be"
    text += ", and the outline that they would draw crosses itself" if outlines is not None else ""
    return _undecided(names, role, text + " (no kpt_shape in a data.yaml)")


def _cross_themselves(outlines: FloatArray) -> BoolArray:
    """Return which closed outlines (n, points, 2) have two sides that cross, or turn back upon themselves."""
    ends = np.roll(outlines, -1, axis=1)

    def side_of(points: FloatArray) -> FloatArray:  # (n, sides, points): left or right of each side
        along = (ends - outlines)[:, :, None]
        to = points[:, None] - outlines[:, :, None]
        return np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    parted = side_of(outlines) * side_of(ends) < 0  # the ends of a side lie on both sides of another
    sides = ends - outlines
    after = np.roll(sides, -1, axis=1)
    turn = sides[..., 0] * after[..., 1] - sides[..., 1] * after[..., 0]
    back = (turn == 0) & ((sides * after).sum(axis=2) < 0)
    return np.asarray((parted & parted.swapaxes(1, 2)).any(axis=(1, 2)) | back.any(axis=1))


def _are_angles(column: FloatArray) -> bool:
    """Whether numbers may be angles, in radians or degrees, and are not only 0 and 1, as flags and some scores are."""
    most = float(np.abs(column).max()) if len(column) else np.inf
    return most <= 360 and not bool(np.isin(column, (0, 1)).all() and len(column) > 1)


def _doubted_angle(last: FloatArray, role: str) -> ColumnChoice | None:
    """Return that the last of six columns may be an angle, which is not a confidence."""
    if not _are_angles(last) or (role == "pred" and not (last < 0).any()):
        return None  # detectors write per cent
    text = f"column 6 has numbers from {last.min():g} to {last.max():g}, which cannot be confidences"
    if (last < 0).any():
        fix = Fix.of_side(role, "For others, pass {columns}.", columns="box-conf")
        return ColumnChoice(COLUMNS["xywhr"], f"{text}: read as angles of oriented boxes", fix=fix)
    return _undecided(("xywhr", "box-conf"), role, f"{text}: angles of oriented boxes, or something else")


def _ends_with_class(lines: LabelLines, numbers: IntArray) -> bool:
    """Whether four numbers and then the class stand in most lines, in pixels: the first would be a class of each."""
    block, _ = _block(lines, numbers + 1, 5)
    n = len(block)
    if n < _LEAST_LINES or n * 2 <= len(numbers) or is_mostly_normalised(block[:, :4]):
        return False
    first, last = block[:, 0], block[:, 4]
    is_coordinate = len(np.unique(first)) * 2 > n and first.max() > _MANY_CLASSES
    is_class = bool((last == np.floor(last)).all() and (last >= 0).all()) and len(np.unique(last)) * 2 <= n
    return bool(is_coordinate and is_class and last.max() <= _MANY_CLASSES)


def _choose_points(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice:
    seven, _ = _block(lines, numbers, 6)
    if len(seven) * 2 > len(numbers) and _has_score_and_track(seven):
        assumption = "7 columns: the sixth is read as the confidence, the seventh as a track id"
        return ColumnChoice(COLUMNS["box-conf-track"], assumption)
    long = numbers[numbers >= MIN_POINTS]
    ends = (lines.first + lines.count - 1)[numbers >= MIN_POINTS + 2]
    is_tracked = len(ends) > 0 and _are_track_ids(lines.values[ends]) and not _count_outside(lines.values[ends - 1])
    if role == "pred" and is_tracked:
        shape = "obb" if bool((long - 2 == _ORIENTED_NUMBERS["obb"]).all()) else "polygon"
        return ColumnChoice(COLUMNS[f"{shape}-conf-track"])
    with_score = role == "pred" and int((long % 2 == 1).sum()) * 2 > len(long)
    shape = "obb" if bool((long - with_score == 8).all()) else "polygon"
    if with_score and shape == "obb":
        return ColumnChoice(_scored(lines, numbers, shape))
    return ColumnChoice(COLUMNS[f"{shape}-conf" if with_score else shape])


def _block(lines: LabelLines, numbers: IntArray, width: int, *, or_more: bool = False) -> tuple[FloatArray, IntArray]:
    """Return the last `width` numbers (n, width) of the lines with so many, and their rows (n,), if all are finite."""
    rows = np.flatnonzero(numbers >= width if or_more else numbers == width)
    start = lines.first[rows] + lines.count[rows] - width
    block: FloatArray = lines.values[start[:, np.newaxis] + np.arange(width)]
    finite = np.isfinite(block).all(axis=1)
    return block[finite], rows[finite]


def _count_outside(column: FloatArray) -> int:
    """How many values are not a confidence: below 0, above 1, or not a number."""
    return int((~((column >= 0) & (column <= 1))).sum())


def _are_track_ids(column: FloatArray) -> bool:
    return len(column) > 0 and bool((column == np.floor(column)).all() and (column >= 0).all() and column.max() > 1)


def _has_score_and_track(seven: FloatArray) -> bool:
    track = seven[:, 5]
    return len(seven) > 0 and _count_outside(seven[:, 4]) == 0 and bool((track == np.floor(track)).all())


_SEPARATORS = {",": "commas", ";": "semicolons", "|": "pipes"}


@dataclass(frozen=True, slots=True)
class LineReporter:
    """Reports problems of lines in a draft, with their file and number."""

    lines: LabelLines
    paths: Sequence[Path]
    draft: Draft

    def place(self, line: int) -> Where:
        """Return file and line number of a line."""
        return Where(str(self.paths[int(self.lines.file[line])]), line=int(self.lines.number[line]))

    def report(
        self,
        code: str,
        rows: IntArray,
        detail: Callable[[int], str],
        fix: Fix | str,
        *,
        severity: Severity = Severity.ERROR,
        summary: str | Callable[[int], str] = "",
    ) -> None:
        """Record one finding about the lines `rows`."""
        self.draft.findings.add_rows(
            severity, code, rows, lambda line: (self.place(line), detail(line)), fix=fix, summary=summary
        )

    def word(self, line: int, position: int) -> str:
        """Return a field of a line as it was written, or as it was understood where only its value is known."""
        if line in self.lines.text:
            return quoted_value(self.lines.text[line].split(" ")[position])
        return f"{self.lines.values[self.lines.first[line] + position]:g}"


def check_columns(reporter: LineReporter, columns: Columns, numbers: IntArray, *, by_name: bool) -> BoolArray:
    """Return which lines have the columns of the set; the others are errors."""
    lines = reporter.lines
    if by_name and columns.shape == "box":
        # Whole numbers that end a class name do not count: "Boeing 737".
        spare = np.flatnonzero(numbers > columns.box_width)
        end = (lines.first + lines.count)[spare]
        spans = zip((end - numbers[spare]).tolist(), (end - columns.box_width).tolist(), strict=True)
        in_name = [all(map(float.is_integer, lines.values[start:stop].tolist())) for start, stop in spans]
        numbers = numbers.copy()
        numbers[spare[np.array(in_name, dtype=np.bool_)]] = columns.box_width
    good: BoolArray = columns.accepts(numbers)
    if columns.sibling is not None and not by_name:
        # As many numbers in pixels are rather a damaged line than a polygon: no tool is known to write those in text.
        good |= columns.sibling.accepts(numbers) & _are_fractions(lines)

    def detail(line: int) -> str:
        text = lines.text.get(line, "")
        separator = next((name for mark, name in _SEPARATORS.items() if mark in text), "")
        why = f": {quoted_value(text)}" if text else ""
        if text.startswith(("#", "//")):
            why += "; comments are not part of the format"
        elif separator:
            why += f"; fields are separated by spaces, not by {separator}"
        elif not text and lines.count[line] >= MIN_POINTS + 1:
            why = " (a polygon among boxes needs pairs of fractions)"
        return f"expected {columns.describe()}, got {pluralise(int(lines.count[line]), 'column')}{why}"

    words = "Give every line the same columns, or name other columns with {columns}."
    fix = Fix.of_side(reporter.draft.options.role, words, columns=None)
    reporter.report("columns", np.flatnonzero(~good), detail, fix)
    return good


def _are_fractions(lines: LabelLines) -> BoolArray:
    """Return which lines have nothing but fractions behind the class, as all labels of YOLO."""
    strange = ~((lines.values >= LOW) & (lines.values <= HIGH))  # words, too
    strange[lines.first] = False
    before = np.concatenate(([0], np.cumsum(strange)))  # (n_tokens + 1,)
    return np.asarray(before[lines.first + lines.count] == before[lines.first])


def check_indices(
    reporter: LineReporter, rows: IntArray, names: Sequence[str] | None, names_from: str, least: int = 0
) -> BoolArray:
    """Return which of the lines `rows` start with a class index, from the `least` on; the others are errors."""
    values = reporter.lines.values[reporter.lines.first[rows]]
    # Above 2**53 floats skip whole numbers, and two classes could become one.
    whole = np.isfinite(values) & (values >= least) & (values == np.floor(values)) & (values < 2**53)
    reporter.report(
        "class-invalid",
        rows[~whole],
        lambda line: f"class {reporter.word(line, 0)} is not a class index (0, 1, 2, ...)",
        "Write class indices in every line, or class names in every line.",
    )
    if names is None:
        return np.asarray(whole)
    known: BoolArray = whole & (values < len(names))
    reporter.report(
        "class-unknown",
        rows[whole & ~known],
        lambda line: f"class {reporter.word(line, 0)} is outside 0 to {len(names) - 1}, the indices of {names_from}",
        Fix.missing("Give the names that belong to these labels ({names}), or fix the class.", names=None),
    )
    return known


def check_finite(reporter: LineReporter, rows: IntArray, numbers: IntArray) -> BoolArray:
    """Return which of the lines `rows` hold finite numbers behind the class; the others are errors."""
    lines = reporter.lines
    end = lines.first[rows] + lines.count[rows]
    # Running sums show of every span at once whether it holds a number that is not finite.
    broken_before = np.concatenate(([0], np.cumsum(~np.isfinite(lines.values))))  # (n_tokens + 1,)
    bad = broken_before[end] > broken_before[end - numbers[rows]]

    def detail(line: int) -> str:
        start, stop = int(lines.first[line]), int(lines.first[line] + lines.count[line])
        fields = lines.values[stop - int(numbers[line]) : stop]
        at = stop - len(fields) + int(np.flatnonzero(~np.isfinite(fields))[0])
        word, place = reporter.word(line, at - start), f"column {at - start + 1} is"
        if np.isinf(lines.values[at]) or word.strip("'+-").lower() in ("nan", "inf", "infinity"):
            return f"{place} {word}; numbers must be finite"
        return f"{place} {word}, not a number{' (a decimal comma?)' if ',' in word else ''}"

    reporter.report("number-invalid", rows[bad], detail, "Write plain decimal numbers with a point.")
    return np.asarray(~bad)


def check_units(reporter: LineReporter, rows: IntArray, coords: FloatArray, units: str, encoding: str) -> None:
    """Report coordinates (n, 4) of the lines `rows` beyond 0..1 where normalised, and normalised boxes among pixels."""

    def box(line: int) -> FloatArray:
        return np.asarray(coords[np.searchsorted(rows, line)])

    if units == "px":
        # Whole numbers prove nothing: a box from 0 to 1 pixel lies in 0..1 as well.
        mixed = rows[is_normalised(coords) & (coords != np.floor(coords)).any(axis=1)]
        detail = "the box {} looks normalised, but the dataset is in pixels"
        alike = "Use the same units in all files."
        reporter.report("units-mixed", mixed, lambda line: detail.format(quoted_value(box(line).tolist())), alike)
        return
    outside, far = outside_image(coords, encoding, reporter.draft.options.role)

    def describe(line: int) -> str:
        numbers = box(line)
        worst = next(i for i in range(4) if not LOW <= numbers[i] <= HIGH)
        name, value = FIELDS[encoding][worst], numbers[worst]
        if name in ("w", "h") and value < 0:
            return f"{'width' if name == 'w' else 'height'} is {value:g}; it cannot be negative"
        return f"{name} is {value:g}, outside 0..1" + (" (looks like pixels)" if value > PIXEL_LOOK else "")

    words = "Fix the line, or pass {units} if the whole dataset is in pixels."
    fix = Fix.of_side(reporter.draft.options.role, words, units="px")
    reporter.report("coordinate-range", rows[far], describe, fix)
    near = rows[outside & ~far]

    def summary(count: int) -> str:
        return f"{pluralise(count, 'box leaves its image', 'boxes leave their images')}; kept as written"

    reporter.report("coordinate-range", near, describe, "", severity=Severity.WARNING, summary=summary)


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """Lines of labels: where the numbers of each shape begin among all values, and how many there are."""

    reporter: LineReporter
    rows: IntArray
    values: FloatArray
    first: IntArray
    count: IntArray


def polygons(values: FloatArray, first: IntArray, count: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the corners (c, 2) of polygons that stand among values, one behind the other, and their offsets."""
    offsets = offsets_of(count // 2)
    # All at once: a segmentation set has millions of them.
    at = np.repeat(first - 2 * offsets[:-1], count // 2) + 2 * np.arange(int(offsets[-1]))
    return np.stack((values[at], values[at + 1]), axis=1), offsets


def read_shapes(
    lines: ShapeRows, columns: Columns, drawn: BoolArray, coords: FloatArray, encoding: str
) -> tuple[BoolArray | None, Shapes | None]:
    """Return which objects do not count, and the shapes that are asked for; neither where lines have none.

    Lines that are `drawn` (n,) are polygons; the others have boxes, `coords` (n, 4) in an `encoding`.
    """
    iou_type = lines.reporter.draft.options.iou_type
    if iou_type == "keypoints" and columns.shape == POSE:
        return _read_poses(lines, columns)
    if columns.shape == "xywhr" or (iou_type in ORIENTED and columns.shape == "obb"):
        return None, _read_quads(lines, columns)
    if iou_type in MASKS and columns.shape != POSE and drawn.any():
        return None, _read_outlines(lines, drawn, coords, encoding)
    return None, None


def _read_outlines(lines: ShapeRows, drawn: BoolArray, coords: FloatArray, encoding: str) -> Outlines:
    """Return the polygon of each line; predictions that have a box alone are the rectangle of it."""
    draft, (bare,) = lines.reporter.draft, np.nonzero(~drawn)
    if draft.options.role == "gt":
        fix = Fix.missing("Give every object a polygon, or compare boxes: {iou_type}.", iou_type="bbox")
        lines.reporter.report(
            "segmentation-invalid", lines.rows[bare], lambda _: "is a box; expected a polygon of 3 points or more", fix
        )
    else:
        draft.findings.add_rows(
            Severity.WARNING,
            "mask-of-box",
            bare,
            lambda row: (lines.reporter.place(int(lines.rows[row])), ""),
            summary=f"{len(bare):,} of {len(drawn):,} predictions have no mask: the rectangle of the box is used",
        )
    corners, rings = polygons(lines.values, lines.first[drawn], lines.count[drawn])
    x, y, width, height = to_xywh(coords[bare], encoding).T
    # In the order of what COCO's loader makes of a box.
    boxes = np.stack((x, y, x, y + height, x + width, y + height, x + width, y), axis=1).reshape(-1, 2)
    n, n_boxes = len(drawn), len(bare)
    all_rings = offsets_of(np.concatenate((np.diff(rings), np.full(n_boxes, 4))))
    none = Masks(Runs(np.zeros(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)), np.zeros((n, 2), dtype=np.int64))
    every = np.ones(n, dtype=np.bool_)
    # A polygon has no area of its own in such files: that of its pixels counts.
    counted = np.concatenate((every[: n - n_boxes], np.zeros(n_boxes, dtype=np.bool_)))
    outlines = Outlines(np.concatenate((corners, boxes)), all_rings, np.arange(n + 1), none, every, counted)
    return outlines.take(np.argsort(np.concatenate((np.flatnonzero(drawn), bare)), kind="stable"))


def _read_quads(lines: ShapeRows, columns: Columns) -> Quads:
    """Return the oriented box of each line: four corners, or centre, sizes and angle."""
    draft, first = lines.reporter.draft, lines.first

    def place(row: int) -> Where:
        return lines.reporter.place(int(lines.rows[row]))

    if columns.shape == "xywhr":
        # As Ultralytics has them.
        quads = rectangles(lines.values[first[:, None] + np.arange(5)], draft, place, usual="rad-cw")
    else:
        quads = Quads(lines.values[first[:, None] + np.arange(8)].reshape(-1, 4, 2))
    check_outlines(quads, place, draft)
    return quads


def _read_poses(lines: ShapeRows, columns: Columns) -> tuple[BoolArray | None, Keypoints]:
    """Return which objects have no labelled point, and the points of each line."""
    (n_points, width), draft = columns.points, lines.reporter.draft
    at = lines.first[:, None] + 4 + np.arange(n_points * width)
    points = np.ones((len(at), n_points, 3))
    points[:, :, :width] = lines.values[at].reshape(len(at), n_points, width)
    if draft.options.role == "pred":
        return None, Keypoints(points)
    if width == 2:  # a point that is not there is written as zeros, or as negative numbers
        points[:, :, 2] = np.where((points[:, :, :2] == 0).all(axis=2) | (points[:, :, :2] < 0).any(axis=2), 0, 2)
    seen = points[:, :, 2]
    wrong = ~np.isin(seen, (0, 1, 2))

    def describe(line: int) -> str:
        row = int(np.searchsorted(lines.rows, line))
        point = int(np.flatnonzero(wrong[row])[0])
        return f"keypoint {point + 1}: visibility is {seen[row, point]:g}; expected 0 (not labelled), 1 or 2"

    words = "Write x, y and visibility of each keypoint, or name other columns with {gt_columns} (pose-17x2, ...)."
    fix = Fix.missing(words, gt_columns=None)
    lines.reporter.report("keypoints-invalid", lines.rows[wrong.any(axis=1)], describe, fix)
    detail = "labels have no areas: OKS measures distances by the area of the box"
    draft.findings.note("area-missing", Where(draft.path), detail)
    return np.all(seen == 0, axis=1), Keypoints(points)


LINE_BYTES = 45  # of a prediction, about, for so many of them at a time
_UNITS = {"norm": "normalised", "px": "pixels"}


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft."""
    source = _find_source(path, draft, options)
    paths = list(source.files.values())
    reporter = LineReporter(read_label_files(paths, draft.findings), paths, draft)
    sizes = add_images(source, draft)
    source = _with_names(source, draft, options, search=not uses_names(reporter.lines))
    if len(reporter.lines):
        _add_lines(reporter, list(source.files), sizes, source)
    elif source.names is not None:
        draft.set_classes(range(len(source.names)), source.names)
    mention_other_files(source.root, source.other_files, draft)


def read_labels_in_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield a draft with the images, then drafts with the boxes of some files each; ground truth is one part.

    Each part settles columns and encoding alone, and they must agree. Parts that are in no doubt decide as the whole:
    majorities and evidence add up, and what every line must show every part does.
    """
    if options.role == "gt":
        with part_of(draft) as part:
            read_labels(path, part, options)
            yield part
        return
    source = _find_source(path, draft, options)
    if source.other_files:
        raise needs_whole(path, "it holds other files than labels")
    keys, sizes = list(source.files), add_images(source, draft)
    with part_of(draft) as part:
        part.take_images(draft, range(len(draft.image_keys)))
        yield part
    at = {key: row for row, key in enumerate(draft.image_keys)}
    mark, is_named = separator_of(list(source.files.values())), False
    for group in _groups(list(source.files.values()), rows * LINE_BYTES):
        with part_of(draft) as part:
            own, paths = keys[group], list(source.files.values())[group]
            part.take_images(draft, [at[key] for key in own if key in at])
            reporter = LineReporter(read_label_files(paths, part.findings, mark), paths, part)
            part.findings.raise_errors()
            if not is_named and len(reporter.lines):
                source = _with_names(source, draft, options, search=not uses_names(reporter.lines))
                is_named = True
            if len(reporter.lines):
                _add_lines(reporter, own, sizes[group], source)
            yield part


def _groups(paths: list[Path], size: int) -> Iterator[slice]:
    """Yield slices of files that have about so many bytes together."""
    first = n_bytes = 0
    for row, path in enumerate(paths):
        n_bytes += path.stat().st_size
        if n_bytes >= size:
            yield slice(first, row + 1)
            first, n_bytes = row + 1, 0
    if first < len(paths):
        yield slice(first, len(paths))


def _find_source(path: Path, draft: Draft, options: ReadOptions) -> LabelSource:
    try:
        description = find_description(path)  # a data.yaml or a darknet obj.data
        if description is None:
            source = labels_of_folder(path, options.split, draft.findings)
            draft.has_splits = "split-chosen" in {finding.code for finding in draft.findings.findings()}
        else:
            draft.has_splits = True
            source = read_description(description, options.split, draft.findings)
        require_labels(source, options.role, draft.findings)
    except DataError as error:
        # What was reported before the search failed may be why it did.
        draft.findings.extend(error.findings)
        raise DataError(draft.findings.findings()) from None
    return source


def add_listed_lines(
    path: Path, images: Sequence[str], labels: Sequence[str], draft: Draft, options: ReadOptions
) -> None:
    """Add one text about many images: `labels` is a line for each of its lines, `images` for each that is not blank."""
    keys = list(dict.fromkeys(images))
    at = {key: row for row, key in enumerate(keys)}
    lines = split_lines(labels, np.array([at[image] for image in images], dtype=np.int64))
    reporter = LineReporter(lines, [path] * len(keys), draft)
    sizes = unknown_sizes(len(keys))
    draft.fill_sizes(sizes, keys)
    draft.set_images(keys, file_names=keys, sizes=sizes, listed=False)
    if len(lines):
        # Without label files: all that it provides is where a file of names may lie, next to the text.
        source = LabelSource(root=path.parent, files={})
        _add_lines(reporter, keys, sizes, _with_names(source, draft, options, search=not uses_names(lines)))


def _with_names(source: LabelSource, draft: Draft, options: ReadOptions, *, search: bool) -> LabelSource:
    """Give a source the names that the user gave, else its own, else (`search`) those of a file near the labels."""
    if source.kpt_shape is None and (given := find_kpt_shape(source.root)) is not None:
        source = replace(source, kpt_shape=given)
    if options.names is not None:
        warn_repeated(options.names, Where(draft.path, field="names"), draft.findings)
        return replace(source, names=options.names, names_from="the given list of names")
    found = find_names(source.root) if search and source.names is None else None
    if found is None:
        return source
    try:
        return replace(source, names=read_names(found, draft.findings), names_from=str(found))
    except DataError as error:
        first = error.findings[0].examples[0]
        draft.findings.warning("names-unusable", first.where, f"{first.detail}; it is not used")
        return source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """How the lines of a set are read."""

    reporter: LineReporter
    columns: Columns
    encoding: str  # empty: still to be found
    numbers: IntArray  # (n_lines,), behind the class
    difficult: BoolArray  # (n_lines,)


def _add_lines(reporter: LineReporter, keys: Sequence[str], file_sizes: FloatArray, source: LabelSource) -> None:
    """Add the classes and boxes of label lines to the draft.

    `keys` are the image of each file, `file_sizes` (n_files, 2) its width and height in pixels, NaN where unknown.
    """
    draft, lines, difficult = reporter.draft, reporter.lines, np.zeros(len(reporter.lines), dtype=np.bool_)
    if draft.options.role == "gt":
        lines, difficult = take_difficult(lines)
        reporter = replace(reporter, lines=lines)
    by_name = uses_names(lines)
    # Behind names only the numbers at the end count, and the first field is a name, even one such as "7".
    numbers = np.minimum(lines.trailing_numbers(), lines.count - 1) if by_name else lines.count - 1
    choice = _settle_columns(draft, lines, numbers, file_sizes[lines.file], by_name=by_name, source=source)
    columns = choice.columns
    good = check_columns(reporter, columns, numbers, by_name=by_name)
    if by_name and columns.shape == "box":
        numbers = np.minimum(numbers, columns.box_width)  # the rest ends the name
    rows = np.flatnonzero(good)
    if columns.shape == "polygon" and columns.sibling is not None and not columns.accepts(numbers[rows]).all():
        columns = columns.sibling  # boxes among polygons are polygons among boxes: the former have an encoding
    # Each check sees the lines that the ones before it kept, so that a line is reported once.
    if not by_name:
        # Of predictions, -1 may be a class that is counted once too low, which only the boxes of the truth can show.
        least = -1 if draft.options.role == "pred" and source.names is None else 0
        rows = rows[check_indices(reporter, rows, source.names, source.names_from, least)]
    rows = rows[check_finite(reporter, rows, numbers)]
    if by_name:
        labels: IntArray | list[Key] = _add_named_classes(draft, lines, rows, numbers, source)
    else:
        labels = lines.values[lines.first[rows]].astype(np.int64)
        if source.names is not None:
            draft.set_classes(range(len(source.names)), source.names)
            draft.details.append(f"class names from {source.names_from}")
        else:
            used = np.unique(labels).tolist()
            draft.set_classes(used, [str(index) for index in used], named=False)
    label_set = _Set(
        reporter=reporter,
        columns=columns,
        # Poses are Ultralytics' alone.
        encoding=draft.options.box or choice.encoding or ("cxcywh" if columns.shape == POSE else ""),
        numbers=numbers,
        difficult=difficult,
    )
    _add_rows(label_set, rows, keys, file_sizes, labels)


def _settle_columns(
    draft: Draft,
    lines: LabelLines,
    numbers: IntArray,
    sizes: FloatArray,
    *,
    by_name: bool,
    source: LabelSource,
) -> ColumnChoice:
    """Use the layout that the user or the description named, else the one that the set supports, and report it."""
    options = draft.options
    if options.columns is not None:
        return ColumnChoice(named_columns(options.columns))
    if source.kpt_shape is not None and not by_name:
        return ColumnChoice(pose_columns(numbers, source.kpt_shape, options.role))
    choice = choose_pose(lines, numbers, options.role) if options.iou_type == "keypoints" and not by_name else None
    if options.iou_type in ORIENTED and not by_name:
        choice = choose_oriented(lines, numbers, options.role)
    choice = choice or choose_columns(lines, numbers, sizes, by_name=by_name, options=options)
    words = "Name the layout with {columns} (box-conf, conf-box, box-track, ...)."
    fix = choice.fix or Fix.of_side(options.role, words, columns=None)
    if choice.is_undecided:
        draft.findings.error("columns-ambiguous", Where(draft.path), choice.assumption, fix=fix)
    elif choice.assumption:
        draft.findings.note("columns-assumed", Where(draft.path), choice.assumption, fix=fix)
    return choice


def _add_named_classes(
    draft: Draft, lines: LabelLines, rows: IntArray, numbers: IntArray, source: LabelSource
) -> list[Key]:
    """Add the classes that stand before the numbers of lines to the draft; return that of each of the lines `rows`."""
    labels: list[Key] = []
    for line in rows.tolist():
        if line in lines.text:
            labels.append(lines.text[line].rsplit(" ", int(numbers[line]))[0])
        else:  # a class called "7" was read as a number
            start, n_words = int(lines.first[line]), int(lines.count[line] - numbers[line])
            labels.append(" ".join(f"{value:g}" for value in lines.values[start : start + n_words]))
    given = dict.fromkeys(source.names or ())
    new = sorted({str(label) for label in labels} - given.keys())
    if given and new:
        detail = f"{len(new):,} classes are not among {source.names_from}: {', '.join(new[:5])}"
        draft.findings.warning("class-unknown", Where(draft.path), detail + (", ..." if len(new) > 5 else ""))
    names = [*given, *new]
    draft.set_classes(names, names)
    return labels


def _add_rows(
    label_set: _Set, rows: IntArray, keys: Sequence[str], file_sizes: FloatArray, labels: IntArray | list[Key]
) -> None:
    draft, lines = label_set.reporter.draft, label_set.reporter.lines
    numbers = label_set.numbers[rows]
    start = lines.first[rows] + lines.count[rows] - numbers
    offset = label_set.columns.score_offset(numbers)
    score = None if offset is None else lines.values[start + offset]
    coords = _coordinates(label_set, start + label_set.columns.head, numbers)
    files = lines.file[rows]
    outlined = (numbers > label_set.columns.box_width) & (label_set.columns.shape == "box")
    units, encoding = _settle_encoding(label_set, coords[~outlined], file_sizes[files[~outlined]])
    ignore, shapes, of_box = None, None, None
    turned = label_set.columns.shape == "xywhr"
    if draft.options.iou_type != BOXES or turned:
        first, n_numbers = start + label_set.columns.head, numbers - label_set.columns.head - label_set.columns.tail
        drawn = outlined if label_set.columns.has_box else np.ones(len(rows), dtype=np.bool_)
        values = ShapeRows(label_set.reporter, rows, lines.values, first, n_numbers)
        ignore, shapes = read_shapes(values, label_set.columns, drawn, coords, encoding)
        of_box = None if shapes is None else ~drawn
    if turned and shapes is not None:
        coords = from_xywh(shapes.bounds(), encoding)
        shapes = shapes if draft.options.iou_type in ORIENTED else None
        if units == "norm":
            detail = "fractions of width and height, which differ, cannot be turned by an angle"
            words = "Export four corners, or pixels ({units} if these are)."
            fix = Fix.of_side(draft.options.role, words, units="px")
            draft.findings.error("angle-ambiguous", Where(draft.path), detail, fix=fix)
    if outlined.any():  # the box around a polygon is written like the other boxes of the set
        coords[outlined] = from_xywh(to_xywh(coords[outlined], "xyxy"), encoding)
        what = pluralise(int(outlined.sum()), "polygon among the boxes is", "polygons among the boxes are")
        if shapes is None:
            draft.findings.note("outline", Where(draft.path), f"{what} read as the box around it")
    check_units(label_set.reporter, rows, coords, units, encoding)
    order = label_set.columns.order  # nothing is computed from some of its columns
    if "track" in order:
        draft.ignored["track_id"] += len(rows)
        draft.findings.note("track-ids", Where(draft.path), "the track ids are not used")
    difficult = label_set.difficult[rows]
    if order[0] == "difficult":
        difficult = difficult | (lines.values[start] == 1)
    if "conf" in order and draft.options.role == "gt":
        draft.ignored["score"] += len(rows)
        draft.findings.note("gt-scores", Where(draft.path), "the confidences of ground truth are not used")
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, files),
            label=labels,
            coords=coords,
            encoding=encoding,
            units=units,
            score=score,
            difficult=difficult if difficult.any() else None,
            ignore=ignore,
            shapes=shapes,
            of_box=of_box,
            no_score=_poses_without_score(label_set, numbers),
            place=lambda row: label_set.reporter.place(int(rows[row])),
        )
    )


def _poses_without_score(label_set: _Set, numbers: IntArray) -> tuple[str, Fix | str] | None:
    """Return why polygons that are all as long have no score, and how to read them as poses."""
    n = int(numbers[0]) if len(numbers) else 0
    if label_set.columns.name != "polygon" or (numbers != n).any() or n < 14 or (n - 5) % 3:
        return None
    words = "Pass {pred_columns} for poses, or export the scores."
    fix = Fix.missing(words, pred_columns=f"pose-{(n - 5) // 3}x3-conf")
    return ". If these are poses, they may have one", fix


def _coordinates(label_set: _Set, start: IntArray, numbers: IntArray) -> FloatArray:
    """Boxes (n, 4) as they are written; of each polygon, the corners of the box around it."""
    values, columns = label_set.reporter.lines.values, label_set.columns
    coords = np.zeros((len(start), 4))
    outlined = np.full(len(start), not columns.has_box)
    if columns.shape == "box":
        outlined = numbers > columns.box_width
    coords[~outlined] = values[start[~outlined, np.newaxis] + np.arange(4)]
    if outlined.any():
        points, offsets = polygons(values, start[outlined], numbers[outlined] - columns.head - columns.tail)
        offsets = offsets[:-1]
        coords[outlined] = np.hstack((np.minimum.reduceat(points, offsets), np.maximum.reduceat(points, offsets)))
    return coords


def _settle_encoding(label_set: _Set, coords: FloatArray, sizes: FloatArray) -> tuple[str, str]:
    """Return units and encoding: what the user named, else what the set supports; report what was assumed."""
    draft, columns = label_set.reporter.draft, label_set.columns
    options, where, findings = draft.options, Where(draft.path), draft.findings
    units = options.units or ("norm" if is_mostly_normalised(coords) else "px")
    if not columns.has_box:
        what = "polygons" if columns.shape == "polygon" else "oriented boxes"
        if options.iou_type not in (*MASKS, *ORIENTED):
            findings.note("outline", where, f"{len(coords):,} {what} are read as the boxes around them")
        if options.box is not None:
            fix = Fix.of_side(options.role, "Remove {box}.", box=None)
            findings.error("outline-encoding", where, f"{what} have no box encoding", fix=fix)
        draft.details.append(f"{columns.fields()}, {_UNITS[units]}")
        return units, "xyxy"
    encoding = label_set.encoding
    if not encoding:
        choice = choose_encoding(coords, Frame.of(coords, units, sizes), is_scored="conf" in columns.order)
        encoding = choice.encoding
        readings = (encoding, *choice.rivals)
        if choice.severity is not Severity.ERROR:
            if choice.assumption:
                fix = Fix.of_side(options.role, "Settle it with {box}.", box=None)
                findings.add_one(choice.severity, "box-assumed", where, choice.assumption, fix=fix)
        elif not findings.has("columns-ambiguous"):  # which names the encodings as well
            detail = f"{pluralise(len(coords), 'box fits', 'boxes fit')} as {' and as '.join(map(spelled, readings))}"
            fix = Fix.of_side(options.role, "Pass {box}.", box=tuple(readings))
            findings.error("columns-ambiguous", where, detail, fix=fix)
    draft.details.append(f"{columns.fields(spelled(encoding))}, {_UNITS[units]}")
    return units, encoding
