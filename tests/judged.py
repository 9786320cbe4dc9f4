"""Results with verdicts and findings, built by hand: what CI systems show needs no evaluation."""

import math
from typing import Any

from result_builder import make_result

from jaccard_eval.data.document import Rows
from jaccard_eval.data.result import EvaluationResult, GateVerdict, Status
from jaccard_eval.findings import Example, Finding, Severity, Where


def verdict(rule: str, status: Status, **fields: Any) -> GateVerdict:
    given = {"severity": "error", "metric": "AP50", "check": "min", "value": 0.4312, "limit": 0.45, "n": 1200} | fields
    return GateVerdict(rule=rule, status=status, **given)


def finding(code: str, severity: Severity = Severity.WARNING, *, where: Where | None = None, **fields: Any) -> Finding:
    example = Example(where or Where("pred.json", record="record 3", field="score"), "is odd")
    return Finding(severity, code, 1, (example,), **fields)


FLOOR = verdict("map-floor", Status.FAIL, margin=-0.0188, where=Where("pyproject.toml", line=42))
DROP = verdict("drop", Status.PASS, check="max-drop", limit=0.01, value=0.5, margin=0.005, baseline=0.505, delta=-0.005)
FEW = verdict("rare", Status.SKIP, metric="AP50[class=dog]", reason="12 of at least 30 objects", value=0.2, n=12)
CLOSE = verdict("close", Status.WARN, metric="AP", value=0.47, limit=0.48, margin=-0.01, slice="night")
INFO = verdict("informs", Status.INFO, metric="FPPI[score=0.4]", check="max", value=1.25, limit=1.0, margin=-0.25)
MISSING = verdict(
    "undefined", Status.FAIL, metric="AP_small", value=math.nan, limit=0.1, n=0, reason="no small objects"
)
VERDICTS = (FLOOR, DROP, FEW, CLOSE, INFO, MISSING)


def judged(*gates: GateVerdict, **fields: Any) -> EvaluationResult:
    return make_result(**fields).with_part(Rows("gates", gates))
