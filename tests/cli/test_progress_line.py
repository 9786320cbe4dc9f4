"""The line of progress: on terminals of any width, erased before anything else, and what stands elsewhere instead."""

import contextlib
import io
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import command, environment, repeat_images, run_process, write_pair
from pseudo_terminal import ERASE, Terminal, drawn_lines, screen

from jaccard_eval.cli import streams
from jaccard_eval.cli.progress import LONG, OpenStages
from jaccard_eval.cli.progress_line import ProgressLine
from jaccard_eval.progress import BYTES, Stage, listening
from jaccard_eval.text import columns_of

SECONDS = "2000"  # resamples that take a second, and longer on a slow machine
MINUTES = "1000000"  # resamples that nobody waits for
LONG_PATH = "long/" * 30 + "gt.json"


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Drawing:
    """A line of progress by a clock of its own, on a terminal of so many columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.columns = Clock(), 79
        self.stages = OpenStages(clock=self.clock)
        self.terminal = io.StringIO()
        monkeypatch.setattr(streams, "line_width", lambda: self.columns)
        streams.choose_color("auto")  # whatever a command before this chose
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", self.terminal)
            self.line = ProgressLine(self.stages.open, self.stages.now)

    def draw(self, stage: Stage, done: int = 0, seconds: float = 0.0) -> str:
        """Return what stands there after some seconds in which so much is done."""
        # A rate needs a beginning: the first of them is done in no time.
        for step, passed in ((0, 0.0), (min(done, 1), 0.0), (max(done - 1, 0), seconds)):
            self.clock.now += passed
            stage.done += step
            self.line.draw()
        return drawn_lines(self.terminal.getvalue().encode())[-1]


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Drawing:
    return Drawing(monkeypatch)


def drawn(
    drawing: Drawing, *names: str, total: int | None = None, unit: str = "", done: int = 0, seconds: float = 0.0
) -> str:
    """What stands there of stages in each other, of which the innermost is at work."""
    with listening(drawing.stages), contextlib.ExitStack() as opened:
        *_, innermost = [opened.enter_context(Stage(name)) for name in names[:-1]] + [
            opened.enter_context(Stage(names[-1], total, unit=unit))
        ]
        return drawing.draw(innermost, done, seconds)


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_stage_whose_end_is_known_has_share_rate_and_time_left(drawing: Drawing) -> None:
    # 430 in 2 s are 215 a second; the other 569 take 569 / 215 = 2.65 s.
    shown = drawn(drawing, "resampling", total=1000, done=431, seconds=2.0)
    assert words(shown) == "resampling ━━━━━ 431/1,000 43 % 215/s 0:00:03 left"  # 0.43 of 12 columns, whole ones


def test_a_stage_whose_end_is_not_known_has_neither_share_nor_time_left(drawing: Drawing) -> None:
    assert drawn(drawing, "listing files", done=12_301, seconds=2.0).split("  ") == [
        "listing files",
        "12,301",
        "6,150/s",
        "2 s",
    ]


def test_a_stage_that_counts_nothing_has_its_seconds(drawing: Drawing) -> None:
    assert drawn(drawing, "aligning", seconds=3.2).split() == ["aligning", "3", "s"]


def test_bytes_are_shown_in_a_unit_that_suits_them(drawing: Drawing) -> None:
    # 139 of 323 MB in 1.39 s are 100 MB/s; 184 MB more take 1.84 s.
    sizes = {"total": 323_000_000, "done": 139_000_000, "unit": BYTES}
    drawing.columns = 100
    shown = drawn(drawing, "reading a.json", "decoding", seconds=1.39, **sizes)
    assert words(shown) == "reading a.json: decoding ━━━━━ 139.0 MB/323.0 MB 43 % 100.0 MB/s 0:00:02 left"


def test_hours_are_shown_as_a_clock_does(drawing: Drawing) -> None:
    # 1 in 1 s: the other 3,600 take an hour.
    assert drawn(drawing, "files", total=3602, done=2, seconds=1.0).endswith(" 2/3,602  0 %  1.0/s  1:00:00 left")


def test_a_share_never_exceeds_the_whole(drawing: Drawing) -> None:
    assert " 12/10  100 %" in drawn(drawing, "files", total=10, done=12, seconds=1.0)


def test_an_empty_whole_has_no_share(drawing: Drawing) -> None:
    assert drawn(drawing, "files", total=0, seconds=1.0).split() == ["files", "1", "s"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (79, "…/2026/a/labels: files ━━━━━ 431/1,000 43 % 215/s 0:00:03 left"),
        (71, "reading runs/2026/a/labels: files ━━━━━ 43 % 0:00:03 left"),
        (59, "reading runs/2026/a/labels: files 43 % 0:00:03 left"),
        (39, "…/a/labels: files 43 % 0:00:03 left"),
    ],
)
def test_a_narrow_line_keeps_what_matters_most(drawing: Drawing, columns: int, expected: str) -> None:
    drawing.columns = columns
    name = "reading runs/2026/a/labels"
    assert words(drawn(drawing, name, "files", total=1000, done=431, seconds=2.0)) == expected


@pytest.mark.parametrize("name", ["matching", f"reading {LONG_PATH}", "reading 評価/日本語の予測結果.json"])
def test_no_line_is_wider_than_the_terminal(drawing: Drawing, name: str) -> None:
    for columns in range(30, 120):
        drawing.columns = columns
        assert columns_of(drawn(drawing, name, total=1000, done=431, seconds=2.0)) <= columns


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("reading a\x1b[2J\n.json", r"reading a\x1b[2J\n.json"),
        ("reading AP50[dog] a [/b].jpg :dog:.jpg", "reading AP50[dog] a [/b].jpg :dog:.jpg"),
    ],
)
def test_texts_of_users_stand_for_themselves(drawing: Drawing, name: str, shown: str) -> None:
    assert drawn(drawing, name, seconds=1.0) == f"{shown}  1 s"


def reported(seconds: float, *, shortest: float = LONG, failing: bool = False) -> list[str]:
    """What is said where a stage takes so many seconds by an injected clock."""
    clock, said = Clock(), list[str]()
    stages = OpenStages(report=said.append, shortest=shortest, clock=clock)
    with contextlib.suppress(KeyboardInterrupt), listening(stages), Stage("matching"), Stage("inner"):
        clock.now += seconds
        if failing:
            signal.raise_signal(signal.SIGINT)
    return said


def test_a_stage_of_ten_seconds_is_worth_a_line_of_its_own() -> None:
    assert reported(9.9) == []
    assert reported(10.0) == ["matching took 10.0 s"]
    assert reported(83.25) == ["matching took 83.2 s"]


def test_every_stage_has_a_line_where_that_is_asked_for() -> None:
    assert reported(0.04, shortest=0.0) == ["matching took 0.0 s"]


def test_a_stage_that_failed_took_no_time_worth_telling() -> None:
    assert reported(60.0, failing=True) == []


def test_timings_are_those_of_the_outermost_stages_and_sum_to_the_whole() -> None:
    clock = Clock()
    stages = OpenStages(clock=clock)
    clock.now += 0.5
    with listening(stages):
        for seconds in (1.0, 2.0):
            with Stage("matching"), Stage("inner"):
                clock.now += seconds
        with Stage("checking"):
            clock.now += 0.5
    assert stages.timings().splitlines() == [
        "stage     seconds  share",
        "matching     3.00   75 %",
        "checking     0.50   12 %",
        "other        0.50   12 %",
        "total        4.00  100 %",
    ]


def test_a_time_without_work_is_left_out(drawing: Drawing) -> None:
    with listening(drawing.stages), Stage("resampling", 100) as resampling:
        drawing.line.draw()
        drawing.clock.now += 60.0
        drawing.stages.leave_out(60.0)  # 50 in 1 s of work
        assert drawing.draw(resampling, 51, 1.0).endswith("51/100  51 %  50/s  0:00:01 left")
    assert drawing.stages.timings().splitlines()[-1].split() == ["total", "1.00", "100", "%"]


def test_stages_in_one_with_a_total_are_a_part_of_it(drawing: Drawing) -> None:
    with listening(drawing.stages), Stage("rounds", 20) as rounds, Stage("matching"), Stage("files", 100) as files:
        files.advance(99)
        assert drawing.draw(rounds, 7).endswith(" 7/20  35 %")


def test_stages_that_an_exception_left_open_are_closed_with_the_one_around_them() -> None:
    stages = OpenStages(clock=Clock())
    with listening(stages):
        with Stage("outer"):
            Stage("inner").__enter__()
            assert [stage.name for stage, _ in stages.open()] == ["outer", "inner"]
        assert stages.open() == []


def test_a_line_goes_where_nothing_is_done(drawing: Drawing) -> None:
    drawn(drawing, "matching", seconds=1.0)
    drawing.line.draw()
    assert screen(drawing.terminal.getvalue().encode()).strip() == ""


@pytest.fixture(scope="module")
def sample_data(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with every image twice: of twelve images nothing is resampled."""
    folder = tmp_path_factory.mktemp("sample") / "coco"
    shutil.copytree(sample_data / "coco", folder)
    repeat_images(folder / "gt.json", folder / "better.json", times=2)
    return folder.parent


