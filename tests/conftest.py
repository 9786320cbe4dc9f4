"""Shared fixtures: the folders beside the checkout, and how hypothesis draws."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from planting import SETS, Pair

ROOT = Path(__file__).parents[1]

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

for variable in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITLAB_CI", "CI_PROJECT_DIR"):
    os.environ.pop(variable, None)  # what the tests run must not tell the CI system that they run in


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switch of `golden/test_outputs.py`."""
    parser.addoption("--update-golden", action="store_true", help="write what commands print now into tests/golden")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real ground truth and predictions with published numbers."""
    return _beside_the_checkout("data")


@pytest.fixture(scope="session")
def shared_oracle() -> Path:
    """Hand-derived goldens and generated cases with expected arrays."""
    return _beside_the_checkout("oracle")


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The sample that comes with the project."""
    return ROOT / "sample_data"


@pytest.fixture
def good_pair(
    request: pytest.FixtureRequest, tmp_path: Path, sample_data: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Pair]:
    """Return one of `planting.SETS` by its name, to plant mistakes into."""

    def load(name: str) -> Pair:
        folder = sample_data if name == "sample" else request.getfixturevalue("shared_data")
        gt, pred = (json.loads((folder / path).read_text()) for path in SETS[name])
        return Pair(gt, pred, tmp_path, capsys)

    return load


def _beside_the_checkout(name: str) -> Path:
    folder = ROOT.parent / "shared" / name
    if not folder.is_dir():
        pytest.skip(f"needs the folder shared/{name} beside the checkout")
    return folder
