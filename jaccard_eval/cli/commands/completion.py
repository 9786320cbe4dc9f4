"""``jaccard-eval completion``: the script by which a shell completes commands, options and their values."""

from __future__ import annotations

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.options import ListedCommand
from jaccard_eval.cli.parse import OneOf
from jaccard_eval.cli.shells import SHELLS, script

EPILOG = """\b
Put the line of your shell into its start-up file, and open a new shell:
  ~/.bashrc                   eval "$(jaccard-eval completion bash)"
  ~/.zshrc, below compinit    eval "$(jaccard-eval completion zsh)"
  ~/.config/fish/config.fish  jaccard-eval completion fish | source
"""


def completion(shell: str) -> None:
    """Run the command."""
    streams.write_result(script(shell))


COMMAND = ListedCommand(
    "completion",
    group="Help",
    callback=completion,
    help="Print the completion script of a shell.\n\n"
    "It completes commands, options, files, and values such as formats, protocols, metrics and codes of findings.",
    short_help="Print the completion script of bash, zsh or fish.",
    epilog=EPILOG,
    options_metavar="[OPTIONS]",
    params=[click.Argument(["shell"], type=OneOf(SHELLS), metavar="bash|zsh|fish")],
)
