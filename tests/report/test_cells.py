"""Cells are values: the kind of their column says how text and Markdown show them."""

import math

import pytest

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import (
    Axis,
    Cell,
    Chart,
    Column,
    Gallery,
    GalleryBox,
    GalleryImage,
    Kind,
    Note,
    Report,
    Section,
    Series,
    Table,
    cell_text,
    columns,
)
from jaccard_eval.report.outputs.text import lay_out, render_report


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        ("text", "as it is", "as it is"),
        ("count", 12345, "12,345"),
        ("metric", 0.99996, "0.9999"),
        ("metric", 7, "7"),
        ("metric", "", ""),
        ("ratio", 1.0328, "1.033"),
        ("delta", -0.0125, "-0.0125"),
        ("interval", (-0.01, 0.02), "-0.0100 to +0.0200"),
        ("interval", (math.nan, math.nan), "n/a"),
        ("size", -0.0, "0.0"),
        ("size", math.nan, "n/a"),
        ("threshold", 0.375, "0.375"),
        ("threshold", math.nan, "n/a"),
    ],
)
def test_a_cell_reads_as_the_kind_of_its_column_says(kind: Kind, cell: Cell, text: str) -> None:
    assert cell_text(cell, kind) == text


def report_of(*blocks: Table | Note | Chart | Gallery) -> Report:
    return Report("title", (Section("part", blocks),))


def test_texts_stand_left_and_numbers_right() -> None:
    table = Table((Column("name"), Column("way", "word"), *columns("delta", "change")), (("a", "b", 0.25),))
    assert "| --- | --- | ---: |\n| a | b | +0.2500 |" in render_report(report_of(table))


def test_text_and_markdown_leave_charts_out() -> None:
    chart = Chart("line", "curve", (Series("precision", (1.0, 0.5), (0, 1)),), x=Axis("score"), y=Axis())
    assert render_report(report_of(chart, Note("after"))) == render_report(report_of(Note("after")))
    assert lay_out(report_of(chart, Note("after")), ReportOptions()) == "title\n\npart\n  after\n"


def test_text_and_markdown_count_the_boxes_of_a_gallery() -> None:
    states = ("found", "missed", "found")
    boxes = tuple(GalleryBox(state, "dog", (0, 0, 10, 10), is_object=state == "missed") for state in states)  # type: ignore[arg-type]
    gallery = Gallery((GalleryImage("a.jpg", (640, 480), boxes),))
    assert "- a.jpg: 2 found, 1 missed" in render_report(report_of(gallery))
    assert "  a.jpg  2 found, 1 missed\n" in lay_out(report_of(gallery), ReportOptions())
