import math
import re
from dataclasses import replace

import pytest
from result_builder import make_result

from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Cell,
    Column,
    KeyValues,
    Kind,
    Marked,
    Note,
    Report,
    Section,
    Table,
    delta_look,
)
from jaccard_eval.report.outputs.terminal import render
from jaccard_eval.report.text_layout import MAX_WIDTH, lay_out
from jaccard_eval.text import columns_of

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
    assert max(map(len, lines_of(result, width=80))) <= 80


LONG = "|".join(["coco", *(f"part{i}={'x' * 30}" for i in range(12)), "classes=" + ",".join("abcdefgh" * 9)])


@pytest.mark.parametrize("width", [40, 80, None])
def test_a_file_has_the_whole_signature_in_lines_that_end_behind_its_parts(width: int | None) -> None:
    lines = lines_of(replace(make_result(), signature=LONG), width=width)
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("signature  ")) : -1]
    assert max(map(len, lines)) <= max(width or 200, 11 + 38)  # no part is broken
    assert "".join(line[11:] for line in lines) == LONG


def test_a_screen_has_a_short_signature_unless_details_are_asked_for() -> None:
    result = replace(make_result(), signature=f"coco|{'x' * 100}|gt=sha-256-128:0123456789abcdef|v=1")
    short, long = (lines_of(result, is_file=False, verbose=verbose)[-2] for verbose in (False, True))
    assert short == f"signature  coco|{'x' * 100}|gt=01234567|v=1"
    assert long.endswith("|gt=sha-256-128:0123456789abcdef|v=1")


def test_titles_break_at_blanks_where_a_terminal_is_narrower() -> None:
    report = Report("jaccard-eval 0.2.0", (Section("Worst images (score >= 0.4734, IoU >= 0.50)", ()),))
    narrow, whole = (lay_out(report, ReportOptions(width=width)).splitlines() for width in (40, None))
    assert narrow[2:] == ["Worst images (score >= 0.4734, IoU >=", "0.50)"]
    assert whole[2:] == ["Worst images (score >= 0.4734, IoU >= 0.50)"]
    colored = lay_out(report, ReportOptions(width=40, color=True)).splitlines()
    # Each line begins and ends its own look.
    assert [line.count("\x1b[") for line in colored[2:]] == [2, 2]


@pytest.mark.parametrize("width", [1, 40, 80, 200, 100_000, None])
def test_numbers_stay_whole_at_any_width(width: int | None) -> None:
    text = "\n".join(lines_of(make_result(classes=class_values("x" * 100)), width=width))
    assert text.count("0.1235") == 12  # round(0.12345, 4), once per metric
    assert "…" not in text


def test_prose_does_not_fill_a_very_wide_terminal() -> None:
    report = Report("title", (Section("part", (Note("word " * 100), KeyValues((("term", "word " * 100),)))),))
    assert max(map(len, lay_out(report, ReportOptions(width=100_000)).splitlines())) <= MAX_WIDTH


def test_prose_breaks_at_blanks_below_200_characters_where_there_is_no_terminal() -> None:
    words = " ".join(f"word{i}" for i in range(100))
    report = Report("title", (Section("part", (Note(words), KeyValues((("term", words),)))),))
    lines = lay_out(report, ReportOptions()).splitlines()[3:]
    assert 190 < max(map(len, lines)) <= 200
    assert " ".join(" ".join(lines).split()) == f"{words} term {words}"
    # Below the first line of a fact, the others hang below its text.
    assert [line[:8] for line in lines if line.startswith("    ")] == ["        "] * 3


def test_a_screen_leaves_out_what_is_usual_in_a_signature() -> None:
    report = Report("t", (), "pixels|ignore=9|colors=none|v=1", usual=("pixels", "ignore=none", "colors=none"))
    screen, file = (lay_out(report, ReportOptions(is_file=is_file)) for is_file in (False, True))
    assert screen.splitlines()[-1] == "signature  pixels|ignore=9|v=1"
    assert file.splitlines()[-1] == "signature  pixels|ignore=9|colors=none|v=1"


