"""A folder for what does not fit into memory: removed however the work ends, and known again where that failed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jaccard_eval.errors import MachineError
from jaccard_eval.findings import reason_of

PREFIX = "jaccard-eval-scratch-"  # of scratch folders, followed by the process that made it
_OPEN: set[Path] = set()


def make_scratch(parent: str | os.PathLike[str] | None) -> Path:
    """Make a folder below `parent`, or where the system keeps temporary files."""
    place = _place(parent)
    folder = place / f"{PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    _OPEN.add(folder)  # before it is there: a signal may come at any time
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        _OPEN.discard(folder)
        raise MachineError(f"{place}: cannot hold scratch files: {reason_of(error)}. Pass --scratch DIR.") from None
    return folder


def remove_scratch(folder: Path) -> None:
    """Remove a folder and all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _OPEN.discard(folder)


def remove_all() -> None:
    """Remove what is still there, before the process ends at once."""
    for folder in list(_OPEN):
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
        advice = "Pass --scratch with a folder that has more room."
        raise MachineError(f"{folder.parent}: cannot hold scratch files: {reason_of(error)}. {advice}") from None


def left_behind(parent: str | os.PathLike[str] | None) -> str:
    """Describe the folders that killed processes left there, and how to remove them; empty where there are none."""
    place = _place(parent)
    left = [folder for folder in sorted(place.glob(f"{PREFIX}*")) if _is_abandoned(folder)]
    if not left:
        return ""
    sizes = (file.stat().st_size for folder in left for file in folder.rglob("*") if file.is_file())
    what = "a killed run left its scratch folder" if len(left) == 1 else "killed runs left their scratch folders"
    return f"{what} ({sum(sizes) / 2**20:,.0f} MiB). Remove with: rm -r {' '.join(map(str, left))}"


def _place(parent: str | os.PathLike[str] | None) -> Path:
    return Path(parent if parent is not None else tempfile.gettempdir())


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that made a folder is gone."""
    process = folder.name.removeprefix(PREFIX).partition("-")[0]
    if not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return False
