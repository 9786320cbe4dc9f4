"""The codes of findings: what has a file in ``explained`` can be reported, allowed and explained.

The file of a code is all there is to write about it: what it means, ``Fix:``, a message, and an example that runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

EXPLAINED = Path(__file__).parent / "explained"

# Of what is beyond doubt read wrongly: files stop the run, unless the code is allowed.
STOPS = (
    "box-axes",
    "box-encoding",
    "box-resized",
    "box-units",
    "class-mapping",
    "image-extra",
    "image-number",
    "image-shifted",
    "mask-axes",
    "mask-of-box",
    "max-dets",
    "quad-upright",
)

# Notes on what is evaluated at all: which file of a folder, which split, which columns. --quiet prints them, too.
DECISIONS = frozenset(
    {
        "angle-assumed",
        "annotations-unused",
        "box-assumed",
        "columns-assumed",
        "corners-sorted",
        "images-in-common",
        "input-found",
    }
    | {"iou-type", "option-configured", "path-moved", "protocol-chosen", "split-chosen", "split-train"}
)
# Notes on what a protocol does not count, and why it was chosen: they stand in reports, as warnings do.
CAPS = frozenset({"max-dets", "protocol-chosen"})

_SUFFIX, _EXAMPLE = ".md", "\n## Example\n"
# Listed at every start: names alone take a fifth of the time of paths.
_NAMES = os.listdir(EXPLAINED)  # noqa: PTH208
CODES = frozenset(name.removesuffix(_SUFFIX) for name in _NAMES if name.endswith(_SUFFIX) and name[0] != "_")


def explanation(name: str) -> str:
    """Return what there is to write about a code, its message below the command of the example, if it has one."""
    text, _, example = _read(name).partition(_EXAMPLE)
    command = re.search(r"^\$ .*\n", example, re.MULTILINE)
    if command is None:
        return text
    return re.sub(r"^```\n(?=\w+\[)", lambda fence: f"{fence[0]}{command[0]}", text, count=1, flags=re.MULTILINE)


def introduction() -> str:
    """Return what is true of all findings."""
    return _read("_introduction")


def _read(name: str) -> str:
    return (EXPLAINED / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
