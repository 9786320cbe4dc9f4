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


COLORS = ((0, 0, 0), (255, 0, 0), (0, 128, 0))  # of the number of an object


def in_colors(folder: Path, role: str) -> Path:
    """Save maps with a colour for each object, as CVPPP has them, next to photos."""
    rng = np.random.default_rng(3)
    for frame, objects in SIDES[role].items():
        values = np.array(COLORS, dtype=np.uint8)[drawn(objects, lambda _, number: number)]
        save(folder / role / f"{frame}_label.png", values)
        save(folder / role / f"{frame}_rgb.png", rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))
    return folder / role


def stacked(*channels: Callable[[int, int], int], last: bool = True) -> npt.NDArray[np.int64]:
    """Return a function of a role that draws the maps of all frames, (n, height, width, channels)."""

    def draw(role: str) -> npt.NDArray[np.int64]:
        maps = [[drawn(objects, ids) for ids in channels] for objects in SIDES[role].values()]
        return np.moveaxis(np.array(maps, dtype=np.int64), 1, -1 if last else 1)

    return draw  # type: ignore[return-value]


def array(
    name: str, draw: Callable[[str], npt.NDArray[Any]], **others: npt.NDArray[Any]
) -> Callable[[Path, str], Path]:
    def write(folder: Path, role: str) -> Path:
        (folder / role).mkdir()
        if name.endswith(".npz"):
            np.savez(folder / role / name, y=draw(role), **others)
        else:
            np.save(folder / role / name, draw(role))
            for other, values in others.items():
                np.save(folder / role / f"{other}.npy", values)
            (folder / role / "counts.csv").write_text("neutrophil,epithelial\n1,1\n1,1\n")
        return folder / role

    return write


def pannuke(role: str) -> npt.NDArray[np.float64]:
    """Return the six channels of PanNuke, of which cars and pedestrians are the first and the fifth type."""
    types = [
        (lambda label, number, at=at: number * ((0, 4)[label] == at))  # type: ignore[misc]
        for at in range(5)
    ]
    maps = stacked(*types)(role).astype(np.float64)  # type: ignore[operator]
    return np.concatenate([maps, (maps.sum(axis=-1, keepdims=True) == 0)], axis=-1)


def number_of(_: int, number: int) -> int:
    return number


def class_of(label: int, _: int) -> int:
    return label + 1


PHOTOS = np.zeros((2, HEIGHT, WIDTH, 3), dtype=np.uint8)

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
    "colours": (in_colors, False),
    "DeepCell": (array("masks.npy", stacked(number_of)), False),
    "DeepCell, channels first": (array("masks.npy", stacked(number_of, last=False)), False),
    "maps in one array": (array("masks.npy", lambda role: stacked(number_of)(role)[..., 0]), False),
    "an archive": (array("test.npz", stacked(number_of), X=PHOTOS), False),
    "CoNIC": (array("labels.npy", stacked(number_of, class_of), images=PHOTOS), True),
    "PanNuke": (array("masks.npy", pannuke, types=np.array(["Breast", "Colon"])), True),
}
FORMATS = {"MOTS images": "mots", "MOTS text": "mots", "an archive": "npz"}


def test_maps_in_colours_that_a_file_lists_the_segments_of_are_no_instances(tmp_path: Path) -> None:
    folder = in_colors(tmp_path, "gt")
    assert detect_format(folder) == "instances"
    (tmp_path / "gt.json").write_text('{"images": [], "annotations": []}')  # as COCO's panoptic folders have it
    with pytest.raises(DataError, match="pixels GT PRED"):
        detect_format(folder)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_mask_images_give_the_numbers_of_coco(name: str, tmp_path: Path) -> None:
    write, has_classes = LAYOUTS[name]
    gt, pred = write(tmp_path, "gt"), write(tmp_path, "pred")
    assert detect_format(pred) == FORMATS.get(name, "instances")
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


