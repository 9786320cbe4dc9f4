"""Numbers of xtcocotools on drawn poses of AP-10K's, Human-Art's and COCO-WholeBody's points, and ours.

`named_sigmas.json` has what its `COCOeval` gave with the sigmas of each, by turns, before it rounds; whole bodies were
given to it as its lists of bodies, feet, faces and hands, to us as one list. Null is undefined there.
"""

import json
import math
from pathlib import Path

import pytest
from drawn_boxes import drawn_skeletons

from jaccard_eval import evaluate
from jaccard_eval.data.protocol import named_sigmas

RECORDED: list[dict[str, float | None]] = json.loads(
    Path(__file__).with_name("named_sigmas.json").read_text(encoding="utf-8")
)
NAMES = ("AP-10K", "Human-Art", "WholeBody")
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_xtcocotools(tmp_path: Path, seed: int) -> None:
    name = NAMES[seed % 3]
    paths = tmp_path / "gt.json", tmp_path / "pred.json"
    for path, content in zip(paths, drawn_skeletons(seed, len(named_sigmas(name))), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    result = evaluate(*paths, iou_type="keypoints", sigmas=name)
    expected = {key: math.nan if value is None else value for key, value in RECORDED[seed].items()}
    assert {key: result[key] for key in expected} == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_names_are_understood_as_benchmarks_write_them() -> None:
    assert named_sigmas("AP-10K") == named_sigmas("ap10k")
    assert named_sigmas("Human-Art") == named_sigmas("humanart") == named_sigmas("coco")
