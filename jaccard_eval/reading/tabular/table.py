"""What the reading of boxes needs of a table, in whatever kind of file it stands: delimited text or typed columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import Key, key_order
from jaccard_eval.errors import Where
from jaccard_eval.reading.keys import CodedKeys
from jaccard_eval.reading.tabular.columns import Columns

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Images or classes of rows, and what the table says of them beside.

    Parameters
    ----------
    keys : CodedKeys
    names : mapping of int or str to str
        Names of keys, in the order of reports; those without a box may be among them. Empty where keys are the names.
    named : bool
        Whether these names are more than the keys as text.
    beside : int, optional
        Column of the keys, where they stand beside the names; no other list of names is asked then.
    """

    keys: CodedKeys
    names: Mapping[Key, str]
    named: bool = True
    beside: int | None = None


class Rows(Protocol):
    """Rows that have a box each, or name an image without one, in whatever kind of file they stand."""

    @property
    def header(self) -> tuple[str, ...]:
        """Name of each column."""

    @property
    def headerless(self) -> bool:
        """Whether the names are not in the file."""

    @property
    def listed(self) -> bool:
        """Whether the rows name all images there are."""

    @property
    def units(self) -> str | None:
        """The units of the boxes, where the file says so."""

    def __len__(self) -> int: ...

    def where(self, row: int, column: int | None = None) -> Where:
        """Return the place of a row, or of one of its cells."""

    def has_value(self, column: int, rows: Codes) -> BoolArray:
        """Return which cells of a column hold anything."""

    def images(self, columns: Columns, rows: Codes) -> Named:
        """Return the images of some rows."""

    def classes(self, columns: Columns, rows: Codes) -> Named:
        """Return the classes of some rows: integers where every one is an integer, else texts."""


def pair_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name of each id, sorted by id; none unless each has one, and no other has it."""
    first = _first_codes(ids, names)
    is_one_to_one = len(ids.distinct) == len(names.distinct) == len(np.unique(first))
    return first_names(ids, names) if is_one_to_one and bool((first[ids.codes] == names.codes).all()) else {}


def first_names(ids: CodedKeys, names: CodedKeys) -> dict[Key, str]:
    """Return the name that stands beside each id where it is first seen, sorted by id."""
    rows = _first_codes(ids, names).tolist()
    named = zip(ids.distinct, (str(names.distinct[row]) for row in rows), strict=True)
    return dict(sorted(named, key=lambda pair: key_order(pair[0])))


def _first_codes(ids: CodedKeys, names: CodedKeys) -> Codes:
    first = np.zeros(len(ids.distinct), dtype=np.int64)  # (ids,) of the rows of names
    first[ids.codes[::-1]] = names.codes[::-1]  # backwards: the first row is written last and stays
    return first
