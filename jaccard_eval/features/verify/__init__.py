"""What of a saved result is not the same after its evaluation was run again: the saved value, and the new one."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from jaccard_eval.data.document import Also, in_order, to_document, written_as
from jaccard_eval.data.metricref import EXTERNAL
from jaccard_eval.data.result import EvaluationResult, GateResult, GateVerdict, Result
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.errors import UsageError
from jaccard_eval.features.gates import gates_of
from jaccard_eval.features.gates.judging import Answers, Bench, answers_of, find_ties, gate_findings, weighed_again
from jaccard_eval.findings import Finding, FindingLog, Severity, Where, parse_finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import staged
from jaccard_eval.text import pluralise, quoted_value

Value = str | float | None
VERSION_FIELD = "signature.v"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same; None where it is undefined or only the other side has it."""

    name: str  # its place in the document: ``metrics.AP``, ``signature.gt``, ``per_class.dog.AP50``
    saved: Value
    again: Value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Verification(Result):
    r"""A saved result and a run of the same evaluation.

    Parameters
    ----------
    path : str
        The saved result, as the user named it.
    saved_kind : str
        What it is a result of, such as "evaluation" and "gate".
    gt, pred : str
        The inputs, as the user named them; of verdicts, what was judged and its baseline, empty without one.
    signature, saved_signature : str
        Of the new run, and of the saved one.
    compared : int
        How many values were compared.
    differences : tuple of Difference
        Empty when everything is equal, to the last bit. The version of the tool is a difference as well, but does not
        make a result unequal.
    findings : tuple of Finding
        What differs, as an error; another version, as a warning.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from jaccard_eval import evaluate, verify
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     gt, pred, saved = folder / "gt.csv", folder / "pred.csv", folder / "result.json"
    ...     _ = gt.write_text("image,class,xmin,ymin,xmax,ymax\na,dog,0,0,10,10\n")
    ...     _ = pred.write_text("image,class,xmin,ymin,xmax,ymax,score\na,dog,0,0,10,10,0.9\n")
    ...     evaluate(gt, pred).save(saved)
    ...     found = verify(saved, gt, pred)
    >>> found.equal, found.differences
    (True, ())
    """

    path: str = field(metadata=written_as("result"))
    saved_kind: str
    gt: str = field(metadata=written_as("inputs.gt.path"))
    pred: str = field(metadata=written_as("inputs.pred.path"))
    version: str
    signature: str
    saved_signature: str
    compared: int
    differences: tuple[Difference, ...]
    findings: tuple[Finding, ...]

    kind: ClassVar[str] = "verification"
    reported_by: ClassVar[str] = "verify.report"
    also: ClassVar[Also] = (other_signatures, lambda result: {"equal": result.equal})

    def _summary(self) -> str:
        differing = f"{len(self.differences):,} of {pluralise(self.compared, 'value')} differ"
        return f"{self.path}: {'equal' if self.equal else 'not equal'}, {differing}"

    @property
    def equal(self) -> bool:
        """Whether inputs, rules and numbers are the same; another version of the tool may have made them."""
        return all(difference.name == VERSION_FIELD for difference in self.differences)


_SIDES = (("gt", "the ground truth"), ("pred", "the predictions"))
_VERSION = pattern(r"\|v=[^|]*")
Values = Value | list[Value]  # a row of them by one place


