"""Masks as annotation services, videos and tables of nuclei have them: values by hand."""

from pathlib import Path
from typing import Any

import pytest
from mask_carriers import LAYOUTS, dataloop, encord_row, nucls, videos, vott, write

from jaccard_eval import DataError, EvaluationResult, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

# Of cells, the better of two predictions finds one of two objects: 51 of 101 recalls. Stroma passes 7 thresholds of 10.
AP = (51 / 101 + 0.7) / 2


def evaluated(gt: Path, pred: Path, **options: Any) -> EvaluationResult:
    result = evaluate(gt, pred, **options)
    assert (result.gt.images, result.gt.boxes, result.pred.boxes) == (2, 3, 3)
    assert sorted(row.name for row in result.per_class) == ["cell", "stroma"]
    return result


@pytest.mark.parametrize("name", LAYOUTS)
def test_services_give_the_value_by_hand(name: str, tmp_path: Path) -> None:
    gt, pred = LAYOUTS[name](tmp_path, "gt"), LAYOUTS[name](tmp_path, "pred")
    assert detect_format(gt) == detect_format(pred) == "shapelists"
    result = evaluated(gt, pred)
    assert result.protocol.iou_type == ("bbox" if name.lower().endswith("box") else "segm")
    assert result.metrics["AP"].value == pytest.approx(AP, abs=1e-12)
    boxes = evaluated(gt, pred, iou_type="bbox")  # of rectangles, those around the masks
    assert boxes.metrics["AP"].value == pytest.approx(AP, abs=1e-12)


def test_turned_boxes_of_encord_are_turned_about_their_centre(tmp_path: Path) -> None:
    # A quarter of a turn makes 20 x 10 about (30, 25) the upright box of 10 x 20.
    def row(shape: dict[str, Any]) -> dict[str, Any]:
        unit = {"data_title": "a.jpg", "width": 100, "height": 50, "labels": {"objects": [{"name": "cell"} | shape]}}
        return {"label_hash": "a", "data_units": {"u": unit}}

    turned = {"x": 0.2, "y": 0.4, "w": 0.2, "h": 0.2, "theta": 90}
    gt = write(tmp_path / "gt.json", [row({"rotatableBoundingBox": turned})])
    upright = {"x": 0.25, "y": 0.3, "w": 0.1, "h": 0.4}
    pred = write(tmp_path / "pred.json", [row({"boundingBox": upright, "confidence": 0.9})])
    assert evaluate(gt, pred, iou_type="obb", allow=["quad-upright"]).metrics["AP"].value == pytest.approx(1.0)


def test_holes_in_outlines_of_encord_are_no_part_of_them(tmp_path: Path) -> None:
    # By hand: 80 x 64 pixels, without a hole of 30 x 24 in one of them: IoU 4,400 / 5,120 = .859.
    def row(holes: list[list[float]], **more: float) -> dict[str, Any]:
        drawn = {"name": "cell", "polygons": [[[0.1, 0.1, 0.9, 0.1, 0.9, 0.9, 0.1, 0.9], *holes]], **more}
        unit = {"data_title": "a.jpg", "width": 100, "height": 80, "labels": {"objects": [drawn]}}
        return {"label_hash": "a", "data_units": {"u": unit}}

    gt = write(tmp_path / "gt.json", [row([[0.3, 0.3, 0.6, 0.3, 0.6, 0.6, 0.3, 0.6]])])
    pred = write(tmp_path / "pred.json", [row([], confidence=0.9)])
    for iou, value in ((0.859, 1.0), (0.86, 0.0)):
        assert evaluate(gt, pred, iou_type="segm", iou=[iou]).metrics["AP"].value == pytest.approx(value)


