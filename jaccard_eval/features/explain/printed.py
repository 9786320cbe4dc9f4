"""A number that another tool printed: which rules of its protocol, and which other causes, give it on these boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.features.explain import Fit, Printed
from jaccard_eval.features.explain.causes import Cause
from jaccard_eval.frozen import dataclass
from jaccard_eval.progress import tracked
from jaccard_eval.text import pluralise

LEAST_DIGITS = 4  # decimals of a share: with fewer, other combinations fit by chance
LIKELY_CHANCE = 0.02  # that one of so many values lies within the last digit of the number; of two causes a fourth
NEIGHBOURS = 10  # values around the number, whose distance shows how dense all lie
SAME = 1e-9  # values that are no further apart are one: a cause without effect
# Each combination is a matching: of many boxes fewer are tried.
MOST_TRIED, LEAST_TRIED, BOXES_TRIED = 2000, 64, 20_000_000

Changes = Mapping[str, Any]
Combination = tuple[tuple[str, ...], tuple[Cause, ...]]
Key = frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Measures combinations of rules of the other protocol and of causes, each once."""

    steps: Mapping[str, Changes]  # of each rule that differs by its name, the fields of the other protocol
    measured: Callable[[Changes, tuple[Cause, ...]], float]
    known: dict[Key, float] = field(default_factory=dict)

    def value(self, rules: Iterable[str], causes: tuple[Cause, ...] = ()) -> float:
        """Return the metric by some rules of the other protocol, with some causes."""
        key = _key((tuple(rules), causes))
        if key not in self.known:
            changes = {name: new for rule in self.steps if rule in key for name, new in self.steps[rule].items()}
            for cause in causes:
                changes |= cause.rules
            self.known[key] = self.measured(changes, causes)
        return self.known[key]

    def mattering_rules(self) -> list[str]:
        """Return the rules that change the metric, alone or together with all others."""
        every = [*self.steps]
        return [
            rule
            for rule in every
            if _differ(self.value([rule]), self.value([]))
            or _differ(self.value(every), self.value(other for other in every if other != rule))
        ]

    def mattering(self, causes: Iterable[Cause]) -> list[Cause]:
        """Return the causes that change the metric by the rules of either protocol; limits that do the same are one."""
        found: dict[tuple[str, float, float], Cause] = {}
        ends = [self.value([]), self.value(self.steps)]
        for cause in causes:
            values = [self.value([], (cause,)), self.value(self.steps, (cause,))]
            if not any(map(_differ, values, ends)):
                continue
            key = cause.subject if cause.limits else cause.name, values[0], values[1]
            if key in found:
                found[key] = replace(found[key], limits=(*found[key].limits, *cause.limits))
            else:
                found[key] = cause
        return [*found.values()]

    def has_idle(self, chosen: Combination) -> bool:
        """Whether one of several changes nothing: the combination without it has the same value."""
        rules, causes = chosen
        fewer = [*(([other for other in rules if other != rule], causes) for rule in rules)]
        fewer += [([*rules], tuple(other for other in causes if other is not cause)) for cause in causes]
        return any(not _differ(self.value(*chosen), self.value(*others)) for others in fewer)


def find_printed(text: str, search: Search, causes: Iterable[Cause], n_boxes: int) -> Printed:
    """Try which rules and causes, of those that change the metric here, give the number that was printed.

    Two causes at once are tried where none with fewer fits.
    """
    rules, mattering = search.mattering_rules(), search.mattering(tracked([*causes], "trying causes"))
    subsets = [chosen for n in range(len(rules) + 1) for chosen in combinations(rules, n)]
    most = max(LEAST_TRIED, min(MOST_TRIED, BOXES_TRIED // max(n_boxes, 1)))
    pairs = [pair for pair in combinations(mattering, 2) if pair[0].subject != pair[1].subject]
    # Rules alone are tried in any case.
    tried: list[Combination] = [(chosen, ()) for chosen in subsets]
    printed = Printed(text, 0, (), None)
    for stage in ([(cause,) for cause in mattering], pairs):
        # With any of the rules, or where that would be too many, with those of either protocol.
        ends = [(), tuple(rules)] if rules else [()]
        given = subsets if len(stage) * len(subsets) <= most else ends
        if len(stage) * len(given) > most:
            printed = replace(printed, untried=printed.untried + len(stage) * len(given))
            continue
        tried += product(given, stage)
        if _fits(printed, search, tried):
            break
    values, fits = np.array([search.value(*chosen) for chosen in tried]), _fits(printed, search, tried)
    named = (Fit((*names, *(cause.text for cause in given)), search.value(names, given)) for names, given in fits)
    printed = replace(printed, tried=len(tried), fits=tuple(named))
    # What a fit competes with are combinations of no more causes.
    rivals = [not fits or len(given) <= len(fits[0][1]) for _, given in tried]
    return replace(printed, undecided=_undecided(printed, values[rivals], len(fits[0][1]) if fits else 0))


def _fits(printed: Printed, search: Search, tried: Sequence[Combination]) -> list[Combination]:
    """Return the combinations that give the number; what rules alone give needs no cause that does the same."""
    found = [chosen for chosen in tracked([*tried], "trying causes") if printed.has(search.value(*chosen))]
    fits = [chosen for chosen in found if not search.has_idle(chosen)]
    by_rules = [search.value(*chosen) for chosen in fits if not chosen[1]]
    return [fit for fit in fits if not fit[1] or all(_differ(search.value(*fit), value) for value in by_rules)]


def _undecided(printed: Printed, values: FloatArray, n_causes: int) -> str | None:
    """Return why no single combination is named, if that is so; `values` are those that were tried."""
    if len(printed.fits) != 1:
        return "no combination fits" if not printed.fits else f"{len(printed.fits)} combinations fit"
    if printed.digits < LEAST_DIGITS:
        return f"{pluralise(printed.digits, 'decimal')} of a share may fit by chance"
    # How dense other values lie around the number: so likely is one of them within its last digit.
    others = np.unique(values[~np.isnan(values) & (np.abs(values - printed.fits[0].value) > SAME)])
    near = np.sort(np.abs(others - printed.value))[:NEIGHBOURS]
    chance = len(near) * 10.0**-printed.digits / (2 * near[-1]) if len(near) else 0.0
    return (
        f"of {len(values):,} combinations one may fit by chance"
        if chance * max(n_causes, 1) ** 2 > LIKELY_CHANCE
        else None
    )


def _differ(value: float, other: float) -> bool:
    return not (abs(value - other) <= SAME or (np.isnan(value) and np.isnan(other)))


def _key(chosen: Combination) -> Key:
    rules, causes = chosen
    return frozenset((*rules, *(cause.text for cause in causes)))
