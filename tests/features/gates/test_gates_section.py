"""What reports say of verdicts: counts, values that can be told from their limits, and the reasons."""

import csv
import io
import json
import math
from dataclasses import replace

from resampled import difference
from result_builder import make_result

from jaccard_eval.data.document import MetricValue, Rows
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.result import GateResult, GateVerdict, Spread, Status, counted_statuses
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.checks import limit_text, verdict_text
from jaccard_eval.report.outputs import json_, tables
from jaccard_eval.report.outputs.text import render_markdown, render_text

PASSED = GateVerdict(
    rule="floor",
    metric="AP50",
    check="min",
    status=Status.PASS,
    severity="error",
    value=0.75,
    limit=0.5,
    margin=0.25,
    n=30,
)
DROPPED = replace(
    PASSED, rule="drop", check="max-drop", status=Status.FAIL, limit=0.01, margin=-0.04, baseline=0.8, delta=-0.05
)
DELTA = difference(0.8, 0.75, (-0.09, -0.01), ref=MetricRef.parse("AP50"), probability=0.97, detectable=0.06)
DRAWN = {"confidence_level": 0.9, "n_resamples": 9, "n_units": 40, "unit": "image"}
SURE = replace(
    DROPPED, significance="significant-drop", spread=Spread(interval=(-0.09, -0.01), drawn=DRAWN, paired=DELTA)
)
FEW = "support 2 is below min-support 30"
SKIPPED = replace(PASSED, rule="few", status=Status.SKIP, value=math.nan, margin=math.nan, n=2, reason=FEW)


def lines(*gates: GateVerdict) -> list[str]:
    """The section of a text report, without indentation."""
    text = render_text(make_result().with_part(Rows("gates", gates)), ReportOptions(width=100))
    _, _, section = text.partition("\nGates\n")
    return [line.strip() for line in section.partition("\n\n")[0].splitlines()]


def test_a_result_without_gates_says_nothing_of_them() -> None:
    assert "Gates" not in render_text(make_result(), ReportOptions())


def test_the_section_begins_with_how_many_checks_ended_how() -> None:
    assert lines(PASSED, DROPPED, PASSED, SKIPPED)[0] == "2 passed, 1 failed, 1 skipped"
    assert counted_statuses([DROPPED, PASSED]) == {Status.PASS: 1, Status.FAIL: 1}


def test_every_check_has_its_value_limit_margin_change_and_support() -> None:
    shown = [line.split() for line in lines(PASSED, DROPPED) if line.startswith(("pass", "fail"))]
    assert shown == [
        ["pass", "floor:", "AP50", "0.7500", ">=", "0.5", "+0.2500", "n/a", "30"],
        ["fail", "drop:", "AP50", "0.7500", "drop", "<=", "0.01", "-0.0400", "-0.0500", "30"],
    ]


def test_without_a_baseline_there_is_no_column_of_changes() -> None:
    (header,) = [line.split() for line in lines(PASSED) if line.startswith("status")]
    assert header == ["status", "rule", "value", "limit", "margin", "n"]


def test_a_reason_follows_the_table() -> None:
    assert "few: AP50: support 2 is below min-support 30" in lines(SKIPPED)


def test_an_interval_follows_the_table_with_what_it_means() -> None:
    told = lines(SURE)[-1]
    assert told == (
        "drop: AP50: tested: significant-drop; delta -0.0500, 90 % interval -0.0900 to -0.0100;"
        " p = 0.030; smallest detectable difference 0.06"
    )
    assert lines(replace(SURE, rule="significant-drop of AP50"))[-1].startswith(
        "significant-drop of AP50: delta -0.0500"
    )
    assert lines(replace(PASSED, spread=Spread(interval=(0.7, 0.8), drawn=DRAWN)))[-1] == (
        "floor: AP50: 90 % interval 0.7000 to 0.8000 for sets of 40 such images"
    )


def test_a_limit_is_told_with_its_significance_in_a_line_of_its_own() -> None:
    assert limit_text(SURE) == "drop <= 0.01 (significant-drop)"
    assert "required drop <= 0.01 (significant-drop); margin -0.0400" in verdict_text(SURE)


def test_passes_far_from_the_limit_are_counted_where_a_rule_has_many_classes() -> None:
    many = [replace(PASSED, metric=f"AP50[class={i}]", class_name=str(i), margin=i / 100) for i in range(40)]
    many[30] = replace(many[30], status=Status.FAIL, margin=-0.1)
    shown = lines(*many)
    assert sum(line.startswith("pass") for line in shown) == 5
    assert sum(line.startswith("fail") for line in shown) == 1
    assert "floor: 34 more passed, further from the limit; the JSON report lists all" in shown


def test_markdown_has_the_same_table_made_inert() -> None:
    text = render_markdown(make_result().with_part(Rows("gates", (replace(PASSED, rule="<b>|x"),))), ReportOptions())
    assert "| pass | &lt;b&gt;\\|x: AP50 | 0.7500 | &gt;= 0.5 | +0.2500 | 30 |" in text


def test_the_document_has_all_of_a_verdict_and_null_where_undefined() -> None:
    cell = MetricValue(ref=MetricRef.parse("AP50"), value=math.nan, n=2, reason="no ground truth")
    document = json.loads(
        json_.render(make_result().with_part(Rows("gates", (replace(SKIPPED, cells=(cell,)),))), ReportOptions())
    )
    (gate,) = document["gates"]
    assert (gate["rule"], gate["status"], gate["value"], gate["margin"]) == ("few", "skip", None, None)
    assert gate["cells"] == [{"metric": "AP50", "value": None, "n": 2, "reason": "no ground truth"}]


def test_the_document_has_what_resampling_says() -> None:
    found = SURE.to_dict()
    assert found["spread"] == {
        **DRAWN,
        "of": "delta",
        "low": -0.09,
        "high": -0.01,
        "probability": 0.97,
        "detectable": 0.06,
    }
    of_value = replace(PASSED, spread=Spread(interval=(0.7, 0.8), drawn=DRAWN)).to_dict()["spread"]
    assert (of_value["of"], of_value["probability"], of_value["detectable"]) == ("value", None, None)
    assert [PASSED.to_dict()[name] for name in ("significance", "spread", "ties")] == [None, None, None]
    assert replace(PASSED, ties=(0.4, 0.6)).to_dict()["ties"] == [0.4, 0.6]


def test_a_judged_file_is_a_report_and_a_table_of_its_own() -> None:
    result = GateResult(
        version="0.1.0", path="r.json", signature="coco|v=1", baseline="b.json", gates=(PASSED, SKIPPED)
    )
    text = render_text(result, ReportOptions())
    assert "baseline  b.json" in text
    assert text.endswith("\nsignature  coco|v=1\npassed 1 gate  (1 skipped)\n")
    first, second = csv.DictReader(io.StringIO(tables.render_csv(result, ReportOptions())))
    assert (first["rule"], first["status"], first["value"], first["n"]) == ("floor", "pass", "0.75", "30")
    assert (second["value"], second["reason"]) == ("", "support 2 is below min-support 30")
