"""Evaluate a workload with edits of the package, a process for each; print the first case that notices it, or null.

    python mutant_run.py WORKLOAD.json < EDITS.json

EDITS is a list of [module, text]; the modules of the package are loaded when the edit is in place.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import json
import math
import multiprocessing
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec  # noqa: F401 - loaded once, before the processes part
import numpy as np

AT_A_TIME = 2
TOLERANCE = 1e-12

Case = dict[str, Any]
Edit = tuple[str, str]  # name of a module, and its text


class EditedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from another text than that of its file."""

    text = ""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text."""
        return compile(self.text, self.path, "exec")


class EditFinder(MetaPathFinder):
    """Finds one module with its edit."""

    def __init__(self, edit: Edit) -> None:
        self.module, self.text = edit

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's place, to be loaded from the text."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if fullname == self.module else None
        if spec is not None and spec.origin is not None:
            spec.loader = EditedLoader(fullname, spec.origin)
            spec.loader.text = self.text
        return spec


def main() -> None:
    """Print a list with a name or null for each edit."""
    workload = json.loads(Path(sys.argv[1]).read_bytes())
    warnings.simplefilter("ignore")
    with multiprocessing.get_context("fork").Pool(AT_A_TIME, maxtasksperchild=1) as pool:
        print(json.dumps(pool.map(partial(first_difference, workload), json.load(sys.stdin), chunksize=1)))


def first_difference(workload: Sequence[Case], edit: Edit) -> str | None:
    """Return the name of the first case that gives anything but what is expected."""
    assert "jaccard_eval" not in sys.modules
    sys.meta_path.insert(0, EditFinder(edit))
    noticed = next((case["name"] for case in workload if differs(case)), None)
    # A module that cannot be loaded with its edit breaks everything and proves nothing.
    assert edit[0] in sys.modules, f"{edit[0]} cannot be loaded with its edit"
    assert isinstance(sys.modules[edit[0]].__loader__, EditedLoader)
    return noticed


def differs(case: Case) -> bool:
    """Whether a case gives anything but what is expected; one that cannot be evaluated at all differs too."""
    try:
        return _coco_differs(case) if case["protocol"] == "coco" else _voc_differs(case)
    except Exception:
        return True


def digest(values: Any) -> str:
    """Return a fingerprint of the bits and shape of an array."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()


def _coco_differs(case: Case) -> bool:
    import adapter

    from jaccard_eval import evaluate
    from jaccard_eval.features.audit import compute

    compute.CHECKS = ()  # advice takes most of the time, and is not compared
    result = evaluate(case["gt"], case["dt"], allow=["max-dets"], **case["options"])
    got = adapter.arrays(result)
    if "stats" in case["digests"]:
        got["stats"] = adapter.stats(result)
    return any(digest(got[name]) != expected for name, expected in case["digests"].items())


def _voc_differs(case: Case) -> bool:
    import vocscenes

    truth, detections = (json.loads(Path(case[side]).read_bytes()) for side in ("gt", "dt"))
    result = vocscenes.evaluate(truth, detections, "plus_one", case["key"])
    if not math.isclose(result["AP"], case["AP"], rel_tol=0.0, abs_tol=TOLERANCE):
        return True
    return any(vocscenes.labels(result, name) != labels for name, labels in case["labels"].items())


if __name__ == "__main__":
    main()
