"""The library's verbs: load, evaluate, compare, pixels, sensitivity; each orchestrates the layers below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval import __version__
from jaccard_eval.data.protocol import AreaRange, Protocol, ProtocolOptions
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import (
    Input,
    bring_together,
    evaluate_inputs,
)
from jaccard_eval.evaluation import (
    load as load,
)
from jaccard_eval.options import Bootstrap, EvaluateOptions, ReadOptions, SideOptions, changed
from jaccard_eval.text import shown

if TYPE_CHECKING:
    import os

    from jaccard_eval.api.comparing import CompareOptions
    from jaccard_eval.evaluation import Source
    from jaccard_eval.features.compare.result import ComparisonResult
    from jaccard_eval.features.inspect.result import Inspection
    from jaccard_eval.features.pixels.result import PixelsResult
    from jaccard_eval.features.scale.result import ScaleOptions, SensitivityResult
    from jaccard_eval.options import Slice


def evaluate(
    gt: Source,
    pred: Source,
    *,
    protocol: str | Protocol = "coco",
    iou: Sequence[float] | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    score: float | str | None = None,
    errors: bool = False,
    bootstrap: Bootstrap | int | None = None,
    slices: Sequence[Slice] = (),
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> EvaluationResult:
    """Evaluate predictions against ground truth.

    Parameters
    ----------
    gt, pred : path, Dataset or BoxTable
        Files or folders in any known format, loaded data, or arrays (`BoxTable.from_arrays`).
    protocol : str or Protocol
        "coco", "voc2007", "voc2012", or a protocol of your own.
    iou : sequence of float, optional
        IoU thresholds instead of the protocol's.
    max_dets : sequence of int, optional
        Caps on detections per image and class; empty for none.
    areas : sequence of AreaRange, optional
        Size ranges in square pixels; the first is that of the headline.
    class_agnostic : bool
        Pool all classes.
    classes, exclude_classes : sequence of str
        Ground-truth classes to evaluate, or to leave out.
    score_min : float, optional
        Leave out predictions below this score; average precision drops with it.
    nms : float, optional
        Leave out predictions that a better one of their image and own class overlaps by more than this IoU.
    drop_duplicates : bool
        Leave out rows of either side that equal an earlier one in every column.
    score : float or "best-f1", optional
        Operating point for precision, recall, F1 and counts.
    errors : bool
        Also say what kinds of errors there are, in ``result.errors``; the confusion matrix is that of `score`, or of
        the best F1.
    bootstrap : Bootstrap or int, optional
        How to resample the images, or how often, for intervals of the summary, every class and every slice.
    slices : sequence of Slice
        Parts of the images to measure as well, in ``result.slices``.
    class_map : mapping of str to str, or str, optional
        Prediction class to ground-truth class, the name of a rule ("id+1", "contiguous", "alphabetical", ...), or
        "auto": whatever makes most of the objects that lie in one place agree.
    match_images : {"id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1", "id-1"}, optional
        How images correspond; found by trying when left out.
    extra_images : {"error", "ignore", "empty"}
        What to do with prediction images that the ground truth does not have.
    gt_format, pred_format : str, optional
    gt_options, pred_options : ReadOptions, optional

    Returns
    -------
    EvaluationResult

    Raises
    ------
    DataError
        When an input cannot be used, or the two do not belong together.
    UsageError
        When an option names what does not exist.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate
    >>> gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> pred = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], score=[0.9])
    >>> round(evaluate(gt, pred)["AP50"], 4)
    0.505
    """
    rules = ProtocolOptions(
        protocol=protocol, iou=iou, max_dets=max_dets, areas=areas, class_agnostic=class_agnostic
    ).rules()
    options = EvaluateOptions(
        classes=classes,
        exclude_classes=exclude_classes,
        score_min=score_min,
        nms=nms,
        drop_duplicates=drop_duplicates,
        score=score,
        errors=errors,
        bootstrap=Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) else bootstrap,
        slices=slices,
        class_map=class_map,
        match_images=match_images,
        extra_images=extra_images,
        gt_format=gt_format,
        pred_format=pred_format,
        gt_options=gt_options,
        pred_options=pred_options,
    )
    return evaluate_inputs(gt, pred, rules, options, version=__version__)


def compare(
    gt: Source | None,
    *preds: Source,
    options: CompareOptions | None = None,
    protocol: str | Protocol = "coco",
    iou: Sequence[float] | None = None,
    max_dets: Sequence[int] | None = None,
    areas: Sequence[AreaRange] | None = None,
    class_agnostic: bool = False,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> ComparisonResult:
    """Compare predictions with the first of them, on one ground truth, which is read once.

    Parameters
    ----------
    gt : path, Dataset or BoxTable, optional
        None when all predictions are saved runs, which hold it.
    *preds : path, Dataset or BoxTable
        Two or more; the first is the baseline. The path of a run, saved as .npz by ``evaluate``, will do as well, or
        of its JSON document beside that.
    options : CompareOptions, optional
        How boxes are compared, slices of the images, and the bootstrap for intervals.
    protocol, iou, max_dets, areas, class_agnostic
        As in `evaluate`.
    classes, exclude_classes, score_min, nms, drop_duplicates, class_map, match_images, extra_images
        What is chosen from both sides, and how they are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options
        How they are read, as in `evaluate`.

    Returns
    -------
    ComparisonResult

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
    >>> [(str(one.kind), one.row) for one in compare(gt, a, b).others[0].changes]
    [('lost', 0), ('found', 1)]
    """
    from jaccard_eval.api.comparing import CompareOptions, compare_inputs
    from jaccard_eval.engine.threads import map_in_order
    from jaccard_eval.runs import load_run, saved_run_of

    asked = ProtocolOptions(protocol=protocol, iou=iou, max_dets=max_dets, areas=areas, class_agnostic=class_agnostic)
    how = EvaluateOptions(
        classes=classes,
        exclude_classes=exclude_classes,
        score_min=score_min,
        nms=nms,
        drop_duplicates=drop_duplicates,
        class_map=class_map,
        match_images=match_images,
        extra_images=extra_images,
        gt_format=gt_format,
        pred_format=pred_format,
        gt_options=gt_options,
        pred_options=pred_options,
    )
    given = changed(asked) | changed(how)
    if gt is None and given:
        raise UsageError(f"{', '.join(sorted(given))}: saved runs have rules and options of their own")
    if gt is not None and preds and all(saved_run_of(pred) is not None for pred in preds):
        raise UsageError("all predictions are saved runs, which hold their ground truth: leave the other one out")

    def run(gt: Source | None, pred: Source) -> EvaluationResult:
        saved = saved_run_of(pred)
        if saved is not None:
            return load_run(saved)
        if gt is None:
            raise UsageError(f"{shown(str(pred))} is no saved run: name the ground truth to evaluate it on")
        return evaluate_inputs(gt, pred, rules, how, version=__version__)

    rules, truth = asked.rules(), None if gt is None else Input(gt, gt_format, gt_options)
    return compare_inputs(truth, preds, run, options or CompareOptions(), version=__version__, run=map_in_order)


def inspect(
    path: Source,
    pred: Source | None = None,
    *,
    role: str | None = None,
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> Inspection:
    """Read one input, or both sides of an evaluation, and tell what they hold and what is odd about them.

    Nothing is measured. Where one of two sides cannot be read, or the two do not correspond, what was read is described
    and the errors are among the findings.

    Parameters
    ----------
    path : path, Dataset or BoxTable
        Ground truth; predictions as well, where it is alone.
    pred : path, Dataset or BoxTable, optional
        Predictions.
    role : {"gt", "pred"}, optional
        What `path` is where it is alone; found by looking for scores when left out.
    class_map, match_images, extra_images, gt_format, pred_format, gt_options, pred_options
        As for `evaluate`.

    Returns
    -------
    Inspection

    Raises
    ------
    DataError
        When nothing can be read.
    UsageError
        When an option names what does not exist.
    """
    from jaccard_eval.api.inspecting import inspect_alone, inspect_both

    ours, theirs = Input(path, gt_format, gt_options), Input(path if pred is None else pred, pred_format, pred_options)
    if pred is None:
        return inspect_alone(theirs if role == "pred" else ours, role, version=__version__)
    options = SideOptions(match_images=match_images, extra_images=extra_images, class_map=class_map)
    return inspect_both(ours, theirs, options, version=__version__)


def sensitivity(
    gt: Source,
    pred: Source,
    *,
    scale: ScaleOptions | None = None,
    protocol: str | Protocol = "coco",
    iou: Sequence[float] | None = None,
    max_dets: Sequence[int] | None = None,
    class_agnostic: bool = False,
    classes: Sequence[str] = (),
    exclude_classes: Sequence[str] = (),
    score_min: float | None = None,
    nms: float | None = None,
    drop_duplicates: bool = False,
    class_map: Mapping[str, str] | str | None = None,
    match_images: str | None = None,
    extra_images: str = "error",
    gt_format: str | None = None,
    pred_format: str | None = None,
    gt_options: ReadOptions | None = None,
    pred_options: ReadOptions | None = None,
) -> SensitivityResult:
    """Analyse what the size of objects does to the score: errors in pixels, what they cost, and the ceiling.

    Parameters
    ----------
    gt, pred : path, Dataset or BoxTable
        As in `evaluate`.
    scale : ScaleOptions, optional
        Size bins, distances in pixels, annotation noise and its seed.
    protocol, iou, max_dets, class_agnostic
        As in `evaluate`; area ranges give way to the size bins.
    classes, exclude_classes, score_min, nms, drop_duplicates, class_map, match_images, extra_images
        What is chosen from both sides, and how they are brought together, as in `evaluate`.
    gt_format, pred_format, gt_options, pred_options
        How they are read, as in `evaluate`.

    Returns
    -------
    SensitivityResult

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
    from jaccard_eval.api.scaling import analyse_sides
    from jaccard_eval.features.scale.result import ScaleOptions

    rules = ProtocolOptions(protocol=protocol, iou=iou, max_dets=max_dets, class_agnostic=class_agnostic).rules()
    options = SideOptions(
        classes=classes,
        exclude_classes=exclude_classes,
        score_min=score_min,
        nms=nms,
        drop_duplicates=drop_duplicates,
        class_map=class_map,
        match_images=match_images,
        extra_images=extra_images,
        gt_format=gt_format,
        pred_format=pred_format,
        gt_options=gt_options,
        pred_options=pred_options,
    )
    return analyse_sides(bring_together(gt, pred, options), rules, scale or ScaleOptions(), version=__version__)


