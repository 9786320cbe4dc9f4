"""A folder for what does not fit into memory: removed however the work ends, and known again where that failed.

It is one of this machine, or for the workers of a cluster one in an object store; here files of both are read and
written.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval import storage
from jaccard_eval.engine.places import AT_ENDS
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import is_address, reason_of
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import public

Item = TypeVar("Item")
Made = TypeVar("Made")

PREFIX = "jaccard-eval-scratch-"  # of scratch folders, followed by the process that made it
IN_USE = "in-use"  # a file that is there as long as the folder of a store is: without it, nothing is written there


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A place below a scratch folder in an object store: what `Path` is to one of this machine."""

    folder: str  # URL of the scratch folder
    inner: str = ""  # path below it

    def __str__(self) -> str:
        return f"{self.folder}/{self.inner}" if self.inner else self.folder

    def __truediv__(self, name: str) -> StorePlace:
        return StorePlace(self.folder, f"{self.inner}/{name}" if self.inner else name)

    def __reduce__(self) -> Any:
        # Workers reach the store by the same settings, and with credentials of their own.
        return _arrived, (storage.portable(self.folder), self.inner)

    @property
    def name(self) -> str:
        """The last part."""
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The folder that the scratch folder lies in."""
        return self.folder.rpartition("/")[0]


def _arrived(folder: str, inner: str) -> StorePlace:
    return StorePlace(storage.admit(folder), inner)


ScratchPlace = Path | StorePlace


def place_of(text: str) -> ScratchPlace:
    """Return the place that a path or a URL means."""
    return StorePlace(storage.admit(text)) if is_address(text) else Path(text)


def portable(place: ScratchPlace) -> str:
    """Return a place as `place_of` takes it on another machine."""
    return storage.portable(str(place)) if isinstance(place, StorePlace) else str(place)


AT_ENDS.append(storage.forget_connections)
_OPEN: set[ScratchPlace] = set()
KEPT: list[ScratchPlace] = []  # folders that the process made, and that stay


def make_scratch(parent: str | os.PathLike[str] | None, *, kept: bool = False) -> Path:
    """Make a folder below `parent`, or where the system keeps temporary files; one that is `kept` is never removed."""
    if parent is not None and is_address(str(parent)):
        raise UsageError(
            f"{public(str(parent))}: files of the disk engine need a folder of this machine.",
            fix=Fix.missing("Pass {scratch}, or {engine} for a cluster.", scratch=None, engine="dask"),
        )
    place = _place(parent)
    folder = place / f"{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
    if kept:
        KEPT.append(folder)
    else:
        _OPEN.add(folder)  # before it is there: a signal may come at any time
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        _OPEN.discard(folder)
        fix = Fix.missing("Pass {scratch}.", scratch=None)
        raise MachineError(f"{place}: cannot hold scratch files: {reason_of(error)}.", fix=fix) from None
    return folder


def make_store_scratch(url: str, *, kept: bool = False) -> StorePlace:
    """Make a folder below a URL; one that is `kept` is never removed."""
    parent = storage.admit(url).rstrip("/")
    storage.require_place(parent)
    folder = StorePlace(f"{parent}/{PREFIX}{os.getpid()}-{os.urandom(8).hex()}")
    if kept:
        KEPT.append(folder)
    else:
        _OPEN.add(folder)
    try:
        storage.write(str(folder / IN_USE), b"")
    except BaseException:
        _OPEN.discard(folder)
        raise
    return folder


def remove_scratch(folder: ScratchPlace) -> None:
    """Remove a folder and all that is in it."""
    if isinstance(folder, StorePlace):
        with contextlib.suppress(MachineError):  # a store that is gone; what brought it to light is reported
            # What is written from here on is removed by who wrote it.
            storage.remove(str(folder / IN_USE))
            storage.remove_folder(str(folder))
    else:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    _OPEN.discard(folder)


def write_whole(place: ScratchPlace, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file piece by piece: whole or not at all."""
    if isinstance(place, StorePlace):
        with storage.output(str(place)) as stream:
            for chunk in chunks:
                stream.write(chunk)
        # The run may have ended meanwhile, and have removed all that it saw.
        if storage.look_up(f"{place.folder}/{IN_USE}") is None:
            storage.remove_folder(place.folder)
            raise MachineError(f"{place.folder}: the scratch folder was removed")
        return
    # A name of its own: where a worker is thought dead, another one writes the same.
    temporary = place.with_name(f"{place.name}-{os.urandom(4).hex()}.part")
    with temporary.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
    temporary.replace(place)


