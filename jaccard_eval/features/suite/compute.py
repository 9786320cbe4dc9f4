"""How models stand over many sets: means, ranks, intervals and tests, from the value of each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.document import Interval
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.features.bootstrap import holm, t_probability, t_quantile
from jaccard_eval.features.suite import CORRUPTION, SEED, GroupMean, Standing, SuiteCell, is_plain

FEWEST_SETS = 5  # for an interval or a test over sets: of fewer, no order of signs is rare
DRAWS = 10_000  # of sets
EXACT_SETS = 13  # up to which all 2^n orders of signs are tried
FEWEST_SEEDS = 3

Values = Mapping[str, Mapping[str, float]]  # of each model, on each set


def standings_of(
    models: Sequence[str], sets: Sequence[str], cells: Sequence[SuiteCell], metric: str, *, level: float, rng: int = 0
) -> tuple[Standing, ...]:
    """Return how the models stand, the best mean first.

    Means, ranks and wins are over the sets on which all models have a value: on others they would not be comparable.
    """
    sign = 1.0 if MetricRef.parse(metric).higher_is_better else -1.0
    plain = [cell for cell in cells if is_plain(cell)]
    value = _table(models, sets, plain, metric)
    common: BoolArray = np.logical_and.reduce(np.isfinite(value), axis=0)
    shown, weight = value[:, common], _objects(sets, plain)[common]
    ranks = _ranks(-sign * shown)
    wins = (sign * shown >= (sign * shown).max(axis=0, initial=-math.inf)).sum(axis=1)
    drawn = _drawn_means(shown, _deviations(models, [*_kept(sets, common)], plain), rng)
    seeds = {model: _seed_means(model, [*_kept(sets, common)], plain, metric) for model in models}
    rows = []
    for row, model in enumerate(models):
        mean = _mean(shown[row])
        mpc, clean = _under_corruption(model, cells, metric)
        rows.append(
            Standing(
                model=model,
                mean=mean,
                interval=None if drawn is None else _expanded(drawn[row], shown.shape[1], level),
                weighted=float(np.average(shown[row], weights=weight)) if weight.sum() else math.nan,
                rank=_mean(ranks[row]),
                wins=int(wins[row]),
                sets=int(np.isfinite(value[row]).sum()),
                delta=math.nan if row == 0 else mean - _mean(shown[0]),
                p_value=math.nan if row == 0 else _p_value(shown[row] - shown[0], seeds[model], seeds[models[0]], rng),
                sd=float(np.std(seeds[model], ddof=1)) if len(seeds[model]) > 1 else math.nan,
                mpc=mpc,
                rpc=mpc / clean if clean else math.nan,
            )
        )
    rows = [_judged(row, p, sign, level) for row, p in zip(rows, holm([row.p_value for row in rows]), strict=True)]
    return tuple(sorted(rows, key=lambda row: (math.isnan(row.mean), -sign * row.mean)))


def group_means(
    groups: Mapping[str, Sequence[str]], models: Sequence[str], cells: Sequence[SuiteCell], metric: str
) -> tuple[GroupMean, ...]:
    """Return the mean of each model over the sets of each group on which all models have a value."""
    plain, found = [cell for cell in cells if is_plain(cell)], []
    for group, sets in groups.items():
        value = _table(models, sets, plain, metric)
        value = value[:, np.isfinite(value).all(axis=0)]
        found += [
            GroupMean(group=group, model=model, mean=_mean(row), sets=value.shape[1])
            for model, row in zip(models, value, strict=True)
        ]
    return tuple(found)


def _table(models: Sequence[str], sets: Sequence[str], cells: Iterable[SuiteCell], metric: str) -> FloatArray:
    """Return values of models (rows) on sets, means over seeds; NaN where any of them is missing."""
    sums, counts = np.zeros((len(models), len(sets))), np.zeros((len(models), len(sets)))
    row, column = {name: i for i, name in enumerate(models)}, {name: i for i, name in enumerate(sets)}
    for cell in cells:
        if cell.set_name in column:
            place = row[cell.model], column[cell.set_name]
            sums[place] += cell.metrics.get(metric, math.nan)
            counts[place] += 1
    return sums / np.where(counts, counts, math.nan)


def _objects(sets: Sequence[str], cells: Iterable[SuiteCell]) -> FloatArray:
    most = dict.fromkeys(sets, 0)
    for cell in cells:
        most[cell.set_name] = max(most[cell.set_name], cell.objects)
    return np.array([*most.values()], dtype=np.float64)


def _kept(sets: Sequence[str], common: BoolArray) -> Iterable[str]:
    return (name for name, kept in zip(sets, common.tolist(), strict=True) if kept)


def _ranks(order: FloatArray) -> FloatArray:
    """Return the rank of each row in each column, 1 for the least; equal ones share the mean of their ranks."""
    below = (order[None] < order[:, None]).sum(axis=1)
    equal = (order[None] == order[:, None]).sum(axis=1)
    ranks: FloatArray = below + (equal + 1) / 2
    return ranks


def _deviations(models: Sequence[str], sets: Sequence[str], cells: Iterable[SuiteCell]) -> FloatArray | None:
    """Return what draws of images change, (models, sets, draws); None unless all cells have as many."""
    of_cell: dict[tuple[str, str], list[FloatArray]] = {}
    for cell in cells:
        if cell.draws:
            draws = np.array(cell.draws)
            of_cell.setdefault((cell.model, cell.set_name), []).append(draws - np.nanmean(draws))
    found = [[of_cell.get((model, name), []) for name in sets] for model in models]
    lengths = {len(draws) for row in found for cells_of in row for draws in cells_of}
    if len(lengths) != 1 or not all(cells_of for row in found for cells_of in row):
        return None
    changes = [[np.nan_to_num(np.mean(cells_of, axis=0)) for cells_of in row] for row in found]
    return np.array(changes)


def _drawn_means(value: FloatArray, changes: FloatArray | None, rng: int) -> FloatArray | None:
    """Return the mean of each model over sets that are drawn with repeats, (models, draws); None of few sets."""
    n_sets = value.shape[1]
    if n_sets < FEWEST_SETS:
        return None
    random = np.random.default_rng(rng)
    drawn = random.integers(0, n_sets, (DRAWS, n_sets))
    if changes is None:
        return np.asarray(value[:, drawn].mean(axis=2))
    # A set that is drawn brings one draw of its images, the same for all models.
    of_images = random.integers(0, changes.shape[2], (DRAWS, n_sets))
    return np.stack(
        [(row[drawn] + change[drawn, of_images]).mean(axis=1) for row, change in zip(value, changes, strict=True)]
    )


def _expanded(draws: FloatArray, n: int, level: float) -> Interval:
    """Return the percentile interval of a mean of few values, as wide as Student's t makes it.

    Drawn means vary less than means of new sets do, by (n - 1) / n (Hesterberg 2015, section 4: expanded percentiles).
    """
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t_quantile((1 + level) / 2, n - 1))
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)


def _seed_means(model: str, sets: Sequence[str], cells: Iterable[SuiteCell], metric: str) -> list[float]:
    """Return the mean over the sets for each seed that has all of them."""
    by_seed: dict[str, dict[str, float]] = {}
    for cell in cells:
        if cell.model == model and SEED in cell.at and cell.set_name in sets:
            by_seed.setdefault(cell.at[SEED], {})[cell.set_name] = cell.metrics.get(metric, math.nan)
    return [_mean([*values.values()]) for values in by_seed.values() if len(values) == len(sets)]


def _p_value(delta: FloatArray, seeds: Sequence[float], first: Sequence[float], rng: int) -> float:
    """Return the two-sided p of a difference: over sets where they are enough, else over the seeds of both models."""
    if len(delta) >= FEWEST_SETS:
        return _sign_flips(delta, rng)
    if min(len(seeds), len(first)) < FEWEST_SEEDS:
        return math.nan
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (seeds, first)]
    if not sum(parts):
        return math.nan
    shares = zip(parts, (seeds, first), strict=True)
    freedom = sum(parts) ** 2 / sum(part**2 / (len(values) - 1) for part, values in shares)  # Welch 1947
    return 1 - t_probability((_mean(seeds) - _mean(first)) / math.sqrt(sum(parts)), max(int(freedom), 1))


def _sign_flips(delta: FloatArray, rng: int) -> float:
    """Return how often the mean is as far from 0 where each set's difference could have either sign (Fisher 1935)."""
    n = len(delta)
    is_exact = n <= EXACT_SETS
    if is_exact:
        signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.random.default_rng(rng).integers(0, 2, (DRAWS - 1, n)) * 2 - 1
    # Rounding must not decide whether a sum is as large as the one that is there, which is one of them.
    as_far = np.abs(signs @ delta) >= abs(float(delta.sum())) * (1 - 1e-9)
    return float(as_far.mean()) if is_exact else (int(as_far.sum()) + 1) / DRAWS


