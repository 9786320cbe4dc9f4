"""Evaluate with jaccard-eval by LVIS' rules: `GT DT` gives the thirteen numbers as one line of JSON."""

import json
import sys

import jaccard_eval

result = jaccard_eval.evaluate(sys.argv[1], sys.argv[2], protocol="lvis", engine="memory")
stats = [one.value for one in result.metrics.values()]
print(json.dumps([-1.0 if value != value else value for value in stats]))  # the peers write -1 for NaN
