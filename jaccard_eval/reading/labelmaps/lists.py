"""Lists of the label maps to compare: one name a line that both sides know, or one name of either side."""

from __future__ import annotations

import re
from pathlib import Path

from jaccard_eval.errors import FindingLog, Where, as_settings, shown
from jaccard_eval.reading import files
from jaccard_eval.reading.labelmaps.sides import MapPair, MapSide, make_pair

_SEPARATOR = re.compile(r"\s*[\t,;]\s*")
_FIX = "Write a name that both sides know, or the two paths below GT and PRED with a tab between."


def read_pairs(path: Path, gt: MapSide, pred: MapSide, findings: FindingLog) -> list[MapPair]:
    """Return the pairs that a list names, in its order; what it names in vain, or twice, is an error in `findings`.

    Names are looked up among the files of the two sides, so that a list reaches no other file.

    Raises
    ------
    SettingsError
        When the list cannot be read.
    """
    with as_settings():
        lines = [line.strip() for line in files.read_lines(path)]
    pairs: dict[MapPair, int] = {}
    for number, line in enumerate(lines, start=1):
        names = _names_of(line, gt, pred)
        pair = _find_pair(names, gt, pred, Where(str(path), line=number), findings) if line else None
        if pair is not None and pairs.setdefault(pair, number) != number:
            detail = f"{shown(names[0])} is listed on line {pairs[pair]} already"
            findings.error("map-list", Where(str(path), line=number), detail, fix="List each label map once.")
    if not any(lines):
        findings.error("map-list", Where(str(path)), "the list is empty", fix="Name one label map a line.")
    return list(pairs)


def _names_of(line: str, gt: MapSide, pred: MapSide) -> tuple[str, str]:
    """Split a line into the names for either side: at a tab, comma or semicolon, else at blanks between known names."""
    parts = _SEPARATOR.split(line)
    if len(parts) == 2:
        return parts[0], parts[1]
    parts = line.split()
    if len(parts) == 2 and gt.find(parts[0]) and pred.find(parts[1]):
        return parts[0], parts[1]
    return line, line


def _find_pair(
    names: tuple[str, str], gt: MapSide, pred: MapSide, where: Where, findings: FindingLog
) -> MapPair | None:
    rows = []
    for side, name in zip((gt, pred), names, strict=True):
        found = side.find(name)
        if len(found) == 1:
            rows.append(found[0])
            continue
        several = " and ".join(shown(side.names[row]) for row in found[:2])
        what = f"can mean {several} in {side.root}" if found else f"is no label map in {side.root}"
        findings.error("map-list", where, f"{shown(name)} {what}", fix=_FIX)
    return make_pair(gt, pred, rows[0], rows[1]) if len(rows) == 2 else None
