"""Write coco/instances_val.json and coco/detections.json: a validation set in COCO's layout and category ids."""

from pathlib import Path

from example_scenes import Detector, coco_document, coco_results, detect, draw_scenes, write_json

# COCO's ids have gaps: 12, 26, 29 and others are not used.
IDS = {"person": 1, "car": 3, "bicycle": 2, "traffic light": 10, "dog": 18, "umbrella": 28}
FOLDER = Path("coco")

scenes = draw_scenes(1, 150, list(IDS))
write_json(FOLDER / "instances_val.json", coco_document(scenes, IDS))
write_json(FOLDER / "detections.json", coco_results(detect(scenes, list(IDS), Detector(seed=2, confused=0.1)), IDS))
