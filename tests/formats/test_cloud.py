"""Answers of services: one scene as each of them writes it, against the same boxes in pixels."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, evaluate, load

WIDTH, HEIGHT = 1000, 500
SCENE = {
    "street": [("Dog", 0.75, 100, 50, 200, 100), ("Car", 0.5, 0, 0, 500, 250)],
    "park": [("Dog", 0.25, 500, 125, 250, 250)],
}
Box = tuple[str, float, int, int, int, int]


def fractions(box: Box) -> list[float]:
    return [box[2] / WIDTH, box[3] / HEIGHT, box[4] / WIDTH, box[5] / HEIGHT]


def amazon(box: Box) -> dict[str, float]:
    return dict(zip(("Left", "Top", "Width", "Height"), fractions(box), strict=True))


def rekognition(boxes: list[Box]) -> dict[str, Any]:
    labels = [
        {"Name": name, "Confidence": 99.0, "Parents": [], "Instances": [
            {"BoundingBox": amazon(box), "Confidence": box[1] * 100} for box in boxes if box[0] == name
        ]}
        for name in ("Dog", "Car", "Animal")
    ]  # fmt: skip
    return {"Labels": labels, "LabelModelVersion": "3.0"}


def custom_labels(boxes: list[Box]) -> dict[str, Any]:
    found = [{"Name": box[0], "Confidence": box[1] * 100, "Geometry": {"BoundingBox": amazon(box)}} for box in boxes]
    return {"CustomLabels": found}


def corners(box: Box) -> list[dict[str, float]]:
    left, top, width, height = fractions(box)
    ends = [(x, y) for y in (top, top + height) for x in (left, left + width)]
    return [{name: value for name, value in zip("xy", end, strict=True) if value} for end in ends]  # zeros are left out


def google(boxes: list[Box], **names: str) -> dict[str, Any]:
    listed, poly, vertices = names.values() or ("localizedObjectAnnotations", "boundingPoly", "normalizedVertices")
    return {listed: [{"mid": "/m/1", "name": box[0], "score": box[1], poly: {vertices: corners(box)}} for box in boxes]}


def clarifai(boxes: list[Box]) -> dict[str, Any]:
    def region(box: Box) -> dict[str, Any]:
        left, top, width, height = fractions(box)
        sides = {"top_row": top, "left_col": left, "bottom_row": top + height, "right_col": left + width}
        return {"region_info": {"bounding_box": sides}, "data": {"concepts": [{"name": box[0], "value": box[1]}]}}

    return {"status": {"code": 10000}, "outputs": [{"data": {"regions": [*map(region, boxes)]}}]}


def sides(box: Box) -> dict[str, int]:
    return dict(zip("xywh", box[2:], strict=True))


def extent(box: Box) -> dict[str, float]:
    left, top, width, height = fractions(box)
    return {"x_min": left, "y_min": top, "x_max": left + width, "y_max": top + height}


def ends(box: Box) -> list[float]:
    left, top, width, height = fractions(box)
    return [left, top, left + width, top + height]


def columns(boxes: list[Box]) -> dict[str, Any]:
    left_right_top_bottom = [[ends(box)[side] for side in (0, 2, 1, 3)] for box in boxes]
    names, scores = [box[0] for box in boxes], [box[1] for box in boxes]
    return {"ids": ["7"] * len(boxes), "displayNames": names, "confidences": scores, "bboxes": left_right_top_bottom}


def hailo(boxes: list[Box]) -> dict[str, Any]:
    def detection(box: Box) -> dict[str, Any]:
        place = dict(zip(("xmin", "ymin", "width", "height"), fractions(box), strict=True))
        named = {"label": box[0], "class_id": 1, "confidence": box[1], "HailoBBox": place, "SubObjects": []}
        return {"HailoDetection": named}

    return {"timestamp (ms)": 9, "HailoROI": {"SubObjects": [*map(detection, boxes)]}}


METADATA = {"metadata": {"width": WIDTH, "height": HEIGHT}}
ANSWERS = {
    "Rekognition": rekognition,
    "Custom Labels": custom_labels,
    "Google": google,
    "Google, a request of one": lambda boxes: {"responses": [google(boxes)]},
    "Google, in Python": lambda boxes: google(
        boxes, listed="localized_object_annotations", poly="bounding_poly", vertices="normalized_vertices"
    ),
    "Azure": lambda boxes: (
        METADATA | {"objects": [{"rectangle": sides(box), "object": box[0], "confidence": box[1]} for box in boxes]}
    ),
    "Azure, 4.0": lambda boxes: (
        METADATA
        | {
            "objectsResult": {
                "values": [
                    {"boundingBox": sides(box), "tags": [{"name": box[0], "confidence": box[1]}]} for box in boxes
                ]
            }
        }
    ),
    "Clarifai": clarifai,
    "Vertex": lambda boxes: {"predictions": [columns(boxes)], "deployedModelId": "1"},
    "Vertex, in batches": lambda boxes: {"instance": {"mimeType": "image/jpeg"}, "prediction": columns(boxes)},
    "Hailo": hailo,
    "Custom Vision": lambda boxes: {
        "project": "p",
        "predictions": [
            {
                "probability": box[1],
                "tagId": "t",
                "tagName": box[0],
                "boundingBox": dict(zip(("left", "top", "width", "height"), fractions(box), strict=True)),
            }
            for box in boxes
        ],
    },
    "DL Streamer": lambda boxes: {
        "objects": [
            {"detection": {"bounding_box": extent(box), "confidence": box[1], "label": box[0]}, "h": 1, "w": 2}
            for box in boxes
        ],
        "resolution": {"height": HEIGHT, "width": WIDTH},
    },
}


@pytest.fixture
def gt(tmp_path: Path) -> Path:
    rows = "".join(
        f"{image}.jpg,{WIDTH},{HEIGHT},{name},{left},{top},{left + width},{top + height}\n"
        for image, boxes in SCENE.items()
        for name, _, left, top, width, height in boxes
    )
    path = tmp_path / "gt.csv"
    path.write_text(f"image,width,height,class,xmin,ymin,xmax,ymax\n{rows}")
    return path


@pytest.mark.parametrize("service", ANSWERS)
def test_every_service_holds_the_same_boxes(service: str, gt: Path, tmp_path: Path) -> None:
    answers = {image: ANSWERS[service](boxes) for image, boxes in SCENE.items()}
    folder = tmp_path / "pred"
    folder.mkdir()
    for image, answer in {**answers, "night": ANSWERS[service]([])}.items():
        write_json(folder / f"{image}.json", answer)
    named = write_json(tmp_path / "named.json", {f"{image}.jpg": answer for image, answer in answers.items()})
    for source in (folder, named):
        side = load(source, role="pred")
        assert (side.format, sorted(side.boxes.score.tolist())) == ("cloud", [0.25, 0.5, 0.75])
        assert {name for name in side.labels.names if name} == {"Car", "Dog"}
        assert evaluate(gt, source, extra_images="ignore")["AP"] == 1
    assert "night" in load(folder, role="pred").images.keys


NUMBERED = {
    # class, score and the fractions of left, top, right and bottom
    "SageMaker": lambda boxes: {"prediction": [[float(CLASSES[box[0]]), box[1], *ends(box)] for box in boxes]},
    # top before left, filled up with nothing
    "TF Serving": lambda boxes: {
        "predictions": [
            {
                "num_detections": float(len(boxes)),
                "detection_boxes": [*([ends(box)[side] for side in (1, 0, 3, 2)] for box in boxes), [0.0] * 4],
                "detection_scores": [*(box[1] for box in boxes), 0.0],
                "detection_classes": [*(float(CLASSES[box[0]]) for box in boxes), 1.0],
            }
        ]
    },
}
CLASSES = {"Car": 0, "Dog": 1}


@pytest.mark.parametrize("service", NUMBERED)
@pytest.mark.parametrize("suffix", [".json", ".jpg.out"])
def test_classes_that_are_numbers_are_named_by_index(service: str, suffix: str, gt: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "pred").mkdir()
    for image, boxes in SCENE.items():
        write_json(folder / f"{image}{suffix}", NUMBERED[service](boxes))
    named = ReadOptions(role="pred", names=("Car", "Dog"))
    side = load(folder, role="pred", options=named)
    assert (side.format, side.labels.names, sorted(side.boxes.score.tolist())) == (
        "cloud", ("Car", "Dog"), [0.25, 0.5, 0.75],
    )  # fmt: skip
    assert evaluate(gt, side)["AP"] == 1


def test_batches_name_their_images_or_are_numbered(gt: Path, tmp_path: Path) -> None:
    lines = [
        {"instance": {"content": f"gs://bucket/{image}.jpg"}, "prediction": columns(boxes)}
        for image, boxes in SCENE.items()
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert evaluate(gt, path)["AP"] == 1
    together = {"predictions": [columns(boxes) for boxes in SCENE.values()]}
    side = load(write_json(tmp_path / "all.json", together), role="pred")
    assert side.images.keys == ("0", "1")
    assert "image-position" in {finding.code for finding in side.findings}


def test_answers_about_one_class_have_no_name_for_it(tmp_path: Path) -> None:
    sides = ("x_min", "y_min", "x_max", "y_max")
    answer = {"request_id": "1", "objects": [dict(zip(sides, ends(box), strict=True)) for box in SCENE["street"]]}
    path = write_json(tmp_path / "street.json", answer)
    side = load(path, role="pred", options=ReadOptions(role="pred", assume_score=1.0))
    assert side.has_no_class
    assert side.boxes.xywh.tolist() == [pytest.approx(fractions(box)) for box in SCENE["street"]]
    dogs = load(path, role="pred", options=ReadOptions(role="pred", assume_score=1.0, names=("Dog",)))
    assert (dogs.has_no_class, dogs.labels.names) == (False, ("Dog",))


def test_entries_that_are_no_detections_are_counted(tmp_path: Path) -> None:
    zone = {"detection": {"bounding_box": extent(SCENE["park"][0])}, "region_id": 0}
    streamed = ANSWERS["DL Streamer"](SCENE["street"])
    streamed["objects"] = [{"h": 1, "w": 2, "x": 0, "y": 0, "tensors": []}, zone, *streamed["objects"]]
    hailo_too = hailo(SCENE["street"])
    hailo_too["HailoROI"]["SubObjects"].append({"HailoClassification": {"label": "day", "confidence": 0.5}})
    for answer, ignored in ((streamed, 2), (hailo_too, 1)):
        side = load(write_json(tmp_path / "street.json", answer), role="pred")
        assert (len(side.boxes), sum(side.ignored.values())) == (2, ignored)
        assert "shape-unused" in {finding.code for finding in side.findings}


def test_what_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    answer = rekognition(SCENE["street"])
    del answer["Labels"][0]["Instances"][0]["BoundingBox"]["Left"]
    with pytest.raises(DataError, match=r"Labels\[0\]\.Instances\[0\]\.BoundingBox\.Left: is missing"):
        load(write_json(tmp_path / "a.json", answer), role="pred")
    short = columns(SCENE["street"])
    short["bboxes"].pop()
    with pytest.raises(
        DataError, match="columns of 2 objects have other lengths: displayNames 2, confidences 2, bboxes 1"
    ):
        load(write_json(tmp_path / "a.json", {"predictions": [short]}), role="pred")
    video = {"Labels": [{"Timestamp": 0, "Label": label} for label in rekognition(SCENE["street"])["Labels"]]}
    with pytest.raises(DataError, match=r"Labels\[0\]\.Name: is missing"):
        load(write_json(tmp_path / "v.json", video), role="pred")
    both = {"a.jpg": answer, "b.jpg": ANSWERS["Azure"](SCENE["park"])}
    with pytest.raises(DataError, match="answers of several services"):
        load(write_json(tmp_path / "b.json", both), role="pred")
    with pytest.raises(DataError, match="has no objects of a known service"):
        load(write_json(tmp_path / "c.json", {"a.jpg": answer, "b.jpg": {"foo": 1}}), role="pred")
