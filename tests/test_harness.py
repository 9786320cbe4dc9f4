"""The harness that follows advice: a few of its scenes, and that it sees advice that leads on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Follower, Run, check, draw_scene, judge, plant

from jaccard_eval.findings import Example, Finding, Severity, Where
from jaccard_eval.fixes import Fix


# The last ones went wrong once: sides of inputs next to objects in fractions, and masks of both sides in other orders.
@pytest.mark.parametrize(
    ("seed", "number"), [*((11, number) for number in range(8)), (91, 21), (91, 223), (91, 539), (7, 227)]
)
def test_fixes_that_are_followed_end_at_the_right_number(seed: int, number: int) -> None:
    judged, faults, _ = check(seed, number)
    assert judged
    assert faults == []


def follow(tmp_path: Path, *runs: Run) -> str:
    """Judge a run that answers so, whatever it is given; the right number is 0.8."""
    answers = iter(runs)
    scene = plant(11, 0, tmp_path)
    follower = Follower(scene, draw_scene(np.random.default_rng([11, 0])), lambda *_: next(answers, runs[-1]))
    return judge(follower, 0.8)


def found(severity: Severity, options: dict[str, Any]) -> Finding:
    fix = Fix.reading(options, metric="AP50", before=0.1, after=0.7) if options else None
    return Finding(severity, "box-encoding", 1, (Example(Where("pred.json"), "boxes look like xyxy"),), fix)


def test_a_wrong_number_without_a_word_is_a_fault(tmp_path: Path) -> None:
    assert "nothing says why" in follow(tmp_path, Run(0.5, ()))
    assert follow(tmp_path, Run(0.5, (found(Severity.WARNING, {}),))) == ""
    assert follow(tmp_path, Run(0.8, ())) == ""


def test_advice_that_makes_a_right_number_wrong_is_a_fault(tmp_path: Path) -> None:
    warned = Run(0.8, (found(Severity.WARNING, {"pred_box": "xyxy"}),))
    assert "for 0.8" in follow(tmp_path, warned, Run(0.3, ()))


def test_more_than_two_stops_are_a_fault(tmp_path: Path) -> None:
    stops = [Run(None, (found(Severity.ERROR, {"pred_box": box}),)) for box in ("xyxy", "cxcywh", "yxyx")]
    assert follow(tmp_path, *stops, Run(0.8, ())) == "3 stops"


def test_advice_in_a_circle_is_a_fault(tmp_path: Path) -> None:
    circle = [Run(0.5, (found(Severity.WARNING, {"pred_box": box}),)) for box in ("xyxy", "xywh") * 4]
    assert follow(tmp_path, *circle) == "followed, it does not end"
