"""Inputs that lie behind a URL: paths that are shown as it, and open a copy that is made when it is needed.

Of a folder only the names are copied at first, as files of the right size without contents; `files.open_regular` brings
the contents. Thus formats look for files as they do on a disk, and only what one of them reads is downloaded.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaccard_eval import storage
from jaccard_eval.atomic import FolderPath
from jaccard_eval.engine.places import AT_ENDS, Place
from jaccard_eval.engine.scratch import make_scratch, remove_scratch
from jaccard_eval.errors import MachineError
from jaccard_eval.findings import DataError, Where, as_given, is_address, reason_of
from jaccard_eval.storage import Entry
from jaccard_eval.text import quoted_value

Item = TypeVar("Item")
Made = TypeVar("Made")

SMALL_BYTES = 1 << 20  # of a file that is brought whole when its first bytes are asked for
_ELSEWHERE = ".elsewhere"  # in the folder of copies: paths that a file behind a URL gives of its own machine


class RemotePath(Place):
    """A path that was given as a URL: its text is the URL, and the system sees the place of its copy."""

    def __str__(self) -> str:
        return as_given(super().__str__())

    def __fspath__(self) -> str:
        return _COPIES.place(str(self))

    def __reduce__(self) -> Any:
        # Another machine reaches it by the same settings, and with credentials of its own.
        return place_of, (storage.portable(str(self)),)

    @property
    def is_small(self) -> bool:
        """Whether it is brought whole as soon as a part of it is of interest."""
        entry = _COPIES.entry(str(self))
        return entry is None or entry.is_folder or (entry.size or 0) <= SMALL_BYTES

    def normal(self) -> Path:
        """Return it without ``.`` and ``..``."""
        return type(self)(_normal(str(self)))

    def list_names(self, *, recursive: bool) -> None:
        """Bring the names of what lies in a folder, or below it."""
        _COPIES.add_names(str(self), recursive=recursive)

    def missing(self) -> DataError:
        """Return the error where nothing lies there."""
        return storage.missing(str(self))

    def mapped(self, work: Callable[[Item], Made], items: Sequence[Item]) -> Iterator[Made]:
        """Do some work for each item, many at once, and yield what comes of it in order."""
        return storage.mapped(work, items)

    def bring_below(self) -> None:
        """Bring all that lies there: for formats of other packages, which open files on their own."""
        self.list_names(recursive=True)
        inner = _COPIES.below(str(self))
        _COPIES.bring(inner or [str(self)], f"fetching {self}")

    @contextlib.contextmanager
    def in_place(self) -> Iterator[FileInPlace | None]:
        """Open a file where it lies; None where its copy is to be opened, as it is here, or nothing else will do."""
        url = str(self)
        entry = _COPIES.entry(url)
        if entry is None or entry.is_folder or not entry.size or _COPIES.is_here(url) or url.startswith("http"):
            yield None
            return
        file = FileInPlace(entry)
        with file.native:
            yield file

    # Later Pythons look below `str` of a path, which is not where its copy lies.

    def iterdir(self) -> Any:
        """Yield what lies in a folder."""
        self.list_names(recursive=False)
        for name in os.listdir(self):  # noqa: PTH208 - the copy's
            yield self / name

    def glob(self, pattern: str, **settings: Any) -> Any:
        """Yield what lies below a folder, and has a name of a pattern."""
        place = Path(os.fspath(self))
        yield from (self / found.relative_to(place).as_posix() for found in place.glob(pattern, **settings))

    def rglob(self, pattern: str, **settings: Any) -> Any:
        """Yield what lies below a folder at any depth, and has a name of a pattern."""
        return self.glob(f"**/{pattern}", **settings)

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Open the copy, with its contents."""
        bring_all([str(self)])
        return super().open(mode, *args, **kwargs)

    @contextlib.contextmanager
    def opened_anew(self) -> Iterator[FileInPlace]:
        """Open what lies there at this moment; a DataError where it is gone, or replaced while it is read."""
        entry = storage.look_up(str(self))
        if entry is None or entry.is_folder:
            raise self.missing()
        file = FileInPlace(entry)
        with file.native:
            yield file
        file.require_unchanged()


class RemoteFolder(RemotePath, FolderPath):
    """A URL that was written with a slash at its end."""


def place_of(url: str) -> RemotePath:
    """Return the place that a URL leads to."""
    shown = storage.admit(url)
    path = (RemoteFolder if shown.endswith("/") else RemotePath)(shown)
    _COPIES.named[str(path)] = isinstance(path, RemoteFolder)
    return path


def holds(name: str) -> bool:
    """Whether a file of this machine is a copy."""
    return _COPIES.holds(name)


def bring_all(urls: list[str]) -> None:
    """Bring the contents of files that are not here yet."""
    _COPIES.bring(urls, "")


class FileInPlace:
    """A file that is read where it lies, at any place; made by `open_in_place`."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.native = storage.open_file(entry.url)

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.entry.size or 0

    def require_unchanged(self) -> None:
        """Raise a DataError when it was replaced after it was opened."""
        storage.require_unchanged(self.entry)


def _normal(url: str) -> str:
    """Return a URL without ``.`` and ``..``, which lead no further up than its bucket."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return posixpath.normpath(url)
    bucket, _, path = rest.partition("/")
    path = posixpath.normpath(f"/{path}").lstrip("/")
    return f"{scheme}://{bucket}/{path}" if path else f"{scheme}://{bucket}"


