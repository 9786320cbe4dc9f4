"""Evaluate shapes with a tool of pycocotools' interface: `TOOL KIND GT DT` gives its numbers as one line of JSON."""

import contextlib
import importlib
import json
import sys

TOOLS = {  # where a tool has its data set and its evaluator
    "pycocotools": ("pycocotools.coco.COCO", "pycocotools.cocoeval.COCOeval"),
    "faster-coco-eval": ("faster_coco_eval.COCO", "faster_coco_eval.COCOeval_faster"),
    "ultrafast-pycocotools": ("ultrafast_pycocotools.COCO", "ultrafast_pycocotools.COCOeval"),
    "hotcoco": ("hotcoco.COCO", "hotcoco.COCOeval"),
}

tool, kind, gt_path, dt_path = sys.argv[1:]
found = []
for path in TOOLS[tool]:
    module, _, name = path.rpartition(".")
    found.append(getattr(importlib.import_module(module), name))
dataset, evaluator = found
with contextlib.redirect_stdout(sys.stderr):
    gt = dataset(gt_path)
    evaluation = evaluator(gt, gt.loadRes(dt_path), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
stats = evaluation.stats[: 10 if kind == "keypoints" else 12]
print(json.dumps([float(value) for value in stats]))
