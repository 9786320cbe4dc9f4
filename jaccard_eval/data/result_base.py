"""What every result can do by itself: save itself, become a table or a figure, and show itself in a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from jaccard_eval.data.document import result_document
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.registry import provided
from jaccard_eval.text import pluralise, printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Result:
    """Base of all results; what a result is in one line is its own business (`_summary`)."""

    __slots__ = ()

    kind: ClassVar[str]
    reported_by: ClassVar[str]
    # Characters that the text of a result takes at most.
    text_limit: ClassVar[int] = 1_000

    if TYPE_CHECKING:
        findings: tuple[Finding, ...]
        version: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return result_document(self, {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a report as the command line does, in the format of the suffix: .json, .html, .csv, .md, .svg, ...

        Parameters
        ----------
        path : path
            A file that may exist; it is replaced when all is written.

        Raises
        ------
        UsageError
            When there is no such report, this result has none, or the file is one that was read.
        MachineError
            When it cannot be written, or a library is not installed.
        """
        provided("results").save(self, path)

    def to_frame(self) -> pd.DataFrame:
        """Return its rows as a pandas table; see `jaccard_eval.to_frame`."""
        frame: pd.DataFrame = provided("results").to_frame(self)
        return frame

    def plot(self) -> Figure:
        """Return its charts as one matplotlib figure.

        Raises
        ------
        UsageError
            When results of this kind have no charts.
        MachineError
            When matplotlib is not installed.
        """
        figure: Figure = provided("results").plot(self)
        return figure

    def __repr__(self) -> str:
        """Return the result in one line, and its warnings in another."""
        texts = []
        for severity in (Severity.ERROR, Severity.WARNING):
            codes = [finding.code for finding in self.findings if finding.severity is severity]
            if codes:
                texts.append(f"{pluralise(len(codes), severity)}: {', '.join(dict.fromkeys(codes))}")
        found = "".join(f"\n{text}" for text in texts)
        line = f"<{type(self).__name__} {printable(self._summary())}>"
        room = self.text_limit - len(found)
        return (line if len(line) <= room else f"{line[: room - 2]}…>") + found

    def _repr_html_(self) -> str:
        """Return the report as a piece of HTML, for a cell of a notebook."""
        html: str = provided("results").to_html(self)
        return html

    def _summary(self) -> str:
        raise NotImplementedError


def values_text(values: Mapping[str, float]) -> str:
    """Return named numbers in one line, as in ``AP=0.5046, AP50=0.7000``."""
    return ", ".join(f"{name}={value:.4f}" for name, value in values.items())


def listed(texts: Iterable[str], shown: int = 5) -> str:
    """Return the first few of some texts in one line, and how many more there are."""
    known = tuple(texts)
    more = [f"and {len(known) - shown:,} more"] if len(known) > shown else []
    return "; ".join([*known[:shown], *more])
