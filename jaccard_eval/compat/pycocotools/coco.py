"""COCO annotations in memory, with the index and the filters of pycocotools."""

from __future__ import annotations

import copy
import gc
import json
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools import mask as maskUtils
from jaccard_eval.compat.pycocotools.shapes import (
    ReadMasks,
    ScannedRows,
    decoded,
    is_compressed,
    masks_of,
    rles,
    scan_rows,
)
from jaccard_eval.errors import require

__all__ = ["COCO", "Record", "maskUtils", "without_collection"]

Record = dict[str, Any]
UNREAD = ("dataset", "anns", "imgToAnns", "catToImgs")  # attributes that results in a file get when they are read
ROWS_BETWEEN_LINES = 1_000_000  # how often pycocotools prints its progress through an array


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep the garbage collector from looking at millions of records, which have no cycles, again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class COCO:
    """Annotations or results of a data set, as ``pycocotools.coco.COCO`` holds them.

    Parameters
    ----------
    annotation_file : str, path or dict, optional
        COCO JSON, or what such a file holds, as faster-coco-eval takes it; without it the object is empty, to be filled
        through `dataset` and `createIndex`.
    verbose : bool
        Whether to print what pycocotools prints.

    Notes
    -----
    Attributes are those of pycocotools 2.0.11: ``dataset anns cats imgs imgToAnns catToImgs``. Captions as
    results raise a NotImplementedError.

    Examples
    --------
    >>> gt = COCO(verbose=False)
    >>> gt.dataset = {"images": [{"id": 7}], "categories": [{"id": 1, "name": "dog"}], "annotations": []}
    >>> gt.createIndex()
    >>> gt.getImgIds(), gt.getCatIds(catNms=["dog"])
    ([7], [1])
    """

    @without_collection()
    def __init__(self, annotation_file: str | os.PathLike[str] | Record | None = None, *, verbose: bool = True) -> None:
        self.verbose = verbose
        self._unread: tuple[ScannedRows, bytes, Record] | None = None  # results whose records are not made yet
        self._masks: ReadMasks | None = None  # of results, as `loadRes` has read them
        self.dataset: Record = {}
        self.anns: dict[Any, Record] = {}
        self.cats: dict[Any, Record] = {}
        self.imgs: dict[Any, Record] = {}
        self.imgToAnns: defaultdict[Any, list[Record]] = defaultdict(list)
        self.catToImgs: defaultdict[Any, list[Any]] = defaultdict(list)
        if annotation_file is not None:
            self._print("loading annotations into memory...")
            start = time.time()
            given = annotation_file
            dataset = given if isinstance(given, dict) else _decoded(Path(given).read_bytes())
            if not isinstance(dataset, dict):
                raise AssertionError(f"annotation file format {type(dataset)} not supported")
            self._print(f"Done (t={time.time() - start:0.2f}s)")
            self.dataset = dataset
            self.createIndex()

    def createIndex(self) -> None:
        """Make the index of `dataset`; of records with equal ids the last one is kept."""
        self._print("creating index...")
        self._index()
        self._print("index created!")

    @without_collection()
    def _index(self) -> None:
        annotations = self.dataset.get("annotations", [])
        self.anns = {ann["id"]: ann for ann in annotations}
        self.imgs = {img["id"]: img for img in self.dataset.get("images", [])}
        self.cats = {cat["id"]: cat for cat in self.dataset.get("categories", [])}
        self.imgToAnns, self.catToImgs = defaultdict(list), defaultdict(list)
        for ann in annotations:
            self.imgToAnns[ann["image_id"]].append(ann)
        if "categories" in self.dataset:
            for ann in annotations:
                self.catToImgs[ann["category_id"]].append(ann["image_id"])

    def info(self) -> None:
        """Print the section ``info``."""
        for key, value in self.dataset["info"].items():
            self._print(f"{key}: {value}")

    def getAnnIds(self, imgIds: Any = (), catIds: Any = (), areaRng: Any = (), iscrowd: Any = None) -> list[Any]:
        """Return the ids of annotations of some images and categories, within an area range (open at both ends)."""
        images, categories = _listed(imgIds), _listed(catIds)
        anns: Iterable[Record]
        if len(images):
            anns = chain.from_iterable(self.imgToAnns[key] for key in images if key in self.imgToAnns)
        else:
            anns = self.dataset["annotations"]
        if len(categories):
            wanted = frozenset(categories)
            anns = [ann for ann in anns if ann["category_id"] in wanted]
        if len(areaRng):
            anns = [ann for ann in anns if areaRng[0] < ann["area"] < areaRng[1]]
        if iscrowd is not None:
            anns = [ann for ann in anns if ann.get("iscrowd", 0) == iscrowd]
        return [ann["id"] for ann in anns]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of categories by name, supercategory or id."""
        cats = self.dataset["categories"]
        for key, given in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            wanted = _listed(given)
            # A bare text is not a list of one: its parts are found as well, as pycocotools finds them.
            if len(wanted):
                cats = [cat for cat in cats if cat[key] in wanted]
        return [cat["id"] for cat in cats]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Return the ids of images, or of those among them that have all of some categories."""
        images, categories = _listed(imgIds), _listed(catIds)
        if len(images) == len(categories) == 0:
            return list(self.imgs)
        found = set(images)
        for place, category in enumerate(categories):
            having = set(self.catToImgs[category])
            found = having if place == 0 and not found else found & having
        return list(found)

    def loadAnns(self, ids: Any = ()) -> list[Record]:
        """Return the annotations of some ids, or of one."""
        return _load(self.anns, ids)

    def loadCats(self, ids: Any = ()) -> list[Record]:
        """Return the categories of some ids, or of one."""
        return _load(self.cats, ids)

    def loadImgs(self, ids: Any = ()) -> list[Record]:
        """Return the images of some ids, or of one."""
        return _load(self.imgs, ids)

    @without_collection()
    def loadRes(self, resFile: Any) -> COCO:
        """Return detections as annotations of the same images; ids count from 1.

        Parameters
        ----------
        resFile : str, path, list of dict, or ndarray of shape (N, 7)
            A results file, its records, or rows of image id, left, top, width, height, score and category id.

        Returns
        -------
        COCO
            The records themselves, completed in place, as pycocotools does.
        """
        results = self._empty()
        results.dataset["info"] = copy.deepcopy(self.dataset.get("info", {}))
        results.dataset["images"] = list(self.dataset["images"])
        self._print("Loading and preparing results...")
        start = time.time()
        data = Path(resFile).read_bytes() if isinstance(resFile, str | os.PathLike) else None
        rows = None if data is None else scan_rows(data)
        anns: Any
        if rows is not None:
            anns = [{"image_id": image} for image in np.unique(rows.image).tolist()]
        elif data is not None:
            anns = _decoded(data)
        else:
            anns = self.loadNumpyAnnotations(resFile) if isinstance(resFile, np.ndarray) else resFile
        if not isinstance(anns, list):
            raise AssertionError("results in not an array of objects")  # noqa: TRY004 - what callers catch
        if not {ann["image_id"] for ann in anns} <= set(self.getImgIds()):
            raise AssertionError("Results do not correspond to current coco set")
        results.dataset["categories"] = copy.deepcopy(self.dataset["categories"])
        if rows is None:
            results._masks = _complete(anns, self.imgs)
        self._print(f"DONE (t={time.time() - start:0.2f}s)")
        results.dataset["annotations"] = [] if rows is not None else anns
        results.createIndex()
        if rows is not None and data is not None:
            results._unread = rows, data, results.dataset
            for name in UNREAD:
                delattr(results, name)
        return results

    def __getattr__(self, name: str) -> Any:
        """Make the records of results that `loadRes` has left in their file, when somebody looks at them."""
        unread = vars(self).get("_unread") if name in UNREAD else None
        if unread is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        (_, data, self.dataset), self._unread = unread, None
        self.dataset["annotations"] = _decoded(data)
        self._masks = _complete(self.dataset["annotations"], self.imgs)
        self._index()
        return getattr(self, name)

    def _scanned(self, iou_type: str) -> ScannedRows | None:
        """Return the columns of results that nobody has looked at, if they can be compared as this."""
        rows = None if self._unread is None else self._unread[0]
        return rows if rows is not None and iou_type in (rows.kind, "bbox") else None

    def _empty(self) -> COCO:
        # Of this class, as there: a subclass may be made with other arguments.
        return COCO(verbose=self.verbose)

    def loadNumpyAnnotations(self, data: npt.NDArray[Any]) -> list[Record]:
        """Return rows (N, 7) of image id, left, top, width, height, score and category id as records."""
        self._print("Converting ndarray to lists...")
        self._print(data.shape)
        if data.ndim != 2 or data.shape[1] != 7:
            raise AssertionError(f"results have shape {data.shape}; expected (N, 7)")
        for start in range(0, len(data), ROWS_BETWEEN_LINES):
            self._print(f"{start}/{len(data)}")
        return [
            {"image_id": int(row[0]), "bbox": list(row[1:5]), "score": row[5], "category_id": int(row[6])}
            for row in data
        ]

    def showAnns(self, anns: list[Record], draw_bbox: bool = False) -> int | None:
        """Draw masks, keypoints and boxes of annotations into the current matplotlib axes; print captions."""
        if len(anns) == 0:
            return 0
        if "segmentation" not in anns[0] and "keypoints" not in anns[0]:
            if "caption" not in anns[0]:
                raise NotImplementedError("showAnns() draws masks, keypoints, boxes and captions")
            for ann in anns:
                self._print(ann["caption"])
            return None
        pyplot = require("matplotlib.pyplot", extra="plot")
        patches = require("matplotlib.patches", extra="plot")
        collections = require("matplotlib.collections", extra="plot")
        axes = pyplot.gca()
        axes.set_autoscale_on(False)
        polygons, colors = [], []
        for ann in anns:
            # Light colours at random, as pycocotools draws them, from its generator: a seed there gives them here.
            color = tuple(np.random.random(3) * 0.6 + 0.4)  # noqa: NPY002
            outlines = []
            if isinstance(ann.get("segmentation"), list):
                outlines = [np.reshape(points, (-1, 2)) for points in ann["segmentation"]]
            elif "segmentation" in ann:
                shade = np.array([2.0, 166.0, 101.0]) / 255 if ann["iscrowd"] else np.random.random(3)  # noqa: NPY002
                mask = self.annToMask(ann)
                axes.imshow(np.dstack((np.broadcast_to(shade, (*mask.shape, 3)), mask * 0.5)))
            if isinstance(ann.get("keypoints"), list):
                self._draw_pose(ann, axes, color)
            if draw_bbox:
                left, top, width, height = ann["bbox"]
                right, bottom = left + width, top + height
                outlines.append(np.array([[left, top], [left, bottom], [right, bottom], [right, top]]))
            polygons += [patches.Polygon(outline) for outline in outlines]
            colors += [color] * len(outlines)
        axes.add_collection(collections.PatchCollection(polygons, facecolor=colors, linewidths=0, alpha=0.4))
        axes.add_collection(collections.PatchCollection(polygons, facecolor="none", edgecolors=colors, linewidths=2))
        return None

    def _draw_pose(self, ann: Record, axes: Any, color: tuple[float, ...]) -> None:
        """Draw the edges between labelled points, then these, with a dark rim where they are hidden."""
        x, y, seen = np.array(ann["keypoints"]).reshape(-1, 3).T
        for first, second in np.array(self.cats[ann["category_id"]]["skeleton"]) - 1:
            if min(seen[first], seen[second]) > 0:
                axes.plot(x[[first, second]], y[[first, second]], linewidth=3, color=color)
        for least, rim in ((0, "k"), (1, color)):
            shown = seen > least
            style = {"markerfacecolor": color, "markeredgecolor": rim, "markersize": 8, "markeredgewidth": 2}
            axes.plot(x[shown], y[shown], "o", **style)

    def download(self, tarDir: Any = None, imgIds: Any = ()) -> None:
        """Raise a NotImplementedError: nothing here opens a connection."""
        raise NotImplementedError(
            "download() is not available: nothing here opens a connection. Fetch the 'coco_url' of each image in `imgs`"
            " with a program of your choice, or call pycocotools' own COCO.download()."
        )

    def annToRLE(self, ann: Record) -> Any:
        """Return the mask of an annotation as compressed RLE; what is compressed is returned as it is."""
        return ann["segmentation"] if is_compressed(ann["segmentation"]) else rles([ann], self.imgs)[0]

    def annToMask(self, ann: Record) -> npt.NDArray[np.uint8]:
        """Return the mask of an annotation, shape (height, width), 1 where it is."""
        return decoded(self.annToRLE(ann))

    def _print(self, text: object) -> None:
        if self.verbose:
            print(text)


