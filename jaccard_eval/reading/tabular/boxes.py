"""What a table means as a whole: units, encoding, sizes of images, names of classes; and its way into the draft."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray, from_xywh, to_xywh
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.known_protocols import ORIENTED
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft, SkippingLog
from jaccard_eval.reading.rawboxes import CodedKeys, Keys, RawBoxes
from jaccard_eval.reading.tabular.columns import Columns, RowIndices, listed_names, propose_naming, read_naming
from jaccard_eval.reading.tabular.table import BoxCells, Column, Named, Table
from jaccard_eval.text import is_numeral, pluralise, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.similarity.obb import Quads

NORM_LIMIT = 1.01  # coordinates up to here, some fractional, are fractions of an image; exporters overshoot a little
NO_CLASS = 0  # the class of boxes that have none: an index, as label files of one class have it
BLOCK_ROWS = 1 << 16  # of boxes that are looked at at once
EDGE_SLACK = 0.01  # of an image's side: how far a box may reach outside before its encoding is doubted

_NUMERIC_NAME = pattern(r"(\d{1,18})(?:\.0+)?", re.ASCII)


def add_boxes(table: Table, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Add images, classes and boxes to the draft, with a note on everything that was decided on the way."""
    if cells.n_unused_scores:
        draft.mention_scores(cells.n_unused_scores)
    if table.typed:
        draft.findings.raise_errors()  # a key that is none cannot be indexed; a text always can
    if isinstance(draft.findings, SkippingLog) and draft.findings.places:
        faulty = draft.findings.faulty([table.place(int(row), None) for row in cells.rows])
        cells = cells.take(~np.isin(np.arange(len(cells.rows)), faulty))
    images = table.images(columns, cells.used)
    keys = list(images.keys.distinct)
    row_codes = images.keys.codes  # (rows of the table,)
    if len(cells.used) < len(table):
        row_codes = np.zeros(len(table), dtype=np.int64)
        row_codes[cells.used] = images.keys.codes
    sizes = _image_sizes(table, cells, images.keys.codes, len(keys), draft)
    if not table.listed:
        _note_without_box(table, cells, draft)
    if draft.options.role == "gt" and not table.listed:
        cells = _drop_zero_rows(table, cells, row_codes[cells.rows], draft)
    image_codes = row_codes if len(cells.rows) == len(table) else row_codes[cells.rows]
    units = _decide_units(table, cells.coords, draft)
    names = [images.names.get(key, str(key)) for key in keys]
    # Images are opened only for fractions, which need their sizes to become pixels.
    if units == "norm":
        draft.fill_sizes(sizes, names)
    draft.set_images(keys, file_names=[images.names.get(key) for key in keys], sizes=sizes, listed=table.listed)
    classes = table.classes(columns, cells.rows)
    if table.headerless and draft.options.columns is None:
        _doubt_positions(classes.keys, cells, draft)
    # Keys in addition to names are of use after all.
    beside = (images.beside, classes.beside)
    columns = replace(columns, unused=tuple(column for column in columns.unused if column not in beside))
    # Neither the table nor its cells: what messages need must not keep them alive.
    rows, place = cells.rows, table.place

    def where(row: int) -> Where:
        return place(int(rows[row]), None)

    box_sizes = BoxSizes(np.ones_like(sizes) if units == "norm" else sizes, image_codes)
    label = _set_classes(classes, draft)
    encoding = _decide_encoding(table, columns, cells.coords, box_sizes, draft)
    shapes = _oriented(cells, units, where, draft)
    if len({*columns.box}) == 2 and draft.options.role == "gt":
        draft.usual_protocol = "points"
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, image_codes),
            label=label,
            coords=cells.coords if shapes is None else from_xywh(shapes.bounds(), encoding),
            encoding=encoding,
            units=units,
            units_guessed=draft.options.units is None and table.units is None,
            place=where,
            score=cells.score,
            area=cells.area,
            crowd=cells.flags.get("crowd"),
            difficult=cells.flags.get("difficult"),
            group_of=cells.flags.get("group_of"),
            ignore=cells.flags.get("ignore"),
            shapes=shapes,
            no_score=_explain_no_score(table, columns, cells, draft.options),
        )
    )
    _compare_names(images, names, draft)
    _note_reading(table, columns, cells, draft)


