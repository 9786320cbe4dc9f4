"""Results compared with the first of them: the same rules and ground truth, then differences and what is chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaccard_eval.data.result import EvaluationResult, Resamples
from jaccard_eval.data.signature import BESIDE_METRICS, signature_fields, without_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.compute import Run, paired_deltas
from jaccard_eval.features.bootstrap.intervals import count_units, remarks, resample_alike, slices_choice, warn_of_few
from jaccard_eval.features.compare.compute import MOVED_IOU, box_threshold, contender, versus, with_intervals
from jaccard_eval.features.compare.result import ComparisonResult, Versus
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.metrics.detection import detection_metrics
from jaccard_eval.metrics.slices import part_of, slice_refs
from jaccard_eval.options import BEST_F1, Bootstrap, Slice
from jaccard_eval.text import quoted_value

PER_RUN_FIELDS = ("pred", "class_map", "v", *BESIDE_METRICS)  # of a signature: each of the predictions has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How predictions are compared; what is said of boxes does not depend on slices and resamples.

    Parameters
    ----------
    score : float or "best-f1"
        Detections with at least this score are compared; by default, those of each that give it the best F1.
    box_iou : float, optional
        IoU threshold of the protocol from which a detection finds a box; 0.5 where it is one of them, else the lowest.
    moved_iou : float
        Least change of IoU that is told as a move.
    slices : sequence of Slice
        Parts of the images to compare as well.
    bootstrap : Bootstrap, optional
        How to resample the images for intervals of the differences.
    """

    score: float | str = BEST_F1
    box_iou: float | None = None
    moved_iou: float = MOVED_IOU
    slices: Sequence[Slice] = ()
    bootstrap: Bootstrap | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.moved_iou <= 1:
            raise UsageError(f"moved_iou must be between 0 and 1, got {self.moved_iou}")

    def chosen(self, level: float) -> tuple[str, ...]:
        """Return what a signature says of them; `level` is the IoU threshold that was taken."""
        score = self.score if isinstance(self.score, str) else repr(float(self.score))
        slices = [slices_choice(self.slices)] if self.slices else []
        return f"box_iou={float(level)!r}", f"moved_iou={float(self.moved_iou)!r}", f"box_score={score}", *slices


def compare_results(
    results: Sequence[EvaluationResult], options: CompareOptions, *, version: str, run: Run = map
) -> ComparisonResult:
    """Compare results with the first of them."""
    require_two(len(results))
    baseline, *others = results
    _require_same_rules(baseline, others)
    threshold = box_threshold(detection_metrics(baseline), options.box_iou)
    first, *rest = (contender(result, threshold, options.score) for result in results)
    level = baseline.protocol.iou_thresholds[threshold]
    beside = [
        versus(baseline, other, (first, name), threshold=threshold, moved_iou=options.moved_iou, slices=options.slices)
        for other, name in zip(others, rest, strict=True)
    ]
    findings = [finding for result in results for finding in result.findings]
    drawn = None
    if options.bootstrap is not None:
        beside, drawn, doubts = _with_noise(beside, results, options.slices, options.bootstrap, run)
        findings += doubts
    against = ",".join(name.fingerprint for name in rest)
    # What the baseline was asked besides its metrics is no part of a comparison.
    rules = without_fields(baseline.signature, BESIDE_METRICS)
    noise = [] if drawn is None else [drawn.choice]
    return ComparisonResult(
        version=version,
        signature="|".join([rules, f"against={against}", *options.chosen(level), *noise]),
        protocol=baseline.protocol.name,
        gt=baseline.gt.path,
        baseline=first,
        box_iou=level,
        moved_iou=options.moved_iou,
        others=tuple(beside),
        findings=tuple(dict.fromkeys(findings)),  # those of the ground truth come with every result
        bootstrap=drawn,
    )


