"""GeoJSON, cTDaR and OpenPose: outlines and poses whose right values are worked out by hand, or those of COCO JSON."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import write_json
from shaped import measured

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

Corners = tuple[float, float, float, float]


def ring(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    return [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]


def feature(corners: Corners, *, hole: Corners | None = None, **properties: Any) -> dict[str, Any]:
    rings = [ring(*corners), *([] if hole is None else [ring(*hole)])]
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Polygon", "coordinates": rings}}


def collection(path: Path, features: list[dict[str, Any]], **more: Any) -> Path:
    return write_json(path, {"type": "FeatureCollection", "features": features, **more})


def test_features_that_name_their_images_are_masks_of_any_size(tmp_path: Path) -> None:
    gt = [
        feature((10, 10, 30, 30), image="a.tif", label="roof"),
        feature((40, 10, 60, 35), image="b.tif", label="roof"),
    ]
    pred = [feature((12, 10, 30, 30), image="a.tif", label="roof", score=0.9)]
    pred.append(feature((40, 10, 60, 20), image="b.tif", label="roof", score=0.8))
    paths = collection(tmp_path / "gt.geojson", gt), collection(tmp_path / "pred.geojson", pred)
    assert detect_format(paths[0]) == "geojson"
    result = evaluate(*paths)
    # IoU .9 and .4: one of two objects is found, by the first of two predictions, at 9 of 10 thresholds.
    assert result.metrics["AP50"].value == pytest.approx(51 / 101)
    assert result.metrics["AP"].value == pytest.approx(0.9 * 51 / 101)


def test_a_file_for_each_image_is_read_and_those_of_qupath_have_classes(tmp_path: Path) -> None:
    for role, left, more in (("gt", 10, {}), ("pred", 12, {"score": 0.5})):
        (tmp_path / role).mkdir()
        cell = feature((left, 10, 30, 30), classification={"name": "Tumor"}, objectType="annotation", **more)
        write_json(tmp_path / role / "a.geojson", [cell])
        collection(tmp_path / role / "b.geojson", [])
    result = evaluate(tmp_path / "gt", tmp_path / "pred")
    assert result.metrics["AP"].value == pytest.approx(0.9)
    side = load(tmp_path / "gt", options=ReadOptions(iou_type="segm"))
    assert (side.images.keys, side.labels.keys) == (("a", "b"), ("Tumor",))
    alone = evaluate(tmp_path / "gt/a.geojson", (tmp_path / "pred/a.geojson").rename(tmp_path / "other.geojson"))
    assert alone.metrics["AP"].value == pytest.approx(0.9)


def test_holes_have_no_pixels(tmp_path: Path) -> None:
    path = collection(tmp_path / "a.geojson", [feature((0, 0, 40, 30), hole=(10, 10, 20, 20))])
    shapes: Any = load(path, options=ReadOptions(iou_type="segm")).boxes.shapes
    assert shapes.in_images(np.array([[50, 50]])).areas().tolist() == [40 * 30 - 10 * 10]


def test_boxes_of_xview_are_in_pixels_and_its_places_are_not_read(tmp_path: Path) -> None:
    box = feature((-90.5, 32.1, -90.4, 32.2), bounds_imcoords="10,20,30,60", image_id="1.tif", type_id=73)
    path = collection(tmp_path / "xView_train.geojson", [box], crs={"properties": {"name": "CRS84"}})
    side = load(path)
    assert side.boxes.xywh.tolist() == [[10, 20, 20, 40]]
    assert (side.images.keys, side.labels.keys) == (("1.tif",), (73,))


def named(system: str) -> dict[str, Any]:
    return {"crs": {"type": "name", "properties": {"name": system}}}


@pytest.mark.parametrize(
    ("features", "more", "words"),
    [
        (
            [feature((5e5, 4e6, 5e5 + 30, 4e6 + 20))],
            {"crs": {"properties": {"name": "EPSG:32618"}}},
            "metres on a map of 'EPSG:32618', not pixels",
        ),
        (
            [feature((2, 3, 9, 10))],
            {"crs": {"properties": {"name": "EPSG:4326"}}},
            "degrees of 'EPSG:4326', not pixels",
        ),
        ([feature((-90.52, 32.1, -90.51, 32.11))], {}, "coordinates are degrees, not pixels: the first object begins"),
    ],
)
def test_places_on_the_earth_are_refused(
    features: list[dict[str, Any]], more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="geo-coordinates") as caught:
        load(collection(tmp_path / "a.geojson", features, **more))
    assert words in str(caught.value)


def test_a_reference_system_that_was_left_behind_is_none(tmp_path: Path) -> None:
    system = {"properties": {"name": "urn:ogc:def:crs:EPSG::32616"}}
    assert len(load(collection(tmp_path / "a.geojson", [feature((10, 10, 400, 300))], crs=system)).boxes) == 1


def test_other_geometries_are_counted_and_broken_ones_refused(tmp_path: Path) -> None:
    point = {"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}
    path = collection(tmp_path / "a.geojson", [feature((0, 0, 9, 9)), point])
    assert load(path).ignored == {"shape": 1}
    broken = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[["x", 2]]]}}
    with pytest.raises(DataError, match="segmentation-invalid"):
        load(collection(tmp_path / "a.geojson", [broken]))


def test_tables_of_ctdar_are_boxes_and_outlines(tmp_path: Path) -> None:
    for role, left in (("gt", 10), ("pred", 12)):
        (tmp_path / role).mkdir()
        points = f'<Coords points="{left},20 {left},220 30,220 30,20"/>'
        tables = f'<table id="1">{points}<cell><Coords points="1,2"/></cell></table>'
        (tmp_path / role / "a.xml").write_text(f'<document filename="a.jpg">{tables}</document>')
        (tmp_path / role / "b.xml").write_text('<document filename="b.jpg"></document>')
    assert detect_format(tmp_path / "gt") == "shapexml"
    for kind in ("bbox", "segm"):
        options = ReadOptions(assume_score=1.0, images=None)
        if kind == "segm":
            result = evaluate(tmp_path / "gt", tmp_path / "pred", iou_type=kind, pred_options=options)
        else:
            result = evaluate(tmp_path / "gt", tmp_path / "pred", pred_options=options)
        assert result.metrics["AP"].value == pytest.approx(0.9)  # IoU 18 / 20
    (tmp_path / "gt/c.xml").write_text('<document><table><Coords points="1,2 3"/></table></document>')
    with pytest.raises(DataError, match="expected 3 corners x,y or more"):
        load(tmp_path / "gt")


BODY_25 = (0, 16, 15, 18, 17, 5, 2, 6, 3, 7, 4, 12, 9, 13, 10, 14, 11)  # of COCO's points


def test_poses_of_openpose_are_those_of_coco(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    names = [f"clip_{number:012d}" for number in range(3)]
    truth, results = [], []
    (tmp_path / "pred").mkdir()
    for number, name in enumerate(names, start=1):
        points = rng.uniform(20, 200, (25, 2)).round(2)
        seen = rng.uniform(0.2, 1, 25).round(2)
        seen[BODY_25[3]] = 0
        found = np.column_stack((points + rng.normal(0, 3, points.shape).round(2), seen))
        people = [{"person_id": [-1], "pose_keypoints_2d": found.ravel().tolist(), "face_keypoints_2d": []}]
        write_json(tmp_path / "pred" / f"{name}_keypoints.json", {"version": 1.3, "people": people})
        pose = np.column_stack((points, np.full(25, 2)))[list(BODY_25)].ravel().tolist()
        truth.append(
            {"id": number, "image_id": number, "category_id": 1, "keypoints": pose, "area": 9000, "iscrowd": 0}
        )
        truth[-1] |= {"bbox": [20, 20, 180, 180], "num_keypoints": 17}
        ours = found[list(BODY_25)]
        score = ours[ours[:, 2] > 0, 2].mean()
        results.append({"image_id": number, "category_id": 1, "keypoints": ours.ravel().tolist(), "score": score})
    images = [
        {"id": at, "file_name": f"{name}.jpg", "width": 640, "height": 480} for at, name in enumerate(names, start=1)
    ]
    categories = [{"id": 1, "name": "person"}]
    gt = write_json(tmp_path / "gt.json", {"images": images, "annotations": truth, "categories": categories})
    pred = write_json(tmp_path / "results.json", results)
    assert detect_format(tmp_path / "pred") == "openpose"
    found_here = evaluate(gt, tmp_path / "pred", iou_type="keypoints")
    assert measured(found_here) == measured(evaluate(gt, pred, iou_type="keypoints"))
    assert 0 < found_here.metrics["AP"].value < 1


def test_poses_of_another_number_of_points_are_refused(tmp_path: Path) -> None:
    people = [{"pose_keypoints_2d": [1, 2, 0.5] * 15}]
    (tmp_path / "a_keypoints.json").write_text(json.dumps({"version": 1.1, "people": people}))
    with pytest.raises(DataError, match="expected x, y and confidence of 25 points"):
        load(tmp_path)


@pytest.mark.parametrize("layout", ["mmpose", "demo", "openpifpaf"])
def test_poses_of_programs_that_write_a_file_for_each_image_give_the_numbers_of_coco_json(
    layout: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    images = [{"id": n, "file_name": f"{n:04}.jpg", "width": 640, "height": 480} for n in (3, 7, 12)]
    truth, found = [], []
    (tmp_path / "pred").mkdir()
    for image in images:
        own: list[dict[str, Any]] = []
        for _ in range(3):
            points = np.column_stack((rng.uniform(50, 400, (4, 2)), np.full(4, 2)))
            left, top = points[:, :2].min(axis=0)
            width, height = points[:, :2].max(axis=0) - (left, top)
            record = {"image_id": image["id"], "category_id": 1, "bbox": [left, top, width, height]}
            truth.append(
                {**record, "id": len(truth) + 1, "keypoints": points.ravel().tolist(), "num_keypoints": 4, "iscrowd": 0}
                | {"area": width * height}
            )
            moved, score = points[:, :2] + rng.normal(0, 12, (4, 2)), float(rng.uniform())
            flat = np.column_stack((moved, np.full(4, 0.5))).ravel().tolist()
            found.append({**record, "keypoints": flat, "score": score})
            pose = {
                "keypoints": moved.tolist(),
                "keypoint_scores": [0.5] * 4,
                "bbox": [[left, top, left + width, top + height]],
                "bbox_score": score,
            }
            if layout == "openpifpaf":
                pose = {"keypoints": flat, "bbox": record["bbox"], "score": score, "category_id": 1}
            own.append(pose)
        name = f"{image['file_name']}.predictions.json" if layout == "openpifpaf" else f"{image['id']:04}.json"
        document = {"meta_info": {"dataset_name": "coco"}, "instance_info": own} if layout == "demo" else own
        (tmp_path / "pred" / name).write_text(json.dumps(document))
    gt = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    (tmp_path / "found.json").write_text(json.dumps(found))
    for rules in ({"iou_type": "keypoints", "sigmas": [0.08]}, {"iou_type": "bbox"}):
        expected = evaluate(tmp_path / "gt.json", tmp_path / "found.json", **rules)  # type: ignore[arg-type]
        result = evaluate(tmp_path / "gt.json", tmp_path / "pred", **rules)  # type: ignore[arg-type]
        assert result["AP"] == pytest.approx(expected["AP"], abs=1e-12)
        assert result["AP"] > 0.2
