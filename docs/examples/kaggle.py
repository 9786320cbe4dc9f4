"""Write kaggle/train.csv and two submissions, in the layout of the competition Global Wheat Detection."""

from pathlib import Path

from example_scenes import SIZE, Detector, detect, draw_scenes

FOLDER = Path("kaggle")

fields = draw_scenes(31, 60, ["wheat"], prefix="field", objects=12)
found = detect(fields, ["wheat"], Detector(seed=32, spread=0.05))
FOLDER.mkdir(exist_ok=True)
rows = [
    f'{field.name},{SIZE[0]},{SIZE[1]},"[{box.x}, {box.y}, {box.w}, {box.h}]",source\n'
    for field in fields
    for box in field.boxes
]
(FOLDER / "train.csv").write_text("image_id,width,height,bbox,source\n" + "".join(rows))
for name, corners in (("submission.csv", False), ("corners.csv", True)):
    lines = ["image_id,PredictionString\n"]
    for field in found:
        texts = [
            f"{box.score} {box.x:.0f} {box.y:.0f} {box.x + box.w if corners else box.w:.0f}"
            f" {box.y + box.h if corners else box.h:.0f}"
            for box in field.boxes
        ]
        lines.append(f"{field.name},{' '.join(texts)}\n")
    (FOLDER / name).write_text("".join(lines))
