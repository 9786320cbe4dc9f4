"""Masks of Open Images: a PNG file per object, or compressed RLE in base64, each at a resolution of its own.

Source: the downloads (``*-annotations-object-segmentation.csv``), and of the Object Detection API
``metrics/oid_challenge_evaluation_utils.py`` for what the challenge's tables and submissions hold.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.data.boxtable import BoolArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Key, unknown_sizes
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats._openimages import BOXES, CODE, FILE, IMAGE, SIZE, STRING
from jaccard_eval.options import ReadOptions
from jaccard_eval.progress import tracked
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.text import is_numeral, quoted_value

if TYPE_CHECKING:
    from jaccard_eval.similarity.masks import Masks

_SCORES = ("score", "confidence")
_MOST_BYTES = 2**26  # of RLE: more than any mask has
_FIX = "Write masks as pycocotools' RLE, compressed with zlib, in base64."


@dataclass(slots=True)
class _Object:
    """A row of a table, or a part of its string."""

    image: str
    label: str
    where: Where
    mask: str  # a path or a text; empty where there is none
    box: tuple[float, ...] = (math.nan,) * 4  # left, right, top, bottom as fractions
    size: tuple[int, int] = (0, 0)  # height and width of the mask, zeros where the file does not have them
    score: float = math.nan
    is_group: bool = False


def add_masks(
    path: Path, draft: Draft, options: ReadOptions
) -> tuple[CodedKeys, CodedKeys, Callable[[int], Where]] | None:
    """Add the objects of a table to a draft; return image, class and place of each; None where there are errors."""
    table = _Table(path, draft)
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


class _Table:
    """The rows of a table, and the files that they name."""

    def __init__(self, path: Path, draft: Draft) -> None:
        self._path, self._draft = path, draft
        self.empty: list[Key] = []  # images whose string has nothing in it

    def objects(self) -> Iterator[_Object]:
        """Yield what rows hold; what is wrong with them is among the findings."""
        from jaccard_eval.reading.tabular.rows import fields_up_to

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

    def _row(self, row: dict[str, str], where: Where) -> Iterator[_Object]:
        image = next((row[name] for name in IMAGE if row.get(name)), "")
        if not image:
            self._error(where, "ImageID", "the cell is empty", code="field-missing")
        size = (0, 0)
        if row.keys() >= set(SIZE):
            width, height = (self._number(row[name], where, name, most=MAX_IMAGE_SIDE) for name in SIZE)
            if not (width > 0 and height > 0 and width % 1 == height % 1 == 0):
                if not math.isnan(width + height):
                    detail = f"is {row[SIZE[0]]} x {row[SIZE[1]]}; expected whole numbers of pixels"
                    self._error(where, "ImageWidth", detail, code="image-size")
                return
            size = int(height), int(width)
        if STRING in row:
            yield from self._parts(image, size, row[STRING], where)
            return
        if not row["labelname"]:
            self._error(where, "LabelName", "the cell is empty", code="field-missing")
        names = next((names for names in BOXES if row.keys() >= set(names) and all(map(row.get, names))), ())
        box = tuple(self._number(row[name], where, name) for name in names)
        score = next((self._number(row[name], where, name) for name in _SCORES if row.get(name)), math.nan)
        yield _Object(
            image,
            row["labelname"],
            replace(where, field="MaskPath" if FILE in row else "Mask"),
            row[FILE] if FILE in row else row[CODE],
            **({"box": box} if box else {}),
            size=size,
            score=score,
            is_group=row.get("isgroupof") == "1",
        )

    def _parts(self, image: str, size: tuple[int, int], text: str, where: Where) -> Iterator[_Object]:
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
            yield _Object(image, label, where, mask, size=size, score=self._number(score, where, None))

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

    def masks(self, objects: Sequence[_Object]) -> Masks | None:
        """Return the mask of each object; None where some cannot be used."""
        from jaccard_eval.reading.labelmaps import EncodedImage
        from jaccard_eval.reading.mask_pixels import object_pixels
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
    def _decoded(one: _Object) -> bytes:
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

    def _file(self, one: _Object) -> Path:
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
