"""Files and folders that a user may not read: the exit code says whose they are, the message which they are."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import write_pair
from faulty_runs import run_unprivileged

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("setpriv"), reason="needs somebody whom permissions stop"
    ),
]


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
    assert f"{folder}/closed/work/jaccard-eval.toml: cannot be read: permission denied" in done.stderr


@pytest.mark.parametrize("closed", ["pred.json", "closed", "closed/labels", "closed/labels/1.txt"])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_what_is_measured_and_may_not_be_read_ends_with_3(folder: Path, closed: str, mode: int) -> None:
    gt, pred = write_pair(folder)
    labels = folder / "closed/labels"
    labels.mkdir(parents=True)
    (labels / "1.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    is_file = (folder / closed).is_file()
    (folder / closed).chmod(0 if is_file else mode)
    argv = [gt, pred] if closed == "pred.json" else [labels, labels, "--names", "a", "--assume-score", "1"]
    done = run_unprivileged(*argv)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{folder}/{'pred.json' if closed == 'pred.json' else 'closed/labels'}" in done.stderr
    assert "permission denied" in done.stderr


def test_a_folder_that_may_be_searched_but_not_listed_ends_with_3(folder: Path) -> None:
    (folder / "images").mkdir(0o111)
    done = run_unprivileged(*write_pair(folder), "--images", folder / "images")
    assert done.returncode == 3
    assert f"{folder}/images" in done.stderr


@pytest.mark.parametrize(
    "option", [["--config"], ["--names"], ["--class-map"], ["--slices"], ["--fail-drop", "AP=0", "--baseline"]]
)
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "its folder"])
def test_a_setting_that_may_not_be_read_ends_with_2(folder: Path, option: list[str], is_folder: bool) -> None:
    pair = write_pair(folder)
    (folder / "closed").mkdir()
    path = folder / "closed/names.json"
    path.write_text("{}")
    (path.parent if is_folder else path).chmod(0)
    done = run_unprivileged(*pair, *option, path, "--allow-missing-baseline" if "--baseline" in option else "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}: cannot be read: permission denied" in done.stderr


@pytest.mark.parametrize("name", ["closed/out.json", "closed"])
def test_an_output_that_may_not_be_written_ends_with_4(folder: Path, name: str) -> None:
    pair = write_pair(folder)
    (folder / "closed").mkdir(0)
    done = run_unprivileged(*pair, "-o", folder / name)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"cannot write '{folder / name}'" in done.stderr


def test_an_output_beside_an_input_that_may_not_be_looked_up_does_not_hide_it(folder: Path) -> None:
    gt, pred = write_pair(folder)
    (folder / "closed").mkdir()
    gt = gt.rename(folder / "closed/gt.json")
    (folder / "out.json").write_text("{}")
    (folder / "closed").chmod(0)
    done = run_unprivileged(gt, pred, "-o", folder / "out.json")
    assert done.returncode == 3
    assert f"{gt}: cannot be read: permission denied" in done.stderr
