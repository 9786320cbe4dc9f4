"""Listed carriers of words and poses with odd values in odd places: read soundly or refused clearly, as any input."""

import contextlib
import random
from pathlib import Path

import pytest
from carrier_files import POSES, WORDS
from damage import EDITS, damage
from mutations import mutate_json, mutate_xml
from soundness import require_sound_or_refused

from jaccard_eval.options import ReadOptions

pytestmark = pytest.mark.slow

N_MUTANTS = 40  # of each side
KINDS = ("bbox", "segm", "obb", "keypoints")
MUTATORS = {".json": mutate_json, ".jsonl": mutate_json, ".xml": mutate_xml, ".hocr": mutate_xml}


@pytest.mark.parametrize("carrier", {**POSES, **WORDS})
def test_odd_values_of_carriers_are_read_soundly_or_refused_clearly(carrier: str, tmp_path: Path) -> None:
    rng = random.Random(carrier)
    for role, path in zip(("gt", "pred"), {**POSES, **WORDS}[carrier](tmp_path), strict=True):
        file = path if path.is_file() else next(one for one in sorted(path.rglob("*")) if one.is_file())
        intact, mutator = file.read_bytes(), MUTATORS.get(file.suffix)
        for at in range(N_MUTANTS):
            broken = damage(intact, rng, EDITS)
            with contextlib.suppress(ValueError):  # an empty line of several
                broken = mutator(intact, rng) if mutator and at % 4 else broken
            file.write_bytes(broken)
            kind = rng.choice(KINDS)
            require_sound_or_refused(path, ReadOptions(role=role, iou_type=kind, assume_score=1.0), None)
        file.write_bytes(intact)
