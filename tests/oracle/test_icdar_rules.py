"""Numbers of ICDAR 2015's script for localised words on drawn images, and ours.

`icdar.json` has what `evaluate_method` of the script (a copy at 1c9fc583) gave on drawn sets, with shapely's polygons
in the place of its own.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from drawn_boxes import Words, drawn_words

from jaccard_eval import Bootstrap, EvaluationResult, evaluate, load_result

RECORDED: list[dict[str, float]] = json.loads(Path(__file__).with_name("icdar.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, words: Words, **asked: Any) -> EvaluationResult:
    for side in ("gt", "pred"):
        (folder / side).mkdir(exist_ok=True)
    for n, (own, found) in enumerate(words, 1):
        (folder / "gt" / f"gt_img_{n}.txt").write_text(f"{own}\n", encoding="utf-8")
        (folder / "pred" / f"res_img_{n}.txt").write_text(f"{found}\n" if found else "", encoding="utf-8")
    return evaluate(folder / "gt", folder / "pred", **{"protocol": "icdar"} | asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, drawn_words(seed), gt_format="icdar", pred_format="icdar")
    # A precision of no detections that count is 0 there, and undefined here.
    found = {name: 0.0 if math.isnan(result[name]) else result[name] for name in RECORDED[seed]}
    assert found == pytest.approx(RECORDED[seed], abs=1e-9)


def quad(left: int, top: int, width: int, height: int, end: str) -> str:
    right, bottom = left + width, top + height
    return f"{left},{top},{right},{top},{right},{bottom},{left},{bottom},{end}"


def test_the_first_pair_is_taken_and_not_the_best(tmp_path: Path) -> None:
    own = "\n".join((quad(0, 0, 100, 20, "ONE"), quad(0, 5, 100, 20, "TWO")))
    # The first detection overlaps the first word by 15/25 and is the second one. The other overlaps that by 1/3.
    found = "\n".join((quad(0, 5, 100, 20, "0.9"), quad(0, 15, 100, 20, "0.8")))
    result = evaluated(tmp_path, [(own, found)])
    assert (result["recall"], result["precision"], result["F1"]) == (0.5, 0.5, 0.5)
    # By the best pair the second word would be found, and that is all.
    assert result["AP"] == pytest.approx(1 / 2)


def test_a_detection_that_nobody_could_read_takes_no_word(tmp_path: Path) -> None:
    own = "\n".join((quad(0, 0, 100, 20, "ONE"), quad(0, 0, 100, 16, "###"), quad(200, 0, 90, 20, "TWO")))
    found = "\n".join((quad(0, 0, 100, 20, "0.9"), quad(200, 0, 90, 20, "0.8")))
    result = evaluated(tmp_path, [(own, found)])
    # The first lies in what cannot be read by 16/20, and does not count, though it is the first word exactly.
    assert (result["recall"], result["precision"]) == (0.5, 1.0)


def test_without_scores_detections_stand_as_in_the_file(tmp_path: Path) -> None:
    own = "\n".join((quad(0, 0, 100, 20, "ONE"), quad(150, 0, 100, 20, "TWO")))
    found = "\n".join(quad(0, 0, 100, 20, "").rstrip(",") for _ in range(2))
    result = evaluated(tmp_path, [(own, found)])
    assert (result["TP"], result["FP"], result["FN"]) == (1, 1, 1)
    assert result["F1"] == 0.5


def test_where_nothing_was_found_recall_is_0(tmp_path: Path) -> None:
    result = evaluated(tmp_path, [(quad(0, 0, 100, 20, "ONE"), "")], gt_format="icdar", pred_format="icdar")
    assert (result["recall"], result["F1"], result["FN"]) == (0.0, 0.0, 1)


def test_runs_intervals_and_documents_have_the_same_numbers(tmp_path: Path) -> None:
    words = drawn_words(5)
    result = evaluated(tmp_path, words, bootstrap=Bootstrap(n_resamples=20))
    for name in ("run.npz", "result.json"):
        result.save(tmp_path / name)
        again = load_result(tmp_path / name)
        assert (again["AP"], again["F1"]) == (result["AP"], result["F1"])


def test_words_stay_oriented_unless_boxes_are_asked_for(tmp_path: Path) -> None:
    turned = "0,0,60,40,56,48,-4,8,WORD".replace("-4", "0")
    results = {
        kind: evaluated(tmp_path, [(turned, turned.replace("WORD", "0.9"))], protocol="coco", iou_type=kind)
        for kind in (None, "bbox")
    }
    assert {kind: result.protocol.iou_type for kind, result in results.items()} == {None: "obb", "bbox": "bbox"}
