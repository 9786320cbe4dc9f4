"""COCO JSON as real tools wrote it, with the counts that were published."""

from pathlib import Path

import pytest

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import DataError
from jaccard_eval.formats import coco, read_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.peek import Peek

FASTER = "faster-coco-eval/tests/dataset"
PADILLA = "padilla-review/tests/test_coco_eval"

# file, images, boxes, classes, crowds
TRUTH = [
    (f"{FASTER}/cocoapi/instances_val2014_100.json", 100, 839, 80, 9),
    (f"{PADILLA}/gts/sampled_gts_bbox_area.json", 100, 830, 80, 0),
    ("padilla-review/data/database/gts/coco_format_v1/instances_default.json", 100, 273, 20, 0),
    ("padilla-review/toyexample/gts_coco_format/toy_example_coco.JSON", 10, 12, 1, 0),
    ("yfpeng-odm/tests/sample/groundtruths_coco.json", 85, 686, 38, 0),
    ("yfpeng-odm/tests/sample_3/groundtruths_coco.json", 7, 15, 1, 0),
    ("cartucho-map/derived-coco/gt.json", 85, 686, 38, 0),
    ("d2-medwaste/data/test/_annotations.coco.json", 25, 140, 5, 0),
    ("sahi/tests/data/coco_evaluate/dataset.json", 2, 249, 80, 0),
    ("keras-retinanet-test-data/coco/annotations/instances_val2017.json", 1, 19, 80, 0),
    ("lvis-api/data/lvis_val_100.json", 100, 977, 1230, 0),
]

# file, boxes
RESULTS = [
    ("cocoapi/results/instances_val2014_fakebbox100_results.json", 734),
    (f"{PADILLA}/dets/sampled_bbox_results.json", 734),
    ("padilla-review/data/database/dets/coco_format/coco_dets.json", 452),
    ("yfpeng-odm/tests/sample/detections_coco.json", 494),
    ("yfpeng-odm/tests/sample_3/detections_coco.json", 24),
    ("d2-medwaste/output/coco_instances_results.json", 1922),
    ("sahi/tests/data/coco_evaluate/result.json", 89),
]

NO_BOXES = [
    ("cocoapi/results/instances_val2014_fakesegm100_results.json", "[0].bbox: is missing; found 'segmentation'"),
    (
        "cocoapi/results/person_keypoints_val2014_fakekeypoints100_results.json",
        "[0].bbox: is missing; found 'keypoints'",
    ),
    ("cocoapi/results/captions_val2014_fakecap_results.json", "[0].bbox: is missing"),
]


def read(shared_data: Path, name: str, role: str) -> Dataset:
    return read_dataset(shared_data / name, ReadOptions(role=role), "coco")


@pytest.mark.parametrize(("name", "images", "boxes", "classes", "crowds"), TRUTH)
def test_published_ground_truth_loads(
    shared_data: Path, name: str, images: int, boxes: int, classes: int, crowds: int
) -> None:
    data = read(shared_data, name, "gt")
    assert (len(data.images), len(data.boxes), len(data.labels)) == (images, boxes, classes)
    assert int(data.boxes.crowd.sum()) == crowds


@pytest.mark.parametrize(("name", "boxes"), RESULTS)
def test_published_detections_load(shared_data: Path, name: str, boxes: int) -> None:
    data = read(shared_data, name, "pred")
    assert len(data.boxes) == boxes
    assert data.boxes.score is not None


@pytest.mark.parametrize(("name", "message"), NO_BOXES)
def test_results_of_other_tasks_are_refused_for_want_of_boxes(shared_data: Path, name: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(shared_data, name, "pred")
    assert message in str(caught.value)


def test_a_file_full_of_faults_is_refused_for_its_repeated_image_id(shared_data: Path) -> None:
    with pytest.raises(DataError, match="duplicate image id 1"):
        read(shared_data, "hotcoco-fixtures/crates/hotcoco/tests/fixtures/healthcheck_bad.json", "gt")


def test_the_dummy_category_of_a_real_export_is_pointed_out(shared_data: Path) -> None:
    data = read(shared_data, "d2-medwaste/data/test/_annotations.coco.json", "gt")
    assert [finding.code for finding in data.findings] == ["category-dummy"]


def test_text_ids_beside_numbers_of_a_real_export_are_joined(shared_data: Path) -> None:
    data = read(shared_data, f"{FASTER}/gt_ignore_test.json", "gt")
    assert (len(data.boxes), data.ignored) == (14, {})


def test_only_coco_is_recognised_among_published_json(shared_data: Path) -> None:
    assert all(coco.looks_like(Peek(shared_data / name)) for name, *_ in [*TRUTH, *RESULTS, *NO_BOXES])
    others = ["sahi/tests/data/coco_utils/terrain1.json", "yfpeng-odm/deprecated/sample_2/detections.json"]
    others += ["padilla-review/data/database/gts/labelme_format/2007_000027.json", "d2-medwaste/output/metrics.json"]
    assert not any(coco.looks_like(Peek(shared_data / name)) for name in others)
