"""JSON of images with lists of objects that draw: words of many data sets, masks of services and Segment Anything.

Each carrier is a row of `CARRIERS`: where it has its images, what these are called, and where their objects are. What
an object draws is found by the names of its fields (`reading.drawn`).
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.data.dataset import Key
from jaccard_eval.findings import DataError, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, drawn_by, kinds_in, rings_of, turned_corners
from jaccard_eval.reading.json import is_finite_number, is_number, looks_like_json_lines, parse_json
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.records import (
    UNKNOWN_SIZE,
    Record,
    RecordCollector,
    documents,
    line_records,
    listed_records,
    note_positions,
)
from jaccard_eval.text import quoted_value

FORMAT = Format(
    name="shapelists",
    summary="JSON of images and what is drawn on them: MMOCR, docTR, Textract, CTW, Datumaro, SAM, MMPose, AIC, ...",
    source="https://mmocr.readthedocs.io/en/latest/api/datasets.html and https://openvinotoolkit.github.io/datumaro",
    example="""{
  "metainfo": {"dataset_type": "TextDetDataset", "category": [{"id": 0, "name": "text"}]},
  "data_list": [
    {"img_path": "street.jpg", "height": 480, "width": 640, "instances": [
      {"polygon": [10, 20, 110, 30, 108, 70, 8, 60], "bbox_label": 0, "ignore": false}
    ]}
  ]
}
""",
    carries=("images", "sizes", "scores", "crowd"),
    suffixes=(".json", ".jsonl", ".txt"),
    reads={
        "bbox": "bbox, or bounds of what is drawn",
        "obb": "polygon, poly or points of four corners",
        "segm": "polygon, points, segmentation, rle, bitmask; tracks of YouTube-VIS",
        "keypoints": "points of Datumaro; keypoints, keypoint_annotations, annopoints, preds, pose_landmarks",
    },
)

_TEXT = "text"  # the one class of words
_LABELLED = 2.0  # how well a point is seen that annotators have placed
_UNREADABLE = frozenset({"###", "#", "*"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Where a tool has what: keys, those of inner objects behind a dot; the first that is there counts.

    Parameters
    ----------
    keys : frozenset of str
        Those of the document, of its records if it is a list, or of its lines.
    images : str
        The list of images; empty where each record, or the document itself, is one.
    objects : tuple of str
        The lists of the objects of an image; empty where the document is this list.
    name, size : tuple of str
        Of an image; without, its name is that of the file. One key of a size is a list of height and width.
    labels, names : tuple of str
        Of an object, and of the document: lists of names, or of objects that have one.
    one_class : str
        What all are where nothing names a class.
    encoding : str
        Of ``bbox``.
    lacks : str
        What records of another format have besides the keys.
    likeness : Likeness
    outline : str
        Of an object: where its corners are, two opposite ones or all.
    shares : bool
        Whether coordinates are shares of the sides of the image.
    most : float
        The highest score.
    kinds : tuple of str
        What there is to compare, where the text of a document does not show it.
    rows : callable, optional
        Returns the objects of an image that has them in another way.
    keeps_folders : bool
        Whether images of different folders are called alike.
    has_ids : bool
        Whether images and classes have numbers, by which they are called elsewhere.
    """

    keys: frozenset[str]
    images: str = ""
    objects: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    size: tuple[str, ...] = ("width", "height")
    labels: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    one_class: str = ""
    encoding: str = "xywh"
    lacks: str = ""
    likeness: Likeness = Likeness.STRUCTURE
    mark: bytes = b""  # a pattern that is found in the document as well
    outline: str = ""
    shares: bool = False
    most: float = 1.0
    kinds: tuple[str, ...] = ()
    rows: Callable[[Mapping[str, Any]], list[Any]] | None = None
    keeps_folders: bool = False
    has_ids: bool = False


def _at(value: Any, *path: str) -> Any:
    """Return what a path of keys leads to, of lists with one entry into it; None where it leads nowhere."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
    return value


def _listed_at(value: Any, *path: str) -> list[Any]:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else [] if value is None else [value]


def _of_aic(image: Mapping[str, Any]) -> list[Any]:
    """Return the people of an image of AI Challenger, whose third value is 1 of seen points, 2 of hidden, 3 of none."""
    poses, boxes = image["keypoint_annotations"], image.get("human_annotations")
    people = []
    for key, pose in poses.items() if isinstance(poses, dict) else [("", poses)]:
        points = [*pose] if isinstance(pose, list) else pose
        if isinstance(points, list):
            points[2::3] = [0 if seen == _UNLABELLED else seen for seen in points[2::3]]
        people.append({"keypoints": points, "bbox": _at(boxes, key) if boxes else None})
    return people


def _of_posetrack(image: Mapping[str, Any]) -> list[Any]:
    """Return the people of an image of PoseTrack 2017, whose values are lists of one; their boxes are of heads."""
    people = []
    for person in _listed_at(image, "annorect"):
        pose = _listed_at(_at(person, "annopoints"), "point")
        points = [
            {"class_id": _at(point, "id"), **{name: _at(point, name) for name in ("x", "y", "score")}} for point in pose
        ]
        scored = [{**point, "score": 1.0} if point["score"] is None else point for point in points]
        people.append({"keypoints": scored or None, "score": _at(person, "score")})  # some are heads without points
    return people


def _of_ctw(image: Mapping[str, Any]) -> list[Any]:
    """Return the characters of CTW, which lie in lists of lines, and what is to be ignored."""
    lines = _listed_at(image, "annotations")
    found = [one for line in lines for one in (line if isinstance(line, list) else [line])]
    boxed = [{**one, "bbox": one.get("adjusted_bbox")} if isinstance(one, dict) else one for one in found]
    ignored = [{**one, "ignore": True} for one in _listed_at(image, "ignore") if isinstance(one, dict)]
    return [
        *(
            {**one, "ignore": True} if isinstance(one, dict) and one.get("is_chinese") is False else one
            for one in boxed
        ),
        *ignored,
    ]


def _of_batch(image: Mapping[str, Any]) -> list[Any]:
    """Return the poses of an image of MMPose 0, whose boxes are centre, scale, area and score.

    As in its results for COCO, the score is that of the box times the mean of the points that are found.
    """
    poses, boxes = (_listed_at(image, name) for name in ("preds", "boxes"))
    people = []
    for pose, box in zip_longest(poses, boxes):
        score: Any = box[-1] if isinstance(box, list) and len(box) == _OF_BATCH else None
        given = [
            point[-1]
            for point in (pose if isinstance(pose, list) else ())
            if isinstance(point, list) and len(point) == 3
        ]
        seen = [float(one) for one in given if is_finite_number(one) and one > _FOUND_POINT]
        mean = math.fsum(one / len(seen) for one in seen) if given else 1.0
        people.append({"keypoints": pose, "score": score * mean if is_finite_number(score) else score})
    return people


def _of_easy_vitpose(image: Mapping[str, Any]) -> list[Any]:
    """Return the poses of a frame of easy_ViTPose, which has them by track; points begin with y."""
    poses = [[point for point in _listed_at(image, track) if isinstance(point, list)] for track in image]
    return [
        {
            "keypoints": [[*point[1::-1], *point[2:]] for point in pose],
            "keypoint_scores": [one[-1] for one in pose if one],
        }
        for pose in poses
    ]


def _of_kili(image: Mapping[str, Any]) -> list[Any]:
    """Return the objects of all jobs of Kili, whose outlines begin with the outer one."""
    from jaccard_eval.reading.outlines import filled_ring  # all about masks, which most inputs have none of

    jobs = _at(image, "latestLabel", "jsonResponse")
    objects = []
    for one in [
        one for job in (jobs if isinstance(jobs, dict) else {}) for one in _listed_at(jobs, job, "annotations")
    ]:
        rings = [_listed_at(part, "normalizedVertices") for part in _listed_at(one, "boundingPoly")]
        outline = None
        with suppress(ValueError):
            outline = filled_ring([[(_at(point, "x"), _at(point, "y")) for point in ring] for ring in rings])
        objects.append({"label": _at(one, "categories", "name"), "polygon": outline})
    return objects


def _of_detectron2(image: Mapping[str, Any]) -> list[Any]:
    """Return the objects of an image of detectron2's data sets, each box as two corners, which is its mode 0."""
    objects = []
    for entry in _listed_at(image, "annotations"):
        box = _at(entry, "bbox")
        is_sized = _at(entry, "bbox_mode") == 1 and isinstance(box, list) and len(box) == 4 and all(map(is_number, box))
        corners = {"bbox": [*box[:2], box[0] + box[2], box[1] + box[3]]} if is_sized else {}
        objects.append({**entry, **corners} if isinstance(entry, Mapping) else entry)
    return objects


