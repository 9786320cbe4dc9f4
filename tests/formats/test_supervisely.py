"""Supervisely projects: images of folders called ann, rectangles, tags with scores, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load


def annotation(path: Path, *objects: dict[str, Any], size: Any = (100, 80)) -> Path:
    document = {"size": {"width": size[0], "height": size[1]}, "objects": objects}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def rectangle(label: str, *exterior: list[int], score: float | None = None) -> dict[str, Any]:
    tags = [] if score is None else [{"name": "confidence", "value": score}]
    return {"classTitle": label, "geometryType": "rectangle", "points": {"exterior": exterior}, "tags": tags}


def test_a_project_has_an_image_per_file_and_lists_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text('{"classes": [], "tags": []}')
    annotation(tmp_path / "street/ann/a.jpg.json", rectangle("dog", [40, 60], [10, 20]))
    annotation(tmp_path / "street/ann/b.jpg.json")
    dataset = load(tmp_path)
    assert (dataset.format, dataset.images.keys) == ("supervisely", ("street/a.jpg", "street/b.jpg"))
    assert (dataset.images.listed, dataset.images.sizes.tolist()) == (True, [[100, 80]] * 2)
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_what_a_project_knows_of_its_pictures_is_no_annotation(tmp_path: Path) -> None:
    annotation(tmp_path / "meta/ann/a.jpg.json", rectangle("dog", [40, 60], [10, 20]))  # of a data set called meta
    for folder in ("img_info", "meta"):
        (tmp_path / "meta" / folder).mkdir()
        (tmp_path / "meta" / folder / "a.jpg.json").write_text('{"id": 1, "size": "100", "mime": "image/jpeg"}')
    dataset = load(tmp_path)
    assert (dataset.format, dataset.images.keys, len(dataset.boxes)) == ("supervisely", ("meta/a.jpg",), 1)


def test_the_scores_of_predictions_are_tags(tmp_path: Path) -> None:
    path = annotation(tmp_path / "a.jpg.json", rectangle("dog", [1, 2], [3, 4], score=0.75))
    scores = load(path, role="pred").boxes.score
    assert scores is not None
    assert scores.tolist() == [0.75]
    annotation(path, rectangle("dog", [1, 2], [3, 4], score=0.75), rectangle("dog", [1, 2], [3, 4]))
    with pytest.raises(DataError, match=r"objects\[1\]: has no score, but other boxes have one"):
        load(path, role="pred")


def test_bitmaps_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    bitmap = {"classTitle": "dog", "geometryType": "bitmap", "bitmap": {"data": "eJ", "origin": [1, 2]}}
    path = annotation(tmp_path / "a.jpg.json", bitmap, rectangle("dog", [1, 2], [3, 4]))
    with pytest.raises(DataError, match=r"objects\[0\]\.bitmap\.data: is not an image"):
        load(path)


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = annotation(tmp_path / "a.jpg.json", {"classTitle": "dog"}, rectangle("dog", [1, 2]), size=("x", 80))
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "size.width: is 'x' (a string)",
        "objects[0].geometryType: is missing",
        "objects[1].points.exterior: has 1 points",
    ):
        assert told in str(caught.value)
