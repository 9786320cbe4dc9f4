"""What makes verdicts of gates doubtful: limits below the noise, statuses that hang on the order of equal scores."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaccard_eval.data.verdict import GateVerdict, Spread
from jaccard_eval.errors import Finding, FindingLog, Where
from jaccard_eval.features.gates.limits import allowed_change
from jaccard_eval.features.gates.rules import AGAINST_BASELINE

DIGITS = 2  # of the limit that is proposed


def gate_findings(verdicts: Iterable[GateVerdict]) -> tuple[Finding, ...]:
    """Return what to say of verdicts beyond what they say themselves."""
    findings = FindingLog()
    for one in verdicts:
        where = one.where or Where("gates", record=one.rule)
        if one.spread is not None and one.check in AGAINST_BASELINE:
            _check_noise(one, one.spread, where, findings)
        if one.ties is not None:
            low, high = one.ties
            findings.warning(
                "gate-crossed-by-ties",
                where,
                f"{one.metric} lies between {low:.6f} and {high:.6f}, as equal scores are ordered, and the limit lies"
                " between them: another run may end differently",
                fix="Export scores with all their digits, or move the limit out of these bounds.",
            )
    return findings.findings()


def _check_noise(one: GateVerdict, spread: Spread, where: Where, findings: FindingLog) -> None:
    """Warn of a limit on changes that chance alone exceeds."""
    unit = allowed_change(one.check, 1.0, one.baseline)
    if one.limit * unit >= spread.half_width or unit == 0:
        return
    of_what = f"the difference from the baseline in {one.metric}" if spread.paired else one.metric
    drawn = spread.drawn
    findings.warning(
        "gate-below-noise",
        where,
        f"{one.check} {one.limit:.6g} is tighter than the noise: chance moves {of_what} by {spread.half_width:.2g}, as"
        f" half of its {100 * drawn['confidence_level']:g} % interval over {drawn['n_units']:,} {drawn['unit']}s says;"
        f" these support {one.check} {_rounded_up(spread.half_width / unit):.6g}",
        fix="Set the limit that they support, or evaluate on more images: four times as many halve the noise.",
    )


def _rounded_up(value: float) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.ceil(round(value / step, 6)) * step
