"""Evaluate object detection: any common format in, exact average precision out.

Importing this package loads nothing that it is made of; each public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jaccard_eval.registry import provide

if TYPE_CHECKING:
    from jaccard_eval.api.library import (
        compare,
        convert,
        evaluate,
        explain,
        gate,
        inspect,
        labels,
        load,
        nms,
        panoptic,
        pixels,
        sensitivity,
        verify,
    )
    from jaccard_eval.api.results import log_metrics
    from jaccard_eval.api.streaming import Evaluator
    from jaccard_eval.api.suites import history, suite
    from jaccard_eval.compat.torchmetrics import MeanAveragePrecision
    from jaccard_eval.data.boxtable import BoxTable
    from jaccard_eval.data.dataset import Dataset
    from jaccard_eval.data.metricref import MetricRef
    from jaccard_eval.data.protocol import AreaRange, Protocol, get_protocol
    from jaccard_eval.data.result import EvaluationResult, GateResult, GateVerdict
    from jaccard_eval.errors import JaccardEvalError, UsageError
    from jaccard_eval.features.compare import ComparisonResult
    from jaccard_eval.features.compare.comparison import CompareOptions
    from jaccard_eval.features.errors import ErrorReport
    from jaccard_eval.features.explain import ExplanationResult
    from jaccard_eval.features.gates import Gates, Rule
    from jaccard_eval.features.history import HistoryResult
    from jaccard_eval.features.inspect import Inspection
    from jaccard_eval.features.labels import LabelsResult
    from jaccard_eval.features.nms import soft_nms, weighted_nms
    from jaccard_eval.features.panoptic import PanopticResult
    from jaccard_eval.features.pixels import PixelsResult, pixel_metrics
    from jaccard_eval.features.scale import ScaleOptions
    from jaccard_eval.features.scale.compute import exchange_rate, jaccard_from_error
    from jaccard_eval.features.suite import SuiteResult
    from jaccard_eval.features.verify import Verification
    from jaccard_eval.findings import DataError, JaccardEvalWarning
    from jaccard_eval.frames import to_frame
    from jaccard_eval.metrics.pixel_counts import ConfusionCounts
    from jaccard_eval.options import Bootstrap, ReadOptions, Slice
    from jaccard_eval.runs import load_result
    from jaccard_eval.similarity.encoding import clip, decode_grid, scale
    from jaccard_eval.similarity.iou import (
        box_ciou,
        box_diou,
        box_giou,
        box_ioa,
        box_iou,
        ciou_loss,
        diou_loss,
        giou_loss,
        iou_loss,
        jaccard_distance,
        jaccard_from_counts,
    )
    from jaccard_eval.version import __version__ as __version__

_HOMES = {
    "__version__": "version",
    "AreaRange": "data.protocol",
    "Bootstrap": "options",
    "BoxTable": "data.boxtable",
    "CompareOptions": "features.compare.comparison",
    "ComparisonResult": "features.compare",
    "ConfusionCounts": "metrics.pixel_counts",
    "DataError": "findings",
    "Dataset": "data.dataset",
    "ErrorReport": "features.errors",
    "EvaluationResult": "data.result",
    "Evaluator": "api.streaming",
    "ExplanationResult": "features.explain",
    "GateResult": "data.result",
    "GateVerdict": "data.result",
    "Gates": "features.gates",
    "Inspection": "features.inspect",
    "LabelsResult": "features.labels",
    "JaccardEvalError": "errors",
    "JaccardEvalWarning": "findings",
    "MeanAveragePrecision": "compat.torchmetrics",
    "MetricRef": "data.metricref",
    "PanopticResult": "features.panoptic",
    "PixelsResult": "features.pixels",
    "Protocol": "data.protocol",
    "ReadOptions": "options",
    "Rule": "features.gates",
    "ScaleOptions": "features.scale",
    "Slice": "options",
    "HistoryResult": "features.history",
    "SuiteResult": "features.suite",
    "UsageError": "errors",
    "Verification": "features.verify",
    "box_ciou": "similarity.iou",
    "box_diou": "similarity.iou",
    "box_giou": "similarity.iou",
    "box_ioa": "similarity.iou",
    "box_iou": "similarity.iou",
    "ciou_loss": "similarity.iou",
    "clip": "similarity.encoding",
    "compare": "api.library",
    "convert": "api.library",
    "decode_grid": "similarity.encoding",
    "diou_loss": "similarity.iou",
    "evaluate": "api.library",
    "exchange_rate": "features.scale.compute",
    "explain": "api.library",
    "gate": "api.library",
    "get_protocol": "data.protocol",
    "giou_loss": "similarity.iou",
    "inspect": "api.library",
    "labels": "api.library",
    "iou_loss": "similarity.iou",
    "jaccard_distance": "similarity.iou",
    "jaccard_from_counts": "similarity.iou",
    "jaccard_from_error": "features.scale.compute",
    "load": "api.library",
    "load_result": "runs",
    "log_metrics": "api.results",
    "nms": "api.library",
    "panoptic": "api.library",
    "pixel_metrics": "features.pixels",
    "pixels": "api.library",
    "scale": "similarity.encoding",
    "sensitivity": "api.library",
    "soft_nms": "features.nms",
    "history": "api.suites",
    "suite": "api.suites",
    "to_frame": "frames",
    "verify": "api.library",
    "weighted_nms": "features.nms",
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
    "Evaluator",
    "ExplanationResult",
    "GateResult",
    "GateVerdict",
    "Gates",
    "HistoryResult",
    "Inspection",
    "JaccardEvalError",
    "JaccardEvalWarning",
    "LabelsResult",
    "MeanAveragePrecision",
    "MetricRef",
    "PanopticResult",
    "PixelsResult",
    "Protocol",
    "ReadOptions",
    "Rule",
    "ScaleOptions",
    "Slice",
    "SuiteResult",
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
    "evaluate",
    "exchange_rate",
    "explain",
    "gate",
    "get_protocol",
    "giou_loss",
    "history",
    "inspect",
    "iou_loss",
    "jaccard_distance",
    "jaccard_from_counts",
    "jaccard_from_error",
    "labels",
    "load",
    "load_result",
    "log_metrics",
    "nms",
    "panoptic",
    "pixel_metrics",
    "pixels",
    "scale",
    "sensitivity",
    "soft_nms",
    "suite",
    "to_frame",
    "verify",
    "weighted_nms",
]


def _results() -> Any:
    from jaccard_eval.api import results

    return results


def _features() -> Any:
    from jaccard_eval import features

    return features


# Results write, draw and report themselves by what lies above them.
provide("results", _results)
provide("features", _features)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
