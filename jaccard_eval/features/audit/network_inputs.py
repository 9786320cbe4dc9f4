"""Guess what images were resized to before prediction, from where boxes end and from the sizes of the images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.resizing import Resizing

COMMON_SIDES = (320, 416, 512, 608, 640, 800, 1024, 1280)  # px, of the inputs of well-known detectors
FARTHEST = 1e7  # px; what lies beyond is damage, and no trace of a network
STRIDE = 32  # px; the sides of most inputs are multiples of it
BULK = 0.99  # share of the boxes that end before a side; a few are not clipped to their image
REACH = 0.9, 2.0  # times where boxes end, between which a common side may lie
# Factors that images are scaled by as a whole, and how far they may be from the ratio of where both sides' boxes end.
# As numerator and denominator.
FACTORS = (
    *((1, 8), (1, 5), (1, 4), (3, 10), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (7, 10), (3, 4), (4, 5), (9, 10)),
    *((5, 4), (4, 3), (3, 2), (2, 1), (5, 2), (3, 1), (4, 1), (5, 1), (8, 1)),
)
NEAR_RATIO = 1.5


def plausible_resizings(gt: FloatArray, pred: FloatArray, *, sized: bool) -> Iterator[Resizing]:
    """Yield what images may have been resized to, the simplest first; boxes (n, 4) are x, y, w, h.

    Where the sizes of the images are not known, only factors can be undone.
    """
    if not len(gt) or not len(pred) or max(np.abs(gt).max(), np.abs(pred).max()) > FARTHEST:
        return
    gt_ends, pred_ends = (np.quantile(xywh[:, :2] + xywh[:, 2:], BULK, axis=0) for xywh in (gt, pred))
    if not (gt_ends > 0).all() or not (pred_ends > 0).all() or not np.isfinite(pred_ends).all():
        return
    from fractions import Fraction  # slow to load, and seldom needed

    ratio = float(np.median(pred_ends / gt_ends))
    for numerator, denominator in FACTORS:
        factor = Fraction(numerator, denominator)
        if 1 / NEAR_RATIO <= ratio / factor <= NEAR_RATIO:
            yield Resizing("scale", factor, factor)
    if not sized:
        return
    # Padding is alike at both ends: what boxes leave free before them, they leave free behind them.
    starts = np.clip(np.quantile(pred[:, :2], 1 - BULK, axis=0), 0, None)
    across, down = (_multiples(end) | _multiples(end + start) for start, end in zip(starts, pred_ends, strict=True))
    most = float(pred_ends.max())
    squares = {side for side in COMMON_SIDES if REACH[0] * most <= side <= REACH[1] * most} | across | down
    shapes = [(side, side) for side in sorted(squares)]
    shapes += [(x, y) for x in sorted(across) for y in sorted(down) if x != y]
    for kind in ("letterbox", "stretch"):
        yield from (Resizing(kind, Fraction(x), Fraction(y)) for x, y in shapes)


def _multiples(end: float) -> set[int]:
    """Return the multiples of the stride next to where boxes end, below and above: unclipped boxes end behind it."""
    below = int(end // STRIDE) * STRIDE
    return {max(below, STRIDE), below + STRIDE}
