"""The published scenes in the formats of annotation tools: each form gives the number of all others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jaccard_eval import Dataset, ReadOptions, evaluate, load
from jaccard_eval.data.protocol import VOC2007, VOC2012
from jaccard_eval.reading.images import ImageFolder

SCENE = "padilla-review/data/database"
TOY = "padilla-review/toyexample"
DETECTIONS = ("dets/coco_format/coco_dets.json", "dets/abs_xywh", "dets/abs_xyx2y2", "dets/rel_xywh")
TRUTH = {
    "gts/pascalvoc_format": "voc",
    "gts/imagenet_format": "voc",
    "gts/cvat_format": "cvat",
    "gts/openimages_format/all_bounding_boxes.csv": "openimages",
}

Read = Callable[[str, str], Dataset]


@pytest.fixture(scope="module")
def read(shared_data: Path) -> Read:
    scene = shared_data / SCENE
    pictures = ImageFolder(scene / "images")
    names = tuple((scene / "voc.names").read_text(encoding="utf-8").split())
    known: dict[str, Dataset] = {}

    def from_file(form: str, role: str) -> Dataset:
        if form not in known:
            numbered = names if role == "pred" and "coco" not in form else None
            known[form] = load(scene / form, role=role, options=ReadOptions(images=pictures, names=numbered))
        return known[form]

    return from_file


@pytest.mark.parametrize("truth", TRUTH)
@pytest.mark.parametrize("detections", DETECTIONS)
def test_the_scene_gives_its_published_number_from_every_tool(truth: str, detections: str, read: Read) -> None:
    gt, pred = read(truth, "gt"), read(detections, "pred")
    assert gt.format == TRUTH[truth]
    assert (len(gt.images), len(gt.boxes), len(gt.labels)) == (100, 273, 20)
    # The published number counts difficult objects, which only one of the forms marks.
    assert round(evaluate(gt, pred, protocol=VOC2012.with_options(ignored_flags=()))["AP"], 6) == 0.610913


def test_the_difficult_objects_of_the_scene_are_those_of_the_files(read: Read, shared_data: Path) -> None:
    files = (shared_data / SCENE / "gts/pascalvoc_format").glob("*.xml")
    n_difficult = sum(file.read_text(encoding="utf-8").count("<difficult>1<") for file in files)
    assert read("gts/pascalvoc_format", "gt").boxes.difficult.sum() == n_difficult > 0


def test_the_toy_example_gives_its_published_numbers(shared_data: Path) -> None:
    gt = load(shared_data / TOY / "gts_vocpascal_format")
    pred = load(shared_data / TOY / "dets_classname_abs_xyx2y2", role="pred")
    published = {(VOC2007, 0.5): 0.8864, (VOC2012, 0.5): 0.8958, (VOC2007, 0.75): 0.4924, (VOC2012, 0.75): 0.5097}
    for (protocol, iou), number in published.items():
        every_object = protocol.with_options(ignored_flags=())
        assert round(evaluate(gt, pred, protocol=every_object, iou=[iou])["AP"], 4) == number


def test_the_annotations_of_keras_retinanet_load(shared_data: Path) -> None:
    dataset = load(shared_data / "keras-retinanet-test-data/pascal")
    assert (dataset.format, dataset.images.keys, len(dataset.boxes)) == ("voc", ("000001",), 2)
