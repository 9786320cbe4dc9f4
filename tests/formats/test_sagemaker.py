"""Manifests of SageMaker Ground Truth: boxes under the name of a job, classes by a map, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, load


def line(image: str, *boxes: dict[str, Any], job: str = "street-job", confidence: float = 0.5) -> str:
    metadata = {
        "type": "groundtruth/object-detection",
        "class-map": {"0": "dog", "1": "cat"},
        "objects": [{"confidence": confidence}] * len(boxes),
    }
    size = [{"width": 100, "height": 80, "depth": 3}]
    boxes_of_job = {"image_size": size, "annotations": boxes}
    return json.dumps({"source-ref": image, job: boxes_of_job, f"{job}-metadata": metadata})


def box(class_id: Any, left: Any, top: Any, width: Any, height: Any) -> dict[str, Any]:
    return {"class_id": class_id, "left": left, "top": top, "width": width, "height": height}


def manifest(folder: Path, *lines: str) -> Path:
    path = folder / "output.manifest"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_boxes_stand_under_the_name_of_the_job_and_classes_in_its_map(tmp_path: Path) -> None:
    path = manifest(tmp_path, line("s3://b/a.jpg", box(1, 10, 20, 30, 40)), line("s3://b/b.jpg"))
    dataset = load(path)
    assert (dataset.format, dataset.images.keys) == ("sagemaker", ("s3://b/a.jpg", "s3://b/b.jpg"))
    assert (dataset.images.listed, dataset.images.sizes.tolist()) == (True, [[100, 80]] * 2)
    assert dataset.labels.names == ("cat",)
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_the_confidence_of_objects_is_the_score_of_predictions(tmp_path: Path) -> None:
    path = manifest(tmp_path, line("a.jpg", box(0, 1, 2, 3, 4), confidence=0.25))
    scores = load(path, role="pred").boxes.score
    assert scores is not None
    assert scores.tolist() == [0.25]


def test_a_picture_without_a_job_or_on_which_it_failed_has_no_boxes_and_that_is_told(tmp_path: Path) -> None:
    failed = '{"source-ref": "c.jpg", "street-job-metadata": {"failure-reason": "ClientError", "job-name": "street"}}'
    path = manifest(tmp_path, '{"source-ref": "b.jpg"}', line("a.jpg", box(0, 1, 2, 3, 4)), failed)
    dataset = load(path)
    assert dataset.images.keys == ("a.jpg", "b.jpg", "c.jpg")
    assert [one.code for one in dataset.findings] == ["image-without-label", "gt-scores"]
    assert "2 images without boxes of a job are counted as images without objects" in dataset.findings[0].message
    assert f"{path}:1" in dataset.findings[0].message


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    second = {"other": {}, "other-metadata": {"type": "groundtruth/object-detection"}}
    path = manifest(
        tmp_path,
        line("a.jpg", box(0, 1, 2, "3", 4)),
        '{"source-ref": 3',
        '{"source-ref": 3}',
        "[1]",
        json.dumps({**json.loads(line("e.jpg")), **second}),
    )
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "output.manifest:1: street-job.annotations[0].width: is '3' (a string), not a number",
        "output.manifest:2: not valid JSON, column 17",
        "output.manifest:3: source-ref: is 3 (a number)",
        "output.manifest:4: is [1] (an array); expected an object",
        "output.manifest:5: other: boxes of several jobs: 'street-job' and 'other'",
    ):
        assert told in str(caught.value)


def test_a_picture_listed_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="duplicate image id"):
        load(manifest(tmp_path, line("a.jpg"), line("a.jpg")))
