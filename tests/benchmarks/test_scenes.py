"""The benchmarks' scenes at a tiny size; nothing is timed here."""

from collections import Counter
from pathlib import Path

import pytest
import scenes

import jaccard_eval


def test_a_scene_is_the_same_each_time() -> None:
    scale = scenes.Scale(images=20)
    assert scenes.make_coco_scene(scale) == scenes.make_coco_scene(scale)


def test_class_ids_have_the_gaps_of_coco() -> None:
    document, _ = scenes.make_coco_scene(scenes.Scale(images=5))
    ids = [category["id"] for category in document["categories"]]
    assert (len(ids), ids[0], ids[-1], 12 in ids) == (80, 1, 90, False)


def test_detections_name_known_images_and_number_at_most_100_in_each() -> None:
    document, detections = scenes.make_coco_scene(scenes.Scale(images=40, clutter=90.0))
    per_image = Counter(one["image_id"] for one in detections)
    assert set(per_image) <= {image["id"] for image in document["images"]}
    assert max(per_image.values()) == 100


def test_run_lengths_of_a_crowd_cover_the_picture() -> None:
    # 2 columns of 3 pixels at left 1, top 1 of a picture 4 wide, 5 high, read column by column:
    # 1 * 5 + 1 zeros, 3 ones, 5 - 3 zeros, 3 ones, and 20 - 14 zeros.
    assert scenes._run_lengths([1.0, 1.0, 2.0, 3.0], [4, 5]) == {"counts": [6, 3, 2, 3, 6], "size": [5, 4]}


def test_a_dense_scene_has_one_image_and_one_class() -> None:
    document, detections = scenes.make_dense_scene(scenes.Dense(objects=30, detections=300))
    assert len(document["images"]) == 1
    assert (len(document["annotations"]), len(detections)) == (30, 300)
    assert {one["category_id"] for one in detections} == {1}


def test_a_scene_is_written_once(tmp_path: Path) -> None:
    scenes.write_scene(tmp_path, scenes.Scale(images=3))
    (tmp_path / "gt.json").write_text("kept")
    scenes.write_scene(tmp_path, scenes.Scale(images=3))
    assert (tmp_path / "gt.json").read_text() == "kept"
    scenes.write_scene(tmp_path, scenes.Scale(images=4))
    assert (tmp_path / "gt.json").read_text() != "kept"


def test_a_scene_of_lvis_is_evaluated_by_its_rules(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="benchmarks measure as POSIX does")
    import lvis_scale

    lvis_scale.write_scene(tmp_path, 10)
    result = jaccard_eval.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", protocol="lvis")
    assert 0 < result["AP"] < 1
    assert result.pred.boxes == 10 * lvis_scale.DETECTIONS
    assert {finding.code for finding in result.findings} >= {"not-judged"}
