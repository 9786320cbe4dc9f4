"""What of a saved result is not the same after its evaluation was run again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaccard_eval.data.document import to_document
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.verify.result import VERSION_FIELD, Difference, Value, Verification
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.text import quoted_value

_SIDES = (("gt", "the ground truth"), ("pred", "the predictions"))
_INPUT_COUNTS = ("images", "boxes", "classes")


def compare_again(path: str, document: Mapping[str, Any], again: EvaluationResult) -> Verification:
    """Say what of a saved result is not the same now."""
    compared, unequal = differences(document, again.to_dict())
    findings = FindingLog()
    others = [difference for difference in unequal if difference.name != VERSION_FIELD]
    # Another version is no difference by itself: what it changes stands in the numbers.
    for difference in unequal:
        if difference.name == VERSION_FIELD:
            detail = f"was made by version {difference.saved}, and this is {difference.again}"
            findings.warning("result-version", Where(path), detail)
    findings.add_rows(
        Severity.ERROR,
        "result-differs",
        range(len(others)),
        lambda row: (Where(path, field=others[row].name), _change(others[row])),
        fix=_advice({difference.name for difference in others}),
        summary=f"{len(others):,} of {compared:,} values are not the same",
    )
    return Verification(
        path=path,
        gt=again.gt.path,
        pred=again.pred.path,
        version=again.version,
        signature=again.signature,
        saved_signature=document["signature"],
        compared=compared,
        differences=unequal,
        findings=findings.findings(),
    )


def _change(difference: Difference) -> str:
    saved, again = difference.saved, difference.again
    delta = ""
    if isinstance(saved, int | float) and isinstance(again, int | float):
        delta = f" ({again - saved:+.3g})"
    before, now = (quoted_value("n/a" if value is None else value) for value in (saved, again))
    return f"was {before}, is {now}{delta}"


def _advice(names: set[str]) -> str:
    """Say what the differences come from, as far as the signature tells."""
    changed = [what for side, what in _SIDES if f"signature.{side}" in names]
    # Other boxes explain other numbers: the inputs come first, then the rules.
    if changed:
        return f"The boxes of {' and of '.join(changed)} are others than those of the saved result."
    if any(name.startswith("signature.") for name in names):
        return "Other rules or another selection counted."
    return (
        "Inputs and rules are the same: detections with equal scores in another order, another version, or an edited"
        " result."
    )


def differences(saved: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[int, tuple[Difference, ...]]:
    """Compare two JSON documents of evaluations: how many values there are, and those that are not equal."""
    saved_values, new_values = compared_values(saved), compared_values(again)
    names = list(dict.fromkeys([*new_values, *saved_values]))
    unequal = (
        name
        for name in names
        if name not in saved_values or name not in new_values or saved_values[name] != new_values[name]
    )
    return len(names), tuple(Difference(name, saved_values.get(name), new_values.get(name)) for name in unequal)


def compared_values(document: Mapping[str, Any]) -> dict[str, Value]:
    """Return what of a document `differences` compares, by place.

    These are the fields of the signature, counts of the inputs, metrics with their support, classes, operating points,
    slices, and all intervals with how they were found.
    """
    # Paths, formats and findings are left out: they change no number, and a result is verified on other machines.
    inputs = {side: {name: document["inputs"][side].get(name) for name in _INPUT_COUNTS} for side, _ in _SIDES}
    values = _leaves("signature", document["signature_fields"]) | _leaves("inputs", inputs)
    for part in ("metrics", "support"):
        values |= _leaves(part, document[part])
    for row in document["per_class"]:
        values |= _leaves(f"per_class.{row.get('class')}", row, but="class")
    for point in document["operating_points"]:
        place = f"operating_points.{point.get('class') or 'all'}.{point.get('iou')}"
        values |= _leaves(place, {name: value for name, value in point.items() if name != "iou"}, but="class")
    # The file of groups may have moved; the digest of the groups is compared.
    values |= _leaves("bootstrap", document.get("bootstrap", {}), but="group_by")
    values |= _leaves("intervals", document.get("intervals", {}))
    for row in document.get("slices", ()):
        values |= _leaves(f"slices.{row.get('slice')}", row, but="slice")
    return {name: to_document(value) for name, value in values.items()}


def _leaves(place: str, value: Any, *, but: str = "") -> dict[str, Value]:
    """Return the values of a nested document by place, those of a pair as its low and its high; without one key."""
    if isinstance(value, list):
        value = dict(zip(("low", "high"), value, strict=False))
    if not isinstance(value, Mapping):
        return {place: value}
    return {
        name: leaf
        for key, inner in value.items()
        if key != but
        for name, leaf in _leaves(f"{place}.{key}", inner).items()
    }
