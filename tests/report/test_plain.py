import math
import re
from dataclasses import replace

import pytest
from result_builder import make_result

from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Cell, Column, KeyValues, Kind, Marked, Note, Report, Section, Table, delta_look
from jaccard_eval.report.outputs.text import lay_out
from jaccard_eval.report.outputs.text import render_text as render
from jaccard_eval.text import columns_of

HOSTILE = {
    "escape sequences": "\x1b[2Jboo\x07",
    "rich markup": "[red]x[/red]",
    "right-to-left override": "\u202eabc",
    "line break": "line\nbreak",
    "emoji code": ":smile:",
}
LONG = "|".join(["coco", *(f"part{i}={'x' * 30}" for i in range(12)), "classes=" + ",".join("abcdefgh" * 9)])


def lines_of(result: EvaluationResult, **options: object) -> list[str]:
    return render(result, ReportOptions(per_class=True, **options)).splitlines()  # type: ignore[arg-type]


def test_a_file_has_the_whole_signature_in_lines_that_end_behind_its_parts() -> None:
    lines = lines_of(replace(make_result(), signature=LONG))
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("signature  ")) : -1]
    assert max(map(len, lines)) <= 200
    assert "".join(line[11:] for line in lines) == LONG


def test_a_log_has_a_short_signature_unless_details_are_asked_for() -> None:
    result = replace(make_result(), signature=f"coco|{'x' * 100}|gt=sha-256-128:0123456789abcdef|v=1")
    short, long = (lines_of(result, is_file=False, verbose=verbose)[-2] for verbose in (False, True))
    assert short == f"signature  coco|{'x' * 100}|gt=01234567|v=1"
    assert long.endswith("|gt=sha-256-128:0123456789abcdef|v=1")


def test_what_is_usual_in_a_signature_stands_in_files_alone() -> None:
    report = Report("t", (), "pixels|ignore=9|colors=none|v=1", usual=("pixels", "ignore=none", "colors=none"))
    log, file = (lay_out(report, ReportOptions(is_file=is_file)) for is_file in (False, True))
    assert log.splitlines()[-1] == "signature  pixels|ignore=9|v=1"
    assert file.splitlines()[-1] == "signature  pixels|ignore=9|colors=none|v=1"


def test_prose_breaks_at_blanks_below_200_characters() -> None:
    words = " ".join(f"word{i}" for i in range(100))
    report = Report("title", (Section("part", (Note(words), KeyValues((("term", words),)))),))
    lines = lay_out(report, ReportOptions()).splitlines()[3:]
    assert 190 < max(map(len, lines)) <= 200
    assert " ".join(" ".join(lines).split()) == f"{words} term {words}"
    # Below the first line of a fact, the others hang below its text.
    assert [line[:8] for line in lines if line.startswith("    ")] == ["        "] * 3


def test_a_title_a_path_and_a_name_are_whole_however_long_they_are() -> None:
    path, name = "long/" * 60, "x" * 300
    lines = lines_of(make_result(classes={name: {"AP": 0.5}}, path=path))
    assert sum(line.endswith(path) for line in lines) == 1
    assert sum(name in line for line in lines) == 1
    report = Report("t", (Section("title " * 100, ()),))
    assert lay_out(report, ReportOptions()).splitlines()[2] == ("title " * 100).rstrip()


def test_a_table_of_more_than_200_columns_goes_on_below_itself_with_its_first_column() -> None:
    metrics = {f"metric-{i:02}": 0.5 for i in range(30)}
    heads = (Column("class"), *(Column(name, "metric") for name in metrics))
    report = Report("t", (Section("s", (Table(heads, (("dog", *metrics.values()),)),)),))
    lines = lay_out(report, ReportOptions()).splitlines()[3:]
    assert [line.split()[0] for line in lines[::3]] == ["class", "class"]
    assert [line.split()[0] for line in lines[2::3]] == ["dog", "dog"]
    assert max(map(len, lines)) <= 200


def test_wide_characters_take_two_columns() -> None:
    lines = lines_of(make_result(classes={"交通信号灯": {"AP": 0.5}, "person": {"AP": 0.25}}))
    wide, narrow = (next(line for line in lines if name in line) for name in ("交通信号灯", "person"))
    assert len(wide) + 5 == len(narrow)  # five characters of two columns each


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("e\u0301", 1),
        ("\u2764\ufe0f", 1),
        ("\U0001f468\ufe0f", 2),
        ("\u4e2d\u6587", 4),
        ("a\u20dd", 1),
        ("\u0939\u093f", 2),
    ],
)
def test_marks_that_combine_take_no_column(text: str, n: int) -> None:
    assert columns_of(text) == n


def test_a_long_summary_stands_in_one_piece() -> None:
    lines = [line.split() for line in lines_of(make_result(metrics=dict.fromkeys(COCO_SUMMARY, 0.25)))]
    assert all([name, "0.2500", "10"] in lines for name in COCO_SUMMARY)


@pytest.mark.parametrize(
    ("cell", "kind", "code"),
    [
        (0.25, "delta", 32),
        (-0.25, "delta", 31),
        (0.0, "delta", None),
        (1e-13, "delta", None),
        (math.nan, "delta", 2),
        ((0.01, 0.2), "interval", 32),
        ((-0.2, -0.01), "interval", 31),
        ((-0.1, 0.1), "interval", None),
        (math.nan, "metric", 2),
        (0.25, "metric", None),
        ("n/a", "metric", None),
        (Marked(0.25, "bad"), "delta", 31),
        (Marked("fail", "bad"), "word", 31),
        (Marked(3, "warn"), "count", 33),
    ],
)
def test_looks_come_from_kinds_and_marks(cell: Cell, kind: Kind, code: int | None) -> None:
    report = Report("t", (Section("s", (Table((Column("a"), Column("b", kind)), (("x", cell),)),)),))
    row = lay_out(report, ReportOptions(color=True, verbose=True)).splitlines()[-1]
    assert re.findall(r"\x1b\[(\d+)m", row) == ([str(code), "0"] if code else [])


def test_of_a_metric_of_which_less_is_better_a_rise_is_bad() -> None:
    assert [delta_look(change, higher_is_better=False) for change in (1.0, -1.0, 0.0)] == ["bad", "good", "plain"]


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
