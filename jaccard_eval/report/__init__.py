"""The outputs: one module per format of a report, found by the name of its file and picked by the suffix of a path.

A reporter module has ``SUFFIXES`` (with the dot, lower case) and ``render(result, options)`` for a result of any kind,
which returns text or bytes; what is said about each kind is the business of ``kinds``. In ``NAMES`` it may also claim
whole file names (lower case), which come before all suffixes, for programs that look for ``badge.json`` and the like. A
reporter that needs optional libraries names them in ``REQUIRES``, and the extra that installs them in ``EXTRA``. One
that tells the kinds of errors of an evaluation has ``ERRORS = True``: whoever writes its file finds them first.
Modules that start with an underscore, and `model`, are shared parts. Adding a module here adds an output; nothing else
changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jaccard_eval.errors import UsageError, require
from jaccard_eval.report import outputs
from jaccard_eval.text import did_you_mean, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report shows, and what its medium can show.

    Parameters
    ----------
    per_class : bool
        Whether summaries list every class. Tables made for machines (JSON, CSV) always do.
    sort : str, optional
        Order of the classes: "name", "gt", "pred" or a metric of the table; None keeps the ground truth's order.
    color : bool
        Whether terminal escapes may be used.
    width : int
        Columns of a text report; wider when numbers need it.
    encoding : str
        Of the stream that a text report is for; what it cannot hold is escaped.
    """

    per_class: bool = False
    sort: str | None = None
    color: bool = False
    width: int = 80
    encoding: str = "utf-8"


class Reportable(Protocol):
    """What every result offers to the reporters."""

    @property
    def kind(self) -> str:
        """Name of the module in ``report/kinds`` that knows what to say about it."""

    @property
    def version(self) -> str:
        """Of the program that made it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document: plain types, None where undefined."""


class Reporter(Protocol):
    """What a reporter module offers."""

    SUFFIXES: tuple[str, ...]

    def render(self, result: Reportable, options: ReportOptions) -> str | bytes:
        """Return the whole report, as text or as the bytes of a picture."""


def reporter_for(name: str) -> Reporter:
    """Return the reporter of a file name such as "report.json", or of a suffix such as ".json".

    Raises
    ------
    UsageError
        When no reporter claims the name or its suffix, naming those that exist.
    MachineError
        When a library that it needs is not installed.
    """
    modules = list(_modules())
    dot = name.rfind(".")
    suffix = name[dot:].lower() if dot >= 0 else ""
    chosen = [one for one in modules if name.lower() in _names(one)] or [
        one for one in modules if suffix in one.SUFFIXES
    ]
    if not chosen:
        raise UsageError(_unknown(suffix, modules))
    for needed in getattr(chosen[0], "REQUIRES", ()):
        require(needed, extra=getattr(chosen[0], "EXTRA", ""))
    return chosen[0]


def tells_errors(reporter: Reporter) -> bool:
    """Whether the reports of evaluations that a reporter makes say what kinds of errors there are."""
    return bool(getattr(reporter, "ERRORS", False))


def _names(module: Reporter) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(module, "NAMES", ())
    return names


def _unknown(suffix: str, modules: Sequence[Reporter]) -> str:
    suffixes = sorted(one for module in modules for one in module.SUFFIXES)
    names = sorted(one for module in modules for one in _names(module))
    got = shown(suffix) if suffix else "no suffix"
    return (
        f"an output's format is chosen by its suffix; got {got}, known are {', '.join(suffixes)}, and the file names"
        f" {', '.join(names)}.{did_you_mean(suffix, suffixes)}"
    )


def _modules() -> Iterator[Reporter]:
    for info in pkgutil.iter_modules(outputs.__path__):
        module = importlib.import_module(f"{outputs.__name__}.{info.name}")
        if hasattr(module, "SUFFIXES"):  # what speaks to a CI system is an output, and no report of a file
            yield module