_UNLABELLED = 3
_OF_BATCH = 6
_FOUND_POINT = 0.2  # the least score of a point that is found: vis_thr of MMPose's data sets


_TAGS = ("tags.0",)
_LABELS = ("class_name", "category_name", "label_name", "class", "label", "category")
_LISTS_OF_OBJECTS = ("objects", "instances", "annotations", "predictions", "detections", "regions", "persons", "people")
_SHAPE_NAMES = (
    rb'"(?:keypoints|polygons?|polys?|points|pts|quad|corners|segmentation|segments|rle|mask|rb?box|rotated_bbox|obb'
    rb'|vertices|contour|joints)"\s*:\s*[\[{]\s*[^\]}\s]'
)
_VOTT_POLYGON = rb'"type"\s*:\s*"POLY(?:GON|LINE)"'  # others have boxes alone
_IMAGE = ("img_path", "file_name", "filename", "img_info.filename", "img_info.file_name")
_CHARACTER = rb'"text"\s*:\s*"(?:[^"\\]|\\u[\da-fA-F]{4}|[\xc2-\xf4][\x80-\xbf]+)"'
CARRIERS = {
    "ctw": Carrier(
        keys=frozenset({"annotations", "ignore", "image_id"}), objects=("found",), name=("file_name",),
        one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"adjusted_bbox"', kinds=("bbox", "obb"), rows=_of_ctw,
    ),
    "mmocr": Carrier(
        keys=frozenset({"metainfo", "data_list"}), images="data_list", objects=("instances",), name=_IMAGE,
        labels=("bbox_label",), names=("metainfo.category", "metainfo.classes"), one_class=_TEXT, encoding="xyxy",
        likeness=Likeness.NAMED,
    ),
    "mmocr, a list": Carrier(
        keys=frozenset({"img_info", "annotations"}), objects=("annotations", "anno_info"), name=_IMAGE,
        size=("img_info.width", "img_info.height"), one_class=_TEXT, likeness=Likeness.NAMED,
    ),
    "detectron2": Carrier(
        keys=frozenset({"file_name", "height", "width", "annotations"}), objects=("found",), name=("file_name",),
        labels=("category_id",), encoding="xyxy", likeness=Likeness.NAMED, mark=b'"bbox_mode"', has_ids=True,
        rows=_of_detectron2,
    ),
    "mmocr, lines": Carrier(
        keys=frozenset({"file_name", "height", "width", "annotations"}), objects=("annotations",), name=_IMAGE,
        one_class=_TEXT, labels=("class_name", "category_name", "class", "category"),
    ),
    "mmocr, found": Carrier(keys=frozenset({"det_polygons", "det_scores"}), objects=("found",), one_class=_TEXT),
    "mmocr 0, found": Carrier(keys=frozenset({"boundary_result"}), objects=("found",), one_class=_TEXT),
    "rects": Carrier(keys=frozenset({"chars", "lines"}), objects=("lines",), one_class=_TEXT, likeness=Likeness.NAMED),
    "hiertext": Carrier(
        keys=frozenset({"annotations"}), images="annotations", objects=("paragraphs.lines.words",), name=("image_id",),
        size=("image_width", "image_height"), one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"paragraphs"',
    ),
    "coco-text": Carrier(
        keys=frozenset({"imgs", "anns"}), images="imgs", objects=("anns",), name=("file_name", "id"), one_class=_TEXT,
        likeness=Likeness.NAMED, mark=b'"utf8_string"',
    ),
    "soda-a": Carrier(
        keys=frozenset({"images", "annotations"}), objects=("annotations",), name=("images.file_name",),
        size=("images.width", "images.height"), labels=("category_id",), names=("categories",),
        likeness=Likeness.NAMED, mark=rb'"images"\s*:\s*\{[^{}]*"file_name"',
    ),
    "funsd": Carrier(
        keys=frozenset({"form"}), objects=("form",), labels=("label",), encoding="xyxy", likeness=Likeness.NAMED,
    ),
    "labelbox": Carrier(
        keys=frozenset({"data_row", "projects"}), objects=("projects.*.labels.annotations.objects",),
        name=("data_row.external_id", "data_row.global_key"), labels=("name",),
        size=("media_attributes.width", "media_attributes.height"), likeness=Likeness.NAMED,
    ),
    "scale": Carrier(
        keys=frozenset({"task_id", "response"}), objects=("response.annotations",), name=("params.attachment",),
        labels=("label",), likeness=Likeness.NAMED,
    ),
    "prodigy": Carrier(
        keys=frozenset({"image", "spans"}), objects=("spans",), name=("path", "meta.file", "image"), labels=("label",),
        likeness=Likeness.NAMED,
    ),
    "hasty": Carrier(
        keys=frozenset({"images", "label_classes"}), images="images", objects=("labels",), name=("image_name",),
        labels=("class_name",), encoding="xyxy", likeness=Likeness.NAMED,
    ),
    "eurocity": Carrier(
        keys=frozenset({"children", "identity"}), objects=("children",), labels=("identity",),
        size=("imagewidth", "imageheight"), encoding="xyxy", likeness=Likeness.NAMED,
    ),
    "datumaro": Carrier(
        keys=frozenset({"categories", "items"}), images="items", objects=("annotations",),
        name=("image.path", "media.path", "id"), size=("image.size", "media.size"), labels=("label_id",),
        names=("categories.label.labels",), likeness=Likeness.NAMED,
    ),
    "vott": Carrier(
        keys=frozenset({"assets", "tags"}), images="assets", objects=("regions",), name=("asset.name",),
        size=("asset.size.width", "asset.size.height"), labels=_TAGS, likeness=Likeness.NAMED,
        mark=_VOTT_POLYGON,
    ),
    "vott, an asset": Carrier(
        keys=frozenset({"asset", "regions"}), objects=("regions",), name=("asset.name",),
        size=("asset.size.width", "asset.size.height"), labels=_TAGS, likeness=Likeness.NAMED,
        mark=_VOTT_POLYGON,
    ),
    "encord": Carrier(
        keys=frozenset({"label_hash", "data_units"}), images="data_units", objects=("labels.objects",),
        name=("data_title",), labels=("name",), likeness=Likeness.NAMED,
    ),
    "dataloop": Carrier(
        keys=frozenset({"annotations", "filename"}), objects=("annotations",), name=("filename",), labels=("label",),
        size=("metadata.system.width", "metadata.system.height"), likeness=Likeness.NAMED,
        mark=rb'"type"\s*:\s*"(?:segment|binary|box)"[^{}]*"(?:label|coordinates)"|"coordinates"[^<]*"type"\s*:\s*"segment"',
    ),
    "youtube-vis": Carrier(
        keys=frozenset({"videos", "annotations"}), objects=("found",), labels=("category_id",),
        likeness=Likeness.NAMED, mark=b'"segmentations"',
    ),
    "youtube-vis, found": Carrier(
        keys=frozenset({"video_id", "segmentations"}), objects=("found",), labels=("category_id",),
        likeness=Likeness.NAMED,
    ),
    "darwin": Carrier(
        keys=frozenset({"version", "item", "annotations"}), objects=("annotations",), name=("item.name",),
        size=("item.slots.0.width", "item.slots.0.height"), labels=("name",), likeness=Likeness.NAMED,
    ),
    "superannotate": Carrier(
        keys=frozenset({"metadata", "instances"}), objects=("instances",), name=("metadata.name",),
        size=("metadata.width", "metadata.height"), labels=("className",), encoding="xyxy", likeness=Likeness.NAMED,
    ),
    "hubmap": Carrier(
        keys=frozenset({"id", "annotations"}), objects=("annotations",), name=("id",), labels=("type",),
        likeness=Likeness.NAMED, mark=b'"coordinates"',
    ),
    "isat": Carrier(
        keys=frozenset({"info", "objects"}), objects=("objects",), name=("info.name",),
        size=("info.width", "info.height"), labels=("category",), encoding="xyxy", likeness=Likeness.NAMED,
        mark=b'"ISAT"',
    ),
    "grounded-sam": Carrier(
        keys=frozenset({"image_path", "annotations", "box_format"}), objects=("annotations",), name=("image_path",),
        size=("img_width", "img_height"), labels=("class_name",), encoding="xyxy", likeness=Likeness.NAMED,
        mark=b'"segmentation"',
    ),
    "ochuman": Carrier(
        keys=frozenset({"images", "keypoint_names"}), images="images", objects=("annotations",), name=_IMAGE,
        one_class="person", encoding="xyxy", lacks="annotations", likeness=Likeness.NAMED,
    ),
    "cord": Carrier(
        keys=frozenset({"valid_line"}), objects=("valid_line.words",), one_class=_TEXT, likeness=Likeness.NAMED,
        size=("meta.image_size.width", "meta.image_size.height"),
    ),
    "paddleocr 3": Carrier(
        keys=frozenset({"input_path", "dt_polys"}), objects=("found",), name=("input_path",), one_class=_TEXT,
        likeness=Likeness.NAMED,
    ),
    "fiftyone": Carrier(
        keys=frozenset({"samples"}), images="samples", objects=("found",),
        name=("filepath",), size=("metadata.width", "metadata.height"), labels=("label",), likeness=Likeness.NAMED,
        mark=rb'"bounding_box"[^{}]*"mask"\s*:\s*[{"]|"mask"\s*:\s*(?:"|\{[^{}]*\{?[^{}]*\}?[^{}]*\})[^{}]*"bounding_box"',
    ),
    "hover-net": Carrier(
        keys=frozenset({"nuc"}), objects=("nuc.*",), labels=("type_name", "type"), likeness=Likeness.NAMED,
        mark=b'"contour"',
    ),
    "deepfashion2": Carrier(
        keys=frozenset({"source", "pair_id"}), objects=("*",), labels=("category_name",), encoding="xyxy",
        likeness=Likeness.NAMED,
    ),
    "aic": Carrier(
        keys=frozenset({"image_id", "keypoint_annotations"}), objects=("found",), name=("image_id",), encoding="xyxy",
        one_class="person", likeness=Likeness.NAMED, kinds=("keypoints",), rows=_of_aic,
    ),
    "posetrack": Carrier(
        keys=frozenset({"annolist"}), images="annolist", objects=("found",), name=("image.0.name", "image.name"),
        one_class="person", likeness=Likeness.NAMED, kinds=("keypoints",), rows=_of_posetrack, keeps_folders=True,
    ),
    "animalpose": Carrier(
        keys=frozenset({"images", "annotations", "categories"}), images="images", objects=("annotations",),
        name=("file_name",), labels=("category_id",), names=("categories",), encoding="xyxy", likeness=Likeness.NAMED,
        has_ids=True, mark=rb'"images"\s*:\s*\{\s*"[^"]*"\s*:\s*"', kinds=("bbox", "keypoints"),
    ),
    "mpii": Carrier(
        keys=frozenset({"img_paths", "joint_self"}), objects=("found",), name=("img_paths",), one_class="person",
        likeness=Likeness.NAMED, kinds=("keypoints",), rows=lambda image: [{"keypoints": image["joint_self"]}],
    ),
    "mmpose 0": Carrier(
        keys=frozenset({"preds", "boxes", "image_paths"}), objects=("found",), name=("image_path",),
        one_class="person", likeness=Likeness.NAMED, kinds=("keypoints",), rows=_of_batch,
    ),
    "easy-vitpose": Carrier(
        keys=frozenset({"keypoints", "skeleton"}), images="keypoints", objects=("found",), one_class="person",
        likeness=Likeness.NAMED, mark=rb'"keypoints"\s*:\s*\[\s*\{', kinds=("keypoints",), rows=_of_easy_vitpose,
    ),
    "kili": Carrier(
        keys=frozenset({"externalId", "latestLabel"}), objects=("found",), name=("externalId",), labels=("label",),
        size=("resolution.width", "resolution.height"), likeness=Likeness.NAMED, shares=True, kinds=("bbox", "segm"),
        rows=_of_kili,
    ),
    "mediapipe": Carrier(
        keys=frozenset({"image", "pose_landmarks"}), objects=("found",), name=("image",), one_class="person",
        likeness=Likeness.NAMED, kinds=("keypoints",), shares=True,
        rows=lambda image: [
            {
                "keypoints": image["pose_landmarks"],
                "keypoint_scores": [_at(point, "visibility") for point in _listed_at(image, "pose_landmarks")],
            }
        ],
    ),
    "ctw, found": Carrier(
        keys=frozenset({"detections", "image_id"}), objects=("detections",), name=("file_name", "image_id"),
        one_class=_TEXT, likeness=Likeness.NAMED, mark=_CHARACTER, kinds=("bbox",),
    ),
    "doctr": Carrier(
        keys=frozenset({"pages"}), images="pages", objects=("blocks.lines.words",), size=("dimensions",),
        one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"page_idx"', outline="geometry", shares=True, encoding="xyxy",
        kinds=("obb",),
    ),
    "kraken": Carrier(
        keys=frozenset({"imagename", "lines"}), objects=("lines",), name=("imagename",), one_class="line",
        likeness=Likeness.NAMED, mark=b'"boundary"', outline="boundary", kinds=("segm",),
    ),
    "textract": Carrier(
        keys=frozenset({"Blocks"}), objects=("found",), one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"BlockType"',
        outline="Geometry.Polygon", shares=True, most=100.0, kinds=("obb",),
        rows=lambda image: [one for one in _listed_at(image, "Blocks") if _at(one, "BlockType") == "WORD"],
    ),
    "google": Carrier(
        keys=frozenset({"responses"}), images="responses.fullTextAnnotation.pages",
        objects=("blocks.paragraphs.words",), one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"fullTextAnnotation"',
        outline="boundingBox.vertices", kinds=("obb",),
    ),
    "google, texts": Carrier(  # the first is the whole text
        keys=frozenset({"responses"}), images="responses", objects=("found",), one_class=_TEXT,
        likeness=Likeness.NAMED, mark=b'"textAnnotations"', outline="boundingPoly.vertices", kinds=("obb",),
        rows=lambda image: _listed_at(image, "textAnnotations")[1:],
    ),
    "azure, read": Carrier(
        keys=frozenset({"analyzeResult"}), images="analyzeResult.readResults", objects=("lines.words",),
        one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"readResults"', outline="boundingBox", kinds=("obb",),
    ),
    "azure, pages": Carrier(
        keys=frozenset({"analyzeResult"}), images="analyzeResult.pages", objects=("words",),
        one_class=_TEXT, likeness=Likeness.NAMED, mark=b'"pages"', outline="polygon", kinds=("obb",),
    ),
    "scripted, images": Carrier(
        keys=frozenset({"images"}), images="images", objects=_LISTS_OF_OBJECTS, labels=_LABELS, lacks="annotations",
        name=("image", "image_name", *_IMAGE, "image_path"), likeness=Likeness.NAMED,
        mark=rb'"images"\s*:\s*\[\s*\{[^\[\]{}]*"(?:' + "|".join(_LISTS_OF_OBJECTS).encode()
        + rb')"\s*:\s*\[\s*\{[^{}]*' + _SHAPE_NAMES,
    ),
    "tensorflow.js": Carrier(keys=frozenset({"keypoints", "score"}), lacks="image_id", likeness=Likeness.NAMED),
    "sam": Carrier(keys=frozenset({"segmentation", "predicted_iou"}), likeness=Likeness.NAMED),
    "sa-1b": Carrier(
        keys=frozenset({"image", "annotations"}), objects=("annotations",), name=("image.file_name",),
        size=("image.width", "image.height"),
    ),
    "mmpose": Carrier(keys=frozenset({"keypoints", "keypoint_scores"}), encoding="xyxy", likeness=Likeness.NAMED),
    "mmpose, a demo": Carrier(
        keys=frozenset({"meta_info", "instance_info"}), objects=("instance_info",), encoding="xyxy",
        likeness=Likeness.NAMED,
    ),
    "openpifpaf": Carrier(
        keys=frozenset({"keypoints", "bbox", "score", "category_id"}), labels=("category_id",), lacks="image_id",
        likeness=Likeness.NAMED,
    ),
}  # fmt: skip
_NUIMAGES = ("object_ann.json", "sample_data.json", "category.json")  # tables that are joined by tokens
_OF_TABLES = Carrier(keys=frozenset(), objects=("found",), encoding="xyxy")
_LISTS = [
    CARRIERS[name]
    for name in (
        "mmocr, a list",
        "mmocr, lines",
        "detectron2",
        "sam",
        "mmpose",
        "openpifpaf",
        "labelbox",
        "scale",
        "prodigy",
        "hubmap",
        "tensorflow.js",
        "aic",
        "mmpose 0",
        "mpii",
        "mediapipe",
        "kili",
        "ctw",
        "ctw, found",
        "youtube-vis, found",
    )
]
_VIDEOS = (CARRIERS["youtube-vis"], CARRIERS["youtube-vis, found"])
_EITHER = (CARRIERS["encord"],)  # an object, or a list of them
# What scripts write: records that name their image and have a shape and no box, or images with lists of such.
_SCRIPTED = Carrier(
    keys=frozenset(), objects=_LISTS_OF_OBJECTS,
    name=("image", "image_name", "img_name", "file_name", "filename", "img_path", "image_path", "image_id"),
    labels=_LABELS,
)  # fmt: skip
_NAMING = frozenset(_SCRIPTED.name) - {"image_id"}  # which is COCO's, unless nothing else reads it
_OF_RESULTS = frozenset({"category_id", "bbox", "segmentation", "keypoints"})  # which are COCO's
_SCRIPTED_POSES = replace(_SCRIPTED, encoding="xyxy")
_SCRIPTED_SHAPES = pattern(_SHAPE_NAMES)
_BOX = pattern(rb'"(?!rb?box"|rotated_bbox")\w*b?box\w*"\s*:(?!\s*\[(?:\s*\[|(?:[^,\[\]]+,){4}))')  # of four numbers
_TURNED_BOX = pattern(rb'"b?box"\s*:\s*\[(?:\s*\[[-+\d.eE,\s]+\]\s*,\s*\[|(?:[^,\[\]]+,){4})')
_LISTED = Carrier(keys=frozenset(), objects=("found",), one_class=_TEXT)  # lists by the names of images
_HEADER = 1024  # bytes before the numbers of an array
_CLASSED = replace(_LISTED, labels=("label",), one_class="")
_POSED = replace(_LISTED, one_class="person", encoding="xyxy")  # as transformers returns poses
_SIDES = {
    ("x", "y", "width", "height"): "xywh",
    ("left", "top", "width", "height"): "xywh",
    ("x", "y", "w", "h"): "xywh",
    ("x0", "y0", "x1", "y1"): "xyxy",
    ("x1", "y1", "x2", "y2"): "xyxy",
}
_SCORES = (
    "score",
    "bbox_score",
    "bbox_scores",
    "predicted_iou",
    "attributes.score",
    "attributes.confidence",
    "scores",
    "objectness_score",
    "confidence",
    "metadata.user.model.confidence",
    "type_prob",
    "keypoint_scores",
    "Confidence",
)
# Arrays with an entry for each object of an image: what one of them is, and their scores; the first that is there.
_COLUMNS = {
    "det_polygons": ("polygon", "det_scores"),
    "rec_polys": ("polygon", "rec_scores"),
    "dt_polys": ("polygon", "dt_scores"),
    "keypoints": ("keypoints", "scores"),
    "points": ("polygon", "scores"),
    "bboxes": ("polygon", "cares"),
}
_PARTS = ("text_lines", "bboxes", "polygons")  # of surya and docTR, in what they have under the name of an image
_PADDLE = pattern(r"[^\t\n]+\t\s*\[\s*(?:\{|\])")  # an image, and its words as JSON
_BY_NAME = pattern(
    rb'\{\s*(?:"[^"]+"\s*:\s*\[\s*\]\s*,\s*)*"[^"]+"\s*:\s*\[\s*\{[^{}]*"(?:points|keypoints)"\s*:\s*\[\s*\['
)
_BY_NAME_PARTS = pattern(
    rb'\{\s*(?:"[^"]+"\s*:\s*\[\s*\]\s*,\s*)*"[^"]+"\s*:\s*(?:\{\s*(?:"keypoints"\s*:\s*\[\s*\[\s*\[|"img_dimensions"[^{}]*"polygons"\s*:\s*[\[{]'
    rb'|[^{}]*"content_ann"\s*:\s*\{)'
    rb'|\[\s*\{\s*"(?:text_lines|bboxes)"\s*:\s*\[\s*\{[^{}]*"polygon")'
)
_ROWS_BY_NAME = pattern(
    rb'\{\s*(?:"[^"]+"\s*:\s*\[\s*\]\s*,\s*)*"[^"]+"\s*:\s*\[\s*\[(?:[-+\d.eE\s]+,){7}[-+\d.eE\s]+'
    rb'(?:,\s*(?:[-+\d.eE]+|"[^"]*")\s*){0,2}\]'
)
_POSES_BY_NAME = pattern(
    rb'\{\s*(?:"[^"]+"\s*:\s*\[\s*\]\s*,\s*)*"[^"]+"\s*:\s*\[\s*\[\s*\[(?:[-+\d.eE\s]+,){2}[-+\d.eE\s]+\]'
)
# Corners, a word and a score, as readers return them; of keras-ocr the word is first. Of an image, of many, or by name.
_TRIPLES = pattern(
    rb'(?:\[(?:\s*\[\s*\]\s*,)*\s*|\{(?:\s*"[^"]+"\s*:\s*\[\s*\]\s*,)*\s*"[^"]+"\s*:\s*)?\[\s*\[\s*(?:\[(?:\s*\[[-+\d.eE,\s]+\]\s*,?){4}\s*\]\s*,\s*\[?\s*"'
    rb'|"(?:[^"\\]|\\.)*"\s*,\s*\[(?:\s*\[[-+\d.eE,\s]+\]\s*,?){4}\s*\]\s*\])'
)
# A path, boxes, and the points of people, as PaddleDetection keeps them.
_DETECTED = pattern(rb'\[\s*\[\s*(?:"[^"]*"|\d+)\s*,\s*\[\s*(?:\[[-+\d.eE,\s]+\][\s,]*)*\]\s*,\s*\[\s*\[')
_PAGES = "If the other side names its images, export each page alone, to a file called like its image."
_TWO_CORNERS = pattern(rb'"geometry"\s*:\s*\[\s*\[[^\[\]]*\]\s*,\s*\[[^\[\]]*\]\s*\]')  # of docTR's upright words
_BEFORE_NAME = pattern(r"^(?:gt|res)_")
_OUTLINE = pattern(rb'"(?:polygon|points|segmentation|mask|vertices|box)"\s*:\s*(\[[-+\d.eE,\s\[\]]+\])')
_OF_WORDS = (
    b'"data_list"',
    b'"img_info"',
    b'"iscrowd"',
    b'"transcription"',
    b'"det_polygons"',
    b'"boundary_result"',
    b'"utf8_string"',
    b'"paragraphs"',
    b'"text_lines"',
    b'"vertical_lines"',
    b'"content_ann"',
)
_FOUND = pattern(rb'"(?:det_polygons|boundary_result|bboxes)"\s*:\s*\[((?:\s*\[[^\[\]]*\]\s*,?)*)')
_KINDS = {
    "bbox": pattern(rb'"b?box"\s*:\s*\[(?:[^,\]]*,){3}[^,\]]*\]|"(?:bounding_box|left|x0)"\s*:|"type"\s*:\s*"rect"'),
    "segm": pattern(
        rb'"(?:rle|segmentation|mask|bitmask)"\s*:\s*\{|"segmentations"\s*:\s*\[|"type"\s*:\s*"(?:binary|segment|POLYGON)"|"shape"\s*:\s*"polygon"'
        rb'|"(?:polygon|segmentation|mask|det_polygons|boundary_result)"\s*:\s*\[\s*[^\]\s]|"type"\s*:\s*"polygon"|"(?:points|vertices|contour|coordinates|paths?)"\s*:\s*\[\s*\['
        rb'|"(?:points|vertices)"\s*:\s*\[\s*\{\s*"x"'
    ),
    "obb": pattern(
        rb'"rotation"\s*:\s*(?!0[,}\s]|0\.0+[,}\s])\d|"b?box"\s*:\s*\[(?:[^,\]]*,){4}(?:(?:[^,\]]*,){3})?[^,\]]*\]'
        rb'|"(?:poly|quad|corners)"\s*:\s*\[(?:[^,\]]*,){7}[^,\]]*\]'
        rb'|"(?:quad|corners|b?box)"\s*:\s*\[\s*\[|"(?:rb?box|rotated_bbox|obb)"\s*:\s*\['
        rb'|"(?:dt_polys|valid_line|img_dimensions)"\s*:'
    ),
    "keypoints": pattern(rb'"type"\s*:\s*"(?:skeleton|points)"|"(?:keypoints|joints)"\s*:\s*\[[\s\[]*[-\d{]'),
}  # fmt: skip


