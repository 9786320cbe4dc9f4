"""Which round numbers a resizing has: the likelihood of each name that is near, times how usual its numbers are.

Evidence are the centres of boxes alone: detectors whose boxes are too large or small have them in the same places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.resizing import STRIDE, TURNS, Step
from jaccard_eval.features.audit.box_places import NORMAL_SPREAD
from jaccard_eval.frozen import dataclass

Theta = tuple[float, ...]  # one number of a form for x and y, or one for each

SIDES = (
    *(224, 256, 300, 320, 384, 416, 448, 480, 512, 600, 608, 640, 736, 768, 800, 896, 960, 1000, 1024, 1280, 1333),
    *(1536, 2048),
)
KNOWN, BY_STEP, ANY = 0.55, 0.1, 0.35  # how often sides are one of these, a multiple of a round number, or any
STEPS = 100, 64, 50, 32, 10
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
LARGEST = 1e5  # px: no input is larger
TRIALS = 40  # of short sides
MOST = 400  # names along one axis
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
            if not max(map(abs, new)) < LARGEST or (form != "offset" and min(new) <= 0):
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
    return str(replace(step, x=x, y=y)) if exact else f"scale:{step.x:.9f}x{step.y:.9f}"


def _near(places: Places, form: str, theta: Theta) -> Iterator[tuple[float, str, Theta, tuple[int, ...]]]:
    """Yield the names near the most likely numbers: about how probable, and the numbers that no image shows."""
    if form == "rect":
        multiples = {max(round(theta[0] / STRIDE) + i, 1) * STRIDE for i in (-2, -1, 0, 1, 2)}
        yield from ((_usual(form, (n,)) - places.misfit(form, (n,)) / 2, form, (float(n),), ()) for n in multiples)
        return
    theta, shown = places.fit(form, theta)
    if max(theta) > LARGEST:
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
    if (len(axes) == 2 and len(axes[0]) * len(axes[1]) > MOST**2) or not all(axes):
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
    if form == "scale":
        parts = [round(number * by) / by for by in (*range(1, HIGHEST + 1), 100)]
        whole = [by / round(by / number) for by in range(1, HIGHEST + 1) if round(by / number)]
        near = {name for name in (*parts, *whole) if name > 0 and abs(name - number) <= max(reach, 1e-9)}
        return sorted({*near, float(f"{number:.5g}")})
    first, last = np.ceil(number - reach), np.floor(number + reach)
    if last - first >= MOST:
        first, last = np.round(number) - MOST // 2, np.round(number) + MOST // 2
    names = np.arange(first, last + 1)
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
    by = [step * any_ for step in STEPS if number % step == 0]
    return float(np.log(ANY * any_ + BY_STEP * sum(by) / len(STEPS) + KNOWN * (number in SIDES) / len(SIDES)))


def _usual_factor(number: float) -> float:
    """Return how usual a factor is: those of small numerators and denominators are."""
    weight = ODD / 2
    for below in range(1, HIGHEST + 1):
        above = round(number * below)
        if above > 0 and abs(above / below - number) < 1e-9:
            weight += 0.8 / (13 * above * below)
    return weight + 0.2 / 300 * (abs(number * 100 - round(number * 100)) < 1e-9)
