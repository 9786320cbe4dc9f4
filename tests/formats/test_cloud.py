"""Answers of services: one scene as each of them writes it, against the same boxes in pixels."""

from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval import DataError, evaluate, load

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


def test_what_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    answer = rekognition(SCENE["street"])
    del answer["Labels"][0]["Instances"][0]["BoundingBox"]["Left"]
    with pytest.raises(DataError, match=r"Labels\[0\]\.Instances\[0\]\.BoundingBox\.Left: is missing"):
        load(write_json(tmp_path / "a.json", answer), role="pred")
    video = {"Labels": [{"Timestamp": 0, "Label": label} for label in rekognition(SCENE["street"])["Labels"]]}
    with pytest.raises(DataError, match=r"Labels\[0\]\.Name: is missing"):
        load(write_json(tmp_path / "v.json", video), role="pred")
    both = {"a.jpg": answer, "b.jpg": ANSWERS["Azure"](SCENE["park"])}
    with pytest.raises(DataError, match="answers of several services"):
        load(write_json(tmp_path / "b.json", both), role="pred")
    with pytest.raises(DataError, match="has no objects of a known service"):
        load(write_json(tmp_path / "c.json", {"a.jpg": answer, "b.jpg": {"foo": 1}}), role="pred")
