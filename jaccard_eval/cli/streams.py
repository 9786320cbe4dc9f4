"""The three streams: standard output carries the result and nothing else, standard error all that is said about it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from jaccard_eval.errors import MachineError
from jaccard_eval.findings import reason_of

DEFAULT_WIDTH = 80  # columns, where there is no terminal
NARROWEST = 40  # columns that messages are wrapped at; a narrower terminal breaks lines itself
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)  # what a line starts with that GitHub's runner acts on
_OLD_COMMAND = re.compile(r"##\[")  # the same in its older form, anywhere in a line


def prepare() -> None:
    """Make both streams exist and take any character."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_result(text: str) -> None:
    """Write to standard output.

    Raises
    ------
    BrokenPipeError
        When nobody reads any more.
    MachineError
        When the stream cannot be written.
    """
    with _explained():
        sys.stdout.write(_inert(text))
    flush_result()


def flush_result() -> None:
    """Bring everything written to standard output on its way; see `write_result` for the errors."""
    with _explained():
        sys.stdout.flush()


def say(text: str) -> None:
    """Write lines to standard error; a stream that cannot take them is no reason to fail."""
    _write_message(_inert(text))


def command(line: str) -> None:
    """Write a line that is meant for the machine that runs this step; otherwise as `say`."""
    _write_message(line)


def _write_message(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        discard()


def discard() -> None:
    """Send what is left in both streams nowhere, so that the interpreter's last flush meets no closed pipe."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            if not _is_writable(stream):
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def wants_color(choice: str, stream: TextIO) -> bool:
    """Return whether escapes may be written: as chosen, else as NO_COLOR, FORCE_COLOR, TERM and the stream say."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def result_width() -> int:
    """Columns that a text report may use: the terminal's, at least 80 elsewhere."""
    columns = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return columns if sys.stdout.isatty() else max(columns, DEFAULT_WIDTH)


def message_width() -> int | None:
    """Columns of the terminal behind the standard error; None where there is none, so that lines stay whole."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
    except (OSError, ValueError):
        return None
    return max(columns, NARROWEST) if columns else None


def end_in_one_place() -> bool:
    """Whether both streams end in one place, a terminal or a log, where what both say would stand twice."""
    try:
        return os.path.samestat(*(os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr)))
    except (OSError, ValueError):
        return False


def _inert(text: str) -> str:
    """Keep GitHub's runner from taking users' strings for its commands; as JSON, the text stays the same document."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _OLD_COMMAND.sub(r"\\u0023#[", _COMMAND.sub(r"\1\\u003a:", text))


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _is_writable(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        raise MachineError(f"cannot write to the standard output: {reason_of(error)}") from None
