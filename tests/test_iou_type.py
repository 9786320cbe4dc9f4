"""What is compared where no option names it: boxes where all inputs have them, else the only shapes that all have."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json

import jaccard_eval
from jaccard_eval import UsageError, compare, evaluate, explain
from jaccard_eval.formats import Opened
from jaccard_eval.reading.blocks import part_from

MASK = [[10.0, 10.0, 10.0, 30.0, 30.0, 30.0, 30.0, 10.0, 20.0, 12.0]]
POSE = [12.0, 12.0, 2, 28.0, 28.0, 2]
HAS: dict[str, dict[str, Any]] = {
    "bbox": {"bbox": [10, 10, 20, 20]},
    "segm": {"segmentation": MASK},
    "keypoints": {"keypoints": POSE},
}


def truth(*kinds: str, **more: Any) -> dict[str, Any]:
    record = {"id": 1, "image_id": 1, "category_id": 1, "area": 400, "iscrowd": 0, "num_keypoints": 2}
    return {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 40}],
        "annotations": [{**record, **_fields(kinds), **more}],
        "categories": [{"id": 1, "name": "person"}],
    }


def results(*kinds: str, **more: Any) -> list[dict[str, Any]]:
    return [{"image_id": 1, "category_id": 1, "score": 0.9, **_fields(kinds), **more}]


def _fields(kinds: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for kind in kinds for name, value in HAS[kind].items()}


CASES: list[tuple[tuple[str, ...], tuple[str, ...], str, str]] = [
    # ground truth, predictions, what is compared, and what the note names
    (("bbox", "segm", "keypoints"), ("bbox",), "bbox", ""),
    (("bbox",), ("bbox", "segm"), "bbox", ""),
    (("bbox", "segm"), ("bbox", "segm"), "bbox", "--iou-type segm or --iou-type boundary"),
    (("bbox", "keypoints"), ("bbox", "segm", "keypoints"), "bbox", "--iou-type keypoints"),
    (("bbox", "segm"), ("segm",), "segm", "--iou-type segm or --iou-type boundary"),
    (("segm",), ("bbox", "segm"), "segm", "--iou-type segm or --iou-type boundary"),
    (("bbox", "segm", "keypoints"), ("keypoints",), "keypoints", "--iou-type keypoints"),
]


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(("gt", "pred", "compared", "named"), CASES)
def test_boxes_come_first_then_what_is_common(
    gt: tuple[str, ...], pred: tuple[str, ...], compared: str, named: str, as_file: bool, tmp_path: Path
) -> None:
    sides: Any = truth(*gt), results(*pred)
    if as_file:
        sides = write_json(tmp_path / "gt.json", sides[0]), write_json(tmp_path / "pred.json", sides[1])
    sigmas = [0.1, 0.1] if compared == "keypoints" else None
    result = evaluate(*sides, sigmas=sigmas)
    assert (result.protocol.iou_type, round(result["AP"], 12)) == (compared, 1.0)
    notes = [finding for finding in result.findings if finding.code == "iou-type"]
    assert [named in str(finding.fix) for finding in notes] == [True] * bool(named)
    # What was found is what naming it gives, but for the note.
    asked = evaluate(*sides, iou_type=compared, sigmas=sigmas)
    assert (asked.signature, asked.metrics) == (result.signature, result.metrics)
    assert "iou-type" not in {finding.code for finding in asked.findings}


def test_a_choice_without_boxes_is_the_users(tmp_path: Path) -> None:
    gt, pred = truth("bbox", "segm", "keypoints"), results("segm", "keypoints")
    with pytest.raises(UsageError, match="have masks and keypoints"):
        evaluate(gt, pred)
    files = write_json(tmp_path / "gt.json", gt), write_json(tmp_path / "pred.json", pred)
    refused = run_here(*files)
    assert refused.returncode == 2
    for choice in ("segm", "boundary", "keypoints"):
        assert f"--iou-type {choice}" in refused.stderr
        assert (
            run_here(
                *files, "--iou-type", choice, *(("--sigmas", "0.1,0.1") if choice == "keypoints" else ())
            ).returncode
            == 0
        )


def test_nothing_in_common_is_an_error_of_the_file_that_lacks_boxes(tmp_path: Path) -> None:
    pred = write_json(tmp_path / "pred.json", results("keypoints"))
    done = run_here(write_json(tmp_path / "gt.json", truth("bbox")), pred)
    assert (done.returncode, f"{pred}: [0].bbox" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    "empty",
    [
        {"segmentation": []},
        {"segmentation": None, "keypoints": []},
        # Some exporters write the box once more.
        {"segmentation": [[10, 10, 30, 10, 30, 30, 10, 30]]},
        {"segmentation": [[10, 10, 10, 30, 30, 30, 30, 10, 10, 10]]},
    ],
)
def test_empty_fields_and_boxes_written_as_masks_are_not_carried(empty: dict[str, Any], tmp_path: Path) -> None:
    gt, pred = truth("bbox", "segm", "keypoints"), results("bbox", **empty)
    for given in (pred, write_json(tmp_path / "pred.json", pred)):
        assert [finding for finding in evaluate(gt, given).findings if finding.code == "iou-type"] == []


def test_annotations_behind_a_long_list_of_images_are_seen(tmp_path: Path) -> None:
    gt = truth("bbox", "keypoints")
    gt["images"] += [{"id": row, "file_name": f"{row:060}.jpg", "width": 40, "height": 40} for row in range(2, 1200)]
    result = evaluate(write_json(tmp_path / "gt.json", gt), results("keypoints"), sigmas=[0.1, 0.1])
    assert result.protocol.iou_type == "keypoints"


def test_all_predictions_of_a_comparison_are_asked() -> None:
    gt, bare = truth("bbox", "segm"), results("segm")
    for preds in ((bare, results("bbox", "segm")), (results("bbox", "segm"), bare)):
        assert {result.protocol.iou_type for result in compare(gt, *preds).results} == {"segm"}
    assert explain(gt, bare, "AP50").metric == explain(gt, bare, "AP50", iou_type="segm").metric


def test_the_rules_of_what_is_found_hold() -> None:
    gt, pred = truth("bbox", "keypoints"), results("keypoints")
    found = evaluate(gt, pred, sigmas=[0.1, 0.1], max_dets=[5])
    assert found.protocol.max_dets == (5,)
    assert [area.name for area in found.protocol.areas] == ["all", "medium", "large"]
    own = jaccard_eval.get_protocol("coco").with_options(iou_thresholds=(0.6,))
    assert evaluate(gt, pred, protocol=own, sigmas=[0.1, 0.1]).protocol.iou_thresholds == (0.6,)


def test_a_protocol_of_keypoints_needs_no_option_and_no_areas() -> None:
    pose = [12.0, 12.0, 2] * 14
    gt, pred = truth("bbox", keypoints=pose, num_keypoints=14), results("bbox", keypoints=pose)
    del gt["annotations"][0]["area"]
    result = evaluate(gt, pred, protocol="crowdpose")
    assert (result.protocol.iou_type, round(result["AP"], 12)) == ("keypoints", 1.0)
    # How crowded the image is, which the three subsets go by, is not in the file.
    assert [finding.code for finding in result.findings] == ["subset-unknown"]


@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_annotations_are_found_behind_any_number_of_images_without_the_rest(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jaccard_eval.reading.blocks._BLOCK_BYTES", block)
    document = truth("segm")
    document["images"] += [{**document["images"][0], "id": image} for image in range(2, 1500)]
    text = json.dumps(document).encode()
    assert text.find(b'"annotations"') > 1 << 16  # more than a look at the file shows
    packed = gzip.compress(text, 0)
    (tmp_path / "gt.json.gz").write_bytes(packed)
    assert Opened(tmp_path / "gt.json.gz").iou_types == {"segm"}
    (tmp_path / "gt.json").write_bytes(text)
    assert Opened(tmp_path / "gt.json").iou_types == {"segm"}
    # Where annotations come first, nothing behind them is read: not even that the file is cut off.
    document = {**document, "images": []} | {"annotations": document["annotations"] * 5000}
    cut = gzip.compress(json.dumps(document).encode(), 0)[: 1 << 19]
    (tmp_path / "cut.json.gz").write_bytes(cut)
    assert part_from(tmp_path / "cut.json.gz", re.compile(b'"annotations"'), 99).startswith(b'"annotations": [{')
