"""What of a saved result is not the same after its evaluation was run again."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.document import MetricValue, to_document
from jaccard_eval.data.metricref import EXTERNAL, MetricRef
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.data.verdict import PairedDelta, Status
from jaccard_eval.errors import UsageError
from jaccard_eval.features.gates.compute import BROKEN, aggregated, allowed_change, margin_of
from jaccard_eval.features.gates.lookup import answers_of
from jaccard_eval.features.gates.noise import drop_margin
from jaccard_eval.features.gates.rules import AGGREGATES, LARGEST_EPSILON, Rule
from jaccard_eval.features.verify.result import VERSION_FIELD, Difference, Value, Verification
from jaccard_eval.findings import FindingLog, Severity, Where, parse_finding
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.metrics.slices import slice_digest
from jaccard_eval.options import Slice
from jaccard_eval.progress import staged
from jaccard_eval.text import quoted_value

_SIDES = (("gt", "the ground truth"), ("pred", "the predictions"))
_VERSION = re.compile(r"\|v=[^|]*")
Values = Value | list[Value]  # a row of them by one place
_CELLS = ("value", "n", "reason")  # of what a gate was judged by


@staged("comparing")
def compare_again(
    path: str,
    document: Mapping[str, Any],
    again: EvaluationResult,
    *,
    run: EvaluationResult | None = None,
) -> Verification:
    """Compare a saved result, and its saved run if there is one, with a new evaluation of the same inputs."""
    now = again.to_dict()
    saved_values, new_values = compared_values(document), compared_values(now)
    named = {images["name"]: _slice_of(images) for images in again.options.get("slices") or ()}
    for gate in document["gates"]:
        # Slices that only the configuration defines are known by their digest alone.
        if not gate["slice"] or gate["slice"] in named:
            place = f"gates.{gate['rule']}.slice_digest"
            saved_values[place] = gate["slice_digest"]
            new_values[place] = slice_digest(named[gate["slice"]]) if gate["slice"] else ""
    for place, gate, cells in _measured_gates(document, again):
        for cell, metric in zip(gate["cells"], cells, strict=True):
            saved_values |= {f"{place}.{cell['metric']}.{name}": cell[name] for name in _CELLS}
            new_values |= {f"{place}.{cell['metric']}.{name}": to_document(getattr(metric, name)) for name in _CELLS}
        follows = to_document(following(gate, cells))
        saved_values |= {f"{place}.{name}": gate[name] for name in follows}
        new_values |= {f"{place}.{name}": value for name, value in follows.items()}
    saved_values |= _finding_values(document["warnings"])
    new_values |= _finding_values(now["warnings"])
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


def compared_values(document: Mapping[str, Any]) -> dict[str, Values]:
    """Return what of a document `differences` compares, by place.

    That is everything that follows from the inputs, the rules and the options. Of gates and findings see `following`
    and `_finding_values`.
    """
    # Folders are not compared: they change no number, and a result is verified on other machines.
    inputs = {side: dict(document["inputs"][side]) for side, _ in _SIDES}
    for side in inputs.values():
        side["path"] = re.split(r"[/\\]", str(side.get("path")).rstrip("/"))[-1]
    values = dict(_leaves("signature", document["signature_fields"]))
    values.update(_leaves("inputs", inputs))
    values["tool.name"] = document["tool"]["name"]
    for part in ("metrics", "support", "undefined", "correspondence", "protocol", "errors", "confusion"):
        values.update(_leaves(part, document.get(part, {})))
    for row in document["per_class"]:
        values.update(_leaves(f"per_class.{row.get('class')}", row, but="class"))
    for point in document["operating_points"]:
        place = f"operating_points.{point.get('class') or 'all'}.{point.get('iou')}"
        values.update(_leaves(place, {name: value for name, value in point.items() if name != "iou"}, but="class"))
    # The file of groups may have moved; the digest of the groups is compared.
    values.update(_leaves("bootstrap", document.get("bootstrap", {}), but="group_by"))
    for part in ("intervals", "refused", "worst_images"):
        values.update(_leaves(part, document.get(part, {})))
    for row in document.get("slices", ()):
        values.update(_leaves(f"slices.{row.get('slice')}", row, but="slice"))
    # As texts, for a signature may be edited and its fields left alone; the version is compared as one of these.
    return values | {part: _VERSION.sub("", document[part]) for part in ("signature", "signature_short")}


def _measured_gates(
    document: Mapping[str, Any], again: EvaluationResult
) -> Iterator[tuple[str, Mapping[str, Any], list[MetricValue]]]:
    """Yield the place of each verdict, the verdict, and what it was judged by, measured again.

    What was measured elsewhere, or on a slice that the options do not define, is taken as it was saved.
    """
    answers = answers_of(again)
    parts = {slice_digest(images): images for images in map(_slice_of, again.options.get("slices") or ())}
    for row, gate in enumerate(document["gates"]):
        images = parts.get(gate["slice_digest"])
        source = answers if images is None else answers.on(images)
        cells = []
        for cell in gate["cells"]:
            text, value = cell["metric"], math.nan if cell["value"] is None else cell["value"]
            metric = MetricValue(ref=MetricRef(name=text), value=value, n=cell["n"], reason=cell["reason"])
            try:
                if not text.startswith(EXTERNAL):
                    metric = replace(metric, ref=MetricRef.parse(text))
                    metric = metric if gate["slice"] and images is None else source.value(text)
            except UsageError as error:  # nobody can have measured it
                metric = replace(metric, value=math.nan, n=-1, reason=str(error))
            cells.append(metric)
        yield f"gates.{row}", gate, cells


_AGGREGATE = re.compile(rf"({'|'.join(AGGREGATES)})\((.*?\])?(?:, ([^]]+))?\)")


def following(gate: Mapping[str, Any], cells: Sequence[MetricValue]) -> dict[str, Any]:
    """Return what of a verdict follows from its limit, the value of its baseline and what it was judged by.

    The least support, what becomes of undefined values, which of two levels a limit is, and how close is equal stand in
    rules that are not here: what they leave open is as the verdict has it.
    """
    limit, baseline = (math.nan if gate[name] is None else gate[name] for name in ("limit", "baseline"))
    check, severity, significance, spread = (gate[name] for name in ("check", "severity", "significance", "spread"))
    made, first = _AGGREGATE.fullmatch(gate["metric"]), cells[0].ref
    judged, of_class = str(first), gate["class"] if gate["class"] is None else first.class_name
    rule = Rule(metric="AP", min=0.0)
    if made:
        below = float(made[3]) if made[3] else None
        rule = Rule(metric="AP", min=0.0, classes=("*",), aggregate=made[1], below=below)
        is_of_cells = replace(MetricRef.parse(made[2]), class_name=None) == replace(first, class_name=None)
        judged, of_class = gate["metric"] if is_of_cells else f"{made[1]}({first})", None
    undefined = {BROKEN[severity], Status.WARN, Status.SKIP}
    # What each least support makes of the classes; the first: of all of them, the last: of none.
    possible: list[tuple[int, float, set[Status]]] = []
    for least in sorted({cell.n for cell in cells}):
        kept = [cell for cell in cells if cell.n >= least]
        defined = [cell.value for cell in kept if not math.isnan(cell.value)]
        values = [aggregated(rule, defined, epsilon) for epsilon in (0.0, LARGEST_EPSILON) if defined]
        values += [math.nan] * (len(defined) < len(kept))
        possible += [(sum(cell.n for cell in kept), value, undefined) for value in values]
    possible.append((max(cell.n for cell in cells), math.nan, {Status.SKIP}))
    said = [case for case in possible if (case[0], to_document(case[1])) == (gate["n"], gate["value"])]
    n, value, status = (said or possible)[0]
    delta = value - baseline
    margin = margin_of(check, limit, value, baseline)
    if significance and spread:
        difference = PairedDelta(
            ref=judged,
            base=baseline,
            value=value,
            delta=delta,
            interval=(spread["low"], spread["high"]),
            probability=math.nan,
            detectable=math.nan,
            n_resamples=spread["n_resamples"],
        )
        margin = drop_margin(significance, difference, allowed_change(check, limit, baseline))
    elif significance and gate["margin"] is None:  # there was no interval to judge by
        margin = math.nan
    if not math.isnan(value):
        near = LARGEST_EPSILON if significance or margin < 0 else 0.0
        broken = {Status.INFO} if severity == "info" else {BROKEN[severity], Status.WARN}
        passed = {Status.PASS, *([Status.WARN] if any(math.isnan(cell.value) for cell in cells) else [])}
        status = undefined
        if not math.isnan(margin):
            status = {*(broken if margin < near else ()), *(passed if margin >= -near else ())}
    follows = {"metric": judged, "class": of_class, "n": n, "value": value, "delta": delta, "margin": margin}
    return follows | {"status": gate["status"] if gate["status"] in status else " or ".join(sorted(status))}


def _finding_values(findings: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    """Return how often each finding was made, how grave it is and what was measured of it.

    Findings of gates are skipped: they depend on rules that are not here.
    """
    values: dict[str, Values] = {}
    seen: Counter[str] = Counter()
    for finding in findings:
        code, fix = finding["code"], finding["fix"] or {}
        if code.startswith("gate-") or finding["message"].startswith("gates: "):
            continue
        place = f"findings.{code}.{seen[code]}"
        seen[code] += 1
        values |= {f"{place}.{name}": finding[name] for name in ("severity", "count")}
        values |= {f"{place}.fix.{name}": fix.get(name) for name in ("kind", "metric", "before", "after", "allow")}
        values |= _leaves(f"{place}.table", finding["table"])
    return values


def _slice_of(images: Mapping[str, Any]) -> Slice:
    return Slice(**{**images, "patterns": tuple(images["patterns"])})


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


def _leaves(place: str, value: Any, *, but: str = "") -> Iterator[tuple[str, Values]]:
    """Yield the values of a nested document by place, those of a pair as its low and its high; without one key."""
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
        if key != but:
            yield from _leaves(f"{place}.{key}", inner)
