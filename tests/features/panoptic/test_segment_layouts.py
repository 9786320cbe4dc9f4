"""Maps whose values name class and number (BDD100K, KITTI-STEP, Mapillary, VIPSeg), and lists of scripts."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from jaccard_eval import DataError, panoptic

# One row of eight pixels: road (stuff), two cars, void. The first car is found but for a pixel, the second is missed.
GT = [("road", 0)] * 3 + [("car", 1)] * 3 + [("car", 2)] + [("", 0)]
PRED = [("road", 0)] * 3 + [("car", 1)] * 2 + [("road", 0)] + [("", 0)] * 2
# road: 3 of 4 pixels; car: 2 of 3, with one missed: (2 / 3) / (1 + 1 / 2).
PQ = (3 / 4 + (2 / 3) / 1.5) / 2
CLASSES = [{"id": 7, "name": "road", "isthing": 0}, {"id": 26, "name": "car", "isthing": 1}]

Encode = Callable[[str, int], Any]


def bitmask(name: str, number: int) -> tuple[int, int, int, int]:
    label, own = {"road": (7, 1), "car": (35, 300 + number), "": (0, 0)}[name]
    return label, 0, own >> 8, own & 255


def channels(name: str, number: int) -> tuple[int, int, int]:
    return {"road": 0, "car": 13, "": 255}[name], (number * 300) >> 8, (number * 300) & 255


def grey(by: int, below: int = 0) -> Encode:
    def encode(name: str, number: int) -> int:
        label = {"road": 7, "car": 26, "": 0}[name]
        return label if label < below and name != "car" else by * label + number

    return encode


def write(path: Path, cells: list[tuple[str, int]], encode: Encode) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.array([[encode(*cell) for cell in cells]])
    Image.fromarray(values.astype(np.uint8 if values.ndim == 3 else np.uint16)).save(path)


def sides(root: Path, encode: Encode, name: str = "seq/000001.png") -> tuple[Path, Path]:
    write(root / "gt" / name, GT, encode)
    write(root / "pred" / name, PRED, encode)
    return root / "gt", root / "pred"


def red(name: str, number: int) -> tuple[int, int, int]:
    return {"road": 7, "car": 26, "": 0}[name], (number * 300) >> 8, (number * 300) & 255


LAYOUTS = {
    "class-number": (red, True),
    "bdd100k": (bitmask, False),
    "kitti-step": (channels, False),
    "class-256": (grey(256), True),
    "class-1000": (grey(1000, 1000), True),
    "class-100": (grey(100, 125), True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_values_name_class_and_number_and_the_layout_is_found_by_the_classes(name: str, tmp_path: Path) -> None:
    encode, lists_classes = LAYOUTS[name]
    gt, pred = sides(tmp_path, encode)
    if lists_classes:
        (tmp_path / "panoVIPSeg_categories.json").write_text(json.dumps(CLASSES))
    result = panoptic(gt, pred)
    assert (result.gt.format, result["PQ"]) == (name, pytest.approx(PQ, abs=1e-15))
    rows = {row.name: row for row in result.per_class}
    assert (rows["car"].is_thing, rows["car"].tp, rows["car"].fn, rows["road"].is_thing) == (True, 1, 1, False)


def test_maps_of_classes_and_of_numbers_in_a_folder_each_are_joined(tmp_path: Path) -> None:
    for side, cells in (("gt", GT), ("pred", PRED)):
        write(
            tmp_path / side / "semantic_40/seq/1.png", cells, lambda name, number: {"road": 7, "car": 26, "": 0}[name]
        )
        write(tmp_path / side / "instance/seq/1.png", cells, lambda name, number: number)
    gt, pred = tmp_path / "gt", tmp_path / "pred"
    with pytest.raises(DataError, match="a map of classes and one of numbers: classes 7, 26"):
        panoptic(gt, pred)
    (tmp_path / "classes.json").write_text(json.dumps(CLASSES))
    result = panoptic(gt, pred)
    assert (result.gt.format, result["PQ"]) == ("semantic-instance", pytest.approx(PQ, abs=1e-15))
    write(pred / "instance/seq/1.png", GT[1:], lambda name, number: number)
    with pytest.raises(DataError, match="has 7 x 1 pixels, the map of classes 8 x 1"):
        panoptic(gt, pred)


def test_classes_of_mapillary_are_those_that_it_evaluates(tmp_path: Path) -> None:
    gt, pred = sides(tmp_path, grey(256))
    labels = [{"name": f"a--{at}", "readable": str(at), "instances": at == 26, "evaluate": at != 0} for at in range(66)]
    (tmp_path / "config_v1.2.json").write_text(json.dumps({"labels": labels}))
    assert panoptic(gt, pred)["PQ"] == pytest.approx(PQ, abs=1e-15)


def test_without_classes_both_readings_of_grey_are_named(tmp_path: Path) -> None:
    gt, pred = sides(tmp_path, grey(256))
    with pytest.raises(DataError) as caught:
        panoptic(gt, pred)
    text = str(caught.value)
    assert "256 x class + number: classes 7, 26" in text
    assert "1000 x class + number: classes 1, 6" in text  # 1792, 6657 and 6658
    assert '"isthing"' in text


def test_what_bdd100k_ignores_is_void(tmp_path: Path) -> None:
    gt, pred = sides(tmp_path, bitmask)

    def ignored(name: str, number: int) -> tuple[int, int, int, int]:
        red, green, blue, alpha = bitmask(name, number)
        return red, 2 if number == 2 else green, blue, alpha

    write(gt / "seq/000001.png", GT, ignored)  # the missed car is a crowd
    assert panoptic(gt, pred)["PQ"] == pytest.approx((3 / 4 + 2 / 3) / 2, abs=1e-15)


def test_other_things_with_a_number_mean_all_things_of_cityscapes(tmp_path: Path) -> None:
    encode: Encode = lambda name, number: (18, *channels(name, number)[1:]) if name == "car" else channels(name, 0)  # noqa: E731
    result = panoptic(*sides(tmp_path, encode))
    assert (result.gt.format, result["PQ_things"]) == ("two-channels", pytest.approx((2 / 3) / 1.5, abs=1e-15))


def coco(root: Path) -> Path:
    """Write the ground truth as COCO's, with ids of images that are no names."""
    write(root / "gt" / "a.png", GT, lambda name, number: ({"road": 1, "car": 1 + number, "": 0}[name], 0, 0))
    info = [{"id": 1, "category_id": 7}, {"id": 2, "category_id": 26}, {"id": 3, "category_id": 26}]
    document = {
        "images": [{"id": 17, "file_name": "a.jpg", "width": 8, "height": 1}],
        "annotations": [{"image_id": 17, "file_name": "a.png", "segments_info": info}],
        "categories": CLASSES,
    }
    (root / "gt.json").write_text(json.dumps(document))
    return root / "gt.json"


