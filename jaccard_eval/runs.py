"""Saved results and runs: JSON documents and the archives next to them, how they are recognised and read."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jaccard_eval import features
from jaccard_eval.data.boxtable import FLAGS, BoxTable
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.document import DIGEST, PANOPTIC, RUN_ENTRY, SCHEMA, Rows, document_digest, in_order
from jaccard_eval.data.from_document import MISSING, Fault, check_of, find_faults, from_document, made
from jaccard_eval.data.protocol import PROTOCOLS, Protocol
from jaccard_eval.data.result import (
    Correspondence,
    EvaluationResult,
    GateVerdict,
    InputSummary,
    OperatingPoint,
    Result,
    SliceRow,
    WithParts,
)
from jaccard_eval.data.signature import FINGERPRINT
from jaccard_eval.engine import path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.features.errors.compute import errors_at
from jaccard_eval.features.gates.judging import SavedAnswers, SavedValues
from jaccard_eval.features.images import count_images
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import rank_detections
from jaccard_eval.matching.matchtable import MatchTable, Pairs, match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, class_refs, summary_refs
from jaccard_eval.options import Bootstrap, EvaluateOptions, ReadOptions, Slice
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import Stage
from jaccard_eval.reading.files import decode, head, holds_run, is_folder, is_there, read_text, require_readable
from jaccard_eval.reading.json import is_finite, is_number, parse_json, too_deep
from jaccard_eval.reading.npz import load_archive
from jaccard_eval.reading.thumbnails import ImageFiles
from jaccard_eval.report.outputs.npz import (
    BOX_COLUMNS,
    PAIR_COLUMNS,
    RUN,
    RUN_SCHEMA,
    SUFFIXES,
    Arrays,
    digest_run,
)
from jaccard_eval.similarity import KINDS
from jaccard_eval.text import quoted_value, shown_json

RESULT_FIX = Fix.missing("Write it with {command}.", command="evaluate GT PRED -o result.json")
RUN_FIX = Fix.missing("Write it with {command}.", command="evaluate GT PRED -o run.npz")
BOTH_FIX = Fix.missing(
    "Write both with {output:run.json} {output:run.npz}, or pass ground truth and predictions.",
    output=("run.json", "run.npz"),
)
SEGMENTS_FIX = Fix.missing("Compare the segments themselves: {command}.", command="panoptic GT PRED --against OTHER")
_FIRST_KEY = pattern(rb'\s*{\s*"(bootstrap|correspondence)"')
_FIRST_KEY_OF_SEGMENTS = pattern(rb'\s*{\s*"(against|bootstrap|digest)"')


def read_document(path: Path) -> Any:
    """Return what a JSON file holds; of a saved run, the document within it."""
    if is_saved_run(path):
        return saved_document(path)
    document = parse_json(path, read_text(path))
    _require_sound(path, document)
    return document


def read_result(path: Path, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the document of a result, with nothing in it that a result cannot hold."""
    document: dict[str, Any] = read_document(path)
    require_result(path, document, kinds)
    return document


