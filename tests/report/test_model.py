import math
import re
from pathlib import Path

import pytest
from result_builder import make_result

import jaccard_eval
from jaccard_eval.data.protocol import COCO, VOC2012
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.errors import UsageError
from jaccard_eval.features.evaluate.report import sorted_classes
from jaccard_eval.findings import Example, Finding, FindingLog, Severity, Where
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Column, KeyValues, Note, Report, Section, Table, build_report
from jaccard_eval.report.sections import IGNORED, findings_section, ignored_text

DETAILS = ReportOptions(verbose=True)


def section(report: Report, title: str) -> Section:
    return next(one for one in report.sections if one.title == title)


def table(report: Report, title: str) -> Table:
    return next(block for block in section(report, title).blocks if isinstance(block, Table))


def notes(report: Report, title: str) -> list[str]:
    return [block.text for block in section(report, title).blocks if isinstance(block, Note)]


def facts(report: Report, title: str) -> dict[str, str]:
    return dict(pair for block in section(report, title).blocks if isinstance(block, KeyValues) for pair in block.pairs)


def point(name: str | None, iou: float) -> OperatingPoint:
    return OperatingPoint(
        class_name=name, iou=iou, score=0.5, tp=3, fp=1, fn=0, precision=0.75, recall=1.0, f1=2 * 0.75 / 1.75
    )


def test_the_summary_says_which_setting_each_number_means() -> None:
    result = make_result(metrics={"AP": 0.5, "AP75": 0.4, "AP_small": 0.3, "AR10": 0.2})
    report = build_report(result, DETAILS)
    assert [row[:1] + row[2:5] for row in table(report, "Summary").rows] == [
        ("AP", "0.50:0.95", "all", "100"),
        ("AP75", "0.75", "all", "100"),
        ("AP_small", "0.50:0.95", "small", "100"),
        ("AR10", "0.50:0.95", "all", "10"),
    ]


def test_a_protocol_without_cap_says_so() -> None:
    report = build_report(make_result(protocol=VOC2012, metrics={"AP": 0.5}), DETAILS)
    assert table(report, "Summary").rows[0][2:5] == ("0.50", "all", "no cap")


def test_what_is_undefined_has_its_reason() -> None:
    report = build_report(make_result(metrics={"AP": 0.5, "AP_small": math.nan, "AR_small": math.nan}), ReportOptions())
    assert "n/a: AP_small, AR_small: no small ground truth" in notes(report, "Summary")


def test_area_ranges_are_explained_and_open_above() -> None:
    (text,) = [note for note in notes(build_report(make_result(), DETAILS), "Summary") if "areas" in note]
    assert text.endswith("small 0 to 1024, medium 1024 to 9216, large from 9216")


def test_the_title_says_what_the_summary_is_taken_of() -> None:
    titles = [build_report(make_result(protocol=protocol), ReportOptions()).title for protocol in (COCO, VOC2012)]
    assert titles == [
        "jaccard-eval 0.1.0, protocol coco (IoU 0.50:0.95, max dets 100)",
        "jaccard-eval 0.1.0, protocol voc2012 (IoU 0.50, no cap)",
    ]


def test_details_are_shown_on_request_only() -> None:
    result = make_result(metrics={"AP": 0.5, "AP_small": math.nan})
    short, long = (build_report(result, options) for options in (ReportOptions(), DETAILS))
    assert table(short, "Summary").rows == (("AP", 0.5, 10),)
    assert [row[0] for row in table(long, "Summary").rows] == ["AP", "AP_small"]
    # Why one is undefined is no detail.
    assert "n/a: AP_small: no small ground truth" in notes(short, "Summary")
    assert "ground truth: boxes are xywh in pixels" in notes(long, "Inputs")
    assert "ground truth: boxes are xywh in pixels" not in notes(short, "Inputs")


def test_columns_in_which_nothing_is_defined_are_details() -> None:
    heads = (Column("class"), Column("AP", "metric"), Column("AP_small", "metric"), Column("none", "text"))
    part = Section("Classes", (Table(heads, (("cat", 0.5, math.nan, "n/a"), ("dog", math.nan, math.nan, "n/a"))),))
    (short,), (long,) = part.in_text(verbose=False), part.in_text()
    assert isinstance(short, Table)
    assert [column.title for column in short.columns] == ["class", "AP", "none"]
    assert [row[0] for row in short.rows] == ["cat", "dog"]
    assert long is part.blocks[0]


def test_leftover_images_are_counted_and_the_first_named() -> None:
    images = facts(build_report(make_result(), ReportOptions()), "Inputs")["images"]
    assert "2 only in the ground truth (a.jpg, b.jpg)" in images
    assert "7 only in the predictions (0.jpg, 1.jpg, 2.jpg, 3.jpg, 4.jpg, and 2 more)" in images


