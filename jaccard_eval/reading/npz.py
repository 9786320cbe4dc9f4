"""The arrays of a NumPy archive, loaded and checked one by one; what they mean together is decided elsewhere."""

from __future__ import annotations

import contextlib
import math
import threading
import zipfile
import zlib
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.reading.rawboxes import Keys
from jaccard_eval.text import quoted_value

AnyArray = npt.NDArray[Any]

# NumPy parses headers by `ast`, which loses its count now and then on Python 3.11 where several threads do so at once:
# "SystemError: AST constructor recursion depth mismatch".
PARSING = threading.Lock()
_SUFFIX = ".npy"  # of the entries of an archive
# A damaged flag may call the file encrypted, which is a RuntimeError, as is what is not implemented.
_FAILURES = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, OSError, RuntimeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Archive:
    """The arrays by name, and where to record what is wrong with them."""

    path: str
    arrays: dict[str, AnyArray]
    findings: FindingLog
    stack: str = ""  # the array of maps, where it has these and no boxes: then nothing is loaded
    names: frozenset[str] = frozenset()  # of all arrays

    def where(self, name: str, index: int | None = None) -> Where:
        """Return the place of an array, or of one of its entries."""
        return Where(self.path, record=name if index is None else f"{name}[{index}]")

    def fault(self, name: str, detail: str, fix: Fix | str) -> None:
        """Record that an array cannot be used."""
        self.findings.error("npz-array", self.where(name), detail, fix=fix)

    def numbers(self, name: str, shape: tuple[int | None, ...]) -> FloatArray | None:
        """Return an array of numbers of a shape, None meaning any length; None if it cannot be used."""
        array = self._required(name, "biuf", "numbers")
        if array is None:
            return None
        fits = array.ndim == len(shape) and all(
            want in (None, got) for want, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("n" if length is None else str(length) for length in shape)
            self.fault(name, f"has shape {array.shape}, expected ({wanted})", "Save one row per box or image.")
            return None
        return array.astype(np.float64)

    def keys(self, name: str, length: int | None = None) -> Keys | None:
        """Return a column of whole numbers or strings; None when it cannot be used."""
        array = self._required(name, "iuU", "whole numbers or strings")
        if array is None:
            return None
        if array.ndim != 1 or length not in (None, len(array)):
            expected = "one value each" if length is None else f"({length},), one per box"
            self.fault(name, f"has shape {array.shape}, expected {expected}", "Save a plain column.")
            return None
        if array.dtype.kind == "U":
            return [str(text) for text in array]
        # Unsigned numbers above the signed range would come out negative.
        if len(array) and int(array.max()) > np.iinfo(np.int64).max:
            self.fault(name, f"holds {array.max()}, more than 64 bits with a sign", "Number them from 0.")
            return None
        return array.astype(np.int64)

    def text(self, name: str, default: str, known: Sequence[str]) -> str:
        """Return a single text among those known."""
        if name not in self.arrays:
            return default
        value = str(self.arrays[name])
        if value not in known:
            self.fault(name, f"is {quoted_value(value)}; choose from {', '.join(known)}", "Save one of these words.")
            return default
        return value

    def _required(self, name: str, kinds: str, what: str) -> AnyArray | None:
        if name not in self.arrays:
            there = ", ".join(map(quoted_value, self.arrays)) or "none"
            self.fault(name, f"the array is missing; the archive has: {there}", f"Save {name!r} with the others.")
            return None
        array = self.arrays[name]
        if array.dtype.kind not in kinds:
            self.fault(name, f"holds {array.dtype}, expected {what}", "Convert it before saving.")
            return None
        return array


def load_archive(path: Path, findings: FindingLog, *, besides: str = "") -> Archive:
    """Load all arrays of an archive, but the one `besides`; a DataError names those that cannot be unpacked or read."""
    try:
        with files.open_regular(path) as file:
            return unpack_archive(file, str(path), path.stat().st_size, findings, besides=besides)
    except OSError as error:
        raise _damaged(str(path), error) from None


def unpack_archive(
    file: IO[bytes], path: str, size: int, findings: FindingLog, *, besides: str = "", of_maps: bool = False
) -> Archive:
    """Load all arrays of an open archive of `size` bytes, which messages call `path`; each is a map where all are."""
    name = ""
    try:
        with np.load(file, allow_pickle=False) as content:
            # Before anything is unpacked: NumPy would make room for whatever the entries claim.
            _refuse_bomb(path, size, content.zip)
            arrays: dict[str, AnyArray] = {}
            stack = (
                "" if of_maps else stack_in({*content.files})
            )  # which is read map by map, and the images with it not at all
            for name in content.files:
                if stack or name == besides:
                    continue
                try:
                    array = content[name]
                except MemoryError:
                    # The header may lie; if it does not, the machine has too little memory, and that is reported.
                    _refuse_false_claim(content.zip, name)
                    raise
                if not isinstance(array, np.ndarray):  # NumPy gives the bytes of an entry that is none
                    raise ValueError("the entry is not a NumPy array")  # noqa: TRY004 - like NumPy's own
                arrays[name] = array
    except _FAILURES as error:
        raise _damaged(path, error, name) from None
    return Archive(path, arrays, findings, stack, frozenset(content.files))


def array_names(path: Path) -> set[str]:
    """Return the names of the arrays of an archive; none of one that cannot be read."""
    with contextlib.suppress(*_FAILURES), files.open_regular(path) as file, zipfile.ZipFile(file) as archive:
        return {name.removesuffix(_SUFFIX) for name in archive.namelist()}
    return set()


# Of TissueNet's and DeepCell's archives, CoNIC's, and what scripts write; others mean an archive of boxes or masks.
STACKS = ("y", "y_true", "y_pred", "labels", "label", "inst_map", "annotated", "mask", "arr_0")
_OF_BOXES = frozenset({"boxes", "masks", "image", "images", "scores", "sizes", "names"})


def stack_in(names: Set[str]) -> str:
    """Return the array of an archive that has the maps of its images; empty where there is none."""
    if not names.isdisjoint(_OF_BOXES) or any(name.startswith("raw") for name in names):
        return ""
    return next((name for name in STACKS if name in names), "")


@contextlib.contextmanager
def opened_entries(path: Path, name: str) -> Iterator[tuple[tuple[int, ...], np.dtype[Any], Iterator[AnyArray]]]:
    """Open an array of an archive: its shape and type, and its entries along the first axis, one after the other.

    Without a name, the file is the array.

    No more than one entry is in memory, but those of an array in Fortran's order, which are not one after the other.
    """
    try:
        with _opened_array(path, name) as entry:
            shape, is_fortran, dtype = _read_whole_header(entry)
            if dtype.kind in "biuf" and len(shape) > 1 and not is_fortran:
                yield shape, dtype, _entries(entry, shape, dtype)
                return
            entry.seek(0)
            array = np.lib.format.read_array(entry, allow_pickle=False)
            yield array.shape, array.dtype, iter(array.reshape(-1) if array.ndim == 0 else array)
    except _FAILURES as error:
        raise _damaged(str(path), error, name) from None


@contextlib.contextmanager
def _opened_array(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open the bytes of an array, which are as many as it claims."""
    with files.open_regular(path) as file:
        if not name:
            _refuse_claim(*read_header(file), path.stat().st_size)
            file.seek(0)
            yield file
            return
        with zipfile.ZipFile(file) as archive:
            _refuse_bomb(path=str(path), size=path.stat().st_size, archive=archive)
            _refuse_false_claim(archive, name)
            with archive.open(f"{name}{_SUFFIX}") as entry:
                yield entry


def _entries(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[AnyArray]:
    size = math.prod(shape[1:]) * dtype.itemsize
    for _ in range(shape[0]):
        data = file.read(size)
        if len(data) < size:
            raise EOFError("the array is cut off")
        yield np.frombuffer(data, dtype=dtype).reshape(shape[1:])


def _damaged(path: str, error: Exception, name: str = "") -> DataError:
    fix = "Save it again, with arrays of numbers or strings."
    return DataError.single("npz-damaged", Where(path, record=name or None), f"cannot be read: {error}", fix=fix)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type that a NumPy array claims, before memory is allocated; NumPy reports errors."""
    shape, _, dtype = _read_whole_header(file)
    return shape, dtype


def _read_whole_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether numbers are in Fortran's order, and type."""
    version = np.lib.format.read_magic(file)
    # Version 3.0 differs in the names of fields only, which arrays of numbers or texts have none of.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with PARSING:
        return read(file)


def _refuse_false_claim(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse an array whose header claims more than its entry holds: no memory would be enough."""
    entry = archive.getinfo(f"{name}{_SUFFIX}")
    with archive.open(entry) as file:
        _refuse_claim(*read_header(file), entry.file_size)


def _refuse_claim(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> None:
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"its header claims the shape {shape}, and it has {size:,} bytes")


def _refuse_bomb(path: str, size: int, archive: zipfile.ZipFile) -> None:
    """Refuse what unpacks to far more than arrays do; an entry never gives more than it claims."""
    claimed = sum(entry.file_size for entry in archive.infolist())
    limit = max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * size)
    if claimed > limit:
        detail = f"claims to unpack to {claimed:,} bytes, {limit:,} are allowed for its size"
        fix = "Save it without compression (numpy.savez)."
        raise DataError.single("npz-damaged", Where(path), detail, fix=fix)
