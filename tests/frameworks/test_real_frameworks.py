"""Recipes and `attach` in the frameworks themselves, on planted outputs, up to numbers that are known by hand.

`make frameworks` runs these in an environment that has them; elsewhere they are skipped.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import pytest
from recipe_scene import (
    AP,
    AP50,
    AP50_WITHOUT_CROWD,
    AP_WITHOUT_CROWD,
    CLASSES,
    SCENE,
    UNTRAINED,
    Image,
    to_centres,
    whole_result,
)
from test_readme import ROOT
from training_recipes import PAGE, RECIPES

from jaccard_eval import UsageError, evaluate, log_metrics
from jaccard_eval.pycocotools import init_as_faster_coco_eval

# Theirs, of which there is nothing to learn here.
pytestmark = pytest.mark.filterwarnings("default")

# The registry's torchvision has its operators for graphic cards alone: what describes these to torch is put aside.
sys.modules.setdefault("torchvision._meta_registrations", ModuleType("torchvision._meta_registrations"))

Recipe = Callable[[str], dict[str, Any]]


def needs(*names: str) -> Any:
    # A folder of the sample may have the name of a package, which makes it one without a file.
    absent = [name for name in names if (spec := find_spec(name)) is None or spec.origin is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recipe:
    """Execute the block of a section in a folder of its own, and return the names that it defines."""
    shutil.copytree(ROOT / "sample_data" / "coco", tmp_path / "sample_data" / "coco")
    monkeypatch.chdir(tmp_path)
    for name, value in {"YOLO_OFFLINE": "true", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path / "settings"))

    def execute(title: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "page"}
        exec(compile(RECIPES[title], f"{PAGE}: {title}", "exec"), names)
        return names

    return execute


# Ultralytics: a data set on disk, and predictions planted where the validator has those of its model.


def write_yolo(folder: Path, task: str, images: Sequence[Image] = SCENE) -> Path:
    """Write the objects of images but the crowd, which labels of YOLO do not know, as a data set of a task."""
    for image in images:
        for name in ("images", "labels"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (image.width, image.height)).save(folder / "images" / image.file_name)
        lines = []
        for label, corners, is_crowd in image.objects:
            left, top, right, bottom = corners
            size = np.array([image.width, image.height])
            outline = (np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) / size).ravel()
            box = to_centres([corners], image.width, image.height)[0]
            row = {"detect": box, "segment": outline, "obb": outline, "pose": [*box, *outline]}[task]
            lines += [] if is_crowd else [" ".join([str(label), *map(str, row)])]
        (folder / "labels" / image.file_name).with_suffix(".txt").write_text("\n".join(lines))
    path = folder / "data.yaml"
    points = {"kpt_shape": [4, 2], "flip_idx": [1, 0, 3, 2]} if task == "pose" else {}
    data = {"path": str(folder), "train": "images", "val": "images", "names": dict(enumerate(CLASSES)), **points}
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, run: Recipe) -> Callable[[Sequence[Image]], None]:
    """Give the validator what was found in images, in pixels of the network's input, for what its model finds."""
    torch, ops = pytest.importorskip("torch"), pytest.importorskip("torchvision.ops")
    from ultralytics.models.yolo.detect import DetectionValidator
    from ultralytics.utils.nms import TorchNMS

    # This torchvision fits the installed torch without its compiled operators; Ultralytics has one of its own.
    monkeypatch.setattr(ops, "nms", TorchNMS.nms)
    original = DetectionValidator.update_metrics
    found_in: dict[str, Image] = {}

    def update_metrics(self: Any, preds: Any, batch: Any) -> None:
        height, width = batch["img"].shape[2:]
        for at, path in enumerate(batch["im_file"]):
            image, ((gain, _), (x, y)) = found_in[Path(path).name], batch["ratio_pad"][at]
            boxes = image.column("found", 1, np.float32) * gain + np.array([x, y, x, y], np.float32)
            corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
            found = {"bboxes": boxes, "cls": image.column("found", 0, np.float32)}
            found["conf"] = image.column("found", 2, np.float32)
            if self.args.task == "obb":
                sides = [(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2], boxes[:, :1] * 0]
                found["bboxes"] = np.concatenate(sides, axis=1)
            if self.args.task == "pose":
                found["keypoints"] = np.concatenate([corners, np.ones((len(boxes), 4, 1), np.float32)], axis=2)
            if self.args.task == "segment":
                rows, columns = np.mgrid[:height, :width] + 0.5
                left, top, right, bottom = boxes.T[:, :, None, None]
                found["masks"] = (columns > left) & (columns < right) & (rows > top) & (rows < bottom)
            preds[at] = {name: torch.from_numpy(values) for name, values in found.items()}
            if "masks" in found:
                preds[at]["masks"] = preds[at]["masks"].byte()
        original(self, preds, batch)

    monkeypatch.setattr(DetectionValidator, "update_metrics", update_metrics)
    return lambda images: found_in.update({image.file_name: image for image in images})


