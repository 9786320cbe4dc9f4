"""Peak memory of the disk engine does not grow with the input: measured in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale.py"
MOST, GROWTH = 350, 50  # megabytes


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are counted in other units elsewhere")
def test_a_million_detections_more_take_no_more_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    command = [sys.executable, str(BENCHMARK), "--engines", "disk", "--detections", "1000000", "2000000"]
    printed = subprocess.run([*command, "--dir", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    peaks = [int(line.split("|")[5]) for line in printed.splitlines()[2:]]  # below the two lines of a table's head
    assert len(peaks) == 2
    assert max(peaks) < MOST
    assert abs(peaks[1] - peaks[0]) < GROWTH
