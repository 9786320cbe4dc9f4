"""Evaluate what the `Trainer` of transformers finds, batch by batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jaccard_eval.api.results import log_metrics
from jaccard_eval.api.streaming import Evaluator
from jaccard_eval.errors import UsageError
from jaccard_eval.integrations import Attached, Then
from jaccard_eval.reading.image_boxes import to_array


def attach(trainer: Any, processor: Any = None, *, prefix: str = "", then: Then | None = None) -> Attached:
    """Evaluate each evaluation of a trainer by the rules of COCO.

    Parameters
    ----------
    trainer : transformers.Trainer
        Of a model for object detection, as DETR, whose labels are those of its image processor.
    processor : optional
        The image processor, of which `post_process_object_detection` is called; the trainer's own if None.
    prefix : str
        Before each name that is logged, behind ``eval_``, which the trainer puts there: ``eval_map``.
    then : callable, optional
        Called with each result, for example to log it.

    Returns
    -------
    Attached
        Its `result` is that of the last evaluation.

    Raises
    ------
    UsageError
        When the trainer runs on several processes.

    Notes
    -----
    It sets `trainer.compute_metrics`, ``trainer.args.batch_eval_metrics``, so that outputs of the whole set are never
    kept, and ``trainer.args.include_for_metrics``: of the last batch, where it is smaller than the others, the trainer
    cuts the list of objects of each image to as many as there are images, and so the labels of its inputs are read. If
    the processor pads images, boxes of both sides are relative to the padded image: they match as ever, but sizes,
    and with them ``map_small`` and its like, are off.
    """
    if trainer.args.world_size > 1:
        raise UsageError("attach() evaluates on one process: a trainer on several gathers labels of one length only")
    processor = trainer.processing_class if processor is None else processor
    attached, evaluator = Attached(then), Evaluator(trainer.model.config.id2label)

    def compute_metrics(evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        labels = evaluation.inputs[trainer.label_names[0]]
        # DETR's `loss_dict` may stand before them, and states of its layers behind.
        logits, boxes, *_ = (part for part in evaluation.predictions if getattr(part, "ndim", 0) == 3)
        sizes = [to_array(label["orig_size"], "orig_size").tolist() for label in labels]
        outputs = SimpleNamespace(logits=logits, pred_boxes=boxes)
        preds = processor.post_process_object_detection(outputs, threshold=0.0, target_sizes=sizes)
        targets = [
            {
                "boxes": to_array(label["boxes"], "boxes") * [width, height, width, height],
                "labels": label["class_labels"],
                **({"iscrowd": label["iscrowd"]} if "iscrowd" in label else {}),
                "encoding": "cxcywh",
            }
            for label, (height, width) in zip(labels, sizes, strict=True)
        ]
        evaluator.update([int(label["image_id"]) for label in labels], preds, targets)
        if not compute_result:
            return {}
        result = attached.give(evaluator.compute())
        evaluator.reset()
        return log_metrics(result, style="torchmetrics", prefix=prefix)

    trainer.compute_metrics, trainer.args.batch_eval_metrics = compute_metrics, True
    trainer.args.include_for_metrics = [*trainer.args.include_for_metrics, "inputs"]
    return attached
