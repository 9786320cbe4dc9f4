"""Columns of tables: what their headers name, the numbers in them, and the cells of delimited text with their lines."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.text import did_you_mean, is_numeral, pluralise, quoted, quoted_value

TextArray = npt.NDArray[np.object_]  # of str
RowIndices = npt.NDArray[np.int64]

_DECIMAL = pattern(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_THOUSANDS = pattern(r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*", re.ASCII)
_PACKED = pattern(r"\s*[\[(]?\s*" + r"(?:\s*,\s*|\s+)".join([r"([^\s,\[\]()]+)"] * 4) + r"\s*[\])]?\s*")
_INTEGER = pattern(r"0|-?[1-9]\d{0,17}", re.ASCII)  # at most 18 digits: fits int64
_FLAG_VALUES = {"": False, "0": False, "false": False, "1": True, "true": True}

DELIMITERS = ",;\t|"
PIECE = 1 << 20  # bytes that are looked at together: they stay in the cache of the processor
QUOTE_FIX = 'Close each quoted field; double a quote inside one ("").'
HEADER_FIX = "Start the file with a line such as image,class,xmin,ymin,xmax,ymax."

_LINE_BREAK = pattern(r"\r\n|\r|\n")

# keras-retinanet writes an image without objects as path,,,,, but four commas are seen as well.
_SHORT_KERAS_ROW = pattern(rb"^([^,\"\r\n]+,,,,)(?=\r?$)", re.MULTILINE)


def parse_numbers(cells: TextArray) -> tuple[FloatArray, RowIndices]:
    """Return the numbers (n,) and the rows whose cell is not a finite plain decimal; the number there is NaN."""
    given = cells != ""
    # NumPy parses all cells in one go but refuses all for an empty one: without those the fast way still works.
    texts = cells if given.all() else cells[given]
    text = "".join(texts)
    numbers = np.full(len(cells), np.nan)
    # float() also takes 1_000, digits of other scripts, nan and inf.
    if text.isascii() and "_" not in text:
        with contextlib.suppress(ValueError):
            numbers[given] = texts.astype(np.float64)
    if not np.isfinite(numbers[given]).all():
        plain = (float(cell) if _DECIMAL.fullmatch(cell) else np.nan for cell in cells)
        numbers = np.fromiter(plain, dtype=np.float64, count=len(cells))
    bad = ~np.isfinite(numbers)
    return np.where(bad, np.nan, numbers), np.flatnonzero(bad)


def parse_flags(cells: TextArray) -> tuple[BoolArray, RowIndices]:
    """Return the flags (n,) and the rows whose cell is none of 0, 1, true, false or empty (false)."""
    values = {cell: _FLAG_VALUES.get(cell.strip().lower()) for cell in set(cells)}
    read = [values[cell] for cell in cells]
    bad = [row for row, value in enumerate(read) if value is None]
    return np.array([bool(value) for value in read], dtype=np.bool_), np.array(bad, dtype=np.int64)


def parse_integers(texts: Sequence[str]) -> list[int] | None:
    """Return the integers that `texts` are when all are written as one is printed, else None."""
    return [int(text) for text in texts] if all(map(_INTEGER.fullmatch, texts)) else None


def split_packed(cells: TextArray) -> tuple[list[TextArray], RowIndices]:
    """Split cells such as "[1, 2, 3, 4]" or "1 2 3 4" into four columns; return the rows of those that have no four."""
    matches = [_PACKED.fullmatch(cell) for cell in cells]
    bad = [row for row, match in enumerate(matches) if match is None]
    parts = [("0", "0", "0", "0") if match is None else match.groups() for match in matches]
    table = np.array(parts, dtype=np.object_).reshape(-1, 4)
    return [table[:, column] for column in range(4)], np.array(bad, dtype=np.int64)


def has_decimal_commas(columns: Sequence[TextArray], delimiter: str) -> bool:
    """Whether numbers are written 10,5 throughout: some with a comma, none with a point, not all like 1,000.

    Where commas separate the cells, half of the numbers must have one: there a single one is rather a mistake.
    """
    # Joined texts are searched first: most columns have no comma, and need no look at each cell.
    with_comma = [cell for column in columns if "," in "".join(column) for cell in column if "," in cell]
    # A comma in one cell of a comma-separated table was quoted by somebody, perhaps by mistake.
    enough = 1 if delimiter != "," else max(1, sum(map(len, columns)) / 2)
    if len(with_comma) < enough or any("." in "".join(column) for column in columns):
        return False
    # 1,000 in every cell may be a thousand as well as one: then nothing is guessed, and the cells are refused.
    return not all(map(_THOUSANDS.fullmatch, with_comma))


def replace_commas(cells: TextArray) -> TextArray:
    """Return the cells with decimal points instead of decimal commas."""
    return np.array([cell.replace(",", ".") for cell in cells], dtype=np.object_)


# Names are compared without case, blanks, hyphens and underscores. Where a header has several names of one meaning
# the first in the list counts: paths before ids, class names before class numbers.
_USUAL_IMAGE = (
    "image", "image_path", "path", "file_path", "filename", "file", "image_name", "frame", "frame_number", "source-ref",
    "image_id", "img", "img_id", "patient_id",
)  # fmt: skip
_USUAL_CLASS = (
    "class_name", "label_name", "category_name", "class", "label", "category", "name", "cls", "target",
    "class_id", "category_id", "label_id",
)  # fmt: skip
_USUAL_SCORE = ("score", "scores", "confidence", "conf", "probability", "prob", "objectness")
# Rarer names count only where a header has none of the usual ones of their meaning: what one of these names must not
# come to mean something else because another column has a name that is listed here.
IMAGE = (
    *_USUAL_IMAGE, "image_file", "image_filename", "image_uri", "img_name", "img_path", "img_file", "img_filename",
    "fname", "name_id", "frame_name", "frame_image", "frame_id",
)  # fmt: skip
CLASS = (
    *_USUAL_CLASS, "class_label", "category_label", "cls_name", "cls_label", "object_class", "object_category",
    "object_label", "object_name", "species", "labels", "object", "cls_id", "class_idx", "class_index", "category_idx",
    "category_index", "label_idx", "label_index", "cls_idx", "tag_name", "tag", "pred_class", "pred_label",
    "predicted_class", "predicted_label", "prediction", "annotation_tag",
)  # fmt: skip
SCORE = (
    *_USUAL_SCORE, "confidence_score", "conf_score", "det_score", "detection_score", "det_confidence", "det_conf",
    "detection_confidence", "box_score", "box_confidence", "bbox_score", "bbox_confidence", "pred_score",
    "prediction_score", "pred_confidence", "class_score", "class_confidence", "certainty",
)  # fmt: skip
CLASS_IDS = tuple(name for name in CLASS if name.endswith(("_id", "_idx", "_index")))
IMAGE_IDS = tuple(name for name in IMAGE if name.endswith("_id"))
IMAGE_NAMES = tuple(name for name in IMAGE if name not in IMAGE_IDS)
CLASS_NAMES = tuple(name for name in CLASS if name not in CLASS_IDS)
AREA = ("area",)
PACKED = ("bbox",)
STRINGS = ("prediction_string",)  # all boxes of an image, as Kaggle has them
FLAGS = {
    "crowd": ("iscrowd", "crowd"),
    "difficult": ("difficult", "is_difficult"),
    "group_of": ("isgroupof", "group_of"),
    "ignore": ("ignore",),
}
POINT = ("xyxy", ("x", "y", "x", "y"))  # a box without a size
_SIDES = ("w", "h", "width", "height")
LAYOUTS = (
    ("xyxy", ("xmin", "ymin", "xmax", "ymax")),
    ("xyxy", ("x1", "y1", "x2", "y2")),
    ("xyxy", ("left", "top", "right", "bottom")),
    ("xyxy", ("xtl", "ytl", "xbr", "ybr")),
    ("cxcywh", ("cx", "cy", "w", "h")),
    ("cxcywh", ("cx", "cy", "width", "height")),
    ("cxcywh", ("x_center", "y_center", "width", "height")),
    ("cxcywh", ("x_center", "y_center", "w", "h")),
    ("cxcywh", ("xc", "yc", "w", "h")),
    ("cxcywh", ("xc", "yc", "width", "height")),
    ("xywh", ("bbox_x", "bbox_y", "bbox_w", "bbox_h")),
    ("xywh", ("left", "top", "width", "height")),
    ("xywh", ("x", "y", "w", "h")),
    ("xywh", ("x", "y", "width", "height")),
    POINT,
)
_RARE_LAYOUTS = (
    ("xyxy", ("x0", "y0", "x1", "y1")),
    ("xyxy", ("upper_left_corner_x", "upper_left_corner_y", "lower_right_corner_x", "lower_right_corner_y")),  # LISA
    ("xyxy", ("roi_x1", "roi_y1", "roi_x2", "roi_y2")),  # GTSRB
    ("xywh", ("xmin", "ymin", "width", "height")),
    ("xywh", ("xmin", "ymin", "w", "h")),
    ("xywh", ("x1", "y1", "width", "height")),
    ("xywh", ("x1", "y1", "w", "h")),
    ("cxcywh", ("center_x", "center_y", "width", "height")),
    ("cxcywh", ("center_x", "center_y", "w", "h")),
)
_FAR_CORNER = ("xmax", "ymax", "x2", "y2")
# The rare layouts, and all of them with the prefix that some writers give each of the four columns.
MORE_LAYOUTS = (
    *_RARE_LAYOUTS,
    *(
        (encoding, tuple(f"{prefix}_{name}" for name in names))
        for prefix in ("bbox", "box", "bb")
        for encoding, names in (*LAYOUTS, *_RARE_LAYOUTS)
    ),
)
CORNERS = (  # of oriented boxes, in their order around the outline
    ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"),
    ("x0", "y0", "x1", "y1", "x2", "y2", "x3", "y3"),
)
ANGLE = ("angle", "theta", "rotation")  # of a box by its centre and sizes
SIZES = (("image_width", "image_height"), ("img_width", "img_height"), ("img_w", "img_h"), ("width", "height"))

KERAS_HEADER = ("path", "x1", "y1", "x2", "y2", "class", "score")
MAX_LISTED = 20  # columns repeated in a message
MAX_PROPOSED = 3  # columns that a message proposes
_COMMON = ("image", "class", "score", "box", "xmin", "ymin", "xmax", "ymax", "x", "y", "w", "h", "cx", "cy")
# Words in the names of columns that may be what is missing.
_HINTS = {
    "image": ("image", "img", "file", "frame", "path", "photo", "picture", "scan", "slide", "tile"),
    "class": ("class", "label", "categor", "species", "type", "kind", "object", "tag"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Position of each column by its meaning."""

    image: int
    label: int
    box: tuple[int, ...]  # four positions, eight of four corners, or the one of a packed column
    encoding: str  # "xyxy", "xywh" or "cxcywh"
    score: int | None  # of predictions
    unused_score: int | None  # of ground truth
    area: int | None
    angle: int | None = None  # where oriented boxes are asked for
    size: tuple[int, int] | None  # width and height of the image
    flags: dict[str, int]
    unused: tuple[int, ...]  # columns that are ignored

    @property
    def of_numbers(self) -> tuple[int, ...]:
        """Positions of the columns that hold numbers, those of the box first."""
        optional = (self.score, self.area, self.angle, self.unused_score)
        return (*self.box, *(self.size or ()), *(column for column in optional if column is not None))

    def of_keys(self, header: Sequence[str]) -> set[int]:
        """Positions of the columns that name images and classes, ids next to class names among them."""
        beside = position_of(header, CLASS_IDS)
        return {self.image, self.label} | ({beside} if beside is not None else set())


