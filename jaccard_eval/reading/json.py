"""Plain values of JSON: their kinds, and the keys of a document by a look at its head."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.patterns import pattern
from jaccard_eval.text import quoted_value, shown_json

MAX_INTEGER_DIGITS = 4300  # sys.int_info.default_max_str_digits: longer ones take quadratic time to convert
_TOO_DEEP = "arrays or objects are nested too deeply for annotations"
_SNIPPET = 20  # characters shown of what stands at a syntax error
_KINDS = {bool: "a boolean", str: "a string", list: "an array", dict: "an object", type(None): "null"}


class RepeatedKeys(dict[str, Any]):
    """An object of a file that has a key more than once; holds the last value of each, as all readers do."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)


def parse_json(path: Path, text: str) -> Any:
    """Parse one JSON document; NaN, Infinity and integers too long to convert become floats that are not finite."""
    if not text.strip(" \t\r\n"):
        fix = "Export it again."
        raise DataError.single("file-empty", Where(str(path)), "the file holds only whitespace: no data", fix=fix)
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        log = FindingLog()
        _record_syntax(log, Where(str(path), line=error.lineno), text, error)
        raise DataError(log.findings()) from None
    except RecursionError:
        raise too_deep(path) from None


def too_deep(path: Path) -> DataError:
    """Return the error about a file that is nested deeper than Python descends; its parser may go deeper."""
    return DataError.single("json-depth", Where(str(path)), _TOO_DEEP, fix="Export the file again.")


def parse_json_lines(path: Path, text: str, findings: FindingLog) -> list[tuple[int, Any]]:
    """Parse JSON Lines; return each value with the number of its line, counted from 1. Blank lines are skipped.

    Lines that are not JSON are recorded in `findings`.
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


def is_finite_number(value: Any) -> bool:
    """Whether a JSON value is a number that fits a float, and neither NaN nor infinite."""
    return is_number(value) and is_finite(value)


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
    if error.msg.startswith("Unterminated string") and "\n" not in found:
        detail += "and the data ends within it (truncated?)"
    else:
        detail += f"found {quoted_value(found)}" if found else "but the data ends here (truncated?)"
    findings.error("json-syntax", where, detail, fix="Export the file again, or fix it at that place.")


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer of more digits than Python converts. The second pass costs little, for such files are rare.
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=lambda digits: int(digits) if len(digits) <= MAX_INTEGER_DIGITS else math.inf,
        )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Objects without repeated keys, nearly all of them, stay plain dictionaries, which are faster.
    values = dict(pairs)
    return values if len(values) == len(pairs) else RepeatedKeys(pairs)


_QUOTE = ord('"')
_BLOCK = 1 << 18  # bytes searched at a time, so that the intermediate arrays stay in the cache
_LONGEST_KEY = 64  # bytes; longer distances between quotes are not distinguished
_TOKEN = pattern(rb'"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?|[\[{\]}]', re.DOTALL)  # a key ends with its colon
_ESCAPED_ASCII = pattern(rb"\\u00[2-7]")


def record_keys(head: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of the outermost object, and those of the objects directly in an outermost array.

    `head` may be cut off anywhere.
    """
    outer: set[bytes] = set()
    inner: set[bytes] = set()
    nesting: list[bytes] = []
    # The tokens as plain bytes, not as matches: this is most of what it costs to recognise a file.
    for token in _TOKEN.findall(head):
        if token in (b"{", b"["):
            nesting.append(token)
        elif token in (b"}", b"]"):
            del nesting[-1:]
        elif len(nesting) < 3 and token.endswith(b":"):
            if nesting == [b"{"]:
                outer.add(token)
            elif nesting == [b"[", b"{"]:
                inner.add(token)
    return frozenset(map(_key_text, outer)), frozenset(map(_key_text, inner))


def _key_text(token: bytes) -> str:
    return token[1 : token.rindex(b'"')].decode("utf-8", "replace")


def may_repeat_keys(
    data: bytes, explained: Mapping[str, int], *, texts: int = 0, set_aside: Sequence[bytes] = ()
) -> bool:
    """Whether `data` holds more of some key than its decoded records explain.

    False is certain; True asks for a real parse, because a text may equal a key or an object inside a record may have
    the same one. `explained` counts how often the decoder found each key that matters, and `texts` how many texts it
    found as values; keys in the parts that were kept unparsed (`set_aside`) do not matter.
    """
    # A key may be written with escapes, and then no search for its text finds it.
    if b"\\" in data and b"\\u00" in data and _ESCAPED_ASCII.search(data):
        return True
    if count_quotes(data) == 2 * (sum(explained.values()) + texts):
        return False
    at_most = _count_spans(data)
    for part in set_aside:
        at_most -= _count_spans(part)
    # Counting spans of all lengths is one pass; only keys that it cannot clear are searched for one by one.
    suspects = [key for key, count in explained.items() if at_most[(len(key) + 1) << 8 | ord(key[0])] > count]
    return any(
        _count_key(data, key) - sum(_count_key(part, key) for part in set_aside) > explained[key] for key in suspects
    )


def count_quotes(data: bytes) -> int:
    """Count the quotes in a document: two for every key and every text."""
    text = np.frombuffer(data, dtype=np.uint8)
    return sum(int(np.count_nonzero(text[at : at + _BLOCK] == _QUOTE)) for at in range(0, len(text), _BLOCK))


def _count_key(data: bytes, key: str) -> int:
    return data.count(b'"%s"' % key.encode())


def _count_spans(data: bytes) -> npt.NDArray[np.int64]:
    """Count the spans between neighbouring quotes by length and first byte; never fewer than there are keys."""
    text = np.frombuffer(data, dtype=np.uint8)
    counts = np.zeros(_LONGEST_KEY << 8, dtype=np.int64)
    for at in range(0, len(text), _BLOCK):
        # Blocks overlap by the longest key, so that no span is cut; each is counted where it begins.
        block = text[at : at + _BLOCK + _LONGEST_KEY]
        quotes = np.flatnonzero(block == _QUOTE).astype(np.int32)
        begins = quotes[:-1][quotes[:-1] < _BLOCK]
        length = np.minimum(np.diff(quotes)[: len(begins)], _LONGEST_KEY - 1)
        counts += np.bincount(length << 8 | block[begins + 1], minlength=len(counts))
    return counts
