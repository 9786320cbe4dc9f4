"""Two sides that were read are written as one folder of parts: all of it, or nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from jaccard_eval import storage
from jaccard_eval.atomic import explained, require_free, swap_folders
from jaccard_eval.data.alignment import CommonImages
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine import IMAGES, MANIFEST, Place
from jaccard_eval.engine.scratch import make_scratch, remove_scratch
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import in_parts
from jaccard_eval.options import SideOptions
from jaccard_eval.reading.files import list_folder
from jaccard_eval.reading.partitions.manifest import MOST_PARTS, Manifest
from jaccard_eval.reading.partitions.writer import write_partitions
from jaccard_eval.text import quoted_value

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
    """Write both sides in parts, and return what was written; what goes behind a URL is written to `store` first."""
    _require_shapes((gt, pred), iou_type)
    # Written next to its place, in a folder that ends with the process whatever ends that.
    place = None if isinstance(target, Place) else Path(os.path.realpath(target))
    with ExitStack() as cleanup, explained(target):
        scratch = make_scratch(store if place is None else place.parent)
        cleanup.callback(remove_scratch, scratch)
        new = scratch / "new"
        new.mkdir(0o777)
        manifest = write_partitions(
            new,
            gt,
            pred,
            common,
            options,
            iou_type=iou_type,
            chosen=chosen,
            partitions=partitions,
            findings=findings,
            version=version,
        )
        if place is None:
            parts = [file for file in new.rglob("*") if file.is_file()]
            storage.write_marked(
                str(target), {file.relative_to(new).as_posix(): file for file in sorted(parts)}, MANIFEST
            )
        else:
            swap_folders(new, place, scratch / "old")
    return manifest


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
