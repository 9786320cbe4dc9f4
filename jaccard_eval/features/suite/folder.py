"""The folder of a suite: its page, and one for each pair, which the heat map leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaccard_eval.atomic import replace_folder
from jaccard_eval.features.suite.result import SuiteResult
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.html import render


def write_folder(result: SuiteResult, pages: Sequence[str], path: Path) -> None:
    """Write ``index.html`` and the pages of all cells; a folder that holds other files is a UsageError."""
    # By number: names of models and sets may be anything.
    places = [f"cells/{row:04}.html" if page else "" for row, page in enumerate(pages, start=1)]
    cells = tuple(replace(cell, page=place) for cell, place in zip(result.cells, places, strict=True))
    index = render(replace(result, cells=cells), ReportOptions())
    files = {"index.html": index} | {place: page for place, page in zip(places, pages, strict=True) if place}
    replace_folder(path, {name: text.encode("utf-8", "backslashreplace") for name, text in files.items()})
