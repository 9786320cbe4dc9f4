"""Masks and keypoints of annotations: RLE as pycocotools writes it into them, and columns that can be compared.

From a file the compiled core reads results as columns, without a record for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.compat.pycocotools.params import rules_of
from jaccard_eval.data.boxtable import BoolArray, BoxTable, FloatArray, Shapes
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.native.calls import RecordColumns, ScannedShapes, read_outlines, read_poses, scan_results, scan_shapes
from jaccard_eval.reading.outlines import OutlineDraft
from jaccard_eval.similarity import KINDS
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks, Outlines
from jaccard_eval.similarity.runs import Runs, encode_counts, offsets_of, strings_of_runs
from jaccard_eval.text import pluralise, quoted_value

Record = dict[str, Any]


class MaskError(UsageError, ValueError):
    """A mask that is none: a ValueError there."""


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
    """Return the masks of annotations as ``pycocotools.mask`` encodes them; polygons in images of their own size.

    Listed runs are compressed as they stand, whatever they sum to, as there.
    """
    is_listed = [_is_listed(ann.get("segmentation")) for ann in anns]
    others = iter(rles_of(masks_of([ann for ann, listed in zip(anns, is_listed, strict=True) if not listed], images)))
    shapes = [ann["segmentation"] for ann, listed in zip(anns, is_listed, strict=True) if listed]
    counts = np.fromiter(chain.from_iterable(shape["counts"] for shape in shapes), np.int64)
    texts = encode_counts(counts, offsets_of([len(shape["counts"]) for shape in shapes]))
    runs = iter([{"size": list(shape["size"]), "counts": text} for shape, text in zip(shapes, texts, strict=True)])
    return [next(runs if listed else others) for listed in is_listed]


def _is_listed(shape: Any) -> bool:
    counts = shape.get("counts") if isinstance(shape, dict) and "size" in shape else None
    return isinstance(counts, list) and all(type(run) is int and run >= 0 for run in counts)


def rles_of(masks: Masks) -> list[Record]:
    """Return masks as ``pycocotools.mask`` encodes them."""
    texts = strings_of_runs(masks.runs, masks.sizes.prod(axis=1))
    return [{"size": size, "counts": text} for size, text in zip(masks.sizes.tolist(), texts, strict=True)]


def masks_of(anns: Sequence[Record], images: Mapping[Any, Record] | None = None) -> Masks:
    """Return the masks of annotations; polygons need the sizes of their `images`.

    A MaskError names an annotation whose mask is none, where pycocotools stops, hangs or reads other memory.
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
        raise MaskError(f"segmentation of annotation {name} on image {quoted_value(ann.get('image_id'))} {problem}")


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScannedRows:
    """Results in the order of their file, with the areas and boxes that `COCO.loadRes` gives them; ids count from 1."""

    kind: str  # what they can be compared as, besides boxes
    image: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]
    boxes: FloatArray
    area: FloatArray
    score: FloatArray
    shapes: Shapes | None


def scan_rows(data: bytes) -> ScannedRows | None:
    """Read a list of results; None without a core, or where anything is out of the ordinary."""
    is_posed = b'"keypoints"' in data
    if not is_posed and b'"segmentation"' not in data:
        found = scan_results(BytesIO(data), len(data))
        columns = None if found is None or found.key else found.columns
        return None if columns is None or not len(columns) else _rows(columns, "bbox", columns.coords, None)
    scanned = scan_shapes(data, poses=is_posed, role="pred")
    if scanned is None or not len(scanned.at):
        return None
    columns, boxes = scanned.columns, scanned.columns.coords
    absent = np.isnan(boxes).any(axis=1)
    shapes = _poses(data, scanned) if is_posed else _masks(data, scanned)
    if shapes is None or (absent.any() and not absent.all()):
        return None
    if not absent.any():
        return _rows(columns, "keypoints" if is_posed else "segm", boxes, shapes)
    if isinstance(shapes, Masks):
        return _rows(columns, "segm", shapes.bounds(), shapes, shapes.areas().astype(np.float64))
    xy = shapes.points[:, :, :2]
    boxes = np.hstack((xy.min(axis=1), xy.max(axis=1) - xy.min(axis=1)))
    return _rows(columns, "keypoints", boxes, shapes)


def _rows(
    columns: RecordColumns, kind: str, boxes: FloatArray, shapes: Shapes | None, area: FloatArray | None = None
) -> ScannedRows:
    return ScannedRows(
        kind=kind,
        image=np.asarray(columns.image),
        category=np.asarray(columns.category),
        boxes=boxes,
        area=boxes[:, 2] * boxes[:, 3] if area is None else area,
        score=columns.score,
        shapes=shapes,
    )


def _poses(data: bytes, scanned: ScannedShapes) -> Keypoints | None:
    points = read_poses(data, scanned)
    return None if points is None else Keypoints(points)


def _masks(data: bytes, scanned: ScannedShapes) -> Masks | None:
    outlines = read_outlines(data, scanned)
    if outlines is None or outlines.has_polygons.any():  # which need the sizes of images
        return None
    return Masks(Runs(outlines.edges, outlines.offsets), outlines.sizes)
