"""Boxes drawn upwards or to the left are sorted where nothing else can be meant."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, load


def label_studio(path: Path, *boxes: tuple[float, float, float, float]) -> Path:
    results = [
        {
            "type": "rectanglelabels",
            "original_width": 200,
            "original_height": 100,
            "value": dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"rectanglelabels": ["dog"]},
        }
        for box in boxes
    ]
    task: dict[str, Any] = {"id": 1, "data": {"image": "a.jpg"}, "annotations": [{"id": 1, "result": results}]}
    path.write_text(json.dumps([task]))
    return path


def test_negative_sizes_of_label_studio_are_boxes_drawn_upwards_and_to_the_left(tmp_path: Path) -> None:
    path = label_studio(tmp_path / "a.json", (10, 60, 20, -50), (40, 50, -30, -40), (10, 10, 20, 50))
    found = load(path)
    # Per cent of 200 x 100: from 60 down to 10 is 10 to 60, whatever way it was drawn.
    assert found.boxes.xywh.round(9).tolist() == [[20, 10, 40, 50], [20, 10, 60, 40], [20, 10, 40, 50]]
    (note,) = (finding for finding in found.findings if finding.code == "corners-sorted")
    assert "2 of 3 boxes have their corners in another order" in note.message


def table(path: Path, rows: list[str]) -> Path:
    path.write_text(
        "image,class,xmin,ymin,xmax,ymax,width,height\n" + "".join(f"a.jpg,dog,{row},200,200\n" for row in rows)
    )
    return path


def test_corners_that_cannot_be_sizes_are_sorted(tmp_path: Path) -> None:
    # As sizes, 150 + 120 and 190 + 130 leave an image of 200; as centres, 20 - 100 / 2 does.
    path = table(tmp_path / "a.csv", ["150,20,120,90", "190,180,130,100", "20,30,100,90", "30,20,90,110"])
    found = load(path)
    assert found.boxes.xywh.tolist() == [[120, 20, 30, 70], [130, 100, 60, 80], [20, 30, 80, 60], [30, 20, 60, 90]]
    assert [finding.code for finding in found.findings].count("corners-sorted") == 1


def test_numbers_that_may_be_sizes_are_not_sorted(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["150,120,30,40", "100,150,50,40", "20,30,60,60"])  # x, y, width and height
    with pytest.raises(DataError, match="box-negative"):
        load(path)
    assert len(load(path, options=ReadOptions(box="xywh")).boxes) == 3


def test_a_few_inverted_boxes_of_a_detector_stay_as_they_are(tmp_path: Path) -> None:
    good = [f"{10 + at},20,{150 + at},190,200,200,0.9" for at in range(20)]
    rows = [f"a.jpg,dog,{row}" for row in ["190,20,10,90,200,200,0.5", *good]]
    path = tmp_path / "a.csv"
    path.write_text("image,class,xmin,ymin,xmax,ymax,width,height,score\n" + "\n".join(rows))
    found = load(path, role="pred")
    assert found.boxes.xywh[0].tolist() == [190, 20, -180, 70]
