"""Suspects: which annotations predictions contradict, and how surely; each kind of error with a ranking of its own.

A score is a log likelihood ratio of "the label is wrong" to "the label is right", with one label in fifty taken to be
wrong beforehand, so that kinds can stand in one list. Its evidence is what stands first: matches, how often the like of
a detection is right, what is usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.alignment import Sides
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import POINTS, Protocol
from jaccard_eval.features.labels import (
    BOX,
    CLASS,
    DUPLICATE,
    LISTED,
    MISSING,
    SIDES,
    SPURIOUS,
    SUSPICIONS,
    LabelsResult,
    Suspect,
)
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import Blocks, IntArray, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import (
    NO_PLACE,
    MatchProblem,
    Pairs,
    any_flag,
    assign_best_free,
    candidate_pairs,
    pairs_of_any_class,
)
from jaccard_eval.progress import staged
from jaccard_eval.similarity.keypoints import Keypoints, other_sides
from jaccard_eval.text import pluralise, quoted_value

NONE = -1
MATCH_IOU = 0.5  # a detection and an annotation are of one object
NEAR_IOU = 0.3  # and are probably so
LOOSE_IOU = 0.1  # below, they have nothing to do with each other
# px², of COCO; of boxes in fractions of an image, thirds of the annotations
SIZE_EDGES = (32.0**2, 96.0**2)
SIZES = ("small", "medium", "large")
CHUNK_ROWS = 1 << 15  # annotations that are looked at at once
LEAST_PAIRS = 50  # matches below which nothing can be calibrated
# Objects by which a group that has few is drawn towards all others.
SHIFT_PRIOR, MISS_PRIOR, SIZE_PRIOR, CLASS_PRIOR = 20.0, 10.0, 20.0, 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The annotations: their boxes, which of them count, and how large each is for its kind."""

    boxes: BoxTable
    counts: BoolArray  # (m,); crowds and what is ignored are never suspects
    size: IntArray  # (m,), place in `SIZES`
    n_images: int
    n_labels: int
    edges: FloatArray  # areas between sizes

    @classmethod
    def of(cls, boxes: BoxTable, ignored: BoolArray, *, units: str, n_images: int, n_labels: int) -> Truth:
        """Look at annotations; `units` are "px" or "norm"."""
        edges = np.array(SIZE_EDGES)
        if units == "norm" and len(boxes):
            edges = np.quantile(_areas(boxes), (1 / 3, 2 / 3))
        return cls(boxes, ~ignored, np.digitize(_areas(boxes), edges), n_images, n_labels, edges)

    def sizes_of(self, boxes: BoxTable) -> IntArray:
        """Return the place in `SIZES` of other boxes."""
        return np.digitize(_areas(boxes), self.edges)


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """One file of predictions, by falling score, and what each detection has to do with the annotations."""

    pred: BoxTable
    pairs: Pairs  # of any class, overlapping by at least `LOOSE_IOU`
    # Row of the annotation, (n,), `NONE` for none: of its class; of what that leaves, of another class; of its class,
    # but badly placed.
    right: IntArray
    other: IntArray
    loose: IntArray
    near: FloatArray  # (n,), overlap with the nearest annotation of any class
    is_double: BoolArray  # (n,); a surer detection is there
    in_ignored: BoolArray  # (n,); more than half of it lies in an annotation that does not count
    # Log odds, (n,), that the like of it is a thing; that its class is right, given there is a thing.
    thing: FloatArray
    named: FloatArray
    gt_near: FloatArray  # (m,), overlap of each annotation with the nearest detection of any class
    overlap: FloatArray  # (n,), with the annotation that it is matched with

    @property
    def matched(self) -> IntArray:
        """The detection that found each annotation in its class, (m,), `NONE` for none."""
        return inverse(self.right, len(self.gt_near))


def look(truth: Truth, pred: BoxTable, protocol: Protocol) -> Views:
    """Match predictions with annotations, and learn how far they can be trusted."""
    n, m = len(pred), len(truth.boxes)
    score = np.zeros(n) if pred.score is None else pred.score
    # By falling score: the row of a detection is its turn. Ties: image order, then the order of the file.
    pred = pred.take(np.lexsort((pred.source, pred.image, -score)))
    rows = np.arange(n)
    pairs = overlapping(pred, rows, truth.boxes, truth.counts, protocol, threshold=LOOSE_IOU)
    same = pred.label[pairs.det] == truth.boxes.label[pairs.gt]
    right, overlap = _one_to_one(pairs, same & (pairs.overlap >= MATCH_IOU), n, m)
    free = (right[pairs.det] == NONE) & (inverse(right, m)[pairs.gt] == NONE)
    other, of_other = _one_to_one(pairs, free & (pairs.overlap >= MATCH_IOU), n, m)
    loose, of_loose = _one_to_one(pairs, free & same, n, m)
    near, gt_near = np.zeros(n), np.zeros(m)
    np.maximum.at(near, pairs.det, pairs.overlap)
    np.maximum.at(gt_near, pairs.gt, pairs.overlap)
    doubles = overlapping(pred, rows, pred, np.ones(n, dtype=np.bool_), protocol, threshold=MATCH_IOU)
    is_double = np.zeros(n, dtype=np.bool_)
    is_double[doubles.det[doubles.gt < doubles.det]] = True
    score = np.zeros(n) if pred.score is None else pred.score
    group = pred.label.astype(np.int64) * len(SIZES) + truth.sizes_of(pred)
    # Localisation and classes answer other questions: what is neither a match nor far from all is not used.
    is_right = right != NONE
    things = log_odds(score, is_right, is_right | (near < LOOSE_IOU), group)
    names = log_odds(score, is_right, is_right | (other != NONE), pred.label.astype(np.int64))
    return Views(
        pred=pred,
        pairs=pairs,
        right=right,
        other=other,
        loose=loose,
        near=near,
        is_double=is_double,
        in_ignored=_inside(pred, truth, protocol),
        thing=things,
        named=names,
        gt_near=gt_near,
        overlap=np.where(is_right, overlap, np.where(other != NONE, of_other, of_loose)),
    )


