"""The picture of two boxes, with the areas that they make labelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaccard_eval.features.scale.result import Box, OverlapResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 5.0  # inches
COLOURS = {"TP": "#009E73", "FP": "#E69F00", "FN": "#56B4E9"}  # apart for all kinds of sight (Okabe and Ito)
MARGIN = 0.12  # of the larger side, around both boxes


def draw(figure: Figure, result: OverlapResult) -> None:
    """Draw both boxes, the ground truth with a solid outline and the prediction with a dashed one."""
    figure.set_size_inches(SIDE, SIDE)
    axes = figure.subplots()
    left, top = max(result.pred[0], result.gt[0]), max(result.pred[1], result.gt[1])
    right, bottom = min(result.pred[2], result.gt[2]), min(result.pred[3], result.gt[3])
    common = (left, top, right, bottom) if left < right and top < bottom else None
    _fill(axes, result.gt, COLOURS["FN"])
    _fill(axes, result.pred, COLOURS["FP"])
    if common:
        _fill(axes, common, COLOURS["TP"])
    _outline(axes, result.gt, "-", f"ground truth: {result.gt_name}")
    _outline(axes, result.pred, "--", f"prediction: {result.pred_name}")
    parts = {"TP": (common, result.tp), "FP": (_rest(result.pred, common), result.fp)}
    parts["FN"] = (_rest(result.gt, common), result.fn)
    for name, (box, area) in parts.items():
        if box and area > 0:
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            axes.annotate(f"{name}\n{area:.6g} px²", middle, ha="center", va="center")
    _frame(axes, result)


def _fill(axes: Axes, box: Box, colour: str) -> None:
    axes.fill(*_ring(box), color=colour, linewidth=0)


def _outline(axes: Axes, box: Box, style: str, label: str) -> None:
    (line,) = axes.plot(*_ring(box), color="black", linestyle=style, linewidth=1.2, label=label)
    line.set_solid_joinstyle("miter")


def _ring(box: Box) -> tuple[list[float], list[float]]:
    left, top, right, bottom = box
    return [left, right, right, left, left], [top, top, bottom, bottom, top]


def _frame(axes: Axes, result: OverlapResult) -> None:
    lows, highs = zip(*((min(a, b), max(a, b)) for a, b in zip(result.pred, result.gt, strict=True)), strict=True)
    margin = MARGIN * max(highs[2] - lows[0], highs[3] - lows[1], 1e-9)
    axes.set(xlim=(lows[0] - margin, highs[2] + margin), ylim=(highs[3] + margin, lows[1] - margin), aspect="equal")
    axes.annotate("TN", (lows[0] - margin / 2, lows[1] - margin / 2), ha="center", va="center")
    axes.set(title=f"IoU {result.iou:.4f}, GIoU {result.giou:.4f}", xlabel="x, px", ylabel="y, px (down)")
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class may be called $x$


def _rest(box: Box, common: Box | None) -> Box:
    """Return the largest of the rectangles that an intersection leaves at the sides of a box."""
    if common is None:
        return box
    left, top, right, bottom = box
    strips = (
        (left, top, common[0], bottom),
        (common[2], top, right, bottom),
        (left, top, right, common[1]),
        (left, common[3], right, bottom),
    )
    return max(strips, key=lambda strip: (strip[2] - strip[0]) * (strip[3] - strip[1]))
