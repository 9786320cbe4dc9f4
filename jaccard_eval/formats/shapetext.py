"""Texts of data sets with columns of their own: UCAS-AOD, VEDAI, BBox-Label-Tool, Caltech's bbGt, VATIC, CelebA, CUB.

Each is a row of `LAYOUTS`: what its files begin with, the columns of a line, and what their numbers have to do with
each other, by which it is recognised. Boxes have their corners, or their left, top, width and height, in pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.formats._poses import POINTS_SUFFIX, is_table, read_points, read_table
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.claims import is_quad, most
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.text import is_numeral, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.reading.lines import Place

FORMAT = Format(
    name="shapetext",
    summary="text of UCAS-AOD, VEDAI, BBox-Label-Tool, bbGt, VATIC, CelebA, CUB, DeepLabCut, 300W; box, score, class",
    source="https://github.com/pdollar/toolbox (bbGt), https://downloads.greyc.fr/vedai, the readme of each data set",
    example="% bbGt version=3\nperson 10 20 100 200 0 0 0 0 0 0 0\nperson 300 40 60 150 0 0 0 0 0 1 0\n",
    carries=("images", "crowd"),
    reads={
        "bbox": "",
        "obb": "x1 y1 x2 y2 x3 y3 x4 y4 of UCAS-AOD; x1 x2 x3 x4 y1 y2 y3 y4 of VEDAI",
        "keypoints": "tables of DeepLabCut and SLEAP; .pts of 300W",
    },
)

_QUAD = ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4")
_CORNERS, _SIDES = ("x1", "y1", "x2", "y2"), ("x", "y", "width", "height")
_FOUR = ("n1", "n2", "n3", "n4")  # corners, or left, top and sizes: what the boxes support
_ENCODINGS: dict[tuple[str, ...], str] = {_CORNERS: "xyxy", _SIDES: "xywh"}
_MANY_CLASSES = 100
_LOOKED_AT = 1000  # lines
_FEW = 5
_FLAGS = ("ignore", "lost")
_NUMERIC = ("cx", "cy", "score", "track", "occluded", "generated", *_FLAGS)
_CLOSE = 0.1  # of the extent of corners, by which their middle may differ from the one that is written
_SPLIT = pattern(r"[,\s]+")
_COUNT = pattern(r"\ufeff?\s*\d{1,8}\s*\n")  # of the lines that follow
_MOST_INDEX = 10**9
_NUMBER = r"\s*(-?[\d.]+)\s*"
_PAIR = rf"\({_NUMBER},{_NUMBER}\)"
_PASCAL_BOX = pattern(
    r"""Bounding box for object \d+ ["'](?P<label>[^"']+)["'] \(Xmin, Ymin\) - \(Xmax, Ymax\)\s*:\s*"""
    rf"{_PAIR}\s*-\s*{_PAIR}"
)
_PASCAL_OBJECT = pattern(r"Bounding box for object\b")
_CUB = ("images.txt", "bounding_boxes.txt", "image_class_labels.txt", "classes.txt")
_FIX = "Write the columns that the first lines of the data set have."


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the lines of a text hold.

    Parameters
    ----------
    columns : str
        Their names: those of `_QUAD`, `_CORNERS`, `_SIDES` or `_FOUR`, "image", "score", "class", "ignore" and "lost";
        "-" is not read.
    start : re.Pattern
        What a file begins with before these lines; without, the numbers are those of no other format.
    is_one : callable
        Whether the numbers of a line, by their columns, can be what they should.
    folders : tuple of str
        The folders that name the class, where no column does.
    likeness : Likeness
    numbers_classes : bool
        Whether the class may be a number.
    are_all : callable
        Whether the lines together can be what they should.
    least : int
        How many classes there must be, which repeat: words differ, and what is always the same may be a score.
    """

    columns: str
    start: re.Pattern[str] | None = None
    is_one: Callable[[Mapping[str, float]], bool] = lambda line: True
    folders: tuple[str, ...] = ()
    likeness: Likeness = Likeness.NAMED
    numbers_classes: bool = False
    least: int = 0
    are_all: Callable[[Sequence[Mapping[str, str]]], bool] = lambda rows: True

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""
        return self.columns.split()

    @property
    def box(self) -> tuple[str, ...]:
        """The names of the columns that the box is in."""
        return next(box for box in (_QUAD, _CORNERS, _SIDES, _FOUR) if {*box} <= {*self.names})

    def fields(self, line: str) -> dict[str, str] | None:
        """Return the columns of a line; None where it has others."""
        text = line.strip()
        names = self.names
        values = _SPLIT.split(text.replace('"', ""), maxsplit=2 * len(names))
        # A class may have blanks where it is the last.
        if len(values) > len(names) and names[-1] == "class" and not is_numeral(values[len(names) - 1]):
            values = [*values[: len(names) - 1], " ".join(values[len(names) - 1 :])]
        found = dict(zip(names, values, strict=False))
        numeric = {*self.box, *_SIDES, *_NUMERIC} & found.keys()
        is_line = len(values) == len(names) and all(is_numeral(found[name]) for name in numeric)
        # Where nothing else shows what numbers are, a class has a name. NumPy writes 1 as 1.000000000000000000e+00.
        if is_line and is_numeral(label := found.get("class", "")):
            is_line = self.numbers_classes and 0 <= float(label) < _MOST_INDEX and float(label) % 1 == 0
            found["class"] = f"{float(label):.0f}"
        return found if is_line else None


