"""One scene of turned objects in every carrier of shapes: what a record holds decides what is compared.

Objects of 100 by 50 px at some angle are found 10 px further along their length: IoU 90 / 110 = .818, which is reached
at 7 of 10 thresholds. The boxes around them have an IoU of .77, which is reached at 6.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from pycocotools import mask as coco_mask

from jaccard_eval import DataError, ReadOptions, evaluate, load

WIDTH, HEIGHT = 640, 480
Turned = tuple[float, float, float, float, float]  # centre, sizes and degrees, clockwise
GT: dict[str, list[Turned]] = {
    "img_1": [(200, 150, 100, 50, 30), (450, 300, 100, 50, -25)],
    "img_2": [(300, 200, 100, 50, 60)],
}


def moved(box: Turned) -> Turned:
    x, y, width, height, degrees = box
    angle = math.radians(degrees)
    return x + 10 * math.cos(angle), y + 10 * math.sin(angle), width, height, degrees


SIDES = {"gt": GT, "pred": {name: [*map(moved, boxes)] for name, boxes in GT.items()}}
OBB, MASKS, BOXES = 0.7, 0.7, 0.6  # AP


def corners(box: Turned) -> list[list[float]]:
    x, y, width, height, degrees = box
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    ends = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return [
        [x + a * width / 2 * cos - b * height / 2 * sin, y + a * width / 2 * sin + b * height / 2 * cos]
        for a, b in ends
    ]


def ring(box: Turned) -> list[float]:
    return [round(value, 3) for point in corners(box) for value in point]


def outline(box: Turned) -> list[float]:
    """Sixteen points along the sides."""
    points = np.array(corners(box))
    along = np.linspace(points, np.roll(points, -1, axis=0), 4, endpoint=False, axis=1)
    return [round(value) for value in along.reshape(-1).tolist()]


def around(box: Turned) -> list[float]:
    xs, ys = zip(*corners(box), strict=True)
    return [round(value, 3) for value in (min(xs), min(ys), max(xs), max(ys))]


def xywh(box: Turned) -> list[float]:
    left, top, right, bottom = around(box)
    return [left, top, right - left, bottom - top]


def rle(box: Turned) -> dict[str, Any]:
    found = coco_mask.frPyObjects([ring(box)], HEIGHT, WIDTH)[0]
    return {"size": [HEIGHT, WIDTH], "counts": found["counts"].decode()}


def pixels(box: Turned) -> Image.Image:
    image = Image.new("L", (WIDTH, HEIGHT))
    ImageDraw.Draw(image).polygon([(round(x), round(y)) for x, y in corners(box)], fill=255)
    return image


def documents(folder: Path, side: str, write: Callable[[str, list[Turned]], Any], suffix: str = ".json") -> Path:
    folder /= side
    folder.mkdir(parents=True)
    for name, boxes in SIDES[side].items():
        content = write(name, boxes)
        (folder / f"{name}{suffix}").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def document(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def results(folder: Path, fields: Callable[[Turned], dict[str, Any]], name: str = "pred.json") -> Path:
    """Predictions as a results list that names images and classes."""
    rows = [
        {"image_id": at, "file_name": f"{image}.jpg", "category_id": 1, "category_name": "dog", "score": 0.9}
        | fields(box)
        for at, (image, boxes) in enumerate(SIDES["pred"].items(), 1)
        for box in boxes
    ]
    return document(folder, name, rows)


def truth(folder: Path, fields: Callable[[Turned], dict[str, Any]], name: str = "gt.json") -> Path:
    images = [{"id": at, "file_name": f"{name}.jpg", "width": WIDTH, "height": HEIGHT} for at, name in enumerate(GT, 1)]
    rows = [
        {"image_id": at, "category_id": 1, "iscrowd": 0, "area": 5000, "bbox": xywh(box)} | fields(box)
        for at, boxes in enumerate(GT.values(), 1)
        for box in boxes
    ]
    annotations = [{"id": at, **row} for at, row in enumerate(rows, 1)]
    categories = [{"id": 1, "name": "dog", "keypoints": ["a", "b", "c", "d"]}]
    return document(folder, name, {"images": images, "annotations": annotations, "categories": categories})


def ap(gt: Path, pred: Path, expected: float, **rules: Any) -> dict[str, Any]:
    result = evaluate(gt, pred, **rules)
    assert result["AP"] == pytest.approx(expected, abs=1e-9)
    return {"iou_type": result.protocol.iou_type, "codes": {finding.code for finding in result.findings}}


def texts(folder: Path, gt: Callable[[Turned], str], pred: Callable[[Turned], str]) -> list[Path]:
    def lines(of: Callable[[Turned], str]) -> Callable[[str, list[Turned]], str]:
        return lambda _, boxes: "".join(f"{of(box)}\n" for box in boxes)

    return [documents(folder, "gt", lines(gt), ".txt"), documents(folder, "pred", lines(pred), ".txt")]


def joined(*values: object, mark: str = ",") -> str:
    return mark.join(map(str, values))


def listed(box: Turned) -> str:
    xs, ys = (" ".join(map(str, outline(box)[at::2])) for at in (0, 1))
    return f"x: [[{xs}]], y: [[{ys}]], ornt: [u'm'], transcriptions: [u'W{box[0]:g}']"


def offsets(box: Turned) -> str:
    points = np.array(outline(box)).reshape(-1, 2)[[0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 14, 15]]
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return joined(left, top, right, bottom, *(points - [left, top]).ravel().tolist())


Line = Callable[[Turned], str]


def with_outline(box: Turned) -> str:
    return joined(*outline(box), 0.9)


def with_sides(box: Turned) -> str:
    return joined(*around(box), 0.9)


WORDS: dict[str, tuple[Line, Line, float, str]] = {
    "corners": (lambda box: joined(*ring(box), f"W{box[0]}"), lambda box: joined(*ring(box), 0.9), OBB, "obb"),
    "blanks": (lambda box: joined(*ring(box), mark=" "), lambda box: joined(*ring(box), 0.9, mark=" "), OBB, "obb"),
    "score first": (lambda box: joined(*ring(box)), lambda box: joined(0.9, *ring(box)), OBB, "obb"),
    "sides": (lambda box: joined(*around(box), '"A, b"', mark=", "), with_sides, BOXES, "bbox"),
    "sides, blanks": (lambda box: joined(*around(box), '"A"', mark=" "), with_sides, BOXES, "bbox"),
    "outline": (lambda box: joined(*outline(box)), with_outline, MASKS, "segm"),
    "outline, word": (lambda box: joined(*outline(box), "####w"), with_outline, MASKS, "segm"),
    "outline, corners": (lambda box: joined(*outline(box)), lambda box: joined(*ring(box), 0.9), MASKS, "segm"),
    "Total-Text": (listed, with_outline, MASKS, "segm"),
    "CTW1500": (offsets, with_outline, MASKS, "segm"),
}


@pytest.mark.parametrize("layout", WORDS)
def test_words_are_compared_by_the_outline_that_they_have(layout: str, tmp_path: Path) -> None:
    gt_line, pred_line, expected, iou_type = WORDS[layout]
    gt, pred = texts(tmp_path, gt_line, pred_line)
    found = ap(gt, pred, expected)
    assert found["iou_type"] == iou_type
    assert ("size-assumed" in found["codes"]) == (iou_type == "segm")


def test_lines_with_index_flag_box_and_angle_are_turned_boxes(tmp_path: Path) -> None:
    def lines(_: str, boxes: list[Turned]) -> str:
        # By left and top before it is turned about its centre, in radians.
        rows = [
            (at, int(at == 1), x - width / 2, y - height / 2, width, height, math.radians(degrees))
            for at, (x, y, width, height, degrees) in enumerate(boxes)
        ]
        return "".join(joined(*row, mark=" ") + "\n" for row in rows)

    gt = documents(tmp_path, "gt", lines, ".gt")
    pred = documents(
        tmp_path, "pred", lambda _, boxes: "".join(joined(*ring(box), 0.9) + "\n" for box in boxes), ".txt"
    )
    assert ap(gt, pred, OBB)["iou_type"] == "obb"


def frames(fields: Callable[[Turned], dict[str, Any]], side: str) -> list[dict[str, Any]]:
    score = {"score": 0.9} if side == "pred" else {}
    return [
        {"name": f"{name}.jpg", "size": {"width": WIDTH, "height": HEIGHT}, "labels": [
            {"id": str(at), "category": "dog", **score, **fields(box)} for at, box in enumerate(boxes)
        ]}
        for name, boxes in SIDES[side].items()
    ]  # fmt: skip


LABELS: dict[str, Callable[[Turned], dict[str, Any]]] = {
    "poly2d": lambda box: {"poly2d": [{"vertices": corners(box), "types": "LLLL", "closed": True}]},
    "poly2d of 2018": lambda box: {"poly2d": [[x, y, "L"] for x, y in corners(box)]},
    "rle": lambda box: {"rle": rle(box)},
}


@pytest.mark.parametrize("label", LABELS)
def test_labels_of_scalabel_are_masks(label: str, tmp_path: Path) -> None:
    gt, pred = (document(tmp_path, f"{side}.json", frames(LABELS[label], side)) for side in ("gt", "pred"))
    assert ap(gt, pred, MASKS)["iou_type"] == "segm"
    if label != "rle":  # whose bounds are whole pixels
        assert "outline" in ap(gt, pred, BOXES, iou_type="bbox")["codes"]


def pose(box: Turned) -> list[dict[str, Any]]:
    return [{"location": point, "category": name} for point, name in zip(corners(box), "abcd", strict=True)]


def test_graphs_of_scalabel_are_poses(tmp_path: Path) -> None:
    def graph(box: Turned) -> dict[str, Any]:
        return {"graph": {"nodes": pose(box), "edges": [], "type": "Pose2D"}}

    gt, pred = (document(tmp_path, f"{side}.json", frames(graph, side)) for side in ("gt", "pred"))
    result = evaluate(gt, pred, sigmas=[0.1] * 4)
    assert result.protocol.iou_type == "keypoints"
    # OKS of 10 px by the area of the box around each object; 1 - AP of the least of them decides nothing else.
    areas = [math.prod(xywh(box)[2:]) for boxes in GT.values() for box in boxes]
    oks = [math.exp(-(10**2) / (2 * area * 0.2**2)) for area in areas]
    thresholds = np.linspace(0.5, 0.95, 10)
    assert min(oks) > 0.85 > 0.8
    assert result["AP50"] == pytest.approx(1)
    assert result["AP"] >= np.mean(thresholds <= min(oks)) - 1e-9


def tasks(draw: Callable[[Turned], dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    def drawn(side: str, name: str) -> list[dict[str, Any]]:
        about = {"image_rotation": 0, "original_width": WIDTH, "original_height": HEIGHT, "type": kind}
        return [
            {"id": str(at), **about, "value": {**draw(box), kind: ["dog"]}} for at, box in enumerate(SIDES[side][name])
        ]

    return [
        {
            "id": at,
            "data": {"image": f"/data/upload/1/ab12cd3{at}-{name}.jpg"},
            "annotations": [{"id": 1, "was_cancelled": False, "result": drawn("gt", name)}],
            "predictions": [{"id": 2, "score": 0.9, "result": drawn("pred", name)}],
        }
        for at, name in enumerate(GT)
    ]


def per_cent(points: list[list[float]]) -> list[list[float]]:
    return [[x / WIDTH * 100, y / HEIGHT * 100] for x, y in points]


def painted(box: Turned) -> dict[str, Any]:
    """A mask as Label Studio's converter packs it: bits of runs of the four bytes of each pixel."""
    values = np.repeat(np.array(pixels(box)).ravel(), 4)
    bits = f"{len(values):032b}{7:05b}" + "".join(f"{width - 1:04b}" for width in (3, 4, 8, 16))
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    for start, stop in pairwise(edges):
        for at in range(start, stop, 65536):
            bits += f"1{3:02b}{min(stop - at, 65536) - 1:016b}{values[at]:08b}"
    bits += "0" * (-len(bits) % 8)
    return {"format": "rle", "rle": [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]}


