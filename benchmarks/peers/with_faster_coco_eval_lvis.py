"""Evaluate with faster-coco-eval by LVIS' rules: `GT DT` gives the thirteen numbers as one line of JSON."""

import contextlib
import json
import sys

from faster_coco_eval import COCO, COCOeval_faster

with contextlib.redirect_stdout(sys.stderr):
    truth = COCO(sys.argv[1])
    evaluation = COCOeval_faster(truth, truth.loadRes(sys.argv[2]), "bbox", lvis_style=True)
    evaluation.params.maxDets = [300]
    evaluation.run()
print(json.dumps([float(value) for value in evaluation.stats[:13]]))
