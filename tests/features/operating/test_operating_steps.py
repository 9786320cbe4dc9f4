"""Counts at every step of a slider, against evaluations that never see the detections below the step."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import Picture, det, evaluate, gt

import jaccard_eval
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012, Protocol
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.images import box_outcomes
from jaccard_eval.features.operating import (
    N_STOPS,
    OperatingSteps,
    last_steps,
    operating_steps,
    score_steps,
    shortest_between,
)
from jaccard_eval.metrics.detection import detection_metrics

PROTOCOLS = (COCO, VOC2007, VOC2012, COCO.with_options(class_agnostic=True), VOC2012.with_options(max_dets=(2,)))
TRUTH = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10")]
FOUND = [
    det("cat 0 0 10 10", 0.9),  # right
    det("cat 50 0 10 10", 0.8),  # a dog
    det("dog 80 80 10 10", 0.7),  # nothing
    det("dog 0 50 10 10", 0.07),  # right, with a score that is no sum of hundredths: 7 * .01 > .07
]


def steps_of(result: EvaluationResult, score: float | None = None) -> OperatingSteps:
    start = result.errors.confusion.score if score is None else score
    return operating_steps(detection_metrics(result), result.errors.any_class, start, given=score is not None)


def test_a_scene_by_hand() -> None:
    steps = steps_of(evaluate(TRUTH, FOUND, errors=True))
    assert steps.names == ("cat", "dog")
    assert steps.positives.tolist() == [1, 2]
    # The dog of score .07 is there at 0, .01, ... .07 and nowhere else; the false one up to .7, the cats to .8 and .9.
    assert steps.tp.tolist() == [[1] * 91 + [0] * 10, [1] * 8 + [0] * 93]
    assert steps.fp.tolist() == [[1] * 81 + [0] * 20, [1] * 71 + [0] * 30]
    assert steps.confusion(8).tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]
    assert steps.confusion(7).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert steps.confusion(100).tolist() == [[0, 0, 1], [0, 0, 2], [0, 0, 0]]
    pooled, cat, dog = steps.counts(50)
    assert (pooled.tp, pooled.fp, pooled.fn) == (1, 2, 2)
    assert (pooled.precision, pooled.recall, pooled.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert (dog.precision, dog.recall, dog.f1) == (0, 0, 0)
    assert (cat.precision, cat.recall, cat.f1) == (0.5, 1, 2 / 3)
    assert math.isnan(steps.counts(100)[0].precision)


def test_boxes_show_up_to_the_step_that_their_score_reaches() -> None:
    steps, _ = score_steps(np.array([0.5]), 0.5, given=True)
    assert last_steps(np.array([0.9, 0.07, 0.069, -1, math.nan, 2]), steps).tolist() == [90, 7, 6, -1, -1, 100]


# What no slider may get wrong: steps are the numbers that people type.
def test_the_steps_are_the_hundredths_as_they_are_typed() -> None:
    steps, _ = score_steps(np.array([0.5]), 0.5, given=True)
    assert steps.tolist() == [float(f"{k // 100}.{k % 100:02}") for k in range(101)]


@pytest.mark.parametrize("score", [[], [0.3], [0.0, 1.0], [0.91, 0.92, 0.93]])
def test_few_scores_within_0_and_1_have_hundredths(score: list[float]) -> None:
    steps, place = score_steps(np.array(score), 0.5, given=True)
    assert (len(steps), place) == (101, 50)


def test_scores_outside_of_0_and_1_have_quantiles() -> None:
    logits = np.arange(-500, 501) / 100
    steps, place = score_steps(logits, -1.234, given=True)
    assert steps[place] == -1.234
    assert np.delete(steps, place).tolist() == [round(-5 + k / 10, 2) for k in range(101)]


def test_squeezed_scores_have_quantiles() -> None:
    scores = 0.98 + np.arange(1000) / 1e5
    steps, place = score_steps(scores, float(scores[500]), given=False)
    stops = np.delete(steps, place) if len(steps) > N_STOPS else steps
    # Every stop has ten detections less than the one before.
    assert set(np.diff([(scores >= stop).sum() for stop in stops])) <= {-9, -10, -11}


def test_a_score_that_is_found_is_the_shortest_that_does_the_same() -> None:
    scores = np.array([0.1, 0.4231, 0.4237812, 0.9])
    steps, place = score_steps(scores, 0.4237812, given=False)
    assert (len(steps), steps[place]) == (102, 0.4237)
    assert score_steps(scores, 0.9, given=False)[0][50] == 0.5  # .9 is a hundredth; none is added
    assert score_steps(scores, 0.4231, given=False)[1] == 42  # .42 is above .1
    steps, place = score_steps(scores, 0.4237812, given=True)
    assert steps[place] == 0.4237812


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2, unique=True).map(sorted))
def test_the_shortest_number_lies_between(ends: list[float]) -> None:
    below, score = ends
    assert below < shortest_between(below, score) <= score


def test_a_start_between_two_stops_is_a_step_but_no_stop() -> None:
    steps = steps_of(evaluate(TRUTH, FOUND, errors=True), score=0.123456)
    assert len(steps.scores) == 102
    assert steps.score == 0.123456
    assert steps.thumb == 12
    assert steps.stops.tolist() == [*range(13), *range(14, 102)]
    assert steps_of(evaluate(TRUTH, FOUND, errors=True), score=0.12).thumb == 12
    assert steps_of(evaluate(TRUTH, FOUND, errors=True), score=0.0).thumb == 0


def check_everywhere(steps: OperatingSteps, evaluated_above: Any, *, stride: int = 1) -> None:
    """Compare all numbers of every step, or of some, with those of the evaluation `evaluated_above(score)`."""
    for step, score in [*enumerate(steps.scores.tolist())][::stride]:
        document = evaluated_above(score)
        iou = steps.iou
        points = [row for row in document["operating_points"] if row["iou"] == iou]
        expected = [[row[name] for name in ("tp", "fp", "fn", "precision", "recall", "f1")] for row in points]
        counted = [
            [row.tp, row.fp, row.fn, *(None if math.isnan(x) else x for x in (row.precision, row.recall, row.f1))]
            for row in steps.counts(step)
        ]
        assert counted[: len(expected)] == expected, score
        assert steps.confusion(step).tolist() == document["errors"]["confusion"]["counts"], score


def check_boxes(result: EvaluationResult, steps: OperatingSteps, step: int, score: float) -> None:
    """Count the boxes of every image by their states, as the table of worst images counts them."""
    metrics, images = detection_metrics(result), result.worst_images
    assert result.boxes is not None
    assert images.score == score
    boxes = box_outcomes(metrics, *result.boxes, metrics.protocol.judged_threshold)
    there = last_steps(boxes.score, steps.scores) >= step
    for state, expected in (
        (there & ~boxes.is_object & boxes.is_hit, images.tp),
        (there & ~boxes.is_object & ~boxes.is_hit & ~boxes.is_ignored, images.fp),
        (~there & boxes.is_object & ~boxes.is_ignored, images.fn),
    ):
        assert np.bincount(boxes.image[state], minlength=len(expected)).tolist() == expected.tolist(), score


boxes_drawn = st.tuples(
    st.sampled_from(["cat", "dog", "owl"]), st.integers(0, 4), st.integers(0, 2), st.sampled_from("ab")
)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Picture], list[Picture]]:
    truth = [
        gt(f"{name} {8 * x} {8 * y} 16 16", image, crowd=crowd, difficult=difficult)
        for (name, x, y, image), crowd, difficult in draw(
            st.lists(st.tuples(boxes_drawn, st.booleans(), st.booleans()), max_size=6)
        )
    ]
    tied = st.sampled_from([0.0, 0.07, 0.29, 0.5, 0.5000001, 0.57, 1.0])
    found = [
        det(f"{name} {8 * x + dx} {8 * y} 16 16", score, image)
        for (name, x, y, image), dx, score in draw(
            st.lists(st.tuples(boxes_drawn, st.integers(0, 6), tied), min_size=1, max_size=12)
        )
    ]
    return truth, found


@settings(max_examples=20)
@given(scenes(), st.sampled_from(PROTOCOLS))
def test_any_scene_counts_as_its_better_detections_alone(
    scene: tuple[list[Picture], list[Picture]], protocol: Protocol
) -> None:
    truth, found = scene
    names, images = ["cat", "dog", "owl"], ["a", "b"]
    result = evaluate(truth, found, names=names, images=images, protocol=protocol, errors=True)
    steps = steps_of(result)
    documents: dict[int, Any] = {}

    def evaluated_above(score: float) -> Any:
        # Matched anew without the rest, so that nothing of the one matching is taken for granted.
        kept = [picture for picture in found if picture.score >= score]
        if len(kept) not in documents:
            again = evaluate(
                truth, kept, names=names, images=images, protocol=protocol, errors=True, score=0.0, worst_images=9
            )
            documents[len(kept)] = again.to_dict()
        return documents[len(kept)]

    check_everywhere(steps, evaluated_above)
    for score in (0.07, 0.5):
        again = evaluate(truth, found, names=names, images=images, protocol=protocol, score=score, worst_images=9)
        check_boxes(again, steps, round(100 * score), score)


SETS = {
    "cocoapi": (
        "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        "cocoapi/results/instances_val2014_fakebbox100_results.json",
    ),
    "medwaste": ("d2-medwaste/data/test/_annotations.coco.json", "d2-medwaste/output/coco_instances_results.json"),
}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("name", SETS)
def test_real_sets_count_as_their_better_detections_alone(name: str, protocol: str, shared_data: Path) -> None:
    sides = [shared_data / path for path in SETS[name]]
    options: dict[str, Any] = {"protocol": protocol, "errors": True, "allow": ["box-encoding"]}
    result = jaccard_eval.evaluate(*sides, **options)
    again = [jaccard_eval.load(side, role=role) for side, role in zip(sides, ("gt", "pred"), strict=True)]
    steps = steps_of(result)

    def evaluated_above(score: float) -> Any:
        return jaccard_eval.evaluate(*again, **options, score_min=score, score=score).to_dict()

    check_everywhere(steps, evaluated_above, stride=6)


def test_the_command_line_counts_the_same_at_every_step(sample_data: Path, tmp_path: Path) -> None:
    gt_path, pred_path = (sample_data / "coco" / name for name in ("gt.json", "better.json"))
    steps = steps_of(jaccard_eval.evaluate(gt_path, pred_path, errors=True))

    def evaluated_above(score: float) -> Any:
        file = tmp_path / "result.json"
        flags = ["--errors", "--score", f"{score:.2f}", "-o", str(file), "--quiet"]
        assert run_here("evaluate", gt_path, pred_path, *flags).returncode == 0
        document = json.loads(file.read_text())
        assert document["errors"]["confusion"]["score"] == score
        return document

    check_everywhere(steps, evaluated_above)
