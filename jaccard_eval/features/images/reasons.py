"""Which boxes are wrong, by selections, and what to fix next: sentences from an analysis of errors.

A selection is what the address of a page holds: `class`, `error`, `size`, `object` and `pred` (a cell of the confusion
matrix) and `sure`, a least score. A sentence counts the boxes that it selects.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, RowArray
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.errors.compute import Errors, find_errors
from jaccard_eval.features.images import BoxOutcomes, box_outcomes
from jaccard_eval.features.operating import OperatingSteps
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import IntArray
from jaccard_eval.metrics.detection import AnyClassMatches, DetectionMetrics
from jaccard_eval.text import pluralise

ERRORS = ("class", "box", "both", "double", "background")  # by the place of a type in `features.errors.compute.TYPES`
MISSED, FALSE = "missed", "false"  # errors of all kinds
BACKGROUND = ""  # in a cell
SIZES = ("small", "medium", "large")
SIZE_BOUNDS = (32.0**2, 96.0**2)  # px², COCO detection evaluation
SURE = (0.95, 0.9, 0.8)  # scores of which the highest is taken that ENOUGH detections on nothing have
ENOUGH = 10
SHOWN = 3  # sentences


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """All boxes of an evaluation with the kinds of their errors, at every step of the score of a page."""

    metrics: DetectionMetrics
    errors: Errors
    steps: OperatingSteps
    outcomes: BoxOutcomes
    sizes: IntArray  # place in `SIZES` of each object and detection (n,), -1 where areas are unknown
    matched: RowArray  # class of the object that each detection lies on, whatever its own; K for nothing, else -1
    seen: FloatArray  # score of the detection that lies on each object; NaN for none
    gains: Mapping[str, float]  # AP that fixing a type of errors adds
    wrong: BoolArray  # which boxes are, at the step that is shown at first (n,)

    def selected(self, pick: Mapping[str, str], step: int | None = None) -> BoolArray:
        """Return which boxes a selection leaves at a step, those that are wrong unless it is of a cell; (n,)."""
        outcomes, names, n = self.outcomes, self.metrics.class_names, len(self.errors.gt_label)
        score = float(self.steps.scores[self.steps.start if step is None else step])
        if "object" in pick:
            return self._in_cell(pick["object"], pick["pred"], score)
        wrong = self.wrong.copy() if step is None else outcomes.wrong_at(score)
        for key, value in pick.items():
            if key == "class":
                wrong &= outcomes.label == names.index(value)
            elif key == "size":
                wrong &= self.sizes == SIZES.index(value)
            elif key == "sure":
                wrong &= ~outcomes.is_object
                wrong[n:] &= outcomes.score[n:] >= float(value)
            else:
                wrong &= outcomes.is_object if value == MISSED else ~outcomes.is_object
                if value in ERRORS:
                    wrong[n:] &= self.errors.kind == ERRORS.index(value)
        return wrong

    def _in_cell(self, of: str, pred: str, score: float) -> BoolArray:
        """Return the detections of a cell; the objects where it is of those that are missed."""
        names, n = self.metrics.class_names, len(self.errors.gt_label)
        row, column = (len(names) if name == BACKGROUND else names.index(name) for name in (of, pred))
        chosen = np.zeros(len(self.outcomes.image), dtype=np.bool_)
        if pred == BACKGROUND:
            with np.errstate(invalid="ignore"):
                chosen[:n] = self.errors.counted & (self.outcomes.label[:n] == row) & ~(self.seen >= score)
        else:
            chosen[n:] = (self.matched == row) & (self.errors.label == column) & (self.errors.score >= score)
        return chosen


def explained(result: EvaluationResult, steps: OperatingSteps, any_class: AnyClassMatches) -> Explained | None:
    """Return what became of all boxes of a result, and why; None where there are no boxes."""
    metrics, report = result.measured, result.part("errors")
    if result.boxes is None or report is None or not isinstance(metrics, DetectionMetrics):
        return None
    threshold = metrics.protocol.judged_threshold
    outcomes = box_outcomes(metrics, *result.boxes, threshold)
    # Where all classes are one, no row has another name.
    outcomes = replace(outcomes, label=np.minimum(outcomes.label, len(metrics.class_names) - 1))
    gt, pred = result.boxes
    sides = outcomes.xywh[len(gt) :, 2] * outcomes.xywh[len(gt) :, 3]
    areas = np.concatenate((metrics.protocol.object_areas(gt), sides))
    sizes = np.add(*((areas >= bound).astype(np.int64) for bound in SIZE_BOUNDS))
    matched, seen = np.full(len(pred), -1, dtype=np.int32), np.full(len(gt), np.nan)
    matched[any_class.row] = any_class.matched_label
    hit = any_class.matched_row >= 0
    seen[any_class.matched_row[hit]] = any_class.score[hit]
    return Explained(
        metrics=metrics,
        # An analysis that was read back from a document has the counts alone.
        errors=report.judged or find_errors(metrics, threshold, gt, pred),
        steps=steps,
        outcomes=outcomes,
        sizes=sizes if metrics.area_known else np.full(len(sizes), -1),
        matched=matched[metrics.table.row],
        seen=seen,
        gains={kind.name: 0.0 if math.isnan(kind.gain) else kind.gain for kind in report.types},
        wrong=outcomes.wrong_at(steps.score),
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """Something to fix: what it is, what it means, which boxes it is about, and what fixing all of its type gives."""

    text: str
    advice: str
    pick: Mapping[str, str]
    gain: float


# Kinds of false positives: the type whose gain they are a part of, what one and several are, what is to do about it.
KINDS = {
    "box": ("localisation", "box is off", "boxes are off", "their class is right: work on the boxes"),
    "double": ("duplicate", "detection is a duplicate", "detections are duplicates", "NMS removes them"),
    "both": (
        *("both", "detection lies next to another class", "detections lie next to other classes"),
        "class and box are wrong",
    ),
    "background": (
        *("background", "detection lies on nothing", "detections lie on nothing"),
        "a higher score drops the unsure ones",
    ),
}


def fix_next(found: Explained) -> list[Sentence]:
    """Return a few sentences, that of the largest part of the most costly type of errors first.

    The cost of a part is its share of the boxes of its type, of the AP that fixing all of the type adds.
    """
    outcomes, names = found.outcomes, found.metrics.class_names
    made = []

    def add(kind: str, whole: Mapping[str, str], pick: Mapping[str, str], text: str, advice: str) -> None:
        part, every = (int(np.count_nonzero(found.selected(one))) for one in (pick, whole))
        if part:
            share = min(part / max(every, 1), 1.0)
            made.append(
                Sentence(text, advice.replace("{share}", f"{100 * share:.0f} %"), pick, found.gains[kind] * share)
            )

    lost = np.flatnonzero(found.selected({"error": MISSED}))
    if len(lost):
        group = int(np.bincount(outcomes.label[lost] * 4 + found.sizes[lost] + 1).argmax())
        label, size = group // 4, ("", *SIZES)[group % 4]
        counted = outcomes.is_object & ~outcomes.is_ignored & (outcomes.label * 4 + found.sizes + 1 == group)
        pick = {"class": names[label], "error": MISSED, **({"size": size} if size else {})}
        every = pluralise(int(counted.sum()), f"{size} {names[label]} object".strip())
        text = f"{np.count_nonzero(found.selected(pick)):,} of {every} are missed"
        add("missed", {"error": MISSED}, pick, text, "{share} of all that is missed")
    for level in SURE:
        pick = {"error": "background", "sure": f"{level:g}"}
        sure = int(np.count_nonzero(found.selected(pick)))
        if sure >= ENOUGH or (sure and level == SURE[-1]):
            text = pluralise(sure, "sure detection lies on nothing", "sure detections lie on nothing")
            add("background", {"error": "background"}, pick, text, f"score {level:g} or more: is the label missing?")
            break
    matched, named = found.matched, found.errors.label
    wrong = np.flatnonzero(
        (found.errors.score >= found.steps.score) & (matched >= 0) & (matched < len(names)) & (matched != named)
    )
    pair = matched[wrong] * len(names) + named[wrong]
    if len(pair) and np.bincount(pair).max() > 1:  # once proves nothing
        of, as_class = divmod(int(np.bincount(pair).argmax()), len(names))
        back = int(np.count_nonzero(pair == as_class * len(names) + of))
        pick = {"object": names[of], "pred": names[as_class]}
        times = pluralise(int(np.count_nonzero(found.selected(pick))), "time")
        advice = f"and the reverse {pluralise(back, 'time')}" if back else "never the reverse"
        add("classification", {"error": "class"}, pick, f"{names[of]} is detected as {names[as_class]} {times}", advice)
    for error, (kind, one, several, advice) in KINDS.items():
        rows = np.flatnonzero(found.selected({"error": error}))
        if len(rows):
            of_class = np.bincount(outcomes.label[rows])
            name = names[int(of_class.argmax())]
            text = f"{int(of_class.max()):,} {name} {one if of_class.max() == 1 else several}"
            add(kind, {"error": error}, {"class": name, "error": error}, text, f"{advice}; {{share}} of this kind")
    # The sort is stable: of equal ones the first.
    return sorted(made, key=lambda sentence: -sentence.gain)[:SHOWN]


def images_of(found: Explained, pick: Mapping[str, str], n: int) -> list[int]:
    """Return the images with the most boxes of a selection."""
    counts = np.bincount(found.outcomes.image[found.selected(pick)], minlength=len(found.metrics.image_names))
    return [row for row in np.argsort(-counts, kind="stable")[:n].tolist() if counts[row]]


def images_by_class(found: Explained, lost: Sequence[float], n_classes: int, each: int) -> list[int]:
    """Return the images with the most wrong boxes of each of the classes that lose most, by turns."""
    worst = [k for k in np.argsort(-np.nan_to_num(lost), kind="stable")[:n_classes].tolist() if lost[k] > 0]
    wrong, n_images = np.flatnonzero(found.selected({})), len(found.metrics.image_names)
    label, image = found.outcomes.label[wrong], found.outcomes.image[wrong]
    rows = []
    for k in worst:
        counts = np.bincount(image[label == k], minlength=n_images)
        rows.append([row for row in np.argsort(-counts, kind="stable")[:each].tolist() if counts[row]])
    return [of_class[turn] for turn in range(each) for of_class in rows if turn < len(of_class)]
