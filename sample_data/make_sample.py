"""Write the sample: one scene and two models' predictions of it, in every format that the project reads.

``python sample_data/make_sample.py [FOLDER]`` writes the same bytes each time: the scene is the table below, the models
draw from a seeded generator of the standard library.

A crowd region can be written in COCO JSON and CSV only: the other formats leave it out, so that detections inside it
count as false positives there. COCO JSON and CSV give the same numbers as each other, and so do all others.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

# Class ids as in COCO, which has gaps; YOLO numbers the same names from 0. No cat is in the scene: the models see some.
CATEGORIES = {"person": 1, "bicycle": 2, "car": 3, "cat": 17, "dog": 18}
MISTAKEN_FOR = {"person": "bicycle", "bicycle": "person", "car": "bicycle", "dog": "cat"}
FIRST_IMAGE_ID = 1001
GRID = 4  # steps per pixel that coordinates are rounded to: exact in binary, so every format gives the same numbers

# Picture, width, height, and its objects as "class left top width height", an asterisk marking a crowd region.
SCENE = (
    ("street_01", 640, 480, "car 40 250 210 110; person 300 200 42 124; person 352 206 38 116; dog 410 320 60 44"),
    ("street_02", 640, 480, "car 20 260 150 80; car 180 262 130 76; car 330 268 100 58; bicycle 470 280 90 70"),
    ("street_03", 480, 640, "person 120 180 130 360; bicycle 90 380 220 190; dog 330 500 80 70"),
    ("street_04", 640, 480, "*person 20 150 420 140; person 460 160 60 190; person 540 170 56 180; dog 250 330 90 80"),
    ("street_05", 800, 600, "car 300 340 26 18; car 340 342 22 16; car 372 344 20 14; person 420 330 12 30"),
    ("street_06", 640, 480, "bicycle 60 220 140 110; bicycle 210 224 136 108; person 110 130 60 160"),
    ("street_07", 800, 600, "car 80 200 560 330; person 690 280 70 230"),
    ("street_08", 640, 480, "person 200 240 16 40; person 230 238 15 42; person 258 242 14 38; bicycle 300 250 30 24"),
    ("street_09", 640, 480, "dog 120 260 180 150; dog 330 270 150 130; person 500 120 90 300"),
    ("street_10", 480, 640, "person 60 200 80 220; bicycle 40 300 130 140; car 260 240 190 120; dog 200 470 60 50"),
    ("street_11", 640, 480, "car 30 280 120 66; car 160 282 110 62; person 300 240 28 80; person 336 238 26 82"),
    ("street_12", 640, 480, ""),
)


@dataclass(frozen=True)
class Box:
    """An object or, with a score, a detection; pixels."""

    name: str
    left: float
    top: float
    width: float
    height: float
    crowd: bool = False
    score: float = 1.0


@dataclass(frozen=True)
class Picture:
    """An image of the scene and the boxes in it."""

    number: int
    stem: str
    width: int
    height: int
    boxes: tuple[Box, ...]

    @property
    def file_name(self) -> str:
        """Name of the picture's file."""
        return f"{self.stem}.png"


@dataclass(frozen=True, kw_only=True)
class Model:
    """How a model errs: shares of objects, and the spread of its boxes as a share of their size."""

    name: str
    seed: int
    missed: float
    mistaken: float
    spread: float
    repeated: float
    clutter: int


MODELS = (
    Model(name="better", seed=18, missed=0.06, mistaken=0.05, spread=0.045, repeated=0.10, clutter=8),
    Model(name="worse", seed=21, missed=0.22, mistaken=0.12, spread=0.100, repeated=0.25, clutter=16),
)


