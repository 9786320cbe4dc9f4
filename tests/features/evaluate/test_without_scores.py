"""Predictions without scores: what counts them comes first, and AP has its bounds over all their orders."""

import json
from pathlib import Path

import pytest
from command_line import run_here, write_json

from jaccard_eval import ReadOptions, evaluate, load
from jaccard_eval.runs import load_result

# Two dogs, one found exactly and one not at all, and a prediction on nothing. By order of the predictions the hit is
# first, precision 1 at the 51 recalls up to 1/2, or second, precision 1/2 there.
BOUNDS = (51 / 101 / 2, 51 / 101)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    dogs = [[0, 0, 10, 10], [50, 50, 20, 20]]
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": at, "image_id": 1, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for at, box in enumerate(dogs, start=1)
        ],
    }
    found = [{"image_id": 1, "category_id": 1, "bbox": box} for box in ([80, 0, 10, 10], [0, 0, 10, 10])]
    return write_json(tmp_path / "gt.json", gt), write_json(tmp_path / "pred.json", found)


def test_what_counts_predictions_comes_first_and_ap_has_its_bounds(pair: tuple[Path, Path]) -> None:
    result = evaluate(*pair, pred_options=ReadOptions(assume_score=1.0))
    assert [*result.metrics][:5] == ["precision", "recall", "F1", "mean_IoU", "AP"]
    assert [result[name] for name in [*result.metrics][:4]] == [0.5, 0.5, 0.5, 1.0]
    assert result.ties == pytest.approx(BOUNDS, abs=1e-15)
    assert result["AP"] == pytest.approx(BOUNDS[0])  # of equal scores, the one that stands first in the file
    assert "without scores AP is between 0.2525 and 0.5050" in repr(result)
    given = evaluate(pair[0], load(pair[1], role="pred", options=ReadOptions(role="pred", assume_score=0.25)))
    assert (given["precision"], given.ties) == (0.5, result.ties)


def test_reports_and_saved_results_say_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.npz", "r.html")]
    done = run_here("evaluate", *pair, "--assume-score", "1", *(word for file in files for word in ("-o", file)))
    assert done.returncode == 0
    line = (
        "precision 0.5000  recall 0.5000  F1 0.5000  mean IoU 1.0000  AP 0.2525 to 0.5050 by the order of predictions"
    )
    assert line in done.stdout
    assert "predictions have no scores: AP is between 0.2525 and 0.5050, by their order" in done.stdout
    assert json.loads(files[0].read_text())["ties"] == pytest.approx(BOUNDS)
    assert "AP (0.2525 to 0.5050, by order)" in files[2].read_text()
    for file in files[:2]:
        saved = load_result(file)
        assert ([*saved.metrics][:4], saved.ties) == (["precision", "recall", "F1", "mean_IoU"], pytest.approx(BOUNDS))
    done = run_here("evaluate", *pair, "--assume-score", "1", "--fail-under", "F1=0.6", "-q")
    assert (done.returncode, "FAILED  F1[score=1] 0.5000 < 0.60" in done.stdout) == (1, True)


def test_scores_that_are_there_change_nothing(pair: tuple[Path, Path]) -> None:
    records = [{**record, "score": 0.5} for record in json.loads(pair[1].read_text())]
    result = evaluate(pair[0], write_json(pair[1], records), pred_options=ReadOptions(assume_score=1.0))
    assert (next(iter(result.metrics)), result.ties, result.options.get("score")) == ("AP", None, None)
