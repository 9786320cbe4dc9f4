import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.alignment import Alignment
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import load_and_align
from jaccard_eval.features.scale.compute import choose_pair, measure_overlap
from jaccard_eval.options import SideOptions

corner, side = st.integers(0, 9), st.integers(1, 9)
boxes = st.tuples(corner, corner, side, side)


def test_every_measure_of_two_boxes_by_hand() -> None:
    # 10 x 10 and 8 x 12, 5 x 8 = 40 in common: 60 too many, 56 missing, 156 in all; both lie in 13 x 14 = 182.
    measured = measure_overlap((0, 0, 10, 10), (5, 2, 13, 14))
    assert (measured["tp"], measured["fp"], measured["fn"]) == (40, 60, 56)
    assert measured["iou"] == pytest.approx(40 / 156, abs=1e-15)
    assert measured["distance"] == pytest.approx(116 / 156, abs=1e-15)
    assert measured["giou"] == pytest.approx(40 / 156 - 26 / 182, abs=1e-15)
    assert (measured["ioa_pred"], measured["ioa_gt"]) == (0.4, pytest.approx(40 / 96, abs=1e-15))
    assert measured["exchange_rate"] == pytest.approx((96 + 60) / (96 - 55), abs=1e-12)
    assert measured["centre_distance"] == pytest.approx(math.hypot(9 - 5, 8 - 5), abs=1e-12)
    assert measured["edge_error"] == 5


def test_boxes_that_do_not_meet_have_only_false_areas() -> None:
    measured = measure_overlap((0, 0, 2, 2), (10, 0, 13, 2))
    assert (measured["tp"], measured["fp"], measured["fn"], measured["iou"]) == (0, 4, 6, 0)
    assert measured["giou"] == pytest.approx(-16 / 26, abs=1e-15)


def test_a_box_and_its_copy_have_no_errors() -> None:
    measured = measure_overlap((1, 2, 4, 8), (1, 2, 4, 8))
    assert (measured["iou"], measured["giou"], measured["distance"], measured["edge_error"]) == (1, 1, 0, 0)
    assert math.isnan(measured["exchange_rate"])


def test_encodings_name_the_same_boxes() -> None:
    corners = measure_overlap((10, 20, 30, 60), (20, 20, 40, 50))
    assert measure_overlap((10, 20, 20, 40), (20, 20, 20, 30), "xywh") == corners
    assert measure_overlap((20, 40, 20, 40), (30, 35, 20, 30), "cxcywh") == corners


@given(pred=boxes, gt=boxes)
def test_areas_are_counted_pixels(pred: tuple[int, ...], gt: tuple[int, ...]) -> None:
    masks = np.zeros((2, 20, 20), dtype=np.bool_)
    for mask, (x, y, w, h) in zip(masks, (pred, gt), strict=True):
        mask[y : y + h, x : x + w] = True
    measured = measure_overlap(pred, gt, "xywh")
    counted = (masks[0] & masks[1]).sum(), (masks[0] & ~masks[1]).sum(), (masks[1] & ~masks[0]).sum()
    assert (measured["tp"], measured["fp"], measured["fn"]) == counted
    assert measured["iou"] == pytest.approx(counted[0] / sum(counted), abs=1e-12)


def test_what_is_no_box_is_refused_by_its_side() -> None:
    with pytest.raises(UsageError, match=r"ground truth.*x2 < x1"):
        measure_overlap((0, 0, 1, 1), (5, 0, 1, 1))
    with pytest.raises(UsageError, match="prediction"):
        measure_overlap((0, 0, math.nan, 1), (0, 0, 1, 1))


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> Alignment:
    """Two images called a.jpg in different folders, and b.jpg with two boxes on either side."""
    folder = tmp_path_factory.mktemp("pair")
    header = "image,class,xmin,ymin,xmax,ymax"
    gt = [header, "x/a.jpg,dog,0,0,10,10", "y/a.jpg,dog,0,0,10,10", "b.jpg,dog,0,0,10,10", "b.jpg,cat,50,50,60,60"]
    pred = [f"{header},score", "b.jpg,dog,51,50,60,60,.9", "b.jpg,dog,2,0,10,10,.8"]
    (folder / "gt.csv").write_text("\n".join(gt) + "\n")
    (folder / "pred.csv").write_text("\n".join(pred) + "\n")
    return load_and_align(folder / "gt.csv", folder / "pred.csv", SideOptions()).aligned


def test_the_boxes_that_overlap_most_are_meant_unless_told_otherwise(aligned: Alignment) -> None:
    def chosen(**indices: int) -> list[list[float]]:
        pair = choose_pair(aligned, "b.jpg", **indices)
        return [aligned.pred.xywh[pair.pred].tolist(), aligned.gt.xywh[pair.gt].tolist()]

    # The dog found on the cat: 9 x 10 of 100. The dog on the dog: 8 x 10 of 100.
    assert chosen() == [[51, 50, 9, 10], [50, 50, 10, 10]]
    assert chosen(gt_index=0) == [[2, 0, 8, 10], [0, 0, 10, 10]]
    assert chosen(pred_index=1, gt_index=1) == [[2, 0, 8, 10], [50, 50, 10, 10]]


def test_an_image_may_be_called_by_the_end_of_its_name(aligned: Alignment) -> None:
    assert choose_pair(aligned, "b").image == choose_pair(aligned, "b.jpg").image == "b.jpg"


@pytest.mark.parametrize(
    ("image", "indices", "message"),
    [
        ("c.jpg", {}, r"no image is named 'c.jpg'. Did you mean"),
        ("a.jpg", {}, r"2 images are named 'a.jpg': 'x/a.jpg', 'y/a.jpg'. Use the full name"),
        ("x/a.jpg", {}, r"image 'x/a.jpg' has no predictions"),
        ("b.jpg", {"gt_index": 2}, r"image 'b.jpg' has 2 ground-truth boxes, 0 to 1; got 2"),
        ("b.jpg", {"pred_index": -1}, r"has 2 predictions, 0 to 1; got -1"),
    ],
    ids=["unknown", "ambiguous", "empty", "beyond", "negative"],
)
def test_what_is_not_there_is_said(
    image: str, indices: dict[str, int], message: str, aligned: Alignment, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        choose_pair(aligned, image, **indices)
