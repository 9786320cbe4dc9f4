"""Images of masks in the layouts of several benchmarks: numbers are those of COCO JSON with pycocotools' RLE."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from pycocotools import mask as coco_mask
from shaped import measured, write_masks

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

Pixels = npt.NDArray[np.bool_]
HEIGHT, WIDTH = 40, 60


def blob(left: int, top: int, right: int, bottom: int) -> Pixels:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    pixels[top:bottom, left:right] = True
    pixels[top, left] = False
    return pixels


# By frame: class 0 is a car and 1 a pedestrian; objects share no pixel.
GT: dict[str, list[tuple[int, Pixels]]] = {
    "000000": [(0, blob(4, 4, 24, 20)), (1, blob(30, 0, 60, 15))],
    "000001": [(1, blob(10, 10, 30, 36)), (0, blob(35, 2, 50, 18))],
}
PRED: dict[str, list[tuple[int, Pixels]]] = {
    "000000": [(0, blob(5, 4, 24, 20)), (1, blob(33, 0, 60, 17))],
    "000001": [(1, blob(12, 12, 30, 36)), (0, blob(36, 4, 50, 18))],
}
SIDES = {"gt": GT, "pred": PRED}


def rle(pixels: Pixels) -> dict[str, Any]:
    found = coco_mask.encode(np.asfortranarray(pixels.astype(np.uint8)))
    return {"size": list(found["size"]), "counts": found["counts"].decode()}


def reference(folder: Path, *, classes: bool = True) -> dict[str, Any]:
    folder.mkdir()
    scored = {name: [(label * classes, pixels, 1.0) for label, pixels in objects] for name, objects in PRED.items()}
    truth = {name: [(label * classes, pixels) for label, pixels in objects] for name, objects in GT.items()}
    return measured(evaluate(*write_masks(folder, (truth, scored), (WIDTH, HEIGHT), ".png", rle), iou_type="segm"))


def save(path: Path, values: npt.NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, values)
    else:
        Image.fromarray(values).save(path)


def drawn(objects: list[tuple[int, Pixels]], ids: Callable[[int, int], int]) -> npt.NDArray[np.uint16]:
    """Draw a map with an id for each object, by its class and number from 1 on."""
    values = np.zeros((HEIGHT, WIDTH), dtype=np.uint16)
    for number, (label, pixels) in enumerate(objects, start=1):
        values[pixels] = ids(label, number)
    return values


def plain(suffix: str, name: str = "{}") -> Callable[[Path, str], Path]:
    def write(folder: Path, role: str) -> Path:
        for frame, objects in SIDES[role].items():
            stem = name.format(frame)
            save(folder / role / f"{stem}{suffix}", drawn(objects, lambda _, number: number))
            if stem != frame:
                save(folder / role / f"{frame}{suffix}", np.zeros((HEIGHT, WIDTH), dtype=np.uint8))  # the image itself
        return folder / role

    return write


def bowl(folder: Path, role: str) -> Path:
    for frame, objects in SIDES[role].items():
        save(folder / role / frame / "images" / f"{frame}.png", np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
        for number, (_, pixels) in enumerate(objects):
            save(folder / role / frame / "masks" / f"{number:x}a{frame}.png", pixels.astype(np.uint8) * 255)
    return folder / role


def bowl_in_colors(folder: Path, role: str) -> Path:
    for frame, objects in SIDES[role].items():
        for number, (_, pixels) in enumerate(objects):
            greys = np.repeat(pixels.astype(np.uint8)[..., None] * 255, 3, axis=2)
            save(folder / role / frame / "masks" / f"{number}.png", greys)
    return folder / role


def next_to_images(folder: Path, role: str) -> Path:
    """Save maps next to photos that they are named after."""
    for frame, objects in SIDES[role].items():
        save(folder / role / f"{frame}_mask.png", drawn(objects, lambda _, number: number))
        save(folder / role / f"{frame}.jpg", np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
    return folder / role


def in_a_folder(folder: Path, role: str) -> Path:
    for frame, objects in SIDES[role].items():
        save(folder / role / "masks" / f"{frame}.png", drawn(objects, lambda _, number: number))
        save(folder / role / "images" / f"{frame}.png", np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
    return folder / role


def mots_images(folder: Path, role: str) -> Path:
    for frame, objects in SIDES[role].items():
        save(folder / role / "0002" / f"{frame}.png", drawn(objects, lambda label, number: 1000 * (label + 1) + number))
    return folder / role


def mots_text(folder: Path, role: str) -> Path:
    lines = [
        f"{int(frame)} {1000 * (label + 1) + at} {label + 1} {HEIGHT} {WIDTH} {rle(pixels)['counts']}\n"
        for frame, objects in SIDES[role].items()
        for at, (label, pixels) in enumerate(objects)
    ]
    (folder / f"{role}.txt").write_text("".join(lines))
    return folder / f"{role}.txt"


def bdd100k(folder: Path, role: str) -> Path:
    for frame, objects in SIDES[role].items():
        values = np.zeros((HEIGHT, WIDTH, 4), dtype=np.uint8)
        for number, (label, pixels) in enumerate(objects, start=1):
            values[pixels] = (3 if label == 0 else 1, 8, 1, number)  # truncated, which counts
        save(folder / role / f"{frame}.png", values)
    return folder / role


# Layouts, and whether they hold classes.
LAYOUTS: dict[str, tuple[Callable[[Path, str], Path], bool]] = {
    "TIFF": (plain(".tif"), False),
    "NumPy": (plain(".npy"), False),
    "Cellpose": (plain(".png", "{}_cp_masks"), False),
    "Data Science Bowl": (bowl, False),
    "Data Science Bowl, RGB": (bowl_in_colors, False),
    "next to images": (next_to_images, False),
    "a folder of maps, and one of images": (in_a_folder, False),
    "MOTS images": (mots_images, True),
    "MOTS text": (mots_text, True),
    "BDD100K": (bdd100k, True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_mask_images_give_the_numbers_of_coco(name: str, tmp_path: Path) -> None:
    write, has_classes = LAYOUTS[name]
    gt, pred = write(tmp_path, "gt"), write(tmp_path, "pred")
    assert detect_format(pred) == ("mots" if has_classes and name != "BDD100K" else "instances")
    found = evaluate(gt, pred, pred_options=ReadOptions(assume_score=1.0))
    # Without scores the summary has four numbers more, at the first IoU. By hand: each of the four objects is found.
    headline = {name: found.metrics[name].value for name in ("precision", "recall", "F1")}
    assert headline == {"precision": 1.0, "recall": 1.0, "F1": 1.0}
    overlaps = [
        (gt & pred).sum() / (gt | pred).sum()
        for frame in GT
        for (_, gt), (_, pred) in zip(GT[frame], PRED[frame], strict=True)
    ]
    assert found.metrics["mean_IoU"].value == pytest.approx(np.mean(overlaps), abs=1e-12)
    common = {name: value for name, value in measured(found).items() if name not in {*headline, "mean_IoU"}}
    assert common == reference(tmp_path / "coco", classes=has_classes)


def test_a_single_map_on_either_side_is_a_pair(tmp_path: Path) -> None:
    paths = [plain(".png")(tmp_path, role) / "000000.png" for role in ("gt", "pred")]
    found = evaluate(*paths, pred_options=ReadOptions(assume_score=1.0)).metrics["AP50"].value
    other = paths[1].rename(tmp_path / "other.png")
    assert evaluate(paths[0], other, pred_options=ReadOptions(assume_score=1.0)).metrics["AP50"].value == found == 1.0


def test_regions_that_are_not_judged_absorb_predictions(tmp_path: Path) -> None:
    gt, pred = mots_text(tmp_path, "gt"), mots_text(tmp_path, "pred")
    extra = rle(blob(36, 22, 56, 38))["counts"]
    with pred.open("a") as file:
        file.write(f"0 2009 2 {HEIGHT} {WIDTH} {extra}\n")
    options = ReadOptions(assume_score=1.0)
    without = evaluate(gt, pred, pred_options=options).metrics["AP50"].value
    with gt.open("a") as file:
        file.write(f"0 10000 10 {HEIGHT} {WIDTH} {rle(blob(30, 20, 60, 40))['counts']}\n")
    assert evaluate(gt, pred, pred_options=options).metrics["AP50"].value == 1.0 > without


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 2001 2 40 60", "expected frame, id, class, height, width and RLE"),
        ("1 2001 2 40 50 {}", "its RLE has 2,400 pixels, but 40 x 50 are 2,000"),
        ("1 3001 3 40 60 {}", "is of class 3; expected 1 (car), 2 (pedestrian) or 10 (not judged)"),
    ],
)
def test_lines_of_mots_that_cannot_be_are_named(line: str, words: str, tmp_path: Path) -> None:
    path = mots_text(tmp_path, "gt")
    with path.open("a") as file:
        file.write("2" + line.format(rle(blob(1, 1, 9, 9))["counts"])[1:] + "\n")
    with pytest.raises(DataError) as caught:
        load(path, options=ReadOptions(iou_type="segm"))
    assert f"{path}:5" in str(caught.value)
    assert words in str(caught.value)


def test_what_cellpose_pickles_is_not_opened_and_a_way_out_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a_seg.npy", np.array({"masks": np.zeros((4, 4), dtype=np.uint16)}))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="map-type") as caught:
        load(tmp_path, options=ReadOptions(iou_type="segm"))
    assert "allow_pickle=True).item()['masks']" in str(caught.value)


def test_tracks_next_to_maps_of_cells_do_not_hide_them(tmp_path: Path) -> None:
    image = np.zeros((30, 40), dtype=np.uint16)
    image[5:15, 5:20] = 1
    Image.fromarray(image).save(tmp_path / "mask000.tif")
    (tmp_path / "res_track.txt").write_text("1 0 3 0\n")
    assert load(tmp_path).format == "instances"


def test_photos_in_folders_are_not_taken_for_maps(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for folder in ("cat", "dog"):
        for name in ("a.png", "b.png"):
            save(tmp_path / folder / name, rng.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8))
    with pytest.raises(DataError, match="format-unknown"):
        detect_format(tmp_path)
    save(tmp_path / "one.tif", rng.integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8))
    with pytest.raises(DataError, match="wrong-content"):
        load(tmp_path / "one.tif")
