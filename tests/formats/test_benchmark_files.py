"""Files of benchmarks that are COCO's but for their classes or fields: a note names the protocol with their rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import EvaluationResult, evaluate

pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
AITOD = ["airplane", "bridge", "storage-tank", "ship", "swimming-pool", "vehicle", "person", "wind-mill"]
SODA = [
    *("people", "rider", "bicycle", "motor", "vehicle"),
    *("traffic-sign", "traffic-light", "traffic-camera", "warning-cone"),
]


def evaluated(folder: Path, classes: list[str], **asked: Any) -> EvaluationResult:
    box = {"image_id": 1, "category_id": 1, "bbox": [10, 10, 6, 6]}
    gt = {
        "images": [{"id": 1, "width": 800, "height": 800}],
        "annotations": [{**box, "id": 1, "area": 36, "iscrowd": 0}],
        "categories": [{"id": place, "name": name} for place, name in enumerate(classes, 1)],
    }
    (folder / "gt.json").write_text(json.dumps(gt), encoding="utf-8")
    (folder / "pred.json").write_text(json.dumps([{**box, "score": 0.5}]), encoding="utf-8")
    return evaluate(folder / "gt.json", folder / "pred.json", **asked)


@pytest.mark.parametrize(("protocol", "classes"), [("aitod", AITOD), ("soda", SODA)])
def test_all_classes_of_a_benchmark_lead_to_its_rules(protocol: str, classes: list[str], tmp_path: Path) -> None:
    result = evaluated(tmp_path, classes)
    (note,) = [finding for finding in result.findings if finding.code == "protocol-unusual"]
    assert result.protocol.name == "coco"
    assert f"the benchmark {protocol}" in note.message
    assert note.fix is not None and note.fix.options == {"protocol": protocol}
    assert "protocol-unusual" not in {found.code for found in evaluated(tmp_path, classes, protocol=protocol).findings}
    assert "protocol-unusual" not in {found.code for found in evaluated(tmp_path, classes[:-1]).findings}
