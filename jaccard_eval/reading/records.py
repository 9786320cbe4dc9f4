"""JSON documents in files and folders, records that name the field of whatever is wrong, and a draft made of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaccard_eval.data.boxtable import FloatArray, Shapes
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Key
from jaccard_eval.data.known_protocols import MASKS, ORIENTED
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import NO_SCORES, SIZE_OR_FOLDER, Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import (
    RepeatedKeys,
    described_json,
    is_finite,
    is_number,
    parse_json,
    parse_json_lines,
)
from jaccard_eval.reading.rawboxes import RawBoxes
from jaccard_eval.text import quoted_value, shown_json

if TYPE_CHECKING:
    from jaccard_eval.reading.drawn import Drawn, ShapeDraft
    from jaccard_eval.reading.outlines import OutlineDraft
    from jaccard_eval.similarity.runs import IntArray, Runs

SUFFIX = ".json"
UNKNOWN_SIZE = (math.nan, math.nan)
_OF_MASK = (math.nan,) * 4  # a box that is the bounds of its mask, found for all masks at once
_EXPORT = "Export the file again, or fix it at that place."


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the file: its values, its place, and where to record what is wrong."""

    values: dict[str, Any]
    where: Where
    findings: FindingLog

    @classmethod
    def of(cls, value: Any, where: Where, findings: FindingLog) -> Record:
        """Read a value as an object; if it is not one, its faults are reported once and no more."""
        if not isinstance(value, dict):
            findings.error("record-type", where, f"is {described_json(value)}; expected an object", fix=_EXPORT)
            return cls({}, where, FindingLog())
        record = cls(value, where, findings)
        record.refuse_repeated(value)
        return record

    @classmethod
    def list_of(cls, value: Any, where: Where, findings: FindingLog) -> Iterator[Record]:
        """Read a value as a list of objects; others are reported and skipped."""
        return cls({"": value}, where, findings).records("")

    def refuse_repeated(self, fields: Container[str]) -> None:
        """Record which of the fields stand in the object more than once."""
        for key in self.values.repeated if isinstance(self.values, RepeatedKeys) else ():
            if key in fields:
                detail = f"duplicate key {quoted_value(key)} in one object"
                self.error("key-duplicate", key, detail, "Keep one of them.")

    def has(self, field: str) -> bool:
        """Whether a field is given and not null."""
        return self.values.get(field) is not None

    def number(self, field: str) -> float:
        """Read a finite number; NaN where there is none."""
        return self.finite(field, self.values[field]) if self._require(field) else math.nan

    def finite(self, field: str, value: Any) -> float:
        """Take a value as a finite number; NaN where it is none."""
        if not is_number(value):
            self.error(
                "number-type", field, f"is {described_json(value)}, not a number", "Write numbers without quotes."
            )
        elif not is_finite(value):
            detail = f"is {shown_json(value)}; numbers must be finite and not too large (at most 1.8e308)"
            self.error("number-not-finite", field, detail, "Fix the exporter or drop the record.")
        else:
            return float(value)
        return math.nan

    def optional(self, field: str, default: float = math.nan) -> float:
        """Read a finite number that need not be there."""
        return self.number(field) if self.has(field) else default

    def side(self, field: str) -> float:
        """Read the width or height of an image in pixels; NaN where it is unknown, for which some tools write 0."""
        value = self.number(field)
        # A size scales boxes, so that a wrong one moves every number: it is an error, never a guess.
        if not math.isnan(value) and (not 0 <= value <= MAX_IMAGE_SIDE or value % 1):
            expected = f"a whole number of pixels, at most {MAX_IMAGE_SIDE:g}"
            detail = f"is {shown_json(self.values[field])}; expected {expected}"
            self.error("image-size", field, detail, SIZE_OR_FOLDER)
        return value or math.nan

    def size(self) -> tuple[float, float]:
        """Read width and height of an image where both are given."""
        is_given = self.has("width") and self.has("height")
        return (self.side("width"), self.side("height")) if is_given else UNKNOWN_SIZE

    def numbers(self, field: str, count: int) -> list[float]:
        """Read so many finite numbers in an array."""
        values = self.array(field)
        if len(values) == count:
            return [self.finite(f"{field}[{at}]", value) for at, value in enumerate(values)]
        if isinstance(self.values.get(field), list):
            self.error("bbox-length", field, f"has {len(values)} values; expected {count} numbers")
        return [math.nan] * count

    def corners(self, field: str) -> list[float]:
        """Read two opposite corners, or all four, drawn in any direction, as left, top, right and bottom."""
        points = self.entries(field)
        if len(points.values) not in (2, 4):
            if isinstance(self.values.get(field), list):
                detail = f"has {len(points.values)} points; a rectangle has 2 opposite corners, or 4"
                self.error("bbox-length", field, detail)
            return [math.nan] * 4
        xs, ys = zip(*(points.numbers(name, 2) for name in points.values), strict=True)
        return [min(xs), min(ys), max(xs), max(ys)]

    def ring(self, points: Sequence[Sequence[float]]) -> list[float]:
        """Return the corners of a polygon one after the other; nothing where they are too few."""
        if len(points) < 3:
            detail = f"a polygon has {len(points)} points; expected at least 3"
            self.findings.error("segmentation-invalid", self.where, detail, fix="Remove it from the annotation.")
            return []
        return [value for point in points for value in point]

    def text(self, field: str) -> str:
        """Read a text that must not be empty; empty where there is none."""
        if not self._require(field):
            return ""
        value = self.values[field]
        if isinstance(value, str) and value.strip():
            return value
        self.error("field-missing", field, f"is {described_json(value)}; expected a string that is not empty")
        return ""

    def key(self, field: str) -> Key:
        """Read a class: a number as it is, else a text."""
        value = self.values.get(field)
        return value if isinstance(value, int) and not isinstance(value, bool) else self.text(field)

    def array(self, field: str) -> list[Any]:
        """Read an array; empty where there is none."""
        if not self._require(field):
            return []
        value = self.values[field]
        if not isinstance(value, list):
            self.error("section-type", field, f"is {described_json(value)}; expected an array (list)")
            return []
        return value

    def entries(self, field: str) -> Record:
        """Read an array as a record whose fields are called after their positions: ``points[0]``, ``points[1]``."""
        return replace(self, values={f"{field}[{at}]": value for at, value in enumerate(self.array(field))})

    def records(self, field: str) -> Iterator[Record]:
        """Read an array of objects; others are reported and skipped."""
        for at, value in enumerate(self.array(field)):
            record = Record.of(value, self.at(f"{field}[{at}]"), self.findings)
            if isinstance(value, dict):
                yield record

    def record(self, field: str) -> Record:
        """Read an object in this one."""
        if not self._require(field):
            # A log of its own, which nobody reads: the missing object was reported already.
            return Record({}, self.where, FindingLog())
        return Record.of(self.values[field], self.at(field), self.findings)

    def at(self, field: str) -> Where:
        """Return the place of a field as that of a record."""
        outer = self.where.record or ""
        joint = "." if outer and not field.startswith("[") else ""
        # Written out: `replace` takes as long as the rest of reading a small record.
        return Where(self.where.path, f"{outer}{joint}{field}", self.where.line, self.where.field)

    def error(self, code: str, field: str, detail: str, fix: Fix | str = _EXPORT) -> None:
        """Record a fault of a field."""
        self.findings.error(code, replace(self.where, field=field), detail, fix=fix)

    def _require(self, field: str) -> bool:
        if self.has(field):
            return True
        self.error("field-missing", field, "is null" if field in self.values else "is missing")
        return False


