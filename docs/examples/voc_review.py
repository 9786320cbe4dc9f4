"""Write voc/: annotations in Pascal VOC's XML as annotators left them, mistakes included, and a model's detections."""

from dataclasses import replace
from pathlib import Path
from random import Random

from example_scenes import SIZE, Box, Detector, Scene, coco_results, detect, draw_scenes, write_json

LABELS = ["apple", "pear", "plum"]
FOLDER = Path("voc")


def annotate(scene: Scene, random: Random) -> Scene:
    """Return what an annotator makes of a scene: boxes that are forgotten, drawn twice, or of the wrong class."""
    boxes: list[Box] = []
    for box in scene.boxes:
        chance = random.random()
        if chance < 0.04:
            continue
        boxes.append(replace(box, label="pear" if box.label == "apple" else "apple") if chance < 0.07 else box)
        if chance > 0.98:
            boxes.append(box)
    return replace(scene, boxes=tuple(boxes))


def xml(scene: Scene) -> str:
    """Return an annotation; pixels count from 1."""
    objects = "".join(
        f"<object><name>{box.label}</name><difficult>0</difficult><bndbox><xmin>{box.x + 1:g}</xmin>"
        f"<ymin>{box.y + 1:g}</ymin><xmax>{box.x + box.w:g}</xmax><ymax>{box.y + box.h:g}</ymax></bndbox></object>\n"
        for box in scene.boxes
    )
    size = f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height><depth>3</depth></size>"
    return f"<annotation><filename>{scene.name}.jpg</filename>{size}\n{objects}</annotation>\n"


truth, random = draw_scenes(21, 80, LABELS, prefix="crate"), Random(22)
(FOLDER / "Annotations").mkdir(parents=True, exist_ok=True)
for scene in truth:
    (FOLDER / f"Annotations/{scene.name}.xml").write_text(xml(annotate(scene, random)))
found = detect(truth, LABELS, Detector(seed=23, missed=0.02, confused=0, spread=0.03, clutter=0.1))
rows = coco_results(found, {label: key for key, label in enumerate(LABELS)})
for row in rows:
    image, label = int(str(row["image_id"])), int(str(row["category_id"]))
    row["image_id"], row["category_id"] = found[image - 1].name, LABELS[label]
write_json(FOLDER / "detections.json", rows)
