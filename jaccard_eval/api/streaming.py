"""`Evaluator`: boxes arrive batch by batch, on any number of ranks, and are measured as a file of them would be.

Its bytes are a NumPy archive of numbers, and a JSON document. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import in_own_pixels
from jaccard_eval.data.boxtable import BoxTable, Shapes, freeze
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, Reading, key_order
from jaccard_eval.data.protocol import AreaRange, Protocol, ProtocolOptions
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import evaluate_inputs
from jaccard_eval.findings import DataError, Example, Finding, FindingLog, Severity, Where, issue_warnings
from jaccard_eval.fixes import Keywords
from jaccard_eval.frozen import dataclass
from jaccard_eval.inputs import load, with_shapes
from jaccard_eval.options import Bootstrap, EvaluateOptions, ReadOptions, require_lists
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.image_boxes import FILLERS, ImageBoxes, IntArray, Records, image_place, narrowed, to_array
from jaccard_eval.reading.npz import Archive, unpack_archive
from jaccard_eval.runs import saved_protocol
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.text import example_keys, pluralise, quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.inputs import Source
    from jaccard_eval.options import Slice

    Boxes = Mapping[str, Any]  # of arrays


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
    arrays = {name: getattr(gt.table, name) for name in _GT_COLUMNS}
    if gt.table.shapes is not None and len(gt.table):
        arrays |= {f"shapes.{name}": array for name, array in gt.table.shapes.to_arrays().items()}
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
            raise UsageError(f"is damaged: gt.{name} refers to a row that does not exist")
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
        raise UsageError(f"is damaged: {name} holds impossible numbers")
    return array.astype(np.int64)


def _fault(detail: str) -> DataError:
    return DataError.single("state-invalid", Where(PLACE), detail, fix=FIX)


JOINED_BYTES = 64 * 2**20  # batches are joined and narrowed when they hold so much
PATH, FORMAT = "<list>", "arrays by image"  # as `evaluate` calls dicts by image
SIDES = {"pred": "preds", "gt": "targets"}  # the parameter of `update` that brings each


class Evaluator:
    """Evaluate boxes that arrive in batches, on one or several ranks.

    The result is that of `evaluate` on the same boxes, with the same signature, whatever the batches, their order and
    the ranks that saw them. An image that is added again with equal boxes, as the padding of a distributed sampler is,
    counts once.

    Parameters
    ----------
    classes : sequence of str or mapping of int to str, optional
        Names of the labels, by index or by number; a label without a name is then an error. If None, numbers are their
        own names.
    protocol : str or Protocol
        "coco", "voc2007", "voc2012", or a protocol of your own.
    iou : float or sequence of float, optional
        IoU thresholds instead of the protocol's.
    max_dets : sequence of int, optional
        Caps on detections per image and class; empty for none.
    areas : sequence of AreaRange, optional
        Size ranges in square pixels; the first is that of the headline.
    class_agnostic : bool
        Pool all classes.
    difficult : {"count", "ignore"}, optional
        What objects marked difficult are; by default what the protocol asks for.
    iou_type : {"bbox", "segm", "boundary", "keypoints", "obb", "probiou"}, optional
        What is compared: boxes, masks, boundaries of masks, keypoints, or oriented boxes.
    sigmas, dilation_ratio
        As in `evaluate`.
    gt : path or data, optional
        Ground truth, in all forms that `evaluate` takes: batches then bring predictions alone, by its images.

    Raises
    ------
    DataError
        When the ground truth cannot be used.
    UsageError
        When an option names what does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from jaccard_eval import Evaluator
    >>> evaluator = Evaluator(["cat", "dog"])
    >>> box = np.array([[10.0, 10.0, 50.0, 50.0]])
    >>> evaluator.update(
    ...     images=["a.jpg"],
    ...     preds=[{"boxes": box, "labels": np.array([1]), "scores": np.array([0.9])}],
    ...     targets=[{"boxes": box, "labels": np.array([1])}],
    ... )
    >>> round(evaluator.compute()["AP[class=dog]"], 3)
    1.0
    """

    def __init__(
        self,
        classes: Sequence[str] | Mapping[int, str] | None = None,
        *,
        protocol: str | Protocol = "coco",
        iou: Sequence[float] | float | None = None,
        max_dets: Sequence[int] | None = None,
        areas: Sequence[AreaRange] | None = None,
        class_agnostic: bool = False,
        difficult: str | None = None,
        iou_type: str | None = None,
        sigmas: Sequence[float] | str | None = None,
        dilation_ratio: float | None = None,
        gt: Source | None = None,
    ) -> None:
        rules = ProtocolOptions(
            protocol=protocol,
            iou=iou,
            max_dets=max_dets,
            areas=areas,
            class_agnostic=class_agnostic,
            difficult=difficult,
            iou_type=iou_type,
            sigmas=sigmas,
            dilation_ratio=dilation_ratio,
        ).rules()
        truth = None
        if gt is not None:
            truth = without_path(in_own_pixels(load(gt, options=with_shapes(None, rules.iou_type))))
        self._begin(rules, _named_classes(classes), truth)

    def _begin(self, rules: Protocol, classes: Mapping[int, str] | None, gt: Dataset | None) -> None:
        self._rules, self._classes, self._gt = rules, classes, gt
        self._version = __version__
        self.reset()

    def update(
        self, images: Sequence[Hashable], preds: Sequence[Boxes], targets: Sequence[Boxes] | None = None
    ) -> None:
        """Add the boxes of some images. Whatever is wrong with them, nothing is added when this raises.

        Whether boxes are plausible is checked by `compute`, of those of all images.

        Parameters
        ----------
        images : sequence of hashable
            What each image is called: a number, a text, or anything whose `repr` identifies it. It must be the same
            on all ranks.
        preds : sequence of mapping
            Of each image ``boxes`` (n, 4), ``labels`` (n,), numbers from 0 or names, and ``scores`` (n,); optional
            ``encoding`` (default "xyxy"). Arrays of NumPy, PyTorch or anything with ``__array__`` or ``__dlpack__``.
            Where masks are compared also ``masks``: pixels (n, height, width), or a list of RLE; where keypoints are,
            ``keypoints`` (n, k, 3), or (n, k, 2). Boxes can then be omitted.
        targets : sequence of mapping, optional
            Of each image ``boxes`` and ``labels``; optional ``iscrowd``, ``area``, ``difficult``, ``ignore`` (n,) and
            ``encoding``, masks and keypoints. Omitted where the evaluator has `gt`.

        Raises
        ------
        UsageError
            When lengths, shapes or labels do not fit.
        DataError
            When an image was added before with other boxes, or boxes hold what is not a number or have a negative size.
        """
        if isinstance(images, str | bytes) or not isinstance(images, Iterable):
            raise UsageError(f"images must be a list, one key per image, got {quoted_value(images)}")
        images = list(images)
        if images and all(isinstance(image, Mapping) and {*image} & {"boxes", "labels", "masks"} for image in images):
            raise UsageError(
                "images must be keys, one per image, got dicts of boxes. Call update(images, preds, targets);"
                " update(preds, targets) is that of MeanAveragePrecision."
            )
        keys = [_image_key(image, at) for at, image in enumerate(images)]
        if self._gt is None and targets is None:
            raise UsageError("update needs targets, unless the evaluator has them: Evaluator(gt=...)")
        if self._gt is not None and targets is not None:
            raise UsageError("the evaluator has ground truth (gt=...): call update without targets")
        pred = self._checked(preds, keys, "pred")
        for at, record in enumerate(preds):
            if pred.sizes[at] and record.get("scores") is None:
                of_targets = any(truth.get("scores") is not None for truth in targets or ())
                why = f"it has {', '.join(map(str, record))}"
                if of_targets:
                    why = "the targets have: preds and targets are exchanged"
                raise UsageError(f"preds{image_place(keys[at])} has no scores; {why}")
        target = _no_boxes(len(keys)) if targets is None else self._checked(targets, keys, "gt")
        self._require_numbers(keys, {"pred": pred, "gt": target})
        self._store(keys, np.ones(len(keys), dtype=np.int64), pred, target)

    def merge(self, *others: Evaluator) -> Evaluator:
        """Return a new evaluator with the images of this and all others; none of them is changed.

        Raises
        ------
        UsageError
            When rules, classes, ground truth or versions differ.
        DataError
            When two have an image with other boxes.
        """
        merged = Evaluator.__new__(Evaluator)
        merged._begin(self._rules, self._classes, self._gt)
        merged._version = self._version
        for number, part in enumerate((self, *others)):
            if not isinstance(part, Evaluator):
                raise UsageError(f"merge takes evaluators, got {quoted_value(type(part).__name__)}")
            differing = [name for name, ours, other in self._compared(part) if ours != other]
            if differing:
                raise UsageError(
                    f"cannot merge: evaluator {number} differs in {', '.join(differing)}. Make all with equal arguments"
                    " and the same version of jaccard-eval."
                )
            merged._store(part._keys, part._counted(), part._joined("pred"), part._joined("gt"))
        return merged

    def compute(
        self,
        *,
        score: float | str | None = None,
        errors: bool = False,
        confusion: bool = False,
        worst_images: int | None = None,
        bootstrap: Bootstrap | int | None = None,
        slices: Sequence[Slice] = (),
    ) -> EvaluationResult:
        """Measure what was added so far; more can be added afterwards.

        Parameters
        ----------
        score, errors, confusion, worst_images, bootstrap, slices
            As in `evaluate`.

        Raises
        ------
        DataError
            When boxes hold what is not a number, or have a negative size.
        UsageError
            When no image was added, or an option names what does not exist.
        """
        options = EvaluateOptions(
            score=score,
            errors=errors,
            confusion=confusion,
            worst_images=worst_images,
            bootstrap=Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) else bootstrap,
            slices=slices,
        )
        result = measure_state(self._whole(), options)
        issue_warnings(result.findings, wording=KEYWORDS)
        return result

    def reset(self) -> None:
        """Forget all images; rules, classes and `gt` stay."""
        self._keys: list[Key] = []
        self._seen: list[int] = []
        self._at: dict[Key, int] = {}
        self._parts: dict[str, list[ImageBoxes]] = {side: [] for side in SIDES}
        # Row of the first image of each part, and the bytes of the parts that wait to be joined.
        self._starts: list[int] = []
        self._waiting = 0
        # What all batches have in common: the encoding of each side, and whether labels are names.
        self._encodings: dict[str, str] = {}
        self._kinds: set[bool] = set()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._keys)

    def __repr__(self) -> str:
        """Name the rules and how much is here."""
        n = sum(len(part.coords) for part in self._parts["pred"])
        return f"<Evaluator {self._rules.name}: {pluralise(len(self), 'image')}, {pluralise(n, 'prediction')}>"

    def state(self) -> bytes:
        """Return all that is here as bytes: equal for equal images and boxes, in whatever batches and order they came.

        An archive of NumPy arrays without objects, to be sent to another rank or stored; `from_state` reads it.
        """
        return pack(self._whole())

    @classmethod
    def from_state(cls, data: bytes) -> Evaluator:
        """Return the evaluator whose `state` the bytes are.

        Raises
        ------
        DataError
            When they are damaged, or of a schema that this version does not read.
        """
        state = unpack(data)
        evaluator = cls.__new__(cls)
        evaluator._begin(state.protocol, state.classes, state.gt)
        evaluator._version = state.version
        evaluator._store(state.keys, state.seen, state.pred, state.target)
        return evaluator

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the state."""
        return Evaluator.from_state, (self.state(),)

    def _checked(self, dicts: Sequence[Boxes], keys: Sequence[Key], side: str) -> ImageBoxes:
        """Return the boxes of a batch, its labels as numbers where classes have names."""
        name = SIDES[side]
        if isinstance(dicts, Mapping | str) or not isinstance(dicts, Sequence):
            raise UsageError(f"{name} must be a list of dicts, one per image, got {quoted_value(type(dicts).__name__)}")
        if len(dicts) != len(keys):
            raise UsageError(f"there are {len(keys)} images and {len(dicts)} {name}; expected one dict per image")

        def place(at: int) -> str:
            return image_place(keys[at])

        boxes = ImageBoxes.of(Records(dicts, name, place), self._rules.iou_type)
        if self._classes is None:
            return boxes
        if not boxes.has_names:
            boxes.require_labels(self._classes, name, place)
            return boxes
        numbers = {name: number for number, name in self._classes.items()}
        unknown = sorted({*boxes.labels.tolist()} - {*numbers})
        if unknown:
            raise UsageError(
                f"{name}: label {quoted_value(unknown[0])} is not among the classes: {example_keys(numbers)}"
            )
        return replace(boxes, labels=np.array([numbers[label] for label in boxes.labels.tolist()], dtype=np.int64))

    def _require_numbers(self, keys: Sequence[Key], new: Mapping[str, ImageBoxes]) -> None:
        """Refuse what the readers of files refuse, while it is known which batch it came with."""
        if not any(boxes.may_be_refused for boxes in new.values()):
            return
        batch = StreamState(
            version=self._version,
            protocol=self._rules,
            classes=self._classes,
            gt=None,
            keys=tuple(keys),
            seen=np.ones(len(keys), dtype=np.int64),
            pred=new["pred"],
            target=new["gt"],
        )
        for side in new:
            try:
                side_of_state(batch, side)
            except DataError as error:
                error.args = (error.told(KEYWORDS).replace(PATH, SIDES[side]),)
                raise

    def _store(self, keys: Sequence[Key], seen: IntArray, pred: ImageBoxes, target: ImageBoxes) -> None:
        """Add images that are checked; compare those that are here already."""
        new = {"pred": pred, "gt": target}
        self._require_alike(new)
        # Of each new image its row in the batch; of each one that came before, its rows there and in what has it.
        first: dict[Key, int] = {}
        known: list[tuple[int, int]] = []
        within: list[tuple[int, int]] = []
        for row, key in enumerate(keys):
            if key in self._at:
                known.append((row, self._at[key]))
            elif key in first:
                within.append((row, first[key]))
            else:
                first[key] = row
        if known:
            self._require_equal(keys, new, known, {side: self._joined(side) for side in SIDES})
        if within:
            self._require_equal(keys, new, within, new)
        # From here on nothing fails: an error leaves the evaluator as it was.
        if first:
            fresh = np.fromiter(first.values(), dtype=np.int64, count=len(first))
            self._at.update((key, len(self._keys) + at) for at, key in enumerate(first))
            self._starts.append(len(self._keys))
            self._keys.extend(first)
            self._seen.extend(seen[fresh].tolist())
            self._kinds = self._kinds_with(new)
            for side, boxes in new.items():
                part = boxes if len(fresh) == len(boxes) else boxes.take(fresh)
                self._parts[side].append(part)
                if boxes.encoding is not None:
                    self._encodings[side] = boxes.encoding
                self._waiting += part.nbytes
        for row in [row for row, _ in (*known, *within)]:
            self._seen[self._at[keys[row]]] += int(seen[row])
        if self._waiting > JOINED_BYTES:
            self._join()
            self._parts = {side: [part.narrowed() for part in parts] for side, parts in self._parts.items()}

    def _require_alike(self, new: Mapping[str, ImageBoxes]) -> None:
        """Refuse an encoding, or a kind of labels, other than that of the images so far."""
        for side, boxes in new.items():
            before = self._encodings.get(side, boxes.encoding)
            if boxes.encoding is not None and before != boxes.encoding:
                raise UsageError(f"{SIDES[side]} came as {before} before, now as {boxes.encoding}; convert one of them")
        if len(self._kinds_with(new)) > 1:
            raise UsageError("labels are numbers in one place and names in another; pass one kind, on both sides")

    def _kinds_with(self, new: Mapping[str, ImageBoxes]) -> set[bool]:
        """Return whether labels are names, of all boxes so far and of new ones."""
        return self._kinds | {boxes.has_names for boxes in new.values() if len(boxes.coords)}

    def _require_equal(
        self,
        keys: Sequence[Key],
        new: Mapping[str, ImageBoxes],
        again: Sequence[tuple[int, int]],
        known: Mapping[str, ImageBoxes],
    ) -> None:
        """Refuse images that came before with other boxes: all in one look, one by one where they differ."""
        rows, places = np.array(again, dtype=np.int64).T
        for side, boxes in new.items():
            if known[side].take(places).equals(boxes.take(rows)):
                continue
            pairs = (
                (row, known[side].take(places[i : i + 1]), boxes.take(rows[i : i + 1])) for i, row in enumerate(rows)
            )
            row = next(row for row, before, now in pairs if not before.equals(now))
            raise DataError.single(
                "image-conflict",
                Where(SIDES[side], record=f"image {quoted_value(keys[row])}"),
                "was added before with other boxes",
                fix="Give every image a key of its own, and run each once, or call reset() between epochs.",
            )

    def _join(self) -> None:
        if len(self._starts) > 1:
            self._parts = {side: [ImageBoxes.joined(parts)] for side, parts in self._parts.items()}
            self._starts = [0]
        self._waiting = 0

    def _joined(self, side: str) -> ImageBoxes:
        self._join()
        return self._parts[side][0] if self._parts[side] else _no_boxes(0)

    def _counted(self) -> IntArray:
        return np.array(self._seen, dtype=np.int64)

    def _whole(self) -> StreamState:
        """Return all that is here, images in canonical order: numbers ascending, then texts."""
        order = sorted(range(len(self._keys)), key=lambda row: key_order(self._keys[row]))
        rows = np.array(order, dtype=np.int64)
        return StreamState(
            version=self._version,
            protocol=self._rules,
            classes=self._classes,
            gt=self._gt,
            keys=tuple(self._keys[row] for row in order),
            seen=self._counted()[rows],
            pred=self._joined("pred").take(rows).widened(),
            target=self._joined("gt").take(rows).widened(),
        )

    def _compared(self, other: Evaluator) -> Iterator[tuple[str, Any, Any]]:
        """Yield what must be equal to merge, by the name that messages have for it."""
        yield "version", self._version, other._version
        rules = (self._rules.to_document(), other._rules.to_document())
        for name in rules[0]:
            yield f"protocol ({name})", rules[0][name], rules[1].get(name)
        # With the order of classes, which is that of reports.
        classes = [part._classes and [*part._classes.items()] for part in (self, other)]
        yield "classes", classes[0], classes[1]
        truths = [part._gt and digest_truth(part._gt) for part in (self, other)]
        yield "gt", truths[0], truths[1]