def documents(
    path: Path, draft: Draft, *, besides: frozenset[str] = frozenset(), suffixes: tuple[str, ...] = (SUFFIX,)
) -> Iterator[tuple[str, Path, Any]]:
    """Yield key, path and value of each document, sorted; those that are not JSON are errors, all in one pass.

    Of a folder, keys are relative paths without suffix; the names in `besides`, of files or with a slash of the folders
    they lie in, describe no image. A folder without documents is a DataError.
    """
    found = {path.stem: path}
    if files.is_folder(path):
        found = {}
        for name in files.list_tree(path, draft.findings):
            parent, own = f"/{name}".split("/")[-2:]
            is_document = name.lower().endswith(suffixes) and not own.startswith(".")
            if is_document and besides.isdisjoint((own, f"{parent}/")):
                found[name.rpartition(".")[0]] = path / name
        if not found:
            fix = "Pass the folder of them."
            raise DataError.single("labels-missing", Where(str(path)), "no .json files", fix=fix)
    yield from files.read_each(found, lambda file: parse_json(file, files.read_text(file)), draft.findings)


def document_records(
    path: Path, draft: Draft, *, besides: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Record]]:
    """Yield key and outermost object of each document; see `documents`."""
    for key, file, value in documents(path, draft, besides=besides):
        yield key, Record.of(value, Where(str(file)), draft.findings)


