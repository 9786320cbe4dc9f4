"""The options of the bootstrap, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli.inputs import InputText
from jaccard_eval.cli.options import NUMBER, section
from jaccard_eval.cli.parse import parse_whole, parsed_by
from jaccard_eval.errors import UsageError

if TYPE_CHECKING:
    from jaccard_eval.data.intervals import Bootstrap

FIELDS = {  # by the names of the options
    "bootstrap": "n_resamples",
    "confidence": "confidence_level",
    "seed": "rng",
    "group_by": "group_by",
}


def is_group_file(group_by: str | None) -> bool:
    """Whether images are grouped by a file."""
    from jaccard_eval.data.intervals import BY_FOLDER

    return group_by not in (None, BY_FOLDER)


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
        type=InputText(is_group_file),
        metavar="folder|FILE",
        help="Draw groups of images as a whole, such as the frames of a video: those of one folder, or of one group in"
        " a CSV file of rows image,group.",
    ),
]


def read_bootstrap(options: dict[str, Any]) -> Bootstrap | None:
    """Return how to resample for intervals; None where they were not asked for."""
    if options["bootstrap"] is None:
        return None
    from jaccard_eval.data.intervals import Bootstrap

    return adjusted(Bootstrap(), options)


def adjusted(drawn: Bootstrap, options: dict[str, Any]) -> Bootstrap:
    """Return settings with what options say otherwise.

    Raises
    ------
    UsageError
        When they are out of range.
    """
    try:
        return replace(drawn, **given_settings(options))
    except UsageError as error:
        raise UsageError(_by_option(str(error))) from None


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that options name, by their fields."""
    return {field: options[name] for name, field in FIELDS.items() if options[name] is not None}


def require_resamples(options: dict[str, Any]) -> None:
    """Raise a usage error when settings are given and nothing asks for resamples."""
    idle = [name for name in FIELDS if options[name] is not None]
    if idle and options["bootstrap"] is None:
        raise UsageError(f"--{idle[0].replace('_', '-')} is of no use without --bootstrap N")


def _by_option(message: str) -> str:
    """Name the option where a message names the setting."""
    setting, _, rest = message.partition(" ")
    options = {field: name for name, field in FIELDS.items()}
    return f"--{options[setting]} {rest}" if setting in options else message
