"""Two sides that were read are written as one folder of parts, each with whole images of both: all, or nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval import storage
from jaccard_eval.atomic import explained, require_free, swap_folders
from jaccard_eval.data.alignment import CommonImages
from jaccard_eval.data.boxtable import Boxes, BoxTable, RowArray
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.document import to_document
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import IMAGES, MANIFEST, Place
from jaccard_eval.engine.disk import SHAPE_ROWS
from jaccard_eval.engine.memory import release_memory
from jaccard_eval.engine.scratch import make_scratch, remove_scratch
from jaccard_eval.errors import UsageError, require
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import in_parts
from jaccard_eval.matching import IntArray, stable_order
from jaccard_eval.options import EvaluateOptions, SideOptions
from jaccard_eval.options import to_document as options_document
from jaccard_eval.progress import Stage
from jaccard_eval.reading.files import list_folder
from jaccard_eval.reading.partitions import (
    EXTRA,
    FACT_COLUMNS,
    IMAGE_COLUMNS,
    KIND,
    MOST_PARTS,
    ROLES,
    RULE,
    SCHEMA,
    Manifest,
    PartRecord,
    PartWriter,
    RowDigest,
    SideRecord,
    part_path,
)
from jaccard_eval.text import quoted_value

GROUP_ROWS = 50_000  # of both sides in a group, about: what is read at once at least
PART_ROWS = 1_000_000  # of both sides in a part, where no number of parts is given
_OWN = frozenset({MANIFEST, IMAGES, "gt", "pred"})


def require_target(target: Path, inputs: Sequence[Path], partitions: int | None, *, force: bool) -> None:
    """Raise an error unless a folder can be written: it is not there, or empty, or one of partitions with `force`."""
    if partitions is not None and partitions > MOST_PARTS:
        raise UsageError(f"partitions: at most {MOST_PARTS:,}, got {partitions:,}")
    is_there = target.is_dir()
    can_list = is_there and os.access(target, os.R_OK)
    names = {name for kind in list_folder(target) for name in kind} if can_list else set()
    # In an object store an upload that was killed may have left some of the files.
    if names and not (names <= _OWN and (isinstance(target, Place) or in_parts(target))):
        shown = quoted_value(str(target))
        raise UsageError(f"output folder {shown} contains files that are not partitions; choose another folder")
    require_free(target, inputs, replace=force or (is_there and not names))


def partition_sides(
    gt: Dataset,
    pred: Dataset,
    target: Path,
    common: CommonImages,
    options: SideOptions,
    *,
    iou_type: str,
    chosen: Sequence[Finding],
    partitions: int | None,
    findings: Sequence[Finding],
    version: str,
    store: Path | None = None,
) -> Manifest:
    """Write both sides in parts, with the shapes that an `iou_type` compares, and return what was written.

    `findings` are those of the run before either side's, `chosen` why it is this `iou_type`. What goes behind a URL is
    written to `store` first.
    """
    _require_shapes((gt, pred), iou_type)
    with _in_place_of(target, store) as folder:
        sides = {"gt": gt, "pred": pred}
        numbers, n_images = _ordinals(common)
        counts = np.zeros(n_images, dtype=np.int64)
        for role, side in sides.items():
            np.add.at(counts, numbers[role], side.boxes.counts("image", len(side.images)))
        kind = None if iou_type == BOXES else iou_type
        filling = counts * (SHAPE_ROWS if kind else 1)
        starts = part_bounds(filling, partitions).tolist()
        bounds = [group_bounds(filling, first, last) for first, last in pairwise(starts)]
        _write_images(folder / IMAGES, sides, numbers, n_images)
        given = options_document(EvaluateOptions(gt_options=options.gt_options, pred_options=options.pred_options))
        first = {"gt": tuple(findings), "pred": ()}
        records = {}
        for role, side in sides.items():
            total, parts = _write_side(folder, role, side, numbers[role], bounds, kind=kind)
            records[role] = SideRecord.of(
                side,
                findings=(*first[role], *side.findings),
                parts=parts,
                fingerprint=total.digest(role, side.units),
                given_format=getattr(options, f"{role}_format"),
                options=given.get(f"{role}_options", {}),
            )
        manifest = Manifest(
            schema=SCHEMA,
            kind=KIND,
            tool={"name": "jaccard-eval", "version": version},
            partitions=len(bounds),
            rule=RULE,
            bounds=tuple(tuple(part.tolist()) for part in bounds),
            images=n_images,
            match_images=options.match_images,
            extra_images=options.extra_images,
            iou_type=iou_type,
            chosen=tuple(chosen),
            **records,
        )
        text = json.dumps(to_document(manifest), indent=2, sort_keys=True)
        (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
        return manifest


@contextmanager
def _in_place_of(target: Path, store: Path | None) -> Iterator[Path]:
    """Give an empty folder that takes the place of the target when all is written."""
    # Next to its place, in a folder that ends with the process whatever ends that.
    place = None if isinstance(target, Place) else Path(os.path.realpath(target))
    with ExitStack() as cleanup, explained(target):
        scratch = make_scratch(store if place is None else place.parent)
        cleanup.callback(remove_scratch, scratch)
        new = scratch / "new"
        new.mkdir(0o777)
        yield new
        if place is None:
            parts = [file for file in new.rglob("*") if file.is_file()]
            storage.write_marked(
                str(target), {file.relative_to(new).as_posix(): file for file in sorted(parts)}, MANIFEST
            )
        else:
            swap_folders(new, place, scratch / "old")


def _require_shapes(sides: Sequence[Dataset], iou_type: str) -> None:
    """Raise a DataError for sides that were read without the shapes that are to be written."""
    findings = FindingLog()
    for side in sides if iou_type != BOXES else ():
        # Tables of one side have shapes alike.
        if len(side.boxes) and next(table.shapes for table in side.boxes.tables() if len(table)) is None:
            detail = f"{side.format} was read without the shapes that iou_type {quoted_value(iou_type)} compares"
            fix = Fix.missing("Pass a file that has them, or write boxes: {iou_type}.", iou_type="bbox")
            findings.error("shapes-missing", Where(side.path), detail, fix=fix)
    findings.raise_errors()


def _ordinals(common: CommonImages) -> tuple[dict[str, RowArray], int]:
    """Return the number of each image of either side, and how many there are.

    Common ones come first, in the order that decides ties; those that only predictions have and nobody counts are last.
    """
    ignored = np.flatnonzero(common.pred_rows < 0)
    pred = common.pred_rows.copy()
    pred[ignored] = len(common.table) + np.arange(len(ignored))
    return {"gt": common.gt_rows, "pred": pred}, len(common.table) + len(ignored)


def part_bounds(counts: IntArray, partitions: int | None) -> IntArray:
    """Return the first image of each part, and how many there are, so that parts have about as many boxes each.

    There is no part without an image, unless there are none at all.
    """
    wanted = -(-int(counts.sum()) // PART_ROWS) if partitions is None else partitions
    n_parts = max(1, min(wanted, len(counts)))
    # An image costs something without boxes, too.
    filled = np.cumsum(counts + 1)
    ends = np.searchsorted(filled, filled[-1] * np.arange(1, n_parts) / n_parts) + 1 if len(counts) else filled
    # Each part ends behind the one before it, and leaves an image to each that follows.
    later = np.arange(1, n_parts)
    ends = np.maximum.accumulate(ends - later) + later
    ends = np.minimum(ends, len(counts) - n_parts + later)
    return np.concatenate(([0], ends, [len(counts)])).astype(np.int64)


def group_bounds(counts: IntArray, first: int, last: int) -> IntArray:
    """Return where the images of a part are cut into groups of about `GROUP_ROWS` boxes, both ends included."""
    before = np.cumsum(counts[first:last]) - counts[first:last]
    # An image begins a group where the boxes in front of it fill one more.
    begins = np.flatnonzero(np.diff(before // GROUP_ROWS, prepend=-1))
    return np.append(first + (begins if len(begins) else np.zeros(1, dtype=np.int64)), last)


def _write_images(path: Path, sides: dict[str, Dataset], numbers: dict[str, RowArray], n_images: int) -> None:
    """Write what either side knows of each image; their row numbers them."""
    arrow, parquet = require("pyarrow", extra=EXTRA), require("pyarrow.parquet", extra=EXTRA)
    types = (arrow.int64(), arrow.string(), arrow.string(), arrow.float64(), arrow.float64())
    columns: dict[str, Any] = {}
    names: list[str | None] = [None] * n_images
    for role in reversed(ROLES):  # what the ground truth calls an image comes last, and stays
        images, own = sides[role].images, numbers[role].tolist()
        cells: list[list[Any]] = [[None] * n_images for _ in IMAGE_COLUMNS]
        for row, number in enumerate(own):
            key, (width, height) = images.keys[row], images.sizes[row].tolist()
            is_text = isinstance(key, str)
            values = (None if is_text else key, key if is_text else None, images.file_names[row], width, height)
            for column, value in zip(cells, values, strict=True):
                column[number] = value
            names[number] = images.name(row)
        try:
            arrays = [arrow.array(column, type=kind) for column, kind in zip(cells, types, strict=True)]
        except (UnicodeEncodeError, OverflowError, arrow.ArrowException) as error:
            detail = f"has an image whose name cannot be written to Parquet: {str(error).splitlines()[0]}"
            fix = "Rename the image; names must be valid Unicode, ids below 2^63."
            raise DataError.single("write-name", Where(sides[role].path), detail, fix=fix) from None
        columns |= {f"{role}_{name}": array for name, array in zip(IMAGE_COLUMNS, arrays, strict=True)}
    verified = {
        f"{role}_{name}": column
        for role, side in sides.items()
        for name, column in _classes_by_image(side, numbers[role], n_images).items()
    }
    ordinal = arrow.array(np.arange(n_images, dtype=np.int32))
    in_order = {f"{role}_{name}": columns[f"{role}_{name}"] for role in ROLES for name in IMAGE_COLUMNS}
    parquet.write_table(arrow.table({"image": ordinal, "name": arrow.array(names), **in_order, **verified}), path)


def _classes_by_image(side: Dataset, numbers: RowArray, n_images: int) -> dict[str, Any]:
    """Return a list of classes for each image and fact, by the name of its column; nothing of a side without any."""
    arrow, labels = require("pyarrow", extra=EXTRA), side.facts.images
    found: dict[str, Any] = {}
    if labels is None:
        return found
    for fact, name in enumerate(FACT_COLUMNS):
        image, label = labels.of(fact)
        order = np.argsort(numbers[image], kind="stable")
        ends = np.cumsum(np.bincount(numbers[image], minlength=n_images))
        offsets = arrow.array(np.append(0, ends).astype(np.int32))
        found[name] = arrow.ListArray.from_arrays(offsets, arrow.array(label[order]))
    return found


def _write_side(
    folder: Path, role: str, side: Dataset, numbers: RowArray, bounds: Sequence[IntArray], *, kind: str | None
) -> tuple[RowDigest, tuple[PartRecord, ...]]:
    """Write the parts of a side; return the digest of their rows, and what each holds."""
    (folder / role).mkdir()
    n_images = int(bounds[-1][-1])
    boxes = side.boxes.mapped(partial(_numbered, numbers=numbers)).arranged(n_images)
    total, records = RowDigest(), []
    groups = _groups(boxes.tables(), np.concatenate([part[:-1] for part in bounds] + [bounds[-1][-1:]]), side.boxes)
    with Stage(f"writing {role}", len(side.boxes)) as stage:
        for place, part in enumerate(bounds):
            own, rows = RowDigest(total), []
            with PartWriter(part_path(folder, role, place), role, kind) as writer:
                for group in islice(groups, len(part) - 1):
                    rows.append(len(group))
                    if len(group):
                        writer.write(group)
                        own.add(group)
                    stage.advance(len(group))
                    release_memory(len(group))
            records.append(PartRecord(rows=tuple(rows), fingerprint=own.digest(role, side.units)))
    return total, tuple(records)


def _numbered(table: BoxTable, numbers: RowArray) -> BoxTable:
    return replace(table, image=numbers[table.image])


def _groups(tables: Iterable[BoxTable], bounds: IntArray, empty: Boxes) -> Iterator[BoxTable]:
    """Yield the rows between any two bounds, by image and then by source; images ascend from table to table."""
    waiting: list[BoxTable] = []
    done = 0
    for table in tables:
        if not len(table):
            continue
        ordered = table.take(stable_order(table.image))
        # All groups that end before this table's last image are complete with it.
        last = int(np.searchsorted(bounds, int(ordered.image[-1]), "right")) - 1
        waiting.append(ordered)
        if last > done:
            joined = BoxTable.concat(waiting)
            ends = np.searchsorted(joined.image, bounds[done : last + 1])
            for first, end in pairwise(ends.tolist()):
                yield joined.take(np.arange(first, end))
            waiting, done = [joined.take(np.arange(ends[-1], len(joined)))], last
    # The last image may lie in any group; those behind it are empty.
    rest = BoxTable.concat(waiting) if waiting else empty.mapped(lambda table: table.take(np.arange(0))).whole()
    ends = np.searchsorted(rest.image, bounds[done:])
    for first, end in pairwise(ends.tolist()):
        yield rest.take(np.arange(first, end))
