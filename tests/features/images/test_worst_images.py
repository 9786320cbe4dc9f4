"""Images that cost most: by hand, beside pycocotools, and against the counts of the evaluation itself."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import box, write_json, write_pair

from jaccard_eval import BoxTable, EvaluationResult, UsageError, evaluate, to_frame
from jaccard_eval.cli import run

# Image 0: two objects, both found. 1: one missed, one found, two detections on nothing (.9 and .6). 2: nothing there,
# a detection of .7. 3: one object, missed. 4: nothing there and nothing found. The score of .3 is below the point.
GT = BoxTable.from_arrays(
    [0, 0, 1, 1, 3], [0, 1, 0, 1, 0], [[0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 10, 10]]
)
PRED = BoxTable.from_arrays(
    [0, 0, 1, 1, 1, 2, 3, 4],
    [0, 1, 0, 0, 1, 1, 0, 0],
    [
        *([0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 10, 10], [50, 50, 60, 60], [60, 60, 70, 70]),
        *([0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10]),
    ],
    score=[0.95, 0.9, 0.8, 0.9, 0.6, 0.7, 0.3, 0.3],
)


def counted(result: EvaluationResult) -> dict[str, dict[str, Any]]:
    """The rows of the document, by image."""
    return {row["image"]: row for row in result.to_dict()["worst_images"]["rows"]}


def test_an_image_costs_its_misses_and_the_scores_of_its_false_positives() -> None:
    result = evaluate(GT, PRED, score=0.5, worst_images=9)
    document = result.to_dict()["worst_images"]
    assert (document["iou"], document["score"], document["images"]) == (0.5, 0.5, 5)
    # 1 + .9 + .6, then one miss, then .7, then nothing; equal costs stay in the order of the images.
    assert [(row["image"], row["cost"]) for row in document["rows"]] == [
        ("1", 2.5),
        ("3", 1.0),
        ("2", 0.7),
        ("0", 0.0),
        ("4", 0.0),
    ]
    rows = counted(result)
    assert [rows["1"][name] for name in ("gt", "tp", "fp", "fn")] == [2, 1, 2, 1]
    # 1 / 3, 1 / 2, 2 / (2 + 2 + 1)
    assert [rows["1"][name] for name in ("precision", "recall", "f1")] == [1 / 3, 0.5, 0.4]
    assert [rows["3"][name] for name in ("precision", "recall", "f1")] == [None, 0.0, 0.0]
    assert [rows["2"][name] for name in ("precision", "recall", "f1")] == [0.0, None, 0.0]
    assert [rows["4"][name] for name in ("precision", "recall", "f1")] == [None, None, None]
    assert document["undefined"] == {
        "precision": "no predictions with at least this score",
        "recall": "no objects",
        "f1": "neither objects nor predictions with at least this score",
    }


def test_only_so_many_are_listed_and_the_table_has_all() -> None:
    result = evaluate(GT, PRED, score=0.5, worst_images=2)
    assert list(counted(result)) == ["1", "3"]
    assert result.to_dict()["worst_images"]["undefined"].keys() == {"precision"}  # of those that are listed
    frame = to_frame(result.worst_images)
    assert list(frame.columns) == [
        "image",
        "gt",
        "tp",
        "fp",
        "fn",
        "precision",
        "recall",
        "F1",
        "cost",
        "AP",
        "mean_IoU",
    ]
    assert frame["image"].tolist() == ["1", "3", "2", "0", "4"]
    assert math.isnan(frame["precision"][1])
    assert result.worst_images.order.tolist() == [1, 3, 2, 0, 4]


def test_the_score_is_that_of_the_best_f1_unless_it_is_given() -> None:
    result = evaluate(GT, PRED, worst_images=1)
    # From .8 on: 3 right of 4, F1 6/9; from .9 on 2 of 3, 4/8; from .3 on 4 of 8, 8/13.
    assert result.worst_images.score == evaluate(GT, PRED, score="best-f1").operating_points[0].score == 0.8
    assert evaluate(GT, PRED, score="best-f1", worst_images=1).worst_images.score == 0.8


@pytest.mark.parametrize("options", [{}, {"score": 0.5}, {"iou": (0.3, 0.6), "score": 0.2}, {"protocol": "voc2012"}])
def test_the_images_add_up_to_the_operating_point(options: Mapping[str, Any]) -> None:
    result = evaluate(GT, PRED, **{"score": "best-f1", **options}, worst_images=1)
    images = result.worst_images
    point = next(p for p in result.operating_points if p.class_name is None and p.iou == images.iou)
    assert images.iou == (0.3 if "iou" in options else 0.5)
    assert (images.score, *map(int, (images.tp.sum(), images.fp.sum(), images.fn.sum()))) == (
        *(point.score, point.tp, point.fp, point.fn),
    )


def test_nothing_else_changes_and_nothing_is_there_unasked() -> None:
    plain, asked = (evaluate(GT, PRED, **options).to_dict() for options in ({}, {"worst_images": 3}))
    assert "worst_images" not in plain
    # The digest is that of all that the document holds.
    assert {name: asked[name] for name in asked if name not in ("worst_images", "digest")} == {
        name: plain[name] for name in plain if name != "digest"
    }


def test_images_are_counted_when_they_are_looked_at_without_having_been_asked_for() -> None:
    result = evaluate(GT, PRED)
    assert to_frame(result.worst_images).equals(to_frame(evaluate(GT, PRED, worst_images=3).worst_images))
    assert "worst_images" not in result.to_dict()


def test_without_predictions_every_object_is_missed() -> None:
    none = BoxTable.from_arrays([], [], [], score=[])
    images = evaluate(GT, none, worst_images=1).worst_images
    assert math.isnan(images.score)
    assert (images.fn.tolist(), images.cost.tolist(), images.fp.sum()) == ([2, 2, 0, 1], [2.0, 2.0, 0.0, 1.0], 0)


@pytest.mark.parametrize("n", [0, -1, True, 2.5, "3"])
def test_a_number_that_lists_nothing_is_refused(n: Any) -> None:
    with pytest.raises(UsageError, match="worst_images must be a whole number of at least 1"):
        evaluate(GT, PRED, worst_images=n)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    gt, pred = write_pair(tmp_path)
    return str(gt), str(pred)


def test_the_command_lists_them_and_says_where_all_are(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run.run(["evaluate", *pair, "--score", "0.5", "--worst-images", "1"]) == 0
    out = capsys.readouterr().out
    # b.jpg: the cat is missed, and the detection beside it has a score of .8; a.jpg: one dog of two is missed.
    assert ["b.jpg", "1", "0", "1", "1", "0.0000", "0.0000", "0.0000", "1.800"] in [
        line.split() for line in out.splitlines()
    ]
    assert "and 1 more; -o images.csv writes all" in out
    assert run.run(["evaluate", *pair, "--score", "0.5", "--worst-images", "1", "-o", "images.csv"]) == 0
    with Path("images.csv").open(newline="") as file:
        assert [row["image"] for row in csv.DictReader(file)] == ["b.jpg", "a.jpg"]


def test_a_file_of_images_needs_no_other_option_and_changes_no_screen(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run.run(["evaluate", *pair]) == 0
    plain = capsys.readouterr().out
    assert run.run(["evaluate", *pair, "-o", "images.csv"]) == 0
    assert capsys.readouterr().out == plain
    assert Path("images.csv").read_text().splitlines()[0] == "image,gt,tp,fp,fn,precision,recall,F1,cost,AP,mean_IoU"


def test_a_saved_document_with_images_is_judged_and_a_damaged_one_refused(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "result.json"
    assert run.run(["evaluate", *pair, "--worst-images", "2", "-o", str(path)]) == 0
    assert run.run(["gate", str(path), "--fail-under", "AP=0"]) == 0
    document = json.loads(path.read_text())
    document["worst_images"]["rows"][0]["fp"] = -1
    path.write_text(json.dumps(document))
    assert run.run(["gate", str(path), "--fail-under", "AP=0"]) == 3
    assert "worst_images.rows[0].fp" in capsys.readouterr().err


def test_what_a_crowd_absorbs_is_no_mistake(tmp_path: Path) -> None:
    annotations = [box(1, 1, [0, 0, 10, 10], id=1, area=100, iscrowd=0)]
    annotations += [box(1, 1, [50, 0, 50, 50], id=2, area=2500, iscrowd=1)]
    truth = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "dog"}],
    }
    found = [box(1, 1, [60 + i, 10, 10, 10], score=0.9) for i in range(3)]
    gt, pred = write_json(tmp_path / "gt.json", truth), write_json(tmp_path / "pred.json", found)
    row = counted(evaluate(gt, pred, score=0.5, worst_images=1))["a.jpg"]
    # The object is missed; three detections within the crowd count as nothing.
    assert [row[name] for name in ("gt", "tp", "fp", "fn", "cost")] == [1, 0, 0, 1, 1.0]
