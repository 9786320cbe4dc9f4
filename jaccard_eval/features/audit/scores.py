"""What is odd about scores: their range, what was cut off, ties and what they decide, detections beyond the cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from jaccard_eval.data.boxtable import Boxes, BoxTable, FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import PROTOCOLS
from jaccard_eval.features.audit import MISREAD, SAMPLE_BOXES, AuditContext, unflagged
from jaccard_eval.features.audit.correspondence import uncovered_images
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.matching import IntArray, labels_of, lengths_of_runs, starts_of_runs
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.metrics.detection import DetectionMetrics
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
    uncapped = _check_cap(context, findings)
    scores = _Scores.of(context.pred.boxes)
    if scores.n == 0 or findings.has("pred-copies-gt"):  # of copies, scores mean nothing
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
        _report_threshold(context, uncapped(), lowest, findings)
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
    def of(cls, boxes: Boxes) -> _Scores:
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


MANY_CUT = 0.1  # share of the detections beyond the cap, or tied across it, from which it decides the result


def _check_cap(context: AuditContext, findings: FindingLog) -> Callable[[], DetectionMetrics]:
    """Report detections beyond the cap, with the AP without it where it matters; return what gives the metrics without.

    Those take another matching.
    """
    total, rules = len(context.aligned.pred), context.metrics.protocol
    cut = total - _n_ranked(context)
    if not cut or not rules.max_dets:
        return lambda: context.metrics
    cap, aligned = rules.max_dets[-1], context.aligned
    kept = {"capped": context.metrics.table} if isinstance(aligned.pred, BoxTable) else {}
    uncapped = cache(partial(context.measure, aligned.gt, aligned.pred, rules.with_options(max_dets=()), **kept))
    found, scores, where = _Crowds.of(context, cap), _Scores.of(aligned.pred), Where(context.pred.path)
    text = (
        f"ignored {pluralise(cut, 'detection')} beyond the cap of {cap:,} per image and class, in "
        f"{pluralise(len(found.images), 'image')}"
    )
    # Of scores that are all equal, as assumed ones are, the order of the file chooses what counts.
    is_arbitrary = found.tied > MANY_CUT * total or (found.tied > 0 and scores.lowest == scores.highest)
    may_decide = is_arbitrary or cut > MANY_CUT * total or found.objects > cap
    before = after = math.nan
    if may_decide or total <= SAMPLE_BOXES:
        before, after = (metrics.value(MetricRef(name="AP")).value for metrics in (context.metrics, uncapped()))
    advise = partial(Fix.choice, {"max_dets": "none"}, metric="AP", before=before, after=after)
    if f"{before:.4f}" == f"{after:.4f}":
        which = "The order of the file chose those that count" if found.tied else "They have the lowest scores"
        findings.note("max-dets", where, text, fix=advise(words=f"{which}; {{max_dets}} counts all."))
        return uncapped
    if found.objects > cap:
        text += f", where up to {found.objects:,} objects are of one class"
    if found.tied:
        text += f"; {found.tied:,} of them have the score of others that count, so that the order of the file chose"
    text += f"; AP {before:.4f} with the cap, {after:.4f} without"
    usual, fix = PROTOCOLS.get(rules.name), advise(words="{max_dets} counts all.")
    named = usual is None or usual.comparing(rules.iou_type).max_dets != rules.max_dets
    if is_arbitrary and context.stops("max-dets", named=named):
        findings.error("max-dets", where, text, fix=replace(fix, allow="max-dets"))
    else:
        is_note = not may_decide or (named and not is_arbitrary)
        findings.add_one(Severity.NOTE if is_note else Severity.WARNING, "max-dets", where, text, fix=fix)
    return uncapped


@dataclass(slots=True)
class _Crowds:
    """What the images with more detections of a class than a cap have in common."""

    images: set[int] = field(default_factory=set)
    tied: int = 0  # detections beyond the cap whose score is that of the last one within
    objects: int = 0  # most objects of one of these classes on one of these images

    @classmethod
    def of(cls, context: AuditContext, cap: int) -> _Crowds:
        """Look at all detections and objects, a table at a time."""
        rules, n_images, found = context.metrics.protocol, len(context.aligned.image_names), cls()
        keys: list[IntArray] = []
        for table in context.aligned.pred.tables():
            key = labels_of(table, rules) * n_images + table.image
            score = np.zeros(len(table)) if table.score is None else table.score
            order = np.lexsort((-score, key))
            first, length = lengths_of_runs(starts_of_runs(key[order]))
            for start, n in zip(first[length > cap].tolist(), length[length > cap].tolist(), strict=True):
                group = score[order[start : start + n]]
                found.tied += int(np.count_nonzero(group[cap:] == group[cap - 1]))
                keys.append(key[order[start : start + 1]])
        crowded = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
        found.images = set((crowded % n_images).tolist())
        for table in context.aligned.gt.tables():
            counted = replace(table, shapes=None).take(unflagged(table))
            key = labels_of(counted, rules) * n_images + counted.image
            _, counts = np.unique(key[np.isin(key, crowded)], return_counts=True)
            found.objects = max(found.objects, int(counts.max(initial=0)))
        return found


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
        "stay the same, but thresholds of scores count in percent",
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
    fix = "Apply the sigmoid or softmax in the export if thresholds should be probabilities."
    findings.note("score-range", where, f"{text}: raw outputs (logits)? Only their order counts for AP", fix=fix)


def _report_threshold(context: AuditContext, metrics: DetectionMetrics, lowest: float, findings: FindingLog) -> None:
    """Report what AP may be missing if low scores were cut off before the file was written, by metrics without cap."""
    by_user = "score-min" in context.pred.ignored
    if by_user or _n_ranked(context) < FEWEST:
        return
    now = metrics.value(MetricRef(name="AP")).value
    if np.isnan(now):
        return
    text = f"no score is below {lowest:.4g}: lower ones were probably cut off, which lowers AP"
    # Objects of images that were not predicted could all be hits: the bound would be near 1, whatever the threshold.
    # Where boxes were read wrongly, it is not about the right ones; by straight lines, no bound is known.
    by_lines = metrics.protocol.interpolation not in ("grid", "area")
    if by_lines or len(uncovered_images(context)[0]) or findings.has(*MISREAD):
        findings.note("score-thresholded", Where(context.pred.path, field="score"), text)
        return
    most = highest_reachable_ap(metrics.curves)
    if metrics is not context.metrics and most - now < WORTH_A_LINE:  # the cap alone costs something
        return
    given = "as given" if metrics is context.metrics else "without the cap on detections"
    text += f": {now:.4f} {given}, at most {most:.4f} if every further detection were correct"
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
    """Report between which values AP lies over all orders of equal scores."""
    metrics = context.metrics
    if findings.has("pred-duplicate") or not metrics.source.tie_orders:
        return
    low, high = metrics.tie_interval() or (math.nan, math.nan)
    assumed = any(finding.code == "score-assumed" for finding in context.pred.findings)
    if high - low >= WORTH_A_LINE:
        findings.add_one(
            Severity.WARNING if high - low > WORTH_A_WARNING else Severity.NOTE,
            "score-ties-interval",
            Where(context.pred.path, field="score"),
            f"tied scores: AP can be {low:.4f} or {high:.4f} depending on how ties are broken",
            fix="Export the scores, or read precision, recall and F1." if assumed else "Export more decimals.",
        )
