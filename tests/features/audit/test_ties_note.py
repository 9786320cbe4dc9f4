"""The note on AP over all orders of equal scores."""

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
    assert "AP lies between 0.500000 and 1.000000" in notes[0].message


def test_different_scores_are_not_noted() -> None:
    assert "score-ties-interval" not in {one.code for one in evaluate(*halves(6)).findings}
