"""Shared fixtures: the folders beside the checkout, and how hypothesis draws."""

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parents[1]

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


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


def _beside_the_checkout(name: str) -> Path:
    folder = ROOT.parent / "shared" / name
    if not folder.is_dir():
        pytest.skip(f"needs the folder shared/{name} beside the checkout")
    return folder
