"""The proof proves something: an engine with any one rule broken fails the oracle's cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import adapter
import cocoscenes
import mutant_run
import peer
import pytest
from exact import decode
from mutants import MUTANTS, PACKAGE, Mutant, module_as_it_is

HERE = Path(__file__).parent
AS_IT_IS = "the engine as it is"
RULES = {f"R{number}" for number in range(5, 24)} | {"VOC"}
STRIDE = 10  # every tenth of the generated cases
SEEDS = range(2)
OPTIONS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"class_agnostic": True}, {"useCats": 0}),
    ({"iou": (0.3, 1.0)}, {"iouThrs": [0.3, 1.0]}),
)

Case = dict[str, Any]


# The first test waits for all edits of the engine, minutes on a machine that does other work besides.
pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture(scope="module")
def workload(shared_oracle: Path, oracle_cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the goldens, some fresh scenes and some generated cases, with what is expected; return their list."""
    folder = tmp_path_factory.mktemp("workload")
    cases = [*_goldens(shared_oracle, folder), *_beyond_a_cap(folder), *_scenes(folder), *_generated(oracle_cases)]
    path = folder / "workload.json"
    path.write_text(json.dumps(cases))
    return path


@pytest.fixture(scope="module")
def noticed(workload: Path) -> dict[str, str | None]:
    """Return the first case that differs for each mutant, and for the engine as it is."""
    edits = [module_as_it_is(), *(mutant.edit() for mutant in MUTANTS)]
    command = [sys.executable, str(HERE / "mutant_run.py"), str(workload)]
    path = os.pathsep.join(map(str, (PACKAGE.parent, HERE, HERE.parent)))
    done = subprocess.run(
        command,
        input=json.dumps(edits),
        env=os.environ | {"PYTHONPATH": path, "JACCARD_EVAL_NATIVE": "0"},  # rules are edited in Python
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip((AS_IT_IS, *map(str, MUTANTS)), json.loads(done.stdout), strict=True))


@pytest.mark.slow
def test_the_engine_as_it_is_differs_nowhere(noticed: dict[str, str | None]) -> None:
    assert noticed[AS_IT_IS] is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_rule_is_noticed(mutant: Mutant, noticed: dict[str, str | None]) -> None:
    assert noticed[str(mutant)] is not None


def test_every_edit_finds_its_code() -> None:
    assert len({mutant.edit() for mutant in MUTANTS}) == len(MUTANTS)


def test_every_rule_is_broken_once() -> None:
    assert {mutant.rule for mutant in MUTANTS} == RULES


def _goldens(shared_oracle: Path, folder: Path) -> list[Case]:
    cases = []
    for path in sorted((shared_oracle / "golden").glob("*.json")):
        golden = json.loads(path.read_bytes())
        if golden["protocol"] not in ("coco_bbox", "voc") or "strict_only" in golden["tags"]:
            continue
        place = _written(folder, path.stem, golden["gt"], golden["dt"])
        if golden["protocol"] == "voc":
            cases += _voc_cases(place, golden["oracle"])
        else:
            cases.append(_coco_case(place, golden["oracle"]))
    return cases


def _generated(oracle_cases: Path) -> list[Case]:
    manifest = json.loads((oracle_cases / "manifest.json").read_bytes())["cases"]
    chosen = [one for one in manifest if one["protocol"] == "coco" and "strict_only" not in one["tags"]][::STRIDE]
    chosen += [one for one in manifest if one["protocol"] == "voc"][::STRIDE]
    cases = []
    for one in chosen:
        place = _place(oracle_cases / one["dir"])
        expected = json.loads((oracle_cases / one["dir"] / "expected.json").read_bytes())
        cases += [_coco_case(place, expected)] if one["protocol"] == "coco" else _voc_cases(place, expected["variants"])
    return cases


def _scenes(folder: Path) -> list[Case]:
    drawn = {f"{kind.name} {seed}": cocoscenes.draw(kind, seed) for kind in cocoscenes.KINDS for seed in SEEDS}
    cases = []
    for name, (document, detections) in {**cocoscenes.SPECIAL, **drawn}.items():
        place = _written(folder, name, document, detections)
        for options, params in OPTIONS:
            run = peer.evaluate(document, detections, summarize=not params, **params)
            quantities = adapter.ARRAYS if params else (*adapter.ARRAYS, "stats")
            digests = {quantity: mutant_run.digest(run[quantity]) for quantity in quantities}
            cases.append({**place, "protocol": "coco", "options": options, "digests": digests})
    return cases


def _beyond_a_cap(folder: Path) -> list[Case]:
    """PASCAL VOC has no cap: after 100 strays comes a hit with precision 1 / 101, all of the area."""
    place = {"image": "a", "class": "c"}
    strays = [{**place, "bbox": [500, 0, 509, 9], "score": 0.9 - i / 1000} for i in range(100)]
    truth = {"images": ["a"], "classes": ["c"], "objects": [{**place, "bbox": [0, 0, 9, 9], "difficult": 0}]}
    home = _written(folder, "beyond a cap", truth, [*strays, {**place, "bbox": [0, 0, 9, 9], "score": 0.1}])
    expected = {"mAP_voc07_numpy": 1 / 101, "mAP_voc12": 1 / 101, "per_class": {"c": {"labels": [-1] * 100 + [1]}}}
    return _voc_cases(home, {"plus_one": expected})


def _coco_case(place: Case, expected: dict[str, Any]) -> Case:
    digests = {name: mutant_run.digest(decode(expected["arrays"][name])) for name in adapter.ARRAYS}
    digests["stats"] = mutant_run.digest(expected["stats"])
    return {**place, "protocol": "coco", "options": {}, "digests": digests}


def _voc_cases(place: Case, variants: dict[str, Any]) -> list[Case]:
    expected = variants["plus_one"]
    labels = {name: one["labels"] for name, one in expected["per_class"].items()}
    return [
        {**place, "protocol": "voc", "key": key, "AP": expected[f"mAP_{key}"], "labels": labels}
        for key in ("voc07_numpy", "voc12")
    ]


def _written(folder: Path, name: str, truth: Any, detections: Any) -> Case:
    home = folder / name
    home.mkdir()
    (home / "gt.json").write_text(json.dumps(truth))
    (home / "dt.json").write_text(json.dumps(detections))
    return _place(home)


def _place(home: Path) -> Case:
    return {"name": home.name, "gt": str(home / "gt.json"), "dt": str(home / "dt.json")}
