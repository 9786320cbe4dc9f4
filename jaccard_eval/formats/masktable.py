"""Tables of masks: a row for each object, its pixels as runs, as Kaggle has them, or its outline as well-known text.

Runs are pairs of a first pixel, counted from 1 down the columns, and a length. Where pixels are counted from 0, or each
run begins behind the one before it, the numbers can mean nothing else. A row without a mask names an image without
objects. The size of an image is in the table, in the image folder, or in the other input.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import rings_of
from jaccard_eval.reading.peek import FIRST, Kind, Likeness, Peek
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.reading.tabular.columns import (
    CLASS,
    IMAGE,
    SCORE,
    SIZES,
    find_column,
    is_header,
    listed_names,
    meant_header,
    position_of,
    read_naming,
)
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="masktable",
    summary="CSV of masks, a row per object: Kaggle's EncodedPixels, SpaceNet's PolygonWKT_Pix",
    source="https://www.kaggle.com/competitions/airbus-ship-detection/data and https://spacenet.ai",
    example="ImageId,EncodedPixels,Width,Height\nstreet.jpg,1 3 11 3 21 3,20,10\nfield.jpg,,20,10\n",
    carries=("images", "sizes", "scores"),
    suffixes=(".csv", ".tsv"),
    reads={"bbox": "bounds of the masks", "segm": "EncodedPixels, rle, annotation; WKT polygons; coords_x, coords_y"},
)

# Columns of masks, those in pixels first, and of an image and a class in one.
_MASK = (
    "encoded_pixels", "polygon_wkt_pix", "rle", "rle_mask", "mask_rle", "encoded_mask", "rle_encoded", "encoding",
    "rles", "polygon_wkt", "multipolygon_wkt", "wkt", "geometry", "segmentation", "annotation", "mask", "predicted",
    "polygon", "polygons", "points",
)  # fmt: skip
_OF_CORNERS = ("polygon", "polygons", "points")  # whose lists of numbers are not runs
_JOINED = (
    "image_id_class_id",
    "image_class",
    "image_label",
    "image_id_label",
    "image_class_id",
    "id_class",
    "id_label",
)
_BY_AXIS = ("coords_x", "coords_y")  # of NuCLS
_CLASS = ("main_classification", "super_classification", "raw_classification")
_EMPTY = ("", "-1", "nan", "none", "null", "[]", "1 0", "0 0")  # of objects that are not there
_CELL = pattern(
    r"\s*(?:\[?\s*-?\d+(?:\.\d*)?[ ,]+-?\d+(?:\.\d*)?(?:[ ,\]]|\s*$)|(?:SRID=\d+;)?(?:MULTI)?POLYGON\b|\{\s*['\"]"
    r"|\[\s*[\[(])",
    re.IGNORECASE,
)
_NUMBER = pattern(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_FIX = "Write pairs of a first pixel and a length, such as '1 3 11 3', or POLYGON ((0 0, 9 0, 9 9, 0 0))."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Places of the columns in a row."""

    mask: int
    mask_y: int | None  # of outlines whose x and y stand in two columns
    image: int | None  # without, a table is of the image that it is called after
    label: int | None
    score: int | None
    size: tuple[int, int] | None  # of the columns of width and height
    is_joined: bool  # whether an image and a class stand in one cell, with an underscore between them


