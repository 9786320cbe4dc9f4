"""``jaccard-eval explain``: why a number is what it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli.delivery import deliver, plan_files
from jaccard_eval.cli.options import (
    PROTOCOL,
    ROLES,
    SectionedCommand,
    completed_from,
    metric_names,
    refuse_options_of_sides,
    rule_arguments,
    run_on_sides,
    section,
    two_sides,
)
from jaccard_eval.cli.parse import LABELS, RunOptions, WholeNumber, input_path, note_inputs
from jaccard_eval.cli.run import report_findings
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.reading.files import is_folder
from jaccard_eval.text import quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    from jaccard_eval.features.explain import ExplanationResult
    from jaccard_eval.runs import Saved

DEFAULT_METRIC = "AP"
EPILOG = """\b
Examples:
  jaccard-eval explain gt.json detections.json
  jaccard-eval explain gt.json detections.json "AP50[class=dog]" --boxes 5
  jaccard-eval explain gt.json detections.json "F1[score=best-f1]"
  jaccard-eval explain gt.json detections.json AP50 --against voc2012
  jaccard-eval explain gt.json detections.json --against ultralytics=0.5318
  jaccard-eval explain result.json AP75
"""


def explain(options: RunOptions, *, paths: tuple[str, ...], boxes: int, against: str | None) -> None:
    """Run the command."""
    n_paths = 2 - len(options.gt[:1]) - len(options.pred[:1])
    if n_paths == 2 and _names_result(paths):
        refuse_options_of_sides()
        from jaccard_eval.reading.files import require_readable
        from jaccard_eval.runs import read_saved

        if options.images is not None:
            require_readable(options.images)  # it would be looked into when images are shown, perhaps never
        saved = read_saved(input_path(paths[0]))
        note_inputs([input_path(paths[0])])
        # Its inputs are read again.
        note_inputs((input_path(saved.document["inputs"][side]["path"]) for side in ROLES), kind=LABELS)
        outputs = plan_files(options.output, folders=True)
        asked: dict[str, Any] = {"allow": options.allow, "images": options.images, "boxes": boxes, "against": against}
        result = _explain_saved(saved, *paths[1:], **asked)
    else:
        words = [*paths]
        # The metric is the word behind the sides; whatever else there is too much or too little of is about these.
        metric = words.pop() if len(words) == n_paths + 1 else DEFAULT_METRIC
        gt, pred = two_sides([input_path(word) for word in words], options)
        note_inputs([gt, pred], kind=LABELS)
        outputs = plan_files(options.output, folders=True)
        from jaccard_eval.api import boxes as api

        question = {"metric": metric, "boxes": boxes, "against": against, **rule_arguments(options)}
        result = run_on_sides(api.explain, gt, pred, options=options, **question)
    report_findings(result.findings, options)
    deliver(result, outputs, options)


def _names_result(words: tuple[str, ...]) -> bool:
    """Whether the words are a saved result, or one and a metric, rather than two sides."""
    if len(words) not in (1, 2) or (len(words) == 2 and os.path.lexists(input_path(words[1]))):
        return False
    path = input_path(words[0])
    if len(words) == 2:
        try:
            MetricRef.parse(words[1])
        except UsageError:
            return _is_result(path)  # a metric that is misspelt, or predictions that are not there
    if os.path.lexists(path) and not _is_result(path):
        raise click.UsageError(
            f"Missing argument 'PRED': {quoted_value(str(path))} is not a saved result. Give ground truth and"
            " predictions, or a saved result (result.json).",
            click.get_current_context(),
        )
    return True


def _is_result(path: Path) -> bool:
    """Whether a file is a saved result; a damaged one is, which reading it again reports."""
    from jaccard_eval.runs import is_saved_run, read_document

    try:
        document = read_document(path)
    except DataError:
        is_document = path.suffix.lower() == ".json" and os.path.lexists(path) and not is_folder(path)
        return is_document or is_saved_run(path)
    return isinstance(document, dict) and "kind" in document


def _explain_saved(
    saved: Saved, metric: str = DEFAULT_METRIC, *, allow: Sequence[str], images: Path | None, **asked: Any
) -> ExplanationResult:
    """Explain a saved evaluation, from the inputs that it names, by its own rules and options."""
    from jaccard_eval.data.signature import signature_fields
    from jaccard_eval.evaluation import explain_inputs
    from jaccard_eval.features.explain.compute import Question

    gt, pred = (saved.document["inputs"][side]["path"] for side in ROLES)
    missing = FindingLog()
    for path in (gt, pred):
        # Its paths are as they were typed then: another folder may be the current one now.
        if not os.path.lexists(input_path(path)):
            detail = f"no such file or directory; {quoted_value(saved.path)} was made from it"
            missing.error(
                "file-missing",
                Where(path),
                detail,
                fix="Run this in the folder where it was made, or give GT and PRED.",
            )
    missing.raise_errors()
    question = Question.of(metric, saved.protocol, **asked)
    how = replace(saved.options, allow=(*saved.options.allow, *allow))
    result = explain_inputs(gt, pred, question, how, images=images, version=__version__)
    changes = FindingLog()
    now, then = signature_fields(result.signature), signature_fields(saved.document["signature"])
    for role, path in zip(ROLES, (gt, pred), strict=True):
        if now[role] != then[role]:
            changes.warning("result-differs", Where(path), f"has changed since {quoted_value(saved.path)} was made")
    return replace(result, findings=(*changes.findings(), *result.findings))


_option = section("Explanation")

COMMAND = SectionedCommand(
    "explain",
    group="Understand",
    callback=explain,
    without=("score",),  # nothing is counted at a score
    help="Explain a metric: what it is made of, and which boxes cost most.\n\n"
    "RESULT is a saved evaluation; its inputs are read again with its rules and options. METRIC is AP (default), AP50"
    " and the like, AR, AR100 and the like, precision, recall or F1, such as F1[iou=0.5,score=0.4]; for one class:"
    " AP50[class=NAME]. Gains are measured: predictions are fixed and evaluated again.",
    short_help="Explain a metric and name the boxes that cost most.",
    epilog=EPILOG,
    params=[
        click.Argument(
            ["paths"],
            nargs=-1,
            metavar="RESULT|GT PRED [METRIC]",
            shell_complete=completed_from(metric_names, or_files=True),
        ),
        "paths",
        _option(
            "--boxes",
            type=WholeNumber(min=1),
            default=12,
            show_default=True,
            metavar="N",
            basic=True,
            help="List at most N boxes.",
        ),
        _option(
            "--against",
            **PROTOCOL | {"metavar": "NAME[=NUMBER]"},
            basic=True,
            help="Also split the gap to this protocol rule by rule; with =NUMBER, name what gives it.",
        ),
        "rules",
        "shapes",
        "input",
        "pairing",
        "gallery",
        "output",
        "findings",
    ],
)
