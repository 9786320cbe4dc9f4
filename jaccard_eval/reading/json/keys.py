"""Keys in the bytes of a JSON document, without parsing it: which are at the top, and whether any may be repeated.

JSON allows a key twice in one object, and typed decoders keep the last without a word. Here quotes are counted instead
of parsing again: what a decoder found explains a number of keys; when the bytes hold no more, no key is repeated.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

_QUOTE = ord('"')
_BLOCK = 1 << 18  # bytes searched at a time, so that the intermediate arrays stay in the cache
_LONGEST_KEY = 64  # bytes; longer distances between quotes are not told apart
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[{]|[\]}]', re.DOTALL)
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")


@functools.lru_cache(maxsize=4)  # every JSON format looks at the same first bytes of an input
def record_keys(head: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of the outermost object, and those of the objects directly in an outermost array.

    `head` may be cut off anywhere.
    """
    outer: set[str] = set()
    inner: set[str] = set()
    nesting: list[bytes] = []
    for token in _TOKEN.finditer(head):
        mark = token.group()[:1]
        if mark in b"[{":
            nesting.append(mark)
        elif mark in b"]}":
            del nesting[-1:]
        elif token.group(2) and nesting == [b"{"]:
            outer.add(token.group(1).decode("utf-8", "replace"))
        elif token.group(2) and nesting == [b"[", b"{"]:
            inner.add(token.group(1).decode("utf-8", "replace"))
    return frozenset(outer), frozenset(inner)


def may_repeat_keys(
    data: bytes, explained: Mapping[str, int], *, texts: int = 0, set_aside: Sequence[bytes] = ()
) -> bool:
    """Whether `data` holds more of some key than its decoded records explain.

    False is certain; True asks for a real parse, because a text may equal a key or an object inside a record may
    have the same one.

    Parameters
    ----------
    data : bytes
        The whole document.
    explained : mapping of str to int
        How often each key that matters was found by the decoder.
    texts : int
        How many texts the decoder found as values.
    set_aside : sequence of bytes
        Parts of the document that were decoded as they stand; their keys do not matter.
    """
    if b"\\" in data and b"\\u00" in data and _ESCAPED_ASCII.search(data):
        return True  # a key may be written with escapes
    if count_quotes(data) == 2 * (sum(explained.values()) + texts):
        return False
    at_most = _count_spans(data)
    for part in set_aside:
        at_most -= _count_spans(part)
    suspects = [key for key, count in explained.items() if at_most[_span_code(key)] > count]
    return any(
        _count_key(data, key) - sum(_count_key(part, key) for part in set_aside) > explained[key] for key in suspects
    )


def count_quotes(data: bytes) -> int:
    """Count the quotes in a document: two for every key and every text."""
    text = np.frombuffer(data, dtype=np.uint8)
    return sum(int(np.count_nonzero(text[at : at + _BLOCK] == _QUOTE)) for at in range(0, len(text), _BLOCK))


def _count_key(data: bytes, key: str) -> int:
    return data.count(b'"%s"' % key.encode())


def _span_code(key: str) -> int:
    """Where `_count_spans` counts a key: by its length and first letter."""
    return (len(key) + 1) << 8 | ord(key[0])


def _count_spans(data: bytes) -> npt.NDArray[np.int64]:
    """Count the spans between neighbouring quotes by length and first byte; never fewer than there are keys."""
    text = np.frombuffer(data, dtype=np.uint8)
    counts = np.zeros(_LONGEST_KEY << 8, dtype=np.int64)
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK + _LONGEST_KEY]
        quotes = np.flatnonzero(block == _QUOTE).astype(np.int32)
        begins = quotes[:-1][quotes[:-1] < _BLOCK]
        length = np.minimum(np.diff(quotes)[: len(begins)], _LONGEST_KEY - 1)
        counts += np.bincount(length << 8 | block[begins + 1], minlength=len(counts))
    return counts
