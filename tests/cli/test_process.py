import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import command, environment, run_process, write_pair

SAMPLE = Path(__file__).parents[2] / "sample_data"

HEAVY = ("numpy", "pandas", "rich", "msgspec", "PIL", "yaml")
OTHER_WORK = (
    *("csv", "gzip", "logging", "xml.etree.ElementTree"),
    *(
        f"jaccard_eval.formats.{name}"
        for name in ("_doubt", "_yolo", "voc", "_coco.tolerant", "_coco.writer", "_openimages")
    ),
    *(
        f"jaccard_eval.reading.{name}"
        for name in ("tabular.columns", "lines", "names", "images", "yaml", "npz", "writing")
    ),
    *(f"jaccard_eval.features.{name}" for name in ("audit.failures", "gates", "gates.judging")),
    *("jaccard_eval.similarity.runs", "jaccard_eval.engine.scratch"),
    *("jaccard_eval.features.bootstrap.intervals", "jaccard_eval.gating", "jaccard_eval.report.checks"),
    *("html", "numpy.ma"),
)
posix_only = pytest.mark.skipif(os.name == "nt", reason="POSIX streams and signals")


def loaded_modules(*argv: str, env: dict[str, str] | None = None, among: tuple[str, ...] = HEAVY) -> set[str]:
    """Which of some modules, the heavy ones unless others are named, a process has that ran the command line."""
    program = (
        "import sys; from jaccard_eval.cli import run; code = run.run(sys.argv[1:])\n"
        f"print('\\n' + ' '.join(name for name in {among} if name in sys.modules)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv], env=environment(env), capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["evaluate", "--help"]])
def test_help_and_version_load_nothing_heavy(argv: list[str]) -> None:
    assert loaded_modules(*argv) == set()


BARE_HELP = "import click; click.Command('x').get_help(click.Context(click.Command('x')))"


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads: old versions of click and rich take more of the standard library."""
    shown = f"{program}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_help_lists_outputs_and_protocols_without_what_makes_them() -> None:
    parts = ("jaccard_eval.report.model", "jaccard_eval.report.outputs.tables", "jaccard_eval.data.protocol", "shutil")
    assert loaded_modules("evaluate", "--help", among=parts) - loaded_by(BARE_HELP) == set()


def test_a_run_on_coco_json_loads_no_pandas(tmp_path: Path) -> None:
    assert "pandas" not in loaded_modules(*map(str, write_pair(tmp_path)))


@pytest.mark.parametrize(("gt", "pred"), [("yolo/data.yaml", "yolo/better"), ("voc/gt", "voc/better")])
def test_a_run_on_label_files_loads_no_pandas(gt: str, pred: str, sample_data: Path) -> None:
    assert "pandas" not in loaded_modules(str(sample_data / gt), str(sample_data / pred))


def test_a_run_on_coco_json_loads_nothing_of_other_formats_gates_and_failures(tmp_path: Path) -> None:
    pairs = write_pair(tmp_path), (SAMPLE / "coco/gt.json", SAMPLE / "coco/better.json")
    loaded = set[str]().union(*(loaded_modules(*map(str, pair), among=OTHER_WORK) for pair in pairs))
    assert loaded - loaded_by("import numpy, rich.console") == set()


def test_the_modules_that_a_plain_run_must_not_load_exist() -> None:
    own = [name for name in OTHER_WORK if name.startswith("jaccard_eval.")]
    assert [name for name in own if importlib.util.find_spec(name) is None] == []


def test_importing_the_package_loads_no_numpy() -> None:
    program = "import sys, jaccard_eval; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@posix_only
def test_a_closed_pipe_is_no_error_and_costs_no_file(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run_process(*write_pair(tmp_path), "-o", tmp_path / "out.json", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == 1


@posix_only
@pytest.mark.parametrize("argv", [["--help"], ["formats"]])
def test_help_into_a_closed_pipe_is_no_error(argv: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run_process(*argv, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@posix_only
def test_streams_that_do_not_exist_are_no_error(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    script = f"{' '.join(command(gt, pred, '-o', tmp_path / 'out.json'))} <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", script], env=environment(), check=False).returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("argv", [["--help"], ["{gt}", "{pred}"], ["formats"]])
def test_a_standard_output_that_is_full_ends_with_4(tmp_path: Path, argv: list[str]) -> None:
    gt, pred = write_pair(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = run_process(*(arg.format(gt=gt, pred=pred) for arg in argv), stdout=full)
    assert done.returncode == 4
    assert done.stderr.startswith("error: cannot ")
    assert done.stderr.endswith(": no space left on device\n")


@pytest.fixture
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that nobody empties: whoever writes to it waits."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writing, True)
    yield writing
    os.close(reading)
    os.close(writing)


@posix_only
@pytest.mark.parametrize(
    ("number", "code", "message"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_while_writing_leaves_old_files_and_no_temporary_ones(
    tmp_path: Path, full_pipe: int, number: signal.Signals, code: int, message: str
) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    (tmp_path / "out.json").write_text("old")
    argv = command(gt, pred, "-o", tmp_path / "out.json", "-o", f"/dev/fd/{full_pipe}")
    process = subprocess.Popen(
        argv, env=environment(), pass_fds=[full_pipe], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("warning[box-empty]")  # what follows is writing
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.splitlines()[-1]) == (code, message)
    assert {path.name for path in tmp_path.iterdir()} == {"gt.json", "pred.json", "out.json"}
    assert (tmp_path / "out.json").read_text() == "old"


@posix_only
def test_a_folder_that_vanished_under_the_process_is_no_problem(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    (tmp_path / "gone").mkdir()
    script = f"cd {tmp_path / 'gone'} && rmdir {tmp_path / 'gone'} && {' '.join(command(gt, pred, '--json'))}"
    done = subprocess.run(["bash", "-c", script], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_names_of_any_script_pass_any_stream(tmp_path: Path, encoding: str) -> None:
    gt, pred = write_pair(tmp_path)
    gt.write_text(gt.read_text().replace("dog", "日本語"), encoding="utf-8")
    done = run_process(gt, pred, "--per-class", env={"PYTHONIOENCODING": encoding}, encoding=encoding)
    assert done.returncode == 0
    assert ("日本語" if encoding == "utf-8" else r"\u65e5\u672c\u8a9e") in done.stdout


@pytest.mark.parametrize(
    ("encoding", "found", "head"),
    [
        ("utf-8", "(IoU ≥ 0.5, any class)", "type             count  ΔAP if fixed"),
        ("latin-1", "(IoU >= 0.5, any class)", "type             count  delta AP if fixed"),
        ("ascii", "(IoU >= 0.5, any class)", "type             count  delta AP if fixed"),
    ],
)
def test_signs_are_words_where_a_stream_lacks_them(encoding: str, found: str, head: str) -> None:
    sides = SAMPLE / "coco/gt.json", SAMPLE / "coco/worse.json"
    inspected, evaluated = (
        run_process(*argv, env={"PYTHONIOENCODING": encoding}, encoding=encoding)
        for argv in (("inspect", *sides), ("evaluate", *sides, "--errors"))
    )
    assert found in inspected.stdout
    at = evaluated.stdout.splitlines().index(f"  {head}")
    # Widths are those of what is printed: numbers end below the end of their head.
    assert {len(line) for line in evaluated.stdout.splitlines()[at : at + 3]} == {len(head) + 2}
    refused = run_process(*sides, "--names", "n" * 100, env={"PYTHONIOENCODING": encoding}, encoding=encoding)
    assert ("nnn…" if encoding == "utf-8" else "nnn...") in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["1", "100000", "no number"])
def test_columns_of_the_environment_cannot_hide_a_number(tmp_path: Path, columns: str) -> None:
    # Both classes count once: AP(dog) = 51/101, for recall ends at 1/2, and AP(cat) = 0; their mean is 0.25248.
    done = run_process(*write_pair(tmp_path), env={"COLUMNS": columns})
    assert next(line.split()[:2] for line in done.stdout.splitlines() if "  AP " in line) == ["AP", "0.2525"]
