"""Masks, keypoints and oriented boxes are written, and read again as they were: in COCO JSON, YOLO labels and DOTA."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, write_json

from jaccard_eval import DataError, ReadOptions, UsageError, convert, evaluate, load
from jaccard_eval.similarity.obb import Quads

Record = dict[str, Any]
SIZES = {1: (640, 480), 2: (333, 500)}


def scene() -> tuple[Record, list[Record]]:
    """Two images with objects and detections, which have polygons, keypoints and a box each."""
    rng = np.random.default_rng(5)

    def shaped(image: int, noise: float, at: tuple[float, float]) -> Record:
        x, y = (float(value) for value in np.add(at, rng.normal(0, noise, 2)))
        ring = [x, y, x + 60.7, y + 3.3, x + 55.1, y + 71.9, x + 20.25, y + 80, x - 5, y + 40.123]
        pose = [value for k in range(17) for value in (x + 3 * k, y + (7 * k) % 60, 2 if k % 5 else 1)]
        box = [min(ring[::2]), min(ring[1::2]), max(ring[::2]) - min(ring[::2]), max(ring[1::2]) - min(ring[1::2])]
        return {"image_id": image, "category_id": 1 + image % 2, "bbox": box, "segmentation": [ring], "keypoints": pose}

    places = [(image, (float(x), float(y))) for image in SIZES for x in (20, 120, 210) for y in (30, 260)]
    truths = [
        {"id": row, "iscrowd": 0, "area": 3000.5 + row, "num_keypoints": 17, **shaped(image, 0.0, at)}
        for row, (image, at) in enumerate(places, start=1)
    ]
    found = [
        {"score": round(float(rng.random()), 3), **shaped(image, noise, at)} for image, at in places for noise in (2, 9)
    ]
    images = [{"id": key, "file_name": f"{key}.jpg", "width": w, "height": h} for key, (w, h) in SIZES.items()]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    return {"images": images, "annotations": truths, "categories": categories}, found


def oriented(side: Record | list[Record]) -> Any:
    """The same with four corners as boxes, whatever the polygons are."""
    records = side if isinstance(side, list) else side["annotations"]
    made = []
    for record in records:
        x, y, w, h = record["bbox"]
        quad = Quads.rotated(
            np.array([[x + w / 2, y + h / 2, w, h / 2]]), np.array([0.1 * record["image_id"] + w / 99])
        )
        rest = {name: value for name, value in record.items() if name not in ("segmentation", "keypoints", "area")}
        made.append({**rest, "bbox": quad.corners.ravel().tolist()})
    return made if isinstance(side, list) else {**side, "annotations": made}


def numbers(gt: Any, pred: Any, kind: str, **options: Any) -> dict[str, str]:
    result = evaluate(gt, pred, iou_type=kind, **options)
    return {name: str(metric.value) for name, metric in result.metrics.items()}


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize("kind", ["segm", "keypoints", "obb"])
def test_coco_json_holds_every_shape_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    gt, pred = scene() if kind != "obb" else map(oriented, scene())  # type: ignore[assignment]
    files = tmp_path / "gt.json", tmp_path / "pred.json"
    for data, file in zip((gt, pred), files, strict=True):
        convert(data, file, iou_type=kind)
    expected = numbers(gt, pred, kind)
    assert 0.2 < float(expected["AP"]) < 1
    assert numbers(*files, kind) == expected
    again = evaluate(*files, iou_type=kind).signature, evaluate(gt, pred, iou_type=kind).signature
    assert again[0] == again[1]  # with the fingerprints of all shapes


def test_runs_are_written_as_strings_and_counted_areas_as_pixels(tmp_path: Path) -> None:
    # Masks of 2 x 3 pixels by listed runs, without areas; column by column: 2 pixels, then one.
    rle = {"size": [2, 3], "counts": [1, 3, 2]}
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 3, "height": 2}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "bbox": [0, 0, 2, 2], "segmentation": rle}
        ],
    }
    convert(truth, tmp_path / "gt.json")
    (record,) = json.loads((tmp_path / "gt.json").read_text())["annotations"]
    # pycocotools writes each count as its number plus 48 here, the last as a difference to the first: 1, 3, 2.
    assert record["segmentation"] == {"size": [2, 3], "counts": "132"}
    assert record["area"] == 3.0


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize("kind", ["segm", "keypoints", "obb"])
def test_yolo_labels_hold_polygons_poses_and_corners(kind: str, tmp_path: Path) -> None:
    gt, pred = scene() if kind != "obb" else map(oriented, scene())  # type: ignore[assignment]
    # What labels have no room for: areas. Predictions are those of their boxes, or of pixels.
    for record in gt["annotations"]:
        w, h = record["bbox"][2:4]
        record.pop("area", None)
        if kind == "keypoints":
            record["area"] = w * h
    for record in pred:
        if kind == "segm":
            del record["bbox"]
    convert(gt, tmp_path / "labels", to="yolo", iou_type=kind)
    convert(pred, tmp_path / "found", to="yolo", iou_type=kind, gt=gt)
    images = {f"{side}_options": ReadOptions(images=_images(tmp_path)) for side in ("gt", "pred")}
    expected = numbers(gt, pred, kind)
    assert 0.2 < float(expected["AP"]) < 1
    found = numbers(tmp_path / "labels", tmp_path / "found", kind, **images)
    assert {name: pytest.approx(float(value), abs=1e-9, nan_ok=True) for name, value in expected.items()} == {
        name: float(value) for name, value in found.items()
    }
    # And back: corners are multiplied to what they were, to the last bit where they are fractions of such.
    convert(tmp_path / "labels", tmp_path / "back.json", iou_type=kind, options=images["gt_options"])
    field = {"segm": "segmentation", "keypoints": "keypoints", "obb": "bbox"}[kind]
    sides = gt["annotations"], json.loads((tmp_path / "back.json").read_text())["annotations"]
    for truth, back in zip(
        *(sorted(side, key=lambda record: (record["image_id"], record["id"])) for side in sides), strict=True
    ):
        assert np.ravel(back[field]) == pytest.approx(np.ravel(truth[field]), rel=1e-15, abs=1e-13)


def _images(folder: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    place = folder / "images"
    place.mkdir(exist_ok=True)
    for key, size in SIZES.items():
        image.new("L", size).save(place / f"{key}.jpg")
    return place


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_dota_holds_corners_to_the_last_bit(tmp_path: Path) -> None:
    gt, pred = map(oriented, scene())
    convert(gt, tmp_path / "labelTxt", to="dota", iou_type="obb")
    convert(pred, tmp_path / "results", to="dota", iou_type="obb", gt=gt)
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == ["Task1_cat.txt", "Task1_dog.txt"]
    expected = numbers(gt, pred, "obb", protocol="dota")
    assert numbers(tmp_path / "labelTxt", tmp_path / "results", "obb", protocol="dota") == expected
    # Upright boxes are written by their corners.
    boxes, _ = scene()
    convert(boxes, tmp_path / "upright", to="dota", lossy=True, iou_type="bbox")
    assert load(tmp_path / "upright").boxes.xywh == pytest.approx(load(boxes).boxes.xywh)
    boxes["categories"][0]["name"] = "large vehicle"
    with pytest.raises(DataError, match="'large vehicle' cannot stand in a line of DOTA"):
        convert(boxes, tmp_path / "blank", to="dota", lossy=True)


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning", "ignore:__array__ implementation")
@pytest.mark.parametrize("seed", range(8))
def test_masks_of_parts_and_holes_are_written_to_yolo_to_the_last_pixel(seed: int, tmp_path: Path) -> None:
    coder = pytest.importorskip("pycocotools.mask")
    rng, (width, height) = np.random.default_rng(seed), (57, 43)
    masks = [np.kron(rng.random((h, w)) < share, np.ones((3, 2))) > 0 for h, w, share in ((9, 20, 0.5), (14, 28, 0.8))]
    padded = [np.zeros((height, width), dtype=np.uint8, order="F") for _ in masks]
    for mask, place in zip(masks, padded, strict=True):
        place[: mask.shape[0], -mask.shape[1] :] = mask
    # Two polygons that share pixels, and two that do not: their union counts, and a line around both would lack it.
    overlapping = [[2.0, 2.0, 30.5, 2.0, 30.5, 20.25, 2.0, 20.25], [20.0, 10.0, 50.0, 10.0, 50.0, 40.0, 20.0, 40.0]]
    apart = [[2.0, 2.0, 10.5, 2.0, 10.5, 20.25, 2.0, 20.25], [20.0, 10.0, 50.0, 10.0, 45.0, 40.0]]
    rles = [coder.encode(mask) for mask in padded]
    found = [{**rle, "counts": rle["counts"].decode()} for rle in rles] + [overlapping, apart]
    records = [
        {"id": row, "image_id": 1, "category_id": 1, "iscrowd": 0, "segmentation": shape}
        for row, shape in enumerate(found, start=1)
    ]
    image = {"id": 1, "file_name": "a.jpg", "width": width, "height": height}
    gt = {"images": [image], "categories": [{"id": 1, "name": "dog"}], "annotations": records}
    convert(gt, tmp_path / "labels", to="yolo", iou_type="segm")
    lines = (tmp_path / "labels/a.txt").read_text().splitlines()
    whole = coder.merge([*coder.frPyObjects(overlapping, height, width)])
    expected = [*rles, whole, coder.merge(coder.frPyObjects(apart, height, width))]
    for line, rle in zip(lines, expected, strict=True):
        corners = np.array(line.split()[1:], dtype=np.float64).reshape(-1, 2) * (width, height)
        (filled,) = coder.frPyObjects([corners.ravel().tolist()], height, width)
        assert (coder.decode(filled) == coder.decode(rle)).all()
    assert len(lines[3].split()) == 1 + 2 * (4 + 3 + 2)  # the corners as they were, and a bridge


def test_what_a_format_cannot_hold_stops_or_is_a_warning_with_the_option(tmp_path: Path) -> None:
    gt, _ = scene()
    file = write_json(tmp_path / "gt.json", gt)
    done = run_here("convert", file, str(tmp_path / "boxes"), "--to", "yolo", "--lossy")
    assert done.returncode == 0
    assert (
        "masks, keypoints and oriented boxes of" in done.stderr
        and "To write them, pass --iou-type segm or --iou-type keypoints" in done.stderr
    )
    with pytest.raises(UsageError, match="format csv cannot hold masks"):
        convert(file, tmp_path / "gt.csv", iou_type="segm")
    gt["annotations"][1]["segmentation"] = {"size": [480, 640], "counts": [640 * 480]}  # no pixel at all
    with pytest.raises(DataError, match="masks without an outline: 1 of 12") as refused:
        convert(gt, tmp_path / "polygons", to="yolo", iou_type="segm", lossy=True)
    assert [finding.code for finding in refused.value.findings if finding.severity == "error"] == ["write-loss"]
    gt["annotations"][1]["segmentation"] = {"size": [48, 64], "counts": [0, 64 * 48]}
    with pytest.raises(DataError, match="mask-size"):
        convert(gt, tmp_path / "polygons", to="yolo", iou_type="segm", lossy=True)
    del gt["annotations"][1]
    assert not {finding.code for finding in convert(gt, tmp_path / "out.csv", iou_type="bbox", lossy=True).findings} & {
        "write-shapes"
    }
