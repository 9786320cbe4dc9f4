"""``jaccard-eval formats``: what can be read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from jaccard_eval.cli import streams
from jaccard_eval.cli.options import ListedCommand, section

if TYPE_CHECKING:
    from jaccard_eval.formats import Format

EXAMPLE_LINES = 8


def formats(as_json: bool) -> None:
    """Run the command."""
    from jaccard_eval.extensions import FORMATS, extension_packages
    from jaccard_eval.formats import format_module, format_names

    packages = dict(extension_packages(FORMATS))
    known = [format_module(name).FORMAT for name in format_names()]
    if as_json:
        document = {"formats": [asdict(described) for described in known]}
        streams.write_result(json.dumps(document, indent=2, sort_keys=True) + "\n")
    else:
        streams.write_result("\n".join(_paragraph(described, packages.get(described.name)) for described in known))


def _paragraph(described: Format, package: str | None) -> str:
    lines = [f"{described.name}: {described.summary}"]
    lines += [f"  added by: {package}"] if package else []
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
    help="List all formats, with what each can hold and an example.",
    short_help="List all formats, with an example of each.",
    options_metavar="[OPTIONS]",
    params=[section("Output")("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document.")],
)
