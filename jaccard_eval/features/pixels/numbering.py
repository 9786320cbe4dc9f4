"""Do the values of both sides mean the same classes? Other numberings are judged by the pixels that classes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.pixel_counts import NO_CLASS, ConfusionCounts, IntArray

MOST_VALUES = 512  # of a side; more are not classes
FITS = 0.5  # IoU from which a value lies on one of the other side, and is its class
OWN_AT_MOST = 0.1  # IoU with its own value, or share of all pixels that agree as given, that is next to none
FEWEST_PIXELS = 100  # that values share, from which they are evidence
FEWEST_GREYS = 16  # of predictions for a mask of two values, from which they may be probabilities
SURE_VALUES = 3  # that must fit others; no network confuses so many classes completely, one with one
NEVER = 0.01  # IoU of values with their own, of which two that fit others are as sure
GREYS = {127, 128, 254, 255}  # that masks of one class are stored with, next to 0
NEARLY = 0.05  # share of the pixels by which a free map may fit better than one that has a rule
VOID = 255  # of PASCAL VOC, ignore_index of most training code: no rule counts it as a class
# Of Cityscapes: the labelId of each trainId, 0 to 18. Source: cityscapesScripts, labels.py.
TRAIN_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
_TO_LABEL = dict(enumerate(TRAIN_IDS))
_TO_TRAIN = {label: value for value, label in _TO_LABEL.items()}
TO_LABEL, TO_TRAIN = "trainIds-labelIds", "labelIds-trainIds"
RULES: dict[str, Callable[[int], int]] = {  # maps of values that have a name
    "id+1": lambda value: value if value == VOID else value + 1,
    "id-1": lambda value: value if value == VOID else value - 1,
    TO_LABEL: lambda value: _TO_LABEL.get(value, value),
    TO_TRAIN: lambda value: _TO_TRAIN.get(value, VOID),  # classes that are not evaluated are void
    "grey-1": lambda value: int(value > 127),  # of masks: probabilities as greys, or what JPEG made of two values
    "grey-255": lambda value: 255 * (value > 127),
}
GREY_RULES = ("grey-1", "grey-255")  # which only masks need
ValueMap = str | tuple[tuple[int, int], ...]  # one of these, or pairs; values that no pair names stay as they are


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Values of predictions, each with the value of the ground truth that it means."""

    values: Mapping[int, int]  # those that change
    rule: str  # the name of the map, where it has one
    is_decisive: bool  # whether no weakness of a network explains it

    @property
    def value_map(self) -> ValueMap:
        """The map by its name, else its pairs."""
        return self.rule or tuple(sorted(self.values.items()))


def renumbered(values: IntArray, by: ValueMap) -> IntArray:
    """Replace values, (n,), by those that they mean."""
    if not by:
        return values
    goals = {} if isinstance(by, str) else dict(by)
    known, place = np.unique(values, return_inverse=True)
    meant = [RULES[by](value) if isinstance(by, str) else goals.get(value, value) for value in known.tolist()]
    return np.array(meant, dtype=np.int64)[place]


def better_numbering(counts: ConfusionCounts) -> Numbering | None:
    """Return the numbering under which both sides agree far better, None where there is none.

    A value fits another one if their pixels have IoU .5, and it has next to none with its own.
    """
    counts = counts.take((counts.gt != NO_CLASS) & (counts.pred != NO_CLASS))
    gt_values, pred_values = np.unique(counts.gt), np.unique(counts.pred)
    if not 0 < len(gt_values) <= MOST_VALUES or not 0 < len(pred_values) <= MOST_VALUES:
        return None
    if len(gt_values) <= 2 < FEWEST_GREYS <= len(pred_values):
        return _at_half(counts, int(gt_values[-1]))
    shared = np.zeros((len(gt_values), len(pred_values)))
    np.add.at(shared, (np.searchsorted(gt_values, counts.gt), np.searchsorted(pred_values, counts.pred)), counts.pixels)
    iou = shared / (shared.sum(axis=1)[:, None] + shared.sum(axis=0) - shared)
    place = {value: row for row, value in enumerate(gt_values.tolist())}

    def share(numbering: Mapping[int, int], of: FloatArray = shared) -> list[float]:
        """Return what each predicted value has in common with the one that it means."""
        goals = [numbering.get(value, value) for value in pred_values.tolist()]
        return [float(of[place[goal], at]) if goal in place else 0.0 for at, goal in enumerate(goals)]

    free = _pairs_that_overlap_most(shared, gt_values.tolist(), pred_values.tolist())
    total = float(shared.sum())
    rule, best = max(_rules(pred_values.tolist()), key=lambda named: sum(share(named[1])))
    rule, chosen = (rule, best) if sum(share(best)) >= sum(share(free)) - NEARLY * total else ("", free)
    changed = {value: goal for value, goal in chosen.items() if value != goal}
    compared = [*zip(pred_values.tolist(), share({}, iou), share(changed, iou), share(changed), strict=True)]
    fits = [
        value
        for value, own, other, pixels in compared
        if value in changed and other >= FITS and own <= OWN_AT_MOST and pixels >= FEWEST_PIXELS
    ]
    are_strangers = all(value not in place and changed[value] not in pred_values for value in fits)
    is_mask = len(pred_values) == 2 and bool(GREYS & {*fits, *(changed[value] for value in fits)})
    # A mask of 0 and 255 may meet void, which 255 marks in the ground truth.
    if not fits or (len(fits) == 1 and not are_strangers and not is_mask):
        return None
    disagree = len(fits) > 1 and sum(share({})) <= OWN_AT_MOST * total
    never = len(fits) > 1 and max(own for value, own, *_ in compared if value in fits) <= NEVER
    is_decisive = is_mask or disagree or never or len(fits) >= SURE_VALUES
    return Numbering(changed, rule, is_decisive)


def _at_half(counts: ConfusionCounts, mask: int) -> Numbering | None:
    """Return the greys of predictions as the two values of a mask, where those from 128 on fit it."""
    rule = f"grey-{mask}"
    if rule not in RULES or counts.pred.max() > VOID:
        return None
    gt, pred = counts.gt == mask, renumbered(counts.pred, rule) == mask
    fits = counts.pixels[gt & pred].sum() >= FITS * counts.pixels[gt | pred].sum()
    changed = {value: RULES[rule](value) for value in np.unique(counts.pred).tolist() if RULES[rule](value) != value}
    return Numbering(changed, rule, is_decisive=True) if fits else None


def _rules(values: list[int]) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield numberings that have a rule with its name: off by one, Cityscapes' ids, 0 and 1 against 0 and 255."""
    for name, rule in RULES.items():
        if name not in GREY_RULES:
            yield name, {value: rule(value) for value in values}
    yield "", {1: VOID}
    yield "", {VOID: 1}


def _pairs_that_overlap_most(shared: FloatArray, gt: list[int], pred: list[int]) -> dict[int, int]:
    """Pair values one to one, those that share most pixels first."""
    pairs: dict[int, int] = {}
    for cell in np.argsort(-shared, axis=None, kind="stable").tolist():
        row, column = divmod(cell, len(pred))
        if not shared[row, column]:
            break
        if pred[column] not in pairs and gt[row] not in pairs.values():
            pairs[pred[column]] = gt[row]
    return pairs
