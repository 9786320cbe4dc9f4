from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import CLOSE, FLOOR, INFO, VERDICTS, finding, judged, verdict
from workflow_parser import Command, parse_command, parse_log

from jaccard_eval.data.result import GateVerdict, Status
from jaccard_eval.findings import Severity, Where
from jaccard_eval.report.checks import checks_of
from jaccard_eval.report.outputs.ci import annotation_lines, output_lines, workflow_command


def annotations(*gates: GateVerdict) -> list[Command]:
    return parse_log("\n".join(annotation_lines(checks_of(judged(*gates)))))


def many(count: int, status: Status) -> tuple[GateVerdict, ...]:
    return tuple(verdict(f"rule-{i}", status) for i in range(count))


def test_a_failed_rule_is_an_error_at_its_line() -> None:
    assert annotation_lines(checks_of(judged(FLOOR))) == [
        "::error file=pyproject.toml,line=42,title=jaccard-eval map-floor"
        "::map-floor: AP50 = 0.4312, required >= 0.45; margin -0.0188; n 1,200"
    ]


def test_passing_and_skipped_rules_are_not_annotated() -> None:
    assert [one.name for one in annotations(*VERDICTS)] == ["error", "error", "warning", "notice"]


def test_a_finding_is_annotated_with_its_file_and_line_and_a_note_is_not() -> None:
    placed = finding("columns", where=Where("labels/7.txt", line=3))
    note = finding("columns-assumed", Severity.NOTE)
    (only,) = parse_log("\n".join(annotation_lines(checks_of(judged(findings=(placed, note))))))
    assert only.name == "warning"
    assert only.properties == {"file": "labels/7.txt", "line": "3", "title": "jaccard-eval columns"}
    assert only.message == "labels/7.txt:3: is odd"


@pytest.mark.parametrize(
    ("status", "level"), [(Status.FAIL, "error"), (Status.WARN, "warning"), (Status.INFO, "notice")]
)
def test_ten_of_a_level_are_all_shown(status: Status, level: str) -> None:
    assert [one.name for one in annotations(*many(10, status))] == [level] * 10


def test_the_tenth_of_more_counts_and_names_the_rest() -> None:
    found = annotations(*many(13, Status.FAIL), *many(11, Status.WARN))
    assert [one.name for one in found] == ["error"] * 10 + ["warning"] * 10
    assert found[8].properties["title"] == "jaccard-eval rule-8"
    # nine are shown of thirteen errors, so four are left: rules 9 to 12
    assert found[9].message.splitlines()[0] == "+4 more"
    assert found[9].message.splitlines()[1:] == [f"rule-{i}: AP50 min" for i in range(9, 13)]
    assert found[19].message.startswith("+2 more")


@given(message=st.text(), title=st.text().map("<{}>".format), file=st.text(min_size=1))  # the runner trims properties
def test_any_text_is_one_line_and_is_read_back_as_it_was(message: str, title: str, file: str) -> None:
    line = workflow_command("error", message, file=file, title=title)
    assert not {"\n", "\r"} & set(line)
    assert parse_command(line) == Command("error", {"file": file, "title": title}, message)


def test_a_rule_cannot_smuggle_in_a_command() -> None:
    (only,) = annotations(replace(FLOOR, rule="x::\n::error::pwned", reason="\n::stop-commands::y"))
    assert only.properties["title"] == r"jaccard-eval x::\n::error::pwned"
    assert only.message.endswith(r"\n::stop-commands::y")


def test_outputs_have_full_precision_and_the_verdict() -> None:
    lines = output_lines(judged(FLOOR, CLOSE, INFO, metrics={"AP": 0.1 + 0.2, "AP_small": float("nan")}))
    assert lines[:2] == ["AP=0.30000000000000004", "AP_small="]
    assert lines[2] == 'metrics={"AP": 0.30000000000000004, "AP_small": null}'
    assert lines[3:5] == ["verdict=failed", "failed=1"]
    assert lines[5].startswith("signature=jaccard-eval:0.1.0|")
    assert "verdict=warned" in output_lines(judged(CLOSE))
    assert "verdict=none" in output_lines(judged())
