"""Rewrite the list of slow tests from the durations that pytest printed: `make durations`.

They are seconds of a processor, which are almost the same on a machine that does other work besides. A test of more
than 50 ms (the mean of its parameters) comes onto the list, one of less than 30 ms leaves it. Between the two it stays
as it was, so that the list does not change with the machine.

Of a test with many sets of parameters, such as a hundred seeds, fast runs take every seventh; `make full` takes all.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
IN, OUT = 0.05, 0.03  # seconds
MANY, EVERY = 90, 7  # sets of parameters
LINE = re.compile(r"^\s*([\d.]+)s (?:setup|call|teardown)\s+(\S+?)(?:\[.*)?$")


def listed() -> frozenset[str]:
    """Return the tests of the list, without parameters: `file::function`."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines()) if LIST.is_file() else frozenset()


def left_out(items: Iterable[str]) -> frozenset[str]:
    """Return what fast runs leave out of tests with many sets of parameters, the same whatever the order is."""
    sets: dict[str, list[str]] = defaultdict(list)
    for item in items:
        sets[item.partition("[")[0]].append(item)
    many = (sorted(one) for one in sets.values() if len(one) >= MANY)
    return frozenset(item for one in many for place, item in enumerate(one) if place % EVERY)


def rewritten(durations: str, known: frozenset[str]) -> list[str]:
    """Return the new list."""
    seconds: dict[str, float] = defaultdict(float)
    items: dict[str, set[str]] = defaultdict(set)
    for line in durations.splitlines():
        if found := LINE.match(line):
            seconds[found[2]] += float(found[1])
            items[found[2]].add(line.split(maxsplit=2)[2])
    means = {name: seconds[name] / len(items[name]) for name in seconds}
    return sorted(name for name, mean in means.items() if mean > IN or (mean > OUT and name in known))


class ProcessorSeconds:
    """A plugin by which durations of tests are what processors worked for them, those of ended children included."""

    def __init__(self) -> None:
        self._before = 0.0

    def pytest_runtest_logstart(self) -> None:
        """Begin with a test: what was worked for collecting belongs to none."""
        self._before = self._worked()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Count what was worked since the last report, which was that of the phase before."""
        report, now = (yield), self._worked()
        report.duration, self._before = now - self._before, now
        return report

    @staticmethod
    def _worked() -> float:
        import resource  # which Windows lacks

        used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    printed = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    LIST.write_text("".join(f"{name}\n" for name in rewritten(printed, listed())), encoding="utf-8")
