"""Do the classes of both sides mean the same? Candidate maps are judged by objects that lie in one place.

Where a prediction and a ground-truth box share their place, they are one object, even if their classes differ. The
share of such pairs whose classes agree under a map measures how well the map fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jaccard_eval.data.alignment import (
    NAMED_MAPS,
    NOWHERE,
    Placement,
    match_classes,
    place,
    rows_of_named,
    rows_of_pairs,
)
from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.data.dataset import Dataset, LabelMap
from jaccard_eval.features.audit import (
    LOW_AGREEMENT,
    MISREAD,
    STOP_GIVEN,
    STOP_OTHER,
    STOP_SURPRISE,
    AuditContext,
    IntArray,
    Sample,
    divergence,
    place_agreement,
    take_sample,
)
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import lengths_of_runs, starts_of_runs
from jaccard_eval.options import SideOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.text import example_keys, pluralise

# A detector that works agrees with its own classes on most of the objects that it locates, and no renumbering of them
# fits better by chance; the margins leave room for poor detectors and for small sets.
CLEAR_GAIN = 0.25  # share of pairs by which another map must agree better
CLEAR_PAIRS = 5  # pairs by which it must agree better
CONVINCING = 0.5  # share of pairs that it must agree with at least
FREE_GAIN = 0.1  # share of pairs by which pairs chosen freely must fit better than a map that has a rule
SWAP_PAIRS = 10  # pairs of a class from which it is judged alone
SWAP_OWN, SWAP_OTHER = 0.2, 0.8  # a class that agrees with its own at most, and with one other at least, is mistaken
LISTED = 5  # candidates shown
PASTED = 20  # pairs of classes that a suggested flag spells out
NAMED_PAIRS = 3  # pairs of classes that evidence spells out

ClassMap = str | Mapping[str, str]
_PLAIN_NAME = pattern(r"[\w.+/()-]+( [\w.+/()-]+)*")


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """How often a prediction of one class lies on an object of another; cells that are not empty, shape (c,)."""

    pred: IntArray
    gt: IntArray
    count: IntArray

    @classmethod
    def of(cls, sample: Sample) -> Confusion:
        """Count the pairs of a sample."""
        pred_row, gt_row = sample.objects()
        pred, gt = sample.pred.label[pred_row].astype(np.int64), sample.gt.label[gt_row].astype(np.int64)
        width = int(gt.max(initial=0)) + 1
        cells = np.sort(pred * width + gt)
        first, count = lengths_of_runs(starts_of_runs(cells))
        return cls(cells[first] // width, cells[first] % width, count)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    def agreement(self, rows: RowArray) -> float:
        """Share of the pairs whose prediction class has the object's class under a map; 0 without pairs."""
        return int(self.count[rows[self.pred] == self.gt].sum()) / max(self.pairs, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A map of classes and the share of pairs that agree with it."""

    class_map: ClassMap
    rows: RowArray
    agreement: float


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """How the candidates fare; `better` is the one that fits clearly better than the map as given, if any."""

    pairs: int
    given: float
    candidates: tuple[Candidate, ...]
    better: Candidate | None

    def evidence(self) -> str:
        """Report how many of the pairs agree as given, and under the candidate that fits better."""
        text = f"of {self.pairs:,} overlapping pairs, {self.given:.1%} have the same class as given"
        return (
            text
            if self.better is None
            else f"{text}, {self.better.agreement:.1%} by {_short_text(self.better.class_map)}"
        )

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Candidates with their agreement, the best first."""
        rows = [(_short_text(candidate.class_map), f"{candidate.agreement:.3f}") for candidate in self.candidates]
        return (("class map", "classes agree"), ("as given", f"{self.given:.3f}"), *rows)


def check_classes(context: AuditContext, findings: FindingLog) -> None:
    """Warn if the classes of objects in one place support a different map than the one in use."""
    if context.metrics.protocol.class_agnostic or findings.has(*MISREAD):
        return
    gt, pred = context.gt.labels, context.pred.labels
    verdict = judge(gt, pred, Confusion.of(context.sample), context.aligned.classes.rows)
    if verdict.better is None:
        _report_none(context, verdict, findings)
        return
    detail = f"classes differ between the sides: {verdict.evidence()}"
    fix = repair(context.gt, context.pred, verdict.better, verdict.given)
    where, table, options = Where(context.pred.path, field="class"), verdict.table(), context.options
    # Names of files are statements about the data; those of an option may be of other data, or in another order.
    by_option = _named_by_option(options)
    if by_option:
        detail += f"; the names given for the {' and '.join(by_option)} contradict the boxes"
    named = (
        options is None or options.class_map is not None or not (by_option or context.aligned.classes.strategy == "id")
    )
    if context.stops("class-mapping", named=named) and _is_decisive(verdict, context):
        findings.error("class-mapping", where, detail, fix=replace(fix, allow="class-mapping"), table=table)
    else:
        findings.warning("class-mapping", where, detail, fix=fix, table=table)


def _report_none(context: AuditContext, verdict: Verdict, findings: FindingLog) -> None:
    """Report few pairs of which none has one class: an AP of 0 is not left without a word."""
    if verdict.given or not verdict.pairs:
        return
    pairs = pluralise(verdict.pairs, "overlapping pair has", "overlapping pairs have")
    detail = f"none of {pairs} the same class on both sides"
    best = max(verdict.candidates, key=lambda candidate: candidate.agreement, default=None)
    fix = Fix.missing("Check that classes count and mean the same on both sides.")
    # A way to count that several classes confirm, without an exception.
    used = 0 if best is None else len(np.unique(Confusion.of(context.sample).pred))
    if best is not None and best.agreement == 1 and used > 1 and isinstance(best.class_map, str):
        detail += f", all have by {best.class_map}"
        fix = rerun_with(best, 0.0)
    where = Where(context.pred.path, field="class")
    findings.warning("class-mapping", where, detail, fix=fix, table=verdict.table() if verdict.candidates else ())


def _named_by_option(options: SideOptions | None) -> list[str]:
    """Return whose classes an option names: "ground truth", "predictions"."""
    given = () if options is None else ((options.gt_options, "ground truth"), (options.pred_options, "predictions"))
    return [side for reading, side in given if reading is not None and reading.names]


def _is_decisive(verdict: Verdict, context: AuditContext) -> bool:
    """Whether next to no object has its class as given, and most of those that can be found have by a map with a rule.

    Classes that both give alike are evidence for neither. Pairs that were chosen to fit, and classes that changed
    places, may be weaknesses of the detector. So may a class that lies on another one: many classes must fit, more
    often than if they had nothing to do with each other.
    """
    better, confusion, given = verdict.better, Confusion.of(context.sample), context.aligned.classes.rows
    if better is None or not isinstance(better.class_map, str):
        return False
    if better.agreement * verdict.pairs < STOP_OTHER * place_agreement(context.sample).possible:
        return False
    differ = better.rows[confusion.pred] != given[confusion.pred]
    confusion = Confusion(confusion.pred[differ], confusion.gt[differ], confusion.count[differ])
    share = confusion.agreement(better.rows)
    if confusion.agreement(given) > (CONFUSED if share >= 1 - CONFUSED else STOP_GIVEN):
        return False
    in_pred = np.bincount(confusion.pred, weights=confusion.count, minlength=len(better.rows)) / confusion.pairs
    in_gt = np.append(np.bincount(confusion.gt, weights=confusion.count) / confusion.pairs, 0.0)  # -1: no class
    goal = np.where(better.rows < len(in_gt) - 1, better.rows, -1)
    by_chance = float(in_pred @ in_gt[goal])
    return share > by_chance and confusion.pairs * divergence(share, by_chance) >= STOP_SURPRISE


def best_class_map(gt: Dataset, pred: Dataset, placed: Placement, findings: FindingLog) -> ClassMap | None:
    """Return the map that the boxes support, with a note of it; None to leave the classes as given."""
    where = Where(pred.path, field="class")
    given = match_classes(gt.labels, pred.labels, None, where, FindingLog()).rows
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    verdict = judge(gt.labels, pred.labels, Confusion.of(sample), given)
    chosen = None if verdict.better is None else verdict.better.class_map
    decided = "as given" if chosen is None else f"by {_short_text(chosen)}"
    findings.note("class-map-auto", where, f"classes are read {decided}: {verdict.evidence()}", table=verdict.table())
    return chosen


CONFUSED = 0.05  # share of the pairs that a detector gives another class, which as given may be right by that
COUNTINGS = {  # rules under which one side counts classes from 0 and the other from 1
    "id+1": "are one less than those of the ground truth",
    "id-1": "are one more than those of the ground truth",
    "contiguous": "count the classes of the ground truth from 0",
    "contiguous-from-1": "count the classes of the ground truth from 1, as Ultralytics does (class index + 1)",
}
FEWEST_LOCATED = 10  # objects in one place, from which a rule is applied unasked, and
GIVEN_AT_MOST = 0.25  # share of those that the rule gives another class whose classes may agree as given
ONE_CLASS = 0.75  # share whose classes must agree if only one class of the predictions is evidence


def applied_counting(gt: Dataset, pred: Dataset, options: SideOptions, findings: FindingLog) -> str | None:
    """Return the rule by which class ids without names count, with a note of it; None unless boxes leave no doubt.

    Nothing is looked at where a rule would know fewer of the predicted classes than the ids as they are: a shift of ids
    that are all used drops one at an end.
    """
    if options.class_map is not None or (gt.labels.named and pred.labels.named) or "arrays" in (gt.format, pred.format):
        return None
    if pred.has_no_class:  # then its id means nothing
        return None
    given = match_classes(gt.labels, pred.labels, None, Where(pred.path), FindingLog()).rows
    used = np.flatnonzero(pred.boxes.counts("label", len(pred.labels)))
    known = max(1, int((given[used] >= 0).sum()))
    rules = {name: rows_of_named(name, gt.labels, pred.labels) for name in COUNTINGS}
    # One that changes no class needs no evidence.
    rules = {
        name: rows
        for name, rows in rules.items()
        if int((rows[used] >= 0).sum()) >= known and (rows[used] != given[used]).any()
    }
    if not rules:
        return None
    placed = place(gt, pred, options, FindingLog())
    sample = take_sample(placed.gt, placed.pred, len(placed.images.table))
    confusion = Confusion.of(sample)
    name = max(rules, key=lambda name: confusion.agreement(rules[name]))
    is_located = confusion.pairs >= FEWEST_LOCATED and place_agreement(sample).share >= LOW_AGREEMENT
    if not is_located or not _is_told_apart(confusion, given, rules[name]):
        return None
    chosen = Candidate(name, rules[name], confusion.agreement(rules[name]))
    if _loses_classes(chosen, _free_candidate(gt.labels, pred.labels, confusion), confusion):
        return None
    verdict = Verdict(confusion.pairs, confusion.agreement(given), (), chosen)
    where, detail = (
        Where(pred.path, field="class"),
        f"class ids {COUNTINGS[name]}: {verdict.evidence()}; read by {name}",
    )
    words = "To keep them unchanged, pass {class_map:id}."  # the fix is the reading that was taken
    findings.note("class-counting", where, detail, fix=rerun_with(chosen, verdict.given, words))
    return name


def _is_told_apart(confusion: Confusion, given: RowArray, rule: RowArray) -> bool:
    """Whether objects agree with a rule and not with the classes as given, where the two differ.

    Index plus one is the id of COCO's first eleven classes: those are evidence for neither.
    """
    differ = rule[confusion.pred] != given[confusion.pred]
    pairs = confusion.count[differ].sum()
    as_given, fits = (differ & (rows[confusion.pred] == confusion.gt) for rows in (given, rule))
    by_rule = confusion.count[fits].sum()
    if pairs < CLEAR_PAIRS or confusion.count[as_given].sum() > GIVEN_AT_MOST * pairs or by_rule < CONVINCING * pairs:
        return False
    # A single class that lies on another one may be a weakness of the detector, or a detector of anything.
    return len(np.unique(confusion.pred[fits & (confusion.count > 1)])) > 1 or by_rule >= ONE_CLASS * pairs


def judge(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> Verdict:
    """Score all candidates against the map in use: the ground-truth row `given` to each prediction class, or -1."""
    as_given = confusion.agreement(given)
    renumbered = Verdict(confusion.pairs, as_given, (), None)
    if as_given <= 1 - CLEAR_GAIN:
        renumbered = _renumbered(gt, pred, confusion, given)
    if renumbered.better is not None:
        return renumbered
    swapped = _swapped(confusion, given, gt, pred)
    candidates = tuple(sorted((*renumbered.candidates, *swapped), key=lambda candidate: -candidate.agreement))
    return replace(renumbered, candidates=candidates, better=swapped[0] if swapped else None)


def _renumbered(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> Verdict:
    """Compare maps that change all classes: those that have a rule, and one that has none."""
    as_given = confusion.agreement(given)
    named = _named_candidates(gt, pred, confusion, given)
    free = _free_candidate(gt, pred, confusion)
    is_ruled = named and not _loses_classes(named[0], free, confusion)
    best = named[0] if is_ruled and named[0].agreement >= _supported(confusion, free) - FREE_GAIN else free
    gain = (_supported(confusion, best) if best is free else best.agreement) - as_given
    clear = gain >= CLEAR_GAIN and gain * confusion.pairs >= CLEAR_PAIRS and best.agreement >= CONVINCING
    shown = [*named[: LISTED - 1], *([free] if clear and best is free else [])]
    ranked = sorted(shown, key=lambda candidate: -candidate.agreement)
    return Verdict(confusion.pairs, as_given, tuple(ranked), best if clear else None)


def _loses_classes(named: Candidate, free: Candidate, confusion: Confusion) -> bool:
    """Whether a map by rule has no class for some objects that others fit: ids may count names of another order.

    Names without ids have one of their own, such as that of the alphabet, which few classes fit by chance.
    """
    is_lost = bool((named.rows[confusion.pred] < 0).any())
    return is_lost and free.agreement > named.agreement + FREE_GAIN


def _named_candidates(gt: LabelMap, pred: LabelMap, confusion: Confusion, given: RowArray) -> list[Candidate]:
    """Named maps that differ from each other and from the given one, the best first.

    Of maps that fit alike, the one that knows more classes comes first: ids from 0 to 79 shifted by one fall into the
    gaps of COCO's ids.
    """
    known = {given.tobytes()}
    candidates = []
    for name in NAMED_MAPS:
        rows = rows_of_named(name, gt, pred)
        if (rows >= 0).any() and rows.tobytes() not in known:
            known.add(rows.tobytes())
            candidates.append(Candidate(name, rows, confusion.agreement(rows)))
    return sorted(candidates, key=lambda named: (-named.agreement, -int((named.rows >= 0).sum())))


def _free_candidate(gt: LabelMap, pred: LabelMap, confusion: Confusion) -> Candidate:
    """Pair classes one to one, the most frequent cells first; a cell of a single pair proves nothing."""
    rows = np.full(len(pred), NOWHERE, dtype=np.int32)
    taken: set[int] = set()
    order = np.argsort(-confusion.count, kind="stable")
    cells = zip(confusion.pred[order].tolist(), confusion.gt[order].tolist(), confusion.count[order], strict=True)
    for pred_label, gt_label, count in cells:
        if count > 1 and rows[pred_label] == NOWHERE and gt_label not in taken:
            rows[pred_label] = gt_label
            taken.add(gt_label)
    pairs = _pairs_of(rows, gt, pred)
    rows = rows_of_pairs(gt, pred, pairs)
    return Candidate(pairs, rows, confusion.agreement(rows))


def _supported(confusion: Confusion, free: Candidate) -> float:
    """Agreement of a free map without the first pair of each class, which it was made to fit."""
    fitting = free.rows[confusion.pred] == confusion.gt
    return int((confusion.count[fitting] - 1).sum()) / max(confusion.pairs, 1)


def _pairs_of(rows: RowArray, gt: LabelMap, pred: LabelMap) -> dict[str, str]:
    """Write a map as texts, without the classes that keep their name."""
    default = rows_of_pairs(gt, pred, {})
    changed = np.flatnonzero((rows >= 0) & (rows != default)).tolist()
    return {_class_text(pred, row): _class_text(gt, int(rows[row])) for row in changed}


def _class_text(labels: LabelMap, row: int) -> str:
    """Return the name of a class, or its key where several classes share the name."""
    name = labels.names[row]
    return name if labels.names.count(name) == 1 else str(labels.keys[row])


def _swapped(confusion: Confusion, given: RowArray, gt: LabelMap, pred: LabelMap) -> list[Candidate]:
    """Find classes that have changed places among themselves in an otherwise fitting map; one candidate or none.

    They must be a permutation: a class that is merely confused with another one is a weakness of the detector.
    """
    total = np.bincount(confusion.pred, weights=confusion.count, minlength=len(given))[confusion.pred]
    share = confusion.count / np.maximum(total, 1)  # (c,): of the pairs of the cell's prediction class
    is_own = given[confusion.pred] == confusion.gt
    own = np.bincount(confusion.pred[is_own], weights=share[is_own], minlength=len(given))
    mistaken = (total >= SWAP_PAIRS) & ~is_own & (share >= SWAP_OTHER) & (own[confusion.pred] <= SWAP_OWN)
    pred_rows, gt_rows = confusion.pred[mistaken], confusion.gt[mistaken]
    if len(pred_rows) < 2 or sorted(given[pred_rows].tolist()) != sorted(gt_rows.tolist()):
        return []
    rows = given.copy()
    rows[pred_rows] = gt_rows
    return [Candidate(_pairs_of(rows, gt, pred), rows, confusion.agreement(rows))]


def rerun_with(better: Candidate, given: float, words: str = "Rerun {changes}.") -> Fix:
    """Return the fix of a map that agrees better: a name, pairs, or "auto" for many pairs."""
    text, class_map = "auto", better.class_map
    if isinstance(class_map, str):
        text = class_map
    elif len(class_map) <= PASTED and all(_PLAIN_NAME.fullmatch(name) for pair in class_map.items() for name in pair):
        text = ",".join(f"{pred}={gt}" for pred, gt in class_map.items())
    metric = "overlapping pairs of one class"
    return Fix.reading({"class_map": text}, metric=metric, before=given, after=better.agreement, words=words)


def repair(gt: Dataset, pred: Dataset, better: Candidate, given: float) -> Fix:
    """Return the fix of a map that agrees better; pairs that leave classes of both sides over need the user's names."""
    fix = rerun_with(better, given)
    n_pred, n_gt = (side.boxes.counts("label", len(side.labels)) for side in (pred, gt))
    left = np.flatnonzero((better.rows < 0) & (n_pred > 0))
    open_classes = np.setdiff1d(np.flatnonzero(n_gt), better.rows)
    if isinstance(better.class_map, str) or not len(left) or not len(open_classes):
        return fix
    spelt = fix.options["class_map"]
    names = example_keys(pred.labels.names[row] for row in left.tolist()) + ", ..." * (len(left) > 3)
    of_left = f"{pluralise(int(n_pred[left].sum()), 'prediction')} of {pluralise(len(left), 'class', 'classes')}"
    words = (
        f"Name all classes by index with {{pred_names}}, or add to {{class_map}}: the boxes do not show what {names}"
        f" mean{'s' if len(left) == 1 else ''}, and {of_left} would be ignored."
    )
    return Fix.missing(words, pred_names=None, class_map=None if spelt == "auto" else spelt)


def _short_text(class_map: ClassMap) -> str:
    if isinstance(class_map, str):
        return class_map
    if len(class_map) <= NAMED_PAIRS:
        return ", ".join(f"{pred} = {gt}" for pred, gt in class_map.items())
    return f"{len(class_map):,} pairs"
