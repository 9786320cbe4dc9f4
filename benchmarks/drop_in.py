"""Time `COCOeval` (evaluate, accumulate, summarize) next to its peers on one scene, with all records in memory.

`python benchmarks/drop_in.py [DRAWS] [--images N]`: all that are installed, turn by turn; the best of the draws in wall
time and in time of the processor, all threads together, and the ratios of the latter.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scenes import Scale, make_coco_scene

# Name -> modules of `COCO` and `COCOeval`.
PEERS = {
    "jaccard_eval.pycocotools": ("jaccard_eval.pycocotools", "jaccard_eval.pycocotools"),
    "pycocotools": ("pycocotools.coco", "pycocotools.cocoeval"),
    "hotcoco": ("hotcoco", "hotcoco"),
    "faster_coco_eval": ("faster_coco_eval", "faster_coco_eval"),
}
NAMES = {"faster_coco_eval": ("COCO", "COCOeval_faster")}


def main() -> None:
    """Draw the scene, and time every peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("draws", type=int, nargs="?", default=3)
    parser.add_argument("--images", type=int, default=Scale.images)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gt, dt = (Path(folder, name) for name in ("gt.json", "dt.json"))
        for path, content in zip((gt, dt), make_coco_scene(Scale(images=options.images)), strict=True):
            path.write_text(json.dumps(content))
        peers = {name: loaded for name in PEERS if (loaded := _load(name, gt, dt)) is not None}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    stats: dict[str, Any] = {}
    for _ in range(options.draws):
        for name, (truth, found, cocoeval) in peers.items():
            with contextlib.redirect_stdout(io.StringIO()):
                start, processor = time.perf_counter(), time.process_time()
                evaluation = cocoeval(truth, found, "bbox")
                evaluation.evaluate()
                evaluation.accumulate()
                evaluation.summarize()
                seconds[name].append((time.perf_counter() - start, time.process_time() - processor))
            stats[name] = np.asarray(evaluation.stats, dtype=np.float64)[:12].tolist()
    own = min(cpu for _, cpu in next(iter(seconds.values())))
    print("| class | seconds | of the processor | times the drop-in | largest difference |\n|---|---:|---:|---:|---:|")
    for name, times in seconds.items():
        wall, cpu = map(min, zip(*times, strict=True))
        far = max(abs(a - b) for a, b in zip(stats[name], next(iter(stats.values())), strict=True))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {cpu / own:.2f} | {far:.1g} |")


def _load(name: str, gt: Path, dt: Path) -> tuple[Any, Any, Any] | None:
    """Return ground truth, detections and the class that evaluates them; None for what is not installed."""
    coco_name, cocoeval_name = NAMES.get(name, ("COCO", "COCOeval"))
    try:
        coco, cocoeval = (importlib.import_module(module) for module in PEERS[name])
    except ModuleNotFoundError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        truth = getattr(coco, coco_name)(str(gt))
        results = str(dt) if name == "hotcoco" else json.loads(dt.read_text())
        return truth, truth.loadRes(results), getattr(cocoeval, cocoeval_name)


if __name__ == "__main__":
    main()
