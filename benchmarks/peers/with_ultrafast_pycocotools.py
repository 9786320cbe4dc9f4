"""Evaluate with ultrafast-pycocotools: prints the twelve numbers as one line of JSON."""

import contextlib
import json
import sys

from ultrafast_pycocotools import COCO, COCOeval

with contextlib.redirect_stdout(sys.stderr):
    gt = COCO(sys.argv[1])
    evaluation = COCOeval(gt, gt.loadRes(sys.argv[2]), "bbox")
    evaluation.run()
print(json.dumps([float(value) for value in evaluation.stats[:12]]))
