"""Evaluate the boxes of a Lightning module's validation, and log the numbers on all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from jaccard_eval.api.results import log_metrics
from jaccard_eval.api.streaming import Evaluator
from jaccard_eval.integrations import Attached, Then


def attach(
    trainer: Any,
    classes: Sequence[str] | Mapping[int, str] | None = None,
    *,
    prefix: str = "val_",
    then: Then | None = None,
) -> Attached:
    """Evaluate each validation of a trainer by the rules of COCO.

    Parameters
    ----------
    trainer : lightning.Trainer
        Of a module whose `validation_step` returns ``{"preds": preds}``, dictionaries of ``boxes``, ``labels`` and
        ``scores``; its batches are pairs of images and targets, which have an ``image_id`` each, as torchvision's.
    classes : sequence of str or mapping of int to str, optional
        Names of the labels.
    prefix : str
        Before each name that is logged: ``val_map``, ``val_map_50``.
    then : callable, optional
        Called with each result, on rank 0.

    Returns
    -------
    Attached
        Its `result` is that of the last validation, on rank 0.
    """
    # `lightning` or `pytorch_lightning`: callbacks of the one are none of the other.
    package: Any = import_module(
        "lightning" if type(trainer).__module__.startswith("lightning.") else "pytorch_lightning"
    )
    attached, evaluator = Attached(then), Evaluator(classes)

    class BoxMetrics(package.Callback):  # type: ignore[misc]
        def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            evaluator.reset()

        def on_validation_batch_end(  # noqa: PLR0917 - as it is called
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
        ) -> None:
            targets = batch[1]
            evaluator.update([int(target["image_id"]) for target in targets], outputs["preds"], targets)

        def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            states = [evaluator.state()] * trainer.world_size
            if trainer.world_size > 1:
                import_module("torch.distributed").all_gather_object(states, evaluator.state())
            logged = None
            if trainer.is_global_zero:
                logged = log_metrics(attached.give_merged(states), style="lightning", prefix=prefix)
            pl_module.log_dict(trainer.strategy.broadcast(logged))

    trainer.callbacks.append(BoxMetrics())
    return attached
