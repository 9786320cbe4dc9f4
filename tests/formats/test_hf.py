"""Outputs of the Hugging Face pipeline: whose they are, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load


def found(label: str, *corners: Any, score: float = 0.5) -> dict[str, Any]:
    return {"score": score, "label": label, "box": dict(zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=False))}


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_folder_has_a_list_per_image_and_an_empty_one_where_nothing_was_found(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [found("dog", 10, 20, 40, 60), found("cat", 1, 2, 3, 4, score=0.25)])
    write(tmp_path / "b.json", [])
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("hf", ("a", "b"), ("cat", "dog"))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5, 0.25]


def test_an_object_leads_from_images_to_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "all.json", {"b.jpg": [], "a.jpg": [found("dog", 10, 20, 40, 60)]})
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.images.keys) == ("hf", ("a.jpg", "b.jpg"))


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "all.json", {"a.jpg": [found("", 1, "2", 3), 7], "b.jpg": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="hf")
    for told in (
        "a.jpg[0].label: is '' (a text)",
        "a.jpg[0].box.ymin: is '2' (a text), not a number",
        "a.jpg[0].box.ymax: is missing",
        "a.jpg[1]: is 7 (a number); expected an object",
        "b.jpg: is 3 (a number); expected an array",
    ):
        assert told in str(caught.value)