def bootstrap(sample_data: Path, n_resamples: str, *more: str | Path) -> list[str]:
    """A command with a long stage: resampling, in as many threads as there are processors."""
    folder = sample_data / "coco"
    return command(folder / "gt.json", folder / "better.json", "--bootstrap", n_resamples, *more)


def shares(lines: Sequence[str], stage: str) -> list[int]:
    return [int(found[1]) for text in lines if text.startswith(stage) and (found := re.search(r"(\d+) %", text))]


@pytest.mark.parametrize("columns", [80, 40])
def test_a_line_comes_and_goes_and_leaves_the_screen_as_it_would_be_without(sample_data: Path, columns: int) -> None:
    with Terminal(bootstrap(sample_data, SECONDS), columns=columns) as terminal:
        assert terminal.finish() == 0
    lines = drawn_lines(terminal.written)
    grown = shares(lines, "resampling")
    assert len(grown) > 1
    assert grown == sorted(grown)
    assert any("left" in text for text in lines)
    assert max(map(len, lines)) < columns
    with Terminal(bootstrap(sample_data, SECONDS, "--progress", "never"), columns=columns) as plain:
        assert plain.finish() == 0
    assert ERASE not in plain.written
    assert screen(terminal.written) == screen(plain.written)
    assert "left" not in screen(terminal.written)


