"""Pages that are generated from the code: commands, options, library, metrics, outputs, findings, configuration."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import jaccard_eval
from jaccard_eval.cli import COMMAND_TABLE, GROUPS, PROGRAM
from jaccard_eval.cli.options import HELP, SectionedCommand
from jaccard_eval.cli.topics import EXIT_CODES
from jaccard_eval.codes import CODES, STOPS, explanation, introduction
from jaccard_eval.data.known_protocols import RULES
from jaccard_eval.data.metricref import BOXES, METRICS
from jaccard_eval.formats import SHAPES, Format, format_module, format_names
from jaccard_eval.report import describe_outputs

Pages = dict[str, str]
SCHEMAS = Path(__file__).parents[1] / "schema"
SEVERITIES = ("error", "warning", "note")
# What the library's pages are grouped by, in this order; a public name is in the first group that takes it.
VERBS = (
    "evaluate", "compare", "suite", "inspect", "explain", "labels", "sensitivity", "gate", "verify", "pixels", "nms",
    "convert", "load", "load_result", "to_frame", "log_metrics",
)  # fmt: skip
# Pages in no list of the sidebar: every page has it, and hundreds of names would fill it.
UNLISTED = "---\norphan: true\n---\n\n"
LOOPS = ("Evaluator", "MeanAveragePrecision")


def generated_pages(written: Mapping[str, str]) -> Pages:
    """Return every generated page by its name."""
    return {
        **_commands(),
        "options.md": _options(),
        **_library(),
        "metrics.md": _metrics(written["metrics.md"]),
        "outputs.md": _outputs(),
        **({} if "protocols.md" in written else {"protocols.md": _protocols()}),
        **_findings(),
        **{f"formats/{name}.md": _format(format_module(name).FORMAT) for name in format_names()},
        **_schemas(),
    }


def generated_contents(pages: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the sections of the sidebar that list the reference."""
    wanted = (
        *("commands/index.md", "options.md", "configuration.md", "schema/README.md", "outputs.md"),
        *("library/index.md", "formats.md", "metrics.md", "protocols.md", "findings.md"),
    )
    return {"Reference": [name for name in wanted if name in pages]}


def commands() -> dict[str, click.Command]:
    """Return all commands by name, in the groups of the help."""
    context = click.Context(COMMAND_TABLE)
    found = {name: COMMAND_TABLE.get_command(context, name) for name in COMMAND_TABLE.list_commands(context)}
    return {
        name: command for group in GROUPS for name, command in found.items() if command and _group(command) == group
    }


def _group(command: click.Command) -> str:
    group: str = getattr(command, "group", GROUPS[-1])
    return group


def _commands() -> Pages:
    lines = ["# Commands", "", "`jaccard-eval GT PRED` is short for `jaccard-eval evaluate GT PRED`.", ""]
    found = commands()
    for group in GROUPS:
        lines += [f"## {group}", "", "| command | what it does |", "|---|---|"]
        names = [name for name, command in found.items() if _group(command) == group]
        lines += [f"| [`{name}`]({name}.md) | {marked_up(found[name].short_help or '')} |" for name in names]
        lines.append("")
    lines += [
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code} | {about} |" for code, about in EXIT_CODES),
    ]
    tree = _tree(found)
    pages = {f"commands/{name}.md": _command(name, command) for name, command in found.items()}
    return {"commands/index.md": "\n".join([*lines, "", tree]), **pages}


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"{PROGRAM} {name}", **COMMAND_TABLE.context_settings)
    usage = " ".join([PROGRAM, name, *command.collect_usage_pieces(context)])
    lines = [f"# {name}", "", marked_up(inspect.cleandoc(command.help or "")), "", f"```text\n{usage}\n```", ""]
    if isinstance(command, SectionedCommand):
        lines += [
            f"An option can also be set in a [configuration](../configuration.md), in the table `{name}`;"
            " its key is the name without dashes.",
            "",
        ]
    examples = re.sub(r"^\x08\n", "", inspect.cleandoc(command.epilog or ""))
    if examples:
        title, _, text = examples.partition("\n")
        lines += [f"## {title.rstrip(':')}", "", f"```sh\n{inspect.cleandoc(text)}\n```", ""]
    lines += [f"```{{program}} {PROGRAM} {name}\n```", ""]
    for title, options in sections(command, context).items():
        lines += [f"## {marked_up(title)}", ""]
        for declared, about in options:
            lines += [f"````{{option}} {declared}", "", marked_up(about), "````", ""]
    return "\n".join(lines)


