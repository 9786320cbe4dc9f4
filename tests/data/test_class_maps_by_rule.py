"""Named maps of classes: each rule on a picture of both lists."""

import pytest
from two_sides import classes

from jaccard_eval.data.alignment import COCO_IDS, NAMED_MAPS, class_map_names, match_classes, rows_of_named
from jaccard_eval.data.dataset import LabelMap
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog, Where

COCO = LabelMap(COCO_IDS, tuple(f"c{number}" for number in COCO_IDS), named=True)


def _named(name: str, gt: LabelMap, pred: LabelMap) -> list[int]:
    return rows_of_named(name, gt, pred).tolist()


def _ids(*numbers: int) -> LabelMap:
    return LabelMap(numbers, tuple(map(str, numbers)), named=False)


def test_coco_has_80_categories_with_ids_up_to_90() -> None:
    # person 1, motorcycle 4, stop sign 13 after the gap at 12, hair drier 89, toothbrush 90
    assert (len(COCO_IDS), COCO_IDS[0], COCO_IDS[10:12], COCO_IDS[-2:]) == (80, 1, (11, 13), (89, 90))


@pytest.mark.parametrize(
    ("name", "pred", "expected"),
    [
        ("id", "1 3", [0, 2]),
        ("id", "'3' dog", [2, -1]),
        ("id+1", "0 2 3", [0, 2, -1]),
        ("id-1", "2 4 5", [0, 2, -1]),
        ("contiguous", "0 1 2 3", [0, 1, 2, -1]),
        ("contiguous-from-1", "0 1 2 3", [-1, 0, 1, 2]),
        ("order", "5 7 9 11", [0, 1, 2, -1]),
        ("alphabetical", "0 1 2", [1, 2, 0]),
        ("alphabetical-from-1", "1 2 3", [1, 2, 0]),
        ("without-first", "0 1 2", [1, 2, -1]),
    ],
)
def test_ids_become_classes_by_the_rule_of_the_map(name: str, pred: str, expected: list[int]) -> None:
    assert _named(name, classes("1=zebra 2=ant 3=bee"), classes(pred, named=False)) == expected


def test_names_correspond_whatever_their_case_and_spacing() -> None:
    gt, pred = classes("1=traffic_light 2=Dog"), LabelMap((0, 1, 2), ("dog", "Traffic Light", "cat"), named=True)
    assert _named("name", gt, pred) == [1, 0, -1]


def test_an_index_counts_the_categories_of_coco_also_where_the_ground_truth_has_a_few_of_them() -> None:
    assert _named("coco80-91", COCO, _ids(*range(80))) == list(range(80))
    assert _named("coco80-91-from-1", COCO, _ids(*range(1, 81))) == list(range(80))
    few = _ids(1, 13, 90)  # places 0, 11 and 79
    assert _named("coco80-91", few, _ids(0, 11, 12, 79)) == [0, 1, -1, 2]
    assert _named("coco80-91-from-1", few, _ids(0, 1, 12, 80)) == [-1, 0, 1, 2]


def test_the_sparse_ids_of_coco_become_places_among_its_categories() -> None:
    assert _named("coco91-80", _ids(0, 11, 79), _ids(1, 12, 13, 90)) == [0, -1, 1, 2]
    assert _named("coco91-80-from-1", _ids(1, 12, 80), _ids(1, 12, 13, 90)) == [0, -1, 1, 2]


@pytest.mark.parametrize("name", sorted(set(NAMED_MAPS) - {"name", "order"}))
def test_texts_are_no_numbers_to_count_with(name: str) -> None:
    assert _named(name, classes("1=dog 2=cat"), classes("dog cat")) == [-1, -1]


@pytest.mark.parametrize("name", sorted(NAMED_MAPS))
def test_every_map_stands_lists_that_are_empty(name: str) -> None:
    empty = LabelMap((), (), named=False)
    assert _named(name, empty, empty) == []
    assert _named(name, classes("1=dog"), empty) == []
    assert _named(name, empty, _ids(0, 5)) == [-1, -1]


def test_a_named_map_replaces_the_search_for_names_and_ids() -> None:
    log = FindingLog()
    match = match_classes(classes("1=dog 2=cat"), _ids(0, 1, 2), "id+1", Where("pred.json"), log)
    assert (match.strategy, match.rows.tolist(), log.findings()) == ("id+1", [0, 1, -1], ())


def test_a_map_that_is_not_known_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        UsageError, match=r"unknown class map 'continuous'; choose from auto, .* Did you mean 'contiguous'"
    ):
        rows_of_named("continuous", COCO, COCO)
    assert class_map_names()[0] == "auto"
