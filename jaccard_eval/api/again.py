"""Saved results made again from their inputs, by the rules and options that they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jaccard_eval.api import files
from jaccard_eval.codes import STOPS
from jaccard_eval.data.document import EVALUATION, PANOPTIC, PIXELS
from jaccard_eval.data.from_document import from_document
from jaccard_eval.data.result_base import Result
from jaccard_eval.data.saved_values import Fault
from jaccard_eval.data.verdict import GateResult, GateVerdict
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import evaluate_inputs, in_every
from jaccard_eval.features.compare.comparison import CompareOptions, compare_results, side_names
from jaccard_eval.features.compare.result import ComparisonResult
from jaccard_eval.features.gates.noise import gate_findings
from jaccard_eval.features.panoptic.result import PanopticOptions, PanopticProtocol
from jaccard_eval.features.pixels.result import PixelOptions, PixelProtocol
from jaccard_eval.features.verify.compute import judged_again
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.gating import opened
from jaccard_eval.inputs import Input, load, settle_iou_type, with_shapes
from jaccard_eval.options import EvaluateOptions
from jaccard_eval.runs import converted, invalid_document, read_repeatable, saved_rules
from jaccard_eval.version import __version__


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved result: its document, its verdicts, and the inputs that it is to be made of again."""

    document: Mapping[str, Any]
    verdicts: tuple[GateVerdict, ...]
    inputs: Sequence[Path]


def made_again(path: Path, inputs: Sequence[Path]) -> tuple[Saved, Result]:
    """Return a saved result, and the one that the inputs give now."""
    *others, last = _AGAIN
    document = read_repeatable(path, tuple(_AGAIN), f"those of {', '.join(others)} and {last}")
    make, usage, counts = _AGAIN[document["kind"]]
    if len(inputs) not in counts:
        raise UsageError(f"a result of kind {document['kind']} is verified with {usage}; got {len(inputs)} paths")
    faults: list[Fault] = []
    verdicts = [from_document(GateVerdict, row, faults) for row in document.get("gates", ())]
    if faults:
        raise invalid_document(path, f"cannot be run again: gates: {' '.join(faults[0])}")
    saved = Saved(document, tuple(filter(None, verdicts)), inputs)
    try:
        return saved, make(saved)
    except UsageError as error:  # the call is the saved result's, not the user's
        raise invalid_document(path, f"cannot be run again: {error}") from None


def _evaluation(saved: Saved) -> Result:
    document = saved.document
    rules, options = saved_rules(document["protocol"], document["options"])
    images = document.get("worst_images")
    options = replace(
        options,
        allow=STOPS,
        errors="errors" in document,
        confusion="confusion" in document,
        worst_images=len(images["rows"]) if images else None,
    )
    gt, pred = saved.inputs
    return evaluate_inputs(gt, pred, rules, options, version=__version__, findings=_chosen(saved, options))


def _chosen(saved: Saved, options: EvaluateOptions) -> tuple[Finding, ...]:
    """Return the note on which shapes are compared, where nobody had named them."""
    if all(finding["code"] != "iou-type" for finding in saved.document["warnings"]):
        return ()
    gt, *preds = saved.inputs
    return settle_iou_type(Input(gt, options.gt_format), [Input(pred, options.pred_format) for pred in preds])[1]


def _pixels(saved: Saved) -> Result:
    rules = converted(saved.document["protocol"], PixelProtocol, "protocol")
    asked = converted(saved.document.get("options", {}), PixelOptions, "options")
    gt, pred = saved.inputs
    values = rules.gt_class_map if isinstance(rules.gt_class_map, str) else dict(rules.gt_class_map) or None
    # What the rules have of colours, and of the values of predictions, is made of the options.
    return files.pixels(gt, pred, **(_keywords(rules) | {"gt_class_map": values} | _keywords(asked)))


def _panoptic(saved: Saved) -> Result:
    rules = converted(saved.document["protocol"], PanopticProtocol, "protocol")
    asked = converted(saved.document.get("options", {}), PanopticOptions, "options")
    if "against" in saved.document and asked.against is None:
        raise UsageError("it was compared with predictions in memory, which have no path")
    gt, pred = saved.inputs
    return files.panoptic(gt, pred, **(_keywords(rules) | {"class_map": dict(rules.class_map)}), **_keywords(asked))


def _keywords(options: Any) -> dict[str, Any]:
    return {item.name: getattr(options, item.name) for item in fields(options)}


def _comparison(saved: Saved) -> Result:
    asked, document = saved.document["options"], saved.document
    both = [saved_rules(asked["protocol"], options) for options in asked["predictions"]]
    how = converted(asked["compared"], CompareOptions, "options.compared")
    path, *preds = saved.inputs
    if len(preds) != len(both):
        raise UsageError(f"it compares {len(both)} predictions, got {len(preds)}")
    rules, options = both[0]
    gt: Any = path
    if options.images_in_common:
        read = with_shapes(options.gt_options, rules.iou_type)
        gt = in_every(load(path, format_name=options.gt_format, options=read), preds, options)
    found, results = _chosen(saved, options), []
    for pred, (rules, options) in zip(preds, both, strict=True):
        allowing = replace(options, allow=STOPS)
        results.append(evaluate_inputs(gt, pred, rules, allowing, version=__version__, findings=found))
        found = ()  # of all of them
    sides = (document["inputs"]["baseline"], *(row["pred"] for row in document["comparisons"]))
    names = {letter: side["name"] for letter, side in zip(side_names(len(sides), {}), sides, strict=True)}
    return compare_results(results, how, version=__version__, run=map_in_order, names=names)


def _gate(saved: Saved) -> Result:
    judged, *baseline = saved.inputs
    run, table = opened(judged, None)
    answers = opened(baseline[0], None)[0] if baseline else None
    verdicts = judged_again(saved.verdicts, run, answers, table and table.measured)
    return GateResult(
        version=__version__,
        path=str(judged),
        signature=run.signature,
        baseline=str(baseline[0]) if baseline else None,
        gates=tuple(verdicts),
        findings=gate_findings(verdicts),
    )


# What makes a result of a kind again, and of which paths, of which there are how many.
_AGAIN: dict[str, tuple[Callable[[Saved], Result], str, Sequence[int]]] = {
    EVALUATION: (_evaluation, "GT PRED", (2,)),
    PIXELS: (_pixels, "GT PRED", (2,)),
    PANOPTIC: (_panoptic, "GT PRED", (2,)),
    ComparisonResult.kind: (_comparison, "GT A B [C...]", range(3, 1_000)),
    GateResult.kind: (_gate, "RESULT [BASELINE]", (1, 2)),
}
