"""From the plain values of a configuration file to rules of gates; all that is wrong is said at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaccard_eval.data.intervals import Bootstrap
from jaccard_eval.errors import UsageError, Where, did_you_mean, shown, shown_json
from jaccard_eval.features.gates.rules import Gates, Rule, Slice, refuse
from jaccard_eval.features.gates.schema import (
    BOOTSTRAP_KEYS,
    CONFIG_KEYS,
    GATES_KEYS,
    NUMBER,
    RULE_KEYS,
    TABLE,
    TABLES,
    TEXT,
    TEXTS,
    WHOLE,
    Key,
)
from jaccard_eval.numerals import is_numeral

_BOOTSTRAP_FIELDS = {"resamples": "n_resamples", "confidence": "confidence_level", "seed": "rng"}
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigText:
    """Where a configuration stands, and what its text is like.

    Parameters
    ----------
    path : str
        For messages.
    table : str
        Name of the table that holds it, with a dot behind; empty in a file of its own.
    typed : bool
        Whether numbers are numbers; YAML is read as texts.
    rule_lines : sequence of int
        The line that each rule begins in; empty when unknown.
    read_names : callable
        Reads a file of image names, by its path as the configuration has it.
    """

    path: str
    table: str = ""
    typed: bool = True
    rule_lines: Sequence[int] = ()
    read_names: Callable[[str], tuple[str, ...]] = lambda _: ()


def parse_config(content: Mapping[str, Any], text: ConfigText, *, further: Sequence[Rule] = ()) -> Gates | None:
    """Return the gates of a configuration, with `further` rules behind its own; None when it says nothing of gates.

    Raises
    ------
    UsageError
        With all unknown keys, values of a wrong type and rules that cannot mean what they say.
    """
    reader = _Reader(text)
    top = reader.take(content, CONFIG_KEYS, Where(text.path, record=text.table.rstrip(".") or None))
    gates = _gates(top["gates"], reader, further) if "gates" in top else None
    refuse(reader.problems, None)
    return gates


def _gates(table: Mapping[str, Any], reader: _Reader, further: Sequence[Rule]) -> Gates | None:
    """Return the gates; None when there are problems, which the reader then holds."""
    where = reader.place("gates")
    values = reader.take(table, GATES_KEYS, where)
    rules = [_rule(one, i, reader) for i, one in enumerate(values.pop("rules", ()))]
    slices = [_slice(name, given, reader) for name, given in values.pop("slices", {}).items()]
    bootstrap = _bootstrap(values.pop("bootstrap"), reader) if "bootstrap" in values else None
    if reader.problems:
        return None
    try:
        own = tuple(one for one in rules if one)
        chosen = tuple(one for one in slices if one)
        return Gates(rules=(*own, *further), slices=chosen, bootstrap=bootstrap, **values)
    except UsageError as error:
        reader.say_lines(where, str(error))
    return None


def _rule(table: Mapping[str, Any], i: int, reader: _Reader) -> Rule | None:
    line = reader.text.rule_lines[i] if i < len(reader.text.rule_lines) else None
    where = replace(reader.place(f"gates.rules[{i}]"), line=line)
    before = len(reader.problems)
    values = reader.take(table, RULE_KEYS, where)
    if "metric" not in values and len(reader.problems) == before:
        reader.say(where, "metric is missing")
    if len(reader.problems) > before:
        return None
    values |= reader.take(values.pop("at", {}), RULE_KEYS["at"].keys or {}, where)
    try:
        return Rule(**values, where=where)
    except UsageError as error:
        reader.problems += str(error).split("\n")
    return None


def _slice(name: str, given: Any, reader: _Reader) -> Slice | None:
    """Return a slice: a list of names and globs, or the path of a file of names."""
    where = reader.place("gates.slices", name)
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return Slice(name=name, patterns=tuple(given))
    if isinstance(given, str) and not _GLOB.search(given):
        return Slice(name=name, patterns=reader.names(given, where), exact=True)
    if isinstance(given, str):
        reader.say(where, f"a text is the path of a file of names; write globs as a list: [{shown(given)}]")
    else:
        expected = "a list of names and globs, or the path of a file of names"
        reader.say(where, f"expected {expected}; got {shown_json(given)}")
    return None


def _bootstrap(table: Mapping[str, Any], reader: _Reader) -> Bootstrap | None:
    where = reader.place("gates.bootstrap")
    values = reader.take(table, BOOTSTRAP_KEYS, where)
    try:
        return Bootstrap(**{_BOOTSTRAP_FIELDS.get(name, name): value for name, value in values.items()})
    except UsageError as error:
        reader.say(where, str(error))
    return None


@dataclass(slots=True)
class _Reader:
    """Takes values out of tables by their keys, and remembers what is wrong."""

    text: ConfigText
    problems: list[str] = field(default_factory=list)

    def place(self, record: str, key: str | None = None) -> Where:
        return Where(self.text.path, record=f"{self.text.table}{record}", field=key)

    def say(self, where: Where, problem: str) -> None:
        self.problems.append(f"{where}: {problem}")

    def say_lines(self, where: Where, problems: str) -> None:
        for problem in problems.split("\n"):
            self.say(where, problem)

    def names(self, path: str, where: Where) -> tuple[str, ...]:
        try:
            return self.text.read_names(path)
        except UsageError as error:
            self.say(where, str(error))
        return ()

    def take(self, table: Any, keys: Mapping[str, Key], where: Where) -> dict[str, Any]:
        """Return the values that are as their keys say, by the key with underscores."""
        if not isinstance(table, Mapping):
            self.say(where, f"expected a table, got {shown_json(table)}")
            return {}
        values: dict[str, Any] = {}
        for given, value in table.items():
            name = str(given).replace("_", "-")
            if name not in keys:
                meant = did_you_mean(name, keys) or f" Known are {', '.join(keys)}."
                self.say(where, f"unknown key {shown(given)}.{meant}")
            elif name.replace("-", "_") in values:
                self.say(where, f"{name} is given twice, with dashes and with underscores")
            else:
                self._keep(values, name, keys[name], value, where)
        return values

    def _keep(self, values: dict[str, Any], name: str, key: Key, value: Any, where: Where) -> None:
        try:
            values[name.replace("-", "_")] = _converted(value, key, typed=self.text.typed)
        except UsageError as error:
            self.say(replace(where, field=name), str(error))


def _converted(value: Any, key: Key, *, typed: bool) -> Any:
    """Return a value as its key wants it, or raise a UsageError."""
    if isinstance(value, str) and value in key.choices:
        return value
    if key.type in (NUMBER, WHOLE):
        return _number(value, key, typed=typed)
    if key.type == TEXTS:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return tuple(value)
    expected = {TEXT: str, TABLE: Mapping, TABLES: list, TEXTS: ()}[key.type]
    if isinstance(value, expected):  # type: ignore[arg-type]
        return value
    raise UsageError(f"expected {_expected(key)}, got {shown_json(value)}")


def _number(value: Any, key: Key, *, typed: bool) -> float | int:
    if not typed and isinstance(value, str) and is_numeral(value.strip()):
        value = float(value)
        value = int(value) if key.type == WHOLE and value.is_integer() else value
    kinds = int if key.type == WHOLE else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise UsageError(f"expected {_expected(key)}, got {shown_json(value)}")
    return value if key.type == WHOLE else float(value)


def _expected(key: Key) -> str:
    what = {TABLES: "a list of tables", TEXTS: "a text or a list of texts"}.get(key.type, f"a {key.type}")
    return f"{what} or {' or '.join(map(shown, key.choices))}" if key.choices and key.type == NUMBER else what
