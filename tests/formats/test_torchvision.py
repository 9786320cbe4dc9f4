"""Dictionaries of torchvision and MMDetection as JSON: whose they are, and what can be wrong."""

from pathlib import Path

import pytest
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, evaluate, load

DOG = {"boxes": [[10, 20, 40, 60]], "labels": [1], "scores": [0.5]}
NOTHING: dict[str, list[int]] = {"boxes": [], "labels": [], "scores": []}


def test_an_object_leads_from_images_to_dictionaries(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", {"b.jpg": NOTHING, "a.jpg": DOG})
    dataset = load(path, role="pred", options=ReadOptions(names=("background", "dog")))
    assert (dataset.format, dataset.images.keys) == ("torchvision", ("a.jpg", "b.jpg"))
    assert dataset.labels.names == ("dog",)
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.5]


def test_a_folder_has_a_dictionary_per_image(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"labels": [0], "scores": [0.5], "bboxes": [[10, 20, 40, 60]]})  # of MMDetection
    write_json(tmp_path / "b.json", NOTHING)
    dataset = load(tmp_path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.labels.keys) == ("torchvision", ("a", "b"), (0,))


def test_images_of_a_list_are_called_by_their_positions(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", [NOTHING, DOG])
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.images.keys, dataset.boxes.image.tolist()) == ("torchvision", ("0", "1"), [1])
    assert [one.code for one in dataset.findings] == ["image-position"]
    with pytest.raises(DataError, match=r"\[1\]\.scores: has 1 values for 0 boxes"):
        load(write_json(path, [DOG, {**NOTHING, "scores": [0.5]}]), role="pred")


def test_classes_may_be_names_and_ground_truth_has_no_scores(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", {"boxes": [[1, 2, 3, 4]], "labels": ["dog"]})
    assert load(path).labels.names == ("dog",)


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    broken = {"boxes": [[1, 2, 3], [1, 2, 3, "4"]], "labels": [1.5, 1], "scores": [0.5]}
    path = write_json(tmp_path / "all.json", {"a.jpg": broken, "b.jpg": {"boxes": [[1, 2, 3, 4]]}, "c.jpg": 3})
    with pytest.raises(DataError) as caught:
        load(path, role="pred", format_name="torchvision")
    for told in (
        "a.jpg.boxes[0]: has 3 values; expected 4 numbers",
        "a.jpg.labels[0]: is 1.5 (a number)",
        "a.jpg.scores: has 1 values for 2 boxes",
        "b.jpg.labels: is missing",
        "c.jpg: is 3 (a number); expected an object",
    ):
        assert told in str(caught.value)


SQUARE = {"size": [40, 60], "counts": [0, *[20, 20] * 19, 20, 1620]}  # 20 columns, 20 of 40 rows each
RUNS = {"size": [40, 60], "counts": [0, *[10, 30] * 19, 10, 1630]}


def test_masks_and_keypoints_of_dictionaries_are_compared(tmp_path: Path) -> None:
    gt = {"boxes": [[0, 0, 20, 20]], "labels": [1], "masks": [SQUARE], "keypoints": [[[1, 2, 2], [30, 40, 2]]]}
    write_json(tmp_path / "gt.json", {"a.jpg": gt})
    found = {**DOG, "boxes": [[0, 0, 20, 20]], "masks": [RUNS], "keypoints": [[[1, 2, 1], [30, 40, 1]]]}
    write_json(tmp_path / "pred.json", {"a.jpg": found})
    sides = tmp_path / "gt.json", tmp_path / "pred.json"
    # 200 of 400 pixels: found at IoU 0.5 alone, of ten thresholds.
    assert evaluate(*sides, iou_type="segm")["AP"] == pytest.approx(0.1, abs=1e-12)
    assert evaluate(*sides, iou_type="keypoints", sigmas=[0.1])["AP"] == pytest.approx(1.0)
    plain = evaluate(*sides)
    assert plain["AP"] == pytest.approx(1.0)
    assert any(one.code == "iou-type" and "masks" in one.message for one in plain.findings)
    with pytest.raises(DataError, match=r"a.jpg.masks: has 2 values for 1 boxes"):
        write_json(tmp_path / "pred.json", {"a.jpg": {**found, "masks": [RUNS, RUNS]}})
        evaluate(*sides, iou_type="segm")
