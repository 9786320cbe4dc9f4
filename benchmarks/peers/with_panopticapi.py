"""Evaluate with panopticapi in one process: `GT PRED` gives PQ, SQ and RQ of all, things and stuff as one line of JSON.

``pip install git+https://github.com/cocodataset/panopticapi`` provides it.
"""

import contextlib
import json
import sys
from pathlib import Path

from panopticapi.evaluation import pq_compute_single_core

with contextlib.redirect_stdout(sys.stderr):
    sides = [json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:3]]
    categories = {category["id"]: category for category in sides[0]["categories"]}
    predicted = {record["image_id"]: record for record in sides[1]["annotations"]}
    pairs = [(record, predicted[record["image_id"]]) for record in sides[0]["annotations"]]
    folders = (path.removesuffix(".json") for path in sys.argv[1:3])
    counted = pq_compute_single_core(0, pairs, *folders, categories)
    means = [counted.pq_average(categories, isthing=isthing)[0] for isthing in (None, True, False)]
print(json.dumps([mean[name] for mean in means for name in ("pq", "sq", "rq")]))
