"""Reports on a terminal, by the cells of its screen and their colours: how rich writes those depends on its version."""

import math
import re
from dataclasses import replace

import pytest
from command_line import run_here
from result_builder import make_result
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from jaccard_eval.cli import streams
from jaccard_eval.data.metricref import COCO_SUMMARY
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Column,
    Drawing,
    Headline,
    KeyValues,
    Marked,
    Note,
    Report,
    Section,
    Span,
    Table,
    columns,
)
from jaccard_eval.report.terminal import WIDEST, lay_out, render

WIDTHS = (40, 60, 80, 200)
HOSTILE = (
    "AP50[dog]",
    "a [/b].jpg",
    ":dog:.jpg",
    "\x1b[2Jboo\x07",
    "\x1b]8;;http://x\x07y",
    "\u202eabc",
    "a\nb\tc\r",
    "猫" * 12,
)


def screen(text: str) -> list[str]:
    """The lines that stand there, without colours and the blanks behind them."""
    return [line.rstrip() for line in Text.from_ansi(text).plain.splitlines()]


def style_of(text: str, part: str) -> Style:
    """How a part looks that is there once."""
    shown = Text.from_ansi(text)
    assert shown.plain.count(part) == 1
    return shown.get_style_at_offset(Console(), shown.plain.index(part))


def lines_of(result: EvaluationResult, width: int = 80, **options: object) -> list[str]:
    return screen(render(result, ReportOptions(per_class=True, width=width, **options)))  # type: ignore[arg-type]


def report_of(*blocks: Table | Note | KeyValues | Drawing) -> Report:
    return Report("title", (Section("part", blocks),))


def table_of(*rows: tuple[object, ...], kinds: str = "text metric", **more: object) -> Report:
    heads = tuple(Column(f"head{i}", kind) for i, kind in enumerate(kinds.split()))  # type: ignore[arg-type]
    return report_of(Table(heads, rows, **more))  # type: ignore[arg-type]


def rows_of(report: Report, width: int = 80, **options: object) -> list[str]:
    """The lines of the only block, a table's without its head."""
    return screen(lay_out(report, ReportOptions(width=width, **options)))[5:]  # type: ignore[arg-type]


def class_values(name: str, n: int = 12) -> dict[str, dict[str, float]]:
    return {name: dict.fromkeys(COCO_SUMMARY[:n], 0.12345)}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    classes = {"traffic light": dict.fromkeys(COCO_SUMMARY, 0.5), "猫" * 40: {"AP": 0.25}}
    result = make_result(metrics=dict.fromkeys(COCO_SUMMARY, 0.5), classes=classes, path="folder/" * 40 + "gt.json")
    assert max(map(cell_len, lines_of(result, width))) <= width


@pytest.mark.parametrize("width", [1, *WIDTHS, 100_000])
def test_numbers_stay_whole_at_any_width(width: int) -> None:
    text = "\n".join(lines_of(make_result(classes=class_values("x" * 100)), width))
    assert text.count("0.1235") == 12  # round(0.12345, 4), once per metric
    assert "…" not in text


@pytest.mark.parametrize("width", range(40, 130, 3))
def test_texts_give_way_until_their_numbers_fit(width: int) -> None:
    kinds = "name count text metric path size name"
    cells = ("traffic light", 1234, "remove this box", 0.5, "folder/of/image.jpg", 1.25, "a-name-without-blanks")
    text = "\n".join(rows_of(table_of(cells, kinds=kinds), width))
    assert max(map(cell_len, text.splitlines())) <= width
    assert all(text.count(number) == 1 for number in ("1,234", "0.5000", "1.2"))
    assert "…" in text or "folder/of/image.jpg" in text


def test_a_number_without_room_goes_over_the_edge_and_is_not_cut() -> None:
    rows = rows_of(table_of(("x" * 20, 10**30), kinds="word count"), 40)
    assert rows[0] == f"  {'x' * 20}  {10**30:,}"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", HOSTILE)
def test_texts_of_users_stand_for_themselves(width: int, name: str) -> None:
    headline = Headline((Span(name, "good"),))
    blocks = (
        Table((Column("class", "name"), Column("AP", "metric")), ((name, 0.5),), bars="AP"),
        Table(columns("path", "image"), ((f"z/{name}",),)),
        KeyValues((("term", name),)),
        Note(name),
    )
    text = lay_out(replace(report_of(*blocks), title=name, headline=headline), ReportOptions(width=width, color=True))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", re.sub(r"\x1b\[[\d;]*m", "", text))
    shown = name.encode("unicode_escape").decode() if not name.startswith("猫") else name
    assert "\n".join(screen(text)).replace("\n", "").replace(" ", "").count(shown.replace(" ", "")) >= 6


@pytest.mark.parametrize("width", [40, 80])
def test_a_signature_is_whole_in_lines_that_end_behind_its_parts(width: int) -> None:
    long = "|".join(["coco", *(f"part{i}={'x' * 30}" for i in range(12)), "classes=" + ",".join("abcdefgh" * 9)])
    lines = lines_of(replace(make_result(), signature=long), width)
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("signature  ")) : -1]
    assert "".join(line[11:] for line in lines).replace(" ", "") == long


