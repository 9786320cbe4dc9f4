"""Write segm/: leaves as polygons in COCO JSON, and detections whose masks are cut off by coarse outlines."""

from math import cos, pi, sin
from pathlib import Path

from example_scenes import Box, Detector, coco_document, coco_results, detect, draw_scenes, write_json

IDS = {"leaf": 1, "flower": 2}
FOLDER = Path("segm")


def outline(box: Box, corners: int) -> list[list[float]]:
    """Return the ellipse in a box as a polygon."""
    angles = [2 * pi * step / corners for step in range(corners)]
    points = ((box.x + box.w / 2 * (1 + cos(a)), box.y + box.h / 2 * (1 + sin(a))) for a in angles)
    return [[round(value, 1) for point in points for value in point]]


plants = draw_scenes(61, 50, list(IDS), prefix="plant")
document = coco_document(plants, IDS)
found = detect(plants, list(IDS), Detector(seed=62, spread=0.03))
results = coco_results(found, IDS)
annotations = document["annotations"]
assert isinstance(annotations, list)
for rows, scenes, corners in ((annotations, plants, 32), (results, found, 5)):
    for row, box in zip(rows, (box for scene in scenes for box in scene.boxes), strict=True):
        row["segmentation"] = outline(box, corners)
for row, box in zip(annotations, (box for scene in plants for box in scene.boxes), strict=True):
    row["area"] = pi / 4 * box.w * box.h
write_json(FOLDER / "gt.json", document)
write_json(FOLDER / "pred.json", results)
