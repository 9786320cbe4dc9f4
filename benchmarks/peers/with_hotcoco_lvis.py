"""Evaluate with hotcoco by LVIS' rules: `GT DT` gives the thirteen numbers as one line of JSON."""

import contextlib
import json
import sys

from hotcoco import COCO, COCOeval

NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR@300", "ARs@300", "ARm@300", "ARl@300")

with contextlib.redirect_stdout(sys.stderr):
    truth = COCO(sys.argv[1])
    evaluation = COCOeval(truth, truth.load_res(sys.argv[2]), "bbox", lvis_style=True)
    evaluation.run()
    found = evaluation.get_results()
print(json.dumps([float(found[name]) for name in NAMES]))
