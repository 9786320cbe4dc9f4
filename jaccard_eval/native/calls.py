"""What the compiled core does: JSON of COCO, shapes, label maps, hashing, ranking, pairing, curves; None without it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from io import BufferedIOBase, BufferedReader, BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import BYTES, Stage

IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.int8]

FIRST_CAPACITY, LAST_CAPACITY = 2**10, 2**18  # places of a table that takes half as many pairs


def count_pairs(gt: npt.NDArray[Any], pred: npt.NDArray[Any]) -> tuple[IntArray, IntArray, IntArray] | None:
    """Return the pairs of values that the pixels of two maps have, in no order, and how many pixels have each.

    None where values are none of 8, 16 or 32 bits without sign, or there are very many pairs.
    """
    core, kind = load_core(), np.result_type(gt, pred)
    if core is None or gt.shape != pred.shape or kind.kind != "u" or kind.itemsize > 4:
        return None
    gt, pred = (np.ascontiguousarray(values, kind) for values in (gt, pred))
    capacity, n = FIRST_CAPACITY, -1
    while n < 0:
        if capacity > LAST_CAPACITY:
            return None
        key, pixels = np.empty(capacity, np.uint64), np.zeros(capacity, np.int64)
        places = (gt.ctypes.data, pred.ctypes.data, capacity, key.ctypes.data, pixels.ctypes.data)
        n = core.jaccard_count_pairs(gt.size, kind.itemsize, *places)
        capacity *= 16
    taken = np.flatnonzero(pixels)
    key = key[taken]
    return (key >> np.uint64(32)).astype(np.int64), (key & np.uint64(2**32 - 1)).astype(np.int64), pixels[taken]


RowArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]

WORD_BYTES = 8
CHUNK_PAIRS = 1 << 16  # kept at first, unless a block is larger


def hash_rows(
    hashes: tuple[WordArray, WordArray, WordArray],
    rows: tuple[RowArray, RowArray, npt.NDArray[np.uint8]],
    xywh: FloatArray,
    score: FloatArray | None,
    area: FloatArray,
) -> WordArray | None:
    """Hash rows of boxes; see `signature`.

    `hashes` are those of image names and class names, and what image, class and flags are multiplied by; `rows` the
    image, class and flags of each box.
    """
    core = load_core()
    if core is None:
        return None
    image, label, primes = (np.ascontiguousarray(one, np.uint64) for one in hashes)
    types = (np.int32, np.int32, np.uint8, np.float64, np.float64)
    given = [np.ascontiguousarray(*one) for one in zip((*rows, xywh, area), types, strict=True)]
    scores = None if score is None else np.ascontiguousarray(score, np.float64)
    state = np.empty(len(xywh), np.uint64)
    tables = (table.ctypes.data for table in (image, label, primes))
    *columns, areas = (column.ctypes.data for column in given)
    at = None if scores is None else scores.ctypes.data
    core.jaccard_hash_rows(len(state), *tables, *columns, at, areas, state.ctypes.data)
    return state


def pack_rows(rows: IntArray, xywh: FloatArray, score: FloatArray | None, area: FloatArray, words: WordArray) -> bool:
    """Fill the first six words of rows of boxes (r, k), see `signature`; return whether it was done."""
    core = load_core()
    if core is None:
        return False
    boxes, areas = np.ascontiguousarray(xywh, np.float64), np.ascontiguousarray(area, np.float64)
    scores = None if score is None else np.ascontiguousarray(score, np.float64)
    at = None if scores is None else scores.ctypes.data
    places = np.ascontiguousarray(rows, np.int64)
    pointers = places.ctypes.data, boxes.ctypes.data, at, areas.ctypes.data, words.ctypes.data
    core.jaccard_pack_rows(len(rows), words.shape[1], *pointers)
    return True


def digest_rows(
    head: npt.NDArray[Any], columns: Sequence[tuple[npt.NDArray[Any], IntArray]], size: int
) -> bytes | None:
    """Return the first bytes of the SHA-256 of each row, one behind the other; see `signature.digest_each`.

    A row is one of the head (n, h), then what each column has from its bounds[i] to bounds[i + 1]; all have 64 bits.
    None on processors without instructions for it.
    """
    core = load_core()
    if core is None or any(values.dtype.itemsize != WORD_BYTES for values, _ in columns):
        return None
    given = [np.ascontiguousarray(values) for values, _ in columns]
    places = np.array([values.ctypes.data for values in given], np.uint64)
    bounds = [np.ascontiguousarray(one, np.int64) for _, one in columns]
    bound_places = np.array([one.ctypes.data for one in bounds], np.uint64)
    floats = sum((values.dtype.kind == "f") << place for place, values in enumerate(given))
    digests = np.empty(len(head) * size, np.uint8)
    heads = len(head), head.shape[1], head
    done = _call(core.jaccard_digest_rows, *heads, len(given), places, bound_places, floats, size, digests)
    return None if done < 0 else digests.tobytes()


def rank(
    score: FloatArray, label: IntArray, image: RowArray, turn: IntArray, *, n_images: int, cap: int
) -> tuple[IntArray, IntArray, RowArray] | None:
    """Return row, key and rank of detections in class order, equal scores in the order of `turn`; see `matching`."""
    core = load_core()
    if core is None:
        return None
    types = (np.float64, np.int64, np.int32, np.int64)
    given = [np.ascontiguousarray(*column) for column in zip((score, label, image, turn), types, strict=True)]
    order, key, place = np.empty(len(score), np.int64), np.empty(len(score), np.int64), np.empty(len(score), np.int32)
    n_labels = int(label.max(initial=-1)) + 1
    columns = [column.ctypes.data for column in (*given, order, key, place)]
    n = core.jaccard_rank(len(score), n_images, n_labels, cap, *columns)
    return None if n < 0 else (order[:n], key[:n], place[:n])


def pair_boxes(
    boxes: FloatArray,
    rows: IntArray,
    others: FloatArray,
    blocks: tuple[IntArray, IntArray],
    crowd: BoolArray | None,
    *,
    threshold: float,
    offset: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Pair some rows of boxes with their blocks of others, (n, 4) each, where they overlap by at least `threshold`."""
    core = load_core()
    if core is None:
        return None
    n, row = len(rows), ctypes.c_int64(0)
    chunks: list[tuple[IntArray, IntArray, FloatArray]] = []
    crowd = np.zeros(len(others), np.bool_) if crowd is None else crowd
    types = (np.float64, np.int64, np.float64, np.int64, np.int64, np.bool_)
    given = [np.ascontiguousarray(*one) for one in zip((boxes, rows, others, *blocks, crowd), types, strict=True)]
    capacity = max(CHUNK_PAIRS, int((blocks[1] - blocks[0]).max(initial=0)))
    while not chunks or row.value < n:
        chunk = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
        arrays = (array.ctypes.data for array in (*given, *chunk))
        found = core.jaccard_pair_boxes(n, ctypes.byref(row), capacity, threshold, offset, *arrays)
        chunks.append((chunk[0][:found], chunk[1][:found], chunk[2][:found]))
        # As many as there are by now: few large arrays, which the system gets back at once where small ones stay.
        capacity = max(capacity, sum(len(part) for part, _, _ in chunks))
    return joined_columns(chunks)


