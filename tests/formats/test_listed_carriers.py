"""Words and poses in files as data sets and programs write them: the values of both sides by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from carrier_files import POSE_AP, POSES, SCORE, SIGMA, WORD_AP, WORDS

from jaccard_eval import ReadOptions, evaluate, load

KEYPOINTS = ReadOptions(iou_type="keypoints")


def options(folder: Path, **given: object) -> ReadOptions:
    pictures = folder / "images"
    return ReadOptions(images=pictures if pictures.exists() else None, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("carrier", POSES)
def test_poses_are_compared_by_their_points(carrier: str, tmp_path: Path) -> None:
    gt, pred = POSES[carrier](tmp_path)
    unscored = carrier in ("AI Challenger", "300W")
    asked = options(tmp_path, assume_score=1.0 if unscored else None)
    scores = load(pred, role="pred", options=replace(asked, iou_type="keypoints")).boxes.score
    # Of MMPose, the score of the box times the mean of those of points.
    expected = SCORE * 0.8 if carrier == "MMPose 0" else SCORE
    assert unscored or (scores is not None and scores.tolist() == pytest.approx([expected]))
    result = evaluate(
        gt,
        pred,
        iou_type="keypoints",
        sigmas=[SIGMA],
        pred_options=asked,
        class_map="contiguous" if carrier == "300W" else None,
    )
    assert result.metrics["AP"].value == pytest.approx(POSE_AP)


@pytest.mark.parametrize("carrier", WORDS)
def test_words_are_compared_by_their_outlines(carrier: str, tmp_path: Path) -> None:
    gt, pred = WORDS[carrier](tmp_path)
    scores = load(pred, role="pred", options=options(tmp_path)).boxes.score
    assert scores is not None
    assert scores.max() == pytest.approx(0.95 if carrier == "CTW" else SCORE)
    result = evaluate(gt, pred, pred_options=options(tmp_path))
    assert result.metrics["AP"].value == pytest.approx(WORD_AP)
    boxes = {"ALTO", "CTW", "docTR, upright", "hOCR"}
    masks = {"DAVAR", "docTR by class", "PAGE", "TDA-ReCTS"}
    assert result.protocol.iou_type == ("bbox" if carrier in boxes else "segm" if carrier in masks else "obb")
