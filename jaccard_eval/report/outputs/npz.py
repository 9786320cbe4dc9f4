"""The NumPy archive of an evaluation: its JSON document and its match table, from which any number can be asked again.

Arrays of numbers only, nothing that has to be unpickled. It is read back by ``savedruns``.
"""

from __future__ import annotations

import io
import json
from dataclasses import fields
from typing import Any

import numpy as np

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.report import Reportable, ReportOptions

SUFFIXES = (".npz",)
DOCUMENT = "jaccard_eval_run"  # the entry that holds the document; by its name a run is known
RUN_SCHEMA = 1
COLUMNS = tuple(field.name for field in fields(MatchTable) if field.name not in ("protocol", "n_labels"))


def render(result: Reportable, options: ReportOptions) -> bytes:
    """Return the archive; `options` change nothing.

    Raises
    ------
    UsageError
        When the result is no evaluation of boxes.
    """
    metrics = result.measured if isinstance(result, EvaluationResult) else None
    if not isinstance(metrics, DetectionMetrics):
        raise UsageError(f"results of the kind {result.kind} have no match table for .npz; use .json")
    names = {"class_names": metrics.class_names, "image_names": metrics.image_names}
    run = {"run_schema": RUN_SCHEMA, "result": result.to_dict(), "area_known": metrics.area_known, **names}
    text = json.dumps(run, sort_keys=True, ensure_ascii=True, allow_nan=False)
    arrays: dict[str, Any] = {DOCUMENT: np.frombuffer(text.encode(), dtype=np.uint8)}
    arrays |= {name: getattr(metrics.table, name) for name in COLUMNS}
    file = io.BytesIO()  # not compressed: what unpacks to far more than it takes is refused when it is read
    np.savez(file, **arrays)
    return file.getvalue()