@pytest.mark.parametrize("is_polygon", [False, True])
def test_tracks_of_youtube_vis_are_compared_over_all_frames(is_polygon: bool, tmp_path: Path) -> None:
    # By hand: cells share 400 pixels in the first frame, and have 400 each in the second: IoU 400 / 1,200. The track of
    # stroma is in the first frame alone: IoU 18 / 22.
    gt, pred = videos(tmp_path, "gt", is_polygon=is_polygon), videos(tmp_path, "pred")
    result = evaluate(gt, pred)
    assert (result.gt.images, result.gt.boxes) == (1, 2)
    assert [row.name for row in result.per_class] == ["cell", "stroma"]
    assert result.metrics["AP"].value == pytest.approx(0.7 / 2, abs=1e-12)
    assert evaluate(gt, pred, iou=[0.33]).metrics["AP"].value == pytest.approx(1.0, abs=1e-12)
    assert evaluate(gt, pred, iou=[0.34]).metrics["AP"].value == pytest.approx(0.5, abs=1e-12)


def test_tables_of_an_image_each_with_x_and_y_in_two_columns(tmp_path: Path) -> None:
    gt, pred = nucls(tmp_path, "gt"), nucls(tmp_path, "pred")
    assert detect_format(gt) == "masktable"
    result = evaluated(gt, pred, pred_options=ReadOptions(assume_score=1.0))
    assert result.protocol.iou_type == "segm"
    # Without scores: two of three predictions are right, and find two of three objects.
    assert result.metrics["F1"].value == pytest.approx(2 / 3, abs=1e-12)
    with (gt / "a.csv").open("a") as file:
        file.write('raw,cell,super,polyline,1,1,9,9,"1,9,9","1,1"\n')
    with pytest.raises(DataError, match=r"a\.csv:4: coords_x: has 3 numbers, and coords_y has 2"):
        load(gt, options=ReadOptions(iou_type="segm"))


TRACK = {"video_id": 1, "score": 0.9, "category_id": 1}
BAD: dict[str, tuple[Any, str]] = {
    "size": ([encord_row("gt", "a", "polygon", nothing=0)], "is a share of an image whose size is not written"),
    "string": ([encord_row("gt", "a", "bitmask")], "but 64 x 40 are 2,560"),
    "leaves": ([encord_row("gt", "a", "bitmask", width=32, height=24)], "leave the image of 32 x 24"),
    "no PNG": (dataloop("gt", "a", "binary"), "is not a PNG image in base64"),
    "ring": (dataloop("gt", "a", "segment"), "is not a polygon"),
    "sizes": (
        [TRACK | {"segmentations": [{"size": [4, 5], "counts": [20]}, {"size": [5, 4], "counts": [20]}]}],
        "masks of its frames have several sizes",
    ),
    "polygons": ([TRACK | {"segmentations": [[[1, 1, 9, 1, 9, 9]]]}], "need the height and width of the video"),
    "runs": ([TRACK | {"segmentations": [{"size": [4, 5], "counts": [7]}]}], "sum"),
    "frames": ([encord_row("gt", "a", "polygon")], "labels: are of the frames of a video"),
    "tags": (vott("gt"), "tags: has 2 tags; an object has one class"),
    "no list": ([TRACK | {"segmentations": 7}, TRACK | {"segmentations": [7]}], "expected polygons or RLE"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    document, words = BAD[name]
    if name == "string":
        document[0]["data_units"]["unit a"]["labels"]["objects"][0]["bitmask"]["height"] = 40
    elif name == "frames":
        unit = document[0]["data_units"]["unit a"]
        unit["labels"] = {"0": unit["labels"], "1": unit["labels"]}
    elif name == "tags":
        document["assets"]["hash of a"]["regions"][0]["tags"].append("stroma")
    elif name == "no PNG":
        document["annotations"][0]["coordinates"] = "data:image/png;base64,AAAA"
    elif name == "ring":
        document["annotations"][0]["coordinates"] = [[{"x": 1.0}, {"x": 2.0}]]
    path = write(tmp_path / "bad.json", document)
    with pytest.raises(DataError) as caught:
        load(path, options=ReadOptions(iou_type="segm"))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
