"""The score with the best F1 of each class, as a map that is JSON and YAML, to be read by a deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jaccard_eval.errors import UsageError
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.outputs.csv_ import part_table


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the map; `options` change nothing. Classes without a true positive are left out."""
    table = part_table(result, "thresholds")
    if table is None:
        what = "--no-errors" if result.kind == "evaluation" else f"results of the kind {result.kind}"
        raise UsageError(f"thresholds.json and the like hold the best scores of an evaluation; leave out {what}")
    return map_text({str(name): float(score) for name, score in table.rows}) + "\n"


def map_text(scores: Mapping[str, float]) -> str:
    """Return the scores at full precision, the Unicode of names escaped.

    YAML 1.1 takes 1e-05 for a text, so that mantissas have a dot: 1.0e-05.

    >>> print(map_text({"dog": 1e-05}))
    {
      "dog": 1.0e-05
    }
    """
    lines = []
    for name, score in scores.items():
        mantissa, e, exponent = repr(float(score)).partition("e")
        dot = ".0" if e and "." not in mantissa else ""
        lines.append(f"  {json.dumps(name)}: {mantissa}{dot}{e}{exponent}")
    return "\n".join(["{", ",\n".join(lines), "}"]) if lines else "{}"


REPORTERS = (
    Reporter(
        names=("thresholds.json", "thresholds.yaml", "thresholds.yml"),
        about="best score per class",
        render=render,
        errors=True,
    ),
)
