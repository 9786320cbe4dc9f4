"""The score with the best F1 of each class, as a map that is JSON and YAML, to be read by a deployment."""

from __future__ import annotations

from jaccard_eval.errors import UsageError
from jaccard_eval.features.errors.report import errors_of, map_text
from jaccard_eval.report import Reportable, ReportOptions

SUFFIXES = ()
NAMES = ("thresholds.json", "thresholds.yaml", "thresholds.yml")
ERRORS = True


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the map; `options` change nothing. Classes without a true positive are left out.

    Raises
    ------
    UsageError
        When the result is no evaluation, or its errors were not found.
    """
    errors = errors_of(result)
    if errors is None:
        what = "--no-errors" if result.kind == "evaluation" else f"results of the kind {result.kind}"
        raise UsageError(f"{NAMES[0]} and the like hold the best scores of an evaluation; leave out {what}")
    return map_text(errors.thresholds) + "\n"
