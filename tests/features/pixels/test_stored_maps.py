"""Label maps as tools and scripts store them: archives of NumPy, LabelMe's folders, Roboflow's masks."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from pycocotools import mask

from jaccard_eval import DataError, pixels

GT = {"a": np.array([[0, 1], [1, 2]], dtype=np.uint8), "b": np.array([[0, 0, 2]], dtype=np.uint8)}
PRED = {"a": np.array([[0, 1], [2, 2]], dtype=np.uint8), "b": np.array([[0, 1, 2]], dtype=np.uint8)}


def mean_iou() -> float:
    """The oracle: intersection over union of each class over the pixels of all images."""
    gt, pred = (np.concatenate([maps[name].ravel() for name in "ab"]) for maps in (GT, PRED))
    return float(np.mean([((gt == k) & (pred == k)).sum() / ((gt == k) | (pred == k)).sum() for k in range(3)]))


def side(folder: Path, how: str, maps: dict[str, npt.NDArray[np.uint8]]) -> Path:
    """Save maps in one of the forms that scripts have."""
    if how == "one archive":
        np.savez_compressed(folder.with_suffix(".npz"), **maps)  # type: ignore[arg-type]
        return folder.with_suffix(".npz")
    folder.mkdir()
    for name, values in maps.items():
        if how == "npy":
            np.save(folder / f"{name}.npy", values)
        elif how == "unnamed":
            np.savez(folder / f"{name}.npz", values)
        else:
            np.savez_compressed(folder / f"{name}.npz", mask=values)
    return folder


@pytest.mark.parametrize("gt", ["npy", "unnamed", "one archive"])
@pytest.mark.parametrize("pred", ["npy", "named", "one archive"])
def test_archives_are_maps_on_either_side(tmp_path: Path, gt: str, pred: str) -> None:
    result = pixels(side(tmp_path / "gt", gt, GT), side(tmp_path / "pred", pred, PRED))
    assert (result.gt.images, result.pred.images) == (2, 2)
    assert result["mIoU"] == pytest.approx(mean_iou(), abs=1e-15)


def test_next_to_maps_archives_are_what_networks_predict(tmp_path: Path) -> None:
    gt, pred = side(tmp_path / "gt", "npy", GT), side(tmp_path / "pred", "npy", PRED)
    np.savez(pred / "a.npz", probabilities=np.zeros((3, 2, 2)))
    assert pixels(gt, pred)["mIoU"] == pytest.approx(mean_iou(), abs=1e-15)


def test_an_array_of_an_archive_that_is_no_map_has_its_place(tmp_path: Path) -> None:
    gt = side(tmp_path / "gt", "one archive", GT)
    np.savez(tmp_path / "pred.npz", a=PRED["a"], b=np.full((1, 3), 0.5))
    with pytest.raises(DataError, match=r"pred\.npz\['b'\]: holds float64 values"):
        pixels(gt, tmp_path / "pred.npz")


def test_an_archive_that_would_be_unpickled_is_refused(tmp_path: Path) -> None:
    gt = side(tmp_path / "gt", "one archive", GT)
    np.savez(tmp_path / "pred.npz", a=PRED["a"], b=np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"pred\.npz.*allow_pickle=False"):
        pixels(gt, tmp_path / "pred.npz")


def test_a_folder_of_labelme_is_a_map_among_drawings_of_it(tmp_path: Path) -> None:
    for name, values in GT.items():
        folder = tmp_path / "gt" / f"{name}_json"
        folder.mkdir(parents=True)
        Image.fromarray(values).save(folder / "label.png")
        for picture in ("img.png", "label_viz.png"):
            Image.new("RGB", values.shape[::-1], (200, 10, 10)).save(folder / picture)
        (folder / "label_names.txt").write_text("_background_\ncar\nbus\n")
    result = pixels(tmp_path / "gt", side(tmp_path / "pred", "npy", PRED))
    assert result["mIoU"] == pytest.approx(mean_iou(), abs=1e-15)
    assert result.gt.ignored == {"other-files": 6}


def test_masks_of_roboflow_are_those_of_the_images_that_it_renamed(tmp_path: Path) -> None:
    (tmp_path / "gt").mkdir()
    for name, values in GT.items():
        Image.fromarray(values).save(tmp_path / "gt" / f"{name}_jpg.rf.0123456789abcdef0123456789abcdef_mask.png")
    result = pixels(tmp_path / "gt", side(tmp_path / "pred", "npy", PRED))
    assert (result.image_strategy, result["mIoU"]) == ("affix", pytest.approx(mean_iou(), abs=1e-15))


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools
def test_regions_of_detectron2_are_no_maps_and_the_advice_draws_them(tmp_path: Path) -> None:
    gt, listed, drawn = side(tmp_path / "gt", "npy", GT), [], {}
    for name, true in PRED.items():
        values = drawn[name] = np.zeros_like(true)
        for number in range(3):
            rle = mask.encode(np.asfortranarray(true == number, dtype=np.uint8))
            entry = {"category_id": number, "segmentation": {**rle, "counts": rle["counts"].decode()}}
            values[mask.decode(entry["segmentation"]) == 1] = entry["category_id"]
            listed.append({"file_name": f"{name}.jpg", **entry})
    (tmp_path / "sem_seg_predictions.json").write_text(json.dumps(listed))
    with pytest.raises(DataError, match=r"is JSON, which is not a label map.* = entry\['category_id'\]\.") as caught:
        pixels(gt, tmp_path / "sem_seg_predictions.json")
    assert "map-unpaired" not in str(caught.value)
    assert pixels(gt, side(tmp_path / "pred", "npy", drawn))["mIoU"] == pytest.approx(mean_iou(), abs=1e-15)


def test_maps_of_ade20k_are_named_and_the_advice_holds_their_classes(tmp_path: Path) -> None:
    gt, colors = side(tmp_path / "gt", "npy", GT), {}
    for name, values in PRED.items():
        numbers = values.astype(np.uint16) * 301
        colors[name] = np.stack([numbers // 256 * 10, numbers % 256, np.ones_like(numbers)], axis=-1).astype(np.uint8)
    (tmp_path / "ade").mkdir()
    for name, shown in colors.items():
        Image.fromarray(shown).save(tmp_path / "ade" / f"{name}_seg.png")
    with pytest.raises(DataError, match=r"As ADE20K's.*red // 10 \* 256 \+ green"):
        pixels(gt, tmp_path / "ade")
    saved = {name: shown[..., 0] // 10 * np.uint16(256) + shown[..., 1] for name, shown in colors.items()}
    assert saved["a"].tolist() == [[0, 301], [602, 602]]
