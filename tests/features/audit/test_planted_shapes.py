"""Mistakes about keypoints and angles, planted into good data: what is said, and that the flag restores the true AP."""

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json
from planting import suggested_flags

# COCO's points: nose, then left and right by turns.
LEFT_RIGHT = [0] + [point + 1 if point % 2 else point - 1 for point in range(1, 17)]
WIDTH = 640
CODES = ("keypoints-order", "keypoints-mirrored", "angle-convention")

Record = dict[str, Any]


def poses(folder: Path, shared_data: Path) -> tuple[Record, list[Record]]:
    """People of a real set, each once more a few pixels off."""
    gt = json.loads((shared_data / "mmpose/tests/data/coco/test_coco.json").read_text())
    return gt, json.loads((shared_data / "mmpose/derived_keypoint_dets.json").read_text())


def evaluated(folder: Path, gt: Any, pred: Any, *flags: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the metrics, and the messages of the planted codes."""
    files = write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)
    done = run_here(*files, *flags, "-o", "result.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^warning\[(.+?)\]: (.*)$", done.stderr, re.MULTILINE))
    result = json.loads((folder / "result.json").read_text())
    return result["metrics"], {code: text for code, text in found.items() if code in CODES}


def exchanged(record: Record, image: Record) -> Record:
    points = record["keypoints"]
    return {**record, "keypoints": [value for at in LEFT_RIGHT for value in points[3 * at : 3 * at + 3]]}


def mirrored(record: Record, image: Record) -> Record:
    points = [image["width"] - value if at % 3 == 0 else value for at, value in enumerate(record["keypoints"])]
    return {"keypoints": points, **{name: record[name] for name in ("image_id", "category_id", "score")}}


def both(record: Record, image: Record) -> Record:
    return exchanged(mirrored(record, image), image)


@pytest.mark.parametrize(
    ("plant", "code", "evidence", "flags"),
    [
        (exchanged, "keypoints-order", "with left and right exchanged", ["--pred-keypoint-order"]),
        (mirrored, "keypoints-mirrored", "with x from the other side", ["--pred-resized"]),
        (
            both,
            "keypoints-mirrored",
            "with x from the other side and left and right exchanged",
            ["--pred-resized", "--pred-keypoint-order"],
        ),
    ],
)
def test_flipped_keypoints_are_named_with_the_flags_that_restore_them(
    plant: Callable[[Record, Record], Record],
    code: str,
    evidence: str,
    flags: list[str],
    shared_data: Path,
    tmp_path: Path,
) -> None:
    gt, pred = poses(tmp_path, shared_data)
    images = {image["id"]: image for image in gt["images"]}
    true, said = evaluated(tmp_path, gt, pred, "--iou-type", "keypoints")
    assert said == {}
    wrong = [plant(record, images[record["image_id"]]) for record in pred]
    metrics, said = evaluated(tmp_path, gt, wrong, "--iou-type", "keypoints")
    assert metrics["AP50"] < 0.5 * true["AP50"]
    assert [*said] == [code]
    assert f"AP50 {metrics['AP50']:.3f} as given, {true['AP50']:.3f} {evidence}. " in said[code]
    advice = suggested_flags(said[code])
    assert [*filter(lambda flag: flag.startswith("--"), advice)] == flags
    fixed, said = evaluated(tmp_path, gt, wrong, "--iou-type", "keypoints", *advice)
    assert (fixed["AP"], said) == (pytest.approx(true["AP"], abs=1e-9), {})


def test_an_order_names_each_point_once(shared_data: Path, tmp_path: Path) -> None:
    gt, pred = poses(tmp_path, shared_data)
    files = write_json(tmp_path / "gt.json", gt), write_json(tmp_path / "pred.json", pred)
    refused = run_here(*files, "--iou-type", "keypoints", "--pred-keypoint-order", "0,2,2")
    assert refused.returncode == 2
    assert "--pred-keypoint-order 0,2,2: poses have 17 keypoints. Name each of 0 to 16 once." in refused.stderr


# Oriented boxes: centre, sizes, angle as COCO JSON has them.


def sizes(rng: random.Random) -> tuple[float, float]:
    return rng.uniform(60, 90), rng.uniform(12, 25)


def scene() -> tuple[Record, list[Record]]:
    rng = random.Random(3)
    objects = [
        (
            image,
            [100 + 120 * (at % 4), 80 + 90 * (at // 4), *sizes(rng), rng.uniform(-80, 80)],
        )
        for image in range(1, 9)
        for at in range(8)
    ]
    images = [{"id": image, "file_name": f"{image}.jpg", "width": WIDTH, "height": 480} for image in range(1, 9)]
    truths = [
        {"id": row, "image_id": image, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for row, (image, box) in enumerate(objects, start=1)
    ]
    found = [
        {"image_id": image, "category_id": 1, "score": rng.random(), "bbox": [value + rng.gauss(0, 1) for value in box]}
        for image, box in objects
    ]
    return {"images": images, "annotations": truths, "categories": [{"id": 1, "name": "ship"}]}, found


def corners(record: Record, sign: int) -> Record:
    x, y, w, h, degrees = record["bbox"]
    angle = math.radians(sign * degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    ends = [(-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2)]
    return {**record, "bbox": [value for a, b in ends for value in (x + a * cos - b * sin, y + a * sin + b * cos)]}


def changed(record: Record, change: Callable[[list[float]], list[float]]) -> Record:
    return {**record, "bbox": change(record["bbox"])}


@pytest.mark.parametrize(
    ("change", "given", "right"),
    [
        (lambda box: [*box[:4], -box[4]], [], "deg-cw"),
        (lambda box: [*box[:4], math.radians(box[4])], ["--pred-angle", "deg-ccw"], "rad-ccw"),
        (lambda box: [*box[:4], -math.radians(box[4])], ["--pred-angle", "rad-ccw"], "rad-cw"),
    ],
)
def test_a_wrong_convention_of_angles_is_named_with_the_option_for_it(
    change: Callable[[list[float]], list[float]], given: list[str], right: str, tmp_path: Path
) -> None:
    gt, pred = scene()
    angles = ("--iou-type", "obb", "--gt-angle", "deg-ccw")
    true, said = evaluated(tmp_path, gt, pred, *angles)
    assert (said, true["AP50"] > 0.9) == ({}, True)
    wrong = [changed(record, change) for record in pred]
    metrics, said = evaluated(tmp_path, gt, wrong, *angles, *given)
    assert metrics["AP50"] < 0.5
    (message,) = said.values()
    assert f"AP50 {metrics['AP50']:.3f} as given, {true['AP50']:.3f} as " in message
    assert suggested_flags(message) == ["--pred-angle", right]
    fixed, said = evaluated(tmp_path, gt, wrong, *angles, *suggested_flags(message))
    assert (fixed["AP"], said) == (pytest.approx(true["AP"], abs=1e-9), {})


def test_angles_of_both_sides_that_nobody_named_are_named_where_the_other_direction_fits_better(tmp_path: Path) -> None:
    # A detector errs along its boxes, by an eighth of their length: an IoU of 7 / 9 in the right direction.
    gt, pred = scene()

    def along(record: Record) -> Record:
        x, y, w, h, degrees = record["bbox"]
        angle = math.radians(degrees)  # clockwise
        return {**record, "bbox": [x + w / 8 * math.cos(angle), y + w / 8 * math.sin(angle), w, h, degrees]}

    boxes = {record["image_id"]: [] for record in gt["annotations"]}  # type: dict[int, list[list[float]]]
    for record in gt["annotations"]:
        boxes[record["image_id"]].append(record["bbox"])
    found = [along({**record, "bbox": boxes[record["image_id"]].pop(0)}) for record in pred]
    metrics, said = evaluated(tmp_path, gt, found, "--iou-type", "obb")
    message = said["angle-convention"]
    flags = suggested_flags(message)
    assert flags == ["--gt-angle", "deg-cw", "--pred-angle", "deg-cw"]
    right, said = evaluated(tmp_path, gt, found, "--iou-type", "obb", *flags)
    assert (right["AP50"] > metrics["AP50"], said) == (True, {})
    # Where the direction that is assumed is right, nothing is said.
    mirrored = [changed(record, lambda box: [*box[:4], -box[4]]) for record in found]
    for record in gt["annotations"]:
        record["bbox"][4] *= -1
    assert evaluated(tmp_path, gt, mirrored, "--iou-type", "obb")[1] == {}


def test_corners_of_negated_angles_and_exchanged_sides_are_named(tmp_path: Path) -> None:
    gt, pred = scene()
    true, said = evaluated(tmp_path, gt, [corners(record, -1) for record in pred], "--iou-type", "obb")
    assert said == {}  # corners next to angles counter-clockwise
    _, said = evaluated(
        tmp_path, gt, [corners(record, 1) for record in pred], "--iou-type", "obb", "--gt-angle", "deg-ccw"
    )
    assert "Negate the angles that the corners are computed from" in said["angle-convention"]
    swapped = [changed(record, lambda box: [*box[:2], box[3], box[2], box[4]]) for record in pred]
    metrics, said = evaluated(tmp_path, gt, swapped, "--iou-type", "obb")
    evidence = f"AP50 {metrics['AP50']:.3f} as given, {true['AP50']:.3f} with width and height exchanged"
    assert evidence in said["angle-convention"]


@pytest.mark.parametrize("side", ["gt", "pred"])
def test_centres_by_row_and_column_stop_the_run_where_they_leave_their_images(side: str, tmp_path: Path) -> None:
    # As in MVTec's screws: of four centres in an image of 64 x 48, three have a column beyond its height.
    def boxes(is_exchanged: bool) -> list[list[float]]:
        centres = [(60.0, 10.0), (55.0, 20.0), (50.0, 30.0), (20.0, 40.0)]
        return [[*(centre[::-1] if is_exchanged else centre), 8.0, 4.0, 0.5] for centre in centres]

    def records(is_exchanged: bool, **fields: float) -> list[Record]:
        return [{"image_id": 1, "category_id": 1, "bbox": box, **fields} for box in boxes(is_exchanged)]

    objects = [{"id": at, **record} for at, record in enumerate(records(side == "gt"), start=1)]
    gt = {
        "images": [{"id": 1, "file_name": "a.png", "width": 64, "height": 48}],
        "categories": [{"id": 1, "name": "screw"}],
        "annotations": objects,
    }
    files = write_json(tmp_path / "gt.json", gt), write_json(tmp_path / "pred.json", records(side == "pred", score=0.5))
    angles = ("--gt-angle", "rad-ccw", "--pred-angle", "rad-ccw")
    done = run_here(*files, *angles, cwd=tmp_path)
    expected = (
        "box: 3 of 4 centres lie outside of their images as x, y, and none as y, x. Exchange the first two numbers"
    )
    assert (done.returncode, f"{files[side == 'pred'].name}: {expected}" in done.stderr) == (3, True), done.stderr
    allowed = run_here(*files, *angles, "--allow", "box-axes", cwd=tmp_path)
    assert (allowed.returncode, "warning[box-axes]" in allowed.stderr) == (0, True)
