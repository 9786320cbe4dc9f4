"""What images were resized to, planted in drawn scenes: named exactly or refused, and nothing is said of good ones."""

import os
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from resized_scenes import GOOD, draw, draw_good, judge

SCENES = int(os.environ.get("JACCARD_EVAL_SCENES", "60"))
SEED = int(os.environ.get("JACCARD_EVAL_SEED", "901"))


def answers_of(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """Judge the answers for drawn scenes; a wrong one is a failure."""
    answers: Counter[str] = Counter()
    for number in numbers:
        scene = draw(np.random.default_rng([seed, number]))
        answer = judge(scene, scene.find())
        answers[answer] += 1
        assert answer != "wrong", (seed, number, scene.planted, scene.encoding)
    return answers


def test_planted_resizings_are_named_or_refused() -> None:
    assert answers_of(5, range(8))["right"] >= 4


@pytest.mark.parametrize("scene", [(902, 1), (913, 22)])
def test_a_side_that_no_image_fills_is_not_named_for_another_one(scene: tuple[int, int]) -> None:
    """The padded input is far wider, or higher, than what any image fills: all such numbers explain it alike."""
    drawn = draw(np.random.default_rng(scene))
    assert drawn.planted in ("swap+pad:2766x1015", "rot270+pad:170x480")
    found = drawn.find()
    assert judge(drawn, found) != "wrong"
    assert found is None or found.resizing is None or max(found.resizing.steps[-1].x, found.resizing.steps[-1].y) < 1e4


@pytest.mark.slow
def test_many_planted_resizings_are_named_or_refused() -> None:
    """None is named wrongly; about three of four are named exactly, to .05 % of an image.

    More than about 92 % cannot be named: four of ten detectors are loose by 10 or 15 % of a box, and four of ten sides
    are any number from 64 to 4,096, so that the most probable name is wrong in every twelfth scene. Where it is
    probable by less than 99 %, it is refused. JACCARD_EVAL_SCENES=1000 draws more of them, JACCARD_EVAL_SEED others.
    """
    answers = answers_of(SEED, range(SCENES))
    assert answers["right"] >= 0.6 * SCENES, answers


@pytest.mark.parametrize("kind", GOOD[:2] + GOOD[4:8] + GOOD[11:])
def test_nothing_is_said_of_good_scenes(kind: str) -> None:
    assert draw_good(np.random.default_rng([3, GOOD.index(kind)]), kind).find() is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD)
def test_nothing_is_said_of_many_good_scenes(kind: str) -> None:
    for row in range(10):
        assert draw_good(np.random.default_rng([SEED, row]), kind).find() is None, row
