"""Configuration files: where they are found, what tables they have, and the options that they set for a command."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli import COMMAND_TABLE, WORDING
from jaccard_eval.cli.parse import AnyPath, InputText, input_path, note_inputs, parse_toml, read_settings
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Finding, FindingLog, Where, is_address
from jaccard_eval.fixes import Keys
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import did_you_mean, public, quoted_value, shown_json

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_NAMES = ("jaccard-eval.toml", "jaccard-eval.yaml", "jaccard-eval.yml")
SHARED_NAME = "pyproject.toml"
TOOL = "jaccard-eval"
GATES = "gates"  # the table of rules; all others are called like a command
NO_KEYS = ("config", "isolated")  # options that choose the file to read
_ANY_SPELLING = r"(?i)jaccard[-_. ]?eval"
_SETTINGS = "jaccard_eval.settings"  # in the context
CONFIG = "jaccard_eval.config"  # there, too: the file as it was read for the command that runs


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """A configuration file as it was read."""

    path: Path
    text: str
    tables: Mapping[str, Any]
    prefix: str  # of the names of its tables: "tool.jaccard-eval." or nothing
    typed: bool  # whether numbers are numbers; YAML is read as texts

    def line_of(self, table: str, key: str = "") -> int | None:
        """Return the line of a table's header, or of a key in it; None where it stands in a way of its own."""
        inside, header = not self.prefix and not table, None
        names = rf"{_name(TOOL)}\s*\.\s*" if self.prefix else ""
        head = re.compile(rf"\[(?:tool\s*\.\s*)?{names}{_name(table)}\s*\]" if self.typed else rf"{_name(table)}\s*:")
        # A key of a table, or the whole path of it in the table above.
        found = re.compile(rf"(?:{_name(table)}\s*\.\s*)?{_name(key)}\s*[=:]")
        for number, line in enumerate(self.text.splitlines(), start=1):
            text = line.strip()
            if head.match(text):
                inside, header = True, number
            elif text.startswith("[") and self.typed:
                inside = bool(re.match(rf"\[\s*tool\s*\.\s*{_name(TOOL)}\s*\]", text))
            elif inside and key and found.match(text):
                return number
        return None if key else header


def _name(text: str) -> str:
    """Return the pattern of a key, quoted or not, with dashes or underscores."""
    return rf"""["']?{re.escape(text).replace(re.escape("-"), "[-_]")}["']?"""


def find_config() -> Path | None:
    """Return the configuration file in the nearest folder upward that has one, no further than the repository.

    A UsageError is raised when one folder has several, or one cannot be read: its gates and options would be skipped.
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
                f"{quoted_value(str(folder))} has several configuration files: {names}. Keep one, or choose it"
                " with --config"
            )
        if found:
            return Path(os.path.relpath(found[0], here))
        # Beyond the repository, a file would be somebody else's: the result must not depend on where it is cloned.
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
        problem = "\n".join(finding.statement for finding in error.findings)
        fix = "fix it, choose another file with --config, or ignore it with --isolated"
        raise UsageError(f"{problem}; {fix}") from None
    # Most projects' files have no such table: to see that, they need not be parsed.
    return path.name != SHARED_NAME or (
        re.search(_ANY_SPELLING, text) is not None and bool(_own_tables(path, parse_toml(path, text))[0])
    )


def read_config(path: Path) -> Config:
    """Read a configuration; a UsageError names what is wrong with the file, and the tables that mean nothing."""
    text = read_settings(path)
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    tables, prefix = _own_tables(path, _read_yaml(path) if is_yaml else parse_toml(path, text))
    if not isinstance(tables, Mapping):
        raise UsageError(f"{path}: {prefix.rstrip('.')}: expected a table, got {shown_json(tables)}")
    config = Config(path, text, tables, prefix, not is_yaml)
    known = (GATES, *COMMAND_TABLE.list_commands(click.Context(COMMAND_TABLE)))
    problems = []
    for name in tables:
        if name not in known:
            where = Where(str(path), line=config.line_of(str(name)) or config.line_of("", str(name)))
            meant = did_you_mean(str(name), known) or f" Use one of {', '.join(known)}."
            problems.append(f"{where}: unknown key {quoted_value(prefix + str(name))}.{meant}")
    if problems:
        raise UsageError("\n".join(problems))
    return config


def _own_tables(path: Path, content: Mapping[str, Any]) -> tuple[Any, str]:
    """Return this tool's settings, and what stands before the names of their tables."""
    tools = content.get("tool")
    tables = [*content, *(f"tool.{name}" for name in tools)] if isinstance(tools, Mapping) else [*content]
    for name in tables:
        # A table that is misspelt would configure nothing, and its gates would pass unnoticed.
        if re.fullmatch(_ANY_SPELLING, name.removeprefix("tool.")) and name != f"tool.{TOOL}":
            raise UsageError(f"{path}: table [{name}] is misspelt; rename it to [tool.{TOOL}]")
    if path.name != SHARED_NAME and "tool" not in content:
        return content, ""
    return (tools.get(TOOL, {}) if isinstance(tools, Mapping) else {}), f"tool.{TOOL}."