def write_sample(folder: Path) -> None:
    """Write every file of the sample below `folder`."""
    scene = [_read_picture(row, *line) for row, line in enumerate(SCENE)]
    _write_coco_gt(folder / "coco/gt.json", scene)
    _write_csv(folder / "csv/gt.csv", _csv_gt_rows(scene))
    _write_yolo_set(folder / "yolo", scene)
    _write_csv(folder / "openimages/gt.csv", _openimages_rows(scene))
    _write_text(folder / "cvat/gt.xml", _cvat_document(scene))
    for picture in scene:
        _write_text(folder / f"voc/gt/{picture.stem}.xml", _voc_document(picture))
        _write_text(folder / f"kitti/gt/{picture.stem}.txt", _kitti_lines(picture))
    for model in MODELS:
        seen = detect(scene, model)
        _write_text(folder / f"coco/{model.name}.json", _one_a_line(_coco_detections(seen)) + "\n")
        _write_csv(folder / f"csv/{model.name}.csv", _csv_detection_rows(seen))
        for picture in seen:
            if picture.boxes:
                _write_text(folder / f"yolo/{model.name}/{picture.stem}.txt", _yolo_lines(picture, scored=True))


def detect(scene: Sequence[Picture], model: Model) -> list[Picture]:
    """Return the pictures with a model's detections instead of the objects, the best first."""
    random = Random(model.seed)
    found: list[list[Box]] = [[] for _ in scene]
    for row, picture in enumerate(scene):
        for one in picture.boxes:
            found[row] += _see_crowd(random, one) if one.crowd else _see(random, model, one)
    for _ in range(model.clutter):
        row = int(random.random() * len(scene))
        found[row].append(_imagine(random, scene[row]))
    return [
        Picture(p.number, p.stem, p.width, p.height, tuple(sorted((_inside(p, b) for b in boxes), key=_by_score)))
        for p, boxes in zip(scene, found, strict=True)
    ]


def _read_picture(row: int, stem: str, width: int, height: int, objects: str) -> Picture:
    boxes = tuple(_read_box(text) for text in objects.split(";") if text)
    return Picture(FIRST_IMAGE_ID + 3 * row, stem, width, height, boxes)


def _read_box(text: str) -> Box:
    name, *numbers = text.split()
    left, top, width, height = map(float, numbers)
    return Box(name.lstrip("*"), left, top, width, height, crowd=name.startswith("*"))


def _see(random: Random, model: Model, one: Box) -> list[Box]:
    """One object as the model sees it: perhaps not at all, perhaps as something else, perhaps twice."""
    if random.random() < model.missed:
        return []
    name = MISTAKEN_FOR[one.name] if random.random() < model.mistaken else one.name
    seen = [_moved(random, model.spread, one, name, 0.0)]
    if random.random() < model.repeated:
        seen.append(_moved(random, 2.5 * model.spread, one, one.name, 0.25))
    return seen


def _moved(random: Random, spread: float, one: Box, name: str, penalty: float) -> Box:
    """Move and stretch a box; the farther, the lower its score."""
    dx, dy, dw, dh = (spread * (random.random() + random.random() - 1.0) * 2 for _ in range(4))
    quality = 0.97 - 1.6 * (abs(dx) + abs(dy) + abs(dw) + abs(dh)) / 2 - penalty - 0.25 * random.random()
    return Box(
        name,
        one.left + dx * one.width,
        one.top + dy * one.height,
        one.width * (1.0 + dw),
        one.height * (1.0 + dh),
        score=max(quality, 0.02 + 0.1 * random.random()),
    )


def _see_crowd(random: Random, crowd: Box) -> list[Box]:
    """Single people in a crowd that nobody outlined one by one."""
    return [
        Box(
            crowd.name,
            crowd.left + share * crowd.width,
            crowd.top + 20,
            40.0,
            110.0,
            score=0.5 + 0.4 * random.random(),
        )
        for share in (0.1, 0.35, 0.6, 0.8)
    ]


