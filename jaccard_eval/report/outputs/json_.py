"""The JSON report, schema 1: everything at full precision, one document, the same bytes for the same input."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jaccard_eval.report import Reportable, Reporter, ReportOptions

NESTED = frozenset((dict, list, str))
NESTED_ITEMS = frozenset((dict, list))
# ASCII with escapes is valid in any encoding of the stream, and holds lone surrogates of odd file names. One encoder:
# `json.dumps` would make one for each number.
ENCODER = json.JSONEncoder(allow_nan=False)


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document; `options` change nothing, for a machine reads it."""
    return _encoded(result.to_dict(), "") + "\n"


def _encoded(value: Any, margin: str) -> str:
    """Lay out objects by sorted keys, one line each, and lists, except those of numbers, which take one line."""
    inner = f"{margin}  "
    if isinstance(value, dict) and value and NESTED_ITEMS.isdisjoint(map(type, value.values())):
        # Most objects are rows of numbers, which the encoder of the standard library lays out in one call.
        return f"{{\n{inner}{_row_encoder(inner).encode(value)[1:-1]}\n{margin}}}"
    if isinstance(value, dict) and value:
        items = [f"{inner}{json.dumps(key)}: {_encoded(value[key], inner)}" for key in sorted(value)]
        return "\n".join(["{", ",\n".join(items), f"{margin}}}"])
    if isinstance(value, list) and not NESTED.isdisjoint(map(type, value)):
        items = [f"{inner}{_encoded(item, inner)}" for item in value]
        return "\n".join(["[", ",\n".join(items), f"{margin}]"])
    return ENCODER.encode(value)


@cache
def _row_encoder(margin: str) -> json.JSONEncoder:
    return json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(f",\n{margin}", ": "))


REPORTERS = (Reporter(suffixes=(".json",), about="all numbers", render=render),)
