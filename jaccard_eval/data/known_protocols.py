"""The protocols by name, each rule with its source. Plain values: the help names them, and loads no NumPy for that."""

from __future__ import annotations

import math
from typing import Any

SMALL_MAX_AREA = 32.0**2  # px², COCO detection evaluation
MEDIUM_MAX_AREA = 96.0**2  # px², COCO detection evaluation
LARGEST_AREA = 1e5**2  # px², pycocotools Params.setDetParams

_COCO: dict[str, Any] = {
    # numpy.linspace(0.5, 0.95, 10) to the last bit: the ninth lies one ulp below .9, and a box with that IoU matches.
    "iou_thresholds": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95),
    # The range of the headline comes first; it is bounded, so that pycocotools ignores larger boxes as well.
    "areas": {
        "all": (0.0, LARGEST_AREA),
        "small": (0.0, SMALL_MAX_AREA),
        "medium": (SMALL_MAX_AREA, MEDIUM_MAX_AREA),
        "large": (MEDIUM_MAX_AREA, LARGEST_AREA),
    },
    "max_dets": (1, 10, 100),
    "assignment": "best_free",
    "iou_ties": "last",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "crowd_overlap": "ioa",
    "ignored_flags": ("crowd",),
    "reusable_flags": ("crowd",),
    "interpolation": "grid",
    "recall_points": 101,
    "precision_epsilon": 2.0**-52,  # numpy.spacing(1)
    "sources": {
        "iou_thresholds": "pycocotools 2.0.11 cocoeval.py Params.setDetParams: linspace(.5, .95, 10)",
        "areas": "pycocotools 2.0.11 cocoeval.py Params.setDetParams: areaRng, closed at both ends",
        "max_dets": "pycocotools 2.0.11 cocoeval.py Params.setDetParams: 1, 10, 100, per image and class",
        "assignment": "pycocotools 2.0.11 cocoeval.py COCOeval.evaluateImg",
        "iou_ties": "pycocotools 2.0.11 cocoeval.py COCOeval.evaluateImg: 'continue' only below the best so far",
        "score_ties": "pycocotools 2.0.11 cocoeval.py COCOeval.accumulate: images ascending, mergesort",
        "pixel_offset": "pycocotools 2.0.11 maskApi.c bbIou: no pixel is added",
        "crowd_overlap": "pycocotools 2.0.11 maskApi.c bbIou: the union is the detection where iscrowd",
        "ignored_flags": "pycocotools 2.0.11 cocoeval.py COCOeval._prepare: ignore is overwritten by iscrowd",
        "reusable_flags": "pycocotools 2.0.11 cocoeval.py COCOeval.evaluateImg: a crowd is never taken",
        "interpolation": "pycocotools 2.0.11 cocoeval.py COCOeval.accumulate",
        "recall_points": "pycocotools 2.0.11 cocoeval.py Params.setDetParams: linspace(0, 1, 101)",
        "precision_epsilon": "pycocotools 2.0.11 cocoeval.py COCOeval.accumulate: np.spacing(1)",
    },
}

_VOC_SOURCES = {
    "iou_thresholds": "PASCAL VOC development kit, VOCinit.m: minoverlap 0.5",
    "areas": "PASCAL VOC has no size ranges",
    "max_dets": "PASCAL VOC has no cap",
    "assignment": "PASCAL VOC development kit, VOCevaldet.m: highest overlap over all boxes, 'multiple detection' is"
    " FP",
    "iou_ties": "PASCAL VOC development kit, VOCevaldet.m: 'ov > ovmax', the first wins",
    "score_ties": "PASCAL VOC development kit, VOCevaldet.m: sort of the confidences as read, stable",
    "pixel_offset": "PASCAL VOC development kit, VOCevaldet.m: widths are max - min + 1",
    "crowd_overlap": "PASCAL VOC has no crowds; such boxes are treated as difficult",
    "ignored_flags": "PASCAL VOC development kit, VOCevaldet.m: difficult objects are not counted",
    "reusable_flags": "PASCAL VOC development kit, VOCevaldet.m: a difficult object is never marked as detected",
    "precision_epsilon": "PASCAL VOC development kit, VOCevaldet.m: tp / (tp + fp)",
}

_VOC2012: dict[str, Any] = {
    "iou_thresholds": (0.5,),
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (),
    "assignment": "best_any",
    "iou_ties": "first",
    "score_ties": "file",
    "pixel_offset": 1.0,
    "crowd_overlap": "iou",
    "ignored_flags": ("difficult", "crowd", "ignore"),
    "reusable_flags": ("difficult", "crowd", "ignore"),
    "interpolation": "area",
    "recall_points": 0,
    "precision_epsilon": 0.0,
    "sources": _VOC_SOURCES
    | {"interpolation": "PASCAL VOC 2010-2012 development kit, VOCap.m: area below the envelope"},
}

# 2010 replaced the mean over eleven recalls by the area; nothing else changed between the two.
_VOC2007: dict[str, Any] = _VOC2012 | {
    "interpolation": "grid",
    "recall_points": 11,
    "sources": _VOC_SOURCES
    | {
        "interpolation": "PASCAL VOC 2007 development kit, VOCevaldet.m: mean over 11 recalls of the best precision"
        " beyond",
        "recall_points": "numpy's linspace(0, 1, 11), as in detectron2, mmdetection and chainercv: .3, .6, .7 lie one"
        " ulp high",
    },
}

# What is listed here is accepted by name, in the order of the help; `data.protocol.Protocol` explains each rule.
RULES: dict[str, dict[str, Any]] = {
    "coco": _COCO,
    "voc2007": _VOC2007,
    "voc2012": _VOC2012,
}