@pytest.fixture
def planted(plant: Callable[[Sequence[Image]], None]) -> None:
    """Plant what was found in the scene."""
    plant(SCENE)


def untrained(name: str) -> Any:
    from ultralytics import YOLO

    return YOLO(f"yolo11n{name}.yaml", verbose=False)


@needs("ultralytics")
def test_ultralytics_recipe_logs_what_the_validator_found(
    planted: None, run: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untrained("").save("yolo11n.pt")
    shutil.copy(write_yolo(tmp_path / "data", "detect"), "coco8.yaml")
    names = run("Ultralytics")
    result = names["attached"].result
    assert (result["AP"], result["AP50"]) == pytest.approx((AP_WITHOUT_CROWD, AP50_WITHOUT_CROWD))
    printed = capsys.readouterr().out
    assert f"'metrics/mAP50(B)': {result['AP50']!r}" in printed
    # F1 is best with all four detections, of which the two false alarms lead.
    assert "'metrics/precision(B)': 0.5," in printed
    assert "'metrics/recall(B)': 1.0," in printed
    assert not (names["model"].metrics.save_dir / "predictions.json").exists()  # nothing that was not asked for


# Of poses, the dog has two of four points off by 24 px: in an area of 2500 * .53, with sigmas of 1 / 4, these are
# exp(-24 ** 2 / (2 * 1325 * (2 / 4) ** 2)) = .419 alike, all four .71, which is enough at five of ten thresholds.
@needs("ultralytics")
@pytest.mark.parametrize(
    ("task", "name", "ap"),
    [("segment", "-seg", AP_WITHOUT_CROWD), ("obb", "-obb", AP_WITHOUT_CROWD), ("pose", "-pose", (0.5 + 0.25) / 2)],
)
def test_ultralytics_validates_masks_poses_and_oriented_boxes(
    task: str, name: str, ap: float, planted: None, tmp_path: Path
) -> None:
    from jaccard_eval.integrations.ultralytics import attach

    model, results = untrained(name), []
    attached = attach(model, then=results.append)
    assert attached.result is None
    for save_json in (False, True):
        data = str(write_yolo(tmp_path / task, task))
        model.val(data=data, imgsz=320, plots=False, save_json=save_json, project=str(tmp_path / "runs"))
        assert bool(list(tmp_path.rglob("predictions.json"))) is save_json
    assert results[1] is attached.result
    assert [result["AP"] for result in results] == pytest.approx([ap] * 2)


@needs("ultralytics")
def test_ultralytics_trains_and_each_epoch_is_evaluated(planted: None, tmp_path: Path) -> None:
    from jaccard_eval.integrations.ultralytics import attach

    model, results = untrained(""), []
    attach(model, then=results.append)
    data = str(write_yolo(tmp_path / "data", "detect"))
    model.train(
        data=data,
        epochs=2,
        imgsz=64,
        batch=2,
        plots=False,
        workers=0,
        pretrained=False,
        project=str(tmp_path / "runs"),
        device="cpu",
    )
    # Of each epoch, and of the best one once more.
    assert [result["AP"] for result in results] == pytest.approx([AP_WITHOUT_CROWD] * 3)


def drawn_images(seed: int, reach: float = 0.0) -> list[Image]:
    """Draw images whose detections are objects moved by a few pixels, a share `reach` of them across a border."""
    rng = np.random.default_rng(seed)
    images = []
    for key in range(1, 31):
        width, height = rng.choice([640, 500, 427], 2).tolist()
        objects, found = [], []
        for _ in range(rng.integers(1, 6)):
            left, top = rng.uniform(12, [width - 132, height - 132])
            size = rng.uniform(24, 120, 2)
            corners = np.array([left, top, *(np.array([left, top]) + size)])
            label = int(rng.integers(2))
            if rng.random() < reach:
                corners[2], corners[0] = width, width - size[0]
            objects.append((label, corners.round(2).tolist(), False))
            for _ in range(rng.integers(0, 3)):
                moved = corners + rng.normal(0, 0.06, 4) * np.tile(size, 2)
                found.append(
                    (label if rng.random() < 0.9 else 1 - label, moved.tolist(), round(rng.uniform(0.05, 1), 5))
                )
        found.sort(key=lambda row: -row[2])  # as after NMS
        images.append(Image(key, width, height, objects, found))
    return images


# Where nothing reaches a border, what the validator writes is what it matched, but for rounding; a box that
# is clipped gains overlap. Masks are compared there at a quarter of the size, which costs most where objects are small.
@needs("ultralytics")
@pytest.mark.parametrize("reach", [0.0, 0.4])
@pytest.mark.parametrize(
    ("task", "name", "head", "iou_type", "least", "most"),
    [
        ("detect", "", "box", "bbox", 0.005, 0.007),
        ("segment", "-seg", "seg", "segm", 0.04, 0.07),
        ("pose", "-pose", "pose", "keypoints", 0.0001, 0.0002),
        ("obb", "-obb", "box", "probiou", 0, 1e-9),
    ],
)
def test_files_of_the_validator_give_what_it_prints_but_for_clipping_and_small_masks(
    task: str,
    name: str,
    head: str,
    iou_type: str,
    least: float,
    most: float,
    reach: float,
    plant: Callable[[Sequence[Image]], None],
    tmp_path: Path,
) -> None:
    images = drawn_images(7, reach)
    plant(images)
    data, runs = str(write_yolo(tmp_path / "data", task, images)), tmp_path / "runs"
    saved = dict.fromkeys(("save_json", "save_txt", "save_conf"), True)
    found = untrained(name).val(data=data, plots=False, project=str(runs), device="cpu", workers=0, **saved)
    printed = getattr(found, head)
    sigmas = [0.25] * 4 if task == "pose" else None
    for written in (*runs.rglob("predictions.json"), *runs.rglob("labels")):
        result = evaluate(data, written, protocol="ultralytics", iou_type=iou_type, sigmas=sigmas)
        gap = result["AP"] - printed.map
        assert least <= gap <= most if reach or task == "segment" else abs(gap) < 1e-9
    assert len(list(runs.rglob("labels"))) == len(list(runs.rglob("predictions.json"))) == 1


@needs("ultralytics")
def test_a_validation_of_another_task_is_refused() -> None:
    from jaccard_eval.integrations.ultralytics import attach

    model = untrained("-cls")
    attach(model)
    validator: Any = SimpleNamespace(args=SimpleNamespace(task="classify"))
    with pytest.raises(UsageError, match="the task of this model is classify"):
        model.callbacks["on_val_end"][-1](validator)


# Lightning


def lightning_module(images: list[Image]) -> Any:
    import lightning
    import torch

    def columns(image: Image, side: str, **places: tuple[int, Any]) -> Any:
        return {name: torch.from_numpy(image.column(side, *place)) for name, place in places.items()}

    class Planted(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def validation_step(self, batch: Any, number: int) -> Any:
            named = {image.key: image for image in images}
            found = [named[int(target["image_id"])] for target in batch[1]]
            places = {"boxes": (1, np.float32), "labels": (0, np.int64), "scores": (2, np.float32)}
            return {"preds": [columns(image, "found", **places) for image in found]}

        def training_step(self, batch: Any, number: int) -> Any:
            return self.weight.sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def val_dataloader(self) -> Any:
            places = {"boxes": (1, np.float32), "labels": (0, np.int64), "iscrowd": (2, np.int64)}
            rows = [
                (torch.zeros(1), {"image_id": torch.tensor([image.key]), **columns(image, "objects", **places)})
                for image in images
            ]
            return torch.utils.data.DataLoader(
                rows, batch_size=2, collate_fn=lambda batch: tuple(zip(*batch, strict=True))
            )

        train_dataloader = val_dataloader

    return Planted()


@needs("lightning")
def test_lightning_recipe_logs_and_keeps_the_best(run: Recipe) -> None:
    names = run("Lightning")
    trainer = names["trainer"]
    trainer.validate(lightning_module(UNTRAINED), verbose=False)
    assert trainer.callback_metrics["val_map"] == 0
    trainer.fit(lightning_module(SCENE))
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert logged == pytest.approx(log_metrics(whole_result(), style="lightning", prefix="val_"), rel=1e-6)
    assert logged["val_map"] == pytest.approx(AP)
    assert names["attached"].result["AP"] == pytest.approx(AP)


@needs("lightning")
def test_lightning_logs_the_same_numbers_on_two_ranks(run: Recipe) -> None:
    import lightning

    from jaccard_eval.integrations.lightning import attach

    # Of three images the sampler repeats the first one.
    trainer = lightning.Trainer(strategy="ddp_fork", accelerator="cpu", devices=2, logger=False, barebones=False)
    attach(trainer, CLASSES)
    (logged,) = trainer.validate(lightning_module(SCENE), verbose=False)
    assert logged == pytest.approx(log_metrics(whole_result(), style="lightning", prefix="val_"), rel=1e-6)


# MMEngine


@needs("mmengine")
def test_mmdetection_recipe_counts_crowds_for_nothing(run: Recipe) -> None:
    import torch
    from mmengine.dataset import BaseDataset
    from mmengine.model import BaseModel
    from mmengine.registry import DATASETS, MODELS
    from mmengine.structures import BaseDataElement, InstanceData

    @DATASETS.register_module(force=True)
    class Scene(BaseDataset):
        METAINFO: ClassVar = {"classes": tuple(CLASSES)}

        def load_data_list(self) -> Any:
            return [{"key": image.key} for image in SCENE]

    @MODELS.register_module(force=True)
    class Planted(BaseModel):
        def forward(self, key: Any, mode: str, **_: Any) -> Any:
            return [mm_sample(next(image for image in SCENE if image.key == int(one))) for one in key]

    def instances(boxes: Any, **columns: Any) -> Any:
        found = {"bboxes": boxes, **columns}
        return InstanceData(**{name: torch.from_numpy(values) for name, values in found.items()})

    def mm_sample(image: Image) -> Any:
        boxes, labels, crowd = (
            image.column("objects", place, dtype) for place, dtype in ((1, np.float32), (0, np.int64), (2, np.bool_))
        )
        sample = BaseDataElement(metainfo={"img_id": image.key})
        sample.gt_instances = instances(boxes[~crowd], labels=labels[~crowd])
        sample.ignored_instances = instances(boxes[crowd], labels=labels[crowd])
        columns = {"labels": image.column("found", 0, np.int64), "scores": image.column("found", 2, np.float32)}
        sample.pred_instances = instances(image.column("found", 1, np.float32), **columns)
        return sample

    sampler = "sampler=dict(type='DefaultSampler', shuffle=False)"
    dataset = "dataset=dict(type='Scene', lazy_init=False, serialize_data=False)"
    Path("my_config.py").write_text(
        "work_dir = 'work'\nmodel = dict(type='Planted')\nval_cfg = dict()\n"
        "val_evaluator = dict(type='DumpResults', out_file_path='dumped.pkl')\n"
        f"val_dataloader = dict(batch_size=2, {sampler}, {dataset})\n"
    )
    names = run("MMDetection")
    assert names["metrics"]["jaccard/AP"] == pytest.approx(AP)
    assert names["metrics"]["jaccard/AP50"] == pytest.approx(AP50)
    assert names["runner"].message_hub.get_scalar("val/jaccard/AP").current() == pytest.approx(AP)
    assert names["attached"].result["AP"] == pytest.approx(AP)


# transformers


@needs("transformers")
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_hugging_face_recipe_evaluates_batch_by_batch(batch: int, run: Recipe) -> None:
    import torch
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, ResNetConfig
    from transformers.models.detr.modeling_detr import DetrObjectDetectionOutput

    where = "facebook/detr-resnet-50"
    backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1] * 4, out_features=["stage4"])
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 4}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    config = DetrConfig(backbone_config=backbone, use_timm_backbone=False, **sizes, **heads)
    config.id2label, config.label2id = dict(enumerate(CLASSES)), {name: place for place, name in enumerate(CLASSES)}
    DetrForObjectDetection(config).save_pretrained(where)
    DetrImageProcessor().save_pretrained(where)
    names = run("Hugging Face Trainer")
    trainer, n_queries = names["trainer"], 4
    trainer.args.per_device_eval_batch_size = batch
    trainer.data_collator = lambda rows: {
        "pixel_values": torch.stack([row["pixel_values"] for row in rows]),
        "labels": [row["labels"] for row in rows],
    }

    shown: list[Image] = []

    def forward(pixel_values: Any, labels: Any = None, **_: Any) -> Any:
        by_key = {image.key: image for image in shown}
        shares = np.tile([1e-9, 1e-9, 1.0], (len(labels), n_queries, 1))  # no object
        boxes = np.full((len(labels), n_queries, 4), 0.5)
        for row, target in enumerate(labels):
            image = by_key[int(target["image_id"])]
            for query, (label, corners, score) in enumerate(image.found):
                shares[row, query] = 1e-12
                shares[row, query, label], shares[row, query, -1] = score, 1 - score
                boxes[row, query] = to_centres(corners, image.width, image.height)[0]
        return DetrObjectDetectionOutput(
            loss=torch.tensor(0.5),
            loss_dict={"loss_ce": torch.tensor(0.5)},
            logits=torch.from_numpy(np.log(shares)),
            pred_boxes=torch.from_numpy(boxes),
            last_hidden_state=torch.zeros(len(labels), n_queries, 16),
        )

    trainer.model.forward = forward
    dataset = [{"pixel_values": torch.zeros(3, 8, 8), "labels": hf_labels(image)} for image in SCENE]
    for images in (UNTRAINED, SCENE):
        shown[:] = images
        metrics = trainer.evaluate(dataset)
    assert metrics["eval_map"] == pytest.approx(AP)
    assert metrics["eval_map_50"] == pytest.approx(AP50)
    assert metrics["eval_map_per_class/cat"] == pytest.approx(1.0)
    assert names["attached"].result["AP"] == pytest.approx(AP)


