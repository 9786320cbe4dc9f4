"""Evaluate object detection: any common format in, exact average precision out.

Importing this package loads nothing else; each public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaccard_eval.analysis.gaterules import Gates, Rule, Slice
    from jaccard_eval.api import compare, evaluate, inspect, load, pixels, sensitivity
    from jaccard_eval.api.comparing import CompareOptions
    from jaccard_eval.api.converting import convert
    from jaccard_eval.api.explaining import explain
    from jaccard_eval.api.gating import gate
    from jaccard_eval.api.verifying import verify
    from jaccard_eval.data.bootstrap import Bootstrap
    from jaccard_eval.data.boxtable import BoxTable
    from jaccard_eval.data.comparison import ComparisonResult
    from jaccard_eval.data.dataset import Dataset
    from jaccard_eval.data.errorreport import ErrorReport
    from jaccard_eval.data.explanation import ExplanationResult
    from jaccard_eval.data.inspection import Inspection
    from jaccard_eval.data.metricref import MetricRef
    from jaccard_eval.data.pixels import PixelsResult
    from jaccard_eval.data.protocol import AreaRange, Protocol, get_protocol
    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.data.sensitivity import ScaleOptions
    from jaccard_eval.data.verdict import GateVerdict
    from jaccard_eval.data.verification import Verification
    from jaccard_eval.errors import DataError, JaccardEvalError, UsageError
    from jaccard_eval.formats import ReadOptions
    from jaccard_eval.frames import to_frame
    from jaccard_eval.geometry.grid import decode_grid
    from jaccard_eval.geometry.iou import (
        box_ciou,
        box_diou,
        box_giou,
        box_ioa,
        box_iou,
        jaccard_distance,
        jaccard_from_counts,
    )
    from jaccard_eval.geometry.losses import ciou_loss, diou_loss, giou_loss, iou_loss
    from jaccard_eval.geometry.transform import clip, scale
    from jaccard_eval.matching.nms import nms, soft_nms, weighted_nms
    from jaccard_eval.metrics.displacement import displaced_iou, smallest_side
    from jaccard_eval.metrics.pixels import ConfusionCounts, pixel_metrics
    from jaccard_eval.metrics.sensitivity import exchange_rate, jaccard_from_error

__version__ = "0.2.0.dev0"

_HOMES = {
    "AreaRange": "data.protocol",
    "Bootstrap": "data.bootstrap",
    "BoxTable": "data.boxtable",
    "CompareOptions": "api.comparing",
    "ComparisonResult": "data.comparison",
    "ConfusionCounts": "metrics.pixels",
    "DataError": "errors",
    "Dataset": "data.dataset",
    "ErrorReport": "data.errorreport",
    "EvaluationResult": "data.result",
    "ExplanationResult": "data.explanation",
    "GateVerdict": "data.verdict",
    "Gates": "analysis.gaterules",
    "Inspection": "data.inspection",
    "JaccardEvalError": "errors",
    "MetricRef": "data.metricref",
    "PixelsResult": "data.pixels",
    "Protocol": "data.protocol",
    "ReadOptions": "formats",
    "Rule": "analysis.gaterules",
    "ScaleOptions": "data.sensitivity",
    "Slice": "analysis.gaterules",
    "UsageError": "errors",
    "Verification": "data.verification",
    "box_ciou": "geometry.iou",
    "box_diou": "geometry.iou",
    "box_giou": "geometry.iou",
    "box_ioa": "geometry.iou",
    "box_iou": "geometry.iou",
    "ciou_loss": "geometry.losses",
    "clip": "geometry.transform",
    "compare": "api",
    "convert": "api.converting",
    "decode_grid": "geometry.grid",
    "diou_loss": "geometry.losses",
    "displaced_iou": "metrics.displacement",
    "evaluate": "api",
    "exchange_rate": "metrics.sensitivity",
    "explain": "api.explaining",
    "gate": "api.gating",
    "get_protocol": "data.protocol",
    "giou_loss": "geometry.losses",
    "inspect": "api",
    "iou_loss": "geometry.losses",
    "jaccard_distance": "geometry.iou",
    "jaccard_from_counts": "geometry.iou",
    "jaccard_from_error": "metrics.sensitivity",
    "load": "api",
    "nms": "matching.nms",
    "pixel_metrics": "metrics.pixels",
    "pixels": "api",
    "scale": "geometry.transform",
    "sensitivity": "api",
    "smallest_side": "metrics.displacement",
    "soft_nms": "matching.nms",
    "to_frame": "frames",
    "verify": "api.verifying",
    "weighted_nms": "matching.nms",
}

__all__ = [
    "AreaRange",
    "Bootstrap",
    "BoxTable",
    "CompareOptions",
    "ComparisonResult",
    "ConfusionCounts",
    "DataError",
    "Dataset",
    "ErrorReport",
    "EvaluationResult",
    "ExplanationResult",
    "GateVerdict",
    "Gates",
    "Inspection",
    "JaccardEvalError",
    "MetricRef",
    "PixelsResult",
    "Protocol",
    "ReadOptions",
    "Rule",
    "ScaleOptions",
    "Slice",
    "UsageError",
    "Verification",
    "box_ciou",
    "box_diou",
    "box_giou",
    "box_ioa",
    "box_iou",
    "ciou_loss",
    "clip",
    "compare",
    "convert",
    "decode_grid",
    "diou_loss",
    "displaced_iou",
    "evaluate",
    "exchange_rate",
    "explain",
    "gate",
    "get_protocol",
    "giou_loss",
    "inspect",
    "iou_loss",
    "jaccard_distance",
    "jaccard_from_counts",
    "jaccard_from_error",
    "load",
    "nms",
    "pixel_metrics",
    "pixels",
    "scale",
    "sensitivity",
    "smallest_side",
    "soft_nms",
    "to_frame",
    "verify",
    "weighted_nms",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