@pytest.mark.parametrize("shape", ["one each", "list", "by name"])
def test_segments_of_transformers_are_read_with_grey_maps(shape: str, tmp_path: Path) -> None:
    gt, out = coco(tmp_path), tmp_path / "out"
    write(out / "a.png", PRED, lambda name, number: {"road": 1, "car": 1 + number, "": 0}[name])
    info = [
        {"id": 1, "label_id": 7, "was_fused": False, "score": 0.9},
        {"id": 2, "label_id": 26, "was_fused": False, "score": 0.8},
    ]
    record = {"segments_info": info}
    documents = {"one each": record, "list": [{"image": "a.jpg", **record}], "by name": {"a.jpg": record}}
    (out / "a.json").write_text(json.dumps(documents[shape]))
    given = out if shape == "one each" else out / "a.json"
    maps = None if shape == "one each" else out
    assert panoptic(gt, given, pred_masks=maps)["PQ"] == pytest.approx(PQ, abs=1e-15)


# Three cars of 2, 2 and 3 pixels, whose last pixel is not found: (1 + 1 + 2 / 3) / 3.
CARS, FOUND = [1, 1, 2, 2, 3, 3, 3, 0], [1, 1, 2, 2, 3, 3, 0, 0]


def labelled(label: int, n: int = 3, **given: Any) -> Any:
    """Evaluate cars of class 2 of 1 to 3 that are predicted with a label."""
    categories = [{"id": at, "name": name, "isthing": 1} for at, name in enumerate(["person", "car", "bus"], 1)]
    record = {"image_id": 1, "file_name": "a.png"}
    info = [{"id": at, "category_id": 2} for at in range(1, n + 1)]
    gt = {"annotations": [{**record, "segments_info": info}], "categories": categories}
    info = [{"id": at, "label_id": label, "score": 0.9} for at in range(1, n + 1)]
    maps = [np.array([[value * (value <= n) for value in row]]) for row in (CARS, FOUND)]
    gt_masks, pred_masks = ({"a.png": map_} for map_ in maps)
    pred = {"annotations": [{**record, "segments_info": info}]}
    return panoptic(gt, pred, gt_masks=gt_masks, pred_masks=pred_masks, **given)


