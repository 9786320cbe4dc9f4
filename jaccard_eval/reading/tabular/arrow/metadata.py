"""What the schema of a table says beside its columns: names of classes, and how a table was written here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaccard_eval.data.dataset import Key
from jaccard_eval.reading.tabular.objects.rows import OBJECTS, SINGULAR

OWN_KEY = b"jaccard_eval"
HUGGING_FACE_KEY = b"huggingface"

ClassNames = Mapping[str, Mapping[Key, str]]  # by the name of the column that has the keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """What a table says of itself.

    Parameters
    ----------
    class_names : mapping of str to mapping of int or str to str
        Names of classes by key, for the columns that have the keys.
    own : bool
        Whether it was written here, so that the columns of ids are the keys.
    units : {"px", "norm"}, optional
    listed, named : bool
        As in `jaccard_eval.reading.tabular.objects.table.Table`.
    """

    class_names: ClassNames = field(default_factory=dict)
    own: bool = False
    units: str | None = None
    listed: bool = False
    named: bool = True


def dump_remarks(column: str, classes: Mapping[Key, str], *, units: str, listed: bool, named: bool) -> bytes:
    """Return what a table written here says of itself."""
    about = {"column": column, "classes": list(classes.items()), "units": units, "listed": listed, "named": named}
    return json.dumps(about).encode()


def read_remarks(metadata: Mapping[bytes, bytes]) -> Remarks:
    """Return what the metadata of a schema says; what is not as expected says nothing."""
    own = _loaded(metadata.get(OWN_KEY, b""))
    if isinstance(own, dict) and own.get("units") in ("px", "norm"):
        names = {str(own.get("column")): dict(_pairs(own.get("classes")))}
        listed, named = own.get("listed") is True, own.get("named") is True
        return Remarks(class_names=names, own=True, units=own["units"], listed=listed, named=named)
    described = _loaded(metadata.get(HUGGING_FACE_KEY, b""))
    return Remarks(class_names=dict(_class_labels(_at(described, "info", "features"))))


def _pairs(classes: Any) -> Iterator[tuple[Key, str]]:
    for one in classes if isinstance(classes, list) else []:
        match one:
            case [int() | str() as key, str() as name] if not isinstance(key, bool):
                yield key, name


def _class_labels(features: Any) -> Iterator[tuple[str, dict[Key, str]]]:
    """Yield the columns that hold indices of named classes, those of objects included."""
    for name, feature in features.items() if isinstance(features, dict) else ():
        if name == OBJECTS:
            yield from _class_labels(_inside(feature))
            continue
        names = _at(_inside(feature), "names")
        if isinstance(names, list) and all(isinstance(one, str) for one in names):
            yield str(SINGULAR.get(name, name)), dict(enumerate(names))


def _inside(feature: Any) -> Any:
    """Return what a list, however it is written, is a list of."""
    while isinstance(feature, list) and len(feature) == 1:
        feature = feature[0]
    while isinstance(feature, dict) and isinstance(feature.get("_type"), str) and "feature" in feature:
        feature = feature["feature"]
    return feature


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
