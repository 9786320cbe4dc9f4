"""The options of the bootstrap, and what they do to a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli._options import SectionOption
from jaccard_eval.cli._parse import parse_number, parse_whole, parsed_by
from jaccard_eval.errors import UsageError

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult

SECTION = "Noise"
DEPENDENT = ("confidence", "seed", "group_by")

BOOTSTRAP_OPTIONS: list[click.Parameter] = [
    SectionOption(
        ["--bootstrap"],
        section=SECTION,
        metavar="N",
        callback=parsed_by(parse_whole),
        help="Intervals for the summary and every class, from N resamples of the images; 1000 is a good number.",
    ),
    SectionOption(
        ["--confidence"],
        section=SECTION,
        metavar="NUMBER",
        callback=parsed_by(parse_number),
        help="Confidence of the intervals, 0.95 when not given.",
    ),
    SectionOption(
        ["--seed"],
        section=SECTION,
        metavar="N",
        callback=parsed_by(parse_whole),
        help="Seed of the resamples, 0 when not given.",
    ),
    SectionOption(
        ["--group-by"],
        section=SECTION,
        metavar="folder|FILE",
        help="Draw groups of images as a whole, such as the frames of a video: those of one folder, or of one group in"
        " a CSV file of rows image,group.",
    ),
]


def add_intervals(result: EvaluationResult, options: dict[str, Any]) -> EvaluationResult:
    """Return the result with intervals, where they were asked for."""
    if options["bootstrap"] is None:
        _refuse_without_bootstrap(options)
        return result
    from jaccard_eval.api.bootstrapping import with_intervals
    from jaccard_eval.data.bootstrap import Bootstrap

    given = {"confidence_level": options["confidence"], "rng": options["seed"]}
    settings = Bootstrap(
        n_resamples=options["bootstrap"], **{name: value for name, value in given.items() if value is not None}
    )
    return with_intervals(result, settings, group_by=options["group_by"])


def _refuse_without_bootstrap(options: dict[str, Any]) -> None:
    for name in DEPENDENT:
        if options[name] is not None:
            raise UsageError(f"--{name.replace('_', '-')} is of no use without --bootstrap N")