@pytest.mark.parametrize("label", [1, 2])
def test_a_label_is_the_id_or_the_place_that_segments_show(label: int) -> None:
    assert labelled(label)["PQ"] == pytest.approx((1 + 1 + 2 / 3) / 3, abs=1e-15)


@pytest.mark.parametrize(("label", "n"), [(1, 2), (2, 2), (0, 3)])
def test_a_label_that_segments_do_not_explain_is_asked_for(label: int, n: int) -> None:
    with pytest.raises(
        DataError, match=r"class_map: \d=\d and so on where it is an id, \d=\d and so on where"
    ) as caught:
        labelled(label, n)
    on = {
        1: "0 lie on their class where label_id is an id of the ground truth, 2 where it is the place",
        2: "2 lie on their class where label_id is an id of the ground truth, 0 where it is the place",
        0: "0 lie on their class where label_id is an id of the ground truth, 0 where it is the place",
    }[label]
    assert on in str(caught.value)
    # 1 of 1 and 2 of 2 of two cars; with label 0 as an other class none of three.
    assert labelled(label, n, class_map={str(label): "2"})["PQ"] == pytest.approx(1.0 if n == 2 else 8 / 9, abs=1e-15)


def test_in_the_root_of_coco_the_panoptic_file_is_meant(tmp_path: Path) -> None:
    gt = coco(tmp_path / "annotations")
    gt.rename(gt.with_name("panoptic_val2017.json"))
    gt.with_name("gt").rename(gt.with_name("panoptic_val2017"))
    gt.with_name("other.json").write_text('{"annotations": [{"segments_info": []}]}')
    assert panoptic(tmp_path / "annotations", gt.with_name("panoptic_val2017.json"))["PQ"] == 1.0


def test_maps_of_classes_that_the_ground_truth_lacks_are_refused(tmp_path: Path) -> None:
    _, pred = sides(tmp_path / "other", bitmask)
    with pytest.raises(DataError, match="classes that the ground truth lacks"):
        panoptic(coco(tmp_path), pred)


def coco_truth(root: Path) -> Path:
    """Write the ground truth as COCO has it, one image of eight pixels."""
    write(root / "gt" / "gt" / "000001.png", GT, lambda name, number: {"": 0, "road": 5}.get(name, 5 + number))
    segments = [{"id": 5, "category_id": 7}, {"id": 6, "category_id": 26}, {"id": 7, "category_id": 26}]
    records = [{"image_id": 1, "file_name": "000001.png", "segments_info": segments}]
    image = {"id": 1, "file_name": "000001.jpg", "width": 8, "height": 1}
    as_rgb(root / "gt" / "gt" / "000001.png")
    (root / "gt" / "gt.json").write_text(json.dumps({"images": [image], "annotations": records, "categories": CLASSES}))
    return root / "gt" / "gt.json"


def as_rgb(path: Path) -> None:
    values = np.asarray(Image.open(path)).astype(np.uint8)
    Image.fromarray(np.stack([values, values * 0, values * 0], axis=2)).save(path)


def found_ids() -> Any:
    return np.array([[{"": 0, "road": 1, "car": 2}[name] for name, _ in PRED]])


LISTED = [{"id": 1, "label_id": 7, "was_fused": True, "score": 0.9}, {"id": 2, "label_id": 26, "score": 0.8}]


def as_list(root: Path) -> Path:
    write(root / "preds" / "000001.png", PRED, lambda name, _: {"": 0, "road": 1, "car": 2}[name])
    record = {"image_id": 1, "file_name": "000001.png", "segments_info": LISTED}
    (root / "preds.json").write_text(json.dumps([record]))
    return root / "preds.json"


def as_bare_segments(root: Path) -> Path:
    write(root / "preds" / "000001.png", PRED, lambda name, _: {"": 0, "road": 1, "car": 2}[name])
    (root / "preds" / "000001.json").write_text(json.dumps(LISTED))
    return root / "preds"


