"""Matching of whole scenes: what is capped, ignored and kept apart, and where rows come from."""

from dataclasses import fields

import numpy as np
import pytest
from pictures import det, gt, match

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO, VOC2012, AreaRange, Protocol
from jaccard_eval.matching import matchtable
from jaccard_eval.matching.matchtable import Keyed, MatchTable, Pairs, Ranking, match_boxes

AT_50 = 0  # the first threshold


def matched(table: MatchTable, t: int = AT_50, area: int = 0) -> dict[int, int]:
    """Ground-truth row that each detection, by its row in the predictions, matches."""
    choice = table.chosen_pairs(area, t)
    return {
        int(table.source[d]): int(table.gt_source[table.pair_gt[pair]])
        for d, pair in zip(table.candidate, choice, strict=True)
        if pair >= 0
    }


def test_boxes_of_other_classes_and_images_do_not_match() -> None:
    truth = [gt("cat 0 0 10 10"), gt("dog 0 0 10 10", "b")]
    assert matched(match(truth, [det("dog 0 0 10 10", 0.9)])) == {}


def test_pooled_classes_match_each_other() -> None:
    pooled = COCO.with_options(class_agnostic=True)
    assert matched(match([gt("cat 0 0 10 10")], [det("dog 0 0 10 10", 0.9)], pooled)) == {0: 0}


def test_detections_stand_by_class_then_score_then_image_then_place_in_the_file() -> None:
    detections = [
        det("dog 0 0 1 1", 0.5, "b"),
        det("dog 0 0 1 1", 0.5, "a"),
        det("cat 0 0 1 1", 0.1, "b"),
        det("dog 0 0 1 1", 0.9, "b"),
        det("dog 0 0 1 1", 0.5, "a"),
    ]
    assert match([], detections).source.tolist() == [2, 3, 1, 4, 0]


def test_the_devkit_takes_ties_in_the_order_of_the_file() -> None:
    detections = [det("dog 0 0 1 1", 0.5, "b"), det("dog 0 0 1 1", 0.5, "a"), det("dog 0 0 1 1", 0.9, "b")]
    assert match([], detections, VOC2012).source.tolist() == [2, 0, 1]


def test_the_cap_is_per_image_and_class() -> None:
    detections = [det(f"{name} 0 0 1 1", score, image) for name in "xy" for image in "ab" for score in (0.1, 0.2, 0.3)]
    table = match([], detections, COCO.with_options(max_dets=(1, 2)))
    assert sorted(table.source.tolist()) == [1, 2, 4, 5, 7, 8, 10, 11]
    assert sorted(table.rank.tolist()) == [0] * 4 + [1] * 4


def test_no_cap_keeps_every_detection() -> None:
    detections = [det("dog 0 0 1 1", 0.5)] * 150
    assert [len(match([], detections, one)) for one in (COCO, COCO.with_options(max_dets=()))] == [100, 150]


