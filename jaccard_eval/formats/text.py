"""One text for all images: a line per box, which begins with its image and goes on as labels of one image do.

The class stands behind the image or at the end, by name or, behind the image, by index. Where the score stands, what
the four numbers are and their units are found as in text labels: `_yolo`, which reads the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="text",
    summary="one text file for all images: image class [conf] x1 y1 x2 y2, in the orders of text labels, or class last",
    source="homemade exports and evaluation scripts",
    example="street.jpg dog 10 20 60 90\nstreet.jpg car 300 200 420 280\npark.jpg dog 500 310 560 400\n",
    carries=("scores",),
    suffixes=(".txt",),
)

_DIFFICULT = "difficult"
_BOX_NUMBERS = (4, 5)  # without and with a score
_FIX = "Write image, class, perhaps a score, and four numbers, separated by spaces or commas."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a text by its first lines: an image, a class and a box each."""
    if peek.is_folder or peek.kind is not Kind.TEXT or peek.suffix not in (".txt", ""):
        return None
    from jaccard_eval.reading.tabular.columns import is_header  # only where a list is possible
    from jaccard_eval.reading.tabular.rows import split_first_line

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
    image, *rest = [field.strip() for field in line.split(",")] if line.count(",") > 4 else [*line.split(), ""]
    rest = [field for field in rest if field]
    flag = rest[-1:] if rest[-1:] == [_DIFFICULT] else []  # no class, and handed on with the numbers
    rest = rest[: len(rest) - len(flag)]
    is_number = [*map(is_numeral, rest)]
    n_last = is_number[::-1].index(False) if False in is_number else len(rest)  # numbers at the end
    n_first = is_number.index(False) if False in is_number else len(rest)
    if n_last == len(rest) and len(rest) - 1 in _BOX_NUMBERS and is_image_name(image):
        return (
            image,
            rest[0],
            [*rest[1:], *flag],
        )  # a class index: only where it stands before the numbers of a known image
    if n_first in _BOX_NUMBERS and n_first < len(rest) and not any(is_number[n_first:]):
        return image, " ".join(rest[n_first:]), [*rest[:n_first], *flag]
    if n_last in _BOX_NUMBERS and n_last < len(rest):
        return image, " ".join(rest[: len(rest) - n_last]), [*rest[len(rest) - n_last :], *flag]
    return None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a text to the draft."""
    from jaccard_eval.formats._yolo.reader import add_listed_lines  # not needed to look for a format

    images: list[str] = []
    labels: list[str] = []  # a line each, also of those that are blank or wrong, so that line numbers stay
    uneven: list[tuple[Where, str]] = []
    for number, line in enumerate(files.read_lines(path, empty_ok=True), start=1):
        found = _split(line) if line.strip() else None
        if found is None:
            labels.append("")
            if line.strip():
                uneven.append(
                    (Where(str(path), line=number), f"cannot read {quoted_value(line)} as image, class and box")
                )
            continue
        image, label, numbers = found
        images.append(image)
        labels.append(" ".join((label, *numbers)))
    draft.findings.add_rows(Severity.ERROR, "columns", range(len(uneven)), uneven.__getitem__, fix=_FIX)
    add_listed_lines(path, images, labels, draft, options)
