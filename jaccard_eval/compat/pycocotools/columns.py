"""Annotations of all images as two tables that are matched at once, where this package and pycocotools agree.

Elsewhere one image and category at a time; and precision, recall and scores as pycocotools tabulates them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.params import Params, rules_of
from jaccard_eval.compat.pycocotools.shapes import (
    ReadMasks,
    ScannedRows,
    require_points,
    shape_overlaps,
    shaped_columns,
)
from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.protocol import BOXES, COCO, AreaRange, Protocol
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.matchtable import LARGEST_THRESHOLD, NO_PAIR, MatchTable, Ranking, match_boxes
from jaccard_eval.metrics.curves import Curves
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs
from jaccard_eval.similarity.masks import Masks

Group = tuple[Any, Any]  # image id, category id
NO_CATEGORY = -1  # of all of them, where categories are not used


class Annotations:
    """The annotations of one side: in a list, and by image and category as soon as somebody asks.

    An evaluation of all images at once has no use for the groups, which take as long to make as all the matching.
    """

    def __init__(self, listed: Sequence[Record], masks: ReadMasks | None = None) -> None:
        self._listed, self.masks = listed, masks

    @classmethod
    def of_groups(cls, groups: dict[Group, list[Record]]) -> Annotations:
        """Return annotations that somebody else has grouped."""
        annotations = cls([])
        annotations.groups = groups
        return annotations

    @cached_property
    def groups(self) -> dict[Group, list[Record]]:
        """The annotations by image and category, for callers to change."""
        groups: dict[Group, list[Record]] = defaultdict(list)
        for key, ann in zip(map(itemgetter("image_id", "category_id"), self._listed), self._listed, strict=True):
            groups[key].append(ann)
        return groups

    def listed(self) -> list[Record]:
        """Return the annotations, those of a group in their order; as the groups have them, where these were used."""
        return list(chain.from_iterable(self.groups.values()) if "groups" in vars(self) else self._listed)


class ScannedAnnotations(Annotations):
    """Results of which there are columns; their records are selected when somebody asks for them."""

    def __init__(self, rows: ScannedRows, select: Callable[[], Sequence[Record]]) -> None:
        super().__init__([])
        self.rows, self._select = rows, select

    def listed(self) -> list[Record]:
        """Return the annotations, made now if nobody has asked for them before."""
        self._listed = self._listed or self._select()
        return super().listed()

    @cached_property
    def groups(self) -> dict[Group, list[Record]]:
        """The annotations by image and category, for callers to change."""
        return Annotations(self.listed()).groups


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Annotations of both sides by image and category, as `COCOeval._prepare` leaves them, and the parameters."""

    gts: Annotations
    dts: Annotations
    params: Params

    def category_ids(self) -> Sequence[Any]:
        """Return the categories that are evaluated apart."""
        return self.params.catIds if self.params.useCats else [NO_CATEGORY]

    def of(self, image: Any, category: Any) -> tuple[list[Record], list[Record]]:
        """Return ground truth and detections of an image and category; of all categories where these are not used."""
        categories = [category] if self.params.useCats else self.params.catIds
        # By `get`: callers' dictionaries make an entry of every key that is looked up.
        sides = (self.gts.groups, self.dts.groups)
        gts, dts = ([ann for key in categories for ann in side.get((image, key), ())] for side in sides)
        return gts, dts

    def overlaps(self, image: Any, category: Any) -> FloatArray | list[Any]:
        """Return how much detections, by score, and ground truth agree; an empty list without either."""
        gts, dts = self.of(image, category)
        dts = _by_score(dts, self.params.maxDets[-1])
        crowd = np.array([int(gt["iscrowd"]) for gt in gts], dtype=np.bool_)
        # pycocotools looks for poses of the category -1, of which there are none.
        if not gts or not dts or (self.params.iouType == "keypoints" and not self.params.useCats):
            return []
        if self.params.iouType != BOXES:
            return shape_overlaps(dts, gts, crowd, self.params)
        first, second = (Corners.of(np.array([ann["bbox"] for ann in side], dtype=np.float64)) for side in (dts, gts))
        i, j = (grid.ravel() for grid in np.indices((len(dts), len(gts))))
        i, j, overlap = overlapping_pairs(first, second, i, j, crowd=crowd, threshold=-np.inf)
        # By columns in memory, as the extension of pycocotools returns it.
        overlaps = np.zeros((len(dts), len(gts)), order="F")
        overlaps[i, j] = overlap
        return overlaps

    def all_overlaps(self) -> dict[Group, FloatArray | list[Any]]:
        """Return the overlaps of every image and category."""
        return {(image, key): self.overlaps(image, key) for image in self.params.imgIds for key in self.category_ids()}

    def evaluate(
        self, image: Any, category: Any, area: Sequence[float], cap: int, overlaps: FloatArray | list[Any]
    ) -> Record | None:
        """Return what pycocotools records of an image, category and area range; None without any box.

        Source: pycocotools 2.0.11 ``cocoeval.py``, ``COCOeval.evaluateImg``.
        """
        gts, dts = self.of(image, category)
        if not gts and not dts:
            return None
        low, high = area
        ignored = np.array([int(bool(gt["ignore"]) or not low <= gt["area"] <= high) for gt in gts])
        for gt, flag in zip(gts, ignored.tolist(), strict=True):
            gt["_ignore"] = flag
        order = np.argsort(ignored, kind="stable")  # what counts comes first
        gts, dts = [gts[row] for row in order], _by_score(dts, cap)
        # Without ground truth the array stays one of floats, as it does there.
        ignored = ignored[order]
        matches = self._match(gts, dts, ignored, overlaps[:, order] if len(overlaps) else None)  # type: ignore[call-overload]
        outside = np.array([not low <= dt["area"] <= high for dt in dts], dtype=np.bool_)
        return {
            "image_id": image,
            "category_id": category,
            "aRng": area,
            "maxDet": cap,
            "dtIds": [dt["id"] for dt in dts],
            "gtIds": [gt["id"] for gt in gts],
            "dtMatches": matches.dt,
            "gtMatches": matches.gt,
            "dtScores": [dt["score"] for dt in dts],
            "gtIgnore": ignored,
            "dtIgnore": matches.dt_ignored | ((matches.dt == 0) & outside),
        }

    def _match(
        self,
        gts: Sequence[Record],
        dts: Sequence[Record],
        ignored: npt.NDArray[Any],
        overlaps: FloatArray | None,
    ) -> _Matches:
        """Match detections, by score, to ground truth, what counts first, at every threshold."""
        n = len(self.params.iouThrs)
        matches = _Matches(np.zeros((n, len(dts))), np.zeros((n, len(gts))), np.zeros((n, len(dts)), dtype=np.bool_))
        thresholds = [min(threshold, LARGEST_THRESHOLD) for threshold in self.params.iouThrs]
        if overlaps is None or not thresholds:
            return matches
        # Most pairs reach no threshold. Asked this way round NaN is kept, which is below nothing there.
        reached = ~(overlaps[: len(dts)] < min(thresholds))
        candidates = [(int(row), np.flatnonzero(reached[row]).tolist()) for row in np.flatnonzero(reached.any(axis=1))]
        values, skipped = overlaps.tolist(), ignored.tolist()
        crowd = [int(gt["iscrowd"]) for gt in gts]
        for t, threshold in enumerate(thresholds):
            taken = [False] * len(gts)
            for row, columns in candidates:
                best, chosen = threshold, None
                for column in columns:
                    if taken[column] and not crowd[column]:
                        continue
                    # What counts is preferred, so that ignored ground truth is not looked at after a match.
                    if chosen is not None and skipped[chosen] < skipped[column]:
                        break
                    if values[row][column] < best:
                        continue
                    best, chosen = values[row][column], column
                if chosen is None:
                    continue
                matches.dt[t, row], matches.gt[t, chosen] = gts[chosen]["id"], dts[row]["id"]
                matches.dt_ignored[t, row] = skipped[chosen]
                # pycocotools asks the id whether ground truth is taken: ids of 0 and below take nothing.
                taken[chosen] = dts[row]["id"] > 0
        return matches


