"""Drop-in for faster-coco-eval: `COCO` and `COCOeval_faster` by its names and keywords, as those of pycocotools."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import logging
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.compat.pycocotools import coco, cocoeval, mask, params
from jaccard_eval.compat.pycocotools.coco import Record
from jaccard_eval.compat.pycocotools.columns import Groups
from jaccard_eval.compat.pycocotools.install import install_modules, require_free
from jaccard_eval.compat.pycocotools.shapes import is_compressed, masks_of, rles, rles_of
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.similarity.boundary import boundaries
from jaccard_eval.similarity.masks import Masks

__all__ = ["COCO", "COCOeval", "COCOeval_faster", "Params", "init_as_faster_coco_eval", "rleToBoundary", "segmToRle"]

PACKAGE = "faster_coco_eval"
VERSION = "1.7.1"  # whose interface this is: programs compare it
AUTHOR = "jaccard-eval"
LOG = logging.getLogger(__name__)
CROWDPOSE = "keypoints_crowd"
CROWDED = {"easy": (-np.inf, 0.2), "medium": (0.2, 0.8), "hard": (0.8, np.inf)}  # images by their crowdIndex
CHUNK = 4096  # thresholds at a time


def _signed(self: object, given: str = "") -> str:
    return f"{type(self).__name__}({given}) # __author__='{AUTHOR}'; __version__='{VERSION}';"


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
        self.annotation_file = annotation_file
        super().__init__(copy.deepcopy(annotation_file) if use_deepcopy else annotation_file)

    def __repr__(self) -> str:
        return _signed(self, "annotation_file")

    def loadRes(self, resFile: Any, min_score: float = 0) -> coco.COCO:
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

    def _empty(self) -> COCO:
        return COCO(print_function=self.print_function)

    def _print(self, text: object) -> None:
        self.print_function(text)

    @property
    def img_ann_map(self) -> Any:
        """The annotations by image."""
        return self.imgToAnns

    @img_ann_map.setter
    def img_ann_map(self, groups: Any) -> None:
        self.imgToAnns = groups

    @property
    def cat_img_map(self) -> Any:
        """The images by category."""
        return self.catToImgs

    @cat_img_map.setter
    def cat_img_map(self, groups: Any) -> None:
        self.catToImgs = groups

    def get_ann_ids(self, img_ids: Any = (), cat_ids: Any = (), area_rng: Any = (), iscrowd: Any = None) -> list[Any]:
        """Return the ids of annotations, as `getAnnIds`."""
        return self.getAnnIds(img_ids, cat_ids, area_rng, iscrowd)

    def get_cat_ids(self, cat_names: Any = (), sup_names: Any = (), cat_ids: Any = ()) -> list[Any]:
        """Return the ids of categories, as `getCatIds`."""
        return self.getCatIds(cat_names, sup_names, cat_ids)

    def get_img_ids(self, img_ids: Any = (), cat_ids: Any = ()) -> list[Any]:
        """Return the ids of images, as `getImgIds`."""
        return self.getImgIds(img_ids, cat_ids)

    def load_anns(self, ids: Any) -> list[Record]:
        """Return the annotations of some ids, or of one."""
        return self.loadAnns(ids)

    def load_cats(self, ids: Any) -> list[Record]:
        """Return the categories of some ids, or of one."""
        return self.loadCats(ids)

    def load_imgs(self, ids: Any) -> list[Record]:
        """Return the images of some ids, or of one."""
        return self.loadImgs(ids)


class Params(params.Params):
    """What `COCOeval_faster` reads when it evaluates, by both spellings of each name.

    Parameters
    ----------
    iouType : {"segm", "bbox", "keypoints", "boundary"}
        What is compared.
    kpt_sigmas : sequence of float, optional
        Sigmas of keypoints; COCO's where none are given.
    ranges : mapping of str to (float, float), optional
        Area ranges in square pixels by name, besides all areas; COCO's where none are given.

    Raises
    ------
    TypeError
        For other types.
    """

    imgCountLbl = img_count_lbl = ("r", "c", "f")
    oks_box_share: float | None = None  # of the box of an object, as its area; None for its own area

    def __init__(
        self,
        iouType: str = "segm",
        kpt_sigmas: Sequence[float] | None = None,
        ranges: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        if iouType not in params.IOU_TYPES:
            raise TypeError(f"iouType must be one of {', '.join(params.IOU_TYPES)}, got {iouType!r}")
        super().__init__(iouType)
        if iouType == "keypoints" and kpt_sigmas is not None:
            self.kpt_oks_sigmas = np.array(kpt_sigmas)
        if iouType != "keypoints" and ranges is not None:
            self.areaRng = [self.areaRng[0], *map(list, ranges.values())]
            self.areaRngLbl = ["all", *ranges]

    @property
    def useSegm(self) -> int | None:
        """Whether masks are compared, or boxes; None where neither are, as callers read 0 as boxes."""
        return {"segm": 1, "bbox": 0}.get(self.iouType)

    @useSegm.setter
    def useSegm(self, value: int | None) -> None:
        if value is not None:
            self.iouType = "segm" if value == 1 else "bbox"


for _name, _second in (
    ("iouType", "iou_type"), ("imgIds", "img_ids"), ("catIds", "cat_ids"), ("iouThrs", "iou_thrs"),
    ("recThrs", "rec_thrs"), ("maxDets", "max_dets"), ("areaRng", "area_rng"), ("areaRngLbl", "area_rng_lbl"),
    ("useCats", "use_cats"),
):  # fmt: skip
    setattr(Params, _second, property(attrgetter(_name)))


class COCOeval_faster(cocoeval.COCOeval):
    """Evaluate as ``faster_coco_eval.COCOeval_faster`` does, with the numbers of pycocotools.

    Parameters
    ----------
    cocoGt, cocoDt : COCO, optional
        Ground truth and detections.
    iouType : {"segm", "bbox", "keypoints", "keypoints_crowd", "boundary"}
        What is compared. "keypoints_crowd" compares keypoints, and adds AP of images by their ``crowdIndex``.
    ranges : mapping of str to (float, float), optional
        Area ranges in square pixels by name, besides all areas; COCO's where none are given.
    print_function : callable
        What gets the lines that pycocotools prints.
    extra_calc : bool
        Whether `accumulate` writes into the annotations what they match (``tp gt_id iou``, ``fp``, ``dt_id``, ``fn``)
        and ``matched`` into `eval`, and `summarize` adds mIoU and mAUC.
    kpt_oks_sigmas : sequence of float, optional
        Sigmas of keypoints; COCO's where none are given.
    use_area : bool
        Whether the scale of keypoints is the area of an object, or .53 of its box as in CrowdPose.
    boundary_dilation_ratio : float
        Width of boundaries as a share of the diagonal of the image.
    lvis_style
        Has no effect on keypoints, as there; else raises a NotImplementedError: `init_as_lvis` and ``protocol="lvis"``
        take its place.
    separate_eval, boundary_cpu_count, rle_iou_max_workers
        How it computes there; here they change nothing.

    Notes
    -----
    `stats_as_dict` names the numbers of ``all_stats`` as there: ``AP_all AP_50 AP_75 AP_small ... AR_all AR_second
    AR_third AR_small ... AR_50 AR_75``. An absent ``iscrowd``, ``area`` or ``num_keypoints`` becomes 0, as it counts
    there.
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
        self.is_crowdpose, self.extra_calc, self.matched = iouType == CROWDPOSE, extra_calc, False
        iouType = "keypoints" if self.is_crowdpose else iouType
        self.lvis_style = lvis_style and iouType != "keypoints"
        if self.lvis_style:
            raise NotImplementedError("COCOeval_faster of jaccard_eval has no lvis_style. Use jaccard_eval.evaluate().")
        self.print_function = print_function
        for side in (cocoGt, cocoDt):
            if print_function is print and side is not None:
                side.print_function = print
        super().__init__(cocoGt, cocoDt, "bbox")
        self.all_stats: Any = []
        selected = vars(self.params)
        self.params = Params(iouType, kpt_oks_sigmas, ranges)
        self.params.imgIds, self.params.catIds = selected["imgIds"], selected["catIds"]
        if iouType == "keypoints":
            self.params.oks_box_share = None if use_area else get_protocol("crowdpose").oks_box_share
            if cocoGt is not None and not self.is_crowdpose:
                self.params.catIds = sorted(cocoGt.catToImgs)
        if iouType == "boundary":
            self.params.dilation_ratio = boundary_dilation_ratio

    def evaluate(self) -> None:
        """Match detections to ground truth; sets `evalImgs` and `ious`."""
        absent = {"iscrowd": 0, "area": 0} | ({"num_keypoints": 0} if self.params.iouType == "keypoints" else {})
        for ann in self.cocoGt.anns.values():
            if not absent.keys() <= ann.keys():
                ann.update(absent | ann)
        super().evaluate()

    def accumulate(self, p: Any = None) -> None:
        """Make precision and recall, and set `eval`; with `extra_calc` also write what was matched."""
        super().accumulate(p)
        self.matched = self.extra_calc
        if not self.extra_calc:
            return
        pairs = self._pairs()
        self.eval["matched"] = {f"{dt}_{gt}": iou for dt, gt, iou in pairs}
        for dt, gt, iou in pairs:
            self.cocoDt.anns[dt].update(tp=True, gt_id=gt, iou=iou)
            self.cocoGt.anns[gt]["dt_id"] = dt
        for side, partner, flag in ((self.cocoDt, "gt_id", "fp"), (self.cocoGt, "dt_id", "fn")):
            for ann in side.anns.values():
                if ann.get(partner) is None:
                    ann[flag] = True

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return ids of detections and objects that match at any threshold in any area range, and their overlaps."""
        if self._match is not None:
            return self._match.pairs()
        found, groups = {}, Groups(*self._sides, self._paramsEval)
        for result in (one for one in self.evalImgs if one is not None):
            key = result["image_id"], result["category_id"]
            column = {gt["id"]: place for place, gt in enumerate(groups.of(*key)[0])}
            for t, row in zip(*np.nonzero(result["dtMatches"]), strict=True):
                gt = int(result["dtMatches"][t, row])
                found[result["dtIds"][row], gt] = float(self.ious[key][row, column[gt]])
        return [(*ids, iou) for ids, iou in found.items()]

    def summarize(self) -> None:
        """Print the numbers and set `stats`, those of pycocotools, and `all_stats`, with AR at IoU .50 and .75."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first")
        p, cap = self.params, self.params.maxDets[-1]
        sizes = [] if self.is_crowdpose else p.areaRngLbl[1:]
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
        n_usual = len(named) if is_pose else len(named) - 2
        if self.is_crowdpose:
            named |= {f"AP_{name}": self._crowded(name) for name in CROWDED}
            n_usual = len(named)
        if self.matched:
            named["mIoU"] = float(np.mean(list(self.eval["matched"].values()))) if self.eval["matched"] else -1.0
            named[f"mAUC_{int(p.iouThrs[0] * 100)}"] = self._mean_area()
        self._named, self.all_stats = named, np.array(list(named.values()))
        self.stats = self.all_stats[:n_usual]

    def _crowded(self, name: str) -> float:
        """Print and return AP of the images that are crowded so much, to four places as there."""
        low, high = CROWDED[name]
        part = copy.copy(self)
        part.params, part.extra_calc = copy.copy(self.params), False
        part.params.imgIds = [key for key, image in self.cocoGt.imgs.items() if low <= image["crowdIndex"] < high]
        with contextlib.redirect_stdout(io.StringIO()):
            part.print_function = print
            part.evaluate()
            part.accumulate()
        # Of all categories and points, those that are undefined among them as -1, as there.
        score = round(float(np.mean(part.eval["precision"][:, :, :, 0, :])), 4)
        line = cocoeval.LINE.replace("area=", "type=")
        p = self.params
        thresholds = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}"
        self._print(line.format("Average Precision", "(AP)", thresholds, name, p.maxDets[-1], score))
        return score

    def _mean_area(self) -> float:
        """Return the mean area below the curves at the first threshold, over categories and area ranges."""
        precision = self.eval["precision"][0]  # (R, K, A, M)
        curves = np.moveaxis(precision, 0, 2).reshape(-1, *precision.shape[::3])
        # All caps of a recall stand behind each other, of which as many as there are recalls are read, as there.
        areas = [self.calc_auc(self.params.recThrs, curve.ravel()) for curve in curves]
        defined = [area for area in areas if area != -1]
        return sum(defined) / len(defined) if defined else 0.0

    @staticmethod
    def calc_auc(recall_list: Any, precision_list: Any, method: str = "c++") -> float:
        """Return the area below a curve whose precision never rises; both methods of theirs give the same."""
        recall = np.asarray(recall_list, dtype=np.float64)
        precision = np.maximum.accumulate(np.asarray(precision_list, dtype=np.float64)[::-1])[::-1]
        return round(float(np.sum(np.diff(recall) * precision[1 : len(recall)])), 15)

    @property
    def extended_metrics(self) -> dict[str, Any]:
        """AP of each class and of all, with precision and recall at the score at which the mean F1 of classes is best.

        Detections that match at IoU .50 are hits. Of equal means the lowest score is taken. Classes without objects or
        without AP are skipped.

        Raises
        ------
        ValueError
            When .50 is not among the thresholds.
        """
        p = self.params
        at_half = np.flatnonzero(np.isclose(p.iouThrs, 0.5))
        if not len(at_half):
            raise ValueError(f"extended_metrics needs the IoU threshold 0.50, got {np.asarray(p.iouThrs).tolist()}")
        measured = self._best_f1()
        tables = self.eval["precision"][:, :, :, 0, -1]  # (T, R, K)
        names = {key: cat["name"] for key, cat in self.cocoGt.cats.items()}
        rows = []
        for k, category in enumerate(p.catIds if p.useCats else ()):
            of_class = tables[:, :, k]
            aps = [values[values > -1] for values in (of_class, of_class[at_half[0]])]
            if category not in measured or not all(map(len, aps)):
                continue
            row = dict(zip(("map@50:95", "map@50"), (float(values.mean()) for values in aps), strict=True))
            row |= dict(zip(("precision", "recall"), measured[category], strict=True))
            rows.append({"class": names[category], **row})
        whole = dict(zip(("precision", "recall"), measured.get(None, (0.0, 0.0)), strict=True))
        named = self.stats_as_dict
        rows.append({"class": "all", "map@50:95": named["AP_all"], "map@50": named["AP_50"], **whole})
        return {"class_map": rows, "map": named["AP_50"], **whole}

    def _best_f1(self) -> dict[Any, tuple[float, float]]:
        """Return precision and recall of each category where the mean F1 is best; under None their means."""
        p = self.params
        hits = {dt for dt, _, iou in self._pairs() if iou >= 0.5}
        anns = [*self.cocoDt.anns.items()]
        scores = np.array([ann["score"] for _, ann in anns], dtype=np.float64)
        label = [ann["category_id"] for _, ann in anns]
        is_hit = np.array([key in hits for key, _ in anns], dtype=np.int64)
        counted = [ann["category_id"] for ann in self.cocoGt.anns.values() if not ann.get("iscrowd", 0)]
        objects = Counter(counted)
        categories = [key for key in (p.catIds if p.useCats else dict.fromkeys(label)) if objects[key]]
        order = np.argsort(-scores, kind="stable")
        rows = defaultdict(list)
        for row in order.tolist():
            rows[label[row]].append(row)
        curves = [(-scores[rows[key]], np.concatenate(([0], np.cumsum(is_hit[rows[key]])))) for key in categories]
        total = np.array([objects[key] for key in categories], dtype=np.float64)
        best, found = -np.inf, {}
        lowest = np.unique(scores)
        for start in range(0, len(lowest) if categories else 0, CHUNK):
            chosen = lowest[start : start + CHUNK]
            # How many detections of a category score as much, and how many of these hit, (thresholds, categories).
            above = np.stack([np.searchsorted(negative, -chosen, "right") for negative, _ in curves], axis=1)
            hit = np.stack([curve[1][above[:, k]] for k, curve in enumerate(curves)], axis=1)
            precision, recall = hit / np.maximum(above, 1), hit / total
            f1 = 2 * precision * recall / np.where(hit > 0, precision + recall, 1.0)
            mean = np.array([row.mean() for row in f1])
            at = int(np.argmax(mean))
            if mean[at] > best:
                best, pairs = mean[at], np.stack((precision[at], recall[at]), axis=1)
                found = {key: (*pair,) for key, pair in zip(categories, pairs.tolist(), strict=True)}
                found[None] = float(precision[at].mean()), float(recall[at].mean())
        return found

    def run(self) -> None:
        """Evaluate, accumulate and summarize."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    @property
    def stats_as_dict(self) -> dict[str, float]:
        """The numbers of `summarize` by their names; -1 where undefined."""
        return dict(self._named)

    def __repr__(self) -> str:
        return _signed(self)

    def __str__(self) -> str:
        self.summarize()
        return repr(self)

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
    has_opencv = importlib.util.find_spec("cv2") is not None  # where callers ask before they name that backend
    masks = {name: getattr(mask, name) for name in mask.__all__}
    masks |= {"segmToRle": segmToRle, "rleToBoundary": rleToBoundary, "opencv_available": has_opencv}
    classes = {"COCO": COCO, "COCOeval_faster": COCOeval_faster, "COCOeval": COCOeval, "Params": Params}
    contents: dict[str, Record] = {
        "": {**classes, "init_as_pycocotools": _init_as_pycocotools, "__version__": VERSION, "__author__": AUTHOR},
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
