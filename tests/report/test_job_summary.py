import pytest
from judged import FLOOR, VERDICTS, finding, judged, verdict

from jaccard_eval.data.result import GateResult, Status
from jaccard_eval.report.outputs.ci import LEFT_OUT, MAX_BYTES, job_summary


def test_the_verdict_comes_first_and_broken_rules_before_others() -> None:
    lines = job_summary(judged(*VERDICTS)).splitlines()
    assert lines[0] == "## ❌ jaccard-eval, evaluation: 1 passed, 1 warned, 2 failed, 1 informed, 1 skipped"
    rules = [line.split(" | ")[1] for line in lines if line.startswith(("| ❌", "| ⚠️", "| 🔹", "| ⏭️", "| ✅"))]
    assert rules == ["map-floor", "undefined", "close", "informs", "rare", "drop"]


def test_a_rule_shows_value_margin_change_and_support() -> None:
    assert "| ❌ failed | map-floor | AP50 &gt;= 0.45 | 0.4312 | -0.0188 | n/a | 1,200 |" in job_summary(judged(FLOOR))


def test_metrics_stand_in_one_row_and_the_worst_classes_below() -> None:
    text = job_summary(judged(metrics={"AP": 0.5}, classes={name: {"AP": i / 10} for i, name in enumerate("abcdefg")}))
    assert "| AP |\n| ---: |\n| 0.5000 |" in text
    worst = text.partition("### Worst classes")[2].partition("<details>")[0]
    assert [line.split()[1] for line in worst.splitlines() if line.startswith("| ")][2:] == ["a", "b", "c", "d", "e"]


def test_the_whole_report_is_folded_below() -> None:
    text = job_summary(judged())
    assert "<details><summary>Full report</summary>\n\n## jaccard-eval 0.1.0, protocol coco" in text
    assert text.endswith("</details>\n\n")


def test_users_strings_are_inert() -> None:
    text = job_summary(judged(verdict("</details><img src=x>|", Status.FAIL), classes={"<b>": {"AP": 0.5}}))
    assert "<img" not in text
    assert "<b>" not in text
    assert text.count("</details>") == 1


def test_a_report_beyond_a_mebibyte_is_left_out_and_said() -> None:
    text = job_summary(judged(classes={f"class-{i:06}": {"AP": 0.5} for i in range(30_000)}))
    assert len(text.encode()) <= MAX_BYTES
    assert text.rstrip().endswith(LEFT_OUT)
    assert "Worst classes" in text


@pytest.mark.parametrize("room", [0, 10, 200, 400, 800, 5000])
def test_a_summary_never_takes_more_than_there_is_room_for(room: int) -> None:
    assert len(job_summary(judged(*VERDICTS), room).encode()) <= room


def test_many_rules_and_findings_are_counted_not_listed() -> None:
    gates = [verdict(f"rule-{i}", Status.FAIL) for i in range(60)]
    text = job_summary(judged(*gates, findings=(finding("columns"),) * 13))
    assert "+10 more rules" in text
    assert "+3 more findings" in text


def test_verdicts_on_a_saved_result_need_no_metrics() -> None:
    pytest.importorskip("jaccard_eval.features.gates.report")
    result = GateResult(version="0.1.0", path="r.json", signature="s", baseline=None, gates=(FLOOR,))
    assert job_summary(result).startswith("## ❌ jaccard-eval, gate: 1 failed\n")
