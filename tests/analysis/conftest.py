"""Fixtures of the audit's tests: good pairs to plant mistakes into."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from planting import SETS, Pair


@pytest.fixture
def good_pair(
    request: pytest.FixtureRequest, tmp_path: Path, sample_data: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Pair]:
    """Return one of `planting.SETS` by its name; those beside the checkout skip the test where they are absent."""

    def load(name: str) -> Pair:
        folder = sample_data if name == "sample" else request.getfixturevalue("shared_data")
        gt, pred = (json.loads((folder / path).read_text()) for path in SETS[name])
        return Pair(gt, pred, tmp_path, capsys)

    return load
