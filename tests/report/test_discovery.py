import pytest

from jaccard_eval.errors import UsageError
from jaccard_eval.report import reporter_for


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md", ".txt", ".JSON"])
def test_a_reporter_is_found_by_suffix(suffix: str) -> None:
    assert suffix.lower() in reporter_for(suffix).SUFFIXES


def test_an_unknown_suffix_names_the_known_ones() -> None:
    known = r"got '.jsn', known are .csv, .json, .markdown, .md, .npz, .om, .png, .prom, .svg, .txt, .xml, and"
    names = (
        r" the file names badge.json, calibration.csv, confusion.csv, curves.csv, gl-code-quality-report.json,"
        r" metrics.txt, thresholds.json, thresholds.yaml, thresholds.yml. Did you mean '.json'"
    )
    with pytest.raises(UsageError, match=known + names):
        reporter_for("result.jsn")


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("badge.json", "badge"),
        ("result.json", "json_"),
        ("metrics.txt", "openmetrics"),
        ("METRICS.TXT", "openmetrics"),
        ("old-metrics.txt", "terminal"),
        ("gl-code-quality-report.json", "codequality"),
        ("junit.xml", "junit"),
        ("node.prom", "openmetrics"),
        ("confusion.csv", "confusion"),
        ("thresholds.yml", "thresholds"),
    ],
)
def test_a_claimed_file_name_comes_before_its_suffix(name: str, module: str) -> None:
    assert vars(reporter_for(name))["__name__"] == f"jaccard_eval.report.outputs.{module}"


def test_a_missing_suffix_is_said() -> None:
    with pytest.raises(UsageError, match="got no suffix"):
        reporter_for("")
