"""Reading text labels: from lines to boxes and classes, with the polygons and poses next to them where asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import BoolArray, FloatArray, Shapes, from_xywh, to_xywh
from jaccard_eval.data.dataset import Key, unknown_sizes
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import DataError, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._yolo.columns import (
    POSE,
    ColumnChoice,
    Columns,
    Frame,
    IntArray,
    LabelLines,
    LineReporter,
    check_columns,
    check_finite,
    check_indices,
    check_units,
    choose_columns,
    choose_encoding,
    choose_oriented,
    choose_pose,
    is_mostly_normalised,
    named_columns,
    pose_columns,
    read_label_files,
    separator_of,
    spelled,
    split_lines,
    take_difficult,
    uses_names,
)
from jaccard_eval.formats._yolo.sources import (
    LabelSource,
    add_images,
    find_description,
    find_kpt_shape,
    labels_of_folder,
    read_description,
    require_labels,
)
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.blocks import needs_whole, part_of
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import mention_other_files
from jaccard_eval.reading.names import find_names, read_names, warn_repeated
from jaccard_eval.reading.oriented import check_outlines, rectangles
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import Runs, offsets_of
from jaccard_eval.text import pluralise


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """Lines of labels: where the numbers of each shape begin among all values, and how many there are."""

    reporter: LineReporter
    rows: IntArray
    values: FloatArray
    first: IntArray
    count: IntArray


def polygons(values: FloatArray, first: IntArray, count: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the corners (c, 2) of polygons that stand among values, one behind the other, and their offsets."""
    offsets = offsets_of(count // 2)
    # All at once: a segmentation set has millions of them.
    at = np.repeat(first - 2 * offsets[:-1], count // 2) + 2 * np.arange(int(offsets[-1]))
    return np.stack((values[at], values[at + 1]), axis=1), offsets


def read_shapes(
    lines: ShapeRows, columns: Columns, drawn: BoolArray, coords: FloatArray, encoding: str
) -> tuple[BoolArray | None, Shapes | None]:
    """Return which objects do not count, and the shapes that are asked for; neither where lines have none.

    Lines that are `drawn` (n,) are polygons; the others have boxes, `coords` (n, 4) in an `encoding`.
    """
    iou_type = lines.reporter.draft.options.iou_type
    if iou_type == "keypoints" and columns.shape == POSE:
        return _read_poses(lines, columns)
    if columns.shape == "xywhr" or (iou_type in ORIENTED and columns.shape == "obb"):
        return None, _read_quads(lines, columns)
    if iou_type in MASKS and columns.shape != POSE and drawn.any():
        return None, _read_outlines(lines, drawn, coords, encoding)
    return None, None


def _read_outlines(lines: ShapeRows, drawn: BoolArray, coords: FloatArray, encoding: str) -> Outlines:
    """Return the polygon of each line; predictions that have a box alone are the rectangle of it."""
    draft, (bare,) = lines.reporter.draft, np.nonzero(~drawn)
    if draft.options.role == "gt":
        fix = Fix.missing("Give every object a polygon, or compare boxes: {iou_type}.", iou_type="bbox")
        lines.reporter.report(
            "segmentation-invalid", lines.rows[bare], lambda _: "is a box; expected a polygon of 3 points or more", fix
        )
    else:
        draft.findings.add_rows(
            Severity.WARNING,
            "mask-of-box",
            bare,
            lambda row: (lines.reporter.place(int(lines.rows[row])), ""),
            summary=f"{len(bare):,} of {len(drawn):,} predictions have no mask: the rectangle of the box is used",
        )
    corners, rings = polygons(lines.values, lines.first[drawn], lines.count[drawn])
    x, y, width, height = to_xywh(coords[bare], encoding).T
    # In the order of what COCO's loader makes of a box.
    boxes = np.stack((x, y, x, y + height, x + width, y + height, x + width, y), axis=1).reshape(-1, 2)
    n, n_boxes = len(drawn), len(bare)
    all_rings = offsets_of(np.concatenate((np.diff(rings), np.full(n_boxes, 4))))
    none = Masks(Runs(np.zeros(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)), np.zeros((n, 2), dtype=np.int64))
    every = np.ones(n, dtype=np.bool_)
    # A polygon has no area of its own in such files: that of its pixels counts.
    counted = np.concatenate((every[: n - n_boxes], np.zeros(n_boxes, dtype=np.bool_)))
    outlines = Outlines(np.concatenate((corners, boxes)), all_rings, np.arange(n + 1), none, every, counted)
    return outlines.take(np.argsort(np.concatenate((np.flatnonzero(drawn), bare)), kind="stable"))


def _read_quads(lines: ShapeRows, columns: Columns) -> Quads:
    """Return the oriented box of each line: four corners, or centre, sizes and angle."""
    draft, first = lines.reporter.draft, lines.first

    def place(row: int) -> Where:
        return lines.reporter.place(int(lines.rows[row]))

    if columns.shape == "xywhr":
        # As Ultralytics has them.
        quads = rectangles(lines.values[first[:, None] + np.arange(5)], draft, place, usual="rad-cw")
    else:
        quads = Quads(lines.values[first[:, None] + np.arange(8)].reshape(-1, 4, 2))
    check_outlines(quads, place, draft)
    return quads


def _read_poses(lines: ShapeRows, columns: Columns) -> tuple[BoolArray | None, Keypoints]:
    """Return which objects have no labelled point, and the points of each line."""
    (n_points, width), draft = columns.points, lines.reporter.draft
    at = lines.first[:, None] + 4 + np.arange(n_points * width)
    points = np.ones((len(at), n_points, 3))
    points[:, :, :width] = lines.values[at].reshape(len(at), n_points, width)
    if draft.options.role == "pred":
        return None, Keypoints(points)
    if width == 2:  # a point that is not there is written as zeros, or as negative numbers
        points[:, :, 2] = np.where((points[:, :, :2] == 0).all(axis=2) | (points[:, :, :2] < 0).any(axis=2), 0, 2)
    seen = points[:, :, 2]
    wrong = ~np.isin(seen, (0, 1, 2))

    def describe(line: int) -> str:
        row = int(np.searchsorted(lines.rows, line))
        point = int(np.flatnonzero(wrong[row])[0])
        return f"keypoint {point + 1}: visibility is {seen[row, point]:g}; expected 0 (not labelled), 1 or 2"

    words = "Write x, y and visibility of each keypoint, or name other columns with {gt_columns} (pose-17x2, ...)."
    fix = Fix.missing(words, gt_columns=None)
    lines.reporter.report("keypoints-invalid", lines.rows[wrong.any(axis=1)], describe, fix)
    detail = "labels have no areas: OKS measures distances by the area of the box"
    draft.findings.note("area-missing", Where(draft.path), detail)
    return np.all(seen == 0, axis=1), Keypoints(points)


LINE_BYTES = 45  # of a prediction, about, for so many of them at a time
_UNITS = {"norm": "normalised", "px": "pixels"}


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft."""
    source = _find_source(path, draft, options)
    paths = list(source.files.values())
    reporter = LineReporter(read_label_files(paths, draft.findings), paths, draft)
    sizes = add_images(source, draft)
    source = _with_names(source, draft, options, search=not uses_names(reporter.lines))
    if len(reporter.lines):
        _add_lines(reporter, list(source.files), sizes, source)
    elif source.names is not None:
        draft.set_classes(range(len(source.names)), source.names)
    mention_other_files(source.root, source.other_files, draft)


def read_labels_in_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield a draft with the images, then drafts with the boxes of some files each; ground truth is one part.

    Each part settles columns and encoding alone, and they must agree. Parts that are in no doubt decide as the whole:
    majorities and evidence add up, and what every line must show every part does.
    """
    if options.role == "gt":
        with part_of(draft) as part:
            read_labels(path, part, options)
            yield part
        return
    source = _find_source(path, draft, options)
    if source.other_files:
        raise needs_whole(path, "it holds other files than labels")
    keys, sizes = list(source.files), add_images(source, draft)
    with part_of(draft) as part:
        part.take_images(draft, range(len(draft.image_keys)))
        yield part
    at = {key: row for row, key in enumerate(draft.image_keys)}
    mark, is_named = separator_of(list(source.files.values())), False
    for group in _groups(list(source.files.values()), rows * LINE_BYTES):
        with part_of(draft) as part:
            own, paths = keys[group], list(source.files.values())[group]
            part.take_images(draft, [at[key] for key in own if key in at])
            reporter = LineReporter(read_label_files(paths, part.findings, mark), paths, part)
            part.findings.raise_errors()
            if not is_named and len(reporter.lines):
                source = _with_names(source, draft, options, search=not uses_names(reporter.lines))
                is_named = True
            if len(reporter.lines):
                _add_lines(reporter, own, sizes[group], source)
            yield part


def _groups(paths: list[Path], size: int) -> Iterator[slice]:
    """Yield slices of files that have about so many bytes together."""
    first = n_bytes = 0
    for row, path in enumerate(paths):
        n_bytes += path.stat().st_size
        if n_bytes >= size:
            yield slice(first, row + 1)
            first, n_bytes = row + 1, 0
    if first < len(paths):
        yield slice(first, len(paths))


def _find_source(path: Path, draft: Draft, options: ReadOptions) -> LabelSource:
    try:
        description = find_description(path)  # a data.yaml or a darknet obj.data
        if description is None:
            source = labels_of_folder(path, options.split, draft.findings)
            draft.has_splits = "split-chosen" in {finding.code for finding in draft.findings.findings()}
        else:
            draft.has_splits = True
            source = read_description(description, options.split, draft.findings)
        require_labels(source, options.role, draft.findings)
    except DataError as error:
        # What was reported before the search failed may be why it did.
        draft.findings.extend(error.findings)
        raise DataError(draft.findings.findings()) from None
    return source


def add_listed_lines(
    path: Path, images: Sequence[str], labels: Sequence[str], draft: Draft, options: ReadOptions
) -> None:
    """Add one text about many images: `labels` is a line for each of its lines, `images` for each that is not blank."""
    keys = list(dict.fromkeys(images))
    at = {key: row for row, key in enumerate(keys)}
    lines = split_lines(labels, np.array([at[image] for image in images], dtype=np.int64))
    reporter = LineReporter(lines, [path] * len(keys), draft)
    sizes = unknown_sizes(len(keys))
    draft.fill_sizes(sizes, keys)
    draft.set_images(keys, file_names=keys, sizes=sizes, listed=False)
    if len(lines):
        # Without label files: all that it provides is where a file of names may lie, next to the text.
        source = LabelSource(root=path.parent, files={})
        _add_lines(reporter, keys, sizes, _with_names(source, draft, options, search=not uses_names(lines)))


def _with_names(source: LabelSource, draft: Draft, options: ReadOptions, *, search: bool) -> LabelSource:
    """Give a source the names that the user gave, else its own, else (`search`) those of a file near the labels."""
    if source.kpt_shape is None and (given := find_kpt_shape(source.root)) is not None:
        source = replace(source, kpt_shape=given)
    if options.names is not None:
        warn_repeated(options.names, Where(draft.path, field="names"), draft.findings)
        return replace(source, names=options.names, names_from="the given list of names")
    found = find_names(source.root) if search and source.names is None else None
    if found is None:
        return source
    try:
        return replace(source, names=read_names(found, draft.findings), names_from=str(found))
    except DataError as error:
        first = error.findings[0].examples[0]
        draft.findings.warning("names-unusable", first.where, f"{first.detail}; it is not used")
        return source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """How the lines of a set are read."""

    reporter: LineReporter
    columns: Columns
    encoding: str  # empty: still to be found
    numbers: IntArray  # (n_lines,), behind the class
    difficult: BoolArray  # (n_lines,)


def _add_lines(reporter: LineReporter, keys: Sequence[str], file_sizes: FloatArray, source: LabelSource) -> None:
    """Add the classes and boxes of label lines to the draft.

    `keys` are the image of each file, `file_sizes` (n_files, 2) its width and height in pixels, NaN where unknown.
    """
    draft, lines, difficult = reporter.draft, reporter.lines, np.zeros(len(reporter.lines), dtype=np.bool_)
    if draft.options.role == "gt":
        lines, difficult = take_difficult(lines)
        reporter = replace(reporter, lines=lines)
    by_name = uses_names(lines)
    # Behind names only the numbers at the end count, and the first field is a name, even one such as "7".
    numbers = np.minimum(lines.trailing_numbers(), lines.count - 1) if by_name else lines.count - 1
    choice = _settle_columns(draft, lines, numbers, file_sizes[lines.file], by_name=by_name, source=source)
    columns = choice.columns
    good = check_columns(reporter, columns, numbers, by_name=by_name)
    if by_name and columns.shape == "box":
        numbers = np.minimum(numbers, columns.box_width)  # the rest ends the name
    rows = np.flatnonzero(good)
    if columns.shape == "polygon" and columns.sibling is not None and not columns.accepts(numbers[rows]).all():
        columns = columns.sibling  # boxes among polygons are polygons among boxes: the former have an encoding
    # Each check sees the lines that the ones before it kept, so that a line is reported once.
    if not by_name:
        # Of predictions, -1 may be a class that is counted once too low, which only the boxes of the truth can show.
        least = -1 if draft.options.role == "pred" and source.names is None else 0
        rows = rows[check_indices(reporter, rows, source.names, source.names_from, least)]
    rows = rows[check_finite(reporter, rows, numbers)]
    if by_name:
        labels: IntArray | list[Key] = _add_named_classes(draft, lines, rows, numbers, source)
    else:
        labels = lines.values[lines.first[rows]].astype(np.int64)
        if source.names is not None:
            draft.set_classes(range(len(source.names)), source.names)
            draft.details.append(f"class names from {source.names_from}")
        else:
            used = np.unique(labels).tolist()
            draft.set_classes(used, [str(index) for index in used], named=False)
    label_set = _Set(
        reporter=reporter,
        columns=columns,
        # Poses are Ultralytics' alone.
        encoding=draft.options.box or choice.encoding or ("cxcywh" if columns.shape == POSE else ""),
        numbers=numbers,
        difficult=difficult,
    )
    _add_rows(label_set, rows, keys, file_sizes, labels)


def _settle_columns(
    draft: Draft,
    lines: LabelLines,
    numbers: IntArray,
    sizes: FloatArray,
    *,
    by_name: bool,
    source: LabelSource,
) -> ColumnChoice:
    """Use the layout that the user or the description named, else the one that the set supports, and report it."""
    options = draft.options
    if options.columns is not None:
        return ColumnChoice(named_columns(options.columns))
    if source.kpt_shape is not None and not by_name:
        return ColumnChoice(pose_columns(numbers, source.kpt_shape, options.role))
    choice = choose_pose(lines, numbers, options.role) if options.iou_type == "keypoints" and not by_name else None
    if options.iou_type in ORIENTED and not by_name:
        choice = choose_oriented(lines, numbers, options.role)
    choice = choice or choose_columns(lines, numbers, sizes, by_name=by_name, options=options)
    words = "Name the layout with {columns} (box-conf, conf-box, box-track, ...)."
    fix = choice.fix or Fix.of_side(options.role, words, columns=None)
    if choice.is_undecided:
        draft.findings.error("columns-ambiguous", Where(draft.path), choice.assumption, fix=fix)
    elif choice.assumption:
        draft.findings.note("columns-assumed", Where(draft.path), choice.assumption, fix=fix)
    return choice


def _add_named_classes(
    draft: Draft, lines: LabelLines, rows: IntArray, numbers: IntArray, source: LabelSource
) -> list[Key]:
    """Add the classes that stand before the numbers of lines to the draft; return that of each of the lines `rows`."""
    labels: list[Key] = []
    for line in rows.tolist():
        if line in lines.text:
            labels.append(lines.text[line].rsplit(" ", int(numbers[line]))[0])
        else:  # a class called "7" was read as a number
            start, n_words = int(lines.first[line]), int(lines.count[line] - numbers[line])
            labels.append(" ".join(f"{value:g}" for value in lines.values[start : start + n_words]))
    given = dict.fromkeys(source.names or ())
    new = sorted({str(label) for label in labels} - given.keys())
    if given and new:
        detail = f"{len(new):,} classes are not among {source.names_from}: {', '.join(new[:5])}"
        draft.findings.warning("class-unknown", Where(draft.path), detail + (", ..." if len(new) > 5 else ""))
    names = [*given, *new]
    draft.set_classes(names, names)
    return labels


def _add_rows(
    label_set: _Set, rows: IntArray, keys: Sequence[str], file_sizes: FloatArray, labels: IntArray | list[Key]
) -> None:
    draft, lines = label_set.reporter.draft, label_set.reporter.lines
    numbers = label_set.numbers[rows]
    start = lines.first[rows] + lines.count[rows] - numbers
    offset = label_set.columns.score_offset(numbers)
    score = None if offset is None else lines.values[start + offset]
    coords = _coordinates(label_set, start + label_set.columns.head, numbers)
    files = lines.file[rows]
    outlined = (numbers > label_set.columns.box_width) & (label_set.columns.shape == "box")
    units, encoding = _settle_encoding(label_set, coords[~outlined], file_sizes[files[~outlined]])
    ignore, shapes, of_box = None, None, None
    turned = label_set.columns.shape == "xywhr"
    if draft.options.iou_type != BOXES or turned:
        first, n_numbers = start + label_set.columns.head, numbers - label_set.columns.head - label_set.columns.tail
        drawn = outlined if label_set.columns.has_box else np.ones(len(rows), dtype=np.bool_)
        values = ShapeRows(label_set.reporter, rows, lines.values, first, n_numbers)
        ignore, shapes = read_shapes(values, label_set.columns, drawn, coords, encoding)
        of_box = None if shapes is None else ~drawn
    if turned and shapes is not None:
        coords = from_xywh(shapes.bounds(), encoding)
        shapes = shapes if draft.options.iou_type in ORIENTED else None
        if units == "norm":
            detail = "fractions of width and height, which differ, cannot be turned by an angle"
            words = "Export four corners, or pixels ({units} if these are)."
            fix = Fix.of_side(draft.options.role, words, units="px")
            draft.findings.error("angle-ambiguous", Where(draft.path), detail, fix=fix)
    if outlined.any():  # the box around a polygon is written like the other boxes of the set
        coords[outlined] = from_xywh(to_xywh(coords[outlined], "xyxy"), encoding)
        what = pluralise(int(outlined.sum()), "polygon among the boxes is", "polygons among the boxes are")
        if shapes is None:
            draft.findings.note("outline", Where(draft.path), f"{what} read as the box around it")
    check_units(label_set.reporter, rows, coords, units, encoding)
    order = label_set.columns.order  # nothing is computed from some of its columns
    if "track" in order:
        draft.ignored["track_id"] += len(rows)
        draft.findings.note("track-ids", Where(draft.path), "the track ids are not used")
    difficult = label_set.difficult[rows]
    if order[0] == "difficult":
        difficult = difficult | (lines.values[start] == 1)
    if "conf" in order and draft.options.role == "gt":
        draft.ignored["score"] += len(rows)
        draft.findings.note("gt-scores", Where(draft.path), "the confidences of ground truth are not used")
    draft.add_boxes(
        RawBoxes(
            image=CodedKeys(keys, files),
            label=labels,
            coords=coords,
            encoding=encoding,
            units=units,
            score=score,
            difficult=difficult if difficult.any() else None,
            ignore=ignore,
            shapes=shapes,
            of_box=of_box,
            no_score=_poses_without_score(label_set, numbers),
            place=lambda row: label_set.reporter.place(int(rows[row])),
        )
    )


def _poses_without_score(label_set: _Set, numbers: IntArray) -> tuple[str, Fix | str] | None:
    """Return why polygons that are all as long have no score, and how to read them as poses."""
    n = int(numbers[0]) if len(numbers) else 0
    if label_set.columns.name != "polygon" or (numbers != n).any() or n < 14 or (n - 5) % 3:
        return None
    words = "Pass {pred_columns} for poses, or export the scores."
    fix = Fix.missing(words, pred_columns=f"pose-{(n - 5) // 3}x3-conf")
    return ". If these are poses, they may have one", fix


def _coordinates(label_set: _Set, start: IntArray, numbers: IntArray) -> FloatArray:
    """Boxes (n, 4) as they are written; of each polygon, the corners of the box around it."""
    values, columns = label_set.reporter.lines.values, label_set.columns
    coords = np.zeros((len(start), 4))
    outlined = np.full(len(start), not columns.has_box)
    if columns.shape == "box":
        outlined = numbers > columns.box_width
    coords[~outlined] = values[start[~outlined, np.newaxis] + np.arange(4)]
    if outlined.any():
        points, offsets = polygons(values, start[outlined], numbers[outlined] - columns.head - columns.tail)
        offsets = offsets[:-1]
        coords[outlined] = np.hstack((np.minimum.reduceat(points, offsets), np.maximum.reduceat(points, offsets)))
    return coords


def _settle_encoding(label_set: _Set, coords: FloatArray, sizes: FloatArray) -> tuple[str, str]:
    """Return units and encoding: what the user named, else what the set supports; report what was assumed."""
    draft, columns = label_set.reporter.draft, label_set.columns
    options, where, findings = draft.options, Where(draft.path), draft.findings
    units = options.units or ("norm" if is_mostly_normalised(coords) else "px")
    if not columns.has_box:
        what = "polygons" if columns.shape == "polygon" else "oriented boxes"
        if options.iou_type not in (*MASKS, *ORIENTED):
            findings.note("outline", where, f"{len(coords):,} {what} are read as the boxes around them")
        if options.box is not None:
            fix = Fix.of_side(options.role, "Remove {box}.", box=None)
            findings.error("outline-encoding", where, f"{what} have no box encoding", fix=fix)
        draft.details.append(f"{columns.fields()}, {_UNITS[units]}")
        return units, "xyxy"
    encoding = label_set.encoding
    if not encoding:
        choice = choose_encoding(coords, Frame.of(coords, units, sizes), is_scored="conf" in columns.order)
        encoding = choice.encoding
        readings = (encoding, *choice.rivals)
        if choice.severity is not Severity.ERROR:
            if choice.assumption:
                fix = Fix.of_side(options.role, "Settle it with {box}.", box=None)
                findings.add_one(choice.severity, "box-assumed", where, choice.assumption, fix=fix)
        elif not findings.has("columns-ambiguous"):  # which names the encodings as well
            detail = f"{pluralise(len(coords), 'box fits', 'boxes fit')} as {' and as '.join(map(spelled, readings))}"
            fix = Fix.of_side(options.role, "Pass {box}.", box=tuple(readings))
            findings.error("columns-ambiguous", where, detail, fix=fix)
    draft.details.append(f"{columns.fields(spelled(encoding))}, {_UNITS[units]}")
    return units, encoding
