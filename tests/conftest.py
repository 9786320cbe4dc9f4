"""Shared fixtures: the folders beside the checkout, and how hypothesis draws."""

import gc
import importlib.util
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from _pytest.doctest import DoctestModule
from planting import SETS, Pair
from slow_list import ProcessorSeconds, left_out, listed

from jaccard_eval import native
from jaccard_eval.engine import disk

ROOT = Path(__file__).parents[1]
# Package -> names that need it.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "pyarrow": ("arrow", "parquet", "feather"),
    "matplotlib": (".png", ".svg"),
    "globox": (),
    "hotcoco": (),
    "fsspec": (),
    "torch": (),
    "torchmetrics": (),
}

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
# Where the same tests run a second time, with other packages.
hypothesis.settings.register_profile("again", deadline=None, derandomize=True, max_examples=10)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))

for variable in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITLAB_CI", "CI_PROJECT_DIR"):
    os.environ.pop(variable, None)  # what the tests run must not tell the CI system that they run in

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start background jobs so, and the processes of the tests would inherit it: no Ctrl-C would end them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switches of `golden/test_outputs.py` and of `make durations`."""
    parser.addoption("--update-golden", action="store_true", help="write what commands print now into tests/golden")
    parser.addoption("--processor-seconds", action="store_true", help="count durations in seconds of a processor")


def pytest_configure(config: pytest.Config) -> None:
    """Obey the second."""
    if config.getoption("processor_seconds"):
        config.pluginmanager.register(ProcessorSeconds())


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples in the docstrings of tests, which have none."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the list of slow tests names, and what fast runs leave out of many parameters.

    Skip what needs an optional package that is not installed, by its name or parameters, or marked `needs`.
    """
    names, beyond, slow = listed(), left_out(item.nodeid for item in items), pytest.mark.slow
    for item in items:
        if item.nodeid.partition("[")[0] in names or item.nodeid in beyond:
            item.add_marker(slow)
    for package, words in OPTIONAL.items():
        if importlib.util.find_spec(package) is not None:
            continue
        for item in items:
            parameters = item.callspec.params.values() if words and hasattr(item, "callspec") else ()
            text = " ".join(map(str, (item.name, *parameters)))
            marked = any(package in marker.args for marker in item.iter_markers("needs"))
            if marked or any(word in text for word in words):
                item.add_marker(pytest.mark.skip(f"needs {package}"))


def pytest_collection_finish() -> None:
    """Keep thousands of collected tests out of each garbage collection, of which reading in parts makes many."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", params=[True, False], ids=["core", "numpy"])
def with_core(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Run a module twice, with the compiled core and without."""
    if request.param and native.load_core() is None:
        pytest.skip("no compiled core, or it is turned off")
    with pytest.MonkeyPatch.context() as patch:
        if not request.param:
            patch.setenv(native.VARIABLE, "0")
        yield request.param


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the disk engine match so few boxes at once, and reduce so few detections: small scenes then have parts."""

    def shrink(rows: int, bucket_rows: int | None = None) -> None:
        monkeypatch.setattr(disk, "PART_ROWS", rows)
        monkeypatch.setattr(disk, "LEAST_PART_ROWS", 1)
        if bucket_rows is not None:
            monkeypatch.setattr(disk, "BUCKET_ROWS", bucket_rows)

    return shrink


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real ground truth and predictions with published numbers."""
    return _beside_the_checkout("data")


@pytest.fixture(scope="session")
def shared_oracle() -> Path:
    """Hand-derived goldens and generated cases with expected arrays."""
    return _beside_the_checkout("oracle")


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """Small inputs of strangers, with their right values."""
    return _beside_the_checkout("cases")


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
        return Pair(gt, pred, tmp_path, capsys, name)

    return load


def _beside_the_checkout(name: str) -> Path:
    folder = ROOT.parent / "shared" / name
    if not folder.is_dir():
        pytest.skip(f"needs the folder shared/{name} beside the checkout")
    return folder