def _has_middle(line: Mapping[str, float]) -> bool:
    """Whether what is written as middle, or as box around it, is the middle of four corners."""
    xs, ys = [line[name] for name in _QUAD[::2]], [line[name] for name in _QUAD[1::2]]
    middle = (
        (line["cx"], line["cy"]) if "cx" in line else (line["x"] + line["width"] / 2, line["y"] + line["height"] / 2)
    )
    allowed = 1 + _CLOSE * max(max(xs) - min(xs), max(ys) - min(ys))
    return max(abs(sum(xs) / 4 - middle[0]), abs(sum(ys) / 4 - middle[1])) <= allowed and max(*xs, *ys) > 1


def _is_box(line: Mapping[str, float]) -> bool:
    return line["x1"] <= line["x2"] and line["y1"] <= line["y2"] and line["x2"] > 1


def _is_tracked(line: Mapping[str, float]) -> bool:
    flags = [line["lost"], line["occluded"], line["generated"]]
    return _is_box(line) and all(flag in (0, 1) for flag in flags) and line["image"] % 1 == line["track"] % 1 == 0


def _is_scored(line: Mapping[str, float]) -> bool:
    """Whether numbers are a box in pixels, a score and a class, as arrays of detectors have them."""
    return min(line["n3"], line["n4"]) > 1 and 0 <= line["score"] <= 1 and line.get("class", 0) <= _MANY_CLASSES


def _is_classed_quad(line: Mapping[str, float], unnamed: float = np.inf) -> bool:
    corners = [line[name] for name in _QUAD]
    is_score = 0 <= line.get("score", 0) <= 1
    return is_quad(corners) and max(corners) > 1 and is_score and line.get("class", unnamed) <= _MANY_CLASSES


