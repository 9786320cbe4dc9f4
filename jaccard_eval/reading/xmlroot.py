"""Which outermost element an XML file has, by its first bytes: what tells XML formats apart before one is parsed."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.reading import files

_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")
_COMMENT = re.compile(rb"<!--.*?(-->|$)", re.DOTALL)


def root_name(path: Path) -> str:
    """Return the name of a file's outermost element by its first bytes, empty where it is no XML. Never raises."""
    head = files.head(path).lstrip()
    found = _ROOT.search(_COMMENT.sub(b"", head)) if head.startswith(b"<") else None
    return "" if found is None else found[1].decode("ascii", "replace")
