"""The protocols by name, each rule with its source. Plain values: the help names them, and loads no NumPy for that."""

from __future__ import annotations

import math
from typing import Any

# What can be compared, in the order of the help; other packages add kinds by their names.
KINDS = {
    "bbox": "boxes: intersection over union",
    "segm": "masks: pixels in common over pixels of either",
    "boundary": "masks: the same of the pixels near their boundaries",
    "keypoints": "poses: object keypoint similarity (OKS), by the distance of each point",
    "obb": "oriented boxes and other quadrilaterals: intersection over union of their areas",
    "probiou": "oriented boxes as Gaussians: 1 - Hellinger distance, as Ultralytics has it",
    "spheres": "spheres: how near a point is to the centre, for the diameter",
}
IOU_TYPES = tuple(KINDS)
MASKS = ("segm", "boundary")
ORIENTED = ("obb", "probiou")  # quadrilaterals

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

# Sigmas of other points than COCO's 17, by names: how far annotators are apart at each, in the order of the data sets.
# Sources: CrowdPose's own tool; mmpose 1.3 ``configs/_base_/datasets`` of all others.
# COCO's are those of pycocotools 2.0.11 ``cocoeval.py``, ``setKpParams``, to the last bit.
_BODY = tuple(
    value / 10
    for value in (0.26, 0.25, 0.25, 0.35, 0.35, 0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89)
)
_FEET = (0.068, 0.066, 0.066, 0.092, 0.094, 0.094)
_FACE = (
    0.042, 0.043, 0.044, 0.043, 0.040, 0.035, 0.031, 0.025, 0.020, 0.023, 0.029, 0.032, 0.037, 0.038, 0.043,
    0.041, 0.045, 0.013, 0.012, 0.011, 0.011, 0.012, 0.012, 0.011, 0.011, 0.013, 0.015, 0.009, 0.007, 0.007,
    0.007, 0.012, 0.009, 0.008, 0.016, 0.010, 0.017, 0.011, 0.009, 0.011, 0.009, 0.007, 0.013, 0.008, 0.011,
    0.012, 0.010, 0.034, 0.008, 0.008, 0.009, 0.008, 0.008, 0.007, 0.010, 0.008, 0.009, 0.009, 0.009, 0.007,
    0.007, 0.008, 0.011, 0.008, 0.008, 0.008, 0.01, 0.008,
)  # fmt: skip
_HAND = (
    0.029, 0.022, 0.035, 0.037, 0.047, 0.026, 0.025, 0.024, 0.035, 0.018, 0.024, 0.022, 0.026, 0.017, 0.021,
    0.021, 0.032, 0.02, 0.019, 0.022, 0.031,
)  # fmt: skip
_ANIMAL = (
    0.025, 0.025, 0.026, 0.035, 0.035, 0.079, 0.072, 0.062, 0.079, 0.072, 0.062, 0.107, 0.087, 0.089, 0.107, 0.087,
    0.089,
)  # fmt: skip
SIGMAS = {
    "aic": (
        0.01388152, 0.01515228, 0.01057665, 0.01417709, 0.01497891, 0.01402144, 0.03909642, 0.03686941, 0.01981803,
        0.03843971, 0.03412318, 0.02415081, 0.01291456, 0.01236173,
    ),
    "animalpose": (
        0.025, 0.025, 0.026, 0.035, 0.035, *(0.1,) * 3, *(0.107,) * 4, *(0.087,) * 4, *(0.089,) * 4,
    ),
    "ap10k": _ANIMAL,
    "atrw": (
        0.0277, 0.0823, 0.0831, 0.0202, 0.0716, 0.0263, 0.0646, 0.0302, 0.0440, 0.0316, 0.0333, 0.0547, 0.0263, 0.0683,
        0.0539,
    ),
    "coco": _BODY,
    "crowdpose": tuple(
        value / 10 for value in (0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89, 0.79, 0.79)
    ),
    "halpe": (*_BODY, *(0.08,) * 3, *(0.089,) * 6, *(0.015,) * 110),
    "halpe26": (*_BODY, 0.026, 0.026, 0.066, *(0.079,) * 6),
    "humanart": _BODY,
    "jhmdb": (
        0.025, 0.107, 0.025, 0.079, 0.079, 0.107, 0.107, 0.072, 0.072, 0.087, 0.087, 0.062, 0.062, 0.089, 0.089,
    ),
    "mhp": (
        0.089, 0.083, 0.107, 0.107, 0.083, 0.089, 0.026, 0.026, 0.026, 0.026, 0.062, 0.072, 0.179, 0.179, 0.072, 0.062,
    ),
    "posetrack18": _BODY,
    "wholebody": (*_BODY, *_FEET, *_FACE, *_HAND, *_HAND),
}  # fmt: skip


def measure_name(iou_type: str, overlap: str) -> str:
    """Return what reports call what thresholds are compared with."""
    if iou_type == "bbox" and overlap != "area":
        return "nearness"
    return {"keypoints": "OKS", "probiou": "ProbIoU", "spheres": "nearness"}.get(iou_type, "IoU")


def sigmas_name(word: str) -> str:
    """Return the name of sigmas as it is listed: AP-10K is ap10k."""
    return word.casefold().replace("-", "").replace("_", "")


_CROWDPOSE_SOURCE = "CrowdPose at 86fe5e11, crowdpose-api/PythonAPI/crowdposetools/cocoeval.py"

_CROWDPOSE: dict[str, Any] = _COCO | {
    "areas": {"all": (0.0, LARGEST_AREA)},
    "max_dets": (20,),
    "crowd_overlap": "iou",
    # Poses without labelled points are read as ignored.
    "ignored_flags": ("crowd", "ignore"),
    "iou_type": "keypoints",
    # From left shoulder to neck.
    "sigmas": SIGMAS["crowdpose"],
    "oks_box_share": 0.53,
    "subsets": {
        "easy": {"crowdIndex": (-math.inf, math.nextafter(0.2, 0))},
        "medium": {"crowdIndex": (0.2, math.nextafter(0.8, 0))},
        "hard": {"crowdIndex": (0.8, math.inf)},
    },
    "sources": _COCO["sources"]
    | {
        "areas": f"{_CROWDPOSE_SOURCE}: the summary has no size ranges",
        "max_dets": f"{_CROWDPOSE_SOURCE}: Params.setKpParams",
        "crowd_overlap": f"{_CROWDPOSE_SOURCE}: COCOeval.computeOks, which knows no crowds",
        "ignored_flags": f"{_CROWDPOSE_SOURCE}: COCOeval._prepare",
        "iou_type": f"{_CROWDPOSE_SOURCE}: COCOeval.computeOks",
        "sigmas": f"{_CROWDPOSE_SOURCE}: COCOeval.computeOks",
        "oks_box_share": f"{_CROWDPOSE_SOURCE}: the area of an object is .53 of its box, in computeOks and evaluateImg",
        "subsets": f"{_CROWDPOSE_SOURCE}: COCOeval.split, by images below 0.2, below 0.8, and others",
    },
}

