"""What reports say about verdicts of gates: one line that counts them, and the value behind each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jaccard_eval.data.verdict import GateVerdict, Status, counted_statuses
from jaccard_eval.report.model import Cell, Column, Note, Section, Table
from jaccard_eval.report.numbers import DECIMALS, UNDEFINED, metric_text

SHOWN_PASSES = 5  # of one limit of one rule; with more classes than these, the ones nearest to the limit
MOST_DECIMALS = 12
NEGLIGIBLE = 1e-9  # a margin that is a rounding error
WORDS = {
    Status.PASS: "passed",
    Status.WARN: "warned",
    Status.FAIL: "failed",
    Status.INFO: "missed, for information",
    Status.SKIP: "skipped",
}
_SIGNS = {"min": ">=", "max": "<="}  # all other kinds of limits bound a change


def gates_section(gates: Sequence[GateVerdict]) -> list[Section]:
    """Return the section of the verdicts, none without gates."""
    if not gates:
        return []
    chosen = _shown(gates)
    compared = any(not math.isnan(one.baseline) for one in gates)
    titles = ("value", "limit", "margin", *(["delta"] if compared else []), "n")
    columns = (*(Column(title, free_text=True) for title in ("status", "rule")), *map(Column, titles))
    table = Table(columns, tuple(_row(one, compared=compared) for one in chosen))
    told = ((_subject(one), "; ".join([*_of_significance(one), *_of_spread(one), *_of_reason(one)])) for one in chosen)
    notes = (Note(f"{subject}: {text}") for subject, text in told if text)
    return [Section("Gates", (Note(count_text(gates)), table, *notes, *_hidden(gates, chosen)))]


def count_text(gates: Iterable[GateVerdict]) -> str:
    """Return how the checks ended, such as "2 passed, 1 failed"."""
    return ", ".join(f"{count:,} {WORDS[status]}" for status, count in counted_statuses(gates).items())


def verdict_text(verdict: GateVerdict) -> str:
    """Return a verdict in one line: the rule, the value, the limit, and what explains it."""
    value = value_text(verdict.value, verdict.limit)
    text = f"{verdict.rule}: {verdict.metric} = {value}, required {limit_text(verdict)}"
    facts = [] if math.isnan(verdict.margin) else [f"margin {signed_text(verdict.margin)}"]
    facts += [] if math.isnan(verdict.baseline) else [f"baseline {value_text(verdict.baseline)}"]
    support = _support(verdict)
    facts += [f"n {support}"] if support else []
    return "; ".join([text, *facts, *_of_spread(verdict), *_of_reason(verdict)])


def limit_text(verdict: GateVerdict) -> str:
    """Return what was asked of the value: ">= 0.45", "drop <= 0.01", or "drop <= 2 %" of the baseline.

    A significance stands behind: "drop <= 0.01 (non-inferior)".
    """
    return f"{_bare_limit(verdict)}{f' ({verdict.significance})' if verdict.significance else ''}"


def _bare_limit(verdict: GateVerdict) -> str:
    """Return the limit alone, which is all that a table has room for."""
    if verdict.check in _SIGNS:
        return f"{_SIGNS[verdict.check]} {verdict.limit:.12g}"
    change = "drop" if verdict.check.startswith("max-drop") else "rise"
    share = f"{100 * verdict.limit:.12g} %" if verdict.check.endswith("-relative") else f"{verdict.limit:.12g}"
    return f"{change} <= {share}"


def value_text(value: float, limit: float = math.nan) -> str:
    """Return a value with four decimals, and with more where it takes them to be told from a limit.

    Examples
    --------
    >>> value_text(0.5, 0.45), value_text(0.44999, 0.45), value_text(12.3), value_text(3.0, 2.0)
    ('0.5000', '0.44999', '12.3', '3')
    """
    if math.isnan(value) or not 0 <= value <= 1 or (value.is_integer() and limit > 1):
        return UNDEFINED if math.isnan(value) else f"{value:.12g}"
    decimals = range(DECIMALS, MOST_DECIMALS)
    if math.isnan(limit) or abs(value - limit) <= NEGLIGIBLE:
        return metric_text(value)
    return next((text for n in decimals if float(text := metric_text(value, n)) != limit), repr(value))


def signed_text(change: float) -> str:
    """Return a difference with its sign, and never as zero unless it is a rounding error.

    Examples
    --------
    >>> signed_text(0.05), signed_text(-0.00001), signed_text(-4e-16), signed_text(-2.7)
    ('+0.0500', '-1.0e-05', '0.0000', '-2.7')
    """
    if math.isnan(change):
        return UNDEFINED
    if abs(change) <= NEGLIGIBLE:
        return f"{0:.{DECIMALS}f}"
    if abs(change) > 1:
        return f"{change:+.12g}"
    return f"{change:+.{DECIMALS}f}" if abs(change) >= 0.5 * 10.0**-DECIMALS else f"{change:+.1e}"


def _row(one: GateVerdict, *, compared: bool) -> tuple[Cell, ...]:
    delta = [signed_text(one.delta)] if compared else []
    numbers = (value_text(one.value, one.limit), _bare_limit(one), signed_text(one.margin))
    return str(one.status), _subject(one), *numbers, *delta, _support(one)


def _of_spread(one: GateVerdict) -> list[str]:
    """Say how far chance moves a value or its difference from the baseline, and what that means."""
    spread = one.spread
    if spread is None:
        return []
    level = f"{100 * spread.drawn['confidence_level']:g} %"
    if spread.paired is None:
        return [f"{level} interval {' to '.join(map(value_text, spread.interval))}"]
    bounds = " to ".join(map(signed_text, spread.interval))
    detectable = spread.paired.detectable  # 0 for equal predictions, which say nothing of the set
    return [
        f"delta {signed_text(one.delta)}, {level} interval {bounds}",
        f"probability of a real change {spread.paired.probability:.3f}",
        *([f"smallest change that this set shows {detectable:.2g}"] if detectable > 0 else []),
    ]


def _of_significance(one: GateVerdict) -> list[str]:
    """Return the significance that a rule asks for, where its name does not tell."""
    return [one.significance] if one.significance and one.significance not in one.rule else []


def _of_reason(one: GateVerdict) -> list[str]:
    return [one.reason] if one.reason else []


def _subject(one: GateVerdict) -> str:
    """Name the rule, and what it judged as far as that is not in its name."""
    if one.metric.partition("[")[0] not in one.rule:
        return f"{one.rule}: {one.metric}"
    return one.rule if one.class_name is None else f"{one.rule}: {one.class_name}"


def _support(one: GateVerdict) -> str:
    """Return how much ground truth a value rests on; nothing for one that is measured elsewhere."""
    return "" if one.metric.startswith("external.") else f"{one.n:,}"


def _shown(gates: Sequence[GateVerdict]) -> list[GateVerdict]:
    """Leave out passes that are far from the limit where a rule has many classes."""
    kept: set[int] = set()
    for group in _by_limit(gates).values():
        passes = [i for i in group if gates[i].status is Status.PASS]
        kept.update(set(group) - set(passes), sorted(passes, key=lambda i: gates[i].margin)[:SHOWN_PASSES])
    return [one for i, one in enumerate(gates) if i in kept]


def _hidden(gates: Sequence[GateVerdict], chosen: Sequence[GateVerdict]) -> list[Note]:
    counts = {key: len(group) for key, group in _by_limit(gates).items()}
    left = {key: counts[key] - len(group) for key, group in _by_limit(chosen).items()}
    return [
        Note(f"{rule}: {count:,} more passed, further from the limit; the JSON report has all")
        for (rule, _), count in left.items()
        if count
    ]


def _by_limit(gates: Sequence[GateVerdict]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for i, one in enumerate(gates):
        groups.setdefault((one.rule, one.check), []).append(i)
    return groups
