"""One image and category at a time: overlaps, matches and the dictionaries that pycocotools makes of them.

Callers that gather these from several processes, or change them, get what pycocotools gives, oddities of ids included.
Nothing here is needed for the numbers of a plain evaluation, which are computed for all images at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.params import Params
from jaccard_eval.compat.pycocotools.scanned import ScannedRows
from jaccard_eval.compat.pycocotools.shapes import ReadMasks, shape_overlaps
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching.greedy import LARGEST_THRESHOLD
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs

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