def test_the_line_is_no_colour(sample_data: Path) -> None:
    with Terminal(bootstrap(sample_data, SECONDS), env={"NO_COLOR": "1"}) as terminal:
        assert terminal.finish() == 0
    assert shares(drawn_lines(terminal.written), "resampling")
    assert b"\x1b[3" not in terminal.written


QUIET_CASES = {
    "never": (["--progress", "never"], {}),
    "quiet": (["-q"], {}),
    "dumb": ([], {"TERM": "dumb"}),
    "dumb, always": (["--progress", "always"], {"TERM": "dumb"}),
    "ci": ([], {"CI": "true"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", QUIET_CASES)
def test_nothing_is_drawn_where_nobody_wants_it(sample_data: Path, case: str) -> None:
    more, env = QUIET_CASES[case]
    with Terminal(bootstrap(sample_data, SECONDS, *more), env=env) as terminal:
        assert terminal.finish() == 0
    assert ERASE not in terminal.written
    # A busy machine may take the ten seconds that are worth a line.
    assert case in ("dumb", "ci") or (b"resampling took" in terminal.written) == (case == "dumb, always")


def test_whoever_asks_for_it_has_it_drawn_in_ci_and_with_quiet_too(sample_data: Path) -> None:
    argv = bootstrap(sample_data, SECONDS, "--progress", "always", "-q")
    with Terminal(argv, env={"CI": "true"}) as terminal:
        assert terminal.finish() == 0
    assert shares(drawn_lines(terminal.written), "resampling")


def test_a_pipe_gets_a_line_for_each_stage_where_that_is_asked_for(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_process(gt, pred, "--progress", "always", "-q")
    took = [text.rpartition(" took ")[0] for text in done.stderr.splitlines()]
    assert done.returncode == 0
    before = [f"reading {gt}", f"reading {pred}", "aligning", "fingerprinting"]
    assert took == [*before, "fingerprinting", "matching", "measuring", "checking"]
    assert run_process(gt, pred, "-q").stderr == ""


def test_verbose_ends_with_the_seconds_of_each_stage(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    began = time.monotonic()
    done = run_process(gt, pred, "-v", "-o", tmp_path / "r.md")
    took = time.monotonic() - began
    lines = done.stderr.splitlines()
    rows = [re.split(r" {2,}", text.strip()) for text in lines[lines.index(next(filter(is_header, lines))) + 1 :]]
    before = [f"reading {gt}", f"reading {pred}", "aligning", "fingerprinting"]
    expected = [*before, "matching", "measuring", "checking", "writing"]
    assert [row[0] for row in rows] == [*expected, "other", "total"]
    seconds = [float(row[1]) for row in rows]
    assert sum(seconds[:-1]) == pytest.approx(seconds[-1], abs=0.005 * len(rows))  # each is rounded
    assert 0 < seconds[-1] < took


def is_header(text: str) -> bool:
    return text.split() == ["stage", "seconds", "share"]


def is_resampling(written: bytes) -> bool:
    """Whether the line was drawn with the stage."""
    return b"resampling " in written and b"/s" in written


def test_an_interrupt_erases_the_line_and_says_one_word(sample_data: Path) -> None:
    with Terminal(bootstrap(sample_data, MINUTES)) as terminal:
        terminal.read_until(is_resampling)
        terminal.press(b"\x03")
        assert terminal.finish() == 130
    assert screen(terminal.written) == "interrupted\n"


def test_an_error_after_a_line_was_drawn_stands_alone(sample_data: Path, tmp_path: Path) -> None:
    # The folder of the output becomes a file while images are resampled: writing fails after the line has stood there.
    (tmp_path / "out").mkdir()
    with Terminal(bootstrap(sample_data, SECONDS, "-o", tmp_path / "out" / "r.json")) as terminal:
        terminal.read_until(is_resampling)
        (tmp_path / "out").rmdir()
        (tmp_path / "out").touch()  # where a folder would be made
        assert terminal.finish() == 4
    shown = screen(terminal.written)
    assert "resampling" not in shown
    assert re.search(r"^(?:\x1b\[31m)?error(?:\x1b\[0m)?: cannot write\s", shown, re.MULTILINE)


def test_a_suspended_command_leaves_no_line_and_goes_on_later(sample_data: Path) -> None:
    # A shell with job control: without one, nobody could continue what is suspended, and the key does nothing.
    run = " ".join(bootstrap(sample_data, SECONDS))
    script = f"set -m; {run}; echo suspended: $?; sleep 1; echo going on; fg >/dev/null; echo ended: $?"
    with Terminal(["bash", "-c", script]) as terminal:
        terminal.read_until(is_resampling)
        terminal.press(b"\x1a")
        terminal.read_until(lambda written: b"going on" in written)
        before, _, _ = terminal.written.partition(b"going on")
        assert "resampling" not in screen(before)
        assert f"suspended: {128 + signal.SIGTSTP}" in screen(before)
        at = len(before)
        assert terminal.finish() == 0
    assert shares(drawn_lines(terminal.written[at:]), "resampling")  # drawn again
    assert "resampling" not in screen(terminal.written).partition("going on")[2]
    assert "ended: 0" in screen(terminal.written)


def test_nothing_is_drawn_in_the_background(sample_data: Path) -> None:
    run = " ".join(bootstrap(sample_data, SECONDS, "-q"))
    script = f"set -m; {run} --progress always & wait; echo ended"
    with Terminal(["bash", "-c", script]) as terminal:
        assert terminal.finish() == 0
    assert drawn_lines(terminal.written) == []
    assert "ended" in screen(terminal.written)


def test_an_unknown_choice_suggests_the_one_that_was_meant(tmp_path: Path) -> None:
    done = run_process(*write_pair(tmp_path), "--progress", "allways")
    assert done.returncode == 2
    assert "Did you mean 'always'?" in done.stderr


def test_a_run_without_a_terminal_starts_no_thread(tmp_path: Path) -> None:
    program = (
        "import sys, threading; began = []; start = threading.Thread.start\n"
        "threading.Thread.start = lambda self: (began.append(self.name), start(self))\n"
        "from jaccard_eval.cli import run; code = run.run(sys.argv[1:]); print(began); sys.exit(code)"
    )
    argv = [command()[0], "-c", program, *map(str, write_pair(tmp_path)), "-q"]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_nothing_is_drawn_while_a_process_forks() -> None:
    program = (
        "import os, sys, threading; from jaccard_eval.cli import streams\n"
        "drawing, over = threading.Event(), threading.Event()\n"
        "def draw():\n"
        "    while not over.is_set():\n"
        "        with streams.line_drawn(lambda: None): drawing.set()\n"
        "thread = threading.Thread(target=draw); thread.start(); drawing.wait()\n"
        "for _ in range(50):\n"
        "    child = os.fork()\n"
        "    if not child: streams.say('child'); os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "over.set(); thread.join()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == "child\n" * 50


def test_a_cursor_is_never_hidden(drawing: Drawing) -> None:
    drawn(drawing, "matching", seconds=1.0)  # a process that is killed would leave it so
    assert "\x1b[?25l" not in drawing.terminal.getvalue()
