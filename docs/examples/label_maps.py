"""Write maps/: label maps of a street as PNG, and what a model predicts; 255 is what nobody labelled."""

from pathlib import Path

import numpy as np
from example_scenes import Box, Detector, detect, draw_scenes
from PIL import Image

LABELS = ["person", "car", "sign"]  # above the classes of the ground: 0 road, 1 grass
NAMES = ["road", "grass", *LABELS]
FOLDER, WIDTH, HEIGHT, STEP = Path("maps"), 320, 240, 2


def paint(boxes: tuple[Box, ...], horizon: int) -> np.ndarray:
    """Return a map: road below grass, objects as ellipses, the largest first."""
    pixels = np.zeros((HEIGHT, WIDTH), np.uint8)
    pixels[:horizon] = 1
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    for box in sorted(boxes, key=lambda box: -box.w * box.h):
        x, y, w, h = (value / STEP for value in (box.x, box.y, box.w, box.h))
        inside = ((columns - x - w / 2) / (w / 2)) ** 2 + ((rows - y - h / 2) / (h / 2)) ** 2 <= 1
        pixels[inside] = 2 + LABELS.index(box.label)
    return pixels


streets = draw_scenes(51, 24, LABELS, prefix="street")
found = detect(streets, LABELS, Detector(seed=52, missed=0.08, spread=0.1, clutter=0.1))
for side, scenes in (("gt", streets), ("pred", found)):
    (FOLDER / side).mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(scenes):
        pixels = paint(scene.boxes, horizon=80 + number + (4 if side == "pred" else 0))
        if side == "gt":
            pixels[:6] = 255
        Image.fromarray(pixels).save(FOLDER / side / f"{scene.name}.png")
(FOLDER / "classes.txt").write_text("\n".join(NAMES) + "\n")