def looks_like(peek: Peek) -> Likeness | None:
    """Rate documents by their keys, and a text by its first lines."""
    if not peek.is_folder and peek.kind is Kind.TEXT:
        are_words = peek.lines and all(map(_PADDLE.match, peek.lines[:1]))
        return Likeness.NAMED if are_words and '"points"' in peek.text else None
    if _tables_at(peek.path, peek.files):
        return Likeness.NAMED
    return peek.rate_documents(_rate)


def _tables_at(path: Path, names: Sequence[str]) -> Path | None:
    """Return the folder of nuImages' tables, given as such or by the one of its objects; None of anything else."""
    if path.name == _NUIMAGES[0]:
        path, names = path.parent, [name for name in _NUIMAGES if (path.parent / name).is_file()]
    return path if {*_NUIMAGES} <= {*names} else None


def _rate(document: Peek) -> Likeness | None:
    if _TRIPLES.match(document.head.lstrip()) or _DETECTED.match(document.head.lstrip()):
        return Likeness.NAMED
    carrier = _carrier_of(document.item_keys or document.top_keys, document.head)
    if carrier is not None:
        is_drawn = carrier.likeness is Likeness.NAMED or any(
            kind.search(document.head) for name, kind in _KINDS.items() if name != "bbox"
        )
        return carrier.likeness if is_drawn and _has_form(carrier, document) else None
    if "shapes" not in document.top_keys and (
        any(form.match(document.head.lstrip()) for form in (_BY_NAME, _BY_NAME_PARTS, _ROWS_BY_NAME, _POSES_BY_NAME))
    ):  # which LabelMe begins with
        return Likeness.STRUCTURE
    keys = document.item_keys or (document.top_keys if document.kind is Kind.JSON_LINES else frozenset())
    is_numbered = "image_id" in keys and keys.isdisjoint(_OF_RESULTS)
    is_scripted = (not keys.isdisjoint(_NAMING) or is_numbered) and keys.isdisjoint(("category_id", "data"))
    shapes = (_SCRIPTED_SHAPES, _TURNED_BOX)
    is_drawn = is_scripted and any(shape.search(document.head) for shape in shapes)
    if not is_drawn:
        return _rate_alone(document)
    if _BOX.search(document.head):  # of records with boxes; where some have a shape instead, they make up no table
        objects = re.findall(rb"\{[^{}]*\}", document.head)
        shaped = [one for one in objects if _SCRIPTED_SHAPES.search(one)]
        return Likeness.NAMED if any(not _BOX.search(one) for one in shaped) else None
    is_table = keys.isdisjoint(_SCRIPTED.objects) and not is_numbered and not _TURNED_BOX.search(document.head)
    return Likeness.CONTENT if is_table else Likeness.STRUCTURE