def sections(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the visible options of a command, as its help declares and explains them, by section."""
    found: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option):
            declared = record[0].replace(" / ", ", ")
            found.setdefault(getattr(param, "section", HELP), []).append((declared, record[1]))
    return found


def _options() -> str:
    where: dict[str, list[str]] = {}
    about: dict[str, str] = {}
    for name, command in commands().items():
        for options in sections(command, click.Context(command, **COMMAND_TABLE.context_settings)).values():
            for declared, text in options:
                for option in re.findall(r"--[\w-]+", declared):
                    where.setdefault(option, []).append(name)
                    about.setdefault(option, text)
    lines = ["# Options", "", "Every option, and the commands that have it; each leads to its whole text.", ""]
    for option in sorted(where):
        links = ", ".join(f"{{option}}`{name} <{PROGRAM} {name} {option}>`" for name in where[option])
        lines += [f"`{option}`", f": {marked_up(first_sentence(about[option]))} {links}", ""]
    return "\n".join(lines)


def _library() -> Pages:
    groups = library_groups()
    lines = [
        "# Library",
        "",
        "`import jaccard_eval` has these names; each is loaded when it is first used. They and `jaccard_eval.plugins`"
        " are public: every other path may move in any release. [In a notebook](../notebook.md) and"
        " [in the training loop](../training-loop.md) show how to use them.",
        "",
    ]
    for title, names in groups.items():
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        lines += [f"| [`{name}`]({name}.md) | {_summary(getattr(jaccard_eval, name))} |" for name in names]
        lines.append("")
    pages = {f"library/{name}.md": _public(name) for names in groups.values() for name in names}
    return {"library/index.md": "\n".join(lines), **pages}


def library_groups() -> dict[str, list[str]]:
    """Return the public names of the library by what they are."""
    groups: dict[str, list[str]] = {
        "Verbs": [*VERBS], "In a training loop": [*LOOPS], "Results": [], "Inputs and options": [],
        "Functions of arrays": [], "Errors and warnings": [],
    }  # fmt: skip
    for name in jaccard_eval.__all__:
        value = getattr(jaccard_eval, name)
        if name in (*VERBS, *LOOPS) or name.startswith("_"):
            continue
        if not isinstance(value, type):
            title = "Verbs" if value.__module__.startswith("jaccard_eval.api") else "Functions of arrays"
        elif issubclass(value, Exception):
            title = "Errors and warnings"
        elif value.__module__.endswith((".result", ".verdict", ".comparison")) and not name.endswith("Options"):
            title = "Results"
        else:
            title = "Inputs and options"
        groups[title].append(name)
    return groups


def _public(name: str) -> str:
    value = getattr(jaccard_eval, name)
    if isinstance(value, type):
        text = f".. autoclass:: jaccard_eval.{name}\n   :members:\n"
    else:
        text = f".. autofunction:: jaccard_eval.{name}\n"
    return f"{UNLISTED}# {name}\n\n```{{eval-rst}}\n{text}```\n\n[All names](index.md)\n"


def _summary(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", "\\|")


def _metrics(written: str) -> str:
    lines = [written]
    for title, is_listed in (("All metrics of boxes and shapes", True), ("All others", False)):
        lines += [f"## {title}", "", "| metric | meaning | other names | better | range |", "|---|---|---|---|---|"]
        for metric in METRICS.values():
            if (BOXES in metric.of) is is_listed:
                low, high = metric.bounds
                bounds = f"{low:g} to {high:g}" if high == 1 else f"{low:g} and more" if low == 0 else "any"
                better = "higher" if metric.higher_is_better else "lower"
                lines.append(
                    f"| `{metric.name}` | {metric.meaning} | {', '.join(metric.aliases)} | {better} | {bounds} |"
                )
        lines.append("")
    return "\n".join(lines)


def _protocols() -> str:
    lines = [
        "# Protocols",
        "",
        "`--protocol NAME` sets every rule of an evaluation; `--iou`, `--max-dets` and `--areas` replace its rules."
        " [Exactness](exactness.md) explains them and names what they were compared with.",
        "",
    ]
    for name, rules in RULES.items():
        lines += [f"## {name}", "", "| rule | value | source |", "|---|---|---|"]
        for rule, value in rules.items():
            if rule != "sources":
                source = rules.get("sources", {}).get(rule, "").replace("|", "\\|")
                lines.append(f"| `{rule}` | {_rule(value)} | {source} |")
        lines.append("")
    return "\n".join(lines)


def _rule(value: Any) -> str:
    """Return the value of a rule as people write it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in value.items())
    if isinstance(value, tuple):
        return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _outputs() -> str:
    by_suffix, by_name = describe_outputs()
    lines = [
        "# Outputs",
        "",
        "`-o PATH` also writes the result to a file, and may be repeated; `-` is the standard output. The library has"
        " `result.save(PATH)`. Files are written whole or not at all, and never onto anything that is read.",
        "",
    ]
    for title, rows in (("By suffix", by_suffix), ("By file name", by_name)):
        lines += [f"## {title}", "", "| PATH | what is written |", "|---|---|"]
        lines += [f"| {' '.join(f'`{one}`' for one in names.split())} | {about} |" for names, about in rows]
        lines.append("")
    return "\n".join(lines)


def findings_page() -> str:
    """Return docs/findings.md: what is true of all findings, and lists of the codes by how severe they are."""
    lines = [introduction()]
    severities = {code: _severity(explanation(code)) for code in sorted(CODES)}
    for severity in sorted(set(severities.values())):
        lines += [f"## {severity.capitalize()}s", ""]
        lines += [
            f"[`{code}`](../jaccard_eval/explained/{code}.md)" for code, own in severities.items() if own == severity
        ]
        lines.append("")
    return "\n".join(lines)


