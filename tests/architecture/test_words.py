"""The words that users and readers meet: plain English, without the habits that once crept in.

Looks through strings, docstrings and comments of the rooms, and through the prose of the pages.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Folders, modules and pages whose strings and prose are clean.
ROOMS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "action.yml",
    "benchmarks/README.md",
    "docs",
    "jaccard_eval",
)
# Documents hold these words, and programs may compare them.
KEPT = ("and excluded from the means",)

FIRST_RELEASE = "\n## [0.1.0]"

# What to write instead of each habit. Patterns see words with one blank between, whatever the case.
BETTER = {
    r"(?<!there )(is|are) no(?= (?!more|less|worse|\w+er\b))": "is not, cannot, has no",
    r"sets? aside|setting aside": "ignore, skip",
    r"pass(ed|es|ing)? over": "ignore, skip",
    r"left out|(leave|leaves|leaving) (\S+ ){0,4}?out": "ignore, skip, omit, remove",
    r"(found|find|finds) by looking": "detect",
    r"(taken|took) for|(take|takes|taking) ((?!from)\S+ ){1,4}?for": "read as, treat as",
    r"say|says|said|saying|tell|tells|told|telling": "print, report, show, name, mean",
    r"mend(s|ed|ing)?": "fix",
    r"pictures?": "image (of a dataset), figure (of a report)",
    r"what was decided": "how it was read",
    r"no chance|not chance": "statistically significant (p = ...)",
    r"(of|than) another evaluation": "belongs to a different evaluation",
    r"made on other": "for different images",
    r"(given|gives?) back": "ΔAP if fixed; returns",
    r"beside": "next to, with",
    r"stand(s|ing)? for": "means",
    r"speaks?|spoke": "support, favour",
    r"but for": "except",
    r"work-?horse": "main command",
    r"whatever the class": "ignoring class",
    r"known are": "choose from, expected one of",
}
# Codes such as images-beside are names and stay.
_HABITS = {re.compile(rf"(?<![-\w])({habit})(?![-\w])", re.I): better for habit, better in BETTER.items()}
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", re.DOTALL)


@pytest.mark.parametrize("room", ROOMS)
def test_words_are_plain_english(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {habit!r}: better {better}"
        for path in _files(room)
        for place, text in _texts(path)
        if not text.endswith(KEPT)
        for line, habit, better in _habits(place, text)
    ]
    assert not found, "\n".join(["", *found])


def test_habits_are_found_in_strings_docstrings_comments_and_prose(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Is set\naside."""\nnote = f"{note} is no\tJSON"  # nothing is\n# told\nbeside = "fixes_mend"\n'
    )
    assert sorted((line, habit) for line, text in _texts(module) for line, habit, _ in _habits(line, text)) == [
        (1, "set aside"),
        (3, "is no"),
        (4, "told"),
    ]
    page = tmp_path / "page.md"
    page.write_text("It stands\nfor `beside`.\n\n```\npictures\n```\n\nA picture.\n")
    assert sorted((line, habit) for line, text in _texts(page) for line, habit, _ in _habits(line, text)) == [
        (1, "stands for"),
        (8, "picture"),
    ]


def _files(room: str) -> list[Path]:
    path = ROOT / room
    return sorted(chain(path.rglob("*.py"), path.rglob("*.md"))) if path.is_dir() else [path]


def _habits(line: int, text: str) -> Iterator[tuple[int, str, str]]:
    """Find what a text breaks, each with its line; phrases that run over the end of a line included."""
    words = list(re.finditer(r"\S+", text))
    flat = " ".join(word[0] for word in words)
    for habit, better in _HABITS.items():
        for match in habit.finditer(flat):
            first = words[flat.count(" ", 0, match.start())]
            yield line + text.count("\n", 0, first.start()), match[0], better


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The words of a file, each text with its first line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        # What is code keeps its lines, so that those of the prose are counted rightly.
        prose = _CODE.sub(_blank, _FENCED.sub(_blank, source))
        # Of the changelog, what was released stays as it was written.
        yield 1, prose.partition(FIRST_RELEASE)[0]
        return
    yield from _strings(ast.parse(source))
    yield from _comments(source)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "#", match[0])


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts of a module; keys and names, which have no blank, are not prose."""
    nodes = list(ast.walk(tree))
    skipped = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value if re.search(r"\s", node.value) else ""


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments, those of consecutive lines as one text."""
    first = 0
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] == first + len(lines):
                lines.append(token.string.lstrip("#"))
                continue
            yield first, "\n".join(lines)
            first, lines = token.start[0], [token.string.lstrip("#")]
    yield first, "\n".join(lines)
