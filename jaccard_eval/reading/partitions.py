"""A folder in which both sides of an evaluation lie in parts, whole images in each, as `partition` writes it.

``manifest.json`` holds all but images and boxes: how both sides were read, and what each part must hold;
``images.parquet`` the images; ``gt/`` and ``pred/`` the boxes, as Parquet files with rows by image and then as in the
input, in row groups of whole images; shapes are lists. A side becomes the data set that it was made of, after every row
was looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import (
    FLAGS,
    MAX_AREA,
    MAX_COORDINATE,
    MAX_SCORE,
    Boxes,
    BoxTable,
    RowArray,
    Shapes,
    Words,
    freeze,
)
from jaccard_eval.data.dataset import ClassFacts, Dataset, ImageLabels, ImageTable, Key, LabelMap, Reading, key_order
from jaccard_eval.data.from_document import Fault, from_document
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS, digest_facts, label_words, row_words
from jaccard_eval.engine import IMAGES, MANIFEST, Place, absolute, session
from jaccard_eval.engine.memory import release_memory
from jaccard_eval.engine.stored import Store, StoredBoxes, store_boxes
from jaccard_eval.errors import UsageError, require
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AS_WRITTEN, ENCODINGS, ReadOptions, SideOptions, changed
from jaccard_eval.progress import Stage
from jaccard_eval.reading import files
from jaccard_eval.reading.files import read_text
from jaccard_eval.reading.json import parse_json
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.similarity.obb import Quads
from jaccard_eval.similarity.runs import IntArray, offsets_of
from jaccard_eval.similarity.spheres import Spheres
from jaccard_eval.text import example_keys, quoted_value, shown_json

SCHEMA = 1
KIND = "partitions"
ROLES = ("gt", "pred")
RULE = "image ranges"  # a part holds all images from one ordinal up to the next part's first
MOST_PARTS = 10_000
UNITS = ("px", "norm")
KINDS = (BOXES, "segm", "keypoints", "obb", "spheres")  # what parts may hold
FIX = Fix.missing("Write it again with {command}.", command="partition GT PRED -o DIR")

Options = TypeVar("Options", bound=SideOptions)
Lists = tuple[npt.NDArray[Any], IntArray]  # the numbers of all rows, and where those of each row begin, and the end
Column = npt.NDArray[Any] | Lists
EXTRA = "parquet"
ROW_BYTES = 40  # of a row unpacked, at least: what a file claims must not be far more than its size
NUMBER_BYTES = 3  # of a number of a row or of its lists, on average
_SIDES = ("x", "y", "w", "h")
Identity = tuple[int, int]  # size and time of a file
MOST_STRETCHES = 400  # files that the engine reads at once, later
IMAGE_COLUMNS = ("id", "key", "file", "width", "height")  # of each side, after its name and an underscore
FACT_COLUMNS = ("absent", "present", "not_exhaustive")  # lists of classes, in the order of `imagelabels.FACTS`


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """What a part must hold."""

    rows: tuple[int, ...]  # of each group of images; a group without rows has no row group in the file
    fingerprint: str  # of its rows, in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRecord:
    """What is known of classes besides boxes (`data.imagelabels`), without what is known of them on each image."""

    frequency: tuple[str, ...]
    ancestors: tuple[tuple[int, ...], ...]
    usual_protocol: str
    of_images: bool  # whether the images have lists of classes
    fingerprint: str  # of everything

    @classmethod
    def of(cls, side: Dataset) -> FactsRecord | None:
        """Describe the facts of a side; None where it has none."""
        facts = side.facts
        if facts.images is None and not facts.frequency and not facts.ancestors:
            return None
        return cls(
            frequency=facts.frequency,
            ancestors=facts.ancestors,
            usual_protocol=facts.usual_protocol,
            of_images=facts.images is not None,
            fingerprint=digest_facts(facts, side.images.names(), side.labels.names),
        )

    def facts(self, images: ImageLabels | None) -> ClassFacts:
        """Return the facts, with those of images."""
        return ClassFacts(images, self.frequency, self.ancestors, usual_protocol=self.usual_protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """One side as it was read, without its images and boxes."""

    path: str
    format: str
    units: str
    units_guessed: bool
    encoding: str
    read_units: str  # of the numbers in the file; `units` are those of the boxes
    origin: int
    resized: str | None
    named: tuple[str, ...]
    details: tuple[str, ...]
    has_no_class: bool
    zero_id: int | None
    ignored: Mapping[str, int]
    findings: tuple[Finding, ...]
    images: int
    images_listed: bool
    classes: tuple[str, ...]
    class_keys: tuple[int | str, ...]
    classes_named: bool
    boxes: int
    fingerprint: str  # of all rows, however many parts they are in
    parts: tuple[PartRecord, ...]
    given_format: str | None  # by an option
    options: Mapping[str, Any] = field(default_factory=dict)  # on how it is read, as documents record them
    facts: FactsRecord | None = None
    point_names: tuple[str, ...] = ()  # of poses

    @classmethod
    def of(cls, side: Dataset, **others: Any) -> SideRecord:
        """Describe a side; `others` are the fields that it does not hold."""
        reading = side.reading
        return cls(
            path=side.path,
            format=side.format,
            units=side.units,
            units_guessed=side.units_guessed,
            encoding=reading.encoding,
            read_units=reading.units,
            origin=reading.origin,
            resized=None if reading.resized is None else str(reading.resized),
            named=reading.named,
            details=side.details,
            has_no_class=side.has_no_class,
            zero_id=side.zero_id,
            ignored=side.ignored,
            images=len(side.images),
            images_listed=side.images.listed,
            classes=side.labels.names,
            class_keys=side.labels.keys,
            classes_named=side.labels.named,
            boxes=len(side.boxes),
            facts=FactsRecord.of(side),
            point_names=side.point_names,
            **others,
        )

    def dataset(self, role: str, images: ImageTable, boxes: Boxes) -> Dataset:
        """Return the side as it was read."""
        resized = None if self.resized is None else Resizing.parse(self.resized)
        asked = self.read_options(role)
        return Dataset(
            path=self.path,
            format=self.format,
            role=role,
            images=images,
            labels=LabelMap(self.class_keys, self.classes, self.classes_named),
            boxes=boxes,
            point_names=self.point_names,
            units=self.units,
            units_guessed=self.units_guessed,
            reading=Reading(
                encoding=self.encoding,
                units=self.read_units,
                origin=self.origin,
                resized=resized,
                angle=asked.angle or "",
                mask_axes=asked.mask_axes or AS_WRITTEN,
                named=self.named,
            ),
            details=self.details,
            has_no_class=self.has_no_class,
            zero_id=self.zero_id,
            ignored=dict(self.ignored),
            findings=self.findings,
        )

    def read_options(self, role: str) -> ReadOptions:
        """Return the options that the side was read with."""
        found = from_document(ReadOptions, self.options, [], role=role)
        return found or ReadOptions(role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a folder of partitions must hold."""

    schema: int
    kind: str
    tool: Mapping[str, str]
    partitions: int
    rule: str
    bounds: tuple[tuple[int, ...], ...]  # of each part the first image of each group, and the first behind it
    images: int
    gt: SideRecord
    pred: SideRecord
    match_images: str | None = None
    extra_images: str = "error"
    iou_type: str = BOXES  # what is compared: the boxes, or the shapes that the parts have next to them
    chosen: tuple[Finding, ...] = ()  # why that is compared where nothing names it

    @property
    def shapes(self) -> str | None:
        """What shapes the parts have; None of boxes alone."""
        return None if self.iou_type == BOXES else self.iou_type

    def side(self, role: str) -> SideRecord:
        """Return the ground truth ("gt") or the predictions ("pred")."""
        return self.gt if role == "gt" else self.pred