@pytest.mark.parametrize("changes", [{}, {"class_agnostic": True}, {"score_ties": "file"}, {"assignment": "every"}])
def test_a_capped_table_spares_what_it_holds_and_changes_nothing(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, n = np.random.default_rng(7), 600
    image, label, corner = rng.integers(0, 4, n), rng.integers(0, 3, n), rng.integers(0, 9, (n, 2))
    corners, score = np.hstack([corner, corner + rng.integers(4, 9, (n, 2))]), rng.integers(0, 20, n) / 20
    pred = BoxTable.from_arrays(image, label, corners, score=score)
    truth = BoxTable.from_arrays(image[:90], label[:90], corners[::-1][:90], crowd=rng.random(90) < 0.1)
    rules, shape = COCO.with_options(max_dets=(), **changes), {"n_images": 4, "n_labels": 3}
    capped = match_boxes(truth, pred, rules.with_options(max_dets=(1, 20)), **shape)
    whole = match_boxes(truth, pred, rules, **shape)
    assert 0 < len(capped.pair_gt) < len(whole.pair_gt)
    compared, keyed_pairs = list[int](), matchtable.keyed_pairs

    def counting(det: Keyed, *rest: object, **options: object) -> Pairs:
        compared.append(len(det.rows))
        return keyed_pairs(det, *rest, **options)

    monkeypatch.setattr(matchtable, "keyed_pairs", counting)
    again = match_boxes(truth, pred, rules, capped=capped, **shape)
    for column in fields(MatchTable):
        np.testing.assert_array_equal(getattr(again, column.name), getattr(whole, column.name), column.name)
    # Where a detection has a row for every pair, all are compared.
    assert compared == [n if "assignment" in changes else n - len(capped)]


def test_area_ranges_are_closed_at_both_ends() -> None:
    # 32 x 32 = 1024 and 96 x 96 = 9216 belong to two ranges each.
    table = match([gt("dog 0 0 32 32"), gt("dog 200 0 96 96")], [])
    assert table.gt_ignored.tolist() == [[False, False], [False, True], [False, False], [True, False]]
    assert (~table.gt_ignored).sum(axis=1).tolist() == [2, 1, 2, 1]


def test_the_area_of_ground_truth_is_that_of_the_file() -> None:
    assert match([gt("dog 0 0 100 100", area=1000.0)], []).gt_ignored[:, 0].tolist() == [False, False, True, True]


def test_the_flags_of_the_protocol_make_ground_truth_ignored() -> None:
    truth = [gt("dog 0 0 50 50", **{flag: True}) for flag in ("crowd", "difficult", "ignore", "group_of")]
    assert match(truth, []).gt_ignored[0].tolist() == [True, False, False, False]
    assert match(truth, [], VOC2012).gt_ignored[0].tolist() == [True, True, True, False]


def test_a_threshold_of_one_still_matches_an_exact_copy_whose_iou_rounds_below_one() -> None:
    # (0.5 + 0.2) - 0.2 is 0.49999999999999994: the intersection is one ulp short of the area.
    table = match([gt("dog 0.2 0 0.5 1")], [det("dog 0.2 0 0.5 1", 0.9)], COCO.with_options(iou_thresholds=(1.0,)))
    assert table.pair_overlap[0] < 1.0
    assert matched(table) == {0: 0}


def test_an_ignored_match_depends_on_the_area_range() -> None:
    table = match([gt("dog 0 0 50 50")], [det("dog 0 0 50 50", 0.9)])  # 2500 px²: medium
    assert [bool(table.ignored_match(area)[AT_50, 0]) for area in range(4)] == [False, True, False, True]


@pytest.mark.parametrize(
    ("truth", "detections"), [([], []), ([gt("dog 0 0 9 9")], []), ([], [det("dog 0 0 9 9", 1.0)])]
)
def test_an_empty_side_matches_nothing(truth: list, detections: list) -> None:
    table = match(truth, detections)
    assert (len(table), table.choice.shape, table.ignored_match(0).shape) == (len(detections), (4, 10, 0), (10, 0))


def test_rows_are_those_of_the_source_when_boxes_were_left_out() -> None:
    boxes = [(0, 0, 10, 10), (20, 20, 40, 40)]
    truth = BoxTable.from_arrays([0, 0], [0, 1], boxes)
    pred = BoxTable.from_arrays([0, 0], [0, 1], boxes, score=[0.1, 0.9])
    second = np.array([1])
    table = match_boxes(truth.take(second), pred.take(second), COCO, n_images=1, n_labels=2)
    assert matched(table) == {1: 1}


def test_custom_area_ranges_set_the_axis() -> None:
    protocol = COCO.with_options(areas=(AreaRange("any", 0.0, 1e9), AreaRange("tiny", 0.0, 100.0)))
    table = match([gt("dog 0 0 10 10"), gt("dog 0 0 10 11")], [], protocol)
    assert table.gt_ignored.tolist() == [[False, False], [False, True]]


def test_a_table_restricted_to_images_counts_them_from_0_and_keeps_the_rows_of_the_source() -> None:
    truth = [gt("dog 0 0 10 10", "a"), gt("dog 0 0 10 10", "b"), gt("cat 0 0 10 10", "c")]
    detections = [det("dog 0 0 10 10", 0.9, "a"), det("dog 0 0 10 10", 0.8, "b"), det("cat 0 0 10 10", 0.7, "c")]
    table = match(truth, detections).restrict(np.array([1, 2]))
    assert (table.image.tolist(), table.gt_image.tolist()) == ([1, 0], [0, 1])  # cat of c, then dog of b
    assert matched(table) == {1: 1, 2: 2}


def test_a_table_restricted_to_no_image_is_empty() -> None:
    table = match([gt("dog 0 0 10 10")], [det("dog 0 0 10 10", 0.9)]).restrict(np.array([], dtype=np.int64))
    assert (len(table), table.gt_ignored.shape) == (0, (4, 0))


GROUPS = VOC2012.with_options(
    assignment="objects_first", crowd_overlap="ioa", pixel_offset=0.0, reusable_flags=("group_of",), ignored_flags=()
)
IN_A_GROUP = [gt("dog 0 0 40 40", group_of=True), gt("dog 60 0 10 10"), gt("dog 0 60 20 20", group_of=True)]


def counted(protocol: Protocol, *scores: float) -> tuple[list[bool], list[bool], list[bool]]:
    """Hits and ignored detections by their rows, and which objects count.

    The first lies in the large group, the second by half, the third on the object, the fourth nowhere.
    """
    places = ("10 10 9 9", "35 0 10 10", "60 0 10 10", "90 90 5 5")
    detections = [det(f"dog {place}", score) for place, score in zip(places, scores, strict=True)]
    table = match(IN_A_GROUP, detections, protocol)
    ranking = Ranking.of(table, 1)
    order = np.argsort(table.source)
    hit, counts = (column[order].tolist() for column in ranking.outcomes(AT_50))
    return hit, [not count for count in counts], ranking.gt_counts[0].tolist()


def test_a_group_that_counts_is_one_hit_by_its_best_detection_and_the_others_are_ignored() -> None:
    hit, ignored, counts = counted(GROUPS, 0.5, 0.8, 0.7, 0.6)
    assert (hit, ignored) == ([False, True, True, False], [True, False, False, False])
    assert counts == [True, True, True]  # nothing lies in the second group: it is a miss


def test_a_group_that_is_ignored_takes_its_detections_and_is_no_miss() -> None:
    hit, ignored, counts = counted(GROUPS.with_options(ignored_flags=("group_of",)), 0.5, 0.8, 0.7, 0.6)
    assert (hit, ignored) == ([False, False, True, False], [True, True, False, False])
    assert counts == [False, True, False]


def test_the_best_score_of_a_group_must_be_above_0_to_find_it() -> None:
    hit, ignored, _ = counted(GROUPS, -1.0, 0.0, 0.7, 0.6)
    assert (hit, ignored) == ([False, False, True, False], [True, True, False, False])


def test_a_table_of_some_images_keeps_its_groups() -> None:
    truth = [gt("dog 0 0 9 9", "a"), gt("dog 0 0 40 40", "b", group_of=True)]
    detections = [det("dog 0 0 9 9", score, image) for image in "ab" for score in (0.9, 0.8)]
    ranking = Ranking.of(match(truth, detections, GROUPS).restrict(np.array([1])), 1)
    assert [column.tolist() for column in ranking.outcomes(AT_50)] == [[True, False], [True, False]]
