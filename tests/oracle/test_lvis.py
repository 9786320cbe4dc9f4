"""LVIS: every bit of lvis-api 0.5.3 on generated and hand-made cases, of boxes and of masks."""

from __future__ import annotations

import json
import tarfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact import decode, minus_one, same_bits

import jaccard_eval

SHARED = Path(__file__).parents[3] / "shared"
ORACLE = SHARED / "oracle"
KINDS = {"lvis_bbox": "bbox", "lvis": "bbox", "lvis_segm": "segm"}
NAMES = {  # of lvis-api: metric
    **{name: name for name in ("AP", "AP50", "AP75")},
    **{f"AP{short}": f"AP_{name}" for short, name in zip("smlrcf", ("small", "medium", "large", *"rcf"), strict=True)},
    "AR@300": "AR300",
    **{f"AR{short}@300": f"AR_{name}" for short, name in zip("sml", ("small", "medium", "large"), strict=True)},
}
ARCHIVES = {
    "lvis": ("cases.tar.xz", "cases_pub/lvis/", 75),
    "lvis_segm": ("cases_ext.tar.xz", "cases_ext/lvis_segm/", 20),
}


def differences(gt: Path, dt: Path, expected: dict[str, Any], kind: str) -> list[str]:
    """Return which numbers differ from those of lvis-api in any bit."""
    result = jaccard_eval.evaluate(gt, dt, protocol="lvis", iou_type=kind)
    # LVIS has no axis of caps.
    found = {name: minus_one(getattr(result.curves, name)[..., 0]) for name in ("precision", "recall")}
    wrong = [name for name, array in found.items() if not same_bits(array, decode(expected["arrays"][name]))]
    values = {name: float(minus_one(np.array(result[metric]))) for name, metric in NAMES.items()}
    wrong += [name for name, value in expected["results"].items() if values[name] != value]
    by_class = dict(zip(expected["cat_ids"], result.per_class, strict=True))
    for key, wanted in expected.get("per_class", {}).items():
        row = by_class[int(key)].values
        mine = {"AP": row["AP"].value, "AR@300": row["AR300"].value}
        wrong += [f"{key}.{name}" for name in mine if float(minus_one(np.array(mine[name]))) != wanted[name]]
    return wrong


@pytest.mark.parametrize("kind", ARCHIVES)
def test_generated_cases_agree_in_every_bit(kind: str, shared_oracle: Path, tmp_path: Path) -> None:
    file, start, n = ARCHIVES[kind]
    with tarfile.open(shared_oracle / file) as archive:
        archive.extractall(tmp_path, [one for one in archive if one.name.startswith(start)], filter="data")
    folders = [path.parent for path in sorted(tmp_path.glob(f"{start}*/expected.json"))]
    assert len(folders) == n
    wrong = {}
    for folder in folders:
        expected = json.loads((folder / "expected.json").read_bytes())
        found = differences(folder / "gt.json", folder / "dt.json", expected, KINDS[kind])
        wrong |= {folder.name: found} if found else {}
    assert wrong == {}


def by_hand() -> list[Any]:
    paths = sorted((*ORACLE.glob("golden/lvis_*.json"), *ORACLE.glob("golden_ext/lvis_*.json")))
    return [pytest.param(json.loads(path.read_bytes()), id=path.stem) for path in paths]


@pytest.mark.parametrize("case", by_hand())
def test_values_are_those_derived_by_hand(case: dict[str, Any], tmp_path: Path) -> None:
    gt, dt = tmp_path / "gt.json", tmp_path / "dt.json"
    gt.write_text(json.dumps(case["gt"]))
    dt.write_text(json.dumps(case["dt"]))
    kind = KINDS[case["protocol"]]
    assert differences(gt, dt, case["oracle"], kind) == []
    result = jaccard_eval.evaluate(gt, dt, protocol="lvis", iou_type=kind)
    for name, text in case["expect"].items():
        if name in NAMES:
            value = float(minus_one(np.array(result[NAMES[name]])))
            assert value == pytest.approx(float(Fraction(text)), abs=1e-12), name
