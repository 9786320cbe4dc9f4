"""Suppression of boxes that a better one overlaps, of arrays or of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from jaccard_eval.errors import UsageError
from jaccard_eval.inputs import load

if TYPE_CHECKING:
    import numpy.typing as npt

    from jaccard_eval.inputs import Source
    from jaccard_eval.matching.order import IntArray
    from jaccard_eval.options import ReadOptions


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
    from jaccard_eval.features.nms.compute import Suppression, suppress
    from jaccard_eval.features.nms.compute import nms as suppress_arrays
    from jaccard_eval.matching.order import descending_order

    if scores is not None:
        if class_agnostic or format_name is not None or options is not None:
            raise UsageError("class_agnostic, format_name and options are those of predictions; pass these alone")
        return suppress_arrays(boxes, scores, labels=labels, images=images, iou=iou, by=by, encoding=encoding)
    if labels is not None or images is not None or encoding != "xyxy":
        raise UsageError("labels, images and encoding are those of arrays; pass scores as well")
    side = load(boxes, role="pred", format_name=format_name, options=options)
    kept = suppress(side.boxes, Suppression(iou=iou, by=by), class_agnostic=class_agnostic)
    # Without a box, there may be no column of scores either.
    order = slice(None) if kept.score is None else descending_order(kept.score)
    found: IntArray = kept.source[order]
    return found
