"""Open Images CSV: fractions in the order XMin, XMax, YMin, YMax, classes by MID or by name, groups of objects.

The challenge's submissions are read as well: all boxes of an image in a PredictionString, its classes MIDs. So are
tables of masks, with PNG files next to them or compressed RLE in base64 in their cells, each at a resolution of its
own. Source of these: the downloads (``*-annotations-object-segmentation.csv``), and of the Object Detection API
``metrics/oid_challenge_evaluation_utils.py`` for what the challenge's tables and submissions hold.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Dataset, Key, unknown_sizes
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import tracked
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.reading.tabular.columns import RowIndices, position_of_strings
from jaccard_eval.text import inert, is_numeral, quoted, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.reading.tabular.table import Table
    from jaccard_eval.similarity.masks import Masks

FORMAT = Format(
    name="openimages",
    summary="Open Images CSV: boxes as XMin, XMax, YMin, YMax in fractions, or masks (PNG files, RLE)",
    source="https://storage.googleapis.com/openimages/web/download_v7.html",
    example="ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\nstreet,,dog,1,0.1,0.3,0.2,0.5,0\n",
    carries=("scores", "group_of", "image_labels"),
    suffixes=(".csv",),
    reads={"bbox": "XMin, XMax, YMin, YMax", "segm": "MaskPath with PNG files, EncodedMask"},
)

NEEDED = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")
HEADER = ("ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax", "IsGroupOf")

_NEEDED = frozenset(name.lower() for name in NEEDED)
# Of tables of masks, in small letters: the columns of the image, the box, the size, and what the mask is in.
_IMAGE = ("imageid", "id")  # submissions of later competitions have the second
_BOXES = (("boxxmin", "boxxmax", "boxymin", "boxymax"), ("xmin", "xmax", "ymin", "ymax"))
_SIZE = ("imagewidth", "imageheight")
_FILE, _CODE, _STRING = "maskpath", "mask", "predictionstring"
_LAYOUTS = ({"labelname", _FILE}, {"labelname", *_SIZE, _CODE}, {*_SIZE, _STRING})  # besides the image
_SCORES = ("score", "confidence")
_MOST_BYTES = 2**26  # of RLE: more than any mask has
_FIX = "Write masks as pycocotools' RLE, compressed with zlib, in base64."
_MID_GROUP = pattern(r"[,;\t|\" ]/[mgt]/\w+ ")  # a class, which a confidence follows


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a table by its first line: every column that is needed under its own name, or MIDs in strings of boxes."""
    if peek.kind not in (Kind.TEXT, Kind.BINARY):
        return None
    header = _header(peek)
    if _mask_kinds(header):
        return Likeness.NAMED
    has_boxes = {name.strip().lower() for name in header} >= _NEEDED
    has_strings = position_of_strings(header) is not None and _MID_GROUP.search(peek.text) is not None
    return Likeness.STRUCTURE if has_boxes or has_strings else None


def iou_types(peek: Peek) -> set[str]:
    """Return what the columns are."""
    return _mask_kinds(_header(peek)) or {"bbox"}


def _header(peek: Peek) -> Sequence[str]:
    from jaccard_eval.reading.tabular.columns import first_line, split_first_line

    return split_first_line(first_line(peek.text)[1])[1]


