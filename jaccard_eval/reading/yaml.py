"""Reading a data set description in YAML as plain text values: no tags, no code, no guessing of types.

YAML 1.1 turns a class called ``no`` into False, ``3.10`` into 3.1 and ``012`` into 10. Here every scalar stays the text
that was written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaccard_eval.engine import remembered
from jaccard_eval.findings import DataError, Where
from jaccard_eval.reading import files
from jaccard_eval.text import quoted_value, shown_json

MAX_ALIASES = 10  # a chain of ten can repeat one value 2**10 times at most; descriptions of data sets use none
MAX_DEPTH = 20  # nested lists and mappings
_PLAIN_TAGS = "tag:yaml.org,2002:"  # !!str, !!int and their like; !!python/... is under it and refused by name


@remembered  # a data.yaml is asked for by whoever looks, for its labels, its names and its poses
def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Return the top-level mapping of a YAML file; values are texts, lists and mappings of texts."""
    import yaml

    text = files.read_text(path)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _refuse_tricks(path, yaml.parse(text, Loader=loader))
        _refuse_repeated_keys(path, yaml.compose(text, Loader=loader))
        content = yaml.load(text, Loader=loader)  # noqa: S506 - the base loader makes texts, lists and mappings only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Where(str(path), line=mark.line + 1) if mark else Where(str(path))
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        fix = "Indent with spaces, not tabs; quote special characters."
        raise DataError.single("yaml-syntax", place, f"not valid YAML: {problem}", fix=fix) from None
    if isinstance(content, dict):
        return content
    detail = f"expected keys and values, got {shown_json(content)}" if content else "it has no keys and values"
    raise DataError.single("yaml-content", Where(str(path)), detail, fix="Write lines of 'key: value'.")


def _refuse_tricks(path: Path, events: Any) -> None:
    """Refuse what a description of a data set has no use for: tags that make objects, alias bombs, deep nesting."""
    import yaml

    aliases = depth = 0
    for event in events:
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        tag = getattr(event, "tag", None) or ""
        problem = ""
        if tag and (not tag.startswith(_PLAIN_TAGS) or "python" in tag):
            problem = f"tag {quoted_value(tag)} is not allowed"
        elif aliases > MAX_ALIASES:
            problem = f"more than {MAX_ALIASES} aliases (*name)"
        elif depth > MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH} levels"
        if problem:
            line = event.start_mark.line + 1
            raise DataError.single("yaml-unsafe", Where(str(path), line=line), problem, fix="Write plain YAML.")


def _refuse_repeated_keys(path: Path, root: Any) -> None:
    """Refuse a key given twice at the top or one level below, where the last would win silently."""
    import yaml

    values = [value for _, value in root.value] if isinstance(root, yaml.MappingNode) else []
    for mapping in (node for node in (root, *values) if isinstance(node, yaml.MappingNode)):
        seen: set[str] = set()
        for key in (key for key, _ in mapping.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                where = Where(str(path), line=key.start_mark.line + 1)
                raise DataError.single("yaml-key", where, f"duplicate key {quoted_value(key.value)}", fix="Keep one.")
            seen.add(key.value)
