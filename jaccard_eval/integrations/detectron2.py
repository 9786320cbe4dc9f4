"""Evaluate the boxes of detectron2 next to its own evaluators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jaccard_eval.api.results import log_metrics
from jaccard_eval.api.streaming import Evaluator
from jaccard_eval.integrations import Attached, Then


def attach(evaluators: Any, dataset_name: str, *, then: Then | None = None) -> Attached:
    """Evaluate by the rules of COCO what an evaluation of detectron2 is given.

    Parameters
    ----------
    evaluators : list of detectron2.evaluation.DatasetEvaluator
        Those that are handed to `inference_on_dataset`, or to `DatasetEvaluators`; one is added.
    dataset_name : str
        Registered by `register_coco_instances`: its JSON file is the ground truth, so that crowds are known.
    then : callable, optional
        Called with each result, on the main process.

    Returns
    -------
    Attached
        Its `result` is that of the last evaluation, on the main process.
    """
    data, base, comm = (import_module(f"detectron2.{name}") for name in ("data", "evaluation", "utils.comm"))
    metadata, attached = data.MetadataCatalog.get(dataset_name), Attached(then)
    evaluator = Evaluator(metadata.thing_classes, gt=metadata.json_file)

    class BoxEvaluator(base.DatasetEvaluator):  # type: ignore[misc, name-defined]
        def reset(self) -> None:
            evaluator.reset()

        def process(self, inputs: Any, outputs: Any) -> None:
            found = [output["instances"] for output in outputs]
            preds = [
                {"boxes": one.pred_boxes.tensor, "labels": one.pred_classes, "scores": one.scores} for one in found
            ]
            evaluator.update([image["image_id"] for image in inputs], preds)

        def evaluate(self) -> dict[str, Any]:
            states = comm.gather(evaluator.state(), dst=0)
            if not comm.is_main_process():
                return {}
            return {"jaccard": log_metrics(attached.give_merged(states), prefix="")}

    evaluators.append(BoxEvaluator())
    return attached
