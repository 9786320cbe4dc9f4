"""Drop-in for faster-coco-eval: `COCO` and `COCOeval_faster` by its names and keywords, as those of pycocotools."""

from __future__ import annotations

import copy
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from jaccard_eval.compat.pycocotools import coco, cocoeval, mask
from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.install import install_modules, require_free
from jaccard_eval.compat.pycocotools.mask import is_compressed, rles
from jaccard_eval.compat.pycocotools.params import Params

__all__ = ["COCO", "COCOeval_faster", "init_as_faster_coco_eval", "segmToRle"]

PACKAGE = "faster_coco_eval"
LOG = logging.getLogger(__name__)


class COCO(coco.COCO):
    """Annotations as ``faster_coco_eval.COCO`` holds them.

    Parameters
    ----------
    annotation_file : str, path or dict, optional
        COCO JSON, or what such a file holds.
    use_deepcopy : bool
        Whether a dictionary is copied.
    print_function : callable
        What gets the lines that pycocotools prints.
    """

    def __init__(
        self,
        annotation_file: str | os.PathLike[str] | Record | None = None,
        use_deepcopy: bool = False,
        print_function: Callable[[Any], object] = LOG.debug,
    ) -> None:
        self.print_function = print_function
        super().__init__(copy.deepcopy(annotation_file) if use_deepcopy else annotation_file)

    def loadRes(self, resFile: Any, min_score: float = 0) -> Self:
        """Return detections as annotations of the same images, those of at least a score."""
        results = super().loadRes(resFile)
        if min_score:
            anns = results.dataset["annotations"]
            results.dataset["annotations"] = [ann for ann in anns if ann.get("score", 0) >= min_score]
            results.createIndex()
        return results

    def _empty(self) -> Self:
        return type(self)(print_function=self.print_function)

    def _print(self, text: object) -> None:
        self.print_function(text)

    @property
    def img_ann_map(self) -> Any:
        """The annotations by image."""
        return self.imgToAnns

    @property
    def cat_img_map(self) -> Any:
        """The images by category."""
        return self.catToImgs

    get_ann_ids, get_cat_ids, get_img_ids = coco.COCO.getAnnIds, coco.COCO.getCatIds, coco.COCO.getImgIds
    load_anns, load_cats, load_imgs = coco.COCO.loadAnns, coco.COCO.loadCats, coco.COCO.loadImgs