def test_what_was_set_aside_while_reading_is_shown() -> None:
    shown = notes(build_report(make_result(), ReportOptions()), "Inputs")
    assert "ground truth: ignored: 3 boxes on images that are not listed" in shown


def test_what_is_ignored_agrees_with_its_number() -> None:
    assert ignored_text({"segments-on-void-or-crowd": 1}) == "1 segment on void or crowd"
    assert ignored_text({"nms": 1200, "duplicates": 1}) == "1 duplicate row, 1,200 boxes removed by NMS"
    assert ignored_text({"a reason of somebody": 2}) == "2 a reason of somebody"


def test_every_reason_to_ignore_has_its_words() -> None:
    sources = [path.read_text("utf-8") for path in sorted(Path(jaccard_eval.__file__).parent.rglob("*.py"))]
    reasons = {found for text in sources for found in re.findall(r'ignored\["([\w-]+)"\] \+=', text)}
    reasons |= {found for text in sources for found in re.findall(r'\.ignored, "([\w-]+)":', text)}
    assert len(reasons) > 12
    assert reasons - {"pred"} <= IGNORED.keys()  # a side of a document


def test_classes_are_listed_on_request_only() -> None:
    titles = [one.title for one in build_report(make_result(), ReportOptions()).sections]
    assert "Classes" not in titles
    assert [row[0] for row in table(build_report(make_result(), ReportOptions(per_class=True)), "Classes").rows] == [
        "cat",
        "dog",
    ]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (None, "b a d c"),
        ("name", "a b c d"),
        ("AP", "d b a c"),  # c is undefined; a and b are equal and keep their order
        ("gt", "c d a b"),
    ],
)
def test_classes_sort_with_undefined_last_and_ties_in_order(sort: str | None, order: str) -> None:
    result = make_result(classes={"b": {"AP": 0.5}, "a": {"AP": 0.5}, "d": {"AP": 0.9}, "c": {"AP": math.nan}})
    assert [row.name for row in sorted_classes(result, sort)] == order.split()


def test_an_unknown_column_to_sort_by_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"cannot sort by 'AP05'; choose from name, gt, pred, AP, AP50.*Did you mean"):
        sorted_classes(make_result(), "AP05")


def test_operating_points_show_all_classes_pooled_unless_classes_are_asked_for() -> None:
    points = (point(None, 0.5), point("cat", 0.5), point(None, 0.75), point("cat", 0.75))
    short = table(build_report(make_result(points=points), ReportOptions()), "Operating points")
    assert [row[:3] for row in short.rows] == [("all", 0.5, 0.5), ("all", 0.5, 0.75)]
    long = table(build_report(make_result(points=points), ReportOptions(per_class=True)), "Operating points")
    assert [row[:3] for row in long.rows if row[0] == "cat"] == [("cat", 0.5, 0.5), ("cat", 0.5, 0.75)]


def test_of_many_thresholds_the_lowest_stands_for_all_and_says_so() -> None:
    points = tuple(point(None, iou) for iou in COCO.iou_thresholds)
    report = build_report(make_result(points=points), ReportOptions())
    assert [row[2] for row in table(report, "Operating points").rows] == [0.5]
    assert notes(report, "Operating points") == ["the JSON report has all 10 IoU thresholds"]


def test_evidence_follows_its_warning_as_a_table() -> None:
    rows = (("map", "agreement"), ("as given", ".012"))
    with_table = Finding(Severity.WARNING, "class-none", 1, (Example(Where("p.json"), "differ"),), table=rows)
    without = Finding(Severity.WARNING, "box-empty", 1, (Example(Where("gt.json"), "width 0"),))
    report = build_report(make_result(findings=(with_table, without)), ReportOptions())
    assert section(report, "Warnings").blocks == (
        KeyValues((("class-none", "p.json: differ"),), "warn"),
        Table((Column("map"), Column("agreement", "count")), (("as given", ".012"),)),
        KeyValues((("box-empty", "gt.json: width 0"),), "warn"),
    )


def test_warnings_are_part_of_the_report() -> None:
    examples = Example(Where("gt.json"), "width 0"), Example(Where("gt.json"), "height 0")
    report = build_report(make_result(findings=(Finding(Severity.WARNING, "box-empty", 5, examples),)), ReportOptions())
    lines = ("gt.json: width 0", "gt.json: height 0", "and 3 more")  # as many as on the standard error
    assert section(report, "Warnings").blocks == (KeyValues(tuple(("box-empty", line) for line in lines), "warn"),)
    assert "Warnings" not in [one.title for one in build_report(make_result(), ReportOptions()).sections]


@pytest.mark.parametrize(("code", "heading"), [("protocol-chosen", "Warnings"), ("iou-type", "Notes")])
def test_a_note_stands_in_one_section(code: str, heading: str) -> None:
    log = FindingLog()
    log.note(code, Where("gt.json"), "is so")
    sections = [one for severity in Severity for one in findings_section(log.findings(), severity)]
    assert [one.title for one in sections] == [heading]