def part_path(folder: Path, role: str, part: int) -> Path:
    """Return where a part of a side lies."""
    return folder / role / f"part-{part:05}.parquet"


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest; a DataError has all that is wrong with it."""
    path = folder / MANIFEST
    document = parse_json(path, read_text(path))
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise DataError.single("partitions-invalid", Where(str(path)), "is not a manifest of partitions", fix=FIX)
    if schema != SCHEMA or isinstance(schema, bool):
        detail = f"has schema {shown_json(schema)}; expected {SCHEMA}"
        raise DataError.single("partitions-invalid", Where(str(path), field="schema"), detail, fix=FIX)
    faults: list[Fault] = []
    manifest = from_document(Manifest, document, faults)
    if manifest is not None:
        faults += _contradictions(manifest)
    findings = FindingLog()
    for place, fault in faults:
        findings.error("partitions-invalid", Where(str(path), field=place or None), fault, fix=FIX)
    findings.raise_errors()
    assert manifest is not None  # without faults
    return manifest


def _contradictions(manifest: Manifest) -> list[Fault]:
    """Return what in a manifest cannot be, or does not fit together."""
    n, chosen = manifest.partitions, (("rule", manifest.rule, (RULE,)), ("iou_type", manifest.iou_type, KINDS))
    faults: list[Fault] = [
        (name, f"expected {' or '.join(map(shown_json, choices))}, got {shown_json(given)}")
        for name, given, choices in chosen
        if given not in choices
    ]
    if not 1 <= n <= MOST_PARTS:
        faults.append(("partitions", f"expected 1 to {MOST_PARTS:,}, got {n:,}"))
    bounds = manifest.bounds
    # Each part begins where the one before it ends.
    starts = [0, *(part[-1] for part in bounds if part)]
    are_joined = [part[0] for part in bounds if part] == starts[:-1] and starts[-1] == manifest.images
    if len(bounds) != n or not are_joined or any(len(part) < 2 or list(part) != sorted(part) for part in bounds):
        faults.append(("bounds", f"expected {n:,} lists that ascend from 0 to {manifest.images:,}, end to end"))
        return faults
    for role in ROLES:
        side = manifest.side(role)
        rows = [count for part in side.parts for count in part.rows]
        if [len(part.rows) for part in side.parts] != [len(part) - 1 for part in bounds]:
            faults.append((f"{role}.parts", f"expected those of {n:,} parts, and of their groups"))
        if min(rows, default=0) < 0 or sum(rows) != side.boxes:
            faults.append((f"{role}.boxes", f"is {side.boxes:,}, but its parts have {sum(rows):,} rows"))
        if len(side.class_keys) != len(side.classes):
            faults.append((f"{role}.class_keys", f"expected {len(side.classes):,}, got {len(side.class_keys):,}"))
        if len({*side.class_keys}) != len(side.class_keys):
            faults.append((f"{role}.class_keys", "two classes have one key"))
        faults += _facts_faults(f"{role}.facts", side.facts, len(side.classes))
        if side.zero_id is not None and not 0 <= side.zero_id < side.boxes:
            faults.append((f"{role}.zero_id", f"expected one of {side.boxes:,} rows, got {side.zero_id}"))
        for name, known in (("units", UNITS), ("read_units", UNITS), ("encoding", ENCODINGS)):
            if getattr(side, name) not in known:
                expected = f"expected one of {', '.join(known)}, got {quoted_value(getattr(side, name))}"
                faults.append((f"{role}.{name}", expected))
        try:
            Resizing.parse(side.resized or "scale:1")
        except UsageError as error:
            faults.append((f"{role}.resized", str(error)))
        tried: list[Fault] = []
        from_document(ReadOptions, side.options, tried, role=role)
        faults += [(f"{role}.options.{place}".rstrip("."), fault) for place, fault in tried]
    return faults


def _facts_faults(place: str, facts: FactsRecord | None, n_classes: int) -> list[Fault]:
    """Return what in the facts of classes cannot be."""
    if facts is None:
        return []
    faults: list[Fault] = [
        (f"{place}.{name}", f"expected one for each of {n_classes:,} classes, got {len(given):,}")
        for name, given in (("frequency", facts.frequency), ("ancestors", facts.ancestors))
        if len(given) not in (0, n_classes)
    ]
    if any(not 0 <= row < n_classes for rows in facts.ancestors for row in rows):
        faults.append((f"{place}.ancestors", f"expected numbers of {n_classes:,} classes"))
    return faults


def require_unread(options: ReadOptions, recorded: ReadOptions, folder: Path) -> None:
    """Raise a UsageError for options on how a side is read that was read before, unless it was read with them."""
    given, known = changed(options), changed(recorded)
    # A folder of images still shows them; the split is given by default; what is compared is the manifest's.
    beside = ("role", "images", "split", "iou_type")
    refused = [name for name in given if name not in beside and given[name] != known.get(name)]
    if refused:
        raise UsageError(
            f"{', '.join(sorted(refused))}: {quoted_value(str(folder))} holds boxes that were read when it was written."
            " Pass these to partition instead."
        )


def kind_of(iou_type: str) -> str:
    """Return what parts hold where an `iou_type` is compared: that of the same shapes, compared in the usual way."""
    return next((shapes[0] for shapes in (MASKS, ORIENTED) if iou_type in shapes), iou_type)


def require_kind(iou_type: str, manifest: Manifest, folder: Path) -> None:
    """Raise a UsageError where other shapes are compared than those that were written, or boxes in their place."""
    wanted = kind_of(iou_type)
    if wanted != manifest.iou_type:
        raise UsageError(
            f"{quoted_value(str(folder))} was written for {manifest.iou_type}, not {iou_type}.",
            fix=Fix.missing(
                "Evaluate, compare or explain it with {iou_type}, or write it again with {command}.",
                iou_type=manifest.iou_type,
                command=f"partition GT PRED -o DIR --iou-type {wanted}",
            ),
        )


def with_recorded(options: Options, role: str, folder: Path, iou_type: str | None = None) -> Options:
    """Return options with those that a side was read with when it was partitioned, as documents record them.

    A UsageError means that it was written for another `iou_type` than the one that is compared, where one is given.
    """
    manifest = read_manifest(folder)
    if iou_type is not None:
        require_kind(iou_type, manifest, folder)
    recorded, given = manifest.side(role).read_options(role), getattr(options, f"{role}_options")
    stated = getattr(options, f"{role}_format")
    if stated is not None and stated != manifest.side(role).given_format:
        fix = Fix.of_side(role, "Remove {format}.", format=None)
        raise UsageError(f"{quoted_value(str(folder))} is already in parts.", fix=fix)
    if given is not None:
        require_unread(given, recorded, folder)
        recorded = replace(recorded, images=given.images or recorded.images)
    changes: dict[str, Any] = {
        f"{role}_options": recorded,
        f"{role}_format": manifest.side(role).given_format,
    }
    for name in ("match_images", "extra_images"):
        known = {item.name: item.default for item in fields(SideOptions)}[name]
        if getattr(options, name) == known and not options.images_in_common:
            changes[name] = getattr(manifest, name)
    return replace(options, **changes)


# Of each kind, by the name that `iou_type` has for it.
COLUMNS: dict[str, dict[str, str]] = {
    "segm": {
        "runs": "int64 lists",  # where runs begin and end, down the columns of an image of this height and width
        "height": "int64",
        "width": "int64",
        "polygons": "int64 lists",  # how many corners each has
        "corners": "double lists",  # x and y of each
        "has_polygons": "bool",
        "counts_pixels": "bool",  # whether the area of the object is that of its pixels
    },
    "keypoints": {"points": "double lists"},  # x, y and visibility of each
    "obb": {"corners": "double lists"},  # x and y of four
    "spheres": {"spheres": "double lists"},  # x, y, z and diameter
}


def columns_of_shapes(shapes: Shapes) -> dict[str, Column]:
    """Return the columns of shapes by name."""
    if isinstance(shapes, Outlines):
        runs = shapes.masks.runs
        return {
            "runs": (runs.edges, runs.offsets),
            "height": shapes.masks.sizes[:, 0],
            "width": shapes.masks.sizes[:, 1],
            "polygons": (np.diff(shapes.rings), shapes.parts),
            "corners": (shapes.corners.ravel(), shapes.rings[shapes.parts] * 2),
            "has_polygons": shapes.has_polygons,
            "counts_pixels": shapes.counts_pixels,
        }
    ((name, numbers),) = shapes.to_arrays().items()
    return {name: (numbers.ravel(), np.arange(len(numbers) + 1) * int(np.prod(numbers.shape[1:])))}


def shapes_of_columns(kind: str, columns: Mapping[str, Any]) -> Shapes:
    """Return the shapes of some rows; a ValueError reports columns that are not those of any."""
    try:
        if kind == "segm":
            return _outlines(columns)
        if kind == "obb":
            return Quads.from_arrays({"corners": _alike(columns["corners"], 8).reshape(-1, 4, 2)})
        if kind == "spheres":
            return Spheres.from_arrays({"spheres": _alike(columns["spheres"], 4).reshape(-1, 4)})
        n, length = len(columns["points"][1]) - 1, int(columns["points"][1][1])
        return Keypoints.from_arrays({"points": _alike(columns["points"], length).reshape(n, -1, 3)})
    except UsageError as error:
        raise ValueError(str(error)) from None


def meaning_of(shapes: Shapes) -> Words:
    """Return what of shapes no hash of theirs covers, as words (n, k)."""
    if not isinstance(shapes, Outlines):
        return np.zeros((len(shapes), 0), dtype=np.uint64)
    return np.stack((shapes.has_polygons, shapes.counts_pixels), axis=1).astype(np.uint64)


def _outlines(columns: Mapping[str, Any]) -> Outlines:
    (runs, offsets), (cuts, parts), (corners, ends) = (columns[name] for name in ("runs", "polygons", "corners"))
    rings = offsets_of(cuts)
    # Lists of another length would be corners of the next mask.
    if (cuts < 0).any() or not np.array_equal(rings[parts] * 2, ends):
        raise ValueError("masks: corners and polygons do not fit together")
    sizes = np.stack((columns["height"], columns["width"]), axis=1)
    flags = {name: columns[name] for name in ("has_polygons", "counts_pixels")}
    polygons = {"corners": corners.reshape(-1, 2), "rings": rings, "parts": parts}
    return Outlines.from_arrays({"edges": runs, "offsets": offsets, "sizes": sizes, **polygons, **flags})


def _alike(lists: Any, length: int) -> npt.NDArray[Any]:
    """Return the numbers of all rows, each of which must have as many."""
    numbers, offsets = lists
    if (np.diff(offsets) != length).any():
        raise ValueError(f"shapes must have {length} numbers in every row")
    return np.asarray(numbers)


def columns_of(role: str, kind: str | None) -> dict[str, str]:
    """Return the columns of a side, each with its type; shapes of a kind are behind the others."""
    score = {"score": "double"} if role == "pred" else {}
    return {
        "image": "int32",
        "label": "int32",
        **dict.fromkeys(_SIDES, "double"),
        **score,
        "area": "double",
        **dict.fromkeys(FLAGS, "bool"),
        "source": "int64",
        **(COLUMNS[kind] if kind else {}),
    }


class RowDigest:
    """SHA-256 of rows in their order, however many of them are added at once; those of a part belong to a `whole`."""

    def __init__(self, whole: RowDigest | None = None) -> None:
        self._content, self._whole = hashlib.sha256(), whole

    def add(self, boxes: BoxTable) -> None:
        """Add rows; images and classes are known by their numbers."""
        ranks = np.arange(int(boxes.label.max(initial=-1)) + 1, dtype=np.uint64)
        place = np.stack((boxes.image, boxes.source), axis=1).astype(np.uint64)
        if boxes.shapes is not None:
            place = np.hstack((place, boxes.shapes.hashes(), meaning_of(boxes.shapes)))
        words = row_words(boxes, label_words(boxes, ranks), place, np.arange(len(boxes)))
        self._content.update(words.data)
        if self._whole is not None:
            self._whole._content.update(words.data)

    def digest(self, role: str, units: str) -> str:
        """Return the fingerprint of all rows."""
        content = self._content.copy()
        content.update(f"rows of {role} {units}".encode())
        return f"{FINGERPRINT}{content.hexdigest()[:FINGERPRINT_DIGITS]}"


class PartWriter:
    """Writes one part, row group by row group."""

    def __init__(self, path: Path, role: str, kind: str | None) -> None:
        arrow, parquet = require("pyarrow", extra=EXTRA), require("pyarrow.parquet", extra=EXTRA)
        types = {"int32": arrow.int32(), "int64": arrow.int64(), "double": arrow.float64(), "bool": arrow.bool_()}
        types |= {f"{name} lists": arrow.large_list(types[name]) for name in ("int64", "double")}
        self._schema = arrow.schema(
            [arrow.field(name, types[given], nullable=False) for name, given in columns_of(role, kind).items()]
        )
        self._arrow = arrow
        # Few numbers repeat; images, classes and flags do.
        repeated = ["image", "label", *FLAGS]
        self._writer = parquet.ParquetWriter(path, self._schema, use_dictionary=repeated, write_page_checksum=True)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, boxes: BoxTable) -> None:
        """Write a row group."""
        given: dict[str, Any] = {**boxes.columns(), **dict(zip(_SIDES, boxes.xywh.T, strict=True))}
        given |= {} if boxes.shapes is None else columns_of_shapes(boxes.shapes)
        columns = [self._column(given[name]) for name in self._schema.names]
        self._writer.write_table(self._arrow.table(columns, schema=self._schema), row_group_size=max(len(boxes), 1))

    def _column(self, given: Any) -> Any:
        if isinstance(given, tuple):
            numbers, offsets = map(np.ascontiguousarray, given)
            return self._arrow.LargeListArray.from_arrays(self._arrow.array(offsets), self._arrow.array(numbers))
        return np.ascontiguousarray(given)


@contextlib.contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise a DataError that names a part which cannot be read."""
    arrow = require("pyarrow", extra=EXTRA)
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise invalid(path, f"cannot be read: {reason}") from None


