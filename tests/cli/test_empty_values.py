"""An option whose value is empty, as of a variable that is not set in CI, is a usage error in every command."""

import click
import pytest

from jaccard_eval.cli import COMMAND_TABLE
from jaccard_eval.cli.options import SectionOption
from jaccard_eval.cli.run import run

CONTEXT = click.Context(COMMAND_TABLE)
COMMANDS = [
    command for name in COMMAND_TABLE.list_commands(CONTEXT) if (command := COMMAND_TABLE.get_command(CONTEXT, name))
]
EMPTY = [
    (str(command.name), param.opts[-1])
    for command in filter(None, COMMANDS)
    for param in command.params
    if isinstance(param, SectionOption) and not param.is_flag
]


def test_every_command_that_reads_boxes_is_among_them() -> None:
    assert {"evaluate", "compare", "explain", "inspect", "convert", "pixels"} <= {name for name, _ in EMPTY}
    assert {("evaluate", "--names"), ("evaluate", "--gt-names"), ("evaluate", "--class-map")} <= set(EMPTY)


@pytest.mark.parametrize(("command", "option"), EMPTY)
def test_an_empty_value_is_refused_and_names_its_option(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "gt.json", "pred.json", option, ""]) == 2
    shown = capsys.readouterr().err
    assert option in shown
    assert "empty text" in shown
