"""The generated PASCAL VOC cases through their own files: XML annotations and result files of the development kit."""

import json
from pathlib import Path

import numpy as np
import pytest
import vocscenes

from jaccard_eval import evaluate, load


@pytest.mark.parametrize("key", list(vocscenes.PROTOCOLS))
def test_every_voc_case_gives_its_numbers_from_its_files(oracle_cases: Path, key: str) -> None:
    folders = sorted((oracle_cases / "voc").iterdir())
    assert len(folders) == 75
    for folder in folders:
        expected = json.loads((folder / "expected.json").read_text())["variants"]["plus_one"]
        gt, pred = load(folder / "Annotations"), load(folder / "results", role="pred")
        result = evaluate(gt, pred, protocol=vocscenes.PROTOCOLS[key])
        number = expected[f"mAP_{key}"]
        np.testing.assert_allclose(result["AP"], np.nan if number is None else number, rtol=0, atol=1e-12)