# Task 1, oriented boxes, with the area below the curve. Areas, caps and ties are those of PASCAL VOC, from whose
# evaluation it was made.
_DOTA_AREA: dict[str, Any] = _VOC2012 | {
    "iou_type": "obb",
    "above_threshold": True,
    "pixel_offset": 0.0,
    # A class without ground truth has no AP here, and no part in the mean; the kit counts it as 0.
    "sources": {rule: source.replace("PASCAL VOC", "DOTA, as PASCAL VOC,") for rule, source in _VOC_SOURCES.items()}
    | {
        "iou_thresholds": "DOTA_devkit at 99388551 dota_evaluation_task1.py: ovthresh 0.5",
        "iou_type": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: polyiou.iou_poly",
        "above_threshold": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: 'ovmax > ovthresh'",
        "assignment": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: argmax over all objects",
        "iou_ties": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: np.argmax, the first wins",
        "score_ties": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: argsort; here stable",
        "pixel_offset": "DOTA_devkit at 99388551: polygons have no pixel added; its +1 only chooses candidates",
        "ignored_flags": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: difficult objects are not counted",
        "reusable_flags": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: difficult is neither TP nor FP",
        "precision_epsilon": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_eval: tp / (tp + fp)",
        "interpolation": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_ap: use_07_metric=False",
    },
}

# Eleven points instead, as the kit itself computes it.
_DOTA: dict[str, Any] = _DOTA_AREA | {
    "interpolation": "grid",
    "recall_points": 11,
    "sources": _DOTA_AREA["sources"]
    | {
        "interpolation": "DOTA_devkit at 99388551 dota_evaluation_task1.py main: use_07_metric=True",
        "recall_points": "DOTA_devkit at 99388551 dota_evaluation_task1.py voc_ap: eleven points",
    },
}

_LVIS_SOURCE = "lvis 0.5.3 eval.py"

_LVIS: dict[str, Any] = _COCO | {
    "max_dets": (300,),
    "max_dets_per": "image",
    "crowd_overlap": "iou",
    "ignored_flags": ("ignore",),
    "reusable_flags": (),
    "drop_empty": True,
    "judging": "federated",
    "frequencies": ("r", "c", "f"),
    "sources": {
        "iou_thresholds": f"{_LVIS_SOURCE} Params.__init__: linspace(.5, .95, 10)",
        "areas": f"{_LVIS_SOURCE} Params.__init__: area_rng, closed at both ends in LVISEval.evaluate_img",
        "max_dets": "lvis 0.5.3 results.py LVISResults.__init__: max_dets=300",
        "max_dets_per": "lvis 0.5.3 results.py LVISResults.limit_dets_per_image: by score over all classes, when read",
        "assignment": f"{_LVIS_SOURCE} LVISEval.evaluate_img",
        "iou_ties": f"{_LVIS_SOURCE} LVISEval.evaluate_img: 'continue' only below the best so far",
        "score_ties": f"{_LVIS_SOURCE} LVISEval.accumulate: images ascending, mergesort",
        "pixel_offset": "pycocotools 2.0.11 maskApi.c bbIou, which lvis calls: no pixel is added",
        "crowd_overlap": f"{_LVIS_SOURCE} LVISEval.compute_iou: iscrowd is False for all",
        "ignored_flags": f"{_LVIS_SOURCE} LVISEval._prepare: 'ignore' of the annotation; iscrowd is not read",
        "reusable_flags": f"{_LVIS_SOURCE} LVISEval.evaluate_img: whatever was matched is taken",
        "drop_empty": "lvis 0.5.3 lvis.py LVIS.get_ann_ids: 0 < area < inf, on both sides",
        "judging": f"{_LVIS_SOURCE} LVISEval._prepare: neg_category_ids and not_exhaustive_category_ids",
        "frequencies": f"{_LVIS_SOURCE} LVISEval._prepare_freq_group and summarize: APr, APc, APf",
        "interpolation": f"{_LVIS_SOURCE} LVISEval.accumulate",
        "recall_points": f"{_LVIS_SOURCE} Params.__init__: linspace(0, 1, 101)",
        "precision_epsilon": f"{_LVIS_SOURCE} LVISEval.accumulate: np.spacing(1)",
    },
}

_FIXED_SOURCE = "Dave et al. 2021, Evaluating Large-Vocabulary Object Detectors: The Devil is in the Details"

_LVIS_FIXED: dict[str, Any] = _LVIS | {
    "max_dets": (10_000,),
    "max_dets_per": "class",
    "sources": _LVIS["sources"]
    | {
        "max_dets": f"{_FIXED_SOURCE}: AP fixed, 10,000 detections",
        "max_dets_per": f"{_FIXED_SOURCE}: of each class over the whole set, without a cap per image",
    },
}

_TF = "TensorFlow Object Detection API"
_OPENIMAGES_SOURCE = f"{_TF}, object_detection_evaluation.py, OpenImagesDetectionEvaluator"
_PER_IMAGE = f"{_TF}, per_image_evaluation.py, _compute_tp_fp_for_single_class"

_OPENIMAGES: dict[str, Any] = _VOC2012 | {
    "assignment": "objects_first",
    "pixel_offset": 0.0,
    "judging": "with ancestors",
    "crowd_overlap": "ioa",
    "ignored_flags": ("group_of", "crowd", "ignore"),
    # In COCO files of this data a group is a crowd.
    "reusable_flags": ("group_of", "crowd"),
    "sources": {
        "iou_thresholds": f"{_OPENIMAGES_SOURCE}: matching_iou_threshold=0.5, which an equal overlap reaches",
        "areas": f"{_TF}: no size ranges",
        "max_dets": f"{_TF}: nms_max_output_boxes=10000 per image and class; here no cap",
        "assignment": f"{_PER_IMAGE}: the best object of all; what gets none, the best group",
        "iou_ties": f"{_PER_IMAGE}: np.argmax, the first wins",
        "score_ties": f"{_TF}, metrics.py, compute_precision_recall: argsort, unspecified; here as in the file",
        "pixel_offset": f"{_TF}, np_box_ops.py, iou: no pixel is added",
        "judging": f"{_TF}, oid_hierarchical_labels_expansion.py: boxes count for all classes above but the root",
        "crowd_overlap": f"{_PER_IMAGE}: ioa, the intersection over the area of the detection",
        "ignored_flags": f"{_OPENIMAGES_SOURCE}: group_of_weight=0.0",
        "reusable_flags": f"{_PER_IMAGE}: compute_match_ioa takes any number of detections",
        "interpolation": f"{_TF}, metrics.py, compute_average_precision: area below the envelope",
        "precision_epsilon": f"{_TF}, metrics.py, compute_precision_recall: tp / (tp + fp)",
    },
}

