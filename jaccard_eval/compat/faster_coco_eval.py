"""Drop-in for faster-coco-eval: `COCO` and `COCOeval_faster` by its names and keywords, as those of pycocotools."""

from __future__ import annotations

import copy
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from jaccard_eval.compat.pycocotools import coco, cocoeval, mask
from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.install import install_modules, require_free
from jaccard_eval.compat.pycocotools.params import Params
from jaccard_eval.compat.pycocotools.shapes import is_compressed, masks_of, rles, rles_of
from jaccard_eval.similarity.boundary import boundaries
from jaccard_eval.similarity.masks import Masks

__all__ = ["COCO", "COCOeval", "COCOeval_faster", "init_as_faster_coco_eval", "rleToBoundary", "segmToRle"]

PACKAGE = "faster_coco_eval"
VERSION = "1.7.1"  # whose interface this is: programs compare it
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
        if min_score:  # what scores less may be of other images
            given = self.loadNumpyAnnotations(resFile) if isinstance(resFile, np.ndarray) else self.load_json(resFile)
            resFile = [ann for ann in given if ann.get("score", 1) >= min_score]
        return super().loadRes(resFile)

    @staticmethod
    def load_json(json_file: Any, use_deepcopy: bool = False) -> Any:
        """Return what a file holds; of a dictionary or a list a copy, whose records are copied only if asked."""
        if isinstance(json_file, dict | list):
            return copy.deepcopy(json_file) if use_deepcopy else json_file.copy()
        return coco._decoded(Path(json_file).read_bytes())

    def to_dict(self) -> Record:
        """Return images, annotations and categories as a COCO file has them."""
        held = {"images": self.imgs, "annotations": self.anns, "categories": self.cats}
        origin = {"info": {"description": f"written with the interface of {PACKAGE}"}}
        return origin | {name: [*records.values()] for name, records in held.items()}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.to_dict().items())

    def _index(self) -> None:
        """Make the index; ids of images that are numbers written as texts become numbers, as there."""
        for name, key in (("images", "id"), ("annotations", "image_id")):
            for record in self.dataset.get(name, []):
                if isinstance(record[key], str) and record[key].isdecimal():
                    record[key] = int(record[key])
        super()._index()

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
    lvis_style
        Has no effect on keypoints, as there; else as the next.
    extra_calc, use_area
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
        self.lvis_style = lvis_style and iouType != "keypoints"
        refused = {"extra_calc": extra_calc, "lvis_style": self.lvis_style, "use_area=False": not use_area}
        if any(refused.values()):
            names = ", ".join(name for name, is_asked in refused.items() if is_asked)
            raise NotImplementedError(f"COCOeval_faster of jaccard_eval has no {names}. Use jaccard_eval.evaluate().")
        self.print_function = print_function
        for side in (cocoGt, cocoDt):
            if print_function is print and side is not None:
                side.print_function = print
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


class COCOeval(COCOeval_faster):
    """`COCOeval_faster` under the name of pycocotools: what that prints is printed, whatever the print function."""

    def _print(self, text: str) -> None:
        print(text)


def segmToRle(segm: Any, w: int, h: int) -> Record:
    """Return a mask in an image as compressed RLE, whether it is polygons, listed runs or RLE."""
    if is_compressed(segm):
        return dict(segm)
    return rles([{"image_id": 0, "segmentation": segm}], {0: {"height": h, "width": w}})[0]


def rleToBoundary(rle: Record, dilation_ratio: float = 0.02, backend: str = "mask_api") -> Record:
    """Return the boundary of a mask, as wide as a share of the diagonal; both backends of theirs give the same."""
    masks = masks_of([{"segmentation": rle}])
    return rles_of(Masks(boundaries(masks, dilation_ratio), masks.sizes))[0]


def _init_as_pycocotools() -> None:
    """Let ``import pycocotools`` find the modules of this package, those loaded before replaced, as there."""
    package = sys.modules[PACKAGE]
    sys.modules["pycocotools"] = package
    for name in ("coco", "cocoeval", "mask"):
        sys.modules[f"pycocotools.{name}"] = getattr(package, name)


def init_as_faster_coco_eval() -> None:
    """Let ``from faster_coco_eval import COCO, COCOeval_faster`` find the drop-in, in this process.

    Call it before anything imports faster-coco-eval, which need not be installed; where it is, the rest of it is found
    as ever. A second call changes nothing.

    Raises
    ------
    UsageError
        When classes of faster-coco-eval are loaded already; names the modules that hold them.
    """
    if getattr(sys.modules.get(PACKAGE), "COCOeval_faster", None) is COCOeval_faster:
        return
    require_free(PACKAGE, ("core.coco", "core.cocoeval", "core.faster_eval_api"), "init_as_faster_coco_eval")
    masks = {name: getattr(mask, name) for name in mask.__all__}
    masks |= {"segmToRle": segmToRle, "rleToBoundary": rleToBoundary, "opencv_available": False}
    classes = {"COCO": COCO, "COCOeval_faster": COCOeval_faster, "COCOeval": COCOeval, "Params": Params}
    contents: dict[str, Record] = {
        "": {**classes, "init_as_pycocotools": _init_as_pycocotools, "__version__": VERSION},
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
