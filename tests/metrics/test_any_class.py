"""Matches whatever the classes, against a matching in plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import det, evaluate, gt

from jaccard_eval.metrics.detection import detection_metrics, match_any_class

NAMES = ("cat", "dog")
IOU = 0.5


def overlap(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    width, height = (min(first[i] + 10, second[i] + 10) - max(first[i], second[i]) for i in (0, 1))
    both = max(width, 0) * max(height, 0)
    return both / (200 - both)


def confusion_by_hand(truth: list[tuple[str, int, int]], found: list[tuple[str, int, int]], n: int) -> list[list[int]]:
    """The first n of the detections, best first, each take the best free object: of equal ones the later."""
    cells = np.zeros((3, 3), dtype=int)
    free = set(range(len(truth)))
    for name, *place in found[:n]:
        worth = {i: (overlap(truth[i][1:], tuple(place)), i) for i in free}
        best = max((i for i in free if worth[i][0] >= IOU), key=lambda i: worth[i], default=None)
        row = 2 if best is None else NAMES.index(truth[best][0])
        cells[row, NAMES.index(name)] += 1
        free -= {best}
    for i in free:
        cells[NAMES.index(truth[i][0]), 2] += 1
    return cells.tolist()


boxes = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 20), st.integers(0, 4)), max_size=8)


@settings(max_examples=50)
@given(boxes, boxes)
def test_the_confusion_of_every_score_is_that_of_plain_python(
    truth: list[tuple[str, int, int]], found: list[tuple[str, int, int]]
) -> None:
    # The files of a COCO set have their objects by class: ties of the overlap are decided in that order.
    truth = sorted(truth)
    scores = [(100 - i) / 100 for i in range(len(found))]
    result = evaluate(
        [gt(f"{name} {x} {y} 10 10") for name, x, y in truth],
        [det(f"{name} {x} {y} 10 10", score) for (name, x, y), score in zip(found, scores, strict=True)],
        names=NAMES,
        images=["a"],
    )
    assert result.boxes is not None
    matches = match_any_class(detection_metrics(result), 0, *result.boxes)
    for n, score in enumerate([2.0, *scores]):
        assert matches.confusion(score).tolist() == confusion_by_hand(truth, found, n)
