"""The splits of a data set by name: what they are called here, and what tools call them."""

from __future__ import annotations

from collections.abc import Iterable

from jaccard_eval.errors import DataError, FindingLog, Where, did_you_mean, printable, shown

DEFAULT_SPLIT = "val"
SPLITS = ("train", "val", "test")
ALIASES = {"validation": "val", "valid": "val"}  # of Hugging Face and darknet, Roboflow and older Ultralytics
SPLIT_NAMES = (*SPLITS, *ALIASES)


def split_of(name: str) -> str:
    """Return the split that a name means; a name that is none comes back."""
    return ALIASES.get(name, name)


def choose_split(asked: str, given: Iterable[str], where: Where, findings: FindingLog) -> str:
    """Return the split that is asked for; the only one that is given, where none was asked for by name.

    Raises
    ------
    DataError
        When there is no such split.
    """
    known = list(given)
    split = asked if asked in known else split_of(asked)
    if split in known:
        return split
    if asked == DEFAULT_SPLIT and len(known) == 1:
        findings.note(
            "split-train", where, f"there is no split {shown(asked)}; {shown(known[0])}, the only one, is read"
        )
        return known[0]
    detail = f"there is no split {shown(asked)}; there are: {', '.join(map(printable, known)) or 'none'}"
    raise DataError.single("split-missing", where, detail, fix=f"Name one with --split.{did_you_mean(asked, known)}")
