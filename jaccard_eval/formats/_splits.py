"""The splits of a data set by name: what they are called here, and what tools call them."""

from __future__ import annotations

SPLITS = ("train", "val", "test")
ALIASES = {"validation": "val", "valid": "val"}  # of Hugging Face and darknet, Roboflow and older Ultralytics
SPLIT_NAMES = (*SPLITS, *ALIASES)


def split_of(name: str) -> str:
    """Return the split that a name means; a name that is none comes back."""
    return ALIASES.get(name, name)
