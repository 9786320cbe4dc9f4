"""What of a saved result is not the same after its evaluation was run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaccard_eval.data.document import to_document
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.verify.result import VERSION_FIELD, Difference, Value, Verification
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.text import quoted_value


def compare_again(path: str, document: Mapping[str, Any], again: EvaluationResult) -> Verification:
    """Say what of a saved result is not the same now."""
    compared, unequal = differences(document, again.to_dict())
    return Verification(
        path=path,
        gt=again.gt.path,
        pred=again.pred.path,
        version=again.version,
        signature=again.signature,
        saved_signature=document["signature"],
        compared=compared,
        differences=unequal,
        findings=_findings(path, compared, unequal),
    )


def _findings(path: str, compared: int, unequal: Sequence[Difference]) -> tuple[Finding, ...]:
    found = FindingLog()
    version = [one for one in unequal if one.name == VERSION_FIELD]
    others = [one for one in unequal if one.name != VERSION_FIELD]
    for one in version:
        detail = f"was made by version {one.saved}, and this is {one.again}"
        found.warning("result-version", Where(path), detail)
    found.add_rows(
        Severity.ERROR,
        "result-differs",
        range(len(others)),
        lambda row: (Where(path, field=others[row].name), _change(others[row])),
        fix=_advice({other.name for other in others}),
        summary=f"{len(others):,} of {compared:,} values are not the same",
    )
    return found.findings()


def _change(one: Difference) -> str:
    delta = ""
    if isinstance(one.saved, int | float) and isinstance(one.again, int | float):
        delta = f" ({one.again - one.saved:+.3g})"
    return f"was {quoted_value(_text(one.saved))}, is {quoted_value(_text(one.again))}{delta}"


def _text(value: Any) -> Any:
    return "n/a" if value is None else value


def _advice(names: set[str]) -> str:
    """Say what the differences come from, as far as the signature tells."""
    changed = [what for side, what in _SIDES if f"signature.{side}" in names]
    if changed:
        return f"The boxes of {' and of '.join(changed)} are others than those of the saved result."
    if any(name.startswith("signature.") for name in names):
        return "Other rules or another selection counted."
    return (
        "Inputs and rules are the same: detections with equal scores in another order, another version, or an edited"
        " result."
    )


_SIDES = (("gt", "the ground truth"), ("pred", "the predictions"))


def differences(saved: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[int, tuple[Difference, ...]]:
    """Compare two JSON documents of evaluations: how many values there are, and those that are not equal.

    Compared are the fields of the signature, counts of the inputs, metrics with their support, classes, operating
    points, slices, and all intervals with how they were found. Paths, formats and findings are not: they change no
    number.
    """
    saved_values, new_values = compared_values(saved), compared_values(again)
    names = list(dict.fromkeys([*new_values, *saved_values]))
    unequal = (
        name
        for name in names
        if name not in saved_values or name not in new_values or saved_values[name] != new_values[name]
    )
    return len(names), tuple(Difference(name, saved_values.get(name), new_values.get(name)) for name in unequal)


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
