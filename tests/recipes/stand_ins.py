"""As much of each framework as a recipe of docs/training-loop.md meets: names, arguments and layouts are theirs.

Each follows the framework's own loop, named at the class; what they compute is copied from the scene.
"""

import posixpath
import re
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import array_likes
import numpy as np
import PIL.Image

from jaccard_eval import Evaluator

Record = dict[str, Any]
CLASSES = ["cat", "dog"]


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


@dataclass(frozen=True)
class Image:
    """One image of the scene: boxes as corners in pixels."""

    key: int
    width: int
    height: int
    objects: list[tuple[int, list[float], bool]]  # label, corners, crowd
    found: list[tuple[int, list[float], float]]  # label, corners, score

    @property
    def file_name(self) -> str:
        return f"{self.key:012}.jpg"

    def column(self, side: str, place: int, dtype: Any) -> Any:
        rows = [row[place] for row in getattr(self, side)]
        return np.array(rows, dtype=dtype).reshape((-1, 4) if place == 1 else -1)


# Cat: first a detection in a crowd, which counts for nothing, then one that is exact: AP 1, and .5 without the crowd.
# Dog: first a false alarm, then one at IoU 26 / 50 = .52, so that precision is 1 / 2 at the first of ten thresholds:
# AP50 .5, AP .05.
SCENE = [
    Image(139, 640, 480, [(0, [10, 20, 110, 220], False)], [(0, [10, 20, 110, 220], 0.9)]),
    Image(
        285,
        200,
        100,
        [(1, [0, 0, 50, 50], False), (0, [100, 0, 200, 100], True)],
        [(1, [0, 0, 50, 26], 0.8), (0, [120, 10, 160, 60], 0.97)],
    ),
    Image(632, 320, 240, [], [(1, [1, 1, 20, 20], 0.95)]),
]
AP, AP50 = (1 + 0.05) / 2, (1 + 0.5) / 2
AP_WITHOUT_CROWD, AP50_WITHOUT_CROWD = (0.5 + 0.05) / 2, (0.5 + 0.5) / 2
# Of an epoch before: the same images, of which a model that is not trained finds nothing.
UNTRAINED = [replace(image, found=[]) for image in SCENE]


def coco_document(category_ids: Sequence[int]) -> Record:
    """Return the objects of the scene as COCO JSON."""
    rows = [(image, *row) for image in SCENE for row in image.objects]
    annotations = [
        {
            "id": number,
            "image_id": image.key,
            "category_id": category_ids[label],
            "bbox": [left, top, right - left, bottom - top],
            "area": (right - left) * (bottom - top),
            "iscrowd": int(crowd),
        }
        for number, (image, label, (left, top, right, bottom), crowd) in enumerate(rows, start=1)
    ]
    images = [
        {"id": image.key, "file_name": image.file_name, "width": image.width, "height": image.height} for image in SCENE
    ]
    categories = [{"id": key, "name": name} for key, name in zip(category_ids, CLASSES, strict=True)]
    return {"images": images, "annotations": annotations, "categories": categories}


def whole_result() -> Any:
    """Return the result of the scene, added at once."""
    evaluator = Evaluator(CLASSES)
    sides = {"preds": ("found", "scores", np.float32), "targets": ("objects", "iscrowd", np.int64)}
    evaluator.update(
        [image.key for image in SCENE],
        **{
            side: [
                {
                    "boxes": image.column(rows, 1, np.float32),
                    "labels": image.column(rows, 0, np.int64),
                    last: image.column(rows, 2, dtype),
                }
                for image in SCENE
            ]
            for side, (rows, last, dtype) in sides.items()
        },
    )
    return evaluator.compute()


def to_centres(boxes: Any, width: float, height: float) -> Any:
    """Return corners as normalised centres and sizes."""
    corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    both = np.hstack([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]])
    return both / np.array([width, height, width, height])


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


