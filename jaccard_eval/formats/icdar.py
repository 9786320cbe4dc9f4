"""ICDAR: text files of words, one per image: the outline of each, and its transcription or its score.

Outlines are the four corners ``x1,y1,...,x4,y4`` (2015), the sides ``left,top,right,bottom`` (2013), as many corners as
it takes (Total-Text, also as ``x: [[...]], y: [[...]]``), corners from the left and top of a box (CTW1500), index,
flag, box and angle (MSRA-TD500), or sides and an angle in radians. In ground truth the word follows, where ``###`` is
one that nobody can read: a crowd, which does not count; in results the score, if there is one, and perhaps the word.
Blanks between the numbers occur as well. There is one class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, add_shapes
from jaccard_eval.reading.lines import TextBoxes, mention_other_files
from jaccard_eval.reading.peek import Likeness, Peek, Row, is_quad, most
from jaccard_eval.text import is_numeral

FORMAT = Format(
    name="icdar",
    summary="words, a text file per image: corners, sides or outline, and the word or a score (ICDAR, Total-Text, ...)",
    source="https://rrc.cvc.uab.es/?ch=4&com=tasks",
    example="10,20,110,20,110,60,10,60,EXIT\n200,30,280,36,278,60,198,54,TAXI\n300,20,360,24,358,50,298,46,###\n",
    carries=("images", "scores", "crowd"),
    reads={
        "bbox": "bounds of the outlines",
        "obb": "x1,y1,...,x4,y4; box and angle",
        "segm": "outlines of any number of corners",
    },
)

TEXT = "text"
_CORNERS = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_SIDES = ("left", "top", "right", "bottom")
_TURNED = ("index", "difficult", "x", "y", "width", "height", "angle")
_SPAN = (*_SIDES, "angle")
_UNREADABLE = frozenset({"###", "#"})
_PREFIX = pattern(r"(?:poly_)?(?:gt|res)_(?=.)", re.IGNORECASE)  # before the name of the image
_SUFFIXES = (".txt", ".gt", ".csv")  # the second of MSRA-TD500, the last of SROIE
_LISTED = pattern(r"x:\s*\[\[([^\]]*)\]\].*?y:\s*\[\[([^\]]*)\]\](?:.*?transcriptions:\s*\[u?['\"]([^\]]*?)['\"]\])?")
_CATEGORY = pattern(r"[a-z_-]+(?:,\d)?|.*,[012]")  # as those of objects are spelled, perhaps with a flag
_BEGUN = pattern(r"\ufeff?\s*x:\s*\[\[")  # lists of numbers that NumPy breaks into lines
_QUOTED = pattern(r"""["'].*["']""")
_LEAST = 3  # points of an outline
_FILLED = 0.05  # of the box around it, at least
_MARK = "####"  # before the word behind an outline, in the labels of text spotters
_FIX = "Write x1,y1,x2,y2,x3,y3,x4,y4 and perhaps the word, or in predictions the score."


@dataclass(frozen=True, slots=True)
class _Layout:
    """How lines draw: by so many numbers, any even count of at least six where it is 0."""

    name: str
    names: tuple[str, ...]
    head: int = 0  # numbers before those: a score
    iou_type: str = "obb"

    def width(self, fields: Sequence[str]) -> int:
        """Return how many numbers of a line draw; those of an outline end where no number follows."""
        if self.names:
            return len(self.names)
        n = _leading(fields)
        return n - n % 2


_QUAD, _SCORED_QUAD = _Layout("quad", _CORNERS), _Layout("scored quad", _CORNERS, 1)
_BOX = _Layout("sides", _SIDES, iou_type="bbox")
_OUTLINE = _Layout("outline", (), iou_type="segm")
_OFFSETS = _Layout("offsets", (*_SIDES, *(f"{axis}{at}" for at in range(1, 15) for axis in "xy")), iou_type="segm")
_INDEXED, _SPANNED = _Layout("turned", _TURNED), _Layout("turned sides", _SPAN)


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its files: the outlines of words, and one field more or none."""
    found = _first_files(peek)
    by_file = [*map(_sample, found)]
    lines = [fields for own in by_file for fields in own]
    layout = _layout_of(lines)
    if layout is None or (layout is _INDEXED and not _are_numbered(by_file)):
        return None
    ends = [",".join(fields[layout.head + layout.width(fields) :]) for fields in lines]
    words = [end for end in ends if end and not is_numeral(end)]
    are_named = all(_PREFIX.match(file.path.name) for file in found)
    if any(map(_is_unreadable, words)) or are_named or layout in (_OFFSETS, _INDEXED, _SPANNED):
        return Likeness.NAMED
    have_commas = all("," in file.text for file in found)
    # Categories repeat, as in DOTA; words do less, and stand behind a comma.
    is_text = len(set(words)) * 2 > len(words) > 1 and have_commas
    if is_text and not any(map(_CATEGORY.fullmatch, words)):
        return Likeness.NAMED
    is_text = is_text or any(word.startswith(_MARK) for word in words) or any("[[" in file.text for file in found)
    if layout is _BOX:
        # The class of other labels may stand behind the sides; nobody puts a class into quotes.
        are_quoted = bool(words) and all(map(_QUOTED.fullmatch, words))
        return Likeness.NAMED if are_quoted or (not words and _are_scored(lines)) else None
    if layout is _OUTLINE and not is_text:
        # Behind a class, corners of other labels are such numbers too, and tables of tracks may look so.
        # Some write one word behind all outlines: not a class among others.
        return Likeness.CONTENT if have_commas and len(set(words)) < 2 else None
    return Likeness.STRUCTURE if is_text or not words else Likeness.CONTENT


def iou_types(peek: Peek) -> set[str]:
    """Return what there is: of outlines, masks; upright boxes are only those around oriented ones."""
    lines = [fields for file in _first_files(peek) for fields in _sample(file)]
    layout = _layout_of(lines) or _QUAD
    return {layout.iou_type}


def reads_name(name: str) -> bool:
    """Whether a file of this name holds words."""
    return name.lower().endswith(_SUFFIXES)


def _first_files(peek: Peek) -> list[Peek]:
    found = peek.first_files(files.is_label_name)
    return found or peek.first_files(lambda name: name.lower().endswith(_SUFFIXES[1:]))


def _split(line: str) -> list[str]:
    """Return the numbers of a line and what follows them, in which commas may be; no fields of a blank line."""
    text = line.strip().lstrip("\ufeff")
    listed = _LISTED.match(text)
    if listed:
        points = zip(*(re.split(r"[\s,]+", axis.strip()) for axis in listed.groups()[:2]), strict=False)
        return [number for point in points for number in point] + [word for word in listed.groups()[2:] if word]
    if text.count(",") < len(_SIDES) - 1:
        return text.split()
    return [field.strip() for field in text.rstrip(",").split(",")]


def _leading(fields: Sequence[str]) -> int:
    return next((at for at, field in enumerate(fields) if not is_numeral(field)), len(fields))


def _layout_of(lines: Sequence[Sequence[str]]) -> _Layout | None:
    """Return how most lines draw; None where they do not."""
    rows = [[*map(float, fields[: _leading(fields)])] for fields in lines]

    def fits(layout: _Layout, is_one: Callable[[Row], bool], spare: int = 1) -> bool:
        # A word may be a number as well.
        width = layout.head + len(layout.names)
        chosen = [row for row in rows if width <= len(row) <= width + spare]
        return len(chosen) * 2 > len(lines) and most(chosen, is_one)

    # No score is negative.
    has_angle = any(row[4] < 0 for row in rows if len(row) >= len(_SPAN))
    # The class of a box and three corners of it are eight numbers as well.
    tried = (
        (_INDEXED, _is_indexed, 0),
        (_OFFSETS, _has_offsets, 1),
        (_SPANNED, lambda row: has_angle and _are_sides(row) and abs(row[4]) <= np.pi, 1),
        (_QUAD, lambda row: is_quad(row[:8]) and max(row) > 1, 1),
        (_SCORED_QUAD, lambda row: row[0] % 1 > 0 and 0 < row[0] < 1 and is_quad(row[1:]), 0),
        (_BOX, _are_sides, 1),
    )
    found = next((layout for layout, is_one, spare in tried if fits(layout, is_one, spare)), None)
    if found is not None:
        return found
    are_outlines = [len(row) >= len(_CORNERS) and _is_outline(row) for row in rows]
    return _OUTLINE if sum(are_outlines) * 2 > len(lines) else None


def _are_sides(row: Row) -> bool:
    return row[0] < row[2] and row[1] < row[3] and max(row[:4]) > 1


def _are_numbered(by_file: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Whether no index occurs twice in a file: a class would."""
    numbers = [[fields[0] for fields in own] for own in by_file]
    return all(len({*own}) == len(own) for own in numbers) and any(len(own) > 1 for own in numbers)


def _is_unreadable(word: str) -> bool:
    # Before the word its script may stand.
    return word.removeprefix(_MARK).rpartition(",")[2].strip(" \"'") in _UNREADABLE


def _is_indexed(row: Row) -> bool:
    """Whether numbers are those of MSRA-TD500: index, flag, box and an angle in radians."""
    index, flag, x, y, width, height, angle = row
    return index % 1 == 0 and flag in (0, 1) and min(width, height) > 1 and abs(angle) <= np.pi and max(x, y) > 1


def _has_offsets(row: Row) -> bool:
    """Whether fourteen points are counted from the left and the top of a box, and lie in it, as in CTW1500."""
    left, top, right, bottom = row[:4]
    xs, ys = row[4 : len(_OFFSETS.names) : 2], row[5 : len(_OFFSETS.names) : 2]
    return min(*xs, *ys) >= 0 and abs(max(xs) - right + left) <= 2 and abs(max(ys) - bottom + top) <= 2


def _is_outline(row: Row) -> bool:
    """Whether numbers are corners in pixels, of which a last one may be a score, and do not begin with a class."""
    if max(row) <= 1 or (len(row) % 2 and not 0 <= row[-1] <= 1):
        return False
    points = [*zip(row[::2], row[1::2], strict=False)]
    ways = [(abs(x - u) + abs(y - v), u * y - x * v) for (u, v), (x, y) in pairwise([*points, points[0]])]
    sides = max(x for x, _ in points) - min(x for x, _ in points), max(y for _, y in points) - min(y for _, y in points)
    # Around it the way from corner to corner is short, and it has an area: numbers that mean something else jump.
    around, area = (sum(values) for values in zip(*ways, strict=True))
    return bool(around <= 4 * sum(sides) and abs(area) / 2 >= _FILLED * sides[0] * sides[1] > 0)


def _are_scored(lines: Sequence[Sequence[str]]) -> bool:
    """Whether a score stands behind the sides of every box, and a fraction among these shows it to be none of them."""
    last = [float(fields[4]) for fields in lines if len(fields) == len(_SIDES) + 1 and is_numeral(fields[4])]
    return len(last) == len(lines) and all(0 <= score <= 1 for score in last) and any(score % 1 for score in last)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and words of a folder of files to the draft."""
    from jaccard_eval.formats._yolo.sources import (
        LabelSource,
        add_images,  # not needed to look for a format
        folder_source,
        require_labels,
    )

    source = folder_source(path, draft.findings)
    if not source.files and files.is_folder(path):
        named = [name for name in files.list_tree(path, draft.findings) if name.lower().endswith(_SUFFIXES[1:])]
        source = LabelSource(root=path, files={name.rpartition(".")[0]: path / name for name in sorted(named)})
    require_labels(source, options.role, draft.findings)
    bare = {_PREFIX.sub("", key): file for key, file in source.files.items()}
    if len(bare) == len(source.files) and all(map(_PREFIX.match, source.files)):
        source = replace(source, files=bare)
    add_images(source, draft)
    mention_other_files(source.root, source.other_files, draft)
    is_gt = options.role == "gt"
    found = list(_fields_of(source.files, draft.findings))
    layout = _layout_of([fields for _, _, fields in found]) or _QUAD
    width = len(layout.names) or len(_SIDES)
    # Spotters write the word as well, behind the score or in place of it.
    ends = [fields[layout.head + layout.width(fields) :][:1] for _, _, fields in found]
    is_scored = is_gt or layout.head or sum(map(is_numeral, chain(*ends))) * 2 > sum(map(len, ends))
    lines = TextBoxes((*(layout.names or _SIDES), "score"))
    words: list[str] = []
    outlines: list[list[str]] = []
    for image, place, fields in found:
        n = layout.width(fields)
        own, rest = fields[layout.head : layout.head + n], [*fields[: layout.head], *fields[layout.head + n :]]
        is_whole = len(own) == n >= (width if layout.names else 2 * _LEAST)
        if is_whole and (is_gt or not rest or not is_scored or is_numeral(rest[0])):
            score = rest[0] if rest and is_scored and not is_gt else ""
            # Of an outline the box is found later.
            lines.add(place, image, TEXT, [*(own if layout.names else "0000"), score])
            words.append(",".join(rest))
            outlines.append(own)
        else:
            many = width if layout.names else "6 or more, an even count of,"
            wanted = f"{many} numbers and {'the word' if is_gt else 'perhaps a score'}"
            lines.refuse(place, f"expected {wanted}, got {len(fields)} fields")
    table = lines.read(draft.findings, fix=_FIX)
    scores = lines.scores(table, draft, detail="expected a score as in other lines", fix="Write every score.")
    # As in the benchmark, a detection that lies on one of these is not a mistake.
    crowd = np.array([_is_unreadable(word) for word in words], dtype=np.bool_)
    if is_gt and layout is _QUAD and crowd.any():
        draft.usual_protocol = "icdar"
    draft.mention_uncounted({"unreadable": int(crowd.sum())})
    draft.set_classes([TEXT], [TEXT])
    columns = {"score": scores if len(lines) else None, "crowd": crowd}
    if layout in (_QUAD, _SCORED_QUAD):
        corners = table[:, : len(_CORNERS)].reshape(-1, 4, 2)  # (n, points, x and y)
        lines.add_quads(draft, corners, **columns)
        return
    draw = {_BOX: _box, _INDEXED: _turned, _SPANNED: _turned_sides, _OFFSETS: _from_offsets}.get(layout, _outline)
    drawn = {row: draw(table[row].tolist(), outlines[row]) for row in range(len(lines))}
    if layout is _INDEXED:
        columns["difficult"] = table[:, 1] == 1
    add_shapes(lines, table[:, :4], drawn, draft, usual_angle="rad-cw", **columns)


def _fields_of(named: Mapping[str, Path], findings: FindingLog) -> Iterator[tuple[str, tuple[str, int], list[str]]]:
    """Yield the image, the place and the fields of each line; lists of numbers may go on in the next one."""
    for key, path, texts in files.read_each(named, partial(files.read_lines, empty_ok=True), findings):
        for number, text in _joined(texts):
            if fields := _split(text):
                yield key, (str(path), number), fields


def _joined(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, and in place of lists that go on in the next ones a line for all."""
    begun = ""
    for number, line in enumerate(lines, start=1):
        whole = f"{begun} {line}" if begun else line
        is_open = _BEGUN.match(whole) is not None and not _LISTED.match(whole.strip().lstrip("\ufeff"))
        begun = whole if is_open and number < len(lines) else ""
        if not begun:
            yield number, whole


def _sample(file: Peek) -> list[list[str]]:
    return [fields for _, line in _joined(file.lines) if (fields := _split(line))]


def _box(numbers: list[float], own: Sequence[str]) -> Drawn:
    return Drawn(box=numbers[:4], kind="box")


def _turned(numbers: list[float], own: Sequence[str]) -> Drawn:
    """Return a box that is turned about its centre, by its left, top, width, height and angle."""
    x, y, width, height, angle = numbers[2:7]
    return Drawn(turned=[x + width / 2, y + height / 2, width, height, angle], kind="turned box")


def _turned_sides(numbers: list[float], own: Sequence[str]) -> Drawn:
    """Return a box that is turned about its centre, by the sides that it had before, and the angle."""
    left, top, right, bottom, angle = numbers[:5]
    turned = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top, angle]
    return Drawn(turned=turned, kind="turned box")


def _from_offsets(numbers: list[float], own: Sequence[str]) -> Drawn:
    """Return the outline of points that are counted from the left and the top of their box."""
    left, top = numbers[:2]
    ring = [number + (top if at % 2 else left) for at, number in enumerate(numbers[4 : len(_OFFSETS.names)])]
    return Drawn(rings=[ring], kind="outline")


def _outline(numbers: list[float], own: Sequence[str]) -> Drawn:
    return Drawn(rings=[[*map(float, own)]], kind="outline")
