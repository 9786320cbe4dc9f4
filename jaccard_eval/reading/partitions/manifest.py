"""The manifest of partitions: how both sides were read, and what each part must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from jaccard_eval.data.boxtable import Boxes
from jaccard_eval.data.dataset import ClassFacts, Dataset, ImageLabels, ImageTable, LabelMap, Reading
from jaccard_eval.data.from_document import Fault, from_document
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.data.resizing import Resizing
from jaccard_eval.data.signature import digest_facts
from jaccard_eval.engine import MANIFEST
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import AS_WRITTEN, ENCODINGS, ReadOptions, SideOptions, changed
from jaccard_eval.reading.files import read_text
from jaccard_eval.reading.json import parse_json
from jaccard_eval.text import quoted_value, shown_json

SCHEMA = 1
KIND = "partitions"
ROLES = ("gt", "pred")
RULE = "image ranges"  # a part holds all images from one ordinal up to the next part's first
MOST_PARTS = 10_000
UNITS = ("px", "norm")
KINDS = (BOXES, "segm", "keypoints", "obb", "spheres")  # what parts may hold
FIX = Fix.missing("Write it again with {command}.", command="partition GT PRED -o DIR")

Options = TypeVar("Options", bound=SideOptions)


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
                mask_axes=self.read_options(role).mask_axes or AS_WRITTEN,
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
