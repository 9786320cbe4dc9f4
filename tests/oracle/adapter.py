"""This project's numbers in the shape of pycocotools: files in, arrays with -1 for undefined out.

For drivers that compare implementations: ``diff_run.py --cases DIR --impl py:adapter:evaluate_files``, with this folder
on PYTHONPATH.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from exact import minus_one

import jaccard_eval
from jaccard_eval.data.metricref import COCO_SUMMARY, MetricRef
from jaccard_eval.data.result import EvaluationResult

ARRAYS = ("precision", "recall", "scores")
PER_CLASS = {  # name in the oracle: metric
    "AP": "AP",
    "AP50": "AP50",
    "AP75": "AP75",
    "APs": "AP_small",
    "APm": "AP_medium",
    "APl": "AP_large",
    "AR1": "AR1",
    "AR10": "AR10",
    "AR100": "AR100",
}


def evaluate_files(gt_path: str | Path, dt_path: str | Path, **options: Any) -> dict[str, Any]:
    """Evaluate two COCO files: `precision`, `recall`, `scores`, `stats` (12) and `per_class` by category id."""
    # Drawn cases have equal scores at the cap on purpose, which pycocotools settles by the order of the file.
    result = jaccard_eval.evaluate(gt_path, dt_path, **{"allow": ["max-dets"], **options})
    categories = json.loads(Path(gt_path).read_bytes())["categories"]
    return {
        **arrays(result),
        "stats": stats(result),
        "per_class": {one["id"]: _of_class(result, one["name"]) for one in categories},
    }


def arrays(result: EvaluationResult) -> dict[str, np.ndarray]:
    """Return the three arrays of an evaluation."""
    return {name: minus_one(getattr(result.curves, name)) for name in ARRAYS}


def stats(result: EvaluationResult) -> np.ndarray:
    """Return the twelve numbers of the summary."""
    return minus_one(np.array([result[name] for name in COCO_SUMMARY]))


def _of_class(result: EvaluationResult, class_name: str) -> dict[str, float]:
    refs = {name: replace(MetricRef.parse(metric), class_name=class_name) for name, metric in PER_CLASS.items()}
    return {name: float(minus_one(np.array(result.measured.value(ref).value))) for name, ref in refs.items()}
