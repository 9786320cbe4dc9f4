"""What predictions mean for annotations: matches, how often the like of a detection is right, what is usual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.matchtable import (
    NO_PLACE,
    MatchProblem,
    Pairs,
    assign_best_free,
    candidate_pairs,
    pairs_of_any_class,
)
from jaccard_eval.matching.order import Blocks, IntArray, stable_order, starts_of_runs

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
