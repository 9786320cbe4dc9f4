"""Whether numbers in fixed columns are what a format reads them as: lines alone would fit several formats.

A number by itself proves nothing; most lines of a file together do. A few may be damaged, which the reader reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

MOST = 0.9  # share of lines that have to fit
_SKEW = 0.25  # of the longer diagonal, by which the middles of both may differ in the outline of a word or an object

Row = Sequence[float]


def most(rows: Iterable[Row], is_plausible: Callable[[Row], bool]) -> bool:
    """Whether most rows are plausible, and there are some."""
    found = [is_plausible(row) for row in rows]
    return bool(found) and sum(found) >= MOST * len(found)


def is_quad(numbers: Row) -> bool:
    """Whether eight numbers are the corners of an object: convex, and nearly a parallelogram, as seen by a camera."""
    points = [*zip(numbers[::2], numbers[1::2], strict=True)]
    sides = [(x - points[at - 1][0], y - points[at - 1][1]) for at, (x, y) in enumerate(points)]
    turns = [sides[at - 1][0] * y - sides[at - 1][1] * x for at, (x, y) in enumerate(sides)]
    if not (min(turns) > 0 or max(turns) < 0):
        return False
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
    # Not squared, for which a damaged number is too large; a distance becomes infinite and fits nothing.
    apart = math.hypot(ax + cx - bx - dx, ay + cy - by - dy)
    return apart <= 2 * _SKEW * max(math.dist(points[0], points[2]), math.dist(points[1], points[3])) < math.inf


def read_rows(lines: Iterable[str], split: Callable[[str], list[str]]) -> list[Row]:
    """Return the numbers of the lines that have nothing else."""
    rows = []
    for line in lines:
        try:
            rows.append([*map(float, split(line))])
        except ValueError:
            continue
    return [row for row in rows if row]
