"""Manual pages, from what the help prints: ``python -m jaccard_eval.cli.manual FOLDER`` writes one per command.

A build does so for ``share/man/man1``, with nothing but click installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from jaccard_eval.cli import COMMAND_TABLE, PROGRAM
from jaccard_eval.cli.options import SHOWS_ALL
from jaccard_eval.cli.topics import EXIT_CODES
from jaccard_eval.version import __version__

WIDTH = 10_000  # columns
LAID_OUT: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH}  # when the page is read, not before


class ManualFormatter(click.HelpFormatter):
    """Writes what help consists of in the language of manual pages."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the synopsis; what comes next is the description."""
        self.write(f".SH SYNOPSIS\n.B {_roff(prog)}\n{_roff(args)}\n.SH DESCRIPTION\n")

    def write_heading(self, heading: str) -> None:
        """Begin a section; an aside behind its title opens it."""
        title, _, aside = heading.partition(" (")
        self.write(f'.SH "{_roff(title.upper())}"\n')
        if aside:
            self.write(f"{_roff(aside.rstrip(')'))}\n")

    def write_paragraph(self) -> None:
        """Begin a paragraph."""
        self.write(".PP\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; those that click leaves as they are keep their lines."""
        for paragraph in text.split("\n\n"):
            lines = paragraph.strip("\n").split("\n")
            as_it_is = lines[0].strip() == "\b"
            written = "\n".join(map(_roff, lines[1:] if as_it_is else (line.strip() for line in lines)))
            self.write(f".PP\n.nf\n{written}\n.fi\n" if as_it_is else f".PP\n{written}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms, each with its text."""
        self.write("".join(f".TP\n.B {_roff(term)}\n{_roff(text)}\n" for term, text in rows))


class _ManualContext(click.Context):
    formatter_class = ManualFormatter


def manual_pages() -> dict[str, str]:
    """Return the page of the program and one per command, by file names."""
    root = _ManualContext(COMMAND_TABLE, info_name=PROGRAM, **{**COMMAND_TABLE.context_settings, **LAID_OUT})
    root.meta[SHOWS_ALL] = True
    names = COMMAND_TABLE.list_commands(root)
    pages = {f"{PROGRAM}.1": _page(root, "evaluate object detection", [f"{PROGRAM}-{name}" for name in names])}
    for name in names:
        command = COMMAND_TABLE.get_command(root, name)
        assert command is not None, name
        context = _ManualContext(command, info_name=name, parent=root, **LAID_OUT)
        title = command.get_short_help_str(WIDTH).rstrip(".")
        pages[f"{PROGRAM}-{name}.1"] = _page(context, title[:1].lower() + title[1:], [PROGRAM])
    return pages


def _page(context: click.Context, title: str, related: Sequence[str]) -> str:
    name = context.command_path.replace(" ", "-")
    formatter = context.make_formatter()
    # Without a date: the same bytes whenever they are made.
    formatter.write(f'.TH "{_roff(name.upper())}" "1" "" "{PROGRAM} {__version__}" "User Commands"\n')
    formatter.write(f".SH NAME\n{_roff(name)} \\- {_roff(title)}\n")
    context.command.format_help(context, formatter)
    formatter.write('.SH "EXIT STATUS"\n')
    formatter.write_dl(EXIT_CODES)
    formatter.write(f'.SH "SEE ALSO"\n{", ".join(f"{_roff(page)}(1)" for page in related)}\n')
    return formatter.getvalue()


def _roff(text: str) -> str:
    """Write a line of text so that none of it is read as a request."""
    literal = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("'", "\\(aq")
    return f"\\&{literal}" if literal.startswith(".") else literal


def write_manual(folder: Path) -> list[Path]:
    """Write all pages into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = manual_pages()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


if __name__ == "__main__":
    write_manual(Path(sys.argv[1]))
