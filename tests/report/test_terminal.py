import math
import re
from dataclasses import replace

import pytest
from result_builder import make_result

from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.terminal import render
from jaccard_eval.report.page import MAX_WIDTH

HOSTILE = {
    "escape sequences": "\x1b[2Jboo\x07",
    "rich markup": "[red]x[/red]",
    "right-to-left override": "\u202eabc",
    "line break": "line\nbreak",
    "emoji code": ":smile:",
}


def lines_of(result: EvaluationResult, **options: object) -> list[str]:
    return render(result, ReportOptions(per_class=True, **options)).splitlines()  # type: ignore[arg-type]


def class_values(name: str, n: int = 12) -> dict[str, dict[str, float]]:
    return {name: dict.fromkeys(COCO_SUMMARY[:n], 0.12345)}


def test_the_normal_report_fits_in_80_columns() -> None:
    result = make_result(
        metrics=dict.fromkeys(COCO_SUMMARY, 0.5), classes={"traffic light": dict.fromkeys(COCO_SUMMARY[:4], 0.5)}
    )
    assert max(map(len, lines_of(result)[:-1])) <= 80


def test_the_signature_is_the_last_line_and_whole() -> None:
    result = replace(make_result(), signature="coco|" + "x" * 300)
    assert lines_of(result)[-1] == f"signature  {result.signature}"


@pytest.mark.parametrize("width", [1, 40, 80, 200, 100_000])
def test_numbers_stay_whole_at_any_width(width: int) -> None:
    text = "\n".join(lines_of(make_result(classes=class_values("x" * 100)), width=width))
    assert text.count("0.1235") == 12  # round(0.12345, 4), once per metric
    assert "…" not in text


def test_a_very_wide_terminal_is_not_filled() -> None:
    assert max(map(len, lines_of(make_result(path="x" * 500), width=100_000))) <= MAX_WIDTH


def test_a_long_class_name_is_wrapped_and_not_cut() -> None:
    name = "".join(chr(ord("a") + i % 26) for i in range(100))
    column = [line.strip().split("  ")[0] for line in lines_of(make_result(classes={name: {"AP": 0.5}}))]
    assert name in "".join(column)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_names_cannot_act_on_the_terminal(name: str) -> None:
    text = render(make_result(classes={name: {"AP": 0.5}}), ReportOptions(per_class=True))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert name.encode("unicode_escape").decode() in text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8"])
def test_the_text_fits_the_encoding_of_the_stream(encoding: str) -> None:
    text = render(make_result(classes={"日本語": {"AP": math.nan}}), ReportOptions(per_class=True, encoding=encoding))
    text.encode(encoding)
    assert ("日本語" if encoding == "utf-8" else r"\u65e5\u672c\u8a9e") in text
    assert ("─" in text) == (encoding == "utf-8")


def test_escapes_appear_with_colour_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(make_result(), ReportOptions())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1m" in render(make_result(), ReportOptions(color=True))


def test_no_line_ends_in_blanks() -> None:
    assert not [line for line in lines_of(make_result()) if line != line.rstrip()]


def test_a_wide_table_leaves_the_other_lines_as_wide_as_the_page() -> None:
    lines = lines_of(make_result(classes=class_values("x"), path="long/" * 30))[:-1]
    wide = [line.split()[0] for line in lines if len(line) > 80]
    assert (wide[0], len(wide), wide[-1]) == ("class", 3, "x")  # the heading, the rule and the one row
