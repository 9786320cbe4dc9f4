import json
from dataclasses import replace

import pytest
from judged import CLOSE, DROP, FEW, FLOOR, judged

from jaccard_eval.data.result import GateResult, GateVerdict
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.ci import render_badge as render


@pytest.mark.parametrize(
    ("gates", "color"),
    [
        ((), "blue"),
        ((DROP, FEW), "brightgreen"),
        ((DROP, CLOSE), "yellow"),
        ((CLOSE, FLOOR), "red"),
    ],
)
def test_the_badge_shows_the_headline_metric_in_the_colour_of_the_gates(
    gates: tuple[GateVerdict, ...], color: str
) -> None:
    badge = json.loads(render(judged(*gates), ReportOptions()))
    assert badge == {"schemaVersion": 1, "label": "AP", "message": "0.5000", "color": color}


def test_an_undefined_metric_is_not_zero() -> None:
    badge = json.loads(render(judged(metrics={"AP": float("nan")}), ReportOptions()))
    assert badge["message"] == "n/a"


def test_verdicts_without_metrics_are_said_in_words() -> None:
    result = GateResult(version="0.1.0", path="r.json", signature="s", baseline=None, gates=(FLOOR,))
    assert json.loads(render(result, ReportOptions()))["message"] == "failed"
    assert json.loads(render(replace(result, gates=(DROP,)), ReportOptions()))["message"] == "passed"
