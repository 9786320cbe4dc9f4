"""The picture of an analysis of scale: what sizes lose, AP by edge tolerance, IoU left by pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.features.scale.identities import displaced_iou
from jaccard_eval.features.scale.result import ALL, LossRow, SensitivityResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 13.0, 5.2  # inches
PARTS = {  # part of 1: (label, colour); colours apart for all kinds of sight (Okabe and Ito)
    "ap": ("AP", "#0072B2"),
    "localisation": ("lost to localisation", "#E69F00"),
    "false_positives": ("lost to false positives", "#CC79A7"),
    "misses": ("lost to misses", "#999999"),
}
CURVE_POINTS = 200
LEGEND_COLUMNS = 3
SHADES = (0.35, 0.95)  # of the lines for the smallest and the largest distance


def draw(figure: Figure, result: SensitivityResult) -> None:
    """Draw three panels side by side, by size."""
    figure.set_size_inches(WIDTH, HEIGHT)
    left, middle, right = figure.subplots(1, 3)
    sizes = [row for row in result.losses if row.size != ALL]
    _draw_losses(left, sizes)
    _draw_tolerance(middle, sizes)
    _draw_displacement(right, result, sizes)


def _draw_losses(axes: Axes, sizes: list[LossRow]) -> None:
    base = np.zeros(len(sizes))
    for name, (label, colour) in PARTS.items():
        heights = np.nan_to_num([getattr(row, name) for row in sizes])
        axes.bar(range(len(sizes)), heights, bottom=base, color=colour, label=label, width=0.7)
        base = base + heights
    axes.set_title("What each size loses")
    _label_sizes(axes, sizes)


def _draw_tolerance(axes: Axes, sizes: list[LossRow]) -> None:
    places = range(len(sizes))
    axes.plot(places, [row.ap for row in sizes], "o-", color=PARTS["ap"][1], label="AP")
    distances = list(sizes[0].within)
    for k, shade in zip(distances, np.linspace(*SHADES, len(distances)), strict=True):
        axes.plot(
            places, [row.within[k] for row in sizes], "s-", color="#D55E00", alpha=shade, label=f"within {k:g} px"
        )
    sigmas = list(sizes[0].ceiling)
    for sigma, shade in zip(sigmas, np.linspace(*SHADES, len(sigmas)), strict=True):
        heights = [row.ceiling[sigma] for row in sizes]
        axes.plot(places, heights, "--", color="#444444", alpha=shade, label=f"ceiling at {sigma:g} px")
    axes.set_title("AP by edge tolerance, and ceiling of noisy annotations")
    _label_sizes(axes, sizes)


def _draw_displacement(axes: Axes, result: SensitivityResult, sizes: list[LossRow]) -> None:
    sides = [row.side for row in sizes if not math.isnan(row.side)]
    curve = np.geomspace(max(min(sides, default=1.0), 1.0) / 3, max(sides, default=100.0) * 3, CURVE_POINTS)
    distances = result.options.pixels
    for k, shade in zip(distances, np.linspace(*SHADES, len(distances)), strict=True):
        axes.plot(curve, displaced_iou(curve, curve, k, "erosion"), color="#009E73", alpha=shade, label=f"{k:g} px")
        means = {row.size: row.mean for row in result.tolerance if (row.displacement, row.pixels) == ("erosion", k)}
        axes.plot([row.side for row in sizes], [means[row.size] for row in sizes], "o", color="#009E73", alpha=shade)
    for iou in result.options.ious:
        axes.axhline(iou, color="#444444", linestyle=":", linewidth=0.8)
    axes.set(title="IoU left by errors of k px at every edge", xlabel="side, px", xscale="log", ylim=(0, 1.02))
    _add_legend(axes)


def _label_sizes(axes: Axes, sizes: list[LossRow]) -> None:
    axes.set_xticks(range(len(sizes)), [f"{row.size}\nn = {row.gt:,}" for row in sizes])
    axes.set(xlabel="size of objects: side, px", ylim=(0, 1.02))
    _add_legend(axes)


def _add_legend(axes: Axes) -> None:
    """Put the legend below the panel, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=LEGEND_COLUMNS, fontsize="small")
