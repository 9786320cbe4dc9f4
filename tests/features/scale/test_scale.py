"""Sensitivity to scale through the public verb: hand examples, brute force, and the numbers of the evaluation."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import Picture, det, gt, sensitivity

import jaccard_eval
from jaccard_eval import BoxTable, DataError, ScaleOptions, UsageError
from jaccard_eval.features.scale import LossRow, PlacementRow, SensitivityResult

AP_HALF = 51 / 101  # half of the objects found, nothing else: precision 1 at the 51 recall points up to 1/2


def losses(result: SensitivityResult, size: str = "all") -> LossRow:
    (row,) = [row for row in result.losses if row.size == size]
    return row


def placement(result: SensitivityResult, class_name: str | None = None, size: str | None = None) -> PlacementRow:
    (row,) = [row for row in result.placement if (row.class_name, row.size) == (class_name, size)]
    return row


def test_an_object_not_found_is_a_miss() -> None:
    row = losses(sensitivity([gt("dog 0 0 10 10"), gt("dog 50 50 10 10")], [det("dog 0 0 10 10", 0.9)]))
    assert row.ap == pytest.approx(AP_HALF, abs=1e-12)
    assert (row.localisation, row.misses) == (pytest.approx(0, abs=1e-12), pytest.approx(50 / 101, abs=1e-12))
    assert row.false_positives == pytest.approx(0, abs=1e-12)
    assert row.explained_by is None


def test_a_found_object_whose_box_is_off_is_a_loss_to_localisation() -> None:
    # 4 px to the right: 6 x 10 of 14 x 10, an IoU of 3/7, below every threshold but found.
    row = losses(sensitivity([gt("dog 0 0 10 10")], [det("dog 4 0 10 10", 0.9)], pixels=(2.0, 4.0, 8.0)))
    assert (row.ap, row.localisation) == (0, pytest.approx(1, abs=1e-12))
    assert (row.false_positives, row.misses) == (pytest.approx(0, abs=1e-12), 0)
    assert row.within == {2.0: 0, 4.0: pytest.approx(1, abs=1e-12), 8.0: pytest.approx(1, abs=1e-12)}
    assert row.explained_by == 4.0


def test_a_detection_of_nothing_before_the_right_one_is_a_loss_to_false_positives() -> None:
    row = losses(sensitivity([gt("dog 0 0 10 10")], [det("dog 50 50 9 9", 0.9), det("dog 0 0 10 10", 0.8)]))
    assert (row.ap, row.false_positives) == (pytest.approx(0.5, abs=1e-12), pytest.approx(0.5, abs=1e-12))
    assert (row.localisation, row.misses) == (pytest.approx(0, abs=1e-12), 0)


def test_the_same_error_costs_the_small_object_and_is_within_the_same_tolerance() -> None:
    # Both boxes 3 px low. 10 x 10: 7 of 13, IoU .538, one of ten thresholds. 100 x 100: 97 of 103, IoU .942, nine.
    truth = [gt("dog 0 0 10 10"), gt("dog 200 200 100 100")]
    found = [det("dog 0 3 10 10", 0.9), det("dog 200 203 100 100", 0.8)]
    result = sensitivity(truth, found, edges=(32.0,), pixels=(2.0, 3.0))
    small, large = losses(result, "<32"), losses(result, ">=32")
    assert (small.ap, large.ap) == (pytest.approx(0.1, abs=1e-12), pytest.approx(0.9, abs=1e-12))
    assert small.within == large.within == {2.0: 0, 3.0: pytest.approx(1, abs=1e-12)}
    assert (small.side, large.side) == (10, 100)
    assert (small.explained_by, large.explained_by) == (3.0, 3.0)


def test_what_stands_for_an_object_is_the_closest_that_is_free() -> None:
    # Both objects are within 6 px of the first detection; the nearer one is taken, the other is left for the second.
    truth = [gt("dog 0 0 10 10"), gt("dog 5 0 10 10")]
    found = [det("dog 4 0 10 10", 0.9), det("dog 0 5 10 10", 0.8)]
    assert losses(sensitivity(truth, found, pixels=(6.0,))).within[6.0] == pytest.approx(1, abs=1e-12)


def test_a_crowd_absorbs_what_lies_inside_it_and_is_not_counted() -> None:
    truth = [gt("dog 0 0 10 10"), gt("dog 100 100 80 80", crowd=True)]
    found = [det("dog 120 120 10 10", 0.9), det("dog 0 0 10 10", 0.8)]
    result = sensitivity(truth, found, pixels=(1.0,))
    assert losses(result).gt == placement(result).n == 1
    assert losses(result).within[1.0] == pytest.approx(1, abs=1e-12)


def test_a_size_without_ground_truth_is_undefined() -> None:
    result = sensitivity([gt("dog 0 0 10 10")], [det("dog 0 0 10 10", 0.9)], edges=(32.0,))
    empty = losses(result, ">=32")
    assert empty.gt == 0
    numbers = [empty.side, empty.ap, empty.localisation, empty.false_positives, empty.misses, *empty.within.values()]
    assert all(map(math.isnan, [*numbers, placement(result, size=">=32").iou]))
    assert result.to_dict()["sizes"][2]["ap"] is None


def test_boxes_that_are_all_off_in_one_way_are_told_apart_from_noise() -> None:
    # 50 x 40 boxes, 53 x 40 found about the same centre but two pixels low; heights err by one pixel up and down.
    truth = [gt(f"person {100 * i} 10 50 40") for i in range(20)]
    found = [det(f"person {100 * i - 1.5} {12 - s / 2} 53 {40 + s}", 0.9) for i, s in enumerate([1, -1] * 10)]
    row = placement(sensitivity(truth, found), "person")
    assert (row.n, row.dx, row.dy, row.width_ratio, row.width_error) == (20, 0, 2, 1.06, 3)
    assert (row.dy_relative, row.height_ratio) == (0.05, 1)
    assert row.consistent == ("dy", "width_error")


def test_eight_errors_of_one_sign_may_be_chance_and_nine_are_not() -> None:
    # Two-sided sign test at 1 %: 2 / 2^8 = .0078, but with the continuity correction 7 < 2.576 √8 and 8 > 2.576 √9.
    def consistent(n: int) -> tuple[str, ...]:
        truth = [gt(f"dog {100 * i} 0 40 40") for i in range(n)]
        return placement(sensitivity(truth, [det(f"dog {100 * i + 1} 0 40 40", 0.9) for i in range(n)])).consistent

    assert (consistent(8), consistent(9)) == ((), ("dx",))


def test_pairs_are_grouped_by_class_by_size_and_by_both() -> None:
    truth = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 100 0 100 100")]
    found = [det("cat 1 0 10 10", 0.9), det("dog 52 0 10 10", 0.9), det("dog 103 0 100 100", 0.9)]
    result = sensitivity(truth, found, edges=(32.0,))
    offsets = {(row.class_name, row.size): (row.n, row.dx) for row in result.placement}
    assert offsets == {
        (None, None): (3, 2.0),
        (None, "<32"): (2, 1.5),
        (None, ">=32"): (1, 3.0),
        ("cat", None): (1, 1.0),
        ("dog", None): (2, 2.5),
        ("cat", "<32"): (1, 1.0),
        ("dog", "<32"): (1, 2.0),
        ("dog", ">=32"): (1, 3.0),
    }


def test_the_signature_holds_every_option() -> None:
    truth, base = [gt("dog 0 0 10 10"), gt("dog 50 0 40 40")], ScaleOptions()
    changed = {
        "bins": 1,
        "edges": (7.0,),
        "pixels": (3.0,),
        "pair_iou": 0.6,
    }
    signatures = {sensitivity(truth, [], **{name: value}).signature for name, value in changed.items()}
    assert len(signatures | {sensitivity(truth, [], bins=base.bins).signature}) == len(changed) + 1


def test_inclusive_pixels_count_on_every_side() -> None:
    # VOC: a box of corners 0 and 9 is 10 wide. Moved by 4, 6 x 10 of 14 x 10 as above.
    result = sensitivity([gt("dog 0 0 9 9")], [det("dog 4 0 9 9", 0.9)], protocol="voc2012", pair_iou=0.4)
    assert losses(result).side == 10
    assert placement(result).iou == pytest.approx(3 / 7, abs=1e-12)


def test_an_object_without_area_is_a_miss_that_no_pixel_spares() -> None:
    result = sensitivity(
        [gt("dog 0 0 0 10"), gt("dog 50 0 20 20")], [det("dog 50 0 20 20", 0.9)], bins=1, pixels=(1.0,)
    )
    assert losses(result).ap == pytest.approx(AP_HALF, abs=1e-12)


def test_sizes_in_pixels_must_be_known(tmp_path: Path) -> None:
    (tmp_path / "gt").mkdir()
    (tmp_path / "gt" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "pred").mkdir()
    (tmp_path / "pred" / "a.txt").write_text("0 0.5 0.5 0.2 0.2 0.9\n")
    with pytest.raises(DataError, match=r"errors are measured in pixels.*ReadOptions\(images=\.\.\.\)"):
        jaccard_eval.sensitivity(tmp_path / "gt", tmp_path / "pred")


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 0},
        {"edges": (32.0, 16.0)},
        {"pixels": (0.0,)},
        {"pixels": (2.0, 2.0)},
        {"pair_iou": 1.5},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"must be .*, got"):
        ScaleOptions(**options)


def test_nothing_at_all_is_undefined_without_an_error() -> None:
    result = jaccard_eval.sensitivity(BoxTable.from_arrays([], [], []), BoxTable.from_arrays([], [], [], score=[]))
    assert math.isnan(result.losses[0].ap)
    assert result.to_dict()["undefined"]["AP"] == "no ground truth"


def test_plain_numbers_are_those_of_the_evaluation(shared_data: Path) -> None:
    # Oracle: pycocotools 2.0.11 on instances_val2014_100 and its fake detections, AP 0.5045806987249628.
    sides = _coco_sample(shared_data)
    result = jaccard_eval.sensitivity(*sides, scale=ScaleOptions(edges=(32.0, 96.0)))
    assert losses(result).ap == jaccard_eval.evaluate(*sides)["AP"] == pytest.approx(0.5045806987249628, abs=1e-12)
    for row in result.losses:
        assert row.ap + row.localisation + row.false_positives + row.misses == pytest.approx(1, abs=1e-12)


def _coco_sample(shared_data: Path) -> tuple[Path, Path]:
    return (
        shared_data / "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        shared_data / "cocoapi/results/instances_val2014_fakebbox100_results.json",
    )


coordinates = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=60)
@given(truth=st.lists(coordinates, min_size=1, max_size=6), found=st.lists(coordinates, max_size=8))
def test_matching_by_edges_agrees_with_serving_one_detection_after_the_other(
    truth: list[tuple[int, ...]], found: list[tuple[int, ...]]
) -> None:
    pixels = (1.0, 3.0, 7.0)
    pictures = [gt(f"dog {x} {y} {w} {h}") for x, y, w, h in truth]
    detections = [det(f"dog {x} {y} {w} {h}", 0.9 - 0.1 * i) for i, (x, y, w, h) in enumerate(found)]
    result = losses(sensitivity(pictures, detections, pixels=pixels))
    for k in pixels:
        assert result.within[k] == pytest.approx(_serial_ap(pictures, detections, k), abs=1e-9)


def _serial_ap(truth: Sequence[Picture], found: Sequence[Picture], pixels: float) -> float:
    """Average precision over 101 recall values; each detection, by score, takes the closest free object within reach.

    Of equally close objects the later one is taken, as COCO takes the later one of equal IoU.
    """
    free, hits = set(range(len(truth))), []
    for one in found:
        near = [(_distance(truth[i], one), -i) for i in free if _distance(truth[i], one) <= pixels]
        hits.append(bool(near))
        free -= {-min(near)[1]} if near else set()
    tp = np.cumsum(hits)
    curve = [(n / len(truth), n / (i + 1)) for i, n in enumerate(tp.tolist())]
    return float(np.mean([max((p for r, p in curve if r >= at), default=0.0) for at in np.linspace(0, 1, 101)]))


def _distance(first: Picture, second: Picture) -> float:
    sides = [(x, y, x + w, y + h) for x, y, w, h in (first.xywh, second.xywh)]
    return max(abs(a - b) for a, b in zip(*sides, strict=True))


@settings(max_examples=40)
@given(truth=st.lists(coordinates, min_size=1, max_size=6), found=st.lists(coordinates, max_size=6))
def test_what_is_lost_adds_up_and_misses_are_not_negative(
    truth: list[tuple[int, ...]], found: list[tuple[int, ...]]
) -> None:
    pictures = [gt(f"dog {x} {y} {w} {h}") for x, y, w, h in truth]
    detections = [det(f"dog {x} {y} {w} {h}", 0.5 + 0.01 * i) for i, (x, y, w, h) in enumerate(found)]
    for row in itertools.islice(sensitivity(pictures, detections, bins=2).losses, 3):
        if row.gt:
            assert row.ap + row.localisation + row.false_positives + row.misses == pytest.approx(1, abs=1e-12)
            assert 0 <= row.misses <= 1
            assert row.false_positives >= -1e-12