@staged("comparing")
def compare_again(
    path: str,
    document: Mapping[str, Any],
    again: Any,
    *,
    inputs: tuple[str, str],
    verdicts: Sequence[GateVerdict] = (),
    run: EvaluationResult | None = None,
) -> Verification:
    """Compare a saved result, and its saved run if there is one, with a new one of the same `inputs`.

    `verdicts` are those of the saved result.
    """
    now = again.to_dict()
    if verdicts and not isinstance(again, GateResult):
        judged = judged_again(verdicts, answers_of(again), None, again.measured)
        now["gates"] = to_document(judged)
        now["warnings"] += to_document(gate_findings(judged))
    saved_values, new_values = compared_values(document), compared_values(now)
    saved_values |= _leaves("gates", document.get("gates", []))
    new_values |= _leaves("gates", now.get("gates", []))
    saved_values |= _finding_values(document)
    new_values |= _finding_values(now)
    # The words of a message name rows and places, which may be others; its parts have to belong together.
    for row, finding in enumerate(document["warnings"]):
        saved_values |= _leaves(f"warnings.{row}", finding)
        try:
            parsed = to_document(parse_finding(finding))
        except ValueError as error:  # advice that nobody can have given
            parsed = str(error)
        new_values |= _leaves(f"warnings.{row}", parsed)
    if run is not None:
        saved_values |= table_values(run)
        new_values |= table_values(again)
    compared, unequal = differences(saved_values, new_values)
    findings = FindingLog()
    others = [difference for difference in unequal if difference.name != VERSION_FIELD]
    # Another version alone does not differ: the numbers show what it changes.
    for difference in unequal:
        if difference.name == VERSION_FIELD:
            detail = f"was made with version {difference.saved}; this is version {difference.again}"
            findings.warning("result-version", Where(path), detail)
    findings.add_rows(
        Severity.ERROR,
        "result-differs",
        range(len(others)),
        lambda row: (Where(path, field=others[row].name), _change(others[row])),
        fix=_advice({difference.name for difference in others}),
        summary=f"{len(others):,} of {compared:,} values differ",
    )
    return Verification(
        path=path,
        saved_kind=again.kind,
        gt=inputs[0],
        pred=inputs[1],
        version=again.version,
        signature=now["signature"],
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
    return f"was {before}, now {now}{delta}"


def _advice(names: set[str]) -> str:
    """Return where the differences come from, as far as the signature shows."""
    changed = [what for side, what in _SIDES if f"signature.{side}" in names]
    # Other boxes explain other numbers: the inputs come first, then the rules.
    if changed:
        return f"The boxes of {' and of '.join(changed)} have changed."
    if any(name.startswith("signature.") for name in names):
        return "The rules or the selection have changed."
    return (
        "Inputs and rules are the same. The cause may be the order of tied scores, a different version, or an edited"
        " result."
    )


def differences(saved: Mapping[str, Values], again: Mapping[str, Values]) -> tuple[int, tuple[Difference, ...]]:
    """Return how many values there are in two results, by place, and those that are not equal."""
    count, unequal = 0, []
    for name in dict.fromkeys([*again, *saved]):
        if name in saved and name in again and saved[name] == again[name]:
            values = again[name]
            count += len(values) if isinstance(values, list) else 1
            continue
        before, now = (_cells(name, side[name]) if name in side else {} for side in (saved, again))
        places = dict.fromkeys([*now, *before])
        count += len(places)
        unequal += [
            Difference(place, before.get(place), now.get(place))
            for place in places
            if place not in before or place not in now or before[place] != now[place]
        ]
    return count, tuple(unequal)


def _cells(place: str, values: Values) -> dict[str, Value]:
    """Return values by the place of each."""
    if not isinstance(values, list):
        return {place: values}
    return {f"{place}.{row}": value for row, value in enumerate(values)}


# Rows by what they are of; others by their number.
_KEYS = {"per_class": ("class",), "operating_points": ("class", "iou"), "slices": ("slice",)}
# What is compared elsewhere, or shows how all else came about: other options give other values.
_ELSEWHERE = ("digest", "gates", "options", "signature", "signature_fields", "signature_short", "tool", "warnings")
# Folders are not compared: they change no number, and a result is verified on other machines.
_PLACES = ("path", "masks", "group_by", "result", "baseline")


def compared_values(document: Mapping[str, Any]) -> dict[str, Values]:
    """Return what of a document `differences` compares, by place: all but verdicts and findings."""
    values = dict(_leaves("signature", document.get("signature_fields", {})))
    values["tool.name"] = document["tool"]["name"]
    for part, content in in_order(document, ("inputs", "metrics")).items():  # as differences are shown
        if part in _KEYS and isinstance(content, list):
            seen: Counter[str] = Counter()
            for row in content:
                place = ".".join([part, *(str(row.get(key) or "all") for key in _KEYS[part])])
                seen[place] += 1  # two classes may have one name
                again = f".{seen[place]}" if seen[place] > 1 else ""
                own = {name: value for name, value in row.items() if name not in _KEYS[part]}
                values |= _leaves(f"{place}{again}", own)
        elif part not in _ELSEWHERE:
            values |= _leaves(part, content)
    # Of texts the version, which is compared as a field; they may be edited and the fields left alone.
    texts = (part for part in ("signature", "signature_short") if part in document)
    return values | {part: _VERSION.sub("", document[part]) for part in texts}


def judged_again(
    verdicts: Sequence[GateVerdict], run: Answers, baseline: Answers | None, metrics: Any
) -> list[GateVerdict]:
    """Judge saved verdicts again, by the rules that they keep, on what `run` has.

    Values from elsewhere and what was drawn are taken as they were saved; without a baseline, so is its value.
    """
    parts: dict[tuple[str, bool], Answers] = {}
    found = []
    for verdict in verdicts:
        try:
            gates = gates_of(verdict.rule, verdict.asked)
            external = {cell.ref.name.removeprefix(EXTERNAL): cell.value for cell in verdict.cells}
            again = Bench(gates, run, baseline, external, parts).again(verdict)
            again = weighed_again(gates, verdict, again)
            if isinstance(metrics, DetectionMetrics):
                (again,) = find_ties([again], gates, metrics)
        except UsageError as error:  # nobody can have judged so, or the class is not there any more
            again = replace(verdict, value=math.nan, reason=str(error))
        found.append(again)
    return found


# What is found in a file of class names.
_OF_NAMES = ("names-comment", "names-count", "names-duplicate")


def _finding_values(document: Mapping[str, Any]) -> dict[str, Values]:
    """Return how often each finding was made, how grave it is and what was measured of it.

    What is odd about the draws of gates is skipped, as these are not drawn again, and what is odd about a file of names
    next to the inputs: the options of a result have the names that were read from it.
    """
    values: dict[str, Values] = {}
    seen: Counter[str] = Counter()
    paths = tuple(side["path"] for side in document.get("inputs", {}).values())
    for finding in document["warnings"]:
        code, fix, message = finding["code"], finding["fix"] or {}, finding["message"]
        if message.startswith("gates: ") and not code.startswith("gate-"):
            continue
        if code in _OF_NAMES and paths and not message.startswith(paths):
            continue
        place = f"findings.{code}.{seen[code]}"
        seen[code] += 1
        values |= {f"{place}.{name}": finding[name] for name in ("severity", "count")}
        told = {name: fix.get(name) for name in ("kind", "metric", "before", "after", "allow")}
        values |= {f"{place}.fix.{name}": value for name, value in told.items() if value is not None}
        values |= _leaves(f"{place}.table", finding["table"])
    return values


def table_values(result: EvaluationResult) -> dict[str, Values]:
    """Return digests of the boxes and of the match table, which do not depend on the order of rows."""
    if result.boxes is None or not isinstance(result.measured, DetectionMetrics):
        return {}
    gt, pred = result.boxes
    table = result.measured.table
    detections = np.stack((table.image, table.label, table.score, table.area), axis=1)  # (n, 4)
    # What each candidate matches, by area range and threshold; NO_PAIR, -1, finds the closing 0.
    overlap = np.append(table.pair_overlap, 0.0)
    matched = np.stack([overlap[table.chosen_pairs(area)] for area in range(len(table.choice))])  # (A, T, c)
    rows = {
        "gt_boxes": np.column_stack((gt.image, gt.xywh)),
        "pred_boxes": np.column_stack((pred.image, pred.xywh)),
        "ground_truth": np.column_stack((table.gt_image, table.gt_label, table.gt_ignored.T)),
        "detections": detections,
        "pairs": np.column_stack((detections[table.pair_detection], gt.xywh[table.pair_gt], table.pair_overlap)),
        "matches": np.column_stack((detections[table.candidate], matched.reshape(-1, len(table.candidate)).T)),
    }
    values: dict[str, Values] = {}
    for name, numbers in rows.items():
        # + 0.0: -0.0 equals 0.0 but has other bytes.
        ordered = numbers[np.lexsort(numbers.T)] + 0.0
        digest = hashlib.sha256(ordered.tobytes()).hexdigest()[:16]
        values[f"run.{name}"] = f"{len(numbers)} rows, sha256:{digest}"
    return values


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Values]]:
    """Yield the values of a nested document by place, those of a pair as its low and its high."""
    if isinstance(value, str) and place.rpartition(".")[2] in _PLACES:
        value = re.split(r"[/\\]", value.rstrip("/"))[-1]
    if isinstance(value, list):
        are_plain = not any(isinstance(item, list | Mapping) for item in value)
        # Rows of a table of confusions: millions of numbers, which are equal as a rule, need no place each.
        if are_plain and len(value) > 2:
            yield place, value
            return
        is_pair = len(value) == 2 and all(isinstance(item, int | float) for item in value)
        value = dict(zip(("low", "high") if is_pair else map(str, range(len(value))), value, strict=True))
    if not isinstance(value, Mapping):
        yield place, value
        return
    for key, inner in value.items():
        yield from _leaves(f"{place}.{key}", inner)
