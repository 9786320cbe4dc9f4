"""The sample, as the project ships it, with its rows in another order."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

FORMATS = ("coco", "csv", "yolo")
SIDES = {
    "coco": ("coco/gt.json", "coco/worse.json"),
    "csv": ("csv/gt.csv", "csv/worse.csv"),
    "yolo": ("yolo/data.yaml", "yolo/worse"),
}


def copy_sample(sample: Path, folder: Path) -> Path:
    """Copy the sample without its generator."""
    return Path(shutil.copytree(sample, folder / "sample", ignore=shutil.ignore_patterns("*.py", "__pycache__")))


def shuffle_sample(folder: Path, seed: int) -> None:
    """Put all rows of the sample in another order: records, lines, and the order in which files were made."""
    rng = random.Random(seed)
    for path in sorted(folder.glob("coco/*.json")):
        path.write_text(json.dumps(_shuffled_json(json.loads(path.read_text()), rng)))
    for path in sorted(folder.glob("csv/*.csv")):
        header, *rows = path.read_text().splitlines(keepends=True)
        path.write_text(header + "".join(rng.sample(rows, len(rows))))
    _remake_labels(folder / "yolo", rng)


def _shuffled_json(content: Any, rng: random.Random) -> Any:
    if isinstance(content, list):
        return rng.sample(content, len(content))
    keys = rng.sample(list(content), len(content))
    return {key: _shuffled_json(content[key], rng) if isinstance(content[key], list) else content[key] for key in keys}


def _remake_labels(folder: Path, rng: random.Random) -> None:
    labels = {path: path.read_text().splitlines(keepends=True) for path in sorted(folder.rglob("*.txt"))}
    for path in labels:
        path.unlink()
    for path in rng.sample(sorted(labels), len(labels)):
        path.write_text("".join(rng.sample(labels[path], len(labels[path]))))