# --- Ultralytics 8.3, 8.4: engine/validator.py `BaseValidator.__call__`, models/yolo/detect/val.py `pred_to_json`, and
# data/dataset.py, whose `labels` hold a dictionary of each image; `rect=True`, the default, removes `shape`.
class YOLO:
    def __init__(self, model: str) -> None:
        self.callbacks: dict[str, list[Callable[[Any], None]]] = defaultdict(list)

    def add_callback(self, event: str, callback: Callable[[Any], None]) -> None:
        self.callbacks[event].append(callback)

    def val(self, data: str, save_json: bool = False, task: str = "detect") -> None:
        args = SimpleNamespace(save_json=save_json, task=task)
        self.validator = SimpleNamespace(args=args, names=dict(enumerate(CLASSES)), class_map=[1, 2], jdict=[])
        with tempfile.TemporaryDirectory() as images:
            labels = [self._label(image, Path(images)) for image in SCENE]
            self.validator.dataloader = SimpleNamespace(dataset=SimpleNamespace(labels=labels))
            self._call("on_val_start")
            if args.save_json:
                self.validator.jdict += [row for image in SCENE for row in self._rows(image)]
            self._call("on_val_end")

    def _call(self, event: str) -> None:
        for callback in self.callbacks[event]:
            callback(self.validator)

    def _rows(self, image: Image) -> Iterator[Record]:
        for label, (left, top, right, bottom), score in image.found:
            yield {
                "image_id": image.key,
                "file_name": image.file_name,
                "category_id": label + 1,
                "bbox": [round(value, 3) for value in (left, top, right - left, bottom - top)],
                "score": round(score, 5),
            }

    def _label(self, image: Image, folder: Path) -> Record:
        # YOLO's labels know no crowds.
        corners = [box for _, box, crowd in image.objects if not crowd]
        path = folder / image.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("L", (image.width, image.height)).save(path)
        return {
            "im_file": str(path),
            "cls": np.array([[label] for label, _, crowd in image.objects if not crowd], np.float32).reshape(-1, 1),
            "bboxes": to_centres(corners, image.width, image.height).astype(np.float32),
            "normalized": True,
            "bbox_format": "xywh",
        }


# --- Lightning 2: loops/evaluation_loop.py, which calls the hooks of callbacks with these arguments, in this order.
class Callback:
    pass


class LightningTrainer:
    def __init__(self, callbacks: Sequence[Any]) -> None:
        self.callbacks = callbacks
        self.strategy = SimpleNamespace(broadcast=lambda obj, src=0: here().all_gather(obj)[src])

    @property
    def world_size(self) -> int:
        return here().world

    @property
    def is_global_zero(self) -> bool:
        return here().rank == 0

    def validate(self, module: Any, batches: Sequence[Sequence[Image]]) -> None:
        (callback,) = self.callbacks
        callback.on_validation_epoch_start(self, module)
        for number, images in enumerate(batches):
            batch = [image.key for image in images], [self._target(image) for image in images]
            outputs = {"preds": [self._pred(image) for image in images]}
            callback.on_validation_batch_end(self, module, outputs, batch, number, 0)
        callback.on_validation_epoch_end(self, module)

    def _target(self, image: Image) -> Record:
        # As torchvision's references make them.
        return {
            "image_id": Tensor([image.key]),
            "boxes": Tensor(image.column("objects", 1, np.float32)),
            "labels": Tensor(image.column("objects", 0, np.int64)),
            "iscrowd": Tensor(image.column("objects", 2, np.int64)),
        }

    def _pred(self, image: Image) -> Record:
        places = {"boxes": (1, np.float32), "labels": (0, np.int64), "scores": (2, np.float32)}
        return {name: Tensor(image.column("found", *place)) for name, place in places.items()}


class LightningModule:
    def __init__(self) -> None:
        self.logged: Record = {}

    def log_dict(self, dictionary: Record) -> None:
        assert all(isinstance(value, float) for value in dictionary.values())
        self.logged |= dictionary