def _mask_kinds(header: Sequence[str]) -> set[str]:
    """Return what a table with masks can be compared by; nothing of a table without."""
    names = {name.strip().strip('"').lower() for name in header}
    if names.isdisjoint(_IMAGE) or not any(names >= layout for layout in _LAYOUTS):
        return set()
    return {"segm", *("bbox" for sides in _BOXES if names >= set(sides))}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an Open Images table to the draft; the format prescribes fractions."""
    if _mask_kinds(files.first_line(path).split(",")):
        draft.options = replace(options, units="norm")
        found = _add_masks(path, draft, options)
        if found is not None:
            _add_classes(path, *found, draft)
        return
    from jaccard_eval.reading.tabular.columns import open_table
    from jaccard_eval.reading.tabular.delimited import text_table
    from jaccard_eval.reading.tabular.table import NORM_LIMIT, add_boxes, read_cells

    draft.options = replace(options, units=options.units or "norm")
    read_table = text_table(open_table(path, draft), draft)
    if read_table is None:
        return
    table, columns = read_table
    group = columns.flags.get("group_of")
    if group is not None:
        table = _with_known_groups(table, group, draft)
    cells = read_cells(table, columns, draft.findings)
    n_boxes, n_outside = len(cells.coords), int((cells.coords > NORM_LIMIT).any(axis=1).sum())
    if options.units is None and n_outside * 2 > n_boxes:  # single boxes of a detector may leave the image
        detail = (
            f"Open Images holds fractions of the image's width and height, but {n_outside:,} of {n_boxes:,} boxes "
            "have coordinates above 1"
        )
        fix = Fix.of_side(draft.options.role, "Pass {units} if they are pixels.", units="px")
        draft.findings.error("coordinate-range", Where(draft.path), detail, fix=fix)
    add_boxes(table, columns, cells, draft)
    images, classes = (table.columns[at].keys(cells.rows)[0] for at in (columns.image, columns.label))
    _add_classes(path, images, classes, partial(_place, table, cells.rows), draft)


def _add_classes(
    path: Path, images: CodedKeys, classes: CodedKeys, place: Callable[[int], Where], draft: Draft
) -> None:
    """Name the classes of boxes, and add what the files next to ground truth know of them."""
    from jaccard_eval.formats._openimages import MID_STARTS, BoxKeys, add_facts, descriptions_of, read_descriptions

    options, labels = draft.options, {str(label) for label in classes.distinct}
    # Files of other makers have names in the place of ids, and need no descriptions.
    has_mid = any(label.startswith(MID_STARTS) for label in labels)
    described = descriptions_of(path, options) if options.class_descriptions or has_mid else []
    names = read_descriptions(described)
    if options.role == "gt":
        labels.update(add_facts(path, BoxKeys(images, classes, place), names, draft))
    known = [label for label in labels if label in names]
    if known:
        draft.details.append(f"{len(known):,} class names from {', '.join(file.name for file in described)}")
    are_ids = bool(labels) and all(label.startswith(MID_STARTS) for label in labels)
    if known or draft.class_parents or are_ids:
        keys = sorted(labels)
        # Ids that nothing describes are not names: the other side may have both.
        draft.set_classes(keys, [names.get(label, label) for label in keys], named=bool(known) or not are_ids)


def _place(table: Table, rows: RowIndices, row: int) -> Where:
    return table.where(int(rows[row]))


def _with_known_groups(table: Table, column: int, draft: Draft) -> Table:
    """Return a table whose flags of groups are 0 where they are -1, which nobody checked."""
    from jaccard_eval.reading.tabular.table import TextColumn

    flags, _ = table.columns[column].keys(np.arange(len(table)))
    known = ["0" if str(flag).strip() == "-1" else flag for flag in flags.distinct]
    n_unknown = sum(str(flag).strip() == "-1" for flag in flags)
    if n_unknown:
        detail = f"{table.header[column]} is -1 (unknown) in {n_unknown:,} rows: read as 0"
        draft.findings.note("group-unknown", Where(draft.path), detail)
    return replace(table, columns={**table.columns, column: TextColumn(CodedKeys(known, flags.codes))})


def leads_to(path: Path, _: str) -> list[Path]:
    """Return the files next to a table that name its classes, or hold their hierarchy or image-level labels."""
    from jaccard_eval.formats._openimages import may_lie_beside

    return may_lie_beside(path)


@dataclass(frozen=True, slots=True)
class _MaskObject:
    """A row of a table, or a part of its string."""

    image: str
    label: str
    where: Where
    mask: str  # a path or a text; empty where there is none
    box: tuple[float, ...] = (math.nan,) * 4  # left, right, top, bottom as fractions
    size: tuple[int, int] = (0, 0)  # height and width of the mask, zeros where the file does not have them
    score: float = math.nan
    is_group: bool = False


def _add_masks(
    path: Path, draft: Draft, options: ReadOptions
) -> tuple[CodedKeys, CodedKeys, Callable[[int], Where]] | None:
    """Add the objects of a table to a draft; return image, class and place of each; None where there are errors."""
    table = _MaskTable(path, draft)
    objects = list(table.objects())
    draft.findings.raise_errors()
    coords = np.array([one.box for one in objects], dtype=np.float64).reshape(-1, 4)
    given: BoolArray = np.logical_and.reduce(np.isfinite(coords), axis=1)
    outlines = None
    if options.iou_type in MASKS or not given.all():
        from jaccard_eval.similarity.masks import Outlines

        masks = table.masks(objects)
        if masks is None:
            return None
        x, y, width, height = masks.bounds().T
        # Boxes are those of pixels where there are no others, as fractions of the mask.
        sides = np.maximum(masks.sizes[:, [1, 1, 0, 0]], 1)
        coords = np.where(given[:, None], coords, np.stack((x, x + width, y, y + height), axis=1) / sides)
        outlines = Outlines.of_masks(masks, np.ones(len(masks), dtype=np.bool_))
    keys = {name: row for row, name in enumerate(dict.fromkeys((*table.empty, *(one.image for one in objects))))}
    rows = np.array([keys[one.image] for one in objects], dtype=np.int64)
    if outlines is not None and options.role == "gt":
        # Masks are compared as ground truth has them: an image has the size of its first mask.
        sizes, own = unknown_sizes(len(keys)), outlines.masks.sizes.astype(np.float64)
        sized = np.flatnonzero((own > 0).all(axis=1))[::-1]
        sizes[rows[sized]] = own[sized, ::-1]
        draft.set_images(list(keys), sizes=sizes, listed=False)
    elif table.empty:
        draft.set_images(list(keys), listed=False)
    labels = {name: row for row, name in enumerate(dict.fromkeys(one.label for one in objects))}
    images = CodedKeys(list(keys), rows)
    classes = CodedKeys(list(labels), np.array([labels[one.label] for one in objects], dtype=np.int64))
    score = np.array([one.score for one in objects], dtype=np.float64)
    draft.add_boxes(
        RawBoxes(
            image=images,
            label=classes,
            coords=coords,
            encoding="xxyy",
            units="norm",
            score=None if np.isnan(score).all() else score,
            group_of=np.array([one.is_group for one in objects], dtype=np.bool_),
            shapes=None if options.iou_type not in MASKS else outlines,
            place=lambda row: objects[row].where,
        )
    )
    return images, classes, lambda row: objects[row].where


class _MaskTable:
    """The rows of a table, and the files that they name."""

    def __init__(self, path: Path, draft: Draft) -> None:
        self._path, self._draft = path, draft
        self.empty: list[Key] = []  # images whose string has nothing in it

    def objects(self) -> Iterator[_MaskObject]:
        """Yield what rows hold; what is wrong with them is among the findings."""
        from jaccard_eval.reading.tabular.columns import fields_up_to

        text = files.read_text(self._path)
        with fields_up_to(len(text)):
            import csv  # looks for formats do without it

            table = csv.reader(io.StringIO(text, newline=""))
            header = [name.strip().lower() for name in next(table, [])]
            for cells in table:
                where = Where(str(self._path), line=table.line_num)
                if len(cells) == len(header):
                    yield from self._row({name: cell.strip() for name, cell in zip(header, cells, strict=True)}, where)
                elif cells:
                    detail = f"expected {len(header)} fields, got {len(cells)}"
                    self._draft.findings.error("csv-fields", where, detail, fix="Export the table again.")

    def _row(self, row: dict[str, str], where: Where) -> Iterator[_MaskObject]:
        image = next((row[name] for name in _IMAGE if row.get(name)), "")
        if not image:
            self._error(where, "ImageID", "the cell is empty", code="field-missing")
        size = (0, 0)
        if row.keys() >= set(_SIZE):
            width, height = (self._number(row[name], where, name, most=MAX_IMAGE_SIDE) for name in _SIZE)
            if not (width > 0 and height > 0 and width % 1 == height % 1 == 0):
                if not math.isnan(width + height):
                    detail = f"is {row[_SIZE[0]]} x {row[_SIZE[1]]}; expected whole numbers of pixels"
                    self._error(where, "ImageWidth", detail, code="image-size")
                return
            size = int(height), int(width)
        if _STRING in row:
            yield from self._parts(image, size, row[_STRING], where)
            return
        if not row["labelname"]:
            self._error(where, "LabelName", "the cell is empty", code="field-missing")
        names = next((names for names in _BOXES if row.keys() >= set(names) and all(map(row.get, names))), ())
        box = tuple(self._number(row[name], where, name) for name in names)
        score = next((self._number(row[name], where, name) for name in _SCORES if row.get(name)), math.nan)
        yield _MaskObject(
            image,
            row["labelname"],
            replace(where, field="MaskPath" if _FILE in row else "Mask"),
            row[_FILE] if _FILE in row else row[_CODE],
            **({"box": box} if box else {}),
            size=size,
            score=score,
            is_group=row.get("isgroupof") == "1",
        )

    def _parts(self, image: str, size: tuple[int, int], text: str, where: Where) -> Iterator[_MaskObject]:
        """Yield what a string holds: class, confidence and mask of each object."""
        words, where = text.split(), replace(where, field="PredictionString")
        if not words:
            self.empty.append(image)
        if len(words) % 3:
            self._error(
                where, None, f"has {len(words)} parts; expected a class, a confidence and a mask for each object"
            )
            return
        for label, score, mask in zip(words[::3], words[1::3], words[2::3], strict=True):
            yield _MaskObject(image, label, where, mask, size=size, score=self._number(score, where, None))

    def _number(self, text: str, where: Where, name: str | None, most: float = math.inf) -> float:
        if is_numeral(text) and abs(float(text)) <= most:
            return float(text)
        self._error(where, name, f"{quoted_value(text)} is not a plain finite number", code="number-invalid")
        return math.nan

    def _error(
        self, where: Where, name: str | None, detail: str, *, code: str = "segmentation-invalid", fix: str = _FIX
    ) -> None:
        fix = fix if code == "segmentation-invalid" else "Export the table again."
        self._draft.findings.error(code, where if name is None else replace(where, field=name), detail, fix=fix)

    def masks(self, objects: Sequence[_MaskObject]) -> Masks | None:
        """Return the mask of each object; None where some cannot be used."""
        from jaccard_eval.reading.labelmaps import EncodedImage, object_pixels
        from jaccard_eval.reading.outlines import OutlineDraft
        from jaccard_eval.similarity.runs import runs_of_pixels

        draft = OutlineDraft()
        for one in tracked(objects, "masks"):
            try:
                if not one.mask:
                    draft.add_pixels(np.zeros(0, dtype=np.int64), *one.size)
                elif one.size != (0, 0):
                    draft.add_string(self._decoded(one), *one.size)
                else:
                    pixels = object_pixels(EncodedImage(self._file(one)))
                    draft.add_pixels(runs_of_pixels([(pixels, 0, 0, len(pixels))]).edges, *pixels.shape)
            except DataError as error:
                self._draft.findings.extend(error.findings)
                draft.add_pixels(np.zeros(0, dtype=np.int64), *one.size)  # masks stay in step with their objects
        if self._draft.findings.has_errors:
            return None
        outlines, problems = draft.build()
        for row, problem in problems:
            self._error(objects[row].where, None, problem)
        return None if self._draft.findings.has_errors else outlines.masks

    @staticmethod
    def _decoded(one: _MaskObject) -> bytes:
        try:
            decoder = zlib.decompressobj()
            text = decoder.decompress(base64.b64decode(one.mask, validate=True), _MOST_BYTES)
        except binascii.Error as error:
            problem = f"is not valid base64: {error}"
        except zlib.error as error:
            problem = f"cannot be unpacked with zlib: {error}"
        else:
            if decoder.eof:
                return text
            problem = f"unpacks to more than {_MOST_BYTES:,} bytes" if decoder.unconsumed_tail else "is cut off"
        raise DataError.single("segmentation-invalid", one.where, problem, fix=_FIX)

    def _file(self, one: _MaskObject) -> Path:
        """Return the PNG file of an object: at its path next to the table, or of its name anywhere below."""
        name = PurePosixPath(one.mask.replace("\\", "/"))
        if not name.is_absolute() and ".." not in name.parts:
            beside = self._path.parent / name
            if files.is_there(beside):
                return beside
            if name.name in self._below:
                return self._path.parent / self._below[name.name]
        detail = f"there is no file {quoted_value(one.mask)} in {self._path.parent} or below it"
        fix = "Unpack the archives of masks next to the table."
        raise DataError.single("file-missing", one.where, detail, fix=fix)

    @cached_property
    def _below(self) -> dict[str, str]:
        return {name.rpartition("/")[2]: name for name in files.list_tree(self._path.parent, self._draft.findings)}


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a table of Open Images; the confidence of ground truth is 1, as there."""
    from jaccard_eval.atomic import replace_file
    from jaccard_eval.reading.tabular.writer import image_texts, report_texts
    from jaccard_eval.reading.writing import (
        exact_coords,
        report_losses,
        report_rounded,
        require_names,
        require_sizes,
        rows_of,
    )

    boxes, labels = dataset.table, dataset.labels
    require_sizes(dataset, "Open Images", findings)
    require_names(dataset, "Open Images", findings)
    report_losses(dataset, path, findings, ("group_of",))
    images = image_texts(dataset.images)
    # MIDs where the data set has them, else names.
    classes = list(map(str, labels.keys)) if dataset.key_format == "openimages" else list(labels.names)
    report_texts(images, classes, path, findings)
    findings.raise_errors()
    sizes = None if dataset.units == "norm" else dataset.images.sizes[boxes.image]
    coords, exact = exact_coords(boxes.xywh, "xxyy", sizes)
    report_rounded(exact, path, findings)
    scored = coords if boxes.score is None else np.column_stack((boxes.score, coords))
    sure = "1," if boxes.score is None else ""
    image_cells, class_cells = ([quoted(inert(text)) for text in texts] for texts in (images, classes))
    keys = (image_cells, boxes.image), ",", (class_cells, boxes.label), f",{sure}"
    rows, _ = rows_of([*keys, scored, ((",0\n", ",1\n"), boxes.group_of)], len(boxes))
    replace_file(path, b"%b\n%b" % (",".join(HEADER).encode(), rows))
