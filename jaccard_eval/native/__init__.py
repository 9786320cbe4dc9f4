"""The compiled core, where this installation has one: the same values, sooner; everything works without it.

It is built with the package where there is a C++ compiler, and called by ctypes, so that one build serves every Python.
``JACCARD_EVAL_NATIVE=0`` turns it off.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

VARIABLE = "JACCARD_EVAL_NATIVE"
LIBRARY = Path(__file__).with_name("_core.so")  # by this name on every system
VERSION = 21  # of its functions, as core.cpp has it

_POINTER, _INTEGER, _NUMBER, _SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_size_t
# What each returns, then what it takes.
_FUNCTIONS = {
    "scan_results": (_INTEGER, _POINTER, _SIZE, ctypes.POINTER(_SIZE), *[_INTEGER] * 3, *[_POINTER] * 4),
    "scan_truth": (_INTEGER, _POINTER, _SIZE, ctypes.POINTER(_SIZE), _INTEGER, _INTEGER, *[_POINTER] * 9),
    "rank": (_INTEGER, *[_INTEGER] * 4, *[_POINTER] * 7),
    "pair_boxes": (_INTEGER, _INTEGER, ctypes.POINTER(_INTEGER), _INTEGER, _NUMBER, _NUMBER, *[_POINTER] * 9),
    "first_come": (_INTEGER, *[_INTEGER] * 3, *[_POINTER] * 6),
    "find_hits": (_INTEGER, *[_INTEGER] * 6, *[_POINTER] * 10),
    "interpolate": (None, *[_INTEGER] * 3, _NUMBER, _INTEGER, *[_POINTER] * 6),
    "weigh_curves": (None, *[_INTEGER] * 6, _NUMBER, *[_POINTER] * 17),
    "hash_rows": (None, _INTEGER, *[_POINTER] * 10),
    "pack_rows": (None, _INTEGER, _INTEGER, *[_POINTER] * 5),
    "digest_rows": (_INTEGER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER),
    "count_pairs": (_INTEGER, _INTEGER, _INTEGER, _POINTER, _POINTER, _INTEGER, _POINTER, _POINTER),
    "scan_shapes": (_INTEGER, _POINTER, _SIZE, ctypes.POINTER(_SIZE), *[_INTEGER] * 5, *[_POINTER] * 8),
    "read_outlines": (_INTEGER, _POINTER, _SIZE, _INTEGER, *[_POINTER] * 11),
    "read_poses": (_INTEGER, _POINTER, _SIZE, _INTEGER, _POINTER, _POINTER, _INTEGER, _POINTER),
    "fill_polygons": (_INTEGER, _INTEGER, *[_POINTER] * 8),
    "measure_masks": (None, _INTEGER, *[_POINTER] * 5),
    "encode_masks": (None, _INTEGER, *[_POINTER] * 5),
    "gather": (None, _INTEGER, _INTEGER, *[_POINTER] * 4),
    "read_numbers": (_INTEGER, _POINTER, _SIZE, _INTEGER, _POINTER),
    "write_rows": (_INTEGER, _INTEGER, _INTEGER, *[_POINTER] * 5, *[_INTEGER] * 3, *[_POINTER] * 2),
    "intersect": (None, _INTEGER, *[_POINTER] * 7),
    "compare_poses": (_INTEGER, _INTEGER, *[_POINTER] * 2, _INTEGER, *[_POINTER] * 5, _NUMBER, *[_POINTER] * 3),
}


def is_on() -> bool:
    """Whether the compiled core is to be used where it is there."""
    return os.environ.get(VARIABLE, "1") != "0"


@cache
def _load() -> ctypes.CDLL | None:
    try:
        core = ctypes.CDLL(str(LIBRARY))
        core.jaccard_core_version.restype = _INTEGER
        if core.jaccard_core_version() != VERSION:
            return None
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(core, f"jaccard_{name}")
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):  # not built, or built for another machine
        return None
    return core


def load_core() -> ctypes.CDLL | None:
    """Return the compiled core; None where there is none, or it is turned off."""
    return _load() if is_on() else None


def describe_core() -> str:
    """Return whether the compiled core runs, for a bug report."""
    if not is_on():
        return f"off ({VARIABLE}=0)"
    return "no" if _load() is None else f"yes (version {VERSION})"