def count_known(header: Sequence[str]) -> int:
    """Return how many names of a header are known."""
    return sum(_compact(name) in _KNOWN for name in header)


# Names by which users may refer to a meaning, in addition to the usual names themselves.
_MEANINGS = {"box": "bbox", "string": "prediction_string"}
NOT_USED = " (not used)"  # behind the names of columns that do not count


def read_naming(text: str | None) -> dict[str, str]:
    """Return which column has which meaning, from ``class=palm_class,score=det_conf``; empty for a mere layout.

    A column whose name holds a comma is quoted together with its meaning, as a cell of a table is.
    """
    if text is None or "=" not in text:
        return {}
    naming: dict[str, str] = {}
    try:
        parts = next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        # A line break outside of quotes, or a name of over 131,072 characters.
        raise UsageError(f"columns: expected MEANING=COLUMN on one line, got {quoted_value(text)}") from None
    for part in parts:
        meaning, equals, column = (piece.strip() for piece in part.partition("="))
        name = _USUAL.get(_compact(_MEANINGS.get(meaning.lower(), meaning)))
        if not equals or not column:
            raise UsageError(f"columns: expected MEANING=COLUMN, got {quoted_value(part)} in {quoted_value(text)}")
        if name is None:
            hint = did_you_mean(meaning, _COMMON) or f"Choose from {', '.join(_COMMON)} and the usual column names."
            raise UsageError(f"columns: {quoted_value(meaning)} is not a column meaning.{hint}")
        if name in naming or column in naming.values():
            raise UsageError(f"columns: {quoted_value(part)} repeats a meaning or a column of {quoted_value(text)}")
        naming[name] = column
    return naming


