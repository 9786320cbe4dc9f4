import json
from pathlib import Path

import pytest
from command_line import write_pair

from jaccard_eval.cli import run


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    gt, pred = write_pair(tmp_path)
    return str(gt), str(pred)


def test_every_slice_has_a_row(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    # Image a has two dogs, one found: 51/101; image b a cat that is missed.
    assert run.run(["evaluate", *pair, "--slice", "dogs=a.*", "--slice", "all=*"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "slice images gt AP AP50" in lines
    assert "dogs 1 2 0.5050 0.5050" in lines
    assert "all 2 3 0.2525 0.2525" in lines


def test_the_document_has_the_slices_that_were_asked_for(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["evaluate", *pair, "--slice", "cats=b.jpg", "--json"]) == 0
    (cats,) = json.loads(capsys.readouterr().out)["slices"]
    assert (cats["slice"], cats["images"], cats["AP"], cats["support"]) == ("cats", 1, 0.0, {"AP": 1, "AP50": 1})
    assert run.run(["evaluate", *pair, "--json"]) == 0
    assert "slices" not in json.loads(capsys.readouterr().out)


def test_a_slice_without_images_is_refused(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["evaluate", *pair, "--slice", "fog=fog/**"]) == 2
    assert "slice 'fog': no image is matched by 'fog/**'" in capsys.readouterr().err
