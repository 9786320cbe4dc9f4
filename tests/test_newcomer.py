"""A newcomer's path in a fresh repository: three rules, a model that gets worse, a red build; docs/newcomer.md runs."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from command_line import run_process
from test_readme import NOT_RUN, Block, read_blocks, read_commands, run_shell

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/newcomer.md"


def blocks() -> list[Block]:
    return read_blocks(PAGE.read_text(encoding="utf-8"), str(PAGE.relative_to(ROOT)))


def rules() -> str:
    return next(block.text for block in blocks() if block.language == "toml")


def make_repository(folder: Path) -> Path:
    """Make a git repository with the sample and the page's rules."""
    shutil.copytree(ROOT / "sample_data", folder / "sample_data", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text('[project]\nname = "traffic-model"\nversion = "1.0"\n\n' + rules())
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    return make_repository(tmp_path)


def test_every_command_of_the_page_prints_what_stands_below_it(repository: Path) -> None:
    for block in (one for one in blocks() if one.language == "console"):
        for command in read_commands(block.text):
            if not command.text.startswith(NOT_RUN):
                assert run_shell(command.text, repository).stdout == command.output, f"{block}: {command.text}"


def test_the_build_is_red_when_the_model_gets_worse_and_only_then(repository: Path) -> None:
    # worse.json finds fewer of the cars: their recall is 5 of 11 objects, and 7 of 10 are asked for.
    model, build = repository / "model.json", repository / "build"
    build.mkdir()
    argv = ["../sample_data/coco/gt.json", "../model.json", "-o", "result.json", "-o", "report.md"]
    shutil.copyfile(repository / "sample_data/coco/better.json", model)
    green = run_process(*argv, cwd=build)
    assert (green.returncode, green.stdout.splitlines()[-1]) == (0, "passed 4 gates")

    shutil.copyfile(repository / "sample_data/coco/worse.json", model)
    red = run_process(*argv, cwd=build)
    assert red.returncode == 1
    assert red.stdout.splitlines()[-1] == "FAILED  AP50 0.6915 < 0.80  (and 1 more)"
    failed = [re.split(r"\s{2,}", line.strip()) for line in red.stdout.splitlines() if line.startswith("  fail ")]
    assert failed == [
        ["fail", "overall: AP50", "0.6915", ">= 0.8", "-0.1085", "38"],
        ["fail", "people and cars: recall[iou=0.5,score=0.5,class=car]", "0.4545", ">= 0.7", "-0.2455", "11"],
    ]
    assert sorted(path.name for path in build.iterdir()) == ["report.md", "result.json"]
    assert run_process("gate", "result.json", cwd=build).returncode == 1


def test_a_misspelt_rule_is_neither_green_nor_red(repository: Path) -> None:
    path = repository / "pyproject.toml"
    path.write_text(path.read_text().replace('"person", "car"', '"persons", "car"'))
    done = run_process("sample_data/coco/gt.json", "sample_data/coco/better.json", cwd=repository)
    assert done.returncode == 2
    assert "Did you mean 'person'?" in done.stderr


if __name__ == "__main__":  # puts what the commands print now into the page
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        make_repository(Path(folder))
        for block in (one for one in blocks() if one.language == "console"):
            commands = [one.text for one in read_commands(block.text)]
            outputs = ["" if one.startswith(NOT_RUN) else run_shell(one, Path(folder)).stdout for one in commands]
            fresh = "".join(f"$ {one}\n{output}" for one, output in zip(commands, outputs, strict=True))
            text = text.replace(block.text, fresh)
    PAGE.write_text(text, encoding="utf-8")
