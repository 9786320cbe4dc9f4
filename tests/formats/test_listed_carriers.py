"""Words and poses in files as data sets and programs write them: the values of both sides by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from carrier_files import POSE_AP, POSES, SCORE, SIGMA, UNSCORED, WORD_AP, WORDS
from command_line import write_json

from jaccard_eval import DataError, ReadOptions, evaluate, load

KEYPOINTS = ReadOptions(iou_type="keypoints")


def options(folder: Path, **given: object) -> ReadOptions:
    pictures = folder / "images"
    return ReadOptions(images=pictures if pictures.exists() else None, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("carrier", POSES)
def test_poses_are_compared_by_their_points(carrier: str, tmp_path: Path) -> None:
    gt, pred = POSES[carrier](tmp_path)
    unscored = carrier in UNSCORED
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
    asked = options(tmp_path, assume_score=1.0 if carrier in UNSCORED else None)
    scores = load(pred, role="pred", options=asked).boxes.score
    expected = 0.95 if carrier == "CTW" else SCORE
    assert carrier in UNSCORED or (scores is not None and scores.max() == pytest.approx(expected))
    result = evaluate(gt, pred, pred_options=asked)
    assert result.metrics["AP"].value == pytest.approx(WORD_AP)
    boxes = {"ALTO", "CTW", "docTR, upright", "hOCR"}
    masks = {"DAVAR", "docTR by class", "Kili", "kraken", "PAGE", "TDA-ReCTS"}
    assert result.protocol.iou_type == ("bbox" if carrier in boxes else "segm" if carrier in masks else "obb")


def test_pages_of_a_document_are_numbered_and_never_one_image(tmp_path: Path) -> None:
    _, pred = WORDS["docTR, export"](tmp_path)
    page = json.loads((pred / "a.json").read_text())["pages"][0]
    path = write_json(tmp_path / "document.json", {"pages": [page, {**page, "page_idx": 1}]})
    side = load(path, role="pred")
    assert (side.images.keys, side.boxes.image.tolist()) == (("0", "1"), [0, 1])
    assert [finding.code for finding in side.findings if finding.code == "image-position"]


@pytest.mark.parametrize("carrier", ["docTR, export", "EasyOCR by name"])
def test_outputs_that_name_no_image_lead_to_a_file_for_each(carrier: str, tmp_path: Path) -> None:
    gt, pred = WORDS[carrier](tmp_path)
    if carrier == "docTR, export":
        (page,) = json.loads((pred / "a.json").read_text())["pages"]
        document = {"pages": [page, {**page, "page_idx": 1}]}
    else:
        document = [*json.loads(pred.read_text()).values(), [], []]
    path = write_json(tmp_path / "document.json", document)
    with pytest.raises(DataError, match=r"the list does not name images; its \d outputs") as caught:
        evaluate(gt, path)
    assert "to a file called like its image" in str(caught.value)


def test_shares_of_an_image_without_a_size_need_the_images(tmp_path: Path) -> None:
    _, pred = WORDS["Textract"](tmp_path)
    with pytest.raises(DataError, match=r"coordinates are shares of an image whose size is not written") as caught:
        load(pred, role="pred")
    assert caught.value.findings[0].fix is not None
    assert "pred_images" in caught.value.findings[0].fix.options


def test_hands_without_a_body_are_refused_where_there_is_nothing_else(tmp_path: Path) -> None:
    person = {"pose_keypoints_2d": [], "hand_left_keypoints_2d": [1.0, 2.0, 0.5] * 21}
    path = write_json(tmp_path / "a_keypoints.json", {"version": 1.3, "people": [person]})
    with pytest.raises(DataError, match="1 person has points of hands or a face alone"):
        load(path, role="pred")
    body = {"pose_keypoints_2d": [1.0, 2.0, 0.5] * 25}
    write_json(path, {"version": 1.3, "people": [person, body]})
    side = load(path, role="pred")
    assert len(side.boxes) == 1
    assert "shape-unused" in [finding.code for finding in side.findings]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n_points: 2\n{\n1 2\n3 x\n}\n", "has 4 words for 2 points"),
        ("n_points: 3\n{\n1 2\n3 4\n}\n", "has 4 words for 3 points"),
        ("n_points: 2\n{\n1 2\n3 4\n", "has 4 words for 2 points"),
    ],
)
def test_faces_without_all_their_points_are_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pts"
    path.write_text(text)
    with pytest.raises(DataError, match=told):
        load(path, options=ReadOptions(iou_type="keypoints"))


def test_words_of_hocr_without_a_box_are_refused(tmp_path: Path) -> None:
    _, pred = WORDS["hOCR"](tmp_path)
    path = pred / "a.hocr"
    path.write_text(path.read_text().replace("bbox 11 10", "box 11 10"))
    with pytest.raises(DataError, match="expected bbox and four whole numbers"):
        load(pred, role="pred")


def test_a_look_at_boxes_without_end_takes_no_time(tmp_path: Path) -> None:
    # Blanks between boxes belong to one part of the pattern: else there were two ways for each of them.
    path = tmp_path / "found.json"
    path.write_text('[["a.jpg", [' + "[1, 2, 3, 4] " * 4000 + "x")
    with pytest.raises(DataError):
        load(path, role="pred")
