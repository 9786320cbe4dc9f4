import csv
import io
import math

import pytest
from result_builder import make_result

from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.tables import render_csv as render


def test_all_classes_come_first_and_undefined_is_empty() -> None:
    result = make_result(
        metrics={"AP": 0.5, "AP_small": math.nan}, classes={"cat": {"AP": 0.1 + 0.2}, "dog": {"AP": math.nan}}
    )
    assert render(result, ReportOptions()) == (
        "class,gt,ignored,pred,AP,AP_small\n"
        "all,30,2,80,0.5,\n"  # 10 + 20 boxes, 1 + 1 ignored, 40 + 40 predictions
        "cat,10,1,40,0.30000000000000004,\n"
        "dog,20,1,40,,\n"
    )


@pytest.mark.parametrize("name", ["a,b", 'say "x"', "two\nlines", "a\rb", " blanks ", "日本語", ""])
def test_any_name_comes_back_from_a_csv_reader(name: str) -> None:
    text = render(make_result(classes={name: {"AP": 0.5}}), ReportOptions())
    assert list(csv.reader(io.StringIO(text, newline="")))[2][0] == name


@pytest.mark.parametrize("name", ["=1+2", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_name_that_a_spreadsheet_would_run_is_neutralised(name: str) -> None:
    text = render(make_result(classes={name: {"AP": 0.5}}), ReportOptions())
    assert list(csv.reader(io.StringIO(text, newline="")))[2][0] == f"'{name}"


def test_rows_follow_the_order_asked_for() -> None:
    rows = render(make_result(), ReportOptions(sort="AP")).splitlines()
    assert [row.split(",")[0] for row in rows] == ["class", "all", "dog", "cat"]  # AP .75 before .25
