"""The way in: a side of partitions becomes the data set that it was made of, after every row was looked at."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import Boxes, BoxTable, RowArray, freeze
from jaccard_eval.data.dataset import ClassFacts, Dataset, ImageLabels, ImageTable, Key, key_order
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.signature import digest_facts
from jaccard_eval.engine import IMAGES, MANIFEST, session
from jaccard_eval.engine.memory import release_memory
from jaccard_eval.engine.stored import Store, StoredBoxes, store_boxes
from jaccard_eval.errors import require
from jaccard_eval.findings import DataError, FindingLog
from jaccard_eval.options import ReadOptions
from jaccard_eval.progress import Stage
from jaccard_eval.reading import files
from jaccard_eval.reading.partitions.manifest import (
    Manifest,
    SideRecord,
    part_path,
    read_manifest,
    require_kind,
    require_unread,
)
from jaccard_eval.reading.partitions.parts import (
    EXTRA,
    PartCheck,
    RowDigest,
    Stretch,
    changed_part,
    invalid,
    open_part,
)
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.text import example_keys

MOST_STRETCHES = 400  # files that the engine reads at once, later
IMAGE_COLUMNS = ("id", "key", "file", "width", "height")  # of each side, after its name and an underscore
FACT_COLUMNS = ("absent", "present", "not_exhaustive")  # lists of classes, in the order of `imagelabels.FACTS`


@session()
def read_side(folder: Path, options: ReadOptions, store: Store | None = None) -> Dataset:
    """Read one side of partitions; predictions stay where they lie if there is a store for the rest.

    A DataError has every part that is not what the manifest describes.
    """
    require("pyarrow", extra=EXTRA)
    role = options.role
    manifest = read_manifest(folder)
    record = manifest.side(role)
    # What is compared must be what was written; to look at, there are boxes around any shapes.
    if options.iou_type != BOXES:
        require_kind(options.iou_type, manifest, folder)
    require_unread(options, record.read_options(role), folder)
    _require_files(folder, manifest, role)
    images, rows = _read_images(folder, manifest, role)
    findings = FindingLog()
    total = RowDigest()
    stretches: list[Stretch] = []
    tables: list[BoxTable] = []
    n_points: set[int] = set()
    most = 0 if store is None else max(store.part_rows, -(-(manifest.gt.boxes + manifest.pred.boxes) // MOST_STRETCHES))
    with Stage(f"reading {folder}", record.boxes) as stage:
        for part in range(manifest.partitions):
            check = PartCheck(
                path=part_path(folder, role, part),
                role=role,
                kind=manifest.shapes,
                record=record.parts[part],
                bounds=manifest.bounds[part],
                n_images=manifest.images,
                n_labels=len(record.classes),
                units=record.units,
            )
            try:
                for stretch, boxes in check.stretches(_cuts(manifest, part, most), total):
                    n_points |= {boxes.shapes.points.shape[1]} if isinstance(boxes.shapes, Keypoints) else set()
                    if len(n_points) > 1:
                        raise invalid(check.path, "poses have another number of keypoints than those before them")
                    stretches.append(stretch)
                    if store is None:
                        tables.append(boxes)
                    release_memory(len(boxes) if store is not None else 0)
                    stage.advance(len(boxes))
            except DataError as error:
                findings.extend(error.findings)
    findings.raise_errors()
    if total.digest(role, record.units) != record.fingerprint:
        raise changed_part(folder, f"the {role} rows are not those of its manifest: their fingerprint differs")

    as_read = partial(_as_read, rows=rows, shaped=options.iou_type != BOXES)
    if store is None or not stretches:
        whole = BoxTable.concat([_no_boxes(role), *tables])
        kept: Boxes = as_read(whole.take(np.argsort(whole.source, kind="stable")))
    else:
        # Workers of a cluster read the parts where they lie; where they cannot, from their scratch folder.
        is_shown = store.shows(folder / MANIFEST)
        files = tuple(stretches) if is_shown else store_boxes((part.read() for part in stretches), store)
        kept = StoredBoxes(files, store, scored=role == "pred").mapped(as_read)
    side = replace(record.dataset(role, images, kept), facts=_read_facts(folder, record, role, images, rows))
    given = options.images if options.images != record.read_options(role).images else None
    return side if given is None else replace(side, image_folder=Path(given))


def _read_facts(folder: Path, record: SideRecord, role: str, images: ImageTable, rows: RowArray) -> ClassFacts:
    """Return what is known of classes besides boxes; a DataError reports that it is not what was written."""
    if record.facts is None:
        return ClassFacts()
    path, columns = folder / IMAGES, []
    with open_part(path) as (opened, _):
        wanted = [f"{role}_{name}" for name in FACT_COLUMNS if record.facts.of_images]
        if missing := [name for name in wanted if name not in opened.schema_arrow.names]:
            raise invalid(path, f"has no column {', '.join(missing)}")
        table = opened.read(columns=wanted)
        table.validate(full=True)
        for fact, name in enumerate(wanted):
            lists = table.column(name).combine_chunks()
            label = lists.flatten().to_numpy(zero_copy_only=False)
            image = np.repeat(rows, lists.value_lengths().to_numpy(zero_copy_only=False))
            if len(label) and (image.min() < 0 or label.min() < 0 or label.max() >= len(record.classes)):
                raise invalid(path, f"{name} has a class that there is not, or one of an image that there is not")
            columns.append((image, label.astype(np.int32), np.full(len(label), fact, dtype=np.int8)))
    labels = ImageLabels.ordered(*map(np.concatenate, zip(*columns, strict=True))) if columns else None
    facts = record.facts.facts(labels)
    if digest_facts(facts, images.names(), record.classes) != record.facts.fingerprint:
        raise changed_part(path, "its facts about classes do not match its manifest (another fingerprint)")
    return facts


def _as_read(table: BoxTable, *, rows: RowArray, shaped: bool) -> BoxTable:
    """Give images the numbers that they have in one side; what is not read `shaped` has boxes alone."""
    return freeze(replace(table, image=rows[table.image], shapes=table.shapes if shaped else None))


def _cuts(manifest: Manifest, part: int, rows: int) -> list[int]:
    """Return where the groups of a part are cut so that about so many rows of both sides are read at once.

    The sides are cut alike: what is matched with each other is then in the same place of both.
    """
    cuts, filled = [0], 0
    both = zip(manifest.gt.parts[part].rows, manifest.pred.parts[part].rows, strict=True)
    for group, counts in enumerate(both):
        if filled and filled + sum(counts) > rows:
            cuts.append(group)
            filled = 0
        filled += sum(counts)
    return [*cuts, len(manifest.bounds[part]) - 1]


def _no_boxes(role: str) -> BoxTable:
    none = np.zeros(0, dtype=np.int64)
    return BoxTable.from_arrays(none, none, np.zeros((0, 4)), score=none if role == "pred" else None)


def _require_files(folder: Path, manifest: Manifest, role: str) -> None:
    """Raise a DataError with each part of a side that is missing, or more than the manifest has."""
    findings = FindingLog()
    wanted = {part_path(folder, role, part).name for part in range(manifest.partitions)}
    try:
        folders, names = files.list_folder(folder / role)
    except OSError:
        folders, names = [], []
    found = {name for name in (*folders, *names) if not name.startswith(".")}
    for detail, listed in (("missing", wanted - found), ("not in the manifest", found - wanted)):
        if listed:
            text = f"{len(listed):,} of its parts {'is' if len(listed) == 1 else 'are'} {detail}"
            findings.extend(invalid(folder / role, f"{text}: {example_keys(sorted(listed))}").findings)
    findings.raise_errors()


def _read_images(folder: Path, manifest: Manifest, role: str) -> tuple[ImageTable, RowArray]:
    """Return the images of one side, and the row among them of each image of the folder, -1 where it has none."""
    path, record = folder / IMAGES, manifest.side(role)
    with open_part(path) as (opened, _):
        names = opened.schema_arrow.names
        wanted = [f"{role}_{name}" for name in IMAGE_COLUMNS]
        if missing := [name for name in wanted if name not in names]:
            raise invalid(path, f"has no column {', '.join(missing)}")
        if opened.metadata.num_rows != manifest.images:
            has = f"has {opened.metadata.num_rows:,} images; its manifest has {manifest.images:,}"
            raise changed_part(path, has)
        table = opened.read(columns=wanted)
        table.validate(full=True)
        columns: dict[str, list[Any]] = {name: table.column(f"{role}_{name}").to_pylist() for name in IMAGE_COLUMNS}
    keys: list[Key | None] = [
        text if number is None else number for number, text in zip(columns["id"], columns["key"], strict=True)
    ]
    own = [row for row, key in enumerate(keys) if key is not None]
    if len(own) != record.images or len({keys[row] for row in own}) != len(own):
        raise changed_part(path, f"names {len(own):,} images of {role}; its manifest has {record.images:,}")
    own.sort(key=lambda row: key_order(keys[row]))  # type: ignore[arg-type]
    rows = np.full(len(keys), -1, dtype=np.int32)
    rows[own] = np.arange(len(own))
    sizes = np.array([(columns["width"][row], columns["height"][row]) for row in own], dtype=np.float64)
    return ImageTable(
        tuple(keys[row] for row in own),  # type: ignore[misc]
        tuple(columns["file"][row] for row in own),
        sizes.reshape(-1, 2),
        record.images_listed,
    ), rows
