"""The command line: one module per command, listed from the folder and imported when asked for.

A command module has ``COMMAND``, a click command; its name is the module's, without a trailing underscore. Modules that
start with an underscore are shared parts. Command modules import numpy and the like inside their functions only.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import commands
from jaccard_eval.text import did_you_mean, quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROGRAM = "jaccard-eval"
WORDING = "jaccard_eval.wording"  # in the meta of a context: how fixes are reported, where a configuration is used
GIVEN = "jaccard_eval.given"  # in the meta of a context: the arguments of the process
COMPLETE_VARIABLE = "_JACCARD_EVAL_COMPLETE"  # with it in the environment, a run completes a word for a shell
DEFAULT_COMMAND = "evaluate"
VERSION_WORD = "version"  # what other tools call the option
NO_BREAK = "\u2011"  # a hyphen that ends no line
GROUPS = ("Evaluate", "Understand", "Data", "CI", "Help")  # of the commands, in the order of the help
EPILOG = """\b
Examples:
  jaccard-eval gt.json detections.json
  jaccard-eval inspect gt.json detections.json
  jaccard-eval evaluate labels/ predictions/ --names classes.txt --per-class
  jaccard-eval gt.csv detections.json --protocol voc2012 -o report.md
  jaccard-eval help box-encoding"""


class HelpFormatter(click.HelpFormatter):
    """Breaks lines at blanks only, where click would cut options and names of files at their hyphens."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        self._unbroken(partial(super().write_text, text.replace("-", NO_BREAK)))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms, each with its text."""
        whole = [(term, text.replace("-", NO_BREAK)) for term, text in rows]
        self._unbroken(partial(super().write_dl, whole, col_max, col_spacing))

    def _unbroken(self, write: Callable[[], None]) -> None:
        start = len(self.buffer)
        write()
        self.buffer[start:] = [part.replace(NO_BREAK, "-") for part in self.buffer[start:]]


class HelpContext(click.Context):
    """The context of a command, with our help."""

    formatter_class = HelpFormatter


class CommandTable(click.Group):
    """The commands by the names of their modules; a first word that is not a command starts an evaluation."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, without importing them; the main one first."""
        return sorted(_modules(), key=lambda name: (name != DEFAULT_COMMAND, name))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        module = _modules().get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(f"{commands.__name__}.{module}").COMMAND
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands per group, then the topics of the command `help`."""
        from jaccard_eval.cli.topics import TOPICS

        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            sections[command.group].append((name, command.short_help))
        sections["Topics of 'jaccard-eval help'"] = [(name, topic.about) for name, topic in TOPICS.items()]
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command, or what the default command begins with."""
        from click.shell_completion import CompletionItem  # brings the scripts of three shells along

        items = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return [*items, CompletionItem(incomplete, type="file")]
        command = self.get_command(ctx, DEFAULT_COMMAND)
        known = {item.value for item in items}
        options = command.shell_complete(click.Context(command, parent=ctx), incomplete) if command else []
        return [*items, *(item for item in options if item.value not in known)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front where none is named."""
        if args[:1] == [VERSION_WORD] and not os.path.exists(VERSION_WORD):  # noqa: PTH110 - takes any word
            args = ["--version", *args[1:]]
        own_options = {name for param in self.get_params(ctx) for name in param.opts}
        word = args[0] if args else ""
        if word in VERBOSE.opts and "--version" not in args:  # that of the default command
            own_options = set()
        if args and word not in own_options and word not in _modules():
            # A word that a shell completes is half typed, and means nothing yet.
            is_file = word.startswith("-") or os.path.exists(word)  # noqa: PTH110 - takes any word
            meant = "" if is_file or ctx.resilient_parsing else did_you_mean(word, [*_modules(), "--version"])
            if meant:
                raise click.UsageError(f"{quoted_value(word)} is neither a command nor a file.{meant}", ctx)
            args = [DEFAULT_COMMAND, *args]
        elif "--version" in args:  # it ends the run when it is met
            args = sorted(args, key=lambda word: word not in VERBOSE.opts)
        return super().parse_args(ctx, args)


@cache
def _modules() -> dict[str, str]:
    modules = (info.name for info in pkgutil.iter_modules(commands.__path__))
    return {module.rstrip("_"): module for module in modules}


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"{PROGRAM} {__version__}")
    if ctx.params.get(VERBOSE.name or ""):
        from jaccard_eval.cli.topics import describe_environment

        click.echo("\n".join(describe_environment()))
    ctx.exit()


VERBOSE = click.Option(
    ["-v", "--verbose"], is_flag=True, is_eager=True, help="With --version: print what a bug report needs."
)

COMMAND_TABLE = CommandTable(
    help="Evaluate object detection: any common format in, exact average precision out.\n\n"
    "'jaccard-eval GT PRED' is short for 'jaccard-eval evaluate GT PRED'.",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        VERBOSE,
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
    ],
)