def _with_noise(
    others: Sequence[Versus],
    results: Sequence[EvaluationResult],
    slices: Sequence[Slice],
    settings: Bootstrap,
    run: Run,
) -> tuple[list[Versus], Resamples, tuple[Finding, ...]]:
    """Give every difference its interval; return the resamples of the baseline too, and what makes them doubtful."""
    runs, findings = [detection_metrics(result) for result in results], FindingLog()
    # All predictions are resampled on the same images: what is hard for all of them cancels out in a difference.
    base, *rest = resample_alike(runs, settings, run=run)
    deltas = [
        with_intervals(beside.deltas, paired_deltas(base, drawn)) for beside, drawn in zip(others, rest, strict=True)
    ]
    parts = [list(beside.slices) for beside in others]
    n_units = []
    for i, images in enumerate(slices):
        restricted = [part_of(metrics, images) for metrics in runs]
        n_units.append(count_units(restricted[0].image_names, settings))
        # A slice draws from its own images. One image, or one group, leaves nothing to draw.
        if n_units[-1] > 1:
            refs = slice_refs(restricted[0].protocol)
            base_part, *rest_parts = resample_alike(restricted, settings, refs=refs, run=run)
            for of_slices, drawn in zip(parts, rest_parts, strict=True):
                weighed = with_intervals(of_slices[i].deltas, paired_deltas(base_part, drawn))
                of_slices[i] = replace(of_slices[i], deltas=weighed)
    path, names = results[0].pred.path, runs[0].image_names
    warn_of_few([images.name for images in slices], n_units, findings, path)
    weighed_others = [
        replace(beside, deltas=of_all, slices=tuple(of_slices))
        for beside, of_all, of_slices in zip(others, deltas, parts, strict=True)
    ]
    return weighed_others, base, (*remarks(base, names, path), *findings.findings())


def require_two(count: int) -> None:
    """Raise a UsageError unless there is something to compare."""
    if count < 2:
        raise UsageError(f"a comparison needs two or more predictions, got {count}")


def _require_same_rules(baseline: EvaluationResult, others: Sequence[EvaluationResult]) -> None:
    """Raise a DataError unless all results rest on one ground truth and on the same rules."""
    findings = FindingLog()
    base_fields = signature_fields(baseline.signature)
    class_names = detection_metrics(baseline).class_names
    for other in others:
        other_fields = signature_fields(other.signature)
        names = [name for name in dict.fromkeys([*base_fields, *other_fields]) if name not in PER_RUN_FIELDS]
        for name in names:
            if base_fields.get(name) != other_fields.get(name):
                what = "the fingerprint of the ground truth" if name == "gt" else f"the rule {name}"
                findings.error(
                    "comparison-unequal",
                    Where(other.pred.path, field=name),
                    f"{what} is {quoted_value(other_fields.get(name, 'not set'))}, and "
                    f"{quoted_value(base_fields.get(name, 'not set'))} for"
                    f" the baseline {baseline.pred.path}",
                    fix="Compare results of one ground truth by the same rules: evaluate again where they differ.",
                )
        # The fingerprint knows no order. Boxes are compared by their row, classes by their place.
        what = "classes" if class_names != detection_metrics(other).class_names else "boxes"
        if what == "classes" or not _has_equal_rows(baseline, other):
            findings.error(
                "comparison-unequal",
                Where(other.pred.path, field=what),
                f"the {what} of the ground truth are not the same, or in another order, for the baseline"
                f" {baseline.pred.path}",
                fix="Evaluate both on one file.",
            )
    findings.raise_errors()


def _has_equal_rows(baseline: EvaluationResult, other: EvaluationResult) -> bool:
    """Whether the ground truth is the same row by row; images may be in any order."""
    if baseline.boxes is None or other.boxes is None:
        return False
    base_metrics, other_metrics = detection_metrics(baseline), detection_metrics(other)
    (before, _), (after, _) = baseline.boxes, other.boxes
    row = {name: i for i, name in enumerate(base_metrics.image_names)}
    place = np.array([row.get(name, -1) for name in other_metrics.image_names], dtype=np.int64)
    pairs: list[tuple[Any, Any]] = [
        (base_metrics.table.gt_label, other_metrics.table.gt_label),
        (before.xywh, after.xywh),
        (before.image, place[after.image]),
    ]
    if before.shapes is not None and after.shapes is not None:
        pairs.append((before.shapes.hashes(), after.shapes.hashes()))
    return all(np.array_equal(first, second) for first, second in pairs)
