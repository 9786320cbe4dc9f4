"""Numbers as people write them: ASCII digits, a point, an exponent; no infinities, no digits of other scripts."""

from __future__ import annotations

import re

_NUMERAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def is_numeral(text: str) -> bool:
    """Return whether the whole of a text is one number."""
    return _NUMERAL.fullmatch(text) is not None
