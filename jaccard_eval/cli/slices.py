"""Slices of the images: as options name them, or as a TOML file does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli.inputs import InputPath
from jaccard_eval.cli.options import section
from jaccard_eval.errors import UsageError, shown, shown_json

if TYPE_CHECKING:
    from jaccard_eval.features.gates.rules import Slice

TABLE = "slices"


def read_slices(options: dict[str, Any]) -> tuple[Slice, ...]:
    """Return the slices of the options, then those of the file; globs of one name in the options are one slice.

    Raises
    ------
    UsageError
        When the file is no list of slices, or a slice is in both.
    """
    path = options["slices"]
    if path is None and not options["slice"]:
        return ()
    from jaccard_eval.features.gates.rules import Slice
    from jaccard_eval.metrics.slices import require_names

    named: dict[str, list[str]] = {}
    for name, glob in options["slice"]:
        named.setdefault(name, []).append(glob)
    own = [Slice(name=name, patterns=tuple(globs)) for name, globs in named.items()]
    slices = (*own, *(_read_file(path) if path is not None else ()))
    require_names(slices)
    return slices


def _read_file(path: Path) -> tuple[Slice, ...]:
    from jaccard_eval.cli.config import read_toml
    from jaccard_eval.features.gates.rules import Slice

    content = read_toml(path)
    table = content.get(TABLE)
    if set(content) != {TABLE} or not isinstance(table, Mapping):
        raise UsageError(f'{path}: expected one table [{TABLE}] with lines such as night = ["img/night/**"]')
    wrong = [
        f"{path}: {TABLE}.{name}: {_EXPECTED}, got {shown_json(one)}"
        for name, one in table.items()
        if not _is_list(one)
    ]
    if wrong:
        raise UsageError("\n".join(wrong))
    return tuple(Slice(name=name, patterns=tuple(one)) for name, one in table.items())


_EXPECTED = "expected a list of names and globs"


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _parsed(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [(name.strip(), glob.strip()) for name, _, glob in (text.partition("=") for text in texts)]
    for text, pair in zip(texts, pairs, strict=True):
        if not all(pair):
            raise click.BadParameter(f"expected NAME=GLOB, such as night='img/night/**'; got {shown(text)}", ctx, param)
    return tuple(pairs)


_option = section("Slices")


SLICE_OPTIONS: list[click.Parameter] = [
    _option(
        "--slice",
        metavar="NAME=GLOB",
        multiple=True,
        callback=_parsed,
        help="Also measure the images whose names match, in a row of their own; * also stands for slashes. Repeatable.",
    ),
    _option(
        "--slices", type=InputPath(), metavar="FILE", help='Such slices: TOML, [slices] with night = ["img/night/**"].'
    ),
]
