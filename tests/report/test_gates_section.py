"""What reports say of verdicts: counts, values that can be told from their limits, and the reasons."""

import csv
import io
import json
import math
from dataclasses import replace

from result_builder import make_result

from jaccard_eval.data.document import MetricValue
from jaccard_eval.data.verdict import GateResult, GateVerdict, Status, counted_statuses
from jaccard_eval.report import ReportOptions, csv_, json_, markdown, terminal

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
FEW = "support 2 is below min-support 30"
SKIPPED = replace(PASSED, rule="few", status=Status.SKIP, value=math.nan, margin=math.nan, n=2, reason=FEW)


def lines(*gates: GateVerdict) -> list[str]:
    """The section of a text report, without indentation."""
    text = terminal.render(replace(make_result(), gates=gates), ReportOptions(width=100))
    _, _, section = text.partition("\nGates\n")
    return [line.strip() for line in section.partition("\n\n")[0].splitlines()]


def test_a_result_without_gates_says_nothing_of_them() -> None:
    assert "Gates" not in terminal.render(make_result(), ReportOptions())


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


def test_passes_far_from_the_limit_are_counted_where_a_rule_has_many_classes() -> None:
    many = [replace(PASSED, metric=f"AP50[class={i}]", class_name=str(i), margin=i / 100) for i in range(40)]
    many[30] = replace(many[30], status=Status.FAIL, margin=-0.1)
    shown = lines(*many)
    assert sum(line.startswith("pass") for line in shown) == 5
    assert sum(line.startswith("fail") for line in shown) == 1
    assert "floor: 34 more passed, further from the limit; the JSON report has all" in shown


def test_markdown_has_the_same_table_made_inert() -> None:
    text = markdown.render(replace(make_result(), gates=(replace(PASSED, rule="<b>|x"),)), ReportOptions())
    assert "| pass | &lt;b&gt;\\|x: AP50 | 0.7500 | &gt;= 0.5 | +0.2500 | 30 |" in text


def test_the_document_has_all_of_a_verdict_and_null_where_undefined() -> None:
    cell = MetricValue(ref="AP50", value=math.nan, n=2, reason="no ground truth")
    document = json.loads(
        json_.render(replace(make_result(), gates=(replace(SKIPPED, cells=(cell,)),)), ReportOptions())
    )
    (gate,) = document["gates"]
    assert (gate["rule"], gate["status"], gate["value"], gate["margin"]) == ("few", "skip", None, None)
    assert gate["cells"] == [{"metric": "AP50", "value": None, "n": 2, "reason": "no ground truth"}]


def test_a_judged_file_is_a_report_and_a_table_of_its_own() -> None:
    result = GateResult(
        version="0.1.0", path="r.json", signature="coco|v=1", baseline="b.json", gates=(PASSED, SKIPPED)
    )
    text = terminal.render(result, ReportOptions())
    assert "baseline  b.json" in text
    assert text.endswith("signature  coco|v=1\n")
    first, second = csv.DictReader(io.StringIO(csv_.render(result, ReportOptions())))
    assert (first["rule"], first["status"], first["value"], first["n"]) == ("floor", "pass", "0.75", "30")
    assert (second["value"], second["reason"]) == ("", "support 2 is below min-support 30")