def meant_header(header: Sequence[str], naming: Mapping[str, str]) -> tuple[str, ...]:
    """Return a header with the columns of a naming called by what they mean; others of such a meaning do not count."""
    if not naming:
        return tuple(header)
    groups = (group for group in (IMAGE, CLASS, SCORE, AREA, *FLAGS.values()) if {*group} & {*naming})
    hidden = _compacted(naming, _other_boxes(naming), *groups)
    meant = [f"{name}{NOT_USED}" if _compact(name) in hidden else name for name in header]
    for meaning, column in naming.items():
        position = find_column(header, column)
        if position is not None:
            meant[position] = meaning
    return tuple(meant)


def _other_boxes(naming: Mapping[str, str]) -> set[str]:
    """Return the names of boxes that do not go with those of a naming."""
    layouts = [names for _, names in LAYOUTS] + [PACKED]
    sizes = {side for pair in SIZES for side in pair}  # which mean nothing without the other two
    every = {name for names in layouts for name in names} - sizes
    named = every & {*naming}
    return every.difference(*(names for names in layouts if named <= {*names})) if named else set()


def find_column(header: Sequence[str], column: str) -> int | None:
    """Return the column of a name as it is written, else as names are compared."""
    exact = [position for position, name in enumerate(header) if name == column]
    alike = [position for position, name in enumerate(header) if _compact(name) == _compact(column)]
    return next(iter(exact or alike), None)