_CHALLENGE_SOURCE = f"{_TF}, object_detection_evaluation.py, OpenImagesChallengeEvaluator"

_OPENIMAGES_CHALLENGE: dict[str, Any] = _OPENIMAGES | {
    "judging": "verified",
    "ignored_flags": ("ignore",),
    "sources": _OPENIMAGES["sources"]
    | {
        "judging": f"{_CHALLENGE_SOURCE}: classes verified on the image; {_TF}, oid_hierarchical_labels_expansion.py",
        "ignored_flags": f"{_CHALLENGE_SOURCE}: group_of_weight=1.0, each group is one true positive or one miss",
    },
}

_VAL = "Ultralytics"

# What ``yolo val`` prints, from its boxes; a label that several detections choose, and the tail of the curve, are
# treated otherwise by earlier releases.
_ULTRALYTICS: dict[str, Any] = _COCO | {
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (300,),
    "max_dets_per": "image",
    "iou_ties": "first",
    "crowd_overlap": "iou",
    "ignored_flags": (),
    "reusable_flags": (),
    "dropped_flags": ("crowd",),
    "interpolation": "linear",
    "precision_epsilon": 0.0,
    "single_precision": True,
    "union_epsilon": 1e-7,
    "metrics": ("P", "R"),
    "sources": {
        "iou_thresholds": f"{_VAL} 8.4.190 engine/validator.py: linspace(.5, .95, 10), in 32 bits",
        "areas": f"{_VAL} has no size ranges",
        "max_dets": f"{_VAL} 8.4.190 cfg/default.yaml: max_det, 300",
        "max_dets_per": f"{_VAL} 8.4.190 utils/nms.py: the best of an image over all classes",
        "assignment": f"{_VAL} 8.4.190 utils/metrics.py, match_predictions: since 8.4.176 the best label that is free",
        "iou_ties": f"{_VAL} 8.4.190 utils/metrics.py, match_predictions: argmax, the first wins",
        "score_ties": f"{_VAL} 8.4.190 utils/metrics.py, ap_per_class: argsort, unstable; here by image",
        "pixel_offset": f"{_VAL} 8.4.190 utils/metrics.py, box_iou: no pixel is added",
        "crowd_overlap": f"{_VAL} has no crowds",
        "ignored_flags": f"{_VAL} ignores no label",
        "reusable_flags": f"{_VAL}: each label is taken once",
        "dropped_flags": f"{_VAL} 8.4.190 data/converter.py, convert_coco: annotations with iscrowd are not labels",
        "interpolation": f"{_VAL} 8.4.190 utils/metrics.py, compute_ap: since 8.4.37 precision ends at the last recall",
        "recall_points": f"{_VAL} 8.4.190 utils/metrics.py, compute_ap: linspace(0, 1, 101), trapezoids",
        "precision_epsilon": f"{_VAL} 8.4.190 utils/metrics.py, ap_per_class: tp / (tp + fp)",
        "single_precision": f"{_VAL} 8.4.190 utils/metrics.py, box_iou: tensors of 32 bits",
        "union_epsilon": f"{_VAL} 8.4.190 utils/metrics.py, box_iou: eps=1e-7",
        "metrics": f"{_VAL} 8.4.190 utils/metrics.py, ap_per_class: P and R at the maximum of the smoothed mean F1",
    },
}

_ULTRALYTICS_8_4_37: dict[str, Any] = _ULTRALYTICS | {
    "assignment": "best_any",
    "iou_ties": "last",
    "sources": _ULTRALYTICS["sources"]
    | {
        "assignment": f"{_VAL} 8.4.37 engine/validator.py, match_predictions: a detection keeps its best label, a label"
        " goes to the first detection that kept it",
        "iou_ties": f"{_VAL} 8.4.37 engine/validator.py, match_predictions: argsort reversed, the last wins",
    },
}

_ULTRALYTICS_8_0: dict[str, Any] = _ULTRALYTICS_8_4_37 | {
    "interpolation": "linear to 1",
    "sources": _ULTRALYTICS_8_4_37["sources"]
    | {"interpolation": f"{_VAL} 8.4.36 utils/metrics.py, compute_ap: a last line from the last recall to (1, 0)"},
}

# Small objects in aerial images, and on roads: COCO's rules with sizes and caps of their own.
_AITOD_SOURCE = "aitodpycocotools at 44a230ae, cocoeval.py, Params.setDetParams"

_AITOD: dict[str, Any] = _COCO | {
    "areas": {
        "all": (0.0, LARGEST_AREA),
        "verytiny": (0.0, 8.0**2),
        "tiny": (8.0**2, 16.0**2),
        "small": (16.0**2, 32.0**2),
        "medium": (32.0**2, LARGEST_AREA),
    },
    "max_dets": (1, 100, 1500),
    "sources": _COCO["sources"]
    | {
        "areas": f"{_AITOD_SOURCE}: areaRng, closed at both ends; there is none above medium",
        "max_dets": f"{_AITOD_SOURCE}: 1, 100, 1500, per image and class",
    },
}

_SODA_SOURCE = "SODA-D's evaluator, sodad_eval.py, Params"

_SODA: dict[str, Any] = _COCO | {
    "areas": {
        "all": (0.0, LARGEST_AREA),
        "small": (0.0, 32.0**2),
        "eS": (0.0, 12.0**2),
        "rS": (12.0**2, 20.0**2),
        "gS": (20.0**2, 32.0**2),
        "normal": (32.0**2, 2000.0),
    },
    "max_dets": (20_000,),
    "sources": _COCO["sources"]
    | {
        "areas": f"{_SODA_SOURCE}: Small and its three parts, Normal up to 2,000 px²",
        "max_dets": f"{_SODA_SOURCE}: 20,000, per image and class",
    },
}

# Tools that take PASCAL VOC's rules with a change or two.
_MMDET_SOURCE = "mmdet 3.3.0 evaluation/functional/mean_ap.py"

_MMDET: dict[str, Any] = _VOC2012 | {
    "pixel_offset": 0.0,
    "single_precision": True,
    "sources": {rule: source.replace("PASCAL VOC", "mmdet, as PASCAL VOC,") for rule, source in _VOC_SOURCES.items()}
    | {
        "pixel_offset": f"{_MMDET_SOURCE}, eval_map: use_legacy_coordinate=False",
        "single_precision": f"{_MMDET_SOURCE}: boxes are arrays of 32 bits, as detectors give them",
        "interpolation": f"{_MMDET_SOURCE}, average_precision: mode='area'",
    },
}

