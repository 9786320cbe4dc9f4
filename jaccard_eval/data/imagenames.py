"""Spellings of a picture's name: without folder or suffix, folded, without what tools add, as a number. Pure text."""

from __future__ import annotations

import re
import unicodedata

_COMMON_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_RARE_SUFFIXES = (".avif", ".dib", ".dng", ".heic", ".heif", ".jp2", ".mpo", ".pgm")
PICTURE_SUFFIXES = frozenset({*_COMMON_SUFFIXES, *_RARE_SUFFIXES})

# Roboflow exports photo.jpg as photo_jpg.rf.<hash>.jpg; the hash is another in every version of a data set.
_ROBOFLOW = re.compile(r"(?:_(?:bmp|gif|jpe?g|jp2|png|ppm|tiff?|webp))?\.rf\.[0-9a-z]{8,}$")
# Label Studio puts eight hexadecimal digits and a dash before the name of an uploaded picture.
_LABEL_STUDIO = re.compile(r"^[0-9a-f]{8}_(?=.)")


def posix(name: str) -> str:
    """Return a path with forward slashes and without a leading ``./``."""
    return name.replace("\\", "/").removeprefix("./")


def last_part(path: str) -> str:
    """Return a path without its folders."""
    return path.rpartition("/")[2]


def is_image_name(path: str) -> bool:
    """Whether a file name has the suffix of a picture."""
    _, dot, suffix = path.rpartition(".")
    return bool(dot) and f".{suffix.lower()}" in PICTURE_SUFFIXES


def without_suffix(path: str) -> str:
    """Drop the suffix of a picture; a dot elsewhere belongs to the name."""
    stem, dot, suffix = path.rpartition(".")
    return stem if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES else path


def stem_of(name: str) -> str:
    """Return a name without folders and picture suffix."""
    return last_part(without_suffix(posix(name)))


def path_ends(path: str) -> list[str]:
    """Return the path and its ends, longest first: a/b/c, b/c, c."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def without_case(path: str) -> str:
    """Spell a path without regard to case and Unicode composition (NFC or NFD), as some file systems do."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def folded(path: str) -> str:
    """Spell a path without regard to case, Unicode composition (NFC or NFD), or space, dash and underscore."""
    return without_case(path).replace(" ", "_").replace("-", "_")


def undecorated_forms(path: str) -> list[str]:
    """Return what a folded path without suffix may be called elsewhere, the fullest form first.

    What Roboflow adds is always dropped. Each end of the path follows with its folders joined by underscores, as
    Ultralytics names label files, and without the prefix of Label Studio.

    Examples
    --------
    >>> undecorated_forms("a/1_jpg.rf.0123456789abcdef")
    ['a_1', '1']
    >>> undecorated_forms("ab12cd34_left")
    ['ab12cd34_left', 'left']
    """
    flat = [end.replace("/", "_") for end in path_ends(_ROBOFLOW.sub("", path))]
    return [form for end in flat for form in dict.fromkeys((end, _LABEL_STUDIO.sub("", end)))]


def number_text(name: str) -> str | None:
    """Return the whole number that a stem writes, without leading zeros; None for any other name.

    Examples
    --------
    >>> number_text("val/000000000042.jpg")
    '42'
    """
    stem = stem_of(name)
    return (stem.lstrip("0") or "0") if stem.isascii() and stem.isdecimal() else None
