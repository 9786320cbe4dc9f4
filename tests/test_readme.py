"""Every block of README.md and of the explanations runs: commands print what stands below them, Python executes.

Run as a script, this file puts what the commands print now into these pages.
"""

import contextlib
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import run_together

ROOT = Path(__file__).parents[1]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = ("make ", "pip install ", "python -m pip install ")  # they build environments: what `make test` itself does


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it starts on, and its page."""

    language: str
    text: str
    line: int
    page: str = "README.md"

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command and the output that stands below it."""

    text: str
    output: str


def read_blocks(markdown: str, page: str = "README.md") -> list[Block]:
    return [
        Block(found[1], found[2], markdown.count("\n", 0, found.start()) + 2, page)
        for found in FENCED.finditer(markdown)
    ]


def read_commands(text: str) -> Iterator[Command]:
    """Split a console block at its prompts; a backslash at the end of a line continues the command."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        found = re.match(r"((?:.*\\\n)*.*)\n?", part)
        assert found is not None
        yield Command(found[1], part[found.end() :])


RUN = (
    "docs/command-line.md",
    "docs/errors.md",
    "docs/install.md",
    "docs/metrics.md",
    "docs/noise.md",
    "docs/notebook.md",
    "docs/overlap.md",
    "docs/report.md",
    "docs/reproducibility.md",
    "docs/scale.md",
    "docs/shapes.md",
    "docs/size.md",
    "docs/training-loop.md",
)
# From top to bottom in one folder: what a block writes, the next ones read.
STORIES = (
    "README.md",
    "docs/compare.md",
    "docs/differs.md",
    "docs/first-evaluation.md",
    "docs/lvis.md",
    "docs/openimages.md",
    "docs/panoptic.md",
    "docs/slices.md",
    "docs/threshold.md",
    "docs/zero.md",
)
# Not installed here: these blocks run in tests/frameworks, or among stand-ins in tests/recipes.
FRAMEWORKS = re.compile(
    r"^(?:from|import) (?:detectron2|fiftyone|lightning|mlflow|mmdet|mmengine|torch|transformers|ultralytics|wandb)\b",
    re.MULTILINE,
)
# What the core alone does not write: blocks that use it are skipped where it is missing; README.md has none.
EXTRAS = {
    "matplotlib": re.compile(r"\.(?:png|svg|pdf)\b|\.plot\("),
    "pyarrow": re.compile(r"jaccard-eval (?:partition|parts)\b|\.parquet\b|[\"'/]parts\b|s3://"),
}
# A command that needs no shell runs in this process, in a tenth of the time.
PLAIN = re.compile(r"jaccard-eval (?:[^|<>&;$`*~(){}\\]|\\\n)*")


PAGES = (*RUN, *STORIES)


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page that run; in pages from top to bottom other languages show files."""
    blocks = read_blocks((ROOT / page).read_text(encoding="utf-8"), page)
    runs = [block for block in blocks if page not in STORIES or block.language in {"console", "python"}]
    return [block for block in runs if not FRAMEWORKS.search(block.text)]


BLOCKS = [block for page in PAGES if page not in STORIES for block in blocks_of(page)]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the sample, which the blocks may write to."""
    copy_checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy_checkout(folder: Path) -> None:
    """Copy what pages read of a checkout: the sample, and the scripts of the examples."""
    for name in ("sample_data", "docs/examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_block_of_a_page_runs_as_it_stands(block: Block, scratch: Path) -> None:
    assert block.language in {"console", "python"}, f"{block}: not a language that this test runs"
    skip_without_extras([block])
    if block.language == "python":
        run_python(block)
    else:
        run_console(block, scratch)


@pytest.mark.slow
@pytest.mark.parametrize("page", STORIES)
def test_blocks_of_a_page_run_one_after_another(page: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_extras(blocks_of(page))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module in (path.stem for path in (ROOT / "docs/examples").glob("*.py")):
        monkeypatch.setitem(sys.modules, module, None)  # to be removed again, whoever imports it
        del sys.modules[module]
    for block in blocks_of(page):
        if block.language == "python":
            run_python(block)
        else:
            run_console(block, scratch)


def test_readme_has_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_a_console_block_is_split_into_commands_and_their_output() -> None:
    text = "$ one \\\n    --more\nfirst\nsecond\n$ two\n"
    assert list(read_commands(text)) == [Command("one \\\n    --more", "first\nsecond\n"), Command("two", "")]


def test_blocks_are_found_with_their_line() -> None:
    assert read_blocks("text\n\n```python\nx = 1\n```\n") == [Block("python", "x = 1\n", 4)]


def skip_without_extras(blocks: Iterable[Block]) -> None:
    for package, use in EXTRAS.items():
        if any(use.search(block.text) and block.page != "README.md" for block in blocks):
            pytest.importorskip(package)


def run_console(block: Block, folder: Path) -> None:
    for command in read_commands(block.text):
        if not command.text.startswith(NOT_RUN):
            done = run_shell(command.text, folder)
            assert done.stdout == command.output, f"{block}: {command.text}"
            assert command.output or done.returncode == 0, f"{block}: {command.text} failed"


def run_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would see it: both streams in one, this environment's programs first."""
    environment = shell_environment()
    if PLAIN.fullmatch(command):
        return run_together(*shlex.split(command.replace("\\\n", " "))[1:], env=environment, cwd=folder)
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )


def shell_environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {"PATH": path, "PYTHONUTF8": "1", "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)
    return environment


def run_python(block: Block) -> None:
    """Check a session against what it shows; execute anything else."""
    if ">>>" not in block.text:
        exec(compile(block.text, str(block), "exec"), {"__name__": "page"})
        return
    session = doctest.DocTestParser().get_doctest(block.text, {}, block.page, block.page, block.line)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert not report, "".join(report)


def rewrite_outputs(page: str, folder: Path) -> None:
    """Put what the commands print now into a page: for a change of the report, to be read before it is committed."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in blocks_of(page):
        if block.language != "console":
            if page in STORIES:
                with contextlib.chdir(folder):
                    run_python(block)
            continue
        commands = [one.text for one in read_commands(block.text)]
        fresh = "".join(
            f"$ {one}\n{'' if one.startswith(NOT_RUN) else run_shell(one, folder).stdout}" for one in commands
        )
        text = text.replace(block.text, fresh)
    (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for one_page in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as scratch_folder:
            copy_checkout(Path(scratch_folder))
            rewrite_outputs(one_page, Path(scratch_folder))
