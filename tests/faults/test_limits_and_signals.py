"""Interrupts at any moment, and limits on memory and open files: an explained end, or a whole result."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment, run_process, write_pair
from faulty_runs import (
    OLD,
    group_is_empty,
    is_whole,
    run_limited,
    start_group,
    temporary_files,
    write_label_maps,
    write_labels,
    write_many,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the limits of Linux"),
]
DELAYS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # seconds after signals are handled
SCRIPT = str(Path(sys.executable).with_name("jaccard-eval"))
N_IMAGES = 20_000
KB_PER_MB = 1024


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Inputs that take a fraction of a second."""
    return write_many(tmp_path_factory.mktemp("many"), N_IMAGES)


def _ended_within(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_at_any_moment_ends_everything_and_costs_no_file(
    many: tuple[Path, Path], tmp_path: Path, delay: float, number: signal.Signals, code: int, said: str
) -> None:
    out = tmp_path / "result.json"
    out.write_text(OLD)
    with start_group(*many, "-o", out) as process:
        if not _ended_within(process, delay):
            os.killpg(process.pid, number)
        _, message = process.communicate(timeout=60)
    assert process.returncode in (code, 0)
    # A run that is nearly done has printed its one warning.
    ending = f"{said}\n" if process.returncode else ""
    assert re.fullmatch(rf"(warning\[pred-copies-gt\]: .*\n)?{ending}", message), message
    assert is_whole(out)
    assert temporary_files(tmp_path) == []
    assert group_is_empty(process.pid)


@pytest.mark.parametrize("delay", DELAYS[::2])
def test_a_signal_ends_the_threads_that_count_label_maps(tmp_path: Path, delay: float) -> None:
    out = tmp_path / "result.json"
    out.write_text(OLD)
    with start_group("pixels", *write_label_maps(tmp_path, 60), "-o", out) as process:
        if not _ended_within(process, delay):
            os.killpg(process.pid, signal.SIGINT)
        _, message = process.communicate(timeout=60)
    assert process.returncode in (130, 0)
    assert message.endswith("interrupted\n" if process.returncode else "")
    assert is_whole(out)
    assert temporary_files(tmp_path) == []
    assert group_is_empty(process.pid)


@pytest.mark.parametrize("delay", [0.002 * step for step in range(15)])
@pytest.mark.parametrize("start", [[sys.executable, "-m", "jaccard_eval"], [SCRIPT]], ids=["module", "script"])
def test_an_interrupt_while_everything_is_still_loading_ends_with_130(
    many: tuple[Path, Path], start: list[str], delay: float
) -> None:
    with start_group(*many, start=start) as process:
        if not _ended_within(process, delay):
            os.killpg(process.pid, signal.SIGINT)
        _, message = process.communicate(timeout=60)
    assert (process.returncode, message) == (130, "interrupted\n")


LOADED = [
    "jaccard_eval.cli",
    "jaccard_eval.errors",
    "click",
    "jaccard_eval.cli.commands.evaluate",
    "msgspec",
    "numpy",
    "numpy.linalg",
]


@pytest.mark.parametrize("module", LOADED)
@pytest.mark.parametrize("start", [[sys.executable, "-m", "jaccard_eval"], [SCRIPT]], ids=["module", "script"])
@pytest.mark.parametrize("made_of_it", ["raise", "pass", "raise ImportError('cannot be loaded')"])
def test_an_interrupt_of_an_import_ends_with_130_whatever_the_import_makes_of_it(
    tmp_path: Path, module: str, start: list[str], made_of_it: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupted:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name != {module!r}: return\n"
        "        try: signal.raise_signal(signal.SIGINT)\n"
        f"        except BaseException: {made_of_it}\n"
        "sys.meta_path.insert(0, Interrupted)\n"
    )
    gt, pred = write_pair(tmp_path)
    argv = [*start, gt, pred, "-o", tmp_path / "out.json"]
    env = environment({"PYTHONPATH": str(tmp_path)})
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not (tmp_path / "out.json").exists()


def test_importing_the_process_leaves_the_signals_of_others_alone() -> None:
    program = (
        "import signal; before = signal.getsignal(signal.SIGINT); import jaccard_eval.__main__\n"
        "assert signal.getsignal(signal.SIGINT) is before"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """As that of a job in the background."""
    gt, pred = write_pair(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupted:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'click': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted)\n"
    )
    done = run_process(
        gt,
        pred,
        env={"PYTHONPATH": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0


def test_a_signal_inside_of_executed_text_keeps_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, signal, sys; from jaccard_eval.cli import run\n"
        "run.run = lambda argv: exec('os.kill(os.getpid(), signal.SIGTERM)')\n"
        "try: run.run_process([], print)\n"
        "except KeyboardInterrupt: sys.exit(143)"
    )
    # Only with -m does CPython look at the interrupts that it remembers.
    done = subprocess.run([sys.executable, "-m", "program"], cwd=tmp_path, check=False)
    assert done.returncode == 143


@pytest.mark.parametrize("megabytes", [300, 600])
def test_little_memory_is_enough_or_is_said(many: tuple[Path, Path], tmp_path: Path, megabytes: int) -> None:
    out = tmp_path / "result.json"
    out.write_text(OLD)
    done = run_limited(f"ulimit -v {megabytes * KB_PER_MB}", *many, "-q", "-o", out)
    if done.returncode != 0:
        assert (done.returncode, done.stderr) == (4, "error: out of memory\n")
        assert out.read_text() == OLD
    assert is_whole(out)
    assert temporary_files(tmp_path) == []


def test_few_open_files_are_enough_for_many_labels(tmp_path: Path) -> None:
    done = run_limited(
        "ulimit -n 24", *write_labels(tmp_path, 2_000), "--names", "dog", "-q", "-o", tmp_path / "r.json"
    )
    assert (done.returncode, done.stderr) == (0, "")
