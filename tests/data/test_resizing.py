"""Resized images, by hand: what is done to boxes, and that it is undone."""

import numpy as np
import pytest

from jaccard_eval import BoxTable, UsageError
from jaccard_eval.data.resizing import TURNS, Resizing
from jaccard_eval.similarity.keypoints import Keypoints

BOX = np.array([[100.0, 200.0, 50.0, 60.0]])


@pytest.mark.parametrize(
    ("text", "resized"),
    [
        # 1280 x 720 fills the width of 640 at half its size: 360 high, which leaves 280, 140 at the top.
        ("letterbox:640", [50, 240, 25, 30]),
        # 720 fills the height of 360 at half its size: 640 wide, which leaves 160, 80 at the left.
        ("letterbox:800x360", [130, 100, 25, 30]),
        ("stretch:640x72", [50, 20, 25, 6]),
        ("scale:0.5", [50, 100, 25, 30]),
        ("scale:1/2x1/4", [50, 50, 25, 15]),
        # Per cent, and fractions of a padded square: 1280 fills it, 280 px above the image are 280 / 1280.
        ("stretch:100", [7.8125, 250 / 9, 3.90625, 25 / 3]),
        ("letterbox:1", [100 / 1280, 480 / 1280, 50 / 1280, 60 / 1280]),
        ("pad:640", [50, 100, 25, 30]),
        ("pad:800x360", [50, 100, 25, 30]),
        # 720 to 360, unless 1280 exceeds 320: then a quarter.
        ("short:360,1000", [50, 100, 25, 30]),
        ("short:360,320", [25, 50, 12.5, 15]),
        ("offset:-20,5.5", [80, 205.5, 50, 60]),
        # 640 x 360, and 24 more make 384, the next multiple of 32: 12 at the top.
        ("rect:640", [50, 112, 25, 30]),
        # 300 / 1280 * 720 is 168.75, so 169 whole pixels: 131 are left, 65 of them at the top.
        ("letterbox-px:300", [100 * 300 / 1280, 200 * 300 / 1280 + 65, 50 * 300 / 1280, 60 * 300 / 1280]),
        ("mirror", [1130, 200, 50, 60]),
        ("flip", [100, 460, 50, 60]),
        ("swap", [200, 100, 60, 50]),
        # Counter-clockwise: what is on the right comes to the top.
        ("rot90", [200, 1130, 60, 50]),
        ("rot180", [1130, 460, 50, 60]),
        ("rot270", [460, 100, 60, 50]),
        ("anti", [460, 1130, 60, 50]),
        # Mirrored, then halved to 640 x 360, with 140 at the top.
        ("mirror+letterbox:640", [565, 240, 25, 30]),
        # On its side it is 720 x 1280: halved, with 140 at the left.
        ("rot90+letterbox:640", [240, 565, 30, 25]),
        # Fractions of 640 x 384 that an image of 640 x 360 was padded to.
        ("letterbox:640x384+stretch:1", [50 / 640, 112 / 384, 25 / 640, 30 / 384]),
    ],
)
def test_boxes_are_resized_with_their_image_and_back(text: str, resized: list[float]) -> None:
    resizing, sizes = Resizing.parse(text), np.array([[1280.0, 720.0]])
    np.testing.assert_allclose(resizing.apply(BOX, sizes), [resized], atol=1e-12)
    np.testing.assert_allclose(resizing.undo(np.array([resized], dtype=np.float64), sizes), BOX, atol=1e-12)


def test_areas_of_a_file_are_mapped_back_with_their_boxes() -> None:
    # Half the size: a quarter of the area, which the file gives as that of a mask.
    boxes = BoxTable.from_arrays([0], [0], BOX / 2, encoding="xywh", area=[500])
    mapped = Resizing.parse("scale:1/2").mapped_back(boxes, np.array([[1280.0, 720.0]]))
    assert (mapped.xywh.tolist(), mapped.area.tolist()) == (BOX.tolist(), [2000])


def test_turns_are_those_of_arrays() -> None:
    picture = np.zeros((40, 60))
    picture[5:12, 20:33] = 1
    turned = {
        "mirror": np.fliplr(picture),
        "flip": np.flipud(picture),
        "swap": picture.T,
        "rot90": np.rot90(picture),
        "rot180": np.rot90(picture, 2),
        "rot270": np.rot90(picture, 3),
        "anti": np.rot90(picture.T, 2),
    }
    assert turned.keys() == TURNS.keys()
    for turn, shown in turned.items():
        y, x = np.nonzero(shown)
        expected = [x.min(), y.min(), x.max() + 1 - x.min(), y.max() + 1 - y.min()]
        box = Resizing.parse(turn).apply(np.array([[20.0, 5.0, 13.0, 7.0]]), np.array([[60.0, 40.0]]))
        assert box.tolist() == [expected]


@pytest.mark.parametrize(
    "text",
    [
        *("letterbox:640", "letterbox:640x512", "stretch:640x512", "scale:1/3", "scale:2", "pad:640x480", "rect:640"),
        *("short:800,1333", "offset:-20,5.5", "offset:0,0", "letterbox-px:640", "mirror+short:600,1000", "swap+rot90"),
    ],
)
def test_a_text_is_read_back_as_it_was_written(text: str) -> None:
    assert str(Resizing.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "640", "rect:600", "letterbox:0", "scale:0", "short:800", "offset:1", "mirror:3", "stretch:1x", "+mirror"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected stretch:640x480"):
        Resizing.parse(text)


def test_points_are_mapped_back_with_their_boxes_unless_x_and_y_change_places() -> None:
    points = Keypoints(np.array([[[100.0, 200.0, 2.0], [150.0, 260.0, 1.0]]]))
    sizes = np.array([[1280.0, 720.0]])
    put = Resizing.parse("mirror+pad:640")
    # x: (1280 - 100) / 2 and (1280 - 150) / 2; y: halved.
    on_input = Keypoints(np.array([[[590.0, 100.0, 2.0], [565.0, 130.0, 1.0]]]))
    boxes = BoxTable.from_arrays([0], [0], on_input.bounds(), encoding="xywh", shapes=on_input)
    shapes: object = put.mapped_back(boxes, sizes).shapes
    assert isinstance(shapes, Keypoints)
    np.testing.assert_allclose(shapes.points, points.points, atol=1e-12)
    with pytest.raises(UsageError, match="exchanges x and y"):
        Resizing.parse("rot90").mapped_back(boxes, sizes)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("scale:0.5", "scale:1/2"),
        ("scale:1/3x0.25", "scale:1/3x1/4"),
        ("scale:0.333333333x0.59307", "scale:0.333333333x0.59307"),
        ("scale:416/640", "scale:0.65"),
        ("scale:13/21", "scale:13/21"),
    ],
)
def test_factors_are_shown_as_the_shorter_of_fraction_and_decimals(text: str, shown: str) -> None:
    assert str(Resizing.parse(text)) == shown
    assert Resizing.parse(shown) == Resizing.parse(text)
