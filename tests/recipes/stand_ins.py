"""As much of detectron2 as its recipe in docs/training-loop.md meets: names, arguments and layouts are theirs.

It follows the framework's own loop; what it computes is copied from the scene.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import array_likes
import numpy as np
from recipe_scene import Image


class Tensor(array_likes.Tensor):
    """A tensor on a GPU, with the few methods of torch's that recipes call."""

    def cpu(self) -> "Tensor":
        return Tensor(self.values, on_host=True)

    def numpy(self) -> Any:
        return self.__array__()

    def tolist(self) -> Any:
        return self.values.tolist()

    def __int__(self) -> int:
        return int(self.values.item())


def on_ranks(world: int, run: Callable[[int], Any]) -> list[Any]:
    """Run a function of the rank on threads that gather as processes do; return what each gives."""
    shared = SimpleNamespace(barrier=threading.Barrier(world, timeout=30), slots=[None] * world)
    answers: list[Any] = [None] * world
    faults: list[BaseException] = []

    def work(rank: int) -> None:
        HERE.rank = Rank(rank, world, shared)
        try:
            answers[rank] = run(rank)
        except BaseException as fault:
            faults.append(fault)
            shared.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return answers


@dataclass
class Rank:
    """One of several processes."""

    rank: int
    world: int
    shared: Any

    def all_gather(self, value: Any) -> list[Any]:
        self.shared.slots[self.rank] = value
        self.shared.barrier.wait()
        gathered = list(self.shared.slots)
        self.shared.barrier.wait()
        return gathered


HERE = threading.local()


def here() -> Rank:
    """Return the process that this thread plays."""
    rank: Rank = HERE.rank
    return rank


def modules(**named: Any) -> dict[str, ModuleType]:
    """Return modules by dotted name, ``a__b`` for ``a.b``, those above them included."""
    made: dict[str, ModuleType] = {}
    for name, content in named.items():
        parts = name.split("__")
        for end in range(1, len(parts) + 1):
            dotted = ".".join(parts[:end])
            if dotted not in made:
                made[dotted] = ModuleType(dotted)
                if end > 1:
                    setattr(made[".".join(parts[: end - 1])], parts[end - 1], made[dotted])
        vars(made[".".join(parts)]).update(content)
    return made


# --- detectron2: evaluation/evaluator.py `inference_on_dataset`, utils/comm.py, structures/instances.py.
class DatasetEvaluator:
    pass


class COCOEvaluator(DatasetEvaluator):
    def __init__(self, dataset_name: str) -> None:
        pass

    def reset(self) -> None:
        pass

    def process(self, inputs: Any, outputs: Any) -> None:
        pass

    def evaluate(self) -> Any:
        return {}


class DatasetEvaluators(DatasetEvaluator):
    def __init__(self, evaluators: Sequence[Any]) -> None:
        self.evaluators = evaluators

    def reset(self) -> None:
        for evaluator in self.evaluators:
            evaluator.reset()

    def process(self, inputs: Any, outputs: Any) -> None:
        for evaluator in self.evaluators:
            evaluator.process(inputs, outputs)

    def evaluate(self) -> Any:
        results: dict[str, Any] = {}
        for evaluator in self.evaluators:
            results |= evaluator.evaluate()
        return results


EVALUATION = ("DatasetEvaluator", "DatasetEvaluators", "COCOEvaluator")


def inference_on_dataset(batches: Sequence[Sequence[Image]], evaluator: Any) -> Any:
    evaluator.reset()
    for images in batches:
        inputs = [
            {"image_id": image.key, "file_name": image.file_name, "height": image.height, "width": image.width}
            for image in images
        ]
        evaluator.process(inputs, [{"instances": _instances(image)} for image in images])
    return evaluator.evaluate() or {}


def _instances(image: Image) -> Any:
    return SimpleNamespace(
        pred_boxes=SimpleNamespace(tensor=Tensor(image.column("found", 1, np.float32))),
        pred_classes=Tensor(image.column("found", 0, np.int64)),
        scores=Tensor(image.column("found", 2, np.float32)),
    )


def gather(data: Any, dst: int = 0) -> list[Any]:
    gathered = here().all_gather(data)
    return gathered if here().rank == dst else []