def test_prose_does_not_fill_a_very_wide_terminal() -> None:
    report = report_of(Note("word " * 100), KeyValues((("term", "word " * 100),)))
    assert max(map(len, rows_of(report, 100_000))) <= WIDEST


def test_the_lines_of_a_fact_hang_below_its_text() -> None:
    lines = screen(lay_out(report_of(KeyValues((("a term", "word " * 12), ("b", "c")))), ReportOptions(width=40)))
    assert lines[3:6] == [
        "  a term  word word word word word word",
        "          word word word word word word",
        "  b       c",
    ]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (200, "datasets/coco/annotations/instances_val2017.json"),
        (85, "…/annotations/instances_val2017.json"),
        (80, "…/instances_val2017.json"),
        (70, "…nstances_val2017.json"),
    ],
)
def test_a_path_loses_its_beginning_and_keeps_its_end(width: int, shown: str) -> None:
    result = make_result(path="datasets/coco/annotations/instances_val2017.json")
    assert sum(line.endswith(f"  {shown}") for line in lines_of(result, width)) == 1
    ascii_lines = lines_of(result, width, encoding="ascii")
    assert sum(line.endswith("_val2017.json") for line in ascii_lines) == 1
    assert any(".../" in line for line in ascii_lines) == ("…/" in shown)


def test_a_long_text_gives_way_before_a_short_name() -> None:
    report = table_of(("street_04.png", "traffic light", "add " * 8, 0.5), kinds="path name text metric")
    rows = rows_of(report, 60)
    assert rows[0].split("  ")[1:3] == ["street_04.png", "traffic light"]
    assert rows[0].endswith("0.5000")
    # 60 - 2 - 13 - 13 - 6 - 3 * 2 = 20: five of eight
    assert [row.split() for row in rows if row] == [*[rows[0].split()], ["add"] * 3]


def test_a_table_that_is_too_wide_goes_on_below_itself_with_its_first_column() -> None:
    lines = lines_of(make_result(classes=class_values("dog") | class_values("cat")), 40)
    lines = lines[lines.index("Classes") + 1 : lines.index("", lines.index("Classes"))]
    assert [line.split()[0] for line in lines[2:4]] == ["dog", "cat"]
    assert [line.split()[0] for line in lines[6:8]] == ["dog", "cat"]
    heads = [name for line in lines if line.startswith("  class ") for name in line.split()[1:]]
    assert heads == ["gt", "ignored", "pred", *COCO_SUMMARY]


def test_wide_characters_take_two_columns() -> None:
    wide, narrow = rows_of(table_of(("交通信号灯", 0.5), ("person", 0.25)))[:2]
    assert len(wide) + 5 == len(narrow)  # five characters of two columns each


def test_a_long_summary_stands_in_two_halves_where_there_is_room() -> None:
    result = make_result(metrics={name: i / 100 for i, name in enumerate(COCO_SUMMARY)})
    halves = [line.split() for line in lines_of(result)]
    assert ["AP", "0.0000", "10", "AR1", "0.0600", "10"] in halves
    assert ["AP_large", "0.0500", "10", "AR_large", "0.1100", "10"] in halves
    assert ["AP", "0.0000", "10"] in [line.split() for line in lines_of(result, 40)]


def test_an_odd_number_of_rows_leaves_a_place_free() -> None:
    result = make_result(metrics={name: i / 100 for i, name in enumerate(COCO_SUMMARY[:9])})
    lines = [line.split() for line in lines_of(result)]
    assert lines[[line[:1] for line in lines].index(["AP_medium"])] == ["AP_medium", "0.0400", "10"]  # the fifth of 9


@pytest.mark.parametrize(
    ("cell", "shown"), [(0.25, "▲ +0.2500"), (-0.25, "▼ -0.2500"), (0.0, "0.0000"), (math.nan, "n/a")]
)
def test_a_difference_has_an_arrow_that_shows_its_direction(cell: float, shown: str) -> None:
    report = table_of(("dog", cell), kinds="name delta")
    assert rows_of(report, verbose=True)[0].removeprefix("  dog    ").strip() == shown
    assert rows_of(report, verbose=True, encoding="ascii")[0].split()[-1] == shown.rsplit(maxsplit=1)[-1]
    # 2 + 29 + 2 + 7 columns are 40, and an arrow would need 2 more.
    assert rows_of(table_of(("x" * 29, 0.25), kinds="name delta"), 40)[0] == f"  {'x' * 29}  +0.2500"


