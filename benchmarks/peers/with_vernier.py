"""Evaluate with vernier, through its own API: prints the twelve numbers as one line of JSON."""

import json
import sys
from pathlib import Path

from vernier.instance import Bbox, CocoDataset, Evaluator

gt = CocoDataset.from_json(Path(sys.argv[1]).read_bytes())
summary = Evaluator(iou=Bbox(), parity_mode="strict").evaluate(gt, Path(sys.argv[2]).read_bytes())
print(json.dumps([float(value) for value in summary.stats]))
