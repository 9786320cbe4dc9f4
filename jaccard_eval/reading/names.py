"""Class names: given as text, or found in data.yaml, obj.names, classes.txt or a JSON list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaccard_eval.engine import absolute, normal, path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Where, as_settings
from jaccard_eval.reading import files
from jaccard_eval.reading.json import RepeatedKeys, parse_json
from jaccard_eval.reading.yaml import read_yaml_mapping
from jaccard_eval.text import quoted_value, shown_json

NAMES_FILES = (
    "data.yaml",
    "data.yml",
    "obj.names",
    "classes.txt",
    "_darknet.labels",
)  # next to labels, in order of preference
PARENT_LEVELS = 2  # folders above the labels that are searched for one of them
INPUT_LEVELS = 3  # folders above an input, whatever its format, that are searched where the other side has names
_FILE_SUFFIXES = (".yaml", ".yml", ".names", ".labels", ".txt", ".json")
_FIX = "Give one name for each class index, counted from 0."


def load_names(spec: str | Path, findings: FindingLog | None = None) -> tuple[str, ...]:
    """Return class names by index: names separated by commas, or those of a file; its warnings go to `findings`.

    A file is data.yaml, JSON (a list, or indices to names), or text with one name a line (obj.names, classes.txt).

    Examples
    --------
    >>> load_names("cat, traffic light")
    ('cat', 'traffic light')
    """
    if is_file(spec):
        with as_settings():
            return read_names(path_of(spec), FindingLog() if findings is None else findings)
    names = [part.strip() for part in str(spec).split(",")]
    if not all(names):
        raise UsageError(
            f"class names {quoted_value(str(spec))}: expected a,b,c or a file (data.yaml, obj.names, names.json)"
        )
    if len(set(names)) < len(names):
        raise UsageError(
            f"class names {quoted_value(str(spec))}: {quoted_value(_repeated(names)[0])} occurs more than once"
        )
    return tuple(names)


def read_names(path: Path, findings: FindingLog) -> tuple[str, ...]:
    """Return the class names that a file holds; its suffix decides how it is read."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return names_of_yaml(path, read_yaml_mapping(path), findings)
    if suffix == ".json":
        given = parse_json(path, files.read_text(path))
        if isinstance(given, RepeatedKeys):
            detail = f"duplicate key {quoted_value(given.repeated[0])}"
            raise DataError.single("key-duplicate", Where(str(path)), detail, fix=_FIX)
        return _checked(path, _indexed(path, given), findings)
    lines = [line.strip() for line in files.read_lines(path)]
    # A blank line at the end is how editors end a file; one between others would shift every class after it.
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        # darknet and labelImg read every line as a class, and so does this.
        if line.startswith("#"):
            detail = f"{quoted_value(line)} is read as the name of class {number - 1}: such files have no comments"
            fix = "Delete the line if it is a comment: it shifts the numbers of all classes after it."
            findings.warning("names-comment", Where(str(path), line=number), detail, fix=fix)
    return _checked(path, lines, findings)


def names_of_yaml(path: Path, content: Mapping[str, Any], findings: FindingLog) -> tuple[str, ...]:
    """Return the names in the contents of a data.yaml; warn when 'nc' contradicts them."""
    if "names" not in content:
        fix = "Add 'names:' with a list, or a mapping of indices to names."
        raise DataError.single("names-missing", Where(str(path), field="names"), "there is no 'names'", fix=fix)
    names = _checked(path, _indexed(path, content["names"]), findings)
    count = content.get("nc")
    if isinstance(count, str) and count.strip() not in ("", str(len(names)), f"{len(names)}.0"):
        detail = f"nc is {quoted_value(count)}, but there are {len(names)} names; nc is ignored"
        findings.warning("names-count", Where(str(path), field="nc"), detail)
    return names


def find_names(folder: Path) -> Path | None:
    """Return the names file in `folder` or up to two levels above it, the nearest first."""
    return next((path for path in names_files(folder) if path.is_file()), None)


def names_files(folder: Path) -> list[Path]:
    """Return where a names file may stand: in `folder` or up to two levels above it, the nearest first."""
    above = [normal(folder / ("../" * level)) for level in range(PARENT_LEVELS + 1)]
    return [place / name for place in above for name in NAMES_FILES]


def names_above(path: Path, other: Path) -> list[Path]:
    """Return the names files next to an input and above it, up to the folder that holds both inputs; nearest first.

    At most three levels above: what lies further up belongs to other data sets as well. Never raises.
    """
    start, end = map(absolute, (path, other))
    start, end = (side if files.is_folder(side) else side.parent for side in (start, end))
    found: list[Path] = []
    for folder in (start, *start.parents)[: INPUT_LEVELS + 1]:
        found += files.scan_folder(folder, _is_names_file, files.MAX_ENTRIES)[0]
        if end.is_relative_to(folder):
            break
    return found


def _is_names_file(name: str) -> bool:
    base = name.lower()
    return base in NAMES_FILES or base.endswith((".names", "classes.txt"))


def is_file(spec: str | Path) -> bool:
    """Whether `spec` means a file: it exists, or it is written like a path."""
    # Names that are one word and a file of that name exist side by side: the file goes first, as in a shell.
    text = str(spec)
    if isinstance(spec, Path) or (text and "\0" not in text and len(text) < 4096 and os.path.lexists(text)):
        return True
    return "," not in text and (text.lower().endswith(_FILE_SUFFIXES) or "/" in text or os.sep in text)


def _indexed(path: Path, names: Any) -> list[Any]:
    """Names by index, from a list or from a mapping of all indices from 0."""
    if isinstance(names, list):
        return names
    if isinstance(names, dict):
        expected = {str(index) for index in range(len(names))}
        if set(names) == expected:
            return [names[str(index)] for index in range(len(names))]
        stray = sorted(set(names) - expected)[0]
        detail = f"index {quoted_value(stray)} in names: indices must run from 0 to {len(names) - 1} without a gap"
    else:
        detail = f"names must be a list, or a mapping of indices to names; got {shown_json(names)}"
    raise DataError.single("names-invalid", Where(str(path), field="names"), detail, fix=_FIX)


def _checked(path: Path, names: list[Any], findings: FindingLog) -> tuple[str, ...]:
    """Names as texts; errors for blank or nested ones, a warning for repeated ones."""
    bad = [index for index, name in enumerate(names) if not isinstance(name, str) or not name.strip()]
    if bad or not names:
        detail = f"names[{bad[0]}] is {shown_json(names[bad[0]])}, not a name" if bad else "names is empty"
        raise DataError.single("names-invalid", Where(str(path), field="names"), detail, fix=_FIX)
    warn_repeated(names, Where(str(path), field="names"), findings)
    return tuple(name.strip() for name in names)


def warn_repeated(names: list[str] | tuple[str, ...], where: Where, findings: FindingLog) -> None:
    """Warn about names that several classes share."""
    for name in _repeated(list(names)):
        indices = [str(index) for index, other in enumerate(names) if other == name]
        findings.warning(
            "names-duplicate", where, f"duplicate name {quoted_value(name)} for classes {', '.join(indices)}"
        )


def _repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
