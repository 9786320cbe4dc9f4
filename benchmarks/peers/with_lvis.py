"""Evaluate with lvis-api: `GT DT` gives the thirteen numbers as one line of JSON."""

import contextlib
import json
import sys

import numpy as np

if not hasattr(np, "float"):
    setattr(np, "float", float)  # noqa: B010 -- lvis 0.5.3 names what newer NumPy has not
from lvis import LVIS, LVISEval, LVISResults

with contextlib.redirect_stdout(sys.stderr):
    truth = LVIS(sys.argv[1])
    evaluation = LVISEval(truth, LVISResults(truth, sys.argv[2]), "bbox")
    evaluation.run()
print(json.dumps([float(value) for value in evaluation.get_results().values()]))
