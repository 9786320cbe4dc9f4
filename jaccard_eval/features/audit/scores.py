"""What is odd about scores: their range, what was cut off, ties and what they decide, detections beyond the cap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.audit.context import AuditContext
from jaccard_eval.features.audit.images import uncovered_images
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.metrics.averages import TieBounds
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.text import pluralise

FEWEST = 100  # detections from which a lowest score, or a share of ties, is evidence
FEWEST_EQUAL = 4  # detections from which equal scores are not an accident
ALMOST_ONE = 1 + 1e-6  # single-precision scores overshoot 1 by less
ISOLATED = 0.05  # share of scores outside [0, 1] up to which they are faults rather than another scale
CUT = 0.05  # lowest score that shows a threshold: detectors give boxes of any lower score
WORTH_A_WARNING = 0.005  # AP that missing detections can add, from which that is a warning
BULK = 0.5  # share of detections with a tied score from which it is reported
MAX_DECIMALS = 3  # decimals of scores that are looked for
WORTH_A_LINE = 1e-4  # AP between the orders of equal scores, from which that is reported


def check_scores(context: AuditContext, findings: FindingLog) -> None:
    """Report scores on another scale, all alike, cut off or tied in bulk, and detections beyond the cap."""
    _note_cap(context, findings)
    scores = _Scores.of(context.pred.boxes)
    if scores.n == 0:
        return
    lowest, highest = scores.lowest, scores.highest
    if lowest == highest:
        _check_constant(context, highest, findings)
        return
    # The score of a pose is often a sum over its keypoints: above 1, it is neither percent nor a fault.
    is_posed = context.metrics.protocol.iou_type == "keypoints"
    in_hundreds = lowest >= 0 and 1 < highest <= 100 and not is_posed
    percent = in_hundreds and 2 * scores.above_one > scores.n
    if percent:
        _warn_percent(context, lowest, highest, findings)
    elif lowest < 0 or highest > ALMOST_ONE:
        _report_range(context, scores, findings)
        return
    if (lowest / 100 if percent else lowest) >= CUT:
        _report_threshold(context, lowest, findings)
    _note_ties(context, scores, findings)


@dataclass(slots=True)
class _Scores:
    """What all scores have in common."""

    n: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    above_one: int = 0
    outside: int = 0  # of the range from 0 to 1
    decimals: list[int] = field(default_factory=lambda: list(range(1, MAX_DECIMALS + 1)))  # that all scores may have

    @classmethod
    def of(cls, boxes: BoxTable) -> _Scores:
        """Look at all scores, a table at a time."""
        found = cls()
        for table in boxes.tables():
            if table.score is not None and len(table):
                found.add(table.score)
        return found

    def add(self, score: FloatArray) -> None:
        """Look at some scores."""
        self.n += len(score)
        self.lowest, self.highest = min(self.lowest, float(score.min())), max(self.highest, float(score.max()))
        self.above_one += int(np.count_nonzero(score > 1))
        self.outside += int(np.count_nonzero((score < 0) | (score > ALMOST_ONE)))
        # The first ones settle most files.
        for part in (score[:FEWEST], score):
            self.decimals = [decimals for decimals in self.decimals if _has_decimals(part, decimals)]


def _has_decimals(score: FloatArray, decimals: int) -> bool:
    scaled = score * 10**decimals
    return bool((np.abs(scaled - np.rint(scaled)) < 1e-4).all())  # single precision leaves 1e-8 of a score


def _n_ranked(context: AuditContext) -> int:
    """Count the detections within the largest cap."""
    return int(context.metrics.source.detections.sum())


def _note_cap(context: AuditContext, findings: FindingLog) -> None:
    cut = len(context.aligned.pred) - _n_ranked(context)
    if cut:
        cap = context.metrics.protocol.max_dets[-1]
        findings.note(
            "max-dets",
            Where(context.pred.path),
            f"ignored {cut:,} detections beyond the cap of {cap:,} per image and class, in "
            f"{pluralise(_crowded_images(context, cap), 'image')}",
            fix="They have the lowest scores of their image; --max-dets none counts all.",
        )


def _crowded_images(context: AuditContext, cap: int) -> int:
    """Count the images with more than `cap` detections of a class."""
    n_images, crowded = len(context.aligned.image_names), 0
    for table in context.aligned.pred.tables():
        label = 0 if context.metrics.protocol.class_agnostic else table.label.astype(np.int64)
        key = np.sort(label * n_images + table.image)
        # Equal keys `cap` rows apart: a group of more than `cap`.
        crowded += len(np.unique(key[cap:][key[cap:] == key[:-cap]] % n_images))
    return crowded


def _check_constant(context: AuditContext, score: float, findings: FindingLog) -> None:
    """Warn of equal scores, unless the user gave them."""
    n = len(context.pred.boxes)
    assumed = any(finding.code == "score-assumed" for finding in context.pred.findings)
    if n >= FEWEST_EQUAL and not assumed:
        findings.warning(
            "score-constant",
            Where(context.pred.path, field="score"),
            f"all {n:,} scores are equal ({score:g}): predictions rank in file order, and AP depends on it",
            fix="Export the confidence of each detection. Without it, use precision and recall instead of AP.",
        )


def _warn_percent(context: AuditContext, lowest: float, highest: float, findings: FindingLog) -> None:
    findings.warning(
        "score-percent",
        Where(context.pred.path, field="score"),
        f"scores run from {lowest:g} to {highest:g}: they look like percent, not fractions of 1. The ranking and AP "
        "stay the same, but --score and --score-min count in percent",
        fix="Divide the scores by 100 in the export.",
    )


def _report_range(context: AuditContext, scores: _Scores, findings: FindingLog) -> None:
    """Note another scale; warn of single scores that are out of range."""
    where = Where(context.pred.path, field="score")
    text = (
        f"{scores.outside:,} of {scores.n:,} scores are outside 0 to 1: they range from {scores.lowest:g} to"
        f" {scores.highest:g}"
    )
    if context.metrics.protocol.iou_type == "keypoints" and scores.lowest >= 0:
        findings.note("score-range", where, f"{text}: sums over keypoints? Only their order counts for AP")
        return
    if scores.outside <= ISOLATED * scores.n:
        findings.warning("score-range", where, text, fix="Check these rows for mixed exports or shifted columns.")
        return
    fix = "Apply the sigmoid or softmax in the export if --score should be a probability."
    findings.note("score-range", where, f"{text}: raw outputs (logits)? Only their order counts for AP", fix=fix)


def _report_threshold(context: AuditContext, lowest: float, findings: FindingLog) -> None:
    """Report what AP may be missing if low scores were cut off before the file was written."""
    by_user = "score-min" in context.pred.ignored
    if by_user or _n_ranked(context) < FEWEST:
        return
    now = context.metrics.value(MetricRef(name="AP")).value
    if np.isnan(now):
        return
    text = f"no score is below {lowest:.4g}: lower scores were cut off, which lowers AP"
    # Objects of images that were not predicted could all be hits: the bound would be near 1, whatever the threshold.
    if len(uncovered_images(context)[0]):
        findings.note("score-thresholded", Where(context.pred.path, field="score"), text)
        return
    most = highest_reachable_ap(context.metrics.curves)
    text += f": {now:.4f} as given, at most {most:.4f} if every further detection were correct"
    severity = Severity.WARNING if most - now > WORTH_A_WARNING else Severity.NOTE
    where = Where(context.pred.path, field="score")
    fix = "Predict again with a score threshold of 0.001 or none."
    findings.add_one(severity, "score-thresholded", where, text, fix=fix)


def highest_reachable_ap(curves: Curves) -> float:
    """Return the highest AP that further detections with lower scores could give, over the first area range.

    After n detections with tp hits of P objects, AP is highest when the next P - tp detections are hits: they end at
    recall 1 with precision P / (n + P - tp), which is the highest precision of any such continuation. Interpolated
    precision is then the larger of this and what it was, at every recall. A cap on detections can only lower it. The
    mean is over thresholds and classes with ground truth; NaN without any.
    """
    last = len(curves.caps) - 1
    positives = curves.positives[0]  # (K,)
    hits = curves.hit_counts(0, last)  # (T, K)
    final = positives / np.maximum(curves.detection_counts() + positives - hits, 1)  # (T, K)
    if curves.protocol.interpolation == "area":
        reachable = _area_above(curves, final)
    else:
        reachable = np.maximum(curves.interpolated_precision(0, last), final[:, None]).mean(axis=1)
    defined = reachable[:, positives > 0]
    return float(defined.mean()) if defined.size else float("nan")


def _area_above(curves: Curves, final: FloatArray) -> FloatArray:
    """Area below the interpolated precision where it is nowhere below `final`, shape (T, K)."""
    steps = curves.steps(0, len(curves.caps) - 1)
    positives, precision = np.maximum(steps.positives, 1), steps.precision[:-1]
    ends = steps.stop.ravel()[:-1]
    areas = [
        (np.maximum(np.maximum.accumulate(of_one[::-1]), low).sum() + (n - len(of_one)) * low) / n
        for of_one, low, n in zip(np.split(precision, ends), final.ravel(), np.tile(positives, len(final)), strict=True)
    ]
    return np.reshape(areas, final.shape)


def _note_ties(context: AuditContext, scores: _Scores, findings: FindingLog) -> None:
    """Note that many detections share their score with another one of their class."""
    n = _n_ranked(context)
    if n < FEWEST or findings.has("pred-duplicate"):  # a repeated row has its score twice
        return
    share = context.metrics.source.n_tied / n
    if share >= BULK:
        order = "images" if context.metrics.protocol.score_ties == "image" else "the file"
        findings.note(
            "score-ties",
            Where(context.pred.path, field="score"),
            f"{share:.0%} of the detections share their score with another of their class{_decimals(scores)}; "
            f"the order of {order} breaks ties, and AP depends on it",
            fix="Export scores with all their digits.",
        )


def _decimals(scores: _Scores) -> str:
    return f" (scores have {pluralise(scores.decimals[0], 'decimal')})" if scores.decimals else ""


def check_ties(context: AuditContext, findings: FindingLog) -> None:
    """Note between which values AP lies over all orders of equal scores."""
    metrics = context.metrics
    if _n_ranked(context) < FEWEST or findings.has("pred-duplicate") or not metrics.source.n_tied:
        return
    low, high = TieBounds(metrics.curves, metrics.axes).interval(MetricRef(name="AP"))
    if high - low >= WORTH_A_LINE:
        findings.note(
            "score-ties-interval",
            Where(context.pred.path, field="score"),
            f"tied scores: AP is between {low:.4f} and {high:.4f} depending on how ties are broken",
            fix="Export more decimals.",
        )
