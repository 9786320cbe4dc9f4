"""The columns of Open Images, by which its tables are told from other CSV."""

from __future__ import annotations

from collections.abc import Sequence

NEEDED = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")
GROUP = "IsGroupOf"

_NEEDED = frozenset(name.lower() for name in NEEDED)


def is_header(header: Sequence[str]) -> bool:
    """Whether a first line has every column that a table of Open Images needs, under its own name."""
    return {name.strip().lower() for name in header} >= _NEEDED
