"""Text for XML 1.0: what the standard forbids, even escaped, is spelt out; the rest is escaped."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

# All but the characters of production [2] of XML 1.0, fifth edition: most control characters, and lone surrogates.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return the content of an element."""
    return escape(_allowed(text))


def xml_attributes(**attributes: str | int) -> str:
    """Return attributes, each after a blank; underscores at the end of names are left off."""
    return "".join(f" {name.rstrip('_')}={quoteattr(_allowed(str(value)))}" for name, value in attributes.items())


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
