"""The note on AP over all orders of equal scores."""

import pytest
from pictures import Picture, det, evaluate, gt

HIT, MISS = "cat 0 0 10 10", "cat 50 50 10 10"


def halves(digits: int) -> tuple[list[Picture], list[Picture]]:
    """A hit in each of fifty images and a miss in fifty others; scores with so many digits."""
    truth = [gt(HIT, f"i{i:02d}") for i in range(50)]
    hits = [det(HIT, round(0.5 + i / 1000, digits), f"i{i:02d}") for i in range(50)]
    return truth, [*hits, *(det(MISS, round(0.5004 + i / 1000, digits), f"m{i:02d}") for i in range(50))]


def test_bounds_are_noted_where_equal_scores_can_be_ordered_otherwise() -> None:
    # All scores are 0.5: hits first give precision 1 throughout, hits last 50 / 100 at the last hit.
    result = evaluate(*halves(1))
    notes = [one for one in result.findings if one.code == "score-ties-interval"]
    assert len(notes) == 1
    assert "tied scores: AP can be 0.5000 or 1.0000" in notes[0].message


def test_different_scores_are_not_noted() -> None:
    assert "score-ties-interval" not in {one.code for one in evaluate(*halves(6)).findings}


@pytest.mark.parametrize(("objects", "is_told"), [(50, True), (100, False)])
def test_bounds_of_less_than_a_ten_thousandth_are_not_worth_a_line(objects: int, is_told: bool) -> None:
    # All objects are found first, the last one at the score of a miss: behind that, its precision is n / (n + 1). Of 50
    # objects it alone reaches two of the 101 recall levels, 0.99 and 1: 2 / 101 / 51 = 0.00039. Of 100 it reaches one:
    # 1 / 101 / 101 = 0.000098.
    truth = [gt(HIT, f"{i:03d}") for i in range(objects)]
    hits = [det(HIT, 0.9 - i / 1000, f"{i:03d}") for i in range(objects)]
    misses = [det(MISS, hits[-1].score - i / 1000, f"{i:03d}") for i in range(50)]
    said = [one for one in evaluate(truth, [*hits, *misses]).findings if one.code == "score-ties-interval"]
    assert len(said) == is_told
    if is_told:
        assert f"{1 - 2 / 101 / 51:.4f} or 1.0000" in said[0].message