def _areas(boxes: BoxTable) -> FloatArray:
    return np.asarray(boxes.xywh[:, 2] * boxes.xywh[:, 3])


def overlapping(
    pred: BoxTable, rows: IntArray, gt: BoxTable, chosen: BoolArray, protocol: Protocol, *, threshold: float
) -> Pairs:
    """Return the overlapping pairs of whatever classes: places of detections among `rows`, rows of chosen boxes."""
    found = [
        (pairs.det + block.start, pairs.gt, pairs.overlap)
        for block, pairs in pairs_of_any_class(pred, rows, gt, chosen, protocol, threshold=threshold)
    ]
    empty = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    return Pairs(*(np.concatenate(columns) for columns in zip(*(found or [empty]), strict=True)))


def duplicates(truth: Truth, protocol: Protocol) -> Pairs:
    """Return the pairs of annotations of a class that overlap: the later one of the file, then the earlier."""
    boxes = truth.boxes
    pairs = overlapping(boxes, np.arange(len(boxes)), boxes, truth.counts, protocol, threshold=MATCH_IOU)
    later = (boxes.source[pairs.det] > boxes.source[pairs.gt]) & truth.counts[pairs.det]
    kept = later & (boxes.label[pairs.det] == boxes.label[pairs.gt])
    return Pairs(pairs.det[kept], pairs.gt[kept], pairs.overlap[kept])


def inverse(row: IntArray, n: int) -> IntArray:
    """Return which place holds each of `n` rows, `NONE` for none; no row is held twice."""
    at = np.full(n, NONE, dtype=np.int64)
    held = np.flatnonzero(row != NONE)
    at[row[held]] = held
    return at


def _one_to_one(pairs: Pairs, chosen: BoolArray, n: int, m: int) -> tuple[IntArray, FloatArray]:
    """Let each detection, by its row, take the best annotation that is free; return these and their overlap."""
    row, overlap = np.full(n, NONE, dtype=np.int64), np.zeros(n)
    some = Pairs(pairs.det[chosen], pairs.gt[chosen], pairs.overlap[chosen])
    if not len(some):
        return row, overlap
    nothing = np.zeros(m, dtype=np.bool_)
    # Any threshold will do: all that are chosen overlap enough.
    problem = MatchProblem(some, np.array([LOOSE_IOU]), nothing[None], nothing, last_wins=False)
    detection, choice = assign_best_free(problem)
    taken = choice[0, 0] != NO_PLACE
    pair = np.flatnonzero(starts_of_runs(some.det))[taken] + choice[0, 0][taken].astype(np.int64) - 1
    row[detection[taken]], overlap[detection[taken]] = some.gt[pair], some.overlap[pair]
    return row, overlap


def _inside(pred: BoxTable, truth: Truth, protocol: Protocol) -> BoolArray:
    """Mark the detections of which more than half lies in an annotation that does not count."""
    inside = np.zeros(len(pred), dtype=np.bool_)
    rows = np.flatnonzero(~truth.counts)
    if not len(rows):
        return inside
    rows = rows[stable_order(truth.boxes.image[rows])]
    ignored = truth.boxes.take(rows)
    blocks = Blocks.of(ignored.image.astype(np.int64), pred.image.astype(np.int64))
    crowd = np.ones(len(rows), dtype=np.bool_)
    found = candidate_pairs(pred, ignored, blocks, protocol, threshold=MATCH_IOU, crowd=crowd)
    inside[found.det] = True
    return inside


