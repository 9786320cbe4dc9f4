"""Generated cases with expected values: COCO to the last bit, PASCAL VOC to 1e-12 with every detection's outcome."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adapter
import numpy as np
import peer
import pytest
import vocscenes
from exact import decode, same_bits

QUANTITIES = (*adapter.ARRAYS, "stats", "per_class")
TOLERANCE = 1e-12  # the devkit's averages are sums in another order

Differences = dict[str, list[str]]


def test_the_set_has_the_cases_that_it_claims(oracle_cases: Path) -> None:
    plain, strict = (len(list(_coco(oracle_cases, strict_only=flag))) for flag in (False, True))
    assert (plain, strict, len(list(_folders(oracle_cases, "voc")))) == (293, 7, 75)


@pytest.fixture(scope="module")
def differences(oracle_cases: Path) -> Differences:
    """Return the COCO cases that differ, by quantity."""
    found: Differences = defaultdict(list)
    for folder, expected in _coco(oracle_cases, strict_only=False):
        got = adapter.evaluate_files(folder / "gt.json", folder / "dt.json")
        for quantity in QUANTITIES:
            if not _same(quantity, expected, got):
                found[quantity].append(folder.name)
    return found


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_coco_case_agrees_to_the_last_bit(differences: Differences, quantity: str) -> None:
    assert differences[quantity] == []


def test_annotation_ids_decide_nothing(oracle_cases: Path) -> None:
    """Where pycocotools trips over id 0 and repeated ids, we give what it gives for the ids 1, 2, 3..."""
    for folder, expected in _coco(oracle_cases, strict_only=True):
        got = adapter.evaluate_files(folder / "gt.json", folder / "dt.json")
        document, detections = _read(folder / "gt.json"), _read(folder / "dt.json")
        as_found, renumbered = (peer.evaluate(one, detections) for one in (document, peer.with_plain_ids(document)))
        for quantity in (*adapter.ARRAYS, "stats"):
            assert _same(quantity, expected, as_found), (folder.name, "the oracle is not this pycocotools")
            assert same_bits(got[quantity], renumbered[quantity]), (folder.name, quantity)


@pytest.mark.slow
def test_the_published_driver_finds_no_difference(shared_oracle: Path, oracle_cases: Path) -> None:
    command = [sys.executable, "diff_run.py", "--cases", str(oracle_cases), "--impl", "py:adapter:evaluate_files"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=shared_oracle, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("identical    293  differ      0") == len(QUANTITIES)


@pytest.mark.parametrize("key", list(vocscenes.PROTOCOLS))
@pytest.mark.parametrize("variant", vocscenes.VARIANTS)
def test_every_voc_case_agrees(oracle_cases: Path, variant: str, key: str) -> None:
    for folder in _folders(oracle_cases, "voc"):
        truth, detections = _read(folder / "gt.json"), _read(folder / "dt.json")
        expected = _read(folder / "expected.json")["variants"][variant]
        result = vocscenes.evaluate(truth, detections, variant, key)
        np.testing.assert_allclose(result["AP"], _number(expected[f"mAP_{key}"]), rtol=0, atol=TOLERANCE)
        for name, one in expected["per_class"].items():
            average = result[f"AP[class={name}]"]
            np.testing.assert_allclose(average, _number(one[f"ap_{key}"]), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("variant", vocscenes.VARIANTS)
def test_every_detection_of_the_voc_cases_counts_as_it_should(oracle_cases: Path, variant: str) -> None:
    for folder in _folders(oracle_cases, "voc"):
        result = vocscenes.evaluate(_read(folder / "gt.json"), _read(folder / "dt.json"), variant, "voc12")
        positives = {row.name: row.gt for row in result.per_class}
        for name, one in _read(folder / "expected.json")["variants"][variant]["per_class"].items():
            found = vocscenes.labels(result, name)
            assert found == one["labels"], (folder.name, name)
            assert [found.count(label) for label in (1, -1, 0)] == [one["tp"], one["fp"], one["ignored"]]
            assert positives[name] == one["npos"]


def _same(quantity: str, expected: dict[str, Any], got: dict[str, Any]) -> bool:
    if quantity == "stats":
        return same_bits(expected["stats"], got["stats"])
    if quantity == "per_class":
        return expected["per_class"] == {str(key): values for key, values in got["per_class"].items()}
    return same_bits(decode(expected["arrays"][quantity]), got[quantity])


def _coco(cases: Path, *, strict_only: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    """COCO cases with what is expected; those on which pycocotools trips over annotation ids apart."""
    for folder in _folders(cases, "coco"):
        expected = _read(folder / "expected.json")
        if ("strict_only" in expected["tags"]) == strict_only:
            yield folder, expected


def _folders(cases: Path, protocol: str) -> Iterator[Path]:
    manifest = _read(cases / "manifest.json")
    return (cases / one["dir"] for one in manifest["cases"] if one["protocol"] == protocol)


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