def _rate_alone(document: Peek) -> Likeness | None:
    """Rate objects with a class and a shape that name no image: they are of the one that their file is called after."""
    is_list = not document.item_keys.isdisjoint(_LABELS)
    is_drawn = bool(_SCRIPTED_SHAPES.search(document.head)) and not _BOX.search(document.head)
    return Likeness.SUFFIX if is_drawn and (is_list or not document.top_keys.isdisjoint(_LISTS_OF_OBJECTS)) else None


def _has_form(carrier: Carrier, document: Peek) -> bool:
    """Whether a document is an object or a list as the carrier is."""
    if carrier is CARRIERS["sa-1b"]:
        return b'"predicted_iou"' in document.head
    if carrier in _EITHER:
        return True
    is_list = bool(document.item_keys) or document.kind is Kind.JSON_LINES
    return is_list == (carrier in _LISTS)


def _carrier_of(keys: frozenset[str], text: bytes) -> Carrier | None:
    fits = (found for found in CARRIERS.values() if found.keys <= keys and found.lacks not in keys)
    return next((found for found in fits if not found.mark or re.search(found.mark, text)), None)


def iou_types(peek: Peek) -> set[str]:
    """Return what objects begin with: words of four corners are oriented boxes, others masks."""
    found = peek.documents() if peek.is_folder else [peek]
    if _tables_at(peek.path, peek.files):
        return {"bbox", "segm"}
    kinds = kinds_in(found, _KINDS)
    heads = b"".join(document.head for document in found)
    if b'"rleString"' in heads and b'"boundingBox"' not in heads:
        kinds.discard("bbox")  # whose left is the mask's
    outlines = [len(re.findall(rb"[^\s,\[\]]+", text)) for text in _OUTLINE.findall(heads)]
    told = {
        kind
        for one in found
        if (carrier := _carrier_of(one.item_keys or one.top_keys, one.head)) is not None
        for kind in carrier.kinds
    }
    if told:
        return {"bbox"} if _TWO_CORNERS.search(heads) else told
    # Of what inference found, in one list, that of 2021 with the score behind the corners.
    inner = re.findall(rb"\[([^\[\]]+)\]", b"".join(_FOUND.findall(heads)))
    outlines += [n - n % 2 for ring in inner if (n := len(re.findall(rb"[^\s,]+", ring)))]
    if any(form.match(document.head.lstrip()) for document in found for form in (_TRIPLES, _ROWS_BY_NAME)):
        return {"obb"}
    if any(form.match(document.head.lstrip()) for document in found for form in (_DETECTED, _POSES_BY_NAME)):
        return {"keypoints"}
    is_text = any(mark in heads for mark in _OF_WORDS)
    if is_text and outlines:  # and the boxes around them
        return {"obb"} if all(n == 8 for n in outlines) else {"segm"}
    return kinds


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and objects of documents to the draft."""
    collector = RecordCollector(draft)
    used: list[Carrier] = []
    seen = set[Key]()  # records of a script name their image each
    has_class = False
    # The bounds of shapes without a box are written as boxes are.
    given = options.box if options.box in ("xywh", "xyxy") else ""
    unnamed: list[Where] = []
    numbered: dict[int, str] = {}  # classes that are called by their numbers elsewhere
    for carrier, name, record, names in _images(path, draft):
        used.append(carrier)
        own = _value(record.values, ("id", "image_id"))
        is_id = carrier.has_ids and str(own).isdecimal() and isinstance(own, int | str)
        image: Key = int(own) if is_id else name
        if image not in seen:
            seen.add(image)
            collector.add_image(image, file_name=name, size=_size(record, carrier))
        is_fiftyone = carrier is CARRIERS["fiftyone"]
        written = _objects(_of_role(record, options.role) if is_fiftyone else record, carrier)
        adapt = _placed_mask if is_fiftyone else _adapter(carrier)
        for entry in (adapt(each, _size(record, carrier)) for each in written) if adapt else written:
            label = _label(entry, carrier, names, draft)
            if carrier.has_ids and isinstance(number := _value(entry.values, carrier.labels), int):
                label, numbered[number] = number, str(label)
            has_class = has_class or label is not None
            if label is None and not carrier.one_class:
                unnamed.append(entry.where)
            pixels = entry.values.get("pixels")  # of a service
            outlined = _outlined(entry, carrier) if carrier.outline else entry
            drawn = Drawn(pixels=pixels) if isinstance(pixels, tuple) else _drawn(outlined, given or carrier.encoding)
            if carrier.shares:
                drawn = _in_pixels(drawn, name, _size(record, carrier), entry, draft)
            score = (
                _score(entry, carrier.most)
                if options.role == "pred" or _value(entry.values, ("score",)) is not None
                else None
            )
            crowd = _is_ignored(entry)
            usual = carrier.one_class or (options.names[0] if options.names else 0)
            collector.add_drawn(
                image, usual if label is None else label, drawn, entry.where,
                score=math.nan if score is None else score, crowd=crowd,
            )  # fmt: skip
    if not used:
        draft.findings.raise_errors()
        raise DataError.single("layout", Where(str(path)), "no images with lists of objects", fix="Export it again.")
    for where in unnamed if has_class else ():
        detail = "names no class, and others do"
        draft.findings.error("class-invalid", where, detail, fix="Name its class, or remove it.")
    if not has_class and not used[0].one_class and collector.n_boxes:
        from jaccard_eval.reading.tabular.table import note_no_class

        note_no_class(draft)
    collector.to_draft(encoding=given or used[0].encoding, listed=True)
    if numbered:
        draft.set_classes([*numbered], [*numbered.values()])


def _images(path: Path, draft: Draft) -> Iterator[tuple[Carrier, str, Record, Mapping[Any, str]]]:
    """Yield each image with its carrier and its name, and the names of classes by number."""
    is_folder = files.is_folder(path)
    if tables := _tables_at(path, files.list_folder(path)[1] if is_folder else ()):
        yield from _of_tables(tables, draft)
        return
    text = "" if is_folder else files.read_text(path)
    if text and _PADDLE.match(text):
        for number, line in enumerate(text.splitlines(), 1):
            name, _, words = line.partition("\t")
            if name.strip():
                where = Where(str(path), line=number)
                yield _LISTED, name, Record({"found": parse_json(path, words)}, where, draft.findings), {}
        return
    if looks_like_json_lines(text):
        start, usual = files.head(path), _SCRIPTED
        for one in line_records(path, text, draft):
            carrier = usual = _of_naming(_carrier_of(frozenset(one.values), start) or usual, one.values)
            # A line may be an object by itself.
            record = one if carrier.objects else replace(one, values={**one.values, "": [one.values]})
            yield carrier, _name(record, carrier, path.stem), _with_rows(record, carrier), {}
        return
    for key, file, value in documents(path, draft):
        yield from _of_document(key, value, file, draft)


def _of_document(
    key: str, value: Any, file: Path, draft: Draft
) -> Iterator[tuple[Carrier, str, Record, Mapping[Any, str]]]:
    """Yield the images of a document."""
    where = Where(str(file))
    if (video := _video_carrier(value)) is not None:
        from jaccard_eval.formats._services import videos

        _set_categories(value, draft)
        yield from ((video, key, record, {}) for key, record in videos(value, where, draft.findings))
        return
    if isinstance(value, list):
        yield from _listed(key, value, where, draft)
        return
    document = Record.of(value, where, draft.findings)
    found = _carrier_of(frozenset(document.values), files.head(file))
    if found is None and any(isinstance(document.values.get(name), list) for name in _SCRIPTED.objects):
        yield _SCRIPTED, _name(document, _SCRIPTED, key), document, {}
        return
    if found is None:
        yield from _named(document)
        return
    listed = _value(document.values, found.names)
    listed = listed if isinstance(listed, list) else []
    named = [name.get("name") if isinstance(name, dict) else name for name in listed if name is not None]
    names = dict(enumerate(map(str, named)))
    if found.has_ids:
        names = {row["id"]: str(row.get("name")) for row in listed if isinstance(row, dict) and "id" in row}
    images = [*_joined(document, found)] if found.images else [document]
    if found is CARRIERS["textract"]:
        images = _by_page(document)
    is_numbered = len(images) > 1 and not found.name  # pages of a document
    if is_numbered:
        note_positions(len(images), where.path, draft, _PAGES)
    for at, record in enumerate(images):
        yield found, str(at) if is_numbered else _name(record, found, key), _with_rows(record, found), names


def _by_page(document: Record) -> list[Record]:
    """Return the pages of an answer of Textract, whose blocks have their numbers; a lone page need not have one."""
    pages: dict[Any, list[Any]] = {}
    for block in _listed_at(document.values, "Blocks"):
        pages.setdefault(_at(block, "Page"), []).append(block)
    return [replace(document, values={**document.values, "Blocks": blocks}) for blocks in pages.values()] or [document]


def _named(document: Record) -> Iterator[tuple[Carrier, str, Record, Mapping[Any, str]]]:
    """Yield the images of an object that has what is drawn on each under its name."""
    for name, given in document.values.items():
        inner = Record({"found": _parts(given)}, document.at(name), document.findings)
        parts = inner.records("found")
        inner = replace(inner, values={"found": [one.values for part in parts for one in _objects(part, _SCRIPTED)]})
        fields = {field for row in inner.records("found") for field in row.values}
        kind = _POSED if "keypoints" in fields else _CLASSED if "label" in fields else _LISTED
        image = name.replace("\\", "/").rpartition("/")[2] if "ignore" in fields else name
        yield kind, _BEFORE_NAME.sub("", image), inner, {}


def _with_rows(image: Record, carrier: Carrier) -> Record:
    """Return an image with the list of its objects, which it has in another way."""
    return replace(image, values={**image.values, "found": carrier.rows(image.values)}) if carrier.rows else image


def _of_tables(folder: Path, draft: Draft) -> Iterator[tuple[Carrier, str, Record, Mapping[Any, str]]]:
    """Yield the images of nuImages that are annotated, with their objects."""
    objects, images, classes = (list(listed_records(folder / name, draft)) for name in _NUIMAGES)
    names = {entry.text("token"): entry.text("name") for entry in classes}
    by_image: dict[str, list[Any]] = {}
    for entry in objects:
        name = names.get(entry.text("category_token"))
        if name is None:
            entry.error("class-unknown", "category_token", f"{_NUIMAGES[2]} has no such category")
        values = {**entry.values, "category_id": name, "mask": _unpacked(entry.values.get("mask"))}
        by_image.setdefault(entry.text("sample_data_token"), []).append(values)
    carrier = replace(_OF_TABLES, labels=("category_id",))
    for image in images:
        found = by_image.pop(image.text("token"), [])
        if found or image.values.get("is_key_frame"):
            values = {**image.values, "found": found}
            yield carrier, image.text("filename"), replace(image, values=values), {}
    for token in by_image:
        where = Where(str(folder / _NUIMAGES[0]), field="sample_data_token")
        draft.findings.error("image-unknown", where, f"{_NUIMAGES[1]} has no image {quoted_value(token)}")


def _unpacked(mask: Any) -> Any:
    """Return RLE whose runs were packed once more, as base64."""
    counts = mask.get("counts") if isinstance(mask, dict) else None
    if not isinstance(counts, str):
        return mask
    with suppress(ValueError):
        return {**mask, "counts": base64.b64decode(counts, validate=True).decode("ascii")}
    return mask


def _listed(
    key: str, values: list[Any], where: Where, draft: Draft
) -> Iterator[tuple[Carrier, str, Record, Mapping[Any, str]]]:
    """Yield the images of a list, which is one of them where its records do not name any."""
    first = next((entry for entry in values if isinstance(entry, dict)), {})
    other = replace(_SCRIPTED, objects=()) if frozenset(first).isdisjoint(_SCRIPTED.name) else _SCRIPTED
    carrier = _of_naming(_carrier_of(frozenset(first), files.head(Path(where.path))) or other, first)
    if carrier is CARRIERS["mmpose 0"]:
        values = _by_image(values)
    if values and isinstance(values[0], list) and _of_detectors(values[0]):
        for at, entry in enumerate(values):
            place = replace(where, record=f"[{at}]")
            if not _of_detectors(entry):
                detail = "is not a path, boxes, and a pair of points and scores"
                draft.findings.error("layout", place, detail, fix="Export it again.")
                continue
            name, boxes, (poses, scores) = entry
            rows = [
                {"keypoints": pose, "bbox": box, "score": score}
                for pose, box, score in zip_longest(poses, boxes, scores)
            ]
            image = Record({"found": rows}, place, draft.findings)
            yield _POSED, str(name).replace("\\", "/").rpartition("/")[2], image, {}
    elif values and isinstance(values[0], list):
        pages = [values] if _is_triple(values[0]) else values
        if len(pages) > 1:
            note_positions(len(pages), where.path, draft, _PAGES)
        for at, page in enumerate(pages):
            image = Record(
                {"found": [*map(_of_triple, page if isinstance(page, list) else [page])]}, where, draft.findings
            )
            yield _LISTED, str(at) if len(pages) > 1 else key, image, {}
    elif not carrier.objects:
        yield carrier, key, Record({"": values}, where, draft.findings), {}
    else:
        for outer in Record.list_of(values, where, draft.findings):
            for record in _joined(outer, carrier) if carrier.images else [_with_rows(outer, carrier)]:
                yield carrier, _name(record, carrier, key), record, {}


def _of_naming(carrier: Carrier, record: Mapping[str, Any]) -> Carrier:
    """Return a carrier, or that of scripts where poses name their image each."""
    if "keypoints" not in carrier.keys or _NAMING.isdisjoint(record):
        return carrier
    return _SCRIPTED_POSES if carrier.encoding == "xyxy" else _SCRIPTED


def _of_detectors(entry: Any) -> bool:
    """Whether an entry is an image of PaddleDetection: its path, boxes of people, and their points and scores."""
    return (
        isinstance(entry, list)
        and len(entry) == 3
        and isinstance(entry[0], str | int)
        and isinstance(entry[1], list)
        and isinstance(entry[2], list)
        and [isinstance(part, list) for part in entry[2]] == [True, True]
    )


def _by_image(batches: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the poses of batches of MMPose 0 by image, which each of them names."""
    images: dict[str, dict[str, Any]] = {}
    for batch in batches:
        columns = [_listed_at(batch, name) for name in ("image_paths", "preds", "boxes")]
        for path, pose, box in zip_longest(*columns):
            one = images.setdefault(str(path), {"image_path": path, "preds": [], "boxes": [], "image_paths": []})
            one["preds"].append(pose)
            one["boxes"].append(box)
    return [*images.values()]


