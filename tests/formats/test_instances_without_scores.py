"""Carriers of instances without scores, as other programs write them: which rules count, and their numbers."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageSequence

from jaccard_eval import DataError, EvaluationResult, ReadOptions, evaluate, load

Array = npt.NDArray[Any]
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")

# Two objects, the second found in 6 of 9 pixels: one pair at IoU .7 and above, two below.
GT, PRED = np.zeros((8, 12), dtype=np.uint16), np.zeros((8, 12), dtype=np.uint16)
GT[0:3, 0:3], GT[4:7, 4:7] = 1, 2
PRED[0:3, 0:3], PRED[4:7, 4:6] = 1, 2
MAPS = {"gt": GT, "pred": PRED}
TWO, ONE = 4, 6  # thresholds from .5 on with two pairs of two, and with one of three


def expected(result: EvaluationResult) -> None:
    assert result.protocol.name == "cells"
    assert "protocol-chosen" in {finding.code for finding in result.findings}
    assert result["accuracy"] == pytest.approx((TWO + ONE / 3) / 10)
    assert result["mean_IoU"] == pytest.approx((1 + 6 / 9) / 2)


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matlab(variables: dict[str, Array], *, packed: bool) -> bytes:
    """Return a MATLAB 5 file of arrays of int32, which stand column by column."""
    parts = []
    for name, values in variables.items():
        head = element(6, struct.pack("<II", 12, 0)) + element(5, struct.pack("<ii", *values.shape))
        data = element(5, values.astype("<i4").tobytes(order="F"))
        parts.append(element(14, head + element(1, name.encode()) + data))
    if packed:
        parts = [struct.pack("<II", 15, len(data := zlib.compress(part))) + data for part in parts]
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(parts)


def save_matlab(folder: Path, *, packed: bool = False, **others: Array) -> tuple[Path, Path]:
    for role, values in MAPS.items():
        (folder / role).mkdir(exist_ok=True)
        (folder / role / "a.mat").write_bytes(matlab({"inst_map": values, **others}, packed=packed))
    return folder / "gt", folder / "pred"


TYPES = {
    "HoVer-Net": {"inst_type": np.array([[3], [1]])},
    "Lizard": {"id": np.array([[2, 1]]), "class": np.array([[1], [3]])},
    "Kumar": {},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("tool", TYPES)
def test_maps_of_matlab_have_the_types_of_their_numbers(tmp_path: Path, tool: str, packed: bool) -> None:
    sides = save_matlab(tmp_path, packed=packed, **TYPES[tool])
    expected(evaluate(*sides))
    read = load(sides[0])
    assert read.format == "instances"
    # The first object is of type 3.
    assert [read.labels.keys[label] for label in read.table.label.tolist()] == ([3, 1] if TYPES[tool] else [0, 0])
    assert read.images.sizes.tolist() == [[12, 8]]
    expected(evaluate(sides[0] / "a.mat", sides[1] / "a.mat"))


def test_types_that_are_not_those_of_the_map_are_refused(tmp_path: Path) -> None:
    gt, _ = save_matlab(tmp_path, inst_type=np.array([[3], [1], [2]]))
    with pytest.raises(DataError, match=r"has 3 types of 2 objects"):
        load(gt)
    (gt / "b.mat").write_bytes(matlab({"other": GT}, packed=False))
    with pytest.raises(DataError, match=r"b\.mat: has no inst_map"):
        load(gt)


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_of_matlab_are_read_or_refused(tmp_path: Path, packed: bool) -> None:
    whole = matlab({"inst_map": GT, "inst_type": np.array([[3], [1]])}, packed=packed)
    rng, path, n_refused = np.random.default_rng(0), tmp_path / "a.mat", 0
    for _ in range(300):
        data = bytearray(whole[: int(rng.integers(1, len(whole) + 1))])
        for at in rng.integers(0, len(data), int(rng.integers(0, 4))).tolist():
            data[at] = int(rng.integers(0, 256))
        path.write_bytes(data)
        try:
            load(path, format_name="instances")
        except DataError:
            n_refused += 1
    assert 0 < n_refused <= 300


def save(folder: Path, name: Callable[[str], str], values: Callable[[Array], Array]) -> tuple[Path, Path]:
    for role, ids in MAPS.items():
        path = folder / role / name(role)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values(ids)).save(path)
    return folder / "gt", folder / "pred"


def bitmask(ids: Array) -> Array:
    return np.stack([(ids > 0) * 3, ids * 0, ids >> 8, ids & 255], axis=-1).astype(np.uint8)


def test_results_of_the_cell_tracking_challenge_lie_next_to_their_tracks(tmp_path: Path) -> None:
    names = {"gt": "man_seg000.tif", "pred": "mask000.tif"}
    gt, pred = save(tmp_path, names.__getitem__, lambda ids: ids)
    (pred / "res_track.txt").write_text("1 0 0 0\n2 0 0 0\n", encoding="utf-8")
    expected(evaluate(gt, pred))
    # Of the root, the cells are compared and not the marks of their tracks.
    (tmp_path / "01_GT").mkdir()
    gt.rename(tmp_path / "01_GT/SEG")
    (tmp_path / "01_GT/TRA").mkdir()
    Image.fromarray(GT * (np.indices(GT.shape)[0] % 4 == 1)).save(tmp_path / "01_GT/TRA/man_track000.tif")
    (tmp_path / "01_GT/TRA/man_track.txt").write_text("1 0 0 0\n2 0 0 0\n", encoding="utf-8")
    expected(evaluate(tmp_path / "01_GT", pred))


def test_pages_of_one_file_are_maps_once_they_are_saved_as_advised(tmp_path: Path) -> None:
    for side, ids in MAPS.items():
        page = Image.fromarray(ids)
        page.save(tmp_path / f"{side}.tif", save_all=True, append_images=[page])
        (tmp_path / side / "maps").mkdir(parents=True)
    with pytest.raises(DataError, match=r"a TIFF image(?s:.)*Of several pages that are maps") as caught:
        evaluate(tmp_path / "gt.tif", tmp_path / "pred.tif")
    advised = str(caught.value).partition("pass the folder: ")[2].partition("tif').")[0] + "tif')"
    for side in MAPS:
        code = advised.replace("'maps/", f"'{tmp_path / side}/maps/").replace("Image.open(path)", "image")
        with Image.open(tmp_path / f"{side}.tif") as image:
            exec(code, {"image": image, "ImageSequence": ImageSequence})
    expected(evaluate(tmp_path / "gt/maps", tmp_path / "pred/maps"))


def test_bitmasks_of_bdd100k_without_scores(tmp_path: Path) -> None:
    gt, pred = save(tmp_path, lambda _: "a.png", bitmask)
    expected(evaluate(gt, pred))
    # Where a file next to them may have scores, these are asked for.
    frame = {"name": "a.png", "labels": [{"index": 1, "score": 0.5}]}
    (tmp_path / "pred.json").write_text(json.dumps([frame]), encoding="utf-8")
    with pytest.raises(DataError, match="score"):
        evaluate(gt, pred)


def test_masks_of_images_called_img_lie_next_to_those(tmp_path: Path) -> None:
    names = {"gt": "a1_masks.png", "pred": "a1_img_cp_masks.png"}
    gt, pred = save(tmp_path, names.__getitem__, lambda ids: ids)
    for name in ("a1_img.png", "a2_img.png"):
        Image.fromarray(np.random.default_rng(0).integers(0, 255, GT.shape, dtype=np.uint8)).save(gt / name)
    Image.fromarray(GT * 0).save(gt / "a2_masks.png")
    Image.fromarray(GT * 0).save(pred / "a2_img_cp_masks.png")
    expected(evaluate(gt, pred))


def runs(ids: Array, number: int) -> str:
    flat = np.flatnonzero((ids == number).T)
    starts = np.flatnonzero(np.diff(flat, prepend=-9) != 1)
    lengths = np.diff(np.append(starts, len(flat)))
    return " ".join(f"{flat[at] + 1} {n}" for at, n in zip(starts.tolist(), lengths.tolist(), strict=True))


def test_tables_with_several_objects_of_an_image_need_no_scores(tmp_path: Path) -> None:
    for role, ids in MAPS.items():
        rows = [f"a.png,{runs(ids, number)},12,8" for number in (1, 2)]
        (tmp_path / f"{role}.csv").write_text("\n".join(["ImageId,EncodedPixels,Width,Height", *rows, ""]))
    expected(evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv"))
    # One mask of each image and class may be of a map of classes.
    (tmp_path / "pred.csv").write_text(f"ImageId,EncodedPixels,Width,Height\na.png,{runs(PRED, 1)},12,8\n")
    with pytest.raises(DataError, match="score-missing"):
        evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")


def test_booleans_are_objects_where_each_is_in_one_piece(tmp_path: Path) -> None:
    for role, ids in MAPS.items():
        np.save(tmp_path / f"{role}.npy", np.stack([ids == 1, ids == 2]))
    expected(evaluate(tmp_path / "gt.npy", tmp_path / "pred.npy"))
    # Maps of two images: whether they are that cannot be known.
    np.save(tmp_path / "maps.npy", np.stack([GT > 0, PRED > 0]))
    with pytest.raises(DataError, match=r"2 planes of booleans in several pieces each"):
        load(tmp_path / "maps.npy")


@pytest.mark.parametrize("mode", [0, 1])
def test_data_sets_of_detectron2_have_ids_of_images_and_classes(tmp_path: Path, mode: int) -> None:
    boxes = ([10, 10, 30, 40], [50, 10, 80, 40])
    annotations = [
        {
            "bbox": box if mode == 0 else [*box[:2], box[2] - box[0], box[3] - box[1]],
            "bbox_mode": mode,
            "category_id": label,
            "segmentation": [[box[0], box[1], box[2], box[1], box[2], box[3], box[0], box[3]]],
        }
        for label, box in enumerate(boxes)
    ]
    images = [
        {"file_name": f"data/{name}.jpg", "image_id": at, "height": 60, "width": 90, "annotations": annotations}
        for at, name in enumerate("xy")
    ]
    results = [
        {
            "image_id": at,
            "category_id": label,
            "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
            "segmentation": annotations[label]["segmentation"],
            "score": 0.9,
        }
        for at in range(2)
        for label, box in enumerate(boxes)
    ]
    (tmp_path / "gt.json").write_text(json.dumps(images), encoding="utf-8")
    (tmp_path / "pred.json").write_text(json.dumps(results), encoding="utf-8")
    for iou_type in ("bbox", "segm"):
        result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type=iou_type)
        assert (result["AP"], len(result.per_class)) == (1.0, 2)


def test_an_object_without_the_class_that_others_have_is_no_other_class(tmp_path: Path) -> None:
    corners = [{"x": x, "y": y} for x, y in ((5, 5), (25, 5), (15, 25))]
    regions = [
        {"id": name, "type": "POLYGON", "tags": tags, "points": corners} for name, tags in (("r", ["car"]), ("s", []))
    ]
    asset = {"id": "a", "name": "a.png", "size": {"width": 80, "height": 64}}
    path = tmp_path / "a-asset.json"
    path.write_text(json.dumps({"asset": asset, "regions": regions, "version": "2.2.0"}), encoding="utf-8")
    with pytest.raises(DataError, match="names no class, and others do"):
        load(path, options=ReadOptions(iou_type="segm"))


def test_a_box_without_a_tag_is_refused_with_what_to_do(tmp_path: Path) -> None:
    sides = {"left": 5, "top": 5, "width": 20, "height": 10}
    regions = [{"id": str(at), "tags": tags, "boundingBox": sides} for at, tags in enumerate((["car"], []))]
    asset = {"id": "a", "name": "a.png", "size": {"width": 80, "height": 64}}
    path = tmp_path / "a-asset.json"
    path.write_text(json.dumps({"asset": asset, "regions": regions, "version": "2.2.0"}), encoding="utf-8")
    with pytest.raises(DataError, match=r"\[1\].*\[\] \(a list\).*Give each object one class.*without one, remove it"):
        load(path)
    path.write_text(json.dumps({"asset": asset, "regions": regions[:1], "version": "2.2.0"}), encoding="utf-8")
    result = evaluate(path, path, protocol="coco", pred_options=ReadOptions(assume_score=1.0))  # as advised
    assert ([row.name for row in result.per_class], result["TP[iou=0.5]"]) == (["car"], 1)
