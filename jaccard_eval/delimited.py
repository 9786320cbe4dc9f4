"""Cells of delimited text: quoted where they must be, and inert in a spreadsheet."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula (OWASP, CSV injection)


def quoted(cell: str, delimiter: str = ",") -> str:
    """Quote as RFC 4180 says, and blanks at an end; the csv module leaves a lone carriage return bare."""
    if not any(character in cell for character in (delimiter, '"', "\r", "\n")) and cell == cell.strip():
        return cell
    return '"' + cell.replace('"', '""') + '"'


def inert(text: str) -> str:
    """Keep a spreadsheet from running a text."""
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet takes a text for a formula."""
    return text.startswith(FORMULA_STARTS)