def read_bytes(place: ScratchPlace, start: int = 0, n: int | None = None) -> bytes:
    """Return some bytes of a file, all where no number is given."""
    if isinstance(place, StorePlace):
        with storage.explained(str(place)):
            file = _opened(str(place))
            data: bytes = file.read_at(file.size() - start if n is None else n, start)
            return data
    with place.open("rb") as opened:
        opened.seek(start)
        return opened.read(-1 if n is None else n)


def is_there(place: ScratchPlace) -> bool:
    """Whether there is a file."""
    return storage.look_up(str(place)) is not None if isinstance(place, StorePlace) else place.exists()


def read_array(place: ScratchPlace, dtype: npt.DTypeLike, start: int, n: int) -> npt.NDArray[Any]:
    """Return some numbers of a file, which begin at a byte."""
    if isinstance(place, StorePlace):
        return np.frombuffer(read_bytes(place, start, n * np.dtype(dtype).itemsize), dtype)
    return np.fromfile(place, dtype, n, offset=start)


def gathered(work: Callable[[Item], Made], items: Sequence[Item], place: ScratchPlace) -> list[Made]:
    """Do some work that reads files: many at once where each read waits for a store."""
    return list(storage.mapped(work, items) if isinstance(place, StorePlace) else map(work, items))


@lru_cache(maxsize=1024)
def _opened(url: str) -> Any:
    """Return a file to read parts of: it costs a request to open one."""
    return storage.open_file(url)


def remove_all() -> None:
    """Remove what is still there, before the process ends at once."""
    for folder in list(_OPEN):
        if isinstance(folder, StorePlace):
            remove_scratch(folder)
            continue
        # Other threads are still at work: under its old name they make no more files in it.
        with contextlib.suppress(OSError):
            remove_scratch(folder.rename(folder.with_name(f"{folder.name}-removed")))
        _OPEN.discard(folder)


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn the errors of a full or broken disk below a folder into one that names it and the option."""
    try:
        yield
    except OSError as error:
        # Of a full disk the error names no file where an open one was written to.
        is_own = error.filename is None or str(error.filename).startswith(str(folder))
        if not is_own or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS):
            raise
        fix = Fix.missing("Pass {scratch} with more room.", scratch=None)
        raise MachineError(f"{folder.parent}: cannot hold scratch files: {reason_of(error)}.", fix=fix) from None


def left_behind(parent: str | os.PathLike[str] | None) -> str:
    """Describe the folders that killed processes left there, and how to remove them; empty where there are none."""
    if parent is not None and is_address(str(parent)):
        return ""  # processes of other machines, too
    place = _place(parent)
    left = [folder for folder in sorted(place.glob(f"{PREFIX}*")) if _is_abandoned(folder)]
    if not left:
        return ""
    sizes = (file.stat().st_size for folder in left for file in folder.rglob("*") if file.is_file())
    what = "a killed run left its scratch folder" if len(left) == 1 else "killed runs left their scratch folders"
    return f"{what} ({sum(sizes) / 2**20:,.0f} MiB). Remove with: rm -r {' '.join(map(str, left))}"


def _place(parent: str | os.PathLike[str] | None) -> Path:
    if parent is not None:
        return Path(parent)
    import tempfile

    return Path(tempfile.gettempdir())


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that made a folder is gone."""
    process = folder.name.removeprefix(PREFIX).partition("-")[0]
    if not process.isdecimal() or os.name == "nt":  # where signal 0 is not a question but Ctrl-C
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return False
