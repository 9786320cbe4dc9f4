"""Run a program with the drop-ins in place of pycocotools, faster-coco-eval and lvis-api, with no line of it changed.

``python -m jaccard_eval.patch train.py ARGUMENTS`` runs a script, ``python -m jaccard_eval.patch -m package.train ...``
a module.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from jaccard_eval.compat.faster_coco_eval import init_as_faster_coco_eval
from jaccard_eval.compat.lvis import init_as_lvis
from jaccard_eval.compat.pycocotools.install import init_as_pycocotools
from jaccard_eval.errors import ExitCode

USAGE = "usage: python -m jaccard_eval.patch (SCRIPT | -m MODULE) [ARGUMENT ...]"


def main(arguments: list[str]) -> int:
    """Run what the arguments name as the main program; return the exit code of a usage error."""
    is_module = arguments[:1] == ["-m"]
    named = arguments[1:] if is_module else arguments
    if not named or (not is_module and named[0].startswith("-")):
        print(USAGE, file=sys.stderr)
        return ExitCode.USAGE
    if not is_module and not Path(named[0]).exists():
        print(f"error: {named[0]}: no such file. {USAGE}", file=sys.stderr)
        return ExitCode.USAGE
    init_as_pycocotools()
    init_as_faster_coco_eval()
    init_as_lvis()
    # As Python itself leaves it: the program sees its own name and arguments, and imports from its folder.
    sys.argv = named
    if is_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(named[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(named[0]).resolve().parent)
        runpy.run_path(named[0], run_name="__main__")
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
