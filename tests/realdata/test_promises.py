"""What explain promises of published detections, held to through files and the command line."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from command_line import write_json

from jaccard_eval.cli import run as _run

GT = "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json"
PRED = "cocoapi/results/instances_val2014_fakebbox100_results.json"
WASTE_GT = "d2-medwaste/data/test/_annotations.coco.json"  # whose annotation ids start at 0
WASTE_PRED = "d2-medwaste/output/coco_instances_results.json"
TOP = 2.0  # a score above all others

Record = dict[str, Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*argv: str | Path) -> Record:
        assert _run.run(["explain", *map(str, argv), "--json", "--quiet"]) == 0
        document: Record = json.loads(capsys.readouterr().out)
        return document

    return run


@pytest.fixture
def saved(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "result.json"
    argv = ["evaluate", str(shared_data / GT), str(shared_data / PRED), "-q", "--no-errors", "-o", str(path)]
    assert _run.run(argv) == 0
    capsys.readouterr()
    return path


def repaired(gt: Path, pred: Path, fixes: list[Record]) -> list[Record]:
    """Do to the file of results what the fixes say."""
    truth, results = (json.loads(path.read_text()) for path in (gt, pred))
    classes = {one["name"]: one["id"] for one in truth["categories"]}
    for one in fixes:
        place = {"category_id": classes.get(one["becomes"]), "bbox": one["xywh"]}
        if one["kind"] == "missed":
            results.append({"image_id": truth["annotations"][one["source"]]["image_id"], "score": TOP, **place})
        else:
            results[one["source"]] = results[one["source"]] | place if one["becomes"] else None
    return [one for one in results if one is not None]


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize(
    "metric",
    ["AP", "AP50[class=person]", "AR", "F1[score=best-f1]", "precision[iou=0.5,score=0.4,class=person]", "recall"],
)
def test_fixing_the_boxes_of_a_file_raises_the_metric_by_what_was_said(
    metric: str, protocol: str, ask: Any, shared_data: Path, tmp_path: Path
) -> None:
    found = ask(shared_data / GT, shared_data / PRED, metric, "--protocol", protocol)
    assert found["fixes"]
    fixed = write_json(tmp_path / "fixed.json", repaired(shared_data / GT, shared_data / PRED, found["fixes"]))
    again = ask(shared_data / GT, fixed, found["metric"]["ref"], "--protocol", protocol, "--boxes", "1")
    assert again["metric"]["value"] == pytest.approx(found["fixed"], abs=1e-12)
    assert found["fixed"] > found["metric"]["value"]


@pytest.mark.parametrize("metric", ["AP", "AP50", "AR100", "F1[score=best-f1]", "recall[score=0.9]"])
def test_the_promise_holds_of_other_detectors(metric: str, ask: Any, shared_data: Path, tmp_path: Path) -> None:
    gt, pred = shared_data / WASTE_GT, shared_data / WASTE_PRED
    found = ask(gt, pred, metric)
    fixed = write_json(tmp_path / "fixed.json", repaired(gt, pred, found["fixes"]))
    again = ask(gt, fixed, found["metric"]["ref"], "--boxes", "1")
    assert again["metric"]["value"] == pytest.approx(found["fixed"], abs=1e-12)
    assert found["fixed"] > found["metric"]["value"]


@pytest.mark.parametrize("metric", ["AR100", "AR1[class=person]"])
def test_the_promise_holds_under_caps(metric: str, ask: Any, shared_data: Path, tmp_path: Path) -> None:
    found = ask(shared_data / GT, shared_data / PRED, metric)
    fixed = write_json(tmp_path / "fixed.json", repaired(shared_data / GT, shared_data / PRED, found["fixes"]))
    assert ask(shared_data / GT, fixed, metric)["metric"]["value"] == pytest.approx(found["fixed"], abs=1e-12)


@pytest.mark.parametrize("metric", ["AP", "AP50[class=person]", "AR", "F1[score=0.3]"])
@pytest.mark.parametrize(("start", "end"), [("coco", "voc2007"), ("coco", "voc2012"), ("voc2012", "coco")])
def test_steps_add_up_to_the_gap_exactly(metric: str, start: str, end: str, ask: Any, shared_data: Path) -> None:
    sides = (shared_data / GT, shared_data / PRED)
    found = ask(*sides, metric, "--protocol", start, "--against", end, "--boxes", "1")
    goal = ask(*sides, metric, "--protocol", end, "--boxes", "1")
    values = [found["metric"]["value"], *(one["value"] for one in found["steps"])]
    assert values[-1] == goal["metric"]["value"]
    assert [one["delta"] for one in found["steps"]] == [b - a for a, b in itertools.pairwise(values)]
    gap = values[-1] - values[0]
    assert math.fsum(one["delta"] for one in found["steps"]) == pytest.approx(gap, abs=1e-15)


def test_a_saved_result_is_explained_as_its_inputs_are(ask: Any, saved: Path, shared_data: Path) -> None:
    for metric in ("AP", "F1[score=best-f1]"):
        direct = ask(shared_data / GT, shared_data / PRED, metric, "--against", "voc2012")
        assert ask(saved, metric, "--against", "voc2012") == direct
