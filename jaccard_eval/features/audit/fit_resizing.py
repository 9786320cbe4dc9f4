"""What were images resized to? Estimated from pairs of objects and predictions of a sample, or refused.

Pairs need no scale: within a form with unit parameters, each pair of an object and a prediction of its image has a best
factor, and the right pairs agree on it. What most agree on is refined by least squares, gets the most probable name
(`resizing_names`), and is accepted only where chance, the reading as it is, and a part of the images do not explain it
as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, product

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, to_xywh
from jaccard_eval.data.resizing import STRIDE, TURNS, Resizing, Step, geometry_of
from jaccard_eval.features.audit.agreement import IntArray
from jaccard_eval.features.audit.box_places import NORMAL_SPREAD
from jaccard_eval.features.audit.context import FEWEST_MATCHED
from jaccard_eval.features.audit.resizing_names import FORMS, USUAL_LONG, Places, Theta, name_of, text_of
from jaccard_eval.frozen import dataclass

SAMPLE_IMAGES, SAMPLE_PAIRS = 150, 5_000
SCREENED_IMAGES, SCREENED_PAIRS, SCREENED_VIEWS, SCREENED_PEAKS = 50, 1_000, 3, 1
NAMED_IMAGES, NAMED_PAIRS = 1000, 200_000
CROWDED_IMAGES = 40  # at least, however many pairs they have; of their objects, some are looked at then
LARGEST = 1e7  # px; what lies beyond is damage, and no trace of a network
RAW_ENCODINGS = "xywh", "xyxy", "cxcywh"  # that networks put out
UPRIGHT = 0.97  # share of boxes with positive sides, from which an encoding is possible

PAIRED, WORTH = 0.4, 0.35  # IoU from which a pair counts, and what is subtracted: a right scale outweighs one near it
SAME = 0.5  # IoU of boxes that are one object
BIN, KERNEL, PEAKS = 0.02, (1, 2, 3, 2, 1), 3  # of logarithms of factors
FREE, FARTHEST_BIN = 3, 4_000  # bins around a peak that have no other
ROUNDS = 0.4, 0.5, 0.6  # IoU of the pairs that parameters are fitted to, one after the other
OWN_PAIRS, OWN_TRIALS = 200, 40  # of an image, to find a map of its own
FEW_DOUBTED = 24  # images that show first whether their own maps explain more
LEAST = 0.12  # share of objects that a resizing explains
SETTLED = 0.8  # share of objects that predictions lie on, from which no other map is looked for without sizes
NARROW, MEDIUM, BROAD = range(3)  # forms of one vote; those of one vote after another; products of votes


_Pair = tuple[FloatArray, FloatArray]  # two numbers of a form, for each view


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Boxes of one side (n,): rows of images and classes, left, top, width and height as read, scores.

    Of predictions, `numbers` are the four of the file.
    """

    image: IntArray
    label: IntArray
    xywh: FloatArray
    score: FloatArray
    numbers: FloatArray

    def take(self, rows: IntArray | BoolArray) -> Side:
        """Return some of the rows."""
        return Side(self.image[rows], self.label[rows], self.xywh[rows], self.score[rows], self.numbers[rows])


@dataclass(frozen=True, slots=True)
class Found:
    """How the numbers of predictions came to be, and how many of the objects in the sample that explains.

    Without a resizing, each image has a map of its own, which only the sizes of the images can name.
    """

    resizing: Resizing | None
    encoding: str
    matched: int
    objects: int
    unsure: str = ""  # what boxes do not show: "to choose between pad:640 and pad:641"
    unseen: str = ""  # a number that no image shows
    others: tuple[str, ...] = ()  # forms that map the sample alike
    any_class: bool = False


def lie_well(gt: Side, pred: Side, sizes: FloatArray, encoding: str) -> bool:
    """Whether predictions lie on objects as they were read, and no resizing explains more."""
    with np.errstate(all="ignore"):
        sample = _Sample.of(*_usable(gt, pred, sizes), sizes, any_class=False)
        return sample is not None and sample.is_good(encoding)


def find_resizing(
    gt: Side, pred: Side, sizes: FloatArray, encoding: str, encodings: Sequence[str] = RAW_ENCODINGS
) -> Found | None:
    """Return what explains predictions that do not lie well; None where nothing does.

    Boxes as read are in px of the images, whose `sizes` (images, 2) may be unknown; the numbers of the file were read
    as `encoding`.
    """
    gt, pred = _usable(gt, pred, sizes)
    if min(len(gt.image), len(pred.image)) < FEWEST_MATCHED:
        return None
    with np.errstate(all="ignore"):  # of numbers that no reading makes boxes of
        of_class, of_any = (_Sample.of(gt, pred, sizes, any_class=any_class) for any_class in (False, True))
        for sample in (of_class, of_any):
            if sample is None or (sample is of_any and of_class is not None and sample.pairs_as(of_class)):
                continue
            found = sample.find(encoding, encodings)
            if found is not None:
                return replace(found, any_class=sample.any_class)
    return None


