"""What `convert` writes is read by other tools to the boxes of the sample, or to the numbers of its evaluation."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import convert, evaluate, load
from jaccard_eval.data.dataset import Dataset

SAMPLE = Path(__file__).parents[3] / "sample_data"
IMAGES = SAMPLE / "yolo/images/val"
GT, PRED = SAMPLE / "csv/gt.csv", SAMPLE / "yolo/better"
DIGITS = 6  # of a pixel: reading multiplies fractions by the size of the image

Row = tuple[object, ...]  # file name, class, left, top, width, height, score


def rows_of(dataset: Dataset) -> list[Row]:
    """Return the boxes as the sample has them, in an order of their own."""
    boxes, names = dataset.boxes, dataset.labels.names
    scores = [None] * len(boxes) if boxes.score is None else boxes.score.tolist()
    files = [f"{Path(dataset.images.name(row)).stem}.png" for row in range(len(dataset.images))]
    rows = zip(boxes.image, boxes.label, boxes.xywh.round(DIGITS).tolist(), scores, strict=True)
    return sorted(((files[image], names[label], *box, score) for image, label, box, score in rows), key=str)


def truth_in(target: Path, to: str) -> Path:
    """Write the ground truth, which comes as a table with texts for ids."""
    convert(GT, target, to=to, lossy=True)
    return target


def read_by_pycocotools(path: Path) -> list[Row]:
    coco = COCO(str(path))
    return [
        (coco.imgs[one["image_id"]]["file_name"], coco.cats[one["category_id"]]["name"], *one["bbox"], None)
        for one in coco.anns.values()
    ]


def read_by_globox(path: Path, to: str) -> list[Row]:
    from globox import AnnotationSet

    readers: dict[str, Callable[[], AnnotationSet]] = {
        "coco": lambda: AnnotationSet.from_coco(path),
        "yolo": lambda: AnnotationSet.from_yolo_v5(path, image_folder=IMAGES, image_extension=".png"),
        "voc": lambda: AnnotationSet.from_pascal_voc(path),
        "openimages": lambda: AnnotationSet.from_openimage(path, image_folder=IMAGES),
    }
    names = yaml.safe_load((path / "data.yaml").read_text())["names"] if to == "yolo" else {}
    return [
        (
            f"{Path(annotation.image_id).stem}.png",
            names.get(int(box.label), "") if names else box.label,
            *(box.xmin, box.ymin, box.width, box.height),
            None,
        )
        for annotation in readers[to]()
        for box in annotation.boxes
    ]


def read_as_ultralytics(description: Path) -> list[Row]:
    """Read a data set by the rules of Ultralytics 8 (check_det_dataset, img2label_paths, verify_image_label).

    `supervision.DetectionDataset.from_yolo` reads a label by the stem of its image and the same columns.
    """
    content = yaml.safe_load(description.read_text(encoding="utf-8"))
    assert {"train", "val", "names"} <= content.keys()
    assert content["nc"] == len(content["names"]) and sorted(content["names"]) == list(range(content["nc"]))
    folder = (Path(content.get("path") or description.parent) / content["val"]).resolve()
    rows: list[Row] = []
    for image in sorted(path for path in folder.rglob("*") if path.suffix == ".png"):
        label = Path("/labels/".join(str(image).rsplit("/images/", 1))).with_suffix(".txt")
        lines = [line.split() for line in label.read_text(encoding="utf-8").strip().splitlines() if line]
        values = np.array(lines, dtype=np.float32).reshape(-1, 5)
        assert (values >= 0).all() and (values[:, 1:] <= 1).all()
        assert len(np.unique(values, axis=0)) == len(values)
        with Image.open(image) as picture:
            size = np.array(picture.size)
        for index, *numbers in lines:
            assert int(index) < content["nc"]
            centre, side = np.array(numbers, dtype=float).reshape(2, 2) * size
            rows.append((image.name, content["names"][int(index)], *(centre - side / 2), *side, None))
    return rows


def rounded(rows: list[Row]) -> list[Row]:
    return sorted(((name, label, *(round(float(v), DIGITS) for v in box), s) for name, label, *box, s in rows), key=str)


def test_pycocotools_reads_ground_truth(tmp_path: Path) -> None:
    assert rounded(read_by_pycocotools(truth_in(tmp_path / "gt.json", "coco"))) == rows_of(load(GT))


@pytest.mark.needs("globox")
@pytest.mark.parametrize("to", ["coco", "yolo", "voc", "openimages"])
def test_globox_reads_ground_truth(to: str, tmp_path: Path) -> None:
    target = tmp_path / {"coco": "gt.json", "openimages": "gt.csv"}.get(to, "labels")
    assert rounded(read_by_globox(truth_in(target, to), to)) == rows_of(load(GT))


@pytest.mark.parametrize("name", ["labels", "set", "labels/val"])
def test_ultralytics_finds_the_labels_beside_the_images_or_in_labels_for_images(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    target = truth_in(tmp_path / name, "yolo")
    # As docs/formats.md says: "images" next to "labels", else the images in the folder itself.
    places = {"labels": tmp_path / "images", "labels/val": tmp_path / "images/val", "set": target}
    shutil.copytree(IMAGES, places[name], dirs_exist_ok=True)
    assert rounded(read_as_ultralytics(target / "data.yaml")) == rows_of(load(GT))
    for source in (target, target / "data.yaml"):  # and so does this project, sizes included
        assert rows_of(load(source)) == rows_of(load(GT))


@pytest.mark.parametrize("package", ["pycocotools", pytest.param("hotcoco", marks=pytest.mark.needs("hotcoco"))])
def test_results_with_the_ids_of_the_ground_truth_give_its_numbers(package: str, tmp_path: Path) -> None:
    gt, pred = truth_in(tmp_path / "gt.json", "coco"), tmp_path / "pred.json"
    convert(PRED, pred, gt=GT, lossy=True)  # one cat, of which the table has none
    kinds = COCO, COCOeval
    if package == "hotcoco":
        import hotcoco

        kinds = hotcoco.COCO, hotcoco.COCOeval
    coco = kinds[0](str(gt))
    judged = kinds[1](coco, coco.loadRes(str(pred)), "bbox")
    judged.evaluate()
    judged.accumulate()
    judged.summarize()
    expected = evaluate(GT, PRED)
    assert judged.stats[0] == pytest.approx(expected["AP"], abs=1e-12)
    assert judged.stats[1] == pytest.approx(expected["AP50"], abs=1e-12)


def test_every_id_is_an_integer(tmp_path: Path) -> None:
    document = json.loads(truth_in(tmp_path / "gt.json", "coco").read_text())
    assert [image["id"] for image in document["images"]] == list(range(1, 13))
    assert [category["id"] for category in document["categories"]] == list(range(1, len(document["categories"]) + 1))
    ids = [(one["id"], one["image_id"], one["category_id"]) for one in document["annotations"]]
    assert {type(value) for row in ids for value in row} == {int}
    assert [row[0] for row in ids] == list(range(1, len(ids) + 1))
