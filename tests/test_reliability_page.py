"""docs/reliability.md: every promise names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))
PROMISES = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count(" | ") == 2][1:]


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file: str, test: str) -> None:
    assert not test or f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8")
    assert (ROOT / file).is_file()


def test_every_promise_names_a_test() -> None:
    assert len(PROMISES) >= 20
    assert [line for line in PROMISES if "::test_" not in line] == []
