"""Writing outputs so that a file is whole or untouched: checked first, written aside, renamed together."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaccard_eval.errors import MachineError, UsageError, shown
from jaccard_eval.report import Reporter, reporter_for

TEXT_SUFFIX = ".txt"
_TEMPORARY_PREFIX = ".jaccard-eval-"
_NEW_FILE_MODE = 0o666  # before the umask


@dataclass(frozen=True, slots=True)
class Output:
    """A place to write to: as the user named it, the file behind its links, and the reporter that fills it."""

    path: Path
    target: Path
    is_device: bool
    reporter: Reporter


def plan_outputs(paths: Sequence[Path], inputs: Sequence[Path]) -> list[Output]:
    """Check, before anything is computed, that all outputs can be written.

    Raises
    ------
    UsageError
        When a suffix is unknown, a path is given twice, or an output is one of the inputs.
    MachineError
        When a folder is missing or read-only, or a path is a folder or a read-only file.
    """
    outputs = [_plan(path) for path in paths]
    seen: set[Path] = set()
    for output in outputs:
        _refuse_input(output, inputs)
        if output.target in seen:
            raise UsageError(f"output {shown(str(output.path))} is given twice")
        seen.add(output.target)
        with _explained(output.path):
            _probe(output)
    return outputs


def write_outputs(documents: Sequence[tuple[Output, str]]) -> None:
    """Write all documents aside, then rename all; when anything fails, files that stood there before are intact.

    Raises
    ------
    MachineError
        With the path and the reason of the system.
    """
    with contextlib.ExitStack() as cleanup:
        written = [(output, _write_aside(output, text, cleanup)) for output, text in documents if not output.is_device]
        for output, text in documents:
            if output.is_device:
                _write_device(output, text)
        _rename_all(written)


def _plan(path: Path) -> Output:
    with _explained(path):
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise MachineError(f"cannot write {shown(str(path))}: it is a directory; name a file inside it")
    is_device = not stat.S_ISREG(mode)
    # The link of a pipe in /dev/fd leads nowhere, so devices keep their name.
    target = path if is_device else Path(os.path.realpath(path))
    # A device has no suffix to choose by: it gets what a terminal would.
    suffix = path.suffix or (TEXT_SUFFIX if is_device else "")
    return Output(path, target, is_device, reporter_for(suffix))


def _refuse_input(output: Output, inputs: Sequence[Path]) -> None:
    for source in inputs:
        if output.target.exists() and source.exists() and output.target.samefile(source):
            raise UsageError(f"output {shown(str(output.path))} is also an input; it would be overwritten")


def _probe(output: Output) -> None:
    if output.is_device:
        return
    if output.target.exists() and not os.access(output.target, os.W_OK):
        raise PermissionError(0, "the file is read-only")
    descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=output.target.parent)
    os.close(descriptor)
    Path(name).unlink()


def _write_aside(output: Output, text: str, cleanup: contextlib.ExitStack) -> Path:
    """Write to a temporary file in the target's folder, down to the disk; `cleanup` removes what is left of it."""
    with _explained(output.path):
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=output.target.parent)
        temporary = Path(name)
        cleanup.callback(temporary.unlink, missing_ok=True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encoded(text))
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_of(output.target))
    return temporary


def _rename_all(written: Sequence[tuple[Output, Path]]) -> None:
    for done, (output, temporary) in enumerate(written):
        try:
            temporary.replace(output.target)
        except OSError as error:
            finished = ", ".join(shown(str(earlier.path)) for earlier, _ in written[:done])
            already = f"; written before that: {finished}" if finished else ""
            raise MachineError(_message(output.path, error) + already) from None


def _mode_of(target: Path) -> int:
    """Permissions of the file to replace, else those that any new file gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return _NEW_FILE_MODE & ~umask


def _write_device(output: Output, text: str) -> None:
    with _explained(output.path):
        # Opening a FIFO that nobody reads must fail instead of waiting for ever.
        descriptor = os.open(output.target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encoded(text))


def _encoded(text: str) -> bytes:
    # Lone surrogates come from odd file names.
    return text.encode("utf-8", "backslashreplace")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of the system into messages that name the output."""
    try:
        yield
    except OSError as error:
        raise MachineError(_message(path, error)) from None


def _message(path: Path, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    fix = "; make the folder first" if isinstance(error, FileNotFoundError) else ""
    return f"cannot write {shown(str(path))}: {reason}{fix}"
