"""The options of the bootstrap, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli._options import NUMBER, section
from jaccard_eval.cli._parse import parse_whole, parsed_by
from jaccard_eval.errors import UsageError

if TYPE_CHECKING:
    from jaccard_eval.data.bootstrap import Bootstrap

FIELDS = {"confidence": "confidence_level", "seed": "rng", "group_by": "group_by"}  # by the names of the options

_noise = section("Noise")

BOOTSTRAP_OPTIONS: list[click.Parameter] = [
    _noise(
        "--bootstrap",
        metavar="N",
        callback=parsed_by(parse_whole),
        help="Intervals for the summary and every class, from N resamples of the images, the same for all predictions;"
        " 1000 is a good number.",
    ),
    _noise("--confidence", **NUMBER, help="Confidence of the intervals, 0.95 when not given."),
    _noise("--seed", metavar="N", callback=parsed_by(parse_whole), help="Seed of the resamples, 0 when not given."),
    _noise(
        "--group-by",
        metavar="folder|FILE",
        help="Draw groups of images as a whole, such as the frames of a video: those of one folder, or of one group in"
        " a CSV file of rows image,group.",
    ),
]


def group_files(options: dict[str, Any]) -> list[Path]:
    """Return the file of groups, if one is named: an input like any other."""
    if options["group_by"] is None:
        return []
    from jaccard_eval.data.bootstrap import BY_FOLDER

    return [] if options["group_by"] == BY_FOLDER else [Path(options["group_by"])]


def read_bootstrap(options: dict[str, Any]) -> Bootstrap | None:
    """Return how to resample; None where it was not asked for.

    Raises
    ------
    UsageError
        When settings are out of range, or would have no effect.
    """
    given = {field: options[name] for name, field in FIELDS.items() if options[name] is not None}
    if options["bootstrap"] is None:
        for name in (name for name, field in FIELDS.items() if field in given):
            raise UsageError(f"--{name.replace('_', '-')} is of no use without --bootstrap N")
        return None
    from jaccard_eval.data.bootstrap import Bootstrap

    try:
        return Bootstrap(n_resamples=options["bootstrap"], **given)
    except UsageError as error:
        raise UsageError(_by_option(str(error))) from None


def _by_option(message: str) -> str:
    """Name the option where a message names the setting."""
    setting, _, rest = message.partition(" ")
    options = {field: name for name, field in FIELDS.items()} | {"n_resamples": "bootstrap"}
    return f"--{options[setting]} {rest}" if setting in options else message
