"""Many models on many sets: the value of each pair, and how the models stand. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from jaccard_eval.data.document import Also, Count, Interval, KnownShare, written_as
from jaccard_eval.data.result import GateVerdict, Result
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise

DONE, FAILED, MISSING = STATES = ("done", "failed", "missing")
SEED, CORRUPTION, SEVERITY = "seed", "corruption", "severity"
CLEAN = ("clean", "none", "original")  # corruptions that are none


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCell:
    """Predictions of a model on a set: what they score, or why that is not known."""

    model: str
    set_name: str = field(metadata=written_as("set"))
    # Further dimensions of the pattern, such as a seed.
    at: Mapping[str, str] = field(default_factory=dict)
    gt: str
    pred: str
    state: str  # one of `STATES`
    problem: str = ""
    images: Count = 0
    objects: Count = 0
    detections: Count = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # codes of findings
    signature: str = ""
    # Of the headline metric, at each draw of the images; not part of a document.
    draws: tuple[float, ...] = field(default=(), metadata=written_as(None), repr=False)
    # Its page, where pages are made, and where that lies, seen from the page of the suite.
    page: str = field(default="", metadata=written_as(None), repr=False)
    place: str = field(default="", metadata=written_as(None))

    @property
    def spelled(self) -> str:
        """The model, the set and the rest, as a message names them."""
        rest = "".join(f", {name} {value}" for name, value in self.at.items())
        return f"{self.model} on {self.set_name}{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a model does over the sets that all models have; NaN where that is undefined."""

    model: str
    mean: float
    interval: Interval | None = None  # of the mean, for sets like these
    weighted: float = math.nan  # by the objects of each set
    rank: float = math.nan  # the mean of its ranks, 1 is the best
    wins: Count = 0  # sets on which no other model is better
    sets: Count = 0  # with a value
    delta: float = math.nan  # of its mean to that of the first model
    p_value: float = math.nan  # of that, by Holm over the models
    verdict: str = ""  # "better", "worse" or "no different"; empty for the first, and where it is not tested
    sd: float = math.nan  # of the mean, over seeds
    mpc: float = math.nan  # mean performance under corruption
    rpc: float = math.nan  # the same as a share of that on clean images


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMean:
    """The mean of a model over the sets of a group."""

    group: str
    model: str
    mean: float
    sets: Count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SuiteResult(Result):
    """Models on sets, each pair evaluated as `evaluate` does it.

    Parameters
    ----------
    metric : str
        What is compared; cells have the other metrics of the summary as well.
    models, sets : tuple of str
        In the order of the plan; the first model is the one that others are tested against.
    cells : tuple of SuiteCell
        One for each model, set and further dimension.
    standings : tuple of Standing
        One for each model, the best mean first.
    groups : tuple of GroupMean
        Means over groups of sets.
    resampled : str
        What intervals rest on: "sets", or "sets and images".
    gates : tuple of GateVerdict
        Verdicts on cells, means and ranks.
    reused : int
        How many cells were not computed again, as nothing of them changed.

    Examples
    --------
    >>> from jaccard_eval import suite
    >>> plan = {"gt": "sample_data/coco/gt.json", "pred": "sample_data/coco/{model}.json"}
    >>> result = suite({**plan, "models": ["worse", "better"]}, cache=False)
    >>> [(cell.model, round(cell.metrics["AP50"], 4)) for cell in result.cells]
    [('worse', 0.6915), ('better', 0.8826)]
    """

    version: str
    signature: str
    metric: str
    models: tuple[str, ...]
    sets: tuple[str, ...]
    cells: tuple[SuiteCell, ...]
    standings: tuple[Standing, ...]
    groups: tuple[GroupMean, ...] = ()
    resampled: str = "sets"
    confidence_level: KnownShare = 0.95
    reused: Count = field(default=0, metadata=written_as(None))
    gates: tuple[GateVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()

    kind: ClassVar[str] = "suite"
    reported_by: ClassVar[str] = "suite.report"
    also: ClassVar[Also] = (other_signatures,)

    @property
    def failed(self) -> tuple[SuiteCell, ...]:
        """The pairs that could not be evaluated."""
        return tuple(cell for cell in self.cells if cell.state == FAILED)

    def values(self, model: str) -> dict[str, float]:
        """Return the value of a model on each set: means over seeds, NaN where there is none."""
        return {name: self._value(model, name) for name in self.sets}

    def _value(self, model: str, name: str) -> float:
        found = [
            cell.metrics.get(self.metric, math.nan)
            for cell in self.cells
            if (cell.model, cell.set_name) == (model, name) and is_plain(cell)
        ]
        return sum(found) / len(found) if found else math.nan

    def _summary(self) -> str:
        best = ", ".join(f"{row.model} {row.mean:.4f}" for row in self.standings[:3])
        return (
            f"{pluralise(len(self.models), 'model')} on {pluralise(len(self.sets), 'set')}, mean {self.metric}: {best}"
        )


def is_plain(cell: SuiteCell) -> bool:
    """Whether a cell is of images as they are: of no corruption."""
    return cell.at.get(CORRUPTION, CLEAN[0]) in CLEAN or cell.at.get(SEVERITY) == "0"
