"""Evaluate with vernier, through its own API: `GT DT [CAP]` gives the twelve numbers as one line of JSON."""

import json
import sys
from pathlib import Path

from vernier.instance import Bbox, CocoDataset, Evaluator

gt = CocoDataset.from_json(Path(sys.argv[1]).read_bytes())
caps = (1, 10, int(sys.argv[3]) if len(sys.argv) > 3 else 100)
evaluator = Evaluator(iou=Bbox(), parity_mode="strict", max_dets=caps)
summary = evaluator.evaluate(gt, Path(sys.argv[2]).read_bytes())
print(json.dumps([float(value) for value in summary.stats]))
