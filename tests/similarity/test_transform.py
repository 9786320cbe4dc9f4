import numpy as np
import pytest

from jaccard_eval import UsageError, clip, scale


def test_boxes_are_cut_off_at_all_four_borders() -> None:
    assert clip([[-5, -6, 200, 300], [10, 20, 30, 40]], (100, 50)).tolist() == [[0, 0, 100, 50], [10, 20, 30, 40]]


def test_a_box_beside_the_image_ends_without_area_on_its_border() -> None:
    assert clip([[120, 10, 150, 20], [-9, 10, -2, 20]], (100, 50)).tolist() == [[100, 10, 100, 20], [0, 10, 0, 20]]


@pytest.mark.parametrize(
    ("encoding", "box", "expected"),
    [
        ("xywh", [-5, 10, 25, 80], [0, 10, 20, 40]),
        ("cxcywh", [7.5, 50, 25, 80], [10, 30, 20, 40]),  # x from -5 to 20, y from 10 to 90: 0 to 20, 10 to 50
        ("xyxy_norm", [-0.5, 0.2, 0.5, 1.5], [0, 0.2, 0.5, 1]),
    ],
)
def test_a_clipped_box_keeps_its_encoding(encoding: str, box: list[float], expected: list[float]) -> None:
    assert clip([box], (100, 50), encoding=encoding).tolist() == [expected]


def test_scaling_moves_and_grows_boxes_with_their_image() -> None:
    assert scale([[10, 20, 30, 40]], 2).tolist() == [[20, 40, 60, 80]]
    assert scale([[10, 20, 30, 40]], (2, 0.5)).tolist() == [[20, 10, 60, 20]]


def test_float32_stays_and_the_input_is_not_touched() -> None:
    boxes = np.array([[-5, 10, 20, 90]], dtype=np.float32)
    assert clip(boxes, (100, 50)).dtype == scale(boxes, 2).dtype == np.float32
    assert boxes.tolist() == [[-5, 10, 20, 90]]


def test_no_boxes_stay_no_boxes() -> None:
    assert clip([], (10, 10)).shape == scale([], 2).shape == (0, 4)


@pytest.mark.parametrize("factor", [0, -1, (1, 0), (1, 2, 3), float("nan")])
def test_a_factor_that_is_no_scale_is_refused(factor: object) -> None:
    with pytest.raises(UsageError, match="factor must be"):
        scale([[0, 0, 1, 1]], factor)
