"""Whatever the disk and the system do while outputs are written: a file is whole, or what it was before."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command, environment, run_process, write_pair
from faulty_runs import OLD, is_whole, run_limited, temporary_files

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="POSIX files and limits")]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, /sys and mount")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output with an old content, in a folder of its own."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/result.json").write_text(OLD)
    return tmp_path / "out/result.json"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one page, which holds no result."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user cannot mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_may_not_grow_costs_no_old_file(pair: tuple[Path, Path], out: Path) -> None:
    done = run_limited(f"cd '{out.parent}' && ulimit -f 1", *pair, "-o", out.name)
    assert done.returncode == 4
    assert done.stderr == f"error: cannot write '{out.name}': file too large\n"
    assert (out.read_text(), temporary_files(out.parent)) == (OLD, [])


@linux_only
def test_a_full_disk_costs_no_old_file(pair: tuple[Path, Path], small_disk: Path) -> None:
    path = small_disk / "result.json"
    path.write_text(OLD)
    done = run_process(*pair, "-o", path)
    assert done.returncode == 4
    assert done.stderr.endswith(": no space left on device\n")
    assert (path.read_text(), temporary_files(small_disk)) == (OLD, [])


@linux_only
def test_a_folder_that_takes_no_files_is_refused_before_reading(tmp_path: Path) -> None:
    done = run_process(tmp_path / "missing.json", tmp_path / "missing too.json", "-o", "/sys/kernel/result.json")
    assert done.returncode == 4
    assert done.stderr.startswith("error: cannot write '/sys/kernel/result.json': ")


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard link", "symbolic link"])
@pytest.mark.parametrize("side", [0, 1], ids=["ground truth", "predictions"])
def test_an_input_is_never_overwritten_through_a_link(pair: tuple[Path, Path], link: object, side: int) -> None:
    before, path = pair[side].read_bytes(), pair[side].with_name("linked.json")
    link(pair[side], path)  # type: ignore[operator]
    done = run_process(*pair, "-o", path)
    assert done.returncode == 2
    assert "which this run reads" in done.stderr
    assert pair[side].read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_of_several_outputs_all_old_files_stay_when_one_fails(pair: tuple[Path, Path], out: Path) -> None:
    done = run_process(*pair, "-o", out, "-o", out.with_name("new.md"), "-o", "/dev/full")
    assert done.returncode == 4
    assert done.stderr == "error: cannot write '/dev/full': no space left on device\n"
    assert [path.name for path in out.parent.iterdir()] == ["result.json"]
    assert out.read_text() == OLD


def test_a_run_that_is_killed_while_it_writes_costs_no_old_file(tmp_path: Path, out: Path) -> None:
    pair = write_pair(tmp_path, warned=True)
    reading, writing = os.pipe()
    fill_pipe(writing)
    argv = command(*pair, "-o", out, "-o", f"/dev/fd/{writing}")
    with subprocess.Popen(
        argv, env=environment(), pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("warning[box-empty]")  # what follows is writing
        process.kill()
    os.close(reading)
    os.close(writing)
    assert process.returncode == -signal.SIGKILL
    assert out.read_text() == OLD
    assert run_process(*pair, "-o", out).returncode == 0  # what is left behind stands in nobody's way
    assert json.loads(out.read_text())["schema"] == 1


def fill_pipe(writing: int) -> None:
    """Fill a pipe that nobody empties: whoever writes to it waits."""
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writing, True)


def test_runs_that_write_one_file_at_once_leave_it_whole_at_any_moment(pair: tuple[Path, Path], out: Path) -> None:
    settings = {"env": environment(), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    runs = [subprocess.Popen(command(*pair, "-o", out), **settings) for _ in range(4)]  # type: ignore[call-overload]
    while any(run.poll() is None for run in runs):
        assert is_whole(out)
    assert [run.returncode for run in runs] == [0] * 4
    assert is_whole(out)
    assert out.read_text() != OLD
    assert temporary_files(out.parent) == []


def test_two_runs_on_one_output_both_finish_and_leave_the_result_of_one(tmp_path: Path, out: Path) -> None:
    """The ground truth of one is that of both; the predictions of the other are worse by an empty box."""
    (tmp_path / "other").mkdir()
    pairs = [write_pair(tmp_path), write_pair(tmp_path / "other", warned=True)]
    alone = []
    for pair in pairs:
        assert run_process(*pair, "-o", out).returncode == 0
        alone.append(out.read_bytes())
    assert alone[0] != alone[1]
    settings = {"env": environment(), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for _ in range(3):
        out.unlink()
        runs = [subprocess.Popen(command(*pair, "-o", out), **settings) for pair in pairs]  # type: ignore[call-overload]
        assert [run.wait(60) for run in runs] == [0, 0]
        assert out.read_bytes() in alone
        assert temporary_files(out.parent) == []


def test_two_runs_on_one_folder_leave_the_folder_of_one(tmp_path: Path, sample_data: Path) -> None:
    """Who comes second may find the other's folder in the place of none, and leaves it alone."""
    sources = [sample_data / "coco" / name for name in ("better.json", "worse.json")]
    folder = tmp_path / "out" / "labels"
    folder.parent.mkdir()
    settings, gt = ("--to", "voc", "--lossy", "--force"), ("--gt", sample_data / "coco/gt.json")

    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    alone = []
    for source in sources:
        assert run_process("convert", source, folder, *settings, *gt).returncode == 0
        alone.append(contents())
    assert alone[0] != alone[1]
    for _ in range(3):
        argvs = [command("convert", source, folder, *settings, *gt) for source in sources]
        runs = [
            subprocess.Popen(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for argv in argvs
        ]
        said = [run.communicate(timeout=60)[1] for run in runs]
        assert {run.returncode for run in runs} in ({0}, {0, 4}), said
        assert contents() in alone
        assert temporary_files(folder.parent) == []


@linux_only
def test_a_disk_that_is_read_only_is_refused_before_reading(small_disk: Path) -> None:
    path = small_disk / "result.json"
    path.write_text(OLD)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for name in ("result.json", "new.json"):
        done = run_process("missing.json", "missing too.json", "-o", small_disk / name)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.startswith("error: cannot write '")
        assert "read-only" in done.stderr
    assert path.read_text() == OLD


def test_a_reader_that_takes_the_first_line_only_is_no_fault(pair: tuple[Path, Path], out: Path) -> None:
    script = 'set -o pipefail; "$@" | head -n 1'
    argv = ["bash", "-c", script, "bash", *command(*pair, "--json", "-o", out)]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")
    assert json.loads(out.read_text())["schema"] == 1


@pytest.mark.parametrize("suffix", [".json", ".svg"])
def test_homes_and_caches_that_cannot_be_written_are_not_needed(
    pair: tuple[Path, Path], out: Path, sample_data: Path, suffix: str
) -> None:
    names = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    path = out.with_suffix(suffix)
    argv = (
        [*pair] if suffix == ".json" else ["sensitivity", sample_data / "coco/gt.json", sample_data / "coco/worse.json"]
    )
    done = run_process(*argv, "-q", "-o", path, env=dict.fromkeys(names, "/dev/null/nowhere"))
    assert done.returncode == 0, done.stderr
    assert path.read_text() != OLD