def _have_fractions(rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether scores are not all whole, as classes are."""
    return any(float(row["score"]) % 1 for row in rows)


def _has_index(line: Mapping[str, float]) -> bool:
    return min(line["n3"], line["n4"]) > 1 and line.get("class", np.inf) <= _MANY_CLASSES


def _begin_with_coordinates(rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether the first numbers of lines are too many and too large for classes, which may be the last as well."""
    first = [row["n1"] for row in rows]
    return len(rows) >= _FEW and len({*first}) * 2 > len(first) and max(map(float, first)) > _MANY_CLASSES


_UCAS = f"{' '.join(_QUAD)} angle {' '.join(_SIDES)}"
_VEDAI_CORNERS = "x1 x2 x3 x4 y1 y2 y3 y4"
LAYOUTS = {
    "UCAS-AOD": Layout(columns=_UCAS, is_one=_has_middle, folders=("car", "plane")),
    "UCAS-AOD, classes": Layout(columns=f"class {_UCAS}", is_one=_has_middle, numbers_classes=True),
    "VEDAI": Layout(columns=f"cx cy angle class - - {_VEDAI_CORNERS}", is_one=_has_middle, numbers_classes=True),
    "VEDAI, corners first": Layout(
        columns=f"cx cy angle {_VEDAI_CORNERS} class - -", is_one=_has_middle, numbers_classes=True
    ),
    "VEDAI, all images": Layout(
        columns=f"image cx cy angle {_VEDAI_CORNERS} class - -", is_one=_has_middle, numbers_classes=True
    ),
    "BBox-Label-Tool": Layout(columns="x1 y1 x2 y2", start=_COUNT, is_one=_is_box, likeness=Likeness.STRUCTURE),
    "BBox-Label-Tool, classes": Layout(
        columns="x1 y1 x2 y2 class", start=_COUNT, is_one=_is_box, likeness=Likeness.STRUCTURE
    ),
    "bbGt": Layout(
        columns="class x y width height occluded - - - - ignore angle",
        start=pattern(r"\ufeff?\s*%\s*bbGt version=\d+[^\n]*\n?"),
    ),
    "CelebA": Layout(
        columns="image x y width height",
        start=pattern(r"\ufeff?\s*\d+\s*\n\s*image_id\s+x_1\s+y_1\s+width\s+height\s*\n"),
    ),
    "VATIC": Layout(columns="track x1 y1 x2 y2 image lost occluded generated class", is_one=_is_tracked),
    "box, score, class": Layout(
        columns="n1 n2 n3 n4 score class", is_one=_is_scored, numbers_classes=True, are_all=_have_fractions
    ),
    "four corners, class": Layout(
        columns=f"{' '.join(_QUAD)} class", is_one=_is_classed_quad, numbers_classes=True, least=2
    ),
    **{
        f"four corners, {columns}": Layout(
            columns=f"{' '.join(_QUAD)} {columns}", is_one=partial(_is_classed_quad, unnamed=0), numbers_classes=True,
            likeness=likeness, least=least, are_all=_have_fractions,
        )
        for columns, likeness, least in (("score class", Likeness.STRUCTURE, 2), ("class score", Likeness.CONTENT, 1))
    },
    **{
        f"image, {columns}": Layout(
            columns=f"image {columns.replace('quad', ' '.join(_QUAD))}", is_one=partial(_is_classed_quad, unnamed=0),
            numbers_classes=True, likeness=Likeness.CONTENT, least=1,
        )
        for columns in ("class score quad", "score quad class", "class quad", "quad class score", "quad class")
    },
    "class last": Layout(columns="n1 n2 n3 n4 class", likeness=Likeness.STRUCTURE, least=1),
    "class last, numbers": Layout(
        columns="n1 n2 n3 n4 class", is_one=_has_index, numbers_classes=True, least=1, are_all=_begin_with_coordinates
    ),
}  # fmt: skip


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its files, and a text for all images by its own."""
    if (peek.is_folder and {*_CUB[:2]} <= {*peek.files}) or _has_faces(peek):
        return Likeness.NAMED
    found = _first_files(peek)
    texts = [file.text.replace("\r\n", "\n").replace("\r", "\n") for file in found if file.kind is Kind.TEXT]
    if _are_pascal(texts) or (not peek.is_folder and texts and is_table(texts[0])):
        return Likeness.NAMED
    layout = _layout_of(texts, has_images=not peek.is_folder)
    if layout is None:
        return None
    return layout.likeness


def iou_types(peek: Peek) -> set[str]:
    """Return what there is: upright boxes are only those around oriented ones, and around poses."""
    if _has_faces(peek) or (not peek.is_folder and peek.kind is Kind.TEXT and is_table(peek.text)):
        return {"keypoints"}
    layout = _layout_of([file.text for file in _first_files(peek)], has_images=not peek.is_folder)
    return {"obb"} if layout is not None and layout.box is _QUAD else {"bbox"}


def _has_faces(peek: Peek) -> bool:
    """Whether there are texts with the points of a face in each."""
    found = peek.first_files(lambda name: name.lower().endswith(POINTS_SUFFIX)) if peek.is_folder else [peek]
    return bool(found) and all(file.suffix == POINTS_SUFFIX and "n_points" in file.text for file in found)


def _first_files(peek: Peek) -> list[Peek]:
    if not peek.is_folder:
        return [peek] if peek.kind is Kind.TEXT else []
    found = peek.first_files(files.is_label_name)
    return found or [file for folder in peek.first_folders() for file in folder.first_files(files.is_label_name)]


def _are_pascal(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if text.strip()]
    return bool(filled) and sum("PASCAL Annotation Version" in text[:200] for text in filled) * 2 > len(filled)


def _layout_of(texts: Sequence[str], *, has_images: bool) -> Layout | None:
    """Return the layout of most texts; those of all images name these in each line."""
    filled = [text for text in texts if text.strip()]
    for layout in LAYOUTS.values():
        if ("image" in layout.names) != has_images or not filled:
            continue
        if layout.start is not None and sum(map(bool, map(layout.start.match, filled))) * 2 <= len(filled):
            continue
        lines = [line for text in filled for line in _lines(text, layout)]
        # Most texts are others: a few lines show that.
        few = lines[:: max(len(lines) // _FEW, 1)]
        if len(few) >= _FEW and not any(map(layout.fields, few)):
            continue
        rows = [layout.fields(line) for line in lines[:_LOOKED_AT]]
        fitting = [row for row in rows if row is not None]
        if has_images and layout.box is _QUAD and rows and rows[0] is None:
            continue  # tables begin with the names of their columns
        labels = [row.get("class", "") for row in fitting]
        if not layout.least <= len({*labels}) <= max(len(labels) // 2, layout.least) and layout.least:
            continue
        if not rows and layout.start is not None and layout.start is not _COUNT:
            return layout  # nothing in any image
        is_likely = len(fitting) * 2 > len(rows) and most(map(_as_numbers, fitting), layout.is_one)  # type: ignore[arg-type]
        if is_likely and layout.are_all(fitting):
            return layout
    return None


def _as_numbers(row: Mapping[str, str]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if is_numeral(value)}


def _lines(text: str, layout: Layout) -> list[str]:
    start = layout.start.match(text) if layout.start is not None else None
    return [line for line in text[start.end() if start else 0 :].split("\n") if line.strip()]


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder, or of a text for all images, to the draft."""
    from jaccard_eval.formats._yolo.sources import add_label_images  # not needed to look for a format
    from jaccard_eval.reading.lines import TextBoxes

    is_folder = files.is_folder(path)
    if is_folder and {*_CUB[:2]} <= {*files.list_folder(path)[1]}:
        _read_cub(path, draft)
        return
    if path.suffix.lower() == POINTS_SUFFIX or any(
        name.lower().endswith(POINTS_SUFFIX) for name in (files.list_folder(path)[1] if is_folder else ())
    ):
        read_points(path, draft)
        return
    if not is_folder and is_table(files.head(path).decode(errors="replace")):
        read_table(path, draft)
        return
    named = add_label_images(path, draft) if is_folder else {path.stem: path}
    texts = dict(_texts(named, draft.findings))
    draft.findings.raise_errors()
    if _are_pascal([*texts.values()]):
        _read_pascal(named, texts, draft)
        return
    layout = _layout_of([*texts.values()], has_images=not is_folder) or LAYOUTS["bbGt"]
    lines = TextBoxes((*layout.box, "score"))
    flags: dict[str, list[bool]] = {name: [] for name in _FLAGS}
    labels: list[str] = []
    for key, text in texts.items():
        start = layout.start.match(text) if layout.start is not None else None
        n_before = text[: start.end()].count("\n") if start else 0
        folder = named[key].parent.name
        for number, line in enumerate(text.split("\n")[n_before:], start=n_before + 1):
            if not line.strip():
                continue
            place, fields = (str(named[key]), number), layout.fields(line)
            if fields is None:
                lines.refuse(place, f"expected {layout.columns}, got {quoted_value(line.strip())}")
                continue
            by_folder = folder if folder.lower() in layout.folders else ""
            labels.append(fields.get("class", by_folder))
            for name in _FLAGS:
                flags[name].append(fields.get(name, "0") not in ("", "0"))
            lines.add(
                place,
                fields.get("image", key),
                labels[-1],
                [*map(fields.__getitem__, layout.box), fields.get("score", "")],
            )
    table = lines.read(draft.findings, fix=_FIX)
    scores = lines.scores(
        table, draft, detail="has no score, as others have", fix="Write the score of every prediction."
    )
    if not is_folder:
        _set_images(list(dict.fromkeys(lines.images)), draft)
    coords = table[:, :-1]
    columns: dict[str, Any] = {
        "score": scores if len(lines) else None,
        "crowd": np.array(flags["ignore"], dtype=np.bool_),
    }
    columns |= _classes(labels, draft)
    kept = np.flatnonzero(~np.array(flags["lost"], dtype=np.bool_))
    if len(kept) < len(lines):
        draft.ignored["lost"] += len(lines) - len(kept)
        draft.mention_uncounted({"outside of the view (lost)": len(lines) - len(kept)})
    if layout.box is _QUAD:
        lines.add_quads(draft, coords.reshape(-1, 4, 2), **columns)
        return
    encoding = _ENCODINGS.get(layout.box) or _supported_encoding(coords, draft, is_scored=scores is not None)
    lines.add_to(draft, coords, rows=kept, encoding=encoding, **columns)


def _set_images(names: Sequence[str], draft: Draft) -> None:
    sizes = unknown_sizes(len(names))
    draft.fill_sizes(sizes, names)
    draft.set_images(names, file_names=names, sizes=sizes)


def _classes(labels: Sequence[str], draft: Draft) -> dict[str, Any]:
    """Name the classes where they are numbers, or there is none; return the column of them."""
    from jaccard_eval.reading.tabular.boxes import NO_CLASS, note_no_class

    if labels and not any(labels):
        note_no_class(draft)
        names = draft.options.names or (str(NO_CLASS),)
        draft.set_classes([NO_CLASS], names[:1], named=bool(draft.options.names))
        return {"label": np.full(len(labels), NO_CLASS)}
    if not labels or not all(map(str.isdecimal, labels)):
        return {}
    numbers = np.array([*map(int, labels)], dtype=np.int64)
    given = draft.options.names
    keys = sorted({*numbers.tolist()}) if given is None else range(len(given))
    draft.set_classes(keys, given or [str(key) for key in keys], named=given is not None)
    return {"label": numbers}


def _supported_encoding(coords: FloatArray, draft: Draft, *, is_scored: bool) -> str:
    """Return what four numbers are by most boxes, and report what was assumed, or stop where nothing settles it."""
    from jaccard_eval.formats._yolo.columns import Frame, choose_encoding, spelled

    if draft.options.box is not None:
        return draft.options.box
    sound = coords[np.isfinite(coords).all(axis=1)]  # errors have been reported of the others
    if not len(sound):
        return "xyxy"
    choice = choose_encoding(sound, Frame.of(sound, "px", np.full((len(sound), 2), np.nan)), is_scored=is_scored)
    where, ways = Where(draft.path), (choice.encoding, *choice.rivals)
    if choice.severity is Severity.ERROR:
        detail = f"the boxes fit as {' and as '.join(map(spelled, ways))}"
        draft.findings.error(
            "columns-ambiguous", where, detail, fix=Fix.of_side(draft.options.role, "Pass {box}.", box=ways)
        )
    elif choice.assumption:
        fix = Fix.of_side(draft.options.role, "Settle it with {box}.", box=None)
        draft.findings.add_one(choice.severity, "box-assumed", where, choice.assumption, fix=fix)
    return choice.encoding


def _texts(named: Mapping[str, Path], findings: FindingLog) -> Iterator[tuple[str, str]]:
    for key, _, text in files.read_each(named, lambda file: files.read_text(file, empty_ok=True), findings):
        yield key, text.replace("\r\n", "\n").replace("\r", "\n")


def _read_pascal(named: Mapping[str, Path], texts: Mapping[str, str], draft: Draft) -> None:
    """Add the boxes of records in words, whose first pixel is 0 or 1 by their own words: they are kept as written."""
    from jaccard_eval.reading.lines import TextBoxes

    lines = TextBoxes(_CORNERS)
    for key, text in texts.items():
        for number, line in enumerate(text.split("\n"), start=1):
            box, place = _PASCAL_BOX.search(line), (str(named[key]), number)
            if box is not None:
                lines.add(place, key, box["label"], box.groups()[1:])
            elif _PASCAL_OBJECT.match(line):
                lines.refuse(place, "expected (Xmin, Ymin) - (Xmax, Ymax) : (x, y) - (x, y)")
    lines.add_to(draft, lines.read(draft.findings, fix="Write both corners of every object."))


def _read_cub(path: Path, draft: Draft) -> None:
    """Add the images and boxes of tables that are joined by the numbers of images and classes."""
    from jaccard_eval.reading.lines import TextBoxes

    there = files.list_folder(path)[1]
    names, _, label_of, class_names = (_numbered(path / name) if name in there else {} for name in _CUB)
    lines = TextBoxes(_SIDES)
    for number, text in enumerate(files.read_lines(path / _CUB[1]), start=1):
        fields = text.split()
        place: Place = (str(path / _CUB[1]), number)
        if len(fields) == 5 and fields[0] in names:
            label = label_of.get(fields[0], "")
            lines.add(place, names[fields[0]], class_names.get(label, label), fields[1:])
        elif fields:
            is_known = fields[0] in names
            why = f"got {len(fields)} columns" if is_known else f"{_CUB[0]} has no image {quoted_value(fields[0])}"
            lines.refuse(place, f"expected image x y width height; {why}")
    _set_images([*names.values()], draft)
    table = lines.read(draft.findings, fix=_FIX)
    lines.add_to(draft, table, encoding="xywh", **_classes(lines.labels, draft))


def _numbered(path: Path) -> dict[str, str]:
    """Return what stands behind the number of each line."""
    rows = [line.split(maxsplit=1) for line in files.read_lines(path)]
    return {row[0]: row[1].strip() for row in rows if len(row) > 1}
