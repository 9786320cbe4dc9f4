"""A terminal of our own for a command, and what stands on its screen after what was written to it."""

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest
from command_line import environment

fcntl, pty, termios = (
    pytest.importorskip(name, reason="needs terminals of POSIX") for name in ("fcntl", "pty", "termios")
)

ERASE = b"\x1b[2K"
# The first terminal that a new session takes hold of becomes its own, to which keys send their signals.
_TAKING_HOLD = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A command at work in a terminal of its own; used as a context manager, which ends it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 80,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.written = b""
        self._keys, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        wanted = {"TERM": "xterm"} | dict(env or {})
        base = {key: value for key, value in environment().items() if key != "CI"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKING_HOLD, *argv],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=base | wanted,
            cwd=cwd,
            start_new_session=True,
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keys)

    def read_until(self, is_enough: Callable[[bytes], object], *, seconds: float = 60) -> None:
        """Read what is written until that is enough, or the command has ended."""
        end = time.monotonic() + seconds
        while not is_enough(self.written):
            ready, _, _ = select.select([self._keys], [], [], max(end - time.monotonic(), 0))
            assert ready, self.written
            try:
                piece = os.read(self._keys, 65536)
            except OSError:  # nobody has the terminal open any more
                return
            self.written += piece

    def finish(self) -> int:
        """Read all that is written, and return the exit code."""
        self.read_until(lambda _: False)
        return self.process.wait(60)

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._keys, key)


def drawn_lines(written: bytes) -> list[str]:
    """Return the lines that were drawn to be erased again, without colours."""
    text = re.sub(r"\x1b\[[\d;]*m", "", written.decode())
    return [line.rstrip() for line in re.findall(r"([^\r\n\x1b]+)(?:\r\x1b\[2K|\r\n\r\x1b\[1A|$)", text)]


def screen(written: bytes) -> str:
    """Return what a terminal shows in the end that is never full: lines, returns to their start, erased lines."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\r|\n|\x1b\[2K|\x1b\[1A|[^\r\n\x1b]+|\x1b", written.decode()):
        if token == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif token == "\r":
            column = 0
        elif token == "\x1b[1A":
            row -= 1
        elif token == ERASE.decode():
            lines[row] = ""
        else:
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            column += len(token)
    return "\n".join(lines)
