"""Tables of masks: numbers are those of COCO JSON with the RLE that pycocotools makes of the same masks."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pycocotools import mask as coco_mask
from shaped import measured, write_images, write_masks

from jaccard_eval import DataError, ReadOptions, evaluate, inspect, load
from jaccard_eval.formats import detect_format

Pixels = npt.NDArray[np.bool_]
HEIGHT, WIDTH = 40, 60


def blob(left: int, top: int, right: int, bottom: int) -> Pixels:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    pixels[top:bottom, left:right] = True
    pixels[top, left] = (left, top) == (0, 0)
    return pixels


GT: dict[str, list[tuple[int, Pixels]]] = {
    "a": [(0, blob(4, 4, 24, 20)), (1, blob(30, 0, 60, 15))],
    "b": [(1, blob(10, 10, 30, 36)), (0, blob(35, 2, 50, 18)), (1, blob(40, 22, 58, 38)), (0, blob(0, 0, 8, 9))],
    "c": [],
}
PRED: dict[str, list[tuple[int, Pixels, float]]] = {
    "a": [(0, blob(5, 4, 24, 20), 0.875), (1, blob(33, 0, 60, 17), 0.75)],
    "b": [(1, blob(12, 12, 30, 36), 0.625), (0, blob(36, 3, 50, 18), 0.25), (1, blob(41, 22, 58, 36), 0.375)],
    "c": [(0, blob(0, 0, 10, 10), 0.5)],
}


def encoded(pixels: Pixels) -> dict[str, Any]:
    rle = coco_mask.encode(np.asfortranarray(pixels.astype(np.uint8)))
    return {"size": list(rle["size"]), "counts": rle["counts"].decode()}


def coco(folder: Path) -> tuple[Path, Path]:
    return write_masks(folder, (GT, PRED), (WIDTH, HEIGHT), ".jpg", encoded)


def kaggle(pixels: Pixels, *, order: Any = "F", first: int = 1, relative: bool = False) -> str:
    """Write runs as the kernels of the competitions do."""
    flat = np.concatenate(([0], pixels.flatten(order), [0])).astype(int)
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    starts, ends = edges[::2], edges[1::2]
    begins = starts - np.concatenate(([0], ends[:-1])) if relative else starts + first
    return " ".join(f"{start} {length}" for start, length in zip(begins, ends - starts, strict=True))


def write(path: Path, header: str, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        writer.writerows(rows)
    return path


def objects(side: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(f"{name}.jpg", shape) for name, shapes in side.items() for shape in shapes]


def table(folder: Path, runs: Callable[[Pixels], str] = kaggle) -> tuple[Path, Path]:
    gt = [(name, label, runs(pixels)) for name, (label, pixels) in objects(GT)]
    pred = [(name, runs(pixels), label, score) for name, (label, pixels, score) in objects(PRED)]
    return (
        write(folder / "gt.csv", "ImageId,ClassId,EncodedPixels", [*gt, ("c.jpg", "", "")]),
        write(folder / "pred.csv", "ImageId,EncodedPixels,ClassId,Confidence", pred),
    )


def sized(folder: Path) -> tuple[Path, Path]:
    gt = [(name[0], kaggle(pixels), HEIGHT, WIDTH, label) for name, (label, pixels) in objects(GT)]
    return write(folder / "gt.csv", "id,rle,height,width,class", [*gt, ("c", "-1", HEIGHT, WIDTH, "")]), table(folder)[
        1
    ]


def joined(folder: Path) -> tuple[Path, Path]:
    gt = [(f"{name}_{label}", kaggle(pixels)) for name, (label, pixels) in objects(GT)]
    return write(folder / "gt.csv", "ImageId_ClassId,EncodedPixels", [*gt, ("c.jpg_1", "")]), table(folder)[1]


def in_json(folder: Path) -> tuple[Path, Path]:
    pred = [(name, json.dumps(encoded(pixels)), label, score) for name, (label, pixels, score) in objects(PRED)]
    return coco(folder)[0], write(folder / "pred.csv", "image,segmentation,label,score", pred)


TABLES: dict[str, Callable[[Path], tuple[Path, Path]]] = {
    "plain": table,
    "sizes": sized,
    "joined": joined,
    "coco": lambda folder: (coco(folder)[0], table(folder)[1]),
    "json": in_json,
    "list": lambda folder: (coco(folder)[0], table(folder, lambda pixels: f"[{kaggle(pixels).replace(' ', ', ')}]")[1]),
    "first pixel 0": lambda folder: (coco(folder)[0], table(folder, lambda pixels: kaggle(pixels, first=0))[1]),
    "distances": lambda folder: (coco(folder)[0], table(folder, lambda pixels: kaggle(pixels, relative=True))[1]),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_runs_give_the_numbers_of_coco(name: str, tmp_path: Path) -> None:
    (tmp_path / "coco").mkdir()
    (tmp_path / "table").mkdir()
    gt, pred = TABLES[name](tmp_path / "table")
    assert detect_format(pred) == "masktable"
    assert measured(evaluate(gt, pred)) == measured(evaluate(*coco(tmp_path / "coco"), iou_type="segm"))


def test_runs_along_the_rows_are_settled_by_overlap(tmp_path: Path) -> None:
    gt, pred = coco(tmp_path)[0], table(tmp_path, lambda pixels: kaggle(pixels, order="C"))[1]
    with pytest.raises(DataError, match="mask-axes") as caught:
        evaluate(gt, pred)
    assert "row-major" in str(caught.value)
    expected = evaluate(*coco(tmp_path), iou_type="segm").metrics["AP"].value
    pred = table(tmp_path, lambda pixels: kaggle(pixels, order="C"))[1]
    assert evaluate(gt, pred, pred_options=ReadOptions(mask_axes="row-major")).metrics["AP"].value == expected


def test_a_lone_table_shows_boxes_of_images_only_where_their_size_is_known(tmp_path: Path) -> None:
    gt, _ = table(tmp_path)
    assert "size-assumed" in {finding.code for finding in inspect(gt).findings}
    folder = write_images(tmp_path / "images", [f"{name}.jpg" for name in GT], (WIDTH, HEIGHT))
    known = inspect(gt, gt_options=ReadOptions(images=folder))
    assert "size-assumed" not in {finding.code for finding in known.findings}


def test_boxes_around_runs_need_the_sizes_of_images(tmp_path: Path) -> None:
    gt, pred = table(tmp_path)
    with pytest.raises(DataError, match="size-unknown"):
        evaluate(gt, pred, iou_type="bbox")
    folder = write_images(tmp_path / "images", [f"{name}.jpg" for name in GT], (WIDTH, HEIGHT))
    options = ReadOptions(images=folder)
    found = load(gt, options=options)
    assert found.boxes.xywh.tolist() == [
        [4, 4, 20, 16],
        [30, 0, 30, 15],
        [10, 10, 20, 26],
        [35, 2, 15, 16],
        [40, 22, 18, 16],
        [0, 0, 8, 9],
    ]
    with pytest.raises(DataError, match="which masks lie in"):
        evaluate(gt, pred, iou_type="boundary")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("1 3 2 4", "run 2 begins at 2, before the one before it has ended"),
        ("1 3 9", "has 3 numbers; expected pairs"),
        ("1 3 9 x", "'x' is not a whole number of pixels"),
        ("1 3 2399 9", "runs reach pixel 2,407, but the image has 60 x 40 (width x height)"),
        ("POLYGON ((1 2", "is not a POLYGON or MULTIPOLYGON"),
    ],
)
def test_runs_that_cannot_be_are_named(cell: str, words: str, tmp_path: Path) -> None:
    rows = [("a", "1 2 9 2", 60, 40), ("a", "21 2 29 2", 60, 40), ("b", cell, 60, 40)]
    path = write(tmp_path / "gt.csv", "ImageId,EncodedPixels,Width,Height", rows)
    with pytest.raises(DataError) as caught:
        load(path, options=ReadOptions(iou_type="segm"))
    assert f"segmentation-invalid]: {path}:4: EncodedPixels: {words}" in str(caught.value)


def polygon(left: float, top: float, right: float, bottom: float) -> str:
    return f"(({left} {top} 0, {right} {top} 0, {right} {bottom} 0, {left} {bottom} 0, {left} {top} 0))"


def test_well_known_text_is_filled_whatever_the_size_of_the_image(tmp_path: Path) -> None:
    gt_rows = [("a", 1, f"POLYGON {polygon(10, 10, 30, 30)}"), ("b", -1, "POLYGON EMPTY")]
    gt_rows.append(("a", 2, f"MULTIPOLYGON ({polygon(40, 10, 60, 30)}, {polygon(40, 50, 60, 70)})"))
    gt = write(tmp_path / "gt.csv", "ImageId,BuildingId,PolygonWKT_Pix", gt_rows)
    rows = [("a", 1, f"POLYGON {polygon(12, 10, 30, 30)}", 0.9), ("a", 2, f"POLYGON {polygon(40, 50, 60, 70)}", 0.8)]
    pred = write(tmp_path / "pred.csv", "ImageId,BuildingId,PolygonWKT_Pix,Confidence", rows)
    result = evaluate(gt, pred)
    # IoU 18 x 20 of 20 x 20, and one of two parts: 9 thresholds of 10 find one of two objects.
    assert result.metrics["AP50"].value == pytest.approx(1.0)
    assert result.metrics["AP75"].value == pytest.approx(51 / 101)
    assert "size-assumed" in {finding.code for finding in result.findings}
    assert "|mask_sizes=assumed:1|" in result.signature


@pytest.mark.parametrize(
    "cell",
    ["12,10,30,10,30,30,12,30", "[[12, 10, 30, 10, 30, 30, 12, 30]]", "[(12, 10), (30, 10), (30, 30), (12, 30)]"],
)
def test_lists_of_corners_are_polygons(cell: str, tmp_path: Path) -> None:
    gt = write(tmp_path / "gt.csv", "image,polygon", [("a", f"POLYGON {polygon(10, 10, 30, 30)}")])
    pred = write(tmp_path / "pred.csv", "image,polygon,score", [("a", cell, 0.5)])
    assert evaluate(gt, pred).metrics["AP"].value == pytest.approx(0.9)  # IoU 18 / 20


def test_holes_of_well_known_text_have_no_pixels(tmp_path: Path) -> None:
    hole = polygon(10, 10, 20, 20)[1:-1]
    cell = f"POLYGON ({polygon(0, 0, 40, 30)[1:-1]}, {hole})"
    path = write(tmp_path / "gt.csv", "ImageId,PolygonWKT_Pix,Width,Height", [("a", cell, 60, 40)])
    dataset = load(path, options=ReadOptions(iou_type="segm"))
    assert dataset.boxes.shapes.in_images(np.array([[40, 60]])).areas().tolist() == [40 * 30 - 10 * 10]


def test_one_class_is_said_and_columns_that_are_not_used(tmp_path: Path) -> None:
    rows = [("a", "1 2 9 2", 60, 40, "astro")]
    path = write(tmp_path / "gt.csv", "id,annotation,width,height,cell_type", rows)
    codes = {finding.code for finding in load(path, options=ReadOptions(iou_type="segm")).findings}
    assert codes >= {"csv-one-class", "csv-columns-unused"}
