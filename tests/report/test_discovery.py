import pytest

from jaccard_eval.errors import UsageError
from jaccard_eval.report import all_reporters, describe_outputs, reporter_for


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md", ".txt", ".JSON"])
def test_a_reporter_is_found_by_suffix(suffix: str) -> None:
    assert suffix.lower() in reporter_for(suffix).suffixes


def test_an_unknown_suffix_names_the_known_ones() -> None:
    known = (
        r"got '.jsn', choose from .csv, .htm, .html, .json, .markdown, .md, .npz, .om, .pdf, .png, .prom, .svg, .txt,"
        r" .xlsx,"
    )
    names = (
        r" .xml, and the file names badge.json, calibration.csv, confusion.csv, confusion_normalised.csv,"
        r" confusion_normalized.csv, curves.csv, folder.png/, folder/,"
        r" gl-code-quality-report.json, images.csv, metrics.txt, thresholds.json, thresholds.yaml, thresholds.yml."
        r" Did you mean '.json'"
    )
    with pytest.raises(UsageError, match=known + names):
        reporter_for("result.jsn")


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("badge.json", "badge.json"),
        ("result.json", ".json"),
        ("metrics.txt", "metrics.txt"),
        ("METRICS.TXT", "metrics.txt"),
        ("old-metrics.txt", ".txt"),
        ("gl-code-quality-report.json", "gl-code-quality-report.json"),
        ("junit.xml", ".xml"),
        ("node.prom", ".prom"),
        ("confusion.csv", "confusion.csv"),
        ("thresholds.yml", "thresholds.yml"),
    ],
)
def test_a_claimed_file_name_comes_before_its_suffix(name: str, claimed: str) -> None:
    reporter = reporter_for(name)
    assert claimed in (reporter.suffixes if claimed.startswith(".") else reporter.names)


def test_no_suffix_and_no_name_is_claimed_twice() -> None:
    claims = [claim for reporter in all_reporters() for claim in (*reporter.suffixes, *reporter.names)]
    assert len(claims) == len(set(claims))


def test_a_missing_suffix_is_said() -> None:
    with pytest.raises(UsageError, match="got no suffix"):
        reporter_for("")


def test_the_help_lists_every_claim_of_a_reporter_once() -> None:
    by_suffix, by_name = describe_outputs()
    for listed, claims in (
        (by_suffix, [suffix for reporter in all_reporters() for suffix in reporter.suffixes]),
        (by_name, [name for reporter in all_reporters() for name in reporter.names]),
    ):
        assert sorted(name for names, _ in listed for name in names.split()) == sorted(claims)
        assert all(about for _, about in listed)
    assert (".xml", "JUnit test report: gates and findings") in by_suffix