def invalid(path: Path, detail: str, record: str | None = None) -> DataError:
    """Return the error of a part that holds what it must not."""
    return DataError.single("partitions-invalid", Where(str(path), record=record), detail, fix=FIX)


def changed_part(path: Path, detail: str) -> DataError:
    """Return the error of a part that is not the one that was written."""
    return DataError.single("input-changed", Where(str(path)), detail, fix=FIX)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive groups of one part: images that nothing else has, few enough rows for memory."""

    path: Path
    role: str
    kind: str | None  # of its shapes
    groups: tuple[int, ...]  # numbers of row groups
    identity: Identity  # of the file when it was checked

    def read(self) -> BoxTable:
        """Return the boxes; a DataError reports that the part is not what it was."""
        with open_part(self.path) as (opened, identity):
            if identity != self.identity:
                raise changed_part(self.path, "changed while it was read")
            return _table(opened.read_row_groups(list(self.groups)), self.role, self.kind)

    def absolute(self) -> Stretch:
        """Return the same as another process finds it."""
        return replace(self, path=absolute(self.path))


@contextlib.contextmanager
def open_part(path: Path) -> Iterator[tuple[Any, Identity]]:
    """Open a Parquet file where it lies, so that flipped bits are found, with what changes when it is written to.

    A DataError names a file that cannot be read, or is written to meanwhile.
    """
    parquet = require("pyarrow.parquet", extra=EXTRA)
    with contextlib.ExitStack() as stack:
        stack.enter_context(damage_named(path))
        if isinstance(path, Place):
            # Asked for anew, not of what this process knows: it may be a worker that serves many runs.
            there = stack.enter_context(path.opened_anew())
            file, identity = there.native, (there.entry.size or 0, there.entry.changed)
        else:
            file = stack.enter_context(files.open_regular(path))
            stack.enter_context(files.unchanging(path, file))
            status = os.fstat(file.fileno())
            identity = status.st_size, status.st_mtime_ns
        yield parquet.ParquetFile(file, page_checksum_verification=True), identity


def _table(rows: Any, role: str, kind: str | None) -> BoxTable:
    """Return the boxes of an Arrow table; a ValueError reports a cell without a value."""
    rows.validate(full=True)
    columns: dict[str, Any] = {}
    for name, given in columns_of(role, kind).items():
        column = rows.column(name)
        if column.null_count:
            raise ValueError(f"{name} has no value in {column.null_count:,} rows")
        columns[name] = _lists(column, name) if given.endswith("lists") else _array(column.combine_chunks())
    xywh = np.stack([columns.pop(name) for name in _SIDES], axis=1)
    of_shapes = {name: columns.pop(name) for name in (COLUMNS[kind] if kind else ())}
    # A side without boxes need not have any.
    shapes = shapes_of_columns(kind, of_shapes) if kind and len(xywh) else None
    return freeze(BoxTable(xywh=xywh, shapes=shapes, **{"score": None, **columns}))


def _array(values: Any) -> npt.NDArray[Any]:
    """Return the numbers or flags of an Arrow array without a null; Arrow's own `to_numpy` loads pandas for it."""
    flags = str(values.type) == "bool"
    numbers: npt.NDArray[Any] = np.from_dlpack(values.cast("uint8") if flags else values)
    return numbers.view(np.bool_) if flags else numbers