_DETECTRON2_SOURCE = "detectron2 e6b3a96d evaluation/pascal_voc_evaluation.py"

_DETECTRON2_VOC: dict[str, Any] = _VOC2012 | {
    "iou_thresholds": tuple(hundredths / 100 for hundredths in range(50, 100, 5)),
    "above_threshold": True,
    "sources": _VOC2012["sources"]
    | {
        "iou_thresholds": f"{_DETECTRON2_SOURCE}, PascalVOCDetectionEvaluator: 50 to 95 by 5, divided by 100",
        "above_threshold": f"{_DETECTRON2_SOURCE}, voc_eval: 'ovmax > ovthresh'",
    },
}

_KERAS_SOURCE = "keras-retinanet 1.0.0 utils/eval.py"

_KERAS_RETINANET: dict[str, Any] = _VOC2012 | {
    "pixel_offset": 0.0,
    "ignored_flags": (),
    "reusable_flags": (),
    "sources": {
        rule: source.replace("PASCAL VOC", "keras-retinanet, as PASCAL VOC,") for rule, source in _VOC_SOURCES.items()
    }
    | {
        "pixel_offset": f"{_KERAS_SOURCE}, evaluate: compute_overlap adds no pixel",
        "ignored_flags": f"{_KERAS_SOURCE}, evaluate: every annotation counts",
        "reusable_flags": f"{_KERAS_SOURCE}, evaluate: each annotation is taken once",
        "interpolation": f"{_KERAS_SOURCE}, _compute_ap: area below the envelope",
    },
}

# Persons in crowds, by the authors' evaluation; what is ignored is read as a crowd of persons.
_CROWDHUMAN_SOURCE = "CrowdDet at fa0b55b6, lib/evaluate"

_CROWDHUMAN: dict[str, Any] = _COCO | {
    "iou_thresholds": (0.5,),
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (),
    "iou_ties": "first",
    "ignored_flags": ("crowd", "ignore"),
    "reusable_flags": ("crowd", "ignore"),
    "interpolation": "points",
    "recall_points": 0,
    "precision_epsilon": 0.0,
    "above_threshold": True,
    "union_epsilon": 1e-6,
    "metrics": ("LAMR", "JI"),
    "clipped": True,
    "miss_rate_at": (0.01, 0.0178, 0.0316, 0.0562, 0.1, 0.1778, 0.3162, 0.5623, 1.0),
    "miss_rate_reading": "first reaching",
    "sources": {
        "iou_thresholds": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: 0.5",
        "areas": f"{_CROWDHUMAN_SOURCE} has no size ranges",
        "max_dets": f"{_CROWDHUMAN_SOURCE} has no cap",
        "assignment": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: the best person that is free",
        "iou_ties": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: the first wins",
        "score_ties": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: images as in the ground truth, stable",
        "pixel_offset": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: no pixel is added",
        "crowd_overlap": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: what is ignored covers the area of the detection",
        "ignored_flags": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: other tags than person, and extra.ignore",
        "reusable_flags": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: what is ignored is never taken",
        "interpolation": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: trapezoids between points, no envelope",
        "precision_epsilon": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: tp / (tp + fp)",
        "above_threshold": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: overlaps above the threshold",
        "union_epsilon": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: 1e-6, also of the area that replaces the union",
        "metrics": f"{_CROWDHUMAN_SOURCE}: compute_APMR.py and compute_JI.py",
        "clipped": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: boxes of both sides, where the image has a size",
        "miss_rate_at": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: nine rates of four decimals",
        "miss_rate_reading": f"{_CROWDHUMAN_SOURCE}/APMRToolkits: the first point at or beyond the rate",
    },
}

# Pedestrians in streets, by the authors' script. Each subset is matched alone; detections are of its heights and a
# quarter around them.
_CITYPERSONS_SOURCE = "CityPersons at 839c22fb, evaluation/eval_script/eval_MR_multisetup.py"


