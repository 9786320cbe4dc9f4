import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.boxtable import BoxTable, from_xywh, to_xywh
from jaccard_eval.errors import UsageError
from jaccard_eval.options import ENCODINGS

BOX = [[10.0, 20.0, 30.0, 60.0]]
FLAGS = ("crowd", "difficult", "group_of", "ignore")


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("xywh", [10, 20, 30, 60]),
        ("xyxy", [10, 20, 20, 40]),  # 30 - 10, 60 - 20
        ("cxcywh", [-5, -10, 30, 60]),  # 10 - 30/2, 20 - 60/2
        ("xxyy", [10, 30, 10, 30]),  # x 10 to 20, y 30 to 60
        ("yxyx", [20, 10, 40, 20]),  # y 10 to 30, x 20 to 60
    ],
)
def test_every_encoding_becomes_left_top_width_height(encoding: str, expected: list[float]) -> None:
    assert BoxTable.from_arrays([0], [0], BOX, encoding=encoding).xywh.tolist() == [expected]


def test_corners_are_the_default() -> None:
    assert BoxTable.from_arrays([0], [0], BOX).xywh.tolist() == [[10, 20, 20, 40]]


def test_the_area_is_width_times_height_unless_given() -> None:
    assert BoxTable.from_arrays([0], [0], BOX).area.tolist() == [800]
    assert BoxTable.from_arrays([0], [0], BOX, area=[123.5]).area.tolist() == [123.5]


def test_flags_are_off_and_rows_are_numbered_unless_given() -> None:
    table = BoxTable.from_arrays([0, 0], [0, 0], BOX * 2, crowd=[0, 1])
    assert table.crowd.tolist() == [False, True]
    assert not any(getattr(table, flag).any() for flag in FLAGS[1:])
    assert table.source.tolist() == [0, 1]
    assert table.score is None


def test_columns_have_the_types_that_the_engine_expects() -> None:
    table = BoxTable.from_arrays([0], [0], [[1, 2, 3, 4]], score=[1])
    types = {name: column.dtype for name, column in table.columns().items() if column is not None}
    assert types == {
        "image": np.int32, "label": np.int32, "xywh": np.float64, "score": np.float64, "area": np.float64,
        "crowd": np.bool_, "difficult": np.bool_, "group_of": np.bool_, "ignore": np.bool_, "source": np.int64,
    }  # fmt: skip


def test_an_empty_table_has_the_shape_of_a_table() -> None:
    table = BoxTable.from_arrays([], [], [], score=[])
    assert len(table) == 0
    assert table.xywh.shape == (0, 4)


def test_columns_are_read_only_and_the_caller_keeps_arrays_that_are_not() -> None:
    boxes, score = np.array(BOX), np.array([0.5])
    table = BoxTable.from_arrays([0], [0], boxes, score=score, encoding="xywh")
    for column in filter(lambda column: column is not None, table.columns().values()):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0  # type: ignore[index]
    boxes[0, 0] = score[0] = 7.0
    assert table.xywh.tolist() == BOX
    assert table.score is not None
    assert table.score.tolist() == [0.5]


