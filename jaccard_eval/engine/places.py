"""Places: paths that lead elsewhere than into this machine, and what is remembered of files for a session."""

from __future__ import annotations

import contextlib
import functools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaccard_eval.findings import DataError

if TYPE_CHECKING:
    AnyPath = Path
else:
    AnyPath = type(Path())  # of this system: only later Pythons let `Path` itself have subclasses

Item = TypeVar("Item")
Made = TypeVar("Made")


SMALL = 32 * 2**20  # bytes of input that fit in any case, so that nothing is looked at


class Place(AnyPath):
    """A path that leads elsewhere than into this machine; what lies there is brought when it is needed."""

    @property
    @abstractmethod
    def is_small(self) -> bool:
        """Whether it is brought whole as soon as a part of it is of interest."""

    @abstractmethod
    def normal(self) -> Path:
        """Return it without ``.`` and ``..``."""

    @abstractmethod
    def list_names(self, *, recursive: bool) -> None:
        """Bring the names of what lies in a folder, or below it."""

    @abstractmethod
    def missing(self) -> DataError:
        """Return the error where nothing lies there."""

    @abstractmethod
    def mapped(self, work: Callable[[Item], Made], items: Sequence[Item]) -> Iterator[Made]:
        """Do some work on what lies below it for each item, many at once, and yield what comes of it in order."""

    @abstractmethod
    def bring_below(self) -> None:
        """Bring the contents of all that lies there."""

    @abstractmethod
    def in_place(self) -> contextlib.AbstractContextManager[Any]:
        """Open a file where it lies, by one of pyarrow's; None where its copy is to be opened."""

    @abstractmethod
    def opened_anew(self) -> contextlib.AbstractContextManager[Any]:
        """Open what lies there at this moment; a DataError where it is gone, or replaced while it is read."""


def normal(path: Path) -> Path:
    """Return a path without ``.`` and ``..``, links as given."""
    return path.normal() if isinstance(path, Place) else Path(os.path.normpath(path))


def absolute(path: Path) -> Path:
    """Return a path from the root, without ``.`` and ``..``, links as given; a URL has always been one."""
    return path.normal() if isinstance(path, Place) else Path(os.path.abspath(path))  # noqa: PTH100 - links stay


def list_names(path: Path, *, recursive: bool = False) -> None:
    """Bring the names of what lies in a folder, and below it; of a folder of this machine they are there."""
    if isinstance(path, Place):
        path.list_names(recursive=recursive)


MANIFEST, IMAGES = "manifest.json", "images.parquet"  # of a folder of parts


def is_partitioned(folder: Path) -> bool:
    """Whether a folder is one of parts of both sides, damaged ones included."""
    try:
        # Other tools have manifests as well, none of them next to these.
        return (folder / MANIFEST).is_file() and ((folder / IMAGES).exists() or (folder / "gt").is_dir())
    except (OSError, ValueError):  # what may not be looked at, or a name that no system has
        return False


_sessions = [0]  # that are open, one in another
AT_ENDS: list[Callable[[], None]] = []  # what is to be forgotten between sessions, by those who remember something


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Keep copies for what is done inside; with the outermost session they are removed, and next time made anew."""
    if not _sessions[0]:
        _forget()  # what was asked since then may be old
    _sessions[0] += 1
    try:
        yield
    finally:
        _sessions[0] -= 1
        if not _sessions[0]:
            _forget()


def _forget() -> None:
    for forget in AT_ENDS:
        forget()


def remembered(read: Callable[[Path], Made]) -> Callable[[Path], Made]:
    """Return a reader of files that reads each of them once in a session."""
    known = functools.cache(read)
    AT_ENDS.append(known.cache_clear)
    return lambda path: known(path) if _sessions[0] else read(path)
