import json
from pathlib import Path

import pytest
from command_line import write_pair

from jaccard_eval.cli import _run


def test_errors_are_told_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = map(str, write_pair(tmp_path))
    assert _run.run(["evaluate", gt, pred, "--errors", "--score", "0.5", "--json"]) == 0
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert errors["confusion"]["score"] == 0.5
    assert _run.run(["evaluate", gt, pred, "--errors"]) == 0
    assert "AP given back" in capsys.readouterr().out
