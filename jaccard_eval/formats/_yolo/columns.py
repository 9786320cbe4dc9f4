"""The columns of text labels: what stands behind the class, found over the whole set."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.encodings import (
    CLEAR,
    HABIT,
    IMPOSSIBLE,
    USUAL,
    Frame,
    distinct_rows,
    fit,
    is_mostly_normalised,
    spelled,
)
from jaccard_eval.formats._yolo.lines import IntArray, LabelLines
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.text import did_you_mean, pluralise, quoted_value

POSE = "pose"
MIN_POINTS = 6  # numbers of the smallest polygon, a triangle


@dataclass(frozen=True, slots=True)
class Columns:
    """The order of what follows the class: a shape, with "conf", "track" and "difficult" around it.

    The shape is one of "box", "polygon", "obb", "xywhr" and "pose". A pose is a box and then its points: how many, and
    two or three numbers for each, the third its visibility.
    """

    order: tuple[str, ...]
    points: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The name that ``columns=`` takes."""
        return "-".join(f"pose-{self.points[0]}x{self.points[1]}" if part == POSE else part for part in self.order)

    @property
    def has_box(self) -> bool:
        """Whether lines have a box of their own, and not only the one around their points."""
        return self.shape in ("box", POSE)

    @property
    def shape(self) -> str:
        """One of "box", "polygon", "obb", "xywhr" and "pose"."""
        return next(part for part in self.order if part in _SHAPES)

    @property
    def head(self) -> int:
        """How many numbers stand before the shape."""
        return self.order.index(self.shape)

    @property
    def tail(self) -> int:
        """How many numbers stand behind the shape."""
        return len(self.order) - 1 - self.head

    @property
    def box_width(self) -> int:
        """How many numbers a line has behind the class when its shape is a box."""
        return len(self.order) + 3

    def accepts(self, numbers: IntArray) -> BoolArray:
        """Return whether so many numbers fit; a track id after a box may be missing, as trackers omit it."""
        inner = numbers - self.head - self.tail
        fits: BoolArray
        if self.shape == POSE:
            fits = inner == 4 + self.points[0] * self.points[1]
        elif self.shape == "box":
            fits = (inner == 4) | ((inner == 3) & (self.order[-1] == "track"))
        elif self.shape in _ORIENTED_NUMBERS:
            fits = inner == _ORIENTED_NUMBERS[self.shape]
        else:
            fits = (inner >= MIN_POINTS) & (inner % 2 == 0)
        return fits

    def score_offset(self, numbers: IntArray) -> IntArray | None:
        """Where the score stands among the numbers of each line; None without scores."""
        if "conf" not in self.order:
            return None
        if self.order[0] == "conf":
            return np.zeros_like(numbers)
        behind_points = numbers - self.tail
        # Lines that are longer than those of boxes are polygons among them; a track id may be missing, the score not.
        return np.where(numbers > self.box_width, behind_points, 4) if self.shape == "box" else behind_points

    @property
    def sibling(self) -> Columns | None:
        """The layout that differs in the shape only and may occur in the same set: polygons among boxes."""
        if self.shape not in _SIBLINGS or self.order[0] == "conf" or "track" in self.order:
            return None
        return COLUMNS["-".join(_SIBLINGS.get(part, part) for part in self.order)]

    def describe(self) -> str:
        """Return what a line looks like, for messages."""
        # What the four numbers are is found out later, and a guess in a message reads like an answer.
        return f"{self.box_width + 1} columns ({self.fields('box')})" if self.shape == "box" else self.fields()

    def fields(self, box: str = "x y w h") -> str:
        """Return the names of all fields, with those of a box as given."""
        names = _SHAPES | {"box": box}
        return " ".join(("class", *(names.get(part, part) for part in self.order)))


