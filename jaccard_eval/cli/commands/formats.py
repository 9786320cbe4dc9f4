"""``jaccard-eval formats``: what can be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from jaccard_eval.cli import streams
from jaccard_eval.cli.options import ListedCommand, completed_from, known_formats, section
from jaccard_eval.extensions import FORMATS, extension_packages
from jaccard_eval.formats import SHAPES, format_module, format_names, formats_by_shape

if TYPE_CHECKING:
    from jaccard_eval.formats import Format

EXAMPLE_LINES = 8
_MORE = """Maps of classes are compared by 'jaccard-eval pixels', panoptic segmentations by 'jaccard-eval panoptic'.
'jaccard-eval formats NAME' describes one format, with an example.
"""


def formats(name: str | None, as_json: bool) -> None:
    """Run the command."""
    packages = dict(extension_packages(FORMATS))
    known = [format_module(known).FORMAT for known in ([name] if name else format_names())]
    if as_json:
        document = {"formats": [asdict(described) for described in known]}
        streams.write_result(json.dumps(document, indent=2, sort_keys=True) + "\n")
    elif name:
        streams.write_result(_paragraph(known[0], packages.get(name)))
    elif (width := streams.result_width()) is not None:
        from jaccard_eval.report import ReportOptions
        from jaccard_eval.report.model import KeyValues, Note, Report, Section
        from jaccard_eval.report.terminal import lay_out

        sections = [Section(words, (KeyValues(tuple(held)),)) for words, held in formats_by_shape()]
        more = Section("More", tuple(map(Note, _MORE.splitlines())))
        color = streams.wants_color("auto", sys.stdout)
        shape = ReportOptions(width=width, color=color, encoding=sys.stdout.encoding or "utf-8")
        streams.write_result(lay_out(Report("Formats that are read", (*sections, more)), shape))
    else:
        streams.write_result("".join(_section(*part) for part in formats_by_shape()) + _MORE)


def _section(words: str, held: Sequence[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in held), default=0)
    return f"{words}:\n" + "".join(f"  {name:{width}}  {where}\n" for name, where in held) + "\n"


def _paragraph(described: Format, package: str | None) -> str:
    lines = [f"{described.name}: {described.summary}"]
    lines += [f"  added by: {package}"] if package else []
    lines += [f"  {SHAPES[kind].lower()} ({kind}): {where}" for kind, where in described.reads.items() if where]
    lines += [f"  carries:  {', '.join(described.carries)}"] if described.carries else []
    lines += [f"  suffixes: {', '.join(described.suffixes)}"] if described.suffixes else []
    lines += [f"  source:   {described.source}", "  example:"]
    example = described.example.rstrip("\n").split("\n")
    lines += [f"    {line}" for line in example[:EXAMPLE_LINES]]
    lines += ["    ..."] if len(example) > EXAMPLE_LINES else []
    return "\n".join(lines) + "\n"


COMMAND = ListedCommand(
    "formats",
    group="Data",
    callback=formats,
    help="List all formats by the shapes they hold, a line each; with NAME, describe one, with an example.",
    short_help="List all formats, or describe one.",
    options_metavar="[OPTIONS]",
    params=[
        click.Argument(["name"], required=False, metavar="[NAME]", shell_complete=completed_from(known_formats)),
        section("Output")("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document."),
    ],
)
