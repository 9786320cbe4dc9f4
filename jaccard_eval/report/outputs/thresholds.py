"""The score to use of each class, the best F1's or what was asked for, as a map in JSON or YAML for a deployment."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from jaccard_eval.errors import UsageError
from jaccard_eval.patterns import pattern
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.outputs.csv_ import part_table

# Names that no YAML takes for anything but a text: letters first, then no sign that means something.
_PLAIN = pattern(r"[^\W\d_]\w*(?:[ -]\w+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})  # unless they are one of these
_LONGEST_KEY = 1000  # characters; beyond 1024, YAML wants a question mark before a key

Entry = Mapping[str, str]  # score, n and few, as both formats write them


def _render_json(result: Reportable, options: ReportOptions) -> str:
    return map_text(_scores(result)) + "\n"


def _render_yaml(result: Reportable, options: ReportOptions) -> str:
    return yaml_text(_scores(result))


def _scores(result: Reportable) -> dict[str, Entry]:
    """Return the score of all classes and of each, how many objects it rests on, and whether these are few."""
    table = part_table(result, "thresholds")
    if table is None:
        if result.kind != "evaluation":
            raise UsageError(f"thresholds files are for evaluations; this result is of the kind {result.kind}")
        # A saved result holds what was asked for when it was made.
        raise UsageError(
            "the best scores per class were not computed. Evaluate the inputs with '-o thresholds.yaml' (or .json), and"
            " without --no-errors."
        )
    # A class that has the name of all of them means itself.
    return {
        str(name): {"score": _number_text(float(score)), "n": str(n), **({"few": str(few)} if few else {})}
        for name, score, n, few in table.rows
    }


def map_text(scores: Mapping[str, Entry]) -> str:
    """Return the scores as JSON at full precision, the Unicode of names escaped.

    >>> print(map_text({"dog": {"score": "1.0e-05", "n": "6", "few": "true"}}))
    {
      "dog": {"score": 1.0e-05, "n": 6, "few": true}
    }
    """
    lines = [f"  {json.dumps(name)}: {{{_items(entry, chr(34))}}}" for name, entry in scores.items()]
    return "\n".join(["{", ",\n".join(lines), "}"]) if lines else "{}"


def yaml_text(scores: Mapping[str, Entry]) -> str:
    """Return the scores as YAML, a class a line; names that YAML would read as anything but themselves are quoted.

    >>> entry = {"score": "0.25", "n": "31"}
    >>> print(yaml_text({"traffic light": entry, "no": entry, "1e3": entry}), end="")
    traffic light: {score: 0.25, n: 31}
    "no": {score: 0.25, n: 31}
    "1e3": {score: 0.25, n: 31}
    """
    lines = []
    for name, entry in scores.items():
        key = name
        if not _PLAIN.fullmatch(name) or name.casefold() in _WORDS:
            import yaml  # whose quotes escape what JSON's cannot: beyond 16 bits, these differ

            key = yaml.safe_dump(name, default_style='"', width=float("inf")).rstrip("\n")
        text = f"{{{_items(entry, '')}}}"
        lines.append(f"? {key}\n: {text}\n" if len(key) > _LONGEST_KEY else f"{key}: {text}\n")
    return "".join(lines) or "{}\n"


def _items(entry: Entry, quote: str) -> str:
    return ", ".join(f"{quote}{key}{quote}: {text}" for key, text in entry.items())


def _number_text(number: float) -> str:
    """Return a number with a dot in its mantissa: YAML 1.1 reads 1e-05 as a text; null where no score is best."""
    if math.isnan(number):
        return "null"
    mantissa, e, exponent = repr(float(number)).partition("e")
    return f"{mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"


REPORTERS = (
    Reporter(names=("thresholds.json",), about="best score per class", render=_render_json, errors=True),
    Reporter(
        names=("thresholds.yaml", "thresholds.yml"), about="best score per class", render=_render_yaml, errors=True
    ),
)