def _lists(column: Any, name: str) -> tuple[Any, Any]:
    """Return the numbers of all rows, and where those of each row begin, and the end."""
    lists = column.combine_chunks()
    numbers = lists.flatten()
    if numbers.null_count:
        raise ValueError(f"{name} has a list without a value")
    return _array(numbers), offsets_of(_array(lists.value_lengths()))


@dataclass(frozen=True, slots=True, eq=False)
class PartCheck:
    """What a part must hold, and of which images and classes."""

    path: Path
    role: str
    kind: str | None  # of shapes
    record: PartRecord
    bounds: tuple[int, ...]  # the first image of each group, and the end
    n_images: int
    n_labels: int
    units: str

    def stretches(self, cuts: Sequence[int], total: RowDigest) -> Iterator[tuple[Stretch, BoxTable]]:
        """Yield the groups between any two `cuts` together, each as it is read, and add all to a digest.

        A DataError reports rows that the part must not have, at its end also those that it lacks.
        """
        own, place = RowDigest(total), (-1, -1)
        with open_part(self.path) as (opened, identity):
            self._check_layout(opened, identity[0])
            # Groups without rows have no row group.
            number = np.cumsum([0, *(rows > 0 for rows in self.record.rows)]).tolist()
            for first, last in pairwise(cuts):
                groups = tuple(range(number[first], number[last]))
                boxes = _table(opened.read_row_groups(list(groups)), self.role, self.kind)
                if len(boxes):
                    self._check_rows(boxes, place, (self.bounds[first], self.bounds[last]))
                    place = (int(boxes.image[-1]), int(boxes.source[-1]))
                    own.add(boxes)
                yield Stretch(self.path, self.role, self.kind, groups, identity), boxes
        if own.digest(self.role, self.units) != self.record.fingerprint:
            raise changed_part(self.path, "holds other rows than its manifest: their fingerprint differs")

    def _check_layout(self, opened: Any, size: int) -> None:
        """Raise a DataError for columns or a number of rows that are not those of the manifest."""
        schema, expected = opened.schema_arrow, columns_of(self.role, self.kind)
        found = dict(zip(schema.names, map(_type_name, schema.types), strict=True))
        if found != expected:
            wrong = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
            details = [f"{name} is {found.get(name, 'missing')}, not {expected.get(name, 'there')}" for name in wrong]
            raise invalid(self.path, f"has other columns than a part: {'; '.join(details)}")
        about, given = opened.metadata, [n for n in self.record.rows if n]
        rows = about.num_rows
        if rows != sum(given):
            raise changed_part(self.path, f"has {rows:,} rows; its manifest has {sum(given):,}")
        if [about.row_group(at).num_rows for at in range(about.num_row_groups)] not in (given, given or [0]):
            raise changed_part(self.path, "has other row groups than its manifest")
        groups = (about.row_group(at) for at in range(about.num_row_groups))
        numbers = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
        if max(rows * ROW_BYTES, numbers * NUMBER_BYTES) > max(files.UNPACKED_FLOOR, files.UNPACKED_RATIO * size):
            raise invalid(self.path, "unpacks to far more than its size allows")

    def _check_rows(self, boxes: BoxTable, place: tuple[int, int], images: tuple[int, int]) -> None:
        """Raise a DataError for rows of other images, out of order, or not of a box; `place` is before all."""
        first, last = images
        image, source = boxes.image.astype(np.int64), boxes.source
        before = np.concatenate(([place[0]], image[:-1])), np.concatenate(([place[1]], source[:-1]))
        faults = {
            f"image is not one of {self.n_images:,}": (image < 0) | (image >= self.n_images),
            f"image is not one of {first:,} to {last - 1:,}, which belong here": (image < first) | (image >= last),
            f"label is not one of {self.n_labels:,} classes": (boxes.label < 0) | (boxes.label >= self.n_labels),
            "rows are not in the order of images and sources": (image < before[0])
            | ((image == before[0]) & (source <= before[1])),
            "a number is not finite, or too large": _unusable(boxes),
        }
        for fault, wrong in faults.items():
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                shown = f"image {image[row]}, label {boxes.label[row]}, source {source[row]}"
                raise invalid(self.path, fault, record=shown)


def _type_name(given: Any) -> str:
    """Return what the type of a column is called here."""
    # Whatever a list calls its elements, and however wide its offsets are.
    types = require("pyarrow.types", extra=EXTRA)
    is_list = types.is_list(given) or types.is_large_list(given)
    return f"{given.value_type} lists" if is_list else str(given)


def _unusable(boxes: BoxTable) -> Any:
    limits = [(boxes.xywh, MAX_COORDINATE), (boxes.area[:, None], MAX_AREA)]
    if boxes.score is not None:
        limits.append((boxes.score[:, None], MAX_SCORE))
    return ~np.logical_and.reduce([(np.abs(values) <= most).all(axis=1) for values, most in limits])


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