@pytest.mark.parametrize(("value", "n"), [(0.0, 0), (0.25, 3), (0.5, 6), (1.0, 12)])
def test_a_bar_is_as_long_as_its_value(value: float, n: int) -> None:
    report = table_of(("dog", value), bars="head1")
    assert rows_of(report)[0].count("━") == n  # of 12 columns, without colours
    colored = Text.from_ansi(lay_out(report, ReportOptions(width=80, color=True)))
    looks = [colored.get_style_at_offset(Console(), i) for i, sign in enumerate(colored.plain) if sign in "━╺╸"]
    assert [look.color and look.color.number for look in looks] == [6] * n + [None] * (12 - n)  # cyan


def test_a_bar_needs_room_a_number_and_characters_for_it() -> None:
    report = table_of(("dog", 0.5), ("cat", math.nan), bars="head1")
    assert "━" not in rows_of(report)[1]
    assert not [row for row in rows_of(report, encoding="ascii") if "━" in row]
    # 2 + n + 2 + 6 columns of the table, 2 + 12 of the bar, which may have half as many
    counts = [rows_of(table_of((("x" * n), 1.0), bars="head1"), 40)[0].count("━") for n in (16, 17, 22, 23)]
    assert counts == [12, 11, 6, 0]


def test_classes_have_bars_of_their_first_metric() -> None:
    row = next(line for line in lines_of(make_result(classes={"dog": {"AP": 0.5}})) if line.startswith("  dog"))
    assert row.endswith("0.5000  ━━━━━━")


def test_colours_are_those_of_the_looks() -> None:
    cells = (Marked("fine", "good"), Marked("poor", "bad"), Marked("odd", "warn"), Marked("gone", "dim"))
    headline = Headline((Span("FAILED", "bad"), Span("  AP50 0.6915 < 0.80")))
    report = replace(table_of(("x", *cells), kinds="text word word word word"), headline=headline)
    text = lay_out(report, ReportOptions(width=80, color=True))
    looks = [style_of(text, str(marked.cell)) for marked in cells]
    assert [look.color and look.color.number for look in looks] == [2, 1, 3, None]  # green, red, yellow
    assert [bool(look.dim) for look in looks] == [False, False, False, True]
    last = style_of(text, "FAILED")
    assert (last.bold, last.color and last.color.number) == (True, 1)
    assert style_of(text, "AP50").bold
    assert style_of(text, "part").bold


def test_nothing_of_the_environment_changes_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    report = replace(table_of(("dog", 0.5), bars="head1"), headline=Headline((Span("good", "good"),)))
    both = [ReportOptions(width=60, color=color) for color in (False, True)]
    before = [lay_out(report, options) for options in both]
    assert ["\x1b" in text for text in before] == [False, True]
    for name, value in (("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "20"), ("LINES", "3")):
        monkeypatch.setenv(name, value)
        assert [lay_out(report, options) for options in both] == before


def test_quiet_leaves_the_headline_in_one_line() -> None:
    report = replace(report_of(Note("note")), headline=Headline((Span("word " * 50 + "end"),)))
    assert lay_out(report, ReportOptions(width=40, quiet=True)) == "word " * 50 + "end\n"


def test_a_long_class_name_is_folded_and_not_cut() -> None:
    name = "".join(chr(ord("a") + i % 26) for i in range(100))
    column = [line.strip().split("  ")[0] for line in lines_of(make_result(classes={name: {"AP": 0.5}}), 60)]
    assert name in "".join(column)


def test_a_drawing_is_neither_folded_nor_cut() -> None:
    drawing = Drawing(("▓" * 100,), ("#" * 100,))
    for encoding, sign in (("utf-8", "▓"), ("ascii", "#")):
        text = lay_out(report_of(drawing), ReportOptions(width=40, encoding=encoding))
        assert screen(text)[3] == "  " + sign * 100


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_the_text_fits_the_encoding_of_the_terminal(encoding: str) -> None:
    text = render(
        make_result(classes={"日本語": {"AP": math.nan}}), ReportOptions(per_class=True, encoding=encoding, width=80)
    )
    text.encode(encoding)
    assert ("日本語" if encoding == "utf-8" else r"\u65e5\u672c\u8a9e") in text
    assert ("─" in text) == (encoding == "utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_formats_are_listed_in_whole_words(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {word.rstrip(":") for word in run_here("formats").stdout.split()}
    monkeypatch.setattr(streams, "result_width", lambda: width)
    _, *lines = run_here("formats").stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert {word.rstrip(":") for word in " ".join(lines).split()} == whole | {"More"}
