"""The columns of Open Images, by which its tables are told from other CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaccard_eval.reading.tabular.columns import position_of_strings

NEEDED = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")

_NEEDED = frozenset(name.lower() for name in NEEDED)


_MID_GROUP = re.compile(r"[,;\t|\" ]/[mgt]/\w+ ")  # a class, which a confidence follows


def is_table(header: Sequence[str], text: str) -> bool:
    """Whether a first line has every column that Open Images needs, under its own name, or MIDs in strings of boxes."""
    is_boxes = {name.strip().lower() for name in header} >= _NEEDED
    return is_boxes or (position_of_strings(header) is not None and _MID_GROUP.search(text) is not None)
