"""Boxes as a file has them, rows of their keys, and what is wrong with their numbers: overflows, sizes and areas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import (
    MAX_AREA,
    MAX_COORDINATE,
    MAX_SCORE,
    BoolArray,
    FloatArray,
    RowArray,
    Shapes,
    find_too_large,
)
from jaccard_eval.data.dataset import IntegerKeys, Key
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import ON, Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import distinct, starts_of_runs
from jaccard_eval.options import ReadOptions
from jaccard_eval.text import pluralise, quoted_value

_DENSE_SPAN = 4  # integer keys are indexed by a table when their span is at most this many times their count
_ROUNDED, _MOST_BEYOND = 1.0, 0.05  # px by which a box may leave its image, and the share that may leave it further
MOST_INVERTED = 0.1  # share of boxes of negative size from which the order of their numbers is in doubt


@dataclass(frozen=True, slots=True, eq=False)
class CodedKeys:
    """Keys that repeat, as rows of a list of distinct ones.

    Parameters
    ----------
    distinct : sequence of int or str
        In any order.
    codes : ndarray of int64, shape (n,)
        Row of each key in `distinct`.
    """

    distinct: Sequence[Key]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Key:
        return self.distinct[int(self.codes[row])]

    def __iter__(self) -> Iterator[Key]:
        return map(self.distinct.__getitem__, self.codes.tolist())

    def take(self, rows: npt.NDArray[np.int64] | slice) -> CodedKeys:
        """Return the keys of some rows: the distinct ones that these have, in order of appearance."""
        codes = self.codes[rows]
        first = np.full(len(self.distinct), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # backwards: the first row is written last and stays
        used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        new = np.zeros(len(self.distinct), dtype=np.int64)
        new[used] = np.arange(len(used))
        return CodedKeys([self.distinct[row] for row in used.tolist()], new[codes])


Keys = npt.NDArray[np.int64] | Sequence[Key] | CodedKeys


def index_keys(box_keys: Keys, given: Sequence[Key]) -> tuple[Sequence[Key], RowArray]:
    """Sort the given, distinct keys and return them with each box's row among them, -1 where its key is not given."""
    if isinstance(box_keys, CodedKeys):
        in_order, rows = index_keys(box_keys.distinct, given)
        return in_order, rows[box_keys.codes]
    if isinstance(box_keys, np.ndarray) and (values := as_integers(given)) is not None:
        universe = IntegerKeys(np.sort(values))
        return universe, index_integers(box_keys, universe.values)
    distinct = set(given)
    texts = [key for key in distinct if isinstance(key, str)]
    # The order of `key_order`, in a third of the time: integers do not compare with texts, and come first.
    integers = [key for key in distinct if not isinstance(key, str)]
    order: list[Key] = [*sorted(integers), *sorted(texts)]
    at = {key: row for row, key in enumerate(order)}
    keys = box_keys.tolist() if isinstance(box_keys, np.ndarray) else box_keys
    return order, np.fromiter((at.get(key, -1) for key in keys), dtype=np.int32, count=len(keys))


def as_integers(keys: Sequence[Key]) -> npt.NDArray[np.int64] | None:
    """Return keys as an array, (n,); None where any of them is a text."""
    if isinstance(keys, IntegerKeys):
        return keys.values
    return np.array(keys, dtype=np.int64) if {int}.issuperset(map(type, keys)) else None


def count_distinct(keys: Sequence[Key]) -> int:
    """Count distinct keys."""
    return int(starts_of_runs(np.sort(keys.values)).sum()) if isinstance(keys, IntegerKeys) else len(set(keys))


def index_integers(keys: npt.NDArray[np.int64], universe: npt.NDArray[np.int64]) -> RowArray:
    """Return the row of each key in a universe, which ascends; -1 where it is not there."""
    if not len(universe):
        return np.full(len(keys), -1, dtype=np.int32)
    low, high = int(universe[0]), int(universe[-1])
    if high - low > _DENSE_SPAN * (len(universe) + len(keys)) + 1000:
        rows = np.searchsorted(universe, keys)
        # A key above all others has no place in the list; any row does, for the next line compares.
        rows[rows == len(universe)] = 0
        return np.where(universe[rows] == keys, rows, -1).astype(np.int32)
    # Ids of images are mostly dense, and looking them up is then six times as fast. The last cell stays -1, and
    # is used for all keys out of range.
    table = np.full(high - low + 2, -1, dtype=np.int32)
    table[universe - low] = np.arange(len(universe), dtype=np.int32)
    inside = (keys >= low) & (keys <= high)
    return table[np.where(inside, keys - low, high - low + 1)]