class COCOeval_faster(cocoeval.COCOeval):
    """Evaluate as ``faster_coco_eval.COCOeval_faster`` does, with the numbers of pycocotools.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        Ground truth and detections.
    iouType : {"segm", "bbox", "keypoints", "boundary"}
        What is compared.
    ranges : mapping of str to (float, float), optional
        Area ranges in square pixels by name, besides all areas; COCO's where none are given.
    print_function : callable
        What gets the lines that pycocotools prints.
    kpt_oks_sigmas : sequence of float, optional
        Sigmas of keypoints; COCO's where none are given.
    boundary_dilation_ratio : float
        Width of boundaries as a share of the diagonal of the image.
    extra_calc, lvis_style, use_area
        Raise a NotImplementedError where they are not as by default: `evaluate(..., errors=True)`, `protocol="lvis"`
        and annotations with an ``area`` take their place.
    separate_eval, boundary_cpu_count, rle_iou_max_workers
        How it computes there; here they change nothing.

    Notes
    -----
    `stats_as_dict` names the numbers of ``all_stats`` as there: ``AP_all AP_50 AP_75 AP_small ... AR_all AR_second
    AR_third AR_small ... AR_50 AR_75``.
    """

    def __init__(
        self,
        cocoGt: Any = None,
        cocoDt: Any = None,
        iouType: str = "segm",
        ranges: Mapping[str, Sequence[float]] | None = None,
        print_function: Callable[[Any], object] = LOG.info,
        extra_calc: bool = False,
        kpt_oks_sigmas: Sequence[float] | None = None,
        use_area: bool = True,
        lvis_style: bool = False,
        separate_eval: bool = False,
        boundary_dilation_ratio: float = 0.02,
        boundary_cpu_count: int = 4,
        rle_iou_max_workers: int = 8,
    ) -> None:
        del separate_eval, boundary_cpu_count, rle_iou_max_workers
        refused = {"extra_calc": extra_calc, "lvis_style": lvis_style, "use_area=False": not use_area}
        if any(refused.values()):
            names = ", ".join(name for name, is_asked in refused.items() if is_asked)
            raise NotImplementedError(f"COCOeval_faster of jaccard_eval has no {names}. Use jaccard_eval.evaluate().")
        self.print_function = print_function
        super().__init__(cocoGt, cocoDt, iouType)
        self.all_stats: Any = []
        if ranges is not None and iouType != "keypoints":
            self.params.areaRng = [self.params.areaRng[0], *map(list, ranges.values())]
            self.params.areaRngLbl = ["all", *ranges]
        if kpt_oks_sigmas is not None:
            self.params.kpt_oks_sigmas = np.array(kpt_oks_sigmas)
        if iouType == "boundary":
            self.params.dilation_ratio = boundary_dilation_ratio

    def summarize(self) -> None:
        """Print the numbers and set `stats`, those of pycocotools, and `all_stats`, with AR at IoU .50 and .75."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first")
        p, cap = self.params, self.params.maxDets[-1]
        sizes = p.areaRngLbl[1:]
        named = {"AP_all": self._mean("precision", cap=cap)}
        named |= {f"AP_{iou * 100:.0f}": self._mean("precision", iou=iou, cap=cap) for iou in (0.5, 0.75)}
        named |= {f"AP_{size}": self._mean("precision", area=size, cap=cap) for size in sizes}
        usual = p.maxDets in ([1, 10, 100], [20])
        labels = ("AR_all", "AR_second", "AR_third") if usual else [f"AR_{value}" for value in p.maxDets]
        named |= {label: self._mean("recall", cap=value) for label, value in zip(labels, p.maxDets, strict=False)}
        by_size = {f"AR_{size}": self._mean("recall", area=size, cap=cap) for size in sizes}
        by_iou = {f"AR_{iou * 100:.0f}": self._mean("recall", iou=iou, cap=cap) for iou in (0.5, 0.75)}
        # Of keypoints recall by IoU comes before that by size, as it is among the ten numbers of COCO.
        is_pose = p.iouType == "keypoints"
        named |= {**by_iou, **by_size} if is_pose else {**by_size, **by_iou}
        self._named, self.all_stats = named, np.array(list(named.values()))
        self.stats = self.all_stats if is_pose else self.all_stats[:-2]

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers of `summarize` by their names; -1 where undefined."""
        return dict(self._named)

    def _print(self, text: str) -> None:
        self.print_function(text)


def segmToRle(segm: Any, w: int, h: int) -> Record:
    """Return a mask in an image as compressed RLE, whether it is polygons, listed runs or RLE."""
    if is_compressed(segm):
        return dict(segm)
    return rles([{"image_id": 0, "segmentation": segm}], {0: {"height": h, "width": w}})[0]


def init_as_faster_coco_eval() -> None:
    """Let ``from faster_coco_eval import COCO, COCOeval_faster`` find the drop-in, in this process.

    Call it before anything imports faster-coco-eval, which need not be installed. A second call changes nothing.

    Raises
    ------
    UsageError
        When classes of faster-coco-eval are loaded already; names the modules that hold them.
    """
    if getattr(sys.modules.get(PACKAGE), "COCOeval_faster", None) is COCOeval_faster:
        return
    require_free(PACKAGE, ("core.coco", "core.cocoeval", "core.faster_eval_api"), "init_as_faster_coco_eval")
    masks = {name: getattr(mask, name) for name in mask.__all__} | {"segmToRle": segmToRle}
    classes = {"COCO": COCO, "COCOeval_faster": COCOeval_faster, "COCOeval": COCOeval_faster, "Params": Params}
    contents: dict[str, Record] = {
        "": {**classes, "init_as_pycocotools": init_as_faster_coco_eval},
        ".core": classes,
        ".core.coco": {"COCO": COCO, "_isArrayLike": coco._isArrayLike},
        ".core.cocoeval": classes,
        ".core.faster_eval_api": classes,
        ".core.mask": masks,
    }
    install_modules({PACKAGE + name: content for name, content in contents.items()})
    package = sys.modules[PACKAGE]
    for last in ("coco", "mask"):
        setattr(package, last, sys.modules[f"{PACKAGE}.core.{last}"])
    package.cocoeval = sys.modules[f"{PACKAGE}.core.faster_eval_api"]  # type: ignore[attr-defined]
