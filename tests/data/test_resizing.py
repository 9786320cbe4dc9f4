"""Resized images, by hand: what is done to boxes, and that it is undone."""

import numpy as np
import pytest

from jaccard_eval import BoxTable
from jaccard_eval.data.resizing import Resizing

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


@pytest.mark.parametrize("text", ["letterbox:640", "letterbox:640x512", "stretch:640x512", "scale:1/3", "scale:2"])
def test_a_text_is_read_back_as_it_was_written(text: str) -> None:
    assert str(Resizing.parse(text)) == text
