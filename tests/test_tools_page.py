"""docs/tools.md is generated from the list of tools. Run as a script, this file rewrites the page."""

from pathlib import Path

import pytest

from jaccard_eval.data.known_protocols import RULES
from jaccard_eval.data.known_tools import TOOLS, Tool

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tools.md"
HEAD = """# Tools and their numbers

For those who have a number of another tool and want the same one. Choose the protocol with `--protocol`;
[Protocols](protocols.md) has its rules, and [Exactness](exactness.md) what is done otherwise on purpose. `explain
GT PRED --against PROTOCOL` splits the distance between two of them rule by rule; `jaccard-eval help NAME` finds a
row of this table.

| tool | what it prints | protocol here | how close | shown by |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = (f"| {tool.name} | {tool.prints} | `{tool.protocol}` | {tool.close} | {tool.shown} |\n" for tool in TOOLS)
    return HEAD + "".join(rows)


def test_the_page_is_that_of_the_list() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/test_tools_page.py"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_protocols_and_tests_of_the_list_are_there(tool: Tool) -> None:
    assert set(tool.protocol.split(", ")) <= RULES.keys()
    named = tool.shown.partition(",")[0]
    assert not named.startswith("tests/") or (ROOT / named).is_file()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
