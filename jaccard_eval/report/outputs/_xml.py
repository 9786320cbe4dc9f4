"""Text for XML 1.0: what the standard forbids, even escaped, is spelt out; the rest is escaped."""

from __future__ import annotations

import re

# All but the characters of production [2] of XML 1.0, fifth edition: most control characters, and lone surrogates.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# By hand: the standard library's escapes load what speaks to servers, too.
_CONTENT = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_ATTRIBUTE = {**_CONTENT, ord('"'): "&quot;", ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;"}


def xml_text(text: str) -> str:
    """Return the content of an element."""
    return _allowed(text).translate(_CONTENT)


def xml_attributes(**attributes: str | int) -> str:
    """Return attributes, each after a blank; underscores at the end of names are left off."""
    pairs = ((name.rstrip("_"), _allowed(str(value)).translate(_ATTRIBUTE)) for name, value in attributes.items())
    return "".join(f' {name}="{value}"' for name, value in pairs)


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
