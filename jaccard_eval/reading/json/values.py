"""JSON text as Python values, with its faults kept for a report: repeated keys, infinite numbers, bad syntax.

For loaders that want to name every fault of a file. The quick, strict way to read large files is a typed decoder.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from jaccard_eval.errors import DataError, FindingLog, Where, shown, shown_json

MAX_INTEGER_DIGITS = 4300  # sys.int_info.default_max_str_digits: longer ones take quadratic time to convert
_TOO_DEEP = "arrays or objects are nested too deep to be annotations"
_SNIPPET = 20  # characters shown of what stands at a syntax error
_KINDS = {bool: "a boolean", str: "a text", list: "an array", dict: "an object", type(None): "null"}


class RepeatedKeys(dict[str, Any]):
    """An object of a file that has a key more than once; holds the last value of each, as all readers do."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)


def parse_json(path: Path, text: str) -> Any:
    """Parse one JSON document; NaN, Infinity and integers too long to convert become floats that are not finite.

    Raises
    ------
    DataError
        When the text is no JSON; with line, column and what was found there.
    """
    if not text.strip(" \t\r\n"):
        fix = "Export it again."
        raise DataError.single(
            "file-empty", Where(str(path)), "the file is empty but for white space: no data", fix=fix
        )
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        log = FindingLog()
        _record_syntax(log, Where(str(path), line=error.lineno), text, error)
        raise DataError(log.findings()) from None
    except RecursionError:
        raise DataError.single("json-depth", Where(str(path)), _TOO_DEEP, fix="Export the file again.") from None


def parse_json_lines(path: Path, text: str, findings: FindingLog) -> list[tuple[int, Any]]:
    """Parse JSON Lines; return each value with the number of its line, counted from 1. Blank lines are skipped.

    Lines that are no JSON are recorded in `findings`.
    """
    values = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(" \t\r"):
            continue
        try:
            values.append((number, _loads(line)))
        except json.JSONDecodeError as error:
            _record_syntax(findings, Where(str(path), line=number), line, error)
        except RecursionError:
            findings.error("json-depth", Where(str(path), line=number), _TOO_DEEP)
    return values


def looks_like_json_lines(text: str) -> bool:
    """Whether the text has several lines and the first is a JSON object by itself."""
    first, _, rest = text.strip().partition("\n")
    if not rest or not first.startswith("{"):
        return False
    try:
        return isinstance(_loads(first), dict)
    except (json.JSONDecodeError, RecursionError):
        return False


def kind_of(value: object) -> str:
    """Name the kind of a JSON value, with its article."""
    return _KINDS.get(dict if isinstance(value, dict) else type(value), "a number")


def described_json(value: object) -> str:
    """Return a value for a message, with its kind."""
    return "null" if value is None else f"{shown_json(value)} ({kind_of(value)})"


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: float) -> bool:
    """Whether a number fits a float and is neither NaN nor infinite."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _record_syntax(findings: FindingLog, where: Where, text: str, error: json.JSONDecodeError) -> None:
    expected = (error.msg[0].lower() + error.msg[1:]).removesuffix(" at")
    found = text[error.pos : error.pos + _SNIPPET].lstrip()
    detail = f"not valid JSON, column {error.colno}: {expected}, "
    detail += f"found {shown(found)}" if found else "but the data ends here (truncated?)"
    findings.error("json-syntax", where, detail, fix="Export the file again, or mend it at that place.")


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer of more than MAX_INTEGER_DIGITS digits
        return json.loads(text, object_pairs_hook=_object, parse_int=_bounded_int)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    return values if len(values) == len(pairs) else RepeatedKeys(pairs)


def _bounded_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else math.inf
