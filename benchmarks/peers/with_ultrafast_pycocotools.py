"""Evaluate with ultrafast-pycocotools: `GT DT [CAP]` gives the twelve numbers as one line of JSON."""

import contextlib
import json
import sys

from ultrafast_pycocotools import COCO, COCOeval

with contextlib.redirect_stdout(sys.stderr):
    gt = COCO(sys.argv[1])
    evaluation = COCOeval(gt, gt.loadRes(sys.argv[2]), "bbox")
    if len(sys.argv) > 3:
        evaluation.params.maxDets = [1, 10, int(sys.argv[3])]
    evaluation.run()
print(json.dumps([float(value) for value in evaluation.stats[:12]]))
