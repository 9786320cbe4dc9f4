"""Scenes of LVIS and Open Images with everything that decides which boxes are judged; drawn, small, crowded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

N_IMAGES, N_CLASSES = 12, 6
WIDTH, HEIGHT = 320, 240
# of classes by their numbers: 0 is above 1 and 2, 2 above 3; 1 and 4 share 5
TREE: dict[str, Any] = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/0",
            "Subcategory": [
                {"LabelName": "/m/1", "Subcategory": [{"LabelName": "/m/5"}]},
                {"LabelName": "/m/2", "Subcategory": [{"LabelName": "/m/3"}]},
            ],
        },
        {"LabelName": "/m/4", "Subcategory": [{"LabelName": "/m/5"}]},
    ],
}


def draw(seed: int, n: int, decimals: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw objects and predictions near them or anywhere, as columns; some boxes of either have no area."""
    rng = np.random.default_rng(seed)
    m = n // 3 + 2
    corner, size = rng.integers(0, 120, (m, 2)), rng.choice([8, 30, 110], (m, 2))
    size[rng.random(m) < 0.05, 0] = 0
    objects = {
        "image": rng.integers(0, N_IMAGES - 1, m),
        "label": rng.integers(0, N_CLASSES, m),
        "box": np.concatenate((corner, size), axis=1).astype(float),
        "group": rng.random(m) < 0.2,
    }
    near = rng.integers(0, m, n)
    box = np.maximum(objects["box"][near] + rng.integers(-5, 6, (n, 4)), 0)
    box[rng.random(n) < 0.05, 2] = 0
    predictions = {
        "image": np.where(rng.random(n) < 0.8, objects["image"][near], rng.integers(0, N_IMAGES, n)),
        "label": np.where(rng.random(n) < 0.8, objects["label"][near], rng.integers(0, N_CLASSES, n)),
        "box": box,
        "score": np.round(rng.random(n), decimals),
    }
    return objects, predictions


def write_lvis(folder: Path, seed: int, n: int, decimals: int) -> tuple[Path, Path]:
    """Write COCO files with classes that are verified on each image, or not exhaustive, and frequencies."""
    objects, predictions = draw(seed, n, decimals)
    rng = np.random.default_rng(seed + 1)
    images = [
        {
            "id": i + 1,
            "file_name": f"{i:03}.jpg",
            "width": WIDTH,
            "height": HEIGHT,
            "neg_category_ids": np.unique(rng.integers(1, N_CLASSES + 1, 2)).tolist(),
            "not_exhaustive_category_ids": np.unique(rng.integers(1, N_CLASSES + 1, 2)).tolist(),
        }
        for i in range(N_IMAGES)
    ]
    categories = [{"id": k + 1, "name": f"class {k}", "frequency": "rcf"[k % 3]} for k in range(N_CLASSES)]
    rows = zip(*(objects[name].tolist() for name in ("image", "label", "box")), strict=True)
    annotations = [
        {"id": row + 1, "image_id": i + 1, "category_id": k + 1, "bbox": box, "area": box[2] * box[3]}
        for row, (i, k, box) in enumerate(rows)
    ]
    rows = zip(*(predictions[name].tolist() for name in ("image", "label", "box", "score")), strict=True)
    results = [{"image_id": i + 1, "category_id": k + 1, "bbox": box, "score": score} for i, k, box, score in rows]
    gt, pred = folder / "gt.json", folder / "pred.json"
    gt.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    pred.write_text(json.dumps(results))
    return gt, pred


def write_open_images(folder: Path, seed: int, n: int, decimals: int) -> tuple[Path, Path]:
    """Write tables of Open Images with groups, and a hierarchy and image-level labels next to them."""
    objects, predictions = draw(seed, n, decimals)
    rng = np.random.default_rng(seed + 1)
    tables = {"gt": "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\n"}
    tables["pred"] = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n"
    scale = np.array([WIDTH, WIDTH, HEIGHT, HEIGHT])
    for name, side in (("gt", objects), ("pred", predictions)):
        box = side["box"]
        corners = np.stack((box[:, 0], box[:, 0] + box[:, 2], box[:, 1], box[:, 1] + box[:, 3]), axis=1) / scale
        for row, numbers in enumerate(corners.tolist()):
            cells = [f"i{side['image'][row]:02}", f"/m/{side['label'][row]}", *numbers]
            cells.insert(2 if name == "pred" else 6, side["score"][row] if name == "pred" else int(side["group"][row]))
            tables[name] += ",".join(map(str, cells)) + "\n"
    labels = "ImageID,Source,LabelName,Confidence\n"
    for i in range(N_IMAGES):
        for k in np.unique(rng.integers(0, N_CLASSES, 2)).tolist():
            labels += f"i{i:02},verification,/m/{k},{int(rng.random() < 0.5)}\n"
    (folder / "gt-imagelabels.csv").write_text(labels)
    (folder / "hierarchy.json").write_text(json.dumps(TREE))
    gt, pred = folder / "gt.csv", folder / "pred.csv"
    gt.write_text(tables["gt"])
    pred.write_text(tables["pred"])
    return gt, pred
