"""How a bootstrap is run, and what it gives: intervals, and differences between two models. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.document import DataTable
from jaccard_eval.options import Bootstrap

Interval = tuple[float, float]


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

    kind: ClassVar[str] = "bootstrap"

    @property
    def choice(self) -> str:
        """All that decides what is drawn, as a signature names it."""
        settings = self.settings
        drawn = (settings.n_resamples, settings.confidence_level, settings.rng, self.grouping)
        return f"bootstrap={','.join(str(one) for one in drawn if one is not None)}"

    def to_document(self) -> dict[str, Any]:
        """Return how it was done; the intervals stand beside the metrics."""
        return {
            "method": "percentile",
            "n_resamples": self.settings.n_resamples,
            "confidence_level": self.settings.confidence_level,
            "rng": self.settings.rng,
            "unit": self.unit,
            "n_units": self.n_units,
            **({} if self.grouping is None else {"group_by": self.settings.group_by, "grouping": self.grouping}),
        }

    def tables(self) -> dict[str, DataTable]:
        """Return none: a table of resamples would serve nobody."""
        return {}


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