def joined_columns(chunks: list[tuple[IntArray, IntArray, FloatArray]]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the columns of chunks as one of each; the list is emptied, as all rows twice may not fit into memory."""
    if len(chunks) == 1:
        return chunks.pop()
    columns: list[list[Any]] = [list(column) for column in zip(*chunks, strict=True)]
    chunks.clear()
    # No more than one column is there twice.
    det, gt, overlap = (np.concatenate(columns.pop(0)) for _ in range(3))
    return det, gt, overlap


def first_come(
    rows: IntArray, objects: IntArray, overlap: FloatArray, thresholds: FloatArray, reusable: BoolArray
) -> BoolArray | None:
    """Return which of some rows of pairs are the first of their object to reach each threshold, (T, r); see `matching`.

    Of pairs objects and overlaps, (p,); of objects whether they are there for all, (m,).
    """
    core = load_core()
    if core is None:
        return None
    wins = np.empty((len(thresholds), len(rows)), np.bool_)
    types = (np.int64, np.int64, np.float64, np.float64, np.bool_)
    columns = zip((rows, objects, overlap, thresholds, reusable), types, strict=True)
    given: list[npt.NDArray[Any]] = [np.ascontiguousarray(*column) for column in columns]
    arrays = (array.ctypes.data for array in (*given, wins))
    found = core.jaccard_first_come(*wins.shape, len(reusable), *arrays)
    return None if found < 0 else wins


def find_hits(
    detections: tuple[RowArray, RowArray, BoolArray],
    candidates: tuple[IntArray, BoolArray, BoolArray],
    *,
    n_labels: int,
    cap: int | None,
    ties: tuple[RowArray, bool] | None = None,
) -> tuple[RowArray, RowArray, IntArray] | None:
    """Return row, detections that count up to each hit (h,), and hits by threshold and class (T, K).

    Of detections label, rank and whether they count unmatched, (n,); of candidates their row (c,), and whether they hit
    and count, (T, c); of ties where each begins, and whether its hits come first.
    """
    core = load_core()
    if core is None:
        return None
    _, hit, _ = candidates
    n = int(np.count_nonzero(hit))
    row, before = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    count = np.zeros((len(hit), n_labels), np.int64)
    bounds, hits_first = (None, True) if ties is None else ties
    types = (np.int32, np.int32, np.bool_, np.int64, np.bool_, np.bool_)
    given = zip((*detections, *candidates), types, strict=True)
    columns: list[npt.NDArray[Any]] = [np.ascontiguousarray(column, kind) for column, kind in given]
    shape = len(hit), len(columns[0]), hit.shape[1], n_labels
    tie = None if bounds is None else bounds.ctypes.data
    limit = np.iinfo(np.int32).max if cap is None else cap
    arrays = (*(column.ctypes.data for column in columns), tie, row.ctypes.data, before.ctypes.data, count.ctypes.data)
    found = core.jaccard_find_hits(*shape, limit, hits_first, *arrays)
    return None if found < 0 else (row[:found], before[:found], count)


def interpolate(
    total: npt.NDArray[Any],
    before: npt.NDArray[Any],
    cells: tuple[IntArray, IntArray],
    needed: IntArray,
    *,
    epsilon: float,
) -> FloatArray | None:
    """Return the highest precision at or beyond each recall value, (T, R, K); see `Steps`.

    `cells` are the first hit and the one after the last of each threshold and class, (T, K), `needed` the weight of
    hits that reaches each recall value, (K, R).
    """
    core = load_core()
    if core is None:
        return None
    # Where each hit weighs 1, there are as many numbers as hits: they stay as narrow as they are.
    is_narrow = total.dtype == before.dtype == np.int32
    kind = np.int32 if is_narrow else np.int64
    columns: list[npt.NDArray[Any]] = [np.ascontiguousarray(column, kind) for column in (total, before)]
    columns += [np.ascontiguousarray(column, np.int64) for column in (*cells, needed)]
    (n_thresholds, n_labels), n_recalls = cells[0].shape, needed.shape[1]
    precision = np.empty((n_thresholds, n_recalls, n_labels))
    arrays = (column.ctypes.data for column in (*columns, precision))
    core.jaccard_interpolate(n_thresholds, n_recalls, n_labels, epsilon, is_narrow, *arrays)
    return precision


def read_numbers(text: npt.NDArray[np.uint8], n: int) -> FloatArray | None:
    """Return the n numbers of a list of JSON; None without a core, or where one of them is out of the ordinary."""
    core = load_core()
    values = np.empty(n)
    found = -1 if core is None else _call(core.jaccard_read_numbers, text, len(text), n, values)
    return values if found == n else None


class HitLists:
    """What resamples are measured by, as `jaccard_weigh_curves` takes it: a thousand of them find it there.

    Of what counts unless it matches the image, (u,); of what changes by matching image and sign, (d,); of hits the
    image and the places in these two lists, (h,); of cells the places, the first hit and that after the last, (T, K).
    """

    def __init__(self, *columns: npt.NDArray[Any]) -> None:
        types = (np.int32, np.int32, np.int8, *[np.int32] * 5, np.int64, np.int64)
        self._columns = [np.ascontiguousarray(column, kind) for column, kind in zip(columns, types, strict=True)]
        base, change, *_, start, stop = self._columns
        self.addresses = [column.ctypes.data for column in self._columns]
        self.sizes, self.shape = (len(base), len(change)), start.shape
        self.largest = int((stop - start).max(initial=0))
        self.room = len(base) + len(change) + 2 + 2 * self.largest


def weigh_curves(
    weights: IntArray, lists: HitLists, kept: IntArray, needed: IntArray, *, epsilon: float
) -> tuple[FloatArray, IntArray] | None:
    """Return precision as `interpolate` does, of the labels `kept` (k,), and the weight of the hits of each (T, K).

    Images have `weights`, and `needed` has the rows of `kept`.
    """
    core = load_core()
    if core is None:
        return None
    (n_thresholds, n_labels), n_recalls = lists.shape, needed.shape[1]
    precision, counts = np.empty((n_thresholds, n_recalls, len(kept))), np.empty(lists.shape, np.int64)
    weights, kept, needed = (np.ascontiguousarray(column, np.int64) for column in (weights, kept, needed))
    room, envelope = np.empty(lists.room, np.int64), np.empty(lists.largest * int(weights.max(initial=0)) + 4)
    others = (column.ctypes.data for column in (kept, needed, room, envelope, precision, counts))
    shape = n_thresholds, n_recalls, n_labels, len(kept), *lists.sizes
    core.jaccard_weigh_curves(*shape, epsilon, weights.ctypes.data, *lists.addresses, *others)
    return precision, counts


# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1],"score":1}, so that there are no more records than bytes / 57.
SHORTEST_RECORD = 57
# The keys under which tools write them in an object; a list by itself has none.
LISTS = ("annotations", "results", "predictions", "detections")
PIECE = 1 << 20  # bytes read at a time
Piece = npt.NDArray[np.uint8]
LARGE = 1 << 22  # bytes from which on it pays to scan a list while something else is read
PIECE_AHEAD = 1 << 23  # larger ones then: after each, a thread waits its turn to run Python

_AROUND = 256  # bytes that may surround the list of an object with nothing else
_OPENING = pattern(rb'\s*(?:\{\s*"(%s)"\s*:\s*)?\[' % "|".join(LISTS).encode())
_CLOSING = pattern(rb"\]\s*\}\s*\Z")


class Place(NamedTuple):
    """Where a results list is in its file: its key, empty for a list by itself, and the bytes from start to end."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordColumns:
    """Records of COCO JSON in the order of the file, whoever read them: columns (n,), and boxes (n, 4).

    A NaN, or -1 of a flag, was not given. Columns of the other side, and of what no record has, are empty.
    """

    image: IntArray | list[int | str]
    category: IntArray | list[int | str]
    coords: FloatArray
    score: FloatArray = field(default_factory=lambda: np.zeros(0))
    area: FloatArray = field(default_factory=lambda: np.zeros(0))
    iscrowd: Flags = field(default_factory=lambda: np.zeros(0, np.int8))
    ignore: Flags = field(default_factory=lambda: np.zeros(0, np.int8))
    groups: list[Flags] = field(default_factory=list)
    ids: IntArray | list[Any] = field(default_factory=list)
    n_scored: int = 0  # records of ground truth with a score, which is not used
    visible: list[Any] = field(default_factory=list)
    file_names: list[Any] = field(default_factory=list)
    category_names: list[Any] = field(default_factory=list)
    of_box: BoolArray | None = None  # detections whose mask is that of their box, where masks are read

    def __len__(self) -> int:
        return len(self.coords)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedResults:
    """Detections, and the key of their list."""

    key: str
    columns: RecordColumns


def find_list(file: BufferedIOBase, size: int) -> Place | None:
    """Return the place of the list in a file of so many bytes that begins and ends as one, or as an object with one.

    Whether there is nothing else in between is seen when it is read.
    """
    file.seek(0)
    opening = _OPENING.match(file.read(min(_AROUND, size)))
    file.seek(0)
    if opening is None or opening[1] is None:
        return None if opening is None else Place("", 0, size)
    last = max(size - _AROUND, 0)
    file.seek(last)
    closing = _CLOSING.search(file.read(size - last))
    file.seek(0)
    return None if closing is None else Place(opening[1].decode(), opening.end() - 1, last + closing.start() + 1)


def scan_results(file: BufferedIOBase, size: int) -> ScannedResults | None:
    """Read the results of a file of so many bytes; None without a core, or where anything is out of the ordinary."""
    core = load_core()
    place = None if core is None else find_list(file, size)
    if core is None or place is None:
        return None
    with Stage("decoding", size, unit=BYTES) as stage:
        scanned = _scanned_ahead(file)
        if isinstance(scanned, ScannedResults):
            stage.advance(size)
            return scanned
        return _scan(core, file, place, PIECE, stage)


def _scan(core: ctypes.CDLL, file: BufferedIOBase, place: Place, largest: int, stage: Stage) -> ScannedResults | None:
    file.seek(place.start)
    size = place.end - place.start
    # Memory that no record comes to is never touched.
    capacity = size // SHORTEST_RECORD + 1
    image, category = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    coords, score = np.empty((capacity, 4)), np.empty(capacity)
    n = 0

    def scan(piece: Piece, position: ctypes.c_size_t, is_first: bool, is_last: bool) -> bool:
        nonlocal n
        columns = (column[n:].ctypes.data for column in (image, category, coords, score))
        given = piece.ctypes.data, len(piece), ctypes.byref(position), is_first, is_last, capacity - n
        found = core.jaccard_scan_results(*given, *columns)
        n += found
        return bool(found >= 0)

    # A record that is larger than a piece is not plain.
    if not scan_in_pieces(file, size, scan, first=largest, largest=largest, stage=stage):
        return None
    columns = RecordColumns(image=image[:n], category=category[:n], coords=coords[:n], score=score[:n])
    return ScannedResults(key=place.key, columns=columns)


def scan_in_pieces(
    file: BufferedIOBase,
    size: int,
    scan: Callable[[Piece, ctypes.c_size_t, bool, bool], bool],
    *,
    first: int,
    largest: int,
    stage: Stage | None = None,
) -> bool:
    """Scan a file of so many bytes a piece at a time, in memory that stays in the cache; return whether it is plain.

    `scan` is given a piece, where to write where the next one begins, and whether it is the first and the last one; it
    returns whether the piece is plain. What is not taken as a whole comes again with more, up to the `largest` piece.
    """
    piece = np.empty(min(first, size), np.uint8)
    position, held, n_read, is_first, is_last = ctypes.c_size_t(0), 0, 0, True, False
    while not is_last:
        n_new = file.readinto(piece[held : held + size - n_read].data)
        held, n_read = held + n_new, n_read + n_new
        is_last = n_read == size or not n_new
        position.value = 0
        if not scan(piece[:held], position, is_first, is_last) or (is_last and position.value < held):
            return False
        held, is_first = held - position.value, is_first and not position.value
        if held == len(piece) and not is_last:
            if len(piece) >= largest:
                return False
            piece = np.concatenate((piece, np.empty_like(piece)))
        piece[:held] = piece[position.value : position.value + held]
        if stage is not None:
            stage.advance(position.value)
    return True


@contextlib.contextmanager
def scanning_ahead(path: Path | None, kind: Literal["boxes", "masks", "poses"] = "boxes") -> Iterator[None]:
    """Scan a file, if it is a large list, while others are read inside; what scans it then takes what was scanned."""
    scan = _scan if kind == "boxes" else partial(_scan_shape_list, poses=kind == "poses")
    token = _AHEAD.set(None if path is None else _Ahead.begin(path, scan))
    try:
        yield
    finally:
        _AHEAD.reset(token)


class _Ahead:
    """A list that is scanned in a thread of its own, which hardly runs Python."""

    def __init__(self, file: BufferedReader, scan: Callable[[], Scanned | None]) -> None:
        self._identity = _identity(file)
        self._scanned: Scanned | None = None
        # Nobody waits for it where something else went wrong.
        self._thread = threading.Thread(target=self._scan, args=(file, scan), name="jaccard-eval-ahead", daemon=True)
        self._thread.start()

    @classmethod
    def begin(cls, path: Path, scan: Callable[..., Scanned | None]) -> _Ahead | None:
        """Begin to scan; None where there is nothing to scan, or no thread to be had: nothing needs this."""
        core = load_core()
        if core is None:
            return None
        with contextlib.suppress(OSError, RuntimeError), contextlib.ExitStack() as opened:
            found = path.stat()
            if stat.S_ISREG(found.st_mode) and found.st_size >= LARGE:
                file = opened.enter_context(path.open("rb"))
                place = find_list(file, found.st_size)
                if place is not None:
                    ahead = cls(file, partial(scan, core, file, place, PIECE_AHEAD, Stage("decoding")))
                    opened.pop_all()  # the thread closes it
                    return ahead
        return None

    def _scan(self, file: BufferedReader, scan: Callable[[], Scanned | None]) -> None:
        # Whatever goes wrong here will do so again where the file is read in its turn, and is explained there.
        with file, contextlib.suppress(OSError, MemoryError):
            scanned = scan()
            if _identity(file) == self._identity:
                self._scanned = scanned

    def is_of(self, file: BufferedIOBase) -> bool:
        """Whether that is the file which is scanned, as it was."""
        return isinstance(file, BufferedReader) and _identity(file) == self._identity

    def wait(self) -> Scanned | None:
        """Return what was scanned; None where the file is not a plain list, or has changed meanwhile."""
        self._thread.join()
        return self._scanned


def _scanned_ahead(file: BufferedIOBase) -> Scanned | None:
    ahead = _AHEAD.get()
    return ahead.wait() if ahead is not None and ahead.is_of(file) else None


class _Identity(NamedTuple):
    device: int
    number: int
    size: int
    written: int


def _identity(file: BufferedReader) -> _Identity:
    found = os.fstat(file.fileno())
    return _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


_AHEAD: ContextVar[_Ahead | None] = ContextVar("ahead", default=None)
Scanned: TypeAlias = "ScannedResults | ScannedShapeList"


LONGEST_NUMBER = 7  # characters of 5 bits: more than the pixels of any image
SHORTEST_RESULT = 56  # {"image_id":1,"category_id":1,"score":1,"keypoints":[]},
SHORTEST_TRUTH = 17  # {"keypoints":[]},


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedShapes:
    """Where the shapes of a text begin and stop, and next to them the columns of results; boxes are NaN without one."""

    at: IntArray
    stop: IntArray
    bounds: IntArray  # most numbers of corners, polygons, and edges of runs
    number: IntArray  # of ground truth: its `num_keypoints`, -1 where not given
    columns: RecordColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedOutlines:
    """Masks as `Outlines` has them, and which of them have a polygon of fewer than three points, (n,)."""

    corners: FloatArray
    rings: IntArray
    parts: IntArray
    edges: IntArray
    offsets: IntArray
    sizes: IntArray
    has_polygons: BoolArray
    is_short: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedShapeList:
    """Detections with their shapes, masks or poses (n, k, 3), and the key of their list."""

    key: str
    columns: RecordColumns
    shapes: ScannedOutlines | FloatArray


def scan_shapes(data: bytes, *, poses: bool, role: str) -> ScannedShapes | None:
    """Find the shapes of ground truth or of a results list, of text that is UTF-8; None if any is unusual."""
    whole = ctypes.c_size_t(0)
    return _scan_shapes(data, whole, is_first=True, is_last=True, poses=poses, role=role)


def _scan_shapes(
    data: bytes | Piece, position: ctypes.c_size_t, *, is_first: bool, is_last: bool, poses: bool, role: str
) -> ScannedShapes | None:
    core = load_core()
    if core is None:
        return None
    is_truth = role == "gt"
    # Memory that no record comes to is never touched.
    capacity = len(data) // (SHORTEST_TRUTH if is_truth else SHORTEST_RESULT) + 1
    n_results = 0 if is_truth else capacity
    at, stop = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    number = np.empty(capacity if is_truth else 0, np.int64)
    image, category = np.empty(n_results, np.int64), np.empty(n_results, np.int64)
    coords, score = np.empty((n_results, 4)), np.empty(n_results)
    bounds = np.zeros(3, np.int64)
    columns = (bounds, at, stop, number, image, category, coords, score)
    piece = data, len(data), ctypes.byref(position), int(is_first), int(is_last)
    n = _call(core.jaccard_scan_shapes, *piece, int(poses), int(is_truth), capacity, *columns)
    if n < 0:
        return None
    return ScannedShapes(
        at=at[:n].copy(),
        stop=stop[:n].copy(),
        bounds=bounds,
        number=number[:n].copy(),
        columns=RecordColumns(
            image=image[:n].copy(), category=category[:n].copy(), coords=coords[:n].copy(), score=score[:n].copy()
        ),
    )


def scan_shape_list(file: BufferedIOBase, size: int, *, poses: bool) -> ScannedShapeList | None:
    """Read results with masks, or with poses, of a file of ASCII that is never in memory as a whole, as above."""
    core = load_core()
    place = None if core is None else find_list(file, size)
    if core is None or place is None:
        return None
    with Stage("decoding", size, unit=BYTES) as stage:
        scanned = _scanned_ahead(file)
        if isinstance(scanned, ScannedShapeList):
            stage.advance(size)
            return scanned
        return _scan_shape_list(core, file, place, PIECE, stage, poses=poses)


def _scan_shape_list(
    core: ctypes.CDLL, file: BufferedIOBase, place: Place, first: int, stage: Stage, *, poses: bool
) -> ScannedShapeList | None:
    file.seek(place.start)
    room: _PoseRoom | _OutlineRoom = _PoseRoom() if poses else _OutlineRoom()
    parts: list[RecordColumns] = []

    def scan(piece: Piece, position: ctypes.c_size_t, is_first: bool, is_last: bool) -> bool:
        if piece.max(initial=0) > LAST_OF_ASCII:
            return False
        found = _scan_shapes(piece, position, is_first=is_first, is_last=is_last, poses=poses, role="pred")
        if found is None or not room.add(core, piece, found):
            return False
        parts.append(found.columns)
        return True

    size = place.end - place.start
    if not scan_in_pieces(file, size, scan, first=first, largest=LARGEST_PIECE, stage=stage):
        return None
    shapes = room.filled()
    if shapes is None:
        return None
    image, category, coords, score = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("image", "category", "coords", "score")
    )
    columns = RecordColumns(image=image, category=category, coords=coords, score=score)
    return ScannedShapeList(key=place.key, columns=columns, shapes=shapes)


