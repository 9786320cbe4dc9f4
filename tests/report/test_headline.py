"""The headline: the last line of a report in text, in colours of its own, and all that --quiet leaves."""

from pathlib import Path

import pytest
from command_line import run_here, write_pair

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Headline, Note, Report, Section, Span
from jaccard_eval.report.outputs.text import lay_out, render_report

LINE = Headline((Span("FAILED", "bad"), Span("  AP50 0.6915 < 0.80"), Span(" (1 warning)", "warn")))
REPORT = Report("title", (Section("Gates", (Note("note"),)),), "coco|v=1", headline=LINE)


def test_the_headline_is_the_last_line() -> None:
    assert lay_out(REPORT, ReportOptions()).splitlines()[-1] == "FAILED  AP50 0.6915 < 0.80 (1 warning)"
    assert render_report(REPORT).splitlines()[-1] == "FAILED  AP50 0.6915 &lt; 0.80 (1 warning)"


def test_quiet_leaves_the_headline_alone() -> None:
    assert lay_out(REPORT, ReportOptions(quiet=True)) == "FAILED  AP50 0.6915 < 0.80 (1 warning)\n"


def test_looks_are_colours() -> None:
    # ECMA-48: 31 is red, 33 yellow, 0 ends it.
    text = lay_out(REPORT, ReportOptions(quiet=True, color=True))
    assert text == "\x1b[31mFAILED\x1b[0m  AP50 0.6915 < 0.80\x1b[33m (1 warning)\x1b[0m\n"


@pytest.mark.parametrize("line", ["x" * 300, "a\x1b[2Jb"])
def test_a_headline_is_one_line_that_cannot_act_on_the_terminal(line: str) -> None:
    report = Report("title", (), headline=Headline((Span(line),)))
    assert lay_out(report, ReportOptions(quiet=True)) == line.replace("\x1b", r"\x1b") + "\n"


@pytest.mark.parametrize("name", ["evaluate", "explain", "inspect", "sensitivity"])
def test_quiet_and_verbose_go_together_and_the_last_line_is_printed(name: str, tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    quiet, both = (run_here(name, *pair, *options) for options in (["-q"], ["-q", "-v"]))
    assert (both.returncode, both.stdout.count("\n")) == (0, 1)
    assert both.stdout == quiet.stdout


def test_the_last_line_has_the_numbers_of_a_score_that_was_asked_for(sample_data: Path) -> None:
    pair = (str(sample_data / "coco" / name) for name in ("gt.json", "worse.json"))
    line = run_here("evaluate", *pair, "-q", "--score", "0.5").stdout
    # 24 true and 2 false positives, 14 misses: 24 / 26, 24 / 38 and 48 / 64, as the table of operating points has them.
    assert line == "AP 0.3463  AP50 0.6915  AP75 0.2658  at 0.50: precision 0.9231  recall 0.6316  F1 0.7500\n"
