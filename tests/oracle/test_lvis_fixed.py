"""AP fixed against lvis-api with the rule of its paper: the best detections of each class over all images, uncapped.

``lvis_fixed.json`` holds what lvis-api 0.5.3 says of drawn scenes with ``max_dets=-1``, after the cut that the authors
of Dave et al. 2021 make before it: sorted by score, stable, the first of each category. Where lvis-api is installed, it
is asked again; ``PYTHONPATH=tests python tests/oracle/test_lvis_fixed.py`` writes the file.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_scenes import write_lvis

FILE = Path(__file__).with_name("lvis_fixed.json")
# Seeds of scenes, with the digits of scores, and how many detections of each class are kept: 10,000 in a benchmark.
SCENES = [(seed, digits, most) for seed in range(4) for digits, most in ((4, 3), (1, 10), (2, 40), (3, 10_000))]
N = 240


def lvis_stats(gt: Path, pred: Path, most: int) -> list[float]:
    """Ask lvis-api for its thirteen numbers."""
    if not hasattr(np, "float"):
        setattr(np, "float", float)  # noqa: B010 -- lvis 0.5.3 names what newer NumPy has not
    lvis: Any = pytest.importorskip("lvis")
    by_class = defaultdict(list)
    for one in json.loads(pred.read_text()):
        by_class[one["category_id"]].append(one)
    kept = [
        one for group in by_class.values() for one in sorted(group, key=lambda one: one["score"], reverse=True)[:most]
    ]
    truth = lvis.LVIS(str(gt))
    evaluation = lvis.LVISEval(truth, lvis.LVISResults(truth, kept, max_dets=-1), "bbox")
    evaluation.run()
    return [float(value) for value in evaluation.get_results().values()]


@pytest.mark.parametrize(("seed", "digits", "most"), SCENES)
def test_numbers_are_those_of_lvis_api_after_the_cut_of_the_paper(
    seed: int, digits: int, most: int, tmp_path: Path
) -> None:
    from jaccard_eval import evaluate

    expected = json.loads(FILE.read_text())["scenes"][SCENES.index((seed, digits, most))]
    gt, pred = write_lvis(tmp_path, seed, N, digits)
    result = evaluate(gt, pred, protocol="lvis-fixed", max_dets=[most])
    assert [-1.0 if value.value != value.value else value.value for value in result.metrics.values()] == expected


def test_the_cut_changes_numbers_and_is_ten_thousand() -> None:
    from jaccard_eval import get_protocol

    scenes = json.loads(FILE.read_text())["scenes"]
    assert len(scenes) == len(SCENES)
    assert all(scenes[first] != scenes[first + 3] for first in range(0, len(scenes), 4))
    assert get_protocol("lvis-fixed").max_dets == (10_000,)


def test_lvis_api_still_says_so(tmp_path: Path) -> None:
    pytest.importorskip("lvis")
    scenes = json.loads(FILE.read_text())["scenes"]
    for (seed, digits, most), expected in zip(SCENES[:4], scenes, strict=False):
        assert lvis_stats(*write_lvis(tmp_path, seed, N, digits), most) == expected


if __name__ == "__main__":
    found = []
    for seed, digits, most in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            found.append(lvis_stats(*write_lvis(Path(folder), seed, N, digits), most))
    source = f"lvis 0.5.3 with numpy {np.__version__}, by tests/oracle/test_lvis_fixed.py"
    FILE.write_text(json.dumps({"source": source, "scenes": found}, indent=1) + "\n", encoding="utf-8")
