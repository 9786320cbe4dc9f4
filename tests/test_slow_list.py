"""The list of slow tests: what comes onto it, what leaves it, and that it names tests."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from slow_list import EVERY, MANY, ProcessorSeconds, left_out, listed, rewritten

PRINTED = """
0.40s call     tests/a.py::test_slow[one]
0.20s setup    tests/a.py::test_slow[one]
0.00s call     tests/a.py::test_slow[two]
0.04s call     tests/a.py::test_between
0.04s call     tests/a.py::test_between_and_known
0.01s call     tests/a.py::test_quick
"""


def test_slow_tests_come_onto_the_list_and_quick_ones_leave_it() -> None:
    known = frozenset({"tests/a.py::test_between_and_known", "tests/a.py::test_quick", "tests/a.py::test_gone"})
    assert rewritten(PRINTED, known) == ["tests/a.py::test_between_and_known", "tests/a.py::test_slow"]


def test_fast_runs_take_every_seventh_of_many_parameters_whatever_their_order() -> None:
    many = [f"tests/a.py::test_many[{i:03}]" for i in range(MANY)]
    few = [f"tests/a.py::test_few[{i}]" for i in range(MANY - 1)]
    left = left_out([*reversed(many), "tests/a.py::test_one", *few])
    assert sorted(set(many) - left) == many[::EVERY]
    assert left < set(many)


def test_durations_are_what_a_processor_worked() -> None:
    seconds = ProcessorSeconds()
    seconds.pytest_runtest_logstart()
    counting = seconds.pytest_runtest_makereport()
    next(counting)
    assert sum(range(1_000_000)) == 499_999_500_000  # some milliseconds of work
    with pytest.raises(StopIteration) as ended:
        counting.send(SimpleNamespace(duration=3_600.0))  # by a clock, of a machine that did other work
    assert 0 < ended.value.value.duration < 3_600


def test_the_list_names_files_that_exist() -> None:
    root = Path(__file__).parents[1]
    assert not {name for name in listed() if not (root / name.partition("::")[0]).is_file()}
