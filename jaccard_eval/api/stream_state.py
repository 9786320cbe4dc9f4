"""What an `Evaluator` holds, and its bytes: a NumPy archive of numbers, and a JSON document. Nothing is unpickled.

The bytes depend on the images and boxes alone, not on the batches and ranks that they came from.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoxTable, Shapes, freeze
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, Reading
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading.image_boxes import FILLERS, ImageBoxes, IntArray, narrowed
from jaccard_eval.reading.npz import Archive, unpack_archive
from jaccard_eval.runs import saved_protocol
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.text import quoted_value

AnyArray = npt.NDArray[Any]

DOCUMENT = "jaccard_eval_state"  # the entry that holds the document; by its name a state is known
SCHEMA = 1
PLACE = "<state>"  # what messages call the bytes
FIX = "Pass the bytes that Evaluator.state() returned."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamState:
    """Rules, images and boxes; images stand in canonical order: numbers, then texts."""

    version: str
    protocol: Protocol
    # By number, in the order of reports; None where classes are what the boxes have.
    classes: Mapping[int, str] | None
    gt: Dataset | None
    keys: tuple[Key, ...]
    # How often each image was added, (m,).
    seen: IntArray
    pred: ImageBoxes
    # The objects, where they come with the batches.
    target: ImageBoxes


def pack(state: StreamState) -> bytes:
    """Return the bytes of a state."""
    arrays: dict[str, AnyArray] = {} if (state.seen == 1).all() else {"seen": narrowed(state.seen)}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": state.version,
        "protocol": state.protocol.to_document(),
        "classes": None if state.classes is None else [[key, name] for key, name in state.classes.items()],
        "images": list(state.keys),
    }
    for side, boxes in (("pred", state.pred), ("target", state.target)):
        document[side], columns = _boxes_parts(boxes)
        arrays |= {f"{side}.{name}": narrowed(column) for name, column in columns.items()}
    if state.gt is not None:
        document["gt"], columns = _dataset_parts(state.gt)
        arrays |= {f"gt.{name}": narrowed(column) for name, column in columns.items()}
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    arrays[DOCUMENT] = np.frombuffer(text.encode(), dtype=np.uint8)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(arrays):
            entry_info = zipfile.ZipInfo(f"{name}.npy")
            entry_info.create_system = 3  # with its fixed date: equal states are equal bytes on every system
            with archive.open(entry_info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(arrays[name]), allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes) -> StreamState:
    """Return the state that bytes hold; a DataError names what keeps them from being one."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(f"a state must be bytes, got {quoted_value(type(data).__name__)}. {FIX}")
    if bytes(data[:4]) != b"PK\x03\x04":  # NumPy would look for a pickle in other bytes
        raise _fault("is not a state of an Evaluator")
    findings = FindingLog()
    archive = unpack_archive(io.BytesIO(data), PLACE, len(data), findings)
    try:
        document = _document(archive)
        m = len(document.images)
        seen = archive.arrays.get("seen", np.ones(m, dtype=np.int64))
        protocol = saved_protocol(document.protocol)
        kind = KINDS[protocol.iou_type].shapes
        kinds = [] if kind is None else [kind]
        state = StreamState(
            version=document.version,
            protocol=protocol,
            classes=None if document.classes is None else dict(document.classes),
            gt=None if document.gt is None else _dataset(document.gt, archive, kinds),
            keys=tuple(document.images),
            seen=_counts(seen, m, "seen"),
            pred=_boxes(document.pred, archive, "pred", m, kinds),
            target=_boxes(document.target, archive, "target", m, kinds),
        )
    except UsageError as error:
        raise _fault(str(error)) from None
    findings.raise_errors()
    if len(set(state.keys)) != m:
        raise _fault("names an image twice")
    return state


# The document as it is written, for msgspec to check the types of what is read.


@dataclass(kw_only=True)
class _BoxesDocument:
    encoding: str | None
    # Whether numbers came in float16 or float32.
    widened: bool
    # Names of classes, where labels are rows of them.
    names: list[str] | None = None


@dataclass(kw_only=True)
class _DatasetDocument:
    path: str
    format: str
    role: str
    images: list[Key]
    file_names: list[str | None]
    listed: bool
    label_keys: list[Key]
    label_names: list[str]
    named: bool
    units: str
    units_guessed: bool
    encoding: str
    origin: int
    reading_units: str
    stated: list[str]
    details: list[str]
    has_no_class: bool
    zero_id: int | None
    ignored: dict[str, int]
    findings: list[Finding]


