"""A map from class to score, in a text that is both JSON and YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping


def map_text(scores: Mapping[str, float]) -> str:
    """Return the scores at full precision, the Unicode of names escaped.

    YAML 1.1 takes 1e-05 for a text, so that mantissas have a dot: 1.0e-05.

    Examples
    --------
    >>> print(map_text({"dog": 1e-05}))
    {
      "dog": 1.0e-05
    }
    """
    lines = [f"  {json.dumps(name)}: {_dotted(score)}" for name, score in scores.items()]
    return "\n".join(["{", ",\n".join(lines), "}"]) if lines else "{}"


def _dotted(score: float) -> str:
    mantissa, e, exponent = repr(float(score)).partition("e")
    return mantissa + ("" if "." in mantissa or not e else ".0") + e + exponent
