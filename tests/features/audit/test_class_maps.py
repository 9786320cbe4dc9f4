"""Class maps judged by objects in one place: which is suggested, and when nothing is."""

from collections.abc import Sequence

import numpy as np
import pytest

from jaccard_eval.data.alignment import match_classes
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import LabelMap
from jaccard_eval.features.audit import pair_by_place
from jaccard_eval.features.audit.correspondence import Candidate, Confusion, judge, rerun_with
from jaccard_eval.findings import FindingLog, Where

BOX = [0.0, 0.0, 10.0, 10.0]


def _names(*names: str) -> LabelMap:
    return LabelMap(tuple(range(1, len(names) + 1)), names, named=True)


def _ids(*numbers: int) -> LabelMap:
    return LabelMap(numbers, tuple(map(str, numbers)), named=False)


def _confusion(*pairs: tuple[int, int, int]) -> Confusion:
    """Pairs of rows (prediction class, ground-truth class) with their count."""
    pred, gt, count = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return Confusion(pred, gt, count)


def _judge(gt: LabelMap, pred: LabelMap, confusion: Confusion) -> tuple[float, object]:
    given = match_classes(gt, pred, None, Where("pred.json"), FindingLog()).rows
    verdict = judge(gt, pred, confusion, given)
    return verdict.given, None if verdict.better is None else verdict.better.class_map


def test_pairs_in_one_place_are_counted_by_their_two_classes() -> None:
    images, classes = [0, 1, 2], [2, 2, 1]
    gt = BoxTable.from_arrays(images, classes, [BOX] * 3, encoding="xywh")
    pred = BoxTable.from_arrays(images, [0, 0, 3], [BOX] * 3, score=[0.5] * 3, encoding="xywh")
    confusion = Confusion.of(pair_by_place(gt, pred))
    assert (confusion.pred.tolist(), confusion.gt.tolist(), confusion.count.tolist()) == ([0, 3], [2, 1], [2, 1])
    assert confusion.agreement(np.array([2, -1, -1, 0], dtype=np.int32)) == 2 / 3


def test_nothing_in_one_place_counts_as_no_pair() -> None:
    empty = BoxTable.from_arrays([], [], np.zeros((0, 4)))
    confusion = Confusion.of(pair_by_place(empty, BoxTable.from_arrays([0], [0], [BOX], score=[0.5])))
    assert (confusion.pairs, confusion.agreement(np.array([0], dtype=np.int32))) == (0, 0.0)
    assert judge(_names("a"), _ids(1), confusion, np.array([0], dtype=np.int32)).better is None


def test_the_rule_that_most_pairs_agree_with_is_suggested() -> None:
    # Ids 0, 1, 2 are found on classes 1, 2, 3; one object of class 2 is found as class 3.
    confusion = _confusion((0, 0, 6), (1, 1, 5), (2, 2, 4), (2, 1, 1))
    assert _judge(_names("a", "b", "c"), _ids(0, 1, 2), confusion) == (0.0625, "id+1")  # 1 of 16 agrees as given


def test_of_rules_that_fit_alike_the_one_that_knows_more_classes_is_suggested() -> None:
    gt = LabelMap((1, 2, 5, 6), ("a", "b", "e", "f"), named=True)
    confusion = _confusion((0, 0, 6), (1, 1, 6))  # 0 and 1 on classes 1 and 2: shifted by one, or counted from 0
    assert _judge(gt, _ids(0, 1, 2, 3), confusion) == (0.0, "contiguous")  # 2 + 1 and 3 + 1 are no classes


def test_a_poor_detector_of_two_classes_is_left_alone() -> None:
    confusion = _confusion((0, 0, 11), (0, 1, 9), (1, 0, 10), (1, 1, 10))  # as good as a coin: 21 of 40
    assert _judge(_names("a", "b"), _ids(1, 2), confusion) == (21 / 40, None)


def test_two_classes_that_are_exchanged_are_told() -> None:
    confusion = _confusion((0, 0, 1), (0, 1, 19), (1, 0, 20))
    assert _judge(_names("a", "b"), _names("a", "b"), confusion) == (1 / 40, {"a": "b", "b": "a"})


def test_a_class_that_is_taken_for_another_is_a_weakness_and_no_mistake_of_the_map() -> None:
    # Trucks are called cars, cars are called cars; few trucks are called so, and those are cars.
    confusion = _confusion((0, 0, 60), (0, 1, 30), (1, 0, 12))
    assert _judge(_names("car", "truck"), _names("car", "truck"), confusion) == (60 / 102, None)


def test_classes_that_have_changed_places_are_found_in_a_map_that_fits_otherwise() -> None:
    gt = _names("a", "b", "c", "d")
    confusion = _confusion((0, 0, 70), (1, 2, 10), (2, 1, 10), (3, 3, 10))
    assert _judge(gt, gt, confusion) == (0.8, {"b": "c", "c": "b"})


def test_few_pairs_of_a_class_do_not_say_that_it_has_changed_places() -> None:
    gt = _names("a", "b", "c", "d")
    confusion = _confusion((0, 0, 70), (1, 2, 9), (2, 1, 9), (3, 3, 10))
    assert _judge(gt, gt, confusion)[1] is None


def test_a_map_made_to_fit_needs_more_than_one_pair_a_class() -> None:
    # Ten pairs of ten classes, each on another class: any list of classes can be made to fit that.
    confusion = _confusion(*((row, (row * 7 + 3) % 10, 1) for row in range(10)))
    assert _judge(_names(*"abcdefghij"), _names(*"abcdefghij"), confusion)[1] is None


def test_classes_in_an_order_of_their_own_are_paired_one_to_one() -> None:
    confusion = _confusion((0, 2, 8), (1, 0, 8), (2, 3, 8), (3, 1, 8))
    assert _judge(_names(*"abcd"), _names(*"abcd"), confusion) == (0.0, {"a": "c", "b": "a", "c": "d", "d": "b"})


@pytest.mark.parametrize("n_pairs", [1, 4])
def test_a_handful_of_pairs_says_nothing(n_pairs: int) -> None:
    assert _judge(_names("a", "b"), _ids(0, 1), _confusion((0, 0, n_pairs)))[1] is None


@pytest.mark.parametrize(
    ("class_map", "text"),
    [
        ("id+1", "id+1"),
        ({"cat": "dog", "traffic light": "bus"}, "'cat=dog,traffic light=bus'"),
        ({"a,b": "dog"}, "auto"),  # a comma would end the pair
        ({"it's": "dog"}, "auto"),  # an apostrophe would end the quotation
        ({f"c{number}": "dog" for number in range(21)}, "auto"),
    ],
)
def test_a_map_is_written_so_that_it_can_be_pasted(class_map: str | dict[str, str], text: str) -> None:
    fix = rerun_with(Candidate(class_map, np.zeros(0, dtype=np.int32), 0.9), 0.1)
    assert str(fix) == f"Rerun with --class-map {text}."


def test_candidates_are_listed_with_their_agreement_the_best_first() -> None:
    gt, pred = _names("b", "a"), _ids(0, 1)
    confusion = _confusion((0, 0, 9), (1, 1, 10), (1, 0, 1))
    given = match_classes(gt, pred, None, Where("pred.json"), FindingLog()).rows
    table: Sequence[Sequence[str]] = judge(gt, pred, confusion, given).table()
    # id+1: 0 is class 1, 1 is class 2; alphabetical: 0 is a, 1 is b; as given 1 is class 1
    assert [row[:2] for row in table[:3]] == [("class map", "classes agree"), ("as given", "0.050"), ("id+1", "0.950")]
    assert ("alphabetical", "0.050") in table