@dataclass(kw_only=True)
class _Document:
    schema: int
    version: str
    protocol: dict[str, Any]
    classes: list[tuple[int, str]] | None
    images: list[Key]
    pred: _BoxesDocument
    target: _BoxesDocument
    gt: _DatasetDocument | None = field(default=None)


def _document(archive: Archive) -> _Document:
    import msgspec

    raw = archive.arrays.get(DOCUMENT)
    if raw is None or raw.dtype != np.uint8 or raw.ndim != 1:
        raise UsageError("is not a state of an Evaluator")
    try:
        content = json.loads(raw.tobytes())  # not msgspec, which refuses lone surrogates in names of files
    except (ValueError, RecursionError):
        raise UsageError("is damaged: its document is not JSON") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA or isinstance(schema, bool):
        raise UsageError(f"has schema {quoted_value(schema)}; this version reads {SCHEMA}")
    try:
        return msgspec.convert(content, _Document)
    except msgspec.MsgspecError as error:
        raise UsageError(f"is damaged: {error}") from None


def _boxes_parts(boxes: ImageBoxes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    document: dict[str, Any] = {"encoding": boxes.encoding, "widened": boxes.is_widened}
    arrays: dict[str, AnyArray] = {"sizes": boxes.sizes, "coords": boxes.coords, "labels": boxes.labels}
    if boxes.has_names:
        names, arrays["labels"] = np.unique(boxes.labels, return_inverse=True)
        document["names"] = names.tolist()
    for name, column in boxes.columns.items():
        # A column of fillers means the same as no column: it must not depend on who wrote the dicts.
        is_filler = np.isnan(column) if column.dtype.kind == "f" else ~column
        if not is_filler.all():
            arrays[name] = column
    if boxes.shapes is not None and len(boxes.shapes):
        arrays |= {f"shapes.{name}": array for name, array in boxes.shapes.to_arrays().items()}
    return document, arrays


def _boxes(document: _BoxesDocument, archive: Archive, side: str, m: int, kinds: Sequence[type[Shapes]]) -> ImageBoxes:
    sizes = _counts(archive.arrays.get(f"{side}.sizes"), m, f"{side}.sizes")
    n = int(sizes.sum())
    labels: AnyArray = _counts(archive.arrays.get(f"{side}.labels"), n, f"{side}.labels")
    if document.names is not None:
        if n and int(labels.max()) >= len(document.names):
            raise UsageError(f"{side}.labels does not fit the names of its classes")
        labels = np.array(document.names, dtype=np.str_)[labels] if n else labels
    columns: dict[str, AnyArray] = {}
    for name, filler in FILLERS.items():
        if f"{side}.{name}" in archive.arrays:
            kind = np.bool_ if isinstance(filler, bool) else np.float64
            columns[name] = _numbers(archive, f"{side}.{name}", (n,)).astype(kind)
    return ImageBoxes(
        sizes=sizes,
        coords=_numbers(archive, f"{side}.coords", (n, 4)),
        encoding=document.encoding,
        labels=labels,
        columns=columns,
        is_widened=document.widened,
        shapes=_shapes(archive, side, n, kinds),
    )


def _shapes(archive: Archive, side: str, n: int, kinds: Sequence[type[Shapes]]) -> Any:
    """Return the shapes of a side: the one of some kinds whose arrays are there."""
    start = f"{side}.shapes."
    arrays = {name.removeprefix(start): array for name, array in archive.arrays.items() if name.startswith(start)}
    if not arrays:
        return None
    # Numbers were written in the smallest types that hold them.
    wide = {"f": np.float64, "i": np.int64, "u": np.int64}
    arrays = {name: array.astype(wide.get(array.dtype.kind, array.dtype)) for name, array in arrays.items()}
    problem = "is of no known kind"
    for kind in kinds:
        try:
            shapes = kind.from_arrays(arrays)
        except UsageError as error:
            problem = str(error)
            continue
        if len(shapes) == n:
            return shapes
        problem = f"there are {len(shapes)} for {n} boxes"
    raise UsageError(f"is damaged: {side}.shapes: {problem}")


# Columns of ground truth that is kept whole; `source` counts its rows, which messages name.
_GT_COLUMNS = ("image", "label", "xywh", "area", "crowd", "difficult", "group_of", "ignore", "source")


def without_path(gt: Dataset) -> Dataset:
    """Return ground truth under the name of its file alone: a state goes to other machines."""
    name = Path(gt.path).name
    findings = []
    for finding in gt.findings:
        examples = [
            replace(example, where=replace(example.where, path=example.where.path.replace(gt.path, name)))
            for example in finding.examples
        ]
        findings.append(replace(finding, examples=tuple(examples)))
    return replace(gt, path=name, findings=tuple(findings))


def digest_truth(gt: Dataset) -> str:
    """Return a digest of ground truth, by which two evaluators know that they have the same."""
    document, arrays = _dataset_parts(gt)
    content = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    for name in sorted(arrays):
        content.update(f"{name} {arrays[name].shape}\n".encode())
        content.update(np.ascontiguousarray(arrays[name]).data)
    return content.hexdigest()


def _dataset_parts(gt: Dataset) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    import msgspec

    document = {
        "path": gt.path,
        "format": gt.format,
        "role": gt.role,
        "images": list(gt.images.keys),
        "file_names": list(gt.images.file_names),
        "listed": gt.images.listed,
        "label_keys": list(gt.labels.keys),
        "label_names": list(gt.labels.names),
        "named": gt.labels.named,
        "units": gt.units,
        "units_guessed": gt.units_guessed,
        "encoding": gt.reading.encoding,
        "origin": gt.reading.origin,
        "reading_units": gt.reading.units,
        "stated": list(gt.reading.named),
        "details": list(gt.details),
        "has_no_class": gt.has_no_class,
        "zero_id": gt.zero_id,
        "ignored": dict(gt.ignored),
        "findings": msgspec.to_builtins(gt.findings),
    }
    arrays = {name: getattr(gt.boxes, name) for name in _GT_COLUMNS}
    if gt.boxes.shapes is not None and len(gt.boxes):
        arrays |= {f"shapes.{name}": array for name, array in gt.boxes.shapes.to_arrays().items()}
    return document, arrays | {"sizes": gt.images.sizes}


def _dataset(document: _DatasetDocument, archive: Archive, kinds: Sequence[type[Shapes]]) -> Dataset:
    m, n_labels = len(document.images), len(document.label_keys)
    if len(document.file_names) != m or len(document.label_names) != n_labels:
        raise UsageError("is damaged: lists of its ground truth differ in length")
    label = archive.arrays.get("gt.label")
    n = 0 if label is None else len(label)
    columns: dict[str, Any] = {}
    for name in _GT_COLUMNS:
        column = _numbers(archive, f"gt.{name}", (n, 4) if name == "xywh" else (n,))
        kind = next(item.type for item in fields(BoxTable) if item.name == name)
        columns[name] = column.astype(_KINDS.get(str(kind), np.int64))
    for name, limit in (("image", m), ("label", n_labels)):
        if n and not 0 <= columns[name].min() <= columns[name].max() < limit:
            raise UsageError(f"is damaged: gt.{name} holds a row that there is not")
    return Dataset(
        path=document.path,
        format=document.format,
        role=document.role,
        images=ImageTable(
            tuple(document.images),
            tuple(document.file_names),
            _numbers(archive, "gt.sizes", (m, 2)),
            document.listed,
        ),
        labels=LabelMap(tuple(document.label_keys), tuple(document.label_names), document.named),
        # Files have outlines, which become masks in the images of both sides.
        boxes=freeze(BoxTable(score=None, shapes=_shapes(archive, "gt", n, [Outlines, *kinds]), **columns)),
        units=document.units,
        units_guessed=document.units_guessed,
        reading=Reading(document.encoding, document.reading_units, document.origin, named=tuple(document.stated)),
        details=tuple(document.details),
        has_no_class=document.has_no_class,
        zero_id=document.zero_id,
        ignored=document.ignored,
        findings=tuple(document.findings),
    )


_KINDS: dict[str, Any] = {"FloatArray": np.float64, "RowArray": np.int32, "BoolArray": np.bool_}


def _numbers(archive: Archive, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    array = archive.arrays.get(name)
    if array is None or array.dtype.kind not in "biuf" or array.shape != shape:
        raise UsageError(f"is damaged: {name} is missing or of another shape")
    return array.astype(np.float64)


def _counts(array: AnyArray | None, n: int, name: str) -> IntArray:
    """Return n whole numbers from 0 on."""
    if array is None or array.dtype.kind not in "iu" or array.shape != (n,):
        raise UsageError(f"is damaged: {name} is missing or of another shape")
    if array.min(initial=0) < 0 or array.max(initial=0) >= 2**63:
        raise UsageError(f"is damaged: {name} holds numbers that it cannot have")
    return array.astype(np.int64)


def _fault(detail: str) -> DataError:
    return DataError.single("state-invalid", Where(PLACE), detail, fix=FIX)
