"""docs/protocols.md is generated from the protocols: the rules that each changes, with their values and sources.

Run as a script, this file rewrites the page.
"""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.data.known_protocols import RULES_BY_KIND, SIGMAS
from jaccard_eval.data.protocol import LATER_RULES, PROTOCOLS, RULES_OF, AreaRange, Protocol

PAGE = Path(__file__).parents[1] / "docs" / "protocols.md"
HEAD = """# Protocols

For those who need the numbers of a benchmark: `--protocol NAME` chooses its rules.

Every rule that can change a number is a field, with its source
next to it in `jaccard_eval/data/known_protocols.py`; `python tests/test_protocols_page.py` generates this page from
them. Options replace single rules, and the [signature](reproducibility.md) of a result names them all. A protocol has
the rules of the one that it is compared with below, except those in its table.
[Exactness](exactness.md) is about how well each protocol reproduces its source.

## Rules

| rule | what it decides |
|---|---|
"""


def page() -> str:
    """Return the page: what each rule decides, then the rules of each protocol."""
    rules = "".join(f"| `{name}` | {text} |\n" for name, text in meanings().items() if name not in ("name", "sources"))
    return HEAD + rules + "".join(map(_section, PROTOCOLS.values())) + _of_kinds() + _of_sigmas()


def meanings() -> dict[str, str]:
    """Return what each rule decides, as the class of protocols explains it."""
    text = (
        inspect.cleandoc(Protocol.__doc__ or "").partition("Parameters\n----------\n")[2].partition("\nExamples\n")[0]
    )
    parts = re.split(r"^(\w+) : .*\n", text, flags=re.MULTILINE)[1:]
    return {name: " ".join(about.split()) for name, about in zip(parts[::2], parts[1::2], strict=True)}


def _section(protocol: Protocol) -> str:
    base, sources = _base(protocol), dict(protocol.sources)
    told = [(name, _text(getattr(protocol, name)), sources.get(name, "")) for name in _changed(protocol)]
    rows = (f"| `{name}` | {value} | {source} |\n" for name, value, source in told)
    like = f"As `{base.name}`, but:\n\n" if base else ""
    return f"\n## {protocol.name}\n\n{like}| rule | value | source |\n|---|---|---|\n{''.join(rows)}"


def _base(protocol: Protocol) -> Protocol | None:
    """Return what a protocol is told by: COCO, VOC, or the one it is named after, by the fewest rules that differ."""
    others = [one for one in PROTOCOLS.values() if one is not protocol]
    named = [one for one in others if protocol.name.startswith(f"{one.name}-")]
    usual = [one for one in others if one.name in ("coco", "voc2012") and protocol.name not in ("coco", "voc2012")]
    return min(named or usual, key=lambda one: len(_differing(protocol, one)), default=None)


def _differing(protocol: Protocol, base: Protocol) -> list[str]:
    rules = [name for name in meanings() if name not in ("name", "sources")]
    return [name for name in rules if getattr(protocol, name) != getattr(base, name)]


def _changed(protocol: Protocol) -> list[str]:
    """Return the rules of a protocol that its base has not, or all that say anything."""
    base = _base(protocol)
    rules = _differing(protocol, base) if base else [name for name in meanings() if name not in ("name", "sources")]
    return [name for name in rules if _is_shown(protocol, name)]


def _is_shown(protocol: Protocol, name: str) -> bool:
    """Whether a rule is named: if it says anything; later ones where they are not what they always were."""
    if name in (*RULES_OF, "iou_type", "class_agnostic"):
        return name in dict(protocol.sources)
    if name == "recall_points":
        return protocol.interpolation not in ("area", "points", "lines", "hits")
    return name not in LATER_RULES or getattr(protocol, name) != LATER_RULES[name]


def _of_kinds() -> str:
    """Return what differs by what is compared."""
    text = "\n## What differs by what is compared\n\n| protocol | `--iou-type` | rule | value |\n|---|---|---|---|\n"
    for name, kind in RULES_BY_KIND:
        other, usual = PROTOCOLS[name].comparing(kind), PROTOCOLS[name]
        changed = [rule for rule in meanings() if getattr(other, rule, None) != getattr(usual, rule, None)]
        text += "".join(
            f"| `{name}` | `{kind}` | `{rule}` | {_text(getattr(other, rule))} |\n"
            for rule in changed
            if rule != "iou_type"
        )
    return text


def _of_sigmas() -> str:
    """Return the sigmas that have names."""
    text = "\n## Sigmas of keypoints by name\n\n| `--sigmas` | keypoints | least | largest |\n|---|---:|---:|---:|\n"
    rows = (f"| `{name}` | {len(own)} | {min(own):g} | {max(own):g} |\n" for name, own in SIGMAS.items())
    return text + "".join(rows)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case AreaRange():
            return f"{value.name} {value.low:g} to {value.high:g}"
        case tuple():
            return ", ".join(map(_text, value)) or "none"
        case float():
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def test_the_page_equals_what_it_is_generated_from() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_protocols_page.py"


def test_every_field_is_explained() -> None:
    assert list(meanings()) == [field.name for field in fields(Protocol)]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_every_row_has_a_source(protocol: Protocol) -> None:
    rows = [line for line in _section(protocol).splitlines() if line.startswith("| `")]
    assert rows
    assert not [row for row in rows if row.endswith("|  |")]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_a_table_and_that_of_its_base_have_every_rule(protocol: Protocol) -> None:
    told: dict[str, Any] = {}
    chain = [protocol]
    while (base := _base(chain[-1])) is not None:
        chain.append(base)
    for one in reversed(chain):
        told |= {name: getattr(one, name) for name in _changed(one)}
    if protocol.interpolation in ("area", "points", "lines", "hits"):
        told["recall_points"] = protocol.recall_points
    assert {name: getattr(protocol, name) for name in told} == told
    assert {name for name in meanings() if _is_shown(protocol, name)} - {"name", "sources"} <= told.keys()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