PATH = "datasets/coco/annotations/instances_val2017.json"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (200, PATH),
        (85, "…/annotations/instances_val2017.json"),
        (80, "…/instances_val2017.json"),
        (70, "…nstances_val2017.json"),
        (None, PATH),
    ],
)
def test_a_path_loses_its_beginning_and_keeps_its_end(width: int | None, shown: str) -> None:
    assert sum(line.endswith(f"  {shown}") for line in lines_of(make_result(path=PATH), width=width)) == 1
    ascii_lines = lines_of(make_result(path=PATH), width=width, encoding="ascii")
    assert sum(line.endswith("_val2017.json") for line in ascii_lines) == 1
    assert any(".../" in line for line in ascii_lines) == ("…/" in shown)


def test_free_texts_give_way_before_names_and_paths() -> None:
    heads = (Column("image", "path"), Column("class", "name"), Column("fix"), Column("gain", "delta"))
    report = Report("t", (Section("s", (Table(heads, (("street_04.png", "traffic light", "add " * 8, 0.5),)),)),))
    lines = lay_out(report, ReportOptions(width=60)).splitlines()[3:]
    assert lines[2].split("  ")[1:3] == ["street_04.png", "traffic light"]
    assert lines[2].endswith("+0.5000")
    assert [line.strip() for line in lines[3:]] == ["add add add"]  # 60 - 2 - 13 - 13 - 7 - 3 * 2 = 19: five of eight
    assert max(map(len, lines)) <= 60


def test_a_table_that_is_too_wide_goes_on_below_itself_with_its_first_column() -> None:
    lines = lines_of(make_result(classes=class_values("dog") | class_values("cat")), width=40)
    lines = lines[lines.index("Classes") + 1 : lines.index("", lines.index("Classes"))]
    assert [line.split()[0] for line in lines[2:4]] == ["dog", "cat"]
    assert [line.split()[0] for line in lines[6:8]] == ["dog", "cat"]
    assert max(map(len, lines)) <= 40
    heads = [name for line in lines if line.startswith("  class ") for name in line.split()[1:]]
    assert heads == ["gt", "ignored", "pred", *COCO_SUMMARY]


def test_wide_characters_take_two_columns() -> None:
    lines = lines_of(make_result(classes={"交通信号灯": {"AP": 0.5}, "person": {"AP": 0.25}}), width=80)
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


def test_a_long_summary_stands_in_two_halves_on_a_terminal_alone() -> None:
    result = make_result(metrics={name: i / 100 for i, name in enumerate(COCO_SUMMARY)})
    halves = [line.split() for line in lines_of(result, width=80)]
    assert ["AP", "0.0000", "10", "AR1", "0.0600", "10"] in halves
    assert ["AP_large", "0.0500", "10", "AR_large", "0.1100", "10"] in halves
    for width in (40, None):
        assert ["AP", "0.0000", "10"] in [line.split() for line in lines_of(result, width=width)]


def test_an_odd_number_of_rows_leaves_a_place_free() -> None:
    result = make_result(metrics={name: i / 100 for i, name in enumerate(COCO_SUMMARY[:9])})
    lines = [line.split() for line in lines_of(result, width=80)]
    assert lines[[line[:1] for line in lines].index(["AP_medium"])] == ["AP_medium", "0.0400", "10"]  # the fifth of 9


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


def test_a_long_class_name_is_wrapped_and_not_cut() -> None:
    name = "".join(chr(ord("a") + i % 26) for i in range(100))
    column = [line.strip().split("  ")[0] for line in lines_of(make_result(classes={name: {"AP": 0.5}}), width=80)]
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


def test_nothing_is_broken_where_there_is_no_terminal() -> None:
    path, name = "long/" * 60, "x" * 300
    lines = lines_of(make_result(classes={name: {"AP": 0.5}}, path=path))
    assert sum(line.endswith(path) for line in lines) == 1
    assert sum(name in line for line in lines) == 1
