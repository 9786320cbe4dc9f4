"""Open Images CSV: fractions in the order XMin, XMax, YMin, YMax, classes by MID or by name, groups of objects.

The challenge's submissions are read as well: all boxes of an image in a PredictionString, its classes MIDs. So are
tables of masks, with PNG files next to them or RLE in their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.formats._openimages import MID_STARTS, mask_kinds
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.text import inert, quoted

if TYPE_CHECKING:
    from jaccard_eval.reading.tabular.columns import RowIndices
    from jaccard_eval.reading.tabular.table import Table

FORMAT = Format(
    name="openimages",
    summary="Open Images CSV: boxes as XMin, XMax, YMin, YMax in fractions, or masks (PNG files, RLE)",
    source="https://storage.googleapis.com/openimages/web/download_v7.html",
    example="ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\nstreet,,dog,1,0.1,0.3,0.2,0.5,0\n",
    carries=("scores", "group_of", "image_labels"),
    suffixes=(".csv",),
    reads={"bbox": "XMin, XMax, YMin, YMax", "segm": "MaskPath with PNG files, EncodedMask"},
)

NEEDED = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")
HEADER = ("ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax", "IsGroupOf")

_NEEDED = frozenset(name.lower() for name in NEEDED)
_MID_GROUP = pattern(r"[,;\t|\" ]/[mgt]/\w+ ")  # a class, which a confidence follows


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a table by its first line: every column that is needed under its own name, or MIDs in strings of boxes."""
    if peek.kind not in (Kind.TEXT, Kind.BINARY):
        return None
    from jaccard_eval.reading.tabular.columns import position_of_strings  # only where a table is possible

    header = _header(peek)
    if mask_kinds(header):
        return Likeness.NAMED
    has_boxes = {name.strip().lower() for name in header} >= _NEEDED
    has_strings = position_of_strings(header) is not None and _MID_GROUP.search(peek.text) is not None
    return Likeness.STRUCTURE if has_boxes or has_strings else None


def _header(peek: Peek) -> Sequence[str]:
    from jaccard_eval.reading.tabular.rows import first_line, split_first_line

    return split_first_line(first_line(peek.text)[1])[1]


