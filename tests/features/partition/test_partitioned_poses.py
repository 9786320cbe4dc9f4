"""Poses in partitions give the document of the files, to the byte."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run_here

SCRIPT = Path(__file__).parents[4] / "shared/cases/reliability/partition_keypoints.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the folder `shared` next to the checkout")
def test_poses_without_labelled_points_have_the_same_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, str(SCRIPT)], check=True)
    assert run_here("kg.json", "kp.json", "-q", "-o", "files.json").returncode == 0
    assert run_here("partition", "kg.json", "kp.json", "-o", "parts", "-q").returncode == 0
    assert run_here("parts", "-q", "-o", "parts.json").returncode == 0
    text = Path("files.json").read_text()
    assert "num_keypoints is 0 in 1 of 2 records" in text
    assert Path("parts.json").read_text() == text
