"""Raw head outputs, decoded by hand: s(0) = 1/2, s(ln 3) = 3/4."""

import math

import numpy as np
import pytest

from jaccard_eval import UsageError, decode_grid

LN3 = math.log(3)


def raw_cell(anchors: int = 1, rows: int = 1, columns: int = 1, classes: int = 2) -> np.ndarray:
    return np.zeros((anchors, rows, columns, 5 + classes))


def test_a_yolov3_cell_decodes_to_its_box() -> None:
    # Row 1, column 2, stride 8: centre ((.75 + 2) · 8, (.5 + 1) · 8) = (22, 12); sides 10 · 3 = 30 and 4.
    raw = raw_cell(rows=2, columns=3)
    raw[0, 1, 2] = [LN3, 0, LN3, 0, LN3, LN3, 0]
    boxes, scores = decode_grid(raw, [[10, 4]], 8)
    assert boxes[5] == pytest.approx([7, 10, 37, 14])
    assert scores[5] == pytest.approx([0.75 * 0.75, 0.75 * 0.5])


def test_a_yolov5_cell_decodes_to_its_box() -> None:
    # Centre (2 · .75 - .5 + 2) · 8 = 24 and (2 · .5 - .5 + 1) · 8 = 12; sides 10 · (2 · .75)² = 22.5 and 4 · 1.
    raw = raw_cell(rows=2, columns=3)
    raw[0, 1, 2, :4] = [LN3, 0, LN3, 0]
    boxes, _ = decode_grid(raw, [[10, 4]], 8, formula="yolov5")
    assert boxes[5] == pytest.approx([24 - 11.25, 10, 24 + 11.25, 14])


def test_cells_come_in_the_order_of_anchors_rows_and_columns() -> None:
    boxes, scores = decode_grid(raw_cell(anchors=2, rows=2, columns=3), [[2, 2], [4, 4]], 10)
    assert (boxes.shape, scores.shape) == ((12, 4), (12, 2))
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    grid = [[5, 5], [15, 5], [25, 5], [5, 15], [15, 15], [25, 15]]
    assert centres.tolist() == grid * 2
    assert (boxes[:, 2] - boxes[:, 0]).tolist() == [2] * 6 + [4] * 6


def test_leading_axes_stay_and_float32_stays() -> None:
    raw = np.zeros((3, 2, 1, 4, 5, 6), dtype=np.float32)
    boxes, scores = decode_grid(raw, [[2, 2]], 8)
    assert (boxes.shape, scores.shape, boxes.dtype) == ((3, 2, 20, 4), (3, 2, 20, 1), np.float32)
    assert decode_grid(raw[:0], [[2, 2]], 8)[0].shape == (0, 2, 20, 4)


def test_without_classes_the_score_is_the_objectness() -> None:
    assert decode_grid(raw_cell(classes=0), [[2, 2]], 8)[1].tolist() == [[0.5]]


def test_large_logits_saturate_without_a_warning() -> None:
    raw = np.full((1, 1, 1, 6), 1e4)
    boxes, scores = decode_grid(raw, [[2, 2]], 8)
    assert np.isfinite(boxes).all()
    assert scores.tolist() == [[1.0]]
    assert decode_grid(-raw, [[2, 2]], 8)[1].tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("raw", "anchors", "stride", "message"),
    [
        (np.zeros((2, 3, 6)), [[1, 1]], 8, r"raw has shape \(2, 3, 6\)"),
        (np.zeros((1, 2, 3, 4)), [[1, 1]], 8, r"4 \+ 1 \+ classes"),
        (raw_cell(), [[1, 1], [2, 2]], 8, r"needs \(1, 2\)"),
        (raw_cell(), [[1, 0]], 8, "must be positive"),
        (raw_cell(), [[1, 1]], 0, "must be positive"),
        (np.where(np.arange(7) == 5, np.nan, raw_cell()), [[1, 1]], 8, r"raw\[0, 0, 0, 5\] is nan"),
        ([[[["a"] * 7]]], [[1, 1]], 8, "must hold numbers"),
    ],
)
def test_what_does_not_fit_is_refused(raw: object, anchors: object, stride: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        decode_grid(raw, anchors, stride)


def test_an_unknown_formula_is_refused() -> None:
    with pytest.raises(UsageError, match="choose from yolov3, yolov5"):
        decode_grid(raw_cell(), [[1, 1]], 8, formula="yolov4")
