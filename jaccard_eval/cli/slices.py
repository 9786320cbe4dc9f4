"""The slices of a command line: those of its options, and of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jaccard_eval.cli.parse import RunOptions, parse_toml, read_settings
from jaccard_eval.errors import UsageError
from jaccard_eval.text import shown_json

if TYPE_CHECKING:
    from jaccard_eval.options import Slice

TABLE = "slices"


def read_slices(options: RunOptions) -> tuple[Slice, ...]:
    """Return the slices of the options, then those of the file; globs of one name in the options are one slice."""
    path = options.slices
    if path is None and not options.slice:
        return ()
    from jaccard_eval.metrics.slices import require_names
    from jaccard_eval.options import Slice

    named: dict[str, list[str]] = {}
    for name, glob in options.slice:
        named.setdefault(name, []).append(glob)
    tables = [named]
    if path is not None:
        content = parse_toml(path, read_settings(path))
        table = content.get(TABLE)
        if set(content) != {TABLE} or not isinstance(table, Mapping):
            raise UsageError(f'{path}: expected one table [{TABLE}] with lines such as night = ["img/night/**"]')
        wrong = [
            f"{path}: {TABLE}.{name}: expected a list of names and globs, got {shown_json(globs)}"
            for name, globs in table.items()
            if not (isinstance(globs, list) and globs and all(isinstance(glob, str) for glob in globs))
        ]
        if wrong:
            raise UsageError("\n".join(wrong))
        tables.append(dict(table))
    slices = tuple(Slice(name=name, patterns=tuple(globs)) for table in tables for name, globs in table.items())
    # A name in the options and in the file would be two rows that nobody can distinguish.
    require_names(slices)
    return slices
