"""Masks and poses in galleries: outlines that hold the pixels, skeletons, paths within the page's budget, and PNGs."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import evaluate
from jaccard_eval.features.images.gallery import COCO_EDGES, drawing_of, outlines
from jaccard_eval.reading.image_boxes import shapes_of
from jaccard_eval.report.markup import MOST_PATH_BYTES
from jaccard_eval.report.outputs.annotated import CANVAS, STYLES
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.masks import Masks

SIZE = 120, 90  # width, height


def masks_of(*pixels: Any) -> Masks:
    found = shapes_of({"masks": np.array(pixels, dtype=bool)}, "", "segm", np.asarray)
    assert isinstance(found, Masks)
    return found


def area(rings: tuple[Any, ...]) -> float:
    """Return the pixels that outlines go around: clockwise on a screen counts, the other way is a hole."""
    total = 0.0
    for ring in rings:
        x, y = np.array(ring).T
        total += float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
    return total


def test_a_square_has_four_corners_and_a_hole_an_outline_of_its_own() -> None:
    pixels = np.zeros((10, 12), dtype=bool)
    pixels[2:8, 3:9] = True
    (ring,) = outlines(masks_of(pixels), 0, 0.5)
    assert sorted(ring) == [(3, 2), (3, 8), (9, 2), (9, 8)]
    pixels[4:6, 5:7] = False
    rings = outlines(masks_of(pixels), 0, 0.5)
    assert sorted(area((ring,)) for ring in rings) == [-4, 36]


@pytest.mark.parametrize("seed", range(5))
def test_outlines_go_around_as_many_pixels_as_a_mask_has(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pixels = rng.random((2, 23, 31)) < (0.2 + 0.15 * seed)  # cells that touch at corners, holes, islands in them
    masks = masks_of(*pixels)
    for row in range(2):
        assert area(outlines(masks, row, 0.0)) == pixels[row].sum()


def test_a_large_round_mask_takes_few_corners_and_keeps_its_area() -> None:
    y, x = np.mgrid[:900, :1200]
    disc = (x - 600) ** 2 + (y - 450) ** 2 < 400**2
    (ring,) = outlines(masks_of(disc), 0, 1200 / 320)
    assert len(ring) < 60
    assert area((ring,)) == pytest.approx(disc.sum(), rel=0.02)
    assert outlines(masks_of(np.zeros((9, 9))), 0, 1.0) == ()


def test_poses_have_the_lines_of_coco_between_labelled_points() -> None:
    points = np.stack((np.arange(17.0), np.arange(17.0) * 2, np.full(17, 2.0)), axis=1)
    hidden = points.copy()
    hidden[15, 2] = 0
    shapes = Keypoints(np.stack((points, hidden)))
    whole, part = (drawing_of(shapes, row, (100, 100)) for row in range(2))
    assert whole is not None
    assert part is not None
    assert (len(whole.points), len(whole.lines)) == (17, 19)
    assert len({frozenset(edge) for edge in COCO_EDGES}) == 19
    assert (len(part.points), len(part.lines)) == (16, 18)  # without the left ankle, which one line leads to
    # A network makes of points that were written as zeros something next to these; it is not drawn, nor lines to it.
    along = np.linspace(60, 100, 16)
    far = np.concatenate((np.array([[1.2, -0.8, 1.0]]), np.column_stack((along, along, np.ones(16)))))
    drawn = drawing_of(Keypoints(far[None]), 0, (100, 100))
    assert drawn is not None
    assert len(drawn.points) == 16
    assert all(end in drawn.points for line in drawn.lines for end in line)
    # Of a pose in that corner it is one.
    near = drawing_of(Keypoints(np.concatenate((far[:1], far[1:] - [55, 55, 0]))[None]), 0, (100, 100))
    assert near is not None
    assert len(near.points) == 17
    other = drawing_of(Keypoints(np.full((1, 5, 3), 2.0)), 0, (100, 100))
    assert other is not None
    assert (len(other.points), other.lines) == (5, ())
    assert drawing_of(None, 0, (100, 100)) is None


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Path, Path]:
    """One image: a disc found, a square missed, a triangle that nothing is at; each with a pose."""
    width, height = SIZE

    def record(number: int, ring: list[float], **more: Any) -> dict[str, Any]:
        x, y = ring[::2], ring[1::2]
        pose = [value for row in range(17) for value in (min(x) + row, min(y) + 2 * (row % 5), 2)]
        box = [min(x), min(y), max(x) - min(x), max(y) - min(y)]
        shape = {"image_id": 1, "category_id": 1, "segmentation": [ring], "keypoints": pose, "bbox": box}
        return {"id": number, "iscrowd": 0, "area": box[2] * box[3], "num_keypoints": 17, **shape, **more}

    disc = [round(float(v), 2) for a in np.linspace(0, 6, 20) for v in (30 + 20 * np.cos(a), 30 + 20 * np.sin(a))]
    square, triangle = [70, 10, 110, 10, 110, 50, 70, 50], [10.0, 60, 40, 60, 25, 85]
    document = {
        "images": [{"id": 1, "width": width, "height": height, "file_name": "a.jpg"}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [record(1, disc), record(2, square)],
    }
    predictions = [record(1, disc, score=0.9), record(2, triangle, score=0.8)]
    (tmp_path / "gt.json").write_text(json.dumps(document))
    (tmp_path / "pred.json").write_text(json.dumps(predictions))
    return tmp_path / "gt.json", tmp_path / "pred.json"


@pytest.mark.parametrize(("kind", "shape"), [("segm", "mask"), ("boundary", "mask"), ("keypoints", "pose")])
def test_the_page_draws_shapes_in_place_of_boxes(
    kind: str, shape: str, scene: tuple[Path, Path], tmp_path: Path
) -> None:
    result = evaluate(*scene, iou_type=kind)
    result.save(tmp_path / "page.html")
    result.save(tmp_path / "run.npz")
    page = (tmp_path / "page.html").read_text()
    drawn = re.findall(rf'<path class="{shape} (\w+)[^>]* d="(M[^"]+)"', page)
    assert sorted(state for state, _ in drawn) == ["false", "found", "missed", "missed"]  # one is missed above .9
    assert not re.search(r"<rect[^>]*data-c", page)
    measure = "OKS" if kind == "keypoints" else "IoU"
    assert f"person 0.90, found, {measure} 1.00" in page
    assert f"precision-recall at {measure} 0.50" in page and f"and {measure} &gt;= 0.50." in page
    assert ("IoU" in page) == (kind != "keypoints")


def test_shapes_of_one_image_keep_to_their_budget(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    document: dict[str, Any] = {
        "images": [{"id": 1, "width": 900, "height": 900}], "categories": [{"id": 1, "name": "a"}], "annotations": [],
    }  # fmt: skip
    for number in range(1, 201):
        x, y = rng.uniform(0, 850, 2)
        turns = enumerate(np.linspace(0, 6.2, 30))
        star = [
            float(v)
            for k, a in turns
            for v in (x + 40 * np.cos(a) * (1 - k % 2 / 2), y + 40 * np.sin(a) * (1 - k % 2 / 2))
        ]
        document["annotations"].append(
            {"id": number, "image_id": 1, "category_id": 1, "segmentation": [star], "area": 900, "iscrowd": 0,
             "bbox": [x - 40, y, 80, 40]}
        )  # fmt: skip
    (tmp_path / "gt.json").write_text(json.dumps(document))
    (tmp_path / "pred.json").write_text("[]")
    with pytest.warns(UserWarning, match="pred-empty"):
        evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="segm").save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    paths = re.findall(r'<path class="mask[^>]* d="([^"]+)"', page)
    assert 10 < len(paths) < 200
    assert sum(map(len, paths)) <= MOST_PATH_BYTES
    assert len(paths) + len(re.findall(r"<rect[^>]*data-c", page)) == 200


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_pngs_show_masks_by_a_tint_and_poses_by_lines(kind: str, scene: tuple[Path, Path], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    result = evaluate(*scene, iou_type=kind, worst_images=1)
    result.save(f"{tmp_path}/worst.png/")
    (file,) = (tmp_path / "worst.png").glob("*.png")
    with image.open(io.BytesIO(file.read_bytes())) as shown:
        pixels = np.asarray(shown.convert("RGB")).astype(int)
    scale = pixels.shape[1] / SIZE[0]
    red, green, blue = pixels[round(38 * scale), round(38 * scale)]
    canvas = (233, 236, 239)
    if kind == "segm":  # within the disc that is found; the square is missed, and white paper is nowhere in it
        assert green > red
        assert pixels[round(40 * scale), round(100 * scale)].tolist() != list(canvas)
        assert np.argmax(pixels[round(40 * scale), round(100 * scale)]) == 2
    else:
        assert (red, green, blue) == canvas
        assert (pixels == (18, 140, 96)).all(axis=2).any()


@pytest.mark.parametrize("width", [200, None])  # pixels, or fractions of an image whose size nobody knows
def test_oriented_boxes_are_drawn_by_their_corners(width: int | None, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    corners = np.array([[0.5, 0.1], [0.9, 0.5], [0.5, 0.9], [0.1, 0.5]]) * (width or 1)
    line = " ".join(map(str, corners.ravel().tolist()))
    names = (("labels", ""), ("pred", " 0.9")) if width is None else (("gt", ""), ("found", ""))
    for folder, score in names:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(f"0 {line}{score}\n" if width is None else f"{line} ship 0\n")
    if width is not None:
        (tmp_path / "found" / "a.txt").unlink()
        (tmp_path / "found" / "Task1_ship.txt").write_text(f"a 0.9 {line}\n")
    gt, pred = (tmp_path / folder for folder, _ in names)
    result = evaluate(gt, pred, iou_type="obb", worst_images=1, score=0.5)
    result.save(tmp_path / "page.html")
    (drawn,) = re.findall(r'<path class="oriented found"[^>]* d="(M[^"]+)"', (tmp_path / "page.html").read_text())
    # In fractions the canvas is 640 px wide; without sizes the image is as large as what it holds.
    scale = 640 if width is None else 1
    x, y = (corners[0] * scale).tolist()
    assert drawn.startswith(f"M{x:g} {y:g}l") and drawn.endswith("z")
    result.save(f"{tmp_path}/worst.png/")
    (file,) = (tmp_path / "worst.png").glob("*.png")
    with image.open(io.BytesIO(file.read_bytes())) as shown:
        colour = STYLES["found"][0]
        size = shown.size[0]
        side = 640 if width is None else 0.9 * width  # that the canvas shows
        at = (corners * (1 if width else 640) * size / side).round().astype(int)
        middle = (at[0] + at[1]) // 2
        near = {shown.getpixel((int(middle[0]) + d, int(middle[1]))) for d in range(-3, 4)}
        inside = shown.getpixel(tuple((at.sum(axis=0) // 4).tolist()))
    assert colour in near
    assert inside == CANVAS  # no tint
