"""The JSON report, schema 1: everything at full precision, one document, the same bytes for the same input."""

from __future__ import annotations

import json

from jaccard_eval.report import Reportable, ReportOptions

SUFFIXES = (".json",)


def render(result: Reportable, options: ReportOptions) -> str:
    """Return the document; `options` change nothing, for a machine reads it."""
    # ASCII with escapes is valid in any encoding of the stream, and holds lone surrogates of odd file names.
    return json.dumps(result.to_dict(), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"