def _findings() -> Pages:
    return {f"findings/{code}.md": _finding(code, explanation(code).strip()) for code in sorted(CODES)}


def _finding(code: str, text: str) -> str:
    stops = (
        "\n\nIt stops the run unless allowed: `--allow " + code + "` continues, with a warning."
        if code in STOPS
        else ""
    )

    def linked(found: re.Match[str]) -> str:
        return f"[`{found[1]}`]({found[1]}.md)" if found[1] in CODES - {code} else found[0]

    parts = re.split(r"(^```.*?^```$)", _moved_down(text), flags=re.MULTILINE | re.DOTALL)
    prose = [
        part if place % 2 else re.sub(r"(?<!\[)`([a-z0-9]+(?:-[a-z0-9]+)+)`(?!\])", linked, part)
        for place, part in enumerate(parts)
    ]
    prose = [re.sub(r"^```\n", "```{code-block} text\n:class: message\n\n", part) for part in prose]
    return f"{UNLISTED}# {code}\n\n{''.join(prose)}{stops}\n\n[All findings](../findings.md)\n"


def _format(one: Format) -> str:
    held = "".join(f"* {SHAPES[kind]}: {where}\n" for kind, where in one.reads.items())
    carried = f"{held}* Carries: {', '.join(one.carries)}\n"
    example = f"Source: {one.source}\n\n```text\n{one.example.rstrip()}\n```\n"
    return f"{UNLISTED}# {one.name}\n\n{marked_up(one.summary)}\n\n{carried}\n{example}\n[All formats](../formats.md)\n"


def _moved_down(text: str) -> str:
    """Let links of what is explained lead from one folder below the pages."""
    return re.sub(r"\]\((?=[\w-]+\.md)", "](../", text)


def _severity(text: str) -> str:
    found = [severity for severity in SEVERITIES if re.search(rf"^{severity}\[", text, re.MULTILINE)]
    return " or ".join(found)


def _schemas() -> Pages:
    """Return a page for each schema of docs/schema; the file itself is next to it on the site."""
    return {f"schema/{path.stem}.md": _schema(path) for path in sorted(SCHEMAS.glob("*.json"))}


def _schema(path: Path) -> str:
    schema = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        f"{UNLISTED}# {path.stem}",
        "",
        f"{schema['title'].partition(': ')[2].capitalize() or schema['title']}.",
        f'The schema itself: <a href="{path.name}">{path.name}</a>.',
        "",
        *_properties(schema, "", 2),
    ]
    return "\n".join([*lines, "[All schemas](README.md)", ""])


def _properties(schema: Mapping[str, Any], path: str, level: int) -> Iterator[str]:
    """List the keys of a table, then those of the tables below it."""
    keys, needed = schema.get("properties", {}), schema.get("required", ())
    nested = [(name, value.get("items", value)) for name, value in keys.items()]
    described = any("description" in value for value in keys.values())
    if keys:
        heads = ["key", "value", "always", *(["meaning"] if described else [])]
        yield from (f"{'#' * level} `{path}`" if path else f"{'#' * level} Keys", "")
        yield from (f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
        for name, value in keys.items():
            about = f" {value.get('description', '').replace('|', chr(92) + '|')} |" if described else ""
            yield f"| `{name}` | {_type(value)} | {'yes' if name in needed else ''} |{about}"
        yield ""
    for name, table in nested:
        if isinstance(table, dict) and table.get("properties"):
            yield from _properties(table, f"{path}.{name}".lstrip("."), level)


def _type(value: Any) -> str:
    """Name the type of a value, or its values where they are few."""
    if not isinstance(value, dict) or not value:
        return "any value"
    if "const" in value or "enum" in value:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in value.get("enum", [value.get("const")]))
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type, value["anyOf"])))
    kind = value.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(_type({**value, "type": one}) for one in kind)
    if kind == "array":
        return f"list of {_type(value.get('items'))}"
    if kind == "object" and isinstance(value.get("additionalProperties"), dict) and not value.get("properties"):
        return f"table of {_type(value['additionalProperties'])}"
    return {"object": "table"}.get(kind, str(kind))


def first_sentence(text: str) -> str:
    """Return a text up to its first full stop."""
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0]


def marked_up(text: str) -> str:
    """Turn the plain text of a help page into Markdown: commands and options as code, nothing else marked up."""
    words = re.split(r"('jaccard-eval [^']*'|(?<![\w-])-{1,2}[a-z][\w-]*)", text)
    return "".join(
        f"`{word.strip(chr(39))}`" if place % 2 else re.sub(r"([*_\[\]<>`\\])", r"\\\1", word)
        for place, word in enumerate(words)
    )


def _tree(names: Iterable[str]) -> str:
    return "```{toctree}\n:hidden:\n\n" + "".join(f"{name}\n" for name in names) + "```\n"


if __name__ == "__main__":
    (Path(__file__).parents[1] / "findings.md").write_text(findings_page(), encoding="utf-8")
