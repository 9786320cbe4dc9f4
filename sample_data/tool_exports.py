"""The sample as annotation tools export it and as model libraries return it: JSON of many shapes, and NumPy's archive.

Coordinates stay on the scene's grid, also where a tool would round them to whole pixels: so all formats tell the same.
Of these only the rows of Hugging Face and the records have crowd regions.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

from streets import CATEGORIES, Box, Picture

EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip archive can say
STORED_BY_UNIX = 3

Files = dict[str, bytes]  # by path
Pictures = Sequence[Picture]


def ground_truth_files(scene: Pictures) -> Files:
    """Return the files of the formats that annotators use."""
    rows = _lines(map(_hf_row, scene))
    records = _json([_image_record(picture) for picture in scene])
    scene = [_without_crowd(picture) for picture in scene]
    return {
        "hf/gt.jsonl": rows,
        "records/gt.json": records,
        **{f"labelme/gt/{p.stem}.json": _json(_labelme(p)) for p in scene},
        **_supervisely_project("gt", scene),
        "labelstudio/gt.json": _json([_task(row, p) for row, p in enumerate(scene)]),
        "sagemaker/gt.manifest": _lines(_manifest_line(p) for p in scene),
        "via/gt.json": _json({f"{p.file_name}-1": _via_file(p) for p in scene}),
        "torchvision/gt.json": _json({p.file_name: _tensors(p.boxes) for p in scene}),
        **{f"dota/gt/{p.stem}.txt": _text(_dota_lines(p)) for p in scene},
        "npz/gt.npz": _archive(scene, scored=False),
        "ultralytics/gt.ndjson": _lines([_platform_set(), *map(_platform_image, scene)]),
    }


def prediction_files(name: str, seen: Pictures) -> Files:
    """Return the files of the formats that have scores."""
    return {
        **{f"roboflow/{name}/{p.stem}.json": _json(_response(p)) for p in seen},
        **{f"cloud/{name}/{p.stem}.json": _json(_answer(p)) for p in seen},
        **_supervisely_project(name, seen, scored=True),
        f"hf/{name}.json": _json({p.file_name: [_hf_detection(box) for box in p.boxes] for p in seen}),
        f"labelstudio/{name}.json": _json([_task(row, p, scored=True) for row, p in enumerate(seen)]),
        f"sagemaker/{name}.manifest": _lines(_manifest_line(p, scored=True) for p in seen),
        f"supervision/{name}.json": _json([_sink_row(p, box) for p in seen for box in p.boxes]),
        f"ultralytics/{name}.json": _json({p.file_name: [_yolo_result(box) for box in p.boxes] for p in seen}),
        **{f"dota/{name}/Task1_{one}.txt": _text(_dota_results(one, seen)) for one in CATEGORIES},
        f"vlm/{name}.jsonl": _lines({"image": p.file_name, "response": _said(p)} for p in seen),
        f"darknet/{name}.json": _json([_frame(row, p) for row, p in enumerate(seen, start=1)]),
        f"torchvision/{name}.json": _json({p.file_name: _tensors(p.boxes, scored=True) for p in seen}),
        f"npz/{name}.npz": _archive(seen, scored=True),
        f"records/{name}.json": _json([_image_record(p, scored=True) for p in seen]),
    }


def _without_crowd(p: Picture) -> Picture:
    return Picture(p.number, p.stem, p.width, p.height, tuple(box for box in p.boxes if not box.crowd))


def _corners(box: Box) -> list[float]:
    return [box.left, box.top, box.left + box.width, box.top + box.height]


def _rectangle(box: Box) -> list[list[float]]:
    left, top, right, bottom = _corners(box)
    return [[left, top], [right, bottom]]


def _answer(p: Picture) -> dict[str, Any]:
    """Return what Azure Vision answers."""
    objects = [
        {
            "rectangle": {"x": box.left, "y": box.top, "w": box.width, "h": box.height},
            "object": box.name,
            "confidence": box.score,
        }
        for box in p.boxes
    ]
    return {"objects": objects, "metadata": {"width": p.width, "height": p.height, "format": "Png"}}


def _said(p: Picture) -> str:
    """Return what Gemini would say, in thousandths; a script has added the scores."""
    objects = [
        {
            "box_2d": [
                1000 * box.top / p.height,
                1000 * box.left / p.width,
                1000 * (box.top + box.height) / p.height,
                1000 * (box.left + box.width) / p.width,
            ],
            "label": box.name,
            "score": box.score,
        }
        for box in p.boxes
    ]
    return f"```json\n{json.dumps(objects)}\n```"


def _labelme(p: Picture) -> dict[str, Any]:
    shapes = [
        {"label": box.name, "points": _rectangle(box), "group_id": None, "shape_type": "rectangle", "flags": {}}
        for box in p.boxes
    ]
    size = {"imageHeight": p.height, "imageWidth": p.width}
    return {"version": "5.4.1", "flags": {}, "shapes": shapes, "imagePath": p.file_name, "imageData": None, **size}


def _supervisely_project(name: str, pictures: Pictures, *, scored: bool = False) -> Files:
    classes = [{"title": one, "shape": "rectangle", "color": "#0F8A8A"} for one in CATEGORIES]
    meta = _json({"classes": classes, "tags": [{"name": "confidence", "value_type": "any_number"}] if scored else []})
    files = {f"street/ann/{p.file_name}.json": _json(_supervisely(p, scored=scored)) for p in pictures}
    return {f"supervisely/{name}/{path}": data for path, data in {"meta.json": meta, **files}.items()}


def _supervisely(p: Picture, *, scored: bool) -> dict[str, Any]:
    objects = [
        {
            "classTitle": box.name,
            "geometryType": "rectangle",
            "points": {"exterior": _rectangle(box), "interior": []},
            "tags": [{"name": "confidence", "value": box.score}] if scored else [],
        }
        for box in p.boxes
    ]
    return {"description": "", "size": {"height": p.height, "width": p.width}, "tags": [], "objects": objects}


def _task(row: int, p: Picture, *, scored: bool = False) -> dict[str, Any]:
    """Return a task of Label Studio: per cent of the picture."""
    size = {"original_width": p.width, "original_height": p.height, "image_rotation": 0}
    result = [
        {
            "type": "rectanglelabels",
            "from_name": "label",
            "to_name": "image",
            **size,
            "value": {**_per_cent(p, box), "rotation": 0, "rectanglelabels": [box.name]},
            **({"score": box.score} if scored else {}),
        }
        for box in p.boxes
    ]
    annotated = [] if scored else [{"id": row, "was_cancelled": False, "ground_truth": False, "result": result}]
    predicted = [{"id": row, "model_version": "1", "result": result}] if scored else []
    data = {"image": f"/data/upload/1/{row:08x}-{p.file_name}"}
    return {"id": row, "data": data, "annotations": annotated, "predictions": predicted}


def _per_cent(p: Picture, box: Box) -> dict[str, float]:
    return {
        "x": 100 * box.left / p.width,
        "y": 100 * box.top / p.height,
        "width": 100 * box.width / p.width,
        "height": 100 * box.height / p.height,
    }


def _manifest_line(p: Picture, *, scored: bool = False) -> dict[str, Any]:
    sides = ("left", "top", "width", "height")
    annotations = [{"class_id": _index(box), **{side: getattr(box, side) for side in sides}} for box in p.boxes]
    metadata = {
        **({"objects": [{"confidence": box.score} for box in p.boxes]} if scored else {}),
        "class-map": {str(index): name for index, name in enumerate(CATEGORIES)},
        "type": "groundtruth/object-detection",
    }
    boxes = {"image_size": [{"width": p.width, "height": p.height, "depth": 3}], "annotations": annotations}
    return {"source-ref": f"s3://street/{p.file_name}", "boxes": boxes, "boxes-metadata": metadata}


def _via_file(p: Picture) -> dict[str, Any]:
    regions = [
        {
            "shape_attributes": {"name": "rect", "x": box.left, "y": box.top, "width": box.width, "height": box.height},
            "region_attributes": {"class": box.name},
        }
        for box in p.boxes
    ]
    return {"filename": p.file_name, "size": -1, "regions": regions, "file_attributes": {}}


def _tensors(boxes: Sequence[Box], *, scored: bool = False) -> dict[str, Any]:
    """Return what a detector of torchvision takes or gives, as lists; its classes have COCO's ids."""
    scores = {"scores": [box.score for box in boxes]} if scored else {}
    return {"boxes": [_corners(box) for box in boxes], "labels": [CATEGORIES[box.name] for box in boxes], **scores}


