"""Operating points: counts drawn by hand, and the best F1 against every score there is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import curves, det, evaluate, gt

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.metrics.detection import Axes, operating_point

AT_50 = COCO.with_options(iou_thresholds=(0.5,))

TRUTH = [gt("cat 0 0 10 10"), gt("cat 20 0 10 10"), gt("dog 0 50 10 10"), gt("dog 0 100 90 90", crowd=True)]
DETECTIONS = [
    det("cat 0 0 10 10", 0.9),  # hit
    det("cat 500 0 10 10", 0.8),  # stray
    det("cat 20 0 10 10", 0.3),  # hit
    det("dog 0 100 20 20", 0.7),  # in the crowd: ignored
    det("dog 0 50 10 10", 0.5),  # hit
    det("dog 0 50 10 10", 0.2),  # second detection of the same box
]


def points(score: float | str) -> dict[str | None, OperatingPoint]:
    result = evaluate(TRUTH, DETECTIONS, protocol=AT_50, score=score)
    return {point.class_name: point for point in result.operating_points}


def counts(point: OperatingPoint) -> tuple[int, int, int]:
    return point.tp, point.fp, point.fn


def test_counts_are_taken_at_or_above_the_score() -> None:
    assert {name: counts(point) for name, point in points(0.5).items()} == {
        None: (2, 1, 1),
        "cat": (1, 1, 1),
        "dog": (1, 0, 0),
    }


def test_a_score_that_a_detection_has_includes_it() -> None:
    assert counts(points(0.3)["cat"]) == (2, 1, 0)
    assert counts(points(math.nextafter(0.3, 1.0))["cat"]) == (1, 1, 1)


def test_a_detection_in_a_crowd_counts_for_nothing() -> None:
    assert counts(points(0.6)["dog"]) == (0, 0, 1)


def test_precision_recall_and_f1_follow_from_the_counts() -> None:
    pooled = points(0.5)[None]
    assert (pooled.precision, pooled.recall, pooled.f1) == (2 / 3, 2 / 3, 4 / 6)


def test_precision_is_undefined_without_detections() -> None:
    nothing = points(0.95)["cat"]
    assert counts(nothing) == (0, 0, 2)
    assert math.isnan(nothing.precision)
    assert (nothing.recall, nothing.f1) == (0.0, 0.0)


def test_recall_is_undefined_without_ground_truth() -> None:
    result = evaluate([], [det("dog 0 0 10 10", 0.9)], protocol=AT_50, score=0.5)
    (point,) = result.operating_points
    assert (point.precision, math.isnan(point.recall), point.f1) == (0.0, True, 0.0)


def test_everything_is_undefined_without_boxes() -> None:
    result = evaluate([], [], images=["a"], names=["dog"], protocol=AT_50, score=0.5)
    (point,) = result.operating_points
    assert all(math.isnan(value) for value in (point.precision, point.recall, point.f1))


def test_one_class_has_no_row_beside_the_pooled_one() -> None:
    result = evaluate([gt("dog 0 0 9 9")], [det("dog 0 0 9 9", 0.9)], protocol=AT_50, score=0.5)
    assert [point.class_name for point in result.operating_points] == [None]


def test_every_threshold_has_its_points() -> None:
    result = evaluate(TRUTH, DETECTIONS, iou=(0.5, 0.75), score=0.5)
    assert [(point.iou, point.class_name) for point in result.operating_points] == [
        (iou, name) for iou in (0.5, 0.75) for name in (None, "cat", "dog")
    ]


def test_the_best_f1_of_each_class_and_of_all_pooled_is_found() -> None:
    # cat: at 0.9 1 hit of 2, F1 = 2/3; at 0.8 2/4; at 0.3 2 hits, 1 stray: 4/5.
    # dog: at 0.7 nothing counts, 0; at 0.5 2/2; at 0.2 2/3.
    # pooled, 3 boxes: 0.9 2/4; 0.8 and 0.7 2/5; 0.5 4/6; 0.3 6/7; 0.2 6/8.
    best = points("best-f1")
    assert {name: point.score for name, point in best.items()} == {None: 0.3, "cat": 0.3, "dog": 0.5}
    assert [point.f1 for point in best.values()] == [6 / 7, 4 / 5, 1.0]


def test_of_equal_f1_the_highest_score_is_taken() -> None:
    # Hit, stray, hit of 2 boxes after 1 hit of 1: F1 is 2/3 at 0.9, 1/2 at 0.8, 4/6 again at 0.7 with a second stray.
    detections = [
        det("cat 0 0 10 10", 0.9),
        det("cat 500 0 10 10", 0.8),
        det("cat 500 0 10 10", 0.7),
        det("cat 20 0 10 10", 0.7),
    ]
    assert curves(TRUTH[:2], detections, AT_50).best_score(0, 0) == 0.9


def test_a_class_without_detections_has_no_best_score() -> None:
    result = evaluate(TRUTH, DETECTIONS[:3], protocol=AT_50, score="best-f1")
    dog = next(point for point in result.operating_points if point.class_name == "dog")
    assert math.isnan(dog.score)
    assert counts(dog) == (0, 0, 1)


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4]), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_no_score_has_a_higher_f1_than_the_best(detections: list[tuple[float, bool]], missed: int) -> None:
    boxes = [(f"dog {20 * i} {0 if hit else 500} 10 10", score) for i, (score, hit) in enumerate(detections)]
    truth = [gt(text) for (text, _), (_, hit) in zip(boxes, detections, strict=True) if hit]
    truth += [gt(f"dog {20 * i} 900 10 10") for i in range(missed)]
    one = curves(truth, [det(text, score) for text, score in boxes], AT_50)
    by_score = {score: _f1(detections, missed, score) for score, _ in detections}
    best = max(by_score.values())
    for label in (0, None):
        chosen = one.best_score(0, label)
        if best == 0:  # without a true positive no score is better than another
            assert math.isnan(chosen)
            continue
        assert chosen == max(score for score, f1 in by_score.items() if f1 == best)
        measured = operating_point(one, Axes(AT_50, ("dog",)), 0, label, chosen).f1
        assert measured == pytest.approx(best, abs=1e-15)


def _f1(detections: list[tuple[float, bool]], missed: int, score: float) -> float:
    hits = sum(hit for one, hit in detections if one >= score)
    kept = sum(one >= score for one, _ in detections)
    positives = sum(hit for _, hit in detections) + missed
    return 2 * hits / (kept + positives)


@pytest.mark.parametrize("aim", ["precision=0.6", "recall=0.5", "fppi=1", "fppi=0"])
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4]), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_no_score_that_reaches_an_aim_does_better_than_the_one_that_is_found(
    aim: str, detections: list[tuple[float, bool]], missed: int
) -> None:
    boxes = [(f"dog {20 * i} {0 if hit else 500} 10 10", score) for i, (score, hit) in enumerate(detections)]
    truth = [gt(text) for (text, _), (_, hit) in zip(boxes, detections, strict=True) if hit]
    truth += [gt(f"dog {20 * i} 900 10 10") for i in range(missed)]
    kind, _, level = aim.partition("=")
    # Every score that occurs, by brute force: what is asked for, then the score, of those that reach the level.
    reached = []
    for score in {score for score, _ in detections}:
        tp, kept = sum(hit for at, hit in detections if at >= score), sum(at >= score for at, _ in detections)
        precision, recall = tp / kept, tp / len(truth) if truth else math.nan
        found = {"precision": precision, "recall": recall, "fppi": -(kept - tp)}[kind]  # all on one image
        if tp and found >= (-float(level) if kind == "fppi" else float(level)):
            reached.append((precision if kind == "recall" else recall, score))
    best, score = max(reached, default=(math.nan, math.nan))
    result = evaluate(truth, [det(text, score) for text, score in boxes], protocol=AT_50)
    if kind == "fppi" and truth and not reached:
        best = 0.0  # no detection at all is no false positive
    assert result[f"{'precision' if kind == 'recall' else 'recall'}[{aim}]"] == pytest.approx(best, nan_ok=True)
    assert result[f"score[{aim}]"] == pytest.approx(score, nan_ok=True)


def test_an_aim_that_no_score_reaches_is_undefined_with_the_reason() -> None:
    # Of four objects two are found, after a stray: precision is 0, 1/2, 2/3.
    detections = [
        det("cat 500 0 10 10", 0.9),
        det("cat 0 0 10 10", 0.8),
        det("cat 20 0 10 10", 0.7),
    ]
    truth = [gt(f"cat {20 * i} 0 10 10") for i in range(4)]
    result = evaluate(truth, detections, protocol=AT_50, score="recall=0.5")
    assert (result["precision"], result["recall"], result["score"]) == (2 / 3, 1 / 2, 0.7)
    assert (result["recall[precision=0.5]"], result["score[precision=0.5]"]) == (1 / 2, 0.7)
    unmet = result.measured.value(MetricRef.parse("recall[precision=0.9]"))
    assert math.isnan(unmet.value)
    assert unmet.reason == "no score reaches precision=0.9"
    assert math.isnan(result["precision[recall=0.75]"])
