"""Recipes of docs/training-loop.md, each run in a stand-in of its framework, up to numbers that are known by hand."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stand_ins
from stand_ins import AP, AP50, AP50_WITHOUT_CROWD, AP_WITHOUT_CROWD, CLASSES, SCENE, UNTRAINED, Tracker, on_ranks
from test_readme import FRAMEWORKS, ROOT, read_blocks

from jaccard_eval import UsageError, log_metrics
from jaccard_eval.integrations.ultralytics import attach

PAGE = "docs/training-loop.md"
SECTIONS = dict(
    re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
)
RECIPES = {
    title: block.text
    for title, text in SECTIONS.items()
    for block in read_blocks(text, PAGE)
    if FRAMEWORKS.search(block.text)
}
TESTED: set[str] = set()

Recipe = Callable[..., dict[str, Any]]


def recipe(title: str) -> Any:
    """Mark the test of a section."""
    TESTED.add(title)
    return pytest.mark.parametrize("title", [title])


@pytest.fixture
def run(title: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recipe:
    """Execute the block of a section among stand-ins, and return the names that it defines."""

    shutil.copytree(ROOT / "sample_data" / "coco", tmp_path / "sample_data" / "coco")
    monkeypatch.chdir(tmp_path)

    def execute(**named: Any) -> dict[str, Any]:
        for name, module in stand_ins.modules(**named).items():
            monkeypatch.setitem(sys.modules, name, module)
        names: dict[str, Any] = {"__name__": "page"}
        exec(compile(RECIPES[title], f"{PAGE}: {title}", "exec"), names)
        return names

    return execute


@recipe("Ultralytics")
def test_ultralytics_logs_what_its_validator_found(run: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(ultralytics={"YOLO": stand_ins.YOLO})
    result = names["attached"].result
    assert result["AP"] == pytest.approx(AP_WITHOUT_CROWD)
    assert result["AP50"] == pytest.approx(AP50_WITHOUT_CROWD)
    printed = capsys.readouterr().out
    assert f"'metrics/mAP50(B)': {result['AP50']!r}" in printed
    # F1 is best with all four detections, of which the two false alarms lead.
    assert "'metrics/precision(B)': 0.5," in printed
    assert "'metrics/recall(B)': 1.0," in printed
    assert names["model"].validator.args.save_json is False  # nothing is written that was not asked for


def test_attached_to_ultralytics_each_validation_is_handed_on() -> None:
    model, results = stand_ins.YOLO("yolo11n.pt"), []
    attached = attach(model, then=results.append)
    assert attached.result is None
    for _ in range(2):
        model.val(data="coco8.yaml", save_json=True)
        assert model.validator.args.save_json is True
    assert results[1] is attached.result
    assert [result["AP"] for result in results] == pytest.approx([AP_WITHOUT_CROWD] * 2)
    with pytest.raises(UsageError, match="the task of this model is classify"):
        model.val(data="coco8.yaml", task="classify")


@recipe("Lightning")
@pytest.mark.parametrize("world", [1, 2])
def test_lightning_logs_the_same_numbers_on_all_ranks(world: int, run: Recipe) -> None:
    lightning = {"Callback": stand_ins.Callback, "Trainer": stand_ins.LightningTrainer}
    names = run(lightning=lightning, torch__distributed={"all_gather_object": stand_ins.all_gather_object})

    def validate(rank: int) -> dict[str, float]:
        module = stand_ins.LightningModule()
        trainer = stand_ins.LightningTrainer([names["BoxMetrics"](CLASSES)])
        for images in (UNTRAINED, SCENE):
            # On two ranks the sampler repeats the first image.
            shares = [[images]] if world == 1 else [[images[:1], images[1:2]], [images[2:], images[:1]]]
            trainer.validate(module, shares[rank])
        return module.logged

    for logged in on_ranks(world, validate):
        assert logged["val_map"] == pytest.approx(AP)
        assert logged["val_map_50_per_class_dog"] == pytest.approx(0.5)
        assert logged == log_metrics(stand_ins.whole_result(), style="lightning", prefix="val_")


@recipe("detectron2")
@pytest.mark.parametrize("world", [1, 2])
def test_detectron2_evaluates_against_its_registered_json(world: int, run: Recipe, tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    path.write_text(json.dumps(stand_ins.coco_document(category_ids=[17, 3])))
    metadata = SimpleNamespace(thing_classes=CLASSES, json_file=str(path))
    comm = {"gather": stand_ins.gather, "is_main_process": lambda: stand_ins.here().rank == 0}
    names = run(
        detectron2__data={"MetadataCatalog": {"my_val": metadata}},
        detectron2__evaluation={"DatasetEvaluator": stand_ins.DatasetEvaluator},
        detectron2__utils__comm=comm,
    )

    def evaluate(rank: int) -> Any:
        evaluator = names["BoxEvaluator"]("my_val")
        for images in (UNTRAINED, SCENE):
            shares = [[images[:2], images[2:]]] if world == 1 else [[images[:1]], [images[1:2], images[2:]]]
            answer = stand_ins.inference_on_dataset(shares[rank], evaluator)
        return answer

    first, *others = on_ranks(world, evaluate)
    assert first["jaccard"]["AP"] == pytest.approx(AP)
    assert first["jaccard"]["AP/dog"] == pytest.approx(0.05)
    assert all(other == {} for other in others)


@recipe("MMDetection")
@pytest.mark.parametrize("world", [1, 2])
def test_mmdetection_counts_padding_once_and_crowds_for_nothing(world: int, run: Recipe) -> None:
    names = run(
        mmdet__registry={"METRICS": stand_ins.Registry()},
        mmengine__evaluator={"BaseMetric": stand_ins.BaseMetric},
    )
    samples = [stand_ins.mm_sample(image) for image in SCENE]
    shares = [samples] if world == 1 else [samples[::2], [samples[1], samples[0]]]

    def evaluate(rank: int) -> Any:
        metric = names["BoxMetric"]()
        metric.process({}, shares[rank])
        return metric.evaluate(size=len(SCENE))

    for metrics in on_ranks(world, evaluate):
        assert metrics["jaccard/AP"] == pytest.approx(AP)
        assert metrics["jaccard/AP50"] == pytest.approx(AP50)


@recipe("Hugging Face Trainer")
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_hugging_face_evaluates_batch_by_batch(batch: int, run: Recipe) -> None:
    names = run(
        transformers={
            name: getattr(stand_ins, name)
            for name in ("AutoImageProcessor", "AutoModelForObjectDetection", "Trainer", "TrainingArguments")
        }
    )
    for images in (UNTRAINED, SCENE):
        batches = [images[start : start + batch] for start in range(0, len(images), batch)]
        metrics = names["trainer"].evaluate(batches)
    assert metrics["eval_map"] == pytest.approx(AP)
    assert metrics["eval_map_50"] == pytest.approx(AP50)
    assert metrics["eval_map_per_class/cat"] == pytest.approx(1.0)


@recipe("Weights & Biases")
def test_wandb_gets_numbers_and_the_report(run: Recipe) -> None:
    tracker = Tracker()
    names = run(wandb=stand_ins.wandb(tracker))
    require_sample(tracker, names["result"])
    assert tracker.others["val/report"].data.startswith("<!DOCTYPE html>")
    assert not tracker.others["val/report"].inject


@recipe("MLflow")
def test_mlflow_gets_numbers_the_report_and_the_signature(run: Recipe) -> None:
    tracker = Tracker()
    names = run(mlflow=stand_ins.mlflow(tracker))
    require_sample(tracker, names["result"])
    assert "<html" in tracker.others["report.html"]
    assert tracker.others["signature"] == names["result"].signature


@recipe("TensorBoard")
@pytest.mark.needs("matplotlib")
def test_tensorboard_gets_numbers_and_a_figure(run: Recipe) -> None:
    tracker = Tracker()
    names = run(torch__utils__tensorboard={"SummaryWriter": stand_ins.summary_writer(tracker)})
    require_sample(tracker, names["result"])
    assert type(tracker.others["val/curves"]).__name__ == "Figure"


def require_sample(tracker: Tracker, result: Any) -> None:
    """The sample's published AP is what the tracker has, next to all other numbers."""
    assert tracker.scalars["val/AP", 1] == pytest.approx(0.3463, abs=5e-5)
    assert {name: value for (name, _), value in tracker.scalars.items()} == log_metrics(result)


def test_every_recipe_of_the_page_is_run_here() -> None:
    assert set(RECIPES) == TESTED
    # Blocks that need a framework, and are in no section, would be run nowhere.
    page = read_blocks((ROOT / PAGE).read_text(encoding="utf-8"), PAGE)
    assert len([block for block in page if FRAMEWORKS.search(block.text)]) == len(RECIPES)
