"""Evaluate what the validator of Ultralytics found: boxes, masks, poses and oriented boxes, in `val` and `train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.api.boxes import evaluate
from jaccard_eval.errors import UsageError
from jaccard_eval.integrations import Attached, Then
from jaccard_eval.reading.images import size_of

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult

Record = dict[str, Any]
IOU_TYPES = {"detect": "bbox", "segment": "segm", "pose": "keypoints", "obb": "obb"}
# A pose has the area of its box times this, as in the validator itself.
POSE_AREA = 0.53


def attach(model: Any, *, score: float | str | None = "best-f1", then: Then | None = None) -> Attached:
    """Evaluate each validation of a model by the rules of COCO, of `model.val` and after each epoch of `model.train`.

    Parameters
    ----------
    model : ultralytics.YOLO
        For detection, segmentation, poses or oriented boxes.
    score : float or {"best-f1"}, optional
        Where precision, recall and F1 are taken.
    then : callable, optional
        Called with each result, for example to log it: ``then=lambda result: run.log(log_metrics(result))``.

    Returns
    -------
    Attached
        Its `result` is that of the last validation.

    Raises
    ------
    UsageError
        By a validation of another task, such as classification, or when two images have the same file name.

    Notes
    -----
    The validator keeps each detection as for ``save_json=True``: coordinates to three decimals, scores to five. Nothing
    is written that was not asked for. Objects are those of the labels, in pixels of the images.
    """
    attached, asked = Attached(then), {}

    # For the batches alone: with `save_json` before and behind them, its releases would write predictions, evaluate
    # them themselves, and install what they need for that.
    def on_val_batch_start(validator: Any) -> None:
        asked["save_json"] = validator.args.save_json
        validator.args.save_json = True
        if hasattr(validator, "process"):  # masks in the resolution of the image, as `save_json` has them
            validator.process = import_module("ultralytics.utils.ops").process_mask_native

    def on_val_batch_end(validator: Any) -> None:
        validator.args.save_json = asked.pop("save_json", validator.args.save_json)

    def on_val_end(validator: Any) -> None:
        attached.give(_evaluate(validator, score))

    for callback in (on_val_batch_start, on_val_batch_end, on_val_end):
        model.add_callback(callback.__name__, callback)
    return attached


def _evaluate(validator: Any, score: float | str | None) -> EvaluationResult:
    task = validator.args.task
    if task not in IOU_TYPES:
        raise UsageError(f"attach() evaluates {', '.join(IOU_TYPES)}; the task of this model is {task}")
    gt = _ground_truth(validator.dataloader.dataset.labels, validator.names, task)
    image_ids = {image["file_name"]: image["id"] for image in gt["images"]}
    if len(image_ids) < len(gt["images"]):
        raise UsageError("two images have the same file name, by which the validator knows its predictions")
    pred = [
        {
            **row,
            "image_id": image_ids[row["file_name"]],
            # Class index, index + 1 or COCO's id, by release and data set.
            "category_id": validator.class_map.index(row["category_id"]),
            "bbox": row["poly"] if task == "obb" else row["bbox"],
        }
        for row in validator.jdict
    ]
    sigmas = np.asarray(validator.sigma).tolist() if task == "pose" else None
    return evaluate(gt, pred, iou_type=IOU_TYPES[task], score=score, sigmas=sigmas)


def _ground_truth(labels: Sequence[Record], names: Mapping[int, str], task: str) -> Record:
    """Return the labels of a data set, fractions of their images, as COCO JSON holds them."""
    images: list[Record] = []
    annotations: list[Record] = []
    for number, label in enumerate(labels, start=1):
        path = Path(label["im_file"])
        # From the file: `rect=True`, the default of validation, removes the `shape` of labels.
        width, height = size_of(path)
        images.append({"id": number, "file_name": path.name, "width": width, "height": height})
        size = np.array([width, height], dtype=np.float64)
        centres, sides = (part * size for part in np.hsplit(np.asarray(label["bboxes"], np.float64), 2))
        boxes = np.hstack((centres - sides / 2, sides)).tolist()
        for row, (name, box) in enumerate(zip(np.ravel(label["cls"]).astype(int).tolist(), boxes, strict=True)):
            annotation: Record = {"id": len(annotations) + 1, "image_id": number, "category_id": name, "iscrowd": 0}
            annotation |= {"bbox": box, "area": box[2] * box[3]}
            if task in ("segment", "obb"):
                outline = (np.asarray(label["segments"][row], np.float64) * size).ravel().tolist()
                annotation |= {"bbox": outline} if task == "obb" else {"segmentation": [outline]}
                del annotation["area"]
            if task == "pose":
                points = np.array(label["keypoints"][row], np.float64)
                points[:, :2] *= size
                seen = points[:, 2:] if points.shape[1] > 2 else np.full((len(points), 1), 2.0)
                annotation["keypoints"] = np.hstack((points[:, :2], seen)).ravel().tolist()
                annotation["num_keypoints"] = int(np.count_nonzero(seen))
                annotation["area"] *= POSE_AREA
            annotations.append(annotation)
    categories = [{"id": int(key), "name": str(name)} for key, name in names.items()]
    return {"images": images, "annotations": annotations, "categories": categories}
