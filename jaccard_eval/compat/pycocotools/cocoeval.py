"""`COCOeval`: the interface of pycocotools, numbers from this package's own matching.

An evaluation is matched and accumulated for all images at once. Parameters or annotations that only pycocotools'
procedure gives a meaning to (ids of 0, thresholds in any order), methods that a subclass replaced, and results that
were gathered elsewhere go image by image instead.
"""

from __future__ import annotations

import copy
import datetime
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaccard_eval.compat.pycocotools import mask as maskUtils
from jaccard_eval.compat.pycocotools.coco import Record, without_collection
from jaccard_eval.compat.pycocotools.columns import (
    Annotations,
    Group,
    Groups,
    ScannedAnnotations,
    Tables,
    WholeMatch,
    gathered_tables,
    whole_match,
    whole_tables,
)
from jaccard_eval.compat.pycocotools.params import Params, require_known
from jaccard_eval.compat.pycocotools.shapes import ReadMasks, write_rles
from jaccard_eval.data.known_protocols import MASKS

__all__ = ["COCOeval", "Params", "maskUtils"]

USUAL_CAP, KEYPOINTS_CAP = 100, 20
LINE = " {:<18} {} @[ IoU={:<9} | area={:>6s} | maxDets={:>3d} ] = {:0.3f}"


