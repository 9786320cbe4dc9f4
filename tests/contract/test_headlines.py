"""Every command that prints a report: it ends in its headline, whole, in every text medium, and in its colours.

Commands are found by listing: a new one fails here until it has a small run.
"""

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from command_line import run_here, write_pair
from PIL import Image

from jaccard_eval.cli import COMMAND_TABLE

RUNS = {
    "evaluate": "evaluate gt.json pred.json",
    "compare": "compare gt.json pred.json pred.json --bootstrap 20",
    "explain": "explain gt.json pred.json",
    "inspect": "inspect gt.json pred.json",
    "labels": "labels gt.json pred.json",
    "suite": "suite suite.toml --no-cache",
    "gate": "gate result.json --fail-under AP50=0.1",
    "panoptic": "panoptic segments/gt.json segments/better.json",
    "pixels": "pixels maps maps",
    "sensitivity": "sensitivity gt.json pred.json",
    "overlap": "overlap 6,1,18,9 1,3,13,11",
    "verify": "verify result.json --gt gt.json --pred pred.json",
    "report": "report result.json",
    "nms": "nms pred.json -o kept.json --force",
}
PLAN = 'gt = "gt.json"\npred = "{model}.json"\nmodels = ["pred"]\n'  # of a suite
SEGMENTS = Path(__file__).parents[2] / "sample_data" / "panoptic"
WITHOUT_REPORT = {"convert", "partition", "formats", "completion", "help"}
RED, GREEN, YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
MAX_LINE = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("headlines")
    write_pair(folder)
    (folder / "warned").mkdir()
    write_pair(folder / "warned", warned=True)
    assert run_here("evaluate", "gt.json", "pred.json", "-q", "-o", "result.json", cwd=folder).returncode == 0
    (folder / "suite.toml").write_text(PLAN)
    shutil.copytree(SEGMENTS, folder / "segments")
    (folder / "maps").mkdir()
    Image.fromarray(np.array([[0, 1], [1, 2]], np.uint8)).save(folder / "maps" / "a.png")
    return folder


def ran(folder: Path, line: str, *more: str) -> subprocess.CompletedProcess[str]:
    return run_here(*line.split(), *more, cwd=folder)


def test_every_command_has_a_run_here() -> None:
    names = set(COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE)))
    assert names == set(RUNS) | WITHOUT_REPORT


@pytest.mark.parametrize("name", RUNS)
def test_a_report_ends_in_its_headline_in_every_text_medium(name: str, folder: Path) -> None:
    quiet = ran(folder, RUNS[name], "-q")
    assert quiet.returncode == 0, quiet.stderr
    headline = quiet.stdout.removesuffix("\n")
    assert headline.strip()
    assert "\n" not in headline
    files = [] if name == "nms" else ["-o", f"{name}.txt", "-o", f"{name}.md"]  # nms writes what it keeps
    whole = ran(folder, RUNS[name], *files)
    assert whole.stdout.splitlines()[-1] == headline
    assert len(whole.stdout.splitlines()) > 1
    texts = [whole.stdout, *((folder / path).read_text() for path in files[1::2])]
    for text, escape in zip(texts, (str, str, unescaped), strict=False):
        assert escape(text.splitlines()[-1]) == headline
        assert max(map(len, text.splitlines())) <= MAX_LINE


def unescaped(line: str) -> str:
    """Return a line of Markdown without escapes, and with the entities that they leave."""
    return html.unescape(re.sub(r"\\([\\`*\[\]|~$#_])", r"\1", line.replace("<!-- -->", "")))


@pytest.mark.parametrize("name", RUNS)
def test_colours_are_there_when_asked_for_alone(name: str, folder: Path) -> None:
    plain = ran(folder, RUNS[name])
    coloured = ran(folder, RUNS[name], "--color", "always")
    assert "\x1b" not in plain.stdout + plain.stderr
    assert "\x1b[1m" in coloured.stdout  # titles
    assert re.sub(r"\x1b\[\d*m", "", coloured.stdout) == plain.stdout
    forced = {"FORCE_COLOR": "1"}
    assert "\x1b" in run_here(*RUNS[name].split(), env=forced, cwd=folder).stdout
    none = run_here(*RUNS[name].split(), env=forced | {"NO_COLOR": "1"}, cwd=folder)
    assert none.stdout == plain.stdout


@pytest.mark.parametrize("verb", ["evaluate gt.json pred.json", "gate result.json"])
def test_what_failed_is_red_and_what_passed_green(verb: str, folder: Path) -> None:
    # AP50 of the pair: the dog found of two has precision 1 up to recall 0.5, 51/101; the cat is not found: 0.2525.
    failed = ran(folder, f"{verb} --fail-under AP50=0.9 --color always")
    assert failed.returncode == 1
    assert failed.stdout.splitlines()[-1] == f"{RED}FAILED\x1b[0m  AP50 0.2525 < 0.90"
    assert f"{RED}fail" in failed.stdout
    passed = ran(folder, f"{verb} --fail-under AP50=0.25 --color always")
    assert passed.stdout.splitlines()[-1] == f"{GREEN}passed 1 gate\x1b[0m"
    assert f"{GREEN}pass" in passed.stdout


@pytest.mark.parametrize("name", ["evaluate", "compare", "explain", "inspect", "sensitivity"])
def test_warnings_are_yellow_in_reports_and_messages(name: str, folder: Path) -> None:
    done = ran(folder / "warned", RUNS[name], "--color", "always")
    assert f"{YELLOW}box-empty\x1b[0m" in done.stdout
    if name != "inspect":  # whose report is about what is odd, and nothing else says it
        assert f"{YELLOW}warning[box-empty]\x1b[0m: " in done.stderr


@pytest.mark.parametrize("line", ["evaluate gt.json missing.json", "evaluate gt.json warned/pred.json --strict"])
def test_errors_are_red(line: str, folder: Path) -> None:
    done = ran(folder, f"{line} --color always")
    assert done.returncode in (2, 3)
    assert re.search(rf"^{re.escape(RED)}error(\[[\w-]+\])?\x1b\[0m: ", done.stderr)
    assert "\x1b" not in ran(folder, line).stderr


@pytest.mark.parametrize("name", RUNS)
def test_rich_is_loaded_for_a_terminal_alone(name: str, folder: Path) -> None:
    from pseudo_terminal import Terminal  # skips where there are none

    code = (
        f"import sys; from jaccard_eval.cli import run; run.run({RUNS[name].split()!r}); print('rich' in sys.modules)"
    )
    with Terminal([sys.executable, "-c", code], cwd=folder) as terminal:
        terminal.finish()
        on_terminal = terminal.written.decode()
    piped = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert [text.splitlines()[-1] for text in (on_terminal, piped.stdout)] == ["True", "False"]