def as_array_in_folder(root: Path) -> Path:
    (root / "preds" / "000001").mkdir(parents=True)
    np.save(root / "preds" / "000001" / "panoptic_segmentation_ids.npy", found_ids().astype(np.int32))
    Image.new("RGB", (8, 1)).save(root / "preds" / "000001" / "overlay.png")
    (root / "preds" / "000001" / "segments_info.json").write_text(json.dumps(LISTED))
    return root / "preds"


def as_rows(root: Path) -> Path:
    record = {"image_id": 1, "segmentation": found_ids().tolist(), "segments_info": LISTED}
    (root / "preds.json").write_text(json.dumps([record]))
    return root / "preds.json"


def as_png_string(root: Path) -> Path:
    write(root / "one.png", PRED, lambda name, _: {"": 0, "road": 1, "car": 2}[name])
    as_rgb(root / "one.png")
    packed = base64.b64encode((root / "one.png").read_bytes()).decode()
    segments = [{"id": 1, "isthing": False, "category_id": 7}, {"id": 2, "isthing": True, "category_id": 26}]
    record = {"image_id": 1, "png_string": packed, "segments_info": segments}
    (root / "preds.json").write_text(json.dumps([record]))
    return root / "preds.json"


def as_segments_with_numbers(root: Path) -> Path:
    write(root / "preds" / "000001.png", PRED, lambda name, _: {"": 0, "road": 1, "car": 2}[name])
    segments = [{"segment_id": 1, "category_id": 7, "label": "road"}, {"segment_id": 2, "category_id": 26}]
    (root / "preds" / "000001.json").write_text(json.dumps({"image": "000001.jpg", "segments": segments}))
    return root / "preds"


def as_jpeg_names(root: Path) -> Path:
    path = as_list(root)
    path.write_text(path.read_text().replace("000001.png", "000001.jpg"))
    return path


def as_two_channels(root: Path) -> Path:
    """Red is the class and green the number, as panopticapi converts them."""
    write(root / "preds" / "000001.png", PRED, lambda name, number: ({"": 0, "road": 7, "car": 26}[name], number, 0))
    return root / "preds"


@pytest.mark.parametrize(
    "predict",
    [
        *(as_list, as_bare_segments, as_array_in_folder, as_rows, as_png_string),
        *(as_segments_with_numbers, as_jpeg_names, as_two_channels),
    ],
)
def test_what_scripts_write_of_a_model_is_read(tmp_path: Path, predict: Callable[[Path], Path]) -> None:
    assert panoptic(coco_truth(tmp_path), predict(tmp_path)).metrics["PQ"].value == pytest.approx(PQ)


def test_images_of_videos_are_called_by_both(tmp_path: Path) -> None:
    for side, cells in (("gt", GT), ("pred", PRED)):
        for video in ("a", "b"):
            map_ = tmp_path / side / "maps" / video / "00000.png"
            write(map_, cells, lambda name, number: {"": 0, "road": 5}.get(name, 5 + number))
            as_rgb(map_)
        numbers = [(5, 7), (6, 26), (7, 26)][: 3 if side == "gt" else 2]
        segments = [{"id": number, "category_id": key} for number, key in numbers]
        inner = [{"file_name": "00000.png", "segments_info": segments}]
        videos = [{"video_id": video, "annotations": inner} for video in ("a", "b")]
        document = {"annotations": videos, "categories": CLASSES}
        (tmp_path / side / "all.json").write_text(json.dumps(document))
    found = panoptic(tmp_path / "gt" / "all.json", tmp_path / "pred" / "all.json")
    assert found.metrics["PQ"].value == pytest.approx(PQ)


def test_classes_of_two_layouts_are_paired_by_their_names(tmp_path: Path) -> None:
    """Road is 7 in Cityscapes' maps and 0 in KITTI-STEP's; 7 there is a traffic sign."""
    ids = {"": 0, "road": 7}
    write(tmp_path / "gt" / "a_instanceIds.png", GT, lambda name, number: ids.get(name, 26_000 + number))
    write(tmp_path / "pred" / "a.png", PRED, channels)
    assert panoptic(tmp_path / "gt", tmp_path / "pred").metrics["PQ"].value == pytest.approx(PQ)