def _imagine(random: Random, picture: Picture) -> Box:
    """Something that is not there."""
    names = list(CATEGORIES)
    width, height = 20 + 120 * random.random(), 20 + 120 * random.random()
    left, top = random.random() * (picture.width - width), random.random() * (picture.height - height)
    return Box(names[int(random.random() * len(names))], left, top, width, height, score=0.05 + 0.5 * random.random())


def _inside(picture: Picture, box: Box) -> Box:
    """Cut a box at the picture's edge and round it to the grid, its score to four decimals."""
    left, top = _on_grid(max(box.left, 0.0)), _on_grid(max(box.top, 0.0))
    right = _on_grid(min(box.left + box.width, picture.width))
    bottom = _on_grid(min(box.top + box.height, picture.height))
    return Box(box.name, left, top, right - left, bottom - top, score=round(box.score, 4))


def _on_grid(value: float) -> float:
    return round(value * GRID) / GRID


def _by_score(box: Box) -> float:
    return -box.score


def _write_coco_gt(path: Path, scene: Sequence[Picture]) -> None:
    images = [{"id": p.number, "file_name": p.file_name, "width": p.width, "height": p.height} for p in scene]
    categories = [{"id": number, "name": name} for name, number in CATEGORIES.items()]
    objects = ((p.number, box) for p in scene for box in p.boxes)
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": CATEGORIES[box.name],
            "bbox": _xywh(box),
            "area": box.width * box.height,
            "iscrowd": int(box.crowd),
        }
        for number, (image, box) in enumerate(objects, start=1)
    ]
    parts = {"images": images, "categories": categories, "annotations": annotations}
    text = ",\n".join(f'"{key}": {_one_a_line(records)}' for key, records in parts.items())
    _write_text(path, f"{{{text}}}\n")


def _coco_detections(seen: Iterable[Picture]) -> list[dict[str, Any]]:
    return [
        {"image_id": p.number, "category_id": CATEGORIES[box.name], "bbox": _xywh(box), "score": box.score}
        for p in seen
        for box in p.boxes
    ]


def _xywh(box: Box) -> list[float]:
    return [box.left, box.top, box.width, box.height]


