"""One scene in every format gives one answer; what a format cannot carry is named here, and nothing else differs.

The formats are found by their names. The scene is the sample's; where that has no files of a format they are written.
"""

import contextlib
import io
import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from streets import CATEGORIES

from jaccard_eval import DataError, Dataset, ReadOptions, evaluate, load
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.formats import format_module, format_names, write_dataset
from jaccard_eval.reading.images import ImageFolder

SAMPLE = Path(__file__).parents[2] / "sample_data"
# Have classes of their own: see formats/test_benchmarks.py.
BENCHMARKS = {"crowdhuman", "icdar", "luna16", "mot", "nwpu", "retinaface", "visdrone", "widerface"}
# The scene has boxes: see formats/test_mask_files.py and the like.
MASKS = {"shapetext", "shapexml", "geojson", "instances", "masktable", "mots", "openpose", "shapelists"}
NAMES = [name for name in format_names() if name not in BENCHMARKS | MASKS]
SIDES = {"gt": "gt", "pred": "better"}  # by role, what the files of a format are called

OUTPUTS = {"cloud", "darknet", "megadetector", "roboflow", "supervision", "vlm"}  # of models: nobody annotates in them
WITHOUT_EMPTY_IMAGES = {"openimages", "text"}  # a row needs a box
BY_ID = tuple({number: name for name, number in CATEGORIES.items()}.get(at, f"unused {at}") for at in range(19))
NUMBERED = {"kerasyolo": tuple(CATEGORIES), "torchvision": BY_ID}  # names of classes that files only number


def carries(name: str, what: str) -> bool:
    return what in format_module(name).FORMAT.carries


WRITTEN = [name for name in NAMES if hasattr(format_module(name), "write")]
GROUND_TRUTHS = [name for name in NAMES if name not in OUTPUTS]
PREDICTIONS = [name for name in NAMES if carries(name, "scores")]
# Results of COCO number their images, so that only a ground truth that keeps these numbers can say which these are.
WITH_NUMBERS = ("arrow", "coco", "parquet")
PAIRS = [(gt, pred) for gt in GROUND_TRUTHS for pred in PREDICTIONS if pred != "coco" or gt in WITH_NUMBERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files of formats that can be written go."""
    return tmp_path_factory.mktemp("written")


@cache
def sample(name: str, role: str, *, pictures: bool = True) -> Dataset | None:
    """The sample in a format; None where there are no such files."""
    path = SAMPLE / "yolo/data.yaml" if (name, role) == ("yolo", "gt") else found(name, SIDES[role])
    names = NUMBERED.get(name)
    images = ImageFolder(SAMPLE / "yolo/images/val") if pictures else None
    return None if path is None else load(path, role=role, options=ReadOptions(names=names, images=images))


def found(name: str, stem: str) -> Path | None:
    return next(iter(sorted((SAMPLE / name).glob(f"{stem}*"))), None)


@cache
def written(name: str, role: str, folder: Path) -> Dataset:
    """The scene as a writer writes it: with the crowd region where the format carries that."""
    source = {"gt": "coco" if carries(name, "crowd") else "cvat", "pred": "roboflow"}[role]
    path = folder / f"{role} {name}{(*format_module(name).FORMAT.suffixes, '')[0]}"
    dataset = sample(source, role)
    assert dataset is not None
    write_dataset(dataset, path, format_name=name, lossy=False)
    images = ImageFolder(SAMPLE / "yolo/images/val")
    return load(path, role=role, options=ReadOptions(images=images), format_name=name)


def scenes(name: str, role: str, folder: Path) -> list[Dataset]:
    """Every data set that there is of a format."""
    own = sample(name, role)
    return [*([own] if own else []), *([written(name, role, folder)] if name in WRITTEN else [])]


@cache
def expected(classes: tuple[str, ...], *, crowd: bool) -> list[float]:
    """The twelve numbers of pycocotools, which depend to the last bit on the order of the classes."""
    gt = json.loads((SAMPLE / "coco/gt.json").read_text())
    old = {one["id"]: one["name"] for one in gt["categories"]}
    numbers = {number: classes.index(name) + 1 if name in classes else len(classes) + 1 for number, name in old.items()}
    gt["categories"] = [{"id": numbers[key], "name": name} for key, name in old.items()]
    gt["annotations"] = [renumbered(one, numbers) for one in gt["annotations"] if crowd or not one["iscrowd"]]
    found = [renumbered(one, numbers) for one in json.loads((SAMPLE / "coco/better.json").read_text())]
    with contextlib.redirect_stdout(io.StringIO()):
        api = COCO()
        api.dataset = gt
        api.createIndex()
        evaluation = COCOeval(api, api.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats]


def renumbered(record: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    return {**record, "category_id": numbers[record["category_id"]]}


def values(result: EvaluationResult) -> list[float]:
    return [one.value for one in result.metrics.values()]


def classes_of(gt: Dataset) -> tuple[str, ...]:
    return tuple(name for name in gt.labels.names if name in CATEGORIES)


@cache
def evaluated(gt: str, pred: str, folder: Path) -> list[tuple[Dataset, EvaluationResult]]:
    """Every ground truth of a format with every prediction of another."""
    sides = product(scenes(gt, "gt", folder), scenes(pred, "pred", folder))
    return [(one, evaluate(one, other)) for one, other in sides]


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_or_a_writer_has_the_scene_in_every_format(name: str) -> None:
    assert name in WRITTEN or (sample(name, "gt") is None) == (name in OUTPUTS)
    assert name in WRITTEN or (sample(name, "pred") is None) == (not carries(name, "scores"))


@pytest.mark.parametrize(("gt", "pred"), PAIRS)
def test_one_scene_in_any_two_formats_gives_the_twelve_numbers_of_pycocotools(gt: str, pred: str, folder: Path) -> None:
    for side, result in evaluated(gt, pred, folder):
        assert values(result) == expected(classes_of(side), crowd=carries(gt, "crowd"))


@pytest.mark.parametrize(("gt", "pred"), PAIRS)
def test_nothing_is_said_of_one_scene_in_two_formats_but_of_a_class_that_is_only_predicted(
    gt: str, pred: str, folder: Path
) -> None:
    for side, result in evaluated(gt, pred, folder):
        told = [one.code for one in result.findings if one.severity != "note"]
        assert told == ([] if "cat" in side.labels.names else ["class-unknown"])


@pytest.mark.parametrize("gt", [name for name in GROUND_TRUTHS if name not in WITH_NUMBERS])
def test_results_of_coco_do_not_name_the_images_of_another_format(gt: str, folder: Path) -> None:
    for side in scenes(gt, "gt", folder):
        with pytest.raises(DataError, match="match a ground-truth image"):
            evaluate(side, sample("coco", "pred"))


@pytest.mark.parametrize("name", GROUND_TRUTHS)
def test_a_crowd_region_and_an_image_without_objects_are_there_where_the_format_has_them(
    name: str, folder: Path
) -> None:
    for dataset in scenes(name, "gt", folder):
        assert int(dataset.boxes.crowd.sum()) == carries(name, "crowd")
        assert len(dataset.boxes) == 38 + carries(name, "crowd")
        assert len(dataset.images) == 12 - (name in WITHOUT_EMPTY_IMAGES)


@pytest.mark.parametrize("name", GROUND_TRUTHS)
def test_sizes_of_images_are_known_without_the_pictures_where_the_format_carries_them(name: str) -> None:
    dataset = sample(name, "gt", pictures=False)
    assert dataset is None or bool(np.isfinite(dataset.images.sizes).any()) == carries(name, "sizes")