def _judged(row: Standing, p_value: float, sign: float, level: float) -> Standing:
    if math.isnan(p_value):
        return row
    direction = "better" if sign * row.delta > 0 else "worse"
    return replace(row, p_value=p_value, verdict=direction if p_value <= 1 - level else "no different")


def _under_corruption(model: str, cells: Sequence[SuiteCell], metric: str) -> tuple[float, float]:
    """Return mPC, and the mean on clean images of the same sets (Michaelis et al. 2019, section 3.2).

    Severities are averaged within each corruption, then corruptions, then sets.
    """
    own = [cell for cell in cells if cell.model == model]
    by_set: dict[str, dict[str, list[float]]] = {}
    for cell in own:
        if not is_plain(cell):
            by_set.setdefault(cell.set_name, {}).setdefault(cell.at[CORRUPTION], []).append(
                cell.metrics.get(metric, math.nan)
            )
    corrupted = [_mean([_mean(values) for values in found.values()]) for found in by_set.values()]
    clean = _table([model], [*by_set], [cell for cell in own if is_plain(cell)], metric)[0]
    return _mean(corrupted), _mean(clean)


def _mean(values: Sequence[float] | FloatArray) -> float:
    return float(np.mean(values)) if len(values) else math.nan


# What gates may name of a model, and the field that has it.
_GATED = {"mean": "mean", "weighted": "weighted", "rank": "rank", "wins": "wins", "mPC": "mpc", "rPC": "rpc"}


def gate_names(models: Sequence[str], sets: Sequence[str]) -> list[str]:
    """Return what gates may name: ``mean[model=M]``, so weighted, rank, wins, mPC and rPC, ``cell[model=M,set=S]``."""
    of_models = [f"{name}[model={model}]" for model in models for name in _GATED]
    return [*of_models, *(f"cell[model={model},set={name}]" for model in models for name in sets)]


def gate_values(
    standings: Sequence[Standing], models: Sequence[str], values: Callable[[str], Mapping[str, float]]
) -> dict[str, float]:
    """Return the values of `gate_names`."""
    rows = {row.model: row for row in standings}
    of_models = [float(getattr(rows[model], held)) for model in models for held in _GATED.values()]
    of_cells = [value for model in models for value in values(model).values()]
    sets = [*values(models[0])] if models else []
    return dict(zip(gate_names(models, sets), [*of_models, *of_cells], strict=True))
