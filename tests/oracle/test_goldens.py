"""Small cases derived by hand, one rule each: values as fractions, single cells to the last bit, who matched whom."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import adapter
import numpy as np
import pytest
import vocscenes
from exact import decode, same_bits

import jaccard_eval
from jaccard_eval.data.metricref import COCO_SUMMARY

GOLDEN = Path(__file__).parents[3] / "shared" / "oracle" / "golden"
STATS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")  # COCO_SUMMARY's order
TOLERANCE = 1e-12
VARIANTS = [(variant, key) for variant in vocscenes.VARIANTS for key in vocscenes.PROTOCOLS]

# Annotation ids decide nothing here; pycocotools loses a match to id 0 and counts the last of repeated ids twice.
# 32: one box, found. 33: two boxes under one id, both found.
OUR_OWN = {"32_gt_id_zero": {"AP": 1.0, "AR100": 1.0}, "33_duplicate_gt_ids": {"AP": 1.0}}

Case = dict[str, Any]


def goldens(protocol: str) -> list[Any]:
    """Cases of a protocol, named by their rule; none without the folder."""
    cases = [json.loads(path.read_bytes()) for path in sorted(GOLDEN.glob("*.json"))]
    return [pytest.param(one, id=one["name"]) for one in cases if one["protocol"] == protocol]


def result_of(case: Case, folder: Path) -> jaccard_eval.EvaluationResult:
    """Evaluate a COCO case through files."""
    for name in ("gt", "dt"):
        (folder / f"{name}.json").write_text(json.dumps(case[name]))
    return jaccard_eval.evaluate(folder / "gt.json", folder / "dt.json")


def test_the_goldens_are_all_there(shared_oracle: Path) -> None:
    assert shared_oracle.is_dir()
    assert (len(goldens("coco_bbox")), len(goldens("voc"))) == (39, 8)


@pytest.mark.parametrize("case", goldens("coco_bbox"))
def test_coco_values_are_those_derived_by_hand(case: Case, tmp_path: Path) -> None:
    result = result_of(case, tmp_path)
    expected = OUR_OWN.get(case["name"]) or {name: float(Fraction(text)) for name, text in case["expect"].items()}
    for name, value in expected.items():
        measured = result[COCO_SUMMARY[STATS.index(name)]]
        assert (-1.0 if np.isnan(measured) else measured) == pytest.approx(value, abs=TOLERANCE), name


@pytest.mark.parametrize("case", goldens("coco_bbox"))
def test_coco_cells_and_arrays_agree_to_the_last_bit(case: Case, tmp_path: Path) -> None:
    got = adapter.arrays(result_of(case, tmp_path))
    for name, *index, value in case["exact"]:
        assert got[name][tuple(index)] == value, (name, index)
    if case["name"] not in OUR_OWN:
        expected = case["oracle"]["arrays"]
        assert [name for name in adapter.ARRAYS if not same_bits(got[name], decode(expected[name]))] == []


@pytest.mark.parametrize("case", [one for one in goldens("coco_bbox") if one.values[0]["matches"]])
def test_coco_detections_match_the_boxes_derived_by_hand(case: Case, tmp_path: Path) -> None:
    matched = result_of(case, tmp_path).matches["gt"]
    ids = [one["id"] for one in case["gt"]["annotations"]]
    for threshold, detection, expected in case["matches"]:  # detections count from 1; 0 is no match
        row = matched[detection - 1, threshold]
        assert (0 if row < 0 else ids[row]) == expected, (threshold, detection)


@pytest.mark.parametrize(("variant", "key"), VARIANTS)
@pytest.mark.parametrize("case", goldens("voc"))
def test_voc_values_are_those_derived_by_hand(case: Case, variant: str, key: str) -> None:
    result = vocscenes.evaluate(case["gt"], case["dt"], variant, key)
    oracle = case["oracle"][variant]
    assert result["AP"] == pytest.approx(oracle[f"mAP_{key}"], abs=TOLERANCE)
    if f"{variant}.{key}" in case["expect"]:
        assert result["AP"] == pytest.approx(float(Fraction(case["expect"][f"{variant}.{key}"])), abs=TOLERANCE)
    for name, one in oracle["per_class"].items():
        assert vocscenes.labels(result, name) == one["labels"]
