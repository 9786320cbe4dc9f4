"""`MeanAveragePrecision`: the interface of torchmetrics 1.9, numbers from an `Evaluator`. torch is never imported.

Tensors are known by what they have, and made where the program has loaded torch itself.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.api.streaming import IN_DICTS, Evaluator, StreamState, measure_state, unpack
from jaccard_eval.compat.pycocotools.columns import UNDEFINED, Tables, whole_tables
from jaccard_eval.compat.pycocotools.params import Params
from jaccard_eval.data.boxtable import FloatArray, to_xywh
from jaccard_eval.data.protocol import BOXES, COCO
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, issue_warnings
from jaccard_eval.fixes import Keywords
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import detection_metrics
from jaccard_eval.options import EvaluateOptions
from jaccard_eval.reading.image_boxes import AnyArray, ImageBoxes, to_array
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.boxes import Corners
from jaccard_eval.similarity.masks import Masks, MaskSide
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult

BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
N_CAPS = 3  # of mar_1, mar_10 and mar_100: no backend of torchmetrics takes another number
USUAL_CAP = 100  # that `map` is taken at there, whatever the caps are
IOU_TYPES = (BOXES, "segm")
RANK = 2**40  # images without a key are numbered by rank, then in their order
# Arguments of every torchmetrics.Metric: those on how ranks are brought together count, others have no meaning here.
METRIC_ARGUMENTS = (
    "compute_on_cpu",
    "compute_with_cache",
    "dist_sync_fn",
    "dist_sync_on_step",
    "distributed_available_fn",
    "process_group",
    "sync_on_compute",
)


class ArgumentError(UsageError, ValueError):
    """What is called otherwise than torchmetrics is: a ValueError there."""


class BoxesError(DataError, ValueError):
    """Boxes that cannot be measured: a ValueError there."""


@contextmanager
def _value_errors() -> Iterator[None]:
    """Raise what torchmetrics calls a ValueError as one."""
    try:
        yield
    except UsageError as error:
        raise ArgumentError(error.statement, fix=error.fix) from None
    except DataError as error:
        raise BoxesError(error.findings) from None


KEYWORDS = Keywords(
    frozenset({"iou_type"}),
    by_hand={
        **IN_DICTS,
        "box": "box_format={}",
        "names": "class_names={}",
        "max_dets": "larger max_detection_thresholds",
        "iou": "iou_thresholds={}",
    },
)


class MeanAveragePrecision:
    """Mean average precision with the signature and the keys of ``torchmetrics.detection.MeanAveragePrecision`` 1.9.

    Everything is computed in float64, and what is undefined is NaN. Images that come twice with equal boxes count once
    where ``target[i]["image_id"]`` is given.

    Parameters
    ----------
    box_format : {"xyxy", "xywh", "cxcywh"}
    iou_type : {"bbox", "segm"} or a tuple of both
        What is compared: boxes, or masks, whose dicts have ``masks`` (n, height, width) and need no boxes. With both,
        the keys of `compute` begin with ``bbox_`` and ``segm_``.
    iou_thresholds : list of float, optional
        0.5 to 0.95 in steps of 0.05 if None.
    rec_thresholds : list of float, optional
        0 to 1 in steps of 0.01 if None.
    max_detection_thresholds : list of three int, optional
        1, 10 and 100 if None.
    class_metrics : bool
        Whether to give ``map_per_class`` and ``mar_100_per_class``.
    extended_summary : bool
        Whether to give ``ious``, ``precision``, ``recall`` and ``scores``.
    average : {"macro", "micro"}
        Mean over classes, or all boxes as of one class.
    backend : {"pycocotools", "faster_coco_eval"}, optional
        Neither is needed. With `strict` and caps without 100, ``map`` is -1 as by the first, which is also what None
        means, or taken at the last cap as by the second.
    class_names : sequence of str or mapping of int to str, optional
        Names of the labels, in `result` and in messages; a label without a name is then an error.
    strict : bool
        Reproduce torchmetrics to the digit: -1 for what is undefined, thresholds and recall grid in float32, sides of
        boxes in the precision they came in, and ``map`` at 100 detections even where the caps are others.
    **ignored
        What every metric of torchmetrics takes; `process_group` and `sync_on_compute` count.

    Raises
    ------
    UsageError
        When an argument is not one of these.

    Examples
    --------
    >>> from jaccard_eval import MeanAveragePrecision
    >>> metric = MeanAveragePrecision()
    >>> preds = [{"boxes": [[258.0, 41.0, 606.0, 285.0]], "scores": [0.536], "labels": [0]}]
    >>> metric.update(preds, [{"boxes": [[214.0, 41.0, 562.0, 285.0]], "labels": [0]}])
    >>> found = metric.compute()
    >>> round(float(found["map"]), 4), round(float(found["map_50"]), 4)
    (0.6, 1.0)
    """

    @_value_errors()
    def __init__(  # noqa: PLR0917 - by place, as there
        self,
        box_format: str = "xyxy",
        iou_type: str | tuple[str, ...] = BOXES,
        iou_thresholds: Sequence[float] | None = None,
        rec_thresholds: Sequence[float] | None = None,
        max_detection_thresholds: Sequence[int] | None = None,
        class_metrics: bool = False,
        extended_summary: bool = False,
        average: str = "macro",
        backend: str | None = None,
        *,
        class_names: Sequence[str] | Mapping[int, str] | None = None,
        strict: bool = False,
        **ignored: Any,
    ) -> None:
        types = (iou_type,) if isinstance(iou_type, str) else tuple(iou_type)
        if not types or len(set(types)) < len(types) or not set(types) <= {*IOU_TYPES}:
            raise UsageError(f"iou_type must be bbox, segm or a tuple of both, got {quoted_value(iou_type)}")
        for name, value, known in (
            ("box_format", box_format, BOX_FORMATS),
            ("average", average, ("macro", "micro")),
            ("backend", backend, (None, "pycocotools", "faster_coco_eval")),
        ):
            if value not in known:
                raise UsageError(f"{name} must be one of {', '.join(map(str, known))}, got {quoted_value(value)}")
        for name, flag in (("class_metrics", class_metrics), ("extended_summary", extended_summary)):
            if not isinstance(flag, bool):
                raise UsageError(f"{name} must be true or false, got {quoted_value(flag)}")
        unknown = sorted(ignored.keys() - {*METRIC_ARGUMENTS})
        if unknown:
            raise UsageError(
                f"unknown argument {quoted_value(unknown[0])}; of torchmetrics: {', '.join(METRIC_ARGUMENTS)}"
            )
        caps = sorted(max_detection_thresholds or COCO.max_dets)
        if len(caps) != N_CAPS:
            raise UsageError(f"max_detection_thresholds must be a list of {N_CAPS} numbers, got {len(caps)}")
        self.box_format, self.average, self.backend = box_format, average, backend or "pycocotools"
        self.class_metrics, self.extended_summary, self.strict = class_metrics, extended_summary, strict
        self.iou_thresholds = [*(iou_thresholds or (_single_grid(0.5, 0.95, 10) if strict else COCO.iou_thresholds))]
        usual = _single_grid(0.0, 1.0, COCO.recall_points) if strict else COCO.recall_grid.tolist()
        self.rec_thresholds = [*(rec_thresholds or usual)]
        if self.rec_thresholds != sorted(self.rec_thresholds):
            raise UsageError("rec_thresholds must ascend")
        self.max_detection_thresholds = caps
        self._process_group = ignored.get("process_group")
        self._is_synced = ignored.get("sync_on_compute", True)
        self._class_names = class_names
        self.iou_type = types
        self._evaluators = self._fresh()
        self._has_keys: bool | None = None
        self._count = 0
        self._has_warned = False

    @_value_errors()
    def update(self, preds: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]]) -> None:
        """Add the boxes of some images.

        Parameters
        ----------
        preds : sequence of mapping
            Of each image ``boxes`` (n, 4), or ``masks`` (n, height, width), ``scores`` (n,) and ``labels`` (n,).
        target : sequence of mapping
            Of each image ``boxes`` or ``masks``, and ``labels``; optional ``iscrowd``, ``area`` and ``image_id``, by
            which images that several ranks see are known.

        Raises
        ------
        UsageError
            When lengths, shapes or labels do not fit, or some targets have an ``image_id`` and others none.
        DataError
            When an image was added before with other boxes.
        """
        for name, dicts in (("preds", preds), ("target", target)):
            if not isinstance(dicts, Sequence) or isinstance(dicts, str):
                raise UsageError(f"{name} must be a list of dicts, got {quoted_value(type(dicts).__name__)}")
        keyed = {isinstance(item, Mapping) and item.get("image_id") is not None for item in target}
        if len(keyed | ({self._has_keys} - {None})) > 1:
            raise UsageError("some targets have an image_id and others none; pass it with all")
        dist = _distributed()
        if keyed == {False} and dist is not None and not self._has_warned:
            self._has_warned = True
            message = "without target[i]['image_id'], images that a sampler repeats on several ranks count twice"
            warnings.warn(message, UserWarning, stacklevel=2)
        rank = 0 if dist is None else int(dist.get_rank(self._process_group))
        numbers = range(rank * RANK + self._count, rank * RANK + self._count + len(target))
        keys = [item["image_id"] for item in target] if keyed == {True} else list(numbers)
        for kind, evaluator in self._evaluators.items():
            evaluator.update(
                keys,
                [self._readable(item, ("labels", "scores"), kind) for item in preds],
                [self._readable(item, ("labels", "iscrowd", "area"), kind) for item in target],
            )
        self._has_keys = next(iter(keyed), self._has_keys)
        self._count += len(target)

    def compute(self) -> dict[str, Any]:
        """Return the values of all images so far, of all ranks where torch.distributed is initialised.

        Returns
        -------
        dict
            By the keys of torchmetrics; tensors where torch is loaded, else floats, and arrays in place of tensors of
            several numbers.

        Raises
        ------
        DataError
            When boxes hold what is not a number, or have a negative size.
        """
        return self.values_of({kind: self._gathered(kind) for kind in self.iou_type}, warned=True)

    def forward(self, preds: Sequence[Mapping[str, Any]], target: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Add the boxes of some images, and return the values of these alone."""
        batch = copy.copy(self)
        batch._evaluators = self._fresh()
        self.update(preds, target)
        batch._has_warned = True
        batch.update(preds, target)
        return batch.values_of(batch.states())

    __call__ = forward

    @property
    def result(self) -> EvaluationResult:
        """The result of this package, for the first `iou_type`: findings, signature, curves, matches, `save`."""
        return self.result_of(self._gathered(self.iou_type[0]))

    def result_of(self, data: bytes) -> EvaluationResult:
        """Return the result of a state, and warn of its findings."""
        result = _Measured.of(unpack(data), micro=False).result
        issue_warnings(result.findings, wording=KEYWORDS)
        return result

    def states(self) -> dict[str, bytes]:
        """Return the state of each `iou_type`, of this rank alone."""
        return {kind: evaluator.state() for kind, evaluator in self._evaluators.items()}

    def reset(self) -> None:
        """Forget all images."""
        for evaluator in self._evaluators.values():
            evaluator.reset()
        self._count, self._has_keys = 0, None

    def to(self, *args: Any, **keywords: Any) -> MeanAveragePrecision:
        """Return the metric itself: all is on the host."""
        return self

    def plot(self, *args: Any, **keywords: Any) -> None:
        """Raise a NotImplementedError that names what draws a result."""
        raise NotImplementedError("draw metric.result.plot(), or write a page: metric.result.save('report.html')")

    def _readable(self, item: Any, names: Sequence[str], kind: str) -> Any:
        """Return a dict as the evaluator of a kind takes it: in its own encoding, without areas that are none."""
        key = "boxes" if kind == BOXES else "masks"
        if not isinstance(item, Mapping) or key not in item:
            return item  # refused there, with its place
        if self._class_names is None and to_array(item.get("labels", []), "labels").dtype.kind in "UO":
            raise UsageError("labels are texts; pass numbers, or class_names with all of them")
        readable: dict[str, Any] = {name: item[name] for name in names if item.get(name) is not None}
        readable |= {key: item[key], "encoding": self.box_format}
        # There, numbers of no box have any shape and type, and labels may be true and false.
        arrays = {name: to_array(value, name) for name, value in readable.items() if name != "encoding"}
        readable |= {name: array for name, array in arrays.items() if array.dtype.kind in "biuf"}  # off a GPU once
        if not arrays[key].size and arrays[key].ndim == 1:
            readable |= {name: array.astype(np.int64) for name, array in arrays.items() if not array.size}
            readable[key] = np.zeros((0, 4) if kind == BOXES else (0, 1, 1), dtype=np.uint8)
        elif "labels" in arrays and arrays["labels"].dtype == np.bool_:
            readable["labels"] = arrays["labels"].astype(np.int64)
        if "area" in arrays:
            area = arrays["area"]
            # There, an area of 0 means none, which is then that of the box.
            readable["area"] = np.where(area > 0, area, np.nan) if area.dtype.kind in "biuf" else area
        elif self.strict and kind == BOXES and "area" in names and "segm" in self.iou_type and "masks" in item:
            readable["area"] = to_array(item["masks"], "masks").sum(axis=(1, 2), dtype=np.float64)  # for both kinds
        if kind != BOXES:
            return readable
        boxes = to_array(readable["boxes"], "boxes")
        if self.strict and boxes.ndim == 2 and boxes.shape[1] == 4 and boxes.dtype.kind in "iuf":
            readable |= {"boxes": _single_sides(boxes, self.box_format), "encoding": "xywh"}
        return readable

    def _gathered(self, kind: str) -> bytes:
        """Return the state of all ranks."""
        dist = _distributed() if self._is_synced else None
        if dist is None:
            return self._evaluators[kind].state()
        parts: list[Any] = [None] * dist.get_world_size(self._process_group)
        dist.all_gather_object(parts, self._evaluators[kind].state(), group=self._process_group)
        first, *others = map(Evaluator.from_state, parts)
        return first.merge(*others).state()

    def _fresh(self) -> dict[str, Evaluator]:
        rules: dict[str, Any] = {"iou": self.iou_thresholds, "max_dets": self.max_detection_thresholds}
        return {kind: Evaluator(self._class_names, iou_type=kind, **rules) for kind in self.iou_type}

    @_value_errors()
    def values_of(self, states: Mapping[str, bytes], *, warned: bool = False) -> dict[str, Any]:
        """Return the values of all kinds by their keys, which name the kind where there are several."""
        found: dict[str, Any] = {}
        for kind, data in states.items():
            values = self._values(data, warned=warned)
            prefix = f"{kind}_" if len(states) > 1 else ""
            found |= {name if name == "classes" else prefix + name: value for name, value in values.items()}
        return found

    def _values(self, data: bytes, *, warned: bool = False) -> dict[str, Any]:
        """Return the values of a state by their keys; findings are `warned` of in the name of the caller's caller."""
        state = unpack(data)
        observed = np.union1d(state.pred.labels, state.target.labels)
        caps, last = self.max_detection_thresholds, f"mar_{self.max_detection_thresholds[-1]}_per_class"
        # Images without a mask are not there: where one side has none at all, nothing is defined.
        counts_all = state.protocol.iou_type == BOXES or len(self.iou_type) > 1 or not self.strict
        is_blank = not counts_all and not (len(state.pred.labels) and len(state.target.labels))
        if len(observed) and not is_blank:
            measured = _Measured.of(state, micro=self.average == "micro")
            if warned:
                issue_warnings(measured.result.findings, stacklevel=5, wording=KEYWORDS)
            tables = measured.tables(self)
        else:
            tables = Tables.undefined(self._params(0))
        found: dict[str, Any] = {**self._stats(tables)}
        if self.extended_summary and len(state.keys) and not is_blank:
            found |= {"precision": tables.precision, "recall": tables.recall, "scores": tables.scores}
            found["ious"] = _overlaps(state, caps[-1], pooled=self.average == "micro")
        if self.class_metrics and len(observed) and not is_blank:
            rows = _Measured.of(state, micro=False).tables(self) if self.average == "micro" else tables
            places = range(len(observed))
            found["map_per_class"] = np.array([self._precision(rows, label=k) for k in places])
            found[last] = np.array([_mean(rows.recall[:, [k], 0, -1]) for k in places])
        elif not is_blank and (len(state.keys) or not self.strict):  # without images these keys are missing there
            found |= dict.fromkeys(("map_per_class", last), np.zeros(0) if self.class_metrics else UNDEFINED)
        values = {name: _given(value, strict=self.strict) for name, value in found.items()}
        return values | {"classes": _given_classes(observed)}

    def _params(self, n_classes: int) -> Params:
        params = Params(BOXES)
        params.catIds = list(range(n_classes))
        params.iouThrs = np.array(self.iou_thresholds)
        params.recThrs = np.array(self.rec_thresholds)
        params.maxDets = list(self.max_detection_thresholds)
        return params

    def _stats(self, tables: Tables) -> dict[str, float]:
        """Return the twelve means."""
        sizes = {name: place for place, name in enumerate(area.name for area in COCO.areas) if place}
        found = {"map": self._precision(tables)}
        for iou in (0.5, 0.75):
            places = np.flatnonzero(np.array(self.iou_thresholds) == iou)
            found[f"map_{iou * 100:.0f}"] = _mean(tables.precision[places][..., 0, -1])
        found |= {f"map_{name}": _mean(tables.precision[..., a, -1]) for name, a in sizes.items()}
        found |= {f"mar_{cap}": _mean(tables.recall[..., 0, m]) for m, cap in enumerate(self.max_detection_thresholds)}
        return found | {f"mar_{name}": _mean(tables.recall[..., a, -1]) for name, a in sizes.items()}

    def _precision(self, tables: Tables, label: int | None = None) -> float:
        """Return the mean precision over all thresholds, of one class or of all."""
        is_theirs = self.strict and self.backend == "pycocotools"
        if is_theirs and USUAL_CAP not in self.max_detection_thresholds:
            return UNDEFINED
        cap = self.max_detection_thresholds.index(USUAL_CAP) if is_theirs else -1
        precision = tables.precision if label is None else tables.precision[:, :, [label]]
        return _mean(precision[..., 0, cap])


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """A result on all labels that were observed, which are its classes in ascending order."""

    result: EvaluationResult

    @classmethod
    def of(cls, state: StreamState, *, micro: bool) -> _Measured:
        if micro:
            pred, target = (
                replace(boxes, labels=np.zeros(len(boxes.coords), dtype=np.int64))
                for boxes in (state.pred, state.target)
            )
            state = replace(state, pred=pred, target=target, classes=None)
        observed = np.union1d(state.pred.labels, state.target.labels).tolist()
        # All labels have names, so that those of predictions alone are classes, and no number is another's.
        names = {int(label): str(label) if state.classes is None else state.classes[label] for label in observed}
        return cls(measure_state(replace(state, classes=names), EvaluateOptions()))

    def tables(self, metric: MeanAveragePrecision) -> Tables:
        """Return precision, recall and scores on the recall grid of the metric; -1 where undefined."""
        metrics = detection_metrics(self.result)
        params = metric._params(len(metrics.class_names))
        tables = whole_tables(metrics.curves, params, params)
        if tables is None:
            raise UsageError("rec_thresholds must ascend")
        return tables


