"""Results lists of COCO by the compiled core."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaccard_eval.frozen import dataclass
from jaccard_eval.native import load_core
from jaccard_eval.progress import BYTES, Stage

# Of {"image_id":1,"category_id":1,"bbox":[1,1,1,1],"score":1}, so that there are no more records than bytes / 57.
SHORTEST_RECORD = 57
# The keys under which tools write them in an object; a list by itself has none.
LISTS = ("annotations", "results", "predictions", "detections")
PIECE = 1 << 20  # bytes read at a time
Piece = npt.NDArray[np.uint8]
LARGE = 1 << 22  # bytes from which on it pays to scan a list while something else is read
PIECE_AHEAD = 1 << 23  # larger ones then: after each, a thread waits its turn to run Python

_AROUND = 256  # bytes that may surround the list of an object with nothing else
_OPENING = re.compile(rb'\s*(?:\{\s*"(%s)"\s*:\s*)?\[' % "|".join(LISTS).encode())
_CLOSING = re.compile(rb"\]\s*\}\s*\Z")


class Place(NamedTuple):
    """Where a results list is in its file: its key, empty for a list by itself, and the bytes from start to end."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedResults:
    """Detections in the order of the file: keys (n,), boxes (n, 4) and scores (n,), and the key of their list."""

    key: str
    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    coords: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]


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
        ahead = _AHEAD.get()
        if ahead is not None and ahead.is_of(file):
            scanned = ahead.wait()
            if scanned is not None:
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
    return ScannedResults(key=place.key, image=image[:n], category=category[:n], coords=coords[:n], score=score[:n])


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
def scanning_ahead(path: Path | None) -> Iterator[None]:
    """Scan a file, if it is a large list, while others are read inside; `scan_results` takes what was scanned."""
    token = _AHEAD.set(None if path is None else _Ahead.begin(path))
    try:
        yield
    finally:
        _AHEAD.reset(token)


class _Ahead:
    """A list that is scanned in a thread of its own, which hardly runs Python."""

    def __init__(self, core: ctypes.CDLL, file: BufferedReader, place: Place) -> None:
        self._identity = _identity(file)
        self._scanned: ScannedResults | None = None
        # Nobody waits for it where something else went wrong.
        self._thread = threading.Thread(
            target=self._scan, args=(core, file, place), name="jaccard-eval-ahead", daemon=True
        )
        self._thread.start()

    @classmethod
    def begin(cls, path: Path) -> _Ahead | None:
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
                    ahead = cls(core, file, place)
                    opened.pop_all()  # the thread closes it
                    return ahead
        return None

    def _scan(self, core: ctypes.CDLL, file: BufferedReader, place: Place) -> None:
        # Whatever goes wrong here will do so again where the file is read in its turn, and is explained there.
        with file, contextlib.suppress(OSError, MemoryError):
            scanned = _scan(core, file, place, PIECE_AHEAD, Stage("decoding"))
            if _identity(file) == self._identity:
                self._scanned = scanned

    def is_of(self, file: BufferedIOBase) -> bool:
        """Whether that is the file which is scanned, as it was."""
        return isinstance(file, BufferedReader) and _identity(file) == self._identity

    def wait(self) -> ScannedResults | None:
        """Return what was scanned; None where the file is not a plain list, or has changed meanwhile."""
        self._thread.join()
        return self._scanned


class _Identity(NamedTuple):
    device: int
    number: int
    size: int
    written: int


def _identity(file: BufferedReader) -> _Identity:
    found = os.fstat(file.fileno())
    return _Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


_AHEAD: ContextVar[_Ahead | None] = ContextVar("ahead", default=None)
