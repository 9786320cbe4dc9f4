import json
from pathlib import Path

import pytest
from command_line import box, write_json, write_pair

from jaccard_eval.cli import run

# Two dogs overlap by 80 / 120, a part of the first by 25 / 100; a cat lies on the first dog.
DOG, SHIFTED, PART = [0, 0, 10, 10], [2, 0, 10, 10], [0, 0, 5, 5]


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    rows = [(1, DOG, 0.9), (1, SHIFTED, 0.8), (2, DOG, 0.7), (1, PART, 0.04)]
    return write_json(tmp_path / "pred.json", [box(1, label, xywh, score=score) for label, xywh, score in rows])


def suppress(capsys: pytest.CaptureFixture[str], pred: Path, *argv: str) -> tuple[list[float], dict[str, int]]:
    """Scores that are left in the output, and the totals that were printed."""
    out = pred.with_name("out.json")
    assert run.run(["nms", str(pred), "-o", str(out), "--force", "--json", *argv]) == 0
    scores = [record["score"] for record in json.loads(out.read_text())]
    return scores, json.loads(capsys.readouterr().out)["total"]


@pytest.mark.parametrize(
    ("argv", "scores"),
    [
        (["--iou", "0.6"], [0.9, 0.7, 0.04]),
        (["--iou", "0.7"], [0.9, 0.8, 0.7, 0.04]),
        (["--by", "ioa"], [0.9, 0.7]),
        (["--class-agnostic"], [0.9, 0.04]),
        (["--score-min", "0.05"], [0.9, 0.7]),
    ],
    ids=lambda one: " ".join(map(str, one)),
)
def test_the_output_holds_what_is_left(
    argv: list[str], scores: list[float], pred: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, total = suppress(capsys, pred, *argv)
    assert left == pytest.approx(scores)
    assert (total["before"], total["after"]) == (4, len(scores))


def test_boxes_below_the_least_score_are_counted_apart(pred: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suppress(capsys, pred, "--score-min", "0.05")[1] == {"before": 4, "below": 1, "after": 2}


def test_counts_are_printed_by_class_and_in_all(pred: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["nms", str(pred), "-o", str(pred.with_name("out.json")), "--iou", "0.6"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "3", "0", "1", "2"] in rows
    assert ["all", "4", "0", "1", "3"] in rows


@pytest.mark.parametrize(
    ("source", "target"),
    [("coco/better.json", "out.json"), ("csv/better.csv", "out.csv"), ("yolo/better", "out")],
)
def test_an_evaluation_of_the_output_is_one_with_nms(
    source: str, target: str, sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--pred-names", "person,bicycle,car,cat,dog"] if "yolo" in source else []
    gt = sample_data / ("coco/gt.json" if "coco" in source else "csv/gt.csv")
    pred = sample_data / source
    assert run.run(["nms", str(pred), "-o", str(tmp_path / target), "--iou", "0.3", *names]) == 0
    capsys.readouterr()
    metrics = []
    for argv in ([str(tmp_path / target)], [str(pred), "--nms", "0.3"]):
        assert run.run(["evaluate", str(gt), *argv, "--json", *names]) == 0
        metrics.append(json.loads(capsys.readouterr().out)["metrics"])
    assert metrics[0] == metrics[1]


def test_an_existing_output_is_kept_unless_forced(pred: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = pred.with_name("out.json")
    out.write_text("mine")
    assert run.run(["nms", str(pred), "-o", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert run.run(["nms", str(pred), "-o", str(out), "--force"]) == 0


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["-o", "pred.json", "--force"], 2, "which this run reads"),
        (["-o", "out.json", "--iou", "1.5"], 2, "must be between 0 and 1"),
        (["-o", "out.json", "--by", "giou"], 2, "Did you mean 'iou'"),
        ([], 2, "--output"),
    ],
)
def test_what_cannot_be_done_leaves_no_output(
    argv: list[str],
    code: int,
    message: str,
    pred: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(pred.parent)
    before = pred.read_text()
    assert run.run(["nms", "pred.json", *argv]) == code
    assert message in capsys.readouterr().err
    assert [one.name for one in pred.parent.iterdir()] == ["pred.json"]
    assert pred.read_text() == before


def test_predictions_without_scores_are_an_error_of_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, _ = write_pair(tmp_path)
    assert run.run(["nms", str(gt), "-o", str(tmp_path / "out.json")]) == 3
    assert "score" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_strict_takes_a_warning_of_the_input_for_an_error(tmp_path: Path) -> None:
    _, pred = write_pair(tmp_path, warned=True)
    assert run.run(["nms", str(pred), "-o", str(tmp_path / "out.json"), "--strict"]) == 3
    assert not (tmp_path / "out.json").exists()
