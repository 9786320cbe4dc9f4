"""What is built: a source distribution, and from it wheels with and without the core, which hold the pages they show.

Everything is built once, from the unpacked source distribution: what that lacks, no wheel has. On a fresh machine, with
and without a compiler, it gives the same numbers.
"""

import email
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("jaccard_eval", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
SAMPLE = ("sample_data/coco/gt.json", "sample_data/coco/better.json")
GONE = "build/lib/jaccard_eval/gone"  # of an earlier build in the same folder
NO_REGISTRY = ("No matching distribution", "Could not find a version", "Failed to establish", "Name or service")
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}
SETTINGS = ("PYTHONPATH", "JACCARD_EVAL_NATIVE")  # of this process, which a fresh machine does not have
# As pyproject.toml asks for.
NEEDED = pytest.mark.skipif(int(version("setuptools").partition(".")[0]) < 77, reason="needs setuptools 77")

pytestmark = [pytest.mark.slow, NEEDED]


def build(kind: str, source: Path, target: Path, **settings: str) -> Path:
    """Build with the setuptools of this environment: nothing is fetched."""
    program = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    environment = {name: value for name, value in os.environ.items() if name != "JACCARD_EVAL_NATIVE"} | settings
    done = subprocess.run(
        [sys.executable, "-c", program, str(target)],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return target / done.stdout.splitlines()[-1]


@dataclass(frozen=True)
class Built:
    """The files of a release, and the folder that the source distribution unpacks to."""

    sdist: Path
    wheel: Path
    pure_wheel: Path
    unpacked: Path

    def __iter__(self) -> Iterator[Path]:
        return iter((self.sdist, self.wheel, self.pure_wheel))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(ROOT / name, source / name)
    sdist = build("sdist", source, folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "from", filter="data")
    (unpacked,) = (folder / "from").iterdir()
    (unpacked / GONE).mkdir(parents=True)
    (unpacked / GONE / "__init__.py").touch()
    pure = build("wheel", unpacked, folder, JACCARD_EVAL_NATIVE="0")
    shutil.rmtree(unpacked / "build")
    return Built(sdist, build("wheel", unpacked, folder), pure, unpacked)


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_a_wheel_of_the_source_distribution_explains_findings(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.pure_wheel) as archive:
        texts = {name for name in archive.namelist() if name.startswith("jaccard_eval/explained/")}
        assert texts == {str(path.relative_to(ROOT)) for path in (ROOT / "jaccard_eval/explained").glob("*.md")}
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "jaccard_eval", "help", "box-encoding"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("box-encoding\n\n")
    assert "\nFix: " in done.stdout
    assert "[box-encoding]: " in done.stdout


def test_wheels_hold_the_package_and_nothing_else(built: Built) -> None:
    built_or_source = {".pyc", ".so", ".cpp", ".hpp"}
    files = [path for path in (ROOT / "jaccard_eval").rglob("*") if path.is_file()]
    needed = {str(path.relative_to(ROOT)) for path in files if path.suffix not in built_or_source}
    for wheel in (built.wheel, built.pure_wheel):
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
        assert needed - names == set()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"jaccard_eval"}
        assert not [name for name in names if name.endswith((".cpp", ".hpp", ".pyc")) or "gone" in name]
    assert built.pure_wheel.name.endswith("-py3-none-any.whl")
    assert not built.wheel.name.endswith("-any.whl") or not shutil.which("c++")


def test_metadata_is_what_an_index_needs(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = metadata(built.wheel)
    assert (about["Name"], about["Version"]) == ("jaccard-eval", project["version"])
    assert (about["License-Expression"], about["Requires-Python"]) == ("MIT", ">=3.11")
    assert set(about.get_all("Provides-Extra") or ()) == set(project["optional-dependencies"])
    assert about["Description-Content-Type"] == "text/markdown"
    assert str(about.get_payload()).startswith("# jaccard-eval\n")


@pytest.mark.needs("twine")
def test_twine_finds_nothing_to_complain_of(built: Built) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *built], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(*command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS} | settings
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def new_venv(folder: Path) -> Path:
    """Return the folder of programs of an environment in which nothing is installed."""
    assert run(sys.executable, "-m", "venv", folder).returncode == 0
    return folder / "bin"


def install(programs: Path, *what: str, **settings: str) -> None:
    done = run(programs / "python", "-m", "pip", "install", "--no-compile", *what, **settings)
    if done.returncode and any(text in done.stderr for text in NO_REGISTRY):
        pytest.skip("pip finds no package registry")
    assert done.returncode == 0, done.stderr


def native_and_result(programs: Path) -> tuple[str, str]:
    """Return what the installed program says of its core, and what it prints of the sample."""
    version = run(programs / "jaccard-eval", "--version", "-v").stdout
    (native,) = (line.split()[1] for line in version.splitlines() if line.startswith("native"))
    done = run(programs / "jaccard-eval", *SAMPLE, "--json")
    assert done.returncode == 0, done.stderr
    return native, done.stdout


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("c++"), reason="compares with what a compiler builds")
def test_sources_without_a_compiler_and_a_wheel_give_the_same_numbers(built: Built, tmp_path: Path) -> None:
    plain = new_venv(tmp_path / "plain")
    install(plain, str(built.sdist), **NO_COMPILER)
    # The second takes its libraries from this environment: fetching them twice shows nothing more.
    compiled = new_venv(tmp_path / "compiled")
    (borrowing,) = compiled.parent.glob("lib/*/site-packages")
    (borrowing / "lent.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    # Charts need an extra; where it is missing, the message names it.
    done = run(plain / "jaccard-eval", *SAMPLE, "-o", tmp_path / "plot.svg")
    (advice,) = re.findall(r"pip install (.+)", done.stderr)
    assert done.returncode == 4
    install(compiled, "--no-deps", "--ignore-installed", str(built.wheel))
    install(compiled, *shlex.split(advice))
    without, expected = native_and_result(plain)
    with_core, found = native_and_result(compiled)
    assert (without, with_core) == ("no", "yes")
    assert found == expected
    done = run(compiled / "jaccard-eval", *SAMPLE, "-o", tmp_path / "report.html", "-o", tmp_path / "plot.svg")
    assert done.returncode == 0, done.stderr
