"""Running a saved evaluation again: what a result says about itself is read, and what comes out is compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from jaccard_eval import __version__
from jaccard_eval.data.protocol import Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import evaluate_inputs
from jaccard_eval.features.verify.result import VERSION_FIELD, Difference, Verification, differences
from jaccard_eval.findings import Finding, FindingLog, Severity, Where
from jaccard_eval.options import Bootstrap, EvaluateOptions, ReadOptions, Slice
from jaccard_eval.runs import (
    SavedProtocol,
    _converted,
    invalid_document,
    read_document,
    require_result,
    saved_protocol,
)
from jaccard_eval.text import shown, shown_json


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """A saved result: as the user named it, its document, and the rules and options that made it."""

    path: str
    document: dict[str, Any]
    protocol: Protocol
    options: EvaluateOptions


def verify(result: str | os.PathLike[str], gt: str | os.PathLike[str], pred: str | os.PathLike[str]) -> Verification:
    """Run a saved evaluation again, with its own rules and options, and say what is not the same.

    Parameters
    ----------
    result : path
        JSON document of an evaluation.
    gt, pred : path
        Its inputs, wherever they are now.

    Returns
    -------
    Verification

    Raises
    ------
    DataError
        When the result or an input cannot be used.
    """
    saved = read_saved(Path(result))
    try:
        again = evaluate_inputs(gt, pred, saved.protocol, saved.options, version=__version__)
    except UsageError as error:  # the call is the saved result's, not the user's
        raise invalid_document(Path(result), f"cannot be run again: {error}") from None
    return compare(saved, again)


def read_saved(path: Path) -> Saved:
    """Read the JSON document of an evaluation.

    Raises
    ------
    DataError
        When it is no such document, or lacks what it takes to run it again.
    """
    document = read_document(path)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in (None, EvaluationResult.kind):
        raise UsageError(
            f"{shown(str(path))} is a result of the kind {shown_json(kind)}; only evaluations are run again"
        )
    require_result(path, document, (EvaluationResult.kind,))
    try:
        rules = saved_protocol(document["protocol"])
        options = _converted(document["options"], EvaluateOptions, "options")
    except UsageError as error:
        raise invalid_document(path, f"cannot be run again: {error}") from None
    unknown = _unknown_names(document)
    if unknown:
        raise invalid_document(path, f"cannot be run again: {', '.join(map(shown, unknown))} is of another version")
    return Saved(str(path), document, rules, options)


def compare(saved: Saved, again: EvaluationResult) -> Verification:
    """Say what of a saved result is not the same now."""
    compared, unequal = differences(saved.document, again.to_dict())
    return Verification(
        path=saved.path,
        gt=again.gt.path,
        pred=again.pred.path,
        version=again.version,
        signature=again.signature,
        saved_signature=saved.document["signature"],
        compared=compared,
        differences=unequal,
        findings=_findings(saved.path, compared, unequal),
    )


def _unknown_names(document: Mapping[str, Any]) -> list[str]:
    """Return the rules and options that this version does not know: left out, another evaluation would be run."""
    options = document["options"]
    parts: list[tuple[str, Mapping[str, Any], type]] = [
        ("protocol", document["protocol"], SavedProtocol),
        ("options", options, EvaluateOptions),
        *((f"options.{side}", options.get(side) or {}, ReadOptions) for side in ("gt_options", "pred_options")),
        ("options.bootstrap", options.get("bootstrap") or {}, Bootstrap),
        *((f"options.slices[{i}]", one, Slice) for i, one in enumerate(options.get("slices") or ())),
    ]
    known = {kind: {field.name for field in fields(kind)} for _, _, kind in parts}
    return [f"{place}.{name}" for place, given, kind in parts for name in given if name not in known[kind]]


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
        fix=_advice({one.name for one in others}),
        summary=f"{len(others):,} of {compared:,} values are not the same",
    )
    return found.findings()


def _change(one: Difference) -> str:
    delta = ""
    if isinstance(one.saved, int | float) and isinstance(one.again, int | float):
        delta = f" ({one.again - one.saved:+.3g})"
    return f"was {shown(_text(one.saved))}, is {shown(_text(one.again))}{delta}"


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