def propose_naming(options: ReadOptions, choices: Mapping[str, Sequence[str]]) -> Value:
    """Return the value of the option that names the columns of missing meanings; COLUMN if there is no choice.

    Of one meaning every choice is listed; of several the first ones, as they go into one option.
    """
    given = read_naming(options.columns)
    first = {meaning: next(iter(columns), "COLUMN") for meaning, columns in choices.items()}
    ways = [first]
    if len(choices) == 1:
        (meaning,) = choices
        ways = [{meaning: column} for column in choices[meaning][:MAX_PROPOSED]] or ways
    texts = [",".join(quoted(f"{meaning}={column}") for meaning, column in (given | way).items()) for way in ways]
    return texts[0] if len(texts) == 1 else tuple(texts)


def outdone_names(header: Sequence[str]) -> frozenset[str]:
    """Return the rare names of a header that do not count, as usual ones of their meaning are there."""
    at = _positions(header)
    return frozenset(name for name in header if _compact(name) in _KNOWN and _compact(name) not in at)


def is_header(header: Sequence[str]) -> bool:
    """Whether a first line names an image column and a whole box, or the boxes of images as strings."""
    at = _positions(header)
    is_table = _pick(at, IMAGE) is not None and _pick_box(at, None) is not None
    return is_table or (position_of_strings(header) is not None and len(header) > 1)


def is_oriented(header: Sequence[str]) -> bool:
    """Whether a table has four corners of each box, or an angle besides its centre and sizes."""
    at = _positions(header)
    box = _pick_box(at, None)
    return box is not None and (len(box[1]) == 8 or (box[0] == "cxcywh" and _pick(at, ANGLE) is not None))


def position_of_strings(header: Sequence[str]) -> int | None:
    """Return the column that holds all boxes of an image."""
    return position_of(header, STRINGS)


def lacks_class(header: Sequence[str]) -> bool:
    """Whether no column holds a class."""
    return position_of(header, CLASS) is None


def may_lack_class(header: Sequence[str], options: ReadOptions, of_box: Sequence[str] | None = None) -> bool:
    """Whether a table names an image and a box, and has no column that could be a class by its name either.

    Of ground truth any column of an unknown name could be, unless one class is named for all of it; `of_box` are the
    columns that could.
    """
    at = _positions(header)
    is_table = _pick(at, IMAGE) is not None and _pick_box(at, options.box) is not None
    unknown = [name for name in (header if of_box is None else of_box) if _compact(name) not in _KNOWN]
    n_names = len(options.names or ())
    is_other = n_names > 1 or (
        any(options.role == "gt" or _is_like(name, "class") for name in unknown) and n_names != 1
    )
    return lacks_class(header) and is_table and not is_other


def is_kaggle(header: Sequence[str]) -> bool:
    """Whether a table holds the boxes of images as strings, or packed boxes without a class."""
    is_packed = position_of(header, PACKED) is not None
    return position_of_strings(header) is not None or (is_packed and lacks_class(header))


def position_of(header: Sequence[str], aliases: Sequence[str]) -> int | None:
    """Return the column that has one of some names, the first of these that is there."""
    return _pick(_positions(header), aliases)


def is_keras_row(row: Sequence[str]) -> bool:
    """Whether a first line is data of the layout without header: path, x1, y1, x2, y2, class and perhaps a score."""
    if not 5 <= len(row) <= 7 or not row[0].strip() or _is_number(row[0]):
        return False
    if not any(cell.strip() for cell in row[1:]):
        return True
    return len(row) > 5 and all(map(_is_number, row[1:5]))


def explain_no_header(first: Sequence[str]) -> str:
    """Describe what a first line without known names holds."""
    if len(first) == 1:
        return f"no header row: {quoted_value(first[0])} is one column under each delimiter (, ; tab |)"
    return f"no header row with known column names; the first line has the columns {listed_names(first)}"


