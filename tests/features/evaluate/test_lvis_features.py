"""What boxes have, LVIS has: frequencies in every table, gates, saved results, explanations, conversion, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

import jaccard_eval
from jaccard_eval import Slice, UsageError, compare, evaluate, explain, load_result, to_frame

# Image 1 has a rare dog that is found, and a car that nobody looked for; on image 2 cats are verified to be absent, and
# not all dogs are annotated.
SQUARE, ELSEWHERE = [0, 0, 10, 10], [50, 50, 10, 10]
TRUTH: dict[str, Any] = {
    "images": [
        {"id": 1, "width": 100, "height": 100, "neg_category_ids": [], "not_exhaustive_category_ids": []},
        {"id": 2, "width": 100, "height": 100, "neg_category_ids": [2], "not_exhaustive_category_ids": [1]},
    ],
    "categories": [
        {"id": 1, "name": "dog", "frequency": "r"},
        {"id": 2, "name": "cat", "frequency": "f"},
        {"id": 3, "name": "car", "frequency": "f"},
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": SQUARE, "area": 100},
        {"id": 2, "image_id": 2, "category_id": 1, "bbox": SQUARE, "area": 100},
        {"id": 3, "image_id": 1, "category_id": 2, "bbox": ELSEWHERE, "area": 100},
    ],
}
RESULTS = [
    {"image_id": 1, "category_id": 1, "bbox": SQUARE, "score": 0.9},
    {"image_id": 2, "category_id": 1, "bbox": ELSEWHERE, "score": 0.8},  # not exhaustive: no false positive
    {"image_id": 2, "category_id": 1, "bbox": SQUARE, "score": 0.7},
    {"image_id": 2, "category_id": 2, "bbox": SQUARE, "score": 0.6},  # verified absent: a false positive
    {"image_id": 1, "category_id": 2, "bbox": ELSEWHERE, "score": 0.5},
    {"image_id": 1, "category_id": 3, "bbox": SQUARE, "score": 0.95},  # nobody looked for cars: removed
]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    gt, pred = tmp_path / "gt.json", tmp_path / "pred.json"
    gt.write_text(json.dumps(TRUTH))
    pred.write_text(json.dumps(RESULTS))
    return gt, pred


def test_numbers_by_hand_and_how_frequent_each_class_is(sides: tuple[Path, Path]) -> None:
    result = evaluate(*sides, protocol="lvis")
    # Dogs: both found, nothing wrong. Cats: a false positive before the hit, precision 1/2.
    assert (result["AP_r"], result["AP_f"]) == pytest.approx((1.0, 0.5), abs=1e-12)
    assert result["AP"] == pytest.approx(0.75, abs=1e-12)
    assert result.metrics["AP_c"].reason == "no ground truth of a class with frequency c"
    assert [row.frequency for row in result.per_class] == ["r", "f", "f"]
    assert to_frame(result)["frequency"].tolist() == ["r", "f", "f"]
    assert {finding.code for finding in result.findings} >= {"not-judged"}
    # As COCO judges, the second dog comes after a false positive, and the warning names the protocol to use.
    usual = evaluate(*sides)
    (warning,) = (finding for finding in usual.findings if finding.code == "classes-unverified")
    assert "--protocol lvis" in str(warning)
    assert usual["AP[class=dog]"] < 1


def test_lists_that_name_unknown_classes_or_are_missing_are_reported(sides: tuple[Path, Path], tmp_path: Path) -> None:
    changed = json.loads(sides[0].read_bytes())
    changed["images"][1]["neg_category_ids"] = [2, 99]
    del changed["images"][0]["not_exhaustive_category_ids"], changed["images"][1]["not_exhaustive_category_ids"]
    (tmp_path / "other.json").write_text(json.dumps(changed))
    found = {
        finding.code: str(finding) for finding in evaluate(tmp_path / "other.json", sides[1], protocol="lvis").findings
    }
    assert "images[1].neg_category_ids: absent: class 99 is not listed: ignored" in found["image-label-unknown"]
    assert "not_exhaustive_category_ids is missing or null in 2 of 2 images" in found["image-labels-missing"]


def test_facts_are_part_of_the_signature_and_boxes_are_not_changed(sides: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    changed = json.loads(sides[0].read_bytes())
    changed["images"][1]["neg_category_ids"] = []
    other.write_text(json.dumps(changed))
    first, second = (evaluate(gt, sides[1], protocol="lvis") for gt in (sides[0], other))
    assert first.gt.fingerprint == second.gt.fingerprint
    assert first.signature != second.signature
    assert evaluate(sides[0], sides[1]).signature == evaluate(other, sides[1]).signature


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_saved_results_answer_by_frequency(sides: tuple[Path, Path], tmp_path: Path, suffix: str) -> None:
    result, path = evaluate(*sides, protocol="lvis"), tmp_path / f"r.{suffix}"
    result.save(path)
    again = load_result(path)
    assert (again["AP_r"], again["AP_f"], again["AP"]) == (result["AP_r"], result["AP_f"], result["AP"])
    assert again.to_dict()["per_class"] == result.to_dict()["per_class"]


def test_every_report_shows_the_frequency(sides: tuple[Path, Path], tmp_path: Path) -> None:
    outputs = [f"-o{tmp_path / name}" for name in ("r.html", "r.md", "r.csv")]
    gates = ["--fail-under", "AP_r=0.9", "--fail-under", "AP_f=0.9"]
    run = run_here(*sides, "--protocol", "lvis", "--per-class", *outputs, *gates)
    assert run.returncode == 1, run.stderr
    assert "frequency" in run.stdout
    assert "FAILED  AP_f 0.5000 < 0.90" in run.stdout
    for name in ("r.html", "r.md", "r.csv"):
        assert "frequency" in (tmp_path / name).read_text(encoding="utf-8")


def test_rules_of_lvis_are_told_apart_from_those_of_coco(sides: tuple[Path, Path]) -> None:
    found = explain(*sides, metric="AP", protocol="lvis", against="coco")
    assert found.metric.value == evaluate(*sides, protocol="lvis")["AP"]
    assert found.steps[-1].value == evaluate(*sides)["AP"]
    changes = {step.rule: step.delta for step in found.steps}
    assert changes["classes judged on an image"] == min(changes.values()) < 0
    # A saved result has the boxes that were judged, and no others.
    saved = evaluate(*sides, protocol="lvis")
    assert explain(saved, metric="AP").metric.value == saved["AP"]
    with pytest.raises(UsageError, match="pass ground truth and predictions"):
        explain(saved, metric="AP", against="coco")


def test_compare_bootstrap_errors_and_slices_go_by_the_same_rules(sides: tuple[Path, Path]) -> None:
    result = evaluate(
        *sides, protocol="lvis", errors=True, bootstrap=20, slices=[Slice(name="second", patterns=("2",))]
    )
    assert result.metrics["AP_r"].refused == "2 images; an interval needs 20"
    summary = compare(sides[0], sides[1], sides[1], protocol="lvis").others[0].summary
    assert {delta.metric: delta.delta for delta in summary}["AP"] == 0
    # What is removed is no error, and what is not exhaustive is none either: one false positive is left.
    assert result.errors is not None
    assert sum(result.errors.confusion.counts[-1]) == 1


def test_what_cannot_be_done_is_refused_with_a_way(sides: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"errors: not available with the disk engine"):
        evaluate(*sides, protocol="lvis", engine="disk", errors=True)
    with pytest.raises(UsageError, match="caps detections per class: name one cap"):
        evaluate(*sides, protocol="lvis-fixed", max_dets=[10, 300])
    with pytest.raises(UsageError, match="unknown area range 'r'"):
        evaluate(*sides)["AP_r"]
    with pytest.raises(UsageError, match="a class or a frequency"):
        evaluate(*sides, protocol="lvis")["AP[area=r,class=dog]"]


def test_conversion_keeps_what_is_verified_or_stops(sides: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    jaccard_eval.load(sides[0])
    run = run_here("convert", sides[0], copy, "--to", "coco")
    assert run.returncode == 0, run.stderr
    again = evaluate(copy, sides[1], protocol="lvis")
    assert again.to_dict()["metrics"] == evaluate(*sides, protocol="lvis").to_dict()["metrics"]
    run = run_here("convert", sides[0], tmp_path / "labels", "--to", "yolo")
    assert run.returncode == 3
    assert "classes that are verified on an image: 2" in run.stderr


def test_a_cap_is_one_of_an_image_or_of_a_class(sides: tuple[Path, Path]) -> None:
    # The car comes first on image 1, though nobody judges it: it takes the place of the cat and the dog.
    assert evaluate(*sides, protocol="lvis", max_dets=[1])["AR1"] == pytest.approx(0.0)
    # Of each class one detection over all images: one of two dogs, and the cat that is none.
    assert evaluate(*sides, protocol="lvis-fixed", max_dets=[1])["AR1"] == pytest.approx((0.5 + 0.0) / 2)