def listed_records(path: Path, draft: Draft) -> Iterator[Record]:
    """Return the objects of a file that is a list of them; others are reported and skipped."""
    return Record.list_of(parse_json(path, files.read_text(path)), Where(str(path)), draft.findings)


def line_records(path: Path, text: str, draft: Draft) -> Iterator[Record]:
    """Yield the objects of JSON Lines."""
    for number, value in parse_json_lines(path, text, draft.findings):
        yield Record.of(value, Where(str(path), line=number), draft.findings)


def numbers_of(texts: Sequence[str]) -> tuple[FloatArray, IntArray]:
    """Return the numbers that texts are, (n,), and the rows of those that are not plain finite numbers: NaN."""
    from jaccard_eval.reading.tabular.columns import parse_numbers  # of most records, numbers are numbers

    return parse_numbers(np.array(texts, dtype=np.object_))


# What is read of shapes, by what is compared, and what helps where they are others.
_READ: dict[str, tuple[str, str]] = {
    BOXES: ("boxes", "Draw boxes, or export in a format that includes bounding boxes."),
    **dict.fromkeys(MASKS, ("polygons and rectangles", "Draw polygons, or export masks as COCO JSON.")),
    **dict.fromkeys(ORIENTED, ("boxes and four corners", "Draw boxes that are turned, or compare masks.")),
    "keypoints": ("keypoints", "Write the keypoints of each object with it."),
}
# What annotation tools keep next to shapes, about a whole image.
SHAPELESS = ("choices", "taxonomy", "rating", "number", "textarea", "pairwise", "tag", "label without a shape")