def resolve_columns(header: Sequence[str], options: ReadOptions, findings: FindingLog, where: Where) -> Columns | None:
    """Find the columns of a header, as its naming calls them; None where one is missing, every lack a finding."""
    at = _positions(header)
    if options.columns is not None and "=" not in options.columns:
        expected = "the table names its columns, expected MEANING=COLUMN, such as class=label"
        raise UsageError(f"columns: {expected}, got {quoted_value(options.columns)}")
    for positions in at.values():
        if len(positions) > 1:
            names = " and ".join(quoted_value(header[position]) for position in positions)
            findings.error("csv-column-duplicate", where, f"duplicate columns {names}", fix="Keep one of them.")
    # Strings of boxes have given way to the columns that were made of them.
    naming = {meaning: column for meaning, column in read_naming(options.columns).items() if meaning not in STRINGS}
    absent = [(meaning, column) for meaning, column in naming.items() if _compact(meaning) not in at]
    for meaning, column in absent:
        detail = f"no column {quoted_value(column)}, named as {meaning}, among {listed_names(header)}."
        detail = (detail + did_you_mean(column, header)).rstrip(".")
        findings.error(
            "csv-column-missing", where, detail, fix=Fix.of_side(options.role, "Correct {columns}.", columns=None)
        )
    image, label, box = _pick(at, IMAGE), _pick(at, CLASS), _pick_box(at, options.box)
    if absent:
        return None
    lacks = {meaning: position for meaning, position in (("image", image), ("class", label)) if position is None}
    unknown = [name for name in header if _compact(name) not in _KNOWN and not name.endswith(NOT_USED)]
    choices = {meaning: [name for name in unknown if _is_like(name, meaning)] for meaning in lacks}
    for meaning, aliases in (("image", _USUAL_IMAGE), ("class", _USUAL_CLASS)):
        if meaning in lacks:
            remedy = f"name it one of {', '.join(aliases)}"
            given = {"columns": propose_naming(options, choices)} | (
                {} if choices[meaning] or meaning == "image" else {"names": None}
            )
            words = "Pass {columns}, or {names} if all are of one class." if "names" in given else "Pass {columns}."
            fix = Fix.of_side(options.role, words, **given)
            _report_missing(f"the {meaning}", remedy, header, findings, where, fix=fix)
    if box is None:
        _report_missing_box(header, at, options, findings, where)
    elif not naming and _are_points(header, box[1]):
        detail = f"the columns {listed_names(header)} are of the points of a pose or an outline, not of a box"
        remedy = "Write poses as COCO JSON (keypoints: x1, y1, v1, ...), or name what is meant: {columns}."
        meanings = LAYOUTS[0][1] if len({*box[1]}) == len(box[1]) else POINT[1][:2]
        pairs = zip(meanings, dict.fromkeys(box[1]), strict=True)
        columns = ",".join(f"{meaning}={header[position]}" for meaning, position in pairs)
        fix = Fix.of_side(options.role, remedy, columns=columns)
        findings.error("columns-ambiguous", where, detail, fix=fix)
        return None
    if image is None or label is None or box is None:
        return None
    encoding, four = box
    return _collect(header, at, options, (image, label, *four), encoding)


def _are_points(header: Sequence[str], box: Sequence[int]) -> bool:
    """Whether two numbered corners would be the first points of a pose or an outline, or a point one of a pose."""
    if len({*box}) == 2 and len(box) > 2:
        return not _OF_POSES.isdisjoint(map(_compact, header))
    if any(_NUMBERED.fullmatch(_compact(header[position])) is None for position in box) or len(box) != len("xyxy"):
        return False
    numbered = [found[1] for name in map(_compact, header) if (found := _NUMBERED.fullmatch(name)) is not None]
    return bool({"v", "vis", "visible", "visibility"} & {*numbered}) or numbered.count("x") > 2


_NUMBERED = pattern(r"([xy]|v|vis|visible|visibility)\d+")


def _is_like(name: str, meaning: str) -> bool:
    return any(word in _compact(name) for word in _HINTS[meaning])


def listed_names(header: Sequence[str]) -> str:
    """Return names of columns for a message, the first few of them."""
    names = ", ".join(quoted_value(name or "(unnamed)") for name in header[:MAX_LISTED])
    hidden = len(header) - MAX_LISTED
    return names if hidden <= 0 else f"{names} and {hidden:,} more"


def _collect(
    header: Sequence[str], at: dict[str, list[int]], options: ReadOptions, needed: tuple[int, ...], encoding: str
) -> Columns:
    """Add the optional columns to the needed ones (image, class, box)."""
    flags = {flag: _pick(at, aliases) for flag, aliases in FLAGS.items()}
    given = {flag: position for flag, position in flags.items() if position is not None}
    score, is_pred = _pick(at, SCORE), options.role == "pred"
    area, sizes = _pick(at, AREA), (_pick_all(at, names) for names in SIZES)
    angle = _pick(at, ANGLE) if options.iou_type in ORIENTED and encoding == "cxcywh" else None
    # "width" and "height" are the image's unless the box needs them.
    size = next(((pair[0], pair[1]) for pair in sizes if pair is not None and not {*pair} & {*needed}), None)
    # Scores of ground truth are ignored as other columns are.
    used = {*needed, *given.values(), *(size or ()), score if is_pred else None, area, angle}
    return Columns(
        image=needed[0],
        label=needed[1],
        box=needed[2:],
        encoding=encoding,
        score=score if is_pred else None,
        unused_score=None if is_pred else score,
        area=area,
        angle=angle,
        size=size,
        flags=given,
        unused=tuple(position for position in range(len(header)) if position not in used),
    )


