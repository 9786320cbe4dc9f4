"""Annotations of all images as two tables that are matched at once, where this package and pycocotools agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.params import Params, rules_of
from jaccard_eval.compat.pycocotools.perimage import Annotations, Groups
from jaccard_eval.compat.pycocotools.shapes import shaped_columns
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import BOXES, AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.similarity.masks import Masks


def whole_curves(groups: Groups) -> Curves | None:
    """Match all groups, and return their curves; None where only pycocotools' own procedure defines the outcome."""
    params = groups.params
    n_images, n_labels = len(params.imgIds), len(params.catIds)
    if not n_images or not n_labels or len(set(params.catIds)) < n_labels:
        return None
    # Without categories no keypoints are compared there: see `Groups.overlaps`.
    if params.iouType == "keypoints" and not params.useCats:
        return None
    try:
        protocol = _protocol(params)
        gt, pred = _Side(groups.gts, params, "iscrowd"), _Side(groups.dts, params, "score")
        # A match with id 0 is none there, and a detection with an id of 0 or less takes nothing.
        if (gt.ids == 0).any() or (pred.ids <= 0).any():
            return None
        ignored = {"ignore": [bool(ann["ignore"]) for ann in gt.anns]} if params.iouType == "keypoints" else {}
        truth, found = gt.table(crowd=np.trunc(gt.last) != 0, **ignored), pred.table(score=pred.last)
    except UsageError:
        # Numbers that are not finite, or thresholds in no order: defined there, and refused here.
        return None
    if isinstance(truth.shapes, Masks) and isinstance(found.shapes, Masks):
        # Masks of other sizes than the rest of their image are refused where they are compared.
        image = np.concatenate((truth.image, found.image))
        sized = np.column_stack((image, np.concatenate((truth.shapes.sizes, found.shapes.sizes))))
        if len(np.unique(sized, axis=0)) > len(np.unique(image)):
            return None
    table = match_boxes(truth, found, protocol, n_images=n_images, n_labels=n_labels)
    return Curves(Ranking.of(table, n_images))


def _protocol(params: Params) -> Protocol:
    """Return the rules of COCO with thresholds, area ranges and caps of the parameters; a UsageError where invalid."""
    areas = [AreaRange(str(place), float(low), float(high)) for place, (low, high) in enumerate(params.areaRng)]
    return rules_of(params).with_options(
        iou_thresholds=tuple(float(threshold) for threshold in params.iouThrs),
        areas=tuple(areas),
        max_dets=tuple(params.maxDets),
        class_agnostic=not params.useCats,
    )


class _Side:
    """The annotations of one side that take part: their ids, and the numbers under one more key, (n,)."""

    def __init__(self, side: Annotations, params: Params, key: str) -> None:
        anns = side.listed()
        # Rows of the parameters, which other ids have none of. Within an image and category annotations keep their
        # order; matching knows no other.
        self._image, self._label = _rows(anns, "image_id", params.imgIds), _rows(anns, "category_id", params.catIds)
        if (absent := (self._image < 0) | (self._label < 0)).any():
            kept = np.flatnonzero(~absent)
            anns = [anns[row] for row in kept]
            self._image, self._label = self._image[kept], self._label[kept]
        # All keys of an annotation at once: a dictionary is slow to reach, and fast to read.
        numbers = _numbers(map(itemgetter("id", "area", key), anns), (len(anns), 3))
        if not np.isfinite(numbers).all():
            raise UsageError("not a number")
        self.ids, self._area, self.last = (np.ascontiguousarray(column) for column in numbers.T)
        self.anns, self._params = anns, params

    def table(self, **columns: Any) -> BoxTable:
        """Return the boxes, and the shapes that are compared."""
        if self._params.iouType == BOXES:
            columns["boxes"] = _numbers(map(itemgetter("bbox"), self.anns), (len(self.anns), 4))
        else:
            columns["boxes"], columns["shapes"] = shaped_columns(self.anns, self._params)
        return BoxTable.from_arrays(self._image, self._label, encoding="xywh", area=self._area, **columns)


def _rows(anns: Sequence[Record], key: str, ids: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the place of each annotation's id among those of the parameters, -1 for none."""
    # As numbers of Python, which are compared five times as fast as those of NumPy.
    row_of = {value: row for row, value in enumerate(np.asarray(ids).tolist())}
    return np.fromiter(map(row_of.get, map(itemgetter(key), anns), repeat(-1)), np.int64, len(anns))


def _numbers(rows: Iterable[Any], shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, shape[0] * shape[1]).reshape(shape)
    except (TypeError, ValueError):
        raise UsageError("not a number") from None
