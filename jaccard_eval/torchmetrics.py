"""`MeanAveragePrecision` as a ``torchmetrics.Metric``: in collections and trackers, cloned, synchronised, saved, drawn.

Importing this module imports torchmetrics, and torch with it; nothing else of this package does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torchmetrics import Metric

from jaccard_eval.api.streaming import Evaluator, pack, side_of_state, unpack
from jaccard_eval.compat.pycocotools.coco import COCO
from jaccard_eval.compat.torchmetrics import MeanAveragePrecision as Numbers
from jaccard_eval.errors import UsageError
from jaccard_eval.formats import write_dataset

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult

HEAD = 9  # bytes before those of a batch: how many these are, and whether its images have keys
Dicts = Sequence[Mapping[str, Any]]


class MeanAveragePrecision(Metric):  # type: ignore[misc]
    """Mean average precision with the interface of ``torchmetrics.detection.MeanAveragePrecision`` 1.9.

    The arguments are those of `jaccard_eval.MeanAveragePrecision`, and those of every ``torchmetrics.Metric``. It needs
    neither pycocotools nor torchvision.

    Parameters
    ----------
    *arguments, **keywords
        As in `jaccard_eval.MeanAveragePrecision`, except that `strict` is true unless given: the values are those of
        torchmetrics to the digit, -1 for what is undefined.

    Raises
    ------
    UsageError
        When an argument is not one of these; it is a ValueError, too.

    Notes
    -----
    The state is one list of bytes for each `iou_type`, a tensor for each batch: it is gathered, moved, copied and saved
    as that of any metric. Batches of several ranks are put in the order of the ranks.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    warn_on_many_detections = True
    # torch.jit.script would ask for it before there is an image.
    __jit_ignored_attributes__ = (*Metric.__jit_ignored_attributes__, "result")
    __jit_unused_properties__ = (*Metric.__jit_unused_properties__, "result")

    def __init__(self, *arguments: Any, strict: bool = True, class_names: Any = None, **keywords: Any) -> None:
        ours = {*Numbers.__init__.__annotations__} - {"ignored", "return"}
        super().__init__(**{name: value for name, value in keywords.items() if name not in ours})
        own = {name: value for name, value in keywords.items() if name in ours}
        self._numbers = Numbers(*arguments, class_names=class_names, strict=strict, sync_on_compute=False, **own)
        for name in ours - {"class_names", "strict"}:
            setattr(self, name, getattr(self._numbers, name))
        for kind in self._numbers.iou_type:
            self.add_state(f"{kind}_batches", default=[], dist_reduce_fx="cat")

    def update(self, preds: Dicts, target: Dicts) -> None:
        """Add the boxes or masks of some images; see `jaccard_eval.MeanAveragePrecision.update`."""
        self._numbers.reset()
        self._numbers.update(preds, target)
        cap = self.max_detection_thresholds[-1]
        if self.warn_on_many_detections and any(len(item["scores"]) > cap for item in preds):
            # It begins as there, where it is filtered by that.
            message = f"Encountered more than {cap} detections in a single image: those of the lowest scores are left "
            message += "out. Pass larger max_detection_thresholds, or set metric.warn_on_many_detections = False"
            warnings.warn(message, UserWarning, stacklevel=3)
        for kind, state in self._numbers.states().items():
            has_keys = any(item.get("image_id") is not None for item in target)
            head = len(state).to_bytes(HEAD - 1, "little") + bytes([has_keys])
            batch = torch.frombuffer(bytearray(head + state), dtype=torch.uint8)
            getattr(self, f"{kind}_batches").append(batch.to(self.device))

    def compute(self) -> dict[str, Any]:
        """Return the values of all images, by the keys of torchmetrics, as tensors."""
        return self._numbers.values_of(self._whole(), warned=True)

    @property
    def result(self) -> EvaluationResult:
        """The result of this package, for the first `iou_type`: findings, signature, curves, matches, `save`."""
        return self._numbers.result_of(next(iter(self._whole().values())))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw one or several values that `compute` or a call returned; those of `compute` if none are given."""
        return self._plot(val, ax)

    def tm_to_coco(self, name: str = "tm_map_input") -> None:
        """Write what was added as COCO JSON: ``{name}_preds.json`` and ``{name}_target.json``, in each `iou_type`.

        Of boxes and masks together, the masks are written.
        """
        state = unpack([*self._whole().values()][-1])
        labels = np.union1d(state.pred.labels, state.target.labels).tolist()
        state = replace(state, classes=state.classes or {label: str(label) for label in labels})
        for role, name_of_side in (("pred", "preds"), ("gt", "target")):
            side = side_of_state(state, role)
            if role == "pred":  # a list, as pycocotools reads it
                side = replace(side, images=replace(side.images, listed=False))
            write_dataset(side, f"{name}_{name_of_side}.json", format_name="coco", replace=True)

    @staticmethod
    def coco_to_tm(
        coco_preds: str, coco_target: str, iou_type: str | Sequence[str] = "bbox", backend: str | None = None
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Read predictions and objects of COCO JSON as `update` takes them, with ``box_format="xywh"``.

        Images stand in the order of the file, those without objects among them, which torchmetrics skips with the
        false positives there.
        """
        with redirect_stdout(StringIO()):
            truth = COCO(coco_target)
            found = truth.loadRes(coco_preds)
        kinds = [iou_type] if isinstance(iou_type, str) else [*iou_type]
        preds, target = ([_by_image(side, image, kinds) for image in truth.imgs] for side in (found, truth))
        return preds, [{name: value for name, value in item.items() if name != "scores"} for item in target]

    def _whole(self) -> dict[str, bytes]:
        """Return the state of all batches, of each kind."""
        whole = {}
        for kind in self._numbers.iou_type:
            parts = []
            count, keyed = 0, set()
            for has_keys, data in self._batches(kind):
                state = unpack(data)
                keyed.add(has_keys)
                keys = state.keys if has_keys else range(count, count + len(state.keys))
                parts.append(Evaluator.from_state(pack(replace(state, keys=tuple(keys)))))
                count += len(state.keys)
            if len(keyed) > 1:
                raise UsageError("some targets have an image_id and others none; pass it with all")
            self._numbers.reset()
            whole[kind] = parts[0].merge(*parts[1:]).state() if parts else self._numbers.states()[kind]
        return whole

    def _batches(self, kind: str) -> Iterator[tuple[bool, bytes]]:
        """Yield the bytes of each batch, and whether its images have keys; joined ones lie behind each other."""
        held = getattr(self, f"{kind}_batches")
        for joined in [held] if isinstance(held, torch.Tensor) else held:
            data = joined.to(torch.uint8).cpu().numpy().tobytes()
            while data:
                end = HEAD + int.from_bytes(data[: HEAD - 1], "little")
                yield bool(data[HEAD - 1]), data[HEAD:end]
                data = data[end:]


