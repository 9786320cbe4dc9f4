"""Evaluate with faster-coco-eval by LVIS' rules: `GT DT` gives the thirteen numbers as one line of JSON."""

import contextlib
import json
import sys

from faster_coco_eval import COCO, COCOeval_faster

NAMES = (
    *("AP_all", "AP_50", "AP_75", "AP_small", "AP_medium", "AP_large", "APr", "APc", "APf"),
    *("AR_all", "AR_small", "AR_medium", "AR_large"),
)

with contextlib.redirect_stdout(sys.stderr):
    truth = COCO(sys.argv[1])
    evaluation = COCOeval_faster(truth, truth.loadRes(sys.argv[2]), "bbox", lvis_style=True)
    evaluation.params.maxDets = [300]
    evaluation.run()
found = evaluation.stats_as_dict
print(json.dumps([float(found[name]) for name in NAMES]))
