"""Runs that are cut short while files are written or read: by a full disk, by a signal, or killed."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_disk_engine import write_scene

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

# The command line in small parts. The system tells of every file that is opened: the first one of a given name, in a
# given mode, is where the disk is full or the process gets a signal.
PROGRAM = """
import errno, os, sys
name, mode, event = sys.argv[1:4]
sys.argv[1:] = sys.argv[4:]

def cut_short(what, given):
    if what == "open" and name in os.path.basename(str(given[0])) and given[1][:1] == mode:
        if event == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(given[0]))
        os.kill(os.getpid(), int(event))

sys.addaudithook(cut_short)
from jaccard_eval.engine import disk
disk.PART_ROWS, disk.LEAST_PART_ROWS = 20, 1
from jaccard_eval.__main__ import main
main()
"""
POINTS = {
    "reading": ("boxes-00001", "w"),
    "partitioning": ("boxes-00001", "r"),
    "matching": ("run-00001-", "w"),
    "measuring": ("run-00001", "r"),
    "ranking": ("chain-", "w"),  # scores of all classes, for the best F1
}


def run(folder: Path, point: str, event: str | int, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *POINTS[point], str(event), "gt.json", "pred.json"]
    command += ["--engine", "disk", "--scratch", "scratch", "-o", "result.json", *(options or ["--score", "best-f1"])]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_scene(tmp_path, 3, 120, 4)
    (tmp_path / "scratch").mkdir()
    return tmp_path


@pytest.mark.parametrize("point", ["reading", "matching", "ranking"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_is_an_error_of_the_machine_that_names_the_option(folder: Path, point: str, workers: str) -> None:
    ended = run(folder, point, "full", "--score", "best-f1", "--workers", workers)
    assert ended.returncode == 4, ended.stderr
    reason = "scratch: cannot hold scratch files: no space left on device. Pass --scratch DIR with more"
    assert reason in ended.stderr
    assert not list((folder / "scratch").iterdir())
    assert not (folder / "result.json").exists()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_leaves_nothing(folder: Path, point: str, workers: str) -> None:
    ended = run(folder, point, int(signal.SIGINT), "--score", "best-f1", "--workers", workers)
    assert ended.returncode == 130, ended.stderr
    assert not list((folder / "scratch").iterdir())
    assert not (folder / "result.json").exists()


def test_the_run_after_a_killed_one_names_what_is_left_and_how_to_remove_it(folder: Path) -> None:
    killed = run(folder, "matching", int(signal.SIGKILL))
    assert killed.returncode == -signal.SIGKILL
    (left,) = (folder / "scratch").iterdir()
    after = run(folder, "matching", 0)
    assert after.returncode == 0, after.stderr
    advice = re.search(r"a killed run left its scratch folder .* Remove with: (rm -r .*)", after.stderr)
    assert advice is not None, after.stderr
    subprocess.run(shlex.split(advice[1]), cwd=folder, check=True)
    assert not left.exists()
    assert "killed" not in run(folder, "matching", 0).stderr
    assert "AP" in json.loads((folder / "result.json").read_text())["metrics"]