def _image_record(p: Picture, *, scored: bool = False) -> dict[str, Any]:
    """Return an image as a script of somebody's own might write it."""
    boxes = [
        {
            "class_name": box.name,
            **({"confidence": box.score} if scored else {"iscrowd": int(box.crowd)}),
            **dict(zip(("x1", "y1", "x2", "y2"), _corners(box), strict=True)),
        }
        for box in p.boxes
    ]
    about = {"file_name": p.file_name, "width": p.width, "height": p.height}
    return {**about, "detections" if scored else "annotations": boxes}


def _response(p: Picture) -> dict[str, Any]:
    """Return a response of Roboflow's inference: x and y are centres."""
    predictions = [
        {
            "x": box.left + box.width / 2,
            "y": box.top + box.height / 2,
            "width": box.width,
            "height": box.height,
            "confidence": box.score,
            "class": box.name,
            "class_id": _index(box),
        }
        for box in p.boxes
    ]
    return {"time": 0.05, "image": {"width": p.width, "height": p.height}, "predictions": predictions}


def _hf_row(p: Picture) -> dict[str, Any]:
    objects = {
        "bbox": [[box.left, box.top, box.width, box.height] for box in p.boxes],
        "category": [box.name for box in p.boxes],
        "area": [box.width * box.height for box in p.boxes],
        "iscrowd": [int(box.crowd) for box in p.boxes],
    }
    return {"file_name": p.file_name, "width": p.width, "height": p.height, "objects": objects}


