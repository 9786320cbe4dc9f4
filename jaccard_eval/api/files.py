"""The verbs that judge, repeat and write files, and that measure maps: each orchestrates what lies below."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval.codes import STOPS
from jaccard_eval.data.document import EVALUATION, PANOPTIC, PIXELS
from jaccard_eval.data.from_document import made
from jaccard_eval.data.metricref import MAP_METRICS, MetricRef
from jaccard_eval.data.result import GateResult, GateVerdict, Result
from jaccard_eval.engine import path_of
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import evaluate_inputs, in_every, load_as_in_ground_truth
from jaccard_eval.features.bootstrap.intervals import resampled, sliced
from jaccard_eval.features.compare import ComparisonResult
from jaccard_eval.features.compare.comparison import CompareOptions, compare_results, side_names
from jaccard_eval.features.gates import Gates, parse_rule
from jaccard_eval.features.gates.judging import gate_findings
from jaccard_eval.features.panoptic import PanopticOptions, PanopticProtocol
from jaccard_eval.features.pixels import PixelOptions, PixelProtocol
from jaccard_eval.features.verify import compare_again, judged_again
from jaccard_eval.findings import Finding, FindingLog, Where
from jaccard_eval.formats import format_module
from jaccard_eval.frozen import dataclass
from jaccard_eval.gating import Gating, judge_result, opened
from jaccard_eval.inputs import (
    Input,
    load,
    needing_boxes,
    read_alone,
    read_to_write,
    settle_iou_type,
    skipping,
    with_shapes,
)
from jaccard_eval.options import Bootstrap, EvaluateOptions, SideOptions, require_lists
from jaccard_eval.runs import converted, invalid_document, is_saved_run, load_run, read_repeatable, saved_rules
from jaccard_eval.text import did_you_mean, quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    import numpy.typing as npt

    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.features.convert import Conversion
    from jaccard_eval.features.gates import Gates
    from jaccard_eval.features.panoptic import PanopticResult
    from jaccard_eval.features.pixels import PixelsResult
    from jaccard_eval.features.verify import Verification
    from jaccard_eval.inputs import Source
    from jaccard_eval.options import Bootstrap, ReadOptions, Slice

    Maps = str | os.PathLike[str] | npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]


# The features are imported where they are used: most callers use one verb, and each brings modules of its own.


def gate(
    result: EvaluationResult | PixelsResult | PanopticResult | str | os.PathLike[str],
    gates: Gates | Sequence[str],
    *,
    baseline: EvaluationResult | PixelsResult | PanopticResult | str | os.PathLike[str] | None = None,
    metrics: Mapping[str, float] | None = None,
) -> GateResult:
    """Judge a result by rules.

    Parameters
    ----------
    result : EvaluationResult, PixelsResult, PanopticResult or path
        A path is that of a JSON document, which answers what it holds and what gates asked before, or of a saved run
        (.npz), which answers anything and, for rules with a significance, is next to the document.
    gates : Gates or sequence of str
        Rules, or texts such as ``"AP50>=0.5"`` and ``"FP[iou=0.5,score=0.4]<=20"``; a value on the limit passes.
    baseline : EvaluationResult, PixelsResult, PanopticResult or path, optional
        What to compare with, instead of ``gates.baseline``.
    metrics : mapping of str to float, optional
        Values for rules on ``external.NAME``.

    Returns
    -------
    GateResult
        A sequence of `GateVerdict`, one for each limit of each value; ``passed`` unless one of them has failed.

    Raises
    ------
    UsageError
        When a rule names what does not exist or is ambiguous, or run and baseline cannot be compared.
    DataError
        When a file is not a result; a SettingsError when it is that of the baseline.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, Gates, Rule, evaluate, gate
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> [verdict] = gate(evaluate(gt, pred), Gates(rules=(Rule(metric="AP50", min=0.6),)))
    >>> str(verdict.status), round(verdict.margin, 4)
    ('fail', -0.095)
    >>> [str(verdict.status) for verdict in gate(evaluate(gt, pred), ["AP50>=0.5", "mAP50<=0.4"])]
    ['pass', 'fail']
    >>> gate(evaluate(gt, pred), ["AP50>=0.5"]).passed
    True
    """
    if not isinstance(gates, Gates):
        require_lists(gates=gates)
        gates = Gates(rules=tuple(map(parse_rule, gates)))
    compared = gates.baseline if baseline is None else baseline
    gating = Gating(gates, compared, metrics or {})
    return judge_result(result, gating, baseline=None if gating.baseline is None else compared, version=__version__)


def verify(
    result: str | os.PathLike[str],
    gt: str | os.PathLike[str],
    pred: str | os.PathLike[str] | None = None,
    *others: str | os.PathLike[str],
) -> Verification:
    r"""Make a saved result again, with its own rules and options, however doubtful; report what differs.

    Parameters
    ----------
    result : path
        JSON document of `evaluate`, `pixels`, `panoptic`, `compare` or `gate`, or a saved run (.npz), whose match table
        is then compared as well.
    gt, pred : path
        Its inputs, wherever they are now; of verdicts, the result that was judged, and the baseline where there is one.
    *others : path
        The other predictions of a comparison.

    Raises
    ------
    DataError
        When the result or an input cannot be used.
    UsageError
        When it is of another kind, or has another number of inputs.

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
    ...     _ = pred.write_text("image,class,xmin,ymin,xmax,ymax,score\na,dog,0,0,10,9,0.9\n")
    ...     found = verify(saved, gt, pred)
    >>> found.equal
    False
    """
    inputs = [given for given in (gt, pred, *others) if given is not None]
    saved, again = made_again(path_of(result), [path_of(given) for given in inputs])
    first, *rest = map(str, inputs)
    run = load_run(path_of(result)) if is_saved_run(result) else None
    return compare_again(
        str(path_of(result)),
        saved.document,
        again,
        inputs=(first, ", ".join(rest)),
        verdicts=saved.verdicts,
        run=run,
    )


_ALONE = SideOptions()  # of `convert`, without ground truth


def convert(
    source: Source,
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    role: str | None = None,
    source_format: str | None = None,
    options: ReadOptions | None = None,
    gt: Source | None = None,
    gt_format: str | None = None,
    gt_options: ReadOptions | None = None,
    skip_invalid: bool = False,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    iou_type: str | None = None,
    ids_from: Source | None = None,
    lossy: bool = False,
    replace: bool = False,
) -> Conversion:
    """Read ground truth or predictions of any format and write them in another.

    Parameters
    ----------
    source : path, Dataset or BoxTable
    target : path
        File to write, or folder where the format is one of folders.
    to : str, optional
        Name of the target's format; by the suffix of `target` if None.
    role : {"gt", "pred"}, optional
        What `source` is; detected by its scores if None.
    source_format : str, optional
        Name of its format; detected if None.
    options : ReadOptions, optional
        Encoding, units, class names, images.
    gt : path, Dataset or BoxTable, optional
        Ground truth of the predictions `source`: `target` gets its image names, image sizes, ids and classes.
    gt_format, gt_options
        How to read it.
    skip_invalid : bool
        Skip records that cannot be used, of both sides.
    match_images, extra_images, images_in_common, class_map, gt_class_map
        How the two correspond; see `evaluate`. Without `gt`, `class_map` gives classes of `source` other names.
    iou_type : {"bbox", "segm", "keypoints", "obb"}, optional
        Which shapes are written besides boxes, "bbox" for none; if None those that `source` has and the format holds.
    ids_from : path, Dataset or BoxTable, optional
        COCO ground truth that `source` was once converted from: `target` gets the ids of its images, classes and
        objects back. An object keeps the id of the one that it overlaps most; new ones are numbered on.
    lossy : bool
        Whether the target may be written though it does not carry all that belongs to the boxes, such as crowd flags.
    replace : bool
        Whether what exists may be replaced.

    Raises
    ------
    DataError
        When the input cannot be used, or the target cannot carry what it holds.
    UsageError
        When the target's format is unknown or cannot be written, or its place is not free; when an argument is for
        predictions with their ground truth, and there is no `gt`.
    MachineError
        When the target cannot be written.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, convert
    >>> boxes = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], crowd=[True])
    >>> convert(boxes, "labels", to="yolo")
    Traceback (most recent call last):
    jaccard_eval.findings.DataError: error[write-loss]: labels: crowd: boxes with crowd set: 1; ...
    """
    from jaccard_eval.features.convert import convert_input, require_ground_truth, target_format, with_ids_of

    of_pairs = {
        "gt_format": gt_format,
        "gt_options": gt_options,
        "match_images": match_images,
        "extra_images": extra_images,
        "images_in_common": images_in_common,
        "gt_class_map": gt_class_map,
    }
    idle = [name for name, given in of_pairs.items() if given != getattr(_ALONE, name)]
    if gt is None and idle:
        raise UsageError(f"{', '.join(idle)}: pass the ground truth with gt")
    options, gt_options = skipping(skip_invalid, options, gt_options)
    path = path_of(target)
    name = target_format(path, to)
    given = Input(source, source_format, options)
    about = format_module(name).FORMAT
    if gt is None:
        with needing_boxes("convert", given):
            dataset, unwritten = read_to_write(
                given,
                path,
                lambda kind: read_alone(Input(source, source_format, with_shapes(options, kind)), role, class_map),
                target_format=about,
                asked=iou_type,
            )
    else:
        if role == "gt":
            raise UsageError("gt works with predictions only; remove role='gt'")
        pairing = SideOptions(
            gt_format=gt_format,
            gt_options=gt_options,
            pred_format=source_format,
            pred_options=options,
            match_images=match_images,
            extra_images=extra_images,
            images_in_common=images_in_common,
            class_map=class_map,
            gt_class_map=gt_class_map,
        )
        with needing_boxes("convert", given, Input(gt, gt_format)):
            dataset, unwritten = read_to_write(
                given,
                path,
                lambda kind: load_as_in_ground_truth(gt, source, pairing, lossy=lossy, iou_type=kind),
                target_format=about,
                asked=iou_type,
            )
    if ids_from is not None:
        require_ground_truth(dataset)
        dataset = with_ids_of(dataset, load(ids_from))
    return convert_input(dataset, path, name, lossy=lossy, replace=replace, findings=unwritten)


def pixels(
    gt: Maps,
    pred: Maps,
    *,
    classes: Sequence[str] | None = None,
    colors: str | os.PathLike[str] | None = None,
    class_map: Mapping[int, int] | Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[int, int] | Mapping[str, str] | str | None = None,
    ignore: Sequence[int] = (),
    reduce_zero: str | None = None,
    background: int | None = None,
    drop_background: str | None = None,
    list_file: str | os.PathLike[str] | None = None,
    bootstrap: Bootstrap | int | None = None,
    slices: Sequence[Slice] = (),
    workers: int | None = None,
) -> PixelsResult:
    """Evaluate label maps: images whose pixel values are classes, as semantic segmentation gives them.

    Parameters
    ----------
    gt, pred : path, or arrays
        A PNG, TIFF, BMP, GIF or .npy file, or a folder of them; or arrays of integers, (height, width), of NumPy,
        PyTorch or others: a list of them, a dict by name, or one.
    classes : sequence of str, optional
        Names by value; any other value is then an error. If None, those of `colors`, else every value is a class.
    colors : path or str, optional
        Table of colours, for maps that hold colours or whose palettes decide; "cityscapes" and "voc" are known.
    class_map : dict or str, optional
        Value of the ground truth that each value of the predictions means, before all other rules; others stay as they
        are. Or a rule: "id+1", "id-1", of Cityscapes "trainIds-labelIds" and "labelIds-trainIds" (which makes labels
        that are not evaluated 255), of masks "grey-1" and "grey-255" (what is above 127); "auto" infers it from the
        pixels that values share, "id" keeps all. If None, files whose values are beyond doubt numbered differently are
        an error.
    gt_class_map : dict or str, optional
        What each value of the ground truth means, likewise: pairs or a rule. Several values may mean one class.
    ignore : sequence of int
        Values that are not classes, such as 255; their pixels in the ground truth are ignored.
    reduce_zero : {"gt", "both"}, optional
        Whose values count from 1, with 0 for pixels to ignore.
    background : int, optional
        Class that the means ignore.
    drop_background : {"gt", "pred", "both"}, optional
        Whose background pixels are not counted at all; see `PixelProtocol`.
    list_file : path, optional
        Which maps to compare: names that both sides know, or pairs of paths.
    bootstrap : Bootstrap or int, optional
        How to resample the images for intervals, or how often.
    slices : sequence of Slice
        Parts of the images to measure as well, in ``result.slices``.
    workers : int, optional
        Threads; as many as there are processors if None. The result does not depend on it.

    Raises
    ------
    DataError
        With every file that cannot be read, has no counterpart or another size, or holds unknown values.
    UsageError
        When an option names what does not exist, or an input is neither a path nor arrays.

    Examples
    --------
    >>> from jaccard_eval import pixels
    >>> gt, pred = [[0, 0], [1, 1]], [[0, 1], [1, 1]]
    >>> result = pixels([gt], [pred], classes=["road", "car"])
    >>> result["IoU[class=road]"], round(result["mIoU"], 4)
    (0.5, 0.5833)
    """
    from jaccard_eval.features.pixels.counting import better_numbering, count_label_maps, note_numbering, pixels_result
    from jaccard_eval.features.pixels.report import WorstMaps
    from jaccard_eval.reading.labelmaps import colors_found, maps_from, named_color_table, read_color_table

    sides = maps_from(gt), maps_from(pred)
    if list_file is not None and not all(isinstance(side, Path) for side in sides):
        raise UsageError("list_file names files; choose among arrays by passing those to compare")
    notes = FindingLog()
    if colors is None:
        colors = next(filter(None, (colors_found(side, notes) for side in sides)), None)
    table = None if colors is None else named_color_table(colors) or read_color_table(path_of(colors))
    rules = PixelProtocol(
        classes=tuple(classes) if classes is not None else table.names if table is not None else None,
        colors=None if table is None else table.digest,
        ignore=tuple(sorted({*ignore, *(() if table is None else table.void)})),
        class_map=_value_map("class_map", class_map, (AUTO, UNCHANGED)),
        gt_class_map=_value_map("gt_class_map", gt_class_map),
        reduce_zero=reduce_zero,
        background=background,
        drop_background=drop_background,
    )
    count = partial(
        count_label_maps,
        *sides,
        colors=table,
        list_file=None if list_file is None else path_of(list_file),
        run=partial(map_in_order, workers=workers),
    )
    maps = count(rules)
    if class_map == AUTO:
        # What is ignored is known by its value in the ground truth, so that all is counted again.
        found = better_numbering(maps.counts)
        note_numbering(found, maps.counts, Where(maps.paths[1]), notes)
        rules = replace(rules, class_map=() if found is None else found.value_map)
        maps = count(rules) if found is not None else maps
    maps = replace(maps, findings=(*notes.findings(), *maps.findings))
    are_files = all(isinstance(side, Path) for side in sides)
    result = pixels_result(maps, rules, __version__, doubts=class_map is None, stops=are_files)
    settings = Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) else bootstrap
    asked = PixelOptions(
        class_map={str(value): int(goal) for value, goal in class_map.items()}
        if isinstance(class_map, Mapping)
        else class_map,
        colors=_path_text(colors),
        list_file=_path_text(list_file),
        bootstrap=settings,
        slices=tuple(slices),
    )
    result = replace(result, options=asked)
    if settings is not None:
        result = resampled(result, settings, workers=workers)
    if slices:
        refs = [MetricRef(name=name) for name in MAP_METRICS]
        result = sliced(result, slices, refs, settings, workers=workers)
    return replace(result, images=WorstMaps(maps.worst, maps.reader)) if maps.reader else result


AUTO, UNCHANGED = "auto", "id"


def _path_text(given: Any) -> str | None:
    """Return a path as documents hold it; None for what is none."""
    return os.fspath(given) if isinstance(given, str | os.PathLike) else None


def _value_map(
    option: str, given: Mapping[int, int] | Mapping[str, str] | str | None, also: tuple[str, ...] = ()
) -> str | tuple[tuple[int, int], ...]:
    """Return what values mean, of what a caller gives; empty where it names no map, or one to find."""
    from jaccard_eval.features.pixels.counting import RULES

    if given is None or given in also:
        return ()
    if isinstance(given, str):
        known = (*also, *RULES)
        if given not in known:
            asked = f"{option} of label maps is pairs such as 11=2, or one of {', '.join(known)}"
            raise UsageError(f"{asked}; got {quoted_value(given)}.{did_you_mean(given, known)}")
        return given
    try:
        pairs = sorted((int(value), int(goal)) for value, goal in given.items())
    except (TypeError, ValueError):
        raise UsageError(f"{option} of label maps maps whole numbers to whole numbers, such as 11=2,7=0") from None
    return tuple(pairs)


def panoptic(
    gt: str | os.PathLike[str] | Mapping[str, Any],
    pred: str | os.PathLike[str] | Mapping[str, Any],
    *,
    gt_masks: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    pred_masks: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    class_map: Mapping[str, str] | None = None,
    iou_type: str = "segm",
    dilation_ratio: float | None = None,
    against: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    against_masks: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    bootstrap: Bootstrap | int | None = None,
    slices: Sequence[Slice] = (),
    images: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> PanopticResult:
    """Evaluate panoptic segmentations: panoptic quality (PQ), its parts SQ and RQ, for things, stuff and each class.

    Parameters
    ----------
    gt, pred : path, or dict
        JSON file of COCO's panoptic format, or what it holds; or a folder of Cityscapes' ``*_instanceIds.png``.
    gt_masks, pred_masks : path, or dict of str to array, optional
        Folder of the PNG files with ids, or arrays of ids (height, width) by their names. If None, the folder that is
        called like the JSON file.
    class_map : mapping of str to str, optional
        Category of the ground truth, by id or name, that each category id of the predictions means; others stay as they
        are.
    iou_type : {"segm", "boundary"}
        "boundary": the IoU of a pair is the smaller one of segments and of their boundaries.
    dilation_ratio : float, optional
        Width of boundaries, as a share of the image diagonal; 0.02 if None.
    against : path, or dict, optional
        Other predictions to compare with: every metric, of slices too, gets a difference, with a paired interval.
    against_masks : path, or dict of str to array, optional
        Their maps.
    bootstrap : Bootstrap or int, optional
        How to resample the images for intervals, or how often.
    slices : sequence of Slice
        Parts of the images to evaluate as well.
    images : path, optional
        Folder of the images, to draw segments over on a page.
    workers : int, optional
        Threads; as many as there are processors if None. The result does not depend on it.

    Returns
    -------
    PanopticResult

    Raises
    ------
    DataError
        With every record and file that cannot be used: ids that are not listed, or listed and absent, other sizes,
        other kinds of PNG files, images without a prediction.
    UsageError
        When an option is out of range, or an input is neither a path nor a dict.

    Examples
    --------
    >>> import numpy as np
    >>> from jaccard_eval import panoptic
    >>> record = {"image_id": 1, "file_name": "a.png", "segments_info": [{"id": 1, "category_id": 7}]}
    >>> gt = {"annotations": [record], "categories": [{"id": 7, "name": "cat", "isthing": 1}]}
    >>> maps = {"a.png": np.array([[1, 1, 0, 0]])}, {"a.png": np.array([[1, 1, 1, 0]])}
    >>> panoptic(gt, {"annotations": [record]}, gt_masks=maps[0], pred_masks=maps[1])["PQ"]
    1.0
    """
    from jaccard_eval.features.panoptic.counting import count_images, panoptic_result, with_differences, with_slices
    from jaccard_eval.features.panoptic.report import WorstSegments
    from jaccard_eval.reading.segments import open_pair

    given = tuple(sorted((str(key), str(goal)) for key, goal in (class_map or {}).items()))
    rules = PanopticProtocol(iou_type=iou_type, dilation_ratio=dilation_ratio, class_map=given)
    if against is None and against_masks is not None:
        raise UsageError("against_masks needs against: the predictions that these maps belong to")
    run = partial(map_in_order, workers=workers)
    settings = Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) else bootstrap
    findings = FindingLog()
    sides = open_pair((gt, gt_masks), (pred, pred_masks), given, findings)
    counted = count_images(*sides, rules, findings, run=run)
    asked = PanopticOptions(
        gt_masks=_path_text(gt_masks),
        pred_masks=_path_text(pred_masks),
        against=_path_text(against),
        against_masks=_path_text(against_masks),
        bootstrap=settings,
        slices=tuple(slices),
    )
    result = replace(panoptic_result(counted, rules, __version__), options=asked)
    if settings is not None:
        result = resampled(result, settings, workers=workers)
    if slices:
        result = with_slices(result, slices, settings, workers=workers)
    if against is not None:
        findings = FindingLog()
        sides = open_pair((gt, gt_masks), (against, against_masks), given, findings)
        other = panoptic_result(count_images(*sides, rules, findings, run=run), rules, __version__)
        result = with_differences(result, other, slices, settings, workers=workers)
    return replace(result, images=WorstSegments.of(counted, None if images is None else path_of(images)))


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
    saved = Saved(document, tuple(made(GateVerdict, row) for row in document.get("gates", ())), inputs)
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
    return pixels(gt, pred, **(_keywords(rules) | {"gt_class_map": values} | _keywords(asked)))


def _panoptic(saved: Saved) -> Result:
    rules = converted(saved.document["protocol"], PanopticProtocol, "protocol")
    asked = converted(saved.document.get("options", {}), PanopticOptions, "options")
    if "against" in saved.document and asked.against is None:
        raise UsageError("it was compared with predictions in memory, which have no path")
    gt, pred = saved.inputs
    return panoptic(gt, pred, **(_keywords(rules) | {"class_map": dict(rules.class_map)}), **_keywords(asked))


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
