"""Evaluate a workload with whatever `jaccard_eval` comes first on the path; print its home and the cases that differ.

    python mutant_run.py WORKLOAD.json [--first]

With ``--first`` it stops at the first difference. A case that cannot be evaluated at all differs too.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import adapter
import numpy as np
import vocscenes

import jaccard_eval

TOLERANCE = 1e-12


def main() -> None:
    """Print the package's home, then the name of each case that differs."""
    workload = json.loads(Path(sys.argv[1]).read_bytes())
    warnings.simplefilter("ignore")
    print(jaccard_eval.__file__)
    for case in workload:
        if differs(case):
            print(case["name"])
            if "--first" in sys.argv:
                return


def differs(case: dict[str, Any]) -> bool:
    """Whether a case gives anything but what is expected."""
    try:
        return _coco_differs(case) if case["protocol"] == "coco" else _voc_differs(case)
    except Exception:
        return True


def digest(values: Any) -> str:
    """Return a fingerprint of the bits and shape of an array."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()


def _coco_differs(case: dict[str, Any]) -> bool:
    result = jaccard_eval.evaluate(case["gt"], case["dt"], **case["options"])
    got = adapter.arrays(result)
    if "stats" in case["digests"]:
        got["stats"] = adapter.stats(result)
    return any(digest(got[name]) != expected for name, expected in case["digests"].items())


def _voc_differs(case: dict[str, Any]) -> bool:
    truth, detections = (json.loads(Path(case[side]).read_bytes()) for side in ("gt", "dt"))
    result = vocscenes.evaluate(truth, detections, "plus_one", case["key"])
    if not math.isclose(result["AP"], case["AP"], rel_tol=0.0, abs_tol=TOLERANCE):
        return True
    return any(vocscenes.labels(result, name) != labels for name, labels in case["labels"].items())


if __name__ == "__main__":
    main()
