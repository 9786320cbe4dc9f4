"""Texts of data sets with columns of their own: UCAS-AOD, VEDAI, BBox-Label-Tool, Caltech's bbGt, VATIC, CelebA, CUB.

Each is a row of `LAYOUTS`: what its files begin with, the columns of a line, and what their numbers have to do with
each other, by which it is recognised. Boxes have their corners, or their left, top, width and height, in pixels.
Tables of poses have a row for each image or frame: DeepLabCut's, of several lines of header, and SLEAP's. Points
without numbers are not labelled. DeepLabCut calls images by their path, or by the number of the frame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import posix
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn
from jaccard_eval.reading.lines import Place, TextBoxes
from jaccard_eval.reading.peek import Kind, Likeness, Peek, is_quad, most
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.text import is_numeral, quoted_value

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
_POSE_HEADER = ("scorer", "individuals", "bodyparts", "coords")  # what DeepLabCut's lines of header begin with
_SEEN = 2.0
# A row of DeepLabCut begins with a path, in one cell or in three.
_POSE_BEGINNING = pattern(r'\ufeff?"?scorer"?,[^\n]*\n(?:"?individuals"?,[^\n]*\n)?"?bodyparts"?,')
# A face in each file, of 300W and others: how many points, and x and y of each.
_FACE_SUFFIX = ".pts"
_FACE = pattern(r"\ufeff?\s*(?:version:\s*\S+\s+)?n_points:\s*(\d+)\s*\{([^{}]*)(\})?")
# A column of SLEAP, or of a script: a point, and x, y, how sure a network is, or how well the point is seen.
_POINT_COLUMN = pattern(r"(.+?)[._](x|y|score|conf|confidence|likelihood|prob|v|vis|visibility|visible)", re.IGNORECASE)
_THIRD = {"v": "seen", "vis": "seen", "visibility": "seen", "visible": "seen"}
_IMAGES = ("frame_idx", "image", "image_name", "image_path", "img_name", "file_name", "filename", "frame", "image_id")
_SCORES = ("score", "confidence", "pose_score", "person_score")
_LEAST_POINTS = 5  # points of a table that shows by nothing else that it has poses


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
    if _are_pascal(texts) or (not peek.is_folder and texts and _is_pose_table(texts[0])):
        return Likeness.NAMED
    layout = _layout_of(texts, has_images=not peek.is_folder)
    if layout is None:
        return None
    return layout.likeness


def iou_types(peek: Peek) -> set[str]:
    """Return what there is: upright boxes are only those around oriented ones, and around poses."""
    if _has_faces(peek) or (not peek.is_folder and peek.kind is Kind.TEXT and _is_pose_table(peek.text)):
        return {"keypoints"}
    layout = _layout_of([file.text for file in _first_files(peek)], has_images=not peek.is_folder)
    return {"obb"} if layout is not None and layout.box is _QUAD else {"bbox"}


def _has_faces(peek: Peek) -> bool:
    """Whether there are texts with the points of a face in each."""
    found = peek.first_files(lambda name: name.lower().endswith(_FACE_SUFFIX)) if peek.is_folder else [peek]
    return bool(found) and all(file.suffix == _FACE_SUFFIX and "n_points" in file.text for file in found)


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

    is_folder = files.is_folder(path)
    if is_folder and {*_CUB[:2]} <= {*files.list_folder(path)[1]}:
        _read_cub(path, draft)
        return
    if path.suffix.lower() == _FACE_SUFFIX or any(
        name.lower().endswith(_FACE_SUFFIX) for name in (files.list_folder(path)[1] if is_folder else ())
    ):
        _read_faces(path, draft)
        return
    if not is_folder and _is_pose_table(files.head(path).decode(errors="replace")):
        _read_pose_table(path, draft)
        return
    named = add_label_images(path, draft) if is_folder else {path.stem: path}
    texts = dict(_texts(named, draft.findings))
    draft.findings.raise_errors()
    if _are_pascal([*texts.values()]):
        _read_pascal(named, texts, draft)
        return
    layout = _layout_of([*texts.values()], has_images=not is_folder) or LAYOUTS["bbGt"]
    _read_lines(named, texts, layout, draft, has_images=not is_folder)


def _read_lines(
    named: Mapping[str, Path], texts: Mapping[str, str], layout: Layout, draft: Draft, *, has_images: bool
) -> None:
    """Add what the lines of texts hold, by the images that these are of, or that the lines name."""
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
    if has_images:
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
    from jaccard_eval.reading.tabular.table import NO_CLASS, note_no_class

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
    from jaccard_eval.formats._yolo.reader import Frame, choose_encoding, spelled

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


def _is_pose_table(text: str) -> bool:
    """Whether a text begins as one of these tables does."""
    if _POSE_BEGINNING.match(text) is not None:
        return True
    header = _cells(text.partition("\n")[0])
    names = {point for _, _, point, _ in _columns_of_points(header)}
    return _place(header, _IMAGES) is not None and len(names) >= (1 if header[0] == "track" else _LEAST_POINTS)


def _cells(line: str) -> list[str]:
    return [field.strip(' \r"').lstrip("\ufeff") for field in line.split(",")]


def _place(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _read_pose_table(path: Path, draft: Draft) -> None:
    """Add the poses of a table to the draft."""
    import csv  # looks for formats do without tables

    from jaccard_eval.reading.tabular.table import note_no_class

    lines = [row for row in csv.reader(files.read_text(path).splitlines()) if row]
    is_deeplabcut = lines[0][0] == _POSE_HEADER[0]
    n_header = (
        next((at for at, row in enumerate(lines) if row[0] not in _POSE_HEADER), len(lines)) if is_deeplabcut else 1
    )
    lines[0] = [field.strip().lstrip("\ufeff") for field in lines[0]]
    columns = [*_deeplabcut_columns(lines[:n_header])] if is_deeplabcut else [*_columns_of_points(lines[0])]
    image_at, score_at = (None if is_deeplabcut else _place(lines[0], names) for names in (_IMAGES, _SCORES))
    if not columns:
        fix = "Export the table again."
        raise DataError.single("csv-header", Where(str(path)), "has no columns of x and y below its points", fix=fix)
    collector = RecordCollector(draft)
    is_gt = draft.options.role == "gt"
    names, seen = [*dict.fromkeys(point for _, _, point, _ in columns)], set[str]()
    label = draft.options.names[0] if draft.options.names else 0
    note_no_class(draft)
    for number, row in enumerate(lines[n_header:], start=n_header + 1):
        where = Where(str(path), line=number)
        if len(row) != len(lines[0]):
            detail = f"has {len(row)} cells; the header has {len(lines[0])}"
            draft.findings.error("columns", where, detail, fix="Give every row as many cells as the header.")
            continue
        image = _image_of(row[: columns[0][0]] if image_at is None else row[image_at : image_at + 1])
        if image not in seen:
            seen.add(image)
            collector.add_image(image, file_name=image)
        poses: dict[str, dict[str, dict[str, float]]] = {}
        for at, owner, point, coordinate in columns:
            cell = row[at].strip()
            if cell.lower() in ("", "nan"):
                continue
            if not is_numeral(cell):
                detail = f"{coordinate} of {quoted_value(point)} is {quoted_value(cell)}, not a number"
                draft.findings.error("csv-number", where, detail, fix="Export the table again.")
                continue
            poses.setdefault(owner, {}).setdefault(point, {})[coordinate] = float(cell)
        for pose in poses.values():
            placed = {point: one for point, one in pose.items() if {"x", "y"} <= one.keys()}
            if not placed:
                continue
            found = [one["likelihood"] for one in placed.values() if "likelihood" in one and not is_gt]
            points = dict.fromkeys(names, (0.0, 0.0, 0.0))
            for point, one in placed.items():
                points[point] = one["x"], one["y"], one.get("seen", _SEEN) if is_gt else one.get("likelihood", 1.0)
            score = math.fsum(found) / len(found) if found else math.nan
            if score_at is not None and is_numeral(row[score_at].strip()):
                score = float(row[score_at])
            collector.add_drawn(image, label, Drawn(points=points, kind="pose"), where, score=score)
    draft.findings.raise_errors()
    collector.to_draft(encoding="xyxy", listed=True)


def _read_faces(path: Path, draft: Draft) -> None:
    """Add the faces of texts to the draft, one in each."""
    from jaccard_eval.reading.tabular.table import note_no_class

    collector, is_gt = RecordCollector(draft), draft.options.role == "gt"
    label = draft.options.names[0] if draft.options.names else 0
    note_no_class(draft)
    for key, file, text in files.read_each(
        files.members(path, (_FACE_SUFFIX,), draft.findings), files.read_text, draft.findings
    ):
        found, where = _FACE.match(text), Where(str(file))
        collector.add_image(key, file_name=key)
        numbers = found[2].split() if found is not None else []
        if found is None or not found[3] or len(numbers) != 2 * int(found[1]) or not all(map(is_numeral, numbers)):
            told = "no n_points" if found is None else f"{len(numbers)} words for {found[1]} points"
            fix = "Write n_points: N, and x and y of each point on a line of its own, between { and }."
            draft.findings.error("keypoints-invalid", where, f"has {told}", fix=fix)
            continue
        xy = [*map(float, numbers)]
        points = {at: (*pair, _SEEN if is_gt else 1.0) for at, pair in enumerate(zip(xy[::2], xy[1::2], strict=True))}
        collector.add_drawn(key, label, Drawn(points=points, kind="face"), where)
    draft.findings.raise_errors()
    collector.to_draft(encoding="xyxy", listed=True)


def _deeplabcut_columns(header: Sequence[Sequence[str]]) -> Iterator[tuple[int, str, str, str]]:
    """Yield place, animal, point and coordinate of each column with numbers."""
    rows = {row[0]: row for row in header}
    coordinates = rows.get("coords", [])
    for at, coordinate in enumerate(coordinates):
        if coordinate in ("x", "y", "likelihood"):
            yield (
                at,
                rows.get("individuals", coordinates)[at] if "individuals" in rows else "",
                rows["bodyparts"][at],
                coordinate,
            )


def _columns_of_points(header: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """Yield the columns of points that have x and y, likewise."""
    matches = {at: match for at, name in enumerate(header) if (match := _POINT_COLUMN.fullmatch(name)) is not None}
    axes = {(match[1], match[2].lower()) for match in matches.values()}
    for at, match in matches.items():
        point, name = match[1], match[2].lower()
        if {(point, "x"), (point, "y")} <= axes:
            yield at, "", point, name if name in ("x", "y") else _THIRD.get(name, "likelihood")


def _image_of(cells: Sequence[str]) -> str:
    """Return the name of an image, which is the last part of a path; the number of a frame stays one."""
    return PurePosixPath(posix("/".join(cells))).name
