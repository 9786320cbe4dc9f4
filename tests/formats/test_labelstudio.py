"""Exports of Label Studio: per cent to pixels, one annotation of a task, names of uploads, and what can be wrong."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import DataError, load


def result(label: str, x: Any, y: Any, width: Any, height: Any, rotation: float = 0, **more: Any) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": rotation, "rectanglelabels": [label]}
    return {"type": "rectanglelabels", "original_width": 200, "original_height": 100, "value": value, **more}


def annotation(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"result": results, **more}


def task(image: str, *annotations: dict[str, Any], predictions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"id": 1, "data": {"image": image}, "annotations": annotations, "predictions": predictions or []}


def export(folder: Path, *tasks: dict[str, Any]) -> Path:
    path = folder / "project-1.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_per_cent_of_the_picture_become_pixels(tmp_path: Path) -> None:
    dataset = load(export(tmp_path, task("a.jpg", annotation(result("dog", 10, 20, 30, 40))), task("b.jpg")))
    assert (dataset.format, dataset.images.keys, dataset.images.listed) == ("labelstudio", ("a.jpg", "b.jpg"), True)
    # 10 % of 200, 20 % of 100, 30 % of 200, 40 % of 100
    np.testing.assert_allclose(dataset.boxes.xywh, [[20, 20, 60, 40]], rtol=1e-15)


def test_per_cent_of_pictures_of_unknown_size_are_fractions(tmp_path: Path) -> None:
    unsized = {key: value for key, value in result("dog", 10, 20, 30, 40).items() if "original" not in key}
    dataset = load(export(tmp_path, task("a.jpg", annotation(unsized)), task("b.jpg")))
    assert dataset.units == "norm"
    np.testing.assert_allclose(dataset.boxes.xywh, [[0.1, 0.2, 0.3, 0.4]], rtol=1e-15)
    with pytest.raises(DataError, match="original_width: is missing"):  # where other results have it
        load(export(tmp_path, task("a.jpg", annotation(unsized, result("dog", 1, 2, 3, 4)))))
    unsized["value"]["rotation"] = 45
    with pytest.raises(DataError, match="original_width: is missing"):
        load(export(tmp_path, task("a.jpg", annotation(unsized))))


def test_names_of_uploads_lose_what_uploading_put_before_them(tmp_path: Path) -> None:
    tasks = task("/data/upload/1/ab12cd34-a.jpg"), task("/data/local-files/?d=street/b.jpg"), task("s3://b/c.jpg")
    assert load(export(tmp_path, *tasks)).images.keys == ("a.jpg", "b.jpg", "c.jpg")


def test_names_that_are_alike_without_their_prefix_keep_it(tmp_path: Path) -> None:
    tasks = task("/data/upload/1/ab12cd34-a.jpg"), task("/data/upload/1/00000000-a.jpg")
    assert len(load(export(tmp_path, *tasks)).images) == 2


def test_of_several_annotations_the_last_that_was_not_cancelled_counts(tmp_path: Path) -> None:
    dogs = [annotation(result("dog", at, 0, 10, 10)) for at in (10, 20, 30)]
    path = export(tmp_path, task("a.jpg", dogs[0], dogs[1], {**dogs[2], "was_cancelled": True}))
    dataset = load(path)
    assert dataset.boxes.xywh[:, 0].tolist() == [40]  # 20 % of 200
    assert dataset.ignored == {"annotations": 2}
    dataset = load(export(tmp_path, task("a.jpg", {**dogs[0], "ground_truth": True}, dogs[1])))
    assert dataset.boxes.xywh[:, 0].tolist() == [20]


def test_predictions_have_scores_of_their_own_or_that_of_the_whole(tmp_path: Path) -> None:
    boxes = result("dog", 10, 20, 30, 40, score=0.75), result("dog", 10, 20, 30, 40)
    path = export(tmp_path, task("a.jpg", predictions=[annotation(*boxes, score=0.5)]))
    scores = load(path, role="pred").boxes.score
    assert scores is not None
    assert scores.tolist() == [0.75, 0.5]


def test_a_box_is_turned_about_its_left_top_corner(tmp_path: Path) -> None:
    # 20 x 10 pixels at (100, 50), a quarter turn: to the left by its height, down by its width.
    turned = load(export(tmp_path, task("a.jpg", annotation(result("dog", 50, 50, 10, 10, 90)))))
    np.testing.assert_allclose(turned.boxes.xywh, [[90, 50, 10, 20]])
    half = load(export(tmp_path, task("a.jpg", annotation(result("dog", 50, 50, 10, 10, 45)))))
    side = 30 / math.sqrt(2)  # (20 + 10) * cos 45
    np.testing.assert_allclose(half.boxes.xywh, [[100 - 10 / math.sqrt(2), 50, side, side]])
    assert [one.code for one in half.findings] == ["outline"]


def test_the_short_form_of_an_export_is_read_too(tmp_path: Path) -> None:
    label = {**result("dog", 0, 0, 0, 0), **result("dog", 10, 20, 30, 40)["value"]}
    del label["value"], label["type"]
    dataset = load(export(tmp_path, {"id": 1, "image": "/data/upload/1/ab12cd34-a.jpg", "label": [label]}))
    assert (dataset.format, dataset.images.keys) == ("labelstudio", ("a.jpg",))
    np.testing.assert_allclose(dataset.boxes.xywh, [[20, 20, 60, 40]], rtol=1e-15)


def test_other_results_are_set_aside_and_counted(tmp_path: Path) -> None:
    choice = {"type": "choices", "value": {"choices": ["sunny"]}}
    assert load(export(tmp_path, task("a.jpg", annotation(choice)))).ignored == {"shape": 1}


def test_every_problem_is_told_with_its_task(tmp_path: Path) -> None:
    unnamed = result("dog", 1, 2, 3, 4)
    unnamed["value"]["rectanglelabels"] = []
    path = export(tmp_path, task("a.jpg", annotation(result("dog", "1", 2, 3, 4), unnamed)), {"id": 3, "data": {}})
    with pytest.raises(DataError) as caught:
        load(path, format_name="labelstudio")
    for told in (
        "[0].annotations[0].result[0].value.x: is '1' (a string), not a number",
        "[0].annotations[0].result[1].value.rectanglelabels: is empty",
        "[1].data.image: is missing",
    ):
        assert told in str(caught.value)


def test_labels_that_tools_share_belong_to_the_rectangle_of_their_result(tmp_path: Path) -> None:
    shared = result("dog", 10, 20, 30, 40, id="x", type="labels")
    shared["value"]["labels"] = shared["value"].pop("rectanglelabels")
    bare = {**shared, "type": "rectangle", "value": {**shared["value"]}}
    del bare["value"]["labels"]
    dataset = load(export(tmp_path, task("a.jpg", annotation(bare, shared, {**bare, "id": "y"}))))
    assert dataset.labels.names == ("dog",)
    np.testing.assert_allclose(dataset.boxes.xywh, [[20, 20, 60, 40]], rtol=1e-15)
    assert dataset.ignored == {"shape": 1}  # a rectangle that nobody labelled
    short = {**{name: one for name, one in shared.items() if name not in ("value", "type")}, **shared["value"]}
    assert len(load(export(tmp_path, {"id": 1, "image": "a.jpg", "label": [short]})).boxes) == 1
