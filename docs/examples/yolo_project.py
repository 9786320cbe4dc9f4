"""Write yolo/: a project of Ultralytics with data.yaml, images, labels, and the labels that `yolo predict` saved."""

from pathlib import Path

from example_scenes import SIZE, Box, Detector, Scene, detect, draw_scenes
from PIL import Image

LABELS = ["bolt", "nut", "washer"]
FOLDER = Path("yolo")
THRESHOLD = 0.25  # of `yolo predict`, unless conf= is given


def line(box: Box, *, scored: bool) -> str:
    """Return a line of a label file: class, centre and size in fractions, and the score of a detection."""
    centre = ((box.x + box.w / 2) / SIZE[0], (box.y + box.h / 2) / SIZE[1], box.w / SIZE[0], box.h / SIZE[1])
    numbers = [f"{value:.6f}" for value in centre] + ([f"{box.score:.4f}"] if scored else [])
    return " ".join([str(LABELS.index(box.label)), *numbers])


def write_labels(folder: Path, scenes: list[Scene], *, scored: bool) -> None:
    """Write a file per image; YOLO writes none where nothing is found."""
    folder.mkdir(parents=True, exist_ok=True)
    for scene in scenes:
        lines = [line(box, scored=scored) for box in scene.boxes if box.score >= THRESHOLD]
        if lines:
            (folder / f"{scene.name}.txt").write_text("\n".join(lines) + "\n")


truth = draw_scenes(11, 60, LABELS, prefix="tray")
(FOLDER / "images/val").mkdir(parents=True, exist_ok=True)
for scene in truth:
    Image.new("L", SIZE, 200).save(FOLDER / f"images/val/{scene.name}.png")
write_labels(FOLDER / "labels/val", truth, scored=False)
found = detect(truth, LABELS, Detector(seed=12, spread=0.09, clutter=1.2))
write_labels(FOLDER / "runs/detect/predict/labels", found, scored=True)
names = "".join(f"  {key}: {label}\n" for key, label in enumerate(LABELS))
(FOLDER / "data.yaml").write_text(f"path: .\ntrain: images/val\nval: images/val\nnames:\n{names}")
