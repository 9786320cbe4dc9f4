"""Checks that formats of text lines share: scores that some lines lack, and whole numbers."""

from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.lines import MAX_CLASS, TextBoxes


def classes(*texts: str) -> list[str]:
    """What is said of classes."""
    lines, findings = TextBoxes(("class",)), FindingLog()
    for number, text in enumerate(texts, start=1):
        lines.add(("a.txt", number), "a", "", [text])
    values = lines.read(findings, fix="")[:, 0]
    lines.require_whole("class", values, range(MAX_CLASS + 1), findings, expected="expected 0 to 9", fix="")
    return [f"{found.code} {found.count}" for found in findings.findings()]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["0", "3", str(MAX_CLASS)], []),
        (["0.5", "-1", str(MAX_CLASS + 1)], ["class-index 3"]),
        (["", "1"], ["class-index 1"]),  # missing
        (["x", "1"], ["number-invalid 1"]),  # said once
    ],
)
def test_whole_numbers_of_a_range_are_required_and_each_fault_is_said_once(
    texts: list[str], expected: list[str]
) -> None:
    assert classes(*texts) == expected


def test_a_score_that_is_no_number_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a.jpg 1,1,9,9,0,x 1,1,9,9,0,0.5\n")
    with pytest.raises(DataError) as caught:
        read_dataset(tmp_path / "list.txt", ReadOptions(role="pred"), "kerasyolo")
    assert [found.code for found in caught.value.findings] == ["number-invalid"]


def test_scores_are_those_of_all_lines_or_none(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a.jpg 1,1,9,9,0,0.25 1,1,9,9,0,0.5\n")
    scores = read_dataset(path, ReadOptions(role="pred"), "kerasyolo").boxes.score
    assert scores is not None
    assert np.array_equal(scores, [0.25, 0.5])
    path.write_text("a.jpg 1,1,9,9,0,0.25 1,1,9,9,0\n")
    with pytest.raises(DataError, match="a box has no score, though others have one"):
        read_dataset(path, ReadOptions(role="pred"), "kerasyolo")
