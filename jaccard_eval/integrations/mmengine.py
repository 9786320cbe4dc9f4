"""Evaluate the boxes of an MMEngine runner's validation, as MMDetection's models find them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from jaccard_eval.api.results import log_metrics
from jaccard_eval.api.streaming import Evaluator
from jaccard_eval.integrations import Attached, Then
from jaccard_eval.reading.image_boxes import to_array


def attach(runner: Any, *, prefix: str = "jaccard/", then: Then | None = None) -> Attached:
    """Evaluate each validation of a runner by the rules of COCO.

    Parameters
    ----------
    runner : mmengine.runner.Runner
        Whose samples have ``img_id``, ``gt_instances``, ``ignored_instances``, which are crowds, and
        ``pred_instances``, as those of MMDetection: corners in pixels of the original image on both sides, as long as
        `LoadAnnotations` comes after `Resize` in the test pipeline, which is MMDetection's default.
    prefix : str
        Before each name among the metrics of the runner: ``save_best="jaccard/AP"``.
    then : callable, optional
        Called with each result, on rank 0.

    Returns
    -------
    Attached
        Its `result` is that of the last validation, on rank 0.
    """
    attached, dist = Attached(then), import_module("mmengine.dist")
    hooks: Any = import_module("mmengine.hooks")

    class BoxHook(hooks.Hook):  # type: ignore[misc]
        def before_val_epoch(self, runner: Any) -> None:
            self.evaluator = Evaluator(runner.val_dataloader.dataset.metainfo["classes"])

        def after_val_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
            keys = [sample.img_id for sample in outputs]
            preds = [_boxes(sample.pred_instances, "scores") for sample in outputs]
            self.evaluator.update(keys, preds, [_target(sample) for sample in outputs])

        def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
            states = dist.all_gather_object(self.evaluator.state())
            logged: list[Any] = [None]
            if dist.is_main_process():
                logged = [log_metrics(attached.give_merged(states), prefix=prefix)]
            dist.broadcast_object_list(logged)
            if metrics is not None:
                metrics.update(logged[0])

    # Before the hooks that log the metrics and keep the best checkpoint.
    runner.register_hook(BoxHook(), priority="HIGHEST")
    return attached


def _boxes(instances: Any, *others: str) -> dict[str, Any]:
    boxes = getattr(instances.bboxes, "tensor", instances.bboxes)
    return {"boxes": boxes, "labels": instances.labels, **{name: getattr(instances, name) for name in others}}


def _target(sample: Any) -> dict[str, Any]:
    sides = [_boxes(sample.gt_instances)]
    if "ignored_instances" in sample:
        sides.append(_boxes(sample.ignored_instances))
    boxes, labels = (np.concatenate([to_array(side[name], name) for side in sides]) for name in ("boxes", "labels"))
    return {"boxes": boxes, "labels": labels, "iscrowd": np.arange(len(labels)) >= len(sides[0]["labels"])}
