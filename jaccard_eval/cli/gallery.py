"""Images with their boxes: the option that commands with a page of images share."""

from __future__ import annotations

import click

from jaccard_eval.cli.options import section

GALLERY = section("Output")(
    "--gallery",
    type=click.IntRange(0, 200),
    metavar="N",
    help="Show the N worst images with their boxes on the page of -o report.html (default 24, at most 200; 0: none).",
)
