"""From a command line to both sides: which paths they are, and how each is read; what both share is loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import ReadOptions, SideOptions

if TYPE_CHECKING:
    from jaccard_eval.reading.images import ImageFolder

ROLES = ("gt", "pred")
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def two_sides(paths: Sequence[Path], gt: Sequence[Path], pred: Sequence[Path]) -> tuple[Path, Path]:
    """Take ground truth and predictions each from its option, else from the next path.

    Raises
    ------
    click.UsageError
        When a side is missing or given more than once.
    """
    rest = list(paths)
    sides = []
    for name, given in (("GT", gt), ("PRED", pred)):
        if len(given) > 1:
            raise click.UsageError(f"{name} is given {len(given)} times", click.get_current_context())
        if not given and not rest:
            raise click.UsageError(f"Missing argument '{name}'.", click.get_current_context())
        sides.append(given[0] if given else rest.pop(0))
    if rest:
        raise click.UsageError(f"Got unexpected extra argument ({rest[0]})", click.get_current_context())
    return sides[0], sides[1]


def refuse_options_of_sides(parameters: Sequence[click.Parameter]) -> None:
    """Raise a usage error when saved results come with rules, or ways to read, that they have themselves."""
    context = click.get_current_context()
    given = [
        parameter.opts[0] for parameter in parameters if context.get_parameter_source(parameter.name or "") in GIVEN
    ]
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: a saved result has rules and options of its own; name ground truth and predictions"
            " instead",
            context,
        )


def side_arguments(options: RunOptions, log: FindingLog) -> dict[str, Any]:
    """Return how the verbs of `api` read both sides, choose from them and bring them together."""
    gt_options, pred_options = read_options(options, log)
    given = {field.name: getattr(options, field.name) for field in fields(SideOptions)}
    return given | {"gt_options": gt_options, "pred_options": pred_options}


def read_options(options: RunOptions, log: FindingLog) -> tuple[ReadOptions, ReadOptions]:
    """Return how to read ground truth and predictions; what is odd about a list of names goes to `log`."""
    names = {role: getattr(options, f"{role}_names") or options.names for role in ROLES}
    folders = {role: getattr(options, f"{role}_images") or options.images for role in ROLES}
    loaded = {spec: _load_names(spec, log) for spec in dict.fromkeys(names.values())}
    indexed = {folder: _index_images(folder) for folder in dict.fromkeys(folders.values())}
    gt, pred = (
        ReadOptions(
            role=role,
            box=getattr(options, f"{role}_box"),
            units=getattr(options, f"{role}_units"),
            names=loaded[names[role]],
            images=indexed[folders[role]],
            columns=getattr(options, f"{role}_columns"),
            split=options.split,
            assume_score=options.assume_score if role == "pred" else None,
            origin=int(getattr(options, f"{role}_origin") or 0),
        )
        for role in ROLES
    )
    return gt, pred


def _load_names(spec: str | None, log: FindingLog) -> tuple[str, ...] | None:
    if spec is None:
        return None
    from jaccard_eval.reading.names import load_names

    return load_names(spec, log)


def _index_images(folder: Path | None) -> ImageFolder | None:
    if folder is None:
        return None
    from jaccard_eval.reading.images import ImageFolder

    return ImageFolder(folder)
