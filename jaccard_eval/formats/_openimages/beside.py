"""Files that belong to a table of Open Images: named by an option, else found next to it by their names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from operator import eq
from pathlib import Path

from jaccard_eval.engine import path_of
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats._openimages import MID_STARTS
from jaccard_eval.formats._openimages.labels import is_label_file
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.text import pluralise

# The files of each option, as Open Images names them and as people do.
DESCRIPTIONS = ("*class-descriptions*.csv", "*class_descriptions*.csv")
HIERARCHIES = ("*hierarchy*.json",)
LABELS = ("*imagelabels*.csv", "*image-labels*.csv", "*image_labels*.csv", "labels.csv")
MACHINE = "*machine*"  # labels that a program gave; people verified those of the other files
BOXABLE = "*boxable*"  # labels of the classes that have boxes


def descriptions_of(path: Path, options: ReadOptions) -> list[Path]:
    """Return the files that name the classes of a table."""
    return [path_of(options.class_descriptions)] if options.class_descriptions else _next_to(path, DESCRIPTIONS)


def hierarchy_of(path: Path, options: ReadOptions, findings: FindingLog) -> Path | None:
    """Return the file with the hierarchy of the classes of a table, None where there is none."""
    if options.hierarchy:
        return path_of(options.hierarchy)
    return _only(path, _next_to(path, HIERARCHIES), "hierarchy", findings)


def image_labels_of(path: Path, options: ReadOptions, findings: FindingLog) -> Path | None:
    """Return the file with the image-level labels of a table, None where there is none."""
    if options.image_labels:
        return path_of(options.image_labels)
    found = [file for file in _next_to(path, LABELS) if not fnmatchcase(file.name.lower(), MACHINE)]
    found = [file for file in found if is_label_file(files.first_line(file))]
    # Those of the same split are named alike: validation-annotations-bbox.csv, validation-annotations-human-....csv.
    alike = [sum(takewhile(bool, map(eq, path.name, file.name))) for file in found]
    found = [file for file, length in zip(found, alike, strict=True) if length == max(alike)]
    boxable = [file for file in found if fnmatchcase(file.name.lower(), BOXABLE)]
    return _only(path, boxable or found, "image_labels", findings)


def read_descriptions(described: Iterable[Path]) -> dict[str, str]:
    """Return the names of classes by their MIDs."""
    import csv  # looks for formats do without it

    from jaccard_eval.reading.tabular.rows import fields_up_to

    names: dict[str, str] = {}
    for file in described:
        text = files.read_text(file)
        with fields_up_to(len(text)):
            for row in csv.reader(io.StringIO(text, newline="")):
                # The first field of a header is not a MID.
                if len(row) > 1 and row[0].startswith(MID_STARTS) and row[1].strip():
                    names[row[0]] = row[1].strip()
    return names


def may_lie_beside(path: Path) -> list[Path]:
    """Return the files next to a table that may be read with it."""
    return [] if files.is_folder(path) else _next_to(path, (*DESCRIPTIONS, *HIERARCHIES, *LABELS))


def _next_to(path: Path, patterns: Sequence[str]) -> list[Path]:
    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)

    return [file for file in files.scan_folder(path.parent, is_wanted, files.MAX_ENTRIES)[0] if file != path]


def _only(path: Path, found: Sequence[Path], option: str, findings: FindingLog) -> Path | None:
    """Return the one file there is; several leave the choice to the user, with a warning."""
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        detail = f"{pluralise(len(found), 'file')} next to it may belong to it ({names}): none is read"
        fix = Fix.missing("Pass {options}.", **{option: None})
        findings.warning("companion-ambiguous", Where(str(path), field=option), detail, fix=fix)
    return found[0] if len(found) == 1 else None
