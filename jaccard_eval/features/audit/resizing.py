"""Are the boxes of one side those of resized, cropped or turned images? What was done is named exactly, or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import islice, product

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes, to_xywh
from jaccard_eval.data.dataset import Reading
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.resizing import STRIDE, TURNS, Resizing, Step, geometry_of
from jaccard_eval.features.audit import (
    FEWEST_MATCHED,
    AuditContext,
    IntArray,
    advised,
    is_decisive,
    pair_by_place,
    unflagged,
)
from jaccard_eval.features.audit.boxes import (
    NORMAL_SPREAD,
    STEPS,
    View,
    are_fractions,
    changed_options,
    medians_of,
    possible_units,
    side_of,
)
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import IMAGES_OF, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AS_WRITTEN, ENCODINGS, MASK_AXES

Theta = tuple[float, ...]  # one number of a form for x and y, or one for each

SIDES = (
    *(224, 256, 300, 320, 384, 416, 448, 480, 512, 600, 608, 640, 736, 768, 800, 896, 960, 1000, 1024, 1280, 1333),
    *(1536, 2048),
)
KNOWN, BY_STEP, ANY = 0.55, 0.1, 0.35  # how often sides are one of these, a multiple of a round number, or any
ROUND_STEPS = 100, 64, 50, 32, 10
STEPS_OF_CROPS = 100, 50, 10, 5
PER_LOG = np.log(4096 / 64)  # sides of inputs lie between these, in px
WIDEST = 4000  # px, of offsets
USUAL_LONG = 5 / 3  # the long side by the short one, where no image shows it: 800,1333; 600,1000
ODD = 2e-9  # how usual a factor is that has no small fraction
HIGHEST = 20  # numerator and denominator of a factor
FORMS = {  # how usual forms are: with one number for both axes, and with two
    "scale": (0.12, 0.04),
    "stretch": (0.2, 0.1),
    "letterbox": (0.2, 0.08),
    "pad": (0.12, 0.06),
    "short": (0.1, 0.1),
    "offset": (0.08, 0.08),
    "rect": (0.06, 0.0),
    "letterbox-px": (0.04, 0.02),
}
PIXELS = "letterbox-px"
UNIT = {"stretch": {1: 0.15, 100: 0.1}, "letterbox": {1: 0.1}}  # fractions and per cent

FLOORS = 0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0  # median sides: errors grow with boxes, from some size on
ALIKE = 2**0.5  # errors of detectors are alike from box to box: two of them show as much as one
TOGETHER = 0.5  # px of an image: what real detectors are off with all boxes
FARTHEST = 3.0  # standard deviations, from which a pair is another one
UNCUT = 0.1  # share of the boxes near borders that reach beyond them where none is cut
FINEST = 1e-5  # of a side of a box: nothing is read more exactly
REACH = 4.5  # standard errors of a number in which names are looked for
LARGEST_SIDE = 1e5  # px: no input is larger
TRIALS = 40  # of short sides
MOST_NAMES = 400  # names along one axis
NEGLIGIBLE = 16.0  # logarithm of how much less probable names do not count
EXACT, SURE = 5e-4, 0.99  # share of a side that maps may differ by, and how probable those of one name are together


@dataclass(frozen=True, slots=True)
class Name:
    """A form with its numbers, and how sure they are."""

    form: str
    theta: Theta
    probable: float = 0.0
    unsure: str = ""  # what boxes do not show: "to choose between pad:640 and rect:640"
    unseen: tuple[int, ...] = ()  # places of numbers that no image shows
    others: tuple[Step, ...] = ()  # of other forms, which map alike

    @property
    def step(self) -> Step:
        """The step of a resizing that it names."""
        return Step(self.form, self.theta[0], self.theta[-1])


class Places:
    """Centres of objects and of the predictions on them, (n, 2), and how exact these are."""

    def __init__(self, gt: FloatArray, pred: FloatArray, size: FloatArray, step: Step) -> None:
        self.at, self.found, self.size = (gt[:, :2] + gt[:, 2:]) / 2, (pred[:, :2] + pred[:, 2:]) / 2, size
        self.gt, self.side = gt, (gt[:, 2:] - gt[:, :2]) * step.geometry(size)[0]
        self.found_side = np.maximum(pred[:, 2:] - pred[:, :2], 1e-9)
        self.whole = 1 / 24 if (pred == np.round(pred)).all() else 0.0  # px²: the mean of two rounded numbers
        self.error = np.sqrt(self.side**2 + 400 * self.whole)

    def weigh(self, names: Iterable[tuple[str, Theta]]) -> None:
        """Take as errors what is left by the best of some names; where borders cut boxes, these have no weight."""
        spreads = [(*self._spread(self.found - self.put(*name)), name) for name in names]
        if not spreads:
            return
        left, error, name = min(spreads, key=lambda one: one[0])
        self.error = ALIKE * error
        margin = 2 * left * (self.gt[:, 2:] - self.gt[:, :2])
        inside = (self.gt[:, :2] > margin) & (self.gt[:, 2:] < self.size - margin)
        low, high = (self.put(*name, at=at) for at in (0 * self.size, self.size))
        beyond = (self.found - self.found_side / 2 < low - 1) | (self.found + self.found_side / 2 > high + 1)
        are_cut = beyond[~inside].sum() < UNCUT * (~inside).sum()
        if not np.isnan(self.size).any() and are_cut and (inside.sum(axis=0) >= inside.shape[0] / 4).all():
            self.error = np.where(inside, self.error, np.inf)

    def _spread(self, away: FloatArray) -> tuple[float, FloatArray]:
        """Return the usual error as a share of a side, and that of each centre: small boxes have more than a share."""
        likely: list[tuple[float, float, FloatArray]] = []
        for floor in FLOORS:
            length = np.hypot(self.side, floor * float(np.median(self.side)))
            square = (NORMAL_SPREAD * float(np.median(np.abs(away) / length))) ** 2
            share = float(np.sqrt(max(square - self.whole * float(np.median(length**-2.0)), FINEST**2)))
            error = np.sqrt((share * length) ** 2 + self.whole)
            told = float((np.log(error) + np.minimum((away / error) ** 2, FARTHEST**2) / 2).sum())
            likely.append((told, share, error))
        _, share, error = min(likely, key=lambda one: one[0])
        return share, error

    def put(self, form: str, theta: Theta, at: FloatArray | None = None) -> FloatArray:
        """Return where a form puts the centres, or other points."""
        factor, offset, _ = Step(form, theta[0], theta[-1]).geometry(self.size)
        return (self.at if at is None else at) * factor + offset

    def misfit(self, form: str, theta: Theta) -> float:
        """Return twice the negative logarithm of the likelihood, where what is far does not count."""
        away, shift = (self.found - self.put(form, theta)) / self.error, self._shift(form)
        near = np.where(np.abs(away) <= FARTHEST, shift, 0)
        common = (near * away).sum(axis=0) / (1 + (near * shift).sum(axis=0))
        return float(np.minimum((away - common * shift) ** 2, FARTHEST**2).sum() + (common**2).sum())

    def _shift(self, form: str) -> FloatArray:
        """Return what all boxes of a detector may be off together, in their errors; crops are nothing else."""
        return (form != "offset") * TOGETHER * self.side / (self.gt[:, 2:] - self.gt[:, :2]) / self.error

    def fit(self, form: str, theta: Theta) -> tuple[Theta, FloatArray]:
        """Return the most likely numbers, by least squares from near ones, and what pairs show of them."""
        shown = np.zeros((len(theta), len(theta)))
        for _ in range(4):
            steps = [1.0 if form == "offset" else 1e-4 * number for number in theta]
            places = self.put(form, theta)
            moved = ([*theta[:i], theta[i] + step, *theta[i + 1 :]] for i, step in enumerate(steps))
            columns = [(self.put(form, tuple(one)) - places) / step for one, step in zip(moved, steps, strict=True)]
            design = np.stack([(column / self.error).ravel() for column in columns], axis=1)
            away = ((self.found - places) / self.error).ravel()
            near = np.abs(away) <= max(FARTHEST, 3 * NORMAL_SPREAD * float(np.median(np.abs(away))))
            shift = (self._shift(form)[:, None] * np.eye(2)).reshape(-1, 2)  # fitted with the numbers, and near 0
            both = np.concatenate((np.hstack((design, shift))[near], np.eye(len(theta) + 2)[len(theta) :]))
            change = np.linalg.lstsq(both, np.append(away[near], (0, 0)), rcond=None)[0][: len(theta)]
            square = both.T @ both
            known, mixed, own = square[:-2, :-2], square[:-2, -2:], square[-2:, -2:]
            shown = known - mixed @ np.linalg.solve(own, mixed.T)
            new = tuple(float(number) for number in np.array(theta) + change)
            if not max(map(abs, new)) < LARGEST_SIDE or (form != "offset" and min(new) <= 0):
                break
            theta = new
        return theta, shown


def name_of(places: Places, guesses: Iterable[tuple[str, Theta]], sizes: FloatArray) -> Name | None:
    """Return the most probable name among those near some guesses; it holds for images of all `sizes` (n, 2)."""
    fits = {}
    guesses = list(guesses)
    places.weigh(guesses)
    for form, theta in guesses:
        for way in _ways(places, form, theta):
            fits[form, len(way), tuple(np.round(way, 2))] = form, way if form == "rect" else places.fit(form, way)[0]
    places.weigh(fits.values())
    likely: list[tuple[float, str, Theta, tuple[int, ...]]] = []
    for form, theta in fits.values():
        likely += _near(places, form, theta)
    if not likely:
        return None
    # Forms that choose between two factors bend, so that what is likely is measured once more.
    likely.sort(key=lambda one: -one[0])
    measured: dict[tuple[str, Theta], tuple[float, tuple[int, ...]]] = {}
    most = -np.inf
    for told, form, theta, unseen in likely:
        if told > most - NEGLIGIBLE:
            usual = _usual(form, theta, unseen)
            measured[form, theta] = usual - places.misfit(form, theta) / 2, unseen
            most = max(most, measured[form, theta][0])
    names = sorted(measured, key=lambda name: -measured[name][0])
    weights = np.exp([measured[name][0] - measured[names[0]][0] for name in names])
    first = names[0]
    place, width = places.put(*first), np.where(np.isnan(places.size), places.at.max(), places.size)
    factor = Step(first[0], first[1][0], first[1][-1]).geometry(places.size)[0]
    alike = [
        # Letterboxes of whole pixels differ by half a pixel of the input.
        (name[0].removesuffix("-px"), name[1]) == (first[0].removesuffix("-px"), first[1])
        or bool((np.abs(places.put(*name) - place) <= EXACT * width * factor).all())
        for name in names
    ]
    probable = float(weights[alike].sum() / weights.sum())
    unsure = ""
    if probable < SURE:
        rival = next((name for name, same in zip(names, alike, strict=True) if not same), first)
        texts = [text_of(Name(*name).step) for name in (first, rival)]
        unsure = f"to choose between {texts[0]} and {texts[1]}"
    if first[0] == "scale" and min(map(_usual_factor, first[1])) < ODD:  # no fraction
        _, shown = places.fit(*first)
        if (REACH / np.sqrt(np.diag(shown)) > EXACT * np.array(first[1])).any():
            unsure = f"to name {text_of(Step(*first[:1], first[1][0], first[1][-1]))} exactly"
    unseen = measured[first][1]
    if any(np.any(_factor(first, sizes) != _factor((first[0], _raised(first[1], i)), sizes)) for i in unseen):
        unsure = f"to show the {', '.join(f'{first[1][i]:g}' for i in unseen)}, which other images need"
    plain = (Name(*name).step for name, same in zip(names, alike, strict=True) if same and not measured[name][1])
    others = tuple(step for step in plain if step.kind.removesuffix("-px") != first[0].removesuffix("-px"))
    return Name(*first, probable, unsure, unseen, others)


def _ways(places: Places, form: str, theta: Theta) -> list[Theta]:
    """Return where the most likely numbers of a form may lie, next to those that were guessed."""
    ways = [theta]
    if form in ("short", "pad"):  # one number is larger than any image needs
        ways += [(theta[0], 3 * theta[0])] + [(3 * theta[-1], theta[-1])] * (form == "pad")
    if form == "short":  # which images have too long a side bends most
        aspect = places.size.min(axis=1) / places.size.max(axis=1)
        trials = np.linspace(float(aspect.min()), float(aspect.max()), TRIALS) * theta[-1]
        ways += [min(((float(side), theta[-1]) for side in trials), key=lambda way: places.misfit(form, way))]
    if len(theta) == 2 and form not in ("short", "offset"):
        ways += [(number,) for number in theta]
    return ways


def _factor(name: tuple[str, Theta], sizes: FloatArray) -> FloatArray:
    return np.nan_to_num(Step(name[0], name[1][0], name[1][-1]).geometry(sizes)[0])


def _raised(theta: Theta, i: int) -> Theta:
    return *theta[:i], 10 * theta[i], *theta[i + 1 :]


def text_of(step: Step) -> str:
    """Return a step as an option has it, with the fraction that a factor is."""
    from fractions import Fraction  # slow to load, and seldom needed

    if step.kind != "scale":
        whole = step.kind in TURNS or step.kind == "offset"
        return str(step if whole else replace(step, x=round(step.x), y=round(step.y)))
    x, y = (Fraction(float(number)).limit_denominator(100) for number in (step.x, step.y))
    exact = abs(float(x) - step.x) + abs(float(y) - step.y) < 1e-9
    if not exact:
        x, y = (Fraction(f"{number:.9f}") for number in (step.x, step.y))
    return str(replace(step, x=x, y=y))


def _near(places: Places, form: str, theta: Theta) -> Iterator[tuple[float, str, Theta, tuple[int, ...]]]:
    """Yield the names near the most likely numbers: about how probable, and the numbers that no image shows."""
    if form == "rect":
        if theta[0] > LARGEST_SIDE:
            return
        multiples = {max(round(theta[0] / STRIDE) + i, 1) * STRIDE for i in (-2, -1, 0, 1, 2)}
        yield from ((_usual(form, (n,)) - places.misfit(form, (n,)) / 2, form, (float(n),), ()) for n in multiples)
        return
    theta, shown = places.fit(form, theta)
    if max(theta) > LARGEST_SIDE:
        return
    if form == "letterbox":  # what is rounded bends, and may lie a pixel from the best one that is
        for numbers in product(*({max(round(number) + i, 1.0) for i in (-1, 0, 1)} for number in theta)):
            yield _usual(PIXELS, numbers) - places.misfit(PIXELS, numbers) / 2, PIXELS, numbers, ()
    is_seen = np.diag(shown) > 0
    if not is_seen.any():
        return
    inverse = np.linalg.pinv(shown)
    axes = []
    for i, number in enumerate(theta):
        reach = REACH * float(np.sqrt(max(inverse[i, i], 0.0)))
        if is_seen[i]:
            axes.append(_names_within(form, number, reach))
        else:  # larger than what images need
            axes.append([max(round(theta[0] * USUAL_LONG), np.ceil(number * 1.01)) if i else np.ceil(number * 1.01)])
    if (len(axes) == 2 and len(axes[0]) * len(axes[1]) > MOST_NAMES**2) or not all(axes):
        return
    best = places.misfit(form, theta)
    unseen = tuple(np.flatnonzero(~is_seen).tolist())
    grid = np.array(list(product(*axes)))
    away = grid - np.array(theta)
    worse = np.einsum("ni,ij,nj->n", away, shown, away)
    parts = [
        [_log_usual(form, number) if seen else 0.0 for number in axis] for axis, seen in zip(axes, is_seen, strict=True)
    ]
    usual = np.log(FORMS[form][len(theta) - 1]) + np.array([sum(part) for part in product(*parts)])
    told = usual - (best + worse) / 2
    for row in np.argsort(-told)[:60]:
        yield float(told[row]), form, tuple(map(float, grid[row])), unseen


def _names_within(form: str, number: float, reach: float) -> list[float]:
    """Return the names of a number."""
    if form == "scale" and number <= HIGHEST:
        parts = [round(number * by) / by for by in (*range(1, HIGHEST + 1), 100)]
        whole = [by / round(by / number) for by in range(1, HIGHEST + 1) if round(by / number)]
        near = {name for name in (*parts, *whole) if name > 0 and abs(name - number) <= max(reach, 1e-9)}
        return sorted({*near, float(f"{number:.5g}")})
    first, last = np.ceil(number - reach), np.floor(number + reach)
    if last - first >= MOST_NAMES:
        first, last = np.round(number) - MOST_NAMES // 2, np.round(number) + MOST_NAMES // 2
    names = np.arange(first, last + 1)
    if form == "scale":
        names = np.append(names, float(f"{number:.5g}"))
    return [float(name) for name in names if form == "offset" or name > 0] or [max(float(round(number)), 1.0)]


def _usual(form: str, theta: Theta, unseen: tuple[int, ...] = ()) -> float:
    """Return the logarithm of how usual a name is."""
    one_or_two = FORMS[form][len(theta) - 1]
    return float(
        np.log(one_or_two) + sum(_log_usual(form, number) for i, number in enumerate(theta) if i not in unseen)
    )


@cache
def _log_usual(form: str, number: float) -> float:
    if form == "scale":
        return float(np.log(_usual_factor(number)))
    if form == "offset":
        by = [step / WIDEST for step in STEPS_OF_CROPS if number % step == 0]
        return float(np.log(0.5 / WIDEST + 0.4 * sum(by) / len(STEPS_OF_CROPS) + 0.1 * (number == 0)))
    if number in UNIT.get(form, {}):
        return float(np.log(UNIT[form][int(number)]))
    any_ = 1 / (max(number, 32.0) * PER_LOG)
    if form == "rect":
        return float(np.log(ANY * STRIDE * any_ + KNOWN * (number in SIDES) / len(SIDES)))
    return float(np.log(_usual_side(number)))


def _usual_side(number: float) -> float:
    """Return how usual a side of an input is, in whole px."""
    any_ = 1 / (max(number, 32.0) * float(PER_LOG))
    by = [step * any_ for step in ROUND_STEPS if number % step == 0]
    return ANY * any_ + BY_STEP * sum(by) / len(ROUND_STEPS) + KNOWN * (number in SIDES) / len(SIDES)


def _usual_factor(number: float) -> float:
    """Return how usual a factor is: those of small numerators and denominators are.

    Large ones are of objects in fractions of their images: the side of an input.
    """
    weight = ODD / 2
    if number > HIGHEST:
        return weight if number % 1 else weight + _usual_side(number)
    for below in range(1, HIGHEST + 1):
        above = round(number * below)
        if above > 0 and abs(above / below - number) < 1e-9:
            weight += 0.8 / (13 * above * below)
    return weight + 0.2 / 300 * (abs(number * 100 - round(number * 100)) < 1e-9)


SAMPLE_IMAGES, SAMPLE_PAIRS = 150, 5_000
SCREENED_IMAGES, SCREENED_PAIRS, SCREENED_VIEWS, SCREENED_PEAKS = 50, 1_000, 3, 1
NAMED_IMAGES, NAMED_PAIRS = 1000, 200_000
CROWDED_IMAGES = 40  # at least, however many pairs they have; of their objects, some are looked at then
LARGEST_NUMBER = 1e7  # px; what lies beyond is damage, and no trace of a network
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
    gt, pred = (side.take(np.flatnonzero((np.abs(side.numbers) < LARGEST_NUMBER).all(axis=1))) for side in (gt, pred))
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
        offset = medians_of(away / side)
        offset_error = 1.25 * NORMAL_SPREAD * medians_of(np.abs(away / side - offset)) / np.sqrt(len(gt))
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


HALF, STRICT = MetricRef(name="AP", iou=0.5), MetricRef(name="AP", iou=0.75)
# How far boxes reach into their images, as logarithms: of a side that was resized, and of one that was not.
FAR, NEAR = 0.4, 0.15
BULK = 0.99  # share of the boxes that end before a side
AS_GOOD = 0.9  # of the AP50 of a resizing
LEAST_MATCHED = 0.35  # of the objects, as of predictions that lie well


def check_resized(context: AuditContext, findings: FindingLog) -> None:
    """Warn of boxes in coordinates of other images than those of the other side: resized, padded, cropped or turned."""
    if (
        findings.has("keypoints-mirrored", "mask-axes", "image-size-transposed")
        or not len(context.sample.gt)
        or not len(context.sample.pred)
    ):
        return
    view = View.of(context, context.sample.gt, context.sample.pred)
    of_boxes = context.metrics.protocol.iou_type == BOXES
    numbers = {role: view.numbers(role) if of_boxes else view.table(role).xywh for role in ("gt", "pred")}
    sides = {role: _side(context, view.table(role), numbers[role]) for role in ("gt", "pred")}
    counted = unflagged(view.table("gt"))
    sides["gt"] = sides["gt"].take(counted)
    if not counted.any() or lie_well(sides["gt"], sides["pred"], view.sizes, view.readings["pred"].encoding):
        return
    reach = {role: _reach(side, view.sizes) for role, side in sides.items()}
    first = "gt" if reach["gt"] > FAR and reach["pred"] < NEAR else "pred"
    # What the user named for one side explains nothing of the other one.
    roles = [role for role, reading in view.readings.items() if reading.resized is not None]
    # Objects that end where their images do are not those of other images.
    for role in roles or dict.fromkeys((first, "pred") if reach["gt"] < NEAR else (first, "pred", "gt")):
        given = view.readings[role]
        if are_fractions(view, role) and np.isnan(view.sizes[view.table(role).image]).any():
            continue  # of images of unknown sizes, which other units show
        known, resized = (sides[other] for other in (("gt", "pred") if role == "pred" else ("pred", "gt")))
        if role == "gt":
            known = _best_scored(known, resized)
        encodings = tuple(dict.fromkeys((given.encoding, *RAW_ENCODINGS))) if of_boxes else ("xywh",)
        encoding = given.encoding if of_boxes else "xywh"
        found = find_resizing(known, resized, view.sizes, encoding, encodings)
        if found is not None and found.resizing is None:
            _report_unsized(context, role, findings, found)
            return
        if found is None or found.resizing is None:
            continue
        if _onto_exchanged(found.resizing, view.sizes[np.unique(resized.image)]):
            return  # no image was resized: its listed width and height changed places, which the check of images shows
        if _is_origin(found.resizing):
            return  # pixels are counted otherwise, which the check of offsets shows
        reading = _reading(found, found.resizing, given, shapes=None if of_boxes else view.table(role).shapes)
        if reading is not None and reading.resized != given.resized:
            _report(context, view, role, findings, reading=reading, found=found)
            return


def _is_origin(resizing: Resizing) -> bool:
    """Whether all that was done is what another origin of pixels does."""
    (step, *others) = resizing.steps
    return not others and step.kind == "offset" and step.x == step.y and abs(step.x) in STEPS


def _onto_exchanged(resizing: Resizing, sizes: FloatArray) -> bool:
    """Whether most images of these sizes (n, 2), not turned, get the height as width and the width as height."""
    factor, offset, swapped = resizing.geometry(sizes)
    oblong = sizes[:, 0] != sizes[:, 1]
    exchanged: BoolArray = np.asarray(np.isclose(sizes * factor, sizes[:, ::-1], rtol=1e-3).all(axis=1))
    return not swapped and not offset.any() and bool(exchanged[oblong].sum() > oblong.sum() / 2)


def _side(context: AuditContext, boxes: BoxTable, numbers: FloatArray) -> Side:
    """Return boxes with their classes in those of the ground truth, -1 for others."""
    label = boxes.label.astype(np.int64)
    if context.metrics.protocol.class_agnostic:
        label = np.zeros_like(label)
    elif boxes is not context.sample.gt:
        label = np.append(context.aligned.classes.rows, -1)[label].astype(np.int64)
    score = np.zeros(len(boxes)) if boxes.score is None else boxes.score
    return Side(boxes.image.astype(np.int64), label, boxes.xywh, score, numbers)


def _reach(side: Side, sizes: FloatArray) -> float:
    """Return how far boxes end from the far sides of their images, the farther of both, as a logarithm."""
    with np.errstate(all="ignore"):
        ends = (side.xywh[:, :2] + side.xywh[:, 2:]) / sizes[side.image]
        return float(np.nan_to_num(np.abs(np.log(np.quantile(ends, BULK, axis=0)))).max()) if len(ends) else 0.0


def _best_scored(pred: Side, gt: Side) -> Side:
    """Return as many predictions of each image as it has objects, those with the best scores."""
    objects = np.bincount(gt.image, minlength=1 + int(pred.image.max(initial=0)))
    order = np.lexsort((-pred.score, pred.image))
    rank = np.arange(len(order)) - np.searchsorted(pred.image[order], pred.image[order])
    return pred.take(order[rank < objects[pred.image[order]]])


def _report_unsized(context: AuditContext, role: str, findings: FindingLog, found: Found) -> None:
    """Report that boxes are those of resized images, whose form only the sizes of the images can show."""
    findings.warning(
        "box-resized",
        Where(side_of(context, role).path, field="box"),
        f"boxes look like coordinates of resized images: with a scale and an offset of its own for each image they fit"
        f" {found.matched:,} of {found.objects:,} sampled objects, and far fewer as given or with one map for all. The"
        " sizes of the images are not known, so that how they were resized is unknown",
        fix=IMAGES_OF[role],
    )


def _reading(found: Found, resizing: Resizing, given: Reading, *, shapes: Shapes | None) -> Reading | None:
    """Return how the options name what was found; None where shapes, if any are read, cannot be read so."""
    encoding = found.encoding if shapes is None else given.encoding
    axes, steps = given.mask_axes, list(resizing.steps)
    are_polygons = bool(np.all(getattr(shapes, "has_polygons", False)))  # of masks, which boxes do without
    if steps[0].kind == "swap" and (encoding == "xyxy" if shapes is None else are_polygons and axes == AS_WRITTEN):
        # Rather y before x than images on their sides.
        steps = [replace(step, x=step.y, y=step.x) if step.kind != "short" else step for step in steps[1:]]
        encoding, axes = ("yxyx", axes) if shapes is None else (encoding, "yx")
    if shapes is not None and (given.resized is not None or (steps and Resizing(tuple(steps)).swaps)):
        return None
    units = "px"
    if steps and str(steps[-1]) == "stretch:1":
        steps, units = steps[:-1], "norm"  # fractions of the image as it was turned
    elif steps and str(steps[-1]) == "scale:1":
        steps = steps[:-1]
    # What results in fractions is a reading of pixels for the reader, which asks for no units then.
    resized = Resizing(tuple(steps)) if steps else None
    return replace(given, encoding=encoding, units=units, mask_axes=axes, resized=resized)


def _in_other_units(view: View, role: str, encoding: str) -> Iterator[tuple[str, Reading]]:
    """Yield each side with its readings in units other than the present ones, those of one in this encoding as well.

    The other side in all encodings: axes that it exchanges look like images on their sides.
    """
    for side, present in view.readings.items():
        encodings = dict.fromkeys((present.encoding, encoding) if side == role else ENCODINGS)
        for units in possible_units(view, side):
            for one in encodings:
                if units != present.units or (side != role and one != present.encoding):
                    yield side, replace(present, encoding=one, units=units, resized=None)


def _report(
    context: AuditContext, view: View, role: str, findings: FindingLog, *, reading: Reading, found: Found
) -> None:
    """Match all boxes as given and as mapped back, and report it where both AP50 and AP75 rise."""
    side = side_of(context, role)
    whole = View.of(context, context.aligned.gt, context.aligned.pred)
    rules = context.metrics.protocol
    any_class = found.any_class
    if rules.iou_type in ("segm", "boundary"):
        # The masks of an alignment are pixels, which end where their images do: the boxes of a sample are the evidence.
        gt, pred = (replace(view.table(role), shapes=None) for role in ("gt", "pred"))
        view = whole = replace(view, gt=gt, pred=pred)
        rules, any_class = rules.comparing(BOXES), True
    rules = rules.with_options(
        iou_thresholds=(0.5, 0.75),
        areas=rules.areas[:1],
        max_dets=rules.max_dets[-1:],
        class_agnostic=any_class or rules.class_agnostic,
    )

    def measured(boxes: View) -> list[float]:
        metrics = context.measure(boxes.gt, boxes.pred, rules)
        return [metrics.value(ref).value for ref in (HALF, STRICT)]

    # Of boxes around masks whose x and y are exchanged, these are exchanged with the images.
    anew = replace(reading, resized=found.resizing) if reading.mask_axes != side.reading.mask_axes else reading
    (given, strict_given), (right, strict_right) = map(measured, (whole, whole.reread(role, anew)))
    # What explains few of the objects leaves room for another reading, which is then the better explanation.
    if not right > given or strict_right < strict_given or found.matched < LEAST_MATCHED * found.objects:
        return
    # Other units have no number to fit: they are right where they explain as much, and nearly as much as one in doubt.
    plain = _in_other_units(view, role, reading.encoding)
    if any(measured(whole.reread(other, one))[0] >= (AS_GOOD if found.unsure else 1) * right for other, one in plain):
        return
    # An encoding that explains as much without numbers that are fitted is the simpler reading, which others report.
    if reading.encoding != side.reading.encoding and measured(
        whole.reread(role, replace(reading, resized=side.reading.resized))
    ) >= [right, strict_right]:
        return
    classes = " (classes pooled)" if any_class else ""
    how = "read without it" if reading.resized is None else f"mapped back from {reading.resized}"
    text = f"AP50{classes} {given:.3f} as given, {right:.3f} {how}; AP75 {strict_given:.3f} and {strict_right:.3f}"
    text += f" (fits {found.matched:,} of {found.objects:,} sampled objects{_remark(found)})"
    is_fraction = reading.resized is not None and reading.resized.is_fraction
    options = changed_options(side.reading, replace(reading, units=side.reading.units) if is_fraction else reading)
    named = any(name in options for name in side.reading.named)
    encoding = f"{reading.encoding} in " if "box" in options else ""
    encoding += f"masks {MASK_AXES[reading.mask_axes]} in " if "mask_axes" in options else ""
    kind = "pixels of the images" if reading.resized is None else "coordinates of resized images"
    if reading.resized is not None and reading.resized.is_turn:
        kind = "coordinates of turned images"
    detail = f"boxes look like {encoding}{kind}: {text}"
    prefixed = {f"{role}_{name}": value for name, value in options.items()}
    other = view.reread(role, anew)
    with np.errstate(over="ignore", invalid="ignore"):
        paired = pair_by_place(other.gt, other.pred)
    if side.format == "arrays":
        fix = Fix.missing("Map the boxes back to image pixels before evaluating.")
    elif found.unsure:
        detail += f"; the boxes are too few or too loose {found.unsure}"
        words = "If that is what was done, rerun with {options}, else with the exact numbers."
        fix = Fix.missing(words, **prefixed)
    else:
        fix = advised(Fix.reading(prefixed, metric="AP50", before=given, after=right), paired)
    where = Where(side.path, field="box")
    certain = is_decisive(context.sample, paired, fitted=2)
    if certain and context.stops("box-resized", named=named):
        findings.error("box-resized", where, detail, fix=replace(fix, allow="box-resized"))
    else:
        findings.warning("box-resized", where, detail, fix=fix)


def _remark(found: Found) -> str:
    if found.unseen:
        return f"; no image shows the {found.unseen}"
    return f"; equal on these images: {', '.join(found.others[:2])}" if found.others else ""
