"""JSON that scripts write for themselves: one scene under the names and nestings that public repositories use."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

SCENE = {  # by image: class, score, left, top, right, bottom
    "a.jpg": [("dog", 0.9, 10, 20, 60, 90), ("cat", 0.4, 100, 5, 160, 45)],
    "b.jpg": [("cat", 0.7, 30, 30, 50, 80)],
}
Boxes = list[tuple[Any, ...]]


def flat(box: tuple[Any, ...]) -> dict[str, Any]:
    name, score, *corners = box
    return {"class": name, "confidence": score, **dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))}


def packed(box: tuple[Any, ...]) -> dict[str, Any]:
    name, score, left, top, right, bottom = box
    return {"label": name, "score": score, "bbox": [left, top, right - left, bottom - top]}


def corners(box: tuple[Any, ...]) -> list[Any]:
    return [float(side) for side in box[2:]]


def vott(image: str, boxes: Boxes) -> dict[str, Any]:
    regions = [
        {"type": "RECTANGLE", "tags": [box[0]], "score": box[1], "boundingBox": custom_vision(box)["boundingBox"]}
        for box in boxes
    ]
    return {"asset": {"name": image, "size": {"width": 200, "height": 100}}, "regions": regions}


def tt100k(box: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "category": box[0],
        "score": box[1],
        "bbox": dict(zip(("xmin", "ymin", "xmax", "ymax"), box[2:], strict=True)),
    }


def by_image(write: Callable[[str, Boxes], Any]) -> list[Any]:
    return [write(image, boxes) for image, boxes in SCENE.items()]


def arrays(boxes: Boxes, prefix: str = "") -> dict[str, Any]:
    columns = {"boxes": map(corners, boxes), "scores": (box[1] for box in boxes), "labels": (box[0] for box in boxes)}
    return {f"{prefix}{name}": list(values) for name, values in columns.items()}


def custom_vision(box: tuple[Any, ...]) -> dict[str, Any]:
    left, top, right, bottom = corners(box)
    sides = {"left": left, "top": top, "width": right - left, "height": bottom - top}
    return {"tagName": box[0], "probability": box[1], "boundingBox": sides}


LAYOUTS = {
    "a record per box": [{"filename": image, **flat(box)} for image, boxes in SCENE.items() for box in boxes],
    "COCO results with names of classes": [
        {"image_id": image, "category_name": box[0], "score": box[1], "bbox": packed(box)["bbox"]}
        for image, boxes in SCENE.items()
        for box in boxes
    ],
    "objects by image": by_image(lambda image, boxes: {"file_name": image, "detections": [*map(packed, boxes)]}),
    "objects by image, in data": {
        "data": by_image(lambda image, boxes: {"image": image, "objects": [*map(flat, boxes)]})
    },
    "an object of objects": {image: {"detections": [*map(packed, boxes)]} for image, boxes in SCENE.items()},
    "lists by image, in detections": {"detections": {image: [*map(packed, boxes)] for image, boxes in SCENE.items()}},
    "arrays by image": by_image(lambda image, boxes: {"image_id": image, **arrays(boxes, "pred_")}),
    "arrays with names of files": by_image(lambda image, boxes: {"file_name": image, **arrays(boxes)}),
    "Azure Custom Vision": by_image(lambda image, boxes: {"image": image, "predictions": [*map(custom_vision, boxes)]}),
    "VoTT's project": {
        "name": "p",
        "tags": [{"name": "dog"}, {"name": "cat"}],
        "videoSettings": {"frameExtractionRate": 15},
        "assets": dict(zip("xy", by_image(vott), strict=True)),
    },
    "TT100K": {
        "types": ["dog", "cat"],
        "imgs": {
            str(at): {"path": image, "id": at, "objects": [*map(tt100k, boxes)]}
            for at, (image, boxes) in enumerate(SCENE.items())
        },
    },
    "lists of either side": {
        "ground_truth": [],
        "predictions": [{"image": image, **flat(box)} for image, boxes in SCENE.items() for box in boxes],
    },
    "rows of numbers": {image: [[*corners(box), box[1], box[0]] for box in boxes] for image, boxes in SCENE.items()},
}


TABLES = {
    "Kaggle's reef": {"annotations": lambda boxes: [{**packed(box), "class": box[0]} for box in boxes]},
    "objects": {"objects": lambda boxes: [*map(flat, boxes)]},
    "arrays": {name: (lambda boxes, name=name: arrays(boxes)[name]) for name in ("boxes", "scores", "labels")},
}


@pytest.fixture
def gt(tmp_path: Path) -> Path:
    rows = [{"image": image, "class": box[0], **flat(box)} for image, boxes in SCENE.items() for box in boxes]
    return write_json(tmp_path / "gt.json", rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_the_same_boxes(layout: str, gt: Path, tmp_path: Path) -> None:
    pred = write_json(tmp_path / "pred.json", LAYOUTS[layout])
    data = load(pred, role="pred")
    assert data.format == "records"
    assert data.boxes.xywh.tolist() == [[10, 20, 50, 70], [100, 5, 60, 40], [30, 30, 20, 50]]
    assert evaluate(gt, pred)["AP"] == 1


@pytest.mark.parametrize("dumps", [json.dumps, str], ids=["JSON", "Python"])
@pytest.mark.parametrize("table", TABLES)
def test_tables_have_lists_in_their_cells(table: str, dumps: Callable[[Any], str], gt: Path, tmp_path: Path) -> None:
    pred = tmp_path / "pred.csv"
    with pred.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["video_id", "image_id", "width", "height", *TABLES[table]])
        for image, boxes in (*SCENE.items(), ("c.jpg", [])):
            writer.writerow([0, image, 200, 100, *(dumps(cells(boxes)) for cells in TABLES[table].values())])
    data = load(pred, role="pred")
    assert (data.format, data.images.keys) == ("records", ("a.jpg", "b.jpg", "c.jpg"))
    assert data.boxes.xywh.tolist() == [[10, 20, 50, 70], [100, 5, 60, 40], [30, 30, 20, 50]]
    assert data.images.sizes.tolist() == [[200, 100]] * 3
    assert evaluate(gt, pred)["AP"] == 1


def test_cells_that_are_no_lists_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "gt.csv"
    path.write_text("image_id,annotations\na,\"[{'x': 1}]\"\nb,nothing\nc\nd,\"[__import__('os')]\"\n")
    with pytest.raises(DataError) as caught:
        load(path)
    for place in ("gt.csv:3: annotations: 'nothing' is not a list", "gt.csv:4: has 1 cells", "gt.csv:5: annotations: "):
        assert place in str(caught.value)


def test_boxes_of_images_without_a_class_are_of_one(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text(
        """video_id,image_id,annotations\n0,0-1,"[{'x': 5, 'y': 6, 'width': 7, 'height': 8}]"\n0,0-2,[]\n"""
    )
    side = load(path, options=ReadOptions(names=("starfish",)))
    assert (side.labels.names, side.images.keys, side.boxes.xywh.tolist()) == (
        ("starfish",),
        ("0-1", "0-2"),
        [[5, 6, 7, 8]],
    )


def test_json_lines_are_records_too(gt: Path, tmp_path: Path) -> None:
    pred = tmp_path / "pred.jsonl"
    pred.write_text(
        "".join(f"{json.dumps(image)}\n" for image in by_image(lambda key, boxes: {"file_name": key, **arrays(boxes)}))
    )
    assert evaluate(gt, pred)["AP"] == 1


def test_a_folder_has_a_file_for_each_image(gt: Path, tmp_path: Path) -> None:
    (tmp_path / "pred").mkdir()
    for image, boxes in SCENE.items():
        write_json(tmp_path / "pred" / f"{Path(image).stem}.json", {"boxes": [*map(corners, boxes)], **arrays(boxes)})
    assert evaluate(gt, tmp_path / "pred")["AP"] == 1


def test_a_file_with_both_sides_is_either(tmp_path: Path) -> None:
    image = {"image": "a.jpg", "gt_boxes": [[0, 0, 10, 10]], "gt_labels": ["dog"], **arrays(SCENE["a.jpg"], "pred_")}
    both = write_json(tmp_path / "both.json", [image])
    assert load(both).boxes.xywh.tolist() == [[0, 0, 10, 10]]
    assert len(load(both, role="pred").boxes) == 2


def test_images_without_boxes_are_images(tmp_path: Path) -> None:
    rows = [{"file_name": "a.jpg", "detections": [packed(SCENE["a.jpg"][0])]}, {"file_name": "b.jpg", "detections": []}]
    assert list(load(write_json(tmp_path / "pred.json", rows), role="pred").images.keys) == ["a.jpg", "b.jpg"]


def test_a_bbox_is_left_top_width_height_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    rows = [{"image": "a.jpg", "detections": [{"bbox": [10, 20, 60, 90], "label": "dog", "score": 1}]}]
    pred = write_json(tmp_path / "pred.json", rows)
    assert load(pred, role="pred").boxes.xywh.tolist() == [[10, 20, 60, 90]]
    as_corners = load(pred, role="pred", options=ReadOptions(box="xyxy"))
    assert as_corners.boxes.xywh.tolist() == [[10, 20, 50, 70]]


def test_lists_of_different_lengths_are_reported_with_their_place(tmp_path: Path) -> None:
    rows = by_image(lambda image, boxes: {"file_name": image, **arrays(boxes), "scores": [0.5] * 3})
    with pytest.raises(DataError) as caught:
        load(write_json(tmp_path / "pred.json", rows), role="pred")
    assert "[0].objects: the lists differ in length: 2 of boxes, 3 of score, 2 of labels" in str(caught.value)
    assert "[1].objects" in str(caught.value)


def test_a_damaged_box_is_reported_with_its_place(tmp_path: Path) -> None:
    rows = by_image(
        lambda image, boxes: {"file_name": image, "detections": [{**packed(box), "score": "high"} for box in boxes]}
    )
    with pytest.raises(DataError) as caught:
        load(write_json(tmp_path / "pred.json", rows), role="pred")
    assert "[0].objects[1].score" in str(caught.value)


@pytest.mark.parametrize("content", [{"x1": 3}, {"results": {"bbox": {}}}, [{"left": 3}]])
def test_json_without_boxes_is_told_what_to_write(content: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no boxes found|expected records") as caught:
        load(write_json(tmp_path / "pred.json", content), role="pred")
    assert 'Write [{"image": "a.jpg", "class": "dog"' in str(caught.value)


def test_the_advised_record_can_be_read(tmp_path: Path) -> None:
    advised = {"image": "a.jpg", "class": "dog", "score": 0.9, "x1": 10, "y1": 20, "x2": 110, "y2": 220}
    assert len(load(write_json(tmp_path / "pred.json", [advised]), role="pred").boxes) == 1


def test_a_class_id_and_a_file_name_are_records(tmp_path: Path) -> None:
    """COCO's rows name their image by id."""
    path = tmp_path / "pred.json"
    path.write_text(json.dumps([{"file_name": "a.jpg", "category_id": 1, "bbox": [1, 2, 30, 40], "score": 0.9}]))
    assert detect_format(path) == "records"
    assert load(path, role="pred").boxes.xywh.tolist() == [[1, 2, 30, 40]]


