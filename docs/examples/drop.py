"""Write drop/: what two models find; the new one places boxes better, and no longer finds bicycles by night."""

from dataclasses import replace
from pathlib import Path

from example_scenes import Detector, Scene, coco_document, coco_results, detect, draw_scenes, write_json

IDS = {"person": 1, "car": 2, "bicycle": 3}
FOLDER = Path("drop")


def without(scenes: list[Scene], label: str) -> list[Scene]:
    """Return scenes in which a class is not found."""
    return [replace(scene, boxes=tuple(box for box in scene.boxes if box.label != label)) for scene in scenes]


day = draw_scenes(41, 60, list(IDS), prefix="day/img")
night = draw_scenes(42, 40, list(IDS), prefix="night/img")
write_json(FOLDER / "gt.json", coco_document(day + night, IDS))
main = detect(day + night, list(IDS), Detector(seed=43))
by_day, by_night = (
    detect(scenes, list(IDS), Detector(seed=seed, spread=0.05)) for scenes, seed in ((day, 44), (night, 45))
)
new = by_day + without(by_night, "bicycle")
write_json(FOLDER / "main.json", coco_results(main, IDS))
write_json(FOLDER / "new.json", coco_results(new, IDS))
(FOLDER / "jaccard-eval.toml").write_text(
    '[gates]\nbaseline = "baseline.json"\nmissing-baseline = "pass"\n\n'
    '[[gates.rules]]\nid = "overall"\nmetric = "AP50"\nmax-drop = 0.01\n\n'
    '[[gates.rules]]\nid = "each class"\nmetric = "AP50"\nclasses = "*"\nmax-drop = 0.05\n'
)