def _video_carrier(value: Any) -> Carrier | None:
    """Return the carrier of tracks over the frames of videos; None of anything else."""
    is_list = isinstance(value, list)
    first = next((entry for entry in value if isinstance(entry, dict)), {}) if is_list else value
    carrier = _VIDEOS[is_list]
    return carrier if isinstance(first, dict) and carrier.keys <= first.keys() else None


def _set_categories(document: Any, draft: Draft) -> None:
    """Name the classes of results by those of ground truth, which has their numbers."""
    listed = document.get("categories") if isinstance(document, dict) else None
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    names = {key: str(entry.get("name")) for entry in entries if isinstance(key := entry.get("id"), int)}
    if names:
        draft.set_classes([*names], [*names.values()])


def _adapter(carrier: Carrier) -> Callable[[Record, tuple[float, float]], Record] | None:
    """Return what makes pixels of the objects of a service; None of those that write them."""
    if carrier not in (CARRIERS["encord"], CARRIERS["dataloop"]):
        return None
    from jaccard_eval.formats import _services

    return _services.of_encord if carrier is CARRIERS["encord"] else _services.of_dataloop


def _joined(document: Record, carrier: Carrier) -> Iterator[Record]:
    """Yield the images of a document; where these have keys, each with the objects that name it."""
    images, (name, *_) = document.values.get(carrier.images), carrier.objects
    if not isinstance(images, dict):
        yield from _below(document, carrier.images)
        return
    if name not in document.values:  # each has its own
        for key, image in images.items():
            one = Record.of(image, replace(document.where, record=f"{carrier.images}.{key}"), document.findings)
            labels = one.values.get("labels")
            if isinstance(labels, dict) and labels and all(map(str.isdecimal, labels)):
                one.error("layout", "labels", "are of the frames of a video", "Export its frames as images.")
            yield one
        return
    objects: dict[str, list[Any]] = {}
    listed = document.values.get(name)
    for entry in listed if isinstance(listed, list) else document.record(name).values.values():
        objects.setdefault(str(entry.get("image_id") if isinstance(entry, dict) else None), []).append(entry)
    for key in images:
        given = images[key]
        named = {"file_name": given, "id": key} if isinstance(given, str) else given  # of Animal-Pose
        image = Record.of(named, replace(document.where, record=f"{carrier.images}.{key}"), document.findings)
        yield replace(image, values={**image.values, name: objects.get(key, [])})


