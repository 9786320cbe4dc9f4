"""The three streams: standard output carries the result and nothing else, standard error all messages about it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from jaccard_eval.errors import MachineError
from jaccard_eval.findings import reason_of
from jaccard_eval.text import PLAIN, painted

DEFAULT_WIDTH = 80  # columns, where there is no terminal
NARROWEST = 40  # columns that messages are wrapped at; a narrower terminal breaks lines itself
NARROWEST_HELP, WIDEST_HELP = 50, 98  # columns, as click chooses them for lines of at most 100

_color = ContextVar("color", default="auto")  # the choice of --color: messages come from places that know no options


def prepare() -> None:
    """Make both streams exist and take any character."""
    choose_color("auto")
    for name in ("stdout", "stderr"):
        # A process without a console, such as a service, has none.
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for the whole process
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def write_result(text: str) -> None:
    """Write to standard output: a BrokenPipeError when nobody reads any more, a MachineError when it cannot be."""
    with _explained(), line_erased():
        sys.stdout.write(_inert(text))
        sys.stdout.flush()


def flush_result() -> None:
    """Bring everything written to standard output on its way; see `write_result` for the errors."""
    with _explained(), line_erased():
        sys.stdout.flush()


def say(text: str) -> None:
    """Write lines to standard error; a stream that cannot take them fails nothing."""
    command(_inert(text))


def command(line: str) -> None:
    """Write a line for the machine that runs this step; a stream that cannot take it fails nothing."""
    try:
        with line_erased():
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
    except OSError:
        discard()


_line = threading.RLock()  # held by whoever writes to the terminal, so that a line is never drawn amid other text
_erase: list[Callable[[], object]] = []  # what erases the line that stands there, if any does
if hasattr(os, "register_at_fork"):  # a copy of the process must not find it held by a thread that it does not have
    os.register_at_fork(before=_line.acquire, after_in_parent=_line.release, after_in_child=_line.release)


@contextlib.contextmanager
def line_drawn(erase: Callable[[], object]) -> Iterator[None]:
    """Hold the terminal while a line is drawn there, which `erase` removes before anything else is written."""
    with _line:
        _erase[:] = [erase]
        yield


@contextlib.contextmanager
def line_erased(patience: float = -1) -> Iterator[None]:
    """Erase the line that is drawn, if any, and let none be drawn meanwhile; wait for whoever draws `patience` s."""
    is_held = _line.acquire(timeout=patience)
    try:
        while _erase:
            with contextlib.suppress(OSError, ValueError):
                _erase.pop()()
        yield
    finally:
        if is_held:
            _line.release()


def is_in_background() -> bool:
    """Whether a line would stand in those of the shell."""
    # A terminal that is not the process's own may not be asked, and is nobody else's either.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.tcgetpgrp(sys.stderr.fileno()) != os.getpgrp()
    return False


def discard() -> None:
    """Send what is left in both streams nowhere, so that the interpreter's last flush meets no closed pipe."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                # Below Python's buffer, which cannot be emptied otherwise.
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def choose_color(choice: str) -> str:
    """Take note of --color, and return it."""
    _color.set(choice)
    return choice


def tagged(tag: str, look: str) -> str:
    """Return the beginning of a message in its look, where the standard error shows colours."""
    return painted(tag, look) if has_color() else tag


def has_color() -> bool:
    """Whether the standard error shows colours."""
    return wants_color(_color.get(), sys.stderr)


def wants_color(choice: str, stream: TextIO) -> bool:
    """Return whether escapes may be written: as chosen, else by NO_COLOR, FORCE_COLOR, TERM and the stream."""
    if choice != "auto":
        return choice == "always"
    # In this order: whoever sets both asks for none (no-color.org).
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def result_width() -> int | None:
    """Columns of the terminal behind the standard output; None where there is none, so that lines stay whole."""
    return _columns() if sys.stdout.isatty() else None


def help_width() -> int:
    """Columns of the help, as click would choose them."""
    return max(min(_columns() - 2, WIDEST_HELP), NARROWEST_HELP)


def _columns() -> int:
    """Do as `shutil.get_terminal_size`, whose module would load three compressors for it at every start."""
    with contextlib.suppress(KeyError, ValueError):
        if int(os.environ["COLUMNS"]) > 0:
            return int(os.environ["COLUMNS"])
    # The stream that the process began with, whatever stands in its place now.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or DEFAULT_WIDTH  # type: ignore[union-attr]
    return DEFAULT_WIDTH


def message_width() -> int | None:
    """Columns of the terminal behind the standard error; None where there is none, so that lines stay whole."""
    return max(columns, NARROWEST) if (columns := _error_columns()) else None


def line_width() -> int:
    """Columns that a line on the terminal behind the standard error may take."""
    # Not the last one, where some terminals break the line at once.
    return (_error_columns() or DEFAULT_WIDTH) - 1


def _error_columns() -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
    return 0


def end_in_one_place() -> bool:
    """Whether both streams end in one place, a terminal or a log, where what both print would be there twice."""
    try:
        return os.path.samestat(*(os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr)))
    except (OSError, ValueError):
        return False


def _inert(text: str) -> str:
    """Keep GitHub's runner from reading users' strings as its commands; as JSON, the text stays the same document."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    # A line that begins with :: is a command; in its older form, ##[ is one anywhere in a line.
    text = re.sub(r"^([^\S\n]*)::", r"\1\\u003a:", text, flags=re.MULTILINE)
    return text.replace("##[", r"\u0023#[")


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        raise MachineError(f"cannot write to the standard output: {reason_of(error)}") from None