class _Copies:
    """The copies of one process, in a folder of their own, and what is known of their originals."""

    def __init__(self) -> None:
        self.named: dict[str, bool] = {}  # URLs that the user gave, and whether with a slash at their end
        self._folder: Path | None = None
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._entries: dict[str, Entry | None] = {}
        self._here: set[str] = set()  # whose contents were brought
        self._levels: set[str] = set()  # folders whose entries are known
        self._trees: set[str] = set()  # folders of which all that lies below is known

    def forget(self) -> None:
        """Remove all copies."""
        with self._lock:
            if self._folder is not None:
                remove_scratch(self._folder)
            self._folder = None
            self._clear()

    def holds(self, place: str) -> bool:
        """Whether a file of the system is a copy."""
        return self._folder is not None and place.startswith(str(self._folder))

    def place(self, url: str) -> str:
        """Return where the copy of a URL is, of which the name is made if it was not there."""
        url = _normal(url)
        if is_address(url):
            self.entry(url)
        return self._local(url)

    def entry(self, url: str) -> Entry | None:
        """Return what lies at a URL, asked once."""
        url = _normal(url)
        with self._lock:
            if url not in self._entries:
                # What was listed shows what is not there, without asking.
                parent = url.rpartition("/")[0]
                if parent not in self._levels and not self._is_below(parent, self._trees):
                    self._entries[url] = self._look_up(url)
                    self._make(url)
            return self._entries.get(url)

    def is_here(self, url: str) -> bool:
        """Whether the contents of a file were brought."""
        return _normal(url) in self._here

    def below(self, url: str) -> list[str]:
        """Return the files that are known below a folder."""
        start = f"{_normal(url)}/"
        inner = (entry for name, entry in self._entries.items() if name.startswith(start))
        return [entry.url for entry in inner if entry is not None and not entry.is_folder]

    def add_names(self, url: str, *, recursive: bool) -> None:
        """Ask for all names in a folder, and make them."""
        url = _normal(url)
        with self._lock:
            above = self._is_below(url, self._trees)
            if above or (not recursive and url in self._levels) or not is_address(url):
                return
            if (folder := self.entry(url)) is None or not folder.is_folder:
                return
            for entry in self._listed(url, recursive=recursive):
                known = self._entries.get(entry.url)
                if known is not None and known.is_folder != entry.is_folder:
                    raise _both(entry.url)
                self._entries[entry.url] = entry
                self._make(entry.url)
            (self._trees if recursive else self._levels).add(url)

    def bring(self, urls: list[str], name: str) -> None:
        """Bring the contents of files."""
        with self._lock:
            wanted = dict.fromkeys(map(_normal, urls))
            entries = [self.entry(url) for url in wanted if is_address(url) and url not in self._here]
            missing = [entry for entry in entries if entry is not None and not entry.is_folder]
            if not missing:
                return
            with self._room():
                title = name or f"fetching {missing[0].url}"
                storage.download([(entry, Path(self._local(entry.url))) for entry in missing], title)
            self._here.update(entry.url for entry in missing)

    def _look_up(self, url: str) -> Entry | None:
        try:
            found = storage.look_up(url)
        except MachineError:
            # A folder above the input, or next to it, may be closed to whoever may read the input.
            if self._is_below(url, self.named):
                raise
            return None
        if found is None or found.is_folder or url not in self.named:
            return found
        with contextlib.suppress(MachineError):  # to list may be forbidden
            if storage.list_below(url, recursive=False):
                if not self.named[url]:
                    raise _both(url)
                return Entry(url, None)
        return found

    def _listed(self, url: str, *, recursive: bool) -> list[Entry]:
        try:
            found = storage.list_below(url, recursive=recursive)
        except MachineError:
            if self._is_below(url, self.named):
                raise
            return []
        for entry in found:
            if entry.url != _normal(entry.url):
                detail = f"holds an object whose name is not a path: {quoted_value(entry.url)}"
                raise DataError.single("folder-unreadable", Where(url), detail, fix="Rename the object.")
        return found

    def _is_below(self, url: str, folders: Iterable[str]) -> bool:
        return any(url == folder or url.startswith(f"{folder.removesuffix('/')}/") for folder in folders)

    def _local(self, url: str) -> str:
        """Return the place of a copy, there or not."""
        if self._folder is None:
            self._folder = make_scratch(None)
        if not is_address(url):
            return f"{self._folder}/{_ELSEWHERE}/{url.lstrip('/')}"
        scheme, _, rest = url.partition("://")
        return f"{self._folder}/{scheme}/{rest}"

    def _make(self, url: str) -> None:
        """Make the name of a copy, of the right size and without contents."""
        entry = self._entries[url]
        if entry is None or url in self._here:
            return
        place = self._local(url)
        with self._room():
            os.makedirs(place if entry.is_folder else os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
            if not entry.is_folder:
                descriptor = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    os.ftruncate(descriptor, entry.size or 0)
                finally:
                    os.close(descriptor)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        """Name the folder of copies when it cannot hold another one."""
        try:
            yield
        except OSError as error:
            where = None if self._folder is None else self._folder.parent
            advice = "Set TMPDIR to a folder that has more room."
            raise MachineError(f"{where}: cannot hold copies of what is read: {reason_of(error)}. {advice}") from None


def _both(url: str) -> DataError:
    detail = "is both an object and a folder of objects"
    fix = "Pass the folder with a slash at its end if that is meant, or rename one of them."
    return DataError.single("not-a-file", Where(url), detail, fix=fix)


_COPIES = _Copies()
AT_ENDS.append(_COPIES.forget)