def hf_labels(image: Image) -> dict[str, Any]:
    import torch

    boxes = to_centres(image.column("objects", 1, np.float32), image.width, image.height)
    return {
        "size": torch.tensor([800, 1066]),
        "image_id": torch.tensor([image.key]),
        "class_labels": torch.from_numpy(image.column("objects", 0, np.int64)),
        "boxes": torch.from_numpy(boxes.astype(np.float32)),
        "area": torch.ones(len(boxes)),
        "iscrowd": torch.from_numpy(image.column("objects", 2, np.int64)),
        "orig_size": torch.tensor([image.height, image.width]),
    }


# supervision and torchmetrics


@needs("supervision")
def test_detections_of_supervision_are_evaluated() -> None:
    import supervision as sv

    names = np.array(CLASSES)
    sides: dict[str, dict[str, Any]] = {"objects": {}, "found": {}}
    for side, by_image in sides.items():
        for image in SCENE:
            labels = image.column(side, 0, np.int64)
            scores = {"confidence": image.column(side, 2, np.float32)} if side == "found" else {}
            boxes = image.column(side, 1, np.float32)
            data = {"class_name": names[labels]}
            by_image[image.file_name] = sv.Detections(xyxy=boxes, class_id=labels, data=data, **scores)
    result = evaluate(sides["objects"], sides["found"])
    # The crowd of the scene is an object as any other here: the detection in it overlaps it by 40 * 50 / 100 ** 2 and
    # matches nothing, so that of cats the second one finds one of two, precision 1 / 2 up to recall 1 / 2: 51 of 101.
    cat = 0.5 * 51 / 101
    assert (result["AP"], result["AP50"]) == pytest.approx(((cat + 0.05) / 2, (cat + 0.5) / 2))


