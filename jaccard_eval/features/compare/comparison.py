"""Results compared with the first of them: the same rules and ground truth, then differences and what is chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from string import ascii_uppercase
from typing import Any

import numpy as np

from jaccard_eval.data.document import to_document
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import EvaluationResult, Resamples
from jaccard_eval.data.signature import BESIDE_METRICS, ORDERS, signature_fields, without_fields
from jaccard_eval.errors import UsageError
from jaccard_eval.features.bootstrap.compute import Run, paired_deltas
from jaccard_eval.features.bootstrap.intervals import count_units, remarks, resample_alike, slices_choice, warn_of_few
from jaccard_eval.features.compare.compute import MOVED_IOU, box_threshold, contender, verdict, versus, with_intervals
from jaccard_eval.features.compare.result import ComparisonResult, Versus
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import detection_metrics
from jaccard_eval.metrics.slices import part_of, slice_refs
from jaccard_eval.options import BEST_F1, Bootstrap, Slice
from jaccard_eval.progress import tracked
from jaccard_eval.text import quoted_value

# Of a signature: each of the predictions has its own.
PER_RUN_FIELDS = ("pred", *ORDERS, "class_map", "v", *BESIDE_METRICS)
AUTO = "auto"  # intervals where they take little time
# Resamples of "auto" by the work of one: predictions x (images + 40 x classes), each slice counting as much again. Both
# limits are about 3 s, as measured: 1,000 resamples up to the first on one processor (1.7 s of 12 images and 4 classes,
# 3.0 s of 300 images and 5 classes), 200 up to the second on two (1.8 s of 1,000 images, 80 classes, 4.6 s of 5,000).
AUTO_RESAMPLES = {1000: 1_000, 200: 17_000}
CLASS_WORK = 40  # images that take as long as a class


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How predictions are compared; what is reported of boxes does not depend on slices and resamples.

    Parameters
    ----------
    score : float or "best-f1"
        Detections with at least this score are compared; by default, those of each that give it the best F1.
    box_iou : float, optional
        IoU threshold of the protocol from which a detection finds a box; 0.5 where it is one of them, else the lowest.
    moved_iou : float
        Least change of IoU that is reported as a move.
    slices : sequence of Slice
        Parts of the images to compare as well.
    bootstrap : Bootstrap, int or "auto", optional
        How to resample the images for intervals of the differences, or how often. "auto" takes about 3 s at most: 1,000
        resamples where predictions x (images + 40 x classes) is at most 1,000, each slice counting again, 200 up
        to 17,000, none above. None or 0: none.

    Examples
    --------
    >>> from jaccard_eval import Bootstrap, CompareOptions
    >>> CompareOptions(score=0.3, bootstrap=Bootstrap(n_resamples=200)).moved_iou
    0.05
    """

    score: float | str = BEST_F1
    box_iou: float | None = None
    moved_iou: float = MOVED_IOU
    slices: Sequence[Slice] = ()
    bootstrap: Bootstrap | int | str | None = AUTO

    def __post_init__(self) -> None:
        if isinstance(self.bootstrap, str) and self.bootstrap != AUTO:
            raise UsageError(f"bootstrap must be a number of resamples or {AUTO!r}, got {quoted_value(self.bootstrap)}")
        if not 0 <= self.moved_iou <= 1:
            raise UsageError(f"moved_iou must be between 0 and 1, got {self.moved_iou}")

    def chosen(self, level: float) -> tuple[str, ...]:
        """Return their part of a signature; `level` is the IoU threshold that was taken."""
        score = self.score if isinstance(self.score, str) else repr(float(self.score))
        slices = [slices_choice(self.slices)] if self.slices else []
        return f"box_iou={float(level)!r}", f"moved_iou={float(self.moved_iou)!r}", f"box_score={score}", *slices


def compare_results(
    results: Sequence[EvaluationResult],
    options: CompareOptions,
    *,
    version: str,
    run: Run = map,
    names: Mapping[str, str] | None = None,
) -> ComparisonResult:
    """Compare results with the first of them; `names` by letter stand in place of A, B, C, ..."""
    require_two(len(results))
    called = side_names(len(results), names or {})
    baseline, *others = results
    _require_same_rules(baseline, others)
    threshold = box_threshold(detection_metrics(baseline), options.box_iou)
    first, *rest = (
        contender(result, threshold, options.score, name) for result, name in zip(results, called, strict=True)
    )
    level = baseline.protocol.iou_thresholds[threshold]
    beside = [
        versus(baseline, other, (first, name), threshold=threshold, moved_iou=options.moved_iou, slices=options.slices)
        for other, name in zip(others, rest, strict=True)
    ]
    findings = [finding for result in results for finding in result.findings]
    drawn, settings = None, options.bootstrap
    is_auto = settings == AUTO
    if is_auto:
        settings, doubts = _affordable(results, 1 + len(options.slices))
        findings += doubts
        if settings == Bootstrap():
            run = map  # of arrays this small, threads would wait for each other more than they work
    if isinstance(settings, int):
        settings = Bootstrap(n_resamples=settings) if settings else None
    if isinstance(settings, Bootstrap):
        beside, drawn, doubts = with_noise(
            beside,
            [detection_metrics(result) for result in results],
            settings,
            path=baseline.pred.path,
            slices=options.slices,
            refs=slice_refs(baseline.protocol),
            run=run,
        )
        # Nobody asked for these intervals: --strict must not refuse what makes them doubtful.
        findings += [replace(finding, severity=Severity.NOTE) if is_auto else finding for finding in doubts]
    against = ",".join(name.fingerprint for name in rest)
    fields = [signature_fields(result.signature) for result in others]
    orders = ["+".join(given[name] for name in ORDERS if name in given) for given in fields]
    noise = [f"against_ties={','.join(orders)}"] if any(orders) else []
    # What the baseline was asked besides its metrics does not belong to a comparison.
    rules = without_fields(baseline.signature, BESIDE_METRICS)
    noise += [] if drawn is None else [drawn.choice]
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
        options={
            "protocol": to_document(baseline.protocol),
            "predictions": [dict(result.options) for result in results],
            "compared": to_document(replace(options, bootstrap=AUTO if is_auto else settings)),
        },
        results=tuple(results),
    )


