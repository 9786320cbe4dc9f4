"""What images were resized to, planted in drawn scenes: named exactly or refused, and nothing is said of good ones."""

from collections import Counter

import numpy as np
import pytest
from resized_scenes import GOOD, draw, draw_good, judge


def test_planted_resizings_are_named_or_refused() -> None:
    answers = Counter(
        judge(scene, scene.find()) for scene in (draw(np.random.default_rng([3, row])) for row in range(6))
    )
    assert answers["wrong"] == 0
    assert answers["right"] >= 4


@pytest.mark.slow
def test_a_thousand_planted_resizings_are_named_or_refused() -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    answers: Counter[str] = Counter()
    for row in range(1000):
        scene = draw(np.random.default_rng([seed, row]))
        answer = judge(scene, scene.find())
        answers[answer] += 1
        assert answer != "wrong", (seed, row, scene.planted, scene.encoding)
    assert answers["right"] >= 850, (seed, answers)


@pytest.mark.parametrize("kind", GOOD[:2] + GOOD[4:8] + GOOD[11:])
def test_nothing_is_said_of_good_scenes(kind: str) -> None:
    assert draw_good(np.random.default_rng([3, GOOD.index(kind)]), kind).find() is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD)
def test_nothing_is_said_of_many_good_scenes(kind: str) -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    for row in range(25):
        assert draw_good(np.random.default_rng([seed, row]), kind).find() is None, (seed, row)
