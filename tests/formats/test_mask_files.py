"""Masks that files hold as pixels: the numbers are those of COCO JSON with the RLE that pycocotools makes of them."""

import base64
import io
import json
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from command_line import run_here, write_json
from PIL import Image
from pycocotools import mask as coco_mask
from shaped import measured, write_images, write_masks

from jaccard_eval import DataError, ReadOptions, UsageError, evaluate, load
from jaccard_eval.formats import detect_format

Pixels = npt.NDArray[np.bool_]
HEIGHT, WIDTH = 48, 64
NAMES = ("dog", "cat")
IMAGES = ("a", "b", "c")  # nothing is in the last one


def blob(left: int, top: int, right: int, bottom: int, *, hole: bool = False, corner: bool = False) -> Pixels:
    """Draw a rectangle, with a hole in it, or without its first corner."""
    pixels = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    pixels[top:bottom, left:right] = True
    if hole:
        pixels[top + 2 : bottom - 2, left + 3 : right - 3] = False
    if corner:
        pixels[top : (top + bottom) // 2, left : (left + right) // 2] = False
    return pixels


# Objects of an image never share a pixel, as one map has to hold them.
GT: dict[str, list[tuple[int, Pixels]]] = {
    "a": [
        (0, blob(4, 4, 24, 20, hole=True)),
        (1, blob(30, 0, 64, 15)),  # touches the border on two sides
        (0, blob(2, 25, 12, 40) | blob(15, 30, 22, 44)),  # two parts
    ],
    "b": [(1, blob(10, 10, 30, 40, corner=True)), (0, blob(0, 0, 5, 48))],
    "c": [],
}
PRED: dict[str, list[tuple[int, Pixels, float]]] = {
    "a": [
        (0, blob(5, 4, 24, 20, hole=True), 0.875),
        (1, blob(33, 0, 64, 17), 0.75),
        (0, blob(2, 25, 12, 40), 0.5),
    ],
    "b": [(1, blob(12, 12, 30, 40), 0.625), (0, blob(40, 5, 50, 20), 0.25)],
    "c": [(0, blob(20, 20, 30, 30), 0.125)],
}


def encoded(pixels: Pixels) -> dict[str, Any]:
    rle = coco_mask.encode(np.asfortranarray(pixels.astype(np.uint8)))
    return {"size": list(rle["size"]), "counts": rle["counts"].decode()}


def images(folder: Path) -> Path:
    return write_images(folder, [f"{name}.jpg" for name in IMAGES], (WIDTH, HEIGHT))


def coco(folder: Path) -> tuple[Path, Path]:
    """Write what the others are compared with."""
    return write_masks(folder, (GT, PRED), (WIDTH, HEIGHT), ".jpg", encoded)


def named(folder: Path) -> Path:
    """Write the predictions with the names of their images and classes."""
    gt, pred = (json.loads(path.read_text()) for path in coco(folder))
    return write_json(folder / "named.json", {**gt, "annotations": pred})


def bounds(pixels: Pixels) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom, the last pixels included."""
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


def png(values: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, format="PNG")
    return file.getvalue()


# LabelMe and CVAT


def labelme_mask(label: int, pixels: Pixels) -> dict[str, Any]:
    """Write a mask as LabelMe does: the crop, and its first and last pixel."""
    left, top, right, bottom = bounds(pixels)
    crop = pixels[top : bottom + 1, left : right + 1].astype(np.uint8)
    text = base64.b64encode(png(crop)).decode()
    return {
        "label": NAMES[label],
        "points": [[left, top], [right, bottom]],
        "group_id": None,
        "shape_type": "mask",
        "mask": text,
    }


def labelme(folder: Path) -> tuple[Path, Path]:
    (folder / "gt").mkdir()
    for name, objects in GT.items():
        document = {
            "version": "5.5.0",
            "imagePath": f"{name}.jpg",
            "imageData": None,
            "imageHeight": HEIGHT,
            "imageWidth": WIDTH,
            "shapes": [labelme_mask(*shape) for shape in objects],
        }
        write_json(folder / f"gt/{name}.json", document)
    return folder / "gt", named(folder)


def cvat_mask(label: int, pixels: Pixels, *, more: str = "") -> str:
    """Write a mask as CVAT does: lengths of runs along the rows of its bounds, background first."""
    left, top, right, bottom = bounds(pixels)
    flat = pixels[top : bottom + 1, left : right + 1].ravel().tolist()
    runs = [len(list(run)) for _, run in groupby(flat)]
    rle = ", ".join(map(str, [0, *runs] if flat[0] else runs))
    crop = f'left="{left}" top="{top}" width="{right - left + 1}" height="{bottom - top + 1}"'
    return f'<mask label="{NAMES[label]}" source="manual" occluded="0" rle="{rle}" {crop} z_order="0"{more}></mask>'


def cvat(folder: Path) -> tuple[Path, Path]:
    rows = "".join(
        f'<image id="{row}" name="{name}.jpg" width="{WIDTH}" height="{HEIGHT}">'
        f"{''.join(cvat_mask(*shape) for shape in GT[name])}</image>"
        for row, name in enumerate(IMAGES)
    )
    (folder / "gt.xml").write_text(f"<annotations><version>1.1</version>{rows}</annotations>")
    return folder / "gt.xml", named(folder)


# NumPy archives


def arrays(shapes: dict[str, Any]) -> dict[str, Any]:
    """Put the columns of a side into arrays, without boxes."""
    rows = [(name, *shape) for name, found in shapes.items() for shape in found]
    columns = {
        "masks": np.array([row[2] for row in rows]),
        "labels": np.array([row[1] for row in rows]),
        "image": np.array([row[0] for row in rows]),
        "images": np.array(IMAGES),
        "names": np.array(NAMES),
    }
    return columns | ({"scores": np.array([row[3] for row in rows])} if len(rows[0]) > 3 else {})


def npz(folder: Path) -> tuple[Path, Path]:
    np.savez_compressed(folder / "gt.npz", **arrays(GT))
    np.savez(folder / "pred.npz", **arrays(PRED))
    return folder / "gt.npz", folder / "pred.npz"


def npz_rle(folder: Path) -> tuple[Path, Path]:
    """Save what pycocotools gives for each mask: bytes on one side, texts on the other."""
    for name, shapes, kind in (("gt", GT, "S"), ("pred", PRED, "U")):
        columns = arrays(shapes)
        rles = [encoded(mask) for mask in columns["masks"]]
        counts = np.array([rle["counts"] for rle in rles]).astype(kind)
        np.savez(folder / f"{name}.npz", **columns | {"masks": counts}, mask_sizes=[rle["size"] for rle in rles])
    return folder / "gt.npz", folder / "pred.npz"


# supervision


@dataclass
class Detections:
    """As supervision has it."""

    xyxy: Any
    mask: Any = None
    confidence: Any = None
    class_id: Any = None
    tracker_id: Any = None
    data: dict[str, Any] = field(default_factory=dict)


def detections(shapes: list[Any], *, named: bool = False) -> Detections:
    if not shapes:
        return Detections(xyxy=np.zeros((0, 4)))  # as ``Detections.empty()``, but for its ids
    corners = [bounds(pixels) for _, pixels, *_ in shapes]
    return Detections(
        xyxy=np.array([[left, top, right + 1, bottom + 1] for left, top, right, bottom in corners], dtype=np.float32),
        mask=np.array([pixels for _, pixels, *_ in shapes]),
        confidence=np.array([score[0] for _, _, *score in shapes], dtype=np.float32) if len(shapes[0]) > 2 else None,
        class_id=np.array([label for label, *_ in shapes]),
        data={"class_name": np.array([NAMES[label] for label, *_ in shapes])} if named else {},
    )


@pytest.mark.parametrize("form", ["list", "dict", "dataset"])
def test_detections_of_supervision_are_compared_as_they_are(tmp_path: Path, form: str) -> None:
    expected = measured(evaluate(*coco(tmp_path / "coco"), iou_type="segm"))
    if form == "list":
        gt, pred = ([detections(side[name]) for name in IMAGES] for side in (GT, PRED))
    else:
        gt, pred = ({f"{name}.jpg": detections(side[name], named=True) for name in IMAGES} for side in (GT, PRED))
    if form == "dataset":
        gt = SimpleNamespace(annotations={name: detections(GT[name[0]]) for name in gt}, classes=list(NAMES))
    found = evaluate(gt, pred, iou_type="segm")
    assert measured(found) == expected
    # Boxes are compared unasked.
    assert evaluate(gt, pred).protocol.iou_type == "bbox"


def test_oriented_boxes_of_supervision_are_compared(tmp_path: Path) -> None:
    corners = np.array([[[10, 0], [20, 10], [10, 20], [0, 10]]], dtype=np.float64)
    sides = [
        Detections(np.array([[0, 0, 20, 20]]), class_id=np.array([0]), confidence=[0.5], data={"xyxyxyxy": corners})
        for _ in range(2)
    ]
    assert evaluate(*sides, iou_type="obb")["AP75"] > 0.999


def test_detections_without_classes_or_masks_are_refused(tmp_path: Path) -> None:
    good = detections(GT["a"])
    with pytest.raises(UsageError, match=r"\[1\] has no class_id"):
        evaluate([good, replace(good, class_id=None)], [good])
    with pytest.raises(UsageError, match=r"\[image 0\] has no masks|\[0\] has no masks"):
        evaluate([replace(good, mask=None)], [good], iou_type="segm")
    with pytest.raises(UsageError, match="but the data set has 1 classes"):
        evaluate(SimpleNamespace(annotations={"a.jpg": good}, classes=["dog"]), [good])


# Open Images


def code(pixels: Pixels) -> str:
    """Encode a mask as the challenge does."""
    return base64.b64encode(zlib.compress(encoded(pixels)["counts"].encode())).decode()


def fractions(pixels: Pixels) -> list[float]:
    left, top, right, bottom = bounds(pixels)
    height, width = pixels.shape
    return [left / width, (right + 1) / width, top / height, (bottom + 1) / height]


def rows_of(shapes: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, shape) for name, found in shapes.items() for shape in found]


def table(path: Path, header: str, rows: list[list[Any]]) -> Path:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [header.split(","), *rows]))
    return path


PREDICTED = "ImageID,ImageWidth,ImageHeight,LabelName,Score,Mask"


def openimages_pred(folder: Path) -> Path:
    rows = [[name, WIDTH, HEIGHT, NAMES[label], score, code(mask)] for name, (label, mask, score) in rows_of(PRED)]
    return table(folder / "pred.csv", PREDICTED, rows)


def openimages_png(folder: Path, factor: int = 1) -> tuple[Path, Path]:
    """Write the table of the downloads, and its files where archives of them are unpacked."""
    rows: list[list[Any]] = []
    for at, (name, (label, pixels)) in enumerate(rows_of(GT)):
        file = folder / f"masks/{'0a'[at % 2]}/{name}_{at}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        large = np.kron(pixels, np.ones((factor, factor), dtype=np.bool_))
        # One bit a pixel, as there, and in places 8 bits.
        Image.fromarray(large if at % 3 else large.astype(np.uint8) * 255).save(file)
        rows.append([file.name, name, NAMES[label], at, *fractions(pixels), 0.9, "0.5 0.5 1;0.1 0.2 0"])
    header = "MaskPath,ImageID,LabelName,BoxID,BoxXMin,BoxXMax,BoxYMin,BoxYMax,PredictedIoU,Clicks"
    return table(folder / "train-annotations-object-segmentation.csv", header, rows), openimages_pred(folder)


def openimages_challenge(folder: Path) -> tuple[Path, Path]:
    """Write the tables of the Object Detection API, and a submission."""
    header = "ImageID,LabelName,ImageWidth,ImageHeight,XMin,YMin,XMax,YMax,IsGroupOf,Mask"
    gt: list[list[Any]] = []
    for name, (label, pixels) in rows_of(GT):
        left, right, top, bottom = fractions(pixels)
        gt.append([name, NAMES[label], WIDTH, HEIGHT, left, top, right, bottom, 0, code(pixels)])
    strings = [
        [name, WIDTH, HEIGHT, " ".join(f"{NAMES[label]} {score} {code(pixels)}" for label, pixels, score in PRED[name])]
        for name in IMAGES
    ]
    submission = table(folder / "submission.csv", "ImageID,ImageWidth,ImageHeight,PredictionString", strings)
    return table(folder / "gt.csv", header, gt), submission


def test_masks_of_open_images_are_compared_at_the_size_of_the_ground_truth(tmp_path: Path) -> None:
    factor = 3
    gt, pred = openimages_png(tmp_path, factor)
    found = evaluate(gt, pred, iou_type="segm")
    large = np.ones((factor, factor), dtype=np.bool_)

    def side(shapes: dict[str, Any], role: str) -> list[dict[str, Any]]:
        records = []
        for name in IMAGES:
            own = shapes[name]
            masks = np.array([np.kron(shape[1], large) for shape in own]).reshape(-1, HEIGHT * factor, WIDTH * factor)
            record = {"image_id": name, "masks": masks, "labels": [NAMES[shape[0]] for shape in own]}
            records.append(record | ({"scores": [shape[2] for shape in own]} if role == "pred" else {}))
        return records

    assert measured(found) == measured(evaluate(side(GT, "gt"), side(PRED, "pred"), iou_type="segm"))
    (note,) = [finding for finding in found.findings if finding.code == "mask-scaled"]
    assert "5 of 6 masks scaled to their images" in str(note)
    assert "first from 48 x 64 to 144 x 192 (height x width)" in str(note)


def test_a_mask_of_open_images_with_sides_exchanged_is_refused(tmp_path: Path) -> None:
    gt, pred = openimages_png(tmp_path)
    turned = openimages_pred(tmp_path).read_text().replace(f",{WIDTH},{HEIGHT},", f",{HEIGHT},{WIDTH},")
    pred.write_text(turned)
    with pytest.raises(DataError, match="height and width are swapped"):
        evaluate(gt, pred, iou_type="segm")


def test_boxes_of_masks_of_open_images_need_no_files(tmp_path: Path) -> None:
    gt, _ = openimages_png(tmp_path)
    for file in tmp_path.rglob("*.png"):
        file.unlink()
    found = load(gt).boxes.xywh[:, 0] * WIDTH
    assert found.tolist() == pytest.approx([bounds(shape[1])[0] for _, shape in rows_of(GT)])


def test_the_protocol_of_open_images_compares_masks(tmp_path: Path) -> None:
    gt, pred = openimages_challenge(tmp_path)
    (tmp_path / "hierarchy.json").write_text(
        json.dumps({"LabelName": "all", "Subcategory": [{"LabelName": "cat"}, {"LabelName": "dog"}]})
    )
    (tmp_path / "labels.csv").write_text("ImageID,LabelName,Confidence\na,dog,1\na,cat,1\nb,cat,1\nb,dog,1\n")
    found = evaluate(gt, pred, protocol="openimages-challenge", iou_type="segm")
    # Of three dogs two are found before the prediction that misses on b; on c, nobody verified a label. Both cats are.
    ring, half = (coco_iou(PRED["a"][at][1], GT["a"][at][1]) for at in (0, 2))
    assert ring > 0.5
    assert half > 0.5
    assert found["AP50[class=cat]"] == 1
    assert found["AP50[class=dog]"] == pytest.approx(2 / 3)


def coco_iou(first: Pixels, second: Pixels) -> float:
    return float((first & second).sum() / (first | second).sum())


def test_every_problem_of_masks_of_open_images_is_reported_in_one_pass(tmp_path: Path) -> None:
    good = code(blob(4, 4, 24, 20))
    short = base64.b64encode(zlib.compress(b"04")).decode()
    cut = base64.b64encode(base64.b64decode(good)[:-4]).decode()
    rows = [
        ["a", WIDTH, HEIGHT, "dog", 0.5, "not base64"],
        ["a", WIDTH, HEIGHT, "dog", 0.5, base64.b64encode(b"plain").decode()],
        ["a", WIDTH, HEIGHT, "dog", 0.5, cut],
        ["a", WIDTH, HEIGHT, "dog", 0.5, good],
    ]
    with pytest.raises(DataError) as caught:
        load(table(tmp_path / "pred.csv", PREDICTED, rows), role="pred", options=ReadOptions(iou_type="segm"))
    for problem in (
        "pred.csv:2: Mask: is not valid base64",
        "cannot be unpacked with zlib",
        "pred.csv:4: Mask: is cut off",
    ):
        assert problem in str(caught.value), str(caught.value)
    rows = [["a", WIDTH, HEIGHT, "dog", 0.5, short]]
    with pytest.raises(DataError, match="counts of RLE sum to 4, but 48 x 64 are 3,072 pixels"):
        load(table(tmp_path / "pred.csv", PREDICTED, rows), role="pred", options=ReadOptions(iou_type="segm"))
    rows = [
        ["a", 0, HEIGHT, "dog", 0.5, good],
        ["a", WIDTH, "wide", "dog", 0.5, good],
        ["", WIDTH, HEIGHT, "", "half", good],
        ["a", WIDTH],
    ]
    with pytest.raises(DataError) as caught:
        load(table(tmp_path / "pred.csv", PREDICTED, rows), role="pred", options=ReadOptions(iou_type="segm"))
    for problem in (
        "pred.csv:2: ImageWidth: is 0 x 48",
        "pred.csv:3: imageheight: 'wide' is not a plain finite number",
        "pred.csv:4: ImageID: the cell is empty",
        "LabelName: the cell is empty",
        "score: 'half' is not a plain finite number",
        "pred.csv:5: expected 6 fields, got 2",
    ):
        assert problem in str(caught.value) or "further" in str(caught.value), str(caught.value)
    gt, _ = openimages_png(tmp_path)
    files = sorted(tmp_path.rglob("*.png"))
    files[0].unlink()
    Image.new("RGB", (WIDTH, HEIGHT), "red").save(files[1])
    files[2].write_bytes(files[2].read_bytes()[:40])
    with pytest.raises(DataError) as caught:
        load(gt, options=ReadOptions(iou_type="segm"))
    for problem in ("there is no file", "holds colours (RGB), not the pixels of an object", "cannot be decoded"):
        assert problem in str(caught.value), str(caught.value)
    gt.write_text(gt.read_text().replace(files[1].name, "../../etc/passwd"))
    with pytest.raises(DataError, match=r"there is no file '\.\./"):
        load(gt, options=ReadOptions(iou_type="segm"))


# PNG instance masks


def test_masks_of_open_images_that_cannot_be_used_are_skipped_at_whatever_stage(tmp_path: Path) -> None:
    good, other = blob(4, 4, 24, 20), blob(2, 6, 10, 12)
    short = base64.b64encode(zlib.compress(b"04")).decode()  # unpacks, and does not make up the image
    cells = ["not base64", code(good), short, code(other)]
    path = table(tmp_path / "pred.csv", PREDICTED, [["a", WIDTH, HEIGHT, "dog", 0.5, cell] for cell in cells])
    options = ReadOptions(iou_type="segm", skip_invalid=True)
    found = load(path, role="pred", options=options)
    assert found.ignored["invalid"] == 2
    # Each object that is left has its own mask; areas are fractions of the image.
    assert found.boxes.area.tolist() == pytest.approx([good.mean(), other.mean()])


def save(path: Path, values: npt.NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(values))


def cityscapes(folder: Path) -> tuple[Path, Path]:
    """Write maps of 16 bits, whose objects are persons and cars, among a road; and a text file for each image."""
    for at, name in enumerate(IMAGES):
        stem = f"aachen_{at:06}_000019"
        ids = np.full((HEIGHT, WIDTH), 7, dtype=np.uint16)
        for number, (label, pixels) in enumerate(GT[name]):
            ids[pixels] = (24, 26)[label] * 1000 + number
        save(folder / f"gtFine/val/aachen/{stem}_gtFine_instanceIds.png", ids)
        save(folder / f"gtFine/val/aachen/{stem}_gtFine_color.png", np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8))
        lines = []
        for number, (label, pixels, score) in enumerate(PRED[name]):
            save(folder / f"results/pred/{stem}_{number}.png", pixels.astype(np.uint8) * 255)
            lines.append(f"pred/{stem}_{number}.png {(24, 26)[label]} {score}\n")
        (folder / f"results/{stem}_leftImg8bit.txt").write_text("".join(lines))
    return folder / "gtFine/val", folder / "results"


def numbered(shapes: list[Any]) -> npt.NDArray[np.uint8]:
    ids = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    for number, (_, pixels, *_) in enumerate(shapes, start=1):
        ids[pixels] = number
    return ids


def maps(folder: Path) -> tuple[Path, Path]:
    """Write maps with a table beside: one of names with suffix, one without."""
    for side, shapes, suffix in (("gt", GT, ".png"), ("pred", PRED, "")):
        lines = ["image,id,class,score\n"]
        for name in IMAGES:
            save(folder / side / f"{name}.png", numbered(shapes[name]))
            rows = enumerate(shapes[name], start=1)
            lines += [f"{name}{suffix},{at},{NAMES[row[0]]},{row[2] if row[2:] else ''}\n" for at, row in rows]
        (folder / side / "instances.csv").write_text("".join(lines))
    return folder / "gt", folder / "pred"


def voc(folder: Path) -> tuple[Path, Path]:
    """Write two maps of indices of a palette, with a void border around objects, as VOC has them."""
    index = (12, 8)  # dog and cat among VOC's classes
    for name in IMAGES:
        objects = Image.fromarray(numbered(GT[name]))
        classes = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
        for label, pixels in GT[name]:
            classes[pixels] = index[label]
        classes[0, :3] = 255
        for kind, image in (("Object", objects), ("Class", Image.fromarray(classes))):
            file = folder / f"VOC2012/Segmentation{kind}/{name}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            image.putpalette([value for color in range(256) for value in (color, 255 - color, 7)])
            image.save(file)
    return folder / "VOC2012/SegmentationObject", named(folder)


def test_folders_of_instance_maps_are_recognised(tmp_path: Path) -> None:
    for write in (cityscapes, maps, voc):
        folder = tmp_path / write.__name__
        folder.mkdir()
        for path in write(folder):
            assert detect_format(path) == ("instances" if path.is_dir() else "coco"), path
    assert detect_format(tmp_path / "voc/VOC2012") == "instances"
    # As Penn-Fudan has them, next to photographs; those alone are no maps.
    save(tmp_path / "PedMasks/FudanPed00001_mask.png", numbered(GT["a"]))
    dataset = load(tmp_path / "PedMasks", options=ReadOptions(names=("person",)))
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("instances", ("FudanPed00001",), ("person",))
    assert dataset.boxes.xywh.tolist() == [[4, 4, 20, 16], [30, 0, 34, 15], [2, 25, 20, 19]]
    save(tmp_path / "photographs/a.png", np.zeros((4, 4, 3), dtype=np.uint8))
    with pytest.raises(DataError, match="not recognised"):
        load(tmp_path / "photographs")


def test_groups_of_cityscapes_are_crowds_and_void_is_nothing(tmp_path: Path) -> None:
    ids = np.zeros((8, 8), dtype=np.uint16)
    ids[:2], ids[2:4], ids[4:6], ids[6:] = 26, 26_000, 9, 33_001
    save(tmp_path / "a_000000_000001_gtFine_instanceIds.png", ids)
    dataset = load(tmp_path, options=ReadOptions(iou_type="segm"))
    assert dataset.labels.names == ("bicycle", "car")
    rows = [
        (dataset.labels.names[box], crowd) for box, crowd in zip(dataset.boxes.label, dataset.boxes.crowd, strict=True)
    ]
    assert rows == [("car", True), ("car", False), ("bicycle", False)]


def test_maps_without_a_table_are_of_one_class(tmp_path: Path) -> None:
    gt, pred = maps(tmp_path)
    (gt / "instances.csv").unlink()
    dataset = load(gt)
    assert len(dataset.labels) == 1
    assert [finding.code for finding in dataset.findings] == ["csv-one-class"]
    expected = evaluate(*coco(tmp_path / "coco"), iou_type="segm", class_agnostic=True)
    table = [line.split(",") for line in (pred / "instances.csv").read_text().splitlines()]
    (pred / "instances.csv").write_text("\n".join(",".join([*cells[:2], cells[3]]) for cells in table))
    assert evaluate(gt, pred, iou_type="segm")["AP"] == expected["AP"]


def test_every_problem_of_instance_maps_is_reported_in_one_pass(tmp_path: Path) -> None:
    gt, _ = maps(tmp_path)
    lines = (gt / "instances.csv").read_text().splitlines()
    # One id without a row, one row without pixels, an image without a map, and four rows that cannot be read.
    lines = [*lines[:1], *lines[2:], "a,9,dog,", "d,1,dog,", "a,1.5,dog,", "a,2,dog", "b,1,dog,", "b,3,dog,high"]
    lines[-5] = "a.png,9,dog,"
    (gt / "instances.csv").write_text("\n".join(lines))
    save(gt / "c.png", np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    (gt / "e.png").write_bytes((gt / "b.png").read_bytes()[:50])
    (gt / "f.png").write_bytes(b"\xff\xd8\xff a photograph")
    with pytest.raises(DataError) as caught:
        load(gt, options=ReadOptions(iou_type="segm"))
    codes = {finding.code for finding in caught.value.findings if finding.severity == "error"}
    assert codes >= {"segment-unlisted", "segment-absent", "segment-id", "csv-fields", "csv-number", "map-mode"}
    assert codes >= {"image-unreadable", "map-lossy", "file-missing"}
    assert "holds colours (RGB), not numbers of objects" in str(caught.value)
    assert "is not listed in instances.csv" in str(caught.value)


def test_maps_of_voc_without_their_classes_or_of_another_size_are_refused(tmp_path: Path) -> None:
    gt, _ = voc(tmp_path)
    (tmp_path / "VOC2012/SegmentationClass/a.png").unlink()
    save(tmp_path / "VOC2012/SegmentationClass/b.png", np.ones((4, 5), dtype=np.uint8))
    with pytest.raises(DataError) as caught:
        load(gt)
    assert "there is no " in str(caught.value)
    assert "has 5 x 4 pixels" in str(caught.value)
    save(tmp_path / "VOC2012/SegmentationClass/a.png", np.full((HEIGHT, WIDTH), 21, dtype=np.uint8))
    save(tmp_path / "VOC2012/SegmentationClass/b.png", np.full((HEIGHT, WIDTH), 255, dtype=np.uint8))
    with pytest.raises(DataError) as caught:
        load(gt)
    assert "has class 21, and VOC has 20" in str(caught.value)
    assert "has no class in" in str(caught.value)


def test_lines_of_results_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    _, pred = cityscapes(tmp_path)
    file = sorted(pred.glob("*.txt"))[0]
    first = file.read_text().splitlines()[0].split()[0]
    save(pred / "pred/large.png", np.ones((99, 99), dtype=np.uint8))
    lines = [f"{first} 24 0.5", f"{first} 24", f"{first} 24 high", "pred/none.png 24 1", "../../x.png 24 1"]
    file.write_text("\n".join([*lines, "pred/large.png 24 1"]))
    with pytest.raises(DataError) as caught:
        load(pred, role="pred", options=ReadOptions(iou_type="segm"))
    text = str(caught.value)
    for problem in (
        "txt:2: is ",
        "there is no file 'pred/none.png'",
        "'../../x.png' is outside of",
        "has 99 x 99 pixels",
    ):
        assert problem in text, text


LAYOUTS: list[Callable[[Path], tuple[Path, Path]]] = [
    labelme,
    cvat,
    npz,
    npz_rle,
    openimages_png,
    openimages_challenge,
    cityscapes,
    maps,
    voc,
]


@pytest.mark.parametrize("write", LAYOUTS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("iou_type", ["segm", "boundary"])
def test_numbers_are_those_of_coco_json_with_the_same_masks(
    tmp_path: Path, write: Callable[[Path], tuple[Path, Path]], iou_type: str
) -> None:
    (tmp_path / "files").mkdir()
    gt, pred = write(tmp_path / "files")
    expected = measured(evaluate(*coco(tmp_path / "coco"), iou_type=iou_type))
    found = evaluate(gt, pred, iou_type=iou_type)
    assert measured(found) == expected
    assert 0 < expected["AP"][1] < 1


@pytest.mark.parametrize("write", LAYOUTS, ids=lambda write: write.__name__)
def test_masks_are_compared_unasked_where_there_is_nothing_else(
    tmp_path: Path, write: Callable[[Path], tuple[Path, Path]]
) -> None:
    gt, pred = write(tmp_path)
    done = run_here(gt, pred, "-o", tmp_path / "out.json", "-q")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["protocol"]["iou_type"] == "segm"


def test_parts_of_a_labelme_group_are_one_object_whether_drawn_or_painted(tmp_path: Path) -> None:
    painted = labelme_mask(0, blob(0, 0, 10, 10)) | {"group_id": 7}
    drawn = {
        "label": "dog",
        "points": [[20, 0], [30, 0], [30, 10], [20, 10]],
        "group_id": 7,
        "shape_type": "polygon",
    }
    document = {"version": "5", "imagePath": "a.jpg", "imageHeight": HEIGHT, "imageWidth": WIDTH}
    path = write_json(tmp_path / "a.json", document | {"shapes": [drawn, painted]})
    boxes = load(path, options=ReadOptions(iou_type="segm")).boxes
    assert boxes.xywh.tolist() == [[0, 0, 30, 10]]
    assert boxes.shapes.masks.areas().tolist() == [200]


def test_every_problem_of_labelme_masks_is_reported_in_one_pass(tmp_path: Path) -> None:
    good = labelme_mask(0, blob(4, 4, 24, 20))
    cut = good | {"mask": good["mask"][: len(good["mask"]) // 2 // 4 * 4]}
    shapes = [
        good | {"points": [[4, 4], [30, 19]]},
        good | {"mask": "not base64!"},
        cut,
        good | {"points": [[60, 40], [79, 55]]},
        good | {"mask": base64.b64encode(png(np.arange(960).astype(np.uint8).reshape(16, 20, 3))).decode()},
        good | {"mask": base64.b64encode(b"\xff\xd8\xff\xe0 a photograph").decode()},
        good | {"mask": None},
        good | {"points": [[4, 4]]},
    ]
    document = {"version": "5", "imagePath": "a.jpg", "imageHeight": HEIGHT, "imageWidth": WIDTH, "shapes": shapes}
    with pytest.raises(DataError) as caught:
        load(write_json(tmp_path / "a.json", document), options=ReadOptions(iou_type="segm"))
    text = str(caught.value)
    for at, problem in enumerate(
        [
            "shapes[0].mask: has 20 x 16 pixels, but its points span 27 x 16 (width x height)",
            "shapes[1].mask: is not valid base64",
            "shapes[2].mask: cannot be decoded",
            "shapes[3].points: 20 x 16 pixels from (60, 40) leave the image of 64 x 48 (width x height)",
            "shapes[4].mask: holds colours (RGB), not the pixels of an object",
            "shapes[5].mask: is a JPEG image",
            "shapes[6].mask: is null",
            "shapes[7].points: has 1 points",
        ]
    ):
        assert problem.replace(f"shapes[{at}].", "") in text, text
        assert f"shapes[{at}]" in text or at > 4, text


def test_masks_of_labelme_without_a_size_take_that_of_the_images(tmp_path: Path) -> None:
    document = {"version": "5", "imagePath": "a.jpg", "shapes": [labelme_mask(0, blob(4, 4, 24, 20))]}
    path = write_json(tmp_path / "a.json", document)
    with pytest.raises(DataError, match="width and height of the image are unknown"):
        load(path, options=ReadOptions(iou_type="segm"))
    folder = images(tmp_path / "images")
    boxes = load(path, options=ReadOptions(iou_type="segm", images=folder)).boxes
    assert boxes.xywh.tolist() == [[4, 4, 20, 16]]


def test_every_problem_of_cvat_masks_is_reported_in_one_pass(tmp_path: Path) -> None:
    good = cvat_mask(0, blob(4, 4, 24, 20))  # rle="0, 320"
    masks = [
        good.replace('rle="0, 320"', 'rle="0, 319"'),
        good.replace('rle="0, 320"', 'rle="0, x"'),
        good.replace('rle="0, 320"', 'rle="-320"'),
        good.replace('left="4"', 'left="45"'),
        good.replace('width="20"', 'width="1e9"'),
        good.replace('rle="0, 320"', ""),
        good.replace('rle="0, 320"', 'rle="999999999999999999, 999999999999999999"'),
    ]
    body = f'<image id="0" name="a.jpg" width="{WIDTH}" height="{HEIGHT}">{"".join(masks)}</image>'
    body += f'<image id="1" name="b.jpg">{good}</image>'
    (tmp_path / "gt.xml").write_text(f"<annotations>{body}</annotations>")
    with pytest.raises(DataError) as caught:
        load(tmp_path / "gt.xml", options=ReadOptions(iou_type="segm"))
    counts = {finding.examples[0].where.field: finding.count for finding in caught.value.findings}
    assert counts == {"rle": 6, "width": 2}
    assert {finding.code for finding in caught.value.findings} == {"number-invalid"}
    text = str(caught.value)
    assert "runs sum to 319, but 20 x 16 are 320 pixels" in text
    assert "'x' is not a whole number; expected lengths of runs" in text


def test_masks_of_a_cvat_track_are_read_frame_by_frame(tmp_path: Path) -> None:
    frames = "".join(
        cvat_mask(0, pixels, more=f' frame="{frame}" outside="{outside}"')
        for frame, (pixels, outside) in enumerate([(blob(4, 4, 24, 20), 0), (blob(5, 4, 24, 20), 1)])
    )
    size = f"<meta><task><original_size><width>{WIDTH}</width><height>{HEIGHT}</height></original_size></task></meta>"
    track = f'<track id="0" label="dog">{frames}</track>'
    (tmp_path / "gt.xml").write_text(f"<annotations>{size}{track}</annotations>")
    dataset = load(tmp_path / "gt.xml", options=ReadOptions(iou_type="segm"))
    assert dataset.boxes.xywh.tolist() == [[4, 4, 20, 16]]
    assert dataset.ignored == {"outside": 1}


def test_masks_of_archives_are_read_one_by_one(tmp_path: Path) -> None:
    n, side = 60, 1000
    masks = np.zeros((n, side, side), dtype=np.bool_)
    for row in range(n):
        masks[row, row : row + 40, 10:90] = True
    labels, image = np.zeros(n, dtype=np.int64), np.arange(n)
    np.savez_compressed(tmp_path / "gt.npz", masks=masks, labels=labels, image=image)
    tracemalloc.start()
    boxes = load(tmp_path / "gt.npz", options=ReadOptions(iou_type="segm")).boxes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert boxes.xywh.tolist() == [[10, row, 80, 40] for row in range(n)]
    assert peak < masks.nbytes / 4


def test_the_order_of_an_archive_in_memory_does_not_matter(tmp_path: Path) -> None:
    masks = np.asfortranarray(arrays(GT)["masks"])
    np.savez(tmp_path / "gt.npz", **arrays(GT) | {"masks": masks})
    found = load(tmp_path / "gt.npz", options=ReadOptions(iou_type="segm")).boxes
    assert found.shapes.masks.areas().tolist() == masks.sum(axis=(1, 2)).tolist()


@pytest.mark.parametrize(
    ("masks", "more", "problem"),
    [
        (np.full((5, 4, 4), 0.5), {}, "holds other values than 0 and 1 in 5 of 5 masks, first in masks[0]"),
        (np.zeros((5, 16)), {}, "holds float64 of shape (5, 16); expected (n, height, width) of booleans"),
        (np.zeros((4, 4, 4)), {"boxes": np.zeros((5, 4))}, "has 4 masks, and there are 5 boxes"),
        (np.array(["04L3"] * 5), {}, "mask_sizes: the array is missing"),
        (np.array(["04"] * 5), {"mask_sizes": [4, 4]}, "counts of RLE sum to 4, but 4 x 4 are 16 pixels"),
        (np.array(["~"] * 5), {"mask_sizes": [4, 4]}, "is not a valid compressed string"),
        (np.array(["04"] * 5), {"mask_sizes": [[2, 2.5]] * 5}, "size"),
        (np.array([{}], dtype=object), {}, "cannot be read: Object arrays cannot be loaded"),
        (None, {"boxes": np.zeros((5, 4))}, "masks: the array is missing"),
    ],
)
def test_what_is_wrong_with_masks_of_an_archive_is_named(
    tmp_path: Path, masks: Any, more: dict[str, Any], problem: str
) -> None:
    columns = {"labels": np.zeros(5, dtype=np.int64), "image": np.arange(5), "masks": masks, **more}
    np.savez(tmp_path / "gt.npz", **{name: column for name, column in columns.items() if column is not None})
    with pytest.raises(DataError) as caught:
        load(tmp_path / "gt.npz", options=ReadOptions(iou_type="segm"))
    assert problem in str(caught.value)


def test_an_archive_whose_masks_are_cut_off_is_damaged(tmp_path: Path) -> None:
    columns = arrays(GT)
    file = io.BytesIO()
    np.save(file, columns.pop("masks"))
    with zipfile.ZipFile(tmp_path / "gt.npz", "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.save(entry, column)
        archive.writestr("masks.npy", file.getvalue()[:-100])
    with pytest.raises(DataError, match="the array is cut off"):
        load(tmp_path / "gt.npz", options=ReadOptions(iou_type="segm"))


def cells(side: int, *, gap: int = 2, numbers: type[np.unsignedinteger[Any]] = np.uint16) -> npt.NDArray[Any]:
    """Draw squares in a grid, each with a number of its own, as maps of nuclei have them."""
    ids = np.zeros((96, 120), dtype=numbers)
    starts = [(top, left) for top in range(0, 96, side + gap) for left in range(0, 120, side + gap)]
    for number, (top, left) in enumerate(starts, start=1):
        ids[top : top + side, left : left + side] = number
    return ids


def photo(*, levels: int = 256) -> npt.NDArray[np.uint8]:
    """Make noise on a slope, in so many greys."""
    rng = np.random.default_rng(3)
    slope = np.linspace(40, 200, 120)[None, :] + rng.normal(0, 25, (96, 120))
    return (slope.clip(0, 255) // (256 / levels) * (256 / levels)).astype(np.uint8)


def slope(*, wide: int = 900) -> npt.NDArray[np.uint8]:
    """Make a smooth one, of which a row has each grey in one piece."""
    return np.add.outer(np.linspace(0, 60, 96), np.linspace(0, 190, wide)).astype(np.uint8)


def scan() -> npt.NDArray[np.uint8]:
    """Make a page: white, with thin strokes of a few greys."""
    page = np.full((96, 120), 255, dtype=np.uint8)
    page[10::6, ::12], page[10::6, 1::12] = 10, 120
    return page


@pytest.mark.parametrize(
    ("drawn", "is_map"),
    [
        ([cells(12)], True),
        ([cells(8), cells(8)], True),
        ([cells(12, numbers=np.uint8), np.zeros((96, 120), np.uint8)], True),
        ([np.zeros((96, 120), np.uint8)], True),  # an image without objects
        ([np.uint8(255) * (cells(6) > 0)], True),  # one object of many parts
        ([photo()], False),
        ([photo(levels=16)], False),
        ([scan()], False),
        ([slope()], False),
        ([slope().T], False),
        ([cells(8, gap=0)], True),
        ([photo(), photo(), photo()], False),
        ([cells(12, numbers=np.uint8), photo()], False),
    ],
)
def test_a_folder_of_grey_images_is_one_of_maps_only_where_values_lie_side_by_side(
    drawn: list[npt.NDArray[Any]], is_map: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for number, values in enumerate(drawn):
        Image.fromarray(values).save(folder / f"{number}.png")
    if is_map:
        assert detect_format(folder) == "instances"
        return
    with pytest.raises(DataError) as caught:
        detect_format(folder)
    assert f"it holds files ({len(drawn)} .png), which look like photos" in str(caught.value)
    assert "pass --gt-format instances or --pred-format instances" in str(caught.value)
    # The advice: what is named is read, whatever it looks like.
    assert len(load(folder, format_name="instances").boxes)


@pytest.mark.parametrize(("background", "is_map"), [((0, 0, 0), True), ((90, 120, 200), False)])
def test_a_photo_of_few_flat_colours_is_no_map(background: tuple[int, int, int], is_map: bool, tmp_path: Path) -> None:
    image = Image.fromarray(np.add.outer(np.arange(96) // 32, np.arange(120) // 40).astype(np.uint8), mode="P")
    image.putpalette([*background, *range(12)])
    image.save(tmp_path / "a.png")
    if is_map:
        assert detect_format(tmp_path) == "instances"
        return
    with pytest.raises(DataError, match="which look like photos"):
        detect_format(tmp_path)
