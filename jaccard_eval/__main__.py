"""The process: signals first, so that nothing that loads later can be interrupted into a traceback."""

from __future__ import annotations

# What `signal` is made of, built in: until it is at work, an interrupt is a traceback.
import _signal  # type: ignore[import-not-found]
import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType


def stop(number: int, _: FrameType | None) -> NoReturn:
    """End at once: what is being imported could turn an exception into another, or carry on."""
    if sys.stderr is not None:  # else 2 can be any file
        try:  # noqa: SIM105 - nothing is imported for this
            os.write(2, b"interrupted\n" if number == _signal.SIGINT else b"terminated\n")
        except OSError:  # nobody behind it
            pass
    os._exit(128 + number)  # as POSIX shells report signals


def _stop_on_signals() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(_signal, name, None)
        if number is not None and _signal.getsignal(number) != _signal.SIG_IGN:  # nohup and jobs in the background
            _signal.signal(number, stop)


_program = os.path.basename("".join(sys.argv[:1]))  # noqa: PTH119 - pathlib is not loaded
if __name__ == "__main__" or _program.startswith("jaccard-eval"):  # the script, which imports this before it calls it
    _stop_on_signals()


def main() -> NoReturn:
    """Run the command line as a process of its own."""
    _stop_on_signals()
    gc.disable()  # one evaluation makes millions of records and no cycles worth collecting: an eighth of its time
    from jaccard_eval.cli import run

    status = run.run_process(sys.argv[1:], stop)
    # Tracers and profilers report when the interpreter ends as usual.
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(status)
    # Else at once: the system takes back memory that the interpreter would free object by object.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # no stream, or nobody behind it: reported before, if it matters
            continue
    os._exit(status)


if __name__ == "__main__":
    main()