def test_compartments_of_cells_are_classes(tmp_path: Path) -> None:
    # By hand: of two cells one is found, and of their two nuclei, which are smaller, both.
    cells = np.zeros((2, 1, 40, 60), dtype=np.int32)
    cells[:, 0, 5:25, 5:25], cells[0, 0, 5:25, 35:55] = 7, 9
    nuclei = np.zeros_like(cells)
    nuclei[:, 0, 10:20, 10:20], nuclei[:, 0, 10:20, 40:50] = 1, 2
    for role, at in (("gt", 0), ("pred", 1)):
        cells[1, 0, 5:25, 35:55] = 9 * (at == 0)
        (tmp_path / role).mkdir()
        maps = np.stack([cells[1 if at else 0], nuclei[0]], axis=-1)
        np.savez(tmp_path / role / "val.npz", X=np.zeros((1, 40, 60, 2), dtype=np.float32), y=maps)
    gt, pred = tmp_path / "gt", tmp_path / "pred"
    found = evaluate(gt, pred, pred_options=ReadOptions(assume_score=1.0))
    assert [(row.name, row.gt) for row in found.per_class] == [("nuclear", 2), ("whole-cell", 2)]
    # Half of the cells, at 51 of 101 recalls.
    assert found.metrics["AP"].value == pytest.approx((1 + 51 / 101) / 2, abs=1e-12)
    assert "channels are whole-cell, nuclear" in str(found.gt)


def test_booleans_are_the_objects_of_one_image(tmp_path: Path) -> None:
    for role, objects in SIDES.items():
        for frame, found in objects.items():
            masks = np.array([pixels for _, pixels in found])
            # As torchvision has them, and as Matterport's Mask R-CNN.
            save(tmp_path / role / f"{frame}.npy", np.moveaxis(masks, 0, 2) if role == "pred" else masks)
    found = evaluate(tmp_path / "gt", tmp_path / "pred", pred_options=ReadOptions(assume_score=1.0))
    expected = {name: value for name, value in measured(found).items() if name not in HEADLINES}
    assert expected == reference(tmp_path / "coco", classes=False)


HEADLINES = ("precision", "recall", "F1", "mean_IoU")


@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        (np.zeros((2, 8, 9, 4), dtype=np.int32), "map-shape", "9 x 8 pixels (width x height) with 4 channels"),
        (np.zeros((0, 8, 9, 2), dtype=np.int32), "map-shape", "of shape (0, 8, 9, 2)"),
        (np.full((2, 8, 9), 0.5), "map-type", "holds fractions"),
        (np.arange(96).reshape(1, 8, 6, 2) // 2 * [0, 1] + [1, 1], "map-value", "object 1 has several classes"),
    ],
)
def test_arrays_that_are_no_maps_are_refused(values: npt.NDArray[Any], code: str, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "masks.npy", values)
    with pytest.raises(DataError, match=code) as caught:
        load(tmp_path / "masks.npy", options=ReadOptions(iou_type="segm"), format_name="instances")
    assert words in str(caught.value)
    assert "masks.npy" in str(caught.value)


def test_an_array_that_claims_more_than_its_file_has_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "masks.npy", np.zeros((2, 8, 9), dtype=np.int32))
    data = (tmp_path / "masks.npy").read_bytes()
    for shape in (b"(200000000, 8, 9)", b"(2, 8, 900000000)"):
        header = data[: data.index(b"(2, 8, 9)")] + shape + b", }"
        (tmp_path / "masks.npy").write_bytes(header.ljust(127) + b"\n" + data[128:])
        with pytest.raises(DataError, match="its header claims the shape"):
            load(tmp_path / "masks.npy", options=ReadOptions(iou_type="segm"))


@pytest.mark.parametrize("kind", ["photo", "bands", "pieces"])
def test_colours_that_are_not_objects_are_not_taken_for_them(kind: str, tmp_path: Path) -> None:
    values = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    if kind == "photo":
        values = np.random.default_rng(3).integers(0, 256, values.shape, dtype=np.uint8)
    elif kind == "bands":  # no black, which shows where there is no object
        values[:20], values[20:] = (255, 0, 0), (0, 255, 0)
    else:  # a colour of a class
        values[2:8, 2:8] = values[2:8, 20:28] = values[20:28, 2:8] = (255, 0, 0)
    save(tmp_path / "maps" / "a.png", values)
    with pytest.raises(DataError, match="format-unknown"):
        detect_format(tmp_path / "maps")


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