def iou_types(peek: Peek) -> set[str]:
    """Return what the columns are."""
    return mask_kinds(_header(peek)) or {"bbox"}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an Open Images table to the draft; the format prescribes fractions."""
    if mask_kinds(files.first_line(path).split(",")):
        from jaccard_eval.formats._openimages.masks import add_masks  # most tables have none

        draft.options = replace(options, units="norm")
        found = add_masks(path, draft, options)
        if found is not None:
            _add_classes(path, *found, draft)
        return
    from jaccard_eval.reading.tabular.boxes import NORM_LIMIT, add_boxes
    from jaccard_eval.reading.tabular.delimited import text_table
    from jaccard_eval.reading.tabular.rows import open_table
    from jaccard_eval.reading.tabular.table import read_cells

    draft.options = replace(options, units=options.units or "norm")
    read_table = text_table(open_table(path, draft), draft)
    if read_table is None:
        return
    table, columns = read_table
    group = columns.flags.get("group_of")
    if group is not None:
        table = _with_known_groups(table, group, draft)
    cells = read_cells(table, columns, draft.findings)
    n_boxes, n_outside = len(cells.coords), int((cells.coords > NORM_LIMIT).any(axis=1).sum())
    if options.units is None and n_outside * 2 > n_boxes:  # single boxes of a detector may leave the image
        detail = (
            f"Open Images holds fractions of the image's width and height, but {n_outside:,} of {n_boxes:,} boxes "
            "have coordinates above 1"
        )
        fix = Fix.of_side(draft.options.role, "Pass {units} if they are pixels.", units="px")
        draft.findings.error("coordinate-range", Where(draft.path), detail, fix=fix)
    add_boxes(table, columns, cells, draft)
    images, classes = (table.columns[at].keys(cells.rows)[0] for at in (columns.image, columns.label))
    _add_classes(path, images, classes, partial(_place, table, cells.rows), draft)


def _add_classes(
    path: Path, images: CodedKeys, classes: CodedKeys, place: Callable[[int], Where], draft: Draft
) -> None:
    """Name the classes of boxes, and add what the files next to ground truth know of them."""
    from jaccard_eval.formats._openimages.facts import descriptions_of, read_descriptions

    options, labels = draft.options, {str(label) for label in classes.distinct}
    # Files of other makers have names in the place of ids, and need no descriptions.
    has_mid = any(label.startswith(MID_STARTS) for label in labels)
    described = descriptions_of(path, options) if options.class_descriptions or has_mid else []
    names = read_descriptions(described)
    if options.role == "gt":
        from jaccard_eval.formats._openimages.facts import BoxKeys, add_facts

        labels.update(add_facts(path, BoxKeys(images, classes, place), names, draft))
    known = [label for label in labels if label in names]
    if known:
        draft.details.append(f"{len(known):,} class names from {', '.join(file.name for file in described)}")
    are_ids = bool(labels) and all(label.startswith(MID_STARTS) for label in labels)
    if known or draft.class_parents or are_ids:
        keys = sorted(labels)
        # Ids that nothing describes are not names: the other side may have both.
        draft.set_classes(keys, [names.get(label, label) for label in keys], named=bool(known) or not are_ids)


def _place(table: Table, rows: RowIndices, row: int) -> Where:
    return table.where(int(rows[row]))


def _with_known_groups(table: Table, column: int, draft: Draft) -> Table:
    """Return a table whose flags of groups are 0 where they are -1, which nobody checked."""
    from jaccard_eval.reading.tabular.table import TextColumn

    flags, _ = table.columns[column].keys(np.arange(len(table)))
    known = ["0" if str(flag).strip() == "-1" else flag for flag in flags.distinct]
    n_unknown = sum(str(flag).strip() == "-1" for flag in flags)
    if n_unknown:
        detail = f"{table.header[column]} is -1 (unknown) in {n_unknown:,} rows: read as 0"
        draft.findings.note("group-unknown", Where(draft.path), detail)
    return replace(table, columns={**table.columns, column: TextColumn(CodedKeys(known, flags.codes))})


def leads_to(path: Path, _: str) -> list[Path]:
    """Return the files next to a table that name its classes, or hold their hierarchy or image-level labels."""
    from jaccard_eval.formats._openimages.facts import may_lie_beside

    return may_lie_beside(path)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a table of Open Images; the confidence of ground truth is 1, as there."""
    from jaccard_eval.atomic import replace_file
    from jaccard_eval.reading.tabular.writer import image_texts, report_texts
    from jaccard_eval.reading.writing import (
        exact_coords,
        number_rows,
        report_losses,
        report_rounded,
        require_names,
        require_sizes,
    )

    boxes, labels = dataset.table, dataset.labels
    require_sizes(dataset, "Open Images", findings)
    require_names(dataset, "Open Images", findings)
    report_losses(dataset, path, findings, ("group_of",))
    images = image_texts(dataset.images)
    # MIDs where the data set has them, else names.
    classes = list(map(str, labels.keys)) if dataset.key_format == "openimages" else list(labels.names)
    report_texts(images, classes, path, findings)
    findings.raise_errors()
    sizes = None if dataset.units == "norm" else dataset.images.sizes[boxes.image]
    coords, exact = exact_coords(boxes.xywh, "xxyy", sizes)
    report_rounded(exact, path, findings)
    scored = coords if boxes.score is None else np.column_stack((boxes.score, coords))
    sure = "1," if boxes.score is None else ""
    rows = number_rows(scored, ",")
    image_cells, class_cells = ([quoted(inert(text)) for text in texts] for texts in (images, classes))
    ends = np.where(boxes.group_of, ",1\n", ",0\n").tolist()
    columns = boxes.image.tolist(), boxes.label.tolist(), rows, ends
    lines = [
        f"{image_cells[image]},{class_cells[label]},{sure}{row}{end}"
        for image, label, row, end in zip(*columns, strict=True)
    ]
    text = "".join((",".join(HEADER) + "\n", *lines))
    replace_file(path, text.encode("utf-8", "backslashreplace"))
