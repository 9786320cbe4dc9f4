"""One text for all images: a line per box, which begins with its image and goes on as labels of one image do.

The class stands behind the image or behind the box, by name or, behind the image, by index. Where the score stands,
what the four numbers are and their units are found as in text labels: `_yolo`, which reads the lines. A box may be one
field, 10,20,60,90; then the class may be an index in either place. Boxes without a class are of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.tabular.columns import is_header
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="text",
    summary="one text file for all images: image class [conf] x1 y1 x2 y2, in the orders of text labels, or class last,"
    " or the box as x1,y1,x2,y2",
    source="homemade exports and evaluation scripts",
    example="street.jpg dog 10 20 60 90\nstreet.jpg car 300 200 420 280\npark.jpg dog 500 310 560 400\n",
    carries=("scores",),
    suffixes=(".txt",),
)

_N = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# An image, perhaps more, a box as one field, and what is behind it.
_PACKED = pattern(rf"\s*(\S+)((?:\s+\S+)*?)\s+[\[(]?({_N}(?:,{_N}){{3}})[\])]?((?:\s+\S+)*)\s*")
_MOST_COMMAS = 20  # of a line with one box: more are a list of boxes, which would be searched for long
_DIFFICULT = "difficult"
NO_LABEL = ""  # of a line without a class
_BOX_NUMBERS = (4, 5)  # without and with a score
_FIX = "Write image, class, perhaps a score, and four numbers, separated by spaces or commas."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text by its first lines: an image, a class and a box each."""
    if peek.is_folder or peek.kind is not Kind.TEXT or peek.suffix not in (".txt", ""):
        return None
    from jaccard_eval.reading.tabular.columns import split_first_line

    # The rows of a table with a header may be such lines as well, and its header names its columns.
    if peek.lines and is_header(split_first_line(peek.lines[0])[1]):
        return None
    found = [label for line in peek.lines if (label := _split(line)) is not None]
    if not found or len(found) * 2 <= len(peek.lines):
        return None
    # The name of an image is recognised by its suffix. Without one, words may be anything; other texts go first.
    return Likeness.STRUCTURE if all(is_image_name(image) for image, _, _ in found) else Likeness.CONTENT


def _split(line: str) -> tuple[str, str, Sequence[str]] | None:
    """Return image, class and numbers of a line; None where it is something else."""
    if "|" in line:
        line = line.replace("|", " ")
    # Asked only where it may be: most lines have no field with so many commas.
    n_commas = line.count(",")
    if n_commas > _MOST_COMMAS:
        return None
    if n_commas > 2 and (packed := _PACKED.fullmatch(line)) is not None:
        return _around_box(*map(str.strip, packed.groups()))
    image, *rest = [field.strip() for field in line.split(",")] if n_commas > 4 else [*line.split(), ""]
    rest = [field for field in rest if field]
    flag = rest[-1:] if rest[-1:] == [_DIFFICULT] else []  # no class, and handed on with the numbers
    rest = rest[: len(rest) - len(flag)]
    is_number = [*map(is_numeral, rest)]
    has_words = False in is_number
    n_last = is_number[::-1].index(False) if has_words else len(rest)  # numbers at the end
    n_first = is_number.index(False) if has_words else len(rest)
    least, most = _BOX_NUMBERS
    if not has_words:
        # A class index: only where it stands before the numbers of a known image. A score is hardly ever whole.
        n_labels = len(rest) > most or (len(rest) == most and not float(rest[0]) % 1)
        if not (is_image_name(image) and least <= len(rest) - n_labels <= most):
            return None
        return image, rest[0] if n_labels else NO_LABEL, [*rest[n_labels:], *flag]
    if n_first in _BOX_NUMBERS and not any(is_number[n_first:]):
        start, stop = n_first, len(rest)
    elif n_last in _BOX_NUMBERS:
        start, stop = 0, len(rest) - n_last
    elif n_first == least and n_last == 1 and not any(is_number[n_first:-1]):
        start, stop = n_first, len(rest) - 1
    else:
        return None
    return image, " ".join(rest[start:stop]), [*rest[:start], *rest[stop:], *flag]


def _around_box(image: str, before: str, box: str, behind: str) -> tuple[str, str, Sequence[str]] | None:
    """Return image, class and numbers of a line whose box is one field; its score may be in front of or behind that."""
    sides = [side.replace(",", " ").split() for side in (before, behind)]
    flag = [field for field in sides[1] if field == _DIFFICULT]
    numbers = [[field for field in side if is_numeral(field)] for side in sides]
    words = [field for side in sides for field in side if not is_numeral(field) and field not in flag]
    if not words:
        # An index is whole, and stands first where a score may be whole as well.
        index = next((field for side in numbers for field in side if field.isdecimal()), None)
        words = [NO_LABEL if index is None else index]
        if index is not None:
            numbers[0 if index in numbers[0] else 1].remove(index)
    if sum(map(len, numbers)) > 1:
        return None
    return image, " ".join(words), [*numbers[0], *re.split(r",\s*", box), *numbers[1], *flag]


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a text to the draft."""
    from jaccard_eval.formats._yolo.reader import add_listed_lines  # not needed to look for a format
    from jaccard_eval.reading.tabular.table import NO_CLASS, note_no_class

    images: list[str] = []
    labels: list[str] = []  # a line each, also of those that are blank or wrong, so that line numbers stay
    tracked: list[tuple[str, Sequence[str]]] = []  # images, and five numbers of which the first may be a track id
    uneven: list[tuple[Where, str]] = []
    unnamed: list[tuple[Where, str]] = []  # without a class
    for number, line in enumerate(files.read_lines(path, empty_ok=True), start=1):
        found = _split(line) if line.strip() else None
        if found is None or found[1] == NO_LABEL:
            why = Where(str(path), line=number), f"cannot read {quoted_value(line)} as image, class and box"
            (uneven if found is None else unnamed).extend([why] if line.strip() else [])
        if found is None:
            labels.append("")
            continue
        image, label, numbers = found
        images.append(image)
        # Where commas separate them, a number next to the class does not belong to its name.
        if len(numbers) == _BOX_NUMBERS[1] and label and "," in line:
            tracked.append((image, numbers))
        labels.append(" ".join((label or str(NO_CLASS), *numbers)))
    if 0 < len(unnamed) == len(images):
        note_no_class(draft)
    else:
        uneven = [*uneven, *unnamed]
    if options.columns is None and 0 < len(images) == len(tracked) and _are_tracked(tracked):
        draft.options = replace(draft.options, columns="track-box")
    draft.findings.add_rows(Severity.ERROR, "columns", range(len(uneven)), uneven.__getitem__, fix=_FIX)
    add_listed_lines(path, images, labels, draft, options)


def _are_tracked(lines: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether whole numbers count objects, as trackers and DarkLabel write them: no image has one twice."""
    ids = {(image, numbers[0]) for image, numbers in lines if numbers[0].isdecimal()}
    if len(ids) < len(lines):
        return False
    return any(int(first) > 1 for _, first in ids) and any(float(numbers[-1]) > 1 for _, numbers in lines)  # no scores
