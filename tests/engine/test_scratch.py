"""Files of the disk engine are removed however a run ends, and named by the next run where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaccard_eval.engine.scratch import PREFIX, left_behind, make_scratch, remove_all
from jaccard_eval.errors import MachineError

SAMPLE = Path(__file__).parents[2] / "sample_data" / "coco"
SIDES = [str(SAMPLE / "gt.json"), str(SAMPLE / "better.json")]


def command(scratch: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "jaccard_eval", *SIDES, "--engine", "disk", "--scratch", str(scratch), *options]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(command(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(number)
    process.communicate()
    # It may have been quicker than the signal.
    assert process.returncode in (0, 128 + number)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options", [("-o", "run.npz"), ("-o", "images.csv"), ("--bootstrap", "10"), ("--errors",), ("--worst-images", "3")]
)
def test_the_command_refuses_what_needs_all_matches_with_a_way_that_works(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    refused = subprocess.run(command(scratch, *options), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "Pass --engine memory without --scratch" in refused.stderr
    assert not list(scratch.iterdir())
    at = (given := command(scratch, *options)).index("--scratch")
    follow = [*given[:at], *given[at + 2 :], "--engine", "memory"]
    assert subprocess.run(follow, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_folders_of_killed_processes_are_named_and_those_of_running_ones_are_not(tmp_path: Path) -> None:
    mine = make_scratch(tmp_path)
    assert left_behind(tmp_path) == ""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{PREFIX}{ended.pid}-abc"
    left.mkdir()
    (left / "boxes").write_bytes(bytes(2**20))
    assert left_behind(tmp_path) == f"a killed run left its scratch folder (1 MiB). Remove with: rm -r {left}"
    remove_all()
    assert not mine.exists()
    assert left.exists()


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(MachineError, match="--scratch"):
        make_scratch(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"none: cannot hold scratch files.*Pass --scratch DIR"):
        make_scratch(tmp_path / "none")
