"""What people and spreadsheets are told about an inspection."""

import csv
import io

import pytest
from pictures import det, gt, inspect

from jaccard_eval.features.inspect import Inspection
from jaccard_eval.report import ReportOptions, reporter_for, terminal
from jaccard_eval.report.model import Note, Section, Table, build_report


def pair() -> Inspection:
    truth = [gt("dog 0 0 10 10", "a"), gt("cat 50 50 100 100", "a"), gt("dog 0 0 10 10", "b", crowd=True)]
    return inspect(truth, [det("dog 0 0 10 10", 0.5, "a"), det("dog 0 0 10 10.5", 0.25, "b")], names=("bird",))


def section(found: Inspection, title: str, **options: bool) -> Section:
    return next(one for one in build_report(found, ReportOptions(**options)).sections if one.title == title)


def rows(found: Inspection, title: str, **options: bool) -> dict[object, tuple[object, ...]]:
    table = next(block for block in section(found, title, **options).blocks if isinstance(block, Table))
    return {row[0]: row[1:] for row in table.rows}


def test_counts_of_both_sides_stand_side_by_side() -> None:
    assert rows(pair(), "Images")["with boxes"] == ("2", "2")
    boxes = rows(pair(), "Boxes")
    assert boxes["boxes"] == ("3", "2")
    assert boxes["flagged crowd"] == ("1 (33.3 %)", "0")
    assert boxes["large (COCO)"] == ("1 (33.3 %)", "0")
    assert boxes["distinct scores"] == ("", "2")
    assert "flagged difficult" not in boxes  # nobody has it


def test_classes_of_both_sides_share_a_row() -> None:
    classes = rows(pair(), "Classes")
    assert classes["dog"] == ("2", "66.7 %", "2", "2", "100 %", "2")
    assert classes["cat"] == ("1", "33.3 %", "1", "0", "0 %", "0")


def test_classes_without_boxes_are_named() -> None:
    notes = [block.text for block in section(pair(), "Classes").blocks if isinstance(block, Note)]
    assert "ground truth: 1 without boxes: bird" in notes


def test_of_many_classes_the_largest_are_shown_unless_all_are_asked_for() -> None:
    many = inspect([gt(f"c{i:02} 0 0 10 10") for i in range(30)] + [gt("c29 20 0 10 10")], [])
    assert len(rows(many, "Classes")) == 20
    assert next(iter(rows(many, "Classes"))) == "c29"
    assert len(rows(many, "Classes", per_class=True)) == 30


def test_shares_are_0_or_100_only_when_they_are_exact() -> None:
    many = inspect([gt("dog 0 0 10 10")] * 4999 + [gt("cat 0 0 10 10")], [])
    assert [rows(many, "Classes")[name][1] for name in ("dog", "cat")] == ["99.9 %", "0.1 %"]


def test_the_sheet_has_one_row_per_class() -> None:
    text = reporter_for(".csv").render(pair(), ReportOptions())
    assert list(csv.reader(io.StringIO(text))) == [
        ["class", "gt_boxes", "gt_images", "pred_boxes", "pred_images"],
        ["bird", "0", "0", "0", "0"],
        ["cat", "1", "1", "0", "0"],
        ["dog", "2", "2", "2", "2"],
    ]


@pytest.mark.parametrize("suffix", [".txt", ".md", ".json", ".csv"])
def test_every_reporter_renders_an_inspection_the_same_every_time(suffix: str) -> None:
    reporter = reporter_for(suffix)
    assert reporter.render(pair(), ReportOptions()) == reporter.render(pair(), ReportOptions())


def test_an_ascii_stream_gets_ascii_and_80_columns_suffice() -> None:
    text = terminal.render(pair(), ReportOptions(encoding="ascii", width=80))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80


def test_without_a_pair_in_one_place_no_share_of_classes_is_made_up() -> None:
    apart = inspect([gt("dog 0 0 10 10")], [det("dog 500 500 10 10", 0.5)])
    _, facts, *_ = section(apart, "Agreement").blocks
    assert facts.text == "Class: no overlapping pairs"  # type: ignore[union-attr]