@lru_cache(maxsize=1024)  # the names above are asked for again and again
def _compact(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _compacted(*groups: Iterable[str]) -> frozenset[str]:
    return frozenset(_compact(name) for group in groups for name in group)


# In a table with a row for each point.
_OF_POSES = _compacted(
    ("keypoint", "keypoint_id", "keypoint_name", "joint", "joint_id", "joint_name", "landmark", "body_part", "v"),
    ("visibility",),
)
_KNOWN = _compacted(
    IMAGE, CLASS, SCORE, AREA, ANGLE, PACKED, STRINGS, *FLAGS.values(), *SIZES, *CORNERS,
    *(names for _, names in (*LAYOUTS, *MORE_LAYOUTS)),
)  # fmt: skip
# How each usual name is written here, by what names are compared by.
_USUAL = {
    _compact(name): name
    for group in (
        *(_USUAL_IMAGE, _USUAL_CLASS, _USUAL_SCORE, AREA, ANGLE, PACKED, STRINGS, *FLAGS.values(), *SIZES),
        *CORNERS,
        *(names for _, names in LAYOUTS),
    )
    for name in group
}


def _positions(header: Sequence[str]) -> dict[str, list[int]]:
    """Positions of each name that counts."""
    return _counted(tuple(header))


@lru_cache(maxsize=64)  # a table asks for its columns one by one
def _counted(header: tuple[str, ...]) -> dict[str, list[int]]:
    at: dict[str, list[int]] = {}
    for position, name in enumerate(map(_compact, header)):
        if name in _KNOWN:
            at.setdefault(name, []).append(position)
    usual = {name: positions for name, positions in at.items() if name in _USUAL}
    has_image, has_class = _pick(usual, _USUAL_IMAGE) is not None, _pick(usual, _USUAL_CLASS) is not None
    # Strings of boxes have classes of their own, or one class: another column describes the image.
    has_class = has_class or _pick(usual, STRINGS) is not None
    has_box = bool(_whole_layouts(usual, LAYOUTS)) or _pick_all(usual, PACKED) is not None
    rare = _compacted(
        () if has_image else IMAGE,
        () if has_class else CLASS,
        () if _pick(usual, _USUAL_SCORE) is not None else SCORE,
        *(names for _, names in MORE_LAYOUTS if not has_box),
    )
    return {name: positions for name, positions in at.items() if name in _USUAL or name in rare}


def _pick(at: dict[str, list[int]], aliases: Sequence[str]) -> int | None:
    return next((at[name][0] for name in map(_compact, aliases) if name in at), None)


def _pick_all(at: dict[str, list[int]], names: Sequence[str]) -> tuple[int, ...] | None:
    found = [at[name][0] for name in map(_compact, names) if name in at]
    return tuple(found) if len(found) == len(names) else None


def _pick_box(at: dict[str, list[int]], asked: str | None) -> tuple[str, tuple[int, ...]] | None:
    """Return encoding and positions of the box: the asked encoding if there, else the first layout."""
    corners = next(filter(None, (_pick_all(at, names) for names in CORNERS)), None)
    if corners is not None and asked in (None, "xyxy"):
        return "xyxy", corners
    whole = _whole_layouts(at, LAYOUTS)
    packed = _pick_all(at, PACKED)
    if packed is not None:
        whole.append((asked or "xywh", packed))
    whole = whole or _whole_layouts(at, MORE_LAYOUTS)
    # The first of equals is the least, so that the order of the layouts decides.
    return min(whole, key=lambda layout: layout[0] != asked) if whole else None


def _whole_layouts(
    at: dict[str, list[int]], layouts: Sequence[tuple[str, tuple[str, ...]]]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return encoding and positions of the layouts that are there with all four columns."""
    found = [(encoding, _pick_all(at, names)) for encoding, names in layouts if not _breaks_corners(at, names)]
    return [(encoding, positions) for encoding, positions in found if positions is not None]


def _breaks_corners(at: dict[str, list[int]], names: tuple[str, ...]) -> bool:
    """Whether a near corner goes with a width that may be the image's, because half of a far corner is there, too.

    Or whether a point has a side, and is rather half a box.
    """
    if names == POINT[1]:
        return any(name in at for name in _SIDES)
    near = _compact(names[0])
    prefix = near.removesuffix("xmin").removesuffix("x1")
    is_mixed = prefix != near and names[2].endswith(("w", "width"))
    return is_mixed and any(prefix + name in at for name in _FAR_CORNER)


def _is_number(cell: str) -> bool:
    return is_numeral(cell.strip())


def _report_missing(
    what: str, remedy: str, header: Sequence[str], findings: FindingLog, where: Where, *, fix: Fix
) -> None:
    detail = f"no column for {what} among {listed_names(header)}; {remedy}"
    findings.error("csv-column-missing", where, detail, fix=fix)


def _report_missing_box(
    header: Sequence[str], at: dict[str, list[int]], options: ReadOptions, findings: FindingLog, where: Where
) -> None:
    layouts = [names for _, names in (*LAYOUTS, *MORE_LAYOUTS) if not _breaks_corners(at, names)]
    known = [[name for name in names if _compact(name) in at] for names in layouts]
    best = max(range(len(layouts)), key=lambda row: len(known[row]))
    names = layouts[best]
    lacks = [name for name in names if name not in known[best]] if known[best] else LAYOUTS[0][1]
    naming = propose_naming(options, dict.fromkeys(lacks, ()))
    fix = Fix.of_side(options.role, "Pass {columns}.", columns=naming)
    if known[best]:
        _report_missing(", ".join(lacks), f"a box needs all of {', '.join(names)}", header, findings, where, fix=fix)
    else:
        choices = " or ".join(",".join(names) for _, names in LAYOUTS[:2])
        remedy = f"give it as {choices}, x,y,w,h, cx,cy,w,h or bbox"
        if "boxes" in at or "bboxes" in at:  # of an image
            words = "Write a row for each box, or JSON Lines with these fields, in which each line is an image."
            fix = Fix.missing(words)
        _report_missing("the box", remedy, header, findings, where, fix=fix)


@dataclass(frozen=True)
class TextFile:
    """A delimited file, before its cells are separated."""

    path: str
    data: bytes  # UTF-8 text, kept so that lines can be counted when a message needs one
    delimiter: str
    titles: tuple[str, ...]  # of the header
    header: tuple[str, ...]  # the same by what columns mean, if the user names it
    first_line: int  # of the header, or of the first row where there is none
    headerless: bool  # whether the titles are not in the file
    naming: Mapping[str, str]  # from the user's option
    is_frame: bool = False  # whether this was a DataFrame: messages name rows, from 0

    def place(self, row: int, column: str | None = None) -> Where:
        """Return the place of a row, or of its cell in a column, by the line on which the row starts."""
        if self.is_frame:
            return Where(self.path, record=f"row {row}", field=column)
        return Where(self.path, line=self._lines[row + (not self.headerless)], field=column)

    @cached_property
    def _lines(self) -> list[int]:
        # Quoted cells hold line breaks, so that lines are counted by a parser that knows quotes: once, for messages.
        text = self.data.decode("utf-8")
        with fields_up_to(len(text)):
            return [line for line, _ in _records(text, self.delimiter)]


@dataclass(frozen=True)
class Sheet:
    """The cells of a delimited file below its header, as text, while odd ones are made plain."""

    file: TextFile
    header: tuple[str, ...]
    titles: tuple[str, ...]  # the header as the file has it
    cells: tuple[TextArray, ...]  # by column, (n,) each
    source: RowIndices  # the row of the file that each row came from

    def __len__(self) -> int:
        return len(self.source)

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row in the file, or of one of its cells."""
        return self.place(row, None if column is None else self.titles[column])

    def place(self, row: int, column: str | None) -> Where:
        """Return the place of a row in the file, or of its cell in a column."""
        return self.file.place(int(self.source[row]), column)

    def take(self, rows: RowIndices) -> Sheet:
        """Return some of the rows, which may be there more than once."""
        return replace(self, cells=tuple(column[rows] for column in self.cells), source=self.source[rows])


def open_table(path: Path, draft: Draft) -> TextFile:
    """Read a delimited file as it is, except for comments, and its first line."""
    return parse_table(path, files.read_bytes(path), draft)


def parse_table(path: Path, data: bytes, draft: Draft) -> TextFile:
    """Find the first line of what a delimited file holds, without its comments."""
    naming = read_naming(draft.options.columns)
    text = files.decode(path, data)
    # Where lone returns end lines, the whole file would be one line that starts with #.
    if b"#" in data and (data.startswith(b"#") or b"\n#" in data) and data.count(b"\r") == data.count(b"\r\n"):
        text = _without_comments(text, Where(str(path)), naming, draft.findings)
        data = text.encode("utf-8")
    line, start = first_line(text)
    where = Where(str(path), line=line)
    if not start:
        raise DataError.single("file-empty", where, "the file is empty: blank lines, no header", fix="Export it again.")
    delimiter, first = split_first_line(start, naming)
    headerless = is_keras_row(first)
    if headerless:
        # Done to the bytes, so that both ways through the file see rows of one length.
        data = _SHORT_KERAS_ROW.sub(rb"\1,", data)
    elif not count_known(meant_header(first, naming)):
        raise DataError.single("csv-header", where, explain_no_header(first), fix=HEADER_FIX)
    titles = KERAS_HEADER[: len(first)] if headerless else tuple(cell.strip() for cell in first)
    return TextFile(str(path), data, delimiter, titles, meant_header(titles, naming), line, headerless, naming)


def _without_comments(text: str, where: Where, naming: Mapping[str, str], findings: FindingLog) -> str:
    """Empty the lines that start with # and have not the fields of a row, so that all others keep their numbers."""
    lines = text.split("\n")
    marked = [row for row, line in enumerate(lines) if line.startswith("#")]
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    delimiter, fields = split_first_line(first_line(header)[1], naming)
    # An odd number of quotes before a line means that it stands within a quoted cell.
    n_quotes = np.cumsum([line.count('"') for line in lines])
    comments = [
        row
        for row in marked
        if lines[row].count(delimiter) != len(fields) - 1 and (row == 0 or n_quotes[row - 1] % 2 == 0)
    ]
    findings.add_rows(
        Severity.NOTE,
        "csv-comment",
        comments,
        lambda row: (Where(where.path, line=row + 1), quoted_value(lines[row])),
        summary=lambda n: f"ignored {pluralise(n, 'line')} starting with # (comments)",
    )
    left = {*comments}
    return "\n".join("" if row in left else line for row, line in enumerate(lines))


def is_rectangular(data: bytes, delimiter: str, texts: Iterable[Iterable[object]], shape: tuple[int, int]) -> bool:
    """Whether no row was short: pandas refuses long rows and fills short ones, so the delimiters must add up.

    `texts` are the columns that may hold delimiters, in quotes; `shape` is how many lines, the header included, and
    columns there should be.
    """
    n_lines, n_fields = shape
    text, mark = np.frombuffer(data, dtype=np.uint8), ord(delimiter)
    between = sum(int(np.count_nonzero(text[at : at + PIECE] == mark)) for at in range(0, len(text), PIECE))
    if b'"' in data:
        between -= sum("".join(map(str, column)).count(delimiter) for column in texts)
    return between == n_lines * (n_fields - 1)


def read_sheet(file: TextFile) -> Sheet:
    """Separate the cells of a delimited file."""
    cells = _read_cells(Path(file.path), file.data, file.delimiter)
    if file.headerless:
        titles = KERAS_HEADER[: len(cells)]
    else:
        # Read anew: a heading may have a line break within quotes, before which the first line ends.
        titles = tuple(str(column[0]).strip() for column in cells)
        cells = [column[1:] for column in cells]
    return Sheet(file, meant_header(titles, file.naming), titles, tuple(cells), np.arange(len(cells[0])))


def first_line(text: str) -> tuple[int, str]:
    """Return number and text of the first line that is not blank; a newline within quotes may cut it."""
    rest = text.lstrip()
    skipped = text[: len(text) - len(rest)]
    end = _LINE_BREAK.search(rest)
    return len(_LINE_BREAK.findall(skipped)) + 1, rest if end is None else rest[: end.start()]


def split_first_line(line: str, naming: Mapping[str, str] = MappingProxyType({})) -> tuple[str, list[str]]:
    """Return the delimiter that shows most known names in a first line, else most fields, and the fields."""
    with fields_up_to(len(line)):
        choices = [(mark, next(csv.reader([line], delimiter=mark, skipinitialspace=True))) for mark in DELIMITERS]
    return max(choices, key=lambda choice: (count_known(meant_header(choice[1], naming)), len(choice[1])))


def _read_cells(path: Path, data: bytes, delimiter: str) -> list[TextArray]:
    """Parse every cell as text, the header's included."""
    import pandas as pd

    table = data if data.count(b"\r") == data.count(b"\r\n") else _without_lone_returns(path, data, delimiter)
    try:
        frame = pd.read_csv(
            io.BytesIO(table),
            sep=delimiter,
            header=None,
            dtype=object,
            na_filter=False,
            skipinitialspace=True,
            low_memory=False,
        )
    except pd.errors.ParserError as error:
        raise _shape_error(path, data, delimiter, str(error)) from None
    columns = [frame[position].to_numpy() for position in frame.columns]
    if not is_rectangular(table, delimiter, columns, (len(columns[0]), len(columns))):
        raise _shape_error(path, data, delimiter, "rows differ in their number of fields")
    return columns


def _records(text: str, delimiter: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the starting line and the fields of each record that is not blank: slow, for messages only."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=strict)
    start = 1
    for fields in reader:
        if len(fields) > 1 or "".join(fields).strip(" \t"):
            yield start, fields
        start = reader.line_num + 1


@contextmanager
def fields_up_to(length: int) -> Iterator[None]:
    """Let the csv module read long fields for a while: its limit is a setting of the process."""
    usual = csv.field_size_limit(length + 1)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _without_lone_returns(path: Path, data: bytes, delimiter: str) -> bytes:
    """Write lines that end in a carriage return anew: after one, pandas 3.1 loses a row's empty first field."""
    text = data.decode("utf-8")
    table = io.StringIO(newline="")
    writer = csv.writer(table, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    try:
        with fields_up_to(len(text)):
            writer.writerows(fields for _, fields in _records(text, delimiter, strict=True))
    except csv.Error as error:
        raise DataError.single("csv-quote", Where(str(path)), f"quotes do not pair: {error}", fix=QUOTE_FIX) from None
    return table.getvalue().encode("utf-8")


def _shape_error(path: Path, data: bytes, delimiter: str, reason: str) -> DataError:
    """Make the error that names every row that has not as many fields as the first one."""
    text = data.decode("utf-8")
    with fields_up_to(len(text)):
        records = list(_records(text, delimiter))
    if "EOF inside string" in reason:
        where = Where(str(path), line=records[-1][0])
        return DataError.single("csv-quote", where, "a quoted field opens in this row and never closes", fix=QUOTE_FIX)
    # pandas reports only the first long row and no short one; the csv module finds them all.
    expected = len(records[0][1])
    uneven = [row for row, (_, fields) in enumerate(records) if len(fields) != expected]
    if not uneven:
        return DataError.single("csv-fields", Where(str(path)), f"cannot be split into columns: {reason}")

    def describe(row: int) -> tuple[Where, str]:
        line, fields = records[row]
        others = [mark for mark in DELIMITERS if fields[0].count(mark) == expected - 1]
        hint = f" (delimited by {quoted_value(others[0])}, unlike the first line?)" if others else ""
        return Where(str(path), line=line), f"expected {expected} fields, got {len(fields)}{hint}"

    log = FindingLog()
    fix = "Give each row one field per column; quote fields that hold the delimiter."
    log.add_rows(Severity.ERROR, "csv-fields", uneven, describe, fix=fix)
    return DataError(log.findings())
