"""Evaluate with pycocotools: `with_pycocotools.py GT DT` prints the twelve numbers as one line of JSON."""

import contextlib
import json
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

with contextlib.redirect_stdout(sys.stderr):
    gt = COCO(sys.argv[1])
    evaluation = COCOeval(gt, gt.loadRes(sys.argv[2]), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
print(json.dumps([float(value) for value in evaluation.stats]))