def test_rows_are_taken_by_index_or_mask_in_their_order() -> None:
    table = BoxTable.from_arrays([0, 1, 2], [0, 0, 0], BOX * 3, score=[0.1, 0.2, 0.3])
    assert table.take(np.array([2, 0])).image.tolist() == [2, 0]
    assert table.take(np.array([False, True, False])).source.tolist() == [1]
    assert not table.take(np.array([0])).image.flags.writeable


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"encoding": "ltrb"}, "unknown box encoding 'ltrb'; choose from xywh, xyxy, cxcywh, xxyy, yxyx"),
        ({"image": [0, 1]}, r"column 'image' has shape \(2,\); expected \(1,\)"),
        ({"score": [[0.5]]}, r"column 'score' has shape \(1, 1\); expected \(1,\)"),
        ({"score": [np.nan]}, "row 0: score is nan; numbers must be finite"),
        ({"score": [1e200]}, r"row 0: score is 1e\+200; numbers above 1e\+150 overflow"),
        ({"area": [np.inf]}, "row 0: area is inf; numbers must be finite"),
        ({"boxes": [[0, 0, 1e200, 1e-9]]}, r"row 0: xywh is .*; numbers above 1e\+150 overflow"),
        ({"boxes": [[-1.7e308, 0, 1.7e308, 0]], "encoding": "xyxy"}, "numbers must be finite"),
        ({"boxes": [[0, 0, np.nan, 1]]}, r"row 0: xywh is \[ 0\.  0\. nan  1\.\]; numbers must be finite"),
        ({"label": [-1]}, "image and label must not be negative"),
        # left 50, top 60, width 20, height 30, taken for two corners: 20 - 50 and 30 - 60
        (
            {"boxes": [[50, 60, 20, 30]]},
            r"row 0: read as xyxy, .* is -30 wide and -30 high; .* 1 of 1.*encoding='xywh'",
        ),
        ({"colour": [1]}, r"unknown columns \['colour'\]; choose from \['area', 'crowd'"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(columns: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"image": [0], "label": [0], "boxes": BOX}
    with pytest.raises(UsageError, match=message):
        BoxTable.from_arrays(**(good | columns))  # type: ignore[arg-type]


@pytest.mark.parametrize("boxes", [[[1, 2, 3]], [1, 2, 3, 4, 5], [[[1, 2], [3, 4]]]])
def test_boxes_that_do_not_have_four_numbers_are_refused(boxes: list[object]) -> None:
    with pytest.raises(UsageError, match=r"boxes have shape .*; expected \(n, 4\)"):
        BoxTable.from_arrays([0], [0], boxes)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"image": [0.5]}, "column 'image' must hold whole numbers"),
        ({"label": ["dog", 1], "image": [0, 0], "boxes": [*BOX, *BOX]}, "column 'label' must hold whole numbers"),
        ({"image": [2**31]}, "column 'image' must hold whole numbers"),
        ({"image": [None]}, "column 'image' must hold whole numbers"),
        ({"crowd": [2]}, "column 'crowd' must hold true or false"),
        ({"score": ["high"]}, "column 'score' must hold numbers"),
        ({"boxes": [["a", "b", "c", "d"]]}, "column 'boxes' must hold numbers"),
    ],
)
def test_values_that_would_be_cut_or_misread_are_refused(columns: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"image": [0], "label": [0], "boxes": BOX}
    with pytest.raises(UsageError, match=message):
        BoxTable.from_arrays(**(good | columns))  # type: ignore[arg-type]


def test_numbers_in_arrays_of_objects_are_read() -> None:
    # Nullable columns of pandas arrive as arrays of objects.
    table = BoxTable.from_arrays(np.array([3], dtype=object), [0], np.array(BOX, dtype=object))
    assert table.image.tolist() == [3]
    assert table.xywh.tolist() == [[10, 20, 20, 40]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"boxes": [*BOX, [1, 2, 3]]}, "^column 'boxes' has 4 values in row 0 and 3 values in row 1; "),
        ({"label": [0, [1, 2]]}, "^column 'label' has a value alone in row 0 and 2 values in row 1; "),
        ({"boxes": [[BOX[0], BOX[0]], [BOX[0], 1]]}, "^column 'boxes' holds lists of several lengths; "),
    ],
)
def test_lists_of_several_lengths_are_refused_by_row(columns: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"image": [0, 0], "label": [0, 0], "boxes": BOX * 2}
    with pytest.raises(UsageError, match=message):
        BoxTable.from_arrays(**(good | columns))  # type: ignore[arg-type]


def test_names_that_differ_in_anything_are_different_names() -> None:
    table = BoxTable.from_arrays(["b\0", "a", "b"], np.array(["dog", "dog", "cat"]), BOX * 3)
    assert (table.image.tolist(), table.image_names) == ([2, 0, 1], ("a", "b", "b\0"))
    assert (table.label.tolist(), table.class_names) == ([1, 1, 0], ("cat", "dog"))


COORDINATE = st.integers(-1000, 1000).map(float)
SIDE = st.integers(0, 1000).map(float)


@given(COORDINATE, COORDINATE, SIDE, SIDE)
def test_all_encodings_of_a_box_in_whole_pixels_are_one_box(x: float, y: float, w: float, h: float) -> None:
    corners = np.array([[x, y, x + w, y + h]])
    centre = np.array([[x + w / 2, y + h / 2, w, h]])  # halves are exact
    assert to_xywh(corners, "xyxy").tolist() == to_xywh(centre, "cxcywh").tolist() == [[x, y, w, h]]


@given(COORDINATE, COORDINATE, SIDE, SIDE)
def test_a_box_in_whole_pixels_comes_back_from_every_encoding(x: float, y: float, w: float, h: float) -> None:
    box = np.array([[x, y, w, h]])
    for encoding in ENCODINGS:
        assert to_xywh(from_xywh(box, encoding), encoding).tolist() == box.tolist()
