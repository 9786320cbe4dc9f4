import math
from dataclasses import replace

import pytest

from jaccard_eval.features.scale import LossRow, PlacementRow
from jaccard_eval.features.scale.report import loss_text, placement_text

AT_PLACE = PlacementRow(
    class_name="person",
    size=None,
    n=50,
    iou=0.8,
    missing=0.1,
    extra=0.1,
    shift_loss=0.1,
    size_loss=0.1,
    dx=0.0,
    dy=0.0,
    dx_relative=0.0,
    dy_relative=0.0,
    width_error=0.0,
    height_error=0.0,
    width_ratio=1.0,
    height_ratio=1.0,
    edge_error=3.0,
)
LOSS = LossRow(
    size="<32",
    gt=10,
    side=20.0,
    ap=0.5,
    localisation=0.3,
    false_positives=0.05,
    misses=0.15,
    within={1.0: 0.55, 2.0: 0.7},
    explained_by=2.0,
)


def test_errors_are_told_in_percent_and_pixels() -> None:
    row = replace(AT_PLACE, width_ratio=1.06, dy=2.0, consistent=("width_error", "dy"))
    assert placement_text(row) == "6 % too wide, 2 px low"
    row = replace(AT_PLACE, width_ratio=0.9, height_ratio=0.95, dx=-1.25, dy=-0.5)
    every = ("width_error", "height_error", "dx", "dy")
    told = "10 % too narrow, 5 % too short, 1.2 px too far left, 0.5 px high"
    assert placement_text(replace(row, consistent=every)) == told


def test_what_may_be_chance_or_rounds_to_nothing_is_not_told() -> None:
    assert placement_text(replace(AT_PLACE, width_ratio=1.06, dy=2.0)) == ""
    every = ("width_error", "height_error", "dx", "dy")
    assert placement_text(replace(AT_PLACE, width_ratio=1.004, dy=0.04, consistent=every)) == ""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "most is lost to localisation (0.30); an edge tolerance of 2 px recovers half of it"),
        (
            {"explained_by": None},
            "most is lost to localisation (0.30); no edge tolerance up to 2 px recovers half of it",
        ),
        (
            {"misses": 0.4, "ap": 0.25},
            "most is lost to misses (0.40); an edge tolerance of 2 px recovers half of the loss to localisation (0.30)",
        ),
        ({"localisation": 0.0, "ap": 0.8}, "most is lost to misses (0.15)"),
        ({"localisation": 0.001, "misses": 0.0, "false_positives": 0.002}, "almost nothing is lost"),
        ({"ap": math.nan}, "no ground truth"),
    ],
    ids=["explained", "unexplained", "misses", "no localisation", "nothing", "undefined"],
)
def test_a_size_says_what_it_loses_most_to(changes: dict[str, float], expected: str) -> None:
    assert loss_text(replace(LOSS, **changes)) == expected
