"""``jaccard-eval help``: a topic, a command, or what is explained about a finding."""

from __future__ import annotations

from typing import Any

import click

from jaccard_eval.cli import COMMAND_TABLE, streams
from jaccard_eval.cli.options import ListedCommand, completed_from
from jaccard_eval.cli.topics import TOPICS, finding_page, named
from jaccard_eval.codes import CODES
from jaccard_eval.errors import UsageError
from jaccard_eval.text import did_you_mean, quoted_value


def show_help(topic: str | None) -> None:
    """Run the command."""
    root = click.get_current_context().find_root()
    evaluate: Any = COMMAND_TABLE.get_command(root, "evaluate")
    if topic is None:
        text = root.get_help()
    elif topic in TOPICS:
        formatter = root.make_formatter()
        TOPICS[topic].write(formatter)
        text = formatter.getvalue().rstrip("\n")
    elif (command := COMMAND_TABLE.get_command(root, topic)) is not None:
        text = command.get_help(click.Context(command, info_name=topic, parent=root))
    elif topic in CODES:
        text = finding_page(topic, width=root.make_formatter().width)
    elif rows := named(topic, evaluate.params):
        formatter = root.make_formatter()
        formatter.write_dl(rows)
        text = formatter.getvalue().rstrip("\n")
    else:
        known = f" Topics: {', '.join(TOPICS)}, a command, a metric, protocol, format, kind or option, or a finding."
        raise UsageError(f"no help on {quoted_value(topic)}.{did_you_mean(topic, _known_words()) or known}")
    streams.write_result(f"{text}\n")


def _known_words() -> list[str]:
    return [*TOPICS, *COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE)), *sorted(CODES)]


COMMAND = ListedCommand(
    "help",
    group="Help",
    callback=show_help,
    help="Explain a topic, a command, a finding, or any other name.\n\n"
    "Names are those of metrics, protocols, formats, kinds of shapes and options. Without NAME, show the commands and"
    " topics.",
    short_help="Explain a topic, a command, a finding, or any other name.",
    options_metavar="[OPTIONS]",
    params=[click.Argument(["topic"], required=False, metavar="[NAME]", shell_complete=completed_from(_known_words))],
)
