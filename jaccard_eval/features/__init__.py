"""What can be asked of boxes and label maps, a room each: itself it is its result, and `report` writes that down."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def report_of(name: str) -> Any:
    """Return the module that writes results for people, by `reported_by` of a result: a new one is in no list."""
    return importlib.import_module(f"{__name__}.{name}")


def page_of(name: str) -> Any:
    """Return what draws pages and folders of the same results: the module `page` of the room, else the report."""
    page = f"{__name__}.{name.rpartition('.')[0]}.page"
    return report_of(name) if importlib.util.find_spec(page) is None else importlib.import_module(page)