def pixels(
    gt: str | os.PathLike[str],
    pred: str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    colors: str | os.PathLike[str] | None = None,
    ignore: Sequence[int] = (),
    reduce_zero: str | None = None,
    background: int | None = None,
    drop_background: str | None = None,
    list_file: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> PixelsResult:
    """Evaluate label maps: pictures whose pixel values are classes, as semantic segmentation gives them.

    Parameters
    ----------
    gt, pred : path
        A PNG or .npy file, or a folder of them.
    classes : sequence of str, optional
        Name of each class, by its value; any other value is then an error. When left out, the names of `colors`, else
        every value that occurs is a class.
    colors : path, optional
        Table of colours, for maps that hold colours or whose palettes decide.
    ignore : sequence of int
        Values that are no class, such as 255; their pixels in the ground truth are left out.
    reduce_zero : {"gt", "both"}, optional
        Whose values count from 1, with 0 for pixels to ignore.
    background : int, optional
        Class that the means leave out.
    drop_background : {"gt", "pred", "both"}, optional
        Whose background pixels are not counted at all; see `PixelProtocol`.
    list_file : path, optional
        Which maps to compare: names that both sides know, or pairs of paths.
    workers : int, optional
        Threads; as many as there are processors when left out. The result does not depend on it.

    Returns
    -------
    PixelsResult

    Raises
    ------
    DataError
        With every file that cannot be read, has no counterpart or another size, or holds unknown values.
    UsageError
        When an option names what does not exist.
    """
    from jaccard_eval.engine.threads import map_in_order
    from jaccard_eval.features.pixels.counting import count_label_maps, pixels_result
    from jaccard_eval.features.pixels.result import PixelProtocol
    from jaccard_eval.reading.labelmaps.colors import read_color_table

    table = None if colors is None else read_color_table(Path(colors))
    rules = PixelProtocol(
        classes=tuple(classes) if classes is not None else table.names if table is not None else None,
        colors=None if table is None else table.digest,
        ignore=tuple(sorted(set(ignore))),
        reduce_zero=reduce_zero,
        background=background,
        drop_background=drop_background,
    )
    maps = count_label_maps(
        Path(gt),
        Path(pred),
        rules,
        colors=table,
        list_file=None if list_file is None else Path(list_file),
        run=partial(map_in_order, workers=workers),
    )
    return pixels_result(maps, rules, __version__)
