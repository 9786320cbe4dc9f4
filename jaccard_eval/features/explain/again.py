"""The two sides of an evaluation that was made, to ask them more: the aligned boxes are in its result."""

from __future__ import annotations

from dataclasses import replace

from jaccard_eval.data.alignment import align
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap, Reading, unknown_sizes
from jaccard_eval.data.result import EvaluationResult, InputSummary
from jaccard_eval.data.sides import Prints, Sides
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, RowHasher, signature, without_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.metrics.detection import detection_metrics
from jaccard_eval.options import SideOptions


def sides_again(result: EvaluationResult) -> Sides:
    """Return the sides that were matched, in the same rows and with the same fingerprints."""
    metrics = detection_metrics(result)
    if result.boxes is None or result.protocol.class_agnostic:
        raise UsageError(
            "explain needs the boxes of this evaluation and their classes, which its result does not have; "
            "pass ground truth and predictions with the same options"
        )
    units = "px" if metrics.area_known else "norm"

    def side(role: str, summary: InputSummary, boxes: BoxTable) -> Dataset:
        images, classes = tuple(metrics.image_names), metrics.class_names
        return Dataset(
            path=summary.path,
            format=summary.format,
            role=role,
            # Rows are the keys: names need not be unique.
            images=ImageTable(tuple(range(len(images))), images, unknown_sizes(len(images)), listed=True),
            labels=LabelMap(tuple(range(len(classes))), classes, named=False),
            boxes=boxes,
            units=units,
            reading=Reading("xywh", units, named=("box", "units")),
        )

    gt, pred = (
        side(role, summary, boxes)
        for role, summary, boxes in zip(("gt", "pred"), (result.gt, result.pred), result.boxes, strict=True)
    )
    aligned = replace(
        align(gt, pred, SideOptions(match_images="id")), correspondence=result.correspondence, findings=()
    )
    hasher = RowHasher.of(aligned.image_names, aligned.class_names)
    fingerprints = result.gt.fingerprint, result.pred.fingerprint
    prints = Prints((hasher(aligned.gt_table), hasher(aligned.pred_table)), fingerprints)
    # What was found is part of the result; the ground truth's findings come first among those of the sides.
    found = replace(gt, findings=result.findings)
    return Sides(found, pred, aligned, _selection(result), lambda: prints, judged_by=result.protocol)


def _selection(result: EvaluationResult) -> tuple[str, ...]:
    """Return what was chosen of the data: the fields of the signature that are neither rules, inputs nor additions."""
    rules = signature(result.protocol, selection=(), gt="", pred="", version="").split("|")
    given = without_fields(result.signature, (*BESIDE_METRICS, *ORDERS, "images", "gt", "pred", "v")).split("|")
    return tuple(part for part in given if part not in rules)