def distinct_keys(keys: Keys, rows: npt.NDArray[np.int64]) -> Sequence[Key]:
    """Distinct keys of the boxes in `rows`, in any order."""
    if isinstance(keys, CodedKeys):
        return [keys.distinct[code] for code in np.unique(keys.codes[rows])]
    if not isinstance(keys, np.ndarray):
        return list({keys[row] for row in rows})
    chosen = keys[rows]
    low, high = int(chosen.min()), int(chosen.max())
    if high - low > _DENSE_SPAN * len(chosen) + 1000:
        return IntegerKeys(distinct(chosen))
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[chosen - low] = True
    return IntegerKeys(np.flatnonzero(present) + low)


@dataclass(slots=True, kw_only=True)
class RawBoxes:
    """Boxes as the file has them.

    Parameters
    ----------
    image, label : int64 array (n,) or sequence of keys
        File keys of the image and class of each box.
    coords : float64 array (n, 4)
        In `encoding` ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx") and `units` ("px", "norm").
    score, area : float64 array (n,), optional
        NaN in `area` means: not given.
    crowd, difficult, group_of, ignore : bool array (n,), optional
    place : callable
        From a box's row to its place in the input.
    units_guessed : bool
        Whether `units` rests on the values alone; a format that prescribes its units does not guess.
    negative_size : Severity, optional
        Whether a negative width or height is an error or, as in COCO JSON, a warning; by how many boxes have one if
        the format does not decide.
    shapes : Shapes, optional
        What the boxes are the bounds of, n of them, in the same units.
    of_box : bool array (n,), optional
        Which masks are the rectangles of their boxes, as the file has none.
    drawn : bool
        Whether the format alone defines what the numbers are, as drawn by hand: a negative size is then a box that was
        drawn upwards or to the left.
    no_score : tuple of str, optional
        Why there is no score and what to do, where the format knows more than that there is none.
    of_boxes : mapping of str to float64 array (n,)
        Quantities that subsets of protocols limit, by their names; NaN where a box has none.
    """

    image: Keys
    label: Keys
    coords: FloatArray
    encoding: str
    units: str
    place: Callable[[int], Where]
    score: FloatArray | None = None
    area: FloatArray | None = None
    crowd: BoolArray | None = None
    difficult: BoolArray | None = None
    group_of: BoolArray | None = None
    ignore: BoolArray | None = None
    units_guessed: bool = False
    negative_size: Severity | None = None
    shapes: Shapes | None = None
    of_box: BoolArray | None = None
    drawn: bool = False
    no_score: tuple[str, Fix | str] | None = None
    of_boxes: Mapping[str, FloatArray] = field(default_factory=dict)

    def take(self, rows: npt.NDArray[np.int64]) -> RawBoxes:
        """Return some of the boxes."""
        place, chosen = self.place, rows.tolist()
        columns = ("score", "area", "crowd", "difficult", "group_of", "ignore", "of_box")
        given = {name: column[rows] for name in columns if (column := getattr(self, name)) is not None}
        shapes = None if self.shapes is None else self.shapes.take(rows)
        of_boxes = {name: values[rows] for name, values in self.of_boxes.items()}
        keys = [
            keys[rows] if isinstance(keys, np.ndarray) else keys.take(rows) if isinstance(keys, CodedKeys)
            else [keys[row] for row in chosen]
            for keys in (self.image, self.label)
        ]  # fmt: skip
        image, label = keys
        return replace(
            self, image=image, label=label, coords=self.coords[rows], shapes=shapes, of_boxes=of_boxes,
            place=lambda row: place(chosen[row]), **given,
        )  # fmt: skip


def inverted(xywh: FloatArray) -> BoolArray:
    """Return which boxes (n, 4) have a negative width or height."""
    return np.logical_or(xywh[:, 2] < 0, xywh[:, 3] < 0)


