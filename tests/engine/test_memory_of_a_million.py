"""A further million predictions takes the memory engine no more than it did when this was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale.py"
MOST = 275e6  # bytes; 231 MB were measured, and pages that the allocator keeps vary


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="peaks are those that the system counts")
def test_a_further_million_predictions_takes_no_more_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    peaks = []
    for n in (1_000_000, 2_000_000):
        folder = tmp_path / str(n)
        folder.mkdir()
        make = [sys.executable, BENCHMARK, "--make", folder, "--detections", str(n)]
        subprocess.run(make, check=True)
        options = ["--engine", "memory", "--no-errors", "--allow", "image-mismatch", "-q"]
        command = [sys.executable, "-m", "jaccard_eval", "gt.parquet", "pred", *options]
        # On one processor nothing is done meanwhile by a thread, which adds what it needs at a moment that varies.
        here = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
        try:
            if here:
                os.sched_setaffinity(0, {min(here)})
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finally:
            if here:
                os.sched_setaffinity(0, here)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    assert peaks[1] - peaks[0] <= MOST
