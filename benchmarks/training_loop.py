"""Measure boxes that arrive in batches, from arrays in memory to the numbers, next to what training loops call today.

`python benchmarks/training_loop.py [ROUNDS]`: every evaluator in a process of its own, turn by turn: seconds of the
processor (all threads) of `update` and of `compute`, and the memory above that of the loaded scene; the least of the
rounds. What works on COCO records makes them of the batches in `update`. The environment's `IMAGES` draws fewer.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scenes import Scale, make_coco_scene

BATCH = 16  # images
SCALE = Scale(images=int(os.environ.get("IMAGES", Scale.images)))  # of this process and those that it starts
Batch = tuple[list[int], list[dict[str, Any]], list[dict[str, Any]]]
Steps = tuple[Callable[[Batch], None], Callable[[], float], Callable[[], int]]  # update, compute, bytes of a state


def main() -> None:
    """Draw the scene and measure every evaluator, or be the process of one."""
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    found: dict[str, list[dict[str, float]]] = {name: [] for name in EVALUATORS}
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder, "scene.npz")
        n = write_arrays(scene)
        for _ in range(rounds):
            for name in EVALUATORS:
                command = [sys.executable, __file__, name, str(scene)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    found[name].append(json.loads(done.stdout.splitlines()[-1]))
                elif "ModuleNotFoundError" not in done.stderr:
                    raise RuntimeError(done.stderr)
    own = None
    print(f"{n:,} detections, and how much of each the first takes of a row, of both and of `compute` alone:\n")
    print("| | update | compute | of both | of compute | AP | peak memory | of it | bytes of a detection's state |")
    print("|---|---:|---:|---:|---:|---|---:|---:|---:|")
    for name, runs in found.items():
        if not runs:
            print(f"| {name}, not installed | | | | | | | | |")
            continue
        update, compute, peak = (min(run[key] for run in runs) for key in ("update", "compute", "peak"))
        own = own or (update + compute, peak)
        ratios = f"{own[0] / (update + compute):.3f} | {own[0] / compute:.3f}"
        state = f"{runs[0]['state'] / n:.1f}" if runs[0]["state"] else ""
        values = f"{runs[0]['ap']:.16f} | {peak / 1e6:,.0f} MB | {own[1] / peak:.2f}"
        print(f"| {name} | {update:.2f} | {compute:.2f} | {ratios} | {values} | {state} |")


def write_arrays(path: Path) -> int:
    """Write the scene as arrays by image, and return the number of detections."""
    truth, results = make_coco_scene(SCALE)
    columns: dict[str, Any] = {"images": np.array([image["id"] for image in truth["images"]])}
    for name, records in (("gt", truth["annotations"]), ("dt", results)):
        ordered = sorted(records, key=lambda record: record["image_id"])
        columns[f"{name}.image"] = np.array([record["image_id"] for record in ordered])
        columns[f"{name}.labels"] = np.array([record["category_id"] for record in ordered])
        xywh = np.array([record["bbox"] for record in ordered], dtype=np.float64)
        columns[f"{name}.boxes"] = np.concatenate((xywh[:, :2], xywh[:, :2] + xywh[:, 2:]), axis=1)
        column = "score" if name == "dt" else "area"
        columns[f"{name}.{column}s"] = np.array([record[column] for record in ordered], dtype=np.float64)
        if name == "gt":
            columns["gt.iscrowd"] = np.array([record["iscrowd"] for record in ordered])
    np.savez(path, **columns)
    return len(results)


def batches(scene: Path, make: Callable[[Any], Any]) -> Iterator[Batch]:
    """Yield keys, predictions and objects of the images, 16 at a time."""
    with np.load(scene) as archive:
        columns = dict(archive)
    images = np.sort(columns["images"])
    ends = {side: np.searchsorted(columns[f"{side}.image"], images, "right") for side in ("gt", "dt")}
    names = {"gt": {"areas": "area", "iscrowd": "iscrowd"}, "dt": {"scores": "scores"}}

    def record(side: str, at: int) -> dict[str, Any]:
        rows = slice(0 if at == 0 else int(ends[side][at - 1]), int(ends[side][at]))
        wanted = {"boxes": "boxes", "labels": "labels", **names[side]}
        return {name: make(columns[f"{side}.{column}"][rows].copy()) for column, name in wanted.items()}

    for start in range(0, len(images), BATCH):
        rows = range(start, min(start + BATCH, len(images)))
        yield (
            images[start : start + BATCH].tolist(),
            [record("dt", at) for at in rows],
            [record("gt", at) for at in rows],
        )


def measure(name: str, scene: Path) -> dict[str, float]:
    """Feed the batches to an evaluator, and return seconds of the processor, bytes and the AP."""
    warnings.simplefilter("ignore")
    steps, make = EVALUATORS[name]()
    given = list(batches(scene, make))
    update, compute, size = steps
    Path("/proc/self/clear_refs").write_text("5")  # the highest memory is counted from here
    before, start = _memory("VmRSS"), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        for batch in given:
            update(batch)
        middle = time.process_time()
        ap = compute()
    end = time.process_time()
    peak = _memory("VmHWM") - before
    return {"update": middle - start, "compute": end - middle, "ap": ap, "peak": peak, "state": size()}


def _memory(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _evaluator() -> tuple[Steps, Callable[[Any], Any]]:
    from jaccard_eval import Evaluator

    evaluator = Evaluator()
    steps = (
        (lambda batch: evaluator.update(*batch)),
        (lambda: evaluator.compute()["AP"]),
        lambda: len(evaluator.state()),
    )
    return steps, np.asarray


def _metric(**arguments: Any) -> tuple[Steps, Callable[[Any], Any]]:
    from jaccard_eval import MeanAveragePrecision

    metric = MeanAveragePrecision(**arguments)
    return ((lambda batch: metric.update(*batch[1:])), (lambda: float(metric.compute()["map"])), lambda: 0), np.asarray


def _torchmetrics(backend: str) -> tuple[Steps, Callable[[Any], Any]]:
    from without_torchvision import load_mean_average_precision

    torch = importlib.import_module("torch")
    importlib.import_module(backend)
    metric = load_mean_average_precision()(backend=backend)
    steps = (lambda batch: metric.update(*batch[1:])), (lambda: float(metric.compute()["map"])), lambda: 0
    return steps, torch.as_tensor


def _records(module: str, coco_name: str, cocoeval_name: str) -> tuple[Steps, Callable[[Any], Any]]:
    """Make COCO records of batches; `compute` is COCOeval alone."""
    library = importlib.import_module(module)
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    sides: list[Any] = []

    def update(batch: Batch) -> None:
        for key, pred, target in zip(*batch, strict=True):
            images.append({"id": key})
            for record, into, others in ((pred, results, ("scores",)), (target, annotations, ("area", "iscrowd"))):
                xywh = np.concatenate((record["boxes"][:, :2], record["boxes"][:, 2:] - record["boxes"][:, :2]), axis=1)
                columns = [xywh.tolist(), record["labels"].tolist(), *(record[name].tolist() for name in others)]
                for bbox, label, *values in zip(*columns, strict=True):
                    named = dict(zip(("score",) if into is results else others, values, strict=True))
                    into.append({"id": len(into) + 1, "image_id": key, "category_id": label, "bbox": bbox, **named})

    def load() -> None:
        categories = [{"id": label, "name": str(label)} for label in sorted({a["category_id"] for a in annotations})]
        document = {"images": images, "annotations": annotations, "categories": categories}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "gt.json")
            path.write_text(json.dumps(document))
            truth = getattr(library, coco_name)(str(path))
        sides.extend([truth, truth.loadRes([{k: v for k, v in one.items() if k != "id"} for one in results])])

    def update_and_load(batch: Batch) -> None:
        update(batch)
        if len(images) == SCALE.images:
            load()

    def compute() -> float:
        evaluation = getattr(library, cocoeval_name)(*sides, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return float(evaluation.stats[0])

    return (update_and_load, compute, lambda: 0), np.asarray


EVALUATORS: dict[str, Callable[[], tuple[Steps, Callable[[Any], Any]]]] = {
    "Evaluator": _evaluator,
    "MeanAveragePrecision": _metric,
    "MeanAveragePrecision, strict": lambda: _metric(strict=True),
    "torchmetrics, faster_coco_eval": lambda: _torchmetrics("faster_coco_eval"),
    "hotcoco": lambda: _records("hotcoco", "COCO", "COCOeval"),
    "faster_coco_eval": lambda: _records("faster_coco_eval", "COCO", "COCOeval_faster"),
}

if __name__ == "__main__":
    main()
