"""What a report says, before any medium: sections of tables, facts and notes. No formatting for a medium lives here.

Texts hold users' strings as they are; every reporter escapes them for its medium. What is said about a result is put
together by the module of ``report/kinds`` that is named after its kind: a new kind of result adds a module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

from jaccard_eval.data.document import DataTable
from jaccard_eval.errors import UsageError
from jaccard_eval.report import Reportable, ReportOptions

Cell = str | int | float  # a float is a metric in [0, 1], NaN when undefined


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `free_text` is aligned left and may wrap; the others stay whole: numbers, and words with `left`."""

    title: str
    free_text: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below their columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Facts, each a term and its text."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about what stands above it."""

    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines of characters that make a picture, and the same in ASCII for streams that hold no more."""

    lines: tuple[str, ...]
    ascii_lines: tuple[str, ...]


Block = Table | KeyValues | Note | Drawing


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a report."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report; the signature, where there is one, holds all that can change a number, and stays in one line.

    A marker is hidden in media that can hide it: a program finds the comment again that it is to replace.
    """

    title: str
    sections: tuple[Section, ...]
    signature: str = ""
    marker: str = ""


Sheet = DataTable

# Which module of the features knows what to say about a kind of result.
_REPORTS = {
    "comparison": "compare.report",
    "evaluation": "evaluate.report",
    "explanation": "explain.report",
    "gate": "gates.report",
    "inspection": "inspect.report",
    "overlap": "scale.overlap_report",
    "pixels": "pixels.report",
    "sensitivity": "scale.report",
    "suppression": "nms.report",
    "verification": "verify.report",
}


class Kind(Protocol):
    """What a module of ``report/kinds`` offers; `result` is of the kind that it is named after.

    Where results can be drawn, it also has ``draw(figure, result)``, which fills an empty ``matplotlib.figure.Figure``.
    """

    def build_report(self, result: Any, options: ReportOptions) -> Report:
        """Return what a summary for people says."""

    def build_sheet(self, result: Any, options: ReportOptions) -> Sheet:
        """Return the table for machines."""


def build_report(result: Reportable, options: ReportOptions) -> Report:
    """Return what a summary for people says about `result`.

    Raises
    ------
    UsageError
        When `options.sort` names no column of the table that it sorts.
    """
    return _kind(result).build_report(result, options)


def build_sheet(result: Reportable, options: ReportOptions) -> Sheet:
    """Return the one table of `result` for machines; see `build_report` for the errors."""
    return _kind(result).build_sheet(result, options)


def draw(figure: Any, result: Reportable) -> None:
    """Draw a result on an empty ``matplotlib.figure.Figure``.

    Raises
    ------
    UsageError
        When there is no picture of results of this kind.
    """
    kind = _kind(result)
    if not hasattr(kind, "draw"):
        raise UsageError(f"there is no picture of results of the kind {result.kind}; use .txt, .md, .json or .csv")
    kind.draw(figure, result)


def _kind(result: Reportable) -> Kind:
    return importlib.import_module(f"jaccard_eval.features.{_REPORTS[result.kind]}")
