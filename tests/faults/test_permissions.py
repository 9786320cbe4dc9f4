"""Files and folders that a user may not read: the exit code says whose they are, the message which they are."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import write_pair
from faulty_runs import run_unprivileged

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("setpriv"), reason="needs somebody whom permissions stop"
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can be removed again, whatever a test forbids in it."""
    yield tmp_path
    for path, folders, _ in os.walk(tmp_path):  # from the top: each is open when it is listed
        for name in folders:
            Path(path, name).chmod(0o700)


def test_gates_in_a_folder_above_that_may_not_be_searched_are_never_skipped(folder: Path) -> None:
    pair = write_pair(folder)
    (folder / "closed/work").mkdir(parents=True)
    inside = os.open(folder / "closed/work", os.O_RDONLY)
    (folder / "closed").chmod(0)
    done = run_unprivileged(*pair, preexec_fn=lambda: os.fchdir(inside))  # entered as somebody else, as su does
    os.close(inside)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{folder}/closed/work/jaccard-eval.toml: cannot be looked up: permission denied" in done.stderr
