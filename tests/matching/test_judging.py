"""Which boxes are judged: federated classes, caps over classes, and boxes without an area; all by hand."""

import numpy as np
import pytest

from jaccard_eval import BoxTable
from jaccard_eval.data.imagelabels import ABSENT, NOT_EXHAUSTIVE, ClassFacts, ImageLabels
from jaccard_eval.data.protocol import get_protocol
from jaccard_eval.matching.judging import federated, ranks_within
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.matching.ranking import Ranking

LVIS = get_protocol("lvis")
DOG, CAT, CAR = range(3)
SQUARE, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]


def facts(*rows: tuple[int, int, int]) -> ClassFacts:
    image, label, fact = zip(*rows, strict=True) if rows else ((), (), ())
    return ClassFacts(ImageLabels(np.array(image, np.int32), np.array(label, np.int32), np.array(fact, np.int8)))


def test_classes_in_neither_list_are_removed_and_verified_absent_ones_are_not() -> None:
    gt = BoxTable.from_arrays([0], [DOG], [SQUARE])
    pred = BoxTable.from_arrays([0, 0, 0, 1], [DOG, CAT, CAR, DOG], [SQUARE] * 4, score=[0.9, 0.8, 0.7, 0.6])
    judged = federated(gt, pred, facts((0, CAT, ABSENT)), 3)
    # The dog of image 0 has an object, the cat is verified absent; nobody looked for the car, nor for dogs on image 1.
    assert judged.pred.source.tolist() == [0, 1]
    assert judged.n_removed == 2


def test_unmatched_detections_of_classes_that_are_not_exhaustive_count_neither_way() -> None:
    gt = BoxTable.from_arrays([0], [DOG], [SQUARE])
    pred = BoxTable.from_arrays([0, 0], [DOG, DOG], [SQUARE, ELSEWHERE], score=[0.8, 0.9])
    judged = federated(gt, pred, facts((0, DOG, NOT_EXHAUSTIVE)), 3)
    ranking = Ranking.of(match_boxes(judged.gt, judged.pred, LVIS, n_images=1, n_labels=3), 1)
    hit, counts = ranking.outcomes(0)  # by score: what lies elsewhere comes first
    assert hit.tolist() == [False, True]
    assert counts.tolist() == [False, True]
    strict = federated(gt, pred, facts(), 3)
    ranking = Ranking.of(match_boxes(strict.gt, strict.pred, LVIS, n_images=1, n_labels=3), 1)
    assert ranking.outcomes(0)[1].tolist() == [True, True]


@pytest.mark.parametrize(("column", "ranks"), [("image", [1, 0, 2, 0]), ("label", [1, 0, 1, 0])])
def test_ranks_are_within_an_image_or_a_class_and_ties_by_the_file(column: str, ranks: list[int]) -> None:
    pred = BoxTable.from_arrays([0, 0, 0, 1], [0, 0, 1, 1], [SQUARE] * 4, score=[0.5, 0.7, 0.5, 0.9])
    assert ranks_within(pred, getattr(pred, column)).tolist() == ranks