def _layout(header: Sequence[str]) -> _Layout | None:
    def first(names: Sequence[str]) -> int | None:
        return next((at for name in names if (at := find_column(header, name)) is not None), None)

    mask, joined = first(_MASK), first(_JOINED)
    mask_y = find_column(header, _BY_AXIS[1])
    if mask is None and mask_y is not None:
        mask = find_column(header, _BY_AXIS[0])
    if mask is None or is_header(header):
        return None
    others = [name if at != mask else "" for at, name in enumerate(header)]
    image = joined if joined is not None else position_of(others, IMAGE)
    if image is None and (image := first(("id",))) is None and mask_y is None:
        return None
    sizes = ((find_column(header, wide), find_column(header, high)) for wide, high in SIZES)
    size = next(((wide, high) for wide, high in sizes if wide is not None and high is not None), None)
    label, score = position_of(others, CLASS), position_of(others, SCORE)
    if label is None:
        label = first(_CLASS)
    return _Layout(
        mask=mask,
        mask_y=mask_y,
        image=image,
        label=None if label == image else label,
        score=score,
        size=size,
        is_joined=joined is not None and image == joined,
    )


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a table by the columns of its header, and by what its first cells hold."""
    if peek.is_folder:
        tables = peek.first_files(lambda name: name.lower().endswith(".csv"))
        layouts = [_layout_of(table) for table in tables]
        are_images = len(tables) == len([name for name in peek.files if not name.startswith(".")][:FIRST])
        is_one_each = are_images and all(layout is not None and layout.image is None for layout in layouts)
        return Likeness.STRUCTURE if tables and is_one_each else None
    if peek.kind is not Kind.TEXT or not peek.lines:
        return None
    import csv

    from jaccard_eval.reading.tabular.columns import fields_up_to, split_first_line  # only where a table is possible

    delimiter, header = split_first_line(peek.lines[0])
    layout = _layout(header)
    if layout is None:
        return None
    with fields_up_to(len(peek.text)):
        rows = [*csv.reader(peek.lines[1:], delimiter=delimiter)]
    cells = [row[layout.mask] for row in rows if len(row) > layout.mask]
    filled = [cell for cell in cells if cell.strip().lower() not in _EMPTY]
    return Likeness.STRUCTURE if all(map(_CELL.match, filled)) and (filled or len(cells) > 0) else None


def _layout_of(table: Peek) -> _Layout | None:
    from jaccard_eval.reading.tabular.columns import split_first_line

    return _layout(split_first_line(table.lines[0])[1]) if table.lines else None


def reads_name(name: str) -> bool:
    """Whether a file of a folder is read, by its name."""
    return name.lower().endswith(FORMAT.suffixes)


def iou_types(_: Peek) -> set[str]:
    """Return what there is: boxes around masks are compared only where they are asked for."""
    return {"segm"}


def holds_no_scores(peek: Peek, _: Path | None) -> bool:
    """Whether a table has no column of scores, and several objects of one image and class, as maps of classes have not.

    Of a folder of tables of an image each, every one has its own.
    """
    import csv

    from jaccard_eval.reading.tabular.columns import fields_up_to, split_first_line

    if peek.is_folder:
        layouts = [_layout_of(table) for table in peek.first_files(reads_name)]
        return all(layout is not None and layout.score is None for layout in layouts)
    layout = _layout_of(peek)
    if layout is None or layout.score is not None:
        return False
    text, seen = files.read_text(peek.path), set[tuple[str, str]]()
    with fields_up_to(len(text)):
        for row in csv.reader(text.splitlines()[1:], delimiter=split_first_line(peek.lines[0])[0]):
            if max(place for place in (layout.mask, layout.image, layout.label) if place is not None) < len(row):
                named = _names(row, layout)
                if named in seen:
                    return True
                seen.add(named)
    return False


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and masks of a table to the draft, or of tables of an image each."""
    from jaccard_eval.reading.tabular.table import note_no_class

    is_folder = files.is_folder(path)
    tables = [path]
    if is_folder:
        tables = [path / name for name in sorted(files.list_folder(path)[1]) if reads_name(name)]
    if not tables:
        raise DataError.single("labels-missing", Where(str(path)), "no .csv files", fix="Pass the folder of them.")
    side = RecordCollector(draft)
    labelled = [_read_table(table, side, draft, options) for table in tables]
    draft.findings.raise_errors()
    side.to_draft(encoding="xywh", listed=is_folder)
    if not all(labelled):
        note_no_class(draft)


def _read_table(path: Path, side: RecordCollector, draft: Draft, options: ReadOptions) -> bool:
    """Add the masks of a table; return whether these have classes."""
    import csv

    from jaccard_eval.reading.tabular.columns import fields_up_to, first_line, split_first_line

    text = files.read_text(path)
    naming = read_naming(options.columns)
    delimiter, header = split_first_line(first_line(text)[1], naming)
    layout = _layout(meant_header(header, naming))
    if layout is None:
        detail = f"no columns for an image and a mask among {listed_names(header)}"
        fix = f"Name them image_id and one of {', '.join(_MASK)}."
        raise DataError.single("csv-column-missing", Where(str(path), line=1), detail, fix=fix)
    rows: list[tuple[Where, list[str]]] = []
    with fields_up_to(len(text)):
        reader = csv.reader(text.splitlines(), delimiter=delimiter)
        next(row for row in reader if row)
        for row in reader:
            where = Where(str(path), line=reader.line_num)
            if len(row) == len(header):
                rows.append((where, [cell.strip() for cell in row]))
            elif row:
                detail = f"expected {len(header)} fields, got {len(row)}"
                draft.findings.error("csv-fields", where, detail, fix="Export the table again.")
    if layout.image is None:  # as if it stood in each row
        rows = [(where, [*row, path.stem]) for where, row in rows]
        if not rows:
            side.add_image(path.stem)
    _add_rows(rows, layout, header, side, draft)
    used = {layout.mask, layout.mask_y, layout.image, layout.label, layout.score, *(layout.size or ())}
    unused = [name for at, name in enumerate(header) if at not in used]
    if unused:
        draft.findings.note("csv-columns-unused", Where(str(path)), f"columns ignored: {listed_names(unused)}")
    return layout.label is not None or layout.is_joined


