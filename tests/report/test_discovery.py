import pytest

from jaccard_eval.errors import UsageError
from jaccard_eval.report import reporter_for


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md", ".txt", ".JSON"])
def test_a_reporter_is_found_by_suffix(suffix: str) -> None:
    assert suffix.lower() in reporter_for(suffix).SUFFIXES


def test_an_unknown_suffix_names_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"got '.jsn', known are .csv, .json, .markdown, .md, .png, .svg, .txt. Did you mean '.json'"
    ):
        reporter_for(".jsn")


def test_a_missing_suffix_is_said() -> None:
    with pytest.raises(UsageError, match="got no suffix"):
        reporter_for("")