def measure_state(state: StreamState, options: EvaluateOptions) -> EvaluationResult:
    """Measure images and boxes as `evaluate` measures dicts by image, which stand in canonical order."""
    if not state.keys:
        raise UsageError("there is nothing to compute: no image was added")
    names = _names_by_index(state)
    reading = None if names is None else ReadOptions(names=names)
    options = replace(options, gt_options=None if state.gt is not None else reading, pred_options=reading)
    pred = side_of_state(state, "pred")
    gt = state.gt or side_of_state(state, "gt")
    try:
        return evaluate_inputs(gt, pred, state.protocol, options, version=__version__)
    except DataError as error:
        is_unknown = any(finding.code == "class-none" for finding in error.findings)
        if state.classes is not None or state.gt is not None or not is_unknown:
            raise
    # A network that has learnt nothing yet: its classes are those of no object, which stops files. Known to be classes
    # of the predictions as well, those of the objects correspond, and the rest are the usual warning.
    keys = tuple(sorted({*gt.labels.keys, *pred.labels.keys}, key=key_order))
    at = {key: row for row, key in enumerate(keys)}
    rows = np.array([at[key] for key in pred.labels.keys], dtype=np.int32)
    labels = replace(pred.labels, keys=keys, names=tuple(map(str, keys)))
    pred = replace(pred, labels=labels, boxes=freeze(replace(pred.table, label=rows[pred.table.label])))
    return evaluate_inputs(gt, pred, state.protocol, options, version=__version__)


