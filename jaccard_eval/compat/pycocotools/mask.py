"""Masks as ``pycocotools.mask`` has them: compressed RLE in dictionaries, with the same names, shapes and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.params import rules_of
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.errors import UsageError
from jaccard_eval.native.calls import read_outlines, scan_shapes
from jaccard_eval.reading.outlines import OutlineDraft
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.boxes import Corners, overlapping_pairs
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, MaskSide, Outlines, mask_pairs
from jaccard_eval.similarity.runs import Runs, combined, runs_of_pixels, strings_of_runs
from jaccard_eval.text import pluralise, quoted_value

Record = dict[str, Any]


class ReadMasks:
    """Masks of annotations, so that they are not read again while these hold the same strings."""

    def __init__(self, anns: Sequence[Record], masks: Masks) -> None:
        self._masks = masks
        self._strings = [ann["segmentation"]["counts"] for ann in anns]
        self._rows = {id(text): row for row, text in enumerate(self._strings)}

    def of(self, anns: Sequence[Record]) -> Masks | None:
        """Return the masks of annotations; None if any has another string or size."""
        try:
            shapes = [ann["segmentation"] for ann in anns]
            rows = np.array([self._rows[id(shape["counts"])] for shape in shapes], dtype=np.int64)
            sizes = np.fromiter(chain.from_iterable([shape["size"] for shape in shapes]), np.int64, 2 * len(anns))
        except (KeyError, TypeError, ValueError):
            return None
        masks = self._masks.take(rows)
        return masks if np.array_equal(masks.sizes, sizes.reshape(-1, 2)) else None


def write_rles(anns: Sequence[Record], images: Mapping[Any, Record]) -> ReadMasks:
    """Replace masks that are polygons or listed runs by compressed RLE, in the annotations themselves."""
    drawn = [ann for ann in anns if not is_compressed(ann.get("segmentation"))]
    masks = masks_of(drawn, images)
    for ann, rle in zip(drawn, rles_of(masks), strict=True):
        ann["segmentation"] = rle
    return ReadMasks(drawn, masks)


def is_compressed(value: Any) -> bool:
    """Whether a mask is the compressed RLE that pycocotools takes as it is."""
    return isinstance(value, dict) and isinstance(value.get("counts"), str | bytes)


def rles(anns: Sequence[Record], images: Mapping[Any, Record]) -> list[Record]:
    """Return the masks of annotations as ``pycocotools.mask`` encodes them; polygons in images of their own size."""
    return rles_of(masks_of(anns, images))


def rles_of(masks: Masks) -> list[Record]:
    """Return masks as ``pycocotools.mask`` encodes them."""
    texts = strings_of_runs(masks.runs, masks.sizes.prod(axis=1))
    return [{"size": size, "counts": text} for size, text in zip(masks.sizes.tolist(), texts, strict=True)]


def masks_of(anns: Sequence[Record], images: Mapping[Any, Record] | None = None) -> Masks:
    """Return the masks of annotations; polygons need the sizes of their `images`.

    A UsageError names an annotation whose mask is none, where pycocotools stops, hangs or reads other memory.
    """
    outlines = _compiled([ann.get("segmentation") for ann in anns])
    if outlines is None:
        draft = OutlineDraft()
        for ann in anns:
            _refuse(ann, draft.add(ann.get("segmentation")))
        outlines, problems = draft.build()
        for row, problem in problems:
            _refuse(anns[row], problem)
    sizes = outlines.masks.sizes.copy()
    for row in np.flatnonzero(outlines.has_polygons).tolist():
        image = {} if images is None else images[anns[row]["image_id"]]
        absent = [name for name in ("height", "width") if name not in image]
        _refuse(anns[row], f"is polygons, and its image has no {' and no '.join(absent)}" if absent else "")
        sizes[row] = image["height"], image["width"]
    return outlines.in_images(sizes)


def _compiled(shapes: Sequence[Any]) -> Outlines | None:
    """Return masks as the compiled core reads them from JSON; None where any of them is unusual."""
    try:
        plain = [
            {"size": shape["size"], "counts": shape["counts"].decode("ascii")}
            if type(shape) is dict and type(shape.get("counts")) is bytes
            else shape
            for shape in shapes
        ]
        text = msgspec.json.encode({"annotations": [{"segmentation": shape} for shape in plain]})
    except (KeyError, TypeError, ValueError):  # arrays and tensors, and characters that are none of RLE's
        return None
    scanned = scan_shapes(text, poses=False, role="gt")
    found = None if scanned is None else read_outlines(text, scanned)
    if found is None:
        return None
    masks = Masks(Runs(found.edges, found.offsets), found.sizes)
    return Outlines(found.corners, found.rings, found.parts, masks, found.has_polygons, np.zeros_like(found.is_short))


def _refuse(ann: Record, problem: str) -> None:
    if problem:
        name = quoted_value(ann.get("id"))
        raise UsageError(f"segmentation of annotation {name} on image {quoted_value(ann.get('image_id'))} {problem}")


def keypoints_of(anns: Sequence[Record], n_points: int) -> Keypoints:
    """Return the keypoints of annotations, of which each has `n_points`."""
    poses = [ann["keypoints"] for ann in anns]
    for ann, pose in zip(anns, poses, strict=True):
        if len(pose) != 3 * n_points:
            raise UsageError(
                f"keypoints of annotation {quoted_value(ann.get('id'))} are {len(pose)} numbers, but there are"
                f" {pluralise(n_points, 'sigma')}: set params.kpt_oks_sigmas, one for every x, y, v"
            )
    numbers = np.fromiter(chain.from_iterable(poses), np.float64, 3 * n_points * len(poses))
    return Keypoints(numbers.reshape(len(poses), n_points, 3))


def require_points(shapes: Shapes, params: Any) -> None:
    """Refuse poses of another number of points than there are sigmas, with no word: `keypoints_of` finds them."""
    if isinstance(shapes, Keypoints) and shapes.points.shape[1] != len(params.kpt_oks_sigmas):
        raise UsageError("other sigmas")


def shaped_columns(anns: Sequence[Record], params: Any, read: ReadMasks | None = None) -> tuple[FloatArray, Shapes]:
    """Return the boxes of annotations (n, 4) in xywh, and the shapes that are compared.

    Around the boxes poses without labelled points are looked for; those of masks have no use, and need not be there.
    """
    if params.iouType != "keypoints":
        known = None if read is None else read.of(anns)
        masks = masks_of(anns) if known is None else known
        return masks.bounds(), masks
    poses = keypoints_of(anns, len(params.kpt_oks_sigmas))
    return np.array([ann["bbox"] for ann in anns], dtype=np.float64).reshape(len(anns), 4), poses


def shape_overlaps(dts: Sequence[Record], gts: Sequence[Record], crowd: BoolArray, params: Any) -> FloatArray:
    """Return how much the shapes of all pairs of detections and ground truth of one image agree, (D, G)."""
    tables, zeros = [], [np.zeros(len(anns), dtype=np.int32) for anns in (dts, gts)]
    for anns, places in zip((dts, gts), zeros, strict=True):
        boxes, shapes = shaped_columns(anns, params)
        area = [ann["area"] for ann in anns]
        tables.append(BoxTable.from_arrays(places, places, boxes, encoding="xywh", area=area, shapes=shapes))
    masks = [table.shapes for table in tables if isinstance(table.shapes, Masks)]
    sizes = np.concatenate([part.sizes for part in masks]) if masks else np.zeros((1, 2), dtype=np.int64)
    # Of masks of two sizes pycocotools returns -1 or, where they meet, may never return.
    for ann, (height, width) in zip((*dts, *gts), sizes.tolist(), strict=False):
        if (height, width) != (sizes[0, 0], sizes[0, 1]):
            _refuse(ann, f"has size [{height}, {width}], but another one there has {sizes[0].tolist()}")
    kind, rules = KINDS[params.iouType], rules_of(params)
    first, second = (kind.prepare(table, rules) for table in tables)
    i, j = (grid.ravel() for grid in np.indices((len(dts), len(gts))))
    i, j, overlap = kind.pairs(first, second, i, j, crowd=crowd, threshold=-np.inf)
    # By columns in memory, as the extension of pycocotools returns it.
    overlaps = np.zeros((len(dts), len(gts)), order="C" if params.iouType == "keypoints" else "F")
    overlaps[i, j] = overlap
    return overlaps


def decoded(rle: Record) -> npt.NDArray[np.uint8]:
    """Return the pixels of a mask, (h, w), 1 where it is, by columns in memory as pycocotools returns them."""
    masks = masks_of([{"segmentation": rle}])
    height, width = masks.sizes[0].tolist()
    changes = np.zeros(height * width + 1, dtype=np.uint8)
    changes[masks.runs.edges] = 1
    return (np.cumsum(changes[:-1]) % 2).astype(np.uint8).reshape((height, width), order="F")


__all__ = ["area", "decode", "encode", "frPyObjects", "iou", "merge", "toBbox"]


def encode(bimask: npt.ArrayLike) -> Any:
    """Return the RLE of pixels: of an array (h, w) a dictionary, of (h, w, n) a list of them.

    Parameters
    ----------
    bimask : array_like, shape (h, w) or (h, w, n)
        What is not 0 belongs to the mask.

    Raises
    ------
    UsageError
        For another number of axes.

    Notes
    -----
    Source: pycocotools 2.0.11 ``mask.py``, as for all functions here.

    Examples
    --------
    >>> import numpy as np
    >>> encode(np.eye(2, dtype=np.uint8))
    {'size': [2, 2], 'counts': b'0120'}
    """
    pixels = np.asarray(bimask)
    if pixels.ndim not in (2, 3):
        raise UsageError(f"encode() takes an array (h, w) or (h, w, n), got shape {pixels.shape}")
    stacked = pixels.reshape((*pixels.shape[:2], -1))
    height, width, n = stacked.shape
    runs = runs_of_pixels((stacked[:, :, row] != 0, 0, 0, height) for row in range(n))
    found = rles_of(Masks(runs, np.full((n, 2), (height, width), dtype=np.int64)))
    return found if pixels.ndim == 3 else found[0]


def decode(rleObjs: Any) -> npt.NDArray[np.uint8]:
    """Return the pixels of RLE, 1 where the mask is: of a dictionary (h, w), of a list of them (h, w, n)."""
    if not isinstance(rleObjs, list | tuple):
        return decoded(rleObjs)
    if not rleObjs:
        return np.zeros((0, 0, 0), dtype=np.uint8, order="F")
    return np.asfortranarray(np.stack([decoded(rle) for rle in rleObjs], axis=2))


def merge(rleObjs: Sequence[Record], intersect: bool = False) -> Record:
    """Return the union of masks of one size, or their intersection."""
    masks = _masks(rleObjs)
    sizes = np.unique(masks.sizes, axis=0)
    if len(sizes) > 1:
        raise UsageError(f"merge() takes masks of one size, got {sizes.tolist()}")
    if not len(masks):
        return {"size": [0, 0], "counts": b""}
    owner = np.zeros(len(masks), dtype=np.int64)
    return rles_of(Masks(combined(masks.runs, owner, 1, len(masks) if intersect else 1), sizes))[0]


def area(rleObjs: Any) -> Any:
    """Return how many pixels masks have: of a list an array (n,), of a dictionary one number."""
    areas = _masks(rleObjs).areas().astype(np.uint32)
    return areas if isinstance(rleObjs, list | tuple) else areas[0]


def toBbox(rleObjs: Any) -> FloatArray:
    """Return left, top, width and height of masks: of a list (n, 4), of a dictionary (4,)."""
    bounds = _masks(rleObjs).bounds()
    return bounds if isinstance(rleObjs, list | tuple) else bounds[0]


def iou(dt: Any, gt: Any, pyiscrowd: Any) -> Any:
    """Return how much detections and ground truth overlap, both RLE or both boxes (n, 4) of left, top, width, height.

    Parameters
    ----------
    dt, gt : list of dict, or array_like of shape (n, 4)
    pyiscrowd : array_like of int, shape (G,)
        Of a crowd the intersection is divided by the area of the detection.

    Returns
    -------
    ndarray, shape (D, G)
        An empty list where a side is empty. Masks of two sizes that meet have -1.

    Raises
    ------
    UsageError
        When one side is RLE and the other boxes, or `pyiscrowd` has another length.
    """
    first, second = _compared(dt), _compared(gt)
    if not len(first) or not len(second):
        return []
    if isinstance(first, Masks) is not isinstance(second, Masks):
        raise UsageError("iou() compares RLE with RLE or boxes with boxes, got one of each")
    crowd = np.asarray(pyiscrowd, dtype=np.uint8).astype(np.bool_)
    if crowd.shape != (len(second),):
        raise UsageError(f"pyiscrowd must have {len(second)} values, one for each ground truth, got {crowd.shape}")
    overlaps = np.zeros((len(first), len(second)), order="F")
    i, j = (grid.ravel().astype(np.int64) for grid in np.indices(overlaps.shape))
    if isinstance(first, Masks) and isinstance(second, Masks):
        differ = (first.sizes[i] != second.sizes[j]).any(axis=1)
        bounds = Corners.of(first.bounds()), Corners.of(second.bounds())
        met = overlapping_pairs(bounds[0], bounds[1], i[differ], j[differ], threshold=-np.inf)
        overlaps[met[0], met[1]] = -1.0
        found = mask_pairs(MaskSide.of(first), MaskSide.of(second), i[~differ], j[~differ], crowd=crowd)
    else:
        corners = Corners.of(np.asarray(first)), Corners.of(np.asarray(second))
        found = overlapping_pairs(corners[0], corners[1], i, j, crowd=crowd, threshold=-np.inf)
    overlaps[found[0], found[1]] = found[2]
    return overlaps


def frPyObjects(pyobj: Any, h: Any, w: Any) -> Any:
    """Return the RLE of boxes, polygons or listed runs in an image of height `h` and width `w`.

    Parameters
    ----------
    pyobj : ndarray (n, 4), list, or dict
        Boxes of left, top, width and height; polygons ``[x1, y1, x2, y2, ...]``, each a mask of its own; dictionaries
        of ``counts`` and ``size``. One box, polygon or dictionary is one mask.

    Raises
    ------
    UsageError
        For anything else.
    """
    given = pyobj.tolist() if isinstance(pyobj, np.ndarray) else pyobj
    if isinstance(given, list):
        given = [one.tolist() if isinstance(one, np.ndarray) else one for one in given]
    if isinstance(given, dict) or (isinstance(given, list) and given and not isinstance(given[0], list | tuple | dict)):
        found: list[Record] = frPyObjects([given], h, w)
        return found[0]
    if not isinstance(given, list):
        raise UsageError(f"frPyObjects() takes boxes, polygons or RLE with counts, got {quoted_value(pyobj)}")
    rows = [[_outline(one)] if isinstance(one, list | tuple) else one for one in given]
    image = {"height": int(h), "width": int(w)}
    return rles([{"image_id": 0, "segmentation": row} for row in rows], {0: image})


def _outline(numbers: Sequence[float]) -> list[float]:
    """Return the corners of a box, or of a polygon those that it has."""
    if len(numbers) != 4:
        return list(numbers)
    left, top, width, height = numbers
    right, bottom = left + width, top + height
    return [left, top, left, bottom, right, bottom, right, top]


def _compared(given: Any) -> Masks | FloatArray:
    if isinstance(given, np.ndarray) or not all(isinstance(one, dict) for one in given):
        boxes = np.asarray(given, dtype=np.float64)
        boxes = boxes[None] if boxes.shape == (4,) else boxes
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise UsageError(f"boxes are an array (n, 4) of left, top, width and height, got shape {boxes.shape}")
        return boxes
    return _masks(given)


def _masks(given: Any) -> Masks:
    listed = given if isinstance(given, list | tuple) else [given]
    return masks_of([{"segmentation": rle} for rle in listed])