def _usable(gt: Side, pred: Side, sizes: FloatArray) -> tuple[Side, Side]:
    """Return the boxes with plausible numbers, on images of known size if most of them are."""
    gt, pred = (side.take(np.flatnonzero((np.abs(side.numbers) < LARGEST).all(axis=1))) for side in (gt, pred))
    known: BoolArray = np.logical_and.reduce(sizes > 0, axis=1)
    if len(gt.image) and known[gt.image].mean() > SAME:
        gt, pred = gt.take(known[gt.image]), pred.take(known[pred.image])
    return gt, pred


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Pairs of objects and predictions of one image, and of one class unless any is allowed."""

    gt: Side
    pred: Side
    sizes: FloatArray
    obj: IntArray  # row of `gt` of each pair, ascending
    det: IntArray
    any_class: bool
    whole: tuple[Side, Side]  # what was sampled

    @classmethod
    def of(
        cls,
        gt: Side,
        pred: Side,
        sizes: FloatArray,
        *,
        any_class: bool,
        most_images: int = SAMPLE_IMAGES,
        most_pairs: int = SAMPLE_PAIRS,
    ) -> _Sample | None:
        """Pair the objects of evenly spread images with their best predictions; None without any pair."""
        whole = gt, pred
        n = 1 + int(max(gt.image.max(initial=-1), pred.image.max(initial=-1)))
        objects = np.bincount(gt.image, minlength=n)
        (both,) = np.nonzero(objects * np.bincount(pred.image, minlength=n))
        if not len(both):
            return None
        chosen = both[np.linspace(0, len(both) - 1, min(len(both), most_images)).astype(np.int64)]
        # Right boxes are among those with the best scores; pairs grow with the square of what is looked at.
        order = np.lexsort((-pred.score, pred.image))
        image = pred.image[order]
        rank = np.arange(len(order)) - np.searchsorted(image, image)
        pred = pred.take(order[np.isin(image, chosen) & (rank < 2 * objects[image] + 3)])
        gt = gt.take(np.isin(gt.image, chosen))
        classes = 2 + int(max(gt.label.max(initial=0), pred.label.max(initial=0)))
        gt_key, pred_key = (side.image * classes + (side.label + 1) * (not any_class) for side in (gt, pred))
        by_key = np.argsort(pred_key, kind="stable")
        first, last = (np.searchsorted(pred_key[by_key], gt_key, side=side) for side in ("left", "right"))
        length = last - first
        kept: BoolArray = np.ones(len(length), dtype=np.bool_)
        if length.sum() > most_pairs:
            spread = chosen[np.argsort(np.arange(len(chosen)) * 0.618034 % 1)]
            per_image = np.bincount(gt.image, weights=length, minlength=n)[spread]
            enough = max(int(np.searchsorted(np.cumsum(per_image), most_pairs)), CROWDED_IMAGES)
            kept = np.isin(gt.image, spread[:enough])
            crowding = max(1, round(int(length[kept].sum()) / most_pairs))
            kept &= np.arange(len(kept)) % crowding == 0
        gt, first, length = gt.take(kept), first[kept], length[kept]
        obj = np.repeat(np.arange(len(length)), length)
        det = by_key[np.arange(len(obj)) + np.repeat(first - np.cumsum(length) + length, length)]
        return cls(gt, pred, sizes, obj, det, any_class, whole) if len(obj) else None

    def resampled(self, most_images: int, most_pairs: int) -> _Sample | None:
        """Take more or fewer pairs of the same boxes."""
        return _Sample.of(
            *self.whole, self.sizes, any_class=self.any_class, most_images=most_images, most_pairs=most_pairs
        )

    def pairs_as(self, other: _Sample) -> bool:
        """Whether the same boxes are paired."""
        return all(map(np.array_equal, (self.obj, self.det), (other.obj, other.det)))

    def is_good(self, encoding: str) -> bool:
        """Whether predictions lie on objects as they were read, and no form explains more."""
        view = _View(self, (encoding, ""))
        given = view.as_read
        if given.matched < FEWEST_MATCHED or not given.is_level(slope=(0.004, 4.0), offset=(0.03, 3.0)):
            return False
        # Of what weak detectors find, enough has to lie where other images have nothing.
        is_weak = given.matched < 0.35 * view.n_objects
        if is_weak and (not view.is_sized or not given.is_steady() or given.matched < 2.5 * view.chance[1] + 5):
            return False
        # Boxes in the middle of mirrored images lie on objects as well.
        turned = (_View(self, (encoding, turn)).fit("scale", (1.0,)) for turn in TURNS if is_weak)
        if any(fit.score > 1.03 * given.score + 0.5 for fit in turned):
            return False
        if given.matched < SETTLED * view.n_objects and self.fits_apart(given, encoding) is not None:
            return False
        rest = given.unmatched()
        breadth = BROAD if given.matched < 0.6 * view.n_objects else NARROW
        fits = (view.fit(*guess) for guess in view.guesses(rest, breadth)) if len(rest) else ()
        return not any(fit.score > 1.03 * given.score + 0.5 for fit in fits)

    def find(self, encoding: str, encodings: Sequence[str]) -> Found | None:
        """Return what explains the predictions as a whole; read otherwise or turned only where that is needed."""
        if len(np.unique(self.det)) < LEAST * len(self.gt.image):
            return None
        given = encoding, ""
        # Another encoding moves boxes by parts of themselves, which no form makes up for.
        turns = ["", "swap"] if np.isnan(self.sizes[self.gt.image[0]]).any() else ["", *TURNS]
        likely = self.likely(list(dict.fromkeys((given, *product(encodings, turns)))))
        best = _best(view for view in likely if view.ways[0] == given)
        if best is None or best.is_doubtful():
            others = _best(view for view in likely if view.ways[0] != given)
            best = max((fit for fit in (best, others) if fit is not None), key=lambda fit: fit.score, default=None)
        found = None if best is None else best.view.accepted()
        if found is None:
            read = _View(self, given).as_read
            ways = [*product(encodings, [""]), *product([encoding], TURNS)]
            matched = (self.fits_apart(read, *way) for way in ways)
            most = next((count for count in matched if count is not None), None)
            found = None if most is None else Found(None, encoding, most, len(self.gt.image))
        return found

    def likely(self, ways: Sequence[tuple[str, str]]) -> list[_View]:
        """Return views, the first and the best of others, of whose pairs few show that more than chance explains them.

        All are screened together: of a few dozen pairs, one form for each view costs as much as for all of them.
        """
        small = self.resampled(SCREENED_IMAGES, SCREENED_PAIRS)
        if small is None:
            return []
        upright = {encoding for encoding in dict(ways) if small.is_upright(encoding)}
        ways, first = [way for way in ways if way[0] in upright], ways[0]
        if not ways:
            return []
        score, matched = _View(small, *ways).most()
        best = [row for row in np.argsort(-score, kind="stable") if ways[row] != first][:SCREENED_VIEWS]
        enough = matched > 0.8 * FEWEST_MATCHED
        rows = [row for row, way in enumerate(ways) if enough[row] and (way == first or row in best)]
        moved = small.moved_on() if rows else None
        chance = np.zeros(len(rows)) if moved is None else _View(moved, *(ways[row] for row in rows)).most()[0]
        is_likely = score[rows] > 1.2 * chance + 0.5
        return [_View(self, ways[row]) for row, passes in zip(rows, is_likely, strict=True) if passes]

    def is_upright(self, encoding: str) -> bool:
        """Whether an encoding makes boxes of the numbers."""
        return bool((to_xywh(self.pred.numbers, encoding)[:, 2:] > 0).all(axis=1).mean() >= UPRIGHT)

    def fits_apart(self, fit: _Fit, encoding: str, turn: str = "") -> int | None:
        """Count objects that a scale and an offset of its own for each image explain; None if a fit does as well.

        Asked where sizes are not known, so that no form which needs them can be tried.
        """
        if not np.isnan(self.sizes[self.gt.image]).any():
            return None
        moved = self.moved_on()
        if moved is None:
            return None
        n = len(self.sizes)
        image = self.gt.image
        objects = np.bincount(np.unique(np.stack((image[self.obj], self.obj)), axis=1)[0], minlength=n)
        mapped = np.bincount(image[self.obj[fit.rows]], minlength=n)
        doubted = (objects > 1) & (mapped < objects / 2)
        # A few of the images show whether there is anything to prove by all of them.
        (most,) = np.nonzero(doubted)
        few = most[np.linspace(0, len(most) - 1, min(len(most), FEW_DOUBTED)).astype(np.int64)]
        for images in (few, np.arange(n)):
            own, chance = (sample.own_maps(encoding, turn, n, images) for sample in (self, moved))
            if own[few].sum() < 1.5 * (mapped + chance)[few].sum():
                return None
        gain = (own - mapped - chance)[doubted]
        if len(gain) < 5 or own[doubted].sum() < 2 * (mapped + chance)[doubted].sum() + 5:
            return None
        is_proved = gain.mean() > 3.3 * gain.std() / np.sqrt(len(gain))
        return int(np.maximum(own + (own > 0), mapped).sum()) if is_proved else None

    def own_maps(self, encoding: str, turn: str, n_images: int, images: IntArray) -> IntArray:
        """Count, of each of some images, the further objects that the map of one of its pairs explains; of others 0."""
        objects = self.gt.xywh if not turn else Resizing((Step(turn),)).apply(self.gt.xywh, 0 * self.gt.xywh[:, :2])
        gt, pred = _corners(objects), _corners(to_xywh(self.pred.numbers, encoding))
        counts = np.zeros(n_images, dtype=np.int64)
        image = self.gt.image[self.obj]
        order = np.argsort(image, kind="stable")
        order = order[np.isin(image[order], images)]
        if not len(order):
            return counts
        for run in np.split(order, np.flatnonzero(np.diff(image[order])) + 1):
            rows = run[:OWN_PAIRS]
            a, b = gt[self.obj[rows]], pred[self.det[rows]]
            by = np.arange(0, len(rows), -(-len(rows) // OWN_TRIALS))
            factor = (b[by, 2:] - b[by, :2]) / (a[by, 2:] - a[by, :2])
            offset = b[by, :2] - factor * a[by, :2]
            put = a * _twice(factor)[:, None] + _twice(offset)[:, None]  # (trials, pairs, 4)
            overlap = _overlap(put.reshape(-1, 4), np.tile(b, (len(by), 1))).reshape(len(by), -1)
            starts, _ = _runs(self.obj[rows])
            found = np.maximum.reduceat(overlap >= SAME, starts, axis=1).sum(axis=1)
            counts[image[rows[0]]] = max(int(found.max()) - 1, 0)
        return counts

    def moved_on(self) -> _Sample | None:
        """Put the predictions of each image on the next one, where only chance can explain them."""
        images = np.unique(self.gt.image)
        place = np.searchsorted(images, self.pred.image) % len(images)
        pred = replace(self.pred, image=np.roll(images, -1)[place])
        return _Sample.of(self.gt, pred, self.sizes, any_class=self.any_class)


def _best(views: Iterable[_View]) -> _Fit | None:
    """Return the fit that explains most under any of some views."""
    fits = (fit for view in views for fit in view.fits)
    return max(fits, key=lambda fit: fit.score, default=None)


class _View:
    """Pairs under one encoding of the numbers, with the images turned; or several such views, looked at together."""

    def __init__(self, sample: _Sample, *ways: tuple[str, str]) -> None:
        self.sample, self.ways, self.n_joined = sample, ways, len(ways)
        self.encoding, self.turn = ways[0]
        self.n_objects = len(sample.gt.image)
        sizes = sample.sizes[sample.gt.image]
        self.is_sized = not np.isnan(sizes).any()
        boxes = {encoding: _corners(to_xywh(sample.pred.numbers, encoding)) for encoding in dict(ways)}
        objects = {"": (_corners(sample.gt.xywh), sizes)}
        for turn in {turn for _, turn in ways if turn}:
            turning = Resizing((Step(turn),))
            turned = turning.apply(sample.gt.xywh, sizes)
            objects[turn] = _corners(turned), sizes[:, ::-1] if turning.swaps else sizes
        # Columns of the pairs, of one view behind those of another: of few pairs, most costs as much as of many.
        self.gt = _joined([objects[turn][0] for _, turn in ways], sample.obj)
        self.size = _joined([objects[turn][1] for _, turn in ways], sample.obj)
        self.pred = _joined([boxes[encoding] for encoding, _ in ways], sample.det)
        rows = np.arange(len(ways))[:, None]
        self.joined_row = np.repeat(rows, len(sample.obj))  # the view of each pair
        self.obj = (sample.obj + rows * self.n_objects).ravel()
        det = (sample.det + rows * len(sample.pred.image)).ravel()
        self._obj_starts, self._of_obj = _runs(self.obj)
        self._by_det = np.argsort(det, kind="stable")
        self._det_starts, of_det = _runs(det[self._by_det])
        self._of_det = np.empty_like(of_det)
        self._of_det[self._by_det] = of_det

    def mutual(self, overlap: FloatArray, least: float) -> IntArray:
        """Return the pairs whose boxes overlap each other most, one for each object."""
        most = np.maximum.reduceat(overlap, self._obj_starts)[self._of_obj]
        rows = self.nearest(overlap, least)
        rows = rows[overlap[rows] >= most[rows]]
        first, _ = _runs(self.obj[rows])
        return rows[first]

    def nearest(self, overlap: FloatArray, least: float) -> IntArray:
        """Return the pairs of each prediction and the object that it overlaps most."""
        most = np.maximum.reduceat(overlap[self._by_det], self._det_starts)[self._of_det]
        return np.flatnonzero((overlap >= most) & (overlap >= least))

    @cached_property
    def as_read(self) -> _Fit:
        """How well the predictions lie on objects as they were read."""
        upright = _View(self.sample, ("xywh", "")) if self.turn else self
        back = _rows(_corners(self.sample.pred.xywh), self.sample.det)
        return _Fit(self, "", (), upright.gt, back)

    def fit(self, form: str, theta: Sequence[float | FloatArray]) -> _Fit:
        """Map predictions back from a form; each number is one, or one for each view that is joined."""
        sides = np.stack([np.ravel(theta[0]), np.ravel(theta[-1])], axis=1)
        factor, offset, _ = geometry_of(form, sides[self.joined_row] if self.n_joined > 1 else sides, self.size)
        numbers = tuple(map(float, sides[0, : len(theta)])) if self.n_joined == 1 else ()
        return _Fit(self, form, numbers, self.gt, (self.pred - _twice(offset)) / _twice(factor))

    def guesses(
        self, rows: IntArray | None = None, breadth: int = BROAD
    ) -> Iterator[tuple[str, Sequence[float | FloatArray]]]:
        """Yield what most pairs of all `rows` agree on, form by form."""
        gt, pred, size, of = self.columns(rows)
        most = PEAKS if breadth == BROAD else SCREENED_PEAKS
        yield from (("scale", (factor,)) for factor, _ in islice(self.votes(gt, pred, of), most))
        if breadth > NARROW:
            yield from (("offset", pair) for pair in islice(self.offsets(gt, pred, of), 2 * most))
        if breadth > (MEDIUM if self.is_sized else NARROW):
            yield from (("scale", pair) for pair in islice(self.by_axis(gt, pred, of), 2 * most))
        if not self.is_sized:
            return
        long, short = size.max(axis=1, keepdims=True), size.min(axis=1, keepdims=True)
        longs, shorts = ([side for side, _ in islice(self.votes(gt / end, pred, of), most)] for end in (long, short))
        yield from (("pad", (side,)) for side in longs)
        yield from (("short", (side, np.round(side * USUAL_LONG))) for side in shorts)
        factor, offset, _ = Step("letterbox").geometry(size)
        squares = self.votes(gt * _twice(factor) + _twice(offset), pred, of)
        yield from (("letterbox", (side,)) for side, _ in islice(squares, most))
        if breadth > NARROW:
            yield from (("stretch", pair) for pair in islice(self.by_axis(gt / _twice(size), pred, of), 2 * most))
            for axis in (0, 1):
                yield from (("letterbox", pair) for pair in islice(self.boxed(gt, pred, size, of, axis), 2 * most))
            # Whatever was added along the short side.
            lies = size[:, :1] >= size[:, 1:]
            centred = [np.where(lies, _centred(boxes, 1), _centred(boxes, 0)) for boxes in (gt, pred)]
            for side, _ in islice(self.votes(centred[0] / long, centred[1], of), most):
                yield "rect", (np.maximum(np.round(side / STRIDE), 1) * STRIDE,)
        if breadth > MEDIUM:
            yield from (("short", pair) for pair in product(shorts, longs) if pair[1] >= pair[0])
            yield from (("pad", pair) for pair in product(*self.fills(gt, pred, size, of)))

    def columns(self, rows: IntArray | None = None) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return objects, predictions, sizes of images and views of some pairs, or of all."""
        if rows is None:
            return self.gt, self.pred, self.size, self.joined_row
        return _rows(self.gt, rows), _rows(self.pred, rows), _rows(self.size, rows), self.joined_row[rows]

    def fills(self, gt: FloatArray, pred: FloatArray, size: FloatArray, of: IntArray) -> list[list[FloatArray]]:
        """Return sides of the input that images may fill, along x and y."""
        return [[side for side, _ in self.votes(gt / size[:, axis, None], pred, of)] for axis in (0, 1)]

    def boxed(self, gt: FloatArray, pred: FloatArray, size: FloatArray, of: IntArray, axis: int) -> Iterator[_Pair]:
        """Yield inputs whose one side images fill, while what is free of the other one is split in halves."""
        other = 1 - axis
        for side, near in self.votes(_centred(gt, other) / size[:, axis, None], _centred(pred, other), of):
            k = side[of[near]] / size[near, axis]
            middle = [(boxes[near, other] + boxes[near, other + 2]) / 2 for boxes in (gt, pred)]
            sides = 2 * (middle[1] - k * middle[0]) + k * size[near, other]
            (positive,) = np.nonzero(sides > 0)
            ones = np.ones(len(positive))
            for free, _ in islice(self.peaks(np.log(sides[positive]), ones, of[near[positive]]), 2):
                yield (side, np.exp(free)) if axis == 0 else (np.exp(free), side)

    def by_axis(self, gt: FloatArray, pred: FloatArray, of: IntArray) -> Iterator[_Pair]:
        """Yield the factors of x and of y that most pairs agree on."""
        x, y = ((gt[:, axis::2] * pred[:, axis::2]).sum(axis=1) / (gt[:, axis::2] ** 2).sum(axis=1) for axis in (0, 1))
        both = np.stack((x, y, x, y)).T
        overlap = _overlap(gt * both, pred)
        (rows,) = np.nonzero((overlap > SAME) & (x > 0) & (y > 0))
        logs, weight = np.log(both[rows, :2]), overlap[rows] ** 2
        for across, near in self.peaks(logs[:, 0], weight, of[rows]):
            for down, _ in islice(self.peaks(logs[near, 1], weight[near], of[rows[near]]), 2):
                yield np.exp(across), np.exp(down)

    def offsets(self, gt: FloatArray, pred: FloatArray, of: IntArray) -> Iterator[_Pair]:
        """Yield the distances that most pairs of about one size agree on."""
        ratio = np.log((pred[:, 2:] - pred[:, :2]) / (gt[:, 2:] - gt[:, :2]))
        (rows,) = np.nonzero((np.abs(ratio) < 0.25).all(axis=1))
        if not len(rows):
            return
        moved = ((pred - gt)[rows, :2] + (pred - gt)[rows, 2:]) / 2
        width = float(np.median(np.sqrt(np.prod(gt[rows, 2:] - gt[rows, :2], axis=1)))) / 4
        ones = np.ones(len(rows))
        for across, near in self.peaks(moved[:, 0], ones, of[rows], width):
            for down, _ in islice(self.peaks(moved[near, 1], ones[near], of[rows[near]], width), 2):
                yield across, down

    def votes(self, gt: FloatArray, pred: FloatArray, of: IntArray) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield the factors of all edges that most pairs of each view agree on, and which pairs do."""
        factor = (gt * pred).sum(axis=1) / (gt**2).sum(axis=1)
        overlap = _overlap(gt * factor[:, None], pred)
        (rows,) = np.nonzero((overlap > SAME) & (factor > 0))
        for peak, near in self.peaks(np.log(factor[rows]), overlap[rows] ** 2, of[rows]):
            yield np.exp(peak), rows[near]

    def peaks(
        self, values: FloatArray, weight: FloatArray, of: IntArray, width: float = BIN
    ) -> Iterator[tuple[FloatArray, IntArray]]:
        """Yield the values of each view with most weight around them, as medians or NaN, and the rows of these."""
        if not len(values):
            return
        n = self.n_joined
        bins = np.fmin(np.fmax(np.floor(values / width), -FARTHEST_BIN), FARTHEST_BIN).astype(np.int64)
        bins += FREE - bins.min()
        span = int(bins.max()) + 2 * FREE  # no view reaches into the next one
        heights = np.convolve(np.bincount(of * span + bins, weight, n * span), KERNEL, mode="same").reshape(n, span)
        views, around = np.arange(n), np.arange(-FREE, FREE + 1)
        for _ in range(PEAKS):
            top = heights.argmax(axis=1)
            is_high = heights[views, top] > 0
            (near,) = np.nonzero((np.abs(bins - top[of]) <= 2) & is_high[of])
            if not len(near):
                return
            near = near[np.lexsort((values[near], of[near]))]
            count = np.bincount(of[near], minlength=n)
            # The median, of two the larger; of a view without any, that of another one, which is then none.
            middle = np.minimum(np.cumsum(count) - count + count // 2, len(near) - 1)
            yield np.where(count > 0, values[near[middle]], np.nan), near
            heights[views[:, None], np.maximum(top, FREE)[:, None] + around] = 0

    @cached_property
    def fits(self) -> list[_Fit]:
        """Fits of the forms that explain most, refined and rounded."""
        guessed = sorted((self.fit(*guess) for guess in self.guesses()), key=lambda fit: -fit.score)
        grown = []
        for fit in [fit for fit in guessed if fit.form in ("pad", "letterbox", "short")][:2]:
            refined = fit.refined()
            grown += [self.fit(fit.form, theta) for theta in self.second_numbers(refined)]
        guessed = sorted((*guessed, *grown), key=lambda fit: -fit.score)
        fits = []
        count = dict.fromkeys(FORMS, 0)
        for guess in guessed:
            if guess.score >= 0.55 * guessed[0].score > 0 and count[guess.form] < 2:
                count[guess.form] += 1
                fits.append(guess.refined())
        return fits

    def second_numbers(self, fit: _Fit) -> Iterator[Sequence[float | FloatArray]]:
        """Yield what portrait images among landscape ones show, or the reverse: those that a form does not explain."""
        rest = fit.unmatched()
        if not len(rest):
            return
        gt, pred, size, of = self.columns(rest)
        first, second = fit.theta[0], fit.theta[-1]
        if fit.form == "short":
            ends = size.min(axis=1, keepdims=True), size.max(axis=1, keepdims=True)
            across, down = ([side for side, _ in self.votes(gt / end, pred, of)] for end in ends)
        elif fit.form == "pad":
            across, down = self.fills(gt, pred, size, of)
        else:
            across, down = ([pair[axis] for pair in self.boxed(gt, pred, size, of, axis)] for axis in (0, 1))
        yield from ((side, second) for side in across)
        yield from ((first, side) for side in down)

    def accepted(self) -> Found | None:
        """Return the most probable name of what explains most, if nothing else explains it."""
        best = max(self.fits, key=lambda fit: fit.score)
        if best.is_identity() or not best.is_proved():
            return None
        if self.sample.fits_apart(best, self.encoding, self.turn) is not None:
            return None
        # Where it is known which boxes belong together, classes matter no more.
        larger = _Sample.of(
            *self.sample.whole, self.sample.sizes, any_class=True, most_images=NAMED_IMAGES, most_pairs=NAMED_PAIRS
        )
        view = _View(larger or self.sample, *self.ways)
        # All predictions of an object: to take those that fit best would confirm the guess.
        rows = view.nearest(view.fit(best.form, best.theta).overlap, PAIRED)
        step = Step(best.form, best.theta[0], best.theta[-1])
        places = Places(view.gt[rows], view.pred[rows], view.size[rows], step)
        name = name_of(
            places, [(fit.form, fit.theta) for fit in self.fits if fit.score > 0.8 * best.score], self.sample.sizes
        )
        if name is None:
            return None
        named = self.fit(name.form, name.theta)
        if named.is_identity() or not named.is_proved():
            return None
        steps = ([Step(self.turn)] if self.turn else []) + [name.step]
        return Found(
            Resizing.parse("+".join(text_of(step) for step in steps)),
            self.encoding,
            named.matched,
            self.n_objects,
            name.unsure,
            ", ".join(f"{name.theta[i]:g}" for i in name.unseen),
            tuple(dict.fromkeys(text_of(step) for step in name.others)) if not self.turn else (),
        )

    def most(self) -> tuple[FloatArray, IntArray]:
        """Return the best score, and the most objects, that votes reach in each view."""
        score, matched = np.zeros(self.n_joined), np.zeros(self.n_joined, dtype=np.int64)
        for fit in (self.fit(*guess) for guess in self.guesses(breadth=MEDIUM)):
            score = np.maximum(score, fit.gains.reshape(self.n_joined, -1).sum(axis=1))
            matched = np.maximum(matched, np.bincount(self.joined_row[fit.same], minlength=self.n_joined))
        return score, matched

    @cached_property
    def chance(self) -> tuple[float, int]:
        """What predictions of other images reach."""
        moved = self.sample.moved_on()
        if moved is None:
            return 0.0, 0
        score, matched = _View(moved, *self.ways).most()
        return float(score[0]), int(matched[0])


class _Fit:
    """Predictions mapped back from a form, and how they then lie on objects."""

    def __init__(self, view: _View, form: str, theta: Theta, gt: FloatArray, back: FloatArray) -> None:
        self.view, self.form, self.theta, self.gt, self.back = view, form, theta, gt, back
        self.overlap = _overlap(back, gt)
        self.rows = view.mutual(self.overlap, PAIRED)
        self.gains = np.zeros(view.n_joined * view.n_objects)
        self.gains[view.obj[self.rows]] = self.overlap[self.rows] - WORTH
        self.score = float(self.gains.sum())
        self.same = self.rows[self.overlap[self.rows] >= SAME]
        self.matched = len(self.same)

    def unmatched(self) -> IntArray:
        """Return the pairs neither of whose boxes has found its own."""
        sample = self.view.sample
        taken = np.isin(sample.obj, sample.obj[self.rows]) | np.isin(sample.det, sample.det[self.rows])
        return np.flatnonzero(~taken)

    def refined(self) -> _Fit:
        """Fit the numbers by least squares to the pairs that lie on each other, ever closer ones."""
        view, fit, theta = self.view, self, self.theta
        if self.form == "rect":
            return self
        for least in ROUNDS:
            rows = view.mutual(fit.overlap, least)
            if len(rows) < len(theta) + 2:
                break
            gt, pred, size = view.gt[rows], view.pred[rows], view.size[rows]

            def put(numbers: Sequence[float], gt: FloatArray = gt, size: FloatArray = size) -> FloatArray:
                factor, offset, _ = Step(self.form, numbers[0], numbers[-1]).geometry(size)
                return gt * _twice(factor) + _twice(offset)

            weight = 1 / np.sqrt(np.clip(np.prod(pred[:, 2:] - pred[:, :2], axis=1), 1e-12, None))[:, None]
            steps = [1.0 if self.form == "offset" else 1e-4 * number for number in theta]
            places = put(theta)
            design = np.stack(
                [
                    ((put([*theta[:i], theta[i] + step, *theta[i + 1 :]]) - places) / step * weight).ravel()
                    for i, step in enumerate(steps)
                ],
                axis=1,
            )
            away = ((pred - places) * weight).ravel()
            change = np.linalg.lstsq(design, away, rcond=None)[0]
            left = away - design @ change
            near = np.abs(left) <= 3 * NORMAL_SPREAD * np.median(np.abs(left)) + 1e-12
            change = np.linalg.lstsq(design[near], away[near], rcond=None)[0]
            moved = tuple(float(number) for number in np.array(theta) + change)
            if self.form != "offset" and min(moved) <= 0:
                break
            theta, fit = moved, view.fit(self.form, moved)
        return fit

    def is_identity(self) -> bool:
        """Whether boxes stay where they were read, up to .4 %."""
        read = self.view.as_read
        if self.view.turn or not np.array_equal(self.rows, read.rows):
            return False
        (ours, theirs), size = (fit.back[self.rows] for fit in (self, read)), _twice(self.view.size[self.rows])
        return bool((np.abs(ours - theirs) <= 0.004 * np.where(np.isnan(size), np.abs(theirs) + 1, size)).all())

    def left(self) -> tuple[FloatArray, ...]:
        """Return what is left of a scale and an offset between pairs, for x and y.

        Slopes of centres and their standard errors, then offsets in sizes of boxes and theirs.
        """
        gt, back = self.gt[self.same], self.back[self.same]
        side = gt[:, 2:] - gt[:, :2]
        at, found = ((boxes[:, :2] + boxes[:, 2:]) / 2 for boxes in (gt, back))
        weight = 1 / np.clip(side, 1e-9, None) ** 2
        weight /= weight.sum(axis=0)
        away, spread = found - at, at - (weight * at).sum(axis=0)
        variance = (weight * spread**2).sum(axis=0)
        slope = (weight * spread * away).sum(axis=0) / variance
        residual = away - (weight * away).sum(axis=0) - slope * spread
        slope_error = np.sqrt((weight**2 * spread**2 * residual**2).sum(axis=0)) / variance
        offset = np.median(away / side, axis=0)
        offset_error = 1.25 * NORMAL_SPREAD * np.median(np.abs(away / side - offset), axis=0) / np.sqrt(len(gt))
        return slope, slope_error, offset, offset_error

    def is_level(self, slope: tuple[float, float], offset: tuple[float, float]) -> bool:
        """Whether neither a scale nor an offset is left: limits of a slope are the larger, of an offset the sum."""
        by, by_error, off, off_error = self.left()
        return bool(
            (np.abs(by) < np.maximum(slope[0], slope[1] * by_error)).all()
            and (np.abs(off) < offset[0] + offset[1] * off_error).all()
        )

    def is_steady(self) -> bool:
        """Whether no scale is left that the boxes show."""
        by, by_error, *_ = self.left()
        return self.matched > 2 and bool(
            (np.abs(by) < 0.01 + np.minimum(0.03, 3 * by_error)).all() and (by_error < 0.03).all()
        )

    def is_doubtful(self) -> bool:
        """Whether turned images may explain the predictions better."""
        few = self.matched < 0.3 * self.view.n_objects
        return few or not self.is_steady() or self.matched < 2.5 * self.view.chance[1] + 5

    def is_proved(self) -> bool:
        """Whether it explains the predictions as nothing else does, and not in a part of the images."""
        view, given = self.view, self.view.as_read
        if self.matched < max(FEWEST_MATCHED, LEAST * view.n_objects) or self.score <= 1.6 * view.chance[0] + 0.8:
            return False
        if self.score <= 1.03 * given.score or not self.is_steady():
            return False
        image = view.sample.gt.image
        objects = np.bincount(image)
        gained = np.bincount(image, weights=self.gains - given.gains)[objects > 0]
        mean, error = gained.mean(), gained.std() / np.sqrt(max(len(gained) - 1, 1))
        better, worse = np.count_nonzero(gained > 0), np.count_nonzero(gained < 0)
        signs = 1.25 * (better - worse) / np.sqrt(better + worse) if better >= 10 else 0.0
        if len(gained) < 2 or max(mean / error if error else np.inf * np.sign(mean), signs) <= 3.2:
            return False
        _, _, offset, _ = self.left()
        gt, back = self.gt[self.same], self.back[self.same]
        ratio = np.median((back[:, 2:] - back[:, :2]) / (gt[:, 2:] - gt[:, :2]), axis=0)
        if (np.abs(offset) >= 0.15).any() or (ratio < 0.75).any() or (ratio > 1.33).any():
            return False
        matched = np.bincount(image[view.sample.obj[self.same]], minlength=len(objects))
        several = objects > 1
        without = np.count_nonzero(several & (matched == 0))
        by_chance = 2 * float(((1 - self.matched / view.n_objects) ** objects[several]).sum()) + 2
        return bool(without < max(0.2 * np.count_nonzero(several), by_chance))


def _centred(boxes: FloatArray, axis: int) -> FloatArray:
    """Return boxes (n, 4) with their centre at 0 along an axis."""
    moved = boxes.copy()
    moved[:, axis::2] -= boxes[:, axis::2].mean(axis=1, keepdims=True)
    return moved


def _corners(xywh: FloatArray) -> FloatArray:
    return np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)


def _overlap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the IoU of corners (n, 4), row by row; 0 for boxes without an area."""
    meeting = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    common, of_a, of_b = (
        np.maximum(sides[:, 0], 0) * np.maximum(sides[:, 1], 0)
        for sides in (meeting, a[:, 2:] - a[:, :2], b[:, 2:] - b[:, :2])
    )
    union = of_a + of_b - common
    overlap: FloatArray = np.divide(common, union, out=np.zeros(len(a)), where=union > 0)
    return overlap


def _joined(columns: Sequence[FloatArray], rows: IntArray) -> FloatArray:
    """Return some rows of several columns, one behind the other."""
    return np.asfortranarray(np.concatenate([column[rows] for column in columns]))


def _rows(columns: FloatArray, rows: IntArray) -> FloatArray:
    """Return some rows with each column in one piece: all arithmetic is on columns, and three times as fast then."""
    return np.asfortranarray(columns[rows])


def _twice(pairs: FloatArray) -> FloatArray:
    """Return x, y for both corners, (n, 4)."""
    return np.concatenate((pairs, pairs), axis=1)


def _runs(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return where runs of equal numbers start, and the run of each row."""
    new = np.ones(len(rows), dtype=np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    return np.flatnonzero(new), np.cumsum(new) - 1