def _doubt_positions(classes: CodedKeys, cells: BoxCells, draft: Draft) -> None:
    """Report a table without header whose numbers are not what keras-retinanet's mean in these places."""
    n, least, numbered = len(classes), 5, all(isinstance(key, int) for key in classes.distinct)
    odd = []
    if cells.score is not None and np.count_nonzero((cells.score < 0) | (cells.score > 1)) * 2 > n:
        odd.append("column 7 has no scores in 0..1")
    if n >= least and len(classes.distinct) * 2 > n and (numbered or all(map(is_numeral, map(str, classes.distinct)))):
        odd.append(f"column 6 has {len(classes.distinct):,} numbers in {n:,} rows, which are rather coordinates")
    if odd:
        detail = f"read as path, x1, y1, x2, y2, class and score, as there is no header, but {' and '.join(odd)}"
        fix = "Write a header line that names the columns, such as image,class,score,xmin,ymin,xmax,ymax."
        draft.findings.error("columns-ambiguous", Where(draft.path), detail, fix=fix)


def _note_without_box(table: Table, cells: BoxCells, draft: Draft) -> None:
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-no-box",
        cells.without_box,
        lambda row: (table.where(row), "all box cells are empty"),
        summary=lambda n: pluralise(
            n,
            "row names an image but has no box; counted as an image without objects",
            "rows name an image but have no box; counted as images without objects",
        ),
    )


def _oriented(cells: BoxCells, units: str, place: Callable[[int], Where], draft: Draft) -> Quads | None:
    """Return the oriented boxes of a table where these are asked for; else the boxes around them are read."""
    if draft.options.iou_type not in ORIENTED or (cells.corners is None and cells.angle is None):
        if cells.corners is not None:
            draft.details.append("the boxes around four corners")
        return None
    from jaccard_eval.reading.oriented import check_outlines, rectangles  # most tables have upright boxes
    from jaccard_eval.similarity.obb import Quads

    if cells.corners is not None:
        quads = Quads(cells.corners)
    else:
        angle = np.zeros(0) if cells.angle is None else cells.angle
        quads = rectangles(np.concatenate((cells.coords, angle[:, None]), axis=1), draft, place)
        if units == "norm":
            detail = "fractions of width and height, which differ, cannot be turned by an angle"
            fix = Fix.of_side(draft.options.role, "Export four corners, or pixels ({units} if these are).", units="px")
            draft.findings.error("angle-ambiguous", Where(draft.path, field="angle"), detail, fix=fix)
    check_outlines(quads, place, draft)
    return quads


def note_no_class(draft: Draft) -> None:
    """Report that a table has no column for the class, and what its boxes are then."""
    names = draft.options.names
    draft.has_no_class = not names
    fix = None if names else Fix.of_side(draft.options.role, "Pass {names} to name it.", names=None)
    detail = f"no column for the class: all boxes are of class {quoted_value(names[0]) if names else NO_CLASS}"
    draft.findings.note("csv-one-class", Where(draft.path), detail, fix=fix)


def lacks_scores(cells: BoxCells, options: ReadOptions) -> bool:
    """Whether boxes need a score that the table does not have under a known name."""
    return options.role == "pred" and options.assume_score is None and cells.score is None and len(cells.rows) > 0


def _explain_no_score(table: Table, columns: Columns, cells: BoxCells, options: ReadOptions) -> tuple[str, Fix] | None:
    """Name the columns that were not used, any of which may hold the score; no score is assumed where one seems to."""
    unused = columns.unused if columns.score is None else (columns.score, *columns.unused)
    if not unused or not lacks_scores(cells, options):
        return None
    why = f"; columns not used: {listed_names([table.titles[column] for column in unused])}"
    like = [table.titles[column] for column in unused if _looks_like_score(table.columns[column], cells.rows)]
    naming = propose_naming(options, {"score": like})
    if like:
        return why, Fix.missing("Pass {pred_columns}: every box has a number within 0..1 there.", pred_columns=naming)
    words = "Name the column of the scores: {pred_columns}. Without scores, pass {assume_score} to rank all equally."
    return why, Fix.missing(words, pred_columns=naming, assume_score="1.0")


def _looks_like_score(column: Column, rows: RowIndices) -> bool:
    """Whether every box has a number from 0 to 1 there, not all of them whole, as those of flags are."""
    if len(column.values) < len(rows):  # a column of a typed table that nobody asked for
        return False
    numbers, bad = column.numbers(rows)
    return not len(bad) and bool(((numbers >= 0) & (numbers <= 1)).all() and (numbers % 1).any())


