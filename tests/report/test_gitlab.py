import json
from dataclasses import replace
from typing import Any

from judged import CLOSE, FLOOR, VERDICTS, finding, judged

from jaccard_eval.data.result import EvaluationResult, Status
from jaccard_eval.findings import Where
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.ci import render_code_quality as render


def issues(result: EvaluationResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render(result, ReportOptions()))
    return found


def test_a_broken_rule_is_an_issue_at_its_line() -> None:
    (issue,) = issues(judged(FLOOR))
    assert issue["location"] == {"path": "pyproject.toml", "lines": {"begin": 42}}
    assert (issue["check_name"], issue["severity"]) == ("jaccard-eval/map-floor", "critical")
    assert issue["description"] == "map-floor: AP50 = 0.4312, required >= 0.45; margin -0.0188; n 1,200"


def test_passing_and_skipped_rules_are_no_issues() -> None:
    assert [one["severity"] for one in issues(judged(*VERDICTS))] == ["critical", "minor", "info", "critical"]


def test_a_finding_is_an_issue_at_its_first_place() -> None:
    (issue,) = issues(judged(findings=(finding("columns", where=Where("./labels/7.txt", line=3)),)))
    assert issue["location"] == {"path": "labels/7.txt", "lines": {"begin": 3}}
    assert (issue["check_name"], issue["severity"]) == ("jaccard-eval/columns", "minor")


def test_fingerprints_do_not_depend_on_what_was_measured() -> None:
    (before,) = issues(judged(FLOOR))
    (after,) = issues(judged(replace(FLOOR, value=0.46, limit=0.48, margin=-0.02, n=7, delta=-0.1, status=Status.WARN)))
    assert before["fingerprint"] == after["fingerprint"]
    assert before["description"] != after["description"]


def test_fingerprints_differ_between_rules_and_between_alike_findings() -> None:
    twice = finding("columns")
    found = issues(judged(FLOOR, CLOSE, findings=(twice, twice)))
    assert len({one["fingerprint"] for one in found}) == 4


def test_a_rule_of_the_command_line_has_a_path_all_the_same() -> None:
    (issue,) = issues(judged(CLOSE))
    assert issue["location"] == {"path": "jaccard-eval", "lines": {"begin": 1}}


def test_a_clean_result_is_an_empty_list() -> None:
    assert issues(judged()) == []
