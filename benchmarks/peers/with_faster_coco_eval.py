"""Evaluate with faster-coco-eval: `GT DT [CAP]` gives the twelve numbers as one line of JSON."""

import contextlib
import json
import sys

from faster_coco_eval import COCO, COCOeval_faster

with contextlib.redirect_stdout(sys.stderr):
    gt = COCO(sys.argv[1])
    evaluation = COCOeval_faster(gt, gt.loadRes(sys.argv[2]), "bbox")
    if len(sys.argv) > 3:
        evaluation.params.maxDets = [1, 10, int(sys.argv[3])]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
print(json.dumps([float(value) for value in evaluation.stats[:12]]))