def tensors(side: str, last: str, dtype: Any) -> list[dict[str, Any]]:
    """Return the boxes of each image as torchmetrics takes them."""
    import torch

    places = {"boxes": (1, np.float32), "labels": (0, np.int64), last: (2, dtype)}
    return [{name: torch.from_numpy(image.column(side, *at)) for name, at in places.items()} for image in SCENE]


@needs("torchmetrics", "torch")
def test_the_metric_of_torchmetrics_is_one_of_lightning() -> None:
    from torchmetrics import MetricCollection

    from jaccard_eval.torchmetrics import MeanAveragePrecision

    metrics = MetricCollection({"boxes": MeanAveragePrecision()})
    metrics.update(tensors("found", "scores", np.float32), tensors("objects", "iscrowd", np.int64))
    assert float(metrics.compute()["map"]) == pytest.approx(AP, abs=1e-6)


@needs("rfdetr", "torch")
def test_the_backend_of_rf_detr_for_faster_coco_eval_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    # The validator of Ultralytics imports what is installed, in tests that may have run before this one.
    for name in [name for name in sys.modules if name.partition(".")[0] == "faster_coco_eval"]:
        monkeypatch.delitem(sys.modules, name)
    init_as_faster_coco_eval()
    from rfdetr.config import TrainConfig
    from rfdetr.training.coco_map import OnePassCocoMeanAveragePrecision

    backend = TrainConfig(dataset_dir="dataset", eval_backend="faster_coco_eval").eval_backend
    metric = OnePassCocoMeanAveragePrecision(class_metrics=True, backend=backend)
    assert metric._coco_backend.cocoeval.__module__ == "jaccard_eval.compat.faster_coco_eval"
    metric.update(tensors("found", "scores", np.float32), tensors("objects", "iscrowd", np.int64))
    found = metric.compute()
    assert (float(found["map"]), found["map_per_class"].tolist()) == (pytest.approx(AP), pytest.approx([1.0, 0.05]))