def _add_rows(
    rows: Sequence[tuple[Where, list[str]]],
    layout: _Layout,
    header: Sequence[str],
    side: RecordCollector,
    draft: Draft,
) -> None:
    from jaccard_eval.reading.tabular.table import NO_CLASS

    images = list(dict.fromkeys(_names(row, layout)[0] for _, row in rows))
    sizes = _sizes(rows, layout, images, draft)
    size_of = dict(zip(images, sizes.tolist(), strict=True))
    for image, (width, height) in size_of.items():
        side.add_image(image, size=(width, height))
    cells = [row[layout.mask].strip("[] ") for _, row in rows]
    of_runs = [cell for cell in cells if cell[:1].isdigit() and cell not in _EMPTY]
    runs = _Runs.of(of_runs)
    if layout.mask_y is not None:
        of_runs = []
    is_polygon = layout.mask_y is not None or header[layout.mask].strip().lower() in _OF_CORNERS
    for where, row in rows:
        cell, (image, label) = row[layout.mask], _names(row, layout)
        if cell.lower() in _EMPTY:
            continue
        if layout.mask_y is not None:
            xs, ys = (_NUMBER.findall(row[column]) for column in (layout.mask, layout.mask_y))
            cell = " ".join(number for pair in zip(xs, ys, strict=False) for number in pair)
            if len(xs) != len(ys):
                place = Where(where.path, line=where.line, field=header[layout.mask])
                detail = f"has {len(xs):,} numbers, and {header[layout.mask_y]} has {len(ys):,}"
                draft.findings.error("segmentation-invalid", place, detail, fix="Export the table again.")
                continue
        width, height = size_of[image]
        size = (0, 0) if math.isnan(width) else (int(height), int(width))
        given = row[layout.score] if layout.score is not None else ""
        score = float(given) if is_numeral(given) else math.nan
        if given and math.isnan(score):
            detail = f"{quoted_value(given)} is not a plain finite number"
            draft.findings.error("csv-number", where, detail, fix="Write numbers with a decimal point.")
        key = int(label) if label.isascii() and label.isdigit() else label or NO_CLASS
        problem = _add_mask(side, (image, key), cell, (size, where, score), runs, is_polygon=is_polygon)
        if problem:
            place = Where(where.path, line=where.line, field=header[layout.mask])
            draft.findings.error("segmentation-invalid", place, problem, fix=_FIX)
    if runs.meaning:
        draft.details.append(runs.meaning)
    if draft.options.iou_type not in MASKS and np.isnan(sizes).any() and of_runs:
        detail = "the boxes around runs need the width and height of images, which are not known"
        sizes_of = {f"{draft.options.role}_images": None}
        words = f"Compare masks with {{iou_type}}, or pass the image folder with {{{draft.options.role}_images}}."
        fix = Fix.missing(words, iou_type="segm", **sizes_of)
        draft.findings.error("size-unknown", Where(draft.path), detail, fix=fix)


def _add_mask(
    side: RecordCollector,
    keys: tuple[str, int | str],
    cell: str,
    place: tuple[tuple[int, int], Where, float],
    runs: _Runs,
    *,
    is_polygon: bool,
) -> str:
    """Add the mask of a cell, in an image of a height and a width, with a score; return the problem if there is one."""
    from jaccard_eval.reading.outlines import is_wkt, rings_of_wkt

    (height, width), where, score = place
    try:
        if is_wkt(cell):
            rings = rings_of_wkt(cell)
            if rings:
                side.add_polygons(*keys, rings, where, score=score)
            return ""
        if is_polygon and cell[:2] != "[[" and cell[:1] != "{":
            numbers = [float(number) for number in _NUMBER.findall(cell)]
            return side.add_outline(*keys, [numbers], where, score=score)
        if cell[:1] == "{" or re.match(r"\[\s*\[", cell):
            outline = json.loads(cell.replace("'", '"'))
            return side.add_outline(*keys, (is_polygon and rings_of(outline)) or outline, where, score=score)
        edges = runs.edges(cell)
    except ValueError as error:
        return str(error)
    if height and edges[-1] > height * width:
        return f"runs reach pixel {edges[-1]:,}, but the image has {width} x {height} (width x height)"
    side.add_pixels(*keys, edges, (height, width), where, score=score)
    return ""