def all_gather_object(object_list: list[Any], obj: Any) -> None:
    object_list[:] = here().all_gather(obj)


# --- detectron2: evaluation/evaluator.py `inference_on_dataset`, utils/comm.py, structures/instances.py.
class DatasetEvaluator:
    pass


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


# --- MMEngine: evaluator/metric.py `BaseMetric.evaluate`, evaluator/evaluator.py `Evaluator.process`, which makes
# dictionaries of the samples; dist.collect_results, which interleaves the ranks and cuts the padding.
class BaseMetric:
    default_prefix: str | None = None

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.dataset_meta: Record = {"classes": tuple(CLASSES)}

    def evaluate(self, size: int) -> Record | None:
        parts = here().all_gather(self.results)
        results = [result for row in zip(*parts, strict=True) for result in row][:size]
        metrics = self.compute_metrics(results) if here().rank == 0 else None  # type: ignore[attr-defined]
        metrics = here().all_gather(metrics)[0]
        self.results.clear()
        return {f"{self.default_prefix}/{name}": value for name, value in metrics.items()}


class Registry:
    def register_module(self) -> Callable[[type], type]:
        return lambda metric: metric


def mm_sample(image: Image) -> Record:
    """Return a `DetDataSample` as a dictionary."""
    boxes, labels, crowd = (
        image.column("objects", place, dtype) for place, dtype in ((1, np.float32), (0, np.int64), (2, np.bool_))
    )
    sides = {"gt_instances": ~crowd, "ignored_instances": crowd}
    pred = {"bboxes": (1, np.float32), "labels": (0, np.int64), "scores": (2, np.float32)}
    return {
        "img_id": image.key,
        "img_path": f"data/val/{image.file_name}",
        "ori_shape": (image.height, image.width),
        "pred_instances": {name: Tensor(image.column("found", *place)) for name, place in pred.items()},
        **{side: {"bboxes": Tensor(boxes[rows]), "labels": Tensor(labels[rows])} for side, rows in sides.items()},
    }


# --- transformers 4 and 5: trainer.py `Trainer.evaluation_loop` with `batch_eval_metrics`, and DETR's image processor.
@dataclass
class EvalPrediction:
    predictions: Any
    label_ids: Any


@dataclass
class TrainingArguments:
    output_dir: str
    batch_eval_metrics: bool = False
    remove_unused_columns: bool = True
    eval_strategy: str = "no"


class AutoImageProcessor:
    @classmethod
    def from_pretrained(cls, name: str) -> "AutoImageProcessor":
        return cls()

    def post_process_object_detection(
        self, outputs: Any, threshold: float = 0.5, target_sizes: Any = None
    ) -> list[Record]:
        logits, boxes = outputs.logits.values, outputs.pred_boxes.values
        shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        scores, labels = shares[..., :-1].max(axis=-1), shares[..., :-1].argmax(axis=-1)
        corners = np.concatenate([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], axis=-1)
        found = []
        for image, (height, width) in enumerate(target_sizes):
            kept = scores[image] > threshold
            scaled = corners[image][kept] * np.array([width, height, width, height])
            row = {"scores": scores[image][kept], "labels": labels[image][kept], "boxes": scaled}
            found.append({name: Tensor(values) for name, values in row.items()})
        return found


class AutoModelForObjectDetection:
    config = SimpleNamespace(id2label=dict(enumerate(CLASSES)))

    @classmethod
    def from_pretrained(cls, name: str) -> "AutoModelForObjectDetection":
        return cls()


@dataclass
class Trainer:
    model: Any
    args: TrainingArguments
    compute_metrics: Callable[..., Record]
    metric_key_prefix: str = "eval"

    def evaluate(self, batches: Sequence[Sequence[Image]]) -> Record:
        assert self.args.batch_eval_metrics
        assert not self.args.remove_unused_columns  # or the trainer removes the images
        metrics: Record = {}
        for number, images in enumerate(batches):
            # The model's output without its loss: loss_dict, logits, pred_boxes, last_hidden_state.
            logits, boxes = _queries(images)
            predictions = ({"loss_ce": Tensor(0.5)}, Tensor(logits), Tensor(boxes), Tensor(np.zeros((len(images), 3))))
            evaluation = EvalPrediction(predictions, [_hf_labels(image) for image in images])
            metrics = self.compute_metrics(evaluation, compute_result=number == len(batches) - 1)
        return {f"{self.metric_key_prefix}_{name}": float(value) for name, value in metrics.items()}


