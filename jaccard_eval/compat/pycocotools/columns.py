"""Annotations of all images as two tables that are matched at once, where this package and pycocotools agree."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.params import Params
from jaccard_eval.compat.pycocotools.perimage import Group, Groups
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO, AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.curves import Curves


def whole_curves(groups: Groups) -> Curves | None:
    """Match all groups, and return their curves; None where only pycocotools' own procedure defines the outcome."""
    params = groups.params
    n_images, n_labels = len(params.imgIds), len(params.catIds)
    if not n_images or not n_labels or len(set(params.catIds)) < n_labels:
        return None
    try:
        protocol = _protocol(params)
        gt, pred = (_Side(side, params) for side in (groups.gts, groups.dts))
        # A match with id 0 is none there, and a detection with an id of 0 or less takes nothing.
        if (gt.ids == 0).any() or (pred.ids <= 0).any():
            return None
        crowd = np.fromiter((bool(int(ann["iscrowd"])) for ann in gt.anns), np.bool_, len(gt.anns))
        truth, found = gt.table(crowd=crowd), pred.table(score=pred.column("score"))
    except UsageError:
        # Numbers that are not finite, or thresholds in no order: defined there, and refused here.
        return None
    table = match_boxes(truth, found, protocol, n_images=n_images, n_labels=n_labels)
    return Curves(Ranking.of(table, n_images))


def _protocol(params: Params) -> Protocol:
    """Return the rules of COCO with thresholds, area ranges and caps of the parameters; a UsageError where invalid."""
    areas = [AreaRange(str(place), float(low), float(high)) for place, (low, high) in enumerate(params.areaRng)]
    return COCO.with_options(
        iou_thresholds=tuple(float(threshold) for threshold in params.iouThrs),
        areas=tuple(areas),
        max_dets=tuple(params.maxDets),
        class_agnostic=not params.useCats,
    )


class _Side:
    """The annotations of one side that take part, in the order of the images, and their columns."""

    def __init__(self, side: Mapping[Group, list[Record]], params: Params) -> None:
        image_row = {image: row for row, image in enumerate(params.imgIds)}
        label_row = {category: row for row, category in enumerate(params.catIds)}
        places = [
            (image_row[image], label_row[category], anns)
            for (image, category), anns in side.items()
            if image in image_row and category in label_row
        ]
        # Within an image and category annotations keep their order; matching knows no other.
        self.anns = list(chain.from_iterable(anns for _, _, anns in places))
        sizes = [len(anns) for _, _, anns in places]
        self._image = np.repeat(np.array([image for image, _, _ in places], dtype=np.int64), sizes)
        self._label = np.repeat(np.array([label for _, label, _ in places], dtype=np.int64), sizes)

    def column(self, key: str) -> npt.NDArray[np.float64]:
        """Return the numbers under a key, (n,); a UsageError for what is not a number."""
        return _numbers(map(itemgetter(key), self.anns), len(self.anns))

    @property
    def ids(self) -> npt.NDArray[np.float64]:
        """Ids of the annotations, (n,)."""
        return self.column("id")

    def table(self, **columns: Any) -> BoxTable:
        """Return the boxes."""
        boxes = _numbers(chain.from_iterable(map(itemgetter("bbox"), self.anns)), 4 * len(self.anns)).reshape(-1, 4)
        area = self.column("area")
        return BoxTable.from_arrays(self._image, self._label, boxes, encoding="xywh", area=area, **columns)


def _numbers(values: Any, n: int) -> npt.NDArray[np.float64]:
    try:
        return np.fromiter(values, np.float64, n)
    except (TypeError, ValueError):
        raise UsageError("not a number") from None