class RecordCollector:
    """Collects images and boxes one by one; `to_draft` gives them to the draft."""

    def __init__(self, draft: Draft, *, usual_angle: str = "") -> None:
        self._draft = draft
        self._usual_angle = usual_angle
        self._drawn: ShapeDraft | None = None  # shapes that are compared, and those of records without a box
        self._images: list[Key] = []
        self._file_names: list[str | None] = []
        self._sizes: list[tuple[float, float]] = []
        self._image: list[Key] = []  # of each box
        self._labels: list[Key] = []
        self._coords: list[Any] = []  # four of each box, numbers or texts
        self._scores: list[float] = []
        self._places: list[Where] = []
        self._crowd: list[bool] = []
        self._difficult: list[int] = []  # rows
        self._shapes: Counter[str] = Counter()
        self._n_rotated = 0
        self._masks: OutlineDraft | None = None  # of each box one, where masks are asked for
        self.reads_masks = draft.options.iou_type in MASKS
        self.reads_boxes = draft.options.iou_type == BOXES

    @property
    def n_boxes(self) -> int:
        """How many boxes were added."""
        return len(self._labels)

    def add_image(self, key: Key, *, file_name: str | None = None, size: tuple[float, float] = UNKNOWN_SIZE) -> None:
        """Add an image with its width and height; NaN where unknown."""
        self._images.append(key)
        self._file_names.append(file_name)
        self._sizes.append(UNKNOWN_SIZE if any(map(math.isnan, size)) else size)

    def add_box(
        self,
        image: Key,
        label: Key,
        coords: Sequence[float] | Sequence[str],
        where: Where,
        *,
        score: float = math.nan,
        crowd: bool = False,
    ) -> None:
        """Add a box; a score of NaN means that it has none. A crowd absorbs every prediction that lies on it.

        Coordinates are texts in all boxes or in none.
        """
        self._image.append(image)
        self._labels.append(label)
        self._coords += coords
        self._scores.append(score)
        self._places.append(where)
        self._crowd.append(crowd)

    def add_drawn(
        self,
        image: Key,
        label: Key,
        drawn: Drawn,
        where: Where,
        *,
        score: float = math.nan,
        crowd: bool = False,
        difficult: bool = False,
    ) -> None:
        """Add what a record draws as it is compared; what cannot be is counted."""
        iou_type = self._draft.options.iou_type
        if not drawn.fits(iou_type):
            self.count_shape(drawn.kind)
            return
        if iou_type != BOXES or drawn.box is None:
            if self._drawn is None:
                from jaccard_eval.reading.drawn import ShapeDraft  # most files are read for their boxes

                self._drawn = ShapeDraft(self._usual_angle)
            self._drawn.add(len(self._labels), drawn)
        if difficult:
            self._difficult.append(len(self._labels))
        self.add_box(image, label, _OF_MASK if drawn.box is None else drawn.box, where, score=score, crowd=crowd)

    def add_polygons(
        self, image: Key, label: Key, rings: Sequence[list[float]], where: Where, *, score: float = math.nan
    ) -> None:
        """Add the union of polygons, each x1, y1, x2, y2, ..., as the mask of one object; see `reads_masks`."""
        self._outline_draft().add_polygons(rings)
        self.add_box(image, label, _OF_MASK, where, score=score)

    def add_outline(self, image: Key, label: Key, value: Any, where: Where, *, score: float = math.nan) -> str:
        """Add a mask as COCO JSON has it, polygons or RLE; return the problem where it is none."""
        problem = self._outline_draft().add(value)
        if not problem:
            self.add_box(image, label, _OF_MASK, where, score=score)
        return problem

    def add_pixels(
        self,
        image: Key,
        label: Key,
        edges: IntArray,
        size: tuple[int, int],
        where: Where,
        *,
        score: float = math.nan,
        crowd: bool = False,
    ) -> None:
        """Add the runs of a mask in an image of a height and a width as one object; see `reads_masks`."""
        self._outline_draft().add_pixels(edges, *size)
        self.add_box(image, label, _OF_MASK, where, score=score, crowd=crowd)

    def add_map(
        self,
        image: Key,
        masks: Runs,
        size: tuple[int, int],
        *,
        labels: Sequence[Key],
        places: Sequence[Where],
        scores: Sequence[float] = (),
        crowd: Sequence[bool] = (),
    ) -> None:
        """Add an image of a height and a width with the masks of all of its objects; see `reads_masks`."""
        self.add_image(image, size=(size[1] or math.nan, size[0] or math.nan))
        bounds = pairwise(masks.offsets.tolist())
        for at, ((start, stop), label, where) in enumerate(zip(bounds, labels, places, strict=True)):
            score, absorbs = scores[at] if scores else math.nan, bool(crowd) and crowd[at]
            self.add_pixels(image, label, masks.edges[start:stop], size, where, score=score, crowd=absorbs)

    def _outline_draft(self) -> OutlineDraft:
        if self._masks is None:
            from jaccard_eval.reading.outlines import OutlineDraft  # most files are read for their boxes

            self._masks = OutlineDraft()
        return self._masks

    def count_shape(self, kind: str) -> None:
        """Count a shape that is not a box."""
        self._shapes[kind] += 1

    def count_rotated(self) -> None:
        """Count a box that was turned, and is read as the upright box around it."""
        self._n_rotated += 1

    def to_draft(
        self,
        *,
        encoding: str,
        units: str = "px",
        listed: bool,
        drawn: bool = False,
        classes: Sequence[str] = (),
        fields: Sequence[str] = (),
    ) -> None:
        """Give everything to the draft; `listed` when the images that were added are all of the data set.

        `drawn` where a negative size can only be a box that was drawn upwards or to the left. `classes` are those that
        the file lists, in its order, `fields` what the coordinates of a box are called that are texts.
        """
        draft, where = self._draft, Where(self._draft.path)
        draft.listed_names = tuple(classes)
        sizes = np.array(self._sizes, dtype=np.float64).reshape(-1, 2)
        draft.fill_sizes(sizes, [str(key) for key in self._images])
        # A name that several images claim identifies none of them.
        claims = Counter(self._file_names)
        names = [name if claims[name] == 1 else None for name in self._file_names]
        draft.set_images(self._images, file_names=names, sizes=sizes, listed=listed)
        if all(isinstance(label, str) for label in self._labels):
            labels = sorted({str(label) for label in self._labels})
            known = [name for name in dict.fromkeys((*classes, *labels)) if name]
            draft.set_classes(known, known)
        outlines = self._outlines()
        if outlines is not None:
            coords, encoding = outlines.bounds(), "xywh"
        else:
            coords = self._numbers(fields) if fields else np.array(self._coords, dtype=np.float64).reshape(-1, 4)
        shapes: Shapes | None = outlines
        if self._drawn is not None:
            coords, shapes = self._drawn.build(coords, encoding, self._places.__getitem__, draft)
        ignore = None if self._drawn is None else self._drawn.ignored(shapes, draft.options)
        draft.add_boxes(
            RawBoxes(
                image=self._image,
                label=self._labels,
                coords=coords,
                encoding=encoding,
                units=units,
                score=self._score_column(),
                crowd=np.array(self._crowd, dtype=np.bool_) if any(self._crowd) else None,
                difficult=np.isin(np.arange(len(self._labels)), self._difficult) if self._difficult else None,
                ignore=ignore,
                shapes=shapes,
                drawn=drawn,
                place=self._places.__getitem__,
            )
        )
        if self._n_rotated:
            detail = f"{self._n_rotated:,} rotated boxes are read as their bounding boxes"
            draft.findings.note("outline", where, detail)
        if self._shapes:
            draft.ignored["shape"] += self._shapes.total()
            draft.n_shapeless += sum(self._shapes[kind] for kind in SHAPELESS)
            kinds = ", ".join(f"{count:,} {quoted_value(kind)}" for kind, count in sorted(self._shapes.items()))
            read, fix = _READ.get(draft.options.iou_type, _READ[BOXES])
            draft.findings.warning("shape-unused", where, f"ignored shapes other than {read}: {kinds}", fix=fix)

    def _numbers(self, fields: Sequence[str]) -> FloatArray:
        """Return coordinates that are texts, read all at once, (n, 4); NaN where one is no number, an error."""
        texts = self._coords
        numbers, bad = numbers_of(texts)

        def describe(at: int) -> tuple[Where, str]:
            text = quoted_value(texts[at])
            detail = f"{text} is not a plain finite number" if texts[at] else "is missing or empty"
            return replace(self._places[at // 4], field=fields[at % 4]), detail

        fix = "Write plain decimal numbers with a point."
        self._draft.findings.add_rows(Severity.ERROR, "number-invalid", bad, describe, fix=fix)
        return numbers.reshape(-1, 4)

    def _outlines(self) -> Shapes | None:
        """Return the masks of all objects, whose areas are those of their pixels; None where none was added."""
        if self._masks is None:
            return None
        outlines, problems = self._masks.build()
        for row, problem in problems:
            self._draft.findings.error("segmentation-invalid", self._places[row], problem)
        return replace(outlines, counts_pixels=np.ones(len(outlines), dtype=np.bool_))

    def _score_column(self) -> FloatArray | None:
        """Return the scores of predictions; none where no box has any."""
        draft, scores = self._draft, np.array(self._scores, dtype=np.float64)
        missing = np.flatnonzero(np.isnan(scores))
        n_given = len(scores) - len(missing)
        if draft.options.role == "gt":
            if n_given:
                draft.mention_scores(n_given)
            return None
        if not n_given or draft.options.assume_score is not None:
            return None
        draft.findings.add_rows(
            Severity.ERROR,
            "score-missing",
            missing,
            lambda row: (self._places[row], "has no score, but other boxes have one"),
            fix=NO_SCORES,
        )
        return scores


def outputs(path: Path, draft: Draft, is_output: Callable[[Any], bool]) -> Iterator[tuple[str, Any, Where]]:
    """Yield the image, the output and its place, for every image of a file or folder.

    `is_output` decides whether a whole document is the output for one image. Others are lists of outputs, or objects
    from the names of images to outputs.
    """
    for key, file, value in documents(path, draft):
        where = Where(str(file))
        if isinstance(value, list) and any(map(is_output, value)):
            note_positions(len(value), where.path, draft)
            for position, output in enumerate(value):
                yield str(position), output, replace(where, record=f"[{position}]")
        elif is_output(value):
            yield key, value, where
        else:
            for image, output in Record.of(value, where, draft.findings).values.items():
                yield image, output, replace(where, record=image)


_MAPPED = "If the other side has image names, write an object that maps image names to outputs."


def note_positions(count: int, path: str, draft: Draft, fix: str = _MAPPED) -> None:
    """Report that outputs in a list do not name their images."""
    detail = f"the list does not name images; its {count:,} outputs are numbered 0, 1, 2, ..."
    draft.findings.warning("image-position", Where(path), detail, fix=fix)


def read_object_lists(path: Path, draft: Draft, add_object: Callable[[RecordCollector, str, Record], None]) -> None:
    """Add images whose output is a list of objects to the draft; `add_object` adds one of them (xyxy)."""
    collector = RecordCollector(draft)
    for image, output, where in outputs(path, draft, lambda value: isinstance(value, list)):
        collector.add_image(image)
        for entry in Record.list_of(output, where, draft.findings):
            add_object(collector, image, entry)
    collector.to_draft(encoding="xyxy", listed=False)
