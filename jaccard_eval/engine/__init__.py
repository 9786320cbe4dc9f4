"""The one door to scale-out: what lies behind a URL, and boxes on the disk of this machine or of a cluster.

A run without any of it passes what stands here, and nothing behind it. No task is defined here.
"""

from __future__ import annotations

import contextlib
import functools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from os.path import getsize, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaccard_eval.findings import DataError, is_address

if TYPE_CHECKING:
    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.options import EngineOptions

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


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return a path as it was given; of a URL, one that opens what lies there.

    A UsageError means that nothing is known of its scheme, a MachineError that a package is missing for it.
    """
    if isinstance(given, Place):
        return given
    text = os.fspath(given)
    if text.startswith("file:///"):
        return Path(text.removeprefix("file:///" if os.name == "nt" else "file://"))  # file:///C:/gt.json
    if "://" not in text or not is_address(text):
        return Path(text)
    from jaccard_eval.engine.remote import place_of

    return place_of(text)


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


def bring(paths: Iterable[Path]) -> None:
    """Bring the contents of files that are not here yet, many at once; what does not exist is left to whoever opens."""
    away = [str(path) for path in paths if isinstance(path, Place)]
    if away:
        from jaccard_eval.engine.remote import bring_all

        bring_all(away)


MANIFEST, IMAGES = "manifest.json", "images.parquet"  # of a folder of parts


def is_partitioned(folder: Path) -> bool:
    """Whether a folder is one of parts of both sides, damaged ones included."""
    try:
        # Other tools have manifests as well, none of them next to these.
        return (folder / MANIFEST).is_file() and ((folder / IMAGES).exists() or (folder / "gt").is_dir())
    except (OSError, ValueError):  # what may not be looked at, or a name that no system has
        return False


def is_copy(name: str) -> bool:
    """Whether a file of this machine is a copy, whose name means nothing to the user."""
    from jaccard_eval.engine.remote import holds

    return holds(name)


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


def is_automatic(options: EngineOptions) -> bool:
    """Whether nobody named an engine."""
    return options.engine == "auto" and options.client is None


def takes_disk(gt: object, pred: object, options: EngineOptions, iou_type: str) -> bool:
    """Whether boxes go to the disk, that of this machine or of a cluster; of tables in memory it is not needed."""
    if not is_automatic(options):
        return options.engine != "memory"
    paths = [side for side in (gt, pred) if isinstance(side, str | os.PathLike)]
    # No module of its own is loaded for what most are: two small files.
    if not isinstance(pred, str | os.PathLike) or (all(map(isfile, paths)) and sum(map(getsize, paths)) <= SMALL):
        return False
    from jaccard_eval.engine.choice import exceed_memory

    return exceed_memory(gt, pred, options, iou_type)


@contextlib.contextmanager
def at_work(
    gt: object, pred: object, options: EngineOptions | None, iou_type: str, lacking: Sequence[str]
) -> Iterator[DiskEngine | None]:
    """Open where boxes of two inputs go that are not kept in memory; None where they are, as most are.

    What is asked for and `lacking` on the disk is a UsageError where that is asked for, and else keeps them in memory.
    """
    if options is None or not takes_disk(gt, pred, options, iou_type):
        yield None
        return
    from jaccard_eval.engine.choice import open_engine
    from jaccard_eval.engine.scratch import explained

    store = open_engine(gt, pred, options, iou_type, lacking)
    if store is None:
        yield None
        return
    try:
        with explained(store.scratch):
            yield store
    except BaseException:
        store.close()
        raise
