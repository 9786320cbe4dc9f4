"""A result built by hand: rendering needs values, not an evaluation."""

import math
from collections.abc import Mapping
from types import SimpleNamespace

from jaccard_eval.data.document import MetricValue, Rows
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO, Protocol
from jaccard_eval.data.result import ClassRow, Correspondence, EvaluationResult, InputSummary, OperatingPoint
from jaccard_eval.findings import Finding


def metric(ref: str, value: float, n: int = 10) -> MetricValue:
    reason = "no small ground truth" if math.isnan(value) else None
    return MetricValue(ref=MetricRef.parse(ref), value=value, n=n, reason=reason)


def class_row(name: str, gt: int, pred: int, values: Mapping[str, float]) -> ClassRow:
    return ClassRow(
        name=name, gt=gt, ignored=1, pred=pred, values={key: metric(key, value, gt) for key, value in values.items()}
    )


def side(path: str, format_name: str, boxes: int) -> InputSummary:
    return InputSummary(
        path=path,
        format=format_name,
        units="px",
        images=100,
        boxes=boxes,
        classes=2,
        fingerprint="c0ffee",
        details=("boxes are xywh in pixels",),
        ignored={"image-unlisted": 3} if format_name == "coco" else {},
    )


def correspondence(classes: Mapping[str, str]) -> Correspondence:
    return Correspondence(
        image_strategy="file name",
        class_strategy="name",
        matched_images=98,
        n_gt_only_images=2,
        n_pred_only_images=7,
        gt_only_images=("a.jpg", "b.jpg"),
        pred_only_images=tuple(f"{i}.jpg" for i in range(7)),
        classes=tuple(classes.items()),
        gt_only_classes=(),
        pred_only_classes=("unicorn",),
    )


def make_result(
    *,
    classes: Mapping[str, Mapping[str, float]] | None = None,
    metrics: Mapping[str, float] | None = None,
    protocol: Protocol = COCO,
    points: tuple[OperatingPoint, ...] = (),
    findings: tuple[Finding, ...] = (),
    path: str = "gt.json",
) -> EvaluationResult:
    values = {"AP": 0.5, "AP50": 0.75, "AP_small": math.nan} if metrics is None else metrics
    rows = {"cat": {"AP": 0.25, "AP50": 0.5}, "dog": {"AP": 0.75, "AP50": 1.0}} if classes is None else classes
    return EvaluationResult(
        protocol=protocol,
        signature="jaccard-eval:0.1.0|protocol:coco|iou:0.5:0.95",
        version="0.1.0",
        gt=side(path, "coco", 839),
        pred=side("pred.json", "yolo", 1734),
        correspondence=correspondence({name: name for name in rows}),
        metrics={name: metric(name, value) for name, value in values.items()},
        per_class=tuple(class_row(name, 10 * i + 10, 40, row) for i, (name, row) in enumerate(rows.items())),
        findings=findings,
        measured=SimpleNamespace(),  # type: ignore[arg-type]
        parts=(Rows("operating_points", points),),
    )