def side_names(n: int, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the sides are called: A, B, C, ..., and numbers where letters end, unless `names` has another."""
    numbers: Iterator[str] = map(str, count(len(ascii_uppercase) + 1))
    letters = list(islice(chain(ascii_uppercase, numbers), n))
    for letter, name in names.items():
        if letter not in letters:
            raise UsageError(f"cannot name side {quoted_value(letter)}; the sides are {', '.join(letters)}")
        if not name.strip():
            raise UsageError(f"the name of side {letter} is empty")
    called = [names.get(letter, letter).strip() for letter in letters]
    for i, name in enumerate(called):
        if name in called[:i]:
            first = letters[called.index(name)]
            raise UsageError(f"sides {first} and {letters[i]} have the same name {quoted_value(name)}")
    return tuple(called)


def _affordable(results: Sequence[EvaluationResult], n_parts: int) -> tuple[Bootstrap | None, tuple[Finding, ...]]:
    """Return the default resamples, or None and a note where they cannot be drawn or would take long."""
    findings = FindingLog()
    runs = [detection_metrics(result) for result in results]
    images, classes = runs[0].image_names, len(runs[0].class_names)
    fix: Fix | None = None
    work = len(runs) * n_parts * (len(images) + CLASS_WORK * classes)
    affordable = [n for n, most in AUTO_RESAMPLES.items() if work <= most]
    if any(set(metrics.image_names) != set(images) for metrics in runs[1:]):
        reason = "the predictions are for different images"
    elif len(images) < 2:
        reason = "there are fewer than 2 images to draw from"
    elif not affordable:
        reason = f"{len(images):,} images and {classes:,} classes take a while"
        fix = Fix.missing("Add them with {bootstrap}.", bootstrap=str(Bootstrap().n_resamples))
    else:
        return Bootstrap(n_resamples=affordable[0]), ()
    findings.note("bootstrap-skipped", Where(results[0].pred.path), f"no confidence intervals: {reason}", fix=fix)
    return None, findings.findings()


def with_noise(
    others: Sequence[Versus],
    runs: Sequence[Any],
    settings: Bootstrap,
    *,
    path: str,
    slices: Sequence[Slice],
    refs: Sequence[MetricRef],
    run: Run,
) -> tuple[list[Versus], Resamples, tuple[Finding, ...]]:
    """Give every difference its interval; return the resamples of the baseline too, and what makes them doubtful.

    `runs` are the matches of all, the baseline's from `path` first; `refs` are measured on slices.
    """
    findings = FindingLog()
    n_drawn, unit = count_units(runs[0].image_names, settings), "image" if settings.group_by is None else "group"
    if n_drawn < 2:
        raise UsageError(f"the bootstrap needs at least 2 {unit}s, got {n_drawn}")
    # Differences are tested on fewer images than intervals of one run are made of.
    draw = partial(resample_alike, settings=settings, run=run, method=None, least=2)
    # All predictions are resampled on the same images: what is hard for all of them cancels out in a difference.
    base, *rest = draw(runs)
    deltas = [
        with_intervals(beside.deltas, paired_deltas(base, drawn)) for beside, drawn in zip(others, rest, strict=True)
    ]
    parts = [list(beside.slices) for beside in others]
    n_units = []
    for i, images in enumerate(tracked(slices, "resampling slices")):
        restricted = [part_of(metrics, images) for metrics in runs]
        n_units.append(count_units(restricted[0].image_names, settings))
        # A slice draws from its own images.
        base_part, *rest_parts = draw(restricted, refs=refs)
        for of_slices, drawn in zip(parts, rest_parts, strict=True):
            weighed = with_intervals(of_slices[i].deltas, paired_deltas(base_part, drawn))
            of_slices[i] = replace(of_slices[i], deltas=weighed)
    warn_of_few([images.name for images in slices], n_units, findings, path)
    weighed_others = [
        replace(beside, deltas=of_all, slices=tuple(of_slices), verdict=verdict(of_all[0], base))
        for beside, of_all, of_slices in zip(others, deltas, parts, strict=True)
    ]
    return weighed_others, base, (*remarks(base, runs[0].image_names, path), *findings.findings())


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
                    f"{quoted_value(base_fields.get(name, 'not set'))} for the baseline {baseline.pred.path}",
                    fix="Compare results with the same ground truth and rules. Evaluate again where they differ.",
                )
        # The fingerprint knows no order. Boxes are compared by their row, classes by their place.
        what = "classes" if class_names != detection_metrics(other).class_names else "boxes"
        if what == "classes" or not _has_equal_rows(baseline, other):
            findings.error(
                "comparison-unequal",
                Where(other.pred.path, field=what),
                f"the {what} of the ground truth, or their order, differ from those of the baseline"
                f" {baseline.pred.path}",
                fix="Evaluate both against the same ground-truth file.",
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
