"""Masks, oriented boxes and boxes, written for other tools and read again: the same pixels, corners and numbers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, write_json
from PIL import Image

from jaccard_eval import DataError, Dataset, ReadOptions, load
from jaccard_eval.findings import Finding
from jaccard_eval.formats import format_for_path, write_dataset
from jaccard_eval.similarity.masks import Outlines
from jaccard_eval.similarity.obb import Quads

HEIGHT, WIDTH = 40, 60
SQUARE = [[2, 3, 12, 3, 12, 13, 2, 13]]  # 10 x 10 pixels
TWO_PARTS = [[20, 3, 24, 3, 24, 7, 20, 7], [30, 3, 33, 3, 33, 9, 30, 9]]  # 16 and 18
RING = np.zeros((HEIGHT, WIDTH), dtype=bool)
RING[20:30, 40:52], RING[23:27, 44:48] = True, False  # 120 - 16
COUNTS = np.diff([0, *np.flatnonzero(np.diff(RING.T.ravel(), prepend=False)), RING.size]).tolist()
MASKED = {"npz": "x.npz", "instances": "maps", "cvat": "x.xml", "labelstudio": "x.json", "yolo": "labels"}
SEGM = ReadOptions(iou_type="segm")


def coco(path: Path, *shapes: dict[str, Any], scored: bool = False) -> Path:
    annotations = [
        {"id": at, "image_id": 1 + at % 2, "category_id": 1 + at % 2, "bbox": [2, 3, 10, 10], "iscrowd": 0, **shape}
        for at, shape in enumerate(shapes)
    ]
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": WIDTH, "height": HEIGHT},
                   {"id": 2, "file_name": "b.jpg", "width": WIDTH, "height": HEIGHT}],
        "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "big cat"}],
        "annotations": [{**one, **({"score": 0.5 + 0.1 * one["id"]} if scored else {})} for one in annotations],
    }  # fmt: skip
    return write_json(path, document)


def pixels(dataset: Dataset) -> set[tuple[str, str, bytes]]:
    """Image, class and pixels of each mask."""
    boxes = dataset.boxes
    assert isinstance(boxes.shapes, Outlines)
    masks = boxes.shapes.in_images(np.tile([HEIGHT, WIDTH], (len(boxes), 1)))
    edges = (
        masks.runs.edges[start:stop] for start, stop in zip(masks.runs.offsets, masks.runs.offsets[1:], strict=False)
    )
    stems = [Path(dataset.images.name(row)).stem for row in boxes.image.tolist()]
    names = [dataset.labels.names[row] for row in boxes.label.tolist()]
    return {(stem, name, run.tobytes()) for stem, name, run in zip(stems, names, edges, strict=True)}


@pytest.mark.parametrize("role", ["gt", "pred"])
@pytest.mark.parametrize("name", MASKED)
def test_masks_come_back_with_the_same_pixels(name: str, role: str, tmp_path: Path) -> None:
    shapes = [{"segmentation": SQUARE}, {"segmentation": TWO_PARTS}]
    shapes.append({"segmentation": {"size": [HEIGHT, WIDTH], "counts": COUNTS}})
    source = load(coco(tmp_path / "c.json", *shapes, scored=role == "pred"), role=role, options=SEGM)
    out = tmp_path / "out" / MASKED[name]
    write_dataset(source, out, format_name=name)
    names = ("dog", "big cat") if name == "yolo" else None
    if name == "yolo":
        (tmp_path / "out" / "images").mkdir()
        for image in "ab":
            Image.new("L", (WIDTH, HEIGHT)).save(tmp_path / "out" / "images" / f"{image}.jpg")
    assumed = 1.0 if role == "pred" and name == "cvat" else None
    again = load(
        out, role=role, format_name=name, options=ReadOptions(iou_type="segm", names=names, assume_score=assumed)
    )
    assert pixels(again) == pixels(source)
    if role == "pred" and name != "cvat":
        assert sorted(again.boxes.score.tolist()) == sorted(source.boxes.score.tolist())


def test_a_map_has_one_object_a_pixel_and_the_smaller_one_keeps_it(tmp_path: Path) -> None:
    small = [[6, 6, 10, 6, 10, 10, 6, 10]]  # 4 x 4 pixels of the square
    source = load(
        coco(tmp_path / "c.json", {"segmentation": SQUARE}, {"segmentation": small, "image_id": 1}),
        options=SEGM,
    )
    with pytest.raises(DataError, match="1 masks share pixels with smaller ones"):
        write_dataset(source, tmp_path / "maps", format_name="instances", lossy=False)
    write_dataset(source, tmp_path / "maps", format_name="instances")
    ids = np.asarray(Image.open(tmp_path / "maps" / "a.png"))
    assert (ids.dtype, ids.shape, np.bincount(ids.ravel()).tolist()) == (np.uint8, (HEIGHT, WIDTH), [2300, 84, 16])
    assert (tmp_path / "maps" / "instances.csv").read_text() == 'image,id,class,score\na,1,dog,\na,2,"big cat",\n'


def test_maps_of_more_than_255_objects_have_16_bits(tmp_path: Path) -> None:
    dots = [
        {"segmentation": [[x, y, x + 1, y, x + 1, y + 1, x, y + 1]], "image_id": 1}
        for x in range(0, 60, 3)
        for y in range(0, 40, 2)
    ]
    source = load(coco(tmp_path / "c.json", *dots), options=SEGM)
    write_dataset(source, tmp_path / "maps", format_name="instances")
    ids = np.asarray(Image.open(tmp_path / "maps" / "a.png"))
    assert sorted(np.unique(ids).tolist()) == [*range(401)]
    assert len(load(tmp_path / "maps", options=SEGM).boxes) == 400


@pytest.mark.parametrize("name", ["npz", "cvat", "labelstudio"])
def test_boxes_come_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    numbers = np.random.default_rng(5).uniform(0, 1, (400, 4)) * [30, 20, 30, 20]
    source = load(coco(tmp_path / "c.json", *({"bbox": row, "image_id": 1} for row in numbers.tolist())))
    out = tmp_path / MASKED[name]
    found = write_dataset(source, out, format_name=name)
    again = load(out, format_name=name)
    n_rounded = sum(told(finding) for finding in found if finding.code == "write-rounded")
    assert np.count_nonzero((again.boxes.xywh != source.boxes.xywh).any(axis=1)) == n_rounded
    assert again.boxes.xywh == pytest.approx(source.boxes.xywh, abs=1e-13)
    assert again.images.sizes[0].tolist() == [WIDTH, HEIGHT]


def told(finding: Finding) -> int:
    return int(re.search(r"(\d+) box", finding.message)[1])  # type: ignore[index]


@pytest.mark.parametrize("name", ["cvat", "labelstudio"])
def test_oriented_boxes_are_polygons_of_four_corners(name: str, tmp_path: Path) -> None:
    turned = {"bbox": [10, 5, 30, 10, 25, 30, 5, 25]}
    options = ReadOptions(iou_type="obb")
    source = load(coco(tmp_path / "c.json", turned), options=options)
    out = tmp_path / MASKED[name]
    write_dataset(source, out, format_name=name)
    again = load(out, format_name=name, options=options)
    assert isinstance(again.boxes.shapes, Quads)
    assert again.boxes.shapes.corners.tolist() == [pytest.approx(np.reshape(turned["bbox"], (4, 2)), abs=1e-12)]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    boxes = load(coco(tmp_path / "c.json", {}))
    with pytest.raises(DataError, match=r"instances holds masks, but 1 box has none.*Choose a format of boxes"):
        write_dataset(boxes, tmp_path / "maps", format_name="instances")
    document = json.loads((tmp_path / "c.json").read_text())
    document["categories"][0]["name"] = "dog\x01"
    with pytest.raises(DataError, match=r"'dog\\x01' cannot stand in XML"):
        write_dataset(load(write_json(tmp_path / "d.json", document)), tmp_path / "x.xml", format_name="cvat")
    del document["images"][0]["width"]
    with pytest.raises(DataError, match="Label Studio holds fractions"):
        boxes = load(coco(tmp_path / "c.json", {"image_id": 1}))
        unsized = load(
            write_json(
                tmp_path / "d.json",
                {**document, "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}]},
            )
        )
        write_dataset(unsized, tmp_path / "x.json", format_name="labelstudio")


def test_json_is_coco_unless_label_studio_is_named(tmp_path: Path) -> None:
    assert [format_for_path(Path(name)) for name in ("x.json", "x.xml", "x.npz")] == ["coco", "cvat", "npz"]
    source = coco(tmp_path / "c.json", {"area": 100})
    done = run_here("convert", source, tmp_path / "tasks.json", "--to", "labelstudio")
    assert done.returncode == 0
    (task, _) = json.loads((tmp_path / "tasks.json").read_text())
    (result,) = task["annotations"][0]["result"]
    # 2 of 60, 3 of 40, 10 of 60 and 10 of 40 pixels in per cent
    assert [result["value"][side] for side in ("x", "y", "width", "height")] == pytest.approx([10 / 3, 7.5, 50 / 3, 25])
    assert result["value"]["rectanglelabels"] == ["dog"]


def test_ids_are_kept_there_and_back(tmp_path: Path) -> None:
    boxes = [{"bbox": [5, 5, 10, 10]}, {"bbox": [20, 5, 10, 10]}, {"bbox": [40, 20, 8, 8]}]
    source = coco(tmp_path / "c.json", *({**box, "image_id": 1, "category_id": 2} for box in boxes))
    document = json.loads(source.read_text())
    for one, key in zip(document["annotations"], (70, 9, 400), strict=True):
        one["id"], one["area"] = key, one["bbox"][2] * one["bbox"][3]
    document["images"][0]["id"] = document["annotations"][0]["image_id"] = 31
    for one in document["annotations"]:
        one["image_id"] = 31
    write_json(source, document)
    there = tmp_path / "x.xml"
    assert run_here("convert", source, there).returncode == 0
    # An annotator moves one, renames the class of another, deletes the third and draws a new one.
    text = there.read_text().replace(
        'xtl="5.0" ytl="5.0" xbr="15.0" ybr="15.0"', 'xtl="6.0" ytl="5.0" xbr="16.0" ybr="15.0"'
    )
    text = re.sub(r'label="big cat"([^>]*xtl="20.0")', r'label="dog"\1', text)
    text = text.replace('xtl="40.0" ytl="20.0" xbr="48.0" ybr="28.0"', 'xtl="0.0" ytl="30.0" xbr="4.0" ybr="38.0"')
    there.write_text(text)
    back = tmp_path / "back.json"
    done = run_here("convert", there, back, "--ids-from", source)
    assert done.returncode == 0
    found = json.loads(back.read_text())
    assert [(one["id"], one["image_id"], one["category_id"], one["bbox"]) for one in found["annotations"]] == [
        (70, 31, 2, [6.0, 5.0, 10.0, 10.0]),
        (9, 31, 1, [20.0, 5.0, 10.0, 10.0]),
        (401, 31, 2, [0.0, 30.0, 4.0, 8.0]),
    ]
    assert [image["id"] for image in found["images"]] == [2, 31]
    assert [one["id"] for one in found["categories"]] == [1, 2]
    scored = coco(tmp_path / "p.json", {"image_id": 1}, scored=True)
    done = run_here("convert", scored, tmp_path / "q.json", "--ids-from", source)
    assert (done.returncode, "these are predictions" in done.stderr) == (2, True)
    named = there.read_text().replace('label="dog"', 'label="horse"')
    there.write_text(named.replace("<name>dog</name>", "<name>horse</name>"))
    done = run_here("convert", there, tmp_path / "q.json", "--ids-from", source)
    assert (done.returncode, "does not have the classes 'horse'" in done.stderr) == (3, True)


def test_errors_that_options_settle_end_with_the_whole_command(tmp_path: Path) -> None:
    source = coco(tmp_path / "c.json", {"iscrowd": 1, "area": 100})
    done = run_here("convert", source, tmp_path / "labels", "--to", "yolo")
    command = f"jaccard-eval convert {source} {tmp_path / 'labels'} --to yolo --lossy"
    assert (done.returncode, f"The whole command: {command}" in " ".join(done.stderr.split())) == (3, True)
    assert run_here(*command.split()[1:]).returncode == 0
    predictions = write_json(
        tmp_path / "p.json", [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}]
    )
    done = run_here("convert", predictions, tmp_path / "p", "--to", "yolo")
    assert f"The whole command: jaccard-eval convert {predictions} {tmp_path / 'p'} --to yolo --gt GT" in done.stderr
    done = run_here("convert", tmp_path / "none.json", tmp_path / "q.json")
    assert (done.returncode, "whole command" in done.stderr) == (3, False)
