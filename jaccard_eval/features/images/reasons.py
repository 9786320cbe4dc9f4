"""Why each box is right or wrong, and what to fix next: words and selections from an analysis of errors.

A selection is what the address of a page holds: `class`, `error`, `size`, `object` and `pred` (a
cell of the confusion matrix) and `sure`, a least score. A sentence counts the boxes that it selects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.signature import overlap_name
from jaccard_eval.features.errors.compute import (
    BACKGROUND,
    BACKGROUND_IOU,
    BOTH,
    CLASSIFICATION,
    DUPLICATE,
    LOCALISATION,
    NO_BOX,
    Errors,
    find_errors,
)
from jaccard_eval.features.images.compute import BoxOutcomes, box_outcomes
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.matchtable import pairs_of_any_class
from jaccard_eval.matching.order import IntArray
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.text import pluralise

Texts = npt.NDArray[np.object_]
ERRORS = ("class", "box", "both", "double", "background")  # by the place of a type in `features.errors.compute.TYPES`
MISSED, FALSE = "missed", "false"  # errors of all kinds
SIZES = ("small", "medium", "large")
SIZE_BOUNDS = (32.0**2, 96.0**2)  # px², COCO detection evaluation
SURE = (0.95, 0.9, 0.8)  # scores of which the highest is taken that ENOUGH detections on nothing have
ENOUGH = 10
SHOWN = 3  # sentences
LABEL_MISSING = 0.8  # score from which a detection on nothing may be an object without a label


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """All boxes of an evaluation with the kinds of their errors, at the score that a page starts at."""

    metrics: DetectionMetrics
    errors: Errors
    outcomes: BoxOutcomes
    sizes: IntArray  # place in `SIZES` of each object and detection (n,), -1 where areas are unknown
    score: float
    gains: Mapping[str, float]  # AP that fixing a type of errors adds

    def selected(self, pick: Mapping[str, str]) -> BoolArray:
        """Return which boxes a selection leaves, of those that are wrong at the score; (n,)."""
        outcomes, names = self.outcomes, self.metrics.class_names
        wrong = outcomes.counts_at(self.score) & ~outcomes.is_ignored & (outcomes.is_object | ~outcomes.is_hit)
        n = len(self.errors.gt_label)
        for key, value in pick.items():
            if key in ("class", "pred"):
                wrong &= outcomes.label == names.index(value)
            elif key == "size":
                wrong &= self.sizes == SIZES.index(value)
            elif key == "sure":
                wrong[n:] &= outcomes.score[n:] >= float(value)
            elif key == "object":
                wrong[n:] &= self.objects == names.index(value)
            else:
                wrong &= outcomes.is_object if value == MISSED else ~outcomes.is_object
                if value in ERRORS:
                    wrong[n:] &= self.errors.kind == ERRORS.index(value)
        return wrong

    @property
    def objects(self) -> IntArray:
        """Class of the object that each detection of the wrong class lies on, -1 for the others."""
        aimed = np.where(self.errors.kind == CLASSIFICATION, self.errors.aimed, NO_BOX)
        return np.where(aimed == NO_BOX, -1, np.append(self.errors.gt_label, -1)[aimed])


def explained(result: EvaluationResult, score: float) -> Explained | None:
    """Return what became of all boxes of a result, and why, at a score; None where there are no boxes."""
    metrics, report = result.measured, result.part("errors")
    if result.boxes is None or report is None or not isinstance(metrics, DetectionMetrics):
        return None
    threshold = metrics.protocol.judged_threshold
    outcomes = box_outcomes(metrics, *result.boxes, threshold)
    # Where all classes are one, no row has another name.
    outcomes = replace(outcomes, label=np.minimum(outcomes.label, len(metrics.class_names) - 1))
    gt = result.boxes[0]
    sides = outcomes.xywh[len(gt) :, 2:].prod(axis=1)
    sizes = np.digitize(np.concatenate((metrics.protocol.object_areas(gt), sides)), SIZE_BOUNDS)
    return Explained(
        metrics=metrics,
        # An analysis that was read back from a document has the counts alone.
        errors=report.judged or find_errors(metrics, threshold, *result.boxes),
        outcomes=outcomes,
        sizes=sizes if metrics.area_known else np.full(len(sizes), -1),
        score=score,
        gains={kind.name: 0.0 if math.isnan(kind.gain) else kind.gain for kind in report.types},
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """Something to fix: what it is, what it means, which boxes it is about, and what fixing all of its type gives."""

    text: str
    advice: str
    pick: Mapping[str, str]
    gain: float


def fix_next(found: Explained) -> list[Sentence]:
    """Return a few sentences, that of the largest part of the most costly type of errors first.

    The cost of a part is its share of the boxes of its type, of the AP that fixing all of the type adds.
    """
    outcomes, names = found.outcomes, found.metrics.class_names
    made = []

    def add(kind: str, whole: Mapping[str, str], pick: Mapping[str, str], text: str, advice: str) -> None:
        n, n_all = (int(np.count_nonzero(found.selected(one))) for one in (pick, whole))
        advice = advice.format(share=f"{100 * n / max(n_all, 1):.0f} %")
        made.append(Sentence(text.format(n=n), advice, pick, found.gains[kind] * n / max(n_all, 1)))

    lost = np.flatnonzero(found.selected({"error": MISSED}))
    if len(lost):
        group = int(np.bincount(outcomes.label[lost] * 4 + found.sizes[lost] + 1).argmax())
        label, size = group // 4, ("", *SIZES)[group % 4]
        counted = outcomes.is_object & ~outcomes.is_ignored & (outcomes.label * 4 + found.sizes + 1 == group)
        pick = {"class": names[label], "error": MISSED, **({"size": size} if size else {})}
        text = f"{{n:,}} of {pluralise(int(counted.sum()), f'{size} {names[label]} object'.strip())} are missed"
        add("missed", {"error": MISSED}, pick, text, "{share} of all that is missed")
    for level in (*SURE, found.score):
        pick = {"error": "background", "sure": f"{max(level, found.score):.4g}"}
        n = np.count_nonzero(found.selected(pick))
        if n >= ENOUGH or (n and level == found.score):
            sure = "sure " if level >= SURE[-1] else ""
            text = f"{pluralise(int(n), f'{sure}detection lies', f'{sure}detections lie')} on nothing"
            advice = f"score {pick['sure']} or more: is the label missing?"
            add("background", {"error": "background"}, pick, text, advice)
            break
    wrong = found.selected({"error": "class"})[len(found.errors.gt_label) :]
    pair = found.objects[wrong] * len(names) + found.errors.label[wrong]
    if len(pair) and np.bincount(pair).max() > 1:  # once proves nothing
        of, label = divmod(int(np.bincount(pair).argmax()), len(names))
        back = int(np.count_nonzero(pair == label * len(names) + of))
        pick = {"object": names[of], "pred": names[label], "error": "class"}
        n = np.count_nonzero(found.selected(pick))
        advice = f"and the reverse {pluralise(back, 'time')}" if back else "never the reverse"
        text = f"{names[of]} is detected as {names[label]} {pluralise(int(n), 'time')}"
        add("classification", {"error": "class"}, pick, text.replace("{", "{{").replace("}", "}}"), advice)
    for kind, error, text, advice in (
        ("localisation", "box", "{n:,} boxes are off", "their class is right: work on the boxes"),
        ("duplicate", "double", "{n:,} detections are duplicates", "of surer ones: NMS removes them"),
    ):
        if found.selected({"error": error}).any():
            add(kind, {"error": error}, {"error": error}, text, advice)
    # The sort is stable: of equal ones the first.
    return sorted(made, key=lambda sentence: -sentence.gain)[:SHOWN]


def with_notes(found: Explained, result: EvaluationResult, images: Sequence[int]) -> BoxOutcomes:
    """Return all boxes with their kinds of errors, and for those of some images why, in words."""
    errors, outcomes, names = found.errors, found.outcomes, found.metrics.class_names
    n, size = len(errors.gt_label), np.array(("", *SIZES), dtype=np.object_)
    kind, why, of = (np.full(len(outcomes.image), "", dtype=np.object_) for _ in range(3))
    kind[n:] = np.array((*ERRORS, ""), dtype=np.object_)[errors.kind]
    of[n:] = np.array((*names, ""), dtype=np.object_)[found.objects]
    kind[:n] = np.where(outcomes.is_ignored[:n], "", MISSED)
    if result.boxes is None:
        return outcomes
    shown = np.isin(outcomes.image, images)
    rows = np.flatnonzero(shown[n:])
    gt, pred = result.boxes
    chosen = errors.counted & shown[:n]
    best: dict[int, tuple[float, int]] = {}  # of a detection: its nearest object, of its class or of another
    near: dict[int, list[tuple[float, int]]] = {}  # of an object
    table = found.metrics.table
    pairs_found = pairs_of_any_class(
        pred, table.row[rows], gt, chosen, found.metrics.protocol, threshold=BACKGROUND_IOU
    )
    report = result.part("errors")
    least = report.iou if report is not None else 1.0
    for block, pairs in pairs_found:
        of_block = rows[block]
        for det, truth, overlap in zip(of_block[pairs.det].tolist(), pairs.gt.tolist(), pairs.overlap, strict=True):
            near.setdefault(truth, []).append((float(overlap), det))
            wants_own = errors.kind[det] in (LOCALISATION, DUPLICATE)
            if (errors.label[det] == errors.gt_label[truth]) == wants_own:
                best[det] = max(best.get(det, (0.0, -1)), (float(overlap), truth))
    measure = overlap_name(found.metrics.protocol)
    for det in rows.tolist():
        overlap, truth = best.get(det, (0.0, -1))
        near_by = "" if truth < 0 else f"{names[int(errors.gt_label[truth])]}, {measure} {_down(overlap)}"
        why[n + det] = {
            CLASSIFICATION: f"wrong class: is {near_by}",
            LOCALISATION: f"box is off: {measure} {_down(overlap)}",
            BOTH: f"near {near_by}",
            DUPLICATE: "duplicate of a surer box",
            BACKGROUND: "on nothing: label missing?" if errors.score[det] >= LABEL_MISSING else "on nothing",
        }.get(int(errors.kind[det]), "")
    for truth in np.flatnonzero(chosen).tolist():
        own = [one for one in near.get(truth, []) if errors.label[one[1]] == errors.gt_label[truth]]
        other = [one for one in near.get(truth, []) if one not in own]
        taken = [det for overlap, det in other if overlap >= least and not errors.hit[det]]
        if taken:
            surest = max(taken, key=lambda det: float(errors.score[det]))
            why[truth] = f"detected as {names[int(errors.label[surest])]} at {_down(float(errors.score[surest]))}"
        elif own:
            why[truth] = f"best box has {measure} {_down(max(own)[0])}"
        elif other:
            overlap, det = max(other)
            why[truth] = f"nearest: {names[int(errors.label[det])]}, {measure} {_down(overlap)}"
        else:
            why[truth] = "nothing near"
    return replace(outcomes, notes={"kind": kind, "size": size[found.sizes + 1], "of": of, "why": why})


def _down(value: float) -> str:
    """Return two decimals, rounded down: 0.4996 must not read as the threshold that it does not reach."""
    return f"{math.floor(value * 100 + 1e-9) / 100:.2f}"


def images_of(found: Explained, pick: Mapping[str, str], n: int) -> list[int]:
    """Return the images with the most boxes of a selection."""
    counts = np.bincount(found.outcomes.image[found.selected(pick)], minlength=len(found.metrics.image_names))
    return [row for row in np.argsort(-counts, kind="stable")[:n].tolist() if counts[row]]


def images_by_class(found: Explained, lost: Sequence[float], n_classes: int, each: int) -> list[int]:
    """Return the images with the most wrong boxes of each of the classes that lose most, by turns."""
    worst = [k for k in np.argsort(-np.nan_to_num(lost), kind="stable")[:n_classes].tolist() if lost[k] > 0]
    rows = [images_of(found, {"class": found.metrics.class_names[k]}, each) for k in worst]
    return [of_class[turn] for turn in range(each) for of_class in rows if turn < len(of_class)]
