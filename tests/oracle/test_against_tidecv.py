"""Error types against tidecv, where its conventions are ours: no crowds, no caps, no ties, no exact thresholds.

Differences by design, which the scenes avoid: tidecv caps detections per image, not per image and class; counts an IoU
equal to the threshold as localisation; gives classes without ground truth an AP of 0; and shows no negative gain. Its
recall values are i / 100, of which ten lie an ulp below those of COCO: a class may win or lose one of its 101 points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pictures import Picture, det, evaluate, gt

tidecv = pytest.importorskip("tidecv")

NAMES = {
    "Cls": "classification",
    "Loc": "localisation",
    "Both": "both",
    "Dupe": "duplicate",
    "Bkg": "background",
    "Miss": "missed",
}
CLASSES = ("ant", "bee", "cow")
ONE_POINT = 1 / 101 / len(CLASSES)


@pytest.mark.parametrize("seed", range(30))
def test_counts_and_gains_are_those_of_tidecv(seed: int) -> None:
    truth, found = draw(np.random.default_rng(seed))
    expected = run_tidecv(truth, found)
    errors = evaluate(truth, found, errors=True, iou=(0.5,), max_dets=()).errors
    assert errors is not None
    assert errors.ap == pytest.approx(expected["ap"], abs=ONE_POINT)
    for one in errors.types:
        count, gain = expected[one.name]
        assert (one.name, one.count) == (one.name, count)
        assert max(one.gain, 0.0) == pytest.approx(gain, abs=ONE_POINT), one.name


def draw(rng: np.random.Generator) -> tuple[list[Picture], list[Picture]]:
    """Boxes on 12 images and detections near them, with other classes, shifts, repeats and inventions."""
    truth, found = [], []
    for image in map(str, range(12)):
        for i in range(rng.integers(1, 5)):
            x, y, w, h = (*rng.uniform(0, 60, 2), *rng.uniform(8, 30, 2))
            name = CLASSES[i % 3]
            truth.append(gt(f"{name} {x} {y} {w} {h}", image))
            for _ in range(rng.integers(0, 3)):
                other = CLASSES[rng.integers(3)] if rng.random() < 0.3 else name
                dx, dy = rng.normal(0, 4, 2)
                found.append(det(f"{other} {x + dx} {y + dy} {w} {h}", rng.random(), image))
        x, y = rng.uniform(0, 90, 2)
        found.append(det(f"{CLASSES[rng.integers(3)]} {x} {y} 10 10", rng.random(), image))
    return truth, found


def run_tidecv(truth: list[Picture], found: list[Picture]) -> dict[str, Any]:
    ours, theirs = tidecv.Data("gt"), tidecv.Data("pred")
    for box in truth:
        ours.add_ground_truth(int(box.image), CLASSES.index(box.name), list(box.xywh))
    for box in found:
        theirs.add_detection(int(box.image), CLASSES.index(box.name), box.score, list(box.xywh))
    run = tidecv.TIDE().evaluate(ours, theirs, pos_threshold=0.5, mode=tidecv.TIDE.BOX)
    counts = {kind.short_name: len(errors) for kind, errors in run.error_dict.items()}
    gains = {kind.short_name: gain / 100 for kind, gain in run.fix_main_errors().items()}
    return {"ap": run.ap / 100} | {NAMES[name]: (counts[name], gain) for name, gain in gains.items()}