def _names(row: Sequence[str], layout: _Layout) -> tuple[str, str]:
    """Return the image and the class of a row; the class is empty where there is none."""
    named = row[-1] if layout.image is None else row[layout.image]
    if layout.is_joined:
        image, _, label = named.rpartition("_")
        return image, label
    return named, "" if layout.label is None else row[layout.label]


def _sizes(
    rows: Sequence[tuple[Where, list[str]]], layout: _Layout, images: Sequence[str], draft: Draft
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the width and height of each image, (n, 2): from the table, else from the image folder; NaN if unknown."""
    sizes = np.full((len(images), 2), np.nan)
    if layout.size is not None:
        at = {image: place for place, image in enumerate(images)}
        for where, row in rows:
            given = [row[place] for place in layout.size]
            if not all(text.isascii() and text.isdigit() and 0 < len(text) < 8 and int(text) for text in given):
                detail = f"width and height are {' and '.join(map(quoted_value, given))}"
                draft.findings.error("image-size", where, detail, fix="Write whole numbers of pixels.")
                continue
            own = sizes[at[_names(row, layout)[0]]]
            if not np.isnan(own).any() and own.tolist() != [*map(float, given)]:
                detail = f"width and height are {given[0]} and {given[1]}, before {own[0]:g} and {own[1]:g}"
                draft.findings.error("image-size", where, detail, fix="Write one size for each image.")
            own[:] = [*map(float, given)]
    draft.fill_sizes(sizes, list(images))
    return sizes


@dataclass(frozen=True, slots=True)
class _Runs:
    """What the numbers of runs mean in all rows of a table."""

    first: int  # the number of the first pixel
    is_relative: bool  # whether a run begins so many pixels behind the one before it

    @classmethod
    def of(cls, cells: Sequence[str]) -> _Runs:
        """Return the one meaning that the numbers can have; runs that ascend from 1 on are Kaggle's."""
        n_several = n_back = 0
        least = 1
        for cell in cells:
            numbers = cell.replace(",", " ").split()
            try:
                starts, lengths = (np.array(numbers[at::2], dtype=np.int64) for at in (0, 1))
            except (ValueError, OverflowError):
                continue
            if len(starts) != len(lengths) or not len(starts):
                continue
            least = min(least, int(starts.min()))
            n_several += len(starts) > 1
            n_back += bool((starts[1:] < starts[:-1] + lengths[:-1]).any())
        is_relative = n_back * 2 > n_several
        return cls(0 if is_relative or least == 0 else 1, is_relative)

    @property
    def meaning(self) -> str:
        """What is unusual in it, for people."""
        if self.is_relative:
            return "runs begin behind the ones before them"
        return "" if self.first else "pixels of runs are counted from 0"

    def edges(self, cell: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return where a mask begins and ends, by turns; a ValueError where the numbers are other than runs."""
        words = cell.strip("[]").replace(",", " ").split()
        if not all(word.isascii() and word.isdigit() and len(word) < 16 for word in words):
            wrong = next(word for word in words if not (word.isascii() and word.isdigit() and len(word) < 16))
            raise ValueError(f"{quoted_value(wrong)} is not a whole number of pixels")
        if len(words) % 2:
            raise ValueError(f"has {len(words):,} numbers; expected pairs of a first pixel and a length")
        starts, lengths = np.array(words, dtype=np.int64).reshape(-1, 2).T
        if self.is_relative:
            starts = np.cumsum(starts + lengths) - lengths
        starts = starts - self.first
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        ends = starts + lengths
        if (starts[1:] < ends[:-1]).any():
            at = int(np.argmax(starts[1:] < ends[:-1])) + 1
            raise ValueError(f"run {at + 1} begins at {starts[at] + self.first:,}, before the one before it has ended")
        if not len(starts):
            raise ValueError("has no pixels")
        edges = np.stack((starts, ends), axis=1).ravel()
        joined = np.flatnonzero(edges[1:-1:2] == edges[2::2]) * 2 + 1  # runs that touch are one
        return np.delete(edges, np.concatenate((joined, joined + 1)))
