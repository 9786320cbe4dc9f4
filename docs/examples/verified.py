"""Write lvis/ and openimages/: animals and vehicles of which people verified only some classes on each image."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from example_scenes import SIZE, Box, Detector, Scene, coco_document, coco_results, detect, draw_scenes, write_json

CLASSES = ("car", "dog", "cat", "poodle", "bus", "axolotl")
IDS = {name: number for number, name in enumerate(CLASSES, start=1)}
FREQUENCY = dict(zip(CLASSES, "ffccrr", strict=True))  # in the training set
MIDS = {name: f"/m/0{number}" for name, number in IDS.items()} | {"animal": "/m/0a", "vehicle": "/m/0v"}
TREE: dict[str, Any] = {"animal": {"dog": {"poodle": {}}, "cat": {}, "axolotl": {}}, "vehicle": {"car": {}, "bus": {}}}

scenes = draw_scenes(71, 120, CLASSES)
found = detect(scenes, CLASSES, Detector(seed=72, clutter=1.5))
random = Random(73)


def labels_of(scene: Scene) -> set[str]:
    """Return the classes that have objects."""
    return {box.label for box in scene.boxes}


# LVIS: on each image classes that are verified to be absent, and one whose objects are not all annotated.
document = coco_document(scenes, IDS)
images, categories = document["images"], document["categories"]
assert isinstance(images, list) and isinstance(categories, list)
for image, scene in zip(images, scenes, strict=True):
    absent = [IDS[name] for name in CLASSES if name not in labels_of(scene)]
    image["neg_category_ids"] = sorted(random.sample(absent, min(2, len(absent))))
    image["not_exhaustive_category_ids"] = [IDS[sorted(labels_of(scene))[0]]] if random.random() < 0.2 else []
for category in categories:
    category["frequency"] = FREQUENCY[category["name"]]
write_json(Path("lvis/gt.json"), document)
write_json(Path("lvis/results.json"), coco_results(found, IDS))


# Open Images: tables, a hierarchy of classes and image-level labels; some boxes are groups.
def cells(box: Box) -> list[float]:
    """Return a box as fractions of its image."""
    corners = box.x / SIZE[0], (box.x + box.w) / SIZE[0], box.y / SIZE[1], (box.y + box.h) / SIZE[1]
    return [round(corner, 6) for corner in corners]


def write_table(name: str, header: str, rows: Iterator[tuple[object, ...]]) -> None:
    """Write a CSV file."""
    path = Path("openimages") / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def node(name: str, below: dict[str, Any]) -> dict[str, object]:
    """Return a class of the hierarchy with those below it."""
    children = [node(child, deeper) for child, deeper in below.items()]
    return {"LabelName": MIDS.get(name, name)} | ({"Subcategory": children} if children else {})


def verified(scene: Scene) -> Iterator[tuple[object, ...]]:
    """Yield the image-level labels of a scene."""
    for name in CLASSES:
        if name in labels_of(scene) or random.random() < 0.3:
            yield scene.name, "verification", MIDS[name], int(name in labels_of(scene))


with_boxes = [(scene.name, box) for scene in scenes for box in scene.boxes]
write_table(
    "validation-annotations-bbox.csv",
    "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf",
    ((image, MIDS[box.label], *cells(box), int(box.w * box.h > 15_000)) for image, box in with_boxes),
)
write_table(
    "detections.csv",
    "ImageID,LabelName,Score,XMin,XMax,YMin,YMax",
    ((scene.name, MIDS[box.label], box.score, *cells(box)) for scene in found for box in scene.boxes),
)
write_table(
    "validation-annotations-human-imagelabels-boxable.csv",
    "ImageID,Source,LabelName,Confidence",
    (row for scene in scenes for row in verified(scene)),
)
write_table("class-descriptions-boxable.csv", "LabelName,DisplayName", ((mid, name) for name, mid in MIDS.items()))
write_json(Path("openimages/bbox_labels_hierarchy.json"), node("/m/root", TREE))
