"""What is wrong with this input? Cheap checks of an evaluation that name a mistake, its evidence and its repair.

Every check reads what the evaluation has computed already, or a bounded sample, and records findings. The codes are
explained in ``docs/findings.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.data.boxtable import Words
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.protocol import BOXES, COCO, POINTS
from jaccard_eval.features.audit import FEWEST_MATCHED, STOP_GIVEN, AuditContext, Measure, place_agreement, take_sample
from jaccard_eval.features.audit.boxes import (
    DOUBTED,
    check_offsets,
    check_outside,
    check_readings,
    check_rounding,
    check_transposed,
)
from jaccard_eval.features.audit.correspondence import Confusion, check_classes, check_images
from jaccard_eval.features.audit.duplicates import (
    check_copies,
    check_difficult,
    check_repeats,
    check_rows,
    check_zero_id,
)
from jaccard_eval.features.audit.scores import check_scores, check_ties
from jaccard_eval.findings import Finding, FindingLog
from jaccard_eval.metrics.detection import DetectionMetrics, measure_aligned
from jaccard_eval.options import SideOptions
from jaccard_eval.progress import staged

Check = Callable[[AuditContext, FindingLog], None]


def check_resized(context: AuditContext, findings: FindingLog) -> None:
    """Warn of boxes in coordinates of other images than those of the other side, if there are enough of them."""
    if min(len(context.sample.gt), len(context.sample.pred)) >= FEWEST_MATCHED:
        from jaccard_eval.features.audit import resizing  # tiny runs go without

        resizing.check_resized(context, findings)


# Where check_readings explains poor agreement by the boxes, the others do not blame classes or images for it; what
# check_outside and check_rows report is not repeated by check_rows and check_scores.
# Copied ground truth comes first: it explains more than any advice.
CHECKS: tuple[Check, ...] = (
    check_copies,
    check_transposed,
    check_resized,
    check_readings,
    check_outside,
    check_rows,
    check_difficult,
    check_zero_id,
    check_offsets,
    check_classes,
    check_scores,
    check_ties,
    check_rounding,
    check_images,
)


# Points have no edges that could show how they are read, nor areas that chance could make overlap.
OF_POINTS = (check_copies, check_rows, check_difficult, check_classes, check_scores, check_ties)

# Where how detections rank is of no interest, what scores are like is not either.
OF_RANKINGS = (check_scores, check_ties)
# Boxes that hold the ground truth itself are read as they should be.
OF_READINGS = (check_transposed, check_resized, check_readings, check_offsets, check_rounding)
# What these report of boxes does not hold for masks or keypoints.
OF_BOXES = (check_offsets, check_rounding)


@staged("checking")
def audit(
    gt: Dataset,
    pred: Dataset,
    aligned: Alignment,
    metrics: DetectionMetrics,
    hashes: tuple[Words | None, Words | None],
    *,
    options: SideOptions | None = None,
    measure: Measure | None = None,
) -> tuple[Finding, ...]:
    """Run all checks on an evaluation; findings in the order of their weight.

    What is beyond doubt read wrongly is an error if `options` are given, else a warning. The `hashes` are of the rows
    of the aligned ground truth and predictions; `measure` matches boxes by other rules, in memory unless given.
    """
    placed = aligned.placement
    are_points = metrics.protocol.overlap in POINTS
    by_place = metrics.protocol if are_points else COCO
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table), protocol=by_place)
    context = AuditContext(
        gt=gt,
        pred=pred,
        aligned=aligned,
        metrics=metrics,
        sample=sample,
        gt_hashes=hashes[0],
        pred_hashes=hashes[1],
        options=options,
        measure=measure or partial(measure_aligned, aligned),
    )
    findings = FindingLog()
    usual = OF_POINTS if are_points else CHECKS
    for check in usual if metrics.protocol.iou_type == BOXES else _checks_of_shapes():
        is_idle = check in OF_RANKINGS and metrics.protocol.is_swept
        if not is_idle and (check not in OF_READINGS or not findings.has("pred-copies-gt")):
            check(context, findings)
    return findings.findings()


def _checks_of_shapes() -> tuple[Check, ...]:
    # Most evaluations are of boxes, and import no more than these need.
    from jaccard_eval.features.audit.shapes import check_angles, check_boundaries, check_keypoints, check_masks

    return (
        check_masks,
        check_boundaries,
        check_keypoints,
        check_angles,
        *(check for check in CHECKS if check not in OF_BOXES),
    )


def is_doubtful(aligned: Alignment) -> bool:
    """Whether a sample of the boxes leaves room for something read wrongly, which only the checks can settle."""
    placed = aligned.placement
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    return (
        place_agreement(sample).share < DOUBTED
        or Confusion.of(sample).agreement(aligned.classes.rows) <= STOP_GIVEN
        or any(finding.code == "image-extra" for finding in aligned.findings)
    )


def audit_alone(side: Dataset) -> tuple[Finding, ...]:
    """Run the checks that one side allows without the other."""
    findings = FindingLog()
    check_repeats(side, findings)
    if any(table.shapes is not None for table in side.boxes.tables()):
        from jaccard_eval.features.audit.shapes import check_sizes  # most inputs are boxes

        check_sizes(side, findings)
    return findings.findings()