def _drop_zero_rows(table: Table, cells: BoxCells, codes: RowIndices, draft: Draft) -> BoxCells:
    """Take rows with a box of four zeros as images without boxes, where the image has no other box (DeepForest)."""
    zero = np.logical_and.reduce([column == 0 for column in cells.coords.T])
    if not zero.any():
        return cells
    # Among other boxes of the image zeros are a degenerate box, and stay one.
    has_box = np.bincount(codes[~zero], minlength=int(codes.max()) + 1) > 0
    alone = zero & ~has_box[codes]
    rows = cells.rows[alone]
    draft.findings.add_rows(
        Severity.NOTE,
        "csv-row-zero",
        rows,
        lambda row: (table.where(row), "0, 0, 0, 0"),
        summary=f"{len(rows):,} rows with a box of four zeros are read as images without objects",
    )
    if len(rows):
        draft.ignored["csv-row-zero"] += len(rows)
    return cells.take(~alone)


def _image_sizes(table: Table, cells: BoxCells, codes: RowIndices, n_images: int, draft: Draft) -> FloatArray:
    """Return the size of each image (n_images, 2): the first that a row gives."""
    sizes = unknown_sizes(n_images)
    if cells.sizes is None:
        return sizes
    given = np.flatnonzero(np.isfinite(cells.sizes[:, 0]) & np.isfinite(cells.sizes[:, 1]))
    first = np.full(n_images, -1)
    first[codes[given[::-1]]] = given[::-1]  # backwards: the first row is written last and stays
    sizes[first >= 0] = cells.sizes[first[first >= 0]]
    width, height = cells.sizes.T
    other = np.flatnonzero((width != sizes[codes, 0]) | (height != sizes[codes, 1]))
    other = other[np.isfinite(cells.sizes[other]).all(axis=1)]  # those that give a size
    draft.findings.add_rows(
        Severity.WARNING,
        "image-size-conflict",
        cells.used[other],
        lambda row: (table.where(row), "width and height differ from an earlier row of the same image"),
        summary=lambda n: (
            f"{pluralise(n, 'row gives', 'rows give')} another size of the same image; the first size is used"
        ),
    )
    return sizes


def _decide_units(table: Table, coords: FloatArray, draft: Draft) -> str:
    """Return the asked units, else the table's, else "norm" when no coordinate exceeds 1 and some are fractions."""
    if draft.options.units or table.units:
        return draft.options.units or table.units or ""
    if not looks_normalised(coords):
        return "px"
    draft.details.append("normalised")
    draft.findings.note(
        "csv-normalised",
        Where(draft.path),
        "coordinates are read as normalised (fractions of image width and height), as none exceeds 1",
        fix=Fix.of_side(draft.options.role, "Pass {units} if they are pixels.", units="px"),
    )
    return "norm"


def looks_normalised(coords: FloatArray) -> bool:
    """Whether boxes look like fractions: no number exceeds 1, and some are not whole numbers."""
    within = len(coords) > 0 and all((np.abs(block) <= NORM_LIMIT).all() for block in _blocks(coords))
    return within and any((block % 1).any() for block in _blocks(coords))


