"""Boxes that leave their images of 640 x 480."""

import numpy as np
import pytest
from sides import said_of_boxes

from jaccard_eval.features.audit.boxes import leaving
from jaccard_eval.findings import Severity

GOOD = [[300.0, 200.0, 40.0, 30.0]] * 20


@pytest.mark.parametrize(
    ("box", "edges"),
    [
        ([-6.4, -4.8, 10, 10], []),  # a hundredth of the side is allowed
        ([-6.5, 0, 10, 10], ["left"]),
        ([0, -4.9, 10, 10], ["top"]),
        ([600, 0, 46.5, 10], ["right"]),
        ([0, 400, 10, 84.9], ["bottom"]),
        ([-20, -20, 700, 520], ["left", "top", "right", "bottom"]),
    ],
)
def test_a_box_leaves_its_image_by_more_than_a_hundredth_of_the_side(box: list[float], edges: list[str]) -> None:
    flags = leaving(np.array([box]), np.array([[640.0, 480.0]]), "px")[0].tolist()
    assert [edge for edge, flag in zip(("left", "top", "right", "bottom"), flags, strict=True) if flag] == edges


def test_in_small_images_a_pixel_is_allowed_and_in_fractions_only_a_hundredth() -> None:
    assert not leaving(np.array([[-1.0, 0, 5, 11.0]]), np.array([[10.0, 10.0]]), "px").any()
    assert leaving(np.array([[-0.011, 0, 0.5, 0.5]]), np.ones((1, 2)), "norm").tolist() == [[True, False, False, False]]


def test_no_box_leaves_an_image_of_unknown_size() -> None:
    assert not leaving(np.array([[-99.0, 0, 9999, 9999]]), np.full((1, 2), np.nan), "px").any()
    assert said_of_boxes(GOOD, [[-99, 0, 9999, 9999]], "box-outside", size=None) == []
    assert said_of_boxes(GOOD, [[-99, 0, 9999, 9999]], "box-outside", size=(0, 0)) == []  # 0: not known


def test_a_few_predictions_out_of_their_images_are_a_note_with_their_number_and_edges() -> None:
    (note,) = said_of_boxes(GOOD, [*GOOD[:18], [600, 200, 60, 30], [-20, 450, 40, 50]], "box-outside")
    assert (note.severity, note.count) == (Severity.NOTE, 2)
    assert "2 of 20 boxes leave their image (1 at the left, 1 at the right, 1 at the bottom)" in note.message
    assert "image 18.png: x y w h 600, 200, 60, 30 in 640 x 480" in note.message


def test_more_than_a_fifth_of_the_predictions_out_of_their_images_are_a_warning() -> None:
    out = [[600.0, 200.0, 60.0, 30.0]]
    assert said_of_boxes(GOOD, GOOD[:16] + out * 4, "box-outside")[0].severity is Severity.NOTE
    assert said_of_boxes(GOOD, GOOD[:15] + out * 5, "box-outside")[0].severity is Severity.WARNING


def test_an_object_whose_centre_is_out_of_its_image_is_a_warning_told_once() -> None:
    lost = [*GOOD[:19], [700.0, 200.0, 60.0, 30.0]]
    findings = said_of_boxes(lost, GOOD, "box-outside", "gt-unmatchable")
    (warning,) = (one for one in findings if one.severity is Severity.WARNING)
    assert warning.code == "box-outside"
    assert "1 of 20 boxes leaves its image (1 at the right); the centre of 1 lies outside" in warning.message


def test_boxes_larger_than_their_image_are_counted() -> None:
    (note,) = said_of_boxes(GOOD, [*GOOD[:19], [-50, -50, 800, 700]], "box-gigantic")
    assert (note.severity, note.count) == (Severity.NOTE, 1)
    assert "1 of 20 boxes is larger than its image" in note.message
    assert said_of_boxes(GOOD, [*GOOD[:19], [-20, -10, 660, 500]], "box-gigantic") == []  # 1.07 times the image
