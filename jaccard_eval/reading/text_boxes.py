"""Boxes that stand in lines of text: fields are collected as text, then read as numbers all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.errors import FindingLog, Severity, Where, shown
from jaccard_eval.reading.tabular.numbers import parse_numbers

Place = tuple[str, int]  # file and line


@dataclass(slots=True)
class TextBoxes:
    """Lines with a box each, as text, and where each of them stands.

    Parameters
    ----------
    columns : tuple of str
        What the numbers of a line are.
    """

    columns: tuple[str, ...]
    places: list[Place] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # as many of each line as columns, an absent one as an empty text
    uneven: list[tuple[Where, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int, name: str | None = None) -> Where:
        """Return the place of a line."""
        path, line = self.places[row]
        return Where(path, line=line, field=name)

    def add(self, place: Place, image: str, label: str, numbers: Sequence[str]) -> None:
        """Add a line."""
        self.places.append(place)
        self.images.append(image)
        self.labels.append(label)
        self.numbers += numbers

    def refuse(self, place: Place, detail: str) -> None:
        """Keep what is to be said of a line with too few or too many fields."""
        self.uneven.append((Where(place[0], line=place[1]), detail))

    def read(self, findings: FindingLog, *, fix: str) -> FloatArray:
        """Return the numbers, shape (n, columns), NaN where absent; every line and number that is none is told."""
        findings.add_rows(Severity.ERROR, "columns", range(len(self.uneven)), self.uneven.__getitem__, fix=fix)
        numbers, bad = parse_numbers(np.array(self.numbers, dtype=np.object_))
        width = len(self.columns)
        findings.add_rows(
            Severity.ERROR,
            "number-invalid",
            [index for index in bad if self.numbers[index]],
            lambda index: (
                self.where(index // width, self.columns[index % width]),
                f"{shown(self.numbers[index])} is not a plain finite number",
            ),
            fix="Write plain decimal numbers with a point.",
        )
        return numbers.reshape(-1, width)