def test_polygons_and_paint_of_label_studio_are_masks_of_both_sides_in_one_file(tmp_path: Path) -> None:
    drawn = tasks(lambda box: {"points": per_cent(corners(box))}, "polygonlabels")
    path = document(tmp_path, "polygons.json", drawn)
    assert ap(path, path, MASKS)["iou_type"] == "segm"
    path = document(tmp_path, "brush.json", tasks(painted, "brushlabels"))
    assert ap(path, path, MASKS)["iou_type"] == "segm"


def test_turned_rectangles_of_label_studio_are_oriented_boxes_if_asked_for(tmp_path: Path) -> None:
    def turned(box: Turned) -> dict[str, Any]:
        x, y = per_cent(corners(box))[0]
        return {"x": x, "y": y, "width": box[2] / WIDTH * 100, "height": box[3] / HEIGHT * 100, "rotation": box[4]}

    path = document(tmp_path, "both.json", tasks(turned, "rectanglelabels"))
    assert ap(path, path, BOXES)["codes"] >= {"iou-type"}
    assert ap(path, path, OBB, iou_type="obb")["iou_type"] == "obb"


def response(_: str, boxes: list[Turned], **fields: Callable[[Turned], Any]) -> dict[str, Any]:
    found = []
    for box in boxes:
        left, top, width, height = xywh(box)
        sides = {"x": left + width / 2, "y": top + height / 2, "width": width, "height": height}
        own = {name: of(box) for name, of in fields.items()}
        found.append({**sides, "confidence": 0.9, "class": "dog", "class_id": 0, **own})
    return {"image": {"width": WIDTH, "height": HEIGHT}, "predictions": found}


def named(box: Turned) -> list[dict[str, Any]]:
    return [
        {"x": x, "y": y, "confidence": 0.9, "class_id": at, "class": "abcd"[at]}
        for at, (x, y) in enumerate(corners(box))
    ]


def test_points_and_keypoints_of_roboflow_are_masks_and_poses(tmp_path: Path) -> None:
    gt = truth(
        tmp_path,
        lambda box: {"segmentation": [ring(box)], "keypoints": [v for x, y in corners(box) for v in (x, y, 2)]},
    )
    masks = documents(tmp_path / "masks", "pred", lambda name, boxes: response(
        name, boxes, points=lambda box: [{"x": x, "y": y} for x, y in corners(box)]
    ))  # fmt: skip
    assert "iou-type" in ap(gt, masks, BOXES)["codes"]
    ap(gt, masks, MASKS, iou_type="segm")
    poses = documents(tmp_path / "poses", "pred", lambda name, boxes: response(name, boxes, keypoints=named))
    # Of 5,000 px² and .1 each, 10 px are exp(-.25) = .78: 6 of 10 thresholds.
    ap(gt, poses, 0.6, iou_type="keypoints", sigmas=[0.1] * 4)


def detected(kind: str, boxes: list[Turned]) -> list[dict[str, Any]]:
    found = []
    for box in boxes:
        row: dict[str, Any] = {"name": "dog", "class": 0, "confidence": 0.9}
        xs, ys = ([point[at] for point in corners(box)] for at in (0, 1))
        row["box"] = dict(zip(("x1", "y1", "x2", "y2"), around(box), strict=True))
        if kind == "obb":
            row["box"] = {
                f"{axis}{at}": value for axis, values in (("x", xs), ("y", ys)) for at, value in enumerate(values, 1)
            }
        elif kind == "segments":
            row["segments"] = {"x": xs, "y": ys}
        else:
            row["keypoints"] = {"x": xs, "y": ys, "visible": [0.9] * 4}
        found.append(row)
    return found


def annotation(name: str, boxes: list[Turned], draw: Callable[[Turned], str]) -> str:
    objects = "".join(f"<object><name>dog</name>{draw(box)}</object>" for box in boxes)
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
    return f"<annotation><filename>{name}.jpg</filename>{size}{objects}</annotation>"


def robndbox(box: Turned) -> str:
    values = zip(("cx", "cy", "w", "h", "angle"), (*box[:4], math.radians(box[4]) % math.pi), strict=True)
    return f"<robndbox>{''.join(f'<{tag}>{value}</{tag}>' for tag, value in values)}</robndbox>"


def clicked(box: Turned) -> str:
    return f"<polygon>{''.join(f'<pt><x>{x}</x><y>{y}</y></pt>' for x, y in corners(box))}</polygon>"


def test_results_of_ultralytics_have_the_shapes_of_every_task(tmp_path: Path) -> None:
    pred = {kind: documents(tmp_path / kind, "pred", lambda _, boxes, kind=kind: detected(kind, boxes)) for kind in (  # type: ignore[misc]
        "obb", "segments", "pose"
    )}  # fmt: skip
    turned = documents(tmp_path, "gt", lambda name, boxes: annotation(name, boxes, robndbox), ".xml")
    assert ap(turned, pred["obb"], OBB)["iou_type"] == "obb"
    gt = truth(
        tmp_path,
        lambda box: {"segmentation": [ring(box)], "keypoints": [v for x, y in corners(box) for v in (x, y, 2)]},
    )
    ap(gt, pred["segments"], BOXES)
    ap(gt, pred["segments"], MASKS, iou_type="segm")
    ap(gt, pred["pose"], 0.6, iou_type="keypoints", sigmas=[0.1] * 4)


