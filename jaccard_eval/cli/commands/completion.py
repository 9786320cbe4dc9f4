"""``jaccard-eval completion``: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class, shell_complete

from jaccard_eval.cli import COMMAND_TABLE, COMPLETE_VARIABLE, PROGRAM, streams
from jaccard_eval.cli.options import ListedCommand
from jaccard_eval.cli.parse import OneOf

SHELLS = ("bash", "zsh", "fish")


class Bash(BashComplete):
    """Click's script forgets words when files come behind them, and reads ``--name=value`` as three words."""

    source_template = """\
%(complete_func)s() {
    local line files=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            plain,*) COMPREPLY+=("${line#plain,}") ;;
            *) files=yes ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1")
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        [[ -z $files ]] || compopt -o default
        return
    fi
    if [[ -n $files ]]; then
        compopt -o filenames
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that; an equals sign is a word of its own to bash."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], "" if incomplete == "=" else incomplete


add_completion_class(Bash, "bash")


def complete(instruction: str) -> int:
    """Complete a word as a shell asks by its variables; return the exit code."""
    return shell_complete(COMMAND_TABLE, {}, PROGRAM, COMPLETE_VARIABLE, instruction)


def script(shell: str) -> str:
    """Return what a shell has to read to complete the words of this program."""
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(shell)
    return kind(COMMAND_TABLE, {}, PROGRAM, COMPLETE_VARIABLE).source()


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
