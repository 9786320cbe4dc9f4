"""NWPU-Crowd's lists of heads: one image a line, its number, how many heads, and the numbers of each.

In ground truth a head is x, y, half of the shorter side of its box, half of the diagonal, and a level of size, which is
not used; in results x and y alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import TextBoxes
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="nwpu",
    summary="NWPU-Crowd text: number of an image, count of heads, then x y of each, in ground truth with two radii",
    source="https://github.com/gjy3035/NWPU-Crowd-Sample-Code-for-Localization (eval/utils.py)",
    example="3110 0\n3111 2 851 1304 15 23 3 831 1344 13 22 2\n",
    carries=("images",),
    suffixes=(".txt",),
)

HEAD = "person"
_COLUMNS = ("x", "y", "sigma_s", "sigma_l", "level")
_TRUTH, _RESULT = len(_COLUMNS), 2
_MANY = 1000  # fields
_FIX = "Write the number of the image, the count of its heads, and x y sigma_s sigma_l level of each, or x y alone."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text by its first lines: a count, and as many heads as that, in one way or the other."""
    lines = [line.split() for line in peek.lines if line.strip()]
    if peek.is_folder or peek.suffix not in FORMAT.suffixes or not lines:
        return None
    # The last line that was read may be cut off: lines of crowds are long.
    is_cut = not peek.text.endswith("\n") and (len(lines) > 1 or len(lines[0]) > _MANY)
    fitting = [{n for n in (_TRUTH, _RESULT) if _is_image(fields, n, is_cut=False)} for fields in lines[:-1]]
    fitting.append({n for n in (_TRUTH, _RESULT) if _is_image(lines[-1], n, is_cut=is_cut)})
    fitting = [ways for ways, fields in zip(fitting, lines, strict=True) if len(fields) > 2 or not ways]
    return Likeness.STRUCTURE if fitting and set.intersection(*fitting) else None


def benchmark(peek: Peek) -> str:
    """Return the protocol where the first image with heads has a size of each."""
    lines = (fields for fields in map(str.split, files.read_lines(peek.path)) if len(fields) > 2)
    return "nwpu" if _is_image(next(lines, []), _TRUTH, is_cut=False) else ""


def _is_image(fields: list[str], n: int, *, is_cut: bool) -> bool:
    count = _count(fields)
    lacking = 2 + n * count - len(fields)
    return (
        count >= 0
        and fields[0].isdecimal()
        and (lacking == 0 or (is_cut and lacking > 0))
        and all(map(is_numeral, fields))
    )


def _count(fields: list[str]) -> int:
    """Return how many heads a line announces, -1 where it does not; more than a billion are none."""
    return int(fields[1]) if len(fields) > 1 and re.fullmatch(r"[0-9]{1,9}", fields[1]) else -1


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and heads of a file to the draft."""
    lines, images = TextBoxes(_COLUMNS), dict[str, int]()
    for number, text in enumerate(files.read_lines(path), start=1):
        fields = text.split()
        if not fields:
            continue
        place, image = (str(path), number), fields[0]
        if image in images:
            detail = f"the image already stands in line {images[image]:,}"
            draft.findings.error("image-duplicate", Where(str(path), line=number), detail, fix="Keep one of them.")
        images[image] = number
        heads, count = fields[2:], _count(fields)
        n = len(heads) // count if count > 0 else _TRUTH
        if count < 0 or n not in (_TRUTH, _RESULT) or n * count != len(heads):
            announced = f"{count:,} heads announced" if count >= 0 else "no count of heads"
            lines.refuse(place, f"{announced}, {len(heads):,} numbers follow")
            continue
        for at in range(0, len(heads), n):
            lines.add(place, image, HEAD, [*heads[at : at + n], *([""] * (_TRUTH - n))])
    if not images:
        raise DataError.single("file-empty", Where(str(path)), "has no line", fix=_FIX)
    table = lines.read(draft.findings, needed=_RESULT, fix=_FIX)
    sizes = _sizes(table, lines, draft)
    draft.findings.raise_errors()
    draft.set_images([*images], listed=True)
    draft.set_classes([HEAD], [HEAD])
    draft.usual_protocol = "nwpu" if options.role == "gt" and sizes.any() else "points"
    lines.add_to(draft, np.concatenate([table[:, :2], sizes], axis=1), encoding="cxcywh")


def _sizes(table: FloatArray, lines: TextBoxes, draft: Draft) -> FloatArray:
    """Return width and height of each head (n, 2), the shorter side first: 0 of those that are points."""
    small, large = table[:, 2], table[:, 3]
    draft.findings.add_rows(
        Severity.ERROR,
        "number-invalid",
        np.flatnonzero((small < 0) | (large < small)),
        lambda row: (
            lines.where(row, "sigma_l"),
            f"{quoted_value(f'{small[row]:g} {large[row]:g}')}: half a diagonal is at least half a side",
        ),
        fix="Write half of the shorter side before half of the diagonal.",
    )
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite box is refused with all others
        sides = 2 * np.stack([small, np.sqrt(large**2 - small**2)], axis=1)
    return np.where(np.isnan(sides), 0.0, sides)
