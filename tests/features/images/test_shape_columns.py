"""Shapes of a page: cells of masks, points of poses and oriented boxes, and how many of them there are."""

from typing import Any

import numpy as np
import pytest

from jaccard_eval.features.images.columns import CELLS, MOST_NUMBERS, UNSEEN, shape_columns
from jaccard_eval.reading.image_boxes import shapes_of
from jaccard_eval.similarity.keypoints import Keypoints
from jaccard_eval.similarity.obb import Quads


def masks_of(*pixels: Any) -> Any:
    return shapes_of({"masks": np.array(pixels, dtype=bool)}, "", "segm", np.asarray)


def coded(value: Any) -> Any:
    return np.rint(value * 8).astype(np.uint16)


def columns(shapes: Any, rank: Any = None, most: int = 100) -> tuple[dict[str, Any], dict[str, Any]]:
    n = len(shapes)
    return shape_columns(shapes, np.zeros(n) if rank is None else np.array(rank), np.full(n, 100.0), coded, most)


def cells_of(found: dict[str, Any]) -> list[Any]:
    """Return the cells of each mask, as the script of a page reads them."""
    made, at = [], 0
    for (_, width), (_, height) in zip(found["px"].reshape(-1, 2), found["py"].reshape(-1, 2), strict=True):
        side = max(-(-max(width, height) // CELLS), 1)
        across, down = -(-width // side), -(-height // side)
        n = -(-across * down // 8)
        bits = np.unpackbits(found["cells"][at : at + n], bitorder="little")[: across * down]
        made.append(bits.reshape(down, across).astype(bool))
        at += n
    assert at == len(found["cells"])
    return made


def test_a_small_mask_has_a_cell_for_each_pixel() -> None:
    pixels = np.random.default_rng(1).random((4, 23, 31)) < 0.4
    pixels[2] = False
    pixels[3, :, :9] = False
    found, about = columns(masks_of(*pixels))
    assert (about["form"], found["shaped"].tolist()) == ("mask", [True, True, False, True])
    for cells, mask in zip(cells_of(found), pixels[[0, 1, 3]], strict=True):
        rows, places = np.nonzero(mask)
        assert (cells == mask[rows.min() : rows.max() + 1, places.min() : places.max() + 1]).all()


def test_a_large_mask_is_looked_at_in_the_middle_of_each_cell() -> None:
    y, x = np.mgrid[:300, :400]
    disc = (x - 200) ** 2 + (y - 150) ** 2 < 100**2
    (cells,) = cells_of(columns(masks_of(disc))[0])
    side = 7  # 199 pixels in 32 cells
    assert cells.shape == (29, 29)
    # The middle of a cell lies at most within the mask's last pixel.
    middles = 51 + np.minimum(np.arange(29) * side + 3, 198)
    assert (cells == disc[middles[:, None], middles[None] + 50]).all()
    assert abs(cells.sum() * side**2 / disc.sum() - 1) < 0.05


def test_points_that_are_not_seen_say_so_and_poses_without_any_have_none() -> None:
    poses = np.zeros((3, 17, 3))
    poses[0, 5], poses[0, 6] = (40, 50, 2), (60, 50, 1)
    poses[1, :, :2] = 30  # of a prediction: no point is said to be seen
    found, about = columns(Keypoints(poses))
    assert (about["form"], about["points"], len(about["lines"])) == ("pose", 17, 19)
    assert found["shaped"].tolist() == [True, True, False]
    x, y = found["px"].reshape(2, 17), found["py"].reshape(2, 17)
    assert [(x[0, i] / 8, y[0, i] / 8) for i in (5, 6)] == [(40, 50), (60, 50)]
    assert (np.delete(x[0], [5, 6]) == UNSEEN).all()
    assert (x[1] == 240).all()


def test_an_oriented_box_has_its_corners() -> None:
    corners = np.array([[[10, 20], [30, 25], [28, 40], [8, 35]]], dtype=float)
    found, about = columns(Quads(corners))
    assert about == {"form": "oriented", "points": 4, "boxed": 0}
    assert np.stack((found["px"], found["py"]), axis=1).tolist() == (corners[0] * 8).tolist()


@pytest.mark.parametrize(("kind", "most"), [("mask", 2), ("quad", 1)])
def test_of_many_shapes_those_come_first_that_rank_first(kind: str, most: int) -> None:
    """Of quads, of which eight numbers each take a part of a place of MOST_NUMBERS, two are there."""
    assert MOST_NUMBERS // 8 == 2
    shapes = masks_of(*np.ones((4, 5, 5))) if kind == "mask" else Quads(np.ones((4, 4, 2)))
    found, about = columns(shapes, [2, 0, 3, 1], most)
    assert (found["shaped"].tolist(), about["boxed"]) == ([False, True, False, True], 2)


def test_boxes_have_no_shapes() -> None:
    assert shape_columns(None, np.zeros(0), np.zeros(0), coded, 5) == ({}, {})