def test_what_has_no_segments_leads_on(tmp_path: Path) -> None:
    pred = tmp_path / "pred.json"
    pred.write_text(json.dumps({"frames": [{"name": "000001.jpg", "labels": []}]}))
    with pytest.raises(DataError, match="Pass the folder of the bitmasks"):
        panoptic(coco_truth(tmp_path), pred)
    pred.write_text(json.dumps([{"image_id": 1, "png_string": "no!", "segments_info": []}]))
    with pytest.raises(DataError, match="png_string: is not base64"):
        panoptic(tmp_path / "gt" / "gt.json", pred)


def array(cells: list[tuple[str, int]], road: int, car: int) -> npt.NDArray[np.int64]:
    return np.array([{"road": road, "car": car + number, "": 0}[name] for name, number in cells])


def test_points_of_nuscenes_have_their_own_classes_on_either_side(tmp_path: Path) -> None:
    # Ground truth has 32 classes: car is 17, driveable surface 24; the challenge 16: 4 and 11.
    sides = {"gt": array(GT, 24_000, 17_000), "pred": array(PRED, 11_000, 4_000)}
    for role, values in sides.items():
        (tmp_path / role).mkdir()
        np.savez_compressed(tmp_path / role / "token_panoptic.npz", data=values.astype(np.uint16))
    result = panoptic(tmp_path / "gt", tmp_path / "pred")
    assert (result.gt.format, result["PQ"]) == ("nuscenes", pytest.approx(PQ, abs=1e-15))
    assert [row.name for row in result.per_class if row.tp] == ["car", "driveable_surface"]
    assert any("15 points" in finding.message for finding in result.findings)


def test_points_of_semantickitti_have_the_class_below_the_number(tmp_path: Path) -> None:
    # The first car moves, which is label 252 of the same class.
    labels = {"road": 40, "car": 10, "": 0}
    gt, pred = (np.array([labels[name] | number << 16 for name, number in side]) for side in (GT, PRED))
    gt[3:6] += 242
    for role, folder, values in (("gt", "labels", gt), ("pred", "predictions", pred)):
        path = tmp_path / role / "sequences/08" / folder / "000000.label"
        path.parent.mkdir(parents=True)
        values.astype("<u4").tofile(path)
    result = panoptic(tmp_path / "gt", tmp_path / "pred")
    assert (result.gt.format, result["PQ"]) == ("semantic-kitti", pytest.approx(PQ, abs=1e-15))
    path.write_bytes(b"123")
    with pytest.raises(DataError, match="has 3 bytes; labels of points have 4 each"):
        panoptic(tmp_path / "gt", tmp_path / "pred")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_maps_as_grey_images_are(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "categories.json").write_text(json.dumps(CLASSES))
    for role, cells in (("gt", GT), ("pred", PRED)):
        (tmp_path / role).mkdir()
        values = array(cells, 7, 26_000)[None]
        if suffix == ".npy":
            np.save(tmp_path / role / "a.npy", values)
        else:
            np.savez(tmp_path / role / "a.npz", panoptic=values)
    assert panoptic(tmp_path / "gt", tmp_path / "pred")["PQ"] == pytest.approx(PQ, abs=1e-15)
    np.savez(tmp_path / "pred/a.npz", panoptic=values, scores=values)
    (tmp_path / "pred/a.npy").unlink(missing_ok=True)
    with pytest.raises(DataError, match="has 2 arrays: 'panoptic', 'scores'"):
        panoptic(tmp_path / "gt", tmp_path / "pred")


def test_segments_of_detectron2_lie_next_to_their_map_and_are_no_list_of_classes(tmp_path: Path) -> None:
    (tmp_path / "categories.json").write_text(json.dumps(CLASSES))
    (tmp_path / "gt").mkdir()
    np.save(tmp_path / "gt/a.npy", array(GT, 7, 26_000)[None])
    (tmp_path / "pred").mkdir()
    ids = np.array([{"road": 1, "car": 2, "": 0}[name] for name, _ in PRED])
    np.save(tmp_path / "pred/a.npy", ids[None])
    rows = [{"id": 1, "isthing": False, "category_id": 7}, {"id": 2, "isthing": True, "category_id": 26, "score": 0.9}]
    (tmp_path / "pred/a.json").write_text(json.dumps(rows))
    assert panoptic(tmp_path / "gt", tmp_path / "pred")["PQ"] == pytest.approx(PQ, abs=1e-15)