@dataclass(frozen=True, slots=True, eq=False)
class _Matches:
    """Ids of the partners, 0 for none, (T, D) and (T, G), and which detections matched ignored ground truth (T, D)."""

    dt: FloatArray
    gt: FloatArray
    dt_ignored: npt.NDArray[np.bool_]


def _by_score(dts: Sequence[Record], cap: int) -> list[Record]:
    order = np.argsort([-dt["score"] for dt in dts], kind="stable")
    return [dts[row] for row in order[:cap]]


UNDEFINED = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Axes are T IoU thresholds, R recall values, K categories, A area ranges and M caps; -1 is undefined."""

    precision: FloatArray  # (T, R, K, A, M)
    recall: FloatArray  # (T, K, A, M)
    scores: FloatArray  # (T, R, K, A, M)

    @classmethod
    def undefined(cls, params: Any) -> Tables:
        """Return tables for parameters in which everything is undefined."""
        n_thresholds, n_recalls = len(params.iouThrs), len(params.recThrs)
        rest = len(params.catIds) if params.useCats else 1, len(params.areaRng), len(params.maxDets)
        precision, scores = (np.full((n_thresholds, n_recalls, *rest), UNDEFINED) for _ in range(2))
        return cls(precision, np.full((n_thresholds, *rest), UNDEFINED), scores)


def whole_tables(curves: Curves, params: Any, evaluated: Any) -> Tables | None:
    """Return the tables of an evaluation; None for parameters that differ from those it was made with."""
    # Where categories are not used, `accumulate` has replaced their ids by then.
    lists = ("imgIds", *(("catIds",) if evaluated.useCats else ()), "iouThrs", "areaRng", "maxDets")
    same = all(np.array_equal(getattr(params, name), getattr(evaluated, name)) for name in lists)
    recalls = np.asarray(params.recThrs, dtype=np.float64)
    if not same or params.useCats != evaluated.useCats or not len(recalls) or not (np.diff(recalls) >= 0).all():
        return None
    # Curves begin at recall 0, and what is below it is reached as early.
    grid = np.concatenate(([0.0], np.maximum(recalls, 0.0)))
    tables = Tables.undefined(params)
    for a in range(len(params.areaRng)):
        known = curves.positives[a] > 0
        for m in range(len(params.maxDets)):
            precision = curves.steps(a, m).interpolated_precision(grid)[:, 1:]
            scores = curves.recall_scores(a, m, grid)[:, 1:]
            tables.precision[:, :, known, a, m] = precision[..., known]
            tables.scores[:, :, known, a, m] = scores[..., known]
            tables.recall[:, known, a, m] = curves.final_recall(a, m)[:, known]
    return tables


def gathered_tables(results: Sequence[Record | None], params: Any, evaluated: Any) -> Tables:
    """Return the tables of results by category, area range and image of the parameters they were evaluated with.

    Source: pycocotools 2.0.11 ``cocoeval.py``, ``COCOeval.accumulate``.
    """
    tables = Tables.undefined(params)
    categories = set(evaluated.catIds) if evaluated.useCats else {NO_CATEGORY}
    images, areas = set(evaluated.imgIds), set(map(tuple, evaluated.areaRng))
    # Places are those among the parameters, as there, although the results lie by those that were evaluated.
    k_list = [place for place, category in enumerate(params.catIds) if category in categories]
    a_list = [place for place, area in enumerate(params.areaRng) if tuple(area) in areas]
    i_list = [place for place, image in enumerate(params.imgIds) if image in images]
    caps = [cap for cap in params.maxDets if cap in evaluated.maxDets]
    n_areas, n_images = len(evaluated.areaRng), len(evaluated.imgIds)
    for k, k_place in enumerate(k_list):
        for a, a_place in enumerate(a_list):
            start = (k_place * n_areas + a_place) * n_images
            found = [result for i in i_list if (result := results[start + i]) is not None]
            positives = sum(int(np.count_nonzero(np.asarray(result["gtIgnore"]) == 0)) for result in found)
            # Without a result there is nothing to count, and without an object no recall.
            if not positives:
                continue
            for m, cap in enumerate(caps):
                _fill(tables, (k, a, m), _Ranked.of(found, cap), positives, np.asarray(params.recThrs))
    return tables


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """Detections of all images by score, (n,), and the running counts of true and false positives, (T, n)."""

    score: FloatArray
    tp: FloatArray
    fp: FloatArray

    @classmethod
    def of(cls, found: Sequence[Record], cap: int) -> _Ranked:
        score = np.concatenate([result["dtScores"][:cap] for result in found])
        order = np.argsort(-score, kind="stable")
        matched, ignored = (
            np.concatenate([result[key][:, :cap] for result in found], axis=1)[:, order].astype(np.bool_)
            for key in ("dtMatches", "dtIgnore")
        )
        tp, fp = (np.cumsum(flags & ~ignored, axis=1).astype(np.float64) for flags in (matched, ~matched))
        return cls(score[order], tp, fp)


def _fill(tables: Tables, cell: tuple[int, int, int], ranked: _Ranked, positives: int, grid: FloatArray) -> None:
    """Write the curve of each threshold into a cell (k, a, m)."""
    recall = ranked.tp / positives
    precision = ranked.tp / (ranked.fp + ranked.tp + COCO.precision_epsilon)
    # The envelope: from the last detection to the first, precision never falls.
    precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    n = recall.shape[1]
    for t in range(len(recall)):
        tables.recall[(t, *cell)] = recall[t, -1] if n else 0.0
        at = np.searchsorted(recall[t], grid, side="left")
        # The first recall value that is not reached ends the search, whatever stands behind it.
        n_reached = int(np.logical_and.accumulate(at < n).sum())
        for table, values in ((tables.precision, precision[t]), (tables.scores, ranked.score)):
            table[(t, slice(None), *cell)] = 0.0
            table[(t, slice(None, n_reached), *cell)] = values[at[:n_reached]]


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

    def pairs(self) -> list[tuple[int, int, float]]:
        """Return ids of detections and objects that match at any threshold in any area range, and their overlaps."""
        table = self.table
        chosen = np.unique([table.chosen_pairs(area) for area in range(len(self.params.areaRng))])
        chosen = chosen[chosen != NO_PAIR]
        dt_ids = self.pred.ids[table.row[table.pair_detection[chosen]]]
        columns = dt_ids.astype(np.int64), self.gt.ids[table.pair_gt[chosen]].astype(np.int64)
        return list(zip(*(column.tolist() for column in (*columns, table.pair_overlap[chosen])), strict=True))

    def _groups(self, label: npt.NDArray[np.int64], image: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (label * len(self.params.imgIds) if self.params.useCats else 0) + image


def whole_match(groups: Groups) -> WholeMatch | None:
    """Match all groups at once; None where only pycocotools' own procedure defines the outcome."""
    params = groups.params
    n_images, n_labels = len(params.imgIds), len(params.catIds)
    if not n_images or not n_labels or not len(params.maxDets) or len(set(params.catIds)) < n_labels:
        return None
    # Without categories no keypoints are compared there: see `Groups.overlaps`. Where their scale is a share of the
    # box, sizes are still those of the areas.
    if params.iouType == "keypoints" and (not params.useCats or rules_of(params).oks_box_share is not None):
        return None
    try:
        protocol = _protocol(params)
        gt, pred = _Side(groups.gts, params, "iscrowd"), _Side(groups.dts, params, "score")
        # A match with id 0 is none there, and a detection with an id of 0 or less takes nothing.
        if (gt.ids == 0).any() or (pred.ids <= 0).any():
            return None
        ignored = {"ignore": [bool(ann["ignore"]) for ann in gt.anns]} if params.iouType == "keypoints" else {}
        truth, found = gt.table(crowd=np.trunc(gt.last) != 0, **ignored), pred.table(score=pred.last)
    except (KeyError, UsageError):
        # Numbers that are not finite, thresholds in no order, shapes that are compared with nothing: defined there, and
        # refused here.
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
