"""The score with the best F1 of each class, as a map in JSON or YAML, to be read by a deployment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from jaccard_eval.errors import UsageError
from jaccard_eval.fixes import ON, Fix
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.outputs.csv_ import part_table

# Names that no YAML takes for anything but a text: letters first, then no sign that means something.
_PLAIN = re.compile(r"[^\W\d_]\w*(?:[ -]\w+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})  # unless they are one of these
_LONGEST_KEY = 1000  # characters; beyond 1024, YAML wants a question mark before a key


def _render_json(result: Reportable, options: ReportOptions) -> str:
    return map_text(_scores(result)) + "\n"


def _render_yaml(result: Reportable, options: ReportOptions) -> str:
    return yaml_text(_scores(result))


def _scores(result: Reportable) -> dict[str, float]:
    """Return the scores; classes without a true positive are skipped."""
    table = part_table(result, "thresholds")
    if table is None:
        if result.kind != "evaluation":
            raise UsageError(f"thresholds files are for evaluations; this result is of the kind {result.kind}")
        # A saved result holds what was asked for when it was made.
        raise UsageError(
            "the best scores per class were not computed.",
            fix=Fix.missing(
                "Evaluate the inputs with {output} (or .json), and without {no_errors}.",
                output="thresholds.yaml",
                no_errors=ON,
            ),
        )
    return {str(name): float(score) for name, score in table.rows}


def map_text(scores: Mapping[str, float]) -> str:
    """Return the scores as JSON at full precision, the Unicode of names escaped.

    >>> print(map_text({"dog": 1e-05}))
    {
      "dog": 1.0e-05
    }
    """
    lines = [f"  {json.dumps(name)}: {_number_text(score)}" for name, score in scores.items()]
    return "\n".join(["{", ",\n".join(lines), "}"]) if lines else "{}"


def yaml_text(scores: Mapping[str, float]) -> str:
    """Return the scores as YAML, a class a line; names that YAML would read as anything but themselves are quoted.

    >>> print(yaml_text({"traffic light": 0.25, "no": 0.5, "1e3": 1e-05}), end="")
    traffic light: 0.25
    "no": 0.5
    "1e3": 1.0e-05
    """
    lines = []
    for name, score in scores.items():
        key = name
        if not _PLAIN.fullmatch(name) or name.casefold() in _WORDS:
            import yaml  # whose quotes escape what JSON's cannot: beyond 16 bits, these differ

            key = yaml.safe_dump(name, default_style='"', width=float("inf")).rstrip("\n")
        number = _number_text(score)
        lines.append(f"? {key}\n: {number}\n" if len(key) > _LONGEST_KEY else f"{key}: {number}\n")
    return "".join(lines) or "{}\n"


def _number_text(number: float) -> str:
    """Return a number with a dot in its mantissa: YAML 1.1 reads 1e-05 as a text."""
    mantissa, e, exponent = repr(float(number)).partition("e")
    return f"{mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"


REPORTERS = (
    Reporter(names=("thresholds.json",), about="best score per class", render=_render_json, errors=True),
    Reporter(
        names=("thresholds.yaml", "thresholds.yml"), about="best score per class", render=_render_yaml, errors=True
    ),
)
