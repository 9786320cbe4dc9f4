"""Which characters of a text could act on a terminal or reorder a line."""

import unicodedata

ACTIVE = {
    "Cc": "control",
    "Cf": "format: bidirectional marks, isolates, joiners, the byte-order mark",
    "Cs": "lone surrogate",
    "Zl": "line separator",
    "Zp": "paragraph separator",
}


def active_characters(text: str) -> set[str]:
    """Return them, but for line feeds."""
    return {character for character in set(text) - {"\n"} if unicodedata.category(character) in ACTIVE}
