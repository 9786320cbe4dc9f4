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
from jaccard_eval.compat.pycocotools.perimage import NO_CATEGORY, Annotations, Groups, ScannedAnnotations
from jaccard_eval.compat.pycocotools.scanned import ScannedRows
from jaccard_eval.compat.pycocotools.shapes import require_points, shaped_columns
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import BOXES, AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.matchtable import NO_PAIR, MatchTable, match_boxes
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.similarity.masks import Masks


@dataclass(frozen=True, slots=True, eq=False)
class WholeMatch:
    """All images matched at once: the curves, and what `results` needs to name who matched whom."""

    curves: Curves
    table: MatchTable
    gt: _Side
    pred: _Side
    params: Params

    def results(self) -> list[Record | None]:
        """Return what pycocotools records of each category, area range and image, in this order; None without any box.

        Source: pycocotools 2.0.11 ``cocoeval.py``, ``COCOeval.evaluateImg``.
        """
        params, table = self.params, self.table
        n_images, n_areas = len(params.imgIds), len(params.areaRng)
        categories = params.catIds if params.useCats else [NO_CATEGORY]
        found: list[Record | None] = [None] * (len(categories) * n_areas * n_images)
        # Detections in the order of their groups, by score in each; `chosen` has their place there.
        of_dt = self._groups(self.pred.label[table.row], self.pred.image[table.row])
        dt_order = np.lexsort((table.rank, of_dt))
        rows = table.row[dt_order]
        chosen = np.empty(len(rows), dtype=np.int64)
        chosen[dt_order] = np.arange(len(rows))
        chosen = chosen[table.candidate]
        dt_ids, scores = self.pred.values("id", rows), self.pred.values("score", rows)
        of_gt = self._groups(self.gt.label, self.gt.image)
        n_groups = len(categories) * n_images
        dt_cuts, gt_cuts = (np.searchsorted(np.sort(of), np.arange(n_groups + 1)) for of in (of_dt, of_gt))
        filled = np.flatnonzero((np.diff(dt_cuts) > 0) | (np.diff(gt_cuts) > 0)).tolist()
        starts = [cuts.tolist() for cuts in (dt_cuts, gt_cuts)]
        for a, area in enumerate(params.areaRng):
            # What counts comes first; of all categories together, those of the first one.
            gt_order = np.lexsort((self.gt.label, table.gt_ignored[a], of_gt))
            gt_ids, ignored = self.gt.values("id", gt_order), table.gt_ignored[a][gt_order]
            place = np.empty(len(gt_order), dtype=np.int64)
            place[gt_order] = np.arange(len(gt_order))
            pair = table.chosen_pairs(a)  # (T, c)
            dt_matches, gt_matches = np.zeros((len(pair), len(rows))), np.zeros((len(pair), len(gt_order)))
            dt_ignored = np.tile((table.area[dt_order] < area[0]) | (table.area[dt_order] > area[1]), (len(pair), 1))
            t, c = np.nonzero(pair != NO_PAIR)
            partner = table.pair_gt[pair[t, c]]
            dt_matches[t, chosen[c]] = self.gt.ids[partner]
            dt_ignored[t, chosen[c]] = table.gt_ignored[a][partner]
            # A crowd is matched often: the one of the lowest score is written last, as there.
            gt_matches[t, place[partner]] = self.pred.ids[table.row[table.candidate[c]]]
            for group in filled:
                k, i = divmod(group, n_images)
                dt, gt = (slice(cuts[group], cuts[group + 1]) for cuts in starts)
                found[(k * n_areas + a) * n_images + i] = {
                    "image_id": params.imgIds[i],
                    "category_id": categories[k],
                    "aRng": area,
                    "maxDet": params.maxDets[-1],
                    "dtIds": dt_ids[dt],
                    "gtIds": gt_ids[gt],
                    "dtMatches": dt_matches[:, dt],
                    "gtMatches": gt_matches[:, gt],
                    "dtScores": scores[dt],
                    # Without ground truth the array stays one of floats, as it does there.
                    "gtIgnore": ignored[gt].astype(np.int64 if gt.start < gt.stop else np.float64),
                    "dtIgnore": dt_ignored[:, dt],
                }
        return found

    def _groups(self, label: npt.NDArray[np.int64], image: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (label * len(self.params.imgIds) if self.params.useCats else 0) + image


def whole_match(groups: Groups) -> WholeMatch | None:
    """Match all groups at once; None where only pycocotools' own procedure defines the outcome."""
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
    return WholeMatch(Curves(Ranking.of(table, n_images)), table, gt, pred, params)


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
        self._params, self._masks, self.anns = params, side.masks, list[Record]()
        # What was grouped may have been changed since.
        self._rows = side.rows if isinstance(side, ScannedAnnotations) and "groups" not in vars(side) else None
        if self._rows is not None:
            self._take_rows(self._rows)
            return
        anns = side.listed()
        # Rows of the parameters, which other ids have none of. Within an image and category annotations keep their
        # order; matching knows no other.
        self.image, self.label = (
            _places(map(itemgetter(key), anns), ids)
            for key, ids in (("image_id", params.imgIds), ("category_id", params.catIds))
        )
        if (absent := (self.image < 0) | (self.label < 0)).any():
            kept = np.flatnonzero(~absent)
            anns = [anns[row] for row in kept]
            self.image, self.label = self.image[kept], self.label[kept]
        # All keys of an annotation at once: a dictionary is slow to reach, and fast to read.
        numbers = _numbers(map(itemgetter("id", "area", key), anns), (len(anns), 3))
        if not np.isfinite(numbers).all():
            raise UsageError("not a number")
        self.ids, self._area, self.last = (np.ascontiguousarray(column) for column in numbers.T)
        self.anns = anns

    def _take_rows(self, rows: ScannedRows) -> None:
        """Take the columns of results that nobody has made records of."""
        places = (rows.image, self._params.imgIds), (rows.category, self._params.catIds)
        image, label = (_places(keys.tolist(), ids) for keys, ids in places)
        self._kept = np.flatnonzero((image >= 0) & (label >= 0))
        self.image, self.label, self._area = image[self._kept], label[self._kept], rows.area[self._kept]
        self.ids, self.last = (self._kept + 1).astype(np.float64), rows.score[self._kept]
        if not (np.isfinite(self._area).all() and np.isfinite(self.last).all()):
            raise UsageError("not a number")

    def values(self, key: str, rows: npt.NDArray[Any]) -> list[Any]:
        """Return what some of the annotations have under a key: their ids, or the scores of results."""
        if self._rows is None:
            return [self.anns[row][key] for row in rows.tolist()]
        found: list[Any] = (self._kept[rows] + 1 if key == "id" else self.last[rows]).tolist()
        return found

    def table(self, **columns: Any) -> BoxTable:
        """Return the boxes, and the shapes that are compared."""
        if self._rows is not None:
            columns["boxes"] = self._rows.boxes[self._kept]
            if self._params.iouType != BOXES and self._rows.shapes is not None:
                columns["shapes"] = self._rows.shapes.take(self._kept)
                require_points(columns["shapes"], self._params)
        elif self._params.iouType == BOXES:
            columns["boxes"] = _numbers(map(itemgetter("bbox"), self.anns), (len(self.anns), 4))
        else:
            columns["boxes"], columns["shapes"] = shaped_columns(self.anns, self._params, self._masks)
        return BoxTable.from_arrays(self.image, self.label, encoding="xywh", area=self._area, **columns)


def _places(keys: Iterable[Any], ids: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the place of each key among the ids of the parameters, -1 for none."""
    # As numbers of Python, which are compared five times as fast as those of NumPy.
    row_of = {value: row for row, value in enumerate(np.asarray(ids).tolist())}
    return np.fromiter(map(row_of.get, keys, repeat(-1)), np.int64)


def _numbers(rows: Iterable[Any], shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, shape[0] * shape[1]).reshape(shape)
    except (TypeError, ValueError):
        raise UsageError("not a number") from None