def require_result(path: Path, document: Any, kinds: Sequence[str]) -> None:
    """Raise an error unless a document is a result of these kinds, sound and as it was written."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind is None:
        raise invalid_document(path, "is not a result of jaccard-eval: it has no 'kind'")
    if kind not in kinds:
        raise invalid_document(path, f"is a result of kind {shown_json(kind)}; expected {' or '.join(kinds)}")
    # To Python, true is 1.
    if document.get("schema") != SCHEMA or isinstance(document["schema"], bool):
        raise invalid_document(path, f"has schema {shown_json(document.get('schema'))}; expected {SCHEMA}")
    fix = RESULT_FIX if kind == EvaluationResult.kind else f"Write it again with 'jaccard-eval ... -o {path.name}'."
    _require(path, find_faults(document, *classes_of(document)), fix)
    _require_unedited(path, document, document_digest(document), fix)
    sides = (side for side in document.get("inputs", {}).values() if isinstance(side, dict))
    old = [
        str(side["fingerprint"])
        for side in sides
        if not str(side.get("fingerprint", FINGERPRINT)).startswith(FINGERPRINT)
    ]
    if old:
        detail = (
            f"its fingerprints, such as {quoted_value(old[0])}, are of an older kind that can be forged, and cannot be"
            " compared with those of today"
        )
        where = Where(str(path), field="inputs")
        raise DataError.single("fingerprint-old", where, detail, fix="Evaluate again, and keep the new result.")


def _require_unedited(path: Path, content: Mapping[str, Any], digest: str, fix: Fix | str) -> None:
    """Raise an error when a document or a run is not as it was written."""
    written = content.get(DIGEST)
    if written != digest:
        what = "does not match its digest" if written else "has no digest"
        detail = f"{what}: it was changed after it was written"
        raise DataError.single("result-edited", Where(str(path)), detail, fix=fix)


def with_images(result: Result, folder: str | os.PathLike[str]) -> EvaluationResult:
    """Return a saved evaluation that finds its images in a folder, to show boxes on them; no number depends on it."""
    if not isinstance(result, EvaluationResult) or result.boxes is None:
        fix = Fix.missing("Remove {images}.", images=None)
        raise UsageError("boxes on images are those of a saved run (.npz), and this result has none.", fix=fix)
    require_readable(path_of(folder))  # it would be looked into when images are shown, perhaps never
    names = tuple(result.measured.image_names)
    return replace(result, images=ImageFiles((folder,), names, unknown_sizes(len(names))))


def load_result(path: str | os.PathLike[str]) -> Result:
    """Read any result that was saved, to be reported again or asked for its numbers.

    Parameters
    ----------
    path : path
        JSON document of any command, or a saved run (.npz), which answers any metric.

    Returns
    -------
    EvaluationResult, ComparisonResult, PixelsResult or another, by what was saved
        Of an evaluation that comes from its document, ``result[...]`` has what the document holds; a UsageError for any
        other metric.

    Raises
    ------
    DataError
        When it is not a result, or was changed after it was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from jaccard_eval import BoxTable, evaluate, load_result
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 9]], score=[0.9])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "result.json")
    ...     evaluate(gt, pred).save(file)
    ...     saved = load_result(file)
    >>> round(saved["AP"], 4)
    0.9
    """
    with Stage(f"reading {path}"):
        return _load_result(path_of(path))


def _load_result(path: Path) -> Result:
    document = read_result(path, tuple(_result_classes()[0]))
    try:
        return _made_result(path, document)
    # Settings and protocols have rules that no bounds of their fields express.
    except UsageError as error:
        raise invalid_document(path, f"cannot be read back: {error}") from None


def _made_result(path: Path, document: dict[str, Any]) -> Result:
    kind, parts = classes_of(document)
    given: dict[str, Any] = {}
    if kind is EvaluationResult:
        rules = saved_protocol(document["protocol"])
        # Documents have the rules, not where they come from.
        named = PROTOCOLS.get(rules.name, rules)
        given["protocol"] = rules.with_options(sources=named.sources)
        given |= {"measured": None, "boxes": None}  # the former follows
    if issubclass(kind, WithParts):
        # A list that is always there is a part where it has rows.
        rows = [(name, row) for name, row in _ROWS.items() if document.get(name)]
        listed = (Rows(name, check_of(tuple[row, ...]).make(document[name])) for name, row in rows)  # type: ignore[valid-type]
        given["parts"] = (*listed, *(made(part, document[name]) for name, part in parts.items()))
    result: Result = made(kind, document, **given)
    return _with_values(result, path, document) if isinstance(result, EvaluationResult) else result


def classes_of(document: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the class of a result, and those of the parts that its document has, by kind."""
    name = document["kind"]
    kinds, parts = _result_classes(name)  # for what is gated, no other feature is loaded
    kind = kinds.get(name) or _result_classes()[0][name]
    if document.keys() - {*parts, *check_of(kind).schema["properties"], "schema", "kind", DIGEST}:
        parts = _result_classes()[1]
    # A field of the result may bear the name of a part, as the confusions of label maps do.
    own = {item.name for item in fields(kind)}
    return kind, {key: part for key, part in parts.items() if key in document and key not in own}


