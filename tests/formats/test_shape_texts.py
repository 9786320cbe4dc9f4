"""Texts with columns of their own: one scene in each, and what lines in pixels are not.

Three objects of two classes are 100 by 100 px in two images and are found 10 px further right: IoU 90 / 110 = .818,
which is reached at 7 of 10 thresholds, so that AP is .7. A fourth prediction, of the lowest score, is wrong.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format

Object = tuple[str, int, int, int]  # image, class, left and top
SCENE: list[Object] = [("00001", 0, 100, 50), ("00001", 1, 300, 200), ("00002", 0, 20, 250), ("00002", 0, 400, 60)]
NAMES = ("car", "plane")
SIDE = 100


def corners(x: int, y: int) -> list[int]:
    return [x, y, x + SIDE, y, x + SIDE, y + SIDE, x, y + SIDE]


def ucas(label: str, x: int, y: int) -> str:
    return "\t".join([label, *(f"{value:.6e}" for value in (*corners(x, y), 90, x, y, SIDE, SIDE))]).strip() + "\t"


def vedai(x: int, y: int) -> str:
    ring = corners(x, y)
    return " ".join(map(str, (*ring[::2], *ring[1::2])))


def pascal(label: str, at: int, x: int, y: int) -> str:
    return (
        f'# Details for object {at} ("{label}")\nCenter point on object {at} "{label}" (X, Y) : ({x + 50}, {y + 50})\n'
        f'Bounding box for object {at} "{label}" (Xmin, Ymin) - (Xmax, Ymax) : ({x}, {y}) - ({x + SIDE}, {y + SIDE})'
    )


FOLDERS: dict[str, tuple[str, Callable[[int, int, int, int], str]]] = {  # what a file begins with, and a line
    "UCAS-AOD, classes": ("", lambda at, label, x, y: ucas(NAMES[label], x, y)),
    "UCAS-AOD, numbers": ("", lambda at, label, x, y: ucas(f"{label}", x, y)),
    "VEDAI": ("", lambda at, label, x, y: f"{x + 50} {y + 50} -3.08 {label} 1 0 {vedai(x, y)}"),
    "VEDAI, corners first": ("", lambda at, label, x, y: f"{x + 50} {y + 50} -3.08 {vedai(x, y)} {label} 1 0"),
    "BBox-Label-Tool": ("{n}\n", lambda at, label, x, y: f"{x} {y} {x + SIDE} {y + SIDE} {NAMES[label]}"),
    "bbGt": ("% bbGt version=3\n", lambda at, label, x, y: f"{NAMES[label]} {x} {y} 100 100 0 0 0 0 0 0 0"),
    "PASCAL": ("# PASCAL Annotation Version 1.00\n\n", lambda at, label, x, y: pascal(NAMES[label], at, x, y)),
    "corners, then the class": ("", lambda at, label, x, y: f"{' '.join(map(str, corners(x, y)))} {label}"),
    "class last, sizes": ("", lambda at, label, x, y: f"{x} {y} {SIDE} {SIDE} {NAMES[label]}"),
    "class last, corners": ("", lambda at, label, x, y: f"{x} {y} {x + SIDE} {y + SIDE} {NAMES[label]}"),
}
ALL_IMAGES: dict[str, tuple[str, Callable[[int, Object], str]]] = {
    "VEDAI": ("", lambda at, one: f"{one[0]} {one[2] + 50} {one[3] + 50} -3.08 {vedai(*one[2:])} {one[1]} 1 0"),
    "VATIC": (
        "",
        lambda at, one: f'{at} {one[2]} {one[3]} {one[2] + SIDE} {one[3] + SIDE} {int(one[0])} 0 0 1 "{NAMES[one[1]]}"',
    ),
}


def write_folder(folder: Path, layout: str, scene: list[Object] = SCENE) -> Path:
    start, line = FOLDERS[layout]
    folder.mkdir(parents=True)
    for image in sorted({image for image, *_ in scene}):
        lines = [line(at, *one[1:]) for at, one in enumerate(scene) if one[0] == image]
        (folder / f"{image}.txt").write_text(start.format(n=len(lines)) + "".join(f"{text}\n" for text in lines))
    return folder


def write_predictions(path: Path, *, numbers: bool, image: Callable[[str], str] = str) -> Path:
    rows = [(image(name), label, 0.9 - at / 10, x + 10, y) for at, (name, label, x, y) in enumerate(SCENE)]
    rows.append((image("00002"), 1, 0.1, 0, 0))
    lines = [
        f"{name},{label if numbers else NAMES[label]},{score},{x},{y},{x + SIDE},{y + SIDE}"
        for name, label, score, x, y in rows
    ]
    path.write_text("image,class,score,xmin,ymin,xmax,ymax\n" + "".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("layout", FOLDERS)
def test_a_text_for_each_image_gives_the_ap_of_its_boxes(layout: str, tmp_path: Path) -> None:
    gt = write_folder(tmp_path / "gt", layout)
    numbers = not any(name in (gt / "00001.txt").read_text() for name in NAMES)
    options = {"gt_options": ReadOptions(box="xywh")} if "sizes" in layout else {}
    gt_set = load(gt, options=options.get("gt_options", ReadOptions()))
    assert (detect_format(gt), len(gt_set.boxes), len(gt_set.labels)) == ("shapetext", 4, 2)
    assert sorted(gt_set.boxes.xywh.tolist()) == sorted([x, y, SIDE, SIDE] for _, _, x, y in SCENE)
    result = evaluate(gt_set, write_predictions(tmp_path / "pred.csv", numbers=numbers), iou_type="bbox")
    assert result.metrics["AP"].value == pytest.approx(0.7)


@pytest.mark.parametrize("layout", ALL_IMAGES)
def test_a_text_for_all_images_gives_the_ap_of_its_boxes(layout: str, tmp_path: Path) -> None:
    start, line = ALL_IMAGES[layout]
    gt = tmp_path / "annotation512.txt"
    gt.write_text(start + "".join(f"{line(at, one)}\n" for at, one in enumerate(SCENE)))
    of_frames = layout == "VATIC"
    pred = write_predictions(
        tmp_path / "pred.csv", numbers=not of_frames, image=(lambda name: f"{int(name)}") if of_frames else str
    )
    assert detect_format(gt) == "shapetext"
    assert evaluate(gt, pred, iou_type="bbox").metrics["AP"].value == pytest.approx(0.7)


def test_oriented_boxes_are_compared_by_their_corners(tmp_path: Path) -> None:
    # 100 by 100 px turned by 45 degrees; found 10 px further along x, where it is 141.4 px wide.
    tip = 70.710678
    ring = [300, 200 - tip, 300 + tip, 200, 300, 200 + tip, 300 - tip, 200]
    numbers = "\t".join(f"{value:.6e}" for value in (*ring, 45, 250, 150, 100, 100))
    for side, name in (("gt", "gt"), ("pred", "labelTxt")):
        (tmp_path / side / name).mkdir(parents=True)
    (tmp_path / "gt/gt/P0001.txt").write_text(f"car {numbers}\t\n")
    moved = " ".join(f"{value + 10 * (at % 2 == 0)}" for at, value in enumerate(ring))
    (tmp_path / "pred/Task1_car.txt").write_text(f"P0001 0.9 {moved}\n")
    result = evaluate(tmp_path / "gt/gt", tmp_path / "pred")
    # Both sides of the square are moved by 10 / sqrt(2): (100 - 7.071)^2 / (2 * 100^2 - that) = .760.
    assert (result.protocol.iou_type, result.metrics["AP"].value) == ("obb", pytest.approx(0.6))


def test_folders_of_ucas_aod_name_the_class_of_their_own_images(tmp_path: Path) -> None:
    for label, name in enumerate(("CAR", "PLANE")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "P0001.txt").write_text(f"{ucas('', 10 + label, 20)}\n")
    data = load(tmp_path)
    assert (data.format, data.images.keys, data.labels.names) == (
        "shapetext",
        ("CAR/P0001", "PLANE/P0001"),
        ("CAR", "PLANE"),
    )
    assert data.boxes.xywh.tolist() == [[10, 20, 100, 100], [11, 20, 100, 100]]
    assert load(tmp_path / "CAR").labels.names == ("CAR",)


def test_boxes_of_a_counting_tool_may_have_no_class(tmp_path: Path) -> None:
    for image in ("1", "2"):
        (tmp_path / f"{image}.txt").write_text("2\n10 20 30 60\n5 5 9 9\n" if image == "1" else "0\n")
    data = load(tmp_path, options=ReadOptions(names=("dog",)))
    assert (data.format, data.images.keys, data.labels.names) == ("shapetext", ("1", "2"), ("dog",))
    assert data.boxes.xywh.tolist() == [[10, 20, 20, 40], [5, 5, 4, 4]]


def test_regions_to_ignore_and_objects_out_of_view_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/I00029.txt").write_text(
        "% bbGt version=3\nperson 1 2 30 40 0 0 0 0 0 0 0\nperson 5 6 70 80 0 0 0 0 0 1 0\n"
    )
    assert load(tmp_path / "a").boxes.crowd.tolist() == [False, True]
    video = tmp_path / "vatic.txt"
    video.write_text('0 1 2 31 42 0 0 0 0 "person"\n0 1 2 31 42 1 1 0 0 "person"\n')
    data = load(video)
    assert (data.images.keys, len(data.boxes), data.ignored) == (("0", "1"), 1, {"lost": 1})


def test_boxes_of_celeba_and_of_birds_are_joined_to_their_images(tmp_path: Path) -> None:
    faces = tmp_path / "list_bbox_celeba.txt"
    faces.write_text("1\nimage_id x_1 y_1 width height\n000001.jpg    95  71 226 313\n")
    assert load(faces).boxes.xywh.tolist() == [[95, 71, 226, 313]]
    birds = tmp_path / "birds"
    birds.mkdir()
    (birds / "images.txt").write_text("1 001.Albatross/a.jpg\n2 002.Auklet/b.jpg\n")
    (birds / "bounding_boxes.txt").write_text("1 60.0 27.0 325.0 304.0\n2 139.0 30.0 153.0 264.0\n")
    (birds / "image_class_labels.txt").write_text("1 1\n2 2\n")
    (birds / "classes.txt").write_text("1 001.Albatross\n2 002.Auklet\n")
    data = load(birds)
    assert (data.images.keys, data.labels.names) == (
        ("001.Albatross/a.jpg", "002.Auklet/b.jpg"),
        ("001.Albatross", "002.Auklet"),
    )
    assert data.boxes.xywh.tolist() == [[60, 27, 325, 304], [139, 30, 153, 264]]
    (birds / "image_class_labels.txt").unlink()
    assert [one.code for one in load(birds).findings] == ["csv-one-class"]
    (birds / "bounding_boxes.txt").write_text("1 60.0 27.0 325.0 304.0\n3 139.0 30.0 153.0 264.0\n")
    with pytest.raises(DataError, match=r"bounding_boxes\.txt:2: .* images\.txt has no image '3'"):
        load(birds)


def test_arrays_of_detectors_have_a_box_a_score_and_the_class(tmp_path: Path) -> None:
    for image in ("a", "b"):
        lines = [
            f"{x + at} {x}.5 {x + at + 30} {x + 30}.5 0.{9 - at} {at % 2}\n" for at, x in enumerate((10, 300, 500, 90))
        ]
        (tmp_path / f"{image}.txt").write_text("".join(lines))
    data = load(tmp_path, role="pred")
    assert (data.format, data.boxes.label.tolist()) == ("shapetext", [0, 1, 0, 1] * 2)
    assert data.boxes.score is not None and data.boxes.score.tolist() == [0.9, 0.8, 0.7, 0.6] * 2
    assert data.boxes.xywh[:2].tolist() == [[10, 10.5, 30, 30], [301, 300.5, 30, 30]]
    table = np.array([[10, 10.5, 40, 40.5, 0.9, 0], [301, 300.5, 331, 330.5, 0.8, 1]])
    (tmp_path / "numpy").mkdir()
    np.savetxt(tmp_path / "numpy/a.txt", np.concatenate((table, table[::-1])))
    assert load(tmp_path / "numpy", role="pred", options=ReadOptions(box="xyxy")).boxes.label.tolist() == [0, 1, 1, 0]
    for file in tmp_path.glob("*.txt"):
        file.write_text("10 20 110 220 0.5 1\n")
    (tmp_path / "numpy/a.txt").unlink()
    with pytest.raises(DataError, match="the boxes fit as"):
        load(tmp_path, role="pred")
    assert load(tmp_path, role="pred", options=ReadOptions(box="xyxy")).boxes.xywh[0].tolist() == [10, 20, 100, 200]


@pytest.mark.parametrize(
    ("layout", "damage", "told"),
    [
        ("VEDAI", "150 100 -3.08 0 1 0 100 200", "00001.txt:1: expected cx cy angle class - -"),
        ("bbGt", "person 1 2 3", "00001.txt:2: expected class x y width height occluded"),
        ("BBox-Label-Tool", "1 2 3 x car", "00001.txt:2: expected x1 y1 x2 y2 class, got '1 2 3 x car'"),
        ("VEDAI", f"150 100 -3.08 {'9' * 30} 1 0 {vedai(100, 50)}", "00001.txt:1: expected cx cy angle"),
        ("PASCAL", 'Bounding box for object 1 "car" (1, 2)', r"00001.txt:4: expected (Xmin, Ymin)"),
    ],
)
def test_damaged_lines_are_named(layout: str, damage: str, told: str, tmp_path: Path) -> None:
    gt = write_folder(
        tmp_path / "gt", layout, [*SCENE, *((image, label, x + 3, y + 3) for image, label, x, y in SCENE)]
    )
    lines = (gt / "00001.txt").read_text().split("\n")
    at = {"VEDAI": 0, "bbGt": 1, "BBox-Label-Tool": 1, "PASCAL": 3}[layout]
    lines[at] = damage
    (gt / "00001.txt").write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        load(gt)
    assert told in str(caught.value)


PIXELS: dict[str, tuple[Callable[[int, int], str], str]] = {
    # Eight corners, the angle, and left, top, width and height that are of another object.
    "no middle": (lambda x, y: " ".join(map(str, (*corners(x, y), 90, 5, 5, 9, 9))), "looks like a coordinate"),
    "corners and sizes": (lambda x, y: " ".join(map(str, (*corners(x, y), x, y, 9, 9))), "looks like a coordinate"),
    "class, corners, sizes": (
        lambda x, y: " ".join(map(str, (1, *corners(x, y), x, y, SIDE, SIDE))),
        "cross themselves",
    ),
    "corners, class and flag": (lambda x, y: f"{x} {y} {x + 9} {y + 9} {x % 2} 0", "looks like a coordinate"),
    "corners and two more": (lambda x, y: f"{x} {y} {x + 9} {y + 9} 3 7", "looks like a coordinate"),
}


@pytest.mark.parametrize("kind", PIXELS)
def test_lines_in_pixels_are_not_polygons_of_yolo(kind: str, tmp_path: Path) -> None:
    line, told = PIXELS[kind]
    for image in range(3):
        rows = [line(101 + 7 * at + 40 * image, 30 + 11 * at) for at in range(4)]
        (tmp_path / f"{image}.txt").write_text("".join(f"{row}\n" for row in rows))
    with pytest.raises(DataError, match=told):
        load(tmp_path)


def test_polygons_in_pixels_behind_a_class_are_still_read(tmp_path: Path) -> None:
    for image in range(3):
        rows = [f"{at % 2} {9 + at} 5 {90 + at} 7 {95 + at} 60 {50 + at} 80 {7 + at} 60" for at in range(4)]
        (tmp_path / f"{image}.txt").write_text("".join(f"{row}\n" for row in rows))
    data = load(tmp_path)
    assert (data.format, len(data.boxes), data.labels.keys) == ("yolo", 12, (0, 1))
