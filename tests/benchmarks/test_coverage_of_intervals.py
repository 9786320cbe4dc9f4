"""Intervals hold what they are for: a small version of `benchmarks/coverage.py`, seeded."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    """The benchmark, under a name of its own: a package has that of its file."""
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("n_classes", "n_images"), [(3, 100), (20, 100), (80, 100)])
def test_intervals_hold_the_expected_value_and_their_own(coverage: ModuleType, n_classes: int, n_images: int) -> None:
    cell = coverage.measure(n_classes, n_images, coverage.KINDS["hard"], n_sets=60, n_resamples=60)
    # Of 60 sets, 52 hold it with a probability of .98 where 95 % do.
    assert min(cell.covered) >= 52 / 60, cell
    assert (cell.own, cell.given) == (1, 1)
    assert 0.85 < cell.width < 1.25  # by that of the ideal interval


def test_many_rare_classes_raise_ap_of_few_images_and_intervals_follow(coverage: ModuleType) -> None:
    # AP of all images is far below: no interval claims to hold it, and no range is given.
    cell = coverage.measure(300, 100, coverage.KINDS["hard"], n_sets=30, n_resamples=40)
    assert cell.bias > 0.5
    assert min(cell.covered) >= 25 / 30, cell
    assert cell.population != cell.population
