"""Which boxes are judged: federated classes, caps over classes, and boxes without an area; all by hand."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jaccard_eval import BoxTable
from jaccard_eval.data.dataset import ABSENT, NOT_EXHAUSTIVE, ClassFacts, ImageLabels
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.matching.judging import are_among, federated, find_cap, object_keys, ranks_within
from jaccard_eval.matching.matchtable import Ranking, match_boxes

LVIS = get_protocol("lvis")
DOG, CAT, CAR = range(3)
SQUARE, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]


def facts(*rows: tuple[int, int, int]) -> ClassFacts:
    image, label, fact = zip(*rows, strict=True) if rows else ((), (), ())
    return ClassFacts(ImageLabels(np.array(image, np.int32), np.array(label, np.int32), np.array(fact, np.int8)))


def test_classes_in_neither_list_are_removed_and_verified_absent_ones_are_not() -> None:
    gt = BoxTable.from_arrays([0], [DOG], [SQUARE])
    pred = BoxTable.from_arrays([0, 0, 0, 1], [DOG, CAT, CAR, DOG], [SQUARE] * 4, score=[0.9, 0.8, 0.7, 0.6])
    judge = federated(object_keys(gt, 3), facts((0, CAT, ABSENT)), 3)
    # The dog of image 0 has an object, the cat is verified absent; nobody looked for the car, nor for dogs on image 1.
    assert judge(pred).source.tolist() == [0, 1]


def test_unmatched_detections_of_classes_that_are_not_exhaustive_count_neither_way() -> None:
    gt = BoxTable.from_arrays([0], [DOG], [SQUARE])
    pred = BoxTable.from_arrays([0, 0], [DOG, DOG], [SQUARE, ELSEWHERE], score=[0.8, 0.9])
    judged = federated(object_keys(gt, 3), facts((0, DOG, NOT_EXHAUSTIVE)), 3)(pred)
    ranking = Ranking.of(match_boxes(gt, judged, LVIS, n_images=1, n_labels=3), 1)
    hit, counts = ranking.outcomes(0)  # by score: what lies elsewhere comes first
    assert hit.tolist() == [False, True]
    assert counts.tolist() == [False, True]
    strict = federated(object_keys(gt, 3), facts(), 3)(pred)
    ranking = Ranking.of(match_boxes(gt, strict, LVIS, n_images=1, n_labels=3), 1)
    assert ranking.outcomes(0)[1].tolist() == [True, True]


@pytest.mark.parametrize(("column", "ranks"), [("image", [1, 0, 2, 0]), ("label", [1, 0, 1, 0])])
def test_ranks_are_within_an_image_or_a_class_and_ties_by_the_file(column: str, ranks: list[int]) -> None:
    pred = BoxTable.from_arrays([0, 0, 0, 1], [0, 0, 1, 1], [SQUARE] * 4, score=[0.5, 0.7, 0.5, 0.9])
    assert ranks_within(getattr(pred, column), pred.score).tolist() == ranks


class InParts:
    """Boxes in several tables, as they lie on the disk."""

    def __init__(self, *parts: BoxTable) -> None:
        self.parts = parts

    def counts(self, column: str, n: int) -> Any:
        return sum(part.counts(column, n) for part in self.parts)

    def tables(self) -> Iterator[BoxTable]:
        yield from self.parts


@pytest.mark.parametrize("seed", range(5))
def test_a_cap_of_a_class_is_the_same_however_boxes_are_divided(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, most = 300, 20
    label, score = rng.integers(0, 9, n) ** 2 // 16, np.round(rng.random(n), 1)
    pred = BoxTable.from_arrays(rng.integers(0, 7, n), label, [SQUARE] * n, score=score)
    wanted = [
        row
        for k in range(5)
        for row in sorted(np.flatnonzero(label == k).tolist(), key=lambda row: (-score[row], row))[:most]
    ]
    for parts in (1, 2, 7):
        divided = InParts(*(pred.take(rows) for rows in np.array_split(rng.permutation(n), parts)))
        cap = find_cap(divided, "label", 5, most)  # type: ignore[arg-type]
        assert cap is not None
        assert cap(pred).source.tolist() == sorted(wanted)


def test_a_cap_that_nothing_reaches_cuts_nothing() -> None:
    pred = BoxTable.from_arrays([0, 0, 1], [0, 0, 0], [SQUARE] * 3, score=[0.5, 0.7, 0.5])
    assert find_cap(pred, "image", 2, 2) is None
    assert find_cap(pred, "label", 1, 2)(pred).source.tolist() == [0, 1]  # type: ignore[misc]


@pytest.mark.parametrize("most", [50, 10**10])
def test_keys_are_found_by_a_table_and_by_sorting_alike(most: int) -> None:
    rng = np.random.default_rng(1)
    keys, others = rng.integers(0, most, 200), np.unique(rng.integers(0, most, 40))
    others = np.unique(np.append(others, keys[:20]))
    assert are_among(keys, others).tolist() == [int(key) in set(others.tolist()) for key in keys]
    assert not are_among(keys, others[:0]).any()
    assert are_among(keys[:0], others).tolist() == []