def _is_triple(entry: Any) -> bool:
    first = entry[0] if isinstance(entry, list) and entry else None
    return isinstance(first, str) or bool(rings_of(first))


def _of_triple(entry: Any) -> dict[str, Any]:
    """Return corners, a word and a score as an object; the last two may be a list."""
    ring, *rest = entry if isinstance(entry, list) and entry else [None]
    if isinstance(ring, str) and rest:
        rest[0], ring = ring, rest[0]
    text, *score = rest[0] if len(rest) == 1 and isinstance(rest[0], list) and rest[0] else rest or [None]
    return {"polygon": ring, "text": text, "score": next(iter(score), None)}


def _value(values: Mapping[str, Any], paths: Sequence[str]) -> Any:
    """Return what the first of some paths leads to; None where none does."""
    for path in paths:
        found: Any = values
        for key in path.split("."):
            if isinstance(found, list) and key.isdecimal():
                found = dict(enumerate(found)).get(int(key))
            else:
                found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def _name(record: Record, carrier: Carrier, key: str) -> str:
    """Return the name of an image: the last part of what names it, else the name of its file."""
    name = _value(record.values, carrier.name)
    path = str(name or key).replace("\\", "/")
    return path if carrier.keeps_folders or not name else path.rpartition("/")[2]


