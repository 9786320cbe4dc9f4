"""Saved runs: evaluations read back with their match tables, to be compared without their inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.api.verifying import saved_protocol
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import Correspondence, EvaluationResult, InputSummary
from jaccard_eval.errors import FindingLog, UsageError, shown_json
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs
from jaccard_eval.reading.npz import load_archive
from jaccard_eval.report.outputs.npz import COLUMNS, DOCUMENT, RUN_SCHEMA
from jaccard_eval.runs.documents import invalid_run, read_run, require_result

Arrays = Mapping[str, npt.NDArray[Any]]

_FLOATS = ("score", "area", "xywh", "pair_overlap", "gt_xywh")
_KINDS = {**dict.fromkeys(COLUMNS, "i"), **dict.fromkeys(_FLOATS, "f"), "gt_ignored": "b"}
_LENGTHS = {  # column -> the column that is as long, along its last axis but for boxes
    **dict.fromkeys(("label", "rank", "source", "score", "area", "xywh"), "image"),
    **dict.fromkeys(("gt_label", "gt_source", "gt_xywh", "gt_ignored"), "gt_image"),
    **dict.fromkeys(("pair_gt", "pair_overlap"), "pair_detection"),
    "choice": "candidate",
}
_BOXES = ("xywh", "gt_xywh")
_POINTERS = {"candidate": "image", "pair_detection": "image", "pair_gt": "gt_image", "choice": "pair_detection"}


def load_run(path: Path) -> EvaluationResult:
    """Read an evaluation with its match table; metrics are computed from the table again.

    Raises
    ------
    DataError
        When it is no saved run, or its arrays do not belong together.
    """
    log = FindingLog()
    arrays = load_archive(path, log).arrays
    if DOCUMENT not in arrays:
        raise invalid_run(path, "is an archive of arrays, and no saved run")
    run = read_run(path, arrays)
    if run["run_schema"] != RUN_SCHEMA:
        raise invalid_run(path, f"has run schema {shown_json(run['run_schema'])}; expected {RUN_SCHEMA}")
    require_result(path, run["result"], (EvaluationResult.kind,))
    try:
        protocol = saved_protocol(run["result"]["protocol"])
    except UsageError as error:
        raise invalid_run(path, f"cannot be read back: {error}") from None
    problems = list(_problems(arrays, protocol, run))
    if problems:
        raise invalid_run(path, "; ".join(problems))
    return _result(run, arrays, protocol)


def _result(run: Mapping[str, Any], arrays: Arrays, protocol: Protocol) -> EvaluationResult:
    document, classes = run["result"], tuple(run["class_names"])
    table = MatchTable(protocol=protocol, n_labels=len(classes), **{name: arrays[name] for name in COLUMNS})
    metrics = DetectionMetrics(table, classes, tuple(run["image_names"]), area_known=run["area_known"])
    return EvaluationResult(
        protocol=protocol,
        signature=document["signature"],
        version=document["tool"]["version"],
        gt=_known_fields(InputSummary, document["inputs"]["gt"]),
        pred=_known_fields(InputSummary, document["inputs"]["pred"]),
        correspondence=_known_fields(Correspondence, document["correspondence"]),
        metrics={str(ref): metrics.value(ref) for ref in summary_refs(protocol)},
        per_class=metrics.per_class(class_refs(protocol)),
        operating_points=(),
        findings=(),
        measured=metrics,
        options=document["options"],
    )


def _known_fields(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Make a record of what a document has of it; lists become tuples."""
    names = {field.name for field in fields(kind)}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k in names})


def _problems(arrays: Arrays, protocol: Protocol, run: Mapping[str, Any]) -> Iterator[str]:
    """Say what of the arrays does not belong together: whatever is left can be computed with."""
    wrong = [name for name in COLUMNS if name not in arrays or arrays[name].dtype.kind != _KINDS[name]]
    if wrong:
        yield f"arrays are missing or of a wrong type: {', '.join(wrong)}"
        return
    n_areas, n_thresholds = len(protocol.areas), len(protocol.iou_thresholds)
    for name in COLUMNS:
        length = len(arrays[_LENGTHS.get(name, name)])
        shape = {"choice": (n_areas, n_thresholds, length), "gt_ignored": (n_areas, length)}.get(name, (length,))
        expected = (length, 4) if name in _BOXES else shape
        if arrays[name].shape != expected:
            yield f"{name} has shape {arrays[name].shape}, expected {expected}"
            return
    limits = {name: len(arrays[target]) for name, target in _POINTERS.items()}
    limits |= {"image": len(run["image_names"]), "gt_image": len(run["image_names"])}
    limits |= {"label": len(run["class_names"]), "gt_label": len(run["class_names"])}
    for name, limit in limits.items():
        values, least = arrays[name], -1 if name == "choice" else 0
        if values.size and not least <= values.min() <= values.max() < limit:
            yield f"{name} points to rows that do not exist"
    if any(not np.isfinite(arrays[name]).all() for name in _FLOATS):
        yield "numbers are not finite"
