import math

import pytest

from jaccard_eval.report.numbers import metric_text, threshold_text, thresholds_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5045806, "0.5046"),
        (1.0, "1.0000"),
        (0.99996, "0.9999"),  # coverage.py's rule: all only when it is all
        (1 / (1 + 2.3e-16), "1.0000"),  # a perfect class with one box, as pycocotools' epsilon leaves it
        (0.0, "0.0000"),
        (1e-9, "0.0001"),
        (math.nan, "n/a"),
    ],
)
def test_zero_and_one_are_shown_only_when_they_are_exact(value: float, text: str) -> None:
    assert metric_text(value) == text


def test_three_decimals_keep_the_rule() -> None:
    assert [metric_text(value, 3) for value in (0.9999, 1.0, 0.5045806)] == ["0.999", "1.000", "0.505"]


def test_a_threshold_shows_as_many_decimals_as_it_has() -> None:
    # 0.55 as numpy.linspace makes it is 0.55 to the eye, 1/3 is not 0.33.
    assert [threshold_text(value) for value in (0.5, 0.5500000000000000444, 1 / 3)] == ["0.50", "0.55", "0.333333"]


def test_many_thresholds_are_shown_by_their_ends() -> None:
    assert thresholds_text((0.5,)) == "0.50"
    assert thresholds_text([0.5 + 0.05 * i for i in range(10)]) == "0.50:0.95"
    assert thresholds_text((0.1, 0.5, 0.6, 0.9)) == "0.10:0.90 (4 uneven)"