# Ultralytics and darknet write the confidence of fractions last; in log-odds, as in `encodings`.
_SECOND_HABIT = -2.0
_SIBLINGS = {"box": "polygon", "polygon": "box"}
_SHAPES = {
    "box": "x y w h",
    "polygon": "x1 y1 x2 y2 x3 y3 ...",
    "obb": "x1 y1 x2 y2 x3 y3 x4 y4",
    "xywhr": "cx cy w h angle",
    "pose": "cx cy w h and points",
}
_ORIENTED_NUMBERS = {"obb": 8, "xywhr": 5}  # corners; centre, sizes and angle
_POSE_NAME = re.compile(r"pose-([1-9][0-9]{0,3})x([23])(-conf)?(-track)?")
_NEAR = 0.75  # of width and height, from the centre of the box: how far nearly all points of a pose lie at most
_INSIDE, _ALL_INSIDE = 0.52, 0.98  # the same where nothing names poses, and the share of points that must lie so
_LEAST_POSE = 8  # numbers of the smallest pose that is looked for: a box and two points
_MOST_OUTLINES = 200  # that are looked at for crossings
_LEAST_LINES = 5  # that show whether a column has few values or many
_MANY_CLASSES = 100  # of which no set of a few lines has one for most of them

COLUMNS = {
    columns.name: columns
    for columns in (
        Columns(("box",)),
        Columns(("box", "conf")),
        Columns(("conf", "box")),
        Columns(("box", "track")),
        Columns(("box", "conf", "track")),
        Columns(("polygon",)),
        Columns(("polygon", "conf")),
        Columns(("polygon", "conf", "track")),
        Columns(("obb",)),
        Columns(("obb", "conf")),
        Columns(("obb", "conf", "track")),
        Columns(("xywhr",)),
        Columns(("xywhr", "conf")),
        Columns(("difficult", "xywhr")),
        Columns(("difficult", "xywhr", "conf")),
    )
}


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A layout; what was assumed, where the data does not prove it; whether that can be wrong, and what settles it."""

    columns: Columns
    assumption: str = ""
    is_undecided: bool = False
    fix: Fix | str = ""
    encoding: str = ""  # where it was settled with the columns


def named_columns(name: str) -> Columns:
    """Return the layout of a name."""
    pose = _POSE_NAME.fullmatch(name)
    if pose is not None:
        ends = tuple(end.removeprefix("-") for end in pose.groups()[2:] if end)
        return Columns((POSE, *ends), (int(pose[1]), int(pose[2])))
    if name not in COLUMNS:
        if "=" in name:
            raise UsageError(f"column names ({quoted_value(name)}) work only for tables; text files have no header")
        known = ", ".join((*COLUMNS, "pose-17x3", "pose-17x3-conf"))
        raise UsageError(
            f"unknown column layout {quoted_value(name)}; choose from {known}.{did_you_mean(name, COLUMNS)}"
        )
    return COLUMNS[name]


def pose_columns(numbers: IntArray, kpt_shape: tuple[int, int], role: str) -> Columns:
    """Return the layout of poses whose points are known; predictions end with a score, and perhaps a track id."""
    spare = int(np.bincount(numbers).argmax()) - 4 - kpt_shape[0] * kpt_shape[1] if len(numbers) else 0
    return Columns((POSE, *("conf", "track")[: max(spare, 0)]) if role == "pred" else (POSE,), kpt_shape)


def choose_oriented(numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return the layout of lines that are known to be oriented boxes, by how many numbers most have."""
    n = int(np.bincount(numbers).argmax()) if len(numbers) else 0
    scored = role == "pred"
    named = {8 + scored: "obb", 5 + scored: "xywhr"}.get(n)
    if scored and n == _ORIENTED_NUMBERS["obb"] + 2:
        return ColumnChoice(COLUMNS["obb-conf-track"])
    return None if named is None else ColumnChoice(COLUMNS[f"{named}-conf" if scored else named])


