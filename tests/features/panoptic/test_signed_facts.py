"""Every fact that a mean depends on is part of the signature."""

import copy
import json
from pathlib import Path
from typing import Any

from jaccard_eval import panoptic

SAMPLE = Path(__file__).parents[3] / "sample_data/panoptic"


def test_what_is_a_thing_is_signed(tmp_path: Path) -> None:
    truth: dict[str, Any] = json.loads((SAMPLE / "gt.json").read_text())
    masks = {"gt_masks": SAMPLE / "gt", "pred_masks": SAMPLE / "worse"}
    given = panoptic(SAMPLE / "gt.json", SAMPLE / "worse.json", **masks)
    signatures = {given.signature}
    for at, category in enumerate(truth["categories"]):
        changed = copy.deepcopy(truth)
        changed["categories"][at]["isthing"] = 1 - category["isthing"]
        path = tmp_path / "gt.json"
        path.write_text(json.dumps(changed))
        other = panoptic(path, SAMPLE / "worse.json", **masks)
        assert other.pred.fingerprint == given.pred.fingerprint
        signatures.add(other.signature)
    assert len(signatures) == len(truth["categories"]) + 1
