import pytest
from result_builder import make_result

from jaccard_eval.findings import Example, Finding, Severity, Where
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Report
from jaccard_eval.report.outputs.text import render_markdown as render
from jaccard_eval.report.outputs.text import render_report


def class_cell(name: str) -> str:
    text = render(make_result(classes={name: {"AP": 0.125}}), ReportOptions(per_class=True))
    (row,) = [line for line in text.splitlines() if line.endswith("| 0.1250 |")]
    return row.removeprefix("| ").removesuffix(" | 10 | 1 | 40 | 0.1250 |")


def test_tables_align_numbers_right() -> None:
    text = render(make_result(metrics={"AP": 0.5}), ReportOptions(verbose=True))
    assert (
        "| metric | value | IoU | area | max dets | gt |\n"
        "| --- | ---: | --- | --- | ---: | ---: |\n"
        "| AP | 0.5000 | 0.50:0.95 | all | 100 | 10 |\n"
    ) in text


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<script>", "&lt;script&gt;"),
        ("&lt;", "&amp;lt;"),
        ("two\nlines", r"two\\nlines"),
        ("**bold** _it_", r"\*\*bold\*\* \_it\_"),
        ("snake_case", "snake_case"),
        ("[a](b)", r"\[a\](b)"),
        ("@team", "@<!-- -->team"),
    ],
)
def test_names_stand_for_themselves(name: str, cell: str) -> None:
    assert class_cell(name) == cell


def test_warnings_are_part_of_the_report() -> None:
    finding = Finding(Severity.WARNING, "box-empty", 3, (Example(Where("gt.json"), "width 0"),), summary="3 boxes")
    text = render(make_result(findings=(finding,)), ReportOptions())
    assert "### Warnings\n\n- box-empty: gt.json: 3 boxes; first: gt.json: width 0\n" in text


def test_the_signature_and_the_headline_close_the_report() -> None:
    assert render(make_result(), ReportOptions()).endswith(
        "\n\nSignature: jaccard-eval:0.1.0\\|protocol:coco\\|iou:0.5:0.95\n\nAP 0.5000  AP50 0.7500  AP_small n/a\n"
    )


def test_a_long_signature_breaks_behind_its_parts() -> None:
    parts = [f"part{i}={'x' * 40}" for i in range(20)]
    lines = render_report(Report("title", (), "|".join(parts))).splitlines()[2:]
    assert max(map(len, lines)) <= 200
    assert "".join(lines) == "Signature: " + "\\|".join(parts)