class COCOeval:
    """Evaluate as ``pycocotools.cocoeval.COCOeval`` does, with its numbers to the last bit.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        Ground truth and detections, of this package or of pycocotools.
    iouType : {"segm", "bbox", "keypoints", "boundary"}
        What is compared. Boundaries are those of boundary-iou-api; ``params.dilation_ratio`` is their width.
    strict : bool
        Whether annotations with id 0 never match, and those with repeated ids are replaced by the last one of that id,
        as in pycocotools. Otherwise every annotation counts as itself, and ids are those of its place, from 1.
    verbose : bool
        Whether to print what pycocotools prints.

    Raises
    ------
    UsageError
        For other types. `evaluate` raises it for masks that are none, at which pycocotools stops or hangs.

    Notes
    -----
    After `evaluate`, `accumulate` and `summarize`: ``stats``, twelve numbers or, of keypoints, ten; ``eval`` with
    ``precision`` and ``scores`` (T, R, K, A, M) and ``recall`` (T, K, A, M), -1 where there is no ground truth.
    ``evalImgs``, a list, and ``ious``, a dictionary, are made when they are first read; from then on `accumulate`
    counts what they hold. Methods that a subclass, an instance or a patch of this class replaces are called. As there,
    `evaluate` replaces masks by compressed RLE and writes ``ignore`` and ``_ignore`` in the annotations.

    Source: pycocotools 2.0.11 ``cocoeval.py``.
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        *,
        strict: bool = True,
        verbose: bool = True,
    ) -> None:
        self.cocoGt, self.cocoDt = cocoGt, cocoDt
        self.strict, self.verbose = strict, verbose
        self.params = Params(iouType=iouType)
        self._paramsEval: Any = {}
        self._sides = Annotations([]), Annotations([])
        self._ious: Any = {}
        self._evalImgs: Any = defaultdict(list)  # None, as `_ious`, until somebody reads what the match holds
        self._match: WholeMatch | None = None
        self.eval: dict[str, Any] = {}
        self.stats: Any = []
        if cocoGt is not None:
            self.params.imgIds = sorted(cocoGt.getImgIds())
            self.params.catIds = sorted(cocoGt.getCatIds())

    @property
    def evalImgs(self) -> Any:
        """What was matched, by category, area range and image: a list of dictionaries, None where there is no box."""
        if self._evalImgs is None and self._match is not None:
            self._evalImgs = self._match.results()
        return self._evalImgs

    @evalImgs.setter
    def evalImgs(self, results: Any) -> None:
        self._evalImgs = results

    @property
    def ious(self) -> Any:
        """The overlaps by image and category."""
        if self._ious is None:
            self._ious = Groups(*self._sides, self._paramsEval).all_overlaps()
        return self._ious

    @ious.setter
    def ious(self, overlaps: Any) -> None:
        self._ious = overlaps

    @property
    def _gts(self) -> dict[Group, list[Record]]:
        """Ground truth by image and category, which callers may change or replace before it is matched."""
        return self._sides[0].groups

    @_gts.setter
    def _gts(self, groups: dict[Group, list[Record]]) -> None:
        self._sides = Annotations.of_groups(groups), self._sides[1]

    @property
    def _dts(self) -> dict[Group, list[Record]]:
        """Detections by image and category, likewise."""
        return self._sides[1].groups

    @_dts.setter
    def _dts(self, groups: dict[Group, list[Record]]) -> None:
        self._sides = self._sides[0], Annotations.of_groups(groups)

    @without_collection()
    def evaluate(self) -> None:
        """Match detections to ground truth; sets `evalImgs` and `ious`."""
        start = time.time()
        self._print("Running per image evaluation...")
        p = self.params
        if (masked := vars(p).get("useSegm")) is not None:
            p.iouType = "segm" if masked == 1 else "bbox"
            self._print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        require_known(p.iouType)
        self._print(f"Evaluate annotation type *{p.iouType}*")
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self._prepare()
        self._paramsEval = copy.deepcopy(p)
        groups = Groups(*self._sides, self._paramsEval)
        categories = groups.category_ids()
        # A method that was replaced on the class, a subclass or this object is asked image by image.
        replaced = any(getattr(getattr(self, name), "__func__", None) is not part for name, part in SHIPPED.items())
        self._match = None if replaced else whole_match(groups)
        if self._match is not None:
            self._ious = self._evalImgs = None
            self._write_ignored()
        else:
            compare = self.computeOks if p.iouType == "keypoints" else self.computeIoU
            self.ious = {(image, category): compare(image, category) for image in p.imgIds for category in categories}
            self.evalImgs = [
                self.evaluateImg(image, category, area, p.maxDets[-1])
                for category in categories
                for area in p.areaRng
                for image in p.imgIds
            ]
        self._print(f"DONE (t={time.time() - start:0.2f}s).")

    def _prepare(self) -> None:
        """Group the annotations of both sides; crowds are ignored and poses of no point, as `ignore` is overwritten."""
        gts, found = self._selected(self.cocoGt), self.cocoDt
        rows = found._scanned(self.params.iouType) if hasattr(found, "_scanned") else None
        dts = [] if rows is not None else self._selected(found)
        masks: list[ReadMasks | None] = [None, None]
        if self.params.iouType in MASKS:
            masks = [write_rles(gts, self.cocoGt.imgs), write_rles(dts, found.imgs)]
            # What `loadRes` has read is compressed, and was not written now.
            masks[1] = getattr(found, "_masks", None) or masks[1]
        for gt in gts:
            gt["ignore"] = "iscrowd" in gt and gt["iscrowd"]
            if self.params.iouType == "keypoints":
                gt["ignore"] = (gt["num_keypoints"] == 0) or gt["ignore"]
        found_side = Annotations(dts, masks[1])
        if rows is not None:
            found_side = ScannedAnnotations(rows, lambda: self._selected(found))
        self._sides = Annotations(gts, masks[0]), found_side
        self._evalImgs, self.eval, self._match = defaultdict(list), {}, None

    def _write_ignored(self) -> None:
        """Write what does not count in the last area range into the ground truth, as evaluating that last leaves it."""
        low, high = self._paramsEval.areaRng[-1]
        for gt in self._match.gt.anns if self._match is not None else ():
            gt["_ignore"] = int(bool(gt["ignore"]) or not low <= gt["area"] <= high)

    def _selected(self, coco: Any) -> list[Record]:
        """Return the annotations of the images and categories that are evaluated."""
        p = self.params
        ids = coco.getAnnIds(imgIds=p.imgIds, catIds=p.catIds) if p.useCats else coco.getAnnIds(imgIds=p.imgIds)
        if self.strict or (len(set(ids)) == len(ids) and all(key > 0 for key in ids)):
            selected: list[Record] = coco.loadAnns(ids)
            return selected
        categories = frozenset(p.catIds if p.useCats else ())
        anns = [ann for image in p.imgIds for ann in coco.imgToAnns.get(image, ())]
        anns = [ann for ann in anns if not categories or ann["category_id"] in categories]
        return [{**ann, "id": number} for number, ann in enumerate(anns, start=1)]

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Return the overlaps of one image and category, shape (D, G); an empty list without boxes on a side."""
        return Groups(*self._sides, self.params).overlaps(imgId, catId)

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Return the object keypoint similarity of one image and category, shape (D, G)."""
        return self.computeIoU(imgId, catId)

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Sequence[float], maxDet: int) -> Record | None:
        """Return the matches of one image, category and area range, from the overlaps in `ious`; None without boxes."""
        groups = Groups(*self._sides, self.params)
        # Before the overlaps are looked up, which callers need not have computed where there is no box.
        if not any(groups.of(imgId, catId)):
            return None
        return groups.evaluate(imgId, catId, aRng, maxDet, self.ious[imgId, catId])

    @without_collection()
    def accumulate(self, p: Any = None) -> None:
        """Make precision and recall of `evalImgs`, and set `eval`; `p` replaces the parameters."""
        self._print("Accumulating evaluation results...")
        start = time.time()
        # Nobody has read, and so may have changed, what the match holds.
        is_whole = self._match is not None and self._evalImgs is None
        if not is_whole and not self.evalImgs:
            self._print("Please run evaluate() first")
        p = self.params if p is None else p
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        tables: Tables | None = None
        if is_whole and self._match is not None:
            tables = whole_tables(self._match.curves, p, self._paramsEval)
        if tables is None:
            tables = gathered_tables(self.evalImgs, p, self._paramsEval)
        self.eval = {
            "params": p,
            "counts": list(tables.precision.shape),
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": tables.precision,
            "recall": tables.recall,
            "scores": tables.scores,
        }
        self._print(f"DONE (t={time.time() - start:0.2f}s).")

    def summarize(self) -> None:
        """Print the twelve numbers of COCO, of keypoints ten, and set `stats`."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first")
        caps, is_pose = self.params.maxDets, self.params.iouType == "keypoints"
        sizes, thresholds = ("medium", "large") if is_pose else ("small", "medium", "large"), (0.5, 0.75)
        # The first is taken at 100 detections, of keypoints all at 20, even where the caps are others, and is then -1,
        # as in pycocotools.
        stats = [self._mean("precision", cap=KEYPOINTS_CAP if is_pose else USUAL_CAP)]
        cap = KEYPOINTS_CAP if is_pose else caps[2]
        stats += [self._mean("precision", iou=iou, cap=cap) for iou in thresholds]
        stats += [self._mean("precision", area=size, cap=cap) for size in sizes]
        if is_pose:
            stats += [self._mean("recall", cap=cap), *(self._mean("recall", iou=iou, cap=cap) for iou in thresholds)]
        else:
            stats += [self._mean("recall", cap=caps[place]) for place in range(3)]
        stats += [self._mean("recall", area=size, cap=cap) for size in sizes]
        self.stats = np.array(stats, dtype=np.float64)

    def _mean(self, kind: str, *, iou: float | None = None, area: str = "all", cap: int) -> float:
        p = self.params
        values = self.eval[kind]
        if iou is not None:
            values = values[np.flatnonzero(np.asarray(p.iouThrs) == iou)]
        areas = [place for place, label in enumerate(p.areaRngLbl) if label == area]
        caps = [place for place, value in enumerate(p.maxDets) if value == cap]
        # Area and cap are the last two axes of both, of the others all values are averaged.
        values = values[..., areas, caps]
        values = values[values > -1]
        mean = float(np.mean(values)) if len(values) else -1.0
        title, letters = ("Average Precision", "(AP)") if kind == "precision" else ("Average Recall", "(AR)")
        thresholds = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}" if iou is None else f"{iou:0.2f}"
        self._print(LINE.format(title, letters, thresholds, area, cap, mean))
        return mean

    def __str__(self) -> str:
        self.summarize()
        return ""

    def _print(self, text: str) -> None:
        if self.verbose:
            print(text)


# What `evaluate` asks where it matches image by image; what was replaced differs from these.
SHIPPED = {name: vars(COCOeval)[name] for name in ("_prepare", "computeIoU", "computeOks", "evaluateImg")}
