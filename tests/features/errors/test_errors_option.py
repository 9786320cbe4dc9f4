import json
from pathlib import Path

import pytest
from command_line import write_pair

from jaccard_eval.cli import run


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    return list(map(str, write_pair(tmp_path)))


def test_errors_are_told_on_request(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["evaluate", *pair, "--errors", "--score", "0.5", "--json"]) == 0
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert errors["confusion"]["score"] == 0.5
    assert run.run(["evaluate", *pair, "--errors"]) == 0
    assert "ΔAP if fixed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["out.json", "out.md", "out.txt", "out.csv"])
def test_documents_have_errors_where_they_are_asked_for(name: str, pair: list[str], tmp_path: Path) -> None:
    out = tmp_path / name
    assert run.run(["evaluate", *pair, "-o", str(out)]) == 0
    plain = out.read_text()
    assert run.run(["evaluate", *pair, "-o", str(out), "--errors"]) == 0
    assert len(out.read_text()) > len(plain)
    assert "false positives" not in plain.lower()


@pytest.mark.parametrize("name", ["confusion.csv", "thresholds.yaml"])
def test_files_of_errors_alone_ask_for_them_and_the_standard_output_does_not(
    name: str, pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert run.run(["evaluate", *pair, "-o", str(out), "--errors"]) == 0
    asked = out.read_text()
    capsys.readouterr()
    assert run.run(["evaluate", *pair, "-o", str(out)]) == 0
    assert out.read_text() == asked
    assert "ΔAP if fixed" not in capsys.readouterr().out


def test_a_file_can_do_without_errors(pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert run.run(["evaluate", *pair, "-o", str(out), "--no-errors", "--json"]) == 0
    assert out.read_text() == capsys.readouterr().out
    assert "errors" not in json.loads(out.read_text())


def test_a_file_of_errors_alone_needs_them(pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["evaluate", *pair, "-o", str(tmp_path / "thresholds.json"), "--no-errors"]) == 2
    assert "without --no-errors" in capsys.readouterr().err


def test_other_kinds_of_results_have_their_usual_table(pair: list[str], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("usual.csv", "curves.csv", "confusion.csv", "calibration.csv")]
    gt, pred = pair
    assert run.run(["compare", gt, pred, pred, *(text for path in paths for text in ("-o", str(path)))]) == 0
    assert {path.read_text() for path in paths} == {paths[0].read_text()}
