"""Outputs that are whole or untouched: written aside in the folder of their target, then renamed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import as_given, is_address, reason_of
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.progress import tracked
from jaccard_eval.text import example_keys, pluralise, quoted_value

if TYPE_CHECKING:
    AnyPath = Path
else:
    AnyPath = type(Path())  # of this system: only later Pythons let `Path` itself have subclasses

_TEMPORARY_PREFIX = ".jaccard-eval-"
_LISTED = 5  # files that a message names
_NEW_FILE_MODE = 0o666  # before the umask
_NEW_FOLDER_MODE = 0o777
_OWN_FILE_MODE = 0o600  # of what nobody else is to see
_OWN_FOLDER_MODE = 0o700


class FolderPath(AnyPath):
    """A path that was written with a slash at its end, which `Path` forgets: of a folder, there or to be made."""


def require_free(path: Path, inputs: Sequence[Path], *, replace: bool) -> None:
    """Check, before anything is computed, that a file or folder can be written without harm."""
    target = Path(os.path.realpath(path))
    for source in inputs:
        origin = Path(os.path.realpath(source))
        if target == origin or target in origin.parents or (origin in target.parents and origin.is_dir()):
            raise UsageError(
                f"output {quoted_value(str(path))} and input {quoted_value(str(source))} must not contain each other"
            )
    with explained(path):
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise UsageError(f"output {quoted_value(str(path))} is neither a file nor a folder")
        if target.exists() and not replace:
            fix = Fix.missing("Replace it with {force}.", force=ON)
            raise UsageError(f"output {quoted_value(str(path))} exists.", fix=fix)
        if is_address(path):
            from jaccard_eval import storage

            storage.require_place(as_given(path))
        else:
            probe(target)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file, or leave what was there."""
    if is_address(path):
        from jaccard_eval import storage

        storage.write(as_given(path), data)
        return
    target = Path(os.path.realpath(path))
    with contextlib.ExitStack() as cleanup, explained(path):
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder; pass a file inside it")
        make_folders(target, cleanup)
        write_aside(target, data, cleanup).replace(target)


def replace_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files, by relative path, or leave what was there.

    The files are not forced to the disk one by one, as thousands of them would need minutes.
    """
    if is_address(path):
        from jaccard_eval import storage

        start = f"{as_given(path)}/"
        there = (entry for entry in storage.list_below(start) if not entry.is_folder)
        _refuse_loss(path, (entry.url.removeprefix(start) for entry in there), files)
        storage.write_folder(start, files)
        return
    target = Path(os.path.realpath(path))
    with contextlib.ExitStack() as cleanup, explained(path):
        if target.is_file():
            raise NotADirectoryError(0, "it is a file; the output is a folder")
        # A link is no folder, wherever it leads: replacing the folder would lose it.
        held = (entry for entry in target.rglob("*") if entry.is_symlink() or not entry.is_dir())
        _refuse_loss(path, (entry.relative_to(target).as_posix() for entry in held), files)
        make_folders(target, cleanup)
        write_folder_aside(target, files, cleanup)()


def write_folder_aside(target: Path, files: Mapping[str, bytes], cleanup: contextlib.ExitStack) -> Callable[[], None]:
    """Write files to a temporary folder next to the target; return what puts it in the target's place.

    `cleanup` removes what is left of it, and of what stood there before. Each file is asked for when it is written.
    """
    import shutil

    scratch = _beside(target)
    cleanup.callback(shutil.rmtree, scratch, ignore_errors=True)
    scratch.mkdir(_OWN_FOLDER_MODE)
    new, old = scratch / "new", scratch / "old"
    new.mkdir(_NEW_FOLDER_MODE)
    for folder in {name.rpartition("/")[0] for name in files}:
        (new / folder).mkdir(parents=True, exist_ok=True)
    for name, data in tracked(files.items(), "files"):
        # No path objects: of a hundred thousand label files they take seconds.
        with open(f"{new}/{name}", "wb") as file:  # noqa: PTH123
            file.write(data)
    return partial(swap_folders, new, target, old)


def write_aside(target: Path, data: bytes, cleanup: contextlib.ExitStack) -> Path:
    """Write to a temporary file in the target's folder, down to the disk; `cleanup` removes what is left of it."""
    temporary = _beside(target)
    # The permissions of the file to replace, else those that any new file gets: the system applies the umask itself,
    # which a process with threads cannot ask for without setting it for all of them.
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    created = _NEW_FILE_MODE if mode is None else mode
    cleanup.callback(_remove_file, temporary)
    with open(temporary, "xb", opener=partial(os.open, mode=created)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if mode is not None:
        temporary.chmod(mode)  # the umask took from it
    return temporary


def make_folders(target: Path, cleanup: contextlib.ExitStack) -> None:
    """Make the folders above a file; `cleanup` removes those that stay empty because the file was not written."""
    for folder in _missing(target):
        folder.mkdir(exist_ok=True)  # another process may have made it meanwhile
        cleanup.callback(_remove_empty, folder)


def probe(target: Path) -> None:
    """Raise an OSError unless the target can be written, with the folders above it that there are not yet."""
    target = next(iter(_missing(target)), target)
    # Not by `exists`, which hides a name that is too long from Python 3.14 on; the temporary file has a short one.
    with contextlib.suppress(FileNotFoundError):
        target.stat()
        if not os.access(target, os.W_OK):
            raise PermissionError(0, "the file is read-only")
    temporary = _beside(target)
    try:
        temporary.touch(_OWN_FILE_MODE, exist_ok=False)  # which may fail late, on a disk of the network that is full
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the system into messages that name the output."""
    try:
        yield
    except OSError as error:
        raise MachineError(write_message(path, error)) from None


def write_message(path: Path, error: OSError) -> str:
    """Return the error of an output that cannot be written, with the reason."""
    fix = "; create the folder first" if isinstance(error, FileNotFoundError) else ""
    return f"cannot write {quoted_value(as_given(path))}: {reason_of(error)}{fix}"


def _beside(target: Path) -> Path:
    """Return a free name in the target's folder, known before anything has it: a signal may come right after that."""
    return target.with_name(f"{_TEMPORARY_PREFIX}{os.urandom(8).hex()}")


def _missing(target: Path) -> list[Path]:
    """Return the folders above a file that do not exist, the highest first."""
    return [folder for folder in reversed(target.parents) if not folder.exists()]


def _remove_file(file: Path) -> None:
    with contextlib.suppress(OSError):  # it has its place, or never was
        file.unlink()


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it holds what was written
        folder.rmdir()


def _refuse_loss(path: Path, names: Iterable[str], files: Mapping[str, bytes]) -> None:
    lost = sorted(name for name in names if name not in files)
    if lost:
        listed = example_keys(lost, _LISTED) + (f" and {len(lost) - _LISTED:,} more" if len(lost) > _LISTED else "")
        what = pluralise(len(lost), "file that is", "files that are")
        raise UsageError(
            f"output folder {quoted_value(str(path))} contains {what} not rewritten: {listed}; choose another folder"
        )


def swap_folders(new: Path, target: Path, old: Path) -> None:
    """Put a folder in the place of another, which is kept aside; undone when that fails half-way."""
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:  # an interrupt between the two must not cost the folder that was there
        if old.exists() and not target.exists():
            old.rename(target)
        raise