def _queries(images: Sequence[Image]) -> tuple[Any, Any]:
    """Return logits (B, Q, classes + 1) and normalised centres (B, Q, 4) of as many queries for each image."""
    n = max(len(image.found) for image in images) + 1
    shares = np.tile([1e-9, 1e-9, 1.0], (len(images), n, 1))  # no object
    boxes = np.full((len(images), n, 4), 0.5)
    for row, image in enumerate(images):
        for query, (label, corners, score) in enumerate(image.found):
            shares[row, query] = 1e-12
            shares[row, query, label], shares[row, query, -1] = score, 1 - score
            boxes[row, query] = to_centres(corners, image.width, image.height)[0]
    return np.log(shares), boxes


def _hf_labels(image: Image) -> Record:
    boxes = to_centres(image.column("objects", 1, np.float32), image.width, image.height)
    return {
        "size": Tensor([800, 1066]),
        "image_id": Tensor([image.key]),
        "class_labels": Tensor(image.column("objects", 0, np.int64)),
        "boxes": Tensor(boxes.astype(np.float32)),
        "area": Tensor(np.ones(len(boxes), np.float32)),
        "iscrowd": Tensor(image.column("objects", 2, np.int64)),
        "orig_size": Tensor([image.height, image.width]),
    }


# --- Trackers: wandb `Run.log`, mlflow.utils.validation, torch.utils.tensorboard.
@dataclass
class Tracker:
    """What was logged, by step."""

    scalars: dict[tuple[str, int], float] = field(default_factory=dict)
    others: Record = field(default_factory=dict)

    def log(self, name: str, value: Any, step: int) -> None:
        if isinstance(value, float):
            assert value == value, f"{name}: charts break at NaN"
            self.scalars[name, step] = value
        else:
            self.others[name] = value


@dataclass
class Html:
    data: str
    inject: bool = True


class Run:
    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def log(self, data: Record, step: int | None = None) -> None:
        for name, value in data.items():
            self.tracker.log(name, value, step or 0)


def wandb(tracker: Tracker) -> Record:
    return {"init": lambda project: Run(tracker), "Html": Html}


def mlflow(tracker: Tracker) -> Record:
    @contextmanager
    def start_run() -> Iterator[None]:
        yield

    def log_metrics(metrics: dict[str, float], step: int | None = None) -> None:
        for name, value in metrics.items():
            assert re.fullmatch(r"[/\w.\- ]{1,250}", name, re.ASCII)
            # A name may be a path, and has to be that path.
            assert posixpath.normpath(name) == name
            assert not name.startswith(("/", ".."))
            tracker.log(name, value, step or 0)

    def log_artifact(local_path: str) -> None:
        tracker.others[local_path] = Path(local_path).read_text(encoding="utf-8")

    def set_tag(key: str, value: Any) -> None:
        tracker.others[key] = value

    return {
        "start_run": start_run,
        "log_metrics": log_metrics,
        "log_artifact": log_artifact,
        "set_tag": set_tag,
    }


def summary_writer(tracker: Tracker) -> type:
    class SummaryWriter:
        def __init__(self, log_dir: str) -> None:
            pass

        def __enter__(self) -> "SummaryWriter":
            return self

        def __exit__(self, *exception: object) -> None:
            return None

        def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None:
            tracker.log(tag, scalar_value, global_step or 0)

        def add_figure(self, tag: str, figure: Any, global_step: int | None = None) -> None:
            tracker.others[tag] = figure

    return SummaryWriter