def _decoded(data: bytes) -> Any:
    """Return what a file of JSON holds."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):  # NaN and other encodings, too, which pycocotools reads
        return json.loads(data)


def _complete(anns: list[Record], images: dict[Any, Record]) -> ReadMasks | None:
    """Write what annotations have besides into results: ids, areas, and boxes or masks. The first decides for all."""
    first = anns[0]
    given = next((kind for kind in ("caption", "bbox", "segmentation", "keypoints") if kind in first), None)
    if given == "bbox" and first["bbox"] == []:
        given = next((kind for kind in ("segmentation", "keypoints") if kind in first), None)
    if given in ("caption", None):
        raise NotImplementedError(
            f"loadRes() reads results with 'bbox', 'segmentation' or 'keypoints', got {sorted(first)}"
        )
    read = None
    if given == "segmentation":
        masks = masks_of(anns, images)
        if all(is_compressed(ann["segmentation"]) for ann in anns):
            read = ReadMasks(anns, masks)
        for ann, area, bounds in zip(anns, masks.areas().tolist(), masks.bounds().tolist(), strict=True):
            ann["area"] = area
            ann.setdefault("bbox", bounds)
    elif given == "bbox":
        for ann in anns:
            left, top, width, height = ann["bbox"]
            if "segmentation" not in ann:
                right, bottom = left + width, top + height
                ann["segmentation"] = [[left, top, left, bottom, right, bottom, right, top]]
            ann["area"] = width * height
    else:
        for ann, (left, top, right, bottom) in zip(anns, _reaches([ann["keypoints"] for ann in anns]), strict=True):
            width, height = right - left, bottom - top
            ann["area"], ann["bbox"] = width * height, [left, top, width, height]
    for number, ann in enumerate(anns, start=1):
        ann["id"] = number
        # Of keypoints alone pycocotools does not write it.
        if given != "keypoints":
            ann["iscrowd"] = 0
    return read


def _reaches(poses: list[Any]) -> Iterable[Any]:
    """Return the smallest and the largest x and y of each pose."""
    if len(lengths := {*map(len, poses)}) > 1 or lengths == {0}:
        return [(min(pose[0::3]), min(pose[1::3]), max(pose[0::3]), max(pose[1::3])) for pose in poses]
    numbers = np.fromiter(chain.from_iterable(poses), np.float64).reshape(len(poses), -1)
    x, y = numbers[:, 0::3], numbers[:, 1::3]
    found: Iterable[Any] = np.stack([x.min(axis=1), y.min(axis=1), x.max(axis=1), y.max(axis=1)], axis=1).tolist()
    return found


def _isArrayLike(given: Any) -> bool:  # by their name: callers import it
    return hasattr(given, "__iter__") and hasattr(given, "__len__")


def _listed(given: Any) -> Collection[Any]:
    listed: Collection[Any] = given if _isArrayLike(given) else [given]
    return listed


def _load(records: dict[Any, Record], ids: Any) -> list[Record]:
    return [records[key] for key in _listed(ids)]
