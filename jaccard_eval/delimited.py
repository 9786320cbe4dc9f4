"""Cells of delimited text: quoted where they must be, and inert in a spreadsheet."""

from __future__ import annotations

# What a spreadsheet takes for a formula (OWASP, CSV injection); the last four are full-width signs.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
SPREADSHEET_MARKS = ",;\t"  # which of them separates the cells of a .csv depends on the country of the spreadsheet


def quoted(cell: str, delimiter: str = ",") -> str:
    """Quote as RFC 4180 says, blanks at an end, and any mark that a spreadsheet could separate cells by.

    The csv module leaves a lone carriage return bare.
    """
    special = (delimiter, *SPREADSHEET_MARKS, '"', "\r", "\n")
    if not any(character in cell for character in special) and cell == cell.strip():
        return cell
    return '"' + cell.replace('"', '""') + '"'


def inert(text: str) -> str:
    """Keep a spreadsheet from running a text."""
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet takes a text for a formula."""
    return text.startswith(FORMULA_STARTS)
