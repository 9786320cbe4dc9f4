"""How a bootstrap is run, and what it gives: intervals, and differences between two models. Nothing is drawn here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.errors import UsageError

Interval = tuple[float, float]
BY_FOLDER = "folder"  # what images may be grouped by, beside a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How images are resampled.

    Parameters
    ----------
    n_resamples : int
        How many resamples are drawn.
    confidence_level : float
        Of the intervals, between 0 and 1.
    rng : int
        Seed; each resample is drawn from the seed and its own number, whoever computes it.
    group_by : str, optional
        "folder", or the path of a CSV file with the rows ``image,group``: groups of images are drawn as a whole, as the
        frames of a video have to be.
    """

    n_resamples: int = 1000
    confidence_level: float = 0.95
    rng: int = 0
    group_by: str | None = None

    def __post_init__(self) -> None:
        _require(_is_whole(self.n_resamples, 2), "n_resamples", "a whole number from 2 on", self.n_resamples)
        _require(0 < self.confidence_level < 1, "confidence_level", "between 0 and 1", self.confidence_level)
        _require(_is_whole(self.rng, 0), "rng", "a whole number from 0 on", self.rng)
        if self.group_by is not None:
            object.__setattr__(self, "group_by", os.fspath(self.group_by))  # documents keep it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resamples:
    """Every metric at every resample.

    Parameters
    ----------
    settings : Bootstrap
    unit : str
        What is drawn: "image", or what images are grouped by.
    n_units : int
        How many there are.
    refs : tuple of str, length F
        Metric references.
    estimate : ndarray of float64, shape (F,)
        On the images as they are.
    values : ndarray of float64, shape (n_resamples, F)
        NaN where undefined, such as a class none of whose images was drawn.
    grouping : str, optional
        Digest of the groups of all images, where groups are drawn.
    """

    settings: Bootstrap
    unit: str
    n_units: int
    refs: tuple[str, ...]
    estimate: FloatArray
    values: FloatArray
    grouping: str | None = None

    @property
    def choice(self) -> str:
        """All that decides what is drawn, as a signature names it."""
        settings = self.settings
        drawn = (settings.n_resamples, settings.confidence_level, settings.rng, self.grouping)
        return f"bootstrap={','.join(str(one) for one in drawn if one is not None)}"

    def to_dict(self) -> dict[str, Any]:
        """Return how it was done, as JSON documents have it."""
        return {
            "method": "percentile",
            "n_resamples": self.settings.n_resamples,
            "confidence_level": self.settings.confidence_level,
            "rng": self.settings.rng,
            "unit": self.unit,
            "n_units": self.n_units,
            **({} if self.grouping is None else {"group_by": self.settings.group_by, "grouping": self.grouping}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDelta:
    """How one metric differs between two models on the same images.

    Parameters
    ----------
    ref : str
    base, value : float
        Of the first model and of the second; NaN when undefined.
    delta : float
        ``value - base``.
    interval : (float, float), optional
        Percentile interval of the difference; None where no resample has both values.
    probability : float
        How sure it is that the difference is not chance: 1 minus the two-sided bootstrap p-value; NaN without interval.
    detectable : float
        Smallest true difference that this set shows four times in five (power 0.8) at this confidence; NaN without
        interval.
    n_resamples : int
        Resamples in which both are defined.
    """

    ref: str
    base: float
    value: float
    delta: float
    interval: Interval | None
    probability: float
    detectable: float
    n_resamples: int


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise UsageError(f"{name} must be {expected}, got {value}")
