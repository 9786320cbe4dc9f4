"""Difficult objects that are ignored, against pycocotools, which never sees them nor what finds them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import peer
import pytest
from planting import run_evaluate
from pycocotools import mask


def test_ignored_difficult_objects_leave_what_pycocotools_prints_without_them(
    sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every fifth object of a COCO file is difficult. pycocotools evaluates the rest, without the detections whose best
    # object of their class is a difficult one, at .5 and more: of none of these does another object lie as near.
    gt = json.loads((sample_data / "coco/gt.json").read_text())
    found = json.loads((sample_data / "coco/better.json").read_text())
    objects = gt["annotations"]
    hard = [record for record in objects[::5] if not record["iscrowd"]]
    rest = [record for record in objects if record not in hard]
    kept = [record for record in found if _nearest(record, objects) not in hard]
    printed = peer.evaluate(gt | {"annotations": rest}, kept)["stats"]
    header, *rows = (sample_data / "csv/gt.csv").read_text().splitlines()
    # An image without objects has a row without a box.
    boxes = [row for row in rows if ",," not in row]
    marked = [f"{row},{int(one in hard)}" for row, one in zip(boxes, objects, strict=True)]
    assert len(hard) == 8
    (tmp_path / "gt.csv").write_text(
        "\n".join([f"{header},difficult", *marked, *(f"{row}," for row in rows if row not in boxes)])
    )
    paths = str(tmp_path / "gt.csv"), str(sample_data / "csv/better.csv")
    outcome = run_evaluate(capsys, *paths, "--difficult", "ignore")
    assert outcome.result["metrics"]["AP50"] == pytest.approx(printed[1], abs=1e-12)
    assert outcome.result["metrics"]["AP50"] != run_evaluate(capsys, *paths).result["metrics"]["AP50"]


def _nearest(record: dict[str, Any], objects: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the object of an image and class that a detection overlaps most, by .5 or more."""
    same = [one for one in objects if all(one[key] == record[key] for key in ("image_id", "category_id"))]
    overlaps = mask.iou([record["bbox"]], [one["bbox"] for one in same], [0] * len(same)) if same else []
    best = int(np.argmax(overlaps)) if same else 0
    return same[best] if same and overlaps[0][best] >= 0.5 else None
