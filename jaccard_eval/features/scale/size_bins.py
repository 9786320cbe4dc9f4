"""Size bins: objects by the side of the square that has their area, in bins of equal counts or between given edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.protocol import AreaRange
from jaccard_eval.errors import UsageError


def equal_count_edges(sides: FloatArray, n_bins: int) -> tuple[float, ...]:
    """Return the edges between bins that hold as equal counts as ties allow.

    Parameters
    ----------
    sides : ndarray of float64, shape (n,)
        Sides of the objects in px.
    n_bins : int
        At least 1.

    Returns
    -------
    tuple of float
        At most ``n_bins - 1`` edges, ascending, none at the side of an object; objects of equal size stay in one bin,
        so that few distinct sizes make fewer bins.

    Raises
    ------
    UsageError
        When there is to be no bin.

    Examples
    --------
    >>> equal_count_edges(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    (2.5,)
    """
    if n_bins < 1:
        raise UsageError(f"size bins are counted from 1, got {n_bins}")
    ordered = np.sort(sides)
    cuts = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1  # places with a smaller object before them
    if not len(cuts):
        return ()
    wanted = np.arange(1, n_bins) * len(ordered) / n_bins
    nearest = np.unique([cuts[np.abs(cuts - place).argmin()] for place in wanted.tolist()]).astype(np.int64)
    return tuple(_between(float(ordered[cut - 1]), float(ordered[cut])) for cut in nearest)


def _between(low: float, high: float) -> float:
    """Return the middle of two sides, with as few decimals as keep it between them."""
    middle = (low + high) / 2
    short = (round(middle, decimals) for decimals in range(4))
    return next((edge for edge in short if low < edge < high), middle)


def size_bins(edges: Sequence[float]) -> tuple[AreaRange, ...]:
    """Return the bins between edges as area ranges: below the first edge, between, and from the last one on.

    A bin holds its lower edge and not its upper one, so that every object is in one bin.

    Parameters
    ----------
    edges : sequence of float
        Sides in px, above 0, ascending.

    Raises
    ------
    UsageError
        When the edges do not ascend from above 0.

    Examples
    --------
    >>> [one.name for one in size_bins([32, 96])]
    ['<32', '32-96', '>=96']
    """
    if not all(low < high for low, high in zip((0.0, *edges), (*edges, math.inf), strict=True)):
        raise UsageError(f"edges of size bins are sides in pixels that ascend from above 0, got {list(edges)}")
    if not edges:
        return (AreaRange(">0", 0.0, math.inf),)
    names = [f"<{edges[0]:g}"]
    names += [f"{low:g}-{high:g}" for low, high in itertools.pairwise(edges)]
    names += [f">={edges[-1]:g}"]
    lows = [0.0, *(edge**2 for edge in edges)]
    highs = [*(float(np.nextafter(edge**2, 0)) for edge in edges), math.inf]
    return tuple(map(AreaRange, names, lows, highs))