def _size(record: Record, carrier: Carrier) -> tuple[float, float]:
    sides = [_value(record.values, [path]) for path in carrier.size]
    listed = next((side for side in sides if isinstance(side, list)), None)
    if listed is not None:
        sides = listed[:2][::-1]
    if len(sides) != 2 or not all(is_finite_number(side) and side > 0 for side in sides):
        return UNKNOWN_SIZE
    return float(sides[0]), float(sides[1])


def _objects(record: Record, carrier: Carrier) -> Iterator[Record]:
    bounds = record.values.get("boundary_result")
    if (columns := _columns(record)) is not None:
        yield from replace(record, values={"found": columns}).records("found")
    elif isinstance(bounds, list) and all(isinstance(row, list) and row for row in bounds):
        found = [{"polygon": row[:-1], "score": row[-1]} for row in bounds]
        yield from replace(record, values={"found": found}).records("found")
    elif not carrier.objects:
        yield from Record.list_of(record.values[""], record.where, record.findings)
    else:
        field = next((name for name in carrier.objects if name == "*" or record.has(name.partition(".")[0])), "")
        if field:
            yield from _below(record, field)
        elif carrier in (_SCRIPTED, _SCRIPTED_POSES):
            yield record


def _columns(record: Record) -> list[dict[str, Any]] | None:
    """Return the objects that are columns of an image; None where it has none, or one object."""
    for name, (kind, score) in _COLUMNS.items():
        rows, scores = record.values.get(name), record.values.get(score)
        if score == "cares" and isinstance(rows, list) and isinstance(scores, list) and len(rows) == len(scores):
            return [{kind: row, "ignore": not cared} for row, cared in zip(rows, scores, strict=True)]
        if isinstance(rows, list) and isinstance(scores, list) and len(rows) == len(scores):
            # The points of one pose are lists of numbers, those of several lists of such.
            is_one = (
                kind == "keypoints"
                and rows
                and not (isinstance(rows[0], list) and any(isinstance(point, list) for point in rows[0]))
            )
            if not is_one:
                return [{kind: row, "score": score} for row, score in zip(rows, scores, strict=True)]
    return None


def _parts(given: Any) -> Any:
    """Return the objects of what has the name of an image: a list of them, or pages that have such lists."""
    pages = (
        given if isinstance(given, list) else [given.get("content_ann", given) if isinstance(given, dict) else given]
    )
    if pages and all(isinstance(page, list) and page for page in pages):
        return [*map(_of_row, pages)]
    by_class = pages[0].get("polygons") if len(pages) == 1 and isinstance(pages[0], dict) else None
    if isinstance(by_class, dict):  # of docTR
        return [{"polygon": ring, "label": label} for label in by_class for ring in _listed_at(by_class, label)]
    if any(isinstance(page, dict) and "cares" in page for page in pages):
        return pages
    lists = [page[key] for page in pages if isinstance(page, dict) for key in _PARTS if isinstance(page.get(key), list)]
    if not lists:
        return pages
    # The bounds next to an outline are in an encoding of their own.
    return [
        {**each, "bbox": None} if isinstance(each, dict) else {"polygon": each} for listed in lists for each in listed
    ]


def _of_row(row: list[Any]) -> dict[str, Any]:
    """Return an object that is a list: a word and its corners, points, or corners and perhaps a score and a class."""
    if _is_triple(row):
        return _of_triple(row)
    if isinstance(row[0], list):
        return {"keypoints": row, "keypoint_scores": [point[-1] for point in row if isinstance(point, list) and point]}
    return {"polygon": row[:8], **dict(zip(("score", "label"), row[8:], strict=False))}


def _below(record: Record, path: str) -> list[Record]:
    """Return the objects at a path, through all lists on the way."""
    inner = [record]
    for part in path.split("."):
        inner = [entry for outer in inner for entry in _inside(outer, part)]
    return inner


def _inside(outer: Record, part: str) -> Iterator[Record]:
    """Yield the objects in a field, or in all where it is a star."""
    every = [name for name, value in outer.values.items() if isinstance(value, dict | list)]
    for name in every if part == "*" else [part] if outer.has(part) else []:
        yield from outer.records(name) if isinstance(outer.values[name], list) else [outer.record(name)]


def _label(entry: Record, carrier: Carrier, names: Mapping[Any, str], draft: Draft) -> str | int | None:
    """Return the class of an object; None where nothing names one."""
    number = _value(entry.values, carrier.labels)
    if carrier.labels == _TAGS and isinstance(tags := entry.values.get("tags"), list) and len(tags) > 1:
        fix = "Leave the tag that is compared, or write an object for each."
        entry.error("class-invalid", "tags", f"has {len(tags)} tags; an object has one class", fix)
    if isinstance(number, int) and not isinstance(number, bool) and names:
        if number in names:
            return names[number]
        entry.error("class-index", carrier.labels[0], f"is {number}, but there are {len(names)} classes")
    if number is None or (carrier.one_class and not isinstance(number, str)):
        return None
    return number if isinstance(number, int) else str(number)


