"""Where the boundary of every object is its whole mask, boundary AP is that of masks: a note says so."""

from typing import Any

import pytest

from jaccard_eval import evaluate

# 400 x 300 px: the diagonal is 500, the boundary 10 px wide on each side.
THIN, THICK, ODD = [50, 50, 80, 20], [50, 150, 80, 21], [200, 100, 20, 150]


def sides(*boxes: list[int], crowd: int = -1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    records = [
        {"id": n + 1, "image_id": 1, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": int(n == crowd)}
        | {"segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]]}
        for n, box in enumerate(boxes)
        for x, y, w, h in [box]
    ]
    for record in records:
        if record["iscrowd"]:
            x, y, w, h = record["bbox"]
            counts = [x * 300 + y, *([h, 300 - h] * w)]
            counts[-1] = 400 * 300 - sum(counts[:-1])
            record["segmentation"] = {"size": [300, 400], "counts": counts}
    gt = {
        "images": [{"id": 1, "file_name": "a.png", "width": 400, "height": 300}],
        "categories": [{"id": 1, "name": "cable"}],
        "annotations": records,
    }
    pred = [
        {"image_id": 1, "category_id": 1, "score": 0.9, "segmentation": record["segmentation"], "bbox": record["bbox"]}
        for record in records
        if not record["iscrowd"]
    ]
    return gt, pred


def notes(*boxes: list[int], **options: Any) -> list[str]:
    crowd = options.pop("crowd", -1)
    result = evaluate(*sides(*boxes, crowd=crowd), iou_type="boundary", **options)
    return [finding.message for finding in result.findings if finding.code == "boundary-whole"]


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_objects_that_are_all_thinner_than_the_boundary_are_said() -> None:
    (message,) = notes(THIN, ODD)
    assert "all 2 objects are thinner than the boundary (10 px on each side), so it is the whole mask" in message


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_one_object_with_a_core_is_enough_for_silence() -> None:
    # 21 px high: one row of pixels is further than 10 px from the edge
    assert notes(THIN, THICK, ODD) == []


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_the_width_that_is_given_counts_and_crowds_do_not() -> None:
    assert notes(THIN, dilation_ratio=0.01) == []
    assert len(notes(THIN, THICK, crowd=1)) == 1