def _one_a_line(records: Sequence[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]"


def _csv_gt_rows(scene: Iterable[Picture]) -> list[list[object]]:
    rows: list[list[object]] = [
        ["image", "width", "height", "class", "xmin", "ymin", "xmax", "ymax", "iscrowd"],
    ]
    for p in scene:
        rows += [[p.file_name, p.width, p.height, b.name, *_xyxy(b), int(b.crowd)] for b in p.boxes]
        if not p.boxes:
            rows.append([p.file_name, p.width, p.height, "", "", "", "", "", ""])
    return rows


def _csv_detection_rows(seen: Iterable[Picture]) -> list[list[object]]:
    header: list[object] = ["image", "class", "xmin", "ymin", "xmax", "ymax", "score"]
    return [header, *([p.file_name, b.name, *_xyxy(b), b.score] for p in seen for b in p.boxes)]


def _xyxy(box: Box) -> list[float]:
    return [box.left, box.top, box.left + box.width, box.top + box.height]


def _write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    _write_text(path, text.getvalue())


def _write_yolo_set(folder: Path, scene: Iterable[Picture]) -> None:
    names = "".join(f"  {index}: {name}\n" for index, name in enumerate(CATEGORIES))
    _write_text(folder / "data.yaml", f"train: images/val\nval: images/val\nnames:\n{names}")
    for p in scene:
        _write_text(folder / f"labels/val/{p.stem}.txt", _yolo_lines(p, scored=False))
        _write_bytes(folder / f"images/val/{p.file_name}", blank_png(p.width, p.height))


def _yolo_lines(picture: Picture, *, scored: bool) -> str:
    index = list(CATEGORIES).index
    lines = []
    for b in picture.boxes:
        center = (b.left + b.width / 2) / picture.width, (b.top + b.height / 2) / picture.height
        numbers = [*center, b.width / picture.width, b.height / picture.height]
        score = f" {b.score}" if scored else ""
        if not b.crowd:
            lines.append(f"{index(b.name)} {' '.join(f'{n:.10f}' for n in numbers)}{score}\n")
    return "".join(lines)


def _without_crowd(picture: Picture) -> list[Box]:
    return [box for box in picture.boxes if not box.crowd]


def _openimages_rows(scene: Iterable[Picture]) -> list[list[object]]:
    rows: list[list[object]] = [["ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"]]
    for p in scene:
        for box in _without_crowd(p):
            left, top, right, bottom = _xyxy(box)
            fractions = left / p.width, right / p.width, top / p.height, bottom / p.height
            rows.append([p.stem, "xclick", box.name, 1, *fractions])
    return rows


def _cvat_document(scene: Iterable[Picture]) -> str:
    labels = "".join(f"<label><name>{name}</name></label>" for name in CATEGORIES)
    lines = [f"<annotations>\n<version>1.1</version>\n<meta><task><labels>{labels}</labels></task></meta>"]
    for number, p in enumerate(scene):
        lines.append(f'<image id="{number}" name="{p.file_name}" width="{p.width}" height="{p.height}">')
        for box in _without_crowd(p):
            corners = zip(("xtl", "ytl", "xbr", "ybr"), _xyxy(box), strict=True)
            sides = " ".join(f'{name}="{number:.2f}"' for name, number in corners)
            lines.append(f'  <box label="{box.name}" {sides}></box>')
        lines.append("</image>")
    return "\n".join([*lines, "</annotations>"]) + "\n"


def _voc_document(picture: Picture) -> str:
    size = f"<width>{picture.width}</width><height>{picture.height}</height><depth>3</depth>"
    lines = ["<annotation>", f"  <filename>{picture.file_name}</filename>", f"  <size>{size}</size>"]
    for box in _without_crowd(picture):
        corners = zip(("xmin", "ymin", "xmax", "ymax"), _xyxy(box), strict=True)
        sides = "".join(f"<{name}>{number:g}</{name}>" for name, number in corners)
        flag = "<difficult>0</difficult>"
        lines.append(f"  <object><name>{box.name}</name>{flag}<bndbox>{sides}</bndbox></object>")
    return "\n".join([*lines, "</annotation>"]) + "\n"


def _kitti_lines(picture: Picture) -> str:
    """Return the lines of a file; what KITTI knows of objects in space has its values for unknown."""
    boxes = ((box.name, " ".join(f"{number:.2f}" for number in _xyxy(box))) for box in _without_crowd(picture))
    return "".join(f"{name} -1 -1 -10 {box} -1 -1 -1 -1000 -1000 -1000 -10\n" for name, box in boxes)


def blank_png(width: int, height: int) -> bytes:
    """Return a grey picture of one bit per pixel: a few hundred bytes that depend on no version of a compressor."""
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    n_zeros = height * (1 + (width + 7) // 8)  # each line: a filter byte, then eight pixels a byte
    checksum = struct.pack(">I", zlib.adler32(bytes(n_zeros)))
    chunks = (
        (b"IHDR", header),
        (b"PLTE", b"\xb0\xb4\xb8"),
        (b"IDAT", b"\x78\x01" + _deflated_zeros(n_zeros) + checksum),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(*chunk) for chunk in (*chunks, (b"IEND", b"")))


def _deflated_zeros(count: int) -> bytes:
    """Zeros as RFC 1951 packs them with fixed codes: one literal, then copies of it, 258 at a time."""
    literal_zero, copy_258_from_1_before, end = "00110000", "11000101" + "00000", "0000000"
    copies, singles = divmod(count - 1, 258)
    bits = "1" + "10" + literal_zero * (1 + singles) + copy_258_from_1_before * copies + end  # last block, fixed codes
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return bytes(int(padded[at : at + 8][::-1], 2) for at in range(0, len(padded), 8))


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    write_sample(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