def _score(entry: Record, most: float) -> float | None:
    value = _value(entry.values, _SCORES)
    if isinstance(value, list) and value and all(is_finite_number(one) for one in value):  # of points
        value = math.fsum(one / len(value) for one in value)
    return value / most if is_finite_number(value) else None


def _outlined(entry: Record, carrier: Carrier) -> Record:
    """Return an object with the corners that a service writes: a coordinate of zero may be omitted."""
    found = _value(entry.values, (carrier.outline,))
    if isinstance(found, list) and found and all(isinstance(point, dict) for point in found):
        found = [[point.get(side, point.get(side.upper(), 0)) for side in "xy"] for point in found]
    if isinstance(found, list) and len(found) == 2 and all(isinstance(point, list) for point in found):
        return replace(entry, values={**entry.values, "bbox": [*found[0], *found[1]]})
    return replace(entry, values={**entry.values, "bbox": None, "polygon": found})


def _in_pixels(drawn: Drawn, image: str, size: tuple[float, float], entry: Record, draft: Draft) -> Drawn:
    """Return what is drawn in shares of an image in its pixels."""
    sides = np.array([size])
    draft.fill_sizes(sides, [image])
    width, height = sides[0].tolist()
    if not math.isfinite(width):
        fix = Fix.of_side(draft.options.role, "Pass the folder of images with {images}.", images=None)
        entry.error("size-unknown", "", "coordinates are shares of an image whose size is not written", fix)
        return Drawn(kind=drawn.kind)
    return replace(
        drawn,
        box=None
        if drawn.box is None
        else [share * side for share, side in zip(drawn.box, (width, height) * 2, strict=True)],
        rings=[[share * (height if at % 2 else width) for at, share in enumerate(ring)] for ring in drawn.rings],
        points={key: (x * width, y * height, seen) for key, (x, y, seen) in (drawn.points or {}).items()},
    )


def _is_ignored(entry: Record) -> bool:
    """Whether a word cannot be read, or an object is marked as one to ignore."""
    flags = ("ignore", "ignore_flag", "illegibility", "illegible", "iscrowd", "attributes.is_crowd")
    words = (_value(entry.values, (name,)) for name in ("transcription", "text"))
    values = entry.values  # of TextOCR, HierText and COCO-Text
    is_illegible = (values.get("utf8_string"), values.get("legible"), values.get("legibility"))
    return (
        any(
            given == bad and given is not None
            for given, bad in zip(is_illegible, (".", False, "illegible"), strict=True)
        )
        or any(bool(_value(entry.values, (flag,))) for flag in flags)
        or any(isinstance(word, str) and word in _UNREADABLE for word in words)
    )


def _of_role(record: Record, role: str) -> Record:
    """Return a sample of FiftyOne with the objects of one side: of predictions, users choose the name."""
    lists = [key for key, value in record.values.items() if isinstance(value, dict) and "detections" in value]
    own = [key for key in lists if (key == "ground_truth") == (role == "gt")] or lists
    if len(own) > 1:
        detail = f"has several lists of detections: {', '.join(own)}"
        record.error("input-ambiguous", own[0], detail, "Export the one that is meant.")
    found = record.values[own[0]]["detections"] if own else []
    return replace(record, values={**record.values, "found": found})


def _placed_mask(entry: Record, size: tuple[float, float]) -> Record:
    """Return an object with its box in pixels and its mask as runs: FiftyOne's begins at the corner of the box."""
    box, packed = entry.values.get("bounding_box"), entry.values.get("mask")
    if not isinstance(box, list) or len(box) != 4 or not all(map(is_number, box)):
        return entry
    if not all(map(math.isfinite, size)):
        fix = "Export again after dataset.compute_metadata()."
        entry.error("size-unknown", "bounding_box", "is a share of an image whose size is not written", fix)
        return entry
    width, height = map(int, size)
    sides = [share * side for share, side in zip(box, (width, height) * 2, strict=True)]
    values = {**entry.values, "bounding_box": sides, "mask": None}
    if isinstance(packed, dict) and isinstance(packed.get("$binary"), dict):
        packed = packed["$binary"].get("base64")
    if not isinstance(packed, str):
        return replace(entry, values=values)
    from jaccard_eval.reading.labelmaps import EncodedImage  # of use to masks alone

    try:
        # A mask has a byte for each pixel, at most as many as its image.
        data = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), width * height + _HEADER)
        image = EncodedImage((data, entry.where)).decode(by_color=False)
        pixels = image.rows(0, image.shape[0]) != 0
    except (ValueError, zlib.error, DataError):
        fix = "Export it again."
        entry.error("segmentation-invalid", "mask", "is not a NumPy array as zlib and base64 pack it", fix)
        return replace(entry, values=values)
    left, top = (round(side) for side in sides[:2])
    rows, columns = pixels.shape
    if left < 0 or top < 0 or top + rows > height or left + columns > width:
        left, top = max(min(left, width - columns), 0), max(min(top, height - rows), 0)
    if abs(rows - sides[3]) > 1.5 or abs(columns - sides[2]) > 1.5 or rows > height or columns > width:
        detail = f"has {columns} x {rows} pixels, its box {sides[2]:g} x {sides[3]:g}"
        entry.error("segmentation-invalid", "mask", detail, "Export masks of the size of their boxes.")
        return replace(entry, values=values)
    whole = np.zeros((height, width), dtype=np.bool_)
    whole[top : top + rows, left : left + columns] = pixels
    counts = np.diff(np.flatnonzero(np.diff(whole.ravel(order="F").astype(np.int8), prepend=0)), prepend=0).tolist()
    counts.append(height * width - sum(counts))
    return replace(entry, values={**values, "mask": {"size": [height, width], "counts": counts}})


def _named_sides(values: Mapping[str, Any], encoding: str) -> list[float] | None:
    """Return the box of an object that names its sides, in an encoding; None of one that does not."""
    inner = next(
        (
            values[name]
            for name in ("bounding_box", "boundingBox", "bbox", "box", "points")
            if isinstance(values.get(name), dict)
        ),
        values,
    )
    for keys, kind in _SIDES.items():
        if all(is_finite_number(inner.get(key)) for key in keys):
            left, top, *far = (float(inner[key]) for key in keys)
            sign = (encoding == "xyxy") - (kind == "xyxy")
            return [left, top, far[0] + sign * left, far[1] + sign * top]
    return None


def _drawn(entry: Record, encoding: str) -> Drawn:
    """Return what an object draws; Datumaro names the type of each."""
    box = entry.values.get("bbox")
    if isinstance(box, list) and len(box) == 1:  # MMPose
        entry = replace(entry, values={**entry.values, "bbox": box[0]})
    name = next((name for name in ("bbox", "box", "bounding_box") if _four(entry.values.get(name))), "")
    box = entry.numbers(name, 4) if name else _named_sides(entry.values, encoding)
    kind = entry.values.get("type")
    if not isinstance(kind, str) or entry.values.get("label_id", entry.values.get("group")) is None:
        return drawn_by(entry, box=box, kind="object without a shape")
    if kind == "bbox" and box is not None:
        rotation = _value(entry.values, ("attributes.rotation",))
        if is_finite_number(rotation) and rotation % 360:
            ring = turned_corners(box, rotation)
            left, top = min(ring[::2]), min(ring[1::2])
            return Drawn(box=[left, top, max(ring[::2]) - left, max(ring[1::2]) - top], rings=[ring], kind=kind)
        return Drawn(box=box, kind=kind)
    if kind in ("points", "skeleton"):
        parts = list(entry.records("elements")) if entry.has("elements") else [entry]
        placed = [
            (x, y, seen)
            for part in parts
            for x, y, seen in zip(
                *(part.values.get("points", [])[at::2] for at in (0, 1)),
                part.values.get("visibility") or [_LABELLED] * len(part.values.get("points", [])),
                strict=False,
            )
        ]
        keys = [part.values.get("label_id") for part in parts] if entry.has("elements") else range(len(placed))
        return Drawn(box=box, points=dict(zip(keys, placed, strict=False)), kind=kind)
    if kind in ("polygon", "mask"):
        return drawn_by(entry, kind=kind)
    return Drawn(kind=quoted_value(kind).strip("'\""))


def _four(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and not any(isinstance(part, list | dict) for part in value)
