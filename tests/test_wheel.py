"""What is built: a wheel, and a source distribution that builds one, hold the page that `help CODE` prints."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"
SOURCES = ("jaccard_eval", "docs", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
NEEDED = 77  # of setuptools, as pyproject.toml asks for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(int(version("setuptools").partition(".")[0]) < NEEDED, reason=f"needs setuptools {NEEDED}"),
]


def build(kind: str, source: Path, target: Path) -> Path:
    """Build with the setuptools of this environment: nothing is fetched."""
    program = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(target)], cwd=source, capture_output=True, text=True, check=True
    )
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that a build leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


def help_of_wheel(wheel: Path, folder: Path) -> str:
    """What a wheel that is unpacked far from the checkout prints on a finding."""
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("jaccard_eval/findings.md") == PAGE.read_bytes()
        archive.extractall(folder)
    done = subprocess.run(
        [sys.executable, "-m", "jaccard_eval", "help", "box-encoding"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_wheel_explains_findings(source: Path, tmp_path: Path) -> None:
    text = help_of_wheel(build("wheel", source, tmp_path), tmp_path / "unpacked")
    assert text.startswith("box-encoding\n\n")
    assert "\nFix: " in text
    assert "[box-encoding]: " in text


def test_a_source_distribution_builds_such_a_wheel(source: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", source, tmp_path)) as archive:
        archive.extractall(tmp_path / "from", filter="data")
    (unpacked,) = (tmp_path / "from").iterdir()
    assert help_of_wheel(build("wheel", unpacked, tmp_path), tmp_path / "unpacked").startswith("box-encoding\n\n")
