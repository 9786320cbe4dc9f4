"""Measuring: from both sides, brought together, and the rules of a protocol to the result of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaccard_eval.data.protocol import AreaRange, Protocol, get_protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import DataError, Where
from jaccard_eval.evaluation.sides import Sides, require_lists
from jaccard_eval.features.audit.compute import audit
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs

if TYPE_CHECKING:
    from jaccard_eval.data.alignment import Alignment
    from jaccard_eval.data.intervals import Bootstrap
    from jaccard_eval.features.errors.result import ErrorReport
    from jaccard_eval.features.gates.rules import Slice


def measure(
    sides: Sides, protocol: Protocol, *, score: float | str | None = None, errors: bool = False, version: str
) -> EvaluationResult:
    """Evaluate two sides; `api.evaluate` explains the options, and `version` is that of the tool.

    Raises
    ------
    DataError
        When the protocol needs sizes in pixels, and they are unknown.
    """
    aligned = sides.aligned
    metrics = detection_metrics(sides, protocol)
    gt, pred = sides.summaries()
    audited = audit(sides.gt, sides.pred, aligned, metrics, sides.hashes)
    return EvaluationResult(
        protocol=protocol,
        signature=sides.sign(protocol, *_point(score), version=version),
        version=version,
        gt=gt,
        pred=pred,
        correspondence=aligned.correspondence,
        metrics={str(ref): metrics.value(ref) for ref in summary_refs(protocol)},
        per_class=metrics.per_class(class_refs(protocol)),
        operating_points=() if score is None else metrics.operating_points(score),
        findings=(*sides.findings, *audited),
        errors=_errors(metrics, aligned, score) if errors else None,
        measured=metrics,
    )


def _errors(metrics: DetectionMetrics, aligned: Alignment, score: float | str | None) -> ErrorReport:
    from jaccard_eval.features.errors.compute import report_errors  # most evaluations do not ask for it

    return report_errors(metrics, aligned.gt, aligned.pred, score)


def detection_metrics(sides: Sides, protocol: Protocol) -> DetectionMetrics:
    """Match, and return the metrics; see `measure` for the errors."""
    _require_pixels(sides, protocol)
    aligned = sides.aligned
    n_images, n_labels = len(aligned.image_names), len(aligned.class_names)
    table = match_boxes(aligned.gt, aligned.pred, protocol, n_images=n_images, n_labels=n_labels)
    names = ("all classes",) if protocol.class_agnostic else aligned.class_names
    return DetectionMetrics(table, names, aligned.image_names, area_known=aligned.units == "px")


def protocol_rules(
    protocol: str | Protocol,
    *,
    iou: Sequence[float] | None,
    max_dets: Sequence[int] | None,
    areas: Sequence[AreaRange] | None,
    class_agnostic: bool,
) -> Protocol:
    """Return a protocol, with what options change of it.

    Raises
    ------
    UsageError
        When there is no such protocol, or an option is not valid.
    """
    require_lists(iou=iou, max_dets=max_dets, areas=areas)
    rules = get_protocol(protocol) if isinstance(protocol, str) else protocol
    changes: dict[str, Any] = {"class_agnostic": class_agnostic or rules.class_agnostic}
    if iou is not None:
        changes["iou_thresholds"] = tuple(float(value) for value in iou)
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(int(value) for value in max_dets))
    if areas is not None:
        changes["areas"] = tuple(areas)
    return rules.with_options(**changes)


def bootstrap_settings(bootstrap: Bootstrap | int | None) -> Bootstrap | None:
    """Return how to resample; a number says how often."""
    if not isinstance(bootstrap, int):
        return bootstrap
    from jaccard_eval.data.intervals import Bootstrap

    return Bootstrap(n_resamples=bootstrap)


def with_parts(result: EvaluationResult, drawn: Bootstrap | None, slices: Sequence[Slice]) -> EvaluationResult:
    """Add the slices and intervals that were asked for."""
    if slices:
        from jaccard_eval.features.bootstrap.slicing import with_slices

        result = with_slices(result, slices, drawn)
    if drawn is not None:
        from jaccard_eval.features.bootstrap.intervals import with_intervals

        result = with_intervals(result, drawn)
    return result


def _point(score: float | str | None) -> list[str]:
    """Name the operating point as a signature does."""
    return [] if score is None else [f"score={score if isinstance(score, str) else repr(float(score))}"]


def _require_pixels(sides: Sides, protocol: Protocol) -> None:
    if protocol.pixel_offset and sides.aligned.units == "norm":
        raise DataError.single(
            "size-unknown",
            Where(sides.gt.path),
            f"protocol {protocol.name} adds a pixel to every side, but boxes are normalised and image sizes unknown",
            fix="Give the pictures with --images DIR.",
        )
