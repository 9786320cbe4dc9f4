from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.features.scale import Box, OverlapResult
from jaccard_eval.features.scale.compute import measure_overlap
from jaccard_eval.features.scale.report import MAX_ROWS, MAX_UNITS, draw_boxes, rasterise


def overlap(pred: Box, gt: Box) -> OverlapResult:
    return OverlapResult(version="0", pred_name="A", gt_name="B", image=None, **measure_overlap(pred, gt))


def test_a_pixel_is_two_characters_wide_and_every_area_is_labelled() -> None:
    drawn = draw_boxes(overlap((3, 0, 9, 3), (0, 1, 6, 5)))
    assert list(drawn.lines) == [
        "······················",
        "········░░░░ FP ░░░░··",
        "··▒▒▒▒▒▒██████░░░░░░··",
        "··▒▒▒▒▒▒█ TP █░░░░░░··",
        "··▒▒▒▒▒▒▒▒▒▒▒▒········",
        "··▒▒▒▒ FN ▒▒▒▒········",
        "········· TN ·········",
        "",
        "█ TP 6   ░ FP 12   ▒ FN 18   · TN   (areas in square px)",
    ]
    assert [line.isascii() for line in drawn.ascii_lines] == [True] * 9
    assert drawn.ascii_lines[5] == "..---- FN ----........"


def test_an_area_too_thin_for_a_label_is_in_the_legend() -> None:
    drawn = draw_boxes(overlap((0, 0, 10, 10), (0.2, 0, 10, 10)))
    assert not any("FP" in line for line in drawn.lines[:-1])
    assert drawn.lines[-1].startswith("█ TP 98   ░ FP 2   ▒ FN 0")


places = st.floats(-1e5, 1e5)


@given(places, places, st.floats(0, 1e5), st.floats(0, 1e5), places, places)
def test_any_two_boxes_fit(x: float, y: float, w: float, h: float, gx: float, gy: float) -> None:
    cells = rasterise((x, y, x + w, y + h), (gx, gy, gx + h, gy + w))
    assert len(cells) <= MAX_ROWS + 3
    assert {len(row) for row in cells} == {len(cells[0])}
    assert len(cells[0]) <= 2 * (MAX_UNITS + 3)


@given(st.integers(0, 9), st.integers(0, 6), st.integers(1, 12), st.integers(1, 8))
def test_whole_pixels_are_drawn_one_by_one(x: int, y: int, w: int, h: int) -> None:
    result = overlap((x, y, x + w, y + h), (4, 3, 12, 9))
    flat = [area for row in rasterise(result.pred, result.gt) for area in row]
    assert [flat.count(area) / 2 for area in ("TP", "FP", "FN")] == [result.tp, result.fp, result.fn]
