"""Time `COCOeval` (evaluate, accumulate, summarize) next to its peers on one scene, with all records in memory.

`python benchmarks/drop_in.py [DRAWS]`: all that are installed, turn by turn; the best of the draws in wall time and in
time of the processor, all threads together, and the ratios of the latter.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
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
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        gt, dt = (Path(folder, name) for name in ("gt.json", "dt.json"))
        for path, content in zip((gt, dt), make_coco_scene(Scale()), strict=True):
            path.write_text(json.dumps(content))
        peers = {name: loaded for name in PEERS if (loaded := _load(name, gt, dt)) is not None}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    stats: dict[str, Any] = {}
    for _ in range(draws):
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
    for name, times in seconds.items():
        equal = "equal to the last bit" if stats[name] == stats["pycocotools"] else "other numbers"
        wall, cpu = map(min, zip(*times, strict=True))
        print(f"{name:26} {wall:8.2f} s  {cpu:8.2f} s of the processor  {cpu / own:6.2f} times  {equal}")


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
