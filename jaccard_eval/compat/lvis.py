"""Drop-in for lvis-api: `LVIS`, `LVISResults` and `LVISEval` by its names, with its numbers to the bit."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from jaccard_eval.api.library import evaluate
from jaccard_eval.compat.pycocotools import coco, mask
from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.columns import UNDEFINED, whole_tables
from jaccard_eval.compat.pycocotools.install import install_modules, require_free
from jaccard_eval.compat.pycocotools.shapes import rles
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.protocol import BOXES, AreaRange, get_protocol
from jaccard_eval.metrics.detection import detection_metrics

__all__ = ["LVIS", "LVISEval", "LVISResults", "Params", "init_as_lvis"]

PACKAGE = "lvis"
LOG = logging.getLogger(__name__)
OFFICIAL_CAP = 300  # detections of an image, over all categories
SHORT = {"small": "s", "medium": "m", "large": "l"}


class LVIS(coco.COCO):
    """Annotations as ``lvis.LVIS`` holds them, of a file or of what it holds."""

    def __init__(self, annotation_path: str | os.PathLike[str] | Record) -> None:
        super().__init__(annotation_path, verbose=False)
        self.logger = LOG

    @property
    def img_ann_map(self) -> Any:
        """The annotations by image."""
        return self.imgToAnns

    @property
    def cat_img_map(self) -> Any:
        """The images by category."""
        return self.catToImgs

    def get_ann_ids(
        self, img_ids: Iterable[Any] | None = None, cat_ids: Iterable[Any] | None = None, area_rng: Any = None
    ) -> list[Any]:
        """Return the ids of annotations of some images and categories, within an area range (open at both ends)."""
        chosen = self.dataset["annotations"]
        if img_ids is not None:
            chosen = [ann for image in img_ids for ann in self.imgToAnns[image]]
        if cat_ids is not None:
            wanted = set(cat_ids)
            chosen = [ann for ann in chosen if ann["category_id"] in wanted]
        if area_rng is not None:
            chosen = [ann for ann in chosen if area_rng[0] < ann["area"] < area_rng[1]]
        return [ann["id"] for ann in chosen]

    def get_cat_ids(self) -> list[Any]:
        """Return the ids of all categories."""
        return list(self.cats)

    def get_img_ids(self) -> list[Any]:
        """Return the ids of all images."""
        return list(self.imgs)

    def load_anns(self, ids: Iterable[Any] | None = None) -> list[Record]:
        """Return annotations by their ids, or all."""
        return list(self.anns.values()) if ids is None else [self.anns[one] for one in ids]

    def load_cats(self, ids: Iterable[Any] | None) -> list[Record]:
        """Return categories by their ids, or all."""
        return list(self.cats.values()) if ids is None else [self.cats[one] for one in ids]

    def load_imgs(self, ids: Iterable[Any] | None) -> list[Record]:
        """Return images by their ids, or all."""
        return list(self.imgs.values()) if ids is None else [self.imgs[one] for one in ids]

    ann_to_rle, ann_to_mask = coco.COCO.annToRLE, coco.COCO.annToMask


class LVISResults(LVIS):
    """Detections of the images of an `LVIS` as ``lvis.LVISResults`` holds them.

    Parameters
    ----------
    lvis_gt : LVIS or str
    results : str or list of dict
        A results file or its records, which get ``id`` and ``area``, and ``bbox`` or ``segmentation`` where these are
        missing, as there.
    max_dets : int
        How many of each image are kept, the best scored; all if negative.

    Raises
    ------
    AssertionError
        When results are not a list, or belong to images that are not those of the ground truth.
    """

    def __init__(self, lvis_gt: LVIS | str, results: Any, max_dets: int = OFFICIAL_CAP) -> None:
        truth = lvis_gt if isinstance(lvis_gt, LVIS) else LVIS(lvis_gt)
        anns = json.loads(Path(results).read_bytes()) if isinstance(results, str) else results
        if not isinstance(anns, list):
            raise AssertionError("results is not a list.")  # noqa: TRY004 - as there
        anns = self.limit_dets_per_image(anns, max_dets) if max_dets >= 0 else anns
        has_boxes = bool(anns) and "bbox" in anns[0]
        for number, ann in enumerate(anns, start=1):
            ann["id"] = number
            if has_boxes:
                x, y, w, h = ann["bbox"]
                ann.setdefault("segmentation", [[x, y, x, y + h, x + w, y + h, x + w, y]])
                ann["area"] = w * h
            else:
                ann["area"] = mask.area(ann["segmentation"])
                ann.setdefault("bbox", mask.toBbox(ann["segmentation"]))
        if not {ann["image_id"] for ann in anns} <= truth.imgs.keys():
            raise AssertionError("Results do not correspond to current LVIS set.")
        super().__init__({**truth.dataset, "annotations": anns})

    def limit_dets_per_image(self, anns: list[Record], max_dets: int) -> list[Record]:
        """Return the best scored annotations of each image, those of one image behind each other."""
        by_image: defaultdict[Any, list[Record]] = defaultdict(list)
        for ann in anns:
            by_image[ann["image_id"]].append(ann)
        for image, own in by_image.items():
            if len(own) > max_dets:
                by_image[image] = sorted(own, key=lambda ann: float(ann["score"]), reverse=True)[:max_dets]
        return [ann for own in by_image.values() for ann in own]

    def get_top_results(self, img_id: Any, score_thrs: float) -> list[Record]:
        """Return the detections of an image above a score."""
        return [ann for ann in self.imgToAnns[img_id] if ann["score"] > score_thrs]


class Params:
    """What `LVISEval` reads when it evaluates; every attribute may be replaced before."""

    def __init__(self, iou_type: str) -> None:
        rules = get_protocol("lvis")
        self.img_ids: Any = []
        self.cat_ids: Any = []
        self.iou_thrs: Any = np.array(rules.iou_thresholds)
        self.rec_thrs: Any = rules.recall_grid
        self.max_dets = OFFICIAL_CAP
        self.area_rng: Any = [[area.low, area.high] for area in rules.areas]
        self.area_rng_lbl = [area.name for area in rules.areas]
        self.use_cats = 1
        self.img_count_lbl = ["r", "c", "f"]
        self.iou_type = iou_type


class LVISEval:
    """Evaluate as ``lvis.LVISEval`` does: the same arrays, results and lines.

    Parameters
    ----------
    lvis_gt : LVIS or str
    lvis_dt : LVISResults, str or list of dict
    iou_type : {"segm", "bbox"}

    Raises
    ------
    ValueError
        For other types.

    Notes
    -----
    ``eval_imgs``, ``ious`` and ``dt_pointers`` are not made.
    """

    def __init__(self, lvis_gt: LVIS | str, lvis_dt: Any, iou_type: str = "segm") -> None:
        if iou_type not in (BOXES, "segm"):
            raise ValueError(f"iou_type: {iou_type} is not supported.")
        self.logger = LOG
        self.lvis_gt = lvis_gt if isinstance(lvis_gt, LVIS) else LVIS(lvis_gt)
        self.lvis_dt = lvis_dt if isinstance(lvis_dt, LVISResults) else LVISResults(self.lvis_gt, lvis_dt)
        self.params = Params(iou_type)
        self.params.img_ids = sorted(self.lvis_gt.get_img_ids())
        self.params.cat_ids = sorted(self.lvis_gt.get_cat_ids())
        self.eval: dict[str, Any] = {}
        self.results: OrderedDict[str, float] = OrderedDict()
        self.freq_groups: list[list[int]] = []
        self._measured: Any = None

    def evaluate(self) -> None:
        """Match detections and objects of the images and categories of `params`."""
        p = self.params
        p.img_ids, p.cat_ids = list(np.unique(p.img_ids).tolist()), list(np.unique(p.cat_ids).tolist())
        images, categories = set(p.img_ids), set(p.cat_ids)
        document, found = (
            [
                ann
                for ann in side.dataset["annotations"]
                if ann["image_id"] in images and ann["category_id"] in categories
            ]
            for side in (self.lvis_gt, self.lvis_dt)
        )
        kept = ("image_id", "category_id", "score", "bbox" if p.iou_type == BOXES else "segmentation")
        rows = [{name: ann[name] for name in kept} for ann in found]
        for row, ann in zip(rows, found, strict=True):
            # Masks of results that had boxes are of the size of these, which is then their area.
            if p.iou_type != BOXES and ann["area"] == ann["bbox"][2] * ann["bbox"][3]:
                row["bbox"] = [float(number) for number in ann["bbox"]]
        shown = self.lvis_gt.load_imgs(p.img_ids)
        if p.iou_type != BOXES:
            for ann, run in zip((*document, *found), rles((*document, *found), self.lvis_gt.imgs), strict=True):
                ann["segmentation"] = run
            # Masks that are alike are compared, whatever the size of their image.
            shown = [{name: image[name] for name in image.keys() - {"height", "width"}} for image in shown]
        areas = [AreaRange(name, *limits) for name, limits in zip(p.area_rng_lbl, p.area_rng, strict=True)]
        result = evaluate(
            {
                "images": shown,
                "annotations": document,
                "categories": self.lvis_gt.load_cats(p.cat_ids),
            },
            rows,
            protocol="lvis",
            iou_type=p.iou_type,
            iou=[float(iou) for iou in p.iou_thrs],
            areas=areas,
            max_dets=(),  # results were cut to it before
            class_agnostic=not p.use_cats,
        )
        self._measured = detection_metrics(result)
        groups = [cat["frequency"] for cat in self.lvis_gt.load_cats(p.cat_ids)]
        self.freq_groups = [[k for k, one in enumerate(groups) if one == label] for label in p.img_count_lbl]

    def accumulate(self) -> None:
        """Make ``eval``, whose arrays are ``precision`` (T, R, K, A) and ``recall`` (T, K, A); -1 is undefined."""
        if self._measured is None:
            LOG.log(logging.WARNING, "Please run evaluate first.")
            return
        p = self.params
        asked = SimpleNamespace(
            imgIds=p.img_ids, catIds=p.cat_ids, iouThrs=p.iou_thrs, areaRng=p.area_rng, maxDets=[0], useCats=p.use_cats
        )
        asked.recThrs = p.rec_thrs
        tables = whole_tables(self._measured.curves, asked, asked)
        assert tables is not None  # nothing differs from what was asked for
        counts = [len(p.iou_thrs), len(p.rec_thrs), len(p.cat_ids) if p.use_cats else 1, len(p.area_rng)]
        self.eval = {"params": p, "counts": counts, "precision": tables.precision[..., 0]}
        self.eval["recall"] = tables.recall[..., 0]

    def summarize(self) -> None:
        """Make ``results``: AP by IoU, size and frequency, and AR by size."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first.")
        self.results["AP"] = self._mean("precision")
        self.results |= {f"AP{iou * 100:.0f}": self._mean("precision", iou=iou) for iou in (0.5, 0.75)}
        self.results |= {f"AP{short}": self._mean("precision", area=name) for name, short in SHORT.items()}
        if self.params.use_cats:
            groups = zip(self.params.img_count_lbl, self.freq_groups, strict=True)
            self.results |= {f"AP{label}": self._mean("precision", rows=rows) for label, rows in groups}
        cap = self.params.max_dets
        self.results[f"AR@{cap}"] = self._mean("recall")
        self.results |= {f"AR{short}@{cap}": self._mean("recall", area=name) for name, short in SHORT.items()}

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def get_results(self) -> OrderedDict[str, float]:
        """Return the numbers by their names; -1 where undefined."""
        if not self.results:
            LOG.log(logging.WARNING, "results is empty. Call run().")
        return self.results

    def print_results(self) -> None:
        """Print a line for each number, as lvis-api does."""
        for key, value in self.results.items():
            title, kind = ("Average Precision", "(AP)") if "AP" in key else ("Average Recall", "(AR)")
            of = key[2:3]
            first, last = self.params.iou_thrs[0], self.params.iou_thrs[-1]
            iou = f"{float(key[2:]) / 100:0.2f}" if of.isdigit() else f"{first:0.2f}:{last:0.2f}"
            area, group = (
                of if of in sizes else "all" for sizes in (set(SHORT.values()), set(self.params.img_count_lbl))
            )
            print(
                f" {title:<18} {kind} @[ IoU={iou:<9} | area={area:>6s} | maxDets={self.params.max_dets:>3d}"
                f" catIds={group:>3s}] = {value:0.3f}"
            )

    def _mean(
        self, name: str, *, iou: float | None = None, area: str = "all", rows: Sequence[int] | None = None
    ) -> float:
        """Return the mean of what is defined, -1 of nothing."""
        values: FloatArray = self.eval[name][..., self.params.area_rng_lbl.index(area)]
        values = values if iou is None else values[np.flatnonzero(np.asarray(self.params.iou_thrs) == iou)]
        values = values if rows is None else values[..., list(rows)]
        defined = values[values > UNDEFINED]
        return float(np.mean(defined)) if len(defined) else UNDEFINED


def init_as_lvis() -> None:
    """Let ``from lvis import LVIS, LVISEval, LVISResults`` find the drop-in, in this process.

    Call it before anything imports lvis, which need not be installed. A second call changes nothing.

    Raises
    ------
    UsageError
        When classes of lvis-api are loaded already; names the modules that hold them.
    """
    if getattr(sys.modules.get(PACKAGE), "LVISEval", None) is LVISEval:
        return
    require_free(PACKAGE, ("lvis", "eval", "results"), "init_as_lvis")
    classes = {"LVIS": LVIS, "LVISEval": LVISEval, "LVISResults": LVISResults, "Params": Params}
    install_modules({PACKAGE: classes} | {f"{PACKAGE}.{name}": classes for name in ("lvis", "eval", "results")})
