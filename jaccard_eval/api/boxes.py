"""The verbs that measure and suppress boxes, with their keywords written out: each orchestrates what lies below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.data.protocol import BOXES, POINTS, AreaRange, Protocol, ProtocolOptions
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.engine import path_of, session
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import (
    at_one_point,
    evaluate_inputs,
    explain_inputs,
    image_files,
    in_every,
    load_and_trust,
)
from jaccard_eval.findings import DataError, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import benchmark_of, opened, unscored
from jaccard_eval.inputs import (
    Input,
    both_sides,
    load,
    needing_boxes,
    read_alone,
    read_both,
    refuse_shapes,
    require_readings_used,
    settle_iou_type,
    skipping,
    usual_iou_type,
    with_shapes,
)
from jaccard_eval.matching import descending_order
from jaccard_eval.metrics.detection import require_shapes
from jaccard_eval.options import (
    EXEMPT,
    Bootstrap,
    EngineOptions,
    EvaluateOptions,
    ReadOptions,
    SideOptions,
    changed,
    given_reading,
    require_effect,
    sharing_options,
)
from jaccard_eval.pairing import align_shapes
from jaccard_eval.text import quoted_value
from jaccard_eval.version import __version__

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from jaccard_eval.data.result import EvaluationResult
    from jaccard_eval.features.compare import ComparisonResult
    from jaccard_eval.features.compare.comparison import CompareOptions
    from jaccard_eval.features.explain import ExplanationResult
    from jaccard_eval.features.inspect import Inspection
    from jaccard_eval.features.labels import LabelsResult
    from jaccard_eval.features.scale import ScaleOptions, SensitivityResult
    from jaccard_eval.inputs import Source
    from jaccard_eval.matching import IntArray
    from jaccard_eval.options import Slice


@overload
def nms(
    boxes: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
) -> IntArray: ...


@overload
def nms(
    boxes: Source,
    *,
    iou: float = 0.5,
    by: str = "iou",
    class_agnostic: bool = False,
    format_name: str | None = None,
    options: ReadOptions | None = None,
) -> IntArray: ...


def nms(
    boxes: Any,
    scores: npt.ArrayLike | None = None,
    *,
    labels: npt.ArrayLike | None = None,
    images: npt.ArrayLike | None = None,
    iou: float = 0.5,
    by: str = "iou",
    encoding: str = "xyxy",
    class_agnostic: bool = False,
    format_name: str | None = None,
    options: ReadOptions | None = None,
) -> IntArray:
    """Return the boxes that stay when each, the best first, removes the worse ones it overlaps by more than `iou`.

    Parameters
    ----------
    boxes : array_like, shape (n, 4), or predictions
        With predictions alone, as `evaluate` takes them, only boxes of one image and class touch each other.
    scores : array_like, shape (n,), optional
        Of equal scores, the earlier row is the better one. None: `boxes` are predictions, which have scores.
    labels, images : array_like, shape (n,), optional
        Numbers or texts; boxes of different classes or images never touch each other. None: all are of one.
    iou : float
        In [0, 1]; at exactly this overlap both boxes stay.
    by : {"iou", "ioa"}
        What overlap is: intersection over union, or over the area of the smaller box.
    encoding : {"xyxy", "xywh", "cxcywh", "xyxy_norm", "xywh_norm", "cxcywh_norm"}
        Of arrays.
    class_agnostic : bool
        Whether boxes of predictions suppress those of other classes.
    format_name, options : str and ReadOptions, optional
        How predictions are read, as in `load`.

    Returns
    -------
    ndarray of int64, shape (k,)
        Rows that stay, by descending score, ties by row; of predictions, rows of the table or file.

    Raises
    ------
    UsageError
        When shapes differ, a number is not finite, a box ends before it starts, or an option is unknown.
    DataError
        When predictions cannot be read.

    Notes
    -----
    Source: Felzenszwalb et al. (2010), "Object Detection with Discriminatively Trained Part-Based Models", section
    4.2; more than the threshold, not at least, as in torchvision.

    Examples
    --------
    >>> from jaccard_eval import nms
    >>> nms([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]], [0.8, 0.9, 0.7], iou=0.6).tolist()
    [1, 2]
    >>> nms([{"boxes": [[0, 0, 10, 10], [1, 0, 11, 10]], "labels": [0, 0], "scores": [0.8, 0.9]}]).tolist()
    [1]
    """
    from jaccard_eval.features.nms import Suppression, suppress
    from jaccard_eval.features.nms import nms as suppress_arrays

    if scores is not None:
        if class_agnostic or format_name is not None or options is not None:
            raise UsageError("class_agnostic, format_name and options are for predictions; pass only those")
        return suppress_arrays(boxes, scores, labels=labels, images=images, iou=iou, by=by, encoding=encoding)
    if labels is not None or images is not None or encoding != "xyxy":
        raise UsageError("labels, images and encoding are for arrays; pass scores as well")
    side = load(boxes, role="pred", format_name=format_name, options=options)
    kept = suppress(side.table, Suppression(iou=iou, by=by), class_agnostic=class_agnostic)
    # Without a box, there may be no column of scores either.
    order = slice(None) if kept.score is None else descending_order(kept.score)
    found: IntArray = kept.source[order]
    return found


# The features are imported where they are used: most callers use one verb, and each brings modules of its own.


@session()
def evaluate(
    gt: Source,
    pred: Source | None = None,
    *,
    protocol: str | Protocol | None = None,
    iou: Sequence[float] | float | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    difficult: str | None = None,
    iou_type: str | None = None,
    sigmas: Sequence[float] | str | None = None,
    dilation_ratio: float | None = None,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    score: float | str | None = None,
    errors: bool = False,
    confusion: bool = False,
    worst_images: int | None = None,
    bootstrap: Bootstrap | int | None = None,
    slices: Sequence[Slice] = (),
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    images: str | os.PathLike[str] | None = None,
    skip_invalid: bool = False,
    allow: Sequence[str] = (),
    engine: str = "auto",
    memory_limit: int | str | None = None,
    workers: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
    keep_scratch: bool = False,
    scheduler: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    retries: int = 3,
    no_worker_timeout: float = 120,
    client: Any = None,
) -> EvaluationResult:
    """Evaluate predictions against ground truth.

    Parameters
    ----------
    gt, pred : path, DataFrame, COCO dict, list of dicts, Dataset or BoxTable
        Files or folders in any known format, or what a program holds: a pandas table with a row per box and columns
        named as in CSV files; a COCO dict, for predictions also a results list; dicts per image with ``boxes`` (n, 4),
        ``labels`` (n,), for predictions ``scores`` (n,), optional ``image_id`` (else the place in the list),
        ``iscrowd``, ``area`` and ``encoding`` (default xyxy), as arrays of NumPy, PyTorch or others. Loaded
        data, and arrays of all boxes (`BoxTable.from_arrays`), too. A folder that ``jaccard-eval partition`` wrote
        has both sides, and is passed alone.
    protocol : str or Protocol, optional
        That of a benchmark where the ground truth is its own file, by marks and classes, and "coco" for all others;
        "coco", "voc2007", "voc2012", "crowdpose", "dota", "dota-area", "lvis", "lvis-fixed", "openimages",
        "openimages-challenge", or a protocol of your own.
    iou : float or sequence of float, optional
        IoU thresholds instead of the protocol's.
    max_dets : sequence of int, optional
        Caps on detections per image and class; empty for none.
    areas : sequence of AreaRange, optional
        Size ranges in square pixels; the first is that of the headline.
    class_agnostic : bool
        Pool all classes.
    difficult : {"count", "ignore"}, optional
        What objects marked difficult are: ordinary, or neither found nor missed; by default what the protocol asks for.
    iou_type : {"bbox", "segm", "boundary", "keypoints", "obb", "probiou"}, optional
        What is compared: boxes, masks, their boundaries, keypoints or oriented boxes. If None: boxes where both sides
        have them, else the only shapes that both have.
    sigmas : sequence of float or str, optional
        Of each keypoint, where these are not COCO's 17.
    dilation_ratio : float, optional
        Width of boundaries as a share of the diagonal of the image; .02 by default.
    classes, exclude_classes : sequence of str
        Ground-truth classes to evaluate, or to ignore.
    score_min : float, optional
        Ignore predictions below this score; average precision drops with it.
    nms : float, optional
        Remove predictions that a better one of their image and own class overlaps by more than this IoU.
    drop_duplicates : bool
        Ignore rows of either side that equal an earlier one in every column.
    score : float or str, optional
        Operating point for precision, recall, F1 and counts: a score, "best-f1", or what it is to reach,
        "precision=0.9", "recall=0.8" or "fppi=1"; of all classes pooled, and of each.
    errors : bool
        Also find the kinds of errors, in ``result.errors``; confusions are those at `score` or the best F1.
    confusion : bool
        Also count which classes are predicted as which at `score` or the best F1, in ``result.confusion``; it is
        there with errors, too.
    worst_images : int, optional
        Also count every image at IoU .5 (or the lowest threshold) and `score` or the best F1, in
        ``result.worst_images``; so many are listed, those with the highest cost first: misses plus the scores of false
        positives. `to_frame` gives all of them.
    bootstrap : Bootstrap or int, optional
        How to resample the images, or how often, for intervals of the summary, every class and every slice.
    slices : sequence of Slice
        Parts of the images to measure as well, in ``result.slices``.
    class_map : mapping of str to str, or str, optional
        Prediction class to ground-truth class, a rule ("id+1", "contiguous", ...), or "auto": from overlapping boxes.
    gt_class_map : mapping of str to str, optional
        Class of the ground truth, by name or id, to the class that it is evaluated as: a new name, or another class.
        Predictions of the former classes follow. ``{"car": "vehicle", "truck": "vehicle"}`` merges two.
    match_images : {"id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1", "id-1"}, optional
        How images correspond; detected if None.
    extra_images : {"error", "ignore", "empty"}
        What to do with prediction images that the ground truth does not have.
    images_in_common : bool
        Evaluate only the images that both sides list; refused where one side does not list its images.
    gt_format, pred_format, gt_options, pred_options : str and ReadOptions, optional
    images : path, optional
        The folder of the images of both sides, for their list and sizes, and to show them.
    skip_invalid : bool
        Skip records and lines of either side that cannot be used, and count them.
    allow : sequence of str
        Codes of findings that do not stop the evaluation of files, such as "box-encoding".
    engine : {"auto", "memory", "disk", "dask"}
        Where boxes are kept and who works on them; auto: on the disk where they would not fit into memory. No value
        depends on it.
    memory_limit : int or str, optional
        Bytes, or a size such as "2GiB", by which "auto" decides; 60 % of the machine's memory if None.
    workers : int, optional
        Threads of the disk engine; as many as there are processors if None.
    scratch : path, optional
        Folder of the disk engine's files, which are removed with the result; that of temporary files if None. Workers
        of a cluster need one that all machines share.
    keep_scratch : bool
        Leave these files.
    scheduler : str or path, optional
        Address of an existing Dask scheduler ("tcp://...", "tls://...") or its file; Dask's configuration if None.
    tls_ca, tls_cert, tls_key : path, optional
        Certificates and key for a scheduler at a ``tls://`` address.
    retries : int
        How often a task of a cluster is repeated after an error.
    no_worker_timeout : float
        Seconds without any worker after which the evaluation ends.
    client : distributed.Client, optional
        A client of the cluster to use; given one, "auto" takes it.

    Raises
    ------
    DataError
        When an input cannot be used, the two do not belong together, or a file was beyond doubt read wrongly.
    UsageError
        When an option names what does not exist, or asks for what the disk engine does not have.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> round(evaluate(gt, pred)["AP50"], 4)
    0.505
    """
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options, images=images)
    keywords = locals() | {"bootstrap": Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) else bootstrap}
    asked, where = _asked(ProtocolOptions, keywords), _asked(EngineOptions, keywords)
    asked.rules()  # a slip is reported before anything is read
    gt, pred = opened(gt, gt_format), opened(both_sides(gt) if pred is None else pred, pred_format)
    options = _asked(EvaluateOptions, keywords)
    rules, found = _settled(asked, gt, (pred,), options)
    return evaluate_inputs(gt, pred, rules, options, version=__version__, engine=where, findings=found)


@session()
def compare(
    gt: Source | EvaluationResult | None,
    *preds: Source | EvaluationResult | Sequence[Source | EvaluationResult],
    options: CompareOptions | None = None,
    names: Mapping[str, str] | None = None,
    bootstrap: Bootstrap | int | None = None,
    slices: Sequence[Slice] = (),
    protocol: str | Protocol | None = None,
    iou: Sequence[float] | float | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    difficult: str | None = None,
    iou_type: str | None = None,
    sigmas: Sequence[float] | str | None = None,
    dilation_ratio: float | None = None,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    images: str | os.PathLike[str] | None = None,
    skip_invalid: bool = False,
    allow: Sequence[str] = (),
) -> ComparisonResult:
    """Compare predictions with the first of them, on one ground truth, which is read once.

    Parameters
    ----------
    gt : path or data, optional
        As in `evaluate`; None when all predictions are results of `evaluate` or saved runs, which hold it. It can be
        omitted, too: ``compare(result_a, result_b)``.
    *preds : path, data or EvaluationResult
        Two or more, or one list of them; the first is the baseline. Results, and paths of saved runs (.npz, or the
        .json next to it), will do.
    options : CompareOptions, optional
        How boxes are compared; slices and the bootstrap as well, where they are not given by themselves.
    names : mapping of str to str, optional
        What reports call the predictions instead of A, B, C, ...: ``{"A": "yolo11n"}``.
    bootstrap, slices
        As in `evaluate`, of the differences; the bootstrap is by default that which takes about 3 s, 0 is none.
    protocol, iou, max_dets, areas, class_agnostic, difficult, iou_type, sigmas, dilation_ratio
        As in `evaluate`.
    classes, exclude_classes, score_min, nms, drop_duplicates
        What is chosen from both sides, as in `evaluate`.
    class_map, gt_class_map, match_images, extra_images, images_in_common
        How both sides are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options, images, skip_invalid, allow
        How they are read, and what does not stop, as in `evaluate`.

    Raises
    ------
    DataError
        When an input cannot be used, or the predictions need the ground truth in different units.
    UsageError
        When an option names what does not exist, or there are fewer than two predictions.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, compare
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> a = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> b = BoxTable.from_arrays([0], [0], [[20, 20, 40, 40]], score=[0.9])
    >>> [(str(change.kind), change.row) for change in compare(gt, a, b).others[0].changes]
    [('lost', 0), ('found', 1)]
    """
    from jaccard_eval.engine.threads import map_in_order
    from jaccard_eval.features.compare.comparison import CompareOptions, compare_results, require_two, side_names
    from jaccard_eval.runs import load_run, saved_run_of, with_images

    gt, sources = opened(gt, gt_format), [opened(pred, pred_format) for pred in _several(preds)]
    if isinstance(gt, EvaluationResult) or saved_run_of(gt) is not None:
        gt, sources = None, [gt, *sources]
    # Of results, they are where boxes are shown.
    of_sides = None if gt is None else images
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options, images=of_sides)
    keywords = locals()
    compared = options or CompareOptions()
    compared = compared if bootstrap is None else replace(compared, bootstrap=bootstrap)
    compared = replace(compared, slices=slices) if slices else compared
    asked = _asked(ProtocolOptions, keywords)
    how = _asked(EvaluateOptions, keywords | {"bootstrap": None, "slices": ()})
    given = changed(asked) | changed(how)
    if gt is None and given:
        raise UsageError(f"{', '.join(sorted(given))}: results have rules and options of their own")
    runs = [pred if isinstance(pred, EvaluationResult) else saved_run_of(pred) for pred in sources]
    if gt is not None and runs and None not in runs:
        raise UsageError("results contain their ground truth: remove the other one")
    require_two(len(sources))
    side_names(len(sources), names or {})  # a slip is reported before anything is evaluated
    asked.rules()
    unsaved = [pred for pred, run in zip(sources, runs, strict=True) if run is None]
    rules, found = _settled(asked, gt, unsaved, how) if gt is not None else (asked.rules(), ())
    # Bare arrays are read already, and each of the predictions may bring images that they do not have.
    if gt is not None and not isinstance(gt, BoxTable):
        how_read = with_shapes(gt_options, rules.iou_type, whole_bodies=rules.whole_bodies)
        gt = load(gt, format_name=gt_format, options=how_read)
        if images_in_common:
            gt = in_every(gt, unsaved, how)
    results = []
    with sharing_options(len(unsaved)):  # what one of several predictions uses is of use
        for pred, saved in zip(sources, runs, strict=True):
            if saved is not None:
                result = saved if isinstance(saved, EvaluationResult) else load_run(saved)
                results.append(result if images is None or gt is not None else with_images(result, images))
            elif gt is not None:
                results.append(evaluate_inputs(gt, pred, rules, how, version=__version__, findings=found))
                found = ()  # of all of them
            else:
                raise UsageError(f"{quoted_value(str(pred))} is not a saved run; pass its ground truth as gt")
    return compare_results(results, compared, version=__version__, run=map_in_order, names=names)


@session()
def inspect(
    path: Source,
    pred: Source | None = None,
    *,
    role: str | None = None,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    iou_type: str | None = None,
    sigmas: Sequence[float] | str | None = None,
    dilation_ratio: float | None = None,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    skip_invalid: bool = False,
) -> Inspection:
    """Read one input, or both sides of an evaluation, and show what they hold and what is odd about them.

    Nothing is measured. What could be read is described, and errors are among the findings.

    Parameters
    ----------
    path, pred : path or data
        Ground truth and predictions, as in `evaluate`, or either side alone.
    role : {"gt", "pred"}, optional
        What `path` is where it is alone; detected by its scores if None.
    class_map, gt_class_map, match_images, extra_images, images_in_common
        As for `evaluate`.
    gt_format, pred_format, gt_options, pred_options, skip_invalid
        As for `evaluate`.
    iou_type : {"bbox", "segm", "boundary", "keypoints", "obb", "probiou"}, optional
        What is looked at; boxes around shapes are counted. If None, boxes, else the only shapes that there are.
    sigmas, dilation_ratio
        As for `evaluate`, where it is keypoints or boundaries.

    Raises
    ------
    DataError
        When nothing can be read.
    UsageError
        When an option names what does not exist.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, inspect
    >>> gt = BoxTable.from_arrays([0, 0], ["dog", "cat"], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], ["dog"], [[0, 0, 10, 10]], score=[0.9])
    >>> found = inspect(gt, pred)
    >>> found.pairing.objects, found.pairing.located
    (2, 1)
    """
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options)
    keywords = locals()
    from jaccard_eval.features.inspect.compute import inspect_sides

    asked, options = _asked(ProtocolOptions, keywords), _asked(SideOptions, keywords)
    if pred is None:
        own, others = gt_options or ReadOptions(), pred_options or ReadOptions()
        own, others, other = (others, own, "gt") if role == "pred" else (own, others, "pred")
        # What is given for both sides is one option.
        differing = {f"{other}_{name}" for name in changed(others) if getattr(own, name) != getattr(others, name)}
        idle = [name for name in changed(asked) if name != "iou_type"]
        idle += [name for name in changed(options) if not name.endswith(("_format", "_options"))]
        readings = given_reading(options)
        # What a configuration holds is for all runs.
        idle = [name for name in (*idle, *filter(differing.__contains__, readings)) if name not in EXEMPT.get()]
        if idle:
            words = f"Remove {', '.join(f'{{{name}}}' for name in idle)}, or pass both sides."
            fix = Fix.missing(words, **dict.fromkeys(idle))
            raise UsageError("an option cannot have an effect, as one input is inspected alone.", fix=fix)
        given = Input(path, pred_format, pred_options) if role == "pred" else Input(path, gt_format, gt_options)
        kind = replace(asked, iou_type=iou_type or usual_iou_type(given)).rules().iou_type
        with needing_boxes("inspect", given) if kind == BOXES else nullcontext():
            used = [name for name in readings if name not in differing]
            side = read_alone(replace(given, options=with_shapes(given.options, kind)), role, asked=used)
        is_gt = side.role == "gt"
        return inspect_sides(side if is_gt else None, None if is_gt else side, None, (), version=__version__)
    path, pred = opened(path, gt_format), opened(pred, pred_format)
    rules, found = _settled(asked, path, [pred], options)
    options = at_one_point(options, rules)
    both = (
        Input(path, gt_format, with_shapes(gt_options, rules.iou_type)),
        Input(pred, pred_format, with_shapes(options.pred_options, rules.iou_type)),
    )
    read = read_both(*both)
    if rules.iou_type == BOXES and (read.gt is None or read.pred is None):
        refuse_shapes("inspect", read.errors, *both)
    if read.gt is None and read.pred is None:
        raise DataError(read.errors)
    read_sides = [side for side in (read.gt, read.pred) if side is not None]
    require_readings_used(given_reading(options), read_sides, rules.iou_type)
    aligned, errors = None, read.errors
    if read.gt is not None and read.pred is not None:
        try:
            gt_side, pred_side, aligned = align_shapes(read.gt, read.pred, options, rules.iou_type)
            read = replace(read, gt=gt_side, pred=pred_side)
            require_shapes(gt_side, pred_side, aligned, rules)
        except DataError as error:
            aligned, errors = None, (*errors, *error.findings)
    # Of boxes, an inspection has no choice to explain.
    found = () if rules.iou_type == BOXES else found
    return inspect_sides(read.gt, read.pred, aligned, (*errors, *found), version=__version__, rules=rules)


def sensitivity(
    gt: Source,
    pred: Source,
    *,
    scale: ScaleOptions | None = None,
    protocol: str | Protocol | None = None,
    iou: Sequence[float] | float | None = None,
    max_dets: Sequence[int] | None = None,
    class_agnostic: bool = False,
    difficult: str | None = None,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    skip_invalid: bool = False,
    allow: Sequence[str] = (),
) -> SensitivityResult:
    """Analyse what the size of objects does to the score: what AP is lost to, and how boxes are off.

    Parameters
    ----------
    gt, pred : path or data
        As in `evaluate`.
    scale : ScaleOptions, optional
        Size bins and distances in pixels.
    protocol, iou, max_dets, class_agnostic, difficult
        As in `evaluate`; area ranges give way to the size bins.
    classes, exclude_classes, score_min, nms, drop_duplicates
        What is chosen from both sides, as in `evaluate`.
    class_map, gt_class_map, match_images, extra_images, images_in_common
        How both sides are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options, skip_invalid, allow
        How they are read, and what does not stop, as in `evaluate`.

    Raises
    ------
    DataError
        When an input cannot be used, the two do not belong together, or sizes in pixels are unknown.
    UsageError
        When an option names what does not exist.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, sensitivity
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0], [0], [[1, 1, 11, 11]], score=[0.9])
    >>> row = sensitivity(gt, pred).placement[0]
    >>> row.dx, row.dy, round(row.iou, 4)
    (1.0, 1.0, 0.6807)
    """
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options)
    keywords = locals()
    from jaccard_eval.features.scale import ScaleOptions
    from jaccard_eval.features.scale.compute import analyse_sides

    rules = _asked(ProtocolOptions, keywords).rules()
    if rules.iou_type != BOXES:
        raise UsageError(
            f"sensitivity measures the edges of boxes, but protocol {quoted_value(rules.name)} compares"
            f" {quoted_value(rules.iou_type)}. Pass a protocol of boxes, such as coco."
        )
    gt, pred = opened(gt, gt_format), opened(pred, pred_format)
    with needing_boxes("sensitivity", Input(gt, gt_format), Input(pred, pred_format)):
        sides = load_and_trust(gt, pred, _asked(SideOptions, keywords))
    return analyse_sides(sides, rules, scale or ScaleOptions(), version=__version__)


@session()
def explain(
    gt: Source | EvaluationResult,
    pred: Source | None = None,
    metric: str = "AP",
    *,
    protocol: str | Protocol | None = None,
    iou: Sequence[float] | float | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    difficult: str | None = None,
    iou_type: str | None = None,
    sigmas: Sequence[float] | str | None = None,
    dilation_ratio: float | None = None,
    against: str | Protocol | None = None,
    boxes: int = 12,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    skip_invalid: bool = False,
    allow: Sequence[str] = (),
) -> ExplanationResult:
    """Explain a metric: from the number to what it is made of, to the boxes that cost most.

    Boxes are judged at the metric's IoU threshold; of a mean over thresholds at .5, or else the lowest. What fixing
    them would give is measured: the changed predictions are matched again.

    Parameters
    ----------
    gt, pred : path or data
        As in `evaluate`; or the result of an evaluation alone, which has both sides and its own rules and options.
    metric : str
        AP, of any IoU threshold and class: ``AP50[class=dog]``; AR, of any cap; or precision, recall or F1 at a score:
        ``F1[iou=0.5,score=0.4]``. The score "best-f1" is that of the predictions as they are. AP and AR may be those of
        a subset: ``AP_easy``.
    protocol : str or Protocol
    iou, max_dets, areas, class_agnostic, difficult, iou_type, sigmas, dilation_ratio
        As in `evaluate`; the first area range is the one that is explained.
    against : str or Protocol, optional
        Another protocol: the metric is measured again, one rule changed after another. A threshold or cap that
        the metric names stays. With the number that its tool printed, "ultralytics=0.532", the combinations of rules
        and of other causes that the boxes give evidence of, and that give it, are named.
    boxes : int
        How many boxes are named at most.
    classes, exclude_classes, score_min, nms, drop_duplicates
        What is chosen from both sides, as in `evaluate`.
    class_map, gt_class_map, match_images, extra_images, images_in_common
        How both sides are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options, skip_invalid, allow
        How they are read, and what does not stop, as in `evaluate`.

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option or the metric names what does not exist, or the metric cannot be explained.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate, explain
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> result = evaluate(gt, BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9]))
    >>> [(fix.kind, fix.row, round(fix.gain, 4)) for fix in explain(result, metric="AP50").fixes]
    [('missed', 1, 0.495)]
    """
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options)
    keywords = locals()
    from jaccard_eval.features.explain.compute import Question, explain_sides

    rules, how = _asked(ProtocolOptions, keywords), _asked(SideOptions, keywords)
    if isinstance(gt, EvaluationResult):
        from jaccard_eval.features.explain.compute import sides_again

        given = sorted(changed(rules) | changed(how))
        if pred is not None or given:
            raise UsageError(
                f"{given[0] if given else 'pred'}: the result has rules, options and predictions of its own"
            )
        asked = Question.of(metric, gt.protocol, against=against, boxes=boxes)
        return replace(explain_sides(sides_again(gt), asked, version=__version__), gt=gt.gt, pred=gt.pred)
    if pred is None:
        raise UsageError("explain needs ground truth and predictions, or the result of an evaluation")
    Question.of(metric, rules.rules(), against=against, boxes=boxes)  # a slip is reported before anything is read
    gt, pred = opened(gt, gt_format), opened(pred, pred_format)
    settled, found = _settled(rules, gt, (pred,), how)
    asked = Question.of(metric, settled, against=against, boxes=boxes)
    result = explain_inputs(gt, pred, asked, how, version=__version__)
    return replace(result, findings=(*found, *result.findings))


@session()
def labels(
    gt: Source,
    *preds: Source | Sequence[Source],
    protocol: str | Protocol | None = None,
    every: bool = False,
    reviewed: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    apply: str | os.PathLike[str] | None = None,
    annotate: Sequence[str] = (),
    image_root: str = "",
    suspects: int | None = None,
    class_agnostic: bool = False,
    difficult: str | None = None,
    iou_type: str | None = None,
    sigmas: Sequence[float] | str | None = None,
    dilation_ratio: float | None = None,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    gt_class_map: Mapping[str, str] | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    images_in_common: bool = False,
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
    skip_invalid: bool = False,
    allow: Sequence[str] = (),
) -> LabelsResult:
    """Find annotations that are probably wrong: missing objects, wrong classes, bad boxes, spurious ones, duplicates.

    Of poses those with left and right exchanged as well.

    What predictions contradict is ranked by how surely they are right, which is learnt from the same data by class and
    size, so that a confident model does not flood the list.

    Parameters
    ----------
    gt : path or data
        As in `evaluate`.
    *preds : path or data
        One or more, or one list of them: of different models, or of one trained on other parts of the data. Several
        raise precision as far as they err independently.
    protocol, class_agnostic, difficult, iou_type, sigmas, dilation_ratio
        As in `evaluate`; the protocol defines which annotations do not count.
    every : bool
        List all suspects, not only the first 200 of each kind.
    reviewed : path or sequence of path, optional
        Lists of suspects with a column of verdicts, "accepted" or "rejected", one of each reviewer: these are not
        listed again, and AP is measured after what was accepted. What reviewers disagree on stays listed, with a
        finding.
    apply : path, optional
        New ground truth with what was accepted and nothing else changed: COCO, or of the format of `gt` if that is
        one that can be written.
    annotate : sequence of str
        Files for the tools of annotators, as FORMAT=PATH: "cvat=review.xml", "label-studio=tasks.json",
        "coco=review.json" or "yolo=review/". They have all objects of the images with listed suspects.
    image_root : str
        What stands before the names of images in Label Studio's tasks, such as "https://host/images/".
    suspects : int, optional
        How many listed suspects may be rather wrong than right; `gates` of the result has the verdict.
    classes, exclude_classes, score_min, nms, drop_duplicates
        What is chosen from both sides, as in `evaluate`.
    class_map, gt_class_map, match_images, extra_images, images_in_common
        How both sides are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options, skip_invalid, allow
        How they are read, and what does not stop, as in `evaluate`.

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option names what does not exist, or there are no predictions.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, labels
    >>> gt = BoxTable.from_arrays([0], ["dog"], [[0, 0, 10, 10]])
    >>> pred = BoxTable.from_arrays([0, 0], ["dog", "dog"], [[0, 0, 10, 10], [50, 50, 80, 80]], score=[0.9, 0.8])
    >>> [suspect.kind for suspect in labels(gt, pred).suspects if suspect.score > 0.05]
    ['missing']
    """
    gt_options, pred_options = skipping(skip_invalid, gt_options, pred_options)
    keywords = locals()
    from jaccard_eval.features.labels import LISTED
    from jaccard_eval.features.labels.compute import suspect_labels

    asked, how = _asked(ProtocolOptions, keywords), _asked(SideOptions, keywords)
    asked.rules()  # a slip is reported before anything is read
    if image_root and not any(text.startswith("label-studio") for text in annotate):
        words = "{image_root} is for {annotate}. Pass both, or neither."
        raise UsageError(fix=Fix.missing(words, image_root=None, annotate="label-studio=FILE"))
    sources = [opened(pred, pred_format) for pred in _several(preds)]
    if not sources:
        raise UsageError("labels needs predictions too")
    gt = opened(gt, gt_format)
    rules, found = _settled(asked, gt, sources, how)
    with sharing_options(len(sources)):  # what one of several predictions uses is of use
        sides = [load_and_trust(gt, pred, how, rules) for pred in sources]
    most = None if every else LISTED
    paths = (
        []
        if reviewed is None
        else [*reviewed]
        if isinstance(reviewed, Sequence) and not isinstance(reviewed, str)
        else [reviewed]
    )
    if not paths:
        if apply is not None:
            raise UsageError("apply writes what a review accepted: pass reviewed too")
        result = suspect_labels(sides, rules, most=most, version=__version__)
    else:
        from jaccard_eval.features.labels.review import gain_of, read_reviewed, without_judged, write_corrected

        said = read_reviewed([*map(path_of, paths)])
        whole = suspect_labels(sides, rules, most=None, version=__version__)
        result = without_judged(whole, said.verdict_of, most)
        result = replace(result, findings=(*result.findings, *said.findings.findings()))
        if said.accepted:
            result = replace(result, gain=gain_of(sides[0], rules, said.accepted, whole.suspects, said.verdict_of))
        if apply is not None:
            write_corrected(path_of(apply), sides[0], said.accepted)
    if annotate:
        from jaccard_eval.features.labels.review import annotate as write_for_annotators

        written = write_for_annotators(annotate, sides[0], result.suspects, image_root=image_root)
        result = replace(result, findings=(*result.findings, *written.findings()))
    result = replace(result, findings=(*found, *result.findings), images=image_files(sides[0]))
    return result if suspects is None else result.limited(suspects)


def _settled(
    asked: ProtocolOptions, gt: Source, preds: Sequence[Source], options: SideOptions
) -> tuple[Protocol, tuple[Finding, ...]]:
    """Return the rules, with what is compared where neither the caller nor the protocol names it, and notes on that."""
    found = tuple[Finding, ...]()
    if asked.protocol is None and (marked := benchmark_of(opened(gt, options.gt_format), preds, options.pred_format)):
        asked, log = replace(asked, protocol=marked), FindingLog()
        # COCO's rules compare areas, and points have none.
        fix = "" if asked.rules().overlap in POINTS else Fix.missing("Pass {protocol} for COCO's.", protocol="coco")
        log.note("protocol-chosen", Where(str(gt)), f"rules: {marked}, by the file's marks", fix=fix)
        found = log.findings()
    rules = asked.rules()
    iou_type = rules.iou_type
    if asked.iou_type is None and iou_type == BOXES:
        iou_type, noted = settle_iou_type(
            Input(gt, options.gt_format), [Input(pred, options.pred_format) for pred in preds]
        )
        found = (*found, *noted)
    how = options.pred_options or ReadOptions()
    if asked.protocol is None and iou_type in MASKS and how.assume_score is None and not how.columns:
        carriers = unscored(gt, preds, options.gt_format, options.pred_format)
        if carriers:
            asked, log = replace(asked, protocol="cells", iou_type=iou_type), FindingLog()
            fix = Fix.missing("Pass {assume_score} for COCO's AP, of masks that rank equally.", assume_score="1.0")
            detail = f"rules: cells, as the predictions ({carriers}) have no scores to rank them by"
            log.note("protocol-chosen", Where(str(preds[0])), detail, fix=fix)
            found, rules = (*found, *log.findings()), asked.rules()
    require_effect([name for name in changed(asked) if name in ("sigmas", "dilation_ratio")], "kinds", {"": iou_type})
    if iou_type == rules.iou_type:
        return rules, found
    return (rules if iou_type == BOXES else replace(asked, iou_type=iou_type).rules()), found


def _several(preds: Sequence[Any]) -> Sequence[Any]:
    """Return predictions one by one where they came as one list, which a list of boxes by image or record is not."""
    if len(preds) != 1 or not isinstance(preds[0], list | tuple):
        return preds
    is_records = all(isinstance(item, Mapping) and ("boxes" in item or "bbox" in item) for item in preds[0])
    return preds if is_records and preds[0] else preds[0]


Options = TypeVar("Options")


def _asked(kind: type[Options], keywords: Mapping[str, Any]) -> Options:
    """Return the options among the keywords of a verb: what both name is passed on by its name."""
    return kind(**{item.name: keywords[item.name] for item in fields(kind) if item.name in keywords})  # type: ignore[arg-type]
