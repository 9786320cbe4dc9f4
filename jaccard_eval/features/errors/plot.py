"""The picture of the errors of an evaluation: what each costs, confidence curves, calibration, confusion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.features.errors.result import BACKGROUND, ClassErrors, ConfusionMatrix, ErrorReport
from jaccard_eval.metrics.calibration import Calibration
from jaccard_eval.report.numbers import metric_text, threshold_text
from jaccard_eval.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 11.0, 8.5  # inches
CURVES = {"precision": "#0072B2", "recall": "#E69F00", "f1": "#009E73"}  # colours of Okabe and Ito
COLOUR, FAINT = "#0072B2", "#999999"
FEW_NAMES = 30  # up to this many classes, their names stand at the matrix
FEW_NUMBERS = 12  # and the counts in it
MAX_NAME = 20  # characters of a name at the matrix
MIN_GAIN, MARGIN = 0.01, 1.05  # of the axis of gains: its end at least, and the room beyond the longest bar
DARK = 0.5  # share of a row from which a cell is dark, and its number white


def draw_errors(figure: Figure, errors: ErrorReport) -> None:
    """Draw four panels, of all classes pooled but for the matrix."""
    figure.set_size_inches(WIDTH, HEIGHT)
    (types, confidence), (calibration, confusion) = figure.subplots(2, 2)
    _draw_types(types, errors)
    _draw_confidence(confidence, errors.pooled)
    _draw_calibration(calibration, errors.pooled.calibration)
    _draw_confusion(confusion, errors.confusion)


def _draw_types(axes: Axes, errors: ErrorReport) -> None:
    names = [f"{one.name} ({one.count:,})" for one in errors.types]
    gains = np.nan_to_num([one.gain for one in errors.types])
    axes.barh(range(len(names)), gains, color=COLOUR)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(min(0.0, gains.min()) * MARGIN, max(MIN_GAIN, gains.max()) * MARGIN)
    axes.set(title=f"AP given back, of {metric_text(errors.ap)} at IoU {threshold_text(errors.iou)}")


def _draw_confidence(axes: Axes, pooled: ClassErrors) -> None:
    for name, colour in CURVES.items():
        axes.step(pooled.curve.score, getattr(pooled.curve, name), where="pre", color=colour, label=name.title())
    if not math.isnan(pooled.best_score):
        axes.axvline(pooled.best_score, color=FAINT, linestyle=":", label=f"best F1 at {pooled.best_score:.4g}")
    axes.set(title="Of detections with at least a score", xlabel="score", xlim=(0, 1), ylim=(0, 1.02))
    axes.legend()


def _draw_calibration(axes: Axes, one: Calibration) -> None:
    n = len(one.count)
    axes.plot([0, 1], [0, 1], color=FAINT, linestyle=":")
    axes.bar((np.arange(n) + 0.5) / n, np.nan_to_num(one.precision), width=0.9 / n, color=COLOUR)
    axes.plot(one.score, one.precision, "o", color=CURVES["recall"])
    title = f"Calibration: {one.reason}" if one.reason else f"Calibration: ECE {metric_text(one.ece)}"
    axes.set(title=title, xlabel="score", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))


def _draw_confusion(axes: Axes, matrix: ConfusionMatrix) -> None:
    counts = matrix.counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    names = [_short(name) for name in (*matrix.names, BACKGROUND)]
    if len(matrix.names) <= FEW_NAMES:
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
    if len(matrix.names) <= FEW_NUMBERS:
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if shares[row, column] > DARK else "black"
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize="small")
    at = f"score >= {threshold_text(matrix.score)}, IoU >= {threshold_text(matrix.iou)}"
    axes.set(title=f"Confusion at {at}", xlabel="predictions", ylabel="ground truth")


def _short(name: str) -> str:
    """Return a name as text and nothing else: a dollar sign starts a formula in matplotlib."""
    text = printable(name)
    return (text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…").replace("$", r"\$")
