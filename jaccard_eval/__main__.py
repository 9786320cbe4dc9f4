"""The process: signals and streams first, so that nothing that loads later can be interrupted into a traceback."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line as a process of its own."""
    try:
        from jaccard_eval.cli import _run

        code = _run.run_process(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
