"""The hierarchy of classes: nested objects of LabelName and Subcategory, below a root that is not a class itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.reading import files
from jaccard_eval.reading.json import RepeatedKeys, described_json, parse_json
from jaccard_eval.text import quoted_value

NAME, BELOW = "LabelName", "Subcategory"
_FIX = "Pass the hierarchy as Open Images has it, such as bbox_labels_600_hierarchy.json."

Parents = dict[str, tuple[str, ...]]  # of each class those directly above it, none below the root alone


def read_hierarchy(path: Path, findings: FindingLog) -> Parents:
    """Return every class with those directly above it, in the order of the file; empty where anything is wrong.

    A class may stand in several places. What "Part" lists is not read: a part is not a kind of its class.

    Source: TensorFlow Object Detection API, ``oid_hierarchical_labels_expansion.py``.
    """
    found = FindingLog()
    root = parse_json(path, files.read_text(path))
    above: dict[str, dict[str, None]] = {}
    if not isinstance(root, dict) or BELOW not in root:
        detail = f"not a hierarchy of classes: expected an object with {NAME} and {BELOW}, got {described_json(root)}"
        found.error("hierarchy-invalid", Where(str(path)), detail, fix=_FIX)
    else:
        for place, name, parent in _nodes(path, root, found):
            _join(above, place, name, parent, found)
        if not above and not found.has_errors:
            found.error(
                "hierarchy-invalid", Where(str(path), record=BELOW), "there is no class below the root", fix=_FIX
            )
    findings.extend(found.findings())
    return {} if found.has_errors else {name: tuple(parents) for name, parents in above.items()}


def _nodes(path: Path, root: Mapping[str, Any], found: FindingLog) -> Iterator[tuple[Where, str, str | None]]:
    """Yield place, name and parent of each node below the root, parents first."""
    # Not by recursion: hostile files are deep.
    waiting: list[tuple[str, Any, str | None]] = [("", root, None)]
    while waiting:
        place, node, name = waiting.pop()
        children = node.get(BELOW, [])
        if not isinstance(children, list):
            where = Where(str(path), record=place or None, field=BELOW)
            found.error(
                "hierarchy-invalid", where, f"expected a list of classes, got {described_json(children)}", fix=_FIX
            )
            continue
        below = []
        for number, child in enumerate(children):
            record = f"{place}.{BELOW}[{number}]".removeprefix(".")
            where = Where(str(path), record=record, field=NAME)
            if not isinstance(child, dict):
                where = Where(str(path), record=record)
                found.error("hierarchy-invalid", where, f"expected a class, got {described_json(child)}", fix=_FIX)
            elif isinstance(child, RepeatedKeys) and child.repeated:
                detail = f"duplicate key {quoted_value(child.repeated[0])}"
                found.error("key-duplicate", where, detail, fix="Keep one of them.")
            elif not isinstance(child.get(NAME), str) or not child[NAME].strip():
                detail = f"expected the id of a class, got {described_json(child.get(NAME))}"
                found.error("hierarchy-invalid", where, detail, fix=_FIX)
            else:
                yield where, child[NAME], name
                below.append((record, child, child[NAME]))
        waiting += reversed(below)


def _join(above: dict[str, dict[str, None]], where: Where, name: str, parent: str | None, found: FindingLog) -> None:
    """Put a class below another one; an error if it is above that one already."""
    above.setdefault(name, {})
    if parent is None:
        return
    way = _way_up(above, parent, name)
    if way:
        detail = f"{name} is above itself: {' below '.join([name, *way])}"
        found.error("hierarchy-circle", where, detail, fix="Remove the class from one of the two places.")
    else:
        above[name][parent] = None


def _way_up(above: Mapping[str, Mapping[str, None]], start: str, goal: str) -> list[str]:
    """Return the classes from one up to another that is above it, both included; empty where it is not."""
    before: dict[str, str] = {start: ""}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name == goal:
            way = [name]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for parent in above[name]:
            if parent not in before:
                before[parent] = name
                waiting.append(parent)
    return []
