"""Open Images: golden cases by hand and generated ones, through files, against what TensorFlow's evaluators give."""

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import DataError, EvaluationResult, ReadOptions, evaluate

GOLDEN = Path(__file__).parents[3] / "shared" / "oracle" / "golden"
CASES = [json.loads(path.read_bytes()) for path in sorted(GOLDEN.glob("oid_*.json"))]
VARIANTS = {"v2": "openimages", "v2_no_expansion": "openimages", "challenge": "openimages-challenge"}
HIERARCHY, LABELS = "bbox_labels_hierarchy.json", "gt-human-imagelabels.csv"


def write(case: dict[str, Any], folder: Path, variant: str) -> None:
    """Write a case as Open Images has it; without the hierarchy, nothing is expanded."""
    rows: dict[str, list[list[Any]]] = {
        "gt.csv": [["ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax", "IsGroupOf"]],
        "pred.csv": [["ImageID", "LabelName", "Score", "XMin", "XMax", "YMin", "YMax"]],
        LABELS: [["ImageID", "Source", "LabelName", "Confidence"]],
    }
    for box in case["gt"]["boxes"]:
        rows["gt.csv"].append([box["ImageID"], box["LabelName"], *box["box"], box["IsGroupOf"]])
    for box in case["dt"]:
        rows["pred.csv"].append([box["ImageID"], box["LabelName"], box["Score"], *box["box"]])
    for label in case["gt"]["labels"]:
        rows[LABELS].append([label["ImageID"], "verification", label["LabelName"], label["Confidence"]])
    for name, lines in rows.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(lines)
    if variant != "v2_no_expansion":
        (folder / HIERARCHY).write_text(json.dumps(case["gt"]["hierarchy"]))


def compare(result: EvaluationResult, expected: dict[str, Any]) -> None:
    """Compare what the case knows: the mean, and AP and number of objects of every class without equal scores."""
    rows = {row.name: row for row in result.per_class}
    for name, known in expected["per_class"].items():
        if name not in rows:  # neither boxes nor, without the hierarchy, a list of classes
            assert not known["npos"]
            continue
        assert rows[name].gt == known["npos"], name
        # Which of equal scores comes first, the reference leaves open; a group stands last there.
        if not known["score_ties"]:
            ap = np.nan if known["AP"] is None else known["AP"]
            np.testing.assert_allclose(rows[name].values["AP"].value, ap, rtol=0, atol=1e-9, err_msg=name)
    if not any(known["score_ties"] for known in expected["per_class"].values()):
        mean = np.nan if expected["mAP"] is None else expected["mAP"]
        np.testing.assert_allclose(result["AP"], mean, rtol=0, atol=1e-9)


def test_the_goldens_are_all_there(shared_oracle: Path) -> None:
    assert shared_oracle.is_dir()
    assert len(CASES) == 6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_values_are_those_derived_by_hand(case: dict[str, Any], variant: str, tmp_path: Path) -> None:
    write(case, tmp_path, variant)
    if (case["name"], variant) == ("04_hierarchy", "v2_no_expansion"):
        # The one detection is of a class without objects: 0 there, and refused here.
        with pytest.raises(DataError, match="class-none"):
            evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv", protocol=VARIANTS[variant])
        return
    result = evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv", protocol=VARIANTS[variant])
    if variant in case["expect"]:
        assert result["AP"] == pytest.approx(float(Fraction(case["expect"][variant])), abs=1e-12)
    compare(result, case["oracle"][variant])


def test_generated_cases_give_the_numbers_of_the_reference(oracle_cases: Path) -> None:
    """Their files have other names: two are named by options, and the hierarchy is found."""
    folders = sorted((oracle_cases / "oid").iterdir())
    assert len(folders) == 75
    for folder in folders:
        if len((folder / "boxes.csv").read_text().splitlines() + (folder / "labels.csv").read_text().splitlines()) == 2:
            continue  # no image has a box or a label: nothing says that predictions are of the same images
        expected = json.loads((folder / "expected.json").read_text())["variants"]
        for variant in ("v2", "challenge"):
            options = ReadOptions(image_labels=folder / "labels.csv")
            result = evaluate(
                folder / "boxes.csv", folder / "detections.csv", protocol=VARIANTS[variant], gt_options=options
            )
            compare(result, expected[variant])
            dropped = [finding.examples[0].detail for finding in result.findings if finding.code == "not-judged"]
            assert (f"{expected[variant]['dropped_unverified']} pred" in "".join(dropped)) == bool(dropped)
