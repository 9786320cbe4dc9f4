"""The corpora of malformed inputs with our own expectations, where they differ: oracle/overruled.toml says why."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OVERRULED = tomllib.loads((Path(__file__).parent / "oracle/overruled.toml").read_text())
# The loaders of the corpus of shapes, and what is evaluated of each.
OF_SHAPES = {"coco_segm": "segm", "coco_keypoints": "keypoints", "dota": "obb", "coco_rotated": "obb", "lvis": "segm"}


def overruled(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the manifest with the new expectations."""
    return [entry | OVERRULED.get(entry["id"], {}) for entry in entries]
