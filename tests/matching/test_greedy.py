"""The two rules of assignment: drawn by hand, and against the plain loops that they vectorise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.matching import IntArray, matchtable
from jaccard_eval.matching.matchtable import (
    NO_PLACE,
    MatchProblem,
    Pairs,
    assign_best_any,
    assign_best_free,
    assign_objects_first,
)

THRESHOLDS = np.array([0.3, 0.5, 0.7])


def problem(
    overlap: list[list[float]],
    *,
    thresholds: tuple[float, ...] = (0.5,),
    ignored: list[int] | None = None,
    reusable: list[int] | None = None,
    last_wins: bool = True,
) -> MatchProblem:
    """Draw a problem as a matrix: rows are detections by score, columns ground truth; 0 is no candidate."""
    matrix = np.array(overlap, dtype=np.float64).reshape(len(overlap), -1)
    det, gt = np.nonzero(matrix)
    n = matrix.shape[1]
    return MatchProblem(
        pairs=Pairs(det, gt, matrix[det, gt]),
        thresholds=np.array(thresholds),
        ignored=np.array([ignored or [0] * n], dtype=np.bool_),
        reusable=np.array(reusable or [0] * n, dtype=np.bool_),
        last_wins=last_wins,
    )


def taken(given_problem: MatchProblem, assign: object = assign_best_free, t: int = 0) -> dict[int, int]:
    """Which ground truth each detection takes at a threshold."""
    detections, choice = assign(given_problem)  # type: ignore[operator]
    gt, first = given_problem.pairs.gt, np.searchsorted(given_problem.pairs.det, detections)
    chosen = zip(detections, first, choice[0, t], strict=True)
    return {int(d): int(gt[start + place - 1]) for d, start, place in chosen if place != NO_PLACE}


def test_the_best_free_box_is_taken_when_the_best_is_gone() -> None:
    assert taken(problem([[0.9, 0.6], [0.8, 0.7]])) == {0: 0, 1: 1}


def test_only_the_best_box_counts_under_the_rule_of_voc() -> None:
    assert taken(problem([[0.9, 0.6], [0.8, 0.7]], last_wins=False), assign_best_any) == {0: 0}


def test_a_box_is_claimed_by_score_even_where_a_later_detection_fits_better() -> None:
    assert taken(problem([[0.55], [0.95]])) == {0: 0}
    assert taken(problem([[0.55], [0.95]]), assign_best_any) == {0: 0}


def test_a_claim_below_the_threshold_is_no_claim() -> None:
    low_then_high = problem([[0.55], [0.95]], thresholds=(0.5, 0.6))
    assert [taken(low_then_high, t=t) for t in (0, 1)] == [{0: 0}, {1: 0}]
    assert [taken(low_then_high, assign_best_any, t=t) for t in (0, 1)] == [{0: 0}, {1: 0}]


@pytest.mark.parametrize(("last_wins", "winner"), [(True, 1), (False, 0)])
def test_of_equal_overlaps_the_protocol_says_which_wins(last_wins: bool, winner: int) -> None:
    for assign in (assign_best_free, assign_best_any):
        assert taken(problem([[0.6, 0.6]], last_wins=last_wins), assign) == {0: winner}


def test_a_box_that_counts_is_preferred_to_an_ignored_one_of_higher_overlap() -> None:
    assert taken(problem([[0.6, 0.9]], ignored=[0, 1])) == {0: 0}


def test_an_ignored_box_is_taken_where_the_one_that_counts_is_below_the_threshold() -> None:
    assert taken(problem([[0.4, 0.9]], ignored=[0, 1])) == {0: 1}


def test_an_ignored_box_that_is_no_crowd_is_taken_once() -> None:
    assert taken(problem([[0.9], [0.8]], ignored=[1])) == {0: 0}


def test_a_crowd_is_taken_any_number_of_times() -> None:
    assert taken(problem([[0.9], [0.8], [0.7]], ignored=[1], reusable=[1])) == {0: 0, 1: 0, 2: 0}


def test_an_ignored_box_absorbs_any_number_under_the_rule_of_voc() -> None:
    assert taken(problem([[0.9], [0.8]], ignored=[1], reusable=[1], last_wins=False), assign_best_any) == {0: 0, 1: 0}


def test_a_chain_of_detections_each_pushing_the_next_is_served_in_order() -> None:
    # Detection i prefers box i - 1, which detection i - 1 took: each moves on to box i.
    n = 12
    chain = [[0.9 if g == d - 1 else 0.6 if g == d else 0.0 for g in range(n)] for d in range(n)]
    assert taken(problem(chain)) == {d: d for d in range(n)}


def test_nothing_is_assigned_without_pairs() -> None:
    for assign in (assign_best_free, assign_best_any):
        detections, choice = assign(problem([[0.0, 0.0]]))
        assert (len(detections), choice.shape) == (0, (1, 1, 0))


@st.composite
def problems(draw: st.DrawFn) -> MatchProblem:
    """Small problems full of ties: overlaps on a coarse grid, some ground truth ignored, some of that reusable."""
    n_det, n_gt = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    level = st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.7, 0.9])
    rows = draw(st.lists(st.lists(level, min_size=n_gt, max_size=n_gt), min_size=n_det, max_size=n_det))
    flags = st.lists(st.booleans(), min_size=n_gt, max_size=n_gt)
    crowd = np.array(draw(flags))
    one = problem(rows, last_wins=draw(st.booleans()))
    ignored = np.stack([crowd | np.array(draw(flags)) for _ in range(2)])
    return MatchProblem(one.pairs, THRESHOLDS, ignored, crowd, one.last_wins)


@given(problems())
def test_rounds_agree_with_the_loop_that_serves_one_detection_after_the_other(drawn: MatchProblem) -> None:
    _require_equal(drawn, *assign_best_free(drawn), dict(_serial_best_free(drawn)))


@given(problems(), problems(), st.sampled_from([1, 4, 1 << 19]))
def test_crowds_are_served_in_turn_as_by_the_loop(first: MatchProblem, second: MatchProblem, block_pairs: int) -> None:
    """Two images whose detections alternate, in blocks of a few pairs."""
    sides, n_gt = (first, second), len(first.reusable)
    det = np.concatenate([2 * side.pairs.det + place for place, side in enumerate(sides)])
    order = np.argsort(det, kind="stable")
    gt = np.append(first.pairs.gt, second.pairs.gt + n_gt)[order]
    drawn = MatchProblem(
        Pairs(det[order], gt, np.append(first.pairs.overlap, second.pairs.overlap)[order]),
        THRESHOLDS,
        np.hstack((first.ignored, second.ignored)),
        np.append(first.reusable, second.reusable),
        first.last_wins,
        np.arange(det.max(initial=-1) + 1) % 2,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matchtable, "CROWDED_PAIRS", 0)
        patch.setattr(matchtable, "BLOCK_PAIRS", block_pairs)
        _require_equal(drawn, *assign_best_free(drawn), dict(_serial_best_free(drawn)))


def test_boxes_in_one_place_take_a_step_each_and_no_look_at_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pairs are looked at once to serve them; in rounds, each of 60 looked at those of all who waited: 30 times as many.
    looked = []
    expand = matchtable._Segments.expand
    monkeypatch.setattr(matchtable._Segments, "expand", lambda self: looked.append(self) or expand(self))
    n = 60
    assert len(taken(problem((0.5 + np.random.default_rng(0).random((n, n)) / 2).tolist()))) == n
    assert sum(int((segments.stop - segments.start).sum()) for segments in looked) <= 4 * n**2


@given(problems())
def test_claims_agree_with_the_loop_that_serves_one_detection_after_the_other(drawn: MatchProblem) -> None:
    _require_equal(drawn, *assign_best_any(drawn), dict(_serial_best_any(drawn)))


Served = tuple[tuple[int, int, int], int]  # (area, threshold, detection), pair


def _require_equal(drawn: MatchProblem, detections: IntArray, choice: IntArray, expected: dict[object, int]) -> None:
    pair = np.searchsorted(drawn.pairs.det, detections) + choice - 1
    found = {(a, t, int(detections[c])): int(pair[a, t, c]) for a, t, c in np.argwhere(choice != NO_PLACE).tolist()}
    assert detections.tolist() == np.unique(drawn.pairs.det).tolist()
    assert found == expected


def _serial_best_free(drawn: MatchProblem) -> Iterator[Served]:
    """Serve detections as ``COCOeval.evaluateImg`` does, with its two passes written out."""
    for a, ignored in enumerate(drawn.ignored):
        for t, threshold in enumerate(drawn.thresholds):
            free = np.ones(len(drawn.reusable), dtype=np.bool_)
            for d in np.unique(drawn.pairs.det).tolist():
                pair = _best(drawn, d, threshold, free & ~ignored)
                pair = _best(drawn, d, threshold, free & ignored) if pair is None else pair
                if pair is not None:
                    free[drawn.pairs.gt[pair]] = drawn.reusable[drawn.pairs.gt[pair]]
                    yield (a, t, d), pair


def _serial_best_any(drawn: MatchProblem) -> Iterator[Served]:
    """Serve detections as ``VOCevaldet.m`` does."""
    anything = np.ones(len(drawn.reusable), dtype=np.bool_)
    for a, ignored in enumerate(drawn.ignored):
        for t, threshold in enumerate(drawn.thresholds):
            claimed = ~anything
            for d in np.unique(drawn.pairs.det).tolist():
                pair = _best(drawn, d, 0.0, anything)
                if pair is None or drawn.pairs.overlap[pair] < threshold or claimed[drawn.pairs.gt[pair]]:
                    continue
                claimed[drawn.pairs.gt[pair]] = not ignored[drawn.pairs.gt[pair]]
                yield (a, t, d), pair


def _best(drawn: MatchProblem, det: int, threshold: float, usable: BoolArray) -> int | None:
    best, found = threshold, None
    for pair in np.flatnonzero(drawn.pairs.det == det).tolist():
        overlap = drawn.pairs.overlap[pair]
        wins = overlap >= best if drawn.last_wins or found is None else overlap > best
        if usable[drawn.pairs.gt[pair]] and wins:
            best, found = overlap, pair
    return found


def test_a_detection_whose_object_is_taken_goes_to_the_group_it_lies_in() -> None:
    """Columns are an object and a group; the second detection lies in the group more than on the object."""
    groups = problem([[0.9, 0.6], [0.8, 1.0], [0.6, 0.55], [0, 0.7]], reusable=[0, 1], last_wins=False)
    assert taken(groups, assign_objects_first) == {0: 0, 1: 1, 2: 1, 3: 1}


def test_the_best_group_takes_a_detection_and_the_first_of_equal_ones() -> None:
    groups = problem([[0, 0.6, 0.8, 0.8]], reusable=[0, 1, 1, 1], last_wins=False)
    assert taken(groups, assign_objects_first) == {0: 2}


def test_objects_claimed_first_need_the_threshold_and_groups_do_too() -> None:
    groups = problem([[0.6, 0.7]], thresholds=(0.5, 0.65, 0.75), reusable=[0, 1], last_wins=False)
    assert [taken(groups, assign_objects_first, t) for t in range(3)] == [{0: 0}, {0: 1}, {}]


def test_without_groups_objects_first_is_the_rule_of_voc() -> None:
    rng = np.random.default_rng(7)
    given_problem = problem(np.where(rng.random((40, 12)) < 0.3, rng.random((40, 12)), 0).tolist(), last_wins=False)
    assert taken(given_problem, assign_objects_first) == taken(given_problem, assign_best_any)
