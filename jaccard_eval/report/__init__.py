"""The outputs: one module per format of a report, found by listing and picked by the suffix of a path.

Every module of `outputs` has ``REPORTERS``: what it can write, none where it reports to a CI system and writes no file
of its own. Adding a module there adds an output, in the help of ``-o`` as well; nothing else changes. What is reported
about a result is the business of the feature that it comes from.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from jaccard_eval.errors import UsageError, require
from jaccard_eval.extensions import REPORTERS, broken_extension, extension_names, load_extension
from jaccard_eval.frozen import dataclass
from jaccard_eval.report import outputs
from jaccard_eval.text import did_you_mean, quoted_value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report shows, and what its medium can show."""

    # Whether summaries list every class. Tables made for machines (JSON, CSV) always do.
    per_class: bool = False
    # Order of the classes: "name", "gt", "pred" or a metric of the table; None keeps the ground truth's order
    sort: str | None = None
    # How many of the best and of the worst classes summaries list, in that order or by the main metric; None: none
    top: int | None = None
    worst: int | None = None
    # Whether summaries have details that few readers want; and whether a text report is its headline alone
    verbose: bool = False
    quiet: bool = False
    # Whether terminal escapes may be used
    color: bool = False
    # Columns of the terminal that a text report is for; None for pipes and files, where nothing is wrapped
    width: int | None = None
    # Whether it is for a file, which has the whole signature; screens and logs have a short form of it
    is_file: bool = True
    # Of the stream that a text report is for; what it cannot hold is escaped
    encoding: str = "utf-8"
    # How many images with their boxes a page shows; None: as many as it does by itself
    gallery: int | None = None
    # Whether images are files next to the page, which may be large
    large: bool = False
    # Whether a folder of all images has small copies of them
    thumbnails: bool = False
    # First line of a page; empty: the name that the report has
    title: str = ""
    # The folder that a page is written to, from where it shows images; None where it may be read anywhere
    folder: Path | None = None
    # What `labels` suspects, to be listed on the page of an evaluation
    suspects: Sequence[Any] = ()
    # The command as it was given, without its outputs; empty where there was none
    command: str = ""

    @property
    def chooses_classes(self) -> bool:
        """Whether summaries list some of the classes."""
        return self.top is not None or self.worst is not None

    @property
    def lists_classes(self) -> bool:
        """Whether summaries have a table of classes, however many these are."""
        return self.per_class or self.chooses_classes


class Reportable(Protocol):
    """What every result offers to the reporters."""

    @property
    def kind(self) -> str:
        """What it is called in documents."""

    @property
    def reported_by(self) -> str:
        """The module of `features` that reports it, such as "compare.report"."""

    @property
    def version(self) -> str:
        """Of the program that made it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document: plain types, None where undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """A way to write a result of any kind down."""

    # Returns the whole report, as text or as bytes; or the files of a folder by their names
    render: Callable[[Reportable, ReportOptions], str | bytes | Mapping[str, bytes]]
    suffixes: tuple[str, ...] = ()  # with the dot, in lower case
    # Whole names of files, in lower case: these come before all suffixes, for programs that look for ``badge.json``
    # and the like
    names: tuple[str, ...] = ()
    about: str = ""  # its description in the help
    requires: tuple[str, ...] = ()  # libraries, and the extra of the package that installs them
    extra: str = "plot"
    # Whether reports of evaluations have the kinds of errors: whoever writes them finds these first
    errors: bool = False
    # Whether it is of confusions alone, which every engine counts
    confusion: bool = False
    # Whether it shows images by their cost, which evaluations count for it
    images: bool = False


def reporter_for(name: str) -> Reporter:
    """Return the reporter of a file name such as "report.json", or of a suffix such as ".json"."""
    reporters = all_reporters()
    _, dot, end = name.rpartition(".")
    suffix = f"{dot}{end}".lower() if dot else ""
    chosen = _chosen(reporters, name.lower(), suffix)
    if chosen is None:
        reporters = [*reporters, *_added_reporters()]
        chosen = _chosen(reporters, name.lower(), suffix)
    if chosen is None:
        suffixes = sorted(suffix for reporter in reporters for suffix in reporter.suffixes)
        names = sorted(name for reporter in reporters for name in reporter.names)
        got = quoted_value(suffix) if suffix else "no suffix"
        raise UsageError(
            f"an output's format is chosen by its suffix; got {got}, choose from {', '.join(suffixes)}, and the file"
            f" names {', '.join(names)}.{did_you_mean(suffix, suffixes)}"
            + ("" if suffix or name.endswith("/") else f" A folder has a slash: {quoted_value(f'{name}/')}")
        )
    for library in chosen.requires:
        require(library, extra=chosen.extra)
    return chosen


def _chosen(reporters: Sequence[Reporter], name: str, suffix: str) -> Reporter | None:
    """Return the reporter of a whole name, else the first one of a suffix."""
    by_name = (reporter for reporter in reporters if name in reporter.names)
    by_suffix = (reporter for reporter in reporters if suffix in reporter.suffixes)
    return next(by_name, None) or next(by_suffix, None)


def _added_reporters() -> list[Reporter]:
    """Return what installed packages add."""
    added: list[Reporter] = []
    for name in extension_names(REPORTERS):
        reporter = load_extension(REPORTERS, name)
        if not isinstance(reporter, Reporter) or not reporter.suffixes + reporter.names:
            raise broken_extension(REPORTERS, name, "is not a Reporter with suffixes or names")
        added.append(reporter)
    return added


def all_reporters() -> Sequence[Reporter]:
    """Return what all modules of `outputs` can write; importing them loads no NumPy and nothing that draws."""
    names = (f"{outputs.__name__}.{info.name}" for info in pkgutil.iter_modules(outputs.__path__))
    return [reporter for name in names for reporter in importlib.import_module(name).REPORTERS]


def describe_outputs() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return what ``-o`` can write, by suffix and by name, each with what it is, as the help lists it."""
    reporters = [reporter for info in pkgutil.iter_modules(outputs.__path__) for reporter in _described(info.name)]
    by_suffix = sorted((" ".join(reporter.suffixes), reporter.about) for reporter in reporters if reporter.suffixes)
    by_name = sorted((" ".join(reporter.names), reporter.about) for reporter in reporters if reporter.names)
    return by_suffix, by_name


def _described(module: str) -> Sequence[Reporter]:
    """Return the reporters of a module without what renders, from its text where that has them as literals.

    The help lists all outputs: to import what draws and judges for that would take longer than all the rest of it.
    """
    try:
        text = (pkgutil.get_data(outputs.__name__, f"{module}.py") or b"").decode().replace("\r\n", "\n")
        listed: Any = ast.parse(text.partition("\nREPORTERS = ")[2].partition("\n\n")[0], mode="eval").body
        return [
            Reporter(
                render=lambda *_: "",
                **{
                    # Without a name, it is a mapping that is spread: no literal, and an error as well.
                    str(keyword.arg): ast.literal_eval(keyword.value)
                    for keyword in call.keywords
                    if keyword.arg in (None, "suffixes", "names", "about")
                },
            )
            for call in listed.elts
        ]
    except (AttributeError, OSError, SyntaxError, ValueError):
        # Written in another way, or shipped without its text: only the import shows.
        return importlib.import_module(f"{outputs.__name__}.{module}").REPORTERS  # type: ignore[no-any-return]