def _read_yaml(path: Path) -> Mapping[str, Any]:
    from jaccard_eval.reading.yaml import read_yaml_mapping

    try:
        return read_yaml_mapping(path)
    except DataError as error:
        if error.findings[0].code == "yaml-content":
            raise UsageError(f"{path}: expected a mapping that starts with 'gates:'") from None
        raise UsageError("\n".join(finding.statement for finding in error.findings)) from None


def apply_config(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Make the options that a configuration sets for a command its defaults; a UsageError has all that is wrong."""
    try:
        given, _, _ = command.make_parser(ctx).parse_args(list(args))
    except click.UsageError:
        return  # click reports it
    # Help, and what else ends the run before it begins, is eager.
    if given.get("isolated") or any(param.is_eager and param.name in given for param in command.get_params(ctx)):
        return
    path = input_path(given["config"]) if given.get("config") else find_config()
    config = ctx.meta[CONFIG] = None if path is None else read_config(path)
    if config is None or config.tables.get(str(command.name)) is None:
        return
    ctx.default_map, ctx.meta[_SETTINGS] = _defaults(command, config, given)
    note_inputs([config.path], "the configuration")
    if ctx.default_map:  # what was set there is changed there
        ctx.meta[WORDING] = Keys(str(config.path), config.prefix + str(command.name), is_yaml=not config.typed)


def _defaults(
    command: click.Command, config: Config, given: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return what a configuration sets for a command next to the command line, and a note of it in one line."""
    table = config.tables[str(command.name)]
    if not isinstance(table, Mapping):
        raise UsageError(
            f"{config.path}: {config.prefix}{command.name}: expected a table of options, got {shown_json(table)}"
        )
    # Where there are no words, click has a value of its own.
    words = [given.get(str(param.name)) for param in command.params if isinstance(param, click.Argument)]
    has_words = any(word and isinstance(word, str | tuple) for word in words)
    defaults: dict[str, Any] = {}
    said: list[str] = []
    for param, default in texts_of(command, config, str(command.name), table):
        # The command line wins: the option itself, or the inputs as words.
        if given.get(str(param.name)) is None and not (has_words and param.name in ("gt", "pred")):
            defaults[str(param.name)] = default
            said.append(_said(param, default))
    log = FindingLog()
    if said:
        log.note("option-configured", Where(str(config.path)), ", ".join(said))
    return defaults, log.findings()


def texts_of(
    command: click.Command, config: Config, name: str, table: Mapping[str, Any]
) -> list[tuple[click.Option, bool | str | list[str]]]:
    """Return the options that a table sets, as the command line would give them; a UsageError has all that is wrong."""
    params = _settable(command)
    found: dict[str, tuple[click.Option, bool | str | list[str]]] = {}
    problems = []
    for key, value in table.items():
        option = str(key).replace("_", "-")
        place = f"{Where(str(config.path), line=config.line_of(name, option))}: {config.prefix}{name}.{key}"
        try:
            param, text = _setting(option, value, params, config)
        except UsageError as error:
            problems.append(f"{place}: {error}")
            continue
        if param.name in found:
            problems.append(f"{place}: the option is set twice; keep one")
        found[str(param.name)] = param, text
    if problems:
        raise UsageError("\n".join(problems))
    return [*found.values()]


def _settable(command: click.Command) -> dict[str, click.Option]:
    """Return the options that a table may set, by their long names without dashes in front."""
    return {
        spelling.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden and param.expose_value and param.name not in NO_KEYS
        for spelling in param.opts
        if spelling.startswith("--")
    }


def _setting(
    name: str, value: Any, params: Mapping[str, click.Option], config: Config
) -> tuple[click.Option, bool | str | list[str]]:
    """Return the option of a key and its value as the command line would have it, or raise a UsageError."""
    param = params.get(name)
    if param is None:
        meant = did_you_mean(name, params) or " '--help-all' lists all options."
        raise UsageError(f"unknown option.{meant}")
    return param, _default(value, param, config)


def _default(value: Any, param: click.Option, config: Config) -> bool | str | list[str]:
    """Return a value as the command line would give it; paths are relative to the file, and then to where it runs."""
    if param.is_flag:
        flag = (
            {"true": True, "false": False}.get(value, value) if not config.typed and isinstance(value, str) else value
        )
        if not isinstance(flag, bool):
            raise UsageError(f"expected true or false, got {shown_json(value)}")
        return flag
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in items):
        raise UsageError(f"expected text, a number, or a list of these, got {shown_json(value)}")
    texts = [_led_from(config.path.parent, str(item), param.type) for item in items]
    return texts if param.multiple else ",".join(texts)