def side_of_state(state: StreamState, role: str) -> Dataset:
    """Return one side as `evaluate` reads dicts by image."""
    options = ReadOptions(role=role, iou_type=state.protocol.iou_type, names=_names_by_index(state))
    draft, keys = Draft(PATH, FORMAT, options), state.keys
    boxes = state.pred if role == "pred" else state.target
    boxes.add_to(draft, keys, lambda at: image_place(keys[at]), state.classes)
    again = [keys[row] for row in np.flatnonzero(state.seen > 1).tolist()]
    if role == "pred" and again:
        detail = f"{pluralise(len(again), 'image was', 'images were')} added more than once, with equal boxes: "
        detail += f"{example_keys(again)}. Each counts once."
        example = Example(Where(PATH, field="image"), detail)
        count = int(state.seen.sum()) - len(keys)
        draft.findings.extend([Finding(Severity.NOTE, "image-repeated", count, (example,))])
    return draft.build()


def _names_by_index(state: StreamState) -> tuple[str, ...] | None:
    """Return what it takes to read the same dicts with the same names, where these are by index."""
    by_index = state.classes is not None and [*state.classes] == [*range(len(state.classes))]
    return tuple(state.classes.values()) if state.classes is not None and by_index else None


def _named_classes(classes: Sequence[str] | Mapping[int, str] | None) -> dict[int, str] | None:
    """Return the names of classes by their number."""
    if classes is None:
        return None
    if not isinstance(classes, Mapping):
        require_lists(classes=classes)
        classes = dict(enumerate(classes))
    numbers, names = list(classes), list(classes.values())
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or not names:
        raise UsageError("classes must be different texts, at least one")
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        raise UsageError("classes must be a list of names, or names by whole numbers of at least 0: {1: 'person', ...}")
    return {int(number): str(classes[number]) for number in sorted(numbers)}