def _single_grid(first: float, last: float, n: int) -> list[float]:
    """Return what ``torch.linspace`` makes of it in float32: counted from both ends, with one rounding each."""
    low, high = np.float32(first), np.float32(last)
    step = np.float64((high - low) / np.float32(n - 1))
    at = np.arange(n)
    ends = np.where(at < n // 2, low + step * at, high - step * (n - 1 - at))
    grid: list[float] = ends.astype(np.float32).astype(np.float64).tolist()
    return grid


def _single_sides(boxes: AnyArray, encoding: str) -> AnyArray:
    """Return left, top, width and height in the precision of the boxes, as torchvision computes them."""
    if encoding == "cxcywh":
        boxes = boxes if boxes.dtype.kind == "f" else boxes.astype(np.float32)  # as half a whole number is there
        half = boxes[:, 2:] * boxes.dtype.type(0.5)
        boxes = np.concatenate((boxes[:, :2] - half, boxes[:, :2] + half), axis=1)
    if encoding == "xywh":
        return boxes
    return np.concatenate((boxes[:, :2], boxes[:, 2:] - boxes[:, :2]), axis=1)


def _mean(values: FloatArray) -> float:
    """Return the mean of what is defined, -1 of nothing."""
    defined = values[values > UNDEFINED]
    return float(np.mean(defined)) if len(defined) else UNDEFINED


def _overlaps(state: StreamState, cap: int, *, pooled: bool) -> dict[tuple[int, int], Any]:
    """Return by image and class the IoU of detections, by score, and objects (IoA of crowds), shape (D, G)."""
    classes = [0] if pooled else np.union1d(state.pred.labels, state.target.labels).tolist()
    preds, truths = (_of_images(boxes, pooled=pooled) for boxes in (state.pred, state.target))
    pairs, scores = KINDS[state.protocol.iou_type].pairs, state.pred.column("scores")
    crowds = state.target.column("iscrowd")
    found: dict[tuple[int, int], Any] = {}
    for at, ((labels, rows), (gt_labels, gt_rows)) in enumerate(zip(preds, truths, strict=True)):
        for label in classes:
            dets, objects = rows[labels == label], gt_rows[gt_labels == label]
            dets = dets[np.argsort(-scores[dets], kind="stable")][:cap]
            found[at, label] = []
            if len(dets) and len(objects):
                i, j = (grid.ravel() for grid in np.indices((len(dets), len(objects))))
                sides, crowd = (_prepared(state.pred, dets), _prepared(state.target, objects)), crowds[objects]
                i, j, overlap = pairs(*sides, i, j, crowd=crowd, threshold=-np.inf)
                found[at, label] = np.zeros((len(dets), len(objects)))
                found[at, label][i, j] = overlap
    return found


def _of_images(boxes: ImageBoxes, *, pooled: bool) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield labels and rows of the boxes of each image."""
    labels = np.zeros_like(boxes.labels) if pooled else boxes.labels
    ends = np.cumsum(boxes.sizes)
    for end, size in zip(ends.tolist(), boxes.sizes.tolist(), strict=True):
        yield labels[end - size : end], np.arange(end - size, end)


def _prepared(boxes: ImageBoxes, rows: AnyArray) -> Corners | MaskSide:
    """Return some of the boxes or masks, to be compared."""
    if isinstance(boxes.shapes, Masks):
        return MaskSide.of(boxes.shapes.take(rows))
    return Corners.of(to_xywh(boxes.coords[rows], boxes.encoding or "xywh"))


def _given(value: Any, *, strict: bool) -> Any:
    """Return a value as the program has its values: as tensors where it has loaded torch."""
    if isinstance(value, dict):
        return {key: _given(item, strict=strict) if len(item) else item for key, item in value.items()}
    array = np.asarray(value, dtype=np.float64)
    if not strict:
        array = np.where(array == UNDEFINED, np.nan, array)
    torch = sys.modules.get("torch")
    if torch is None:
        return float(array) if array.ndim == 0 else array
    # Curves stay in float64 there, all else is float32.
    tensor = torch.tensor(array if array.ndim > 2 else array.astype(np.float32))
    return tensor.squeeze() if tensor.numel() == 1 else tensor


def _given_classes(observed: AnyArray) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        return observed.tolist()
    tensor = torch.tensor(observed.astype(np.int32))
    return tensor.squeeze() if tensor.numel() == 1 else tensor


def _distributed() -> Any:
    """Return torch.distributed where the program has initialised it."""
    dist = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None