def _result_classes(within: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the classes of results, and those of their parts, by kind: they are found by listing the features."""
    rooms = [f"{features.__name__}.{info.name}" for info in pkgutil.iter_modules(features.__path__) if info.ispkg]
    found = [room for room in rooms if within is None or room.endswith(f".{within}")]
    modules = [importlib.import_module(name) for name in ("jaccard_eval.data.result", *found)]
    classes: list[Any] = [kind for module in modules for kind in vars(module).values() if is_dataclass(kind)]
    by_kind = {kind.kind: kind for kind in classes if isinstance(getattr(kind, "kind", None), str)}
    results = {name: kind for name, kind in by_kind.items() if hasattr(kind, "reported_by")}
    return results, {name: kind for name, kind in by_kind.items() if name not in results}


_ROWS = {"slices": SliceRow, "operating_points": OperatingPoint, "gates": GateVerdict}  # the parts that are lists


def _with_values(result: EvaluationResult, path: Path, document: Mapping[str, Any]) -> EvaluationResult:
    """Return an evaluation with what answers for it: the match table of a run, else what its document lists."""
    of_classes, summary = (
        [*map(str, refs)]
        for refs in (class_refs(result.protocol), summary_refs(result.protocol, ranked=result.ties is None))
    )
    rows = tuple(replace(row, values=in_order(row.values, of_classes)) for row in result.per_class)
    metrics = in_order(result.metrics, summary)
    try:
        listed = SavedValues(SavedAnswers(document, str(path)))
    except UsageError as error:
        raise invalid_document(path, f"cannot be read back: {error}") from None
    result = replace(result, metrics=metrics, per_class=rows, measured=listed)
    if not is_saved_run(path):
        return result
    run = _load_run(path)
    result, images = replace(result, measured=run.measured, boxes=run.boxes), result.part("worst_images")
    if run.boxes is None or not isinstance(run.measured, DetectionMetrics):
        return result
    # Its document lists a few images, and errors at one score: the match table has all.
    if images is not None:
        result = result.with_part(count_images(run.measured, images.score, images.n))
    if result.part("errors") is not None:
        threshold = result.protocol.iou_thresholds.index(result.part("errors").iou)
        result = result.with_part(run.measured.errors_at(threshold))
    return result


def is_saved_run(source: object) -> bool:
    """Whether a source is the path of a saved run; predictions may be archives as well."""
    path = path_of(source) if isinstance(source, str | os.PathLike) else None
    if path is None or path.suffix.lower() not in SUFFIXES or is_folder(path) or not is_there(path):
        return False
    return holds_run(path)


def run_beside(path: Path) -> Path:
    """Return where the saved run of a JSON document stands, whether it is there or not; of a saved run, itself."""
    return path if path.suffix.lower() in SUFFIXES else path.with_suffix(SUFFIXES[0])


def saved_run_of(source: object) -> Path | None:
    """Return the saved run that a source means: itself, or that next to its JSON document; else None."""
    if is_saved_run(source):
        return path_of(source)  # type: ignore[arg-type]
    path = path_of(source) if isinstance(source, str | os.PathLike) else None
    # Documents are large, and this is asked of any file of predictions: keys are sorted, and the first one decides.
    if path is None or path.suffix.lower() != ".json":
        return None
    start = head(path)
    if _FIRST_KEY_OF_SEGMENTS.match(start) and read_document(path).get("kind") == PANOPTIC:
        raise invalid_document(path, "is a result of segments, which holds no matches to compare", SEGMENTS_FIX)
    if not _FIRST_KEY.match(start):
        return None
    document, beside = read_result(path, (EvaluationResult.kind,)), run_beside(path)
    if not is_saved_run(beside):
        raise invalid_document(path, f"has no match table, and there is no {beside.name} next to it", BOTH_FIX)
    if saved_document(beside).get("signature") != document["signature"]:
        raise invalid_document(path, f"{beside.name} next to it belongs to a different evaluation", BOTH_FIX)
    return beside


def saved_document(path: Path) -> dict[str, Any]:
    """Return the JSON document within a saved run."""
    result: dict[str, Any] = read_run(path, load_archive(path, FindingLog()).arrays)["result"]
    return result


def read_run(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return what a saved run holds besides its match table."""
    try:
        run = parse_json(path, decode(path, arrays[RUN_ENTRY].tobytes()))
    except DataError:
        raise invalid_document(path, f"cannot be read back: {RUN_ENTRY} in it is damaged", RUN_FIX) from None
    _require_sound(path, run)
    _require(path, check_of(RUN).find(run, ""), RUN_FIX)
    if type(run["run_schema"]) is not int or run["run_schema"] != RUN_SCHEMA:
        detail = f"has run schema {shown_json(run['run_schema'])}; expected {RUN_SCHEMA}"
        raise invalid_document(path, detail, RUN_FIX)
    _require_unedited(path, run, digest_run(run, arrays), RUN_FIX)
    return run  # type: ignore[no-any-return]


def invalid_document(path: Path, detail: str, fix: Fix | str = RESULT_FIX) -> DataError:
    """Return the error of a file that is not a result to go on with."""
    return DataError.single("result-invalid", Where(str(path)), detail, fix=fix)


def _require(path: Path, faults: Iterable[Fault], fix: Fix | str) -> None:
    findings = FindingLog()
    for field, fault in faults:
        findings.error("result-invalid", Where(str(path), field=field or None), fault, fix=fix)
    findings.raise_errors()


def _require_sound(path: Path, document: Any) -> None:
    """Raise an error with the keys that are repeated, and the numbers that are not finite, wherever they stand."""
    findings = FindingLog()

    def check(value: Any, place: str) -> None:
        if isinstance(value, dict):
            joint = f"{place}." if place else ""
            for key in getattr(value, "repeated", ()):
                twice = Where(str(path), field=f"{joint}{key}")
                findings.error("key-duplicate", twice, "the key is given twice in one object", fix="Keep one of them.")
            for key, item in value.items():
                check(item, f"{joint}{key}")
        elif isinstance(value, list):
            for i, item in enumerate(value):
                check(item, f"{place}[{i}]")
        # Python reads 1e999 and NaN; no result that was written has them.
        elif is_number(value) and not is_finite(value):
            detail = f"is {shown_json(value)}; numbers must be finite and not too large (at most 1.8e308)"
            where = Where(str(path), field=place or None)
            findings.error("number-not-finite", where, detail, fix="Write null for an undefined value.")

    try:
        check(document, "")
    except RecursionError:
        raise too_deep(path) from None
    findings.raise_errors()


def load_run(path: Path) -> EvaluationResult:
    """Read an evaluation with its match table; metrics are computed from the table again."""
    with Stage(f"reading {path}"):
        return _load_run(path)


def _load_run(path: Path) -> EvaluationResult:
    arrays = load_archive(path, FindingLog()).arrays
    if RUN_ENTRY not in arrays:
        raise invalid_document(path, "is an archive of arrays, not a saved run", RUN_FIX)
    run = read_run(path, arrays)
    require_result(path, run["result"], (EvaluationResult.kind,))
    try:
        protocol = saved_protocol(run["result"]["protocol"])
        boxes, table = _read_arrays(run, arrays, protocol)
    except UsageError as error:
        raise invalid_document(path, f"cannot be read back: {error}", RUN_FIX) from None
    document = run["result"]
    # Numbers come from the match table, not from the document: an archive cannot hold two truths.
    frequency = run.get("class_frequency", ())
    names = run["class_names"], run["image_names"]
    score = document["options"].get("score")
    analyse = partial(errors_at, boxes=boxes, score=score)
    metrics = DetectionMetrics(table, *names, area_known=run["area_known"], frequency=frequency).at(score, analyse)
    return EvaluationResult(
        protocol=protocol,
        signature=document["signature"],
        version=document["tool"]["version"],
        gt=made(InputSummary, document["inputs"]["gt"]),
        pred=made(InputSummary, document["inputs"]["pred"]),
        correspondence=made(Correspondence, document["correspondence"]),
        metrics={str(ref): metrics.value(ref) for ref in summary_refs(protocol, ranked=document.get("ties") is None)},
        per_class=metrics.per_class(),
        findings=(),
        measured=metrics,
        boxes=boxes,
        ties=document.get("ties"),
        options=document["options"],
    )


Run = Mapping[str, Any]
Sides = tuple[BoxTable, BoxTable]


def _read_arrays(run: Run, arrays: Arrays, protocol: Protocol) -> tuple[Sides, MatchTable]:
    """Read the boxes of both sides and the pairs that overlap, and let the pairs match again: that costs little."""
    gt, pred = (_boxes(arrays, side, protocol) for side in ("gt", "pred"))
    n_images, n_labels = len(run["image_names"]), len(run["class_names"])
    limits = {"pair_detection": len(rank_detections(pred, protocol, n_images)[0]), "pair_gt": len(gt)}
    # What has no pairs at all has no such columns either.
    det, gt_row, overlap = (arrays.get(name, np.zeros(())) for name in PAIR_COLUMNS)
    # A digest can be made anew: what follows keeps such an archive from more than numbers of its own.
    sound = [gt.score is None, pred.score is not None]
    sound += [boxes.image.max(initial=-1) < n_images for boxes in (gt, pred)]
    sound += [overlap.dtype.kind == "f", det.shape == gt_row.shape == overlap.shape == (overlap.size,)]
    sound += [arrays[name].dtype.kind == "i" for name in limits if name in arrays]
    if not all(sound) or not np.isfinite(overlap).all() or not (np.diff(det) >= 0).all():
        raise UsageError("its arrays do not belong together")
    for name, limit in limits.items():
        if len(det) and not 0 <= arrays[name].min() <= arrays[name].max() < limit:
            raise UsageError(f"{name} points to rows that do not exist")
    known = Pairs(det, gt_row, overlap)
    return (gt, pred), match_boxes(gt, pred, protocol, n_images=n_images, n_labels=n_labels, known=known)


def _boxes(arrays: Arrays, side: str, protocol: Protocol) -> BoxTable:
    columns: dict[str, Any] = {name: arrays.get(f"{side}.{name}") for name in BOX_COLUMNS}
    kind, start = KINDS[protocol.iou_type].shapes, f"{side}.shapes."
    if kind is not None:
        shapes = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        columns["shapes"] = kind.from_arrays(shapes) if shapes else None  # a side without boxes need not have any
    boxes = BoxTable.from_arrays(boxes=columns.pop("xywh"), encoding="xywh", **columns)
    # Names stand in the document; rows that are texts were written by nobody.
    if boxes.image_names is not None or boxes.class_names is not None:
        raise UsageError(f"columns {side}.image and {side}.label must hold whole numbers")
    return boxes


Record = TypeVar("Record")


def saved_protocol(document: Any) -> Protocol:
    """Return the rules that the document of a result holds; a UsageError when they are not rules."""
    rules = converted(document, Protocol, "protocol")
    # Always written, though a protocol made by hand may lack it.
    if "class_agnostic" not in document:
        raise UsageError("protocol.class_agnostic is missing")
    unknown = [name for name in (*rules.ignored_flags, *rules.reusable_flags) if name not in FLAGS]
    if unknown:
        raise UsageError(f"expected flags among {', '.join(FLAGS)}, got {quoted_value(unknown[0])}")
    return rules


def converted(value: Any, kind: type[Record], place: str) -> Record:
    """Return a part of a document as what it means; a UsageError names the field that is wrong."""
    faults: list[Fault] = []
    found = from_document(kind, value, faults)
    for field, fault in faults:
        where = f"{place}.{field}" if field else place
        raise UsageError(f"{where} {fault}" if fault == MISSING else f"{where}: {fault}")
    assert found is not None  # without faults
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """A saved result: as the user named it, its document, and the rules and options that made it."""

    path: str
    document: dict[str, Any]
    protocol: Protocol
    options: EvaluateOptions


def read_repeatable(path: Path, kinds: Sequence[str], known: str) -> dict[str, Any]:
    """Read the JSON document of a result of some kinds, which are `known` by these words; a UsageError of another."""
    document: dict[str, Any] = read_document(path)
    kind = document.get("kind") if isinstance(document, dict) else None
    # A document without a kind is looked at below, where all that is wrong with it is reported.
    if kind is not None and kind not in kinds:
        raise UsageError(
            f"{quoted_value(str(path))} is a result of kind {shown_json(kind)}; only {known} can be run again"
        )
    require_result(path, document, tuple(kinds))
    return document


def read_saved(path: Path) -> Saved:
    """Read the JSON document of an evaluation."""
    document = read_repeatable(path, (EvaluationResult.kind,), "evaluations")
    try:
        return Saved(str(path), document, *saved_rules(document["protocol"], document["options"]))
    except UsageError as error:
        raise invalid_document(path, f"cannot be run again: {error}") from None


def saved_rules(protocol: Any, options: Any) -> tuple[Protocol, EvaluateOptions]:
    """Return the rules and options of an evaluation that a document holds; a UsageError when they are none."""
    rules, how = saved_protocol(protocol), converted(options, EvaluateOptions, "options")
    unknown = _unknown_names(protocol, options)
    if unknown:
        raise UsageError(f"{', '.join(map(quoted_value, unknown))} belongs to a different version")
    return rules, how


def _unknown_names(protocol: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return the rules and options that this version does not know: without them, the evaluation would be another."""
    parts: list[tuple[str, Mapping[str, Any], type]] = [
        ("protocol", protocol, Protocol),
        ("options", options, EvaluateOptions),
        *((f"options.{side}", options.get(side) or {}, ReadOptions) for side in ("gt_options", "pred_options")),
        ("options.bootstrap", options.get("bootstrap") or {}, Bootstrap),
        *((f"options.slices[{i}]", images, Slice) for i, images in enumerate(options.get("slices") or ())),
    ]
    # Sources are written into no document: what stands there under this name is none of ours.
    known = {kind: {field.name for field in fields(kind)} - {"sources"} for _, _, kind in parts}
    return [f"{place}.{name}" for place, given, kind in parts for name in given if name not in known[kind]]