def isotonic(score: FloatArray, hit: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the scores that occur, ascending, and the share of hits at each: the best fit that never falls.

    Pools adjacent violators (Ayer et al. 1955); equal scores share one value.
    """
    scores, place, size = np.unique(score, return_inverse=True, return_counts=True)
    hits = np.bincount(place, weights=hit, minlength=len(scores))
    # Each pool: hits, detections, distinct scores.
    pools: list[tuple[float, int, int]] = []
    for pool in zip(hits.tolist(), size.tolist(), [1] * len(scores), strict=True):
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])  # noqa: PLW2901 - grows as it swallows
        pools.append(pool)
    share = np.repeat([found / n for found, n, _ in pools], [span for _, _, span in pools])
    return scores, np.asarray(share, dtype=np.float64)


def log_odds(score: FloatArray, hit: BoolArray, used: BoolArray, group: IntArray) -> FloatArray:
    """Return the log odds of a hit by score, shifted for each group by what it has more or less than all, (n,)."""
    n = int(used.sum())
    if not len(score):
        return np.zeros(0)
    least = 1 / (n + 2)
    if hit.sum() < LEAST_PAIRS or n == hit.sum():
        # Too little to learn from: the score as it is, as far as it is a probability.
        return logit(np.clip(score, 0.01, 0.99))
    curve = np.clip(np.interp(score, *isotonic(score[used], hit[used])), least, 1 - least)
    n_groups = int(group.max()) + 1
    size, found, expected = (
        np.bincount(group[used], weights=weights, minlength=n_groups)
        for weights in (None, hit[used].astype(np.float64), curve[used])
    )
    usual = SHIFT_PRIOR * expected / np.maximum(size, 1)
    whole = size + SHIFT_PRIOR + 1
    shift = logit((found + usual + 0.5) / whole) - logit((expected + usual + 0.5) / whole)
    limit = logit(np.array(1 - least))
    odds = np.clip(logit(curve) + np.where(size > 0, shift, 0.0)[group], -limit, limit)
    # The curve is flat in steps: among equals, the score decides.
    return np.asarray(odds + 1e-3 * score)


def logit(share: FloatArray) -> FloatArray:
    """Return the log odds of shares within 0 and 1."""
    return np.asarray(np.log(share) - np.log1p(-share))


def miss_rates(truth: Truth, views: Views) -> FloatArray:
    """Return how often objects of the class and size of each annotation have no detection near, (m,)."""
    lost = views.gt_near < NEAR_IOU
    counted, label = truth.counts, truth.boxes.label.astype(np.int64)
    size, rest = truth.size[counted], lost[counted].astype(np.float64)
    n_of_size = np.bincount(size, minlength=len(SIZES))
    by_size = (np.bincount(size, weights=rest, minlength=len(SIZES)) + 0.5) / (n_of_size + 1)
    # Of the class and size, drawn towards the class, which is drawn towards the size.
    expected = by_size[size]
    n_of_class, lost_of_class, expected_of_class = (
        np.bincount(label[counted], weights=weights, minlength=truth.n_labels) for weights in (None, rest, expected)
    )
    mean = expected_of_class / np.maximum(n_of_class, 1)
    factor = (lost_of_class + MISS_PRIOR * mean) / np.maximum(expected_of_class + MISS_PRIOR * mean, 1e-9)
    rate: FloatArray = by_size[truth.size] * factor[label]
    return np.clip(rate, 0.01, 0.99)


class Company:
    """How probable a class is on an image, by what else is annotated there: images are of kinds, such as streets.

    A mixture of kinds of images, each with shares of classes of its own, is fitted to one half of the images and asked
    of the other, so that no annotation supports itself.
    """

    PRIORS = 2.0 ** np.arange(-2, 8)
    N_KINDS, N_ROUNDS, SMOOTHING = 16, 25, 10.0

    def __init__(self, truth: Truth) -> None:
        boxes, self._k = truth.boxes, truth.n_labels
        image, label = boxes.image.astype(np.int64), boxes.label.astype(np.int64)
        self._keys, self._counts = np.unique(image * self._k + label, return_counts=True)
        self._image, self._label = np.divmod(self._keys, self._k)
        self.total = np.bincount(image, minlength=truth.n_images)
        self._by_class = np.bincount(label, minlength=self._k)
        self.share: FloatArray = np.asarray((self._by_class + 0.5) / (len(boxes) + 0.5 * self._k))
        # A slip of the hand can hit any class, a rare one too.
        self.slip: FloatArray = 0.8 * self.share + 0.2 / self._k
        halves = [self._fitted(self._image % 2 != half) for half in (0, 1)]
        self._shares = np.array(halves)  # (2, Z, K): of each kind of images, learnt without one half
        self._weights = np.array([self._log_weights(self._shares[half]) for half in (0, 1)])  # (2, n_images, Z)
        # How far an image is of a kind of its own: what makes each annotation most probable given all others there.
        usual = self._usual(image, label, label) if len(boxes) else np.zeros(0)
        fits = [np.log(self._mixed(image, label, label, usual, prior)).sum() for prior in self.PRIORS.tolist()]
        self._prior = float(self.PRIORS[int(np.argmax(fits))])

    def _fitted(self, chosen: BoolArray) -> FloatArray:
        """Return the shares of classes in each kind of images, (Z, K), of some entries: by expectation-maximisation."""
        image, label, count = self._image[chosen], self._label[chosen], self._counts[chosen].astype(np.float64)
        # They begin as the company of each frequent class.
        frequent = np.argsort(-self._by_class, kind="stable")[: self.N_KINDS]
        kinds = np.zeros((len(frequent), self._k))
        for z, c in enumerate(frequent.tolist()):
            has = np.isin(image, image[label == c])
            kinds[z] = np.bincount(label[has], weights=count[has], minlength=self._k)
        shares = self._smoothed(kinds)
        n_images = len(self.total)
        for _ in range(self.N_ROUNDS):
            odds = np.stack([np.bincount(image, count * np.log(kind)[label], n_images) for kind in shares], axis=1)
            weights = np.exp(odds - odds.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            kinds = np.stack([np.bincount(label, count * weight[image], self._k) for weight in weights.T])
            shares = self._smoothed(kinds)
        return shares

    def _smoothed(self, kinds: FloatArray) -> FloatArray:
        shares: FloatArray = kinds + self.SMOOTHING * self.share
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _log_weights(self, shares: FloatArray) -> FloatArray:
        """Return how probable all annotations of each image are under each kind, (n_images, Z)."""
        count, n = self._counts, len(self.total)
        return np.stack([np.bincount(self._image, count * np.log(kind)[self._label], n) for kind in shares], axis=1)

    def _usual(self, image: IntArray, label: IntArray, own: IntArray | None) -> FloatArray:
        """Return the share of classes in images of such kinds, (n,)."""
        usual, half = np.empty(len(image)), image % 2
        for start in range(0, len(image), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            odds = self._weights[half[rows], image[rows]]
            if own is not None:
                odds = odds - np.log(self._shares[half[rows], :, own[rows]])
            weights = np.exp(odds - odds.max(axis=1, keepdims=True))
            shares = self._shares[half[rows], :, label[rows]]
            usual[rows] = (weights * shares).sum(axis=1) / weights.sum(axis=1)
        return usual

    def count(self, image: IntArray, label: IntArray) -> IntArray:
        """Count the annotations of a class on an image, (n,)."""
        key = image * self._k + label
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.asarray(np.where(self._keys[place] == key, self._counts[place], 0)) if len(self._keys) else key * 0

    def of(self, image: IntArray, label: IntArray, own: IntArray | None = None) -> FloatArray:
        """Return the probability of each class on each image, (n,), without an annotation of the class `own` there."""
        return self._mixed(image, label, own, self._usual(image, label, own), self._prior)

    def _mixed(
        self, image: IntArray, label: IntArray, own: IntArray | None, usual: FloatArray, prior: float
    ) -> FloatArray:
        """Return what was counted on the image, drawn towards what is usual."""
        count, total = self.count(image, label), self.total[image]
        if own is not None:
            count, total = count - (label == own), total - 1
        return np.asarray((count + prior * usual) / (total + prior))


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """How far boxes are off from annotations, in units of what is usual for their class and size."""

    off: FloatArray  # (n, 4): left, top, right, bottom of the annotation less those of the box, in sides of both
    unusual: FloatArray  # (n,): squared distance by the usual scatter; 1 at the median of its class and size

    @classmethod
    def of(cls, truth: Truth, row: IntArray, box: FloatArray, usual: BoolArray) -> Placement:
        """Measure boxes (n, 4), as xywh, of annotations by their row; `usual` marks those to learn from."""
        mine, theirs = _edges(truth.boxes.xywh[row]), _edges(box)
        sides = np.sqrt(np.maximum(truth.boxes.xywh[row, 2:] * box[:, 2:], 1e-12))
        off = (mine - theirs) / np.concatenate((sides, sides), axis=1)
        if not usual.any():
            return cls(off, np.ones(len(row)))
        scatter = off[usual].T @ off[usual] / usual.sum()
        # Sides of points are next to nothing: what is off in units of them dwarfs a fixed share.
        scatter += 1e-9 * max(1.0, float(np.trace(scatter))) * np.eye(4)
        unusual = np.einsum("ij,jk,ik->i", off, np.linalg.inv(scatter), off)
        for group, prior in ((truth.size[row], SIZE_PRIOR), (truth.boxes.label[row].astype(np.int64), CLASS_PRIOR)):
            unusual = unusual / _medians(unusual, group, usual, prior)[group]
        return cls(off, unusual)


def _edges(xywh: FloatArray) -> FloatArray:
    return np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)


def _medians(values: FloatArray, group: IntArray, usual: BoolArray, prior: float) -> FloatArray:
    """Return the median of each group, drawn towards that of all by `prior` values."""
    values, group, n = values[usual], group[usual], int(group.max(initial=0)) + 1
    common = max(float(np.median(values)), 1e-9)
    order = np.lexsort((values, group))
    size = np.bincount(group, minlength=n)
    start = np.cumsum(size) - size
    # The lower and the upper of both in the middle; of a group without values any will do, as nothing is its weight.
    last = len(order) - 1
    low, high = (np.minimum(start + np.maximum(size - k, 0) // 2, last) for k in (1, 0))
    own = (values[order[low]] + values[order[high]]) / 2
    return np.asarray((size * np.where(size > 0, own, 0.0) + prior * common) / (size + prior))


def with_images(pred: BoxTable, rows: IntArray) -> BoxTable:
    """Return boxes with other rows of images."""
    return replace(pred, image=rows[pred.image].astype(np.int32))


EXCHANGE_PRIOR = 2.0  # pairs
WRONG_SHARE = 0.02  # of labels, before anything is known of them
FREE_IOU = 0.4  # a detection that overlaps an annotation by more is of that
LEAST_FIT = 0.05  # of a pose and a detection; below, they fit equally badly
UNSEEN = 0.15  # that a model sees nothing where there is an object
MOST_UNUSUAL = 3.9  # log; a box that is off by more is of another object
CUT_SCORE, CUT_SHARE = 0.1, 0.25  # lowest score, and right ones of the lowest tenth: lower scores were cut off
SAME_PLACE = 1e-9  # of a side: edges that are off by less are equal
EDGES = ("left", "top", "right", "bottom")
ALIKE_IOU, ALIKE_SHARE = 0.95, 0.8  # of boxes of two files, and of how many, from which they are one opinion


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Suspects of one kind, the surest first; columns of shape (n,)."""

    kind: str
    # Row of the annotation, `NONE` of what is missing; of the class that is suggested; of the detection and its file.
    row: IntArray
    label: IntArray
    view: IntArray
    detection: IntArray
    odds: FloatArray
    extra: FloatArray  # what its reason names: an overlap, a share, how unusual it is
    box: FloatArray  # (n, 4), the box that is suggested, as xywh

    def take(self, chosen: Any) -> Ranked:
        """Return some of them."""
        columns = ("row", "label", "view", "detection", "odds", "extra", "box")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    @property
    def score(self) -> FloatArray:
        """A score from 0 to 1, near enough to a probability to bring all kinds into one list."""
        odds = (
            self.odds / 1.3 if self.kind == DUPLICATE else 1 / (1 + np.exp(-self.odds - logit(np.array(WRONG_SHARE))))
        )
        return np.asarray(np.clip(odds, 0.0, 1.0))


@staged("finding wrong labels")
def suspect_labels(
    sides: Sequence[Sides],
    protocol: Protocol,
    *,
    most: int | None = LISTED,
    version: str,
) -> LabelsResult:
    """Find annotations that are probably wrong; `sides` are one ground truth with each file of predictions.

    At most so many of each kind are listed, None for all.
    """
    first, findings = sides[0].aligned, FindingLog()
    truth = Truth.of(
        first.gt_table,
        any_flag(first.gt_table, (*protocol.ignored_flags, "crowd", "ignore")),
        units=first.units,
        n_images=len(first.image_names),
        n_labels=max(len(first.class_names), 1),
    )
    asked = [look(truth, pred, protocol) for pred in _predictions(sides)]
    chosen = _independent(asked, sides, protocol, findings)
    views = [view for view, _ in chosen]
    _check(truth, chosen, findings)
    company = Company(truth)
    refused, names = _refusals(views), sides[0].gt.point_names
    poses = first.gt_table.shapes
    other = other_sides(names, poses.points.shape[1]) if isinstance(poses, Keypoints) else None
    turned, explained = _swapped(truth, views, protocol, other)
    if isinstance(poses, Keypoints) and other is None:
        what = f"names such as {', '.join(map(quoted_value, names[:3]))}" if names else "numbers alone"
        refused[SIDES] = (
            f"points with {what} have no known left and right. Call them left_eye, right_eye, or LEye, REye"
        )
    if protocol.overlap in POINTS or protocol.iou_type == "spheres":
        refused[BOX] = "points have no edges that could be off"
    ranked = [
        turned,
        _duplicates(truth, views, protocol),
        _classes(truth, views, company),
        *([] if BOX in refused else [_boxes(truth, views)]),
        *([] if SPURIOUS in refused else [_spurious(truth, views, company)]),
        _missing(views, company, protocol, explained),
    ]
    listed, unlisted, taken = [], {}, np.zeros(len(truth.boxes) + 1, dtype=np.bool_)
    for kind in ranked:
        # An annotation has one suspicion: the first that there is in this order.
        rest = kind.take(~taken[kind.row] | (kind.row == NONE))
        taken[rest.row[rest.row != NONE]] = kind.kind != BOX
        kept = rest.take(slice(0, most))
        listed.append((kept, rest))
        if len(rest.row) > len(kept.row):
            unlisted[kind.kind] = len(rest.row) - len(kept.row)
    writer = _Writer(sides[0], truth, views, company)
    suspects = [writer.suspect(kept, place) for kept, _ in listed for place in range(len(kept.row))]
    order = {kind: place for place, kind in enumerate(SUSPICIONS)}
    suspects.sort(key=lambda suspect: (-suspect.score, order[suspect.kind]))
    gt = sides[0].summaries()[0]
    further = [f"pred_{k}={side.prints().fingerprints[1]}" for k, side in enumerate(sides[1:], start=2)]
    found: list[Finding] = [*sides[0].findings]
    for side in sides[1:]:
        found += [*side.pred.findings, *side.aligned.findings]
    return LabelsResult(
        version=version,
        signature=sides[0].sign(protocol, "kind=labels", *further, version=version),
        protocol=protocol.name,
        gt=gt,
        preds=tuple(side.summaries()[1] for side in sides),
        suspects=tuple(suspects),
        unlisted={kind: unlisted[kind] for kind in SUSPICIONS if kind in unlisted},
        refused=refused,
        findings=(*dict.fromkeys(found), *findings.findings()),
    )


def _predictions(sides: Sequence[Sides]) -> list[BoxTable]:
    """Return all predictions in the image rows of the first; images that only others know have no annotation."""
    names = {name: row for row, name in enumerate(sides[0].aligned.image_names)}
    placed = [sides[0].aligned.pred_table]
    for side in sides[1:]:
        rows = np.array([names.get(name, NONE) for name in side.aligned.image_names], dtype=np.int64)
        pred = side.aligned.pred_table
        placed.append(with_images(pred.take(rows[pred.image] != NONE), rows))
    return placed


def _independent(
    views: list[Views], sides: Sequence[Sides], protocol: Protocol, findings: FindingLog
) -> list[tuple[Views, Sides]]:
    """Drop files that repeat an earlier one: two prints of one opinion do not agree by chance."""
    kept: list[tuple[Views, Sides]] = []
    for view, side in zip(views, sides, strict=True):
        if any(_are_alike(view, other, protocol) for other, _ in kept):
            detail = "more than 80 % of its detections are those of an earlier file: both count as one opinion"
            fix = "Pass predictions of models that were trained independently: other seeds help little, other"
            fix += " architectures or folds do."
            findings.warning("predictions-alike", Where(side.pred.path), detail, fix=fix)
        else:
            kept.append((view, side))
    return kept


def _are_alike(first: Views, second: Views, protocol: Protocol) -> bool:
    n = max(len(first.pred), len(second.pred))
    if not n:
        return False
    pairs = _between(first.pred, second.pred, protocol, ALIKE_IOU)
    return len(np.unique(pairs.det)) > ALIKE_SHARE * n


def _between(first: BoxTable, second: BoxTable, protocol: Protocol, threshold: float) -> Pairs:
    """Return the pairs of detections of one class that overlap."""
    every = np.ones(len(second), dtype=np.bool_)
    pairs = overlapping(first, np.arange(len(first)), second, every, protocol, threshold=threshold)
    same = first.label[pairs.det] == second.label[pairs.gt]
    return Pairs(pairs.det[same], pairs.gt[same], pairs.overlap[same])


def _check(truth: Truth, chosen: Sequence[tuple[Views, Sides]], findings: FindingLog) -> None:
    """Warn where the predictions cannot judge labels."""
    objects = int(truth.counts.sum())
    for view, side in chosen:
        n_right = int((view.right != NONE).sum())
        where = Where(side.pred.path)
        if n_right < LEAST_PAIRS:
            detail = f"only {pluralise(n_right, 'annotation')} matched: scores are not calibrated"
            fix = "Pass more images, or predictions of a model that knows these classes."
            findings.warning("labels-uncalibrated", where, detail, fix=fix)
        elif n_right < 0.3 * objects:
            detail = f"{n_right:,} of {objects:,} annotations are found: the detector misses too much to judge labels"
            fix = "Pass predictions of a better model, with low scores kept."
            findings.warning("labels-weak-detector", where, detail, fix=fix)
        elif n_right > 0.97 * objects and n_right > 0.97 * len(view.pred):
            detail = "nearly every annotation is found, and nearly nothing else: was the model trained on these images?"
            fix = "Split the images into parts, and predict each part with a model that was trained on the others."
            findings.warning("labels-seen", where, detail, fix=fix)


def _refusals(views: Sequence[Views]) -> dict[str, str]:
    """Return the kinds that cannot be looked for: where low scores were cut off, nothing near proves nothing."""
    for view in views:
        n, score = len(view.pred), view.pred.score
        # A model may call all of its detections sure: then the lowest ones are most often wrong.
        right = view.right[n - max(n // 10, 1) :] != NONE
        if n and score is not None and score[-1] >= CUT_SCORE and right.mean() >= CUT_SHARE:
            why = f"the detector kept no low scores: {score[-1]:.2f} is the lowest. Predict with a threshold of 0.01"
            return {SPURIOUS: why}
    return {}


def _ranked(kind: str, odds: FloatArray, *, box: FloatArray | None = None, **columns: Any) -> Ranked:
    n = len(odds)
    none = np.full(n, NONE, dtype=np.int64)
    given = {"row": none, "label": none, "view": np.zeros(n, np.int64), "detection": none, "extra": np.zeros(n)}
    made = Ranked(kind, odds=odds, box=np.zeros((n, 4)) if box is None else box, **given | columns)
    # Ties stand as the rows do: by annotation, or by detection.
    return made.take(np.argsort(-odds, kind="stable"))


def _stranger(truth: Truth, company: Company, rows: IntArray, share: FloatArray) -> FloatArray:
    """Return the log odds that the class of some annotations is by chance on that image, by the share of each class."""
    image, label = truth.boxes.image[rows].astype(np.int64), truth.boxes.label[rows].astype(np.int64)
    return np.asarray(np.log(share[label] / company.of(image, label, label)))


def _swapped(
    truth: Truth, views: Sequence[Views], protocol: Protocol, order: Sequence[int] | None
) -> tuple[Ranked, list[BoolArray]]:
    """Rank poses that detections fit better with their points in an `order`; also mark these detections, by file."""
    shapes, m = truth.boxes.shapes, len(truth.boxes)
    explained = [np.zeros(len(view.pred), dtype=np.bool_) for view in views]
    if not isinstance(shapes, Keypoints) or order is None:
        return _ranked(SIDES, np.zeros(0)), explained
    boxes = replace(truth.boxes, shapes=shapes.ordered(order))
    odds, fit, of_view = np.zeros(m), np.zeros(m), np.zeros(m, dtype=np.int64)
    detection = np.full(m, NONE, dtype=np.int64)
    for k, view in enumerate(views):
        pairs = overlapping(view.pred, np.arange(len(view.pred)), boxes, truth.counts, protocol, threshold=NEAR_IOU)
        same = view.pred.label[pairs.det] == boxes.label[pairs.gt]
        det, row, overlap = pairs.det[same], pairs.gt[same], pairs.overlap[same]
        as_is = np.full(m, LEAST_FIT)
        own = view.pred.label[view.pairs.det] == boxes.label[view.pairs.gt]
        np.maximum.at(as_is, view.pairs.gt[own], view.pairs.overlap[own])
        # The detection that fits best, and only where none fits the pose as it is labelled as well.
        best = np.lexsort((-overlap, row))
        row, first = np.unique(row[best], return_index=True)
        det, overlap = det[best][first], overlap[best][first]
        better = overlap > as_is[row]
        row, det, overlap = row[better], det[better], overlap[better]
        explained[k][det] = True
        # A model that exchanges sides itself proves little, and least where its score is that of such an exchange.
        share = (len(row) - 0.5) / ((view.right != NONE).sum() + len(row) + 1) if len(row) else 1.0
        fits = view.right != NONE
        fits[det] = False
        score = np.zeros(len(fits)) if view.pred.score is None else view.pred.score
        told = log_odds(score, fits, fits | explained[k], np.zeros(len(fits), dtype=np.int64))
        odds[row] += told[det] + 0.5 * np.log(overlap / as_is[row]) - np.log(share)
        against = np.setdiff1d(view.right[view.right != NONE], row)
        odds[against] -= np.logaddexp(0, view.thing[view.matched[against]])
        fresh = detection[row] == NONE
        of_view[row[fresh]], detection[row[fresh]], fit[row[fresh]] = k, det[fresh], overlap[fresh]
    rows = np.flatnonzero(detection != NONE)
    columns: dict[str, Any] = {"view": of_view[rows], "detection": detection[rows], "extra": fit[rows]}
    return _ranked(SIDES, odds[rows], row=rows, **columns), explained


def _missing(views: Sequence[Views], company: Company, protocol: Protocol, explained: Sequence[BoolArray]) -> Ranked:
    """Rank sure detections on nothing that nothing else explains; those of several files on one place are one."""
    near: list[Any] = []
    for k, view in enumerate(views):
        free = (view.right == NONE) & (view.other == NONE) & (view.loose == NONE) & (view.near < FREE_IOU)
        rows = np.flatnonzero(free & ~view.is_double & ~view.in_ignored & ~explained[k])
        near.append((np.full(len(rows), k), rows, view.thing[rows]))
    of_view, row, odds = (np.concatenate(columns) for columns in zip(*near, strict=True))
    boxes = BoxTable.concat([view.pred.take(rows) for view, (_, rows, _) in zip(views, near, strict=True)])
    if len(views) > 1:
        # The surest leads; of each other file the best detection of that place agrees with it.
        order = np.argsort(-odds, kind="stable")
        of_view, row, odds, boxes = of_view[order], row[order], odds[order], boxes.take(order)
        pairs = _between(boxes, boxes, protocol, MATCH_IOU)
        agreed = np.full((len(row), len(views)), np.log(UNSEEN))
        agreed[np.arange(len(row)), of_view] = odds
        is_led = np.zeros(len(row), dtype=np.bool_)
        for leader, other in zip(pairs.det.tolist(), pairs.gt.tolist(), strict=True):
            if leader < other and not is_led[leader] and not is_led[other] and of_view[leader] != of_view[other]:
                is_led[other] = True
                agreed[leader, of_view[other]] = max(agreed[leader, of_view[other]], odds[other])
        kept = np.flatnonzero(~is_led)
        of_view, row, boxes, odds = of_view[kept], row[kept], boxes.take(kept), agreed[kept].sum(axis=1)
    image, label = boxes.image.astype(np.int64), boxes.label.astype(np.int64)
    overlap = np.array([views[k].near[i] for k, i in zip(of_view.tolist(), row.tolist(), strict=True)])
    odds = odds + np.log1p(-overlap) + np.log(company.of(image, label) / company.share[label])
    return _ranked(MISSING, odds, label=label, view=of_view, detection=row, extra=overlap, box=boxes.xywh)


def _classes(truth: Truth, views: Sequence[Views], company: Company) -> Ranked:
    """Rank annotations that detections of another class lie on, unless the model exchanges these classes anyway."""
    k, m = truth.n_labels, len(truth.boxes)
    keys, odds, of_view, detection, shares = [], [], [], [], []
    against = np.zeros(m)
    for place, view in enumerate(views):
        at = np.flatnonzero(view.other != NONE)
        row, own = view.other[at], truth.boxes.label[view.other[at]].astype(np.int64)
        named = view.pred.label[at].astype(np.int64)
        found = np.flatnonzero(view.right != NONE)
        pair = _occurrences(own * k + named)
        whole = np.bincount(own, minlength=k) + np.bincount(truth.boxes.label[view.right[found]], minlength=k)
        # Small counts are noise: a class is drawn towards no preference by two pairs with each other class.
        exchanged = (pair - 1 + EXCHANGE_PRIOR) / (whole[own] + EXCHANGE_PRIOR * k)
        image = truth.boxes.image[row].astype(np.int64)
        likely = company.of(image, named, own) / company.share[named]
        keys.append(row.astype(np.int64) * k + named)
        odds.append(view.named[at] + 2 * np.log(view.overlap[at]) - np.log(exchanged) + np.log(likely))
        of_view.append(np.full(len(at), place))
        detection.append(at)
        shares.append(exchanged)
        # A file that agrees with the label lowers the suspicion.
        against[view.right[found]] -= np.logaddexp(0, view.named[found])
    key, each = np.concatenate(keys), np.concatenate(odds)
    distinct, first, group = np.unique(key, return_index=True, return_inverse=True)
    row, named = np.divmod(distinct, k)
    slip = _stranger(truth, company, row, company.slip)
    total = np.bincount(group, weights=each, minlength=len(distinct)) + slip
    if len(views) > 1:
        total = total + against[row]
    columns = {name: np.concatenate(values)[first] for name, values in (("view", of_view), ("detection", detection))}
    ranked = _ranked(CLASS, total, row=row, label=named, extra=np.concatenate(shares)[first], **columns)
    # Of several classes that files name for one annotation, the most probable one.
    _, best = np.unique(ranked.row, return_index=True)
    return ranked.take(np.sort(best))


def _occurrences(keys: IntArray) -> IntArray:
    """Return how often each key occurs, at its places."""
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(count[place])


def _boxes(truth: Truth, views: Sequence[Views]) -> Ranked:
    """Rank annotations by how unusually far detections of their class are off."""
    m = len(truth.boxes)
    at = np.full((len(views), m), NONE, dtype=np.int64)
    boxes, sure, alone = (np.full(shape, np.nan) for shape in ((len(views), m, 4), at.shape, at.shape))
    usual = np.zeros(m, dtype=np.bool_)
    for k, view in enumerate(views):
        at[k] = np.where(view.matched != NONE, view.matched, inverse(view.loose, m))
        has = np.flatnonzero(at[k] != NONE)
        sides = np.minimum(view.pred.xywh[at[k, has], 2:], truth.boxes.xywh[has, 2:])
        at[k, has[(sides <= 0).any(axis=1)]] = NONE  # a point has no edge that could be off
        has = np.flatnonzero(at[k] != NONE)
        boxes[k, has] = view.pred.xywh[at[k, has]]
        sure[k, has] = -np.logaddexp(0, -view.thing[at[k, has]])
        alone[k, has] = np.log1p(-np.minimum(_next_overlap(truth, view)[at[k, has]], 0.99))
        usual |= (view.matched != NONE) & (at[k] != NONE)
    rows = np.flatnonzero((at != NONE).any(axis=0))
    if not len(rows):
        return _ranked(BOX, np.zeros(0))
    has = at[:, rows] != NONE
    box = np.nanmedian(boxes[:, rows], axis=0)
    placed = Placement.of(truth, rows, box, usual[rows])
    odds = np.minimum(
        np.log(np.maximum(placed.unusual, 1e-9)), MOST_UNUSUAL + 1e-3 * placed.unusual / (1 + placed.unusual)
    )
    odds = odds + np.nanmean(sure[:, rows], axis=0) + np.nanmean(alone[:, rows], axis=0)
    if len(views) > 1:
        agree = np.array([_aligned_iou(boxes[k, rows], box) for k in range(len(views))])
        odds = odds + 2 * np.log(np.maximum(np.nanmin(agree, axis=0), 0.01)) + np.log(has.mean(axis=0))
    first = has.argmax(axis=0)
    ranked = _ranked(
        BOX,
        odds,
        row=rows,
        view=first,
        detection=at[first, rows],
        extra=placed.unusual,
        box=box,
        label=truth.boxes.label[rows].astype(np.int64),
    )
    # An annotation at the place of its detection has nothing to correct.
    return ranked.take(np.flatnonzero((np.abs(placed.off) > SAME_PLACE).any(axis=1)))


def _aligned_iou(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the IoU of boxes of equal rows, as xywh; NaN where either is."""
    low = np.maximum(first[:, :2], second[:, :2])
    high = np.minimum(first[:, :2] + first[:, 2:], second[:, :2] + second[:, 2:])
    common = np.maximum(high - low, 0).prod(axis=1)
    whole = first[:, 2:].prod(axis=1) + second[:, 2:].prod(axis=1) - common
    return np.asarray(common / np.maximum(whole, 1e-12))


def _next_overlap(truth: Truth, view: Views) -> FloatArray:
    """Return the overlap of each detection with the nearest annotation of its class besides its own, (n,)."""
    own = np.where(view.right != NONE, view.right, view.loose)
    pairs, near = view.pairs, np.zeros(len(view.pred))
    others = (truth.boxes.label[pairs.gt] == view.pred.label[pairs.det]) & (own[pairs.det] != pairs.gt)
    np.maximum.at(near, pairs.det[others], pairs.overlap[others])
    return near


def _spurious(truth: Truth, views: Sequence[Views], company: Company) -> Ranked:
    """Rank annotations that no file has anything near, by how surely the like of them is found."""
    near = np.array([view.gt_near for view in views])
    rates = np.array([miss_rates(truth, view) for view in views])
    rows = np.flatnonzero(truth.counts & (near < NEAR_IOU).all(axis=0))
    image, slip = truth.boxes.image[rows], _stranger(truth, company, rows, company.share)
    # On an image where all other objects are found, one that is not stands out.
    seen = truth.counts & (near >= NEAR_IOU).any(axis=0)
    n_images = truth.n_images
    found = np.bincount(truth.boxes.image[seen], minlength=n_images)
    likely = np.where(truth.counts, 1 - rates.min(axis=0), 0.0)
    expected = np.bincount(truth.boxes.image, weights=likely, minlength=n_images)
    odds = -np.log(rates[:, rows]).sum(axis=0) + slip
    odds = odds + 0.5 * np.log((found[image] + 1) / (expected[image] - likely[rows] + 1))
    odds = odds + np.log1p(-near[:, rows].max(axis=0))
    return _ranked(SPURIOUS, odds, row=rows, extra=1 - rates[:, rows].mean(axis=0))


def _duplicates(truth: Truth, views: Sequence[Views], protocol: Protocol) -> Ranked:
    """Rank pairs of annotations of a class that overlap, of which the model finds one."""
    pairs = duplicates(truth, protocol)
    matched = np.zeros(len(truth.boxes), dtype=np.bool_)
    for view in views:
        matched |= view.matched != NONE
    both, one = matched[pairs.det] & matched[pairs.gt], matched[pairs.det] ^ matched[pairs.gt]
    odds = pairs.overlap + 0.3 * np.where(one, 1.0, np.where(both, -1.0, 0.0))
    found = _ranked(DUPLICATE, odds, row=pairs.det, detection=pairs.gt, extra=pairs.overlap)
    _, best = np.unique(found.row, return_index=True)
    return found.take(np.sort(best))


@dataclass(frozen=True, slots=True, eq=False)
class _Writer:
    """Makes suspects of rows, with words for people."""

    sides: Sides
    truth: Truth
    views: Sequence[Views]
    company: Company

    def suspect(self, ranked: Ranked, place: int) -> Suspect:
        """Return one suspect; its row is a place among those of its kind."""
        row, kind, truth = int(ranked.row[place]), ranked.kind, self.truth
        names, label = self.sides.aligned.class_names, int(ranked.label[place])
        of = truth.boxes if row != NONE else self._detections(ranked, place)
        at = row if row != NONE else 0
        suggested, becomes = "", tuple[float, ...]()
        if kind in (MISSING, CLASS):
            suggested = names[label]
        elif kind == BOX:
            becomes = _corners(ranked.box[place])
            suggested = " ".join(self._number(value) for value in becomes)
        elif kind == DUPLICATE:
            suggested = self._id(int(ranked.detection[place]))
        elif kind == SIDES:
            suggested = "swap"
        corners = _corners(of.xywh[at])
        return Suspect(
            kind=kind,
            image=self.sides.aligned.image_names[of.image[at]],
            class_name=names[of.label[at]],
            suggested=suggested,
            score=round(float(ranked.score[place]), 6),
            xmin=corners[0],
            ymin=corners[1],
            xmax=corners[2],
            ymax=corners[3],
            reason=getattr(self, f"_why_{kind}")(ranked, place),
            object="" if row == NONE else self._id(row),
            row=row,
            becomes=becomes or corners,
            image_row=int(of.image[at]),
        )

    def _number(self, value: float) -> str:
        return f"{value:.1f}" if self.sides.aligned.units == "px" else f"{value:.4f}"

    def _id(self, row: int) -> str:
        source = int(self.truth.boxes.source[row])
        ids = self.sides.gt.annotation_ids
        return str(ids[source] if len(ids) else source)

    def _detections(self, ranked: Ranked, place: int) -> BoxTable:
        return self.views[int(ranked.view[place])].pred.take(ranked.detection[place : place + 1])

    def _shown(self, ranked: Ranked, place: int) -> float:
        pred = self._detections(ranked, place)
        return 0.0 if pred.score is None else float(pred.score[0])

    def _why_missing(self, ranked: Ranked, place: int) -> str:
        view, at = self.views[ranked.view[place]], int(ranked.detection[place])
        name = self.sides.aligned.class_names[view.pred.label[at]]
        right = 100 / (1 + np.exp(-view.thing[at]))
        image, label = view.pred.image[at : at + 1].astype(np.int64), view.pred.label[at : at + 1].astype(np.int64)
        others = int(self.company.count(image, label)[0])
        nearest = f"nearest annotation IoU {_share(view.near[at])}" if view.near[at] >= LOOSE_IOU else "nothing near"
        return (
            f"{name} at {_share(self._shown(ranked, place))} (right in {right:.0f} % of such detections); {nearest};"
            f" {pluralise(others, 'annotation')} of the class on the image"
        )

    def _why_class(self, ranked: Ranked, place: int) -> str:
        names = self.sides.aligned.class_names
        own, named = (names[k] for k in (self.truth.boxes.label[ranked.row[place]], ranked.label[place]))
        return (
            f"labelled {own}, predicted as {named} at {_share(self._shown(ranked, place))}; exchanged in"
            f" {100 * ranked.extra[place]:.0f} % of other cases"
        )

    def _why_box(self, ranked: Ranked, place: int) -> str:
        row = int(ranked.row[place])
        own = self.truth.boxes.xywh[row]
        off = np.abs(np.subtract(_corners(own), _corners(ranked.box[place]))) / np.maximum(np.tile(own[2:], 2), 1e-12)
        sides = ("width", "height") * 2
        edges = [f"{edge} edge {100 * off[k]:.0f} % of the {sides[k]}" for k, edge in enumerate(EDGES)]
        worst = [edges[k] for k in np.argsort(-off, kind="stable")[:2]]
        kind = f"{SIZES[self.truth.size[row]]} {self.sides.aligned.class_names[self.truth.boxes.label[row]]}"
        return (
            f"detection of {_share(self._shown(ranked, place))} agrees in class; {worst[0]} out, {worst[1]};"
            f" {ranked.extra[place]:.3g} x the usual for {kind}"
        )

    def _why_spurious(self, ranked: Ranked, place: int) -> str:
        row = int(ranked.row[place])
        boxes = self.truth.boxes
        image, label = boxes.image[row : row + 1].astype(np.int64), boxes.label[row : row + 1].astype(np.int64)
        n, of_class = int(self.company.total[image][0]), int(self.company.count(image, label)[0])
        kind = f"{SIZES[self.truth.size[row]]} {self.sides.aligned.class_names[label[0]]}"
        alone = "the only one" if of_class == 1 else f"one of {of_class}"
        found = f"{100 * ranked.extra[place]:.0f} % of {kind} are found"
        return f"nothing near; {found}; {alone} in an image of {pluralise(n, 'object')}"

    def _why_sides(self, ranked: Ranked, place: int) -> str:
        shown = _share(self._shown(ranked, place))
        return f"a detection of {shown} fits with left and right exchanged: OKS {_share(ranked.extra[place])}"

    def _why_duplicate(self, ranked: Ranked, place: int) -> str:
        other = int(ranked.detection[place])
        matched = any(view.matched[other] != NONE for view in self.views)
        return (
            f"IoU {_share(ranked.extra[place])} with object {self._id(other)}{', which is matched' if matched else ''}"
        )


def _corners(xywh: FloatArray) -> tuple[float, ...]:
    left, top, width, height = xywh.tolist()
    return left, top, left + width, top + height


def _share(value: float) -> str:
    return f"{value:.2f}"