# Trackers


def require_sample(logged: dict[str, float], result: Any) -> None:
    """The sample's published AP is what the tracker has, next to all other numbers."""
    assert logged["val/AP"] == pytest.approx(0.3463, abs=5e-5)
    assert logged == pytest.approx(log_metrics(result), rel=1e-6)


@needs("wandb")
def test_wandb_recipe_logs_numbers_and_the_report(run: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    logged: dict[str, float] = {}
    original = wandb.Run.log

    def log(self: Any, data: dict[str, Any], step: int | None = None) -> None:
        logged.update({name: value for name, value in data.items() if isinstance(value, float)})
        original(self, data, step=step)

    monkeypatch.setattr(wandb.Run, "log", log)  # offline, the numbers are in a file that only W&B reads
    names = run("Weights & Biases")
    require_sample(logged, names["result"])
    assert list(tmp_path.rglob("*.wandb"))
    (page,) = tmp_path.rglob("media/html/val/*.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@needs("mlflow")
def test_mlflow_recipe_logs_numbers_the_report_and_the_signature(
    run: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    names = run("MLflow")
    (logged,) = mlflow.search_runs(output_format="list")
    require_sample(logged.data.metrics, names["result"])
    assert logged.data.tags["signature"] == names["result"].signature
    (page,) = tmp_path.rglob("artifacts/report.html")
    assert "<html" in page.read_text(encoding="utf-8")


@needs("tensorboard")
@pytest.mark.needs("matplotlib")
def test_tensorboard_recipe_logs_numbers_and_a_figure(run: Recipe) -> None:
    os.environ.setdefault("MPLBACKEND", "agg")
    names = run("TensorBoard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator("runs/detector")
    events.Reload()
    require_sample({name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}, names["result"])
    assert events.Tags()["images"] == ["val/curves"]
