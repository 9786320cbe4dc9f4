"""Write the sample: one scene and two models' predictions of it, in every format that the project reads.

The segments of ``panoptic`` are a scene of their own.

Of Parquet and Arrow there are no files: they need an extra, and ``jaccard-eval convert`` writes them.

``python sample_data/make_sample.py [FOLDER]`` writes the same bytes each time: the scene is a table in ``streets``, the
models draw from a seeded generator of the standard library. COCO JSON, CSV and YOLO have both models, the others the
better one, where they have scores at all.

A crowd region can be written in COCO JSON, CSV, BDD100K's JSON and rows of Hugging Face: other formats leave it out, so
that detections inside it count as false positives there. These four give the same numbers, and so do all others.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmark_exports import benchmark_files
from panoptic_exports import panoptic_files
from streets import CATEGORIES, MODELS, Box, Picture, detect, read_scene
from tool_exports import Files, ground_truth_files, prediction_files


def write_sample(folder: Path) -> None:
    """Write every file of the sample below `folder`."""
    scene = read_scene()
    _write_coco_gt(folder / "coco/gt.json", scene)
    _write_csv(folder / "csv/gt.csv", _csv_gt_rows(scene))
    _write_yolo_set(folder / "yolo", scene)
    _write_csv(folder / "openimages/gt.csv", _openimages_rows(scene))
    _write_files(folder, ground_truth_files(scene) | benchmark_files("gt", scene))
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
    _write_files(folder, panoptic_files())
    _write_better(folder, MODELS[0].name, detect(scene, MODELS[0]))


def _write_better(folder: Path, name: str, seen: Sequence[Picture]) -> None:
    """Write one model's detections in the formats that have not both."""
    _write_csv(folder / f"openimages/{name}.csv", _openimages_rows(seen, scored=True))
    _write_files(folder, prediction_files(name, seen) | benchmark_files(name, seen, scored=True))
    for picture in seen:
        _write_text(folder / f"kitti/{name}/{picture.stem}.txt", _kitti_lines(picture, scored=True))
    for category in CATEGORIES:
        _write_text(folder / f"voc/{name}/comp4_det_test_{category}.txt", _voc_results(seen, category))


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


def _openimages_rows(pictures: Iterable[Picture], *, scored: bool = False) -> list[list[object]]:
    """Return rows of fractions; those of objects say that a person confirmed them."""
    start, sides = ("ImageID", "Source", "LabelName", "Confidence"), ("XMin", "XMax", "YMin", "YMax")
    rows: list[list[object]] = [["ImageID", "LabelName", "Score", *sides] if scored else [*start, *sides]]
    for p in pictures:
        for box in _without_crowd(p):
            left, top, right, bottom = _xyxy(box)
            about = [p.stem, box.name, box.score] if scored else [p.stem, "xclick", box.name, 1]
            rows.append([*about, left / p.width, right / p.width, top / p.height, bottom / p.height])
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


def _voc_results(seen: Iterable[Picture], category: str) -> str:
    """Return the lines of a class: image, score and corners."""
    found = ((p.stem, box) for p in seen for box in p.boxes if box.name == category)
    return "".join(f"{stem} {box.score} {' '.join(f'{n:.6f}' for n in _xyxy(box))}\n" for stem, box in found)


def _kitti_lines(picture: Picture, *, scored: bool = False) -> str:
    """Return the lines of a file; what KITTI knows of objects in space has its values for unknown."""
    boxes = ((box, " ".join(f"{number:.2f}" for number in _xyxy(box))) for box in _without_crowd(picture))
    unknown = "-1 -1 -1 -1000 -1000 -1000 -10"
    return "".join(
        f"{box.name} -1 -1 -10 {corners} {unknown}{f' {box.score}' if scored else ''}\n" for box, corners in boxes
    )


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


def _write_files(folder: Path, files: Files) -> None:
    for path, data in files.items():
        _write_bytes(folder / path, data)


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    write_sample(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
