"""Four small streets as panoptic segmentations: COCO's JSON with a PNG file of ids for each image.

Each image is a list of rectangles, painted one over the other. Predictions move their edges, miss some and add others.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

WIDTH, HEIGHT = 48, 32
CATEGORIES = [
    {"id": 7, "name": "road", "isthing": 0, "color": [128, 64, 128]},
    {"id": 11, "name": "building", "isthing": 0, "color": [70, 70, 70]},
    {"id": 23, "name": "sky", "isthing": 0, "color": [70, 130, 180]},
    {"id": 24, "name": "person", "isthing": 1, "color": [220, 20, 60]},
    {"id": 26, "name": "car", "isthing": 1, "color": [0, 0, 142]},
]
KEYS = {str(category["name"]): category["id"] for category in CATEGORIES}
VOID = "void"  # painted as 0


class Patch(NamedTuple):
    """A rectangle, both corners included and excluded as in a range, and the class of its segment."""

    name: str
    x0: int
    y0: int
    x1: int
    y1: int
    crowd: int = 0


def _street(*patches: Patch, horizon: int = 12) -> list[Patch]:
    return [
        Patch("sky", 0, 0, WIDTH, horizon),
        Patch("building", 0, horizon - 6, 30, horizon + 6),
        Patch("road", 0, horizon + 6, WIDTH, HEIGHT),
        *patches,
    ]


TRUTH = (
    _street(Patch("car", 4, 18, 18, 27), Patch("car", 24, 16, 34, 22), Patch("person", 38, 12, 42, 24)),
    _street(Patch("person", 6, 10, 10, 24), Patch("person", 14, 11, 18, 24), Patch("person", 28, 13, 44, 20, 1)),
    _street(Patch("car", 10, 17, 30, 28), Patch(VOID, 0, 29, WIDTH, HEIGHT), horizon=10),
    _street(Patch("car", 30, 18, 46, 27), Patch("person", 20, 14, 24, 26), horizon=14),
)
BETTER = (
    _street(Patch("car", 5, 18, 18, 27), Patch("car", 24, 17, 34, 22), Patch("person", 38, 13, 42, 24)),
    _street(Patch("person", 6, 11, 10, 24), Patch("person", 14, 11, 19, 24), Patch("person", 30, 13, 38, 20)),
    _street(Patch("car", 10, 18, 30, 28), horizon=10),
    _street(Patch("car", 29, 18, 46, 26), Patch("person", 22, 15, 26, 26), horizon=13),
)
WORSE = (
    _street(Patch("car", 8, 18, 18, 27), Patch("person", 38, 13, 42, 24), horizon=11),
    _street(Patch("person", 6, 11, 11, 24), Patch("person", 15, 12, 20, 24), Patch("car", 30, 13, 38, 20)),
    _street(Patch("car", 10, 18, 20, 28), Patch("car", 20, 18, 30, 28), horizon=12),
    _street(Patch("car", 28, 18, 44, 26), horizon=14),
)


def panoptic_files() -> dict[str, bytes]:
    """Return the files of the ground truth and of two predictions."""
    files = _side("gt", TRUTH, is_gt=True)
    return files | _side("better", BETTER) | _side("worse", WORSE)


def _side(name: str, streets: Sequence[Sequence[Patch]], *, is_gt: bool = False) -> dict[str, bytes]:
    annotations, files = [], {}
    for number, patches in enumerate(streets, start=1):
        ids = _painted(patches)
        flat = [pixel for line in ids for pixel in line]
        segments = [
            {"id": _id(at), "category_id": KEYS[patch.name], "iscrowd": patch.crowd, "area": flat.count(_id(at))}
            for at, patch in enumerate(patches)
            if patch.name != VOID and _id(at) in flat
        ]
        if not is_gt:
            segments = [{key: segment[key] for key in ("id", "category_id")} for segment in segments]
        file_name = f"street_{number:02}.png"
        annotations.append({"image_id": number, "file_name": file_name, "segments_info": segments})
        files[f"panoptic/{name}/{file_name}"] = _png(ids)
    document: dict[str, Any] = {"annotations": annotations}
    if is_gt:
        images = [
            {
                "id": record["image_id"],
                "file_name": f"street_{record['image_id']:02}.jpg",
                "width": WIDTH,
                "height": HEIGHT,
            }
            for record in annotations
        ]
        document = {"images": images, "annotations": annotations, "categories": CATEGORIES}
    return {f"panoptic/{name}.json": (json.dumps(document, indent=1) + "\n").encode(), **files}


def _id(at: int) -> int:
    return 1000 * (at + 1)  # of more than one byte, as real ones are


def _painted(patches: Sequence[Patch]) -> list[list[int]]:
    ids = [[0] * WIDTH for _ in range(HEIGHT)]
    for at, patch in enumerate(patches):
        for y in range(patch.y0, patch.y1):
            for x in range(patch.x0, patch.x1):
                ids[y][x] = 0 if patch.name == VOID else _id(at)
    return ids


def _png(ids: Sequence[Sequence[int]]) -> bytes:
    """Return red + 256 green + 65,536 blue as RGB, stored as it is: the bytes depend on no version of a compressor."""
    lines = (b"\0" + b"".join(bytes((pixel & 255, pixel >> 8 & 255, pixel >> 16)) for pixel in line) for line in ids)
    raw = b"".join(lines)
    size = struct.pack("<HH", len(raw), len(raw) ^ 0xFFFF)
    stored = b"\x78\x01\x01" + size + raw + struct.pack(">I", zlib.adler32(raw))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