def test_a_folder_of_splits_that_list_their_images_is_not_one_of_a_file_per_image(tmp_path: Path) -> None:
    folder = tmp_path / "annotations"
    folder.mkdir()
    for split in ("train", "val"):  # image 1 of each is another image
        annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
        images, categories = [{"id": 1, "file_name": f"{split}.jpg"}], [{"id": 1, "name": "dog"}]
        write_json(
            folder / f"instances_{split}.json",
            {"images": images, "annotations": [annotation], "categories": categories},
        )
    for given in (folder, tmp_path):
        side = load(given)
        assert (side.path, side.images.file_names) == (f"{folder}/instances_val.json", ("val.jpg",))


@pytest.mark.parametrize("first", [0, 1])
def test_names_that_a_file_lists_name_its_numbered_classes(first: int, tmp_path: Path) -> None:
    boxes = [{"label": first + row, "bounding_box": [0.1, 0.1, 0.2, 0.2]} for row in (1, 1, 0)]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"classes": ["car", "dog"], "labels": {"street": boxes}}))
    side = load(path, format_name="records")
    assert [side.labels.names[row] for row in side.boxes.label] == ["dog", "dog", "car"]
    path.write_text(json.dumps({"classes": ["car"], "labels": {"street": boxes}}))  # too few: they name others
    assert not load(path, format_name="records").labels.named