def are_corners_alone(coords: FloatArray, sizes: FloatArray) -> bool:
    """Whether corners (n, 4), some in another order, are not sizes: read so, boxes leave their images, (n, 2).

    What the size of an image is not known of leaves that open.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        far = coords[:, :2] + coords[:, 2:] > sizes + _ROUNDED
        near = coords[:, :2] - coords[:, 2:] / 2 < -_ROUNDED
    n = max(len(coords), 1)
    return bool(far.any(axis=1).sum() > _MOST_BEYOND * n and near.any(axis=1).sum() > _MOST_BEYOND * n)


def check_numbers(raw: RawBoxes, findings: FindingLog) -> None:
    """Report coordinates, scores and areas that are not finite, and scores and areas that overflow in a sum."""
    # Which coordinates overflow depends on the encoding: that is reported when they are converted.
    columns = [("bbox", raw.coords, float(np.finfo(np.float64).max)), ("score", raw.score, MAX_SCORE)]
    if raw.area is not None:
        # NaN means a missing area, which is not checked.
        given = np.nan_to_num(raw.area, nan=0.0, posinf=np.inf, neginf=-np.inf)
        columns.append(("area", given, MAX_AREA))
    for name, column, most in columns:
        if column is None:
            continue
        # Two passes without a temporary array, as nearly every file is sound; NaN compares as false in either.
        if not len(column) or (column.max() <= most and column.min() >= -most):
            continue
        good = np.abs(column) <= most

        def describe(row: int, name: str = name, column: FloatArray = column, most: float = most) -> tuple[Where, str]:
            why = f"numbers above {most:g} overflow" if np.isfinite(column[row]).all() else "numbers must be finite"
            where = replace(raw.place(row), field=name)
            return where, f"is {quoted_value(np.asarray(column[row]).tolist())}; {why}"

        rows = np.flatnonzero(~(good.all(axis=1) if good.ndim == 2 else good))
        fix = "Fix the exporter or drop the record."
        findings.add_rows(Severity.ERROR, "number-not-finite", rows, describe, fix=fix)


def check_sizes(raw: RawBoxes, xywh: FloatArray, options: ReadOptions, findings: FindingLog) -> None:
    """Report boxes of negative or zero size, and those with numbers that overflow."""

    def describe_numbers(row: int) -> tuple[Where, str]:
        numbers = ", ".join(f"{number:g}" for number in xywh[row])
        return replace(raw.place(row), field="bbox"), f"is too large: left, top, width and height are {numbers}"

    fix = f"Numbers above {MAX_COORDINATE:g} overflow when areas are computed; fix the exporter or drop the record."
    findings.add_rows(Severity.ERROR, "box-too-large", find_too_large(xywh), describe_numbers, fix=fix)
    width, height = xywh[:, 2], xywh[:, 3]
    with np.errstate(over="ignore"):
        product = width * height
    # Sides so small that their product is zero are empty too: such a box has no area to overlap with.
    if len(xywh) == 0 or (width.min() > 0 and height.min() > 0 and product.min() > 0):
        return

    def describe(row: int) -> tuple[Where, str]:
        return raw.place(row), f"bbox has width {width[row]:g} and height {height[row]:g}"

    def summary(count: int, what: str) -> str:
        boxes = pluralise(count, "degenerate box has", "degenerate boxes have")
        return f"{boxes} {what} width or height and cannot match; kept, as in pycocotools"

    negative = np.flatnonzero(inverted(xywh))
    empty = np.flatnonzero((product == 0) & (width >= 0) & (height >= 0))
    words, asked = "Check the order of the coordinates ({box}).", dict[str, Value]()
    # Detectors emit a few such boxes, which match nothing in pycocotools; of many the four numbers are something else.
    by_share = Severity.ERROR if len(negative) > MOST_INVERTED * len(xywh) else Severity.WARNING
    severity = raw.negative_size or by_share
    told: str | Callable[[int], str] = ""
    if options.drop_inverted:
        # Many may be a wrong reading, which the option must not hide.
        severity = Severity.NOTE if by_share is Severity.WARNING else Severity.WARNING
        boxes = pluralise(len(negative), "box has", "boxes have")
        told = f"{boxes} a negative width or height: ignored, of {len(xywh):,}"
    elif severity is Severity.WARNING:
        told = partial(summary, what="a negative")
    if not options.drop_inverted and by_share is Severity.WARNING:
        words, asked = f"{words} Rerun with {{drop_inverted}} to ignore them.", {"drop_inverted": ON}
    encodings = ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx")
    order = Fix.of_side(options.role, words, box=encodings, **asked)
    findings.add_rows(severity, "box-negative", negative, describe, fix=order, summary=told)
    if raw.shapes is None:  # of shapes, what has no area is reported by their own rules
        findings.add_rows(Severity.WARNING, "box-empty", empty, describe, summary=partial(summary, what="zero"))


def check_areas(area: FloatArray, place: Callable[[int], Where], findings: FindingLog) -> None:
    """Warn about negative areas: they lie in no size range, so that their boxes are ignored as in pycocotools."""
    negative = np.flatnonzero(area < 0)
    findings.add_rows(
        Severity.WARNING,
        "area-negative",
        negative,
        lambda row: (replace(place(row), field="area"), f"is {area[row]:g}"),
        summary=lambda n: (
            f"area is negative in {pluralise(n, 'record')}: no size range holds such boxes, so they are ignored"
        ),
        fix="Write the area in square pixels, or remove it.",
    )