def choose_pose(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return the layout of lines that are known to be poses, by how many numbers most have and where points lie."""
    fitting = _fitting_poses(lines, numbers, role)
    if not fitting:
        return None
    best = max(fitting.values())
    near = [name for name, inside in fitting.items() if inside > best - 0.2]
    # Of predictions a score is expected; without it there is nothing to rank.
    near = [name for name in near if name.endswith("-conf")] or near if role == "pred" else near
    if len(near) == 1:
        fix = Fix.of_side(role, "Settle it with {columns}.", columns=None)
        return ColumnChoice(named_columns(near[0]), f"read as {near[0]}", fix=fix)
    return _undecided(near, role, f"{int(np.bincount(numbers).argmax()) + 1} columns can be {' or '.join(near)}")


def _undecided(names: Sequence[str], role: str, text: str) -> ColumnChoice:
    """Return what stops the run and lists the layouts that the numbers leave, the first of them for now."""
    fix = Fix.of_side(role, "Pass {columns}.", columns=tuple(names))
    return ColumnChoice(named_columns(names[0]), text, is_undecided=True, fix=fix)


def _fitting_poses(
    lines: LabelLines, numbers: IntArray, role: str, *, near: float = _NEAR, least: float = 0.5
) -> dict[str, float]:
    """Return the layouts of poses that most lines fit, with the share of points that lie by their box.

    By it: as far from its centre as `near` of its sides; at `least` that share of points.
    """
    n = int(np.bincount(numbers).argmax()) if len(numbers) else 0
    block, _ = _block(lines, numbers, n)
    fitting: dict[str, float] = {}
    for width in (3, 2):
        for ends in ((), ("conf",), ("conf", "track")) if role == "pred" else ((),):
            n_points, rest = divmod(n - 4 - len(ends), width)
            if rest or n_points < 1 or not len(block):
                continue
            points = block[:, 4 : n - len(ends)].reshape(len(block), n_points, width)
            # A track id is a whole number, the visibility of an annotator too; a network is sure or less so.
            thirds = points[:, :, 2:]
            sound = bool((np.isin(thirds, (0, 1, 2)) if role == "gt" else (thirds >= 0) & (thirds <= 1)).all())
            if "track" in ends:
                sound = sound and _are_track_ids(block[:, -1])
            if ends and _count_outside(block[:, n - len(ends)]):
                continue
            near_box = np.abs(points[:, :, :2] - block[:, None, :2]) <= near * block[:, None, 2:4] + 1e-9
            placed = np.any(points[:, :, :2] != 0, axis=2)
            inside = int(np.count_nonzero(np.all(near_box, axis=2) & placed)) / max(int(np.count_nonzero(placed)), 1)
            if sound and inside >= least:
                fitting[Columns((POSE, *ends), (n_points, width)).name] = inside
    return fitting


def uses_names(lines: LabelLines) -> bool:
    """Whether most lines start with a word: classes are given by name, not by index."""
    return int(np.isnan(lines.values[lines.first]).sum()) * 2 > len(lines)


def choose_columns(
    lines: LabelLines, numbers: IntArray, sizes: FloatArray, *, by_name: bool, options: ReadOptions
) -> ColumnChoice:
    """Return the layout that the whole set supports; `numbers` (n_lines,) are those behind the class of each line.

    Five columns are a box. Six have the confidence last or second: whichever makes better boxes of the other four, in
    the encoding that suits them best; whole numbers above 1 behind a normalised box are track ids. Seven are box,
    confidence and track id when the sixth lies in 0..1 and the seventh is a whole number throughout, else a triangle.
    Longer lines are polygons, of predictions with a confidence if the number of columns is even. (Columns count the
    class.) `sizes` (n_lines, 2) are those of the image of each line, NaN where unknown.
    """
    if by_name:
        return _choose_behind_names(lines, numbers, sizes, options)
    if int((numbers >= MIN_POINTS).sum()) * 2 > len(numbers):
        return _doubted_points(lines, numbers, options.role) or _choose_points(lines, numbers, options.role)
    if _ends_with_class(lines, numbers):
        text = "column 1 looks like a coordinate, and column 5 like the class"
        words = "Write the class first, or pass {columns} if column 1 is the class."
        fix = Fix.of_side(options.role, words, columns="box")
        return ColumnChoice(COLUMNS["box"], text, is_undecided=True, fix=fix)
    six, rows = _block(lines, numbers, 5)
    seven, _ = _block(lines, numbers, 6)
    if len(six) >= int((numbers == 4).sum()) and len(six):
        choice = _choose_six(six, sizes[rows], options)
        continued = choice.columns.name == "box-conf" and _has_score_and_track(seven)
        return ColumnChoice(COLUMNS["box-conf-track"]) if continued else choice
    return ColumnChoice(COLUMNS["box-track"] if _are_track_ids(six[:, 4]) else COLUMNS["box"])


def _choose_behind_names(lines: LabelLines, numbers: IntArray, sizes: FloatArray, options: ReadOptions) -> ColumnChoice:
    """Choose box or box and confidence: a number that is not a confidence belongs to the name, as in "Boeing 737"."""
    counts = np.bincount(np.minimum(numbers, 5), minlength=6)
    if counts[5] <= counts[4]:
        return ColumnChoice(COLUMNS["box"])
    six, rows = _block(lines, numbers, 5, or_more=True)
    if min(_count_outside(six[:, 0]), _count_outside(six[:, 4])) * 2 > len(six):
        return ColumnChoice(COLUMNS["box"])
    choice = _choose_six(six, sizes[rows], options)
    return ColumnChoice(COLUMNS["box"]) if "track" in choice.columns.order else choice


def _choose_six(six: FloatArray, sizes: FloatArray, options: ReadOptions) -> ColumnChoice:
    """Choose between the confidence last, the confidence second, and a track id last."""
    second, last = six[:, 0], six[:, 4]
    outside_second, outside_last = _count_outside(second), _count_outside(last)
    units = options.units or ("norm" if is_mostly_normalised(six[:, :4]) else "px")
    if units == "norm":
        if _are_track_ids(last):
            assumption = "column 6 holds whole numbers above 1: read as track ids, not confidences"
            return ColumnChoice(COLUMNS["box-track"], assumption)
        if outside_last * 2 > len(six):
            return _doubted_angle(last, options.role) or ColumnChoice(COLUMNS["box-conf"])
    elif min(outside_second, outside_last) * 2 > len(six):
        if _are_track_ids(last):
            assumption = "column 2 is not a confidence in 0..1; the whole numbers in column 6 are read as track ids"
            return ColumnChoice(COLUMNS["box-track"], assumption)
        assumption = "neither column 2 nor column 6 is a confidence in 0..1"
        return _doubted_angle(last, options.role) or ColumnChoice(COLUMNS["box-conf"], assumption, is_undecided=True)
    return _place_score(six, Frame.of(six, units, sizes), options)


def _place_score(six: FloatArray, frame: Frame, options: ReadOptions) -> ColumnChoice:
    """Choose the place of the confidence together with the encoding of the box that is left.

    One without the other goes wrong: read as centre-size, corners leave their image wherever the confidence stands.
    """
    rows = distinct_rows(six, frame)
    seen, frame = six[rows], frame.take(rows)
    fits: dict[tuple[str, str], float] = {}
    # A column that alone is the same in all rows is a score that was filled in: boxes of one height have one width.
    constant = np.flatnonzero((seen == seen[0]).all(axis=0)).tolist() if len(seen) > 1 else []
    for name, prior in (("box-conf", 0.0), ("conf-box", _SECOND_HABIT if frame.units == "norm" else 0.0)):
        head = COLUMNS[name].head
        score = seen[:, 0 if head else 4]
        habit = prior + (2 * CLEAR if constant == [0 if head else 4] else 0.0)
        for encoding in USUAL if options.box is None else (options.box,):
            likelihood = fit(seen[:, head : head + 4], encoding, frame, (score >= 0) & (score <= 1))
            fits[name, encoding] = likelihood + habit + HABIT[frame.units].get(encoding, 0.0)
    ranked = sorted(fits, key=lambda reading: -fits[reading])
    best = ranked[0]
    near = [reading for reading in ranked if fits[best] - fits[reading] < CLEAR]
    columns = COLUMNS[best[0]]
    if all(name == best[0] for name, _ in near):
        return ColumnChoice(columns)
    # The boxes are broken under any reading: the checks of each line show how.
    if fits[best] <= IMPOSSIBLE:
        return ColumnChoice(COLUMNS["box-conf"])
    usual = ("box-conf", options.box or "cxcywh")
    if frame.units == "norm" and usual in near:
        # Nearly all files of fractions are written so: to ask in every small set would help nobody.
        fields = {reading: COLUMNS[reading[0]].fields(spelled(reading[1])) for reading in near}
        fit_too = pluralise(len(six), "box also fits", "boxes also fit")
        text = f"read as {fields.pop(usual)}, as YOLO writes it, but {fit_too} as {', '.join(fields.values())}"
        fix = Fix.of_side(options.role, "Settle it with {columns}.", columns=None)
        if options.box is None:
            fix = Fix.of_side(options.role, "Settle it with {columns} and {box}.", columns=None, box=None)
        return ColumnChoice(COLUMNS[usual[0]], text, fix=fix, encoding=usual[1])
    best_of = list({reading[0]: reading for reading in reversed(near)}.values())[::-1]
    looks = " and as ".join(COLUMNS[name].fields(spelled(encoding)) for name, encoding in best_of)
    ways = " or ".join(f"{{columns:{name}}} {{box:{encoding}}}" for name, encoding in best_of)
    choices = [tuple(dict.fromkeys(part)) for part in zip(*best_of, strict=True)]
    fix = Fix.of_side(options.role, f"Pass {ways}.", columns=choices[0], box=choices[1])
    text = f"{pluralise(len(six), 'box fits', 'boxes fit')} as {looks}: column 2 or column 6 can be the confidence"
    return ColumnChoice(columns, text, is_undecided=True, fix=fix)


def _doubted_points(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice | None:
    """Return what else lines of one length can be than polygons; None where nothing supports that."""
    n, ends = int(np.bincount(numbers).argmax()), "-conf" if role == "pred" else ""
    block, _ = _block(lines, numbers, n)
    if len(block) < max(0.9 * len(numbers), 1):
        return None  # outlines differ in their points
    turned = block[:, int(n == 6 + bool(ends)) :][:, :5]  # with a flag before it
    is_turned = len(turned[0]) == 5 and bool((turned[:, 2:4] > 0).all()) and _are_angles(turned[:, 4])
    is_scored = not ends or not _count_outside(block[:, -1])
    if n == 5 + bool(ends) and ends and is_turned and is_scored and not _has_score_and_track(block):
        # A triangle of predictions would have no score.
        text = "7 columns: read as oriented boxes and their scores, not as triangles without any"
        fix = Fix.of_side(role, "For triangles, pass {columns}.", columns="polygon")
        return ColumnChoice(COLUMNS["xywhr-conf"], text, fix=fix)
    if n == 6 + bool(ends) and bool(np.isin(block[:, 0], (0, 1)).all()) and is_turned and is_scored:
        names = (f"difficult-xywhr{ends}", f"polygon{ends}")
        return _undecided(names, role, "column 2 is 0 or 1 in all lines: a flag and an oriented box, or a triangle")
    poses = _fitting_poses(lines, numbers, role, near=_INSIDE, least=_ALL_INSIDE) if n >= _LEAST_POSE else {}
    if not poses:
        return None
    polygon = _choose_points(lines, numbers, role).columns
    outlines = block[:, : n - polygon.tail].reshape(len(block), -1, 2) if polygon.accepts(numbers).any() else None
    if outlines is not None and np.count_nonzero(_cross_themselves(outlines[:_MOST_OUTLINES])) <= 0.1 * min(
        len(outlines), _MOST_OUTLINES
    ):
        return None
    names = (*poses, *([polygon.name] if outlines is not None else ()))
    text = f"{n + 1} columns: the points lie within the box that columns 2 to 5 would be"
    text += ", and the outline that they would draw crosses itself" if outlines is not None else ""
    return _undecided(names, role, text + " (no kpt_shape in a data.yaml)")


def _cross_themselves(outlines: FloatArray) -> BoolArray:
    """Return which closed outlines (n, points, 2) have two sides that cross, or turn back upon themselves."""
    ends = np.roll(outlines, -1, axis=1)

    def side_of(points: FloatArray) -> FloatArray:  # (n, sides, points): left or right of each side
        along = (ends - outlines)[:, :, None]
        to = points[:, None] - outlines[:, :, None]
        return np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    parted = side_of(outlines) * side_of(ends) < 0  # the ends of a side lie on both sides of another
    sides = ends - outlines
    after = np.roll(sides, -1, axis=1)
    turn = sides[..., 0] * after[..., 1] - sides[..., 1] * after[..., 0]
    back = (turn == 0) & ((sides * after).sum(axis=2) < 0)
    return np.asarray((parted & parted.swapaxes(1, 2)).any(axis=(1, 2)) | back.any(axis=1))


def _are_angles(column: FloatArray) -> bool:
    """Whether numbers may be angles, in radians or degrees, and are not only 0 and 1, as flags and some scores are."""
    most = float(np.abs(column).max()) if len(column) else np.inf
    return most <= 360 and not bool(np.isin(column, (0, 1)).all() and len(column) > 1)


def _doubted_angle(last: FloatArray, role: str) -> ColumnChoice | None:
    """Return that the last of six columns may be an angle, which is not a confidence."""
    if not _are_angles(last) or (role == "pred" and not (last < 0).any()):
        return None  # detectors write per cent
    text = f"column 6 has numbers from {last.min():g} to {last.max():g}, which cannot be confidences"
    if (last < 0).any():
        fix = Fix.of_side(role, "For others, pass {columns}.", columns="box-conf")
        return ColumnChoice(COLUMNS["xywhr"], f"{text}: read as angles of oriented boxes", fix=fix)
    return _undecided(("xywhr", "box-conf"), role, f"{text}: angles of oriented boxes, or something else")


def _ends_with_class(lines: LabelLines, numbers: IntArray) -> bool:
    """Whether four numbers and then the class stand in most lines, in pixels: the first would be a class of each."""
    block, _ = _block(lines, numbers + 1, 5)
    n = len(block)
    if n < _LEAST_LINES or n * 2 <= len(numbers) or is_mostly_normalised(block[:, :4]):
        return False
    first, last = block[:, 0], block[:, 4]
    is_coordinate = len(np.unique(first)) * 2 > n and first.max() > _MANY_CLASSES
    is_class = bool((last == np.floor(last)).all() and (last >= 0).all()) and len(np.unique(last)) * 2 <= n
    return bool(is_coordinate and is_class and last.max() <= _MANY_CLASSES)


def _choose_points(lines: LabelLines, numbers: IntArray, role: str) -> ColumnChoice:
    seven, _ = _block(lines, numbers, 6)
    if len(seven) * 2 > len(numbers) and _has_score_and_track(seven):
        assumption = "7 columns: the sixth is read as the confidence, the seventh as a track id"
        return ColumnChoice(COLUMNS["box-conf-track"], assumption)
    long = numbers[numbers >= MIN_POINTS]
    ends = (lines.first + lines.count - 1)[numbers >= MIN_POINTS + 2]
    is_tracked = len(ends) > 0 and _are_track_ids(lines.values[ends]) and not _count_outside(lines.values[ends - 1])
    if role == "pred" and is_tracked:
        shape = "obb" if bool((long - 2 == _ORIENTED_NUMBERS["obb"]).all()) else "polygon"
        return ColumnChoice(COLUMNS[f"{shape}-conf-track"])
    with_score = role == "pred" and int((long % 2 == 1).sum()) * 2 > len(long)
    shape = "obb" if bool((long - with_score == 8).all()) else "polygon"
    return ColumnChoice(COLUMNS[f"{shape}-conf" if with_score else shape])


def _block(lines: LabelLines, numbers: IntArray, width: int, *, or_more: bool = False) -> tuple[FloatArray, IntArray]:
    """Return the last `width` numbers (n, width) of the lines with so many, and their rows (n,), if all are finite."""
    rows = np.flatnonzero(numbers >= width if or_more else numbers == width)
    start = lines.first[rows] + lines.count[rows] - width
    block: FloatArray = lines.values[start[:, np.newaxis] + np.arange(width)]
    finite = np.isfinite(block).all(axis=1)
    return block[finite], rows[finite]


def _count_outside(column: FloatArray) -> int:
    """How many values are not a confidence: below 0, above 1, or not a number."""
    return int((~((column >= 0) & (column <= 1))).sum())


def _are_track_ids(column: FloatArray) -> bool:
    return len(column) > 0 and bool((column == np.floor(column)).all() and (column >= 0).all() and column.max() > 1)


def _has_score_and_track(seven: FloatArray) -> bool:
    track = seven[:, 5]
    return len(seven) > 0 and _count_outside(seven[:, 4]) == 0 and bool((track == np.floor(track)).all())
