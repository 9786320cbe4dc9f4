import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.protocol import COCO, VOC2012
from jaccard_eval.metrics.curves import ScoredHits


def ranking(rows: list[tuple[int, float, bool]], positives: list[int]) -> ScoredHits:
    label, score, hit = (np.array(column) for column in zip(*rows, strict=True))
    return ScoredHits(label, score, hit, np.array(positives))


def test_classes_are_ranked_apart_and_the_mean_leaves_out_those_without_ground_truth() -> None:
    # Class 0: a hit, then none of two boxes: recall 1/2 at precision 1. Class 1: a miss before the hit: precision 1/2.
    one = ranking([(0, 0.9, True), (0, 0.8, False), (1, 0.9, False), (1, 0.8, True), (2, 0.9, False)], [2, 1, 0])
    assert one.class_precisions(VOC2012).tolist() == pytest.approx([0.5, 0.5, np.nan], nan_ok=True)
    assert one.mean_precision(VOC2012) == pytest.approx(0.5)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=20)


@given(ROWS)
def test_rows_may_come_in_any_order_of_classes_and_scores(rows: list[tuple[int, float, bool]]) -> None:
    ordered = sorted(rows, key=lambda row: (row[0], -row[1]))  # stable, as equal scores are to be
    expected = ranking(ordered, [9, 9, 9]).class_precisions(COCO)
    assert ranking(rows, [9, 9, 9]).class_precisions(COCO).tolist() == expected.tolist()
