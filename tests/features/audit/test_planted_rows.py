"""Mistakes about scores, rows and digits, planted into good data; where a flag mends it, the true AP comes back."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json

from jaccard_eval import EvaluationResult, evaluate, load
from jaccard_eval.findings import Finding, Severity

Record = dict[str, Any]
Plant = Callable[["Pair"], None]

CODES = frozenset(
    {
        "box-rounded", "gt-duplicate", "gt-near-duplicate", "gt-uncounted", "gt-unmatchable", "max-dets",
        "pred-duplicate", "score-constant", "score-percent", "score-range", "score-thresholded", "score-ties",
    }
)  # fmt: skip

SETS = {
    "sample": ("coco/gt.json", "coco/better.json"),
    "cocoapi": (
        "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        "cocoapi/results/instances_val2014_fakebbox100_results.json",
    ),
}


@dataclass
class Pair:
    """A good pair of COCO files as objects."""

    gt: Record
    pred: list[Record]

    def write(self, folder: Path) -> tuple[Path, Path]:
        return write_json(folder / "gt.json", self.gt), write_json(folder / "pred.json", self.pred)


@dataclass
class Planted:
    """A mistake, what is said about it, and the flag that mends it."""

    plant: Plant
    code: str
    severity: Severity
    evidence: str
    moves_ap: bool
    flag: str = ""


def _append_predictions(pair: Pair) -> None:
    pair.pred = pair.pred * 2


def _append_some_predictions(pair: Pair) -> None:
    best = sorted(pair.pred, key=lambda record: -record["score"])
    pair.pred = [*pair.pred, *best[:10]]


def _append_ground_truth(pair: Pair) -> None:
    again = [{**one, "id": one["id"] + 10**8} for one in pair.gt["annotations"]]
    pair.gt["annotations"] = [*pair.gt["annotations"], *again]


def _draw_twice(pair: Pair) -> None:
    """Draw every object of 50 pixels or more again, 1 % shorter."""
    boxes = [one for one in pair.gt["annotations"] if min(one["bbox"][2:]) >= 50 and not one["iscrowd"]]
    for one in boxes:
        x, y, w, h = one["bbox"]
        pair.gt["annotations"].append({**one, "id": one["id"] + 10**8, "bbox": [x, y, w * 0.99, h]})


def _move_out(pair: Pair) -> None:
    """Move three objects so far to the right that a tenth of each stays in the image."""
    widths = {image["id"]: image["width"] for image in pair.gt["images"]}
    for one in [one for one in pair.gt["annotations"] if not one["iscrowd"]][:3]:
        one["bbox"][0] = widths[one["image_id"]] - one["bbox"][2] / 10


def _in_percent(pair: Pair) -> None:
    for one in pair.pred:
        one["score"] *= 100


def _all_alike(pair: Pair) -> None:
    for one in pair.pred:
        one["score"] = 1.0


def _as_logits(pair: Pair) -> None:
    for one in pair.pred:
        one["score"] = 20 * one["score"] - 10


def _misplace_a_few(pair: Pair) -> None:
    for one in sorted(pair.pred, key=lambda record: record["score"])[:2]:
        one["score"] = 57.0


def _cut_scores(pair: Pair) -> None:
    pair.pred = [one for one in pair.pred if one["score"] >= 0.25]


def _one_decimal(pair: Pair) -> None:
    for one in pair.pred:
        one["score"] = round(one["score"], 1)


def _whole_pixels(pair: Pair) -> None:
    for one in pair.pred:
        one["bbox"] = [round(value) for value in one["bbox"]]


WARNING, NOTE = Severity.WARNING, Severity.NOTE
EVERYWHERE = {
    "predictions appended twice": Planted(
        _append_predictions, "pred-duplicate", WARNING,
        r"every row occurs twice, .* AP {now} as given, {true} without", True, "--drop-duplicates"),
    "some predictions appended again": Planted(
        _append_some_predictions, "pred-duplicate", WARNING,
        r"10 of [\d,]+ rows are duplicate predictions: .* AP {now} as given, {true} without", True,
        "--drop-duplicates"),
    "ground truth appended twice": Planted(
        _append_ground_truth, "gt-duplicate", WARNING,
        r"every row occurs twice, .* AP {now} as given, {true} without", True, "--drop-duplicates"),
    "objects drawn twice": Planted(
        _draw_twice, "gt-near-duplicate", WARNING, r"near-duplicate ground-truth boxes: same image and class", True),
    "objects out of the image": Planted(
        _move_out, "gt-unmatchable", NOTE,  # box-outside is the warning
        r"3 ground-truth boxes cannot be matched", True),
    "scores in percent": Planted(_in_percent, "score-percent", WARNING, r"they look like percent", False),
    "logits": Planted(_as_logits, "score-range", NOTE, r"raw outputs \(logits\)\?", False),
    "two misplaced scores": Planted(_misplace_a_few, "score-range", WARNING, r"2 of \d+ .* to 57", True),
    "equal scores": Planted(_all_alike, "score-constant", WARNING, r"scores are equal \(1\)", True),
}  # fmt: skip
LARGE = {
    "scores cut at .25": Planted(
        _cut_scores, "score-thresholded", WARNING,
        r"below 0\.25\d*: .* {now} as given, at most", True),
    "scores of one decimal": Planted(_one_decimal, "score-ties", NOTE, r"\(scores have 1 decimal\)", True),
    "predictions in whole pixels": Planted(_whole_pixels, "box-rounded", WARNING, r"rounded to whole pixels", True),
}  # fmt: skip
CASES = [
    *((name, mistake, planted) for name in SETS for mistake, planted in EVERYWHERE.items()),
    *(("cocoapi", mistake, planted) for mistake, planted in LARGE.items()),
]


@pytest.fixture
def pairs(sample_data: Path, shared_data: Path) -> dict[str, Pair]:
    """Fresh copies of the good sets."""
    folders = {"sample": sample_data, "cocoapi": shared_data}
    paths = {name: [folders[name] / file for file in files] for name, files in SETS.items()}
    return {name: Pair(*(json.loads(path.read_text()) for path in files)) for name, files in paths.items()}


@pytest.mark.parametrize(
    ("name", "planted"),
    [pytest.param(name, planted, id=f"{name}: {mistake}") for name, mistake, planted in CASES],
)
def test_a_planted_mistake_is_named_with_its_evidence_and_the_flag_that_mends_it(
    name: str, planted: Planted, pairs: dict[str, Pair], tmp_path: Path
) -> None:
    pair = pairs[name]
    true = evaluate(*pair.write(tmp_path))["AP"]
    planted.plant(pair)
    paths = pair.write(tmp_path)
    result = evaluate(*paths)
    assert [finding.code for finding in _ours(result)] == [planted.code]
    (finding,) = _ours(result)
    assert (finding.code, finding.severity) == (planted.code, planted.severity)
    evidence = planted.evidence.replace("{now}", f"{result['AP']:.4f}").replace("{true}", f"{true:.4f}")
    assert re.search(evidence, finding.message)
    assert (result["AP"] != true) == planted.moves_ap
    assert planted.flag in str(finding.fix)
    if planted.flag:
        assert _ap_by_command(*paths, planted.flag) == true


def _ours(result: EvaluationResult) -> list[Finding]:
    return [finding for finding in result.findings if finding.code in CODES]


def _ap_by_command(*arguments: str | Path) -> float:
    done = run_here("evaluate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    value: float = json.loads(done.stdout)["metrics"]["AP"]
    return value


def test_the_bound_of_what_a_cut_costs_holds_for_the_predictions_that_were_cut(
    pairs: dict[str, Pair], tmp_path: Path
) -> None:
    pair = pairs["cocoapi"]
    true = evaluate(*pair.write(tmp_path))["AP"]
    _cut_scores(pair)
    result = evaluate(*pair.write(tmp_path))
    (finding,) = _ours(result)
    most = float(re.search(r"at most ([\d.]+)", finding.message)[1])  # type: ignore[index]
    assert result["AP"] < true < most


# Sets whose scores really begin at a threshold: Detectron2's .05, and .25 and .4 of others.
CUT = {"d2-medwaste", "d2-medwaste-id0-corrected", "yfpeng-sample", "cartucho-map-derived"}


def test_nothing_is_said_of_good_data_but_what_is_true_of_it(shared_data: Path) -> None:
    expected = json.loads((shared_data / "EXPECTED.json").read_text())
    entries = {name: one for name, one in expected.items() if name != "_about" and one["iou_type"] == "bbox"}
    said = {
        name: {finding.code for finding in _ours(evaluate(shared_data / one["gt"], shared_data / one["dets"]))}
        for name, one in entries.items()
    }
    assert said == {name: {"score-thresholded"} if name in CUT else set() for name in entries}


@pytest.mark.parametrize("model", ["better", "worse"])
@pytest.mark.parametrize("form", ["coco/gt.json coco/{}.json", "csv/gt.csv csv/{}.csv", "yolo yolo/{}"])
def test_nothing_is_said_of_the_sample(form: str, model: str, sample_data: Path) -> None:
    gt, pred = (sample_data / part for part in form.format(model).split())
    assert _ours(evaluate(gt, pred)) == []


def test_the_scene_in_whole_pixels_on_both_sides_is_not_called_rounded(shared_data: Path) -> None:
    scene = shared_data / "padilla-review/data/database"
    gt = load(scene / "gts/coco_format_v1/instances_default.json")
    result = evaluate(gt, load(scene / "dets/coco_format/coco_dets.json", role="pred"))
    assert {finding.code for finding in _ours(result)} == {"score-thresholded"}  # it begins at .4002
