"""What is odd about scores: their range, what was cut off, ties and what they decide, detections beyond the cap."""

from __future__ import annotations

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.audit.context import AuditContext
from jaccard_eval.features.audit.images import uncovered_images
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.metrics.averages import TieBounds, has_ties
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
    score = context.pred.boxes.score
    if score is None or len(score) == 0:
        return
    lowest, highest = float(score.min()), float(score.max())
    if lowest == highest:
        _check_constant(context, highest, findings)
        return
    in_hundreds = lowest >= 0 and 1 < highest <= 100
    percent = in_hundreds and 2 * int(np.count_nonzero(score > 1)) > len(score)
    if percent:
        _warn_percent(context, lowest, highest, findings)
    elif lowest < 0 or highest > ALMOST_ONE:
        _report_range(context, score, findings)
        return
    if (lowest / 100 if percent else lowest) >= CUT:
        _report_threshold(context, lowest, findings)
    _note_ties(context, score, findings)


def _note_cap(context: AuditContext, findings: FindingLog) -> None:
    table = context.metrics.table
    cut = len(context.aligned.pred) - len(table)
    if cut:
        cap = table.protocol.max_dets[-1]
        findings.note(
            "max-dets",
            Where(context.pred.path),
            f"ignored {cut:,} detections beyond the cap of {cap:,} per image and class, in "
            f"{pluralise(_crowded_images(context, cap), 'image')}",
            fix="They have the lowest scores of their image; --max-dets none counts all.",
        )


def _crowded_images(context: AuditContext, cap: int) -> int:
    """Count the images with more than `cap` detections of a class."""
    pred, n_images = context.aligned.pred, len(context.aligned.image_names)
    label = 0 if context.metrics.protocol.class_agnostic else pred.label.astype(np.int64)
    key = np.sort(label * n_images + pred.image)
    beyond = key[cap:][key[cap:] == key[:-cap]] % n_images  # equal keys `cap` rows apart: a group of more than `cap`
    return int(np.count_nonzero(np.bincount(beyond, minlength=n_images)))


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


def _report_range(context: AuditContext, score: FloatArray, findings: FindingLog) -> None:
    """Note another scale; warn of single scores that are out of range."""
    outside = int(np.count_nonzero((score < 0) | (score > ALMOST_ONE)))
    where = Where(context.pred.path, field="score")
    text = (
        f"{outside:,} of {len(score):,} scores are outside 0 to 1: they range from {score.min():g} to {score.max():g}"
    )
    if outside <= ISOLATED * len(score):
        findings.warning("score-range", where, text, fix="Check these rows for mixed exports or shifted columns.")
        return
    fix = "Apply the sigmoid or softmax in the export if --score should be a probability."
    findings.note("score-range", where, f"{text}: raw outputs (logits)? Only their order counts for AP", fix=fix)


def _report_threshold(context: AuditContext, lowest: float, findings: FindingLog) -> None:
    """Report what AP may be missing if low scores were cut off before the file was written."""
    by_user = "score-min" in context.pred.ignored
    if by_user or len(context.metrics.table) < FEWEST:
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
    if curves.ranking.protocol.interpolation == "area":
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


def _note_ties(context: AuditContext, score: FloatArray, findings: FindingLog) -> None:
    """Note that many detections share their score with another one of their class."""
    table = context.metrics.table
    if len(table) < FEWEST or findings.has("pred-duplicate"):  # a repeated row has its score twice
        return
    equal = (table.score[1:] == table.score[:-1]) & (table.label[1:] == table.label[:-1])
    tied = np.zeros(len(table), dtype=np.bool_)
    tied[1:] |= equal
    tied[:-1] |= equal
    share = np.count_nonzero(tied) / len(table)
    if share >= BULK:
        order = "images" if table.protocol.score_ties == "image" else "the file"
        findings.note(
            "score-ties",
            Where(context.pred.path, field="score"),
            f"{share:.0%} of the detections share their score with another of their class{_decimals(score)}; "
            f"the order of {order} breaks ties, and AP depends on it",
            fix="Export scores with all their digits.",
        )


def _decimals(score: FloatArray) -> str:
    for decimals in range(1, MAX_DECIMALS + 1):
        scaled = score * 10**decimals
        if (np.abs(scaled - np.rint(scaled)) < 1e-4).all():  # single precision leaves 1e-8 of a score
            return f" (scores have {pluralise(decimals, 'decimal')})"
    return ""


def check_ties(context: AuditContext, findings: FindingLog) -> None:
    """Note between which values AP lies over all orders of equal scores."""
    metrics = context.metrics
    if len(metrics.table) < FEWEST or findings.has("pred-duplicate") or not has_ties(metrics.table):
        return
    low, high = TieBounds(metrics.curves, metrics.axes).interval(MetricRef(name="AP"))
    if high - low >= WORTH_A_LINE:
        findings.note(
            "score-ties-interval",
            Where(context.pred.path, field="score"),
            f"tied scores: AP is between {low:.4f} and {high:.4f} depending on how ties are broken",
            fix="Export more decimals.",
        )
