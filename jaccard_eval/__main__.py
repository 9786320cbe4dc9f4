"""The process: signals and streams first, so that nothing that loads later can be interrupted into a traceback."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line as a process of its own."""
    try:
        from jaccard_eval.cli import _run

        code = _run.run_process(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    _end(code)


def _end(code: int) -> NoReturn:
    """End at once: the system takes back memory that the interpreter would free object by object.

    Under a tracer or profiler the interpreter ends as usual, for these report then.
    """
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # no stream, or nobody behind it: said before, if it matters
            continue
    os._exit(code)


if __name__ == "__main__":
    main()