def _hf_detection(box: Box) -> dict[str, Any]:
    corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), _corners(box), strict=True))
    return {"score": box.score, "label": box.name, "box": corners}


def _dota_lines(p: Picture) -> list[str]:
    return ["imagesource:sample", "gsd:0.1", *(f"{_points(box)} {box.name} 0" for box in p.boxes)]


def _dota_results(name: str, seen: Pictures) -> list[str]:
    return [f"{p.stem} {box.score!r} {_points(box)}" for p in seen for box in p.boxes if box.name == name]


def _points(box: Box) -> str:
    """Return four points, clockwise from the left top, as DOTA has them."""
    left, top, right, bottom = _corners(box)
    return " ".join(f"{side:g}" for side in (left, top, right, top, right, bottom, left, bottom))


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _platform_set() -> dict[str, Any]:
    names = {str(index): name for index, name in enumerate(CATEGORIES)}
    return {"type": "dataset", "task": "detect", "name": "street", "class_names": names}


def _platform_image(p: Picture) -> dict[str, Any]:
    """Return an image of a data set of Ultralytics' platform: centres and sizes as fractions."""
    boxes = [[_index(box), *_fractions(p, box)] for box in p.boxes]
    about = {"type": "image", "file": p.file_name, "width": p.width, "height": p.height, "split": "val"}
    return {**about, "annotations": {"boxes": boxes}}


def _fractions(p: Picture, box: Box) -> list[float]:
    """Return centre and size as fractions of the picture."""
    centre = ((box.left + box.width / 2) / p.width, (box.top + box.height / 2) / p.height)
    return [*centre, box.width / p.width, box.height / p.height]


def _yolo_result(box: Box) -> dict[str, Any]:
    corners = dict(zip(("x1", "y1", "x2", "y2"), _corners(box), strict=True))
    return {"name": box.name, "class": _index(box), "confidence": box.score, "box": corners}


def _frame(number: int, p: Picture) -> dict[str, Any]:
    """Return a picture as darknet writes it: fractions of its size."""
    sides = ("center_x", "center_y", "width", "height")
    objects = [
        {
            "class_id": _index(box),
            "name": box.name,
            "relative_coordinates": dict(zip(sides, _fractions(p, box), strict=True)),
            "confidence": box.score,
        }
        for box in p.boxes
    ]
    return {"frame_id": number, "filename": f"data/{p.file_name}", "objects": objects}


def _sink_row(p: Picture, box: Box) -> dict[str, Any]:
    corners = dict(zip(("x_min", "y_min", "x_max", "y_max"), _corners(box), strict=True))
    about = {"class_id": _index(box), "confidence": box.score, "tracker_id": "", "class_name": box.name}
    return {**corners, **about, "file_name": p.file_name}


def _index(box: Box) -> int:
    return list(CATEGORIES).index(box.name)


def _archive(pictures: Pictures, *, scored: bool) -> bytes:
    """Return what ``numpy.savez`` writes, without NumPy: bytes that depend on no version of it."""
    found = [(row, box) for row, p in enumerate(pictures) for box in p.boxes]
    arrays = {
        "boxes": _array("<f8", "d", (len(found), 4), [side for _, box in found for side in _corners(box)]),
        "labels": _array("<i8", "q", (len(found),), [_index(box) for _, box in found]),
        "image": _array("<i8", "q", (len(found),), [row for row, _ in found]),
        "names": _texts(list(CATEGORIES)),
        "images": _texts([p.file_name for p in pictures]),
        "sizes": _array("<i8", "q", (len(pictures), 2), [side for p in pictures for side in (p.width, p.height)]),
    }
    if scored:
        arrays["scores"] = _array("<f8", "d", (len(found),), [box.score for _, box in found])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as entries:
        for name, data in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", EARLIEST)
            entry.create_system = STORED_BY_UNIX
            entries.writestr(entry, data)
    return archive.getvalue()


def _array(dtype: str, code: str, shape: tuple[int, ...], values: Sequence[float]) -> bytes:
    """Return an array as version 1 of NumPy's format has it."""
    return _npy(dtype, shape, struct.pack(f"<{len(values)}{code}", *values))


def _texts(texts: Sequence[str]) -> bytes:
    width = max(map(len, texts))
    return _npy(f"<U{width}", (len(texts),), b"".join(text.ljust(width, "\0").encode("utf-32-le") for text in texts))


def _npy(dtype: str, shape: tuple[int, ...], data: bytes) -> bytes:
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    padded = header + " " * (-(len(header) + 11) % 64) + "\n"  # magic and length are 10 bytes, the line feed is one
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode() + data


def _json(value: Any) -> bytes:
    """Return JSON with what belongs to one image, or one box of a list, on a line."""
    if isinstance(value, list):
        return _block("[]", [json.dumps(one) for one in value])
    return _block("{}", [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in value.items()])


def _block(brackets: str, lines: Sequence[str]) -> bytes:
    inner = ",\n".join(lines)
    return f"{brackets[0]}\n{inner}\n{brackets[1]}\n".encode()


def _lines(values: Iterable[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()