def test_xml_of_labelme_and_of_rolabelimg_has_polygons_and_turned_boxes(tmp_path: Path) -> None:
    drawn = documents(tmp_path / "labelme", "gt", lambda name, boxes: annotation(name, boxes, clicked), ".xml")
    assert ap(drawn, results(tmp_path, lambda box: {"segmentation": [ring(box)]}), MASKS)["iou_type"] == "segm"
    turned = documents(tmp_path / "rolabelimg", "gt", lambda name, boxes: annotation(name, boxes, robndbox), ".xml")
    assert ap(turned, results(tmp_path, lambda box: {"poly": ring(box)}), OBB)["iou_type"] == "obb"
    boxes = results(tmp_path, lambda box: {"bbox": xywh(box)})
    assert "outline" in ap(drawn, boxes, BOXES)["codes"]
    assert "outline" in ap(turned, boxes, BOXES)["codes"]


OBJECTS: dict[str, tuple[Callable[[Turned], dict[str, Any]], str]] = {
    "polygon": (lambda box: {"points": {"exterior": corners(box), "interior": []}}, "segm"),
    "bitmap": (lambda box: {"bitmap": {"data": packed(box), "origin": [0, 0]}}, "segm"),
    "graph": (lambda box: {"nodes": {name: {"loc": point} for name, point in placed(box)}}, "keypoints"),
}


def placed(box: Turned) -> list[tuple[str, list[float]]]:
    return [*zip("abcd", corners(box), strict=True)]


def packed(box: Turned) -> str:
    buffer = io.BytesIO()
    pixels(box).convert("1").save(buffer, "PNG")
    return base64.b64encode(zlib.compress(buffer.getvalue())).decode()


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_supervisely_are_what_their_geometry_is(kind: str, tmp_path: Path) -> None:
    draw, iou_type = OBJECTS[kind]

    def write(side: str) -> Path:
        tags = [{"name": "confidence", "value": 0.9}] if side == "pred" else []
        size = {"height": HEIGHT, "width": WIDTH}
        return documents(tmp_path, side, lambda _, boxes: {"description": "", "size": size, "tags": [], "objects": [
            {"classTitle": "dog", "geometryType": kind, "tags": tags, **draw(box)} for box in boxes
        ]}, ".jpg.json")  # fmt: skip

    rules: dict[str, Any] = {"sigmas": [0.1] * 4} if kind == "graph" else {}
    result = evaluate(write("gt"), write("pred"), **rules)
    assert result.protocol.iou_type == iou_type
    assert result["AP"] == pytest.approx(0.8 if kind == "graph" else MASKS, abs=0.05)


def test_holes_of_polygons_are_no_part_of_them(tmp_path: Path) -> None:
    points = {
        "exterior": [[10, 10], [30, 10], [30, 30], [10, 30]],
        "interior": [[[15, 15], [25, 15], [25, 25], [15, 25]]],
    }
    entry = {"classTitle": "dog", "geometryType": "polygon", "points": points}
    content = {"size": {"height": 40, "width": 40}, "objects": [entry]}
    side = load(document(tmp_path, "a.jpg.json", content), options=ReadOptions(iou_type="segm"))
    shapes: Any = side.boxes.shapes
    assert shapes.masks.areas().tolist() == [20 * 20 - 10 * 10]


