"""Other readings of boxes: which is named, and when none is."""

import numpy as np
import pytest
from sides import said_of_boxes

from jaccard_eval import BoxTable, evaluate

CODES = ("box-encoding", "box-units", "box-axes")

# Objects x y w h in images of 640 x 480 whose other readings lie elsewhere.
OBJECTS = [[300, 200, 40, 30], [400, 100, 60, 80], [100, 300, 50, 90], [500, 350, 70, 40], [250, 50, 30, 60]]


def _said(gt: list[list[float]], pred: list[list[float]], **options: tuple[float, float] | None) -> list[str]:
    return [f"{one.code} {one.message}" for one in said_of_boxes(gt, pred, *CODES, **options)]


def test_swapped_axes_are_blamed_on_the_predictions_unless_boxes_leave_the_images() -> None:
    swapped = [[y, x, h, w] for x, y, w, h in OBJECTS]
    # x y w h read as such on both sides: none of the other encodings turns one into the other.
    assert _said(OBJECTS, swapped) == []
    corners = [[y, x, y + h, x + w] for x, y, w, h in OBJECTS]  # y1 x1 y2 x2
    (message,) = _said(OBJECTS, corners)
    assert message.startswith(
        "box-axes pred.file: box: boxes look like yxyx (y1, x1, y2, x2): AP50 0.000 as given, 1.000"
    )


def test_four_objects_more_are_needed_to_believe_another_reading() -> None:
    corners = [[x, y, x + w, y + h] for x, y, w, h in OBJECTS]
    inside = (2000.0, 2000.0)  # so large that boxes never leave the images
    assert len(_said(OBJECTS[:4], corners[:4], size=inside)) == 1
    assert _said(OBJECTS[:3], corners[:3], size=inside) == []


def test_predictions_on_few_of_the_objects_are_not_a_wrong_reading_by_themselves() -> None:
    elsewhere = [[10, 10, 20, 20]] * 4
    assert _said(OBJECTS, [*elsewhere, OBJECTS[4]]) == []
    assert _said(OBJECTS, []) == []
    assert _said([], OBJECTS) == []


def test_fractions_beside_pixels_are_told_by_their_numbers_alone() -> None:
    fractions = [[0.1, 0.1, 0.2, 0.2]] * 3
    (message,) = _said(fractions, OBJECTS)
    assert message == (
        "box-units gt.file: box: boxes look like fractions of the image (normalised): no number of 3 boxes exceeds 1, "
        "but they are read as pixels. If they are, pass --gt-units norm."
    )
    assert len(_said(fractions, OBJECTS, size=None)) == 1  # beside boxes of pixels
    assert "no number of 1 box exceeds 1" in _said(fractions[:1], OBJECTS)[0]  # no box is a part of a pixel
    assert _said([[0.0, 0.0, 1.0, 1.0]] * 2, OBJECTS) == []  # two of one pixel tell too little


def test_tiny_boxes_in_tiny_pictures_are_no_fractions() -> None:
    tiny = [[0.0, 0.0, 1.0, 1.0]] * 5
    assert _said(tiny, tiny, size=(8, 8)) == []
    assert _said(tiny, tiny, size=None) == []


def test_arrays_are_mended_where_they_are_made() -> None:
    # x = 0.6 w and y = 0.6 h: taken for corners, boxes of 0.4 w and 0.4 h, which cover 0.16 of the objects
    objects = [[30, 24, 50, 40], [48, 60, 80, 100], [36, 54, 60, 90], [60, 30, 100, 50], [24, 42, 40, 70]]
    rows = list(range(len(objects)))
    gt = BoxTable.from_arrays(rows, [0] * len(rows), objects, encoding="xywh")
    pred = BoxTable.from_arrays(rows, [0] * len(rows), objects, score=[0.5] * len(rows))
    (found,) = (one for one in evaluate(gt, pred).findings if one.code in CODES)
    assert "AP50 0.000 as given, 1.000 as xywh" in found.message
    assert found.message.endswith('Pass encoding="xywh" to BoxTable.from_arrays.')


@pytest.mark.parametrize("scale", [1e-9, 1e120])
def test_numbers_of_any_size_are_read_without_a_warning_of_numpy(scale: float) -> None:
    far = (np.array(OBJECTS) * scale).tolist()
    said_of_boxes(OBJECTS, far, *CODES)
    said_of_boxes(far, OBJECTS, *CODES, size=None)


def test_corners_go_before_corners_that_are_shifted_as_well() -> None:
    # Twenty-four boxes that are found a few pixels away: two numbers that are fitted explain it no better at IoU .75.
    rng = np.random.default_rng(3)
    objects = np.concatenate([rng.uniform(50, 300, (24, 2)), rng.uniform(80, 160, (24, 2))], axis=1).round(1)
    corners = np.concatenate([objects[:, :2], objects[:, :2] + objects[:, 2:]], axis=1)
    found = said_of_boxes(corners.tolist(), (objects + np.array([2, 1, 0, 0])).tolist(), *CODES, "box-resized")
    assert [one.code for one in found] == ["box-encoding"]
    assert "as xyxy" in found[0].message
