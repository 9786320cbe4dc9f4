"""Public pairs, each in the layout that its repository has, as the sets of one suite: the published numbers."""

from pathlib import Path

import pytest

from jaccard_eval import suite

OWN = {
    "coco": {
        "gt": "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        "pred": "cocoapi/results/instances_val2014_{model}bbox100_results.json",
    },
    "waste": {
        "gt": "d2-medwaste/data/test/_annotations.coco.json",
        "pred": "d2-medwaste/output/coco_instances_results.json",
    },
    "cartucho": {"gt": "cartucho-map/input/ground-truth", "pred": "cartucho-map/input/detection-results"},
}


def test_pairs_in_three_layouts_have_their_published_numbers(shared_data: Path) -> None:
    plan = {"gt": "none/{set}", "pred": "none/{model}/{set}", "set": OWN}
    result = suite(plan, folder=shared_data, cache=False, workers=1)
    found = {cell.set_name: cell.metrics for cell in result.cells if cell.state == "done"}
    assert found["coco"]["AP"] == pytest.approx(0.504581, abs=1e-6)
    assert found["waste"]["AP"] == pytest.approx(0.217227, abs=1e-6)  # pycocotools cannot match annotation 0
    assert found["cartucho"]["AP50"] == pytest.approx(0.31, abs=0.02)  # VOC's rule on the same boxes gives .3105