# What a caller does who has boxes in memory, where an option of files would do it.
IN_DICTS = {
    "units": "boxes in the other units (they look like {})",
    "resized": "boxes mapped back to the images (they look like {})",
    "class_map": "labels that are renamed by {}",
    "assume_score": '"scores" in preds',
    "match_images": "equal keys on both sides",
    "extra_images": "the images of the ground truth alone",
    "drop_duplicates": "each box once",
}
# What `Evaluator` calls otherwise than `evaluate`, and what its caller does where it has no option.
KEYWORDS = Keywords(
    frozenset({"iou", "max_dets", "protocol", "difficult", "iou_type", "sigmas", "score", "class_agnostic", "gt"}),
    renamed={"names": "classes"},
    by_hand={**IN_DICTS, "classes": "Evaluator(classes={})", "box": '"encoding": {} in the dicts'},
)
_ADDRESS_OF_OBJECT = pattern(r" at 0x[0-9a-fA-F]+")


def _image_key(image: Any, at: int) -> Key:
    """Return the key of an image: whole numbers and texts as they are, all else by its `repr`."""
    if isinstance(image, str):
        return str(image)
    # Arrays and tensors of one number, as torchvision has them for image_id.
    if hasattr(image, "__array__") or hasattr(image, "__dlpack__"):
        array = to_array(image)
        if array.size != 1:
            raise UsageError(f"images[{at}] has shape {array.shape}; expected one key per image")
        image = array.reshape(-1)[0].item()
        return _image_key(image, at)
    if isinstance(image, float) and image.is_integer():
        image = int(image)  # 7.0 and 7 are one key of a dict
    if isinstance(image, int) and not isinstance(image, bool) and abs(image) < 2**63:
        return int(image)
    try:
        hash(image)
    except TypeError:
        raise UsageError(f"images[{at}] is {quoted_value(type(image).__name__)}; expected a number or a text") from None
    text = repr(image)
    if _ADDRESS_OF_OBJECT.search(text):
        kind = quoted_value(type(image).__name__)
        raise UsageError(f"images[{at}] is an object of {kind}, which no other process knows; pass a number or a text")
    return text


def _no_boxes(n: int) -> ImageBoxes:
    """Return n images without boxes, of no encoding."""
    return replace(ImageBoxes.joined(()), sizes=np.zeros(n, dtype=np.int64))
