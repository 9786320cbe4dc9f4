"""Where gates are configured: the nearest file upward, or the one that is named; read as data, judged elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval.cli.inputs import note_inputs
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.features.gates.rules import Gates, Rule

OWN_NAMES = ("jaccard-eval.toml", "jaccard-eval.yaml", "jaccard-eval.yml")
SHARED_NAME = "pyproject.toml"
TOOL = "jaccard-eval"
_ANY_SPELLING = re.compile(r"jaccard[-_. ]?eval", re.IGNORECASE)
_WAYS_OUT = "repair it, name another file with --config, or use none with --isolated"
_YAML_SUFFIXES = (".yaml", ".yml")
_RULE_HEADER = re.compile(
    r"""^\s*\[\[\s*(?:tool\s*\.\s*["']?jaccard-eval["']?\s*\.\s*)?gates\s*\.\s*rules\s*\]\]""", re.MULTILINE
)


def find_config() -> Path | None:
    """Return the configuration file in the nearest folder upward that has one, no further than the repository.

    Raises
    ------
    UsageError
        When one folder has several, or what bears the name of one cannot be read: its gates would be skipped.
    """
    try:
        here = Path.cwd()
    except OSError:  # the folder was deleted
        return None
    for folder in (here, *here.parents):
        found = [folder / name for name in (*OWN_NAMES, SHARED_NAME) if _is_config(folder / name)]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise UsageError(
                f"{quoted_value(str(folder))} has several configurations, {names}; keep one, or name it: --config"
            )
        if found:
            return Path(os.path.relpath(found[0], here))
        if os.path.lexists(folder / ".git"):
            return None
    return None


def _is_config(path: Path) -> bool:
    """Whether a file is a configuration; a pyproject.toml is when it has a table for this tool."""
    from jaccard_eval.reading.files import is_there, read_text

    try:
        if not is_there(path):
            return False
        text = read_text(path, empty_ok=True)
    except DataError as error:
        raise UsageError(f"{_statements(error)}; {_WAYS_OUT}") from None
    if path.name != SHARED_NAME:
        return True
    return _ANY_SPELLING.search(text) is not None and bool(_own_table(path, _toml(path, text))[0])


def load_gates(path: Path, *, further: Sequence[Rule] = ()) -> Gates | None:
    """Return the gates that a file configures, with `further` rules behind its own; None when it has none.

    Raises
    ------
    UsageError
        When it cannot be read, with everything that is wrong with it.
    """
    from jaccard_eval.features.gates.config import ConfigText, parse_config

    text = _text(path)
    is_yaml = path.suffix.lower() in _YAML_SUFFIXES
    content = _yaml(path) if is_yaml else _toml(path, text)
    own, table = _own_table(path, content)
    starts = [text.count("\n", 0, match.end()) + 1 for match in _RULE_HEADER.finditer(text)]
    rules = _rules_in(own)
    place = ConfigText(
        path=str(path),
        table=table,
        typed=not is_yaml,
        rule_lines=starts if len(starts) == len(rules) else (),
        read_names=lambda name: _image_names(path.parent / name),
    )
    return parse_config(own, place, further=further)


def _own_table(path: Path, content: Mapping[str, Any]) -> tuple[Any, str]:
    """Return what is said to this tool, and how the table is called."""
    tools = content.get("tool")
    tables = [*content, *(f"tool.{name}" for name in tools)] if isinstance(tools, Mapping) else [*content]
    misspelt = [
        name for name in tables if _ANY_SPELLING.fullmatch(name.removeprefix("tool.")) and name != f"tool.{TOOL}"
    ]
    if misspelt:
        raise UsageError(f"{path}: the table [{misspelt[0]}] is not read; call it [tool.{TOOL}]")
    if path.name != SHARED_NAME and "tool" not in content:
        return content, ""
    return (tools.get(TOOL, {}) if isinstance(tools, Mapping) else {}), f"tool.{TOOL}."


def _rules_in(own: Any) -> Sequence[Any]:
    gates = own.get("gates") if isinstance(own, Mapping) else None
    rules = gates.get("rules") if isinstance(gates, Mapping) else None
    return rules if isinstance(rules, list) else ()


def read_toml(path: Path) -> Mapping[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    UsageError
        When it cannot be read or is no TOML.
    """
    return _toml(path, _text(path))


def _toml(path: Path, text: str) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply") from None


def _yaml(path: Path) -> Mapping[str, Any]:
    from jaccard_eval.reading.yaml import read_yaml_mapping

    try:
        return read_yaml_mapping(path)
    except DataError as error:
        if error.findings[0].code == "yaml-content":
            raise UsageError(f"{path}: expected keys and values, gates first") from None
        raise UsageError(_statements(error)) from None


def _image_names(path: Path) -> tuple[str, ...]:
    note_inputs([path])
    lines = (line.strip() for line in _text(path).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _text(path: Path) -> str:
    from jaccard_eval.reading.files import read_text

    try:
        return read_text(path)
    except DataError as error:
        raise UsageError(_statements(error)) from None


def _statements(error: DataError) -> str:
    return "\n".join(finding.statement for finding in error.findings)