def _led_from(folder: Path, text: str, kind: Any) -> str:
    if is_address(text):
        return text
    # The slash at the end of a folder to write is a part of what was asked for, which paths forget.
    path = str(folder / text) + ("/" if text.endswith("/") else "")
    is_path = isinstance(kind, AnyPath) or (isinstance(kind, InputText) and kind.is_file(path))
    return path if is_path and text not in ("", "-") else text


def _said(param: click.Option, value: bool | str | list[str]) -> str:
    name = next(name for name in param.opts if name.startswith("--"))
    if isinstance(value, bool):
        return name if value else next(iter(param.secondary_opts), f"{name} off")
    return " ".join(f"{name} {public(text)}" for text in ([value] if isinstance(value, str) else value))


def configured(ctx: click.Context | None) -> tuple[Finding, ...]:
    """Return a note of the options that a configuration set, in one line; none where it set none."""
    return () if ctx is None else ctx.meta.get(_SETTINGS, ())


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a configuration: gates, and a table of options for each command."""
    from jaccard_eval.features.gates import build_schema

    schema = build_schema()
    context = click.Context(COMMAND_TABLE)
    for name in COMMAND_TABLE.list_commands(context):
        command: Any = COMMAND_TABLE.get_command(context, name)
        if any(param.name in NO_KEYS for param in command.params):
            properties = {key: _option_schema(param) for key, param in _settable(command).items()}
            schema["properties"][name] = {
                "type": "object",
                "description": f"Options of 'jaccard-eval {name}'.",
                "properties": properties,
                "additionalProperties": False,
            }
    return schema


def _option_schema(param: click.Option) -> dict[str, Any]:
    scalar = {"type": ["string", "number"]}
    shape = {"type": "boolean"} if param.is_flag else {"anyOf": [scalar, {"type": "array", "items": scalar}]}
    return {"description": param.help or "", **shape}
