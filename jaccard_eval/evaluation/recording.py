"""The options of an evaluation as plain types, which its result keeps, and back: what it takes to run it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from jaccard_eval.formats import ReadOptions

if TYPE_CHECKING:
    from jaccard_eval.evaluation.sides import SideOptions

DEFAULT_EXTRA_IMAGES = "error"


def record_options(sides: SideOptions, **others: Any) -> dict[str, Any]:
    """Return what was asked for beside the protocol, as the user gave it; what was left out is left out.

    The names are those of `api.evaluate`.
    """
    recorded = {name: _recorded(value) for name, value in (sides | others).items()}
    if recorded.get("extra_images") == DEFAULT_EXTRA_IMAGES:
        del recorded["extra_images"]
    return {name: value for name, value in recorded.items() if _is_given(value)}


def restore_options(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `api.evaluate` that were recorded.

    Raises
    ------
    DataError
        When a folder of images does not exist any more.
    UsageError
        When a number is out of range.
    """
    restored = dict(recorded)
    for name in ("gt_options", "pred_options"):
        restored[name] = _read_options(recorded.get(name, {}))
    if "bootstrap" in recorded:
        from jaccard_eval.data.intervals import Bootstrap

        restored["bootstrap"] = Bootstrap(**recorded["bootstrap"])
    if "slices" in recorded:
        from jaccard_eval.features.gates.rules import Slice

        restored["slices"] = tuple(Slice(**one | {"patterns": tuple(one["patterns"])}) for one in recorded["slices"])
    return restored


def _recorded(value: Any) -> Any:
    if isinstance(value, ReadOptions):
        names = (field.name for field in fields(value) if field.name != "role")
        changed = {name: getattr(value, name) for name in names if getattr(value, name) != _DEFAULTS[name]}
        return {name: _recorded(one) for name, one in changed.items()}
    if isinstance(value, Mapping):
        return {str(key): str(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_recorded(one) for one in value]
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _recorded(one) for name, one in given.items() if one is not None}
    root = getattr(value, "root", None)  # of a folder of images
    return value if root is None else str(root)


_DEFAULTS = {field.name: getattr(ReadOptions(), field.name) for field in fields(ReadOptions)}


def _is_given(value: Any) -> bool:
    """Whether an option was used; 0 is a number like any other."""
    return value is not None and value is not False and value not in ([], {})


def _read_options(recorded: Mapping[str, Any]) -> ReadOptions:
    changes = dict(recorded)
    if "names" in changes:
        changes["names"] = tuple(changes["names"])
    if "images" in changes:
        from jaccard_eval.reading.images import ImageFolder

        changes["images"] = ImageFolder(changes["images"])
    return ReadOptions(**changes)
