"""What running an evaluation again gives: the saved and the new value of everything that is not the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaccard_eval.data.document import result_document, to_document
from jaccard_eval.data.signature import signature_dict
from jaccard_eval.findings import Finding

Value = str | float | None
VERSION_FIELD = "signature.v"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same; None where it is undefined or only the other side has it.

    Parameters
    ----------
    name : str
        Its place in the document: ``metrics.AP``, ``signature.gt``, ``per_class.dog.AP50``.
    saved, again : str, float or None
    """

    name: str
    saved: Value
    again: Value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verification:
    """A saved result beside a run of the same evaluation.

    Parameters
    ----------
    path : str
        The saved result, as the user named it.
    gt, pred : str
        The inputs, as the user named them.
    signature, saved_signature : str
        Of the new run, and of the saved one.
    compared : int
        How many values were compared.
    differences : tuple of Difference
        Empty when everything is equal, to the last bit. The version of the tool is a difference as well, but does not
        make a result unequal.
    findings : tuple of Finding
        What differs, as an error; another version, as a warning.
    """

    path: str
    gt: str
    pred: str
    version: str
    signature: str
    saved_signature: str
    compared: int
    differences: tuple[Difference, ...]
    findings: tuple[Finding, ...]

    kind: ClassVar[str] = "verification"

    @property
    def equal(self) -> bool:
        """Whether inputs, rules and numbers are the same; another version of the tool may have made them."""
        return all(one.name == VERSION_FIELD for one in self.differences)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document, schema 1: plain types, None where undefined."""
        return result_document(
            self.kind,
            self.version,
            self.findings,
            **signature_dict(self.signature),
            result=self.path,
            inputs={"gt": {"path": self.gt}, "pred": {"path": self.pred}},
            saved_signature=self.saved_signature,
            equal=self.equal,
            compared=self.compared,
            differences=self.differences,
        )


def differences(saved: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[int, tuple[Difference, ...]]:
    """Compare two JSON documents of evaluations: how many values there are, and those that are not equal.

    Compared are the fields of the signature, counts of the inputs, metrics with their support, classes, operating
    points, slices, and all intervals with how they were found. Paths, formats and findings are not: they change no
    number.
    """
    ours, theirs = compared_values(saved), compared_values(again)
    names = list(dict.fromkeys([*theirs, *ours]))
    unequal = (name for name in names if name not in ours or name not in theirs or ours[name] != theirs[name])
    return len(names), tuple(Difference(name, ours.get(name), theirs.get(name)) for name in unequal)


def compared_values(document: Mapping[str, Any]) -> dict[str, Value]:
    """Return what of a document `differences` compares, by place."""
    values: dict[str, Value] = {f"signature.{name}": one for name, one in document["signature_fields"].items()}
    for side in ("gt", "pred"):
        values |= {f"inputs.{side}.{name}": document["inputs"][side].get(name) for name in _INPUT_COUNTS}
    for part in ("metrics", "support"):
        values |= {f"{part}.{name}": one for name, one in document[part].items()}
    for row in document["per_class"]:
        values |= _leaves(f"per_class.{row.get('class')}", {name: one for name, one in row.items() if name != "class"})
    for point in document["operating_points"]:
        place = f"operating_points.{point.get('class') or 'all'}.{point.get('iou')}"
        values |= {f"{place}.{name}": one for name, one in point.items() if name not in ("class", "iou")}
    how = {name: one for name, one in document.get("bootstrap", {}).items() if name != "group_by"}
    values |= _leaves("bootstrap", how) | _leaves("intervals", document.get("intervals", {}))
    for row in document.get("slices", ()):
        values |= _leaves(f"slices.{row.get('slice')}", {name: one for name, one in row.items() if name != "slice"})
    return {name: to_document(value) for name, value in values.items()}


def _leaves(place: str, value: Any) -> dict[str, Value]:
    """Return the values of a nested document by place; those of a pair as its low and its high."""
    if isinstance(value, list):
        value = dict(zip(("low", "high"), value, strict=False))
    if not isinstance(value, Mapping):
        return {place: value}
    return {name: leaf for key, one in value.items() for name, leaf in _leaves(f"{place}.{key}", one).items()}


_INPUT_COUNTS = ("images", "boxes", "classes")
