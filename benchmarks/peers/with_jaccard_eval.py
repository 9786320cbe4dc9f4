"""Evaluate with jaccard-eval as a library: `GT DT [CAP]` gives the twelve numbers as one line of JSON."""

import json
import sys

import jaccard_eval

caps = [1, 10, int(sys.argv[3]) if len(sys.argv) > 3 else 100]
result = jaccard_eval.evaluate(sys.argv[1], sys.argv[2], max_dets=caps)
stats = [one.value for one in result.metrics.values()]
print(json.dumps([-1.0 if value != value else value for value in stats]))  # the peers write -1 for NaN
