"""From a command line to both sides: which paths they are, and how each is read; what both share is loaded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jaccard_eval.cli.inputs import refuse_results
from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import ReadOptions, SideOptions

ROLES = ("gt", "pred")
_TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def two_sides(paths: Sequence[Path], options: RunOptions) -> tuple[Path, Path]:
    """Take ground truth and predictions each from its option, else from the next path."""
    context, rest = click.get_current_context(), list(paths)
    if len(rest) == 1 and not (options.gt or options.pred):
        from jaccard_eval.formats import in_parts

        rest *= 1 + in_parts(rest[0])  # which has both sides
    sides = []
    for name, given in (("GT", options.gt), ("PRED", options.pred)):
        if len(given) > 1:
            raise click.UsageError(f"{name} is given {len(given)} times; keep one", context)
        if not given and not rest:
            refuse_results(paths)
            raise click.UsageError(f"Missing argument '{name}'.", context)
        sides.append(given[0] if given else rest.pop(0))
    if rest:
        raise click.UsageError(f"Got unexpected extra argument ({rest[0]})", context)
    return sides[0], sides[1]


def typed_options(parameters: Sequence[click.Parameter]) -> list[str]:
    """Return what was typed, or set by a variable; asked of click, as an option given at its default counts too."""
    source = click.get_current_context().get_parameter_source
    return [parameter.opts[0] for parameter in parameters if source(parameter.name or "") in _TYPED]


def refuse_options_of_sides(parameters: Sequence[click.Parameter]) -> None:
    """Raise a usage error when saved results come with rules, or ways to read, that they have themselves."""
    if given := typed_options(parameters):
        raise click.UsageError(
            f"{', '.join(given)}: a saved result has rules and options of its own; name ground truth and predictions"
            " instead",
            click.get_current_context(),
        )


def run_on_sides(verb: Callable[..., Any], *sides: Path, options: RunOptions, **settings: Any) -> Any:
    """Run a verb of `api` on both sides as the options read them; its result also has what is odd about class names."""
    log = FindingLog()
    return with_findings(log, verb(*sides, **settings, **side_arguments(options, log)))


def with_findings(log: FindingLog, result: Any) -> Any:
    """Return a result with what was found on the way to it before its own findings."""
    return replace(result, findings=(*log.findings(), *result.findings))


def side_arguments(options: RunOptions, log: FindingLog) -> dict[str, Any]:
    """Return how the verbs of `api` read both sides, choose from them and bring them together."""
    gt_options, pred_options = read_options(options, log)
    given = {field.name: getattr(options, field.name) for field in fields(SideOptions)}
    return given | {"gt_options": gt_options, "pred_options": pred_options}


def read_options(options: RunOptions, log: FindingLog) -> tuple[ReadOptions, ReadOptions]:
    """Return how to read ground truth and predictions; what is odd about a list of names goes to `log`."""
    names = {role: getattr(options, f"{role}_names") or options.names for role in ROLES}
    folders = {role: getattr(options, f"{role}_images") or options.images for role in ROLES}
    # Most often both sides have one list of names and one folder: what is odd about them is to be reported once.
    loaded: dict[str | None, Any] = {None: None}
    for spec in filter(None, dict.fromkeys(names.values())):
        from jaccard_eval.reading.names import load_names

        loaded[spec] = load_names(spec, log)
    indexed: dict[Path | None, Any] = {None: None}
    for folder in filter(None, dict.fromkeys(folders.values())):
        from jaccard_eval.reading.images import ImageFolder

        indexed[folder] = ImageFolder(folder)
    gt, pred = (
        ReadOptions(
            role=role,
            box=getattr(options, f"{role}_box"),
            units=getattr(options, f"{role}_units"),
            names=loaded[names[role]],
            images=indexed[folders[role]],
            columns=getattr(options, f"{role}_columns"),
            split=options.split,
            skip_invalid=options.skip_invalid,
            # Ground truth with an assumed score would be read as predictions.
            assume_score=options.assume_score if role == "pred" else None,
            origin=int(getattr(options, f"{role}_origin") or 0),
            resized=getattr(options, f"{role}_resized"),
            drop_inverted=getattr(options, f"{role}_drop_inverted"),
            angle=getattr(options, f"{role}_angle"),
            keypoint_order=getattr(options, f"{role}_keypoint_order"),
            mask_axes=getattr(options, f"{role}_mask_axes"),
            # Predictions have nothing of this but names.
            hierarchy=options.hierarchy if role == "gt" else None,
            image_labels=options.image_labels if role == "gt" else None,
            class_descriptions=options.class_descriptions,
        )
        for role in ROLES
    )
    return gt, pred
