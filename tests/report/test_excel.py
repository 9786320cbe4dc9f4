"""Workbooks, read back by pandas: the rows of the CSV files, and no name that acts."""

import io
import math
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import run_here
from result_builder import make_result

from jaccard_eval import UsageError, compare, evaluate, explain, inspect
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs import tables

pd = pytest.importorskip("pandas")
openpyxl = pytest.importorskip("openpyxl")
COCO = Path(__file__).parents[2] / "sample_data" / "coco"
GT, BETTER, WORSE = COCO / "gt.json", COCO / "better.json", COCO / "worse.json"


def test_each_sheet_has_the_rows_of_the_file_of_its_name(tmp_path: Path) -> None:
    names = ("evaluation", "errors", "confusion", "curves", "calibration", "images")
    done = run_here("evaluate", GT, WORSE, "-q", "-o", tmp_path / "report.xlsx", "-o", tmp_path / "evaluation.csv")
    assert done.returncode == 0, done.stderr
    run_here("evaluate", GT, WORSE, "-q", *(f"--output={tmp_path / name}.csv" for name in names[2:]))
    sheets = pd.read_excel(tmp_path / "report.xlsx", sheet_name=None)
    assert set(names) | {"findings", "about"} <= set(sheets)
    for name in (name for name in names if name != "errors"):
        expected = pd.read_csv(tmp_path / f"{name}.csv")
        pd.testing.assert_frame_equal(sheets[name][expected.columns], expected, rtol=1e-15)
    about = dict(sheets["about"].to_numpy().tolist())
    assert about["signature"] == evaluate(GT, WORSE).signature
    assert about["gt"] == str(GT)


def test_every_kind_of_result_makes_a_workbook(tmp_path: Path) -> None:
    sides = evaluate(GT, WORSE), evaluate(GT, BETTER)
    for result in (compare(*sides), explain(sides[0]), inspect(GT)):
        result.save(tmp_path / "report.xlsx")
        sheets = pd.read_excel(tmp_path / "report.xlsx", sheet_name=None)
        assert len(sheets[result.kind]) == len(result.to_frame())


def test_equal_results_make_equal_workbooks_whatever_the_time() -> None:
    book = tables.render_workbook(make_result(), ReportOptions())
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}
        assert archive.read("docProps/core.xml").count(b">1980-01-01T00:00:00Z<") == 2


@pytest.mark.parametrize("name", ["=1+2", "+1", "@SUM(A1)", "=HYPERLINK()", "a\x1b[31mb", "two\nlines", "\ud800"])
def test_a_name_is_a_text_and_never_a_formula(name: str) -> None:
    book = openpyxl.load_workbook(
        io.BytesIO(tables.render_workbook(make_result(classes={name: {"AP": 0.5}}), ReportOptions()))
    )
    cell = book["evaluation"]["A3"]
    assert cell.data_type == "s"
    assert cell.value == name or "\\" in cell.value  # what no file holds is escaped


def test_what_is_undefined_is_empty_and_numbers_have_sixteen_digits() -> None:
    result = make_result(metrics={"AP": 0.1 + 0.2, "AP_small": math.nan})
    sheet = openpyxl.load_workbook(io.BytesIO(tables.render_workbook(result, ReportOptions())))["evaluation"]
    cells = dict(zip((cell.value for cell in sheet[1]), (cell.value for cell in sheet[2]), strict=True))
    assert cells["AP"] == 0.3
    assert cells["AP_small"] is None


def test_more_rows_than_a_sheet_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 3)  # the header and two rows; there are those of all and of two classes
    with pytest.raises(UsageError, match=r"evaluation has 3 rows, more than a sheet holds\. Write \.csv"):
        tables.render_workbook(make_result(), ReportOptions())


def test_without_the_library_the_error_names_the_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['openpyxl'] = None; from jaccard_eval.cli.run import run; run(sys.argv[1:])"
    words = [sys.executable, "-c", program, str(GT), str(WORSE), "-o", str(tmp_path / "report.xlsx")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "openpyxl is not installed. Install it: pip install" in done.stderr
    assert "[excel]" in done.stderr
    assert not (tmp_path / "report.xlsx").exists()


def test_explain_writes_its_table_under_any_name_of_a_csv_file(tmp_path: Path) -> None:
    assert run_here("explain", GT, WORSE, "-q", "-o", tmp_path / "confusion.csv").returncode == 0
