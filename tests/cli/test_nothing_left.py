"""A run that ends with exit code 2 or 3 leaves nothing behind unasked: folder, cache and home are as before."""

import json
from pathlib import Path

import click
import pytest
from command_line import run_here

from jaccard_eval.cli import COMMAND_TABLE

OUTPUTS = ("-o", "out/made/result.json")


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("command", sorted(COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE))))
@pytest.mark.parametrize("bad", ["missing", "damaged", "option"])
def test_a_run_that_ends_with_an_error_leaves_no_file(command: str, bad: str, tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "gt.json").write_text('{"images": [{"id": 1, "file_name":')
    (inputs / "pred.json").write_text(json.dumps([{"image_id": "?", "bbox": [1, 2], "score": "high"}]))
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}
    sides = {
        "missing": ["no-gt.json", "no-pred.json"],
        "damaged": [str(inputs / "gt.json"), str(inputs / "pred.json")],
        "option": [str(inputs / "gt.json"), str(inputs / "pred.json"), "--no-such-option", "x"],
    }[bad]
    before = everything(inputs)
    ended = [
        run_here(command, *sides[:n], *more, *sides[2:], cwd=work, env=env) for n in (1, 2) for more in ((), OUTPUTS)
    ]
    assert any(run.returncode in (2, 3) for run in ended) or command in (
        "formats",
        "protocols",
        "findings",
        "completion",
    )
    for run in ended:
        if run.returncode in (2, 3):
            assert everything(work) == set(), run.args
            assert everything(home) == set(), run.args
    assert everything(inputs) == before


@pytest.mark.parametrize(
    "more",
    [
        ["--engine", "disk"],
        ["--baseline", "base.json", "--update-baseline"],
        ["-o", "page.html", "-o", "run.npz"],
        ["--summary", "out/summary.md"],
        ["--scratch", ".", "--engine", "disk"],
    ],
)
def test_options_that_write_leave_nothing_where_inputs_are_bad(more: list[str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "gt.json").write_text('{"images": [{"id": 1}], "annotations": [{}], "categories": []}')
    (tmp_path / "pred.json").write_text("[{}]")
    run = run_here("evaluate", str(tmp_path / "gt.json"), str(tmp_path / "pred.json"), *more, cwd=work)
    assert run.returncode in (2, 3)
    assert everything(work) == set()
