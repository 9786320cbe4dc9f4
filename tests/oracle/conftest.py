"""The oracle's cases, unpacked once."""

import tarfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def oracle_cases(shared_oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the generated cases, with their manifest."""
    folder = tmp_path_factory.mktemp("oracle")
    with tarfile.open(shared_oracle / "cases.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return next(folder.iterdir())
