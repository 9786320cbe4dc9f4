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
VERSION = 9  # of its functions, as core.cpp has it

_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64


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
        core.jaccard_scan_results.restype = _INTEGER
        core.jaccard_scan_results.argtypes = [
            *(_POINTER, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t), _INTEGER, _INTEGER, _INTEGER),
            *(_POINTER, _POINTER, _POINTER, _POINTER),
        ]
        core.jaccard_scan_truth.restype = _INTEGER
        core.jaccard_scan_truth.argtypes = [_POINTER, ctypes.c_size_t, _INTEGER, *[_POINTER] * 8]
        core.jaccard_rank.restype = _INTEGER
        core.jaccard_rank.argtypes = [*[_INTEGER] * 4, *[_POINTER] * 7]
        core.jaccard_pair_boxes.restype = _INTEGER
        core.jaccard_pair_boxes.argtypes = [
            *(_INTEGER, ctypes.POINTER(_INTEGER), _INTEGER, ctypes.c_double, ctypes.c_double),
            *[_POINTER] * 9,
        ]
        core.jaccard_find_hits.restype = _INTEGER
        core.jaccard_find_hits.argtypes = [*[_INTEGER] * 6, *[_POINTER] * 10]
        core.jaccard_unfilter.restype = _INTEGER
        core.jaccard_unfilter.argtypes = [*[_INTEGER] * 3, *[_POINTER] * 3]
        core.jaccard_count_pairs.restype = _INTEGER
        core.jaccard_count_pairs.argtypes = [_INTEGER, _INTEGER, _POINTER, _POINTER, _INTEGER, _POINTER, _POINTER]
        core.jaccard_interpolate.restype = None
        core.jaccard_interpolate.argtypes = [*[_INTEGER] * 3, ctypes.c_double, *[_POINTER] * 6]
        core.jaccard_hash_rows.restype = None
        core.jaccard_hash_rows.argtypes = [_INTEGER, *[_POINTER] * 10]
        _declare_shapes(core)
    except (OSError, AttributeError):  # not built, or built for another machine
        return None
    return core


def _declare_shapes(core: ctypes.CDLL) -> None:
    text = (_POINTER, ctypes.c_size_t)
    for name, result, arguments in (
        ("scan_shapes", _INTEGER, (*text, *[_INTEGER] * 3, *[_POINTER] * 8)),
        ("read_outlines", _INTEGER, (*text, _INTEGER, *[_POINTER] * 11)),
        ("read_poses", _INTEGER, (*text, _INTEGER, _POINTER, _POINTER, _INTEGER, _POINTER)),
        ("fill_polygons", _INTEGER, (_INTEGER, *[_POINTER] * 8)),
        ("measure_masks", None, (_INTEGER, *[_POINTER] * 5)),
        ("hash_masks", None, (_INTEGER, *[_POINTER] * 4)),
        ("gather", None, (_INTEGER, _INTEGER, *[_POINTER] * 4)),
        ("intersect", None, (_INTEGER, *[_POINTER] * 7)),
        (
            "compare_poses",
            _INTEGER,
            (_INTEGER, *[_POINTER] * 2, _INTEGER, *[_POINTER] * 5, ctypes.c_double, *[_POINTER] * 3),
        ),
    ):
        function = getattr(core, f"jaccard_{name}")
        function.restype, function.argtypes = result, arguments


def load_core() -> ctypes.CDLL | None:
    """Return the compiled core; None where there is none, or it is turned off."""
    return _load() if is_on() else None


def describe_core() -> str:
    """Return whether the compiled core runs, for a bug report."""
    if not is_on():
        return f"off ({VARIABLE}=0)"
    return "no" if _load() is None else f"yes (version {VERSION})"