def mean_average_precision(
    preds: Dicts, target: Dicts, *arguments: Any, warn_on_many_detections: bool = True, **keywords: Any
) -> dict[str, Any]:
    """Return the values of some images at once, with the arguments of `MeanAveragePrecision`."""
    metric = MeanAveragePrecision(*arguments, **keywords)
    metric.warn_on_many_detections = warn_on_many_detections
    metric.update(preds, target)
    return metric.compute()


def _by_image(side: COCO, image: Any, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the records of an image as tensors of the types that torchmetrics makes of them."""
    records = side.imgToAnns[image]
    read: dict[str, Any] = {
        "scores": torch.tensor([record.get("score", 0.0) for record in records], dtype=torch.float32),
        "labels": torch.tensor([record["category_id"] for record in records], dtype=torch.int32),
        "iscrowd": torch.tensor([record.get("iscrowd", 0) for record in records], dtype=torch.int32),
        "area": torch.tensor([record.get("area", 0) for record in records], dtype=torch.float32),
    }
    if "bbox" in kinds:
        boxes = [record["bbox"] for record in records]
        read["boxes"] = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
    if "segm" in kinds:
        size = (side.imgs[image]["height"], side.imgs[image]["width"])
        masks = [side.annToMask(record) for record in records]
        read["masks"] = torch.tensor(np.array(masks, dtype=np.uint8).reshape(-1, *size))
    return read
