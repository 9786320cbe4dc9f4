"""The codes of findings: one list, used everywhere by literals, each explained in a file of its own."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jaccard_eval.codes import CODES, explanation

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "jaccard_eval").rglob("*.py"))


def test_every_code_in_the_source_is_a_known_literal() -> None:
    # Each needs a file of its own: jaccard_eval/explained/CODE.md.
    unknown = [f"{place}: {code}" for place, code in _used_codes() if code not in CODES]
    assert not unknown


def test_every_known_code_is_used() -> None:
    assert set() == CODES - {code for _, code in _used_codes()}


def test_every_code_shows_a_message_of_its_own_and_a_fix() -> None:
    bare = [code for code in CODES if f"[{code}]: " not in explanation(code) or "\nFix: " not in explanation(code)]
    assert not bare


def test_codes_are_in_kebab_case() -> None:
    assert not [code for code in CODES if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", code)]


@cache
def _trees() -> dict[str, ast.Module]:
    """The source, parsed when it is asked for: these tests are collected far more often than run."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@cache
def _used_codes() -> list[tuple[str, str]]:
    """Every text that is passed for a parameter `code`, assigned to `code`, or its default, with its place."""
    positions = _positions()
    return [
        (f"{name}:{value.lineno}", code)
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        for value in _code_values(node, positions)
        for code in _literals(value)
    ]


def _positions() -> dict[str, int]:
    """Where functions and classes of the package take a `code`: name -> position among the arguments."""
    positions = {}
    for tree in _trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and "code" in (names := [one.arg for one in node.args.args]):
                positions[node.name] = names.index("code") - (names[0] in ("self", "cls"))
            if isinstance(node, ast.ClassDef) and "code" in (fields := list(map(_field_name, node.body))):
                positions[node.name] = [one for one in fields if one].index("code")
    return positions


def _field_name(node: ast.stmt) -> str:
    is_field = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    return node.target.id if is_field else ""  # type: ignore[union-attr]


def _code_values(node: ast.AST, positions: dict[str, int]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")
        if positions.get(called, len(node.args)) < len(node.args):
            yield node.args[positions[called]]
    # Anything else that is assigned to the name is the exit code of a process.
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp) and _names(node) == ["code"]:
        yield node.value
    if isinstance(node, ast.FunctionDef):
        pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        yield from (default for one, default in pairs if one.arg == "code" and default is not None)


def _names(node: ast.Assign) -> list[str]:
    return [one.id for one in node.targets if isinstance(one, ast.Name)]


def _literals(value: ast.expr) -> list[str]:
    """The texts that an expression can be; a `code` that is handed on was looked at where it came from."""
    if isinstance(value, ast.Constant):
        return [str(value.value)]
    if isinstance(value, ast.IfExp):
        return _literals(value.body) + _literals(value.orelse)
    handed_on = isinstance(value, ast.Name) and value.id == "code"
    handed_on |= isinstance(value, ast.Attribute) and value.attr == "code"
    return [] if handed_on else [f"not a literal: {ast.unparse(value)}"]
