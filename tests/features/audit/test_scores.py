"""Odd scores: their range, thresholds, ties and the cap, told from hand-made scenes."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import Picture, curves, det, evaluate, gt

from jaccard_eval import DataError, EvaluationResult, ReadOptions, load
from jaccard_eval import evaluate as evaluate_files
from jaccard_eval.data.protocol import COCO, VOC2007, VOC2012, Protocol
from jaccard_eval.features.audit.scores import highest_reachable_ap
from jaccard_eval.findings import Finding, Severity

BOX = "dog 0 0 10 10"
FAR = "dog 150 150 10 10"
LARGE, FOUND = "dog 0 0 100 100", "dog 0 0 100 97"  # found at all IoU thresholds, and no copy of the label


def _said(result: EvaluationResult, code: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.code == code]


def _about_scores(scores: Sequence[float], **options: Any) -> list[tuple[str, str]]:
    """Severity and code of what is said about scores of one detection per image."""
    images = [f"{i:03d}" for i in range(len(scores))]
    truth = [gt(LARGE, image) for image in images]
    detections = [det(FOUND, score, image) for score, image in zip(scores, images, strict=True)]
    result = evaluate(truth, detections, **options)
    return [(str(one.severity), one.code) for one in result.findings if one.code.startswith("score")]


def _cut_scene() -> tuple[list[Picture], list[Picture]]:
    """60 dogs, one per image; 50 are found first, then come 50 false positives, down to a score of 0.25."""
    images = [f"{i:02d}" for i in range(60)]
    hits = [det(FOUND, 0.9 - i / 1000, image) for i, image in enumerate(images[:50])]
    misses = [det(FAR, 0.3 - i / 1000, image) for i, image in enumerate(images[:49])]
    return [gt(LARGE, image) for image in images], [*hits, *misses, det(FAR, 0.25, images[49])]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([0.9, 0.5, 0.2, 0.1], []),
        ([1.0000001, 0.5, 0.2, 0.0], []),  # single precision
        ([0.7, 0.7, 0.7], []),  # three may well be equal
        ([0.7, 0.7, 0.7, 0.7], [("warning", "score-constant")]),
        ([1, 1, 1, 1], [("warning", "score-constant")]),
        ([88.0, 45.0, 12.5, 0.4], [("warning", "score-percent")]),
        ([100.0, 99.0, 98.0, 97.0], [("warning", "score-percent")]),
        ([0.9, 0.8, 0.7, 3.0], [("note", "score-range")]),  # a quarter of all: another scale
        ([2.5, 1.2, -0.7, -3.1], [("note", "score-range")]),
        ([300.0, 200.0, 120.0, 101.0], [("note", "score-range")]),
        ([0.9 - i / 1000 for i in range(39)] + [57.0], [("warning", "score-range")]),  # 1 of 40: a fault
        ([0.9 - i / 1000 for i in range(39)] + [-1.0], [("warning", "score-range")]),
    ],
)
def test_scores_on_another_scale_are_told(scores: list[float], said: list[tuple[str, str]]) -> None:
    assert _about_scores(scores) == said


def test_a_score_that_the_user_assumes_is_noted_and_not_warned_of(tmp_path: Path) -> None:
    header, rows = "image,class,xmin,ymin,xmax,ymax\n", "".join(f"{i},dog,0,0,10,10\n" for i in range(5))
    for name in ("gt.csv", "pred.csv"):
        (tmp_path / name).write_text(header + rows)
    pred = load(tmp_path / "pred.csv", role="pred", options=ReadOptions(assume_score=1.0))
    result = evaluate_files(tmp_path / "gt.csv", pred)
    (note,) = (one for one in result.findings if one.code.startswith("score"))
    assert (note.severity, note.code) == (Severity.NOTE, "score-assumed")
    assert "none of the 5 predictions has one; all rank equally with 1" in note.message


def test_a_cut_is_told_with_the_most_that_it_can_cost() -> None:
    # Precision is 1 at the 84 of 101 recalls up to 50/60 and 0 beyond: AP is 84/101. Ten more hits end at precision
    # 60/110: at most 84/101 + 17/101 * 6/11.
    truth, detections = _cut_scene()
    (warning,) = _said(evaluate(truth, detections), "score-thresholded")
    now, most = 84 / 101, 84 / 101 + 17 / 101 * 6 / 11
    assert warning.severity is Severity.WARNING
    assert "no score is below 0.25: lower ones were probably cut off" in warning.message
    assert f"{now:.4f} as given, at most {most:.4f} if every further detection were correct" in warning.message


@pytest.mark.parametrize("protocol", [COCO, VOC2007, VOC2012], ids=lambda protocol: protocol.name)
def test_hits_after_the_cut_reach_the_bound_exactly(protocol: Protocol) -> None:
    truth, detections = _cut_scene()
    more = [det(FOUND, 0.1 - i / 1000, f"{i:02d}") for i in range(50, 60)]
    reached = evaluate(truth, [*detections, *more], protocol=protocol)["AP"]
    assert highest_reachable_ap(curves(truth, detections, protocol)) == pytest.approx(reached, abs=1e-12)


@pytest.mark.parametrize("protocol", [COCO, VOC2007, VOC2012], ids=lambda protocol: protocol.name)
def test_no_continuation_of_random_scenes_goes_beyond_the_bound(protocol: Protocol) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        images = [str(i) for i in range(12)]
        truth = [gt(f"{name} 0 0 10 10", i) for i in images for name in ("dog", "cat") if rng.random() < 0.7]
        first, later = (
            [
                det(f"{name} {rng.integers(0, 3)} 0 10 10", low + 0.4 * rng.random(), i)
                for i in images
                for name in ("dog", "cat")
                if rng.random() < 0.5
            ]
            for low in (0.5, 0.05)
        )
        bound = highest_reachable_ap(curves(truth, first, protocol))
        assert evaluate(truth, first, names=["cat", "dog"], protocol=protocol)["AP"] <= bound + 1e-12
        assert evaluate(truth, [*first, *later], names=["cat", "dog"], protocol=protocol)["AP"] <= bound + 1e-12


def test_the_bound_of_a_perfect_ranking_is_1_and_of_no_ground_truth_undefined() -> None:
    assert highest_reachable_ap(curves([gt(BOX)], [det(BOX, 0.9)])) == pytest.approx(1.0, abs=1e-12)
    assert np.isnan(highest_reachable_ap(curves([], [det(BOX, 0.9)])))


def test_ignored_detections_are_not_counted() -> None:
    # A detection of the crowd is ignored, one of the dog is a hit, one of nothing a false positive.
    truth = [gt(BOX), gt("dog 100 0 40 40", crowd=True)]
    detections = [det(BOX, 0.9), det("dog 110 10 10 10", 0.8), det(FAR, 0.7)]
    counted = curves(truth, detections).detection_counts()
    assert counted.tolist() == [[2]] * 10


def test_a_cut_that_costs_nothing_is_a_note() -> None:
    images = [f"{i:03d}" for i in range(100)]
    result = evaluate([gt(LARGE, i) for i in images], [det(FOUND, 0.99 - int(i) / 200, i) for i in images])
    (note,) = _said(result, "score-thresholded")
    assert note.severity is Severity.NOTE
    assert "1.0000 as given, at most 1.0000" in note.message


@pytest.mark.parametrize(
    "scores",
    [
        [0.9 - i / 1000 for i in range(99)],  # too few to tell
        [0.049, *(0.9 - i / 1000 for i in range(120))],  # low scores are there
        [4.9, *(90 - i / 10 for i in range(120))],  # in percent
    ],
)
def test_no_cut_is_seen_where_there_are_low_scores_or_few(scores: list[float]) -> None:
    assert ("warning", "score-thresholded") not in _about_scores(scores)
    assert ("note", "score-thresholded") not in _about_scores(scores)


def test_a_cut_by_the_user_is_not_told_again() -> None:
    scores = [(i + 0.5) / 200 for i in range(200)]
    assert ("note", "score-thresholded") in _about_scores([score for score in scores if score > 0.3])
    assert _about_scores(scores, score_min=0.3) == []


def test_scores_with_few_decimals_are_noted_with_their_decimals() -> None:
    scores = [round(0.01 + i / 20, 2) for i in range(20) for _ in range(6)]
    images = [f"{i:03d}" for i in range(len(scores))]
    detections = [det(FOUND, s, i) for s, i in zip(scores, images, strict=True)]
    result = evaluate([gt(LARGE, i) for i in images], detections)
    (note,) = _said(result, "score-ties")
    assert note.severity is Severity.NOTE
    assert "100% of the detections share their score" in note.message
    assert "(scores have 2 decimals); the order of images breaks ties" in note.message


def test_ties_across_classes_are_no_ties() -> None:
    names = [f"class{i:03d}" for i in range(120)]
    detections = [det(f"{name} 0 0 10 10", 0.01 + i % 2 / 2) for i, name in enumerate(names)]
    assert _said(evaluate([gt("class000 0 0 10 10")], detections), "score-ties") == []


def test_the_cap_names_how_many_images_it_cuts() -> None:
    # Cap 2: image a has 4 dogs (2 cut), b has 3 dogs and 3 cats (1 + 1 cut), c has 2 dogs and 2 cats (none).
    boxes = {"a": {"dog": 4}, "b": {"dog": 3, "cat": 3}, "c": {"dog": 2, "cat": 2}}
    detections = [
        det(f"{name} {20 * i} 0 10 10", 0.9 - i / 100, image)
        for image, names in boxes.items()
        for name, n in names.items()
        for i in range(n)
    ]
    truth = [gt(BOX, "a"), gt("cat 0 0 10 10", "b")]
    (note,) = _said(evaluate(truth, detections, images=["a", "b", "c"], max_dets=[2]), "max-dets")
    assert "ignored 4 detections beyond the cap of 2 per image and class, in 2 images" in note.message
    assert re.search(r"--max-dets none\b", str(note.fix))
    pooled = evaluate(truth, detections, images=["a", "b", "c"], max_dets=[2], class_agnostic=True)
    assert "ignored 8 detections beyond the cap of 2 per image and class, in 3 images" in (  # 4 - 2, 6 - 2, 4 - 2
        _said(pooled, "max-dets")[0].message
    )
    assert _said(evaluate(truth, detections, max_dets=[]), "max-dets") == []


def _crowd(n: int, n_found: int, scores: Sequence[float], **options: Any) -> EvaluationResult:
    """One image with `n` dogs in a row, of which the first `n_found` detections find one each, the others none."""
    truth = [gt(f"dog {20 * i} 0 10 10") for i in range(n)]
    places = [f"dog {20 * i + (0 if i < n_found else 10)} 0 10 10" for i in range(len(scores))]
    return evaluate(truth, [det(place, score) for place, score in zip(places, scores, strict=True)], **options)


def test_a_cap_below_the_objects_of_an_image_is_a_warning_with_the_ap_without_it() -> None:
    # 150 objects, all found: 100 count, with precision 1 up to recall 100 / 150: at 67 of the 101 points of recall.
    result = _crowd(150, 150, [0.9 - i / 1000 for i in range(150)])
    (warning,) = _said(result, "max-dets")
    assert (warning.severity, result["AP50"]) == (Severity.WARNING, pytest.approx(67 / 101, abs=1e-12))
    assert "where up to 150 objects are of one class; AP 0.6634 with the cap, 1.0000 without" in warning.message
    assert _said(result, "score-thresholded") == []  # no lower score could add anything: the cap did


def test_a_cap_that_drops_what_finds_nothing_is_a_note() -> None:
    # Of 150 detections the first 5 find all objects: a third is dropped, and nothing changes.
    (note,) = _said(_crowd(5, 5, [0.9 - i / 1000 for i in range(150)]), "max-dets")
    assert note.severity is Severity.NOTE
    assert note.fix is not None and note.fix.kind == "missing"  # it was measured, and is no better
    # One in eleven is beyond the cap: less than a tenth, and none finds anything.
    (note,) = _said(_crowd(20, 0, [0.9 - i / 1000 for i in range(110)]), "max-dets")
    assert note.severity is Severity.NOTE


def test_equal_scores_across_the_cap_stop_files_and_warn_of_arrays(tmp_path: Path) -> None:
    (warning,) = _said(_crowd(150, 150, [1.0] * 150), "max-dets")
    assert warning.severity is Severity.WARNING
    assert "50 of them have the score of others that count, so that the order of the file chose" in warning.message
    rows = [f"a,dog,{20 * i},0,{20 * i + 10},10" for i in range(150)]
    (tmp_path / "gt.csv").write_text("\n".join(["image,class,xmin,ymin,xmax,ymax", *rows]))
    (tmp_path / "pred.csv").write_text(
        "\n".join(["image,class,xmin,ymin,xmax,ymax,score", *(f"{r},0.5" for r in rows)])
    )
    paths = tmp_path / "gt.csv", tmp_path / "pred.csv"
    with pytest.raises(DataError, match=r"max-dets.*max_dets=\[\]"):
        evaluate_files(*paths)
    assert evaluate_files(*paths, max_dets=[])["AP"] == 1.0
    assert evaluate_files(*paths, allow=["max-dets"])["AP50"] == pytest.approx(67 / 101, abs=1e-12)