def _pedestrians(limits: dict[str, tuple[float, float, float, float]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return subsets by the least and the largest height in px, and by how much is visible."""
    return {
        name: {
            "height of objects": (low, high),
            "height of detections": (low / 1.25, math.nextafter(high * 1.25, 0)),
            "vis_ratio": (hidden, visible),
        }
        for name, (low, high, hidden, visible) in limits.items()
    }


_CITYPERSONS_SUBSETS = {
    "reasonable": (50.0, 1e10, 0.65, 1e10),
    "small": (50.0, 75.0, 0.65, 1e10),
    "heavy": (50.0, 1e10, 0.2, 0.65),
    "all": (20.0, 1e10, 0.2, 1e10),
    "heavy-csp": (50.0, 1e10, 0.0, 0.65),
}

_CITYPERSONS: dict[str, Any] = _COCO | {
    "iou_thresholds": (0.5,),
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (1000,),
    "ignored_flags": ("crowd", "ignore"),
    "reusable_flags": ("crowd", "ignore"),
    "metrics": tuple(f"LAMR[subset={name}]" for name in _CITYPERSONS_SUBSETS),
    "miss_rate_at": (0.01, 0.0178, 0.0316, 0.0562, 0.1, 0.1778, 0.3162, 0.5623, 1.0),
    "subsets": _pedestrians(_CITYPERSONS_SUBSETS),
    "subsets_alone": True,
    "sources": _COCO["sources"]
    | {
        "iou_thresholds": f"{_CITYPERSONS_SOURCE}, Params.setDetParams: 0.5",
        "areas": f"{_CITYPERSONS_SOURCE} has heights in place of areas",
        "max_dets": f"{_CITYPERSONS_SOURCE}, Params.setDetParams: 1,000, before heights exclude any",
        "ignored_flags": f"{_CITYPERSONS_SOURCE}, COCOeval._prepare: ignore of the annotation, and what is outside",
        "reusable_flags": f"{_CITYPERSONS_SOURCE}, COCOeval.evaluateImg: what is ignored is never taken",
        "metrics": f"{_CITYPERSONS_SOURCE}: MR-2 of each set-up",
        "miss_rate_at": f"{_CITYPERSONS_SOURCE}, Params.setDetParams: nine rates of four decimals",
        "miss_rate_reading": f"{_CITYPERSONS_SOURCE}, COCOeval.accumulate: the last point within the rate; where none"
        " is, the script takes the best recall of the curve, here 0",
        "subsets": f"{_CITYPERSONS_SOURCE}, Params: HtRng, VisRng and expFilter, 1.25; heavy-csp is what CSP and"
        " Pedestron call heavy, from 0 visible on",
        "subsets_alone": f"{_CITYPERSONS_SOURCE}, COCOeval.evaluateImg, which runs anew for each set-up",
    },
}

# Caltech's rates are exact powers, and its subsets are those of its paper.
_CALTECH_SOURCE = "Piotr's toolbox at e8733263, detector/bbGt.m and acfTest.m"
_CALTECH_SUBSETS = {
    "reasonable": (50.0, math.inf, 0.65, math.inf),
    "heavy": (50.0, math.inf, 0.2, 0.65),
    "all": (20.0, math.inf, 0.2, math.inf),
}

_CALTECH: dict[str, Any] = _CITYPERSONS | {
    "max_dets": (),
    "metrics": tuple(f"LAMR[subset={name}]" for name in _CALTECH_SUBSETS),
    "miss_rate_at": (),
    "subsets": _pedestrians(_CALTECH_SUBSETS),
    "sources": _CITYPERSONS["sources"]
    | {
        "iou_thresholds": f"{_CALTECH_SOURCE}, evalRes: thr, 0.5, which an equal overlap reaches",
        "max_dets": f"{_CALTECH_SOURCE}: no cap",
        "metrics": "Dollar et al. 2012, section 4.2",
        "miss_rate_at": f"{_CALTECH_SOURCE}: 10.^(-2:.25:0)",
        "miss_rate_reading": f"{_CALTECH_SOURCE}, compRoc: the last point within the rate, else recall 0",
        "subsets": "Dollar et al. 2012, sections 2.3 and 4.1: reasonable, heavy and all; boxes are compared as given,"
        " and not brought to one aspect ratio of 0.41",
    },
}

# Aerial images, by the benchmark's MATLAB toolkit. Regions that nobody labelled are read as crowds to ignore.
_VISDRONE_SOURCE = "VisDrone2018-DET-toolkit at 00544578, utils"

_VISDRONE: dict[str, Any] = _COCO | {
    "iou_thresholds": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (1, 10, 100, 500),
    "max_dets_per": "image",
    "interpolation": "area",
    "recall_points": 0,
    "precision_epsilon": 0.0,
    "metrics": ("wAP", "wAP50", "wAP75", "wAR1", "wAR10", "wAR100", "wAR500"),
    "region_flags": ("crowd", "ignore"),
    "counts_ignored": True,
    "sources": {
        "iou_thresholds": f"{_VISDRONE_SOURCE}/calcAccuracy.m: 0.5:0.05:0.95",
        "areas": f"{_VISDRONE_SOURCE} have no size ranges",
        "max_dets": f"{_VISDRONE_SOURCE}/calcAccuracy.m: 1, 10, 100, 500",
        "max_dets_per": f"{_VISDRONE_SOURCE}/calcAccuracy.m: the first of an image over all classes, as in its file;"
        " here by score",
        "assignment": f"{_VISDRONE_SOURCE}/evalRes.m: the best object that is free, else one that is ignored",
        "iou_ties": f"{_VISDRONE_SOURCE}/evalRes.m: 'continue' only below the best so far",
        "score_ties": f"{_VISDRONE_SOURCE}/calcAccuracy.m: images ascending, stable",
        "pixel_offset": f"{_VISDRONE_SOURCE}/compOas.m: no pixel is added",
        "crowd_overlap": f"{_VISDRONE_SOURCE}/compOas.m: the union is the detection where an object has score 0",
        "ignored_flags": f"{_VISDRONE_SOURCE}/saveAnnoRes.m: objects with score 0",
        "reusable_flags": f"{_VISDRONE_SOURCE}/evalRes.m: what is ignored is never taken",
        "interpolation": f"{_VISDRONE_SOURCE}/VOCap.m: area below the envelope",
        "precision_epsilon": f"{_VISDRONE_SOURCE}/calcAccuracy.m: tp / max(1, fp + tp)",
        "metrics": f"{_VISDRONE_SOURCE}/calcAccuracy.m: a class is in the mean once for every image that holds it",
        "region_flags": f"{_VISDRONE_SOURCE}/dropObjectsInIgr.m: what category 0 covers by half is dropped",
        "counts_ignored": f"{_VISDRONE_SOURCE}/calcAccuracy.m: recall is a share of all objects of a class",
    },
}

# 2D boxes of KITTI, by its development kit: AP at 40 recalls, as its site has it since 2019, and at 11, as before.
_KITTI_SOURCE = "KITTI's development kit, evaluate_object.cpp, as in kitti_eval at 955c04c4"
_DIFFICULTIES = {"easy": (40.0, 0.0, 0.15), "moderate": (25.0, 1.0, 0.3), "hard": (25.0, 2.0, 0.5)}

_KITTI: dict[str, Any] = _COCO | {
    "iou_thresholds": (0.5, 0.7),
    "areas": {"all": (-math.inf, math.inf)},
    "max_dets": (),
    "iou_ties": "first",
    "ignored_flags": ("crowd", "ignore"),
    "interpolation": "slots",
    "recall_points": 40,
    "precision_epsilon": 0.0,
    "above_threshold": True,
    "metrics": ("AP_R11", *(f"{name}[subset={part}]" for name in ("AP", "AP_R11") for part in _DIFFICULTIES)),
    "subsets": {
        name: {
            "height": (height, math.inf),
            "occluded": (-math.inf, occluded),
            "truncated": (-math.inf, truncated),
        }
        for name, (height, occluded, truncated) in _DIFFICULTIES.items()
    },
    "class_rules": (
        ("Car", 0.7, ("Van",), ("DontCare",)),
        ("Pedestrian", 0.5, ("Person_sitting",), ("DontCare",)),
        ("Cyclist", 0.5, (), ("DontCare",)),
    ),
    "sources": {
        "iou_thresholds": f"{_KITTI_SOURCE}: MIN_OVERLAP, of cars and of others",
        "areas": f"{_KITTI_SOURCE} has no size ranges but difficulties",
        "max_dets": f"{_KITTI_SOURCE} has no cap",
        "assignment": f"{_KITTI_SOURCE}, computeStatistics: objects choose, anew for each score of a slot, for AP and"
        " AP_R11; all other metrics match once, as COCO does",
        "iou_ties": f"{_KITTI_SOURCE}, computeStatistics: 'overlap > max_overlap', the first wins",
        "score_ties": f"{_KITTI_SOURCE}: detections from a score on, whatever their order",
        "pixel_offset": f"{_KITTI_SOURCE}, imageBoxOverlap: no pixel is added",
        "crowd_overlap": f"{_KITTI_SOURCE}, computeStatistics: what of a detection lies in a region",
        "ignored_flags": f"{_KITTI_SOURCE}, cleanData: neighbours and regions, here marked by the rules of classes",
        "reusable_flags": f"{_KITTI_SOURCE}, computeStatistics: regions take any number of detections",
        "interpolation": f"{_KITTI_SOURCE}, eval_class and getThresholds; the site takes slots 1 to 40 since 2019",
        "recall_points": "KITTI's site: 40 recall positions, by Simonelli et al. 2019; the kit has 41 slots",
        "precision_epsilon": f"{_KITTI_SOURCE}, eval_class: tp / (tp + fp)",
        "above_threshold": f"{_KITTI_SOURCE}, computeStatistics: overlaps above the threshold",
        "metrics": f"{_KITTI_SOURCE}, saveAndPlotPlots: the mean of slots 0, 4 to 40",
        "subsets": f"{_KITTI_SOURCE}: MIN_HEIGHT, MAX_OCCLUSION, MAX_TRUNCATION; heights of detections as well",
        "class_rules": f"{_KITTI_SOURCE}, cleanData: Van, Person_sitting, DontCare, and small detections of any class",
    },
}

# Instances of streets as masks, by the benchmark's script.
_CITYSCAPES_SOURCE = "cityscapesScripts at 0bcc4a72, evaluation/evalInstanceLevelSemanticLabeling.py"
_THINGS = ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")
VOID = "void"  # the class of regions that nobody judged, where rules ask for them

_CITYSCAPES: dict[str, Any] = _VOC2012 | {
    # numpy.arange(0.5, 1, 0.05), to the last bit.
    "iou_thresholds": (
        *(0.5, 0.55, 0.6000000000000001, 0.6500000000000001, 0.7000000000000002),
        *(0.7500000000000002, 0.8000000000000003, 0.8500000000000003, 0.9000000000000004, 0.9500000000000004),
    ),
    "iou_type": "segm",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "ignored_flags": ("crowd", "ignore"),
    "reusable_flags": ("crowd", "ignore"),
    "interpolation": "lines",
    "above_threshold": True,
    "class_rules": tuple((name, None, (VOID,), ()) for name in _THINGS),
    "least_area": 100.0,
    "spares_covered": True,
    "sources": {
        "iou_thresholds": f"{_CITYSCAPES_SOURCE}: np.arange(0.5, 1., 0.05)",
        "areas": f"{_CITYSCAPES_SOURCE} has no size ranges but a least size",
        "max_dets": f"{_CITYSCAPES_SOURCE} has no cap",
        "iou_type": f"{_CITYSCAPES_SOURCE}: pixels of masks",
        "assignment": f"{_CITYSCAPES_SOURCE}, evaluateMatches: the best of an object is its hit, others are false",
        "iou_ties": f"{_CITYSCAPES_SOURCE}: above 0.5 an object is the only one",
        "score_ties": f"{_CITYSCAPES_SOURCE}: equal scores are one point",
        "pixel_offset": f"{_CITYSCAPES_SOURCE}: masks",
        "crowd_overlap": f"{_CITYSCAPES_SOURCE}, evaluateMatches: a group is matched as an object",
        "ignored_flags": f"{_CITYSCAPES_SOURCE}: groups, whose ids are below 1000, and what is too small",
        "reusable_flags": f"{_CITYSCAPES_SOURCE}, evaluateMatches: what matches a group or a small object is ignored",
        "interpolation": f"{_CITYSCAPES_SOURCE}, evaluateMatches: the kernel -0.5, 0, 0.5 over recall",
        "precision_epsilon": f"{_CITYSCAPES_SOURCE}: tp / (tp + fp)",
        "above_threshold": f"{_CITYSCAPES_SOURCE}, evaluateMatches: overlaps above the threshold",
        "class_rules": f"{_CITYSCAPES_SOURCE}: labels that have instances; void are labels with ignoreInEval",
        "least_area": f"{_CITYSCAPES_SOURCE}: minRegionSizes, 100 pixels",
        "spares_covered": f"{_CITYSCAPES_SOURCE}, evaluateMatches: proportionIgnore <= overlapTh; a small group twice",
    },
}

# Words as quadrilaterals, by the benchmark's script: one operating point, and AP where there are scores.
_ICDAR_SOURCE = "ICDAR 2015, incidental scene text, task 1, script.py"

_ICDAR: dict[str, Any] = _VOC2012 | {
    "iou_type": "obb",
    "assignment": "first_pair",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "crowd_overlap": "ioa",
    "ignored_flags": ("crowd", "ignore"),
    "reusable_flags": ("crowd", "ignore"),
    "interpolation": "hits",
    "above_threshold": True,
    "metrics": ("recall", "precision", "F1"),
    "sources": {
        "iou_thresholds": f"{_ICDAR_SOURCE}: IOU_CONSTRAINT, and AREA_PRECISION_CONSTRAINT of what is not read, 0.5",
        "areas": f"{_ICDAR_SOURCE} has no size ranges",
        "max_dets": f"{_ICDAR_SOURCE} has no cap",
        "iou_type": f"{_ICDAR_SOURCE}: polygons of four corners",
        "assignment": f"{_ICDAR_SOURCE}, evaluate_method: the first pair, not the best",
        "iou_ties": f"{_ICDAR_SOURCE}: the first wins",
        "score_ties": f"{_ICDAR_SOURCE}, compute_ap: argsort, unstable; here by image",
        "pixel_offset": f"{_ICDAR_SOURCE}: polygons",
        "crowd_overlap": f"{_ICDAR_SOURCE}: intersection over the area of the detection",
        "ignored_flags": f"{_ICDAR_SOURCE}: words that are ###",
        "reusable_flags": f"{_ICDAR_SOURCE}: words that are ### take any number of detections",
        "interpolation": f"{_ICDAR_SOURCE}, compute_ap: precision at hits over the words that count, no envelope",
        "precision_epsilon": f"{_ICDAR_SOURCE}: matched / detections that count",
        "above_threshold": f"{_ICDAR_SOURCE}: overlaps above the constraint",
        "metrics": f"{_ICDAR_SOURCE}: recall, precision and their harmonic mean, over the whole set",
    },
}

# Tables, by ICDAR's pairs at four thresholds, and their F1 weighted by these.
_CTDAR_SOURCE = "ctdar_measurement_tool at 738456d3, eval.py"
_CTDAR_POLYGONS = "ctdar_measurement_tool at 738456d3, data_structure.py, compute_poly_iou: polygons"
_CTDAR_PAPER = "Gao et al. 2019, ICDAR 2019 Competition on Table Detection and Recognition (cTDaR)"

_CTDAR: dict[str, Any] = _ICDAR | {
    "iou_thresholds": (0.6, 0.7, 0.8, 0.9),
    "above_threshold": False,
    "metrics": ("wF1", *(f"F1[iou={iou}]" for iou in (0.6, 0.7, 0.8, 0.9))),
    "sources": _ICDAR["sources"]
    | {
        "iou_thresholds": f"{_CTDAR_SOURCE}, gene_ret_lst: 0.6, 0.7, 0.8 and 0.9",
        "areas": f"{_CTDAR_SOURCE} has no size ranges",
        "max_dets": f"{_CTDAR_SOURCE} has no cap",
        "iou_type": f"{_CTDAR_POLYGONS}; here of four corners",
        "assignment": f"{_CTDAR_SOURCE}, evaluate_result_reg: the first pair, not the best",
        "iou_ties": f"{_CTDAR_SOURCE}, evaluate_result_reg: the first wins",
        "score_ties": "cTDaR has no scores: detections stand as in the file",
        "pixel_offset": _CTDAR_POLYGONS,
        "crowd_overlap": "cTDaR has no crowds; they are ICDAR's",
        "ignored_flags": "cTDaR ignores no table; those that are marked are ICDAR's",
        "reusable_flags": "cTDaR ignores no table; those that are marked are ICDAR's",
        "interpolation": "cTDaR has no AP; it is ICDAR's",
        "precision_epsilon": "ctdar_measurement_tool at 738456d3, evaluate.py: matched / detections",
        "above_threshold": f"{_CTDAR_SOURCE}, evaluate_result_reg: an equal overlap matches",
        "metrics": f"{_CTDAR_PAPER}: the sum of each IoU times the F1 at it, over the sum of the IoUs",
    },
}

# Faces, by the benchmark's MATLAB code.
_WIDER = "WIDER FACE eval_tools"

_WIDERFACE: dict[str, Any] = _VOC2012 | {
    "score_ties": "image",
    "ignored_flags": (),
    "reusable_flags": (),
    "interpolation": "scores",
    "recall_points": 1000,
    "judging": "present",
    "subsets": {name: {name: (1.0, math.inf)} for name in ("easy", "medium", "hard")},
    "sources": {
        "iou_thresholds": f"{_WIDER}, evaluation.m: IoU_thresh = 0.5, which an equal overlap reaches",
        "areas": f"{_WIDER} have no size ranges",
        "max_dets": f"{_WIDER} have no cap",
        "assignment": f"{_WIDER}, image_evaluation.m: the best of all faces; a second hit of it is a proposal more",
        "iou_ties": f"{_WIDER}, image_evaluation.m: max, the first wins",
        "score_ties": f"{_WIDER}, read_pred.m: sorted by score on each image, stable",
        "pixel_offset": f"{_WIDER}, boxoverlap.m: a pixel is added to widths and heights",
        "crowd_overlap": f"{_WIDER} have no crowds",
        "ignored_flags": f"{_WIDER}, evaluation.m: faces outside of a subset, whatever is marked invalid",
        "reusable_flags": f"{_WIDER}, image_evaluation.m: faces outside of a subset take any number of detections",
        "interpolation": f"{_WIDER}, norm_score.m and evaluation.m: 1,000 scores between the extremes of the set",
        "recall_points": f"{_WIDER}, evaluation.m: thresh_num = 1000",
        "precision_epsilon": f"{_WIDER}, dataset_pr_info.m: recalled faces / proposals",
        "judging": f"{_WIDER}, evaluation.m: images without a face are skipped",
        "subsets": f"{_WIDER}: gt_list of wider_easy_val.mat, wider_medium_val.mat and wider_hard_val.mat",
    },
}

# Free-response curves, as of nodules and lesions: a detection hits the objects that its centre lies in.
_LUNA = "LUNA16, noduleCADEvaluationLUNA16.py"

_FROC: dict[str, Any] = _VOC2012 | {
    "max_dets": (100,),
    "max_dets_per": "image",
    "drops_ties": True,
    "assignment": "every",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "metrics": ("CPM", *(f"recall[fppi={rate:g}]" for rate in (0.125, 0.25, 0.5, 1, 2, 4, 8))),
    "overlap": "centre",
    "miss_rate_reading": "between",
    "sources": {
        "iou_thresholds": "half of the width and height of an object: the edge of its box, which counts",
        "areas": f"{_LUNA} has no size ranges",
        "max_dets": f"{_LUNA}: 100",
        "max_dets_per": f"{_LUNA}: marks of a scan",
        "drops_ties": f"{_LUNA}: marks with the score of the first one that is too many go as well",
        "assignment": f"{_LUNA}: a mark hits all objects it is in; the best mark of an object counts, others vanish",
        "iou_ties": "a mark hits all objects that it is in",
        "score_ties": "here by image",
        "pixel_offset": f"{_LUNA}: nothing is added",
        "crowd_overlap": f"{_LUNA}: what is excluded is hit as anything else",
        "ignored_flags": f"{_LUNA}: annotations_excluded.csv",
        "reusable_flags": f"{_LUNA}: marks on what is excluded vanish",
        "interpolation": "as PASCAL VOC 2010-2012: FROC has no precision",
        "precision_epsilon": "as PASCAL VOC",
        "metrics": "Setio et al. 2017, the LUNA16 challenge, section 2.4: sensitivity at seven rates, and its mean",
        "overlap": "the centre in the box; of LUNA16's files spheres are compared",
        "miss_rate_reading": f"{_LUNA}: straight lines between the points of scores that occur, from (0, 0) on",
    },
}

# Points, such as heads in a crowd: as many pairs as possible. Two distances are usual, which users replace.
_FIDTM = "Liang et al. 2021, Focal Inverse Distance Transform Maps for Crowd Localization"
_NWPU_SOURCE = "NWPU-Crowd-Sample-Code-for-Localization at acf44568, eval/eval.py"
_COUNTED = ("precision", "recall", "F1", "count_MAE", "count_RMSE", "count_NAE", "count_exact")

_POINTS: dict[str, Any] = _VOC2012 | {
    "iou_thresholds": (0.5, 0.75),
    "assignment": "most_pairs",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "metrics": (*_COUNTED, "F1[iou=0.75]"),
    "overlap": "pixels",
    "reach": 8.0,
    "sources": {
        "iou_thresholds": f"{_FIDTM}: 8 and 4 pixels; points=4,8 has others",
        "areas": "points have no sizes",
        "max_dets": "no cap",
        "assignment": f"{_NWPU_SOURCE}, compute_metrics: the most pairs within the distance",
        "iou_ties": "whose object it is changes no number",
        "score_ties": "here by image",
        "pixel_offset": "nothing is added",
        "crowd_overlap": "points have no crowds; what is marked is compared as any other",
        "ignored_flags": "what is marked does not count",
        "reusable_flags": "what is marked takes any number of points",
        "interpolation": "as PASCAL VOC 2010-2012, where points have scores",
        "precision_epsilon": "as PASCAL VOC",
        "metrics": f"{_NWPU_SOURCE}, main: over the whole set; its MSE is count_RMSE",
        "overlap": f"{_NWPU_SOURCE}, compute_metrics: an equal distance is within",
        "reach": f"{_FIDTM}: 8 pixels",
    },
}

# Heads with a size: within half the diagonal of the box, or half of its shorter side, which is its width in the files.
_NWPU: dict[str, Any] = _POINTS | {
    "iou_thresholds": (0.5,),
    "metrics": _COUNTED,
    "overlap": "diagonal",
    "reach": 0.0,
    "sources": {name: source for name, source in _POINTS["sources"].items() if name != "reach"}
    | {
        "iou_thresholds": f"{_NWPU_SOURCE}: sigma_l, half the diagonal",
        "overlap": f"{_NWPU_SOURCE}: within sigma_l of the head",
    },
}

_NWPU_SMALL: dict[str, Any] = _NWPU | {
    "overlap": "width",
    "sources": _NWPU["sources"]
    | {
        "iou_thresholds": f"{_NWPU_SOURCE}: sigma_s, half of the shorter side, the width as its lists are read",
        "overlap": f"{_NWPU_SOURCE}: within sigma_s of the head",
    },
}

# Instances without scores, as of cells in images of labels: what is paired at each threshold, of all images together.
_STARDIST = "StarDist at 650d3a19, stardist/matching.py"
_SWEPT = ("accuracy", "accuracy50", "accuracy75")

_CELLS: dict[str, Any] = _VOC2012 | {
    "iou_thresholds": _COCO["iou_thresholds"],
    "iou_type": "segm",
    "assignment": "most_pairs",
    "score_ties": "image",
    "pixel_offset": 0.0,
    "crowd_overlap": "ioa",
    "metrics": (
        *_SWEPT,
        *(f"{name}{at}" for at in ("", "[iou=0.75]") for name in ("precision", "recall", "F1")),
        "mean_IoU",
        "image_accuracy",
    ),
    "sources": {
        "iou_thresholds": "Caicedo et al. 2019, the 2018 Data Science Bowl: 0.5 to 0.95",
        "areas": f"{_STARDIST} has no size ranges",
        "max_dets": f"{_STARDIST} has no cap",
        "iou_type": f"{_STARDIST}, matching: pixels of label images",
        "assignment": f"{_STARDIST}, matching: as many pairs at or above the threshold as there can be",
        "iou_ties": f"{_STARDIST}, matching: the largest sum of IoU; here whose object it is changes no count",
        "score_ties": "here by image",
        "pixel_offset": f"{_STARDIST}: pixels",
        "crowd_overlap": "label images have no crowds; here as COCO",
        "ignored_flags": "what is marked does not count",
        "reusable_flags": "what is marked takes any number of instances",
        "interpolation": "as PASCAL VOC 2010-2012, where instances have scores",
        "precision_epsilon": "as PASCAL VOC",
        "metrics": f"{_STARDIST}, matching_dataset: by_image=False, and image_accuracy with True; mean_matched_score is"
        " mean_IoU",
    },
}

# The mean of the images of the mean of the thresholds.
_BOWL = "Data Science Bowl 2018, kaggle.com, evaluation"

_DSB2018: dict[str, Any] = _CELLS | {
    "above_threshold": True,
    "metrics": ("image_accuracy", "image_accuracy50", "image_accuracy75", *_SWEPT),
    "sources": {name: source.replace(_STARDIST, _BOWL) for name, source in _CELLS["sources"].items()}
    | {
        "assignment": f"{_BOWL}: a single predicted object matches a ground truth object; here as many as there can be",
        "above_threshold": f"{_BOWL}: a hit is greater than the threshold",
        "metrics": f"{_BOWL}: the mean over images of the mean over thresholds of TP / (TP + FP + FN)",
    },
}

# What is listed here is accepted by name, in the order of the help; `data.protocol.Protocol` explains each rule.
RULES: dict[str, dict[str, Any]] = {
    "coco": _COCO,
    "voc2007": _VOC2007,
    "voc2012": _VOC2012,
    "crowdpose": _CROWDPOSE,
    "dota": _DOTA,
    "dota-area": _DOTA_AREA,
    "lvis": _LVIS,
    "lvis-fixed": _LVIS_FIXED,
    "openimages": _OPENIMAGES,
    "openimages-challenge": _OPENIMAGES_CHALLENGE,
    "aitod": _AITOD,
    "soda": _SODA,
    "crowdhuman": _CROWDHUMAN,
    "citypersons": _CITYPERSONS,
    "caltech": _CALTECH,
    "visdrone": _VISDRONE,
    "kitti": _KITTI,
    "widerface": _WIDERFACE,
    "cityscapes": _CITYSCAPES,
    "icdar": _ICDAR,
    "ctdar": _CTDAR,
    "cells": _CELLS,
    "dsb2018": _DSB2018,
    "froc": _FROC,
    "points": _POINTS,
    "nwpu": _NWPU,
    "nwpu-small": _NWPU_SMALL,
    "mmdet": _MMDET,
    "detectron2-voc": _DETECTRON2_VOC,
    "keras-retinanet": _KERAS_RETINANET,
    "ultralytics": _ULTRALYTICS,
    "ultralytics-8.4.37": _ULTRALYTICS_8_4_37,
    "ultralytics-8.0": _ULTRALYTICS_8_0,
}

# What a protocol has besides for a kind of similarity, by the names of both.
RULES_BY_KIND: dict[tuple[str, str], dict[str, Any]] = {
    # pycocotools 2.0.11 cocoeval.py Params.setKpParams; small objects have no keypoints. Poses without labelled points
    # are read as ignored (COCOeval._prepare); a crowd is compared as any other (COCOeval.computeOks).
    ("coco", "keypoints"): {
        "areas": {
            "all": (0.0, LARGEST_AREA),
            "medium": (SMALL_MAX_AREA, MEDIUM_MAX_AREA),
            "large": (MEDIUM_MAX_AREA, LARGEST_AREA),
        },
        "max_dets": (20,),
        "crowd_overlap": "iou",
        "ignored_flags": ("crowd", "ignore"),
    },
    # Rules of LUNA16's noduleCADEvaluationLUNA16.py: nearer than the radius.
    ("froc", "spheres"): {"overlap": "area", "above_threshold": True},
    # Ultralytics 8.4.190 models/yolo/pose/val.py: the area of a pose is .53 of its box.
    **{(name, "keypoints"): {"oks_box_share": 0.53} for name in RULES if name.startswith("ultralytics")},
}
