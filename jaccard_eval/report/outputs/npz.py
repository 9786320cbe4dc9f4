"""The NumPy archive of an evaluation: its JSON document, the boxes of both sides, and which of them overlap.

From these any number can be asked again, without the inputs. Arrays of numbers only, nothing that has to be unpickled.
It is read back by `runs`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired

from jaccard_eval.data.document import DIGEST, RUN_ENTRY, Beside, document_digest
from jaccard_eval.errors import UsageError
from jaccard_eval.report import Reportable, Reporter, ReportOptions

if TYPE_CHECKING:
    from jaccard_eval.data.boxtable import BoxTable
    from jaccard_eval.metrics.detection import DetectionMetrics

RUN_SCHEMA = 2
# The columns of a run, listed here so that a new column of a table in memory does not change what files hold.
BOX_COLUMNS = (
    *("image", "label", "xywh", "score", "area", "crowd", "difficult", "group_of", "ignore", "source"),
    "outside",  # under protocols with subsets
)
PAIR_COLUMNS = ("pair_detection", "pair_gt", "pair_overlap")
# What it holds besides its arrays.
RUN: Beside = {
    **{"run_schema": Any, "result": Mapping[str, Any], "area_known": bool},
    **{"class_names": tuple[str, ...], "image_names": tuple[str, ...], "class_frequency": NotRequired[tuple[str, ...]]},
}

Arrays = Mapping[str, Any]  # of ndarrays; what needs NumPy is loaded when a run is written, not by the help of -o


def render(result: Reportable, options: ReportOptions) -> bytes:
    """Return the archive; `options` change nothing."""
    import numpy as np

    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.metrics.detection import DetectionMetrics

    metrics = result.measured if isinstance(result, EvaluationResult) else None
    if not isinstance(result, EvaluationResult) or not isinstance(metrics, DetectionMetrics) or result.boxes is None:
        raise UsageError(f"a result of kind {result.kind} has no match table, so it cannot be saved as .npz; use .json")
    gt, pred = result.boxes
    arrays = _side(gt, "gt", metrics) | _side(pred, "pred", metrics)
    arrays |= {name: getattr(metrics.table, name) for name in PAIR_COLUMNS}
    run: dict[str, Any] = {
        "run_schema": RUN_SCHEMA,
        "result": result.to_dict(),
        "area_known": metrics.area_known,
        "class_names": metrics.class_names,
        "image_names": list(metrics.image_names),
    }
    if metrics.frequency:
        run["class_frequency"] = metrics.frequency
    run[DIGEST] = digest_run(run, arrays)
    text = json.dumps(run, sort_keys=True, ensure_ascii=True, allow_nan=False)
    file = io.BytesIO()  # not compressed: what unpacks to far more than it takes is refused when it is read
    document: Arrays = {RUN_ENTRY: np.frombuffer(text.encode(), dtype=np.uint8)}
    np.savez(file, **document, **arrays)
    return file.getvalue()


def digest_run(run: Mapping[str, Any], arrays: Arrays) -> str:
    """Return the digest of all that a run holds: its document, and names, types, shapes and bytes of its arrays."""
    import numpy as np

    content = hashlib.sha256()
    for name in sorted(arrays.keys() - {RUN_ENTRY}):
        array = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(array.data)
    return document_digest({**run, "arrays": content.hexdigest()})


def _side(boxes: BoxTable, side: str, metrics: DetectionMetrics) -> dict[str, Any]:
    from jaccard_eval.similarity import KINDS

    columns = {f"{side}.{name}": getattr(boxes, name) for name in BOX_COLUMNS}
    arrays = {name: column for name, column in columns.items() if column is not None}
    # Shapes that were not measured do not belong to the run: nothing that is asked of it depends on them.
    if boxes.shapes is not None and KINDS[metrics.protocol.iou_type].shapes is not None:
        arrays |= {f"{side}.shapes.{name}": array for name, array in boxes.shapes.to_arrays().items()}
    return arrays


REPORTERS = (Reporter(suffixes=(".npz",), about="saved run, for compare and gate", render=render),)

SUFFIXES = REPORTERS[0].suffixes
