"""OpenPose: a JSON file for each image with the poses of its people, ``*_keypoints.json``.

Of BODY_25 and the 18 points of its COCO model the 17 of COCO are read, in COCO's order. The score of a pose is the mean
of the confidences of the points that were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.reading.records import Record, document_records
from jaccard_eval.text import pluralise

FORMAT = Format(
    name="openpose",
    summary="OpenPose JSON: a file per image with the poses of its people, BODY_25 or COCO",
    source="https://github.com/CMU-Perceptual-Computing-Lab/openpose/blob/master/doc/02_output.md",
    example='{"version": 1.3, "people": [{"pose_keypoints_2d": ['
    + ", ".join(f"{20 + 3 * at}, {30 + 5 * at}, 0.9" for at in range(25))
    + "]}]}\n",
    carries=("images", "scores"),
    suffixes=(".json",),
    member=".json",
    reads={"bbox": "bounds of the points", "keypoints": "pose_keypoints_2d"},
)

_ENDING, _CLASS = "_keypoints", "person"
# What people and their points are called, by OpenPose and by AlphaPose in the form of CMU-Pose.
_NAMES = {"people": "pose_keypoints_2d", "bodies": "joints"}
_PARTS = ("hand_left_keypoints_2d", "hand_right_keypoints_2d", "face_keypoints_2d")
# AlphaPose's file of all images, by their names.
_BY_NAME = pattern(rb'\{\s*"[^"]+"\s*:\s*\{\s*"version"\s*:\s*"AlphaPose')
# The places of COCO's points, from the nose to the ankles and left before right, by how many points a pose has.
_OF_COCO = {
    25: (0, 16, 15, 18, 17, 5, 2, 6, 3, 7, 4, 12, 9, 13, 10, 14, 11),
    18: (0, 15, 14, 17, 16, 5, 2, 6, 3, 7, 4, 11, 8, 12, 9, 13, 10),
    17: tuple(range(17)),
}


def looks_like(peek: Peek) -> Likeness | None:
    """Rate documents by their keys."""
    return peek.rate_documents(_rate)


def _rate(document: Peek) -> Likeness | None:
    is_one = "version" in document.top_keys and not document.top_keys.isdisjoint(_NAMES)
    return Likeness.NAMED if is_one or _BY_NAME.match(document.head.lstrip()) else None


def iou_types(_: Peek) -> set[str]:
    """Return what there is: boxes around poses are compared only where they are asked for."""
    return {"keypoints"}


def _documents(path: Path, draft: Draft) -> Iterator[tuple[str, Record]]:
    for stem, document in document_records(path, draft):
        if document.values.keys().isdisjoint(("version", *_NAMES)):
            for image in document.values:
                yield image, document.record(image)
        else:
            yield stem.removesuffix(_ENDING), document


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and poses of files to the draft."""
    from jaccard_eval.similarity.keypoints import Keypoints

    images: list[str] = []
    owners: list[str] = []
    places: list[Where] = []
    poses: list[list[float]] = []
    n_parts = 0
    for image, document in _documents(path, draft):
        images.append(image)
        people = "bodies" if document.has("bodies") else "people"
        name = _NAMES[people]
        for person in document.records(people):
            values = [person.finite(f"{name}[{at}]", value) for at, value in enumerate(person.array(name))]
            if not any(values):
                n_parts += any(person.has(part) and any(person.array(part)) for part in _PARTS)
                continue  # faces and hands of somebody whose body was not found
            if len(values) // 3 not in _OF_COCO or len(values) % 3:
                detail = f"has {len(values)} numbers; expected x, y and confidence of 25 points (BODY_25), 18 or 17"
                person.error("keypoints-invalid", name, detail, "Export BODY_25 or COCO poses.")
                continue
            rows = np.array(values).reshape(-1, 3)
            poses.append(rows[list(_OF_COCO[len(rows)])].ravel().tolist())
            owners.append(image)
            places.append(person.where)
    if n_parts:
        detail = f"{pluralise(n_parts, 'person has', 'persons have')} points of hands or a face alone: ignored"
        fix = "Write hands as COCO JSON to compare them."
        # Where there is nothing else, nothing found would be a value.
        severity = Severity.WARNING if poses else Severity.ERROR
        draft.findings.add_one(severity, "shape-unused", Where(draft.path), detail, fix=fix)
    draft.findings.raise_errors()
    points = np.array(poses, dtype=np.float64).reshape(-1, 17, 3)
    is_found = points[:, :, 2] > 0
    unseen = ~is_found.any(axis=1)
    draft.findings.add_rows(
        Severity.WARNING,
        "keypoints-invalid",
        np.flatnonzero(unseen),
        lambda row: (places[row], "none of COCO's 17 points is found: ignored"),
    )
    kept = np.flatnonzero(~unseen)
    points, is_found = points[kept], is_found[kept]
    first, last = (np.where(is_found[:, :, None], points[:, :, :2], fill) for fill in (np.inf, -np.inf))
    coords = np.concatenate((first.min(axis=1), last.max(axis=1)), axis=1) if len(kept) else np.zeros((0, 4))
    draft.set_images(images)
    draft.set_classes([_CLASS], [_CLASS])
    is_gt = options.role == "gt"
    if is_gt:
        points[:, :, 2] = np.where(is_found, 2, 0)
        detail = f"area is missing in {len(kept):,} poses: OKS measures distances by that of the box around the points"
        if len(kept) and options.iou_type == "keypoints":
            draft.findings.warning("area-missing", Where(draft.path), detail)
    else:
        draft.details.append("scores are means of the confidences of points")
    score = (points[:, :, 2] * is_found).sum(axis=1) / is_found.sum(axis=1)
    draft.add_boxes(
        RawBoxes(
            image=[owners[row] for row in kept.tolist()],
            label=[_CLASS] * len(kept),
            coords=coords,
            encoding="xyxy",
            units="px",
            place=lambda row: places[int(kept[row])],
            score=None if is_gt or options.assume_score is not None else score,
            shapes=Keypoints(points) if options.iou_type == "keypoints" else None,
        )
    )
