"""The sizes of images in every JSON format: 0 is unknown, what no picture can have is said with its place."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.findings import Severity
from jaccard_eval.formats import format_module
from jaccard_eval.reading.images import ImageFolder

LINE = (
    '{"type": "image", "file": "a.jpg", "width": 640, "height": 480, "annotations": {"boxes": [[0, 0.5, 0.5, 1, 1]]}}'
)
HEAD = '{"type": "dataset", "task": "detect", "class_names": {"0": "dog"}}'
EXAMPLES = {
    **{name: format_module(name).FORMAT.example for name in ("roboflow", "sagemaker", "supervisely", "labelstudio")},
    "ultralytics": f"{HEAD}\n{LINE}\n",
}
IMPOSSIBLE = ("-640", "640.5", "1e300", "1e999", "NaN", "true", '"640"', "[640]")


def read(folder: Path, name: str, side: str) -> None:
    assert "640" in EXAMPLES[name]
    path = folder / f"a.{'ndjson' if name == 'ultralytics' else 'manifest' if name == 'sagemaker' else 'json'}"
    path.write_text(EXAMPLES[name].replace("640", side))
    load(path, role="gt", format_name=name)


@pytest.mark.parametrize("side", IMPOSSIBLE)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_side_that_no_image_can_have_is_an_error(tmp_path: Path, name: str, side: str) -> None:
    with pytest.raises(DataError, match=r"a\.\w+(:\d+)?: (.*\.)?(original_)?width: "):
        read(tmp_path, name, side)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "labelstudio"])
def test_a_side_of_0_is_unknown(tmp_path: Path, name: str) -> None:
    read(tmp_path, name, "0")


def test_boxes_in_percent_are_of_a_known_size(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=("original_width: is 0; expected the image size, as boxes are percentages of it")
    ):
        read(tmp_path, "labelstudio", "0")


def coco(folder: Path, *, box: list[float], **sides: object) -> Path:
    path = folder / "gt.json"
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 100, "iscrowd": 0}
    images = [{"id": 1, "file_name": "a.jpg", **sides}]
    categories = [{"id": 1, "name": "dog"}]
    path.write_text(json.dumps({"images": images, "annotations": [annotation], "categories": categories}))
    return path


@pytest.mark.parametrize("side", [-640, 640.5, 1e300, float("nan"), True, "640", [640]], ids=repr)
def test_coco_warns_of_such_a_side(tmp_path: Path, side: object) -> None:
    findings = load(coco(tmp_path, box=[0, 0, 10, 10], width=side, height=480)).findings
    assert [(one.severity, one.code) for one in findings] == [(Severity.WARNING, "image-size")]


@pytest.mark.parametrize("left", [1e19, -1e19])
@pytest.mark.parametrize("sides", [{}, {"width": 640, "height": 480}], ids=["unknown", "known"])
def test_boxes_far_from_any_image_are_told_whether_sizes_are_known_or_not(
    tmp_path: Path, left: float, sides: dict[str, int]
) -> None:
    gt = coco(tmp_path, box=[left, 0, 10, 10], **sides)
    pred = tmp_path / "pred.json"
    pred.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": [left, 0, 10, 10], "score": 0.9}]))
    told = [one for one in evaluate(gt, pred).findings if one.code == "box-outside"]
    assert [one.severity for one in told] == [Severity.WARNING, Severity.WARNING]
    assert "x y w h" in told[0].message
    assert ("any image" in told[0].message) == (not sides)


def test_boxes_within_some_image_are_no_news_where_sizes_are_unknown(tmp_path: Path) -> None:
    gt = coco(tmp_path, box=[9000, 0, 10, 10])
    pred = tmp_path / "pred.json"
    pred.write_text(json.dumps([{"image_id": 1, "category_id": 1, "bbox": [9000, 0, 10, 10], "score": 0.9}]))
    assert [one.code for one in evaluate(gt, pred).findings if one.code == "box-outside"] == []


def test_a_folder_of_images_may_be_named_by_its_path(sample_data: Path) -> None:
    folder, labels = sample_data / "yolo/images", sample_data / "yolo/labels"
    sizes = [
        load(labels, options=ReadOptions(images=images)).images.sizes
        for images in (str(folder), folder, ImageFolder(folder))
    ]
    assert np.array_equal(sizes[0], sizes[2])
    assert np.array_equal(sizes[1], sizes[2])
    with pytest.raises(DataError, match="no such file or directory"):
        load(labels, options=ReadOptions(images="nowhere"))
