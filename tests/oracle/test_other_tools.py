"""Numbers of other tools' functions on drawn sets, and ours by the protocol that is said to equal each.

`other_tools.json` has what mmdet 3.3.0's `eval_map`, `voc_eval` of detectron2 at e6b3a96d (for IoU 50 to 95) and
keras-retinanet 1.0.0's `evaluate` returned.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import columns, drawn_images

from jaccard_eval import BoxTable, evaluate

RECORDED: dict[str, list[dict[str, float]]] = json.loads(
    Path(__file__).with_name("other_tools.json").read_text(encoding="utf-8")
)
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
CLOSE = {"mmdet": 1e-7, "detectron2-voc": 1e-12, "keras-retinanet": 1e-12}


def in_32_bits(boxes: Any) -> Any:
    """Round corners as detectors give them."""
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1).astype(np.float32).astype(np.float64)
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)


def sides(seed: int, protocol: str) -> tuple[BoxTable, BoxTable]:
    labels, detected = (columns(images) for images in drawn_images(seed))
    encoding = "xywh"
    if protocol == "mmdet":
        labels[2], detected[2] = in_32_bits(labels[2]), in_32_bits(detected[2])
        detected[3] = detected[3].astype(np.float32).astype(np.float64)
    if protocol == "detectron2-voc":
        # Its files have whole corners of labels, and corners of detections with one decimal.
        whole, encoding = np.round(labels[2]), "xyxy"
        labels[2] = np.concatenate([whole[:, :2], whole[:, :2] + np.maximum(whole[:, 2:], 1)], 1)
        boxes = detected[2]
        detected[2] = np.round(np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1), 1)
    return (
        BoxTable.from_arrays(*labels, encoding=encoding),
        BoxTable.from_arrays(*detected[:3], score=detected[3], encoding=encoding),
    )


@pytest.mark.parametrize("protocol", RECORDED)
@pytest.mark.parametrize("seed", range(25))
def test_the_numbers_are_those_of_the_tool(seed: int, protocol: str) -> None:
    result = evaluate(*sides(seed, protocol), protocol=protocol, extra_images="empty")
    expected = RECORDED[protocol][seed]
    assert {name: result.metrics[name].value for name in expected} == pytest.approx(expected, abs=CLOSE[protocol])


def test_where_each_differs_from_pascal_voc_by_hand() -> None:
    # With both ends of an edge counted 10 x 10 = 100 px of 10 x 20 = 200: IoU 1/2, which is not above 1/2.
    half = BoxTable.from_arrays([0], [0], [[0, 0, 9, 9]]), BoxTable.from_arrays([0], [0], [[0, 0, 9, 19]], score=[0.9])
    assert [evaluate(*half, protocol=name)["AP50"] for name in ("voc2012", "detectron2-voc")] == [1.0, 0.0]
    # Without them 9 x 9 = 81 of 9 x 19 = 171: below 1/2.
    assert [evaluate(*half, protocol=name)["AP50"] for name in ("mmdet", "keras-retinanet")] == [0.0, 0.0]
    # A difficult object counts where there are none.
    gt = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 9, 9], [50, 0, 59, 9]], difficult=[False, True])
    pred = BoxTable.from_arrays([0], [0], [[0, 0, 9, 9]], score=[0.9])
    values = [evaluate(gt, pred, protocol=name)["AP50"] for name in ("mmdet", "detectron2-voc", "keras-retinanet")]
    assert values == [1.0, 1.0, 0.5]
