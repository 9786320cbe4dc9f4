"""What can be asked of boxes and label maps, a room each; `report` of a room writes its results for people."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def report_of(name: str) -> Any:
    """Return the module that writes results for people, by `reported_by` of a result: a new one is in no list."""
    return importlib.import_module(f"{__name__}.{name}")


def page_of(name: str, module: str = "page") -> Any:
    """Return the module `page` of the same room, or another; None where it has none."""
    page = f"{__name__}.{name.rpartition('.')[0]}.{module}"
    return None if importlib.util.find_spec(page) is None else importlib.import_module(page)
