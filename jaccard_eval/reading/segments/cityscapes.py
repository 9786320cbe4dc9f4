"""Cityscapes' own layout: a folder of ``*_instanceIds.png``, whose 16-bit values are class and instance at once.

A value below 1,000 is a class: stuff, or a group of things that nobody separated, which is a crowd. Above, it is 1,000
times the class of things plus a number. Source: mcordts/cityscapesScripts, ``createPanopticImgs.py``, ``labels.py``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.engine import bring
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.reading.files import list_tree, require_readable
from jaccard_eval.reading.labelmaps.arrays import ArrayMap
from jaccard_eval.reading.labelmaps.images import EncodedImage
from jaccard_eval.reading.segments.sides import Category, ListedSegments, SegmentedImage, SegmentedSide
from jaccard_eval.text import pluralise

FORMAT = "cityscapes"
ENDING = "_instanceIds.png"
PER_CLASS = 1_000  # values of one class of things
_DECORATION = "_gtFine"  # between the name of an image and the ending
# Classes that are evaluated: id, name, whether they have instances, colour.
_LABELS = (
    (7, "road", False, (128, 64, 128)),
    (8, "sidewalk", False, (244, 35, 232)),
    (11, "building", False, (70, 70, 70)),
    (12, "wall", False, (102, 102, 156)),
    (13, "fence", False, (190, 153, 153)),
    (17, "pole", False, (153, 153, 153)),
    (19, "traffic light", False, (250, 170, 30)),
    (20, "traffic sign", False, (220, 220, 0)),
    (21, "vegetation", False, (107, 142, 35)),
    (22, "terrain", False, (152, 251, 152)),
    (23, "sky", False, (70, 130, 180)),
    (24, "person", True, (220, 20, 60)),
    (25, "rider", True, (255, 0, 0)),
    (26, "car", True, (0, 0, 142)),
    (27, "truck", True, (0, 0, 70)),
    (28, "bus", True, (0, 60, 100)),
    (31, "train", True, (0, 80, 100)),
    (32, "motorcycle", True, (0, 0, 230)),
    (33, "bicycle", True, (119, 11, 32)),
)
CATEGORIES = tuple(Category(str(key), name, is_thing, colour) for key, name, is_thing, colour in _LABELS)
_IS_THING = {key: is_thing for key, _, is_thing, _ in _LABELS}


def read_folder(path: Path, findings: FindingLog) -> SegmentedSide:
    """Return the maps of a folder and below it."""
    require_readable(path)
    files = list_tree(path, findings)
    names = [name for name in files if name.endswith(ENDING)]
    if not names:
        detail = f"there is no map (*{ENDING}) among the {pluralise(len(files), 'file')} of the folder"
        fix = "Pass the JSON file of COCO's panoptic format, or the folder of Cityscapes' instance maps."
        findings.error("map-none", Where(str(path)), detail, fix=fix)
    bring(path / name for name in names)
    images = tuple(
        SegmentedImage(_key(name), _key(name), path / name, Where(str(path / name)), None, None) for name in names
    )
    first: dict[str, Path | ArrayMap] = {}
    for image in images:
        if first.setdefault(image.key, image.map) != image.map:
            detail = f"is of image {image.key}, as is {first[image.key]}"
            findings.error("image-duplicate", image.where, detail, fix="Pass a folder with one map for each image.")
    decode = partial(EncodedImage.decode_ids, colored=False)
    return SegmentedSide(str(path), str(path), FORMAT, CATEGORIES, images, decode, list_of=_listed)


def _key(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(ENDING).removesuffix(_DECORATION)


def _listed(values: npt.NDArray[np.int64]) -> ListedSegments:
    """Return the segments that distinct values are; those of classes that are not evaluated are none: void."""
    label = np.where(values < PER_CLASS, values, values // PER_CLASS)
    known = np.isin(label, list(_IS_THING))
    values, label = values[known], label[known]
    is_thing = np.array([_IS_THING[key] for key in label.tolist()], dtype=np.bool_)
    return ListedSegments(
        ids=values,
        categories=tuple(map(str, label.tolist())),
        crowd=is_thing & (values < PER_CLASS),
        area=np.full(len(values), np.nan),
    )