def _blocks(rows: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield all rows, some at a time: what is computed of them takes little memory."""
    yield from (rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS))


@dataclass(frozen=True, slots=True, eq=False)
class BoxSizes:
    """The size of the image of each box."""

    of_image: FloatArray  # (n_images, 2), NaN where unknown
    image: RowIndices  # (n,)

    @property
    def are_known(self) -> bool:
        """Whether every box has one."""
        known = np.isfinite(self.of_image[:, 0]) & np.isfinite(self.of_image[:, 1])
        return all(bool(known[block].all()) for block in _blocks(self.image))

    def count_outside(self, coords: FloatArray, encoding: str) -> int:
        """Count the boxes that leave their images."""
        blocks = zip(_blocks(coords), _blocks(self.image), strict=True)
        return sum(int(_leaves_image(block, encoding, self.of_image[image]).sum()) for block, image in blocks)


def _decide_encoding(table: Table, columns: Columns, coords: FloatArray, box_sizes: BoxSizes, draft: Draft) -> str:
    """Return the header's encoding; columns x and y are centres when only so the boxes lie inside their images."""
    # Exporters mean corners or centres by x and y; only a box that leaves its image is evidence.
    x_name = table.header[columns.box[0]].lower()
    if draft.options.box or columns.encoding != "xywh" or x_name != "x":
        return columns.encoding
    n_outside = box_sizes.count_outside(coords, "xywh")
    # Centres are believed only where they put every box inside, and every size is known.
    if not n_outside or not box_sizes.are_known or box_sizes.count_outside(coords, "cxcywh"):
        return columns.encoding
    draft.details.append("x and y are centres")
    option = f"{draft.options.role}_box"
    draft.findings.warning(
        "csv-centres",
        Where(draft.path),
        f"x and y are read as box centres: read as corners, {n_outside:,} boxes leave their images",
        fix=Fix.reading(
            {option: "cxcywh"},
            metric="boxes inside their images",
            before=1 - n_outside / len(coords),
            after=1.0,
            words=f"Pass {{{option}:xywh}} if they are corners.",  # the fix is the reading that was taken
        ),
    )
    return "cxcywh"


def _leaves_image(coords: FloatArray, encoding: str, box_sizes: FloatArray) -> BoolArray:
    xywh = to_xywh(coords, encoding)
    with np.errstate(over="ignore"):
        near, far = xywh[:, :2], xywh[:, :2] + xywh[:, 2:]
    slack = EDGE_SLACK * box_sizes
    outside = (near < -slack) | (far > box_sizes + slack)  # (n, 2)
    return outside[:, 0] | outside[:, 1]


def _set_classes(classes: Named, draft: Draft) -> Keys:
    """Name the classes, numbered ones by the user's list before that of the table; return the class of each box."""
    distinct, names = classes.keys.distinct, draft.options.names
    numbered = all(isinstance(key, int) for key in distinct)
    listed, keys = draft.listed_names, [key for key in distinct if isinstance(key, int)]
    if numbered and keys and listed and names is None and not classes.names and classes.beside is None:
        first = 1 if min(keys) > 0 and max(keys) == len(listed) else 0
        if first <= min(keys) and max(keys) < first + len(listed):
            detail = f"its classes are numbers; named by the {len(listed)} names that it lists, from {first} on"
            fix = Fix.of_side(draft.options.role, "For other names, pass {names}.", names=None)
            draft.findings.note("names-found", Where(draft.path), detail, fix=fix)
            draft.set_classes(range(first, first + len(listed)), listed)
            return classes.keys
    if numbered and names is not None and classes.beside is None:
        draft.set_classes(range(len(names)), names)
    elif classes.names or not numbered:
        if names is not None:
            detail = f"classes are {'texts' if classes.beside is None else 'named'}: the list of names is ignored"
            draft.findings.note("csv-names-unused", Where(draft.path), detail)
        # Names of the file go before a list of the user, and a note reports it.
        given = classes.names or {key: str(key) for key in distinct}
        draft.set_classes(list(given), list(given.values()), named=classes.named)
    return classes.keys


def _compare_names(images: Named, names: list[str], draft: Draft) -> None:
    """Look for names that are one number, and keep them for comparison with those of other parts."""
    if images.names or any(isinstance(key, str) for key in images.keys.distinct):  # numbers have one spelling
        draft.image_names = names
        warn_alike_images(names, Where(draft.path), draft.findings)


def warn_alike_images(images: Iterable[str], where: Where, findings: FindingLog) -> None:
    """Warn of image names that are one number written in several ways, as spreadsheets make of 001."""
    spellings: defaultdict[int, list[str]] = defaultdict(list)
    for name in images:
        if match := _NUMERIC_NAME.fullmatch(name):
            spellings[int(match[1])].append(name)
    alike = [names for names in spellings.values() if len(names) > 1]
    findings.add_rows(
        Severity.WARNING,
        "image-names-alike",
        range(len(alike)),
        lambda group: (
            where,
            f"image names {', '.join(map(quoted_value, alike[group]))} are different images",
        ),
        fix="If they are the same image, write its name the same way (spreadsheets turn 001 into 1).",
    )


def _note_reading(table: Table, columns: Columns, cells: BoxCells, draft: Draft) -> None:
    """Report which columns were read, and how, and which were not."""
    where = Where(draft.path)
    box = ", ".join(table.titles[column] for column in dict.fromkeys(columns.box))
    packed = f" ({columns.encoding})" if len(columns.box) == 1 else ""
    draft.details.append(f"box from {box}{packed}" + (" (no header: keras-retinanet)" if table.headerless else ""))
    named = [
        (name, title)
        for name, title in zip(table.header, table.titles, strict=True)
        if name in read_naming(draft.options.columns)
    ]
    draft.details += [f"{name} from {title}" for name, title in named]
    if table.decimal_commas:
        draft.details.append("decimal commas")
        draft.findings.note("csv-decimal-commas", where, "numbers are read with decimal commas: 10,5 is 10.5")
    if columns.unused:
        names = listed_names([table.titles[column] for column in columns.unused])
        draft.findings.note("csv-columns-unused", where, f"columns ignored: {names}")
