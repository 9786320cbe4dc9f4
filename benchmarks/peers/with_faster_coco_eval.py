"""Evaluate with faster-coco-eval: prints the twelve numbers as one line of JSON."""

import contextlib
import json
import sys

from faster_coco_eval import COCO, COCOeval_faster

with contextlib.redirect_stdout(sys.stderr):
    gt = COCO(sys.argv[1])
    evaluation = COCOeval_faster(gt, gt.loadRes(sys.argv[2]), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
print(json.dumps([float(value) for value in evaluation.stats[:12]]))
