"""Two images with rectangles of two classes, as annotation services, videos, tables and arrays have their masks."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pycocotools import mask as coco_mask

WIDTH, HEIGHT = 64, 48
Box = tuple[str, str, int, int, int, int, float]
# Image, class, left, top, right, bottom, score. One is exact, one has IoU 18 / 22, one is nowhere.
SIDES: dict[str, list[Box]] = {
    "gt": [("a", "cell", 5, 10, 25, 30, 1), ("a", "stroma", 40, 20, 60, 40, 1), ("b", "cell", 10, 5, 30, 25, 1)],
    "pred": [
        ("a", "cell", 5, 10, 25, 30, 0.9),
        ("a", "stroma", 42, 20, 62, 40, 0.8),
        ("b", "cell", 40, 20, 60, 40, 0.7),
    ],
}


def ring(box: Box) -> list[tuple[int, int]]:
    left, top, right, bottom = box[2:6]
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def pixels(box: Box) -> np.ndarray[Any, np.dtype[np.uint8]]:
    values = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    values[box[3] : box[5], box[2] : box[4]] = 1
    return values


def objects(role: str, image: str) -> list[Box]:
    return [box for box in SIDES[role] if box[0] == image]


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(document))
    return path


def xy(box: Box) -> list[dict[str, float]]:
    return [{"x": float(x), "y": float(y)} for x, y in ring(box)]


def vott_asset(role: str, image: str) -> dict[str, Any]:
    size = {"width": WIDTH, "height": HEIGHT}
    regions = [
        {"id": "r", "type": "POLYGON", "tags": [box[1]], "points": xy(box), "score": box[6]}
        for box in objects(role, image)
    ]
    return {"asset": {"format": "jpg", "name": f"{image}.jpg", "size": size, "state": 2}, "regions": regions}


def vott(role: str) -> dict[str, Any]:
    assets = {f"hash of {image}": vott_asset(role, image) for image in "ab"}
    return {"name": "cells", "tags": [{"name": "cell"}, {"name": "stroma"}], "assets": assets}


def bitmask(box: Box, top: int = 0) -> dict[str, Any]:
    """Return runs along the rows of a crop that begins at a row, as Encord has them."""
    found = coco_mask.encode(np.asfortranarray(pixels(box)[top:].T))
    crop = {"top": top, "left": 0, "width": WIDTH, "height": HEIGHT - top}
    return {"rleString": found["counts"].decode(), **crop}


def shares(box: Box) -> list[tuple[float, float]]:
    return [(x / WIDTH, y / HEIGHT) for x, y in ring(box)]


ENCORD: dict[str, Callable[[Box], dict[str, Any]]] = {
    "polygon": lambda box: {"polygon": {str(at): {"x": x, "y": y} for at, (x, y) in enumerate(shares(box))}},
    "polygons": lambda box: {"polygons": [[[number for point in shares(box) for number in point]]]},
    "bitmask": lambda box: {"bitmask": bitmask(box)},
    "crop": lambda box: {"bitmask": bitmask(box, top=5)},
    "boundingBox": lambda box: {
        "boundingBox": {
            "x": box[2] / WIDTH, "y": box[3] / HEIGHT, "w": (box[4] - box[2]) / WIDTH, "h": (box[5] - box[3]) / HEIGHT,
        }
    },
}  # fmt: skip


SHAPES = {"polygons": "polygon", "crop": "bitmask", "boundingBox": "bounding_box"}


def encord_row(role: str, image: str, kind: str, **size: Any) -> dict[str, Any]:
    found = [
        {"name": box[1], "shape": SHAPES.get(kind, kind), "confidence": box[6], "featureHash": "f"} | ENCORD[kind](box)
        for box in objects(role, image)
    ]
    size = size or {"width": WIDTH, "height": HEIGHT}
    unit = {"data_title": f"{image}.jpg", "data_type": "image/jpeg", "labels": {"objects": found}} | size
    return {"label_hash": image, "data_title": f"{image}.jpg", "data_units": {f"unit {image}": unit}}


def data_uri(box: Box) -> str:
    values = np.zeros((HEIGHT, WIDTH, 4), dtype=np.uint8)
    values[pixels(box) > 0] = (255, 0, 9, 255)
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def dataloop(role: str, image: str, kind: str) -> dict[str, Any]:
    coordinates: dict[str, Callable[[Box], Any]] = {
        "segment": lambda box: [xy(box)],
        "binary": data_uri,
        "box": lambda box: [xy(box)[0], xy(box)[2]],
    }
    found = [
        {
            "id": "i",
            "type": kind,
            "label": box[1],
            "coordinates": coordinates[kind](box),
            "metadata": {"system": {}, "user": {"model": {"name": "m", "confidence": box[6]}}},
        }
        for box in objects(role, image)
    ]
    system = {"system": {"width": WIDTH, "height": HEIGHT}}
    return {"id": image, "filename": f"/cells/{image}.jpg", "annotations": found, "metadata": system}


def each(make: Callable[[str, str], Any]) -> Callable[[Path, str], Path]:
    def write_all(folder: Path, role: str) -> Path:
        for image in "ab":
            write(folder / role / f"{image}.json", make(role, image))
        return folder / role

    return write_all


def frames(role: str, label: int, *, is_polygon: bool = False) -> list[Any]:
    found: list[Any] = []
    for image in "ab":
        (box, *_) = [*(box for box in objects(role, image) if box[1] == ("cell", "stroma")[label - 1]), None]
        if box is None or is_polygon:
            found.append(box and [[number for point in ring(box) for number in point]])
            continue
        mask = coco_mask.encode(np.asfortranarray(pixels(box)))
        found.append({"size": [HEIGHT, WIDTH], "counts": mask["counts"].decode()})
    return found


def nucls(folder: Path, role: str) -> Path:
    (folder / role).mkdir()
    for image in "ab":
        lines = [
            "raw_classification,main_classification,super_classification,type,xmin,ymin,xmax,ymax,coords_x,coords_y"
        ]
        for box in objects(role, image):
            xs, ys = (",".join(str(point[axis]) for point in ring(box)) for axis in (0, 1))
            sides = ",".join(map(str, box[2:6]))
            lines.append(f'raw,{box[1]},super,polyline,{sides},"{xs}","{ys}"')
        (folder / role / f"{image}.csv").write_text("\n".join(lines) + "\n")
    return folder / role


def videos(folder: Path, role: str, *, is_polygon: bool = False) -> Path:
    """Write the two images as frames of a video, ground truth or results."""
    tracks = [
        {"id": label, "video_id": 1, "category_id": label, "segmentations": frames(role, label, is_polygon=is_polygon)}
        for label in (1, 2)
    ]
    if role == "pred":
        return write(folder / "results.json", [track | {"score": 1 - 0.1 * track["id"]} for track in tracks])
    videos = [{"id": 1, "width": WIDTH, "height": HEIGHT, "length": 2, "file_names": ["v/a.jpg", "v/b.jpg"]}]
    categories = [{"id": 1, "name": "cell"}, {"id": 2, "name": "stroma"}]
    return write(folder / "gt.json", {"videos": videos, "categories": categories, "annotations": tracks})


def stack(folder: Path, role: str) -> Path:
    """Write the numbers and the classes of objects as an array."""
    maps = np.zeros((2, HEIGHT, WIDTH, 2), dtype=np.int32)
    for at, image in enumerate("ab"):
        for number, box in enumerate(objects(role, image), start=3):
            maps[at][pixels(box) > 0] = (number, ("cell", "stroma").index(box[1]) + 1)
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{role}.npy", maps)
    return folder / f"{role}.npy"


def archive(folder: Path, role: str) -> Path:
    """Write the same as an archive."""
    np.savez(folder / f"{role}.npz", y=np.load(stack(folder, role)))
    return folder / f"{role}.npz"


LAYOUTS: dict[str, Callable[[Path, str], Path]] = {
    "VoTT": lambda folder, role: write(folder / f"{role}.json", vott(role)),
    "VoTT, assets": each(vott_asset),
    **{
        f"Encord, {kind}": lambda folder, role, kind=kind: write(  # type: ignore[misc]
            folder / f"{role}.json", [encord_row(role, image, kind) for image in "ab"]
        )
        for kind in ENCORD
    },
    "Encord, files": each(lambda role, image: encord_row(role, image, "polygon")),
    **{
        f"Dataloop, {kind}": each(lambda role, image, kind=kind: dataloop(role, image, kind))  # type: ignore[misc]
        for kind in ("segment", "binary", "box")
    },
}


OTHERS: dict[str, Callable[[Path, str], Path]] = {
    "YouTube-VIS": videos,
    "NuCLS": nucls,
    "an array": stack,
    "an archive": archive,
}