def read_outlines(data: bytes, scanned: ScannedShapes) -> ScannedOutlines | None:
    """Read the masks that were found; None if any is unusual."""
    core, room = load_core(), _OutlineRoom()
    return None if core is None or not room.add(core, data, scanned) else room.filled()


class _OutlineRoom:
    """Masks that are read from one text after the other, in arrays that grow where they are."""

    def __init__(self) -> None:
        self.corners, self.edges = np.empty((0, 2)), np.empty(0, np.int64)
        self.rings, self.parts, self.offsets = (np.zeros(1, np.int64) for _ in range(3))
        self.sizes = np.empty((0, 2), np.int64)
        self.has_polygons, self.is_short = np.empty(0, np.bool_), np.empty(0, np.bool_)

    def add(self, core: ctypes.CDLL, data: bytes | Piece, scanned: ScannedShapes) -> bool:
        """Read the masks of a text; return whether none is unusual."""
        before, n = len(self.sizes), len(self.sizes) + len(scanned.at)
        n_rings, n_edges = int(self.parts[-1]), int(self.offsets[-1])
        most = scanned.bounds + np.array((2 * int(self.rings[n_rings]), n_rings, n_edges))
        self._resize(most, n)
        rows = (array[before:] for array in (self.offsets, self.sizes, self.has_polygons, self.is_short))
        columns = (self.corners, self.rings, self.parts[before:], self.edges, *rows)
        given = data, len(data), len(scanned.at), scanned.at, scanned.stop, most
        return _call(core.jaccard_read_outlines, *given, *columns) >= 0

    def _resize(self, most: IntArray, n: int) -> None:
        n_numbers, n_rings, n_edges = most.tolist()
        self.corners.resize((n_numbers // 2 + 1, 2), refcheck=False)
        self.rings.resize(n_rings + 1, refcheck=False)
        self.edges.resize(n_edges, refcheck=False)
        for ends in (self.parts, self.offsets):
            ends.resize(n + 1, refcheck=False)
        self.sizes.resize((n, 2), refcheck=False)
        for flags in (self.has_polygons, self.is_short):
            flags.resize(n, refcheck=False)

    def filled(self) -> ScannedOutlines:
        """Return what was read."""
        n_rings, n_edges = int(self.parts[-1]), int(self.offsets[-1])
        n_corners = int(self.rings[n_rings])
        self._resize(np.array((2 * n_corners, n_rings, n_edges)), len(self.sizes))
        return ScannedOutlines(
            corners=self.corners[:n_corners],
            rings=self.rings,
            parts=self.parts,
            edges=self.edges,
            offsets=self.offsets,
            sizes=self.sizes,
            has_polygons=self.has_polygons,
            is_short=self.is_short,
        )


def read_poses(data: bytes, scanned: ScannedShapes) -> FloatArray | None:
    """Read the poses that were found, (n, k, 3), all of as many points as the first; None if any is unusual."""
    core, room = load_core(), _PoseRoom()
    return None if core is None or not room.add(core, data, scanned) else room.filled()


class _PoseRoom:
    """Poses that are read from one text after the other, in an array that grows where it is."""

    def __init__(self) -> None:
        self.points = np.empty((0, 0, 3))

    def add(self, core: ctypes.CDLL, data: bytes | Piece, scanned: ScannedShapes) -> bool:
        """Read the poses of a text; return whether none is unusual."""
        at, stop, before = scanned.at, scanned.stop, len(self.points)
        if not len(at):
            return True
        length = 3 * self.points.shape[1] or bytes(data[at[0] : stop[0]]).count(b",") + 1
        # No list has more numbers than half of its characters.
        if length % 3 or 2 * length * len(at) > int((stop - at).sum()):
            return False
        self.points.resize((before + len(at), length // 3, 3), refcheck=False)
        given = data, len(data), len(at), at, stop, length
        return _call(core.jaccard_read_poses, *given, self.points[before:]) >= 0

    def filled(self) -> FloatArray | None:
        """Return what was read; None if there is nothing, which has no number of points."""
        return self.points if len(self.points) else None


def fill_polygons(
    corners: FloatArray, rings: IntArray, masks: IntArray, sizes: IntArray, given: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray] | None:
    """Return edges and offsets of masks of polygons, in images of height and width `sizes` (n, 2).

    Masks without polygons have the edges that are given. Corners are at most `runs.FARTHEST` from the image.
    """
    core = load_core()
    if core is None:
        return None
    columns = (len(sizes), corners, rings, masks, sizes, *given)
    edges = np.empty(_call(core.jaccard_fill_polygons, *columns, None, None), np.int64)
    offsets = np.empty(len(sizes) + 1, np.int64)
    n_edges = _call(core.jaccard_fill_polygons, *columns, edges, offsets)
    return edges[:n_edges], offsets


def measure_masks(
    edges: IntArray, offsets: IntArray, sizes: IntArray | None = None
) -> tuple[IntArray, FloatArray | None] | None:
    """Return the pixels of each mask (n,), and left, top, width and height (n, 4) in images of some size (n, 2)."""
    core = load_core()
    if core is None:
        return None
    area = np.empty(len(offsets) - 1, np.int64)
    box = None if sizes is None else np.empty((len(area), 4))
    _call(core.jaccard_measure_masks, len(area), edges, offsets, sizes, area, box)
    return area, box


def encode_masks(edges: IntArray, offsets: IntArray, pixels: IntArray) -> list[bytes] | None:
    """Return the compressed string of each mask, of images of so many pixels (n,)."""
    core = load_core()
    if core is None:
        return None
    text = np.empty(LONGEST_NUMBER * (len(edges) + len(pixels)), np.uint8)
    stops = np.zeros(len(pixels) + 1, np.int64)
    _call(core.jaccard_encode_masks, len(pixels), edges, offsets, pixels, text, stops[1:])
    whole = text[: stops[-1]].tobytes()
    return [whole[start:stop] for start, stop in pairwise(stops.tolist())]


def gather(values: npt.NDArray[Any], offsets: IntArray, rows: IntArray, n: int) -> npt.NDArray[Any] | None:
    """Return the n values of some rows, one row after the other; values may themselves be rows of an array."""
    core = load_core()
    if core is None or not _within(rows, len(offsets) - 1):
        return None
    taken = np.empty((n, *values.shape[1:]), values.dtype)
    width = values.dtype.itemsize * int(np.prod(values.shape[1:]))
    _call(core.jaccard_gather, len(rows), width, values, offsets, rows, taken)
    return taken


def intersect(
    masks: tuple[IntArray, IntArray], others: tuple[IntArray, IntArray], i: IntArray, j: IntArray
) -> IntArray | None:
    """Return how many pixels masks i and others j have in common, pair by pair; both are edges and offsets."""
    core = load_core()
    if core is None or not (_within(i, len(masks[1]) - 1) and _within(j, len(others[1]) - 1)):
        return None
    shared = np.empty(len(i), np.int64)
    _call(core.jaccard_intersect, len(i), i, j, *masks, *others, shared)
    return shared


Pieces = tuple[Sequence[bytes], IntArray | None]  # texts, and which of them each row has: without codes the first
LONGEST_DIGITS = 32  # and a mark behind them


def write_rows(
    columns: Sequence[Pieces | FloatArray], n: int, *, mark: str, json: bool, with_point: bool
) -> tuple[bytes, IntArray] | None:
    """Return n rows of columns one behind the other, and where each ends; see `writing.rows_of`."""
    core = load_core()
    if core is None:
        return None
    size = 0
    kept: list[tuple[npt.NDArray[Any] | None, ...]] = []  # of each column texts, starts, codes and numbers
    for column in columns:
        if isinstance(column, np.ndarray):
            numbers = np.ascontiguousarray(column, np.float64)
            size += numbers.size * LONGEST_DIGITS
            kept.append((None, None, None, numbers))
            continue
        texts, codes = column
        lengths = np.array([len(text) for text in texts], np.int64)
        codes = None if codes is None else np.ascontiguousarray(codes, np.int64)
        size += n * int(lengths[0]) if codes is None else int(lengths[codes].sum())
        kept.append((np.frombuffer(b"".join(texts), np.uint8), np.append(0, np.cumsum(lengths)), codes, None))
    places = [
        np.array([0 if array is None else array.ctypes.data for array in arrays], np.uintp)
        for arrays in zip(*kept, strict=True)
    ]
    widths = np.array([column.shape[1] if isinstance(column, np.ndarray) else 0 for column in columns], np.int64)
    # Memory that no text comes to is never touched.
    out, stops = np.empty(size + LONGEST_DIGITS, np.uint8), np.empty(n, np.int64)
    flags = ord(mark), int(json), int(with_point)
    written = _call(core.jaccard_write_rows, n, len(kept), *places, widths, *flags, out, stops)
    return None if written < 0 else (out[:written].tobytes(), stops)


def compare_poses(
    points: tuple[FloatArray, FloatArray],
    measures: tuple[FloatArray, FloatArray, FloatArray],
    i: IntArray,
    j: IntArray,
    threshold: float,
) -> tuple[IntArray, IntArray, FloatArray] | None:
    """Return which pairs of poses of two columns may reach a threshold, and of each how far its points are apart.

    `points` are those of both columns, (n, k, 3), measures the areas (n,) and zones (n, 4) of the second, and the
    variances (k,). Returns places of pairs and how many of their points are compared (p,), and errors (p, k).
    """
    core = load_core()
    k = points[1].shape[1]
    fits = points[0].shape[1] == k == len(measures[2]) and _within(i, len(points[0])) and _within(j, len(points[1]))
    if core is None or not fits:
        return None
    kept, number, error = np.empty(len(i), np.int64), np.empty(len(i), np.int64), np.empty((len(i), k))
    n = _call(core.jaccard_compare_poses, len(i), i, j, k, *points, *measures, threshold, kept, number, error)
    return kept[:n], number[:n], error[:n]


def _within(rows: IntArray, n: int) -> bool:
    """Whether rows are among the first n; from the end, as NumPy also counts, the core does not count."""
    return rows.dtype == np.int64 and (not len(rows) or bool(rows.min() >= 0 and rows.max() < n))


def _call(function: Any, *values: Any) -> int:
    """Call a function of the core with the places of arrays, of which those that it fills have no gaps."""
    kept = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value for value in values]
    found: int = function(*(value.ctypes.data if isinstance(value, np.ndarray) else value for value in kept))
    return found


# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1]}, and the comma behind it.
SHORTEST_ANNOTATION = 48
LARGEST_PIECE = 1 << 24  # bytes; what is larger is not plain
LAST_OF_ASCII = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedTruth:
    """Annotations, and the texts of the other two lists; each of their keys that matter comes once an entry."""

    columns: RecordColumns
    images: bytes
    categories: bytes


def scan_truth(data: bytes) -> ScannedTruth | None:
    """Read ground truth, of text that is UTF-8; None without a core, or where anything is out of the ordinary."""
    return _scan_truth(BytesIO(data), len(data), is_text=True) if data else None


def scan_truth_file(file: BufferedIOBase, size: int) -> ScannedTruth | None:
    """Read a file that is ASCII as `scan_truth` does, which is never in memory as a whole."""
    return _scan_truth(file, size, is_text=False) if size else None


def _scan_truth(file: BufferedIOBase, size: int, *, is_text: bool) -> ScannedTruth | None:
    core = load_core()
    if core is None:
        return None
    # Memory that no annotation comes to is never touched.
    capacity = size // SHORTEST_ANNOTATION + 1
    image, category, ids = (np.empty(capacity, np.int64) for _ in range(3))
    coords, area = np.empty((capacity, 4)), np.empty(capacity)
    crowd, ignore = (np.empty(capacity, np.int8) for _ in range(2))
    listed = np.empty(size, np.uint8)  # in the file, too, something stands behind each entry
    state = np.zeros(6, np.int64)
    arrays = (state, listed, image, category, ids, coords, area, crowd, ignore)
    pointers = [array.ctypes.data for array in arrays]

    def scan(piece: Piece, position: ctypes.c_size_t, _: bool, is_last: bool) -> bool:
        if not is_text and piece.max(initial=0) > LAST_OF_ASCII:
            return False
        given = piece.ctypes.data, len(piece), ctypes.byref(position), is_last, capacity
        return bool(core.jaccard_scan_truth(*given, *pointers) >= 0)

    if not scan_in_pieces(file, size, scan, first=PIECE, largest=LARGEST_PIECE):
        return None
    *ends, n, n_ids, _, _ = state.tolist()
    # The list that comes second begins where the first one ends; a comma is left away.
    texts = [listed[min(ends) if end > min(ends) else 0 : max(end - 1, 0)].tobytes() for end in ends]
    columns = RecordColumns(
        image=image[:n],
        category=category[:n],
        ids=ids[:n] if n_ids == n else [],
        coords=coords[:n],
        area=area[:n],
        iscrowd=crowd[:n],
        ignore=ignore[:n],
    )
    return ScannedTruth(columns=columns, images=b"[%b]" % texts[0], categories=b"[%b]" % texts[1])