SHAPES: dict[str, Callable[[Turned], dict[str, Any]]] = {
    "poly": lambda box: {"poly": ring(box)},
    "rbox": lambda box: {"rbox": [*box[:4], math.radians(box[4])]},
    "rbox and poly": lambda box: {"rbox": [*box[:4], math.radians(box[4])], "poly": ring(box)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_oriented_boxes_of_coco_stand_under_other_names_as_well(shape: str, tmp_path: Path) -> None:
    gt = truth(tmp_path, SHAPES[shape])
    with_boxes = results(tmp_path, lambda box: {"bbox": xywh(box), **SHAPES[shape](box)}, "with.json")
    assert "iou-type" in ap(gt, with_boxes, BOXES)["codes"]
    ap(gt, with_boxes, OBB, iou_type="obb")
    assert ap(gt, results(tmp_path, SHAPES[shape]), OBB)["iou_type"] == "obb"


def test_results_with_four_corners_and_no_box_are_masks_and_flat_lists_one_polygon(tmp_path: Path) -> None:
    gt = truth(tmp_path, lambda box: {"segmentation": [ring(box)]})
    nested, flat = (results(tmp_path, lambda box, one=one: {"segmentation": one(box)}, f"{at}.json") for at, one in (  # type: ignore[misc]
        (0, lambda box: [ring(box)]), (1, ring)
    ))  # fmt: skip
    assert ap(gt, nested, MASKS)["iou_type"] == "segm"
    found = ap(gt, flat, MASKS)
    assert found["iou_type"] == "segm"
    assert "outline" in found["codes"]  # it says how many


def test_shapes_of_labelme_are_boxes_oriented_boxes_and_poses(tmp_path: Path) -> None:
    def shapes(kind: str) -> Callable[[str, list[Turned]], dict[str, Any]]:
        def write(name: str, boxes: list[Turned]) -> dict[str, Any]:
            rows = [{"label": "dog", "points": corners(box), "shape_type": kind, "group_id": None} for box in boxes]
            if kind == "point":
                rows = [
                    {
                        "label": "dog",
                        "points": [around(box)[:2], around(box)[2:]],
                        "shape_type": "rectangle",
                        "group_id": at,
                    }
                    for at, box in enumerate(boxes)
                ]
                rows += [
                    {"label": label, "points": [point], "shape_type": kind, "group_id": at}
                    for at, box in enumerate(boxes)
                    for label, point in zip("abcd", corners(box), strict=True)
                ]
            return {
                "version": "5",
                "shapes": rows,
                "imagePath": f"{name}.jpg",
                "imageHeight": HEIGHT,
                "imageWidth": WIDTH,
            }

        return write

    boxes = results(tmp_path, lambda box: {"bbox": xywh(box)}, "boxes.json")
    polygons = documents(tmp_path / "polygons", "gt", shapes("polygon"))
    assert "outline" in ap(polygons, boxes, BOXES)["codes"]
    turned = documents(tmp_path / "rotation", "gt", shapes("rotation"))
    assert ap(turned, results(tmp_path, lambda box: {"poly": ring(box)}), OBB)["iou_type"] == "obb"
    posed = documents(tmp_path / "points", "gt", shapes("point"))
    found = results(tmp_path, lambda box: {"keypoints": [v for x, y in corners(box) for v in (x, y, 1)]}, "posed.json")
    assert ap(posed, found, 0.8, sigmas=[0.1] * 4)["iou_type"] == "keypoints"


def instances(side: str, **fields: Callable[[Turned], Any]) -> dict[str, Any]:
    score = {"score": 0.9} if side == "pred" else {}
    rows = [
        {"img_path": f"data/{name}.jpg", "height": HEIGHT, "width": WIDTH, "instances": [
            {"bbox_label": 0, "ignore": False, **score, **{key: of(box) for key, of in fields.items()}}
            for box in boxes
        ]}
        for name, boxes in SIDES[side].items()
    ]  # fmt: skip
    return {"metainfo": {"dataset_type": "TextDetDataset", "category": [{"id": 0, "name": "text"}]}, "data_list": rows}


def test_words_of_mmocr_are_compared_by_their_outlines(tmp_path: Path) -> None:
    gt = document(tmp_path, "gt.json", instances("gt", polygon=ring, bbox=around))
    pred = document(tmp_path, "pred.json", instances("pred", polygon=ring))
    assert ap(gt, pred, OBB)["iou_type"] == "obb"
    assert ap(gt, pred, BOXES, iou_type="bbox")["iou_type"] == "bbox"
    curved = (document(tmp_path, f"{side}16.json", instances(side, polygon=outline)) for side in ("gt", "pred"))
    assert ap(*curved, MASKS)["iou_type"] == "segm"
    # What inference writes: a file of each image.
    found = documents(
        tmp_path / "det",
        "pred",
        lambda _, boxes: {"det_polygons": [*map(ring, boxes)], "det_scores": [0.9] * len(boxes)},
    )
    assert ap(gt, found, OBB)["iou_type"] == "obb"
    bounds = documents(
        tmp_path / "old", "pred", lambda _, boxes: {"boundary_result": [[*ring(box), 0.9] for box in boxes]}
    )
    assert ap(gt, bounds, OBB)["iou_type"] == "obb"


def test_older_words_of_mmocr_are_lists_or_lines_of_images(tmp_path: Path) -> None:
    pred = document(tmp_path, "pred.json", instances("pred", polygon=ring))
    found = {
        name: [{"iscrowd": 0, "category_id": 1, "bbox": xywh(box), "segmentation": [ring(box)]} for box in boxes]
        for name, boxes in GT.items()
    }
    about = {"height": HEIGHT, "width": WIDTH}
    rows = [{"file_name": f"{name}.jpg", **about, "annotations": words} for name, words in found.items()]
    lines = tmp_path / "instances.txt"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ap(lines, pred, OBB)["iou_type"] == "obb"
    listed = [{"img_info": {"filename": f"{name}.jpg", **about}, "annotations": words} for name, words in found.items()]
    assert ap(document(tmp_path, "listed.json", listed), pred, OBB)["iou_type"] == "obb"


def test_words_of_paddleocr_and_of_art_are_lists_by_image(tmp_path: Path) -> None:
    words = {
        name: [{"transcription": f"w{at}", "points": corners(box)} for at, box in enumerate(boxes)]
        for name, boxes in GT.items()
    }
    label = tmp_path / "Label.txt"
    label.write_text("".join(f"images/{name}.jpg\t{json.dumps(found)}\n" for name, found in words.items()))
    pred = document(tmp_path, "pred.json", instances("pred", polygon=ring))
    assert ap(label, pred, OBB)["iou_type"] == "obb"
    listed = document(tmp_path, "art.json", {f"gt_{name.removeprefix('img_')}": found for name, found in words.items()})
    side = load(listed)
    assert (side.images.keys, len(side.boxes)) == (("1", "2"), 3)
    words["img_1"][0]["transcription"] = "###"
    assert load(document(tmp_path, "unreadable.json", words)).boxes.crowd.tolist() == [True, False, False]


def datumaro(side: str, draw: Callable[[Turned], dict[str, Any]]) -> dict[str, Any]:
    score = {"attributes": {"score": 0.9}} if side == "pred" else {"attributes": {}}
    items = [
        {"id": name, "image": {"path": f"{name}.jpg", "size": [HEIGHT, WIDTH]}, "annotations": [
            {"id": at, "label_id": 0, "group": 0, **score, **draw(box)} for at, box in enumerate(boxes)
        ]}
        for name, boxes in SIDES[side].items()
    ]  # fmt: skip
    return {"info": {}, "categories": {"label": {"labels": [{"name": "dog", "parent": ""}]}}, "items": items}


DATUMARO: dict[str, tuple[Callable[[Turned], dict[str, Any]], float, str]] = {
    "polygon": (lambda box: {"type": "polygon", "points": ring(box)}, MASKS, "segm"),
    "mask": (lambda box: {"type": "mask", "rle": rle(box)}, MASKS, "segm"),
    "bbox": (lambda box: {"type": "bbox", "bbox": xywh(box)}, BOXES, "bbox"),
    "points": (
        lambda box: {"type": "points", "points": ring(box), "bbox": xywh(box), "visibility": [2] * 4}, 0.8, "keypoints"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DATUMARO)
def test_annotations_of_datumaro_are_what_their_type_is(kind: str, tmp_path: Path) -> None:
    draw, expected, iou_type = DATUMARO[kind]
    gt, pred = (document(tmp_path, f"{side}.json", datumaro(side, draw)) for side in ("gt", "pred"))
    rules: dict[str, Any] = {"sigmas": [0.1] * 4, "iou_type": iou_type} if kind == "points" else {}
    assert ap(gt, pred, expected, **rules)["iou_type"] == iou_type


def test_turned_boxes_of_datumaro_are_oriented(tmp_path: Path) -> None:
    def turned(box: Turned) -> dict[str, Any]:
        x, y, width, height, degrees = box
        return {
            "type": "bbox",
            "bbox": [x - width / 2, y - height / 2, width, height],
            "attributes": {"rotation": degrees % 360},
        }

    gt = document(tmp_path, "gt.json", datumaro("gt", turned))
    assert ap(gt, results(tmp_path, lambda box: {"poly": ring(box)}), OBB)["iou_type"] == "obb"
    assert ap(gt, results(tmp_path, lambda box: {"bbox": xywh(box)}), BOXES)["iou_type"] == "bbox"


def test_masks_of_segment_anything_are_scored_by_their_predicted_iou(tmp_path: Path) -> None:
    def segment(box: Turned) -> dict[str, Any]:
        about = {"area": 5000, "predicted_iou": 0.9, "stability_score": 0.95, "crop_box": [0, 0, WIDTH, HEIGHT]}
        return {"segmentation": rle(box), "bbox": xywh(box), **about}

    gt = truth(tmp_path, lambda box: {"segmentation": [ring(box)]})
    pred = documents(tmp_path, "pred", lambda _, boxes: [*map(segment, boxes)])
    assert "iou-type" in ap(gt, pred, BOXES)["codes"]
    assert "csv-one-class" in ap(gt, pred, MASKS, iou_type="segm")["codes"]

    def image(name: str, boxes: list[Turned]) -> dict[str, Any]:
        about = {"image_id": 1, "width": WIDTH, "height": HEIGHT, "file_name": f"{name}.jpg"}
        return {"image": about, "annotations": [{"id": at, **segment(box)} for at, box in enumerate(boxes)]}

    ap(documents(tmp_path / "sa1b", "gt", image), pred, MASKS, iou_type="segm")


def fractions(values: list[float]) -> list[float]:
    return [round(value / (WIDTH, HEIGHT)[at % 2], 6) for at, value in enumerate(values)]


TURNED: dict[str, tuple[Line, Line]] = {
    "angles in radians": (
        lambda box: joined(0, *box[:4], round(math.radians(box[4]), 6), mark=" "),
        lambda box: joined(0, *box[:4], round(math.radians(box[4]), 6), 0.9, mark=" "),
    ),
    "angles in degrees": (
        lambda box: joined(0, *box, mark=" "), lambda box: joined(0, *box, 0.9, mark=" ")
    ),
    "category first, score behind": (
        lambda box: joined("ship", *ring(box), mark=" "), lambda box: joined("ship", 0.9, *ring(box), mark=" ")
    ),
    "category first, score last": (
        lambda box: joined(*ring(box), "ship", 0, mark=" "), lambda box: joined("ship", *ring(box), 0.9, mark=" ")
    ),
    "score in place of the flag": (
        lambda box: joined(*ring(box), "ship", 0, mark=" "), lambda box: joined(*ring(box), "ship", 0.9, mark=" ")
    ),
    "score behind the flag": (
        lambda box: joined(*ring(box), "ship", 0, mark=" "), lambda box: joined(*ring(box), "ship", 0, 0.9, mark=" ")
    ),
    "track ids": (
        lambda box: joined(0, *fractions(ring(box)), mark=" "),
        lambda box: joined(0, *fractions(ring(box)), 0.9, round(box[0]), mark=" "),
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", TURNED)
def test_labels_of_oriented_boxes_have_corners_or_angles_and_scores_anywhere(layout: str, tmp_path: Path) -> None:
    gt, pred = texts(tmp_path, *TURNED[layout])
    images = tmp_path / "images"
    images.mkdir()
    for name in GT:
        Image.new("L", (WIDTH, HEIGHT)).save(images / f"{name}.png")
    options = {"gt_options": ReadOptions(images=images)} if layout == "track ids" else {}
    assert ap(gt, pred, OBB, **options)["iou_type"] == "obb"


def test_labels_of_four_corners_among_others_are_outlines(tmp_path: Path) -> None:
    def lines(_: str, boxes: list[Turned]) -> str:
        return "".join(joined(0, *fractions(ring(box)), mark=" ") + "\n" for box in boxes) + "0 .1 .1 .2 .1 .2 .2\n"

    gt = documents(tmp_path, "gt", lines, ".txt")
    with pytest.raises(DataError, match=r"size-unknown"):  # of fractions
        evaluate(gt, results(tmp_path, lambda box: {"segmentation": [ring(box)]}))


def table(kind: str, *, flat: bool) -> Callable[[str, list[Turned]], str]:
    """What Ultralytics writes: objects as text in a cell, or a column for each of their fields."""

    def write(_: str, boxes: list[Turned]) -> str:
        rows = detected(kind, boxes)
        if flat:
            rows = [{**row, **{f"box.{key}": value for key, value in row.pop("box").items()}} for row in rows]
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, rows[0])
        writer.writeheader()
        writer.writerows(rows)
        return buffer.getvalue()

    return write


@pytest.mark.parametrize("flat", [False, True])
def test_tables_of_ultralytics_hold_the_shapes_of_their_task(flat: bool, tmp_path: Path) -> None:
    pred = {
        kind: documents(tmp_path / kind, "pred", table(kind, flat=flat), ".csv") for kind in ("obb", "segments", "pose")
    }
    turned = documents(tmp_path, "gt", lambda name, boxes: annotation(name, boxes, robndbox), ".xml")
    assert ap(turned, pred["obb"], OBB)["iou_type"] == "obb"
    gt = truth(
        tmp_path,
        lambda box: {"segmentation": [ring(box)], "keypoints": [v for x, y in corners(box) for v in (x, y, 2)]},
    )
    ap(gt, pred["segments"], BOXES)
    ap(gt, pred["segments"], MASKS, iou_type="segm")
    ap(gt, pred["pose"], 0.6, iou_type="keypoints", sigmas=[0.1] * 4)


def test_lists_that_go_on_in_the_next_line_are_one_word(tmp_path: Path) -> None:
    def broken(_: str, boxes: list[Turned]) -> str:
        return "".join(listed(box).replace("]], y", "\n  ]], y") + "\n" for box in boxes)

    gt = documents(tmp_path, "gt", broken, ".txt")
    pred = documents(tmp_path, "pred", lambda _, boxes: "".join(with_outline(box) + "\n" for box in boxes), ".txt")
    assert ap(gt, pred, MASKS)["iou_type"] == "segm"


@pytest.mark.parametrize("outer", ["robndbox", "bndbox"])
def test_corners_in_xml_are_oriented_boxes(outer: str, tmp_path: Path) -> None:
    ends = ("left_top", "right_top", "right_bottom", "left_bottom") if outer == "robndbox" else ("1", "2", "3", "4")
    mark = "_" if outer == "robndbox" else ""

    def draw(box: Turned) -> str:
        pairs = "".join(
            f"<x{mark}{end}>{x}</x{mark}{end}><y{mark}{end}>{y}</y{mark}{end}>"
            for end, (x, y) in zip(ends, corners(box), strict=True)
        )
        return f"<{outer}>{pairs}</{outer}>"

    gt = documents(tmp_path, "gt", lambda name, boxes: annotation(name, boxes, draw), ".xml")
    assert ap(gt, results(tmp_path, lambda box: {"poly": ring(box)}), OBB)["iou_type"] == "obb"


def cvat(folder: Path, name: str, draw: Callable[[Turned], str]) -> Path:
    images = "".join(
        f'<image id="{at}" name="{image}.jpg" width="{WIDTH}" height="{HEIGHT}">{"".join(map(draw, boxes))}</image>'
        for at, (image, boxes) in enumerate(GT.items())
    )
    path = folder / name
    path.write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    return path


def vertices(box: Turned) -> dict[str, Any]:
    return {"vertices": corners(box), "text": "W", "legible": box[4] != 60}


CARRIERS_OF_WORDS: dict[str, Callable[[], Any]] = {
    "HierText": lambda: {
        "info": {},
        "annotations": [
            {"image_id": key, "paragraphs": [{"legible": True, "lines": [{"words": [*map(vertices, boxes)]}]}]}
            for key, boxes in GT.items()
        ],
    },
    "COCO-Text": lambda: {
        "imgs": {str(at): {"id": at, "file_name": f"{key}.jpg"} for at, key in enumerate(GT)},
        "anns": {
            f"{at}{row}": {
                "image_id": at,
                "mask": ring(box),
                "bbox": xywh(box),
                "utf8_string": "." if box[4] == 60 else "W",
            }
            for at, boxes in enumerate(GT.values())
            for row, box in enumerate(boxes)
        },
    },
}


@pytest.mark.parametrize("carrier", CARRIERS_OF_WORDS)
def test_words_of_one_document_for_all_images(carrier: str, tmp_path: Path) -> None:
    gt = document(tmp_path, "gt.json", CARRIERS_OF_WORDS[carrier]())
    truth = load(gt)
    assert truth.boxes.crowd.tolist() == [False, False, True]
    _, pred = texts(tmp_path, lambda box: joined(*ring(box), "W"), lambda box: joined(*ring(box), 0.9))
    assert ap(gt, pred, OBB)["iou_type"] == "obb"


def test_words_of_rects_and_of_readers_are_a_file_for_each_image(tmp_path: Path) -> None:
    def words(name: str, boxes: list[Turned]) -> Any:
        lines = [{"transcription": "W", "points": ring(box), "ignore": 0} for box in boxes]
        return {"chars": [{"points": [1, 2, 5, 2, 5, 6, 1, 6], "transcription": "x", "ignore": 0}], "lines": lines}

    gt = documents(tmp_path, "gt", words)
    triples = documents(tmp_path, "pred", lambda _, boxes: [[corners(box), "W", 0.9] for box in boxes])
    assert ap(gt, triples, OBB)["iou_type"] == "obb"
    pairs = documents(tmp_path / "pairs", "pred", lambda _, boxes: [[corners(box), ["W", 0.9]] for box in boxes])
    assert ap(gt, pairs, OBB)["iou_type"] == "obb"


def test_results_of_spotters_have_outlines_as_pairs_and_words_behind_scores(tmp_path: Path) -> None:
    gt, pred = texts(
        tmp_path, lambda box: joined(*ring(box), f"W{box[0]:g}"), lambda box: joined(*ring(box), 0.9, "Wörd, 2")
    )
    ap(gt, pred, OBB)
    assert load(pred, role="pred", options=ReadOptions(iou_type="obb")).boxes.score.tolist() == [0.9] * 3
    rows = [
        {"image_id": name, "category_id": 1, "polys": corners(box), "rec": "W", "score": 0.9}
        for name, boxes in SIDES["pred"].items()
        for box in boxes
    ]
    found = document(tmp_path, "pred.json", rows)
    assert ap(gt, found, OBB, class_map="contiguous-from-1")["iou_type"] == "obb"
    masks = load(tmp_path / "pred.json", role="pred", options=ReadOptions(iou_type="segm"))
    assert masks.boxes.xywh[0] == pytest.approx(xywh(SIDES["pred"]["img_1"][0]), abs=0.01)
    words = documents(
        tmp_path / "words", "pred", lambda _, boxes: "\n".join(joined(*ring(b), f"W{b[0]:g}") for b in boxes), ".txt"
    )
    assert (
        load(words, role="pred", options=ReadOptions(assume_score=1.0, iou_type="obb")).boxes.score.tolist()
        == [1.0] * 3
    )


def test_sides_before_a_turn_are_not_scored_boxes(tmp_path: Path) -> None:
    def spanned(box: Turned) -> str:
        x, y, width, height, degrees = box
        return joined(x - width / 2, y - height / 2, x + width / 2, y + height / 2, round(math.radians(degrees), 6))

    gt, pred = texts(tmp_path, lambda box: f"{spanned(box)},None", lambda box: f"{spanned(box)},0.9")
    assert ap(gt, pred, OBB)["iou_type"] == "obb"


def test_words_of_receipts_are_read_from_csv_and_from_lines_of_json(tmp_path: Path) -> None:
    gt = documents(
        tmp_path, "gt", lambda _, boxes: "\n".join(joined(*ring(box), "TOTAL, 9.00") for box in boxes), ".csv"
    )
    pred = documents(tmp_path, "pred", lambda _, boxes: "\n".join(joined(*ring(box), 0.9) for box in boxes), ".txt")
    assert ap(gt, pred, OBB)["iou_type"] == "obb"
    lines = [
        {"file_name": f"a/{name}.jpg", "height": HEIGHT, "width": WIDTH}
        | {"annotations": [{"box": ring(box), "text": "W", "label": 3} for box in boxes]}
        for name, boxes in GT.items()
    ]
    (tmp_path / "wild.txt").write_text("\n".join(map(json.dumps, lines)))
    assert ap(tmp_path / "wild.txt", pred, OBB)["iou_type"] == "obb"


def test_fields_of_forms_are_boxes_with_classes(tmp_path: Path) -> None:
    def form(name: str, boxes: list[Turned]) -> Any:
        return {"form": [{"id": 1, "box": around(box), "text": "W", "label": "question", "words": []} for box in boxes]}

    gt = documents(tmp_path, "gt", form)
    (tmp_path / "pred.csv").write_text(
        "\n".join(
            ["image,class,score,xmin,ymin,xmax,ymax"]
            + [joined(name, "question", 0.9, *around(box)) for name, boxes in SIDES["pred"].items() for box in boxes]
        )
    )
    assert ap(gt, tmp_path / "pred.csv", BOXES)["iou_type"] == "bbox"


def test_corners_of_ssdd_are_oriented_boxes(tmp_path: Path) -> None:
    def write(name: str, boxes: list[Turned]) -> str:
        objects = ""
        for box in boxes:
            sides = zip(("xmin", "ymin", "xmax", "ymax"), around(box), strict=True)
            ends = [(f"x{at}", x, f"y{at}", y) for at, (x, y) in enumerate(corners(box), 1)]
            bounds = "".join(f"<{name}>{value}</{name}>" for name, value in sides)
            points = "".join(f"<{u}>{x}</{u}><{v}>{y}</{v}>" for u, x, v, y in ends)
            turned = f"<rotated_bndbox><rotated_bbox_cx>1</rotated_bbox_cx>{points}</rotated_bndbox>"
            objects += f"<object><name>ship</name><bndbox>{bounds}</bndbox>{turned}</object>"
        return f"<annotation>{objects}</annotation>"

    gt = documents(tmp_path, "gt", write, ".xml")
    pred = documents(
        tmp_path, "pred", lambda _, boxes: "\n".join(joined("ship", 0.9, *ring(box), mark=" ") for box in boxes), ".txt"
    )
    assert ap(gt, pred, OBB)["iou_type"] == "obb"


def test_category_and_score_may_begin_lines_of_which_some_end_left_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ship 0.9 9 1 30 1 30 9 -1 9\nship 0.8 10 1 30 1 30 9 10 9\n")
    assert load(tmp_path, role="pred", options=ReadOptions(iou_type="obb")).boxes.score.tolist() == [0.9, 0.8]


def test_corners_go_before_five_numbers_that_may_begin_at_a_corner(tmp_path: Path) -> None:
    gt = truth(tmp_path, lambda box: {"segmentation": [ring(box)]})

    def turned(box: Turned) -> dict[str, Any]:
        x, y, width, height, degrees = box
        left, top = x - width / 2, y - height / 2
        return {"bbox": [left, top, width, height, math.radians(degrees)], "segmentation": [ring(box)]}

    assert ap(gt, results(tmp_path, turned), OBB, iou_type="obb")["iou_type"] == "obb"


def test_results_without_a_class_are_of_one(tmp_path: Path) -> None:
    fields = {"iscrowd": 0, "segmentation": []}
    gt = truth(tmp_path, lambda box: fields | {"bbox": [*box[:4], -box[4]], "image_id": "img"})
    ids = {name: at for at, name in enumerate(GT, 1)}
    document_ = json.loads(gt.read_text())
    for record, name in zip(document_["annotations"], ("img_1", "img_1", "img_2"), strict=True):
        record["image_id"] = ids[name]
    gt.write_text(json.dumps(document_))
    rows = [
        {"image_id": ids[name], "bbox": [*box[:4], -box[4]], "score": 0.9, "segmentation": []}
        for name, boxes in SIDES["pred"].items()
        for box in boxes
    ]
    pred = document(tmp_path, "pred.json", rows)
    assert "csv-one-class" in ap(gt, pred, OBB)["codes"]
    assert load(pred, role="pred", options=ReadOptions(iou_type="obb", names=("dog",))).labels.names == ("dog",)
    with pytest.raises(DataError, match=r"category_id: is missing"):
        load(document(tmp_path, "half.json", [rows[0] | {"category_id": 1}, rows[1]]), role="pred")


def sides(box: Turned) -> dict[str, float]:
    return dict(zip(("left", "top", "width", "height"), xywh(box), strict=True))


def records_of(record: Callable[[str, list[Turned]], Any]) -> list[Any]:
    return [record(name, boxes) for name, boxes in GT.items()]


def turi(boxes: list[Turned]) -> list[dict[str, Any]]:
    centred = [(x + width / 2, y + height / 2, width, height) for x, y, width, height in map(xywh, boxes)]
    return [
        {"label": "dog", "coordinates": dict(zip(("x", "y", "width", "height"), box, strict=True))} for box in centred
    ]


def quoted_cell(value: Any) -> str:
    return '"' + repr(value).replace('"', '""') + '"'


CARRIERS_OF_BOXES: dict[str, Callable[[], Any]] = {
    "Labelbox": lambda: records_of(
        lambda name, boxes: {
            "data_row": {"external_id": f"{name}.jpg"},
            "media_attributes": {"width": WIDTH, "height": HEIGHT},
            "projects": {
                "p": {
                    "labels": [{"annotations": {"objects": [{"name": "dog", "bounding_box": sides(b)} for b in boxes]}}]
                }
            },
        }
    ),
    "Scale": lambda: records_of(
        lambda name, boxes: {
            "task_id": name,
            "params": {"attachment": f"http://a/{name}.jpg"},
            "response": {"annotations": [{"label": "dog", "type": "box"} | sides(box) for box in boxes]},
        }
    ),
    "Prodigy": lambda: records_of(
        lambda name, boxes: {
            "image": f"{name}.jpg",
            "spans": [
                {"label": "dog", "type": "rect"} | dict(zip(("x", "y", "width", "height"), xywh(box), strict=True))
                for box in boxes
            ],
        }
    ),
    "Hasty": lambda: {
        "label_classes": [{"class_name": "dog"}],
        "images": records_of(
            lambda name, boxes: {
                "image_name": f"{name}.jpg",
                "labels": [{"class_name": "dog", "bbox": around(box)} for box in boxes],
            }
        ),
    },
    "dlib": lambda: (
        "<dataset><images>"
        + "".join(
            f"<image file='a/{name}.jpg'>"
            + "".join(
                "<box "
                + " ".join(f"{side}='{value}'" for side, value in sides(box).items())
                + "><label>dog</label></box>"
                for box in boxes
            )
            + "</image>"
            for name, boxes in GT.items()
        )
        + "</images></dataset>"
    ),
    "Turi Create, CSV": lambda: "\n".join(
        ["path,annotations", *(f"a/{name}.jpg,{quoted_cell(turi(boxes))}" for name, boxes in GT.items())]
    ),
    "Turi Create": lambda: records_of(lambda name, boxes: {"path": f"a/{name}.jpg", "annotations": turi(boxes)}),
    "mixed": lambda: records_of(
        lambda name, boxes: {
            "image": f"{name}.jpg",
            "objects": [
                {"label": "dog"} | ({"polygon": ring(box)} if at else {"bbox": xywh(box)})
                for at, box in enumerate(boxes)
            ],
        }
    ),
    "LISA": lambda: "\n".join(
        [
            "Filename;Annotation tag;"
            + ";".join(f"{end} corner {axis}" for end in ("Upper left", "Lower right") for axis in "XY"),
            *(joined(f"{name}.jpg", "dog", *around(box), mark=";") for name, boxes in GT.items() for box in boxes),
        ]
    ),
}


@pytest.mark.parametrize("carrier", CARRIERS_OF_BOXES)
def test_boxes_of_tools_have_their_classes_and_sides(carrier: str, tmp_path: Path) -> None:
    content = CARRIERS_OF_BOXES[carrier]()
    gt = tmp_path / f"gt{'.json' if not isinstance(content, str) else '.xml' if content.startswith('<') else '.csv'}"
    gt.write_text(content if isinstance(content, str) else json.dumps(content))
    rows = [joined(name, "dog", 0.9, *around(box)) for name, boxes in SIDES["pred"].items() for box in boxes]
    (tmp_path / "pred.csv").write_text("\n".join(["image,class,score,xmin,ymin,xmax,ymax", *rows]))
    assert ap(gt, tmp_path / "pred.csv", BOXES)["iou_type"] == "bbox"


def test_children_of_eurocity_and_counted_lines_are_a_file_for_each_image(tmp_path: Path) -> None:
    def frame(name: str, boxes: list[Turned]) -> Any:
        corners_ = (
            {"identity": "dog", "tags": []} | dict(zip(("x0", "y0", "x1", "y1"), around(b), strict=True)) for b in boxes
        )
        return {"identity": "frame", "imagewidth": WIDTH, "imageheight": HEIGHT, "children": [*corners_]}

    def counted(name: str, boxes: list[Turned]) -> str:
        return "\n".join([str(len(boxes)), *(joined(0, *around(box), 0.9, mark=" ") for box in boxes)])

    gt, pred = documents(tmp_path, "gt", frame), documents(tmp_path, "pred", counted, ".txt")
    names = ReadOptions(names=("dog",))
    assert ap(gt, pred, BOXES, pred_options=names)["iou_type"] == "bbox"
    (pred / "img_2.txt").write_text("7\n" + joined(0, *around(SIDES["pred"]["img_2"][0]), 0.9, mark=" "))
    with pytest.raises(DataError, match=r"img_2.txt:1"):
        load(pred, role="pred")


def hrsc(box: Turned) -> str:
    x, y, width, height, degrees = box
    numbers = dict(zip(("xmin", "ymin", "xmax", "ymax"), around(box), strict=True))
    turned = {"cx": x, "cy": y, "w": width, "h": height, "ang": math.radians(degrees)}
    named = {f"box_{name}": value for name, value in numbers.items()} | {f"mbox_{n}": v for n, v in turned.items()}
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in named.items())
    return f"<HRSC_Object><Class_ID>100000005</Class_ID><difficult>0</difficult>{inner}</HRSC_Object>"


def fair1m(box: Turned) -> str:
    points = "".join(f"<point>{x:.3f},{y:.3f}</point>" for x, y in [*corners(box), corners(box)[0]])
    guess = "<possibleresult><name>Bus</name><probability>0.9</probability></possibleresult>"
    return f"<object><coordinate>pixel</coordinate>{guess}<points>{points}</points></object>"


def test_ships_of_hrsc_are_turned_boxes_of_one_class(tmp_path: Path) -> None:
    def write(name: str, boxes: list[Turned]) -> str:
        size = f"<Img_SizeWidth>{WIDTH}</Img_SizeWidth><Img_SizeHeight>{HEIGHT}</Img_SizeHeight>"
        objects = "".join(map(hrsc, boxes))
        return (
            f"<HRSC_Image><Img_FileName>{name}</Img_FileName>{size}<HRSC_Objects>{objects}</HRSC_Objects></HRSC_Image>"
        )

    gt = documents(tmp_path, "gt", write, ".xml")
    (tmp_path / "pred").mkdir()
    lines = [joined(name, 0.9, *ring(box), mark=" ") for name, boxes in SIDES["pred"].items() for box in boxes]
    (tmp_path / "pred/Task1_ship.txt").write_text("\n".join(lines))
    assert ap(gt, tmp_path / "pred", OBB)["iou_type"] == "obb"
    truth = load(gt)
    assert truth.images.sizes.tolist() == [[WIDTH, HEIGHT]] * 2
    assert truth.boxes.xywh[0] == pytest.approx(xywh(GT["img_1"][0]))
    assert any("Class_ID (3)" in str(finding) for finding in truth.findings)


def test_objects_of_fair1m_are_four_corners_with_a_guess_at_the_class(tmp_path: Path) -> None:
    def write(name: str, boxes: list[Turned]) -> str:
        objects = "".join(map(fair1m, boxes))
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
        head = f"<source><filename>{name}.tif</filename></source>{size}"
        return f"<annotation>{head}<objects>{objects}</objects></annotation>"

    sides = [documents(tmp_path, side, write, ".xml") for side in ("gt", "pred")]
    assert ap(*sides, OBB)["iou_type"] == "obb"
    assert load(sides[0]).labels.names == ("Bus",)
    assert load(sides[1], role="pred").boxes.score.tolist() == [0.9] * 3
    path = sides[1] / "img_2.xml"
    path.write_text(path.read_text().replace("<point>", "<point>x", 1))
    with pytest.raises(DataError, match="number-invalid"):
        load(sides[1], role="pred")


def test_words_of_ctw1500_are_segments_in_xml(tmp_path: Path) -> None:
    def write(name: str, boxes: list[Turned]) -> str:
        words = "".join(
            f'<box left="1" top="1" width="9" height="9"><label>{"###" if box[4] == 60 else "W"}</label>'
            f"<segs>{joined(*outline(box))}</segs></box>"
            for box in boxes
        )
        return f'<Annotations><image file="{name}.jpg">{words}</image></Annotations>'

    gt = documents(tmp_path, "gt", write, ".xml")
    pred = documents(tmp_path, "pred", lambda _, boxes: "\n".join(joined(*outline(box), 0.9) for box in boxes), ".txt")
    truth = load(gt)
    assert truth.boxes.crowd.tolist() == [False, False, True]
    assert ap(gt, pred, MASKS)["iou_type"] == "segm"


def test_words_of_street_view_text_are_boxes_in_one_file(tmp_path: Path) -> None:
    images = "".join(
        f"<image><imageName>img/{name}.jpg</imageName><taggedRectangles>"
        + "".join(
            f'<taggedRectangle x="{x}" y="{y}" width="{w}" height="{h}"><tag>A</tag></taggedRectangle>'
            for x, y, w, h in map(xywh, boxes)
        )
        + "</taggedRectangles></image>"
        for name, boxes in GT.items()
    )
    (tmp_path / "gt.xml").write_text(f"<tagset>{images}</tagset>")
    pred = documents(tmp_path, "pred", lambda _, boxes: "\n".join(joined(*around(box), 0.9) for box in boxes), ".txt")
    assert ap(tmp_path / "gt.xml", pred, BOXES)["iou_type"] == "bbox"


def test_shapes_of_cvat_are_outlines_turned_boxes_and_poses(tmp_path: Path) -> None:
    def polygon(box: Turned) -> str:
        return f'<polygon label="dog" points="{";".join(f"{x:.3f},{y:.3f}" for x, y in corners(box))}"/>'

    def turned(box: Turned) -> str:
        x, y, width, height, degrees = box
        sides = {"xtl": x - width / 2, "ytl": y - height / 2, "xbr": x + width / 2, "ybr": y + height / 2}
        given = " ".join(f'{name}="{value}"' for name, value in sides.items())
        return f'<box label="dog" {given} rotation="{degrees % 360}"/>'

    def skeleton(box: Turned) -> str:
        points = (f'<points label="{name}" outside="0" points="{x},{y}"/>' for name, (x, y) in placed(box))
        return f'<skeleton label="dog">{"".join(points)}</skeleton>'

    boxes = results(tmp_path, lambda box: {"bbox": xywh(box)}, "boxes.json")
    oriented = results(tmp_path, lambda box: {"poly": ring(box)}, "oriented.json")
    posed = results(tmp_path, lambda box: {"keypoints": [v for x, y in corners(box) for v in (x, y, 1)]}, "posed.json")
    outlines = cvat(tmp_path, "outlines.xml", polygon)
    assert "outline" in ap(outlines, boxes, BOXES)["codes"]
    assert ap(outlines, oriented, MASKS)["iou_type"] == "segm"  # four corners are an outline, too
    about = cvat(tmp_path, "turned.xml", turned)
    assert ap(about, boxes, BOXES)["iou_type"] == "bbox"
    assert ap(about, oriented, OBB)["iou_type"] == "obb"
    poses = cvat(tmp_path, "poses.xml", skeleton)
    assert "outline" in ap(poses, boxes, BOXES)["codes"]
    assert ap(poses, posed, 0.8, sigmas=[0.1] * 4)["iou_type"] == "keypoints"


def test_segments_of_results_are_masks(tmp_path: Path) -> None:
    gt = truth(tmp_path, lambda box: {"segmentation": [ring(box)]})
    assert ap(gt, results(tmp_path, lambda box: {"segments": [ring(box)]}), MASKS)["iou_type"] == "segm"


def test_instances_of_detection_have_masks_or_eight_numbers(tmp_path: Path) -> None:
    def named(document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "metainfo": {"classes": ["dog"]}}

    gt = document(tmp_path, "obb.json", named(instances("gt", bbox=ring)))
    assert ap(gt, results(tmp_path, lambda box: {"poly": ring(box)}), OBB)["iou_type"] == "obb"
    gt = document(tmp_path, "masks.json", named(instances("gt", bbox=around, mask=lambda box: [ring(box)])))
    masks = results(tmp_path, lambda box: {"segmentation": [ring(box)]}, "masks of results.json")
    assert ap(gt, masks, MASKS)["iou_type"] == "segm"
    assert ap(gt, results(tmp_path, lambda box: {"bbox": xywh(box)}, "boxes.json"), BOXES)["iou_type"] == "bbox"


def test_labels_of_a_shared_tool_and_json_min_have_polygons(tmp_path: Path) -> None:
    about = {"original_width": WIDTH, "original_height": HEIGHT}
    shared, least = [], []
    for at, (name, boxes) in enumerate(GT.items()):
        address = f"/data/upload/1/ab12cd3{at}-{name}.jpg"
        values = [{"points": per_cent(corners(box)), "closed": True} for box in boxes]
        rows: list[dict[str, Any]] = []
        for number, value in enumerate(values):
            rows.append({"id": str(number), "type": "polygon", **about, "value": value})
            rows.append({"id": str(number), "type": "labels", **about, "value": {**value, "labels": ["dog"]}})
        shared.append({"id": at, "data": {"image": address}, "annotations": [{"result": rows}]})
        drawn = [{**value, **about, "polygonlabels": ["dog"]} for value in values]
        least.append({"id": at, "image": address, "label": drawn, "annotator": 1})
    pred = results(tmp_path, lambda box: {"segmentation": [ring(box)]})
    assert ap(document(tmp_path, "shared.json", shared), pred, MASKS)["iou_type"] == "segm"
    assert ap(document(tmp_path, "min.json", least), pred, MASKS)["iou_type"] == "segm"


def test_records_of_scripts_are_read_by_the_shape_that_they_have(tmp_path: Path) -> None:
    gt = truth(tmp_path, lambda box: {"segmentation": [ring(box)]})
    flat = [
        {"image": f"{name}.jpg", "label": "dog", "score": 0.9, "polygon": corners(box)}
        for name, boxes in SIDES["pred"].items()
        for box in boxes
    ]
    assert ap(gt, document(tmp_path, "flat.json", flat), MASKS)["iou_type"] == "segm"
    listed = [
        {"file_name": f"{name}.jpg", "objects": [{"class": "dog", "score": 0.9, "rle": rle(box)} for box in boxes]}
        for name, boxes in SIDES["pred"].items()
    ]
    assert ap(gt, document(tmp_path, "listed.json", listed), MASKS)["iou_type"] == "segm"


def test_soda_has_a_document_of_each_image_and_four_corners(tmp_path: Path) -> None:
    def write(name: str, boxes: list[Turned]) -> dict[str, Any]:
        return {
            "images": {"file_name": f"{name}.jpg", "height": HEIGHT, "width": WIDTH, "id": 0},
            "annotations": [
                {"poly": ring(box), "category_id": 1, "image_id": 0, "id": at} for at, box in enumerate(boxes)
            ],
            "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
        }

    gt = documents(tmp_path, "gt", write)
    (tmp_path / "pred").mkdir()
    rows = [joined(name, 0.9, *ring(box), mark=" ") for name, boxes in SIDES["pred"].items() for box in boxes]
    (tmp_path / "pred/Task1_dog.txt").write_text("\n".join(rows))
    assert ap(gt, tmp_path / "pred", OBB)["iou_type"] == "obb"


def nuimages(folder: Path, *, lost: str = "") -> Path:
    """The tables of nuImages; a category of one object may be lost."""
    folder.mkdir()
    rows = [(name, box) for name, boxes in GT.items() for box in boxes]
    objects = [
        {
            "token": f"o{at}",
            "category_token": lost if lost and not at else "c1",
            "bbox": around(box),
            "mask": {**rle(box), "counts": base64.b64encode(rle(box)["counts"].encode()).decode()},
            "sample_data_token": name,
        }
        for at, (name, box) in enumerate(rows)
    ]
    images = [
        {"token": name, "filename": f"samples/CAM/{name}.jpg", "width": WIDTH, "height": HEIGHT, "is_key_frame": True}
        for name in GT
    ]
    images.append({**images[0], "token": "sweep", "filename": "sweeps/CAM/x.jpg", "is_key_frame": False})
    tables = {"object_ann": objects, "sample_data": images, "category": [{"token": "c1", "name": "dog"}], "log": []}
    for name, records in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(records))
    return folder


def test_tables_of_nuimages_are_joined_by_their_tokens(tmp_path: Path) -> None:
    tables = nuimages(tmp_path / "v1.0-val")
    rows = [joined(name, "dog", 0.9, *around(box)) for name, boxes in SIDES["pred"].items() for box in boxes]
    (tmp_path / "pred.csv").write_text("\n".join(["image,class,score,xmin,ymin,xmax,ymax", *rows]))
    for given in (tables, tables / "object_ann.json"):
        assert ap(given, tmp_path / "pred.csv", BOXES)["iou_type"] == "bbox"
    masks = [
        {"image": f"{name}.jpg", "label": "dog", "score": 0.9, "polygon": corners(box)}
        for name, boxes in SIDES["pred"].items()
        for box in boxes
    ]
    assert ap(tables, document(tmp_path, "masks.json", masks), MASKS)["iou_type"] == "segm"
    assert len(load(tables).images) == 2  # those that are annotated
    with pytest.raises(DataError, match=r"object_ann\.json: \[0\].category_token: category\.json has no such category"):
        load(nuimages(tmp_path / "other", lost="c9"))


@pytest.mark.parametrize("order", ["{frame},{label},{id},{box}", "{frame},{id},{box},{label}"])
def test_ids_of_tracks_are_no_part_of_a_class(order: str, tmp_path: Path) -> None:
    lines = [
        order.format(frame=frame, label="big dog", id=at, box=joined(*xywh(box)))
        for frame in range(3)
        for at, box in enumerate(GT["img_1"], 1)
    ]
    (tmp_path / "tracks.txt").write_text("\n".join(lines))
    data = load(tmp_path / "tracks.txt", options=ReadOptions(box="xywh"))
    assert (data.format, data.labels.names, data.ignored) == ("text", ("big dog",), {"track_id": 6})
    assert data.boxes.xywh[:2].tolist() == [xywh(box) for box in GT["img_1"]]


def darwin(name: str, boxes: list[Turned]) -> Any:
    paths = [[[{"x": x, "y": y} for x, y in corners(box)]] for box in boxes]
    slots = [{"slot_name": "0", "width": WIDTH, "height": HEIGHT}]
    objects = [
        {"name": "dog", "bounding_box": dict(zip("xywh", xywh(box), strict=True)), "polygon": {"paths": path}}
        for box, path in zip(boxes, paths, strict=True)
    ]
    return {"version": "2.0", "item": {"name": f"{name}.jpg", "slots": slots}, "annotations": objects}


def superannotate(name: str, boxes: list[Turned]) -> Any:
    objects = [{"type": "polygon", "className": "dog", "points": ring(box)} for box in boxes]
    return {"metadata": {"name": f"{name}.jpg", "width": WIDTH, "height": HEIGHT}, "instances": objects}


def hubmap(name: str, boxes: list[Turned]) -> Any:
    return {"id": name, "annotations": [{"type": "dog", "coordinates": [corners(box)]} for box in boxes]}


def hover_net(name: str, boxes: list[Turned]) -> Any:
    def nucleus(box: Turned) -> dict[str, Any]:
        left, top, right, bottom = around(box)
        outline = {"contour": corners(box), "bbox": [[top, left], [bottom, right]], "centroid": box[:2]}
        return {**outline, "type": 1, "type_name": "dog", "type_prob": 0.9}

    return {"mag": 40, "nuc": {str(at): nucleus(box) for at, box in enumerate(boxes, 1)}}


def fashion(name: str, boxes: list[Turned]) -> Any:
    objects = {
        f"item{at}": {
            "category_name": "dog",
            "bounding_box": around(box),
            "landmarks": [0],
            "segmentation": [ring(box)],
        }
        for at, box in enumerate(boxes, 1)
    }
    return {"source": "shop", "pair_id": 1, **objects}


@pytest.mark.parametrize("make", [darwin, superannotate, hover_net, fashion], ids=lambda make: make.__name__)
def test_polygons_of_tools_for_annotation_are_masks(make: Callable[[str, list[Turned]], Any], tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name in GT:
        Image.new("L", (WIDTH, HEIGHT)).save(images / f"{name}.png")
    pred = results(tmp_path, lambda box: {"segmentation": [ring(box)]})
    gt = documents(tmp_path, "gt", make)
    found = ap(gt, pred, MASKS, iou_type="segm", gt_options=ReadOptions(images=images))
    assert found["iou_type"] == "segm"
    boxes = results(tmp_path, lambda box: {"bbox": xywh(box)}, "boxes.json")
    assert ap(gt, boxes, BOXES)["iou_type"] == "bbox"


def test_outlines_of_lines_are_masks_with_scores_that_their_tool_has(tmp_path: Path) -> None:
    (tmp_path / "gt.jsonl").write_text("\n".join(json.dumps(hubmap(name, boxes)) for name, boxes in GT.items()))
    pred = documents(tmp_path, "pred", hover_net)
    (tmp_path / "images").mkdir()
    for name in GT:
        Image.new("L", (WIDTH, HEIGHT)).save(tmp_path / "images" / f"{name}.png")
    options = ReadOptions(images=tmp_path / "images")
    assert ap(tmp_path / "gt.jsonl", pred, MASKS, iou_type="segm", gt_options=options)["iou_type"] == "segm"


def test_points_with_names_and_scores_are_poses(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    points = lambda box: [number for x, y in corners(box) for number in (x, y, 2)]  # noqa: E731
    gt = truth(tmp_path, lambda box: {"keypoints": points(box), "num_keypoints": 4})

    def found(box: Turned, part: bool) -> dict[str, Any]:
        placed = [({"x": x, "y": y}, name) for (x, y), name in zip(corners(box), names, strict=True)]
        rows = [
            {"position": at, "part": name, "score": 0.9} if part else {**at, "name": name, "score": 0.9}
            for at, name in reversed(placed)
        ]
        return {"score": 0.8, "keypoints": rows}

    # 10 px at each point, a tenth of the square root of the area: OKS exp(-100 / (2 * 5000 * (2 * .1)**2)) = .7788.
    for part in (True, False):
        pred = documents(
            tmp_path / str(part), "pred", lambda name, boxes, part=part: [found(box, part) for box in boxes]
        )
        assert ap(gt, pred, 0.6, iou_type="keypoints", sigmas=[0.1] * 4)["iou_type"] == "keypoints"


def test_labels_of_points_in_skeletons_are_no_classes(tmp_path: Path) -> None:
    labels = "<label><name>dog</name></label><label><name>nose</name><parent>dog</parent></label>"
    boxes = "".join(
        f'<image id="{at}" name="{name}.jpg" width="{WIDTH}" height="{HEIGHT}">'
        + "".join('<box label="dog" xtl="{}" ytl="{}" xbr="{}" ybr="{}"></box>'.format(*around(box)) for box in boxes)
        + "</image>"
        for at, (name, boxes) in enumerate(GT.items())
    )
    (tmp_path / "gt.xml").write_text(
        f"<annotations><meta><task><labels>{labels}</labels></task></meta>{boxes}</annotations>"
    )
    assert load(tmp_path / "gt.xml").labels.names == ("dog",)


def test_lists_of_features_are_a_file_of_each_image(tmp_path: Path) -> None:
    def features(name: str, boxes: list[Turned]) -> Any:
        rings = [[*corners(box), corners(box)[0]] for box in boxes]
        about = {"classification": {"name": "dog"}, "measurements": []}
        geometries = [{"type": "Polygon", "coordinates": [ring]} for ring in rings]
        return [{"type": "Feature", "geometry": geometry, "properties": about} for geometry in geometries]

    dataset = load(documents(tmp_path, "gt", features), options=ReadOptions(iou_type="bbox"))
    assert (dataset.format, dataset.images.keys, len(dataset.boxes)) == ("geojson", ("img_1", "img_2"), 3)
